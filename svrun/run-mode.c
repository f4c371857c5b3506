#include "svrun/run-mode.h"

#include "base/json.h"
#include "base/str.h"
#include "images/image.h"

static const char cpu[] = "cpu";

const char *const run_mode_thread_variables[] = {"OMP_NUM_THREADS", "MKL_NUM_THREADS",
	"OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS",
	"RAYON_NUM_THREADS", NULL};

bool run_mode_is_cpu(const struct run_options *o)
{
	return o->mode && str_eq(o->mode, cpu);
}

/* ---- one change after the other ---- */

static int bad(const char *mode, const char *what, struct err *e)
{
	char shown[STR_SHOWN];

	return err_set(e, ERR_CORRUPT, "label " IMAGE_MODES_LABEL ": %s: %s",
		str_shown(mode, shown), what);
}

static void drop_variable(json_t *env, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = json_array_size(env); i-- > 0;) {
		const char *pair = json_string_value(json_array_get(env, i));

		if (pair && strncmp(pair, name, n) == 0 && pair[n] == '=')
			json_array_remove(env, i);
	}
}

static int change_env(json_t *config, json_t *changes, const char *mode, struct err *e)
{
	json_t *env = json_object_get(config, "Env"), *v, *all;
	const char *name;

	if (!changes)
		return 0;
	if (!json_is_object(changes) || (env && !json_is_array(env)))
		return bad(mode, "env: expected an object", e);
	all = env ? json_incref(env) : json_array();
	json_object_set_new(config, "Env", all);
	json_object_foreach (changes, name, v) {
		if (!*name || strchr(name, '=') || !(json_is_null(v) || json_is_string(v)))
			return bad(mode, "env: expected names and strings", e);
		drop_variable(all, name);
		if (json_is_string(v))
			json_array_append_new(
				all, json_sprintf("%s=%s", name, json_string_value(v)));
	}
	return 0;
}

/* Members of `from` with one of these names take the place of those of `to`. */
static void change(json_t *to, const json_t *from, const char *const *names)
{
	for (; *names; names++) {
		json_t *v = json_object_get(from, *names);

		if (json_is_null(v))
			json_object_del(to, *names);
		else if (v)
			json_object_set(to, *names, v);
	}
}

static int change_config(json_t *config, const json_t *mode, const char *name, struct err *e)
{
	static const char *const keys[] = {"Entrypoint", "Cmd", "Healthcheck", NULL};
	static const char *const labels[] = {RUNTIME_ENV_LABEL, IMAGE_GPU_LABEL, "run.svrun.health",
		"run.svrun.resources", NULL};

	if (json_is_true(json_object_get(mode, "image"))) {
		err_set(e, ERR_UNSUPPORTED, "its mode %s has other packages or models than it",
			name);
		return err_hint(
			e, "make the image of that mode: svrun image build --mode %s APP", name);
	}
	change(config, mode, keys);
	change(json_object_get(config, "Labels"), json_object_get(mode, "Labels"), labels);
	return change_env(config, json_object_get(mode, "env"), name, e);
}

/* ---- which ---- */

/* Of an image that has no word about it: no GPU is asked for. */
static void forget_gpus(json_t *config)
{
	json_object_del(json_object_get(config, "Labels"), IMAGE_GPU_LABEL);
}

static int no_such(const char *mode, json_t *modes, struct err *e)
{
	auto_buf struct buf list = BUF_INIT(4096);
	char shown[STR_SHOWN];
	const char *name;
	json_t *v;

	err_set(e, ERR_NOT_FOUND, "the image has no mode '%s'", str_shown(mode, shown));
	json_object_foreach (modes, name, v)
		if (list.len < 300)
			buf_printf(&list, "%s%s", list.len ? ", " : "", str_shown(name, shown));
	return list.len ? err_hint(e, "it has: %s", list.data)
			: err_hint(e, "without modes, it can only be run as it is, and with "
				      "--mode cpu");
}

static const char *label(const json_t *config, const char *name)
{
	return json_string_value(json_object_get(json_object_get(config, "Labels"), name));
}

static int apply(json_t *config, const char *mode, struct err *e)
{
	const char *own = label(config, IMAGE_MODE_LABEL), *text = label(config, IMAGE_MODES_LABEL);
	auto_json json_t *modes = text ? json_parse(text, strlen(text), e) : json_object();
	const json_t *found;

	if (!modes)
		return err_ctx(e, "label " IMAGE_MODES_LABEL);
	if (own && str_eq(own, mode))
		return 0;
	found = json_object_get(modes, mode);
	if (found && !json_is_object(found))
		return bad(mode, "expected an object", e);
	if (found)
		return change_config(config, found, mode, e);
	if (!str_eq(mode, cpu))
		return no_such(mode, modes, e);
	forget_gpus(config);
	return 0;
}

json_t *run_mode_config(const json_t *image, const struct run_options *o, struct err *e)
{
	json_t *copy = json_deep_copy(image);

	if (!o->mode || !*o->mode || apply(json_object_get(copy, "config"), o->mode, e) == 0)
		return copy;
	json_decref(copy);
	return NULL;
}
