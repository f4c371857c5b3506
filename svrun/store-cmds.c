/* svrun image prune, gc, du, fsck: the store as a whole. */
#include "svrun/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/sandbox.h"
#include "builder/step-mounts.h"
#include "images/config.h"
#include "images/digest-map.h"
#include "images/fsck.h"
#include "images/gc.h"
#include "images/image.h"
#include "images/mount.h"
#include "images/progress.h"
#include "images/usage.h"
#include "svrun/enter.h"
#include "svrun/options.h"
#include "svrun/output.h"
#include "svrun/prompt.h"

/* ---- gc ---- */

static void print_report(const struct gc_report *r, bool dry)
{
	char blobs[32], pool[32], others[32], all[32];

	printf("%s %zu blobs (%s), %zu chunks (%s), %zu other files (%s)\n",
		dry ? "would remove" : "removed", r->blobs, output_size(r->blob_bytes, blobs),
		r->chunks, output_size(r->pool_bytes, pool), r->others,
		output_size(r->other_bytes, others));
	printf("%s %s; %zu images kept\n", dry ? "would give back" : "gave back",
		output_size(r->blob_bytes + r->pool_bytes + r->other_bytes, all), r->kept_images);
}

static int collect(struct store *s, bool dry, bool cache, struct progress *p, struct err *e)
{
	struct gc_report r;

	if (gc_run(s, dry, &r, p, e) < 0 || (cache && gc_cache(s, dry, &r, e) < 0) ||
		(!dry && mount_sweep(s, e) < 0)) /* the folders of what was removed */
		return -1;
	print_report(&r, dry);
	return 0;
}

int cmd_image_gc(const struct command *self, int argc, char **argv, struct err *e)
{
	bool dry = false, cache = false;
	const struct option_spec options[] = {
		{"dry-run", 'n', OPTION_FLAG, NULL, "only say what would be removed", &dry},
		{"cache", 0, OPTION_FLAG, NULL,
			"also what builds have fetched: the next build fetches it again", &cache},
		{0},
	};
	struct progress *p;
	struct store s;
	int rc;

	if (options_parse(self, options, argc, argv, false, e) < 0 || store_enter(&s, e) < 0)
		return -1;
	p = progress_new(PROGRESS_AUTO);
	rc = sandbox_sweep(&s, e) < 0 || step_mounts_sweep(&s, e) < 0
		     ? -1
		     : collect(&s, dry, cache, p, e);
	progress_free(p);
	store_close(&s);
	return rc;
}

/* ---- prune ---- */

/* Names of the image, or none when it has none. */
static size_t names_of(const struct store_name *v, size_t n, const struct digest *d)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += digest_eq(&v[i].manifest, d);
	return count;
}

static int remove_names(struct store *s, const struct store_name *v, size_t n,
	const struct digest *d, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (digest_eq(&v[i].manifest, d)) {
			if (store_name_remove(s, v[i].name, e) < 0)
				return -1;
			printf("untagged %s\n", v[i].name);
		}
	return 0;
}

/* What is used by an instance or a mount stays. */
static int prune_image(struct store *s, const struct store_name *v, size_t n,
	const struct digest *d, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	struct err fault = {0};
	auto_fd int claim = image_claim(s, d, &fault);

	if (claim < 0 && fault.kind == ERR_EXISTS)
		return 0;
	if (claim < 0) {
		*e = fault;
		return -1;
	}
	if (remove_names(s, v, n, d, e) < 0 || store_unnamed_remove(s, d, e) < 0 ||
		image_delete(s, d, e) < 0)
		return -1;
	printf("deleted %s\n", digest_text(d, text));
	return 0;
}

static int prune_images(struct store *s, bool all, struct err *e)
{
	auto_free struct digest *v = NULL;
	struct digest_map seen = {0};
	struct store_name *names;
	size_t n = 0, nnames;
	int rc;

	if (store_names(s, &names, &nnames, e) < 0)
		return -1;
	rc = store_manifests(s, &v, &n, e);
	for (size_t i = 0; i < n && rc == 0; i++) {
		if (digest_map_find(&seen, &v[i]))
			continue;
		digest_map_add(&seen, &v[i]);
		if (all || names_of(names, nnames, &v[i]) == 0)
			rc = prune_image(s, names, nnames, &v[i], e);
	}
	digest_map_fini(&seen);
	store_names_free(names, nnames);
	return rc;
}

