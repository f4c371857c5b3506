#include "images/expand.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"
#include "images/decompress.h"
#include "images/progress.h"
#include "images/unpack.h"

enum { READ_BLOCK = 256 << 10, MAGIC_BYTES = 6 };

struct expand {
	struct source out; /* what comes out, counted */
	struct source in;  /* what goes in, counted */
	const char *name;
	struct progress *progress;
	int fd;
	uint64_t read, expanded;
	size_t ahead; /* of buf: read while looking, but not handed on */
	unsigned char *buf;
	struct source *inner; /* what out takes from */
	struct decompress *decompress;
	struct archive *archive;
	bool inside; /* the archive's one member */
};

#define OF(member, s) ((struct expand *)((char *)(s)-offsetof(struct expand, member)))

/* ---- in ---- */

static int fill(struct expand *x, struct err *e)
{
	ssize_t n = sys_read(x->fd, x->buf + x->ahead, READ_BLOCK - x->ahead);

	if (n < 0)
		return err_sys(e, "read %s", x->name);
	x->ahead += (size_t)n;
	x->read += (uint64_t)n;
	progress_add(x->progress, (uint64_t)n);
	return n > 0;
}

static int in_next(struct source *s, const void **data, size_t *n, struct err *e)
{
	struct expand *x = OF(in, s);
	int rc = x->ahead ? 1 : fill(x, e);

	*data = x->buf;
	*n = x->ahead;
	x->ahead = 0;
	return rc;
}

/* ---- through libarchive ---- */

static ssize_t archive_in(struct archive *a, void *ctx, const void **out)
{
	struct expand *x = ctx;
	struct err fault = {0};
	size_t n;
	int rc = source_next(&x->in, out, &n, &fault);

	if (rc < 0) {
		archive_set_error(a, fault.sys ? fault.sys : EIO, "%s", fault.text);
		return ARCHIVE_FATAL;
	}
	return rc > 0 ? (ssize_t)n : 0;
}

static int archive_err(const struct expand *x, struct err *e)
{
	const char *text = archive_error_string(x->archive);

	return err_set(e, ERR_CORRUPT, "%s: %s", x->name, text ? text : "cannot be unpacked");
}

static int archive_next(struct source *s, const void **data, size_t *n, struct err *e)
{
	struct expand *x = OF(out, s);
	struct archive_entry *en;
	int64_t at;
	int rc;

	if (!x->inside) {
		rc = archive_read_next_header(x->archive, &en);
		if (rc == ARCHIVE_EOF)
			return 0;
		if (rc != ARCHIVE_OK)
			return archive_err(x, e);
		x->inside = true;
	}
	do
		rc = archive_read_data_block(x->archive, data, n, &at);
	while (rc == ARCHIVE_OK && *n == 0);
	return rc == ARCHIVE_OK ? 1 : rc == ARCHIVE_EOF ? 0 : archive_err(x, e);
}

static int open_archive(struct expand *x, int filter, struct err *e)
{
	x->archive = archive_read_new();
	if (!x->archive)
		return err_set(e, ERR_SYSTEM, "out of memory");
	if (archive_read_support_format_raw(x->archive) != ARCHIVE_OK ||
		archive_read_append_filter(x->archive, filter) != ARCHIVE_OK ||
		archive_read_open(x->archive, x, NULL, archive_in, NULL) != ARCHIVE_OK)
		return archive_err(x, e);
	return 0;
}

/* ---- out ---- */

static int out_next(struct source *s, const void **data, size_t *n, struct err *e)
{
	struct expand *x = OF(out, s);
	int rc = x->archive ? archive_next(s, data, n, e) : source_next(x->inner, data, n, e);

	if (rc <= 0)
		return rc;
	x->expanded += *n;
	if (x->inner != &x->in && x->expanded > unpack_limit(x->read))
		return err_set(e, ERR_CORRUPT,
			"%s: unpacks to more than %" PRIu64 " bytes, from %" PRIu64, x->name,
			unpack_limit(x->read), x->read);
	return rc;
}

static int choose(struct expand *x, struct err *e)
{
	static const struct {
		unsigned char magic[MAGIC_BYTES];
		size_t n;
		enum codec codec; /* or, when it is NONE, libarchive's filter */
		int filter;
	} known[] = {
		{{0x1f, 0x8b}, 2, CODEC_GZIP, 0},
		{{0x28, 0xb5, 0x2f, 0xfd}, 4, CODEC_ZSTD, 0},
		{{0xfd, '7', 'z', 'X', 'Z', 0}, 6, CODEC_NONE, ARCHIVE_FILTER_XZ},
		{{'B', 'Z', 'h'}, 3, CODEC_NONE, ARCHIVE_FILTER_BZIP2},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (x->ahead < known[i].n || memcmp(x->buf, known[i].magic, known[i].n) != 0)
			continue;
		if (known[i].codec == CODEC_NONE)
			return open_archive(x, known[i].filter, e);
		x->decompress = decompress_new(
			known[i].codec, &x->in, unpack_limit(UINT64_MAX), x->name, e);
		if (!x->decompress)
			return -1;
		x->inner = decompress_source(x->decompress);
		return 0;
	}
	x->inner = &x->in;
	return 0;
}

struct expand *expand_new(int fd, const char *name, struct progress *p, struct err *e)
{
	struct expand *x = mem_alloc(sizeof(*x));
	int rc = 1;

	*x = (struct expand){.out.next = out_next,
		.in.next = in_next,
		.name = name,
		.progress = p,
		.fd = fd,
		.buf = mem_alloc(READ_BLOCK)};
	while (x->ahead < MAGIC_BYTES && (rc = fill(x, e)) > 0)
		;
	if (rc >= 0 && choose(x, e) == 0)
		return x;
	expand_free(x);
	return NULL;
}

void expand_free(struct expand *x)
{
	if (!x)
		return;
	decompress_free(x->decompress);
	if (x->archive)
		archive_read_free(x->archive);
	free(x->buf);
	free(x);
}

struct source *expand_source(struct expand *x)
{
	return &x->out;
}
