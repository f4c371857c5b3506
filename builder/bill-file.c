/* A bill as it is kept: zstd of
 *
 *   "svrun.bill/1 LENGTH\n"  JSON of LENGTH bytes: everything but the files
 *   "ITEM LAYER PATH\0"      for each file, in the order of the bill
 *
 * Apps that are built to the same image have a bill each, one after the other; the first is that of
 * who came first.
 *
 * An image has a hundred thousand files: as JSON values they would take 40 MB of memory. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#include "base/json.h"
#include "base/str.h"
#include "builder/bill.h"
#include "images/bills.h"

enum {
	STORED_MAX = 256 << 20,
	PLAIN_MAX = 1 << 30,
	HEAD_MAX = 512 << 20,
	LEVEL = 3,
	ITEMS_MAX = 1 << 20,
	APPS_MAX = 16,
	RATIO_MAX = 1000, /* of plain to compressed: a megabyte more is free */
};

static const char magic[] = "svrun.bill/1 ";

/* ---- writing ---- */

static json_t *text_or_null(const char *s)
{
	return s ? json_string(s) : json_null();
}

static json_t *list_of(const struct strings *l)
{
	json_t *out = json_array();

	for (size_t i = 0; i < l->n; i++)
		json_array_append_new(out, json_string(l->v[i]));
	return out;
}

/* The members of an item that are texts, by their keys. */
static const struct {
	const char *key;
	size_t at;
} texts[] = {
	{"name", offsetof(struct bill_item, name)},
	{"version", offsetof(struct bill_item, version)},
	{"arch", offsetof(struct bill_item, arch)},
	{"source", offsetof(struct bill_item, source)},
	{"url", offsetof(struct bill_item, url)},
	{"license", offsetof(struct bill_item, license)},
	{"hashKind", offsetof(struct bill_item, hash_kind)},
	{"hash", offsetof(struct bill_item, hash)},
	{"purl", offsetof(struct bill_item, purl)},
	{"path", offsetof(struct bill_item, path)},
};
enum { TEXTS = sizeof(texts) / sizeof(texts[0]) };

static const char **text_at(struct bill_item *it, size_t i)
{
	return (const char **)(void *)((char *)it + texts[i].at);
}

static json_t *encode_item(const struct bill_item *it)
{
	struct bill_item copy = *it;
	json_t *layers = json_array(),
	       *o = json_pack("{s:i, s:b, s:I, s:I, s:I}", "kind", (int)it->kind, "installed",
		       it->installed, "via", (json_int_t)it->via, "files", (json_int_t)it->files,
		       "bytes", (json_int_t)it->bytes);

	for (size_t i = 0; i < TEXTS; i++)
		if (*text_at(&copy, i))
			json_object_set_new(o, texts[i].key, json_string(*text_at(&copy, i)));
	for (size_t i = 0; i < it->nlayers; i++)
		json_array_append_new(layers, json_integer((json_int_t)it->layers[i]));
	json_object_set_new(o, "layers", layers);
	json_object_set_new(o, "why", list_of(&it->why));
	return o;
}

static json_t *encode_head(const struct bill *b)
{
	json_t *layers = json_array(), *places = json_array(), *items = json_array();
	char text[DIGEST_TEXT + 1], lock[DIGEST_TEXT + 1];

	for (size_t i = 0; i < b->nlayers; i++)
		json_array_append_new(
			layers, json_pack("{s:s, s:s}", "id", b->layers[i].id, "diffId",
					digest_text(&b->layers[i].diff_id, text)));
	for (size_t i = 0; i < b->nplaces; i++)
		json_array_append_new(
			places, json_pack("[s, s]", b->places[i].pointer, b->places[i].at));
	for (size_t i = 0; i < b->nitems; i++)
		json_array_append_new(items, encode_item(&b->items[i]));
	return json_pack("{s:s, s:s, s:o, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "name", b->name,
		"version", b->version, "platform", text_or_null(b->platform), "created", b->created,
		"manifestDigest", digest_text(&b->manifest_doc, text), "lockDigest",
		digest_text(&b->lock, lock), "document", b->document, "lock", b->lock_text,
		"layers", layers, "places", places, "items", items);
}

static int compress(const struct buf *plain, struct buf *out, struct err *e)
{
	size_t n;

	if (buf_reserve(out, ZSTD_compressBound(plain->len), e) < 0)
		return -1;
	n = ZSTD_compress(
		out->data + out->len, out->cap - out->len, plain->data, plain->len, LEVEL);
	if (ZSTD_isError(n))
		return err_set(e, ERR_SYSTEM, "zstd: %s", ZSTD_getErrorName(n));
	out->len += n;
	return 0;
}

