/* svrun image models: the models that an image brings beside its layers, made ready for a start.
 * `svrun run` calls it when one is not. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/model-place.h"
#include "images/config.h"
#include "images/pool.h"
#include "svrun/command.h"
#include "svrun/enter.h"
#include "svrun/models-volume.h"
#include "svrun/options.h"
#include "svrun/output.h"

struct request {
	const char *image, *format, *progress;
	bool list, json;
	struct option_list secrets, accepted, volumes;
	struct config config;
	struct mirrors mirrors;
	struct store s;
	struct build_secret *loaded;
	struct progress *p;
};

/* ---- what there is ---- */

static json_t *model_json(struct store *s, const struct models_entry *x)
{
	uint64_t bytes = 0;
	json_t *o;

	for (size_t i = 0; i < x->nfiles; i++)
		bytes += x->files[i].size;
	o = json_pack("{s:s, s:s, s:s, s:i, s:I, s:b, s:s*}", "id", x->id, "delivery",
		models_deliveries[x->delivery], "target", x->target, "files", (int)x->nfiles,
		"bytes", (json_int_t)bytes, "ready",
		(int)(x->delivery == MODELS_LAYER || models_are_placed(s, x)), "license",
		x->license);
	return o;
}

static void print_models(struct store *s, const struct models *m, bool as_json)
{
	auto_json json_t *list = json_array();

	for (size_t i = 0; i < m->n; i++) {
		const struct models_entry *x = &m->v[i];
		auto_free char *target = output_plain(x->target), *id = output_plain(x->id);

		json_array_append_new(list, model_json(s, x));
		if (!as_json)
			printf("%-24s %-9s %s\n", id, models_deliveries[x->delivery], target);
	}
	if (as_json)
		output_json(list);
}

/* ---- making ready ---- */

static int prepare_one(struct request *r, const struct models_entry *x, struct err *e)
{
	struct model_place j = {.s = &r->s,
		.mirrors = &r->mirrors,
		.secrets = r->loaded,
		.nsecrets = r->secrets.n,
		.p = r->p};
	auto_free char *folder = NULL;
	const char *below = models_volume(x->target, r->volumes.v, r->volumes.n, &folder);

	if (!below || x->delivery != MODELS_RUNTIME)
		return model_place(&j, x, e);

	auto_fd int dir = sys_open(folder, O_RDONLY | O_DIRECTORY, 0);

	return dir < 0 ? err_sys(e, "--volume: open %s", folder)
		       : model_place_in(&j, x, dir, below, e);
}

static int prepare(struct request *r, const struct models *m, struct err *e)
{
	auto_fd int hold = -1;

	if (models_check_accepted(m, r->accepted.v, r->accepted.n, ~0u, e) < 0)
		return -1;
	hold = pool_hold(r->s.fd, e); /* what is linked must not go meanwhile */
	if (hold < 0)
		return -1;
	for (size_t i = 0; i < m->n; i++)
		if ((m->v[i].delivery == MODELS_ARTIFACT || m->v[i].delivery == MODELS_RUNTIME) &&
			prepare_one(r, &m->v[i], e) < 0)
			return -1;
	return 0;
}

static int with_image(struct request *r, struct err *e)
{
	struct models m = {0};
	struct digest d;
	struct image im;
	int rc;

	if (store_resolve(&r->s, r->image, &d, e) < 0 || image_load(&im, &r->s, &d, e) < 0)
		return -1;
	rc = models_read(&m, im.manifest, e);
	if (rc == 0 && r->list)
		print_models(&r->s, &m, r->json);
	else if (rc == 0)
		rc = prepare(r, &m, e);
	models_fini(&m);
	image_fini(&im);
	return rc;
}

static int with_store(struct request *r, struct err *e)
{
	int rc = store_open(&r->s, r->config.root, false, e);

	if (rc < 0)
		return -1;
	mirrors_init(&r->mirrors, &r->config);
	rc = with_image(r, e);
	mirrors_fini(&r->mirrors);
	store_close(&r->s);
	return rc;
}

static int load_secrets(struct request *r, struct err *e)
{
	for (size_t i = 0; i < r->secrets.n; i++)
		if (build_secret_load(&r->loaded[i], r->secrets.v[i], e) < 0)
			return -1;
	return 0;
}

static int run(struct request *r, struct err *e)
{
	auto_free struct build_secret *loaded = mem_array(r->secrets.n + 1, sizeof(*loaded));
	int rc;

	r->loaded = loaded;
	rc = load_secrets(r, e);
	if (rc == 0)
		rc = config_load(&r->config, e);
	if (rc == 0) {
		rc = with_store(r, e);
		config_fini(&r->config);
	}
	for (size_t i = 0; i < r->secrets.n; i++)
		build_secret_fini(&loaded[i]);
	return rc;
}

int cmd_image_models(const struct command *self, int argc, char **argv, struct err *e)
{
	struct request r = {0};
	const struct option_spec options[] = {
		{"list", 'l', OPTION_FLAG, NULL, "only tell which there are", &r.list},
		{"secret", 0, OPTION_LIST, "ID=FILE", "a file for sources that name it",
			&r.secrets},
		{"accept-license", 0, OPTION_LIST, "ID", "accept the licence of a model",
			&r.accepted},
		{"volume", 'v', OPTION_LIST, "SRC:DST",
			"as for svrun run: what is fetched at run time goes there", &r.volumes},
		{"format", 0, OPTION_STRING, "FORMAT", "table or json", &r.format},
		{"progress", 0, OPTION_STRING, "MODE", "auto, plain, json or none", &r.progress},
		{0},
	};
	int rc, n = options_parse(self, options, argc, argv, false, e);

	rc = n < 0 || output_format(r.format, &r.json, e) < 0 ||
			     options_progress(r.progress, false, &r.p, e) < 0
		     ? -1
		     : 0;
	if (rc == 0) {
		r.image = argv[n];
		rc = run(&r, e);
	}
	progress_free(r.p);
	option_list_fini(&r.secrets);
	option_list_fini(&r.accepted);
	option_list_fini(&r.volumes);
	return rc;
}
