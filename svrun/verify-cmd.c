/* svrun image verify. */
#include "svrun/command.h"

#include <stdio.h>

#include "base/config.h"
#include "base/progress.h"
#include "images/image.h"
#include "images/mount.h"
#include "svrun/options.h"

static int verify_one(
	struct store *s, const char *ref, bool repair, struct progress *p, struct err *e)
{
	struct image_verify v = {.repair = repair};
	struct digest d;
	struct image im;
	int rc;

	if (store_resolve(s, ref, &d, e) < 0 || image_load(&im, s, &d, e) < 0)
		return err_ctx(e, "%s", ref);
	rc = image_verify(&im, s, &v, p, e);
	if (rc == 0)
		printf("%s: %zu layers and %zu chunks are what they should be%s\n", ref, im.nlayers,
			v.chunks, v.repaired ? " again" : "");
	if (v.repaired)
		printf("%s: %zu chunks were written again\n", ref, v.repaired);
	image_fini(&im);
	return rc < 0 ? err_ctx(e, "%s", ref) : 0;
}

static int verify_all(struct store *s, bool repair, struct progress *p, struct err *e)
{
	struct store_name *v;
	size_t n;
	int rc = 0;

	if (store_names(s, &v, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n && rc == 0; i++) {
		bool again = false; /* two names of one image */

		for (size_t k = 0; k < i; k++)
			again = again || digest_eq(&v[k].manifest, &v[i].manifest);
		if (!again)
			rc = verify_one(s, v[i].name, repair, p, e);
	}
	store_names_free(v, n);
	return rc;
}

static int verify(char **refs, int n, bool all, bool repair, struct progress *p, struct err *e)
{
	struct config c;
	struct store s;
	int rc;

	if (config_load(&c, e) < 0)
		return -1;
	rc = store_open(&s, c.root, false, e);
	config_fini(&c);
	if (rc < 0)
		return -1;
	rc = mount_sweep(&s, e);
	if (rc == 0 && all)
		rc = verify_all(&s, repair, p, e);
	for (int i = 0; i < n && rc == 0; i++)
		rc = verify_one(&s, refs[i], repair, p, e);
	store_close(&s);
	return rc;
}

int cmd_image_verify(const struct command *self, int argc, char **argv, struct err *e)
{
	const char *mode_name = NULL;
	enum progress_mode mode = PROGRESS_AUTO;
	bool all = false, repair = false;
	struct progress *p;
	const struct option_spec options[] = {
		{"all", 0, OPTION_FLAG, NULL, "every image of the store", &all},
		{"repair", 0, OPTION_FLAG, NULL,
			"write wrong and missing chunks again from the layers", &repair},
		{"progress", 0, OPTION_STRING, "MODE", "auto, plain, json or none", &mode_name},
		{0},
	};
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	if (n == argc && !all) {
		err_set(e, ERR_USAGE, "no image named");
		return err_hint(e, "name images, or --all");
	}
	if (mode_name && progress_mode_parse(mode_name, &mode) < 0)
		return err_set(e, ERR_USAGE, "--progress: '%s'", mode_name);
	p = progress_new(mode);
	rc = verify(argv + n, argc - n, all, repair, p, e);
	progress_free(p);
	return rc;
}
