#include "images/toc-parse.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "images/member.h"
#include "images/toc-record.h"

struct parser {
	struct toc *t;
	struct entries *out;
	const struct toc_rules *rules;
	struct toc_json json;
	struct toc_record rec;
	struct members members;
	size_t nentries;
	char *file_name;   /* of the file whose chunks come now, as it stands; NULL: none */
	uint64_t file_end; /* its endOffset, or 0 */
};

void toc_fini(struct toc *t)
{
	free(t->chunks);
	free(t->files);
	*t = (struct toc){0};
}

bool toc_chunk_is_ours(const struct toc *t, const struct toc_chunk *c, uint32_t *k)
{
	uint64_t left = t->files[c->file].size - c->at;

	*k = (uint32_t)(c->at / CHUNK_SIZE);
	return c->at % CHUNK_SIZE == 0 && c->size == (left < CHUNK_SIZE ? left : CHUNK_SIZE);
}

/* Errors about the current record. */
static int in_entry(const struct parser *p, struct err *e)
{
	return err_ctx(e, "%s: byte %" PRIu64 ": '%.160s'", p->rules->name, toc_json_at(&p->json),
		p->rec.name.len ? p->rec.name.data : "");
}

static int refuse(const struct parser *p, enum err_kind kind, const char *what, struct err *e)
{
	err_set(e, kind, "%s", what);
	return in_entry(p, e);
}

/* ---- file data ---- */

/* Chunks that have no size reach to the next one, or to the end. All together must be the file. */
static int check_sizes(struct parser *p, const struct toc_file *f, struct err *e)
{
	uint64_t at = 0;

	for (size_t i = 0; i < f->n; i++) {
		struct toc_chunk *c = &p->t->chunks[f->first + i];
		uint64_t next = i + 1 < f->n ? c[1].at : f->size;

		if (c->at != at || next <= c->at || (c->size > 0 && c->size != next - c->at))
			return err_set(e, ERR_CORRUPT,
				"%s: '%.160s': chunk %zu does not continue at byte %" PRIu64
				", or does not end at %" PRIu64,
				p->rules->name, p->out->v[f->entry].path, i, at, next);
		c->size = next - c->at;
		at = next;
	}
	return 0;
}

static int check_digests(struct parser *p, struct toc_file *f, struct err *e)
{
	struct toc_chunk *c = &p->t->chunks[f->first];

	if (f->n == 1 && !c->has_digest && f->has_digest) {
		c->digest = f->digest;
		c->has_digest = true;
	}
	for (size_t i = 0; i < f->n; i++)
		f->whole |= !c[i].has_digest && !c[i].zeros;
	if (f->whole && !f->has_digest)
		return err_set(e, ERR_UNSUPPORTED,
			"%s: '%.160s': neither it nor its chunks have a digest", p->rules->name,
			p->out->v[f->entry].path);
	return 0;
}

static void make_chunks(struct parser *p, const struct toc_file *f)
{
	struct attr *a = &p->out->v[f->entry].a;
	uint64_t left = f->size;

	a->nchunks = (uint32_t)((a->size + CHUNK_SIZE - 1) / CHUNK_SIZE);
	a->chunks = arena_alloc(&p->out->arena, a->nchunks * sizeof(*a->chunks));
	for (uint32_t i = 0; i < a->nchunks; i++) {
		a->chunks[i].length = left < CHUNK_SIZE ? (uint32_t)left : CHUNK_SIZE;
		a->chunks[i].block = CHUNK_NO_BLOCK;
		a->chunks[i].layer = CHUNK_NO_LAYER;
		left -= a->chunks[i].length;
	}
}

/* Its last chunk is known. */
static int end_file(struct parser *p, struct err *e)
{
	struct toc *t = p->t;
	struct toc_file *f;

	if (!p->file_name)
		return 0;
	free(steal_ptr(&p->file_name));
	f = &t->files[t->nfiles - 1];
	f->n = t->nchunks - f->first;
	if (p->file_end)
		t->chunks[t->nchunks - 1].end = p->file_end;
	if (check_sizes(p, f, e) < 0 || check_digests(p, f, e) < 0)
		return -1;
	make_chunks(p, f);
	return 0;
}

