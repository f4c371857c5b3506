/* Tests of files and of sizes. */
#include "builder/image-test.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "builder/rootfs.h"
#include "images/glob.h"

enum { CONTENT_MAX = 1 << 20, SHOWN = 20 };

struct looking {
	struct test_result *r;
	const struct tested *x;
	size_t found, wrong;
	struct buf text;
};

static void wrong(struct looking *l, const char *path, const char *fmt, ...) printf_like(3, 4);

static void wrong(struct looking *l, const char *path, const char *fmt, ...)
{
	char what[TREE_PATH_MAX + 512];
	va_list ap;

	if (l->wrong++ >= SHOWN)
		return;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	buf_printf(&l->text, "%s/%.1000s: %.2000s", l->text.len ? "\n" : "", path, what);
}

/* ---- what an object is ---- */

static const char *type_of(const struct attr *a)
{
	return a->type == NODE_DIR       ? "dir"
	       : a->type == NODE_SYMLINK ? "link"
	       : a->type == NODE_FILE    ? "file"
					 : "other";
}

static void check_attributes(struct looking *l, const char *path, const struct attr *a)
{
	const struct test_expect *want = &l->r->test->expect;
	const char *type = want->type && str_eq(want->type, "symlink") ? "link" : want->type;
	char mode[8], owner[32];

	snprintf(mode, sizeof(mode), "%04o", a->mode & 07777);
	snprintf(owner, sizeof(owner), "%u:%u", a->uid, a->gid);
	if (type && !str_eq(type, type_of(a)))
		wrong(l, path, "is of type %s, expected %s", type_of(a), type);
	if (want->target && a->type != NODE_SYMLINK)
		wrong(l, path, "is no link, expected one to %.1000s", want->target);
	else if (want->target && !str_eq(want->target, a->target))
		wrong(l, path, "leads to %.1000s, expected %.1000s", a->target, want->target);
	if (want->mode && !str_eq(want->mode, mode))
		wrong(l, path, "has mode %s, expected %s", mode, want->mode);
	if (want->owner && !str_eq(want->owner, owner))
		wrong(l, path, "belongs to %s, expected %s", owner, want->owner);
}

/* ---- what is in it ---- */

/* The sha256 of the whole, and its beginning of up to b->max bytes. */
static int read_content(
	struct looking *l, const struct attr *a, struct buf *b, struct digest *d, struct err *e)
{
	auto_free unsigned char *piece = mem_alloc(CHUNK_SIZE);
	struct hash h;
	int rc = 0;

	hash_init(&h, HASH_SHA256);
	for (uint32_t i = 0; rc == 0 && i < a->nchunks; i++) {
		const struct chunk *c = &a->chunks[i];

		rc = pool_read(l->x->pool, c, piece, e);
		if (rc == 0)
			hash_add(&h, piece, c->length);
		if (rc == 0 && b->len + c->length <= b->max)
			rc = buf_add(b, piece, c->length, e);
	}
	*d = hash_digest(&h);
	return rc;
}

static bool wants_text(const struct test_expect *x)
{
	return x->equals || x->matches || x->contains.n || x->has_number_at_least || x->njson;
}

static void check_text(
	struct looking *l, const char *path, const struct attr *a, const struct buf *b)
{
	const struct test_expect *want = &l->r->test->expect;
	const char *text = b->data ? b->data : "";
	auto_free char *fault = NULL, *json = NULL;

	if (a->size > CONTENT_MAX) {
		wrong(l, path, "has %" PRIu64 " bytes; the content of at most %d is looked at",
			a->size, CONTENT_MAX);
		return;
	}
	fault = test_check_text(want, text, b->len);
	if (fault)
		wrong(l, path, "%.1800s", fault);
	json = want->njson ? test_check_json(want, text, b->len) : NULL;
	if (json)
		wrong(l, path, "%.1800s", json);
}

static int check_content(struct looking *l, const char *path, const struct attr *a, struct err *e)
{
	const struct test_expect *want = &l->r->test->expect;
	char found[DIGEST_HEX + 1], expected[DIGEST_HEX + 1];
	auto_buf struct buf b = BUF_INIT(CONTENT_MAX);
	struct digest d;

	if (!want->has_sha256 && !wants_text(want))
		return 0;
	if (a->type != NODE_FILE) {
		wrong(l, path, "is of type %s, and has no content", type_of(a));
		return 0;
	}
	if (read_content(l, a, &b, &d, e) < 0)
		return -1;
	if (want->has_sha256 && !digest_eq(&d, &want->sha256))
		wrong(l, path, "has sha256 %s, expected %s", digest_hex(&d, found),
			digest_hex(&want->sha256, expected));
	if (wants_text(want))
		check_text(l, path, a, &b);
	return 0;
}

