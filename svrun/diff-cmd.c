/* svrun image diff: what differs between two images. All but the lists of packages is known from
 * the images' documents and indexes; nothing is unpacked. */
#include "svrun/command.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "images/config-diff.h"
#include "images/export.h"
#include "images/packages.h"
#include "images/tree-chunks.h"
#include "images/tree-diff.h"
#include "svrun/enter.h"
#include "svrun/options.h"
#include "svrun/output.h"

struct side {
	struct image im;
	struct tree *tree;
	struct packages packages;
};

struct diff {
	struct side a, b;
	bool json, stat, times;
	json_t *files;    /* with json: an array */
	json_t *packages; /* of objects {kind, name, where, old, new} */
	json_t *config;   /* of objects {key, old, new} */
	size_t added, removed, changed;
	/* what an update from a to b would have to bring */
	size_t chunks;
	uint64_t bytes, stored, total;
	bool stored_known;
};

/* ---- files ---- */

/* Bytes of an image as JSON text: what is no UTF-8 is shown as \xNN. */
static json_t *json_bytes(const char *s)
{
	auto_buf struct buf b = BUF_INIT(8 * (TREE_PATH_MAX + 1));

	if (str_utf8(s, strlen(s)))
		return json_string(s);
	for (; *s; s++)
		if ((unsigned char)*s >= 0x80)
			buf_printf(&b, "\\x%02x", (unsigned char)*s);
		else
			buf_put(&b, s, 1);
	return json_string(b.data ? b.data : "");
}

static const char *type_name(const struct node *n)
{
	static const char *const names[] = {[NODE_DIR] = "folder",
		[NODE_FILE] = "file",
		[NODE_SYMLINK] = "symlink",
		[NODE_HARDLINK] = "hard link",
		[NODE_FIFO] = "fifo",
		[NODE_CHAR] = "character device",
		[NODE_BLOCK] = "block device"};

	return names[n->a.type];
}

static json_t *describe(const struct node *n)
{
	json_t *o = json_pack("{s:s, s:i, s:I, s:I, s:I}", "type", type_name(n), "mode",
		(int)n->a.mode, "uid", (json_int_t)n->a.uid, "gid", (json_int_t)n->a.gid, "mtime",
		(json_int_t)n->a.mtime);

	if (n->a.type == NODE_FILE)
		json_object_set_new(o, "size", json_integer((json_int_t)n->a.size));
	if (n->a.type == NODE_SYMLINK)
		json_object_set_new(o, "target", json_bytes(n->a.target));
	return o;
}

static void record_file(
	struct diff *d, const char *path, const struct node *a, const struct node *b, unsigned what)
{
	auto_free char *slashed = mem_printf("/%s", path);
	json_t *list = json_array(), *o = json_object();

	for (size_t i = 0; i < 8; i++)
		if (what & 1u << i)
			json_array_append_new(list, json_string(diff_names[i]));
	json_object_set_new(o, "path", json_bytes(slashed));
	if (a)
		json_object_set_new(o, "old", describe(a));
	if (b)
		json_object_set_new(o, "new", describe(b));
	json_object_set_new(o, "what", list);
	json_array_append_new(d->files, o);
}

/* Control characters could drive the terminal. */
static void print_text(const char *s)
{
	auto_free char *plain = output_plain(s);

	fputs(plain, stdout);
}

static void print_change(const struct node *a, const struct node *b, unsigned what)
{
	for (size_t i = 0; i < 8; i++) {
		if (!(what & 1u << i))
			continue;
		printf(" %s", diff_names[i]);
		if (1u << i == DIFF_MODE)
			printf(" %04o>%04o", a->a.mode, b->a.mode);
		if (1u << i == DIFF_OWNER)
			printf(" %u:%u>%u:%u", a->a.uid, a->a.gid, b->a.uid, b->a.gid);
	}
}

static int found_file(void *ctx, const char *path, const struct node *a, const struct node *b,
	unsigned what, struct err *e)
{
	struct diff *d = ctx;

	(void)e;
	d->added += !a;
	d->removed += !b;
	d->changed += a && b;
	if (d->stat)
		return 0;
	if (d->json) {
		record_file(d, path, a, b, what);
		return 0;
	}
	printf("%c /", !a ? 'A' : !b ? 'D' : 'M');
	print_text(path);
	if (a && b)
		print_change(a, b, what);
	putchar('\n');
	return 0;
}

