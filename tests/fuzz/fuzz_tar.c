/* Any bytes as a tar: reading ends, gives every byte that it read once and in order, and says the
 * same in whatever pieces the bytes come. */
#include <assert.h>
#include <string.h>

#include "images/tar-read.h"
#include "tests/unit/tar-make.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void note(struct buf *events, const struct tar_member *m)
{
	const uint64_t numbers[] = {(uint64_t)(unsigned char)m->type, m->mode, m->uid, m->gid,
		(uint64_t)m->mtime, m->major, m->minor, m->size, m->nxattrs, m->raw_at,
		m->header_at, m->data_at};

	buf_put(events, numbers, sizeof(numbers));
	buf_put(events, m->name, strlen(m->name) + 1);
	buf_put(events, m->target, strlen(m->target) + 1);
	for (uint32_t i = 0; i < m->nxattrs; i++) {
		assert(i == 0 || strcmp(m->xattrs[i - 1].name, m->xattrs[i].name) < 0);
		buf_put(events, m->xattrs[i].name, strlen(m->xattrs[i].name) + 1);
		buf_put(events, m->xattrs[i].value, m->xattrs[i].len);
	}
}

static int read_all(
	const uint8_t *data, size_t size, size_t step, struct buf *events, struct err *e)
{
	struct buf all = BUF_INIT(64 << 20);
	struct mem_source src;
	struct tar_reader *r;
	const struct tar_member *m;
	const void *p;
	size_t n;
	int rc;

	mem_source_init(&src, data, size, step);
	r = tar_reader_new(&src.source, "fuzz");
	while ((rc = tar_reader_next(r, &m, e)) > 0) {
		assert(m->raw_at == all.len && *m->name && m->header_at >= m->raw_at);
		buf_put(&all, m->raw, m->data_at - m->raw_at);
		note(events, m);
		while ((rc = tar_reader_data(r, &p, &n, e)) > 0)
			buf_put(&all, p, n);
		if (rc < 0)
			break;
		assert(all.len == m->data_at + m->size);
	}
	while (rc == 0 && (rc = tar_reader_rest(r, &p, &n, e)) > 0) {
		buf_put(&all, p, n);
		rc = 0;
	}
	assert(all.len <= size && (all.len == 0 || memcmp(all.data, data, all.len) == 0));
	assert(rc < 0 || all.len == size);
	tar_reader_free(r);
	mem_source_fini(&src);
	buf_fini(&all);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t steps[] = {0, 1, 37, 512, 700};
	struct buf one = BUF_INIT(64 << 20), two = BUF_INIT(64 << 20);
	struct err e = {0}, f = {0};
	int rc;

	if (size == 0)
		return 0;
	rc = read_all(data + 1, size - 1, 0, &one, &e);
	assert(rc == 0 || e.kind == ERR_CORRUPT || e.kind == ERR_UNSUPPORTED);
	assert(read_all(data + 1, size - 1, steps[data[0] % 5], &two, &f) == rc);
	assert(one.len == two.len && (one.len == 0 || memcmp(one.data, two.data, one.len) == 0));
	assert(strcmp(e.text, f.text) == 0);
	buf_fini(&one);
	buf_fini(&two);
	return 0;
}
