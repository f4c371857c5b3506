/* Tars made by hand, for what no writer of ours would write. */
#ifndef ARCHIVE_H
#define ARCHIVE_H

#include <sys/mman.h>

#include "base/file.h"
#include "tests/unit/fixture.h"

struct hand_tar {
	struct buf b;
};

static MAYBE_UNUSED void tar_raw(struct hand_tar *t, const void *p, size_t n)
{
	if (!t->b.max)
		t->b.max = 64 << 20;
	buf_put(&t->b, p, n);
}

/* size: what the header says. */
static MAYBE_UNUSED void tar_header_by_hand(
	struct hand_tar *t, const char *name, char type, const char *link, unsigned long long size)
{
	char h[512] = {0};
	unsigned sum = 0;

	snprintf(h, 100, "%s", name);
	memcpy(h + 100,
		"0000644\0"
		"0000000\0"
		"0000000",
		24);
	snprintf(h + 124, 12, "%011llo", size % (1ull << 33));
	memcpy(h + 136, "00000000000", 12);
	memset(h + 148, ' ', 8);
	h[156] = type;
	snprintf(h + 157, 100, "%s", link);
	memcpy(h + 257,
		"ustar\0"
		"00",
		8);
	for (size_t i = 0; i < sizeof(h); i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 7, "%06o", sum);
	tar_raw(t, h, sizeof(h));
}

static MAYBE_UNUSED void tar_file(struct hand_tar *t, const char *name, const void *p, size_t n)
{
	static const char zeros[512];

	tar_header_by_hand(t, name, '0', "", n);
	tar_raw(t, p, n);
	tar_raw(t, zeros, (size_t)(-n % 512));
}

static MAYBE_UNUSED void tar_text(struct hand_tar *t, const char *name, const char *text)
{
	tar_file(t, name, text, strlen(text));
}

static MAYBE_UNUSED void tar_link(
	struct hand_tar *t, const char *name, char type, const char *target)
{
	tar_header_by_hand(t, name, type, target, 0);
}

static MAYBE_UNUSED void tar_finish(struct hand_tar *t)
{
	static const char zeros[1024];

	tar_raw(t, zeros, sizeof(zeros));
}

/* A file with these bytes, to be read from its start. */
static MAYBE_UNUSED int file_of(const void *p, size_t n)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(sys_write_all(fd, p, n), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static MAYBE_UNUSED int tar_open(struct hand_tar *t)
{
	return file_of(t->b.data, t->b.len);
}

/* Blobs in the store, temporary files included. */
static MAYBE_UNUSED size_t count_blobs(const struct fixture *f)
{
	auto_free char *command = mem_printf("ls -A %s/blobs/sha256 | wc -l", f->path);
	FILE *p = popen(command, "r");
	size_t n = 0;

	assert_non_null(p);
	assert_int_equal(fscanf(p, "%zu", &n), 1);
	pclose(p);
	return n;
}

#endif