static int diff_files(struct diff *d, struct err *e)
{
	const struct tree_diff how = {
		.mask = d->times ? DIFF_ALL : DIFF_ALL & ~(unsigned)DIFF_MTIME,
		.found = found_file,
		.ctx = d};

	return tree_diff(&how, d->a.tree, d->b.tree, e);
}

/* ---- packages ---- */

static void record_package(struct diff *d, const struct package *a, const struct package *b)
{
	const struct package *any = a ? a : b;
	json_t *o = json_object();

	json_object_set_new(o, "kind", json_bytes(any->kind));
	json_object_set_new(o, "name", json_bytes(any->name));
	json_object_set_new(o, "where", json_bytes(any->where));
	if (a)
		json_object_set_new(o, "old", json_bytes(a->version));
	if (b)
		json_object_set_new(o, "new", json_bytes(b->version));
	json_array_append_new(d->packages, o);
}

static int diff_packages(struct diff *d, struct store *s, struct err *e)
{
	struct pool *p = pool_open(s->fd, false, e);
	const struct packages *x = &d->a.packages, *y = &d->b.packages;
	size_t i = 0, k = 0;
	int rc = -1;

	if (p && packages_list(&d->a.packages, d->a.tree, p, e) == 0)
		rc = packages_list(&d->b.packages, d->b.tree, p, e);
	pool_close(p);
	while (rc == 0 && (i < x->n || k < y->n)) {
		int order = i == x->n ? 1 : k == y->n ? -1 : package_compare(&x->v[i], &y->v[k]);
		const struct package *a = order <= 0 ? &x->v[i++] : NULL,
				     *b = order >= 0 ? &y->v[k++] : NULL;

		if (!a || !b || !str_eq(a->version, b->version))
			record_package(d, a, b);
	}
	return rc;
}

/* ---- configuration ---- */