int bill_encode(const struct bill *b, struct buf *out, struct err *e)
{
	auto_buf struct buf head = BUF_INIT(HEAD_MAX), plain = BUF_INIT(PLAIN_MAX);
	auto_json json_t *j = encode_head(b);

	if (!j) /* a text that is not UTF-8 got in */
		return err_set(e, ERR_CORRUPT, "the bill cannot be written as JSON");
	json_text(j, true, &head);
	buf_printf(&plain, "%s%zu\n", magic, head.len);
	if (buf_add(&plain, head.data, head.len, e) < 0)
		return -1;
	for (size_t i = 0; i < b->nfiles; i++) {
		char numbers[32];
		int n = snprintf(numbers, sizeof(numbers), "%" PRIu32 " %" PRIu32 " ",
			b->files[i].item, b->files[i].layer);

		if (buf_add(&plain, numbers, (size_t)n, e) < 0 ||
			buf_add(&plain, b->files[i].path, strlen(b->files[i].path) + 1, e) < 0)
			return -1;
	}
	return compress(&plain, out, e);
}

/* ---- reading ---- */

static int take_list(struct arena *a, const json_t *list, struct strings *out)
{
	const json_t *v;
	size_t i;

	*out = (struct strings){arena_alloc(a, json_array_size(list) * sizeof(*out->v)), 0};
	json_array_foreach (list, i, v) {
		if (!json_is_string(v))
			return -1;
		out->v[out->n++] = arena_strdup(a, json_string_value(v));
	}
	return 0;
}

static int decode_layers(struct bill *b, struct bill_item *it, const json_t *list)
{
	const json_t *v;
	size_t i;

	it->layers = arena_alloc(&b->arena, json_array_size(list) * sizeof(*it->layers));
	json_array_foreach (list, i, v) {
		json_int_t n = json_integer_value(v);

		if (!json_is_integer(v) || n < 0 || (size_t)n >= b->nlayers)
			return -1;
		it->layers[it->nlayers++] = (uint32_t)n;
	}
	return 0;
}

static int decode_item(
	struct bill *b, struct bill_item *it, const json_t *o, size_t n, struct err *e)
{
	uint64_t kind, via;

	if (json_u64(o, "kind", ORIGIN_BASE, &kind, e) < 0 ||
		json_u64(o, "via", n - 1, &via, e) < 0 ||
		json_u64(o, "files", INT64_MAX, &it->files, e) < 0 ||
		json_u64(o, "bytes", INT64_MAX, &it->bytes, e) < 0 ||
		json_bool_opt(o, "installed", false, &it->installed, e) < 0)
		return -1;
	it->kind = (enum origin_kind)kind;
	it->via = (uint32_t)via;
	for (size_t i = 0; i < TEXTS; i++) {
		const char *text;

		if (json_str_opt(o, texts[i].key, &text, e) < 0)
			return -1;
		*text_at(it, i) = text ? arena_strdup(&b->arena, text) : NULL;
	}
	if (!it->name || !it->hash_kind != !it->hash ||
		take_list(&b->arena, json_object_get(o, "why"), &it->why) < 0 ||
		decode_layers(b, it, json_object_get(o, "layers")) < 0)
		return err_set(e, ERR_CORRUPT, "malformed item");
	return 0;
}

static int decode_items(struct bill *b, const json_t *list, struct err *e)
{
	const json_t *o;
	size_t i, n = json_array_size(list);

	if (!list || n == 0 || n > ITEMS_MAX)
		return err_set(e, ERR_CORRUPT, "%zu items", n);
	b->items = mem_array(n, sizeof(*b->items));
	b->cap = n;
	json_array_foreach (list, i, o) {
		if (decode_item(b, &b->items[i], o, n, e) < 0)
			return err_ctx(e, "/items/%zu", i);
		b->nitems++;
	}
	return 0;
}

static int decode_tables(struct bill *b, const json_t *head, struct err *e)
{
	const json_t *layers = json_array_of(head, "layers", e),
		     *places = layers ? json_array_of(head, "places", e) : NULL, *o;
	size_t i;

	if (!places)
		return -1;
	b->layers = arena_alloc(&b->arena, json_array_size(layers) * sizeof(*b->layers));
	json_array_foreach (layers, i, o) {
		const char *id = json_str(o, "id", e), *text = id ? json_str(o, "diffId", e) : NULL;

		if (!text || digest_parse(&b->layers[i].diff_id, text, e) < 0)
			return err_ctx(e, "/layers/%zu", i);
		b->layers[i].id = arena_strdup(&b->arena, id);
		b->nlayers++;
	}
	b->places = mem_array(json_array_size(places), sizeof(*b->places));
	json_array_foreach (places, i, o) {
		const char *pointer = json_string_value(json_array_get(o, 0)),
			   *at = json_string_value(json_array_get(o, 1));

		if (!pointer || !at)
			return err_set(e, ERR_CORRUPT, "/places/%zu", i);
		b->places[b->nplaces++] = (struct bill_place){
			arena_strdup(&b->arena, pointer), arena_strdup(&b->arena, at)};
	}
	return 0;
}

