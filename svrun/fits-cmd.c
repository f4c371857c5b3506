/* svrun gpu fits: what an app, or an image, needs of GPUs, against what this host has. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "builder/image-config.h"
#include "gpu/require.h"
#include "images/image.h"
#include "svrun/app.h"
#include "svrun/command.h"
#include "svrun/options.h"
#include "svrun/output.h"
#include "svrun/run-mode.h"
#include "svrun/test-subject.h"

struct fits_request {
	const char *word, *format;
	bool json;
	struct app_choice choice;
};

/* ---- the config document that a start would go by ---- */

static json_t *config_of_app(const struct fits_request *r, struct err *e)
{
	struct app a;
	json_t *config;

	if (app_open(&a, r->word, &r->choice, e) < 0)
		return NULL;
	config = image_config(&a.m);
	app_close(&a);
	return config;
}

static json_t *config_in_store(const struct fits_request *r, struct store *s, struct err *e)
{
	const struct run_options o = {.mode = r->choice.mode};
	struct digest d;
	struct image im;
	json_t *config;

	if (store_resolve(s, r->word, &d, e) < 0 || store_choose(s, r->word, &d, e) < 0 ||
		image_load(&im, s, &d, e) < 0)
		return NULL;
	config = run_mode_config(im.config, &o, e);
	image_fini(&im);
	return config;
}

static json_t *config_of_image(const struct fits_request *r, struct err *e)
{
	char shown[STR_SHOWN];
	struct config c;
	struct store s;
	json_t *config = NULL;

	if (r->choice.matrix || r->choice.platform || r->choice.vars.n) {
		err_set(e, ERR_USAGE,
			"'%s' is no app: --matrix, --platform and --var choose one of its images",
			r->word);
		return NULL;
	}
	if (config_load(&c, e) < 0)
		return NULL;
	if (store_open(&s, c.root, false, e) == 0) {
		config = config_in_store(r, &s, e);
		store_close(&s);
	} else if (e->kind == ERR_NOT_FOUND) {
		err_ctx(e, "'%s' is no app's folder, and there are no images",
			str_shown(r->word, shown));
	}
	config_fini(&c);
	return config;
}

/* ---- the verdict ---- */

/* null: it has none. */
static json_t *label_of(const json_t *config, struct err *e)
{
	const char *text = json_string_value(
		json_object_get(json_object_get(config, "Labels"), IMAGE_GPU_LABEL));
	json_t *label = text ? json_parse(text, strlen(text), e) : json_null();

	if (!label)
		err_ctx(e, "label " IMAGE_GPU_LABEL);
	return label;
}

static int judge(struct gpu_verdict *v, const json_t *document, const struct gpu_inventory *i,
	const struct gpu_probe *p, struct err *e)
{
	const json_t *config = json_object_get(document, "config"),
		     *list = json_object_get(config, "Env"), *line;
	auto_free const char **words = mem_array(json_array_size(list) + 1, sizeof(*words));
	struct strings env = {words, 0};
	auto_json json_t *label = label_of(config, e);
	size_t k;

	if (!label)
		return -1;
	json_array_foreach (list, k, line)
		if (json_is_string(line))
			words[env.n++] = json_string_value(line);
	return gpu_require(v, json_is_null(label) ? NULL : label, &env, i, p, NULL, e);
}

static void print_verdict(const struct fits_request *r, const struct gpu_verdict *v)
{
	const char *hint = NULL;

	if (r->json) {
		auto_json json_t *o = gpu_verdict_json(v);

		json_object_set_new(o, "schema", json_string("svrun.gpu-fits/1"));
		json_object_set_new(o, "name", json_string(r->word));
		output_json(o);
		return;
	}
	if (v->n)
		printf("%-4s %-24s %-40s %s\n", "", "REQUIREMENT", "NEEDED", "FOUND");
	for (size_t k = 0; k < v->n; k++) {
		const struct gpu_need *n = &v->v[k];

		printf("%-4s %-24s %-40s %s\n",
			n->met      ? "ok"
			: n->spared ? "--"
				    : "no",
			n->what, n->needed, n->found);
		hint = hint || n->met ? hint : n->hint;
	}
	printf("%s %s\n", r->word,
		v->unmet     ? "does not fit"
		: v->without ? "fits, without a GPU"
		: v->n       ? "fits"
			     : "has no requirements of GPUs");
	if (hint)
		printf("hint: %s\n", hint);
}

static int against_host(const struct fits_request *r, const json_t *document,
	const struct gpu_host *h, struct err *e)
{
	struct gpu_inventory inventory;
	struct gpu_probe probe;
	struct gpu_verdict v;
	int rc;

	if (gpu_inventory_read(&inventory, h, e) < 0)
		return -1;
	rc = gpu_probe_load(&probe, h, &inventory, e);
	if (rc == 0) {
		gpu_probe_name_migs(&inventory, &probe);
		rc = judge(&v, document, &inventory, &probe, e);
		if (rc == 0) {
			print_verdict(r, &v);
			rc = v.unmet > 0;
			gpu_verdict_fini(&v);
		}
		gpu_probe_free(&probe);
	}
	gpu_inventory_fini(&inventory);
	return rc;
}

static int fits(const struct fits_request *r, struct err *e)
{
	auto_json json_t *document =
		test_word_is_app(r->word) ? config_of_app(r, e) : config_of_image(r, e);
	struct gpu_host h;
	int rc;

	if (!document || gpu_host_open(&h, e) < 0)
		return -1;
	rc = against_host(r, document, &h, e);
	gpu_host_close(&h);
	return rc;
}

int cmd_gpu_fits(const struct command *self, int argc, char **argv, struct err *e)
{
	struct fits_request r = {0};
	const struct option_spec options[] = {
		APP_CHOICE_OPTIONS(r.choice),
		{"format", 0, OPTION_STRING, "FORMAT", "table or json", &r.format},
		{0},
	};
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0 || output_format(r.format, &r.json, e) < 0) {
		rc = -1;
	} else {
		r.word = argv[n];
		rc = fits(&r, e);
	}
	option_list_fini(&r.choice.vars);
	return rc;
}