static int by_text(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

static void diff_config(struct diff *d)
{
	auto_json json_t *a = config_flatten(d->a.im.config), *b = config_flatten(d->b.im.config),
			 *all = json_copy(a);
	auto_free const char **keys = NULL;
	const char *key;
	size_t n = 0;
	json_t *v;

	json_object_update(all, b);
	keys = mem_array(json_object_size(all) + 1, sizeof(*keys));
	json_object_foreach (all, key, v)
		keys[n++] = key;
	qsort(keys, n, sizeof(*keys), by_text);
	for (size_t i = 0; i < n; i++) {
		json_t *x = json_object_get(a, keys[i]), *y = json_object_get(b, keys[i]), *o;

		if (x && y && json_equal(x, y))
			continue;
		o = json_pack("{s:s}", "key", keys[i]);
		if (x)
			json_object_set(o, "old", x);
		if (y)
			json_object_set(o, "new", y);
		json_array_append_new(d->config, o);
	}
}

/* ---- sizes ---- */

static void diff_sizes(struct diff *d)
{
	struct tree_chunks a, b;
	size_t i = 0;

	tree_chunks_init(&a, d->a.tree);
	tree_chunks_init(&b, d->b.tree);
	d->stored_known = true;
	for (size_t k = 0; k < b.n; k++) {
		int order = 1;

		d->total += b.v[k]->length;
		while (i < a.n &&
			(order = memcmp(a.v[i]->digest.b, b.v[k]->digest.b, DIGEST_SIZE)) < 0)
			i++;
		if (i < a.n && order == 0)
			continue;
		d->chunks++;
		d->bytes += b.v[k]->length;
		d->stored += b.v[k]->stored;
		d->stored_known = d->stored_known && b.v[k]->stored && d->b.im.has_index;
	}
	tree_chunks_fini(&a);
	tree_chunks_fini(&b);
}

/* ---- what is printed ---- */

static void print_sides(const json_t *o)
{
	const char *old = json_string_value(json_object_get(o, "old")),
		   *new_ = json_string_value(json_object_get(o, "new"));

	if (old)
		print_text(old);
	if (old && new_)
		fputs(" > ", stdout);
	if (new_)
		print_text(new_);
	putchar('\n');
}

/* A added, D removed, M changed, as for files. */
static void print_mark(const json_t *o)
{
	const json_t *old = json_object_get(o, "old"), *new_ = json_object_get(o, "new");

	printf("%c ", !old ? 'A' : !new_ ? 'D' : 'M');
}

static void print_text_form(const struct diff *d)
{
	const json_t *o;
	size_t i;

	json_array_foreach (d->packages, i, o) {
		const char *kind = json_string_value(json_object_get(o, "kind")),
			   *where = json_string_value(json_object_get(o, "where"));

		print_mark(o);
		printf("%s ", kind);
		print_text(json_string_value(json_object_get(o, "name")));
		putchar(' ');
		if (!str_eq(kind, "deb")) {
			fputs("in /", stdout);
			print_text(where);
			putchar(' ');
		}
		print_sides(o);
	}
	json_array_foreach (d->config, i, o) {
		print_mark(o);
		fputs("config ", stdout);
		print_text(json_string_value(json_object_get(o, "key")));
		fputs(": ", stdout);
		print_sides(o);
	}
	printf("%zu added, %zu removed, %zu changed; %zu packages; %zu of the configuration\n",
		d->added, d->removed, d->changed, json_array_size(d->packages),
		json_array_size(d->config));
	printf("an update brings %.1f MiB of %.1f MiB, in %zu chunks", (double)d->bytes / (1 << 20),
		(double)d->total / (1 << 20), d->chunks);
	if (d->stored_known && d->chunks)
		printf(", %.1f MiB on the wire", (double)d->stored / (1 << 20));
	putchar('\n');
}

static void print_json_form(const struct diff *d)
{
	auto_buf struct buf b = BUF_INIT((size_t)4 << 30);
	auto_json json_t *o = json_pack("{s:O, s:O, s:{s:I, s:I, s:I}, s:{s:I, s:I, s:I}}",
		"packages", d->packages, "config", d->config, "counts", "added",
		(json_int_t)d->added, "removed", (json_int_t)d->removed, "changed",
		(json_int_t)d->changed, "update", "chunks", (json_int_t)d->chunks, "bytes",
		(json_int_t)d->bytes, "totalBytes", (json_int_t)d->total);

	if (!d->stat)
		json_object_set(o, "files", d->files);
	if (d->stored_known)
		json_object_set_new(json_object_get(o, "update"), "storedBytes",
			json_integer((json_int_t)d->stored));
	json_text(o, false, &b);
	fputs(b.data, stdout);
}

/* ---- the command ---- */

static int open_side(struct side *x, struct store *s, const char *ref, struct err *e)
{
	struct digest d;

	if (store_resolve(s, ref, &d, e) < 0)
		return -1;
	if (image_load(&x->im, s, &d, e) == 0)
		x->tree = image_tree(&x->im, s, NULL, NULL, e);
	return x->tree ? 0 : err_ctx(e, "%s", ref);
}

static void close_side(struct side *x)
{
	packages_fini(&x->packages);
	tree_free(x->tree);
	image_fini(&x->im);
}

/* 1: they differ, 0, -1. */
static int diff(struct diff *d, struct store *s, char **refs, struct err *e)
{
	if (open_side(&d->a, s, refs[0], e) < 0 || open_side(&d->b, s, refs[1], e) < 0 ||
		diff_files(d, e) < 0 || diff_packages(d, s, e) < 0)
		return -1;
	diff_config(d);
	diff_sizes(d);
	if (d->json)
		print_json_form(d);
	else
		print_text_form(d);
	return d->added || d->removed || d->changed || json_array_size(d->config) ||
	       json_array_size(d->packages);
}

int cmd_image_diff(const struct command *self, int argc, char **argv, struct err *e)
{
	struct diff d = {0};
	const char *format = NULL;
	const struct option_spec options[] = {
		{"format", 0, OPTION_STRING, "FORMAT", "text or json", &format},
		{"stat", 0, OPTION_FLAG, NULL, "leave out the list of files", &d.stat},
		{"times", 0, OPTION_FLAG, NULL, "times of files count, too", &d.times},
		{0},
	};
	struct store s;
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	d.json = format && str_eq(format, "json");
	if (format && !d.json && !str_eq(format, "text"))
		return err_set(e, ERR_USAGE, "--format: expected text or json, got '%s'", format);
	if (store_enter(&s, e) < 0)
		return -1;
	d.files = json_array();
	d.packages = json_array();
	d.config = json_array();
	rc = diff(&d, &s, argv + n, e);
	close_side(&d.a);
	close_side(&d.b);
	json_decref(d.files);
	json_decref(d.packages);
	json_decref(d.config);
	store_close(&s);
	return rc;
}
