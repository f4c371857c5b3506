/* svrun image why: from a file of an image to the line of the manifest that it is there for. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "builder/bill.h"
#include "builder/build.h"
#include "images/image.h"
#include "svrun/app.h"
#include "svrun/command.h"
#include "svrun/enter.h"
#include "svrun/options.h"
#include "svrun/output.h"

enum { DEPTH_MAX = 256 };

/* What is asked, and what was found out. */
struct answer {
	const struct bill *b;
	const char *path; /* without leading slash */
	const struct bill_file *file;
	const struct bill_item *chain[DEPTH_MAX]; /* [0] brought it; each is there for the next */
	size_t n;
	char *pointer;     /* of the manifest, where the chain ends; NULL: it does not */
	const char *other; /* where it ends instead: "pylock.toml" */
};

/* ---- why an item is there ---- */

static const struct bill_item *find_item(
	const struct bill *b, enum origin_kind kind, const char *who)
{
	for (size_t i = 0; i < b->nitems; i++) {
		const char *name = kind == ORIGIN_NPM ? b->items[i].path : b->items[i].name;

		if (b->items[i].kind == kind && name && str_eq(name, who))
			return &b->items[i];
	}
	return NULL;
}

/* Breadth first, so that the shortest reason is told. from[i]: the item that i was reached from. */
struct search {
	const struct bill *b;
	uint32_t *queue, *from;
	size_t head, tail;
};

static void reach(struct search *s, const struct bill_item *it, const struct bill_item *from)
{
	size_t i = (size_t)(it - s->b->items);

	if (s->from[i] != UINT32_MAX)
		return;
	s->from[i] = (uint32_t)(from - s->b->items);
	s->queue[s->tail++] = (uint32_t)i;
}

/* The first of its reasons that ends the search; others are queued. */
static const char *look(struct search *s, const struct bill_item *it)
{
	const char *other = NULL;

	for (size_t i = 0; i < it->why.n; i++) {
		const struct bill_item *next;

		if (str_starts(it->why.v[i], "manifest:"))
			return it->why.v[i];
		next = find_item(s->b, it->kind, it->why.v[i]);
		if (next)
			reach(s, next, it);
		else if (!other)
			other = it->why.v[i];
	}
	return other;
}

static void take_chain(struct answer *a, const struct search *s, const struct bill_item *last)
{
	size_t n = 1, at = (size_t)(last - s->b->items);

	for (size_t i = at; s->from[i] != i; i = s->from[i])
		n++;
	if (n > DEPTH_MAX)
		n = DEPTH_MAX;
	a->n = n;
	for (size_t i = n; i > 0; i--, at = s->from[at])
		a->chain[i - 1] = &s->b->items[at];
}

static void explain_item(struct answer *a, const struct bill_item *it)
{
	auto_free uint32_t *queue = mem_array(a->b->nitems, sizeof(*queue)),
			   *from = mem_array(a->b->nitems, sizeof(*from));
	struct search s = {a->b, queue, from, 0, 0};
	const char *why = NULL;

	for (size_t i = 0; i < a->b->nitems; i++)
		from[i] = UINT32_MAX;
	reach(&s, it, it);
	while (s.head < s.tail && !why) {
		it = &a->b->items[queue[s.head++]];
		why = look(&s, it);
	}
	take_chain(a, &s, it);
	if (why && str_starts(why, "manifest:"))
		a->pointer = mem_strdup(why + strlen("manifest:"));
	else
		a->other = why;
}

/* ---- what the manifest itself lays down ---- */

/* Of its files, dirs and links the one for the path; links before it lead elsewhere only when the
 * image has them, so that the path as it is in the image counts. */
static char *find_entry(const struct bill *b, const char *path)
{
	static const struct {
		const char *list, *key;
	} lists[] = {{"files", "dest"}, {"links", "path"}, {"dirs", "path"}};
	auto_json json_t *doc = json_parse(b->document, strlen(b->document), NULL);
	const json_t *o;
	size_t i;

	for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++)
		json_array_foreach (json_object_get(doc, lists[k].list), i, o) {
			const char *dest = json_string_value(json_object_get(o, lists[k].key));

			if (dest && dest[0] == '/' && str_eq(dest + 1, path))
				return mem_printf("/%s/%zu", lists[k].list, i);
		}
	return NULL;
}

static void explain(struct answer *a)
{
	const struct bill_item *it = &a->b->items[a->file->item];

	if (it->kind != ORIGIN_FILE) {
		explain_item(a, it);
		return;
	}
	a->chain[0] = it;
	a->n = 1;
	a->pointer = find_entry(a->b, a->file->path);
}

/* ---- telling ---- */

static char *title(const struct bill_item *it)
{
	switch (it->kind) {
	case ORIGIN_STATE:
		return mem_strdup("svrun, from what is installed");
	case ORIGIN_FILE:
		return mem_strdup("the manifest");
	case ORIGIN_RUN:
		return mem_printf("the step %s", it->name);
	default:
		return mem_printf("%s %s%s%s%s%s", bill_kind(it->kind), it->name,
			it->version ? " " : "", it->version ? it->version : "", it->arch ? " " : "",
			it->arch ? it->arch : "");
	}
}

static void print_reason(const struct answer *a)
{
	for (size_t i = 1; i < a->n; i++) {
		auto_free char *text = title(a->chain[i]);

		printf("  needed by   %s\n", text);
	}
	if (a->pointer) {
		const char *at = bill_place_of(a->b, a->pointer);

		printf("  asked for   %s%s%s\n", at ? at : "manifest", at ? " " : ":", a->pointer);
	} else if (a->other) {
		printf("  asked for   %s\n", a->other);
	}
}

