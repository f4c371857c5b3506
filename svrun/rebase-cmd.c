/* svrun image rebase. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/image-input.h"
#include "builder/rebase.h"
#include "images/config.h"
#include "images/pull.h"
#include "images/reference.h"
#include "svrun/command.h"
#include "svrun/enter.h"
#include "svrun/options.h"

struct request {
	const char *image, *onto, *from, *name, *progress;
	bool quiet;
	struct config config;
	struct store s;
	struct progress *p;
};

/* An image as people name it: of the store, else of a registry. */
static int find(struct request *r, const char *ref, struct digest *d, struct err *e)
{
	const struct pull_options o = {0};
	struct pull_result got;
	struct err missing = {0};

	if (store_resolve(&r->s, ref, d, &missing) == 0)
		return image_input_admit(&r->s, &r->config, ref, d, e);
	if (missing.kind != ERR_NOT_FOUND || !reference_has_host(ref)) {
		if (e)
			*e = missing;
		return -1;
	}
	if (image_pull(&r->s, &r->config, ref, &o, r->p, &got, e) < 0)
		return -1;
	*d = got.manifest;
	return 0;
}

/* The base that the image says it is on. */
static int find_old(
	struct request *r, const struct digest *image, struct digest *old, struct err *e)
{
	const char *name;
	struct image im;
	int rc;

	if (r->from)
		return find(r, r->from, old, e);
	if (image_load(&im, &r->s, image, e) < 0)
		return -1;
	rc = rebase_base_of(&im, old, &name, e);
	if (rc == 0) {
		rc = err_set(e, ERR_USAGE, "%s does not say what its base is", r->image);
		err_hint(e, "--from names it");
	} else if (rc > 0) {
		struct digest base = *old;

		rc = image_input(&r->s, name ? name : "store:base", &base, r->p, old, e);
		if (rc < 0)
			err_ctx(e, "the base of %s", r->image);
	}
	image_fini(&im);
	return rc;
}

/* Without a new name the image's own: a name, not a digest. */
static int choose_name(struct request *r, char out[STORE_NAME], struct err *e)
{
	struct store_name *v;
	size_t n, at;
	int rc;

	if (r->name)
		return store_name_parse(r->name, out, e);
	if (store_names(&r->s, &v, &n, e) < 0)
		return -1;
	rc = store_name_find(v, n, r->image, &at, NULL);
	if (rc > 0)
		rc = str_copy(out, STORE_NAME, v[at].name);
	else
		rc = err_set(e, ERR_USAGE, "%s is not a name: say what the new image is called",
			r->image);
	store_names_free(v, n);
	return rc;
}

static int rebase(struct request *r, struct err *e)
{
	char name[STORE_NAME], text[DIGEST_TEXT + 1];
	struct rebase x = {.onto_name = r->onto, .name = name};
	struct digest made;

	if (store_resolve(&r->s, r->image, &x.image, e) < 0 ||
		image_input_admit(&r->s, &r->config, r->image, &x.image, e) < 0 ||
		choose_name(r, name, e) < 0 || find_old(r, &x.image, &x.old, e) < 0 ||
		find(r, r->onto, &x.onto, e) < 0)
		return -1;
	if (image_rebase(&r->s, &x, &made, e) < 0)
		return err_ctx(e, "rebase %s", r->image);
	if (r->quiet)
		puts(digest_text(&made, text));
	else
		printf("%s %s is on %s\n", name, digest_text(&made, text), r->onto);
	return 0;
}

int cmd_image_rebase(const struct command *self, int argc, char **argv, struct err *e)
{
	struct request r = {0};
	const struct option_spec options[] = {
		{"onto", 0, OPTION_STRING, "REF", "the new base", &r.onto},
		{"from", 0, OPTION_STRING, "REF", "the old base, where the image does not say it",
			&r.from},
		{"quiet", 'q', OPTION_FLAG, NULL, "print the manifest's digest only", &r.quiet},
		{"progress", 0, OPTION_STRING, "MODE", "auto, plain, json or none", &r.progress},
		{0},
	};
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	if (!r.onto)
		return err_set(e, ERR_USAGE, "--onto names the new base");
	r.image = argv[n];
	r.name = n + 1 < argc ? argv[n + 1] : NULL;
	if (config_load(&r.config, e) < 0)
		return -1;
	rc = options_progress(r.progress, r.quiet, &r.p, e);
	if (rc == 0)
		rc = store_enter_at(&r.s, &r.config, true, e);
	if (rc == 0) {
		rc = rebase(&r, e);
		store_close(&r.s);
	}
	progress_free(r.p);
	config_fini(&r.config);
	return rc;
}
