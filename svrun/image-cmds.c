/* svrun image ls, inspect, history, tag, rm: what needs documents only. */
#include "svrun/command.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/image.h"
#include "images/mount.h"
#include "svrun/enter.h"
#include "svrun/options.h"
#include "svrun/output.h"

static int load_image(struct image *im, struct store *s, const char *ref, struct err *e)
{
	struct digest d;

	return store_resolve(s, ref, &d, e) < 0 ? -1 : image_load(im, s, &d, e);
}

static uint64_t total_size(const struct image *im)
{
	uint64_t n = 0;

	for (size_t i = 0; i < im->nlayers; i++)
		n += im->layers[i].size;
	return n;
}

static const char *created_of(const struct image *im)
{
	const char *s = json_string_value(json_object_get(im->config, "created"));

	return s ? s : "";
}

/* ---- ls ---- */

static json_t *row_of(const struct store_name *n, const struct image *im)
{
	char text[DIGEST_TEXT + 1];

	return json_pack("{s:s, s:s, s:s, s:I, s:i}", "name", n->name, "digest",
		digest_text(&n->manifest, text), "created", created_of(im), "size",
		(json_int_t)total_size(im), "layers", (int)im->nlayers);
}

static void print_header(void)
{
	printf("%-28s %-14s %-12s  %-20s %10s\n", "NAME", "TAG", "DIGEST", "CREATED", "SIZE");
}

static void print_row(const struct store_name *n, const struct image *im)
{
	auto_free char *name = output_plain(n->name), *created = output_plain(created_of(im));
	char hex[DIGEST_HEX + 1], size[32], *at = strchr(name, '@'), *tag, *slash;

	if (at)
		*at = '\0';
	slash = strrchr(name, '/'); /* a colon before it is a port's */
	tag = strchr(slash ? slash : name, ':');
	if (tag)
		*tag++ = '\0';
	printf("%-28s %-14s %.12s  %-20.20s %10s\n", name,
		tag  ? tag
		: at ? "-"
		     : "latest",
		digest_hex(&n->manifest, hex), created, output_size(total_size(im), size));
}

/* Of an index, the one for this machine. */
static int load_named(struct image *im, struct store *s, const struct store_name *n, struct err *e)
{
	struct digest d = n->manifest;

	return store_choose(s, n->name, &d, e) < 0 ? -1 : image_load(im, s, &d, e);
}

static int list(struct store *s, bool json, bool quiet, struct err *e)
{
	struct store_name *v;
	size_t n;
	auto_json json_t *rows = json_array();

	if (store_names(s, &v, &n, e) < 0)
		return -1;
	if (!json && !quiet)
		print_header();
	for (size_t i = 0; i < n; i++) {
		struct image im;
		struct err fault = {0};

		if (quiet) {
			puts(v[i].name);
			continue;
		}
		if (load_named(&im, s, &v[i], &fault) < 0) {
			warn("%s: %s", v[i].name,
				fault.text); /* one damaged image must not hide the others */
			continue;
		}
		if (json)
			json_array_append_new(rows, row_of(&v[i], &im));
		else
			print_row(&v[i], &im);
		image_fini(&im);
	}
	if (json)
		output_json(rows);
	store_names_free(v, n);
	return 0;
}

int cmd_image_ls(const struct command *self, int argc, char **argv, struct err *e)
{
	const char *format = NULL;
	bool quiet = false, json;
	struct store s;
	struct err open = {0};
	const struct option_spec options[] = {
		{"format", 0, OPTION_STRING, "FORMAT", "table or json", &format},
		{"quiet", 'q', OPTION_FLAG, NULL, "names only", &quiet},
		{0},
	};
	int rc;

	if (options_parse(self, options, argc, argv, false, e) < 0 ||
		output_format(format, &json, e) < 0)
		return -1;
	if (store_enter(&s, &open) < 0) {
		if (open.kind == ERR_NOT_FOUND) { /* no store holds no images */
			if (json)
				puts("[]");
			else if (!quiet)
				print_header();
			return 0;
		}
		*e = open;
		return -1;
	}
	rc = list(&s, json, quiet, e);
	store_close(&s);
	return rc;
}

/* ---- inspect ---- */