/* Frames ascend; one that holds several chunks (eStargz) holds them in their order. */
static int check_order(const struct parser *p, const struct toc_chunk *c, struct err *e)
{
	const struct toc_chunk *last = p->t->nchunks ? &p->t->chunks[p->t->nchunks - 1] : NULL;
	bool same = last && c->offset == last->offset;

	/* a blob begins with a header; but eStargz may put data into the same member */
	if ((c->offset == 0 && c->inner == 0) || c->offset >= p->rules->data_end)
		return refuse(p, ERR_CORRUPT, "its data lie outside of the layer's", e);
	if (c->inner > p->rules->max_bytes || (c->inner > 0 && p->rules->codec != CODEC_GZIP))
		return refuse(p, ERR_CORRUPT, "its data lie outside of their frame", e);
	if (last && c->offset < last->offset)
		return refuse(p, ERR_CORRUPT, "its data lie before those of the entry before", e);
	if (same && (p->rules->codec != CODEC_GZIP || c->inner < last->inner + last->size ||
			    last->size == 0))
		return refuse(p, ERR_CORRUPT, "its data overlap those of the entry before", e);
	return 0;
}

static int add_chunk(struct parser *p, struct err *e)
{
	const struct toc_record *r = &p->rec;
	struct toc *t = p->t;
	struct toc_chunk c = {.offset = r->offset,
		.end = r->end_offset,
		.inner = r->inner,
		.at = r->chunk_offset,
		.size = r->chunk_size,
		.digest = r->chunk_digest,
		.has_digest = r->has_chunk_digest,
		.zeros = r->zeros,
		.file = (uint32_t)(t->nfiles - 1)};

	if (check_order(p, &c, e) < 0)
		return -1;
	if (c.size > p->rules->max_bytes)
		return refuse(p, ERR_CORRUPT, "a chunk of more than the layer may unpack to", e);
	mem_grow(&t->chunks, &t->chunks_cap, t->nchunks);
	t->chunks[t->nchunks++] = c;
	return 0;
}

static int begin_file(struct parser *p, const struct entry *en, struct err *e)
{
	struct toc *t = p->t;
	struct toc_record *r = &p->rec;

	if (r->size > p->rules->max_bytes - t->bytes)
		return refuse(p, ERR_CORRUPT, "the layer would unpack to more than the limit", e);
	t->bytes += r->size;
	mem_grow(&t->files, &t->files_cap, t->nfiles);
	t->files[t->nfiles++] = (struct toc_file){.entry = (size_t)(en - p->out->v),
		.first = t->nchunks,
		.size = r->size,
		.digest = r->digest,
		.has_digest = r->has_digest};
	p->file_name = mem_dup(r->name.data, r->name.len + 1);
	p->file_end = r->end_offset;
	/* on the first of several chunks it is the end of the file, not of the chunk */
	r->end_offset = 0;
	return add_chunk(p, e);
}

static int more_of_file(struct parser *p, struct err *e)
{
	if (!p->file_name || !str_eq(p->file_name, p->rec.name.data))
		return refuse(p, ERR_CORRUPT, "a chunk that does not follow its file", e);
	if (p->rec.end_offset) {
		p->file_end = p->rec.end_offset;
		p->rec.end_offset = 0;
	}
	return add_chunk(p, e);
}

/* ---- entries ---- */

static const struct {
	const char *name;
	char type; /* as a tar has it */
} types[] = {
	{"reg", '0'},
	{"dir", '5'},
	{"symlink", '2'},
	{"hardlink", '1'},
	{"char", '3'},
	{"block", '4'},
	{"fifo", '6'},
};

static char find_type(const char *name)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (str_eq(types[i].name, name))
			return types[i].type;
	return 0;
}

static int add_object(struct parser *p, struct err *e)
{
	const struct toc_record *r = &p->rec;
	struct tar_member m = {.type = find_type(r->type),
		.name = r->name.data,
		.target = r->link.len ? r->link.data : "",
		.mode = (uint32_t)r->mode & 07777,
		.uid = (uint32_t)r->uid,
		.gid = (uint32_t)r->gid,
		.mtime = r->mtime,
		.major = (uint32_t)r->major,
		.minor = (uint32_t)r->minor,
		.size = r->size,
		.xattrs = r->xattrs,
		.nxattrs = r->nxattrs,
		.header_at = toc_json_at(&p->json)};
	struct entry *en;

	if (!m.type)
		return refuse(p, ERR_UNSUPPORTED, "its type is none that we know", e);
	if (members_add(&p->members, &m, &en, e) < 0)
		return -1;
	if (en && en->kind == ENTRY_PUT && en->a.type == NODE_FILE && r->size > 0)
		return begin_file(p, en, e);
	return 0;
}

static int read_entry(struct parser *p, struct err *e)
{
	struct toc_record *r = &p->rec;

	if (toc_record_read(r, &p->json, e) < 0)
		return in_entry(p, e);
	if (p->nentries++ == TOC_ENTRIES_MAX)
		return refuse(p, ERR_UNSUPPORTED, "it is one too many", e);
	if (r->name.len == 0)
		return refuse(p, ERR_CORRUPT, "an entry without a name", e);
	if (str_eq(r->type, "chunk"))
		return more_of_file(p, e);
	return end_file(p, e) < 0 ? -1 : add_object(p, e);
}

