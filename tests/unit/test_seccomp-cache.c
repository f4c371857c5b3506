#include "tests/unit/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/caps.h"
#include "runtime/seccomp.h"

/* Where things lie in a file: magic, flags, count, notifies, size of the text, sum, code, text. */
enum { COUNT_AT = 12, SUM_AT = 24, CODE_AT = 32 };

struct cache {
	char path[32], file[80]; /* its folder, and the only file there */
	int dir;
	struct arena mem;
	json_t *json;
	struct spec_seccomp s;
};

static const char filter[] = "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": 1, "
			     "\"syscalls\": [{\"names\": "
			     "[\"read\", \"write\", \"openat\", \"close\"], \"action\": "
			     "\"SCMP_ACT_ALLOW\"}, {\"names\": "
			     "[\"ioctl\"], \"action\": \"SCMP_ACT_ALLOW\", \"args\": [{\"index\": "
			     "1, \"value\": 5, \"op\": "
			     "\"SCMP_CMP_GE\"}]}]}";

static void start(struct cache *c)
{
	struct err e = {0};
	struct at at = {NULL, "c", 0, json_parse(filter, strlen(filter), &e), &c->mem};

	*c = (struct cache){.path = "/tmp/svrun-filters-XXXXXX", .json = at.v};
	assert_non_null(mkdtemp(c->path));
	c->dir = sys_open(c->path, O_RDONLY | O_DIRECTORY, 0);
	assert_true(c->dir >= 0);
	assert_int_equal(seccomp_read(&at, &c->s, &e), 0);
}

static void end(struct cache *c)
{
	assert_int_equal(sys_remove_tree(AT_FDCWD, c->path), 0);
	close(c->dir);
	json_decref(c->json);
	arena_fini(&c->mem);
}

static size_t files(struct cache *c)
{
	DIR *d = opendir(c->path);
	struct dirent *entry;
	size_t n = 0;

	assert_non_null(d);
	while ((entry = readdir(d))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(c->file, sizeof(c->file), "%.79s", entry->d_name);
		n++;
	}
	closedir(d);
	return n;
}

static struct seccomp_prog get(struct cache *c, int dir)
{
	struct seccomp_prog p;
	struct err e = {0};

	if (seccomp_cached(&p, dir, &c->s, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(p.flags, c->s.flags);
	assert_true(p.n > 10);
	return p;
}

static void get_and_drop(struct cache *c)
{
	struct seccomp_prog p = get(c, c->dir);

	seccomp_prog_fini(&p);
}

/* Make the first instruction of the kept program a "kill", with the sum of that or without. */
static void tamper(struct cache *c, bool with_sum)
{
	struct buf b = BUF_INIT(1 << 20);
	struct sock_filter *code;
	uint64_t sum = UINT64_C(14695981039346656037); /* FNV-1a */
	uint32_t count;

	assert_int_equal(file_read(c->dir, c->file, &b, NULL), 0);
	memcpy(&count, b.data + COUNT_AT, sizeof(count));
	code = (struct sock_filter *)(void *)(b.data + CODE_AT);
	code[0] = (struct sock_filter){BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS};
	for (size_t i = 0; i < count * sizeof(*code); i++)
		sum = (sum ^ (unsigned char)b.data[CODE_AT + i]) * UINT64_C(1099511628211);
	if (with_sum)
		memcpy(b.data + SUM_AT, &sum, sizeof(sum));
	assert_int_equal(file_write(c->dir, c->file, b.data, b.len, 0600, NULL), 0);
	buf_fini(&b);
}

static bool is_tampered(struct cache *c)
{
	struct seccomp_prog p = get(c, c->dir);
	bool yes = p.code[0].code == (BPF_RET | BPF_K);

	seccomp_prog_fini(&p);
	return yes;
}

TEST(a_filter_is_compiled_once)
{
	struct seccomp_prog a, b;
	struct cache c;
	struct stat st;

	start(&c);
	a = get(&c, c.dir);
	assert_int_equal(files(&c), 1);
	assert_int_equal(sys_fstatat(c.dir, c.file, &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	b = get(&c, c.dir);
	assert_int_equal(a.n, b.n);
	assert_memory_equal(a.code, b.code, a.n * sizeof(*a.code));
	tamper(&c, true);
	assert_true(is_tampered(&c)); /* so it did come from there */
	assert_int_equal(files(&c), 1);
	seccomp_prog_fini(&a);
	seccomp_prog_fini(&b);
	end(&c);
}

TEST(a_file_that_is_not_whole_is_replaced)
{
	struct cache c;

	start(&c);
	get_and_drop(&c);
	assert_int_equal(files(&c), 1);
	tamper(&c, false);
	assert_false(is_tampered(&c));
	for (off_t size = 0; size < 80; size += 16) {
		auto_fd int fd = sys_openat(c.dir, c.file, O_RDWR, 0);

		assert_int_equal(sys_ftruncate(fd, size), 0);
		get_and_drop(&c);
	}
	/* All that is there is fine again. */
	tamper(&c, true);
	assert_true(is_tampered(&c));
	end(&c);
}

TEST(a_file_that_others_could_have_written_is_not_trusted)
{
	struct cache c;

	start(&c);
	get_and_drop(&c);
	assert_int_equal(files(&c), 1);
	tamper(&c, true);
	assert_int_equal(fchmodat(c.dir, c.file, 0660, 0), 0);
	assert_false(is_tampered(&c));
	tamper(&c, true);
	if (geteuid() == 0) {
		assert_int_equal(fchownat(c.dir, c.file, 1, 1, 0), 0);
		assert_false(is_tampered(&c));
		tamper(&c, true);
	}
	assert_int_equal(sys_renameat(c.dir, c.file, c.dir, ".real"), 0);
	assert_int_equal(sys_symlinkat(".real", c.dir, c.file), 0);
	assert_false(is_tampered(&c));
	end(&c);
}

TEST(another_source_is_another_file)
{
	struct cache c;

	start(&c);
	get_and_drop(&c);
	json_object_set_new(c.json, "defaultErrnoRet", json_integer(38));
	get_and_drop(&c);
	assert_int_equal(files(&c), 2);
	end(&c);
}

TEST(a_folder_that_cannot_be_used_does_no_harm)
{
	struct seccomp_prog p;
	struct cache c;

	start(&c);
	p = get(&c, -1);
	seccomp_prog_fini(&p);
	assert_int_equal(files(&c), 0);
	{
		auto_fd int proc = sys_open("/proc/self", O_RDONLY | O_DIRECTORY, 0);

		p = get(&c, proc);
		seccomp_prog_fini(&p);
	}
	end(&c);
}

TEST(the_folder_does_not_grow_without_end)
{
	struct cache c;

	start(&c);
	for (int i = 0; i < 300; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(file_write(c.dir, name, "x", 1, 0600, NULL), 0);
	}
	get_and_drop(&c);
	assert_int_equal(files(&c), 257);
	get_and_drop(&c);
	end(&c);
}

RUN_TESTS(cmocka_unit_test(a_filter_is_compiled_once),
	cmocka_unit_test(a_file_that_is_not_whole_is_replaced),
	cmocka_unit_test(a_file_that_others_could_have_written_is_not_trusted),
	cmocka_unit_test(another_source_is_another_file),
	cmocka_unit_test(a_folder_that_cannot_be_used_does_no_harm),
	cmocka_unit_test(the_folder_does_not_grow_without_end))
