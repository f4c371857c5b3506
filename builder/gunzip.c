#include "builder/gunzip.h"

#include <archive.h>
#include <assert.h>
#include <errno.h>

#include "base/mem.h"
#include "base/sys.h"
#include "builder/archive.h"
#include "images/decompress.h"

enum { IN_BLOCK = 64 << 10 };

struct gunzip {
	struct source file;
	int fd;
	const char *name;
	off_t at; /* of fd */
	struct decompress *plain;
	struct err e; /* of the reader's callback, which cannot hand it on */
	unsigned char in[IN_BLOCK];
};

/* By offset: whoever else reads fd is not disturbed. */
static int file_next(struct source *s, const void **data, size_t *n, struct err *e)
{
	struct gunzip *z = (struct gunzip *)s;
	ssize_t got = sys_pread(z->fd, z->in, IN_BLOCK, z->at);

	if (got < 0)
		return err_sys(e, "read %s", z->name);
	z->at += got;
	*data = z->in;
	*n = (size_t)got;
	return got > 0;
}

struct gunzip *gunzip_new(int fd, const char *name, uint64_t max)
{
	struct gunzip *z = mem_alloc(sizeof(*z));

	z->file.next = file_next;
	z->fd = fd;
	z->name = name;
	z->plain = decompress_new(CODEC_GZIP, &z->file, max, name, NULL);
	assert(z->plain); /* of the codecs only zstd's decoder may be refused memory */
	return z;
}

void gunzip_free(struct gunzip *z)
{
	if (!z)
		return;
	decompress_free(z->plain);
	free(z);
}

void gunzip_free_ref(struct gunzip **z)
{
	gunzip_free(*z);
	*z = NULL;
}

static ssize_t on_read(struct archive *a, void *ctx, const void **out)
{
	struct gunzip *z = ctx;
	size_t n = 0;
	int rc = source_next(decompress_source(z->plain), out, &n, &z->e);

	if (rc >= 0)
		return rc ? (ssize_t)n : 0;
	archive_set_error(a, z->e.sys ? z->e.sys : EILSEQ, "%s", z->e.text);
	return ARCHIVE_FATAL;
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
	const void *p;
	size_t n;
	int rc;

	do
		rc = source_next(decompress_source(z->plain), &p, &n, e);
	while (rc > 0);
	return rc;
}
