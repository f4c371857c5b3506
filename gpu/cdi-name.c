/* Names of CDI devices, and where annotations have them. Source: SPEC.md "Kind", "CDI JSON
 * Specification"; gpu.md 2.1. */
#include "base/json.h"
#include "base/str.h"
#include "gpu/cdi-spec.h"

#define PREFIX "cdi.k8s.io/"

enum { NAME_MAX_BYTES = 512, ANNOTATION_NAMES_MAX = 4096 };

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_alnum(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9');
}

static const char *fault(const char *s, size_t n, bool device)
{
	if (n == 0)
		return "is empty";
	if (n > NAME_MAX_BYTES)
		return "is too long";
	if (!(device ? is_alnum(s[0]) : is_letter(s[0])))
		return device ? "does not begin with a letter or a digit"
			      : "does not begin with a letter";
	for (size_t i = 0; i < n; i++)
		if (!is_alnum(s[i]) && !memchr("_-.:", s[i], device ? 4 : 3))
			return device ? "has other characters than letters, digits and _-.:"
				      : "has other characters than letters, digits and _-.";
	return is_alnum(s[n - 1]) ? NULL : "does not end with a letter or a digit";
}

const char *cdi_kind_fault(const char *s, size_t n)
{
	return fault(s, n, false);
}

const char *cdi_device_fault(const char *s, size_t n)
{
	return fault(s, n, true);
}

static int bad(const char *text, const char *what, const char *why, struct err *e)
{
	char shown[STR_SHOWN];

	err_set(e, ERR_USAGE, "CDI device '%s': %s%s", str_shown(text, shown), what, why);
	return err_hint(e, "a CDI device is named vendor/class=name: nvidia.com/gpu=0");
}

int cdi_name_parse(struct cdi_name *n, const char *text, struct err *e)
{
	size_t all = strlen(text);
	const char *slash = strchr(text, '/'), *equals = strchr(text, '='), *why;
	char *copy;

	if (!slash || !equals || equals < slash)
		return bad(text, "is not vendor/class=name", "", e);
	why = cdi_kind_fault(text, (size_t)(slash - text));
	if (why)
		return bad(text, "the vendor ", why, e);
	why = cdi_kind_fault(slash + 1, (size_t)(equals - slash - 1));
	if (why)
		return bad(text, "the class ", why, e);
	why = cdi_device_fault(equals + 1, all - (size_t)(equals + 1 - text));
	if (why)
		return bad(text, "the name ", why, e);
	copy = mem_strdup(text);
	copy[slash - text] = copy[equals - text] = '\0';
	n->vendor = copy;
	n->class = copy + (slash + 1 - text);
	n->name = copy + (equals + 1 - text);
	return 0;
}

/* ---- annotations ---- */

static int add_names(
	const char *key, const char *value, struct strings *names, struct arena *mem, struct err *e)
{
	for (const char *p = value;; p++) {
		size_t n = strcspn(p, ",");
		char *name = arena_strndup(mem, p, n);
		struct cdi_name parsed;
		const char **v;

		if (cdi_name_parse(&parsed, name, e) < 0)
			return err_ctx(e, "annotation %.100s", key);
		free(parsed.vendor);
		if (names->n >= ANNOTATION_NAMES_MAX)
			return err_set(e, ERR_USAGE, "annotation %.100s: more than %d devices", key,
				ANNOTATION_NAMES_MAX);
		if ((names->n & (names->n - 1)) == 0) {
			v = arena_alloc(mem, (names->n ? names->n * 2 : 1) * sizeof(*v));
			if (names->n)
				memcpy(v, names->v, names->n * sizeof(*v));
			names->v = v;
		}
		names->v[names->n++] = name;
		p += n;
		if (!*p)
			return 0;
	}
}

int cdi_annotations(
	const json_t *annotations, struct strings *names, struct arena *mem, struct err *e)
{
	const char *key;
	json_t *v;

	json_object_foreach ((json_t *)(uintptr_t)annotations, key, v) {
		if (!str_starts(key, PREFIX))
			continue;
		if (!json_is_string(v))
			return err_set(e, ERR_USAGE, "annotation %.100s: expected a text", key);
		if (add_names(key, json_string_value(v), names, mem, e) < 0)
			return -1;
	}
	return 0;
}
