#include "images/source.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "images/workers.h"
#include "tests/unit/tar-make.h"
#include "tests/unit/test.h"

enum { SIZE = 1000000 };

static unsigned char bytes[SIZE];

static int read_all(struct source *s, struct buf *b, struct err *e)
{
	const void *p;
	size_t n;
	int rc;

	while ((rc = source_next(s, &p, &n, e)) > 0) {
		assert_true(n > 0);
		buf_put(b, p, n);
	}
	return rc;
}

static void fill_bytes(void)
{
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (unsigned char)(i * 7 + i / 1000);
}

TEST(a_file_is_read_to_its_end_or_to_its_limit)
{
	static const struct {
		uint64_t max, got;
	} cases[] = {{UINT64_MAX, SIZE}, {SIZE, SIZE}, {300000, 300000}, {1, 1}, {0, 0}};
	int fd = memfd_create("source", MFD_CLOEXEC);

	fill_bytes();
	assert_int_equal(sys_write_all(fd, bytes, SIZE), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf b = BUF_INIT(2 * SIZE);
		struct source_fd s;

		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		source_fd_init(&s, fd, cases[i].max, "file");
		assert_int_equal(read_all(&s.source, &b, NULL), 0);
		assert_int_equal(b.len, cases[i].got);
		assert_true(b.len == 0 || memcmp(b.data, bytes, b.len) == 0);
		source_fd_fini(&s);
	}
	close(fd);
}

struct writer {
	int fd;
};

static int write_pipe(void *ctx, size_t i, struct err *e)
{
	const struct writer *w = ctx;
	struct source_fd s;
	int rc = 0;

	if (i == 1) {
		for (size_t at = 0; at < SIZE; at += 10000)
			assert_int_equal(sys_write_all(w[1].fd, bytes + at, 10000), 0);
		close(w[1].fd);
	} else {
		auto_buf struct buf b = BUF_INIT(2 * SIZE);

		source_fd_init(&s, w[0].fd, UINT64_MAX, "pipe");
		rc = read_all(&s.source, &b, e);
		assert_int_equal(b.len, SIZE);
		assert_memory_equal(b.data, bytes, SIZE);
		source_fd_fini(&s);
	}
	return rc;
}

TEST(a_pipe_is_read_as_it_comes)
{
	struct writer w[2];
	int fds[2];

	fill_bytes();
	assert_int_equal(sys_pipe(fds), 0);
	w[0].fd = fds[0];
	w[1].fd = fds[1];
	assert_int_equal(workers_each(2, 2, write_pipe, w, NULL), 0);
	close(fds[0]);
}

TEST(an_error_names_the_file)
{
	struct source_fd s;
	struct err e = {0};
	const void *p;
	size_t n;
	int fd = sys_open("/", O_RDONLY, 0);

	source_fd_init(&s, fd, 10, "the root");
	assert_int_equal(source_next(&s.source, &p, &n, &e), -1);
	assert_string_equal(e.text, "read the root: Is a directory");
	source_fd_fini(&s);
	close(fd);
}

RUN_TESTS(cmocka_unit_test(a_file_is_read_to_its_end_or_to_its_limit),
	cmocka_unit_test(a_pipe_is_read_as_it_comes), cmocka_unit_test(an_error_names_the_file))