static int take_text(
	struct bill *b, const json_t *head, const char *key, const char **out, struct err *e)
{
	const char *text = json_str(head, key, e);

	*out = text ? arena_strdup(&b->arena, text) : NULL;
	return text ? 0 : -1;
}

static int decode_head(struct bill *b, const json_t *head, struct err *e)
{
	const char *manifest, *lock;

	if (take_text(b, head, "name", &b->name, e) < 0 ||
		take_text(b, head, "version", &b->version, e) < 0 ||
		take_text(b, head, "platform", &b->platform, e) < 0 ||
		take_text(b, head, "created", &b->created, e) < 0 ||
		take_text(b, head, "document", &b->document, e) < 0 ||
		take_text(b, head, "lock", &b->lock_text, e) < 0 ||
		take_text(b, head, "manifestDigest", &manifest, e) < 0 ||
		take_text(b, head, "lockDigest", &lock, e) < 0 ||
		digest_parse(&b->manifest_doc, manifest, e) < 0 ||
		digest_parse(&b->lock, lock, e) < 0)
		return -1;
	return decode_tables(b, head, e) < 0 ? -1
					     : decode_items(b, json_object_get(head, "items"), e);
}

/* "12 " at *at, at most max. */
static int take_number(const char **at, const char *end, size_t max, uint32_t *v)
{
	uint64_t n = 0;
	const char *p = *at;

	for (; p < end && *p >= '0' && *p <= '9' && n <= max; p++)
		n = n * 10 + (uint64_t)(*p - '0');
	if (p == *at || p == end || *p != ' ' || n > max)
		return -1;
	*v = (uint32_t)n;
	*at = p + 1;
	return 0;
}

static int decode_files(struct bill *b, const char *at, const char *end, struct err *e)
{
	size_t cap = 0;

	while (at < end) {
		struct bill_file f;
		const char *stop;

		if (b->nlayers == 0 || take_number(&at, end, b->nitems - 1, &f.item) < 0 ||
			take_number(&at, end, b->nlayers - 1, &f.layer) < 0 ||
			!(stop = memchr(at, '\0', (size_t)(end - at))))
			return err_set(e, ERR_CORRUPT, "malformed file %zu", b->nfiles);
		f.path = arena_strndup(&b->arena, at, (size_t)(stop - at));
		mem_grow(&b->files, &cap, b->nfiles);
		b->files[b->nfiles++] = f;
		at = stop + 1;
	}
	return 0;
}

static int decode_plain(struct bill *b, const char *p, size_t n, struct err *e)
{
	const char *newline = memchr(p, '\n', n < 64 ? n : 64);
	auto_free char *length = NULL;
	auto_json json_t *head = NULL;
	uint64_t len;

	if (!newline || n < strlen(magic) || memcmp(p, magic, strlen(magic)) != 0)
		return err_set(e, ERR_CORRUPT, "not a bill of this version");
	length = mem_printf("%.*s", (int)(newline - p - (long)strlen(magic)), p + strlen(magic));
	newline++;
	if (str_u64(length, HEAD_MAX, &len) < 0 || len > (uint64_t)(p + n - newline))
		return err_set(e, ERR_CORRUPT, "malformed length");
	head = json_parse(newline, (size_t)len, e);
	if (!head || decode_head(b, head, e) < 0)
		return -1;
	return decode_files(b, newline + len, p + n, e);
}

int bill_decode(struct bill *b, const void *p, size_t n, struct err *e)
{
	unsigned long long size = ZSTD_getFrameContentSize(p, n);
	auto_free char *plain = NULL;
	size_t got;
	int rc;

	*b = (struct bill){0};
	if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR ||
		size > PLAIN_MAX || size > (unsigned long long)n * RATIO_MAX + (1 << 20))
		return err_set(e, ERR_CORRUPT, "not a bill");
	plain = mem_alloc((size_t)size + 1);
	got = ZSTD_decompress(plain, (size_t)size, p, n);
	if (ZSTD_isError(got) || got != size)
		return err_set(e, ERR_CORRUPT, "damaged");
	rc = decode_plain(b, plain, got, e);
	if (rc < 0)
		bill_fini(b);
	return rc;
}

/* ---- bills of several apps in one file ---- */

/* The bill at *at, whose bytes end at end: its frame's size; -1 when it cannot be read. */
static int next_bill(struct bill *b, const char *at, const char *end, size_t *size, struct err *e)
{
	*b = (struct bill){0};
	*size = ZSTD_findFrameCompressedSize(at, (size_t)(end - at));
	if (ZSTD_isError(*size))
		return err_set(e, ERR_CORRUPT, "damaged");
	return bill_decode(b, at, *size, e);
}

