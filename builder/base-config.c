#include "builder/base-config.h"

#include <string.h>

#include "base/str.h"

static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return strcspn(b, "=") == n && strncmp(a, b, n) == 0;
}

static bool manifest_sets(const struct manifest *m, const char *line)
{
	for (size_t i = 0; i < m->env.n; i++)
		if (same_name(m->env.v[i].name, line))
			return true;
	return false;
}

/* What the manifest says otherwise than in `env`: its gpu. */
static bool ours_sets(const json_t *ours, const char *line)
{
	const json_t *v;
	size_t i;

	json_array_foreach (ours, i, v) {
		const char *s = json_string_value(v);

		if (s && same_name(s, line) && !str_starts(s, "PATH="))
			return true;
	}
	return false;
}

/* The base's lines first, without those that the manifest sets; of ours not the PATH that nobody
 * asked for. */
static json_t *merge_env(const json_t *ours, const json_t *base, const struct manifest *m)
{
	json_t *env = json_array();
	const json_t *line;
	size_t i;
	bool path = false;

	json_array_foreach (base, i, line) {
		const char *s = json_string_value(line);

		if (!s || manifest_sets(m, s) || ours_sets(ours, s))
			continue;
		path = path || str_starts(s, "PATH=");
		json_array_append_new(env, json_string(s));
	}
	json_array_foreach (ours, i, line) {
		const char *s = json_string_value(line);

		if (!path || !str_starts(s, "PATH=") || manifest_sets(m, s))
			json_array_append_new(env, json_string(s));
	}
	return env;
}

static void merge_object(json_t *ours, const json_t *base, const char *key)
{
	json_t *from = json_object_get(base, key), *to = json_object_get(ours, key);

	if (!json_is_object(from) || !json_object_size(from))
		return;
	if (!to) {
		to = json_object();
		json_object_set_new(ours, key, to);
	}
	json_object_update_missing(to, from);
}

static void inherit(json_t *ours, const json_t *base, const char *key)
{
	json_t *v = json_object_get(base, key);

	if (v && !json_is_null(v) && !json_object_get(ours, key))
		json_object_set_new(ours, key, json_deep_copy(v));
}

void base_config_merge(json_t *ours, const json_t *base, const struct manifest *m)
{
	static const char *const joined[] = {"Labels", "ExposedPorts", "Volumes"};
	static const char *const plain[] = {"User", "WorkingDir", "StopSignal", "Healthcheck"};
	json_t *to = json_object_get(ours, "config");
	const json_t *from = json_object_get(base, "config");

	json_object_set_new(
		to, "Env", merge_env(json_object_get(to, "Env"), json_object_get(from, "Env"), m));
	for (size_t i = 0; i < sizeof(joined) / sizeof(joined[0]); i++)
		merge_object(to, from, joined[i]);
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		inherit(to, from, plain[i]);
	if (m->has_entrypoint)
		return;
	inherit(to, from, "Entrypoint");
	if (!m->has_cmd)
		inherit(to, from, "Cmd");
}

json_t *base_history(const json_t *base, size_t n)
{
	const json_t *all = json_object_get(base, "history"), *x;
	json_t *out = json_array();
	size_t i, layers = 0;

	json_array_foreach (all, i, x) {
		bool empty = json_is_true(json_object_get(x, "empty_layer"));

		if (!empty && layers == n)
			break;
		layers += !empty;
		json_array_append_new(out, json_deep_copy(x));
	}
	for (; layers < n; layers++) /* it does not tell of all of them */
		json_array_append_new(out, json_pack("{s:s}", "created_by", "base"));
	return out;
}