static int confirm(bool all, struct err *e)
{
	auto_free char *answer = prompt(all ? "Remove all images that no instance uses? [y/N]"
					    : "Remove all images that have no name? [y/N]",
		false, e);

	if (!answer && e->kind == ERR_USAGE) {
		err_set(e, ERR_USAGE, "no terminal to ask whether images may be removed");
		return err_hint(e, "--force does not ask");
	}
	if (!answer)
		return -1;
	return str_eq(answer, "y") || str_eq(answer, "Y") || str_eq(answer, "yes");
}

int cmd_image_prune(const struct command *self, int argc, char **argv, struct err *e)
{
	bool all = false, force = false;
	const struct option_spec options[] = {
		{"all", 'a', OPTION_FLAG, NULL,
			"all that no instance uses, not only those without a name", &all},
		{"force", 'f', OPTION_FLAG, NULL, "do not ask", &force},
		{0},
	};
	struct store s;
	int rc = 1;

	if (options_parse(self, options, argc, argv, false, e) < 0 || store_enter(&s, e) < 0)
		return -1;
	if (!force)
		rc = confirm(all, e);
	if (rc > 0)
		rc = prune_images(&s, all, e) < 0 ? -1 : collect(&s, false, false, NULL, e);
	store_close(&s);
	return rc;
}

/* ---- du ---- */

/* A name of the image, or its digest; to free(). */
static char *label_of(const struct store_name *v, size_t n, const struct digest *d)
{
	char hex[DIGEST_HEX + 1];

	for (size_t i = 0; i < n; i++)
		if (digest_eq(&v[i].manifest, d))
			return output_plain(v[i].name);
	return mem_printf("%.12s", digest_hex(d, hex));
}

static json_t *usage_json(const struct usage *u, const bool *chosen, char *const *labels)
{
	json_t *images = json_array();
	char text[DIGEST_TEXT + 1];

	for (size_t i = 0; i < u->n; i++)
		if (chosen[i])
			json_array_append_new(images,
				json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "name", labels[i],
					"digest", digest_text(&u->images[i].manifest, text),
					"total", (json_int_t)u->images[i].total, "shared",
					(json_int_t)(u->images[i].total - u->images[i].unique),
					"unique", (json_int_t)u->images[i].unique, "chunks",
					(json_int_t)u->images[i].chunks));
	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "images", images, "pool",
		(json_int_t)u->pool, "blobs", (json_int_t)u->blobs, "others", (json_int_t)u->others,
		"shared", (json_int_t)u->shared, "unused", (json_int_t)u->unused, "records",
		(json_int_t)u->records, "cache", (json_int_t)u->cache);
}

static void usage_table(const struct usage *u, const bool *chosen, char *const *labels, bool sums)
{
	char a[32], b[32], c[32];

	printf("%-40s %10s %10s %10s\n", "IMAGE", "TOTAL", "SHARED", "UNIQUE");
	for (size_t i = 0; i < u->n; i++)
		if (chosen[i])
			printf("%-40s %10s %10s %10s\n", labels[i],
				output_size(u->images[i].total, a),
				output_size(u->images[i].total - u->images[i].unique, b),
				output_size(u->images[i].unique, c));
	if (!sums)
		return;
	printf("\npool     %10s   file data, each once\n", output_size(u->pool, a));
	printf("blobs    %10s   manifests, configurations, layers\n", output_size(u->blobs, a));
	printf("others   %10s   metadata images, indexes, lists of layers\n",
		output_size(u->others, a));
	printf("  shared %10s   used by more than one image\n", output_size(u->shared, a));
	printf("  unused %10s   svrun image gc gives it back\n", output_size(u->unused, a));
	printf("records  %10s   where the pool has what\n", output_size(u->records, a));
	printf("cache    %10s   what builds have fetched\n", output_size(u->cache, a));
}

