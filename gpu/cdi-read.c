/* CDI documents as texts: JSON or YAML by the ending of a name, and places of what is wrong. */
#include "base/json.h"
#include "base/str.h"
#include "gpu/cdi-spec.h"
#include "gpu/yaml.h"

struct first {
	char pointer[512], text[512];
};

static bool keep_first(void *ctx, const char *pointer, const char *text)
{
	struct first *f = ctx;

	snprintf(f->pointer, sizeof(f->pointer), "%s", pointer);
	snprintf(f->text, sizeof(f->text), "%s", text);
	return false;
}

int cdi_validate(const json_t *spec, const char *name, struct err *e)
{
	struct first f;

	if (cdi_check(spec, keep_first, &f) == 0)
		return 0;
	return err_set(
		e, ERR_CORRUPT, "%.500s: %s%s%s", name, f.pointer, *f.pointer ? ": " : "", f.text);
}

static bool is_yaml(const char *name)
{
	return str_ends(name, ".yaml") || str_ends(name, ".yml");
}

/* More than a document has, by the commas between them: jansson makes them all first. */
static bool too_many(const char *text, size_t n)
{
	size_t commas = 0;

	for (const char *p = text, *end = text + n; p && p < end; commas++) {
		p = memchr(p, ',', (size_t)(end - p));
		p = p ? p + 1 : NULL;
	}
	return commas > CDI_VALUES_MAX;
}

static json_t *parse_json(const char *name, const char *text, size_t n, struct err *e)
{
	struct json_doc d = {0};
	json_t *root;

	if (too_many(text, n)) {
		err_set(e, ERR_CORRUPT, "%s: more than %d values", name, CDI_VALUES_MAX);
		return NULL;
	}
	if (json_doc_parse(&d, name, text, n, e) < 0)
		return NULL;
	root = json_incref(d.root);
	json_doc_fini(&d);
	return root;
}

json_t *cdi_parse(const char *name, const char *text, size_t n, struct err *e)
{
	static const char *const typed[] = {"major", "minor", "fileMode", "uid", "gid", "timeout",
		"additionalGids", "enableMonitoring", NULL};
	static const struct yaml_limits limits = {CDI_DEPTH_MAX, CDI_VALUES_MAX, typed};

	if (n > CDI_FILE_MAX) {
		err_set(e, ERR_CORRUPT, "%s: longer than the limit of %d bytes", name,
			CDI_FILE_MAX);
		return NULL;
	}
	return is_yaml(name) ? yaml_parse(name, text, n, &limits, e) : parse_json(name, text, n, e);
}

char *cdi_place(
	const char *name, const char *text, size_t n, const char *pointer, const char *fault_text)
{
	int line = 1, col = 1;
	struct json_doc d = {0};

	if (is_yaml(name))
		yaml_locate(text, n, pointer, &line, &col);
	else if (json_doc_parse(&d, name, text, n, NULL) == 0)
		json_doc_locate(&d, pointer, false, &line, &col);
	json_doc_fini(&d);
	return mem_printf(
		"%s:%d:%d: %s%s%s", name, line, col, pointer, *pointer ? ": " : "", fault_text);
}

json_t *cdi_read(const char *name, const char *text, size_t n, struct err *e)
{
	json_t *spec = cdi_parse(name, text, n, e);
	auto_free char *why = NULL;
	struct first f;

	if (!spec || cdi_check(spec, keep_first, &f) == 0)
		return spec;
	json_decref(spec);
	why = cdi_place(name, text, n, f.pointer, f.text);
	err_set(e, ERR_CORRUPT, "%.1000s", why);
	return NULL;
}