static int read_entries(struct parser *p, struct err *e)
{
	bool first = true;
	int rc = toc_json_open(&p->json, '[', e);

	while (rc == 0 && (rc = toc_json_element(&p->json, &first, e)) > 0)
		rc = read_entry(p, e);
	return rc < 0 ? -1 : end_file(p, e);
}

/* ---- the table ---- */

/* Where each frame ends at the latest: at the next one, and where its file ends. */
static int set_ends(struct parser *p, struct err *e)
{
	struct toc *t = p->t;
	uint64_t next = p->rules->data_end;

	for (size_t i = t->nchunks; i-- > 0;) {
		struct toc_chunk *c = &t->chunks[i];

		if (c->end && (c->end <= c->offset || c->end > next))
			return err_set(e, ERR_CORRUPT,
				"%s: '%.160s': its data end at %" PRIu64 ", outside of %" PRIu64
				" to %" PRIu64,
				p->rules->name, p->out->v[t->files[c->file].entry].path, c->end,
				c->offset, next);
		if (i + 1 < t->nchunks && c[1].offset == c->offset)
			c->end = c[1].end;
		else if (!c->end)
			c->end = next;
		next = c->offset;
	}
	return 0;
}

static int by_path(const void *a, const void *b)
{
	const struct entry *x = *(const struct entry *const *)a;
	const struct entry *y = *(const struct entry *const *)b;
	int rc = strcmp(x->path, y->path);

	return rc ? rc : (int)x->kind - (int)y->kind;
}

/* Other readers find entries by their name, and would not agree with us on what it means. */
static int check_duplicates(struct parser *p, struct err *e)
{
	size_t n = p->out->n;
	auto_free const struct entry **v = mem_array(n + 1, sizeof(*v));

	for (size_t i = 0; i < n; i++)
		v[i] = &p->out->v[i];
	qsort(v, n, sizeof(*v), by_path);
	for (size_t i = 1; i < n; i++)
		if (by_path(&v[i - 1], &v[i]) == 0)
			return err_set(e, ERR_UNSUPPORTED, "%s: '%.160s' stands there twice",
				p->rules->name, v[i]->path);
	return 0;
}

enum { SEEN_VERSION = 1, SEEN_ENTRIES = 2 };

static int read_member(struct parser *p, unsigned *seen, struct err *e)
{
	const char *key = p->json.key.data;
	unsigned bit = strcasecmp(key, "version") == 0   ? SEEN_VERSION
		       : strcasecmp(key, "entries") == 0 ? SEEN_ENTRIES
							 : 0;
	uint64_t version = 0;

	if (*seen & bit)
		return err_set(e, ERR_CORRUPT, "%s: %.40s twice", p->rules->name, key);
	*seen |= bit;
	if (bit == SEEN_ENTRIES)
		return read_entries(p, e);
	if (bit != SEEN_VERSION)
		return toc_json_skip(&p->json, e);
	if (toc_json_number(&p->json, UINT32_MAX, &version, e) < 0)
		return -1;
	return version == 1 ? 0
			    : err_set(e, ERR_UNSUPPORTED, "%s: version %" PRIu64, p->rules->name,
				      version);
}

static int parse(struct parser *p, struct err *e)
{
	bool first = true;
	unsigned seen = 0;
	int rc = toc_json_open(&p->json, '{', e);

	while (rc == 0 && (rc = toc_json_member(&p->json, &first, e)) > 0)
		rc = read_member(p, &seen, e);
	if (rc < 0 || toc_json_end(&p->json, e) < 0)
		return -1;
	if (seen != (SEEN_VERSION | SEEN_ENTRIES))
		return err_set(e, ERR_CORRUPT, "%s: without a version, or entries", p->rules->name);
	return set_ends(p, e) < 0 ? -1 : check_duplicates(p, e);
}

int toc_parse(struct toc *t, struct source *src, const struct toc_rules *r, struct entries *out,
	struct err *e)
{
	struct parser *p = mem_alloc(sizeof(*p));
	int rc;

	*t = (struct toc){0};
	p->t = t;
	p->out = out;
	p->rules = r;
	toc_json_init(&p->json, src, r->name);
	toc_record_init(&p->rec);
	members_init(&p->members, r->name, r->blob_size, out);
	rc = parse(p, e);
	toc_json_fini(&p->json);
	toc_record_fini(&p->rec);
	free(p->file_name);
	free(p);
	return rc;
}