static int choose(struct store *s, const struct usage *u, char **refs, int n, bool *chosen,
	const struct store_name *names, size_t nnames, struct err *e)
{
	for (int k = 0; k < n; k++) {
		struct digest d;
		size_t at, i = 0;
		int named = store_name_find(names, nnames, refs[k], &at, NULL);

		/* by name what the name stands for, which may be an index */
		if (named > 0)
			d = names[at].manifest;
		else if (store_resolve(s, refs[k], &d, e) < 0)
			return -1;
		while (i < u->n && !digest_eq(&u->images[i].manifest, &d))
			i++;
		if (i == u->n)
			return err_set(e, ERR_NOT_FOUND, "%s is a part of an index: name that one",
				refs[k]);
		chosen[i] = true;
	}
	for (size_t i = 0; n == 0 && i < u->n; i++)
		chosen[i] = true;
	return 0;
}

static int show_usage(struct store *s, char **refs, int n, bool json, struct err *e)
{
	struct store_name *names;
	size_t nnames;
	struct usage u;
	int rc;

	if (store_names(s, &names, &nnames, e) < 0)
		return -1;
	if (usage_read(s, &u, e) < 0) {
		store_names_free(names, nnames);
		return -1;
	}

	auto_free bool *chosen = mem_array(u.n, sizeof(*chosen));
	auto_free char **labels = mem_array(u.n, sizeof(char *));

	for (size_t i = 0; i < u.n; i++)
		labels[i] = label_of(names, nnames, &u.images[i].manifest);
	rc = choose(s, &u, refs, n, chosen, names, nnames, e);
	if (rc == 0 && json) {
		auto_json json_t *j = usage_json(&u, chosen, labels);

		output_json(j);
	} else if (rc == 0) {
		usage_table(&u, chosen, labels, n == 0);
	}
	for (size_t i = 0; i < u.n; i++)
		free(labels[i]);
	usage_fini(&u);
	store_names_free(names, nnames);
	return rc;
}

int cmd_image_du(const struct command *self, int argc, char **argv, struct err *e)
{
	bool json;
	struct store s;
	int rc, n = output_options(self, argc, argv, &json, e);

	if (n < 0 || store_enter(&s, e) < 0)
		return -1;
	rc = show_usage(&s, argv + n, argc - n, json, e);
	store_close(&s);
	return rc;
}

/* ---- fsck ---- */

static void print_fault(void *ctx, const char *text)
{
	(void)ctx;
	printf("%s\n", text);
	fflush(stdout); /* in its place between the lines of progress, which go to stderr */
}

static int check(bool repair, struct progress *p, struct err *e)
{
	struct fsck f = {.repair = repair, .progress = p, .say = print_fault};
	struct config c;
	struct store s;
	int rc;

	if (config_load(&c, e) < 0)
		return -1;
	if (store_enter(&s, e) < 0) {
		config_fini(&c);
		return -1;
	}
	f.config = &c;
	rc = fsck_run(&s, &f, e);
	store_close(&s);
	config_fini(&c);
	if (rc < 0)
		return -1;
	printf("%zu images, %zu chunks, %zu blobs: ", f.images, f.chunks, f.blobs);
	if (f.faults == 0) {
		puts("all as they should be");
		return 0;
	}
	printf("%zu faults, %zu of them repaired\n", f.faults, f.repaired);
	if (f.repaired == f.faults)
		return 0;
	err_set(e, ERR_CORRUPT, "%zu faults are left", f.faults - f.repaired);
	return repair ? -1 : err_hint(e, "svrun image fsck --repair");
}

int cmd_image_fsck(const struct command *self, int argc, char **argv, struct err *e)
{
	const char *mode_name = NULL;
	bool repair = false;
	const struct option_spec options[] = {
		{"repair", 0, OPTION_FLAG, NULL,
			"write damaged data again, from layers or from where the image came",
			&repair},
		{"progress", 0, OPTION_STRING, "MODE", "auto, plain, json or none", &mode_name},
		{0},
	};
	struct progress *p;
	int rc;

	if (options_parse(self, options, argc, argv, false, e) < 0)
		return -1;
	if (options_progress(mode_name, false, &p, e) < 0)
		return -1;
	rc = check(repair, p, e);
	progress_free(p);
	return rc;
}