static json_t *names_of(struct store *s, const struct digest *d)
{
	json_t *names = json_array();
	struct store_name *v;
	size_t n;

	if (store_names(s, &v, &n, NULL) < 0)
		return names;
	for (size_t i = 0; i < n; i++)
		if (digest_eq(&v[i].manifest, d))
			json_array_append_new(names, json_string(v[i].name));
	store_names_free(v, n);
	return names;
}

static json_t *layers_of(const struct image *im)
{
	json_t *layers = json_array();

	for (size_t i = 0; i < im->nlayers; i++) {
		const struct image_layer *l = &im->layers[i];
		char digest[DIGEST_TEXT + 1], diff_id[DIGEST_TEXT + 1];

		json_array_append_new(layers,
			json_pack("{s:s, s:s, s:I, s:s}", "digest", digest_text(&l->digest, digest),
				"diffId", digest_text(&l->diff_id, diff_id), "size",
				(json_int_t)l->size, "mediaType", l->media_type));
	}
	return layers;
}

static json_t *description_of(struct store *s, const struct image *im)
{
	char text[DIGEST_TEXT + 1];
	json_t *o = json_object(), *config = json_object_get(im->config, "config"), *v;

	json_object_set_new(o, "names", names_of(s, &im->manifest_digest));
	json_object_set_new(o, "digest", json_string(digest_text(&im->manifest_digest, text)));
	json_object_set_new(o, "imageId", json_string(digest_text(&im->config_digest, text)));
	json_object_set_new(o, "created", json_string(created_of(im)));
	json_object_set_new(o, "size", json_integer((json_int_t)total_size(im)));
	json_object_set_new(o, "layers", layers_of(im));
	if ((v = json_object_get(im->config, "architecture")))
		json_object_set(o, "architecture", v);
	if ((v = json_object_get(im->config, "os")))
		json_object_set(o, "os", v);
	if (config)
		json_object_set(o, "config", config);
	if ((v = json_object_get(im->manifest, "annotations")))
		json_object_set(o, "annotations", v);
	if (im->has_index)
		json_object_set_new(o, "index",
			json_pack("{s:s, s:I, s:I}", "digest", digest_text(&im->index.digest, text),
				"offset", (json_int_t)im->index.offset, "length",
				(json_int_t)im->index.length));
	return o;
}

static int with_image(const char *ref, bool json,
	void (*fn)(struct store *, struct image *, bool json), struct err *e)
{
	struct store s;
	struct image im;
	int rc = -1;

	if (store_enter(&s, e) < 0)
		return -1;
	if (load_image(&im, &s, ref, e) == 0) {
		fn(&s, &im, json);
		image_fini(&im);
		rc = 0;
	}
	store_close(&s);
	return rc;
}

static void inspect(struct store *s, struct image *im, bool json)
{
	auto_json json_t *o = description_of(s, im);

	(void)json; /* it has no other form */
	output_json(o);
}

int cmd_image_inspect(const struct command *self, int argc, char **argv, struct err *e)
{
	const char *format = NULL;
	const struct option_spec options[] = {
		{"format", 0, OPTION_STRING, "FORMAT", "json, which is what it prints anyway",
			&format},
		{0},
	};
	int n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	if (format && !str_eq(format, "json"))
		return err_set(e, ERR_USAGE, "--format: expected json, got '%s'", format);
	return with_image(argv[n], true, inspect, e);
}

/* ---- history ---- */

static json_t *history_entry(const json_t *h, const struct image_layer *l)
{
	json_t *o = json_deep_copy(h);
	char text[DIGEST_TEXT + 1];

	if (l) {
		json_object_set_new(o, "digest", json_string(digest_text(&l->digest, text)));
		json_object_set_new(o, "size", json_integer((json_int_t)l->size));
	}
	return o;
}

static void print_history(const json_t *h, const struct image_layer *l)
{
	auto_free char *by = output_plain(json_string_value(json_object_get(h, "created_by"))),
		       *at = output_plain(json_string_value(json_object_get(h, "created")));
	char hex[DIGEST_HEX + 1] = "-", size[32] = "-";

	if (l) {
		digest_hex(&l->digest, hex);
		output_size(l->size, size);
	}
	printf("%-12.12s  %-20.20s %10s  %s\n", hex, at, size, by);
}

