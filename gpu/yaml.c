#include "gpu/yaml.h"

#include <stdbool.h>
#include <yaml.h>

#include "base/json.h"
#include "base/str.h"

struct reading {
	yaml_parser_t parser;
	const char *name;
	const struct yaml_limits *limits;
	size_t values, depth;
	/* yaml_locate() alone: */
	const char *pointer; /* what is left of it at the node that is read; NULL: not on the way */
	int line, col;
	struct err *e;
};

static int at(struct reading *r, const yaml_mark_t *m, const char *text)
{
	return err_set(
		r->e, ERR_CORRUPT, "%s:%zu:%zu: %s", r->name, m->line + 1, m->column + 1, text);
}

static int next(struct reading *r, yaml_event_t *event)
{
	const yaml_parser_t *p = &r->parser;

	if (yaml_parser_parse(&r->parser, event))
		return 0;
	*event = (yaml_event_t){.type = YAML_NO_EVENT};
	if (p->error == YAML_READER_ERROR)
		return err_set(r->e, ERR_CORRUPT, "%s: at byte %zu: %s", r->name, p->problem_offset,
			p->problem);
	return at(r, &p->problem_mark, p->problem ? p->problem : "not YAML");
}

/* ---- scalars ---- */

static bool digits(const char *s, int base, json_int_t *v)
{
	const char *all = base == 16  ? "0123456789abcdefABCDEF"
			  : base == 8 ? "01234567"
				      : "0123456789";

	if (!*s || s[strspn(s, all)])
		return false;
	errno = 0;
	*v = strtoll(s, NULL, base);
	return errno == 0;
}

static bool number(const char *s, json_int_t *v)
{
	bool minus = *s == '-';

	s += minus || *s == '+';
	if (!(str_starts(s, "0x")         ? digits(s + 2, 16, v)
		    : str_starts(s, "0o") ? digits(s + 2, 8, v)
		    : *s == '0' && s[1]   ? digits(s + 1, 8, v)
					  : digits(s, 10, v)))
		return false;
	*v = minus ? -*v : *v;
	return true;
}

static bool one_of(const char *s, const char *const *words)
{
	for (; words && *words; words++)
		if (str_eq(s, *words))
			return true;
	return false;
}

static json_t *scalar(const yaml_event_t *event, bool typed)
{
	static const char *const nothing[] = {"", "~", "null", "Null", "NULL", NULL};
	static const char *const yes[] = {"true", "True", "TRUE", NULL};
	static const char *const no[] = {"false", "False", "FALSE", NULL};
	const char *s = (const char *)event->data.scalar.value;
	json_int_t v;

	if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
		if (one_of(s, nothing))
			return json_null();
		if (typed && number(s, &v))
			return json_integer(v);
		if (typed && (one_of(s, yes) || one_of(s, no)))
			return json_boolean(one_of(s, yes));
	}
	return strlen(s) == event->data.scalar.length ? json_string(s) : NULL; /* it has a NUL */
}

/* ---- nodes ---- */

static json_t *node(struct reading *r, yaml_event_t *event, bool typed);

static void free_event(yaml_event_t *event)
{
	yaml_event_delete(event);
}
#define auto_event __attribute__((cleanup(free_event)))

/* Is the first name of the pointer this one? Then what is left behind it. */
static const char *step(const char *pointer, const char *name)
{
	char token[512];

	if (!pointer || *pointer != '/')
		return NULL;
	pointer = json_pointer_token(pointer, token, sizeof(token));
	return str_eq(token, name) ? pointer : NULL;
}

static json_t *sequence(struct reading *r, bool typed)
{
	auto_json json_t *list = json_array();
	const char *pointer = r->pointer;

	for (;;) {
		auto_event yaml_event_t event = {.type = YAML_NO_EVENT};
		char name[24];
		json_t *v;

		if (next(r, &event) < 0)
			return NULL;
		if (event.type == YAML_SEQUENCE_END_EVENT)
			return json_incref(list);
		snprintf(name, sizeof(name), "%zu", json_array_size(list));
		r->pointer = step(pointer, name);
		v = node(r, &event, typed);
		if (!v)
			return NULL;
		json_array_append_new(list, v);
	}
}

/* The key that an event is. */
static int key_of(struct reading *r, const yaml_event_t *event, const json_t *map)
{
	const char *key = (const char *)event->data.scalar.value;
	char shown[STR_SHOWN];

	if (event->type != YAML_SCALAR_EVENT)
		return at(r, &event->start_mark, "a key that is no text");
	if (event->data.scalar.anchor || event->data.scalar.tag)
		return at(r, &event->start_mark, "a key with an anchor or a tag");
	if (strlen(key) != event->data.scalar.length)
		return at(r, &event->start_mark, "a key with a NUL");
	if (json_object_get(map, key))
		return err_set(r->e, ERR_CORRUPT, "%s:%zu:%zu: duplicate key '%s'", r->name,
			event->start_mark.line + 1, event->start_mark.column + 1,
			str_shown(key, shown));
	return 0;
}

