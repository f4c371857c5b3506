#include "svrun/run-keep.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"

enum { KEPT_MAX = 8 << 20 };

static const char file[] = "options.json";

/* ---- writing ---- */

/* What is about this start alone, and what the folder itself says. */
static bool is_kept(const struct option_spec *t)
{
	static const char *const not [] = {"name", "pull", "rm", "timings", NULL};

	for (size_t i = 0; not [i]; i++)
		if (str_eq(t->name, not [i]))
			return false;
	return t->kind != OPTION_ABSENT;
}

/* The path in text, from `at` up to `end` (its end: NULL), made absolute; to free(). Links stay:
 * the path means at the next start what it means then. */
static char *absolute(const char *text, size_t at, const char *end)
{
	size_t n = end ? (size_t)(end - text) - at : strlen(text) - at;
	char here[PATH_MAX];

	if (text[at] == '/' || !getcwd(here, sizeof(here)))
		return mem_strdup(text);
	return mem_printf("%.*s%s/%.*s%s", (int)at, text, here, (int)n, text + at, end ? end : "");
}

static json_t *one_text(const struct option_spec *t, const char *text)
{
	const char *equals = strchr(text, '=');
	auto_free char *path = NULL;

	if (str_eq(t->name, "volume"))
		path = absolute(text, 0, strchr(text, ':'));
	else if (str_eq(t->name, "env-file") || str_eq(t->name, "cdi-spec-dir"))
		path = absolute(text, 0, NULL);
	else if (str_eq(t->name, "secret") && equals)
		path = absolute(text, (size_t)(equals + 1 - text), NULL);
	return json_string(path ? path : text);
}

/* NULL: not given; or not UTF-8, and *bad is set. */
static json_t *value_of(const struct option_spec *t, bool *bad)
{
	const struct option_list *l = t->dest;
	json_t *v = NULL;

	if (t->kind == OPTION_FLAG)
		return *(const bool *)t->dest ? json_true() : NULL;
	if (t->kind == OPTION_STRING) {
		const char *text = *(const char *const *)t->dest;

		v = text ? one_text(t, text) : NULL;
		*bad = text && !v;
		return v;
	}
	if (l->n)
		v = json_array();
	for (size_t i = 0; i < l->n; i++)
		*bad |= json_array_append_new(v, one_text(t, l->v[i])) < 0;
	return v;
}

static json_t *options_of(const struct run_options *o, struct err *e)
{
	struct run_options copy = *o; /* the table wants something to write to */
	struct option_spec table[RUN_OPTIONS_MAX];
	json_t *options = json_object();

	run_options_table(&copy, table);
	for (const struct option_spec *t = table; t->name; t++) {
		bool bad = false;
		json_t *v = is_kept(t) ? value_of(t, &bad) : NULL;

		if (v)
			json_object_set_new(options, t->name, v);
		if (!bad)
			continue;
		json_decref(options);
		err_set(e, ERR_USAGE, "--%s is not UTF-8, and cannot be kept", t->name);
		err_hint(e, "with --rm nothing needs to be kept");
		return NULL;
	}
	return options;
}

int run_keep(struct instance *i, const struct run_options *o, const char *digest, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(KEPT_MAX);
	json_t *options = i->rm ? NULL : options_of(o, e), *words = json_array();
	auto_json json_t *doc = NULL;

	if (!options) {
		json_decref(words);
		return i->rm ? 0 : -1;
	}
	for (size_t k = 0; k < o->nwords; k++)
		json_array_append_new(words, json_string(o->words[k]));
	doc = json_pack("{s:s, s:s, s:o, s:o}", "image", o->image, "manifest", digest, "options",
		options, "words", words);
	json_text(doc, false, &text);
	return instance_write(i, file, text.data, text.len, e);
}

/* ---- reading ---- */

static int take_list(struct option_list *l, const json_t *v)
{
	size_t cap = 0, i;
	json_t *x;

	json_array_foreach (v, i, x) {
		if (!json_is_string(x))
			return -1;
		mem_grow(&l->v, &cap, l->n);
		l->v[l->n++] = json_string_value(x);
	}
	l->cap = cap;
	return json_is_array(v) ? 0 : -1;
}

