#include "images/config-diff.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

static void put(json_t *flat, const char *key, const char *member, json_t *value)
{
	auto_free char *name = mem_printf("%s%s%s", key, member ? "." : "", member ? member : "");
	auto_buf struct buf b = BUF_INIT(64 << 20);

	if (json_is_string(value)) {
		json_object_set(flat, name, value);
		return;
	}
	json_text(value, true, &b);
	json_object_set_new(flat, name, json_string(b.data));
}

/* "NAME=VALUE"; the last of a name counts. */
static void put_env(json_t *flat, const json_t *env)
{
	const json_t *o;
	size_t i;

	json_array_foreach (env, i, o) {
		const char *text = json_string_value(o), *eq = text ? strchr(text, '=') : NULL;
		auto_free char *name = NULL;

		if (!text)
			continue;
		name = mem_printf("Env.%.*s", (int)(eq ? eq - text : (long)strlen(text)), text);
		json_object_set_new(flat, name, json_string(eq ? eq + 1 : ""));
	}
}

json_t *config_flatten(const json_t *config)
{
	static const char *const platform[] = {"architecture", "os", "variant"};
	json_t *flat = json_object(), *own = json_object_get(config, "config"), *v, *inner;
	const char *key, *member;

	for (size_t i = 0; i < sizeof(platform) / sizeof(platform[0]); i++) {
		v = json_object_get(config, platform[i]);
		if (v)
			put(flat, platform[i], NULL, v);
	}
	json_object_foreach (own, key, v) {
		if (json_is_null(v))
			continue;
		if (str_eq(key, "Env") && json_is_array(v))
			put_env(flat, v);
		else if (json_is_object(v))
			json_object_foreach (v, member, inner)
				put(flat, key, member, inner);
		else
			put(flat, key, NULL, v);
	}
	return flat;
}