static json_t *mapping(struct reading *r)
{
	auto_json json_t *map = json_object();
	const char *pointer = r->pointer;

	for (;;) {
		auto_event yaml_event_t key = {.type = YAML_NO_EVENT};
		auto_event yaml_event_t value = {.type = YAML_NO_EVENT};
		const char *name;
		json_t *v;

		if (next(r, &key) < 0)
			return NULL;
		if (key.type == YAML_MAPPING_END_EVENT)
			return json_incref(map);
		if (key_of(r, &key, map) < 0 || next(r, &value) < 0)
			return NULL;
		name = (const char *)key.data.scalar.value;
		r->pointer = step(pointer, name);
		v = node(r, &value, one_of(name, r->limits->typed));
		if (!v)
			return NULL;
		json_object_set_new(map, name, v);
	}
}

static const char *refused(const struct reading *r, const yaml_event_t *event)
{
	const unsigned char *anchor = NULL, *tag = NULL;

	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return "an alias: anchors and aliases are not read";
	case YAML_SCALAR_EVENT:
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
		break;
	default:
		return "not a value";
	}
	if (anchor)
		return "an anchor: anchors and aliases are not read";
	if (tag)
		return "a tag: tags are not read";
	if (r->values >= r->limits->values)
		return "too many values";
	return r->depth >= r->limits->depth && event->type != YAML_SCALAR_EVENT ? "nested too deep"
										: NULL;
}

/* The node that an event begins. Recursion is as deep as the limit. */
static json_t *node(struct reading *r, yaml_event_t *event, bool typed)
{
	const char *why = refused(r, event);
	json_t *v;

	if (why) {
		at(r, &event->start_mark, why);
		return NULL;
	}
	if (r->pointer) {
		r->line = (int)event->start_mark.line + 1;
		r->col = (int)event->start_mark.column + 1;
	}
	r->values++;
	r->depth++;
	if (event->type == YAML_SCALAR_EVENT)
		v = scalar(event, typed);
	else
		v = event->type == YAML_MAPPING_START_EVENT ? mapping(r) : sequence(r, typed);
	r->depth--;
	if (!v && event->type == YAML_SCALAR_EVENT)
		at(r, &event->start_mark, "a text with a NUL");
	return v;
}

static int expect(struct reading *r, yaml_event_type_t type, const char *otherwise)
{
	auto_event yaml_event_t event = {.type = YAML_NO_EVENT};

	if (next(r, &event) < 0)
		return -1;
	return event.type == type ? 0 : at(r, &event.start_mark, otherwise);
}

static json_t *document(struct reading *r)
{
	auto_json json_t *doc = NULL;
	auto_event yaml_event_t event = {.type = YAML_NO_EVENT};

	if (expect(r, YAML_STREAM_START_EVENT, "no stream") < 0 ||
		expect(r, YAML_DOCUMENT_START_EVENT, "no document") < 0 || next(r, &event) < 0)
		return NULL;
	doc = node(r, &event, false);
	if (!doc || expect(r, YAML_DOCUMENT_END_EVENT, "more than one value") < 0 ||
		expect(r, YAML_STREAM_END_EVENT, "a second document: one is read") < 0)
		return NULL;
	return json_incref(doc);
}

static json_t *read_text(struct reading *r, const char *text, size_t n)
{
	json_t *doc;

	if (!yaml_parser_initialize(&r->parser)) {
		err_set(r->e, ERR_SYSTEM, "%s: out of memory", r->name);
		return NULL;
	}
	yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, n);
	doc = document(r);
	yaml_parser_delete(&r->parser);
	return doc;
}

json_t *yaml_parse(
	const char *name, const char *text, size_t n, const struct yaml_limits *l, struct err *e)
{
	struct reading r = {.name = name, .limits = l, .e = e};

	return read_text(&r, text, n);
}

void yaml_locate(const char *text, size_t n, const char *pointer, int *line, int *col)
{
	static const struct yaml_limits none = {SIZE_MAX, SIZE_MAX, NULL};
	struct reading r = {.name = "", .limits = &none, .pointer = pointer, .line = 1, .col = 1};

	json_decref(read_text(&r, text, n));
	*line = r.line;
	*col = r.col;
}