/* Into kept, those of others as they are, in their order, and one in the place of its app's. */
static int merge_one(struct buf *kept, const char *one, size_t n, const char *app, struct err *e)
{
	auto_buf struct buf out = BUF_INIT(STORED_MAX);
	const char *at = kept->data, *end = at + kept->len;
	size_t size, apps = 0;
	bool put = false;

	for (; at && at < end && apps < APPS_MAX; at += size, apps++) {
		struct bill b;
		bool same;

		if (next_bill(&b, at, end, &size, NULL) < 0)
			break; /* nobody could read what comes */
		same = str_eq(b.name, app);
		bill_fini(&b);
		if (buf_add(&out, same ? one : at, same ? n : size, e) < 0)
			return -1;
		put = put || same;
	}
	if (!put && apps < APPS_MAX && buf_add(&out, one, n, e) < 0)
		return -1;
	kept->len = 0;
	return buf_add(kept, out.data, out.len, e);
}

int bills_merge(
	struct store *s, const struct digest *manifest, const void *p, size_t n, struct err *e)
{
	auto_buf struct buf kept = BUF_INIT(STORED_MAX);
	const char *at = p, *end = at + n;
	size_t size;

	if (bills_get(s, manifest, &kept, e) < 0)
		return -1;
	for (; at < end; at += size) {
		struct bill b;
		int rc;

		if (next_bill(&b, at, end, &size, e) < 0)
			return -1;
		rc = merge_one(&kept, at, size, b.name, e);
		bill_fini(&b);
		if (rc < 0)
			return -1;
	}
	return bills_put(s, manifest, kept.data, kept.len, e);
}

int bill_save(const struct bill *b, struct store *s, const struct digest *manifest, struct err *e)
{
	auto_buf struct buf out = BUF_INIT(PLAIN_MAX);

	if (bill_encode(b, &out, e) < 0)
		return -1;
	return bills_merge(s, manifest, out.data, out.len, e);
}

/* "host/team/big:1" is called big. */
static bool is_called(const char *ref, const char *app)
{
	const char *slash = strrchr(ref, '/'), *name = slash ? slash + 1 : ref;

	return strcspn(name, ":@") == strlen(app) && str_starts(name, app);
}

/* The app's bill, or the first of them. */
static int pick(struct bill *b, const struct buf *text, const char *ref, struct err *e)
{
	const char *at = text->data ? text->data : "", *end = at + text->len;
	size_t size = 0;

	for (; ref && at < end; at += size) {
		if (next_bill(b, at, end, &size, e) < 0)
			return -1;
		if (is_called(ref, b->name))
			return 0;
		bill_fini(b);
	}
	return next_bill(b, text->data ? text->data : "", end, &size, e);
}

int bill_load(struct bill *b, struct store *s, const struct digest *manifest, const char *ref,
	struct err *e)
{
	char hex[DIGEST_HEX + 1];

	if (bill_read(b, s, manifest, ref, e) < 0)
		return -1;
	if (bill_check(b, s, manifest, e) == 0)
		return 0;
	bill_fini(b);
	err_ctx(e, "%s/bills/%s", s->path, digest_hex(manifest, hex));
	return err_hint(e, "svrun image build --no-cache writes it again");
}

int bill_read(struct bill *b, struct store *s, const struct digest *manifest, const char *ref,
	struct err *e)
{
	auto_buf struct buf text = BUF_INIT(STORED_MAX);
	char hex[DIGEST_HEX + 1];
	int rc = bills_get(s, manifest, &text, e);

	*b = (struct bill){0};
	if (rc < 0)
		return -1;
	if (rc == 0) {
		err_set(e, ERR_NOT_FOUND, "there is no bill of materials of image %.12s",
			digest_hex(manifest, hex));
		return err_hint(e, "only a build knows what it is made of: svrun image build");
	}
	if (pick(b, &text, ref, e) < 0)
		return err_ctx(e, "%s/bills/%s", s->path, digest_hex(manifest, hex));
	return 0;
}

int bill_load_first(struct bill *b, const struct bill *own, struct store *s,
	const struct digest *manifest, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(STORED_MAX);
	int rc = bills_get(s, manifest, &text, e);

	*b = (struct bill){0};
	if (rc <= 0 || ZSTD_findFrameCompressedSize(text.data, text.len) == text.len)
		return rc < 0 ? -1 : 0; /* there is but one, which takes time to read */
	if (pick(b, &text, NULL, e) < 0)
		return -1;
	if (!str_eq(b->name, own->name))
		return 1;
	bill_fini(b);
	return 0;
}
