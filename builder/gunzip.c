#include "builder/gunzip.h"

#include <archive.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include <isa-l/igzip_lib.h>

#include "base/mem.h"
#include "base/sys.h"
#include "builder/archive.h"

enum { IN_BLOCK = 64 << 10, OUT_BLOCK = 128 << 10 };

struct gunzip {
	struct inflate_state state;
	int fd;
	const char *name;
	off_t at; /* of fd */
	uint64_t out, max;
	bool started, eof, done;
	struct err e; /* of the reader's callback, which cannot hand it on */
	unsigned char in[IN_BLOCK], buf[OUT_BLOCK];
};

struct gunzip *gunzip_new(int fd, const char *name, uint64_t max)
{
	struct gunzip *z = mem_alloc(sizeof(*z));

	z->fd = fd;
	z->name = name;
	z->max = max;
	isal_inflate_init(&z->state);
	z->state.crc_flag = ISAL_GZIP;
	return z;
}

void gunzip_free(struct gunzip *z)
{
	free(z);
}

void gunzip_free_ref(struct gunzip **z)
{
	gunzip_free(*z);
	*z = NULL;
}

/* Have at least one byte of input, unless the file has ended. */
static int refill(struct gunzip *z, struct err *e)
{
	ssize_t n;

	if (z->state.avail_in || z->eof)
		return 0;
	n = sys_pread(z->fd, z->in, IN_BLOCK, z->at);
	if (n < 0)
		return err_sys(e, "read %s", z->name);
	z->eof = n == 0;
	z->at += n;
	z->state.next_in = z->in;
	z->state.avail_in = (uint32_t)n;
	return 0;
}

/* A member has ended: the next one begins, or nothing but padding may follow. */
static int next_member(struct gunzip *z, struct err *e)
{
	for (;;) {
		if (refill(z, e) < 0)
			return -1;
		if (z->eof) {
			z->done = true;
			return 0;
		}
		if (*z->state.next_in != 0)
			break;
		z->state.next_in++; /* tape blocks are padded with zeros */
		z->state.avail_in--;
	}
	if (*z->state.next_in != 0x1f)
		return err_set(
			e, ERR_CORRUPT, "%s: bytes behind the end of the gzip data", z->name);
	isal_inflate_reset(&z->state);
	z->state.crc_flag = ISAL_GZIP;
	return 0;
}

static int inflate_error(const struct gunzip *z, int rc, struct err *e)
{
	return err_set(e, ERR_CORRUPT, "%s: %s", z->name,
		rc == ISAL_INCORRECT_CHECKSUM ? "wrong gzip checksum" : "invalid gzip data");
}

/* Up to OUT_BLOCK bytes of output into z->buf; 0 at the end. */
static ssize_t gunzip_read(struct gunzip *z, struct err *e)
{
	size_t n;
	int rc;

	z->state.next_out = z->buf;
	z->state.avail_out = OUT_BLOCK;
	while (!z->done && z->state.avail_out == OUT_BLOCK) {
		if (refill(z, e) < 0)
			return -1;
		rc = isal_inflate(&z->state); /* at the end of the file, too: it holds some back */
		if (rc != ISAL_DECOMP_OK && rc != ISAL_END_INPUT)
			return inflate_error(z, rc, e);
		if (z->state.block_state == ISAL_BLOCK_FINISH) {
			if (next_member(z, e) < 0)
				return -1;
		} else if (z->eof && z->state.avail_out == OUT_BLOCK) {
			return err_set(e, ERR_CORRUPT, "%s: truncated gzip data", z->name);
		}
	}
	n = OUT_BLOCK - z->state.avail_out;
	if (n > z->max - z->out)
		return err_set(e, ERR_CORRUPT,
			"%s: unpacks to more than the limit of %" PRIu64 " bytes", z->name, z->max);
	z->out += n;
	return (ssize_t)n;
}

static ssize_t on_read(struct archive *a, void *ctx, const void **out)
{
	struct gunzip *z = ctx;
	ssize_t n = gunzip_read(z, &z->e);

	*out = z->buf;
	if (n < 0) {
		archive_set_error(a, z->e.sys ? z->e.sys : EILSEQ, "%s", z->e.text);
		return ARCHIVE_FATAL;
	}
	return n;
}

struct archive *gunzip_tar(struct gunzip *z, struct err *e)
{
	auto_archive struct archive *a = archive_read_new();

	if (!a) {
		err_set(e, ERR_SYSTEM, "%s: out of memory", z->name);
		return NULL;
	}
	if (archive_read_support_format_tar(a) != ARCHIVE_OK ||
		archive_read_append_filter(a, ARCHIVE_FILTER_NONE) != ARCHIVE_OK ||
		archive_read_open(a, z, NULL, on_read, NULL) != ARCHIVE_OK) {
		if (z->e.kind) {
			if (e)
				*e = z->e;
		} else {
			err_set(e, ERR_CORRUPT, "%s: %s", z->name, archive_error_string(a));
		}
		return NULL;
	}
	return steal_ptr(&a);
}

int gunzip_finish(struct gunzip *z, struct err *e)
{
	ssize_t n;

	do
		n = gunzip_read(z, e);
	while (n > 0);
	return (int)n;
}
