/* The config of a rebased image: three versions of each value, as in a merge. */
#include <string.h>

#include "base/str.h"
#include "builder/base-config.h"
#include "builder/rebase.h"

static bool same(const json_t *a, const json_t *b)
{
	return a == b || (a && b && json_equal(a, b));
}

/* Who changed it? What the image left as it was follows the base. */
static json_t *pick(json_t *image, json_t *old, json_t *onto)
{
	return same(image, old) ? onto : image;
}

static void set(json_t *out, const char *key, json_t *v)
{
	if (v && !json_is_null(v))
		json_object_set(out, key, v);
}

/* Objects whose members count one by one: labels, ports, volumes, and variables by their names. */
static json_t *merge_members(json_t *image, json_t *old, json_t *onto)
{
	json_t *out = json_object(), *v;
	const char *key;

	json_object_foreach (image, key, v)
		set(out, key, pick(v, json_object_get(old, key), json_object_get(onto, key)));
	json_object_foreach (onto, key, v)
		if (!json_object_get(image, key) && !json_object_get(old, key))
			set(out, key, v);
	return out;
}

static json_t *env_object(const json_t *list)
{
	json_t *out = json_object();
	const json_t *x;
	size_t i;

	json_array_foreach (list, i, x) {
		const char *text = json_string_value(x), *eq = text ? strchr(text, '=') : NULL;
		auto_free char *name = eq ? mem_strdup(text) : NULL;

		if (!name)
			continue;
		name[eq - text] = '\0';
		json_object_set_new(out, name, json_string(eq + 1));
	}
	return out;
}

/* In the order of jansson's objects, which is that of insertion: the image's, then what is new. */
static json_t *merge_env(const json_t *image, const json_t *old, const json_t *onto)
{
	auto_json json_t *a = env_object(image), *b = env_object(old), *c = env_object(onto);
	auto_json json_t *merged = merge_members(a, b, c);
	json_t *out = json_array(), *v;
	const char *key;

	json_object_foreach (merged, key, v) {
		auto_free char *text = mem_printf("%s=%s", key, json_string_value(v));

		json_array_append_new(out, json_string(text));
	}
	return out;
}

static json_t *merge_run_config(json_t *image, json_t *old, json_t *onto)
{
	static const char *const by_member[] = {"Labels", "ExposedPorts", "Volumes"};
	json_t *out = merge_members(image, old, onto);

	for (size_t i = 0; i < sizeof(by_member) / sizeof(by_member[0]); i++) {
		const char *k = by_member[i];
		json_t *v = merge_members(json_object_get(image, k), json_object_get(old, k),
			json_object_get(onto, k));

		if (json_object_size(v))
			json_object_set(out, k, v);
		else
			json_object_del(out, k);
		json_decref(v);
	}
	if (json_object_get(image, "Env") || json_object_get(onto, "Env"))
		json_object_set_new(out, "Env",
			merge_env(json_object_get(image, "Env"), json_object_get(old, "Env"),
				json_object_get(onto, "Env")));
	return out;
}

json_t *rebase_config(const json_t *image, const json_t *old, const json_t *onto)
{
	json_t *out = json_deep_copy(image);

	json_object_set_new(out, "config",
		merge_run_config(json_object_get(image, "config"), json_object_get(old, "config"),
			json_object_get(onto, "config")));
	json_object_del(out, "rootfs");
	json_object_del(out, "history");
	return out;
}

json_t *rebase_history(const struct image *image, size_t nold, const json_t *onto, size_t nonto)
{
	json_t *out = base_history(onto, nonto);
	auto_json json_t *all =
		base_history(image->config, image->nlayers - (image->has_index ? 1 : 0));
	const json_t *x;
	size_t i, layers = 0;

	json_array_foreach (all, i, x) {
		if (layers >= nold)
			json_array_append_new(out, json_deep_copy(x));
		layers += !json_is_true(json_object_get(x, "empty_layer"));
	}
	return out;
}