static int take_value(const struct option_spec *t, const json_t *v)
{
	if (t->kind == OPTION_LIST)
		return take_list(t->dest, v);
	if (t->kind == OPTION_FLAG) {
		*(bool *)t->dest = json_is_true(v);
		return json_is_boolean(v) ? 0 : -1;
	}
	*(const char **)t->dest = json_string_value(v);
	return json_is_string(v) ? 0 : -1;
}

static int take_words(struct run_options *o, const json_t *v, struct err *e)
{
	size_t i;
	json_t *x;

	o->own_words = mem_array(json_array_size(v) + 1, sizeof(*o->own_words));
	json_array_foreach (v, i, x) {
		char *word;

		if (!json_is_string(x))
			return err_set(e, ERR_CORRUPT, "words: expected strings");
		/* as argv's they are not written to */
		memcpy(&word, &(const char *){json_string_value(x)}, sizeof(word));
		o->own_words[o->nwords++] = word;
	}
	o->words = o->own_words;
	return 0;
}

static int take(struct run_options *o, const json_t *doc, struct err *e)
{
	struct option_spec table[RUN_OPTIONS_MAX];
	const json_t *options = json_object_of(doc, "options", e),
		     *words = json_array_of(doc, "words", e);

	o->image = json_str(doc, "image", e);
	o->digest = json_str(doc, "manifest", e);
	if (!options || !words || !o->image || !o->digest)
		return -1;
	run_options_table(o, table);
	for (const struct option_spec *t = table; t->name; t++) {
		const json_t *v = is_kept(t) ? json_object_get(options, t->name) : NULL;

		if (v && take_value(t, v) < 0)
			return err_set(e, ERR_CORRUPT, "%s: wrong type", t->name);
	}
	return take_words(o, words, e);
}

int run_keep_load(struct run_options *o, int dir, const char *id, struct err *e)
{
	struct json_doc doc;

	if (faccessat(dir, file, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
		err_set(e, ERR_NOT_FOUND, "%s cannot start again: its options were not kept", id);
		return err_hint(e, "one of --rm goes when it ends");
	}
	if (json_doc_load(&doc, dir, file, KEPT_MAX, e) < 0)
		return err_ctx(e, "instance %s", id);
	o->kept = json_incref(doc.root);
	json_doc_fini(&doc);
	return take(o, o->kept, e) < 0 ? err_ctx(e, "instance %s: %s", id, file) : 0;
}

/* ---- changing ---- */

static void change_list(struct option_list *l, const struct option_list *given, bool adds)
{
	if (given->n && !adds)
		l->n = 0;
	for (size_t i = 0; i < given->n; i++) {
		mem_grow(&l->v, &l->cap, l->n);
		l->v[l->n++] = given->v[i];
	}
}

static bool asks_for_gpus(const struct run_options *o)
{
	for (size_t i = 0; i < o->gpus.n; i++)
		if (!str_eq(o->gpus.v[i], "none"))
			return true;
	return false;
}

/* Those that are no vendor's. */
static void keep_plain_devices(struct option_list *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (l->v[i][0] == '/')
			l->v[n++] = l->v[i];
	l->n = n;
}

void run_keep_change(struct run_options *o, const struct run_options *given)
{
	struct run_options copy = *given;
	struct option_spec ours[RUN_OPTIONS_MAX], theirs[RUN_OPTIONS_MAX];

	if (asks_for_gpus(given))
		o->mode = NULL;
	if (given->mode || given->gpus.n) {
		o->gpus.n = 0;
		o->gpus_shared = false;
	}
	if (given->mode)
		keep_plain_devices(&o->devices);
	run_options_table(o, ours);
	run_options_table(&copy, theirs);
	for (size_t i = 0; ours[i].name; i++) {
		if (ours[i].kind == OPTION_FLAG)
			*(bool *)ours[i].dest |= *(const bool *)theirs[i].dest;
		else if (ours[i].kind == OPTION_LIST)
			change_list(ours[i].dest, theirs[i].dest, str_eq(ours[i].name, "env"));
		else if (ours[i].kind == OPTION_STRING && *(const char **)theirs[i].dest)
			*(const char **)ours[i].dest = *(const char **)theirs[i].dest;
	}
}
