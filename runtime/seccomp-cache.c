#include <dirent.h>
#include <fcntl.h>
#include <seccomp.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/seccomp.h"

/* A file: the header, then `count` instructions. Its name is the digest of what it was made from,
 * in hex. It never leaves the machine. */
struct header {
	char magic[8];
	uint32_t flags, count, notifies;
	struct digest code;
};

enum {
	/* Raise it when seccomp.c or seccomp-bpf.c make something else of the same source. */
	FORMAT = 2,
	FILE_MAX = 64 << 10,
	KEPT_MAX = 256, /* files; beyond, all are dropped: the folder may lie in memory */
};
static const char magic[8] = {"svrunbpf"};

static int add(const char *p, size_t n, void *hash)
{
	hash_add(hash, p, n);
	return 0;
}

/* -1: the source has no text, and so no name that it alone has. */
static int make_name(const struct spec_seccomp *s, char name[DIGEST_HEX + 1])
{
	char version[64];
	struct digest d;
	struct hash h;

	snprintf(version, sizeof(version), "%s %x %d ", SVRUN_VERSION, seccomp_arch_native(),
		FORMAT);
	hash_init(&h, HASH_SHA256);
	hash_add(&h, version, strlen(version));
	if (json_dump_callback(s->source, add, &h, JSON_COMPACT) < 0)
		return -1;
	d = hash_digest(&h);
	digest_hex(&d, name);
	return 0;
}

void seccomp_pack(const struct seccomp_prog *p, struct buf *out)
{
	size_t bytes = p->n * sizeof(*p->code);
	struct header head = {.flags = p->flags, .count = (uint32_t)p->n, .notifies = p->notifies};

	memcpy(head.magic, magic, sizeof(magic));
	head.code = digest_of(p->code, bytes);
	*out = BUF_INIT(sizeof(head) + bytes);
	buf_put(out, &head, sizeof(head));
	buf_put(out, p->code, bytes);
}

int seccomp_unpack(struct seccomp_prog *p, const void *data, size_t n, struct err *e)
{
	struct header head;
	struct digest d;
	const char *code = (const char *)data + sizeof(head);

	if (n >= sizeof(head))
		memcpy(&head, data, sizeof(head));
	if (n < sizeof(head) || memcmp(head.magic, magic, sizeof(magic)) != 0 || head.count < 1 ||
		head.count > BPF_MAXINSNS ||
		n != sizeof(head) + head.count * sizeof(struct sock_filter))
		return err_set(e, ERR_CORRUPT, "not a compiled seccomp filter");
	d = digest_of(code, n - sizeof(head));
	if (!digest_eq(&d, &head.code))
		return err_set(e, ERR_CORRUPT, "a damaged seccomp filter");
	*p = (struct seccomp_prog){.flags = head.flags, .notifies = head.notifies, .n = head.count};
	p->code = mem_dup(code, n - sizeof(head));
	return 0;
}

/* 1 when the file is there and whole, 0 when it is of no use. */
static int read_cached(struct seccomp_prog *p, int dir, const char *name)
{
	auto_fd int fd = sys_openat(dir, name, O_RDONLY | O_NOFOLLOW, 0);
	auto_buf struct buf file = BUF_INIT(FILE_MAX);
	struct stat st;

	/* Another user's file would be another user's filter. */
	if (fd < 0 || sys_fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
		st.st_mode & (S_IWGRP | S_IWOTH))
		return 0;
	return file_read_fd(fd, name, &file, NULL) == 0 && file.data &&
	       seccomp_unpack(p, file.data, file.len, NULL) == 0;
}

static void drop_many(int dir)
{
	int copy = sys_openat(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;
	size_t n = 0;

	if (!d) {
		sys_close_ref(&copy);
		return;
	}
	while ((entry = readdir(d)))
		n += entry->d_name[0] != '.';
	rewinddir(d);
	while (n > KEPT_MAX && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			sys_unlinkat(dir, entry->d_name, 0);
	closedir(d);
}

static void write_cached(const struct seccomp_prog *p, int dir, const char *name)
{
	auto_buf struct buf file;

	seccomp_pack(p, &file);
	drop_many(dir);
	/* Only time is lost when it cannot be kept. */
	if (file_write(dir, name, file.data, file.len, 0600, NULL) < 0)
		return;
}

int seccomp_cached(struct seccomp_prog *p, int dir, const struct spec_seccomp *s, struct err *e)
{
	char name[DIGEST_HEX + 1];

	if (dir < 0 || !s->source || make_name(s, name) < 0)
		return seccomp_compile(p, s, e);
	*p = (struct seccomp_prog){.flags = s->flags, .notifies = s->notifies};
	if (read_cached(p, dir, name))
		return 0;
	if (seccomp_compile(p, s, e) < 0)
		return -1;
	write_cached(p, dir, name);
	return 0;
}