static void history(struct store *s, struct image *im, bool json)
{
	const json_t *list = json_object_get(im->config, "history"), *h;
	auto_json json_t *entries = json_array();
	size_t i, layer = 0;

	(void)s;
	if (!json)
		printf("%-12s  %-20s %10s  %s\n", "LAYER", "CREATED", "SIZE", "CREATED BY");
	json_array_foreach (list, i, h) {
		bool empty = json_is_true(json_object_get(h, "empty_layer"));
		const struct image_layer *l =
			!empty && layer < im->nlayers ? &im->layers[layer++] : NULL;

		if (json)
			json_array_append_new(entries, history_entry(h, l));
		else
			print_history(h, l);
	}
	if (json)
		output_json(entries);
}

int cmd_image_history(const struct command *self, int argc, char **argv, struct err *e)
{
	bool json;
	int n = output_options(self, argc, argv, &json, e);

	return n < 0 ? -1 : with_image(argv[n], json, history, e);
}

/* ---- tag, rm ---- */

int cmd_image_tag(const struct command *self, int argc, char **argv, struct err *e)
{
	const struct option_spec options[] = {{0}};
	struct store s;
	struct image im;
	int rc = -1, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0 || store_enter(&s, e) < 0)
		return -1;
	if (load_image(&im, &s, argv[n], e) == 0) {
		auto_free char *source = store_source(&s, &im.manifest_digest);

		rc = store_name_set(
			&s, argv[n + 1], &im.manifest_digest, im.manifest_size, source, e);
		image_fini(&im);
	}
	store_close(&s);
	return rc;
}

/* The names that ref means, and of which manifest (or index): by name that one, else all of the
 * image. *all: every name of that manifest is meant. */
static int choose_names(struct store *s, const struct store_name *v, size_t n, const char *ref,
	struct digest *d, bool *chosen, bool *all, struct err *e)
{
	size_t at, names = 0;
	int rc = store_name_find(v, n, ref, &at, NULL); /* "sha256:..." is no name */

	if (rc > 0)
		*d = v[at].manifest;
	else if (store_resolve(s, ref, d, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		bool same = digest_eq(&v[i].manifest, d);

		names += same;
		chosen[i] = rc > 0 ? i == at : same;
	}
	*all = rc <= 0 || names == 1;
	return 0;
}

static int remove_names(
	struct store *s, const struct store_name *v, size_t n, const bool *chosen, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		if (!chosen[i])
			continue;
		if (store_name_remove(s, v[i].name, e) < 0)
			return -1;
		printf("untagged %s\n", v[i].name);
	}
	return 0;
}

/* The image goes with its last name, unless it runs: then that name stays, too. */
static int remove_image(struct store *s, const struct store_name *v, size_t n, const bool *chosen,
	const struct digest *d, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	auto_fd int claim = image_claim(s, d, e);

	if (claim < 0 || remove_names(s, v, n, chosen, e) < 0 || image_delete(s, d, e) < 0)
		return -1;
	printf("deleted %s\n", digest_text(d, text));
	return 0;
}

static int remove_one(struct store *s, const char *ref, struct err *e)
{
	auto_free bool *chosen = NULL;
	struct digest d;
	struct store_name *v;
	bool all;
	size_t n;
	int rc;

	if (store_names(s, &v, &n, e) < 0)
		return -1;
	chosen = mem_array(n, sizeof(*chosen));
	rc = choose_names(s, v, n, ref, &d, chosen, &all, e);
	if (rc == 0 && all)
		rc = remove_image(s, v, n, chosen, &d, e);
	else if (rc == 0)
		rc = remove_names(s, v, n, chosen, e);
	store_names_free(v, n);
	return rc;
}

int cmd_image_rm(const struct command *self, int argc, char **argv, struct err *e)
{
	const struct option_spec options[] = {{0}};
	struct store s;
	int rc = 0, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0 || store_enter(&s, e) < 0)
		return -1;
	for (int i = n; i < argc && rc == 0; i++)
		rc = remove_one(&s, argv[i], e);
	if (rc == 0)
		rc = mount_sweep(&s, e); /* the folders of what was deleted */
	store_close(&s);
	return rc;
}
