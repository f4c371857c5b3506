/* svrun image verify. */
#include "svrun/command.h"

#include <stdio.h>

#include "images/image.h"
#include "images/progress.h"
#include "svrun/enter.h"
#include "svrun/options.h"
#include "svrun/signers.h"

struct verify_request {
	struct store *s;
	bool repair;
	struct progress *progress;
	struct signers signers; /* n: 0 when signatures do not matter */
	struct signers_site site;
};

/* Signed by one of the keys, when there are any. */
static int verify_signature(const struct verify_request *r, const struct digest *d, struct err *e)
{
	if (r->signers.n == 0)
		return 0;
	if (signers_fetch(r->s, &r->site, d, e) < 0)
		return -1;
	return sign_verify_image(r->s, d, r->signers.v, r->signers.n, e);
}

static int verify_one(const struct verify_request *r, const char *ref, struct err *e)
{
	struct image_verify v = {.repair = r->repair};
	struct digest d;
	struct image im;
	int rc;

	if (store_resolve(r->s, ref, &d, e) < 0)
		return -1;
	if (verify_signature(r, &d, e) < 0)
		return err_ctx(e, "%s", ref);
	if (image_load(&im, r->s, &d, e) < 0)
		return err_ctx(e, "%s", ref);
	rc = image_verify(&im, r->s, &v, r->progress, e);
	if (rc == 0)
		printf("%s: %zu layers and %zu chunks are what they should be%s\n", ref, im.nlayers,
			v.chunks, v.repaired ? " again" : "");
	if (v.repaired)
		printf("%s: %zu wrong or missing pieces were written again\n", ref, v.repaired);
	fflush(stdout); /* in its place between the lines of progress, which go to stderr */
	image_fini(&im);
	return rc < 0 ? err_ctx(e, "%s", ref) : 0;
}

/* All of them, however many have a fault: the first fault is returned, later ones are printed. */
static int verify_each(
	const struct verify_request *r, const char *const *refs, size_t n, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n; i++) {
		struct err later = {0};

		if (verify_one(r, refs[i], rc < 0 ? &later : e) == 0)
			continue;
		if (rc < 0)
			err_print(&later, "svrun");
		rc = -1;
	}
	return rc;
}

/* One name of each image in the store. */
static int verify_all(const struct verify_request *r, struct err *e)
{
	auto_free const char **refs = NULL;
	struct store_name *v;
	size_t n, count = 0;
	int rc;

	if (store_names(r->s, &v, &n, e) < 0)
		return -1;
	refs = mem_array(n, sizeof(*refs));
	for (size_t i = 0; i < n; i++) {
		bool again = false;

		for (size_t k = 0; k < i; k++)
			again = again || digest_eq(&v[k].manifest, &v[i].manifest);
		if (!again)
			refs[count++] = v[i].name;
	}
	rc = verify_each(r, refs, count, e);
	store_names_free(v, n);
	return rc;
}

static int verify(struct verify_request *r, char **refs, int n, bool all, struct err *e)
{
	struct config c;
	struct store s;
	int rc = -1;

	if (config_load(&c, e) < 0)
		return -1;
	r->site.config = &c;
	r->s = &s;
	if (store_enter_at(&s, &c, false, e) == 0) {
		rc = all ? verify_all(r, e)
			 : verify_each(r, (const char *const *)refs, (size_t)n, e);
		store_close(&s);
	}
	config_fini(&c);
	return rc;
}

int cmd_image_verify(const struct command *self, int argc, char **argv, struct err *e)
{
	const char *mode_name = NULL;
	bool all = false;
	struct verify_request r = {.repair = false};
	struct option_list keys = {0};
	const struct option_spec options[] = {
		{"all", 0, OPTION_FLAG, NULL, "every image of the store", &all},
		{"repair", 0, OPTION_FLAG, NULL,
			"write wrong and missing data again from the layers", &r.repair},
		{"key", 'k', OPTION_LIST, "FILE",
			"signed by this key, too (NAME.pub); one of several will do", &keys},
		{"progress", 0, OPTION_STRING, "MODE", "auto, plain, json or none", &mode_name},
		{0},
	};
	int rc = -1, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	if ((n == argc) != all)
		err_set(e, ERR_USAGE, "name images, or --all");
	else if (options_progress(mode_name, false, &r.progress, e) == 0) {
		if (signers_load(&r.signers, &keys, e) == 0) {
			rc = verify(&r, argv + n, argc - n, all, e);
			signers_free(&r.signers);
		}
		progress_free(r.progress);
	}
	option_list_fini(&keys);
	return rc;
}