static void print_text(const struct answer *a, const struct image *im)
{
	const struct bill_item *it = a->chain[0];
	auto_free char *text = title(it), *path = output_plain(a->file->path);
	char digest[DIGEST_TEXT + 1] = "";

	if (a->file->layer < im->nlayers)
		digest_text(&im->layers[a->file->layer].digest, digest);
	printf("/%s\n", path);
	printf("  brought by  %s\n", text);
	if (it->url)
		printf("  from        %s\n", it->url);
	if (it->hash)
		printf("  %-10s  %s\n", it->hash_kind, it->hash);
	printf("  in layer    %" PRIu32 " %s %s\n", a->file->layer, a->b->layers[a->file->layer].id,
		digest);
	print_reason(a);
}

static json_t *item_json(const struct bill_item *it)
{
	json_t *o = json_pack("{s:s, s:s}", "kind", bill_kind(it->kind), "name", it->name);

	if (it->version)
		json_object_set_new(o, "version", json_string(it->version));
	if (it->arch)
		json_object_set_new(o, "arch", json_string(it->arch));
	if (it->purl)
		json_object_set_new(o, "purl", json_string(it->purl));
	if (it->url)
		json_object_set_new(o, "url", json_string(it->url));
	if (it->hash)
		json_object_set_new(o, it->hash_kind, json_string(it->hash));
	return o;
}

static void print_json(const struct answer *a, const struct image *im)
{
	auto_free char *path = mem_printf("/%s", a->file->path);
	char digest[DIGEST_TEXT + 1] = "", diff[DIGEST_TEXT + 1];
	auto_json json_t *o = json_object();
	json_t *chain = json_array();

	if (a->file->layer < im->nlayers)
		digest_text(&im->layers[a->file->layer].digest, digest);
	for (size_t i = 1; i < a->n; i++)
		json_array_append_new(chain, item_json(a->chain[i]));
	json_object_set_new(o, "path", json_string(path));
	json_object_set_new(o, "input", item_json(a->chain[0]));
	json_object_set_new(o, "layer",
		json_pack("{s:I, s:s, s:s, s:s}", "number", (json_int_t)a->file->layer, "id",
			a->b->layers[a->file->layer].id, "digest", digest, "diffId",
			digest_text(&a->b->layers[a->file->layer].diff_id, diff)));
	json_object_set_new(o, "neededBy", chain);
	if (a->pointer) {
		const char *at = bill_place_of(a->b, a->pointer);

		json_object_set_new(
			o, "manifest", json_pack("{s:s, s:s*}", "pointer", a->pointer, "at", at));
	} else if (a->other) {
		json_object_set_new(o, "asked", json_string(a->other));
	}
	output_json(o);
}

/* ---- finding the file ---- */

/* As the image's own links lead: /bin/sh is usr/bin/sh. */
static int resolve(const struct bill *b, struct image *im, struct store *s, const char *path,
	const struct bill_file **f, struct err *e)
{
	char clean[TREE_PATH_MAX + 1];
	const struct node *n;
	struct tree *t;

	if (tree_clean_path(path, clean, e) < 0)
		return -1;
	*f = bill_find(b, clean);
	if (*f)
		return 0;
	t = image_tree(im, s, NULL, NULL, e);
	if (!t)
		return -1;
	n = tree_resolve(t, clean);
	*f = n ? bill_find(b, node_path(n, clean)) : NULL;
	tree_free(t);
	if (*f)
		return 0;
	return err_set(e, ERR_NOT_FOUND, "there is no %s in the image", path);
}

/* The name that the image of an app has, when what is given is the path of one; or NULL. 1, 0: it
 * is no path, -1. */
static int name_of_app(const char *word, char **name, struct err *e)
{
	const struct app_choice choice = {0};
	auto_free char *plain = NULL;
	struct app app;

	if ((!strchr(word, '/') && word[0] != '.') || access(word, F_OK) < 0)
		return 0;
	if (app_open(&app, word, &choice, e) < 0)
		return -1;
	build_names(&app.m, name, &plain);
	app_close(&app);
	return 1;
}

static int why(const char *ref, const char *path, bool json, struct store *s, struct err *e)
{
	struct answer a = {.n = 0};
	struct digest d;
	struct image im;
	struct bill b;
	int rc;

	if (store_resolve(s, ref, &d, e) < 0 || image_load(&im, s, &d, e) < 0)
		return -1;
	rc = bill_load(&b, s, &d, ref, e);
	if (rc == 0) {
		a.b = &b;
		rc = resolve(&b, &im, s, path, &a.file, e);
		if (rc == 0) {
			explain(&a);
			if (json)
				print_json(&a, &im);
			else
				print_text(&a, &im);
			free(a.pointer);
		}
		bill_fini(&b);
	}
	image_fini(&im);
	return rc;
}

int cmd_image_why(const struct command *self, int argc, char **argv, struct err *e)
{
	const char *format = NULL;
	bool json;
	const struct option_spec options[] = {
		{"format", 0, OPTION_STRING, "FORMAT", "table or json", &format},
		{0},
	};
	auto_free char *name = NULL;
	struct store s;
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0 || output_format(format, &json, e) < 0 || name_of_app(argv[n], &name, e) < 0 ||
		store_enter(&s, e) < 0)
		return -1;
	rc = why(name ? name : argv[n], argv[n + 1], json, &s, e);
	store_close(&s);
	return rc < 0 ? err_ctx(e, "why %s", argv[n]) : rc;
}
