#include "builder/image-modes.h"

#include <string.h>

#include "base/str.h"
#include "builder/image-config.h"
#include "images/image.h"

static void put(json_t *out, const char *key, const json_t *value)
{
	json_object_set_new(out, key, value ? json_deep_copy(value) : json_null());
}

/* The member `key` of out gets those of `names` that are not the same in both. */
static void compare(json_t *out, const json_t *ours, const json_t *theirs, const char *const *names)
{
	for (; *names; names++) {
		const json_t *a = json_object_get(ours, *names),
			     *b = json_object_get(theirs, *names);

		if (a != b && !(a && b && json_equal(a, b)))
			put(out, *names, b);
	}
}

/* ["A=1"] as {"A": "1"} */
static json_t *variables(const json_t *config)
{
	const json_t *list = json_object_get(config, "Env"), *v;
	json_t *o = json_object();
	size_t i;

	json_array_foreach (list, i, v) {
		const char *pair = json_string_value(v), *value = strchr(pair, '=');

		if (value)
			json_object_setn_new(
				o, pair, (size_t)(value - pair), json_string(value + 1));
	}
	return o;
}

static json_t *changed_variables(const json_t *ours, const json_t *theirs)
{
	auto_json json_t *a = variables(ours), *b = variables(theirs);
	json_t *out = json_object(), *v;
	const char *name;

	json_object_foreach (b, name, v)
		if (!json_equal(v, json_object_get(a, name)))
			json_object_set(out, name, v);
	json_object_foreach (a, name, v)
		if (!json_object_get(b, name))
			json_object_set_new(out, name, json_null());
	return out;
}

static json_t *changes(const json_t *ours, const json_t *theirs)
{
	static const char *const keys[] = {"Entrypoint", "Cmd", "Healthcheck", NULL};
	static const char *const labels[] = {RUNTIME_ENV_LABEL, IMAGE_GPU_LABEL, "run.svrun.health",
		"run.svrun.resources", NULL};
	json_t *out = json_object();
	auto_json json_t *env = changed_variables(ours, theirs), *label = json_object();

	compare(out, ours, theirs, keys);
	compare(label, json_object_get(ours, "Labels"), json_object_get(theirs, "Labels"), labels);
	if (json_object_size(env))
		json_object_set(out, "env", env);
	if (json_object_size(label))
		json_object_set(out, "Labels", label);
	return out;
}

static bool needs_image(const struct manifest *m, const struct manifest *applied)
{
	static const char *const keys[] = {"models", "node", "python", NULL};
	auto_json json_t *other = json_object();

	compare(other, m->doc.root, applied->doc.root, keys);
	return json_object_size(other) > 0;
}

static json_t *mode_of(const struct manifest *m, const struct manifest *applied, const json_t *ours)
{
	auto_json json_t *theirs = image_config(applied);
	json_t *mode = changes(ours, json_object_get(theirs, "config"));

	if (needs_image(m, applied))
		json_object_set_new(mode, "image", json_true());
	return mode;
}

void image_modes_label(const struct manifest *m, json_t *config)
{
	auto_buf struct buf text = BUF_INIT(64 << 20);
	auto_json json_t *modes = json_object();

	for (size_t i = 0; i < m->nmodes; i++) {
		const struct manifest_mode *x = &m->modes[i];

		if (x->applied)
			json_object_set_new(modes, x->name, mode_of(m, x->applied, config));
	}
	if (!json_object_size(modes))
		return;
	json_text(modes, true, &text);
	json_object_set_new(
		json_object_get(config, "Labels"), IMAGE_MODES_LABEL, json_string(text.data));
}

void image_modes_key(const struct manifest *m, struct buf *out)
{
	auto_buf struct buf text = BUF_INIT(256 << 20), all = BUF_INIT(1 << 30);
	char hex[DIGEST_HEX + 1];
	struct digest d;

	for (size_t i = 0; i < m->nmodes; i++) {
		if (!m->modes[i].applied)
			continue;
		json_text(m->modes[i].applied->doc.root, true, &text);
		buf_printf(&all, "%s %s\n", m->modes[i].name, text.data);
	}
	if (!all.len)
		return;
	d = digest_of(all.data, all.len);
	buf_printf(out, " modes %s", digest_hex(&d, hex));
}
