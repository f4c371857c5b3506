#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <seccomp.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/seccomp.h"

/* A file: the header, then `count` instructions, then the `key_size` bytes of what they were made
 * from. Its name is a hash of that, which need not be a strong one: the key itself is compared. It
 * never leaves the machine. */
struct header {
	char magic[8];
	uint32_t flags, count, notifies, key_size;
	uint64_t sum; /* of the instructions: what is damaged is made again */
};

enum {
	/* Raise it when seccomp.c or seccomp-bpf.c make something else of the same source. */
	FORMAT = 6,
	TEXT_MAX = 1 << 20,
	FILE_MAX = TEXT_MAX + (64 << 10),
	KEPT_MAX = 256, /* files; beyond, some go: the folder may lie in memory */
};
static const char magic[8] = {"svrunbpf"};

/* FNV-1a, 64 bits. */
static uint64_t hash(const void *p, size_t n)
{
	const unsigned char *c = p;
	uint64_t h = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < n; i++)
		h = (h ^ c[i]) * UINT64_C(1099511628211);
	return h;
}

/* The text with what else decides what is made of it, and the file's name. */
static void make_key(struct buf *key, const char *text, size_t n, char name[17])
{
	*key = BUF_INIT(TEXT_MAX + 256);
	buf_printf(key, "%s %x %d ", SVRUN_VERSION, seccomp_arch_native(), FORMAT);
	buf_put(key, text, n);
	snprintf(name, 17, "%016" PRIx64, hash(key->data, key->len));
}

static void pack(const struct seccomp_prog *p, const struct buf *key, struct buf *out)
{
	size_t bytes = p->n * sizeof(*p->code);
	struct header head = {.flags = p->flags,
		.count = (uint32_t)p->n,
		.notifies = p->notifies,
		.key_size = (uint32_t)key->len,
		.sum = hash(p->code, bytes)};

	memcpy(head.magic, magic, sizeof(magic));
	*out = BUF_INIT(sizeof(head) + bytes + key->len);
	buf_put(out, &head, sizeof(head));
	buf_put(out, p->code, bytes);
	buf_put(out, key->data, key->len);
}

static int unpack(
	struct seccomp_prog *p, const struct buf *key, const char *data, size_t n, struct err *e)
{
	const char *code = data + sizeof(struct header);
	struct header head = {0};
	size_t bytes;

	memcpy(&head, data, n < sizeof(head) ? 0 : sizeof(head));
	bytes = head.count * sizeof(*p->code);
	if (memcmp(head.magic, magic, sizeof(magic)) != 0 || head.count < 1 ||
		head.count > BPF_MAXINSNS || head.key_size != key->len ||
		n != sizeof(head) + bytes + key->len)
		return err_set(e, ERR_CORRUPT, "not a compiled seccomp filter");
	if (head.sum != hash(code, bytes))
		return err_set(e, ERR_CORRUPT, "a damaged seccomp filter");
	if (key->len && memcmp(code + bytes, key->data, key->len) != 0)
		return err_set(e, ERR_CORRUPT, "another seccomp filter");
	*p = (struct seccomp_prog){.flags = head.flags, .notifies = head.notifies, .n = head.count};
	p->code = mem_dup(code, bytes);
	return 0;
}

void seccomp_pack(const struct seccomp_prog *p, struct buf *out)
{
	pack(p, &(struct buf){0}, out);
}

int seccomp_unpack(struct seccomp_prog *p, const void *data, size_t n, struct err *e)
{
	return unpack(p, &(struct buf){0}, data, n, e);
}

int seccomp_recall(struct seccomp_prog *p, int dir, const char *text, size_t n)
{
	auto_buf struct buf key = BUF_INIT(0), file = BUF_INIT(FILE_MAX);
	struct stat st;
	char name[17];

	if (dir < 0 || n > TEXT_MAX)
		return 0;
	make_key(&key, text, n, name);
	auto_fd int fd = sys_openat(dir, name, O_RDONLY | O_NOFOLLOW, 0);
	/* Another user's file would be another user's filter. */
	return fd >= 0 && sys_fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)) &&
	       file_read_fd(fd, name, &file, NULL) == 0 && file.data &&
	       unpack(p, &key, file.data, file.len, NULL) == 0;
}

static void drop_many(int dir)
{
	int copy = sys_openat(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	for (size_t n = 0; d && (entry = readdir(d));)
		if (entry->d_name[0] != '.' && ++n > KEPT_MAX)
			sys_unlinkat(dir, entry->d_name, 0);
	if (d)
		closedir(d);
	else
		sys_close_ref(&copy);
}

void seccomp_remember(const struct seccomp_prog *p, int dir, const char *text, size_t n)
{
	auto_buf struct buf key = BUF_INIT(0), file = BUF_INIT(0);
	char name[17];

	if (dir < 0 || n > TEXT_MAX)
		return;
	make_key(&key, text, n, name);
	pack(p, &key, &file);
	drop_many(dir);
	/* Only time is lost when it cannot be kept. */
	if (file_write(dir, name, file.data, file.len, 0600, NULL) < 0)
		return;
}

int seccomp_cached(struct seccomp_prog *p, int dir, const struct spec_seccomp *s, struct err *e)
{
	auto_free char *text = json_dumps(s->source, JSON_COMPACT);
	size_t n = text ? strlen(text) : 0;

	if (text && seccomp_recall(p, dir, text, n))
		return 0;
	if (seccomp_compile(p, s, e) < 0)
		return -1;
	if (text)
		seccomp_remember(p, dir, text, n);
	return 0;
}