static int check_one(struct looking *l, const struct node *n, const char *path, struct err *e)
{
	const struct attr *a = n->link ? &n->link->a : &n->a;

	l->found++;
	if (l->r->test->expect.absent) {
		wrong(l, path, "is there, and should not be");
		return 0;
	}
	check_attributes(l, path, a);
	return check_content(l, path, a, e);
}

/* ---- all that are meant ---- */

static bool is_pattern(const char *glob)
{
	return strpbrk(glob, "*?[\\") != NULL;
}

static int check_matches(struct looking *l, const char *glob, struct err *e)
{
	char path[TREE_PATH_MAX + 2] = "/";
	struct node *n = NULL;
	size_t before = l->found;
	int rc = 0;

	if (!is_pattern(glob)) {
		n = rootfs_at(l->x->tree, glob + 1);
		rc = n ? check_one(l, n, glob + 1, e) : 0;
	} else {
		for (n = tree_root(l->x->tree); n && rc == 0; n = tree_next(n)) {
			node_path(n, path + 1);
			if (glob_matches(glob, path))
				rc = check_one(l, n, path + 1, e);
		}
	}
	if (rc == 0 && l->found == before && !l->r->test->expect.absent)
		wrong(l, glob + 1, is_pattern(glob) ? "nothing matches" : "is not there");
	return rc;
}

int test_file(struct test_result *r, const struct tested *x, struct err *e)
{
	struct looking l = {.r = r, .x = x, .text = BUF_INIT(1 << 20)};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < r->test->paths.n; i++)
		rc = check_matches(&l, r->test->paths.v[i], e);
	if (r->test->paths.n == 0)
		test_fail(r, "the test names no path");
	if (l.wrong)
		test_fail(r, "%s%s", l.text.data, l.wrong > SHOWN ? "\n..." : "");
	buf_fini(&l.text);
	return rc;
}

/* ---- sizes ---- */

static uint64_t size_of_layers(const struct image *im)
{
	uint64_t n = 0;

	for (size_t i = 0; i < im->nlayers; i++)
		n += im->layers[i].size;
	return n;
}

/* Of the files that match one of globs; of several names of one, the first counts. */
static uint64_t size_of_files(struct tree *t, const struct strings *globs, size_t *found)
{
	char path[TREE_PATH_MAX + 2] = "/";
	uint64_t sum = 0;

	for (struct node *n = tree_root(t); n; n = tree_next(n)) {
		bool match = false;

		if (n->link || n->a.type != NODE_FILE)
			continue;
		node_path(n, path + 1);
		for (size_t i = 0; i < globs->n; i++)
			match = match || glob_matches(globs->v[i], path);
		*found += match;
		sum += match ? n->a.size : 0;
	}
	return sum;
}

/* What the lock says of its inputs: about what the layers will have, when debs are most of them. */
static uint64_t size_of_inputs(const struct lock *l)
{
	uint64_t n = 0;

	for (size_t i = 0; i < l->ndebs; i++)
		n += l->debs[i].size;
	for (size_t i = 0; i < l->nwheels; i++)
		n += l->wheels[i].size;
	for (size_t i = 0; i < l->nsources; i++)
		n += l->sources[i].size;
	for (size_t i = 0; i < l->nfiles; i++)
		n += l->files[i].size;
	for (size_t i = 0; i < l->nmodels; i++)
		for (size_t k = 0; k < l->models[i].nfiles; k++)
			n += l->models[i].files[k].size;
	return n;
}

static void check_size(struct test_result *r, const char *what, uint64_t size)
{
	uint64_t most = r->test->expect.max_bytes;

	if (most && size > most)
		test_fail(r, "%s %" PRIu64 " bytes, expected at most %" PRIu64, what, size, most);
}

static void planned_size(struct test_result *r, const struct lock *l)
{
	if (r->test->paths.n || r->test->expect.max_layers)
		test_fail(r,
			"sizes of files and the number of layers need the image: their stage is "
			"image, not plan");
	else if (!l)
		test_fail(r, "there is no lock");
	else
		check_size(r, "the locked inputs have", size_of_inputs(l));
}

int test_size(struct test_result *r, const struct tested *x, struct err *e)
{
	const struct test_expect *want = &r->test->expect;
	const struct strings *globs = &r->test->paths;
	size_t found = 0;

	(void)e;
	if (!want->max_bytes && !want->max_layers)
		test_fail(r, "neither expect.maxBytes nor expect.maxLayers is given");
	else if (!x->image)
		planned_size(r, x->l);
	else if (globs->n)
		check_size(r, "the files have", size_of_files(x->tree, globs, &found));
	else
		check_size(r, "the layers have", size_of_layers(x->image));
	if (x->image && globs->n && !found)
		test_fail(r, "no file matches the paths");
	if (x->image && want->max_layers && x->image->nlayers > want->max_layers)
		test_fail(r, "%zu layers, the index included, expected at most %u",
			x->image->nlayers, want->max_layers);
	return 0;
}
