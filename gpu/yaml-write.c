#include "base/json.h"
#include "base/str.h"
#include "gpu/yaml.h"

static void write_value(const json_t *v, size_t indent, bool in_list, struct buf *b);

static void spaces(struct buf *b, size_t n)
{
	buf_printf(b, "%*s", (int)n, "");
}

/* JSON's scalars are YAML's, quoted texts with their escapes among them. */
static void write_scalar(const json_t *v, struct buf *b)
{
	auto_free char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);

	buf_printf(b, " %s\n", text ? text : "null");
}

static bool is_scalar(const json_t *v)
{
	return (json_is_object(v) && json_object_size(v) == 0) ||
	       (json_is_array(v) && json_array_size(v) == 0) ||
	       (!json_is_object(v) && !json_is_array(v));
}

/* YAML 1.1 takes some words for truth values. */
static bool is_plain(const char *key)
{
	static const char *const words[] = {"yes", "off", "true", "null", "false"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (str_eq(key, words[i]))
			return false;
	return strlen(key) > 2 && !key[strspn(key, "abcdefghijklmnopqrstuvwxyz"
						   "ABCDEFGHIJKLMNOPQRSTUVWXYZ")];
}

static void write_key(const char *key, struct buf *b)
{
	auto_json json_t *s = json_string(key);
	auto_free char *quoted = json_dumps(s, JSON_ENCODE_ANY);

	buf_printf(b, "%s:", is_plain(key) || !quoted ? key : quoted);
}

static void write_object(const json_t *o, size_t indent, bool in_list, struct buf *b)
{
	const char *key;
	json_t *v;

	json_object_foreach ((json_t *)(uintptr_t)o, key, v) {
		if (!in_list)
			spaces(b, indent);
		in_list = false;
		write_key(key, b);
		write_value(v, indent + 2, false, b);
	}
}

/* Behind "key:" or "-". */
static void write_value(const json_t *v, size_t indent, bool in_list, struct buf *b)
{
	size_t i;
	json_t *item;

	if (is_scalar(v)) {
		write_scalar(v, b);
	} else if (json_is_object(v)) {
		buf_printf(b, in_list ? " " : "\n");
		write_object(v, indent, in_list, b);
	} else {
		buf_printf(b, "\n");
		json_array_foreach (v, i, item) {
			spaces(b, indent);
			buf_printf(b, "-");
			write_value(item, indent + 2, true, b);
		}
	}
}

void yaml_text(const json_t *doc, struct buf *b)
{
	buf_printf(b, "---\n");
	write_object(doc, 0, false, b);
}
