#include "builder/value.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/document.h"

/* ---- reading: a walk over text that jansson accepted ---- */

struct walk {
	const char *p;
	struct arena *arena;
	struct origin *from;
};

static void skip_space(struct walk *w)
{
	while (isspace((unsigned char)*w->p))
		w->p++;
}

/* The string at w->p, decoded; w->p moves behind it. */
static const char *walk_string(struct walk *w)
{
	const char *start = w->p, *text;
	bool plain = true;
	json_t *s;

	for (w->p++; *w->p != '"'; w->p++)
		if (*w->p == '\\') {
			plain = false;
			w->p++;
		}
	w->p++;
	if (plain)
		return arena_strndup(w->arena, start + 1, (size_t)(w->p - start) - 2);
	s = json_loadb(start, (size_t)(w->p - start), JSON_DECODE_ANY, NULL);
	text = arena_strdup(w->arena, s ? json_string_value(s) : "");
	json_decref(s);
	return text;
}

static void walk_number(struct walk *w, struct value *v)
{
	size_t n = strcspn(w->p, ",]} \t\r\n");
	json_t *number = json_loadb(w->p, n, JSON_DECODE_ANY, NULL);

	v->kind = json_is_real(number) ? JSON_REAL : JSON_INTEGER;
	v->integer = json_integer_value(number);
	v->real = json_number_value(number);
	json_decref(number);
	w->p += n;
}

static void walk_word(struct walk *w, struct value *v)
{
	v->kind = *w->p == 't' ? JSON_TRUE : *w->p == 'f' ? JSON_FALSE : JSON_NULL;
	w->p += *w->p == 'f' ? 5 : 4;
}

static void walk_value(struct walk *w, struct value *v);

/* Keep the last of those with one name. */
static void drop_duplicates(struct value *object)
{
	size_t slots, n = 0;
	struct value_slot *v = value_slots(object, SLOT_KEY, &slots);

	for (size_t i = 0; i + 1 < slots; i++)
		if (str_eq(v[i].key, v[i + 1].key))
			*v[i].at = NULL;
	for (size_t i = 0; i < object->n; i++)
		if (object->v[i])
			object->v[n++] = object->v[i];
	object->n = n;
	free(v);
}

static struct value *walk_member(struct walk *w, struct value *up)
{
	struct value *v = arena_alloc(w->arena, sizeof(*v));

	v->from = w->from;
	v->up = up;
	v->index = up->n;
	v->key_at = v->at = (size_t)(w->p - w->from->report.text);
	if (up->kind == JSON_OBJECT) {
		v->key = walk_string(w);
		skip_space(w);
		w->p++; /* the colon */
	}
	walk_value(w, v);
	value_add(w->arena, up, v);
	return v;
}

static void walk_members(struct walk *w, struct value *v, char end)
{
	w->p++;
	for (skip_space(w); *w->p != end; skip_space(w)) {
		walk_member(w, v);
		skip_space(w);
		if (*w->p == ',')
			w->p++;
	}
	w->p++;
}

static void walk_value(struct walk *w, struct value *v)
{
	skip_space(w);
	v->at = (size_t)(w->p - w->from->report.text);
	v->kind = *w->p == '{' ? JSON_OBJECT : *w->p == '[' ? JSON_ARRAY : JSON_STRING;
	if (*w->p == '{') {
		walk_members(w, v, '}');
		if (w->from->report.total) /* perhaps because of one */
			drop_duplicates(v);
	} else if (*w->p == '[') {
		walk_members(w, v, ']');
	} else if (*w->p == '"') {
		v->text = walk_string(w);
	} else if (strchr("tfn", *w->p)) {
		walk_word(w, v);
	} else {
		walk_number(w, v);
	}
}

struct value *value_read(struct arena *a, struct origin *from)
{
	struct walk w = {.p = from->report.text, .arena = a, .from = from};
	struct value *v = arena_alloc(a, sizeof(*v));

	v->from = from;
	walk_value(&w, v);
	return v;
}

/* ---- members ---- */

struct value *value_member(const struct value *object, const char *key)
{
	if (!object || object->kind != JSON_OBJECT)
		return NULL;
	for (size_t i = 0; i < object->n; i++)
		if (str_eq(object->v[i]->key, key))
			return object->v[i];
	return NULL;
}

const char *value_text(const struct value *v)
{
	return v && v->kind == JSON_STRING ? v->text : NULL;
}

const char *value_text_of(const struct value *object, const char *key)
{
	return value_text(value_member(object, key));
}

const char *value_as_text(struct arena *a, const struct value *v)
{
	if (!v)
		return NULL;
	switch ((int)v->kind) {
	case JSON_STRING:
		return v->text;
	case JSON_TRUE:
		return "true";
	case JSON_FALSE:
		return "false";
	case JSON_INTEGER:
		return arena_printf(a, "%" JSON_INTEGER_FORMAT, v->integer);
	default:
		return NULL;
	}
}

void value_add(struct arena *a, struct value *to, struct value *v)
{
	if (to->n == to->cap) {
		struct value **old = to->v;

		to->cap = to->cap ? 2 * to->cap : 8;
		to->v = arena_alloc(a, to->cap * sizeof(*to->v));
		if (to->n)
			memcpy(to->v, old, to->n * sizeof(*old));
	}
	to->v[to->n++] = v;
}

void value_drop(struct value *object, const char *key)
{
	size_t n = 0;

	for (size_t i = 0; i < object->n; i++)
		if (!str_eq(object->v[i]->key, key))
			object->v[n++] = object->v[i];
	object->n = n;
}

static int by_slot(const void *a, const void *b)
{
	const struct value_slot *x = a, *y = b;
	int c = strcmp(x->key, y->key);

	return c ? c : x->at < y->at ? -1 : x->at > y->at;
}

struct value_slot *value_slots(const struct value *v, enum slot_kind kind, size_t *n)
{
	struct value_slot *slots = mem_array(v->n + 1, sizeof(*slots));

	*n = 0;
	for (size_t i = 0; i < v->n; i++) {
		const struct value *m = v->v[i];
		const char *key = kind == SLOT_KEY  ? m->key
				  : kind == SLOT_ID ? value_text_of(m, "id")
						    : value_text(m);

		if (key)
			slots[(*n)++] = (struct value_slot){key, &v->v[i]};
	}
	if (*n)
		qsort(slots, *n, sizeof(*slots), by_slot);
	return slots;
}

static int slot_compare(const void *key, const void *p)
{
	return strcmp(key, ((const struct value_slot *)p)->key);
}

struct value **value_slot_find(const struct value_slot *slots, size_t n, const char *key)
{
	const struct value_slot *slot =
		n ? bsearch(key, slots, n, sizeof(*slots), slot_compare) : NULL;

	return slot ? slot->at : NULL;
}

/* ---- places and complaints ---- */

void value_pointer(const struct value *v, struct buf *out)
{
	if (!v->up)
		return;
	value_pointer(v->up, out);
	if (v->key)
		pointer_push(out, v->key);
	else
		pointer_push_index(out, v->index);
}

void value_fault(const struct value *v, struct fault f, const char *fmt, ...)
{
	auto_buf struct buf pointer = BUF_INIT(2 * v->from->report.len + 65536);
	char message[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	value_pointer(v, &pointer);
	f.pointer = pointer.data ? pointer.data : "";
	if (!f.at)
		f.at = v->from->report.text + (f.at_key ? v->key_at : v->at);
	if (v->expanded)
		f.byte = 0;
	report_add(&v->from->report, &f, "%s", message);
}

static void find_lines(struct origin *o)
{
	const struct report *r = &o->report;
	size_t cap = 0;

	for (const char *p = r->text; p; p = memchr(p, '\n', r->len - (size_t)(p - r->text))) {
		p += o->nlines > 0; /* behind the line's end */
		mem_grow(&o->lines, &cap, o->nlines);
		o->lines[o->nlines++] = (size_t)(p - r->text);
	}
}

void origin_place(struct origin *o, size_t at, int *line, int *col)
{
	size_t low = 0, high;

	if (!o->nlines)
		find_lines(o);
	for (high = o->nlines; high - low > 1;) {
		size_t mid = low + (high - low) / 2;

		if (o->lines[mid] <= at)
			low = mid;
		else
			high = mid;
	}
	*line = (int)low + 1;
	*col = (int)(at - o->lines[low]) + 1;
}

/* ---- JSON ---- */

json_t *value_json(const struct value *v)
{
	json_t *j;

	switch ((int)v->kind) {
	case JSON_OBJECT:
		j = json_object();
		for (size_t i = 0; i < v->n; i++)
			json_object_set_new(j, v->v[i]->key, value_json(v->v[i]));
		return j;
	case JSON_ARRAY:
		j = json_array();
		for (size_t i = 0; i < v->n; i++)
			json_array_append_new(j, value_json(v->v[i]));
		return j;
	case JSON_STRING:
		return json_string(v->text);
	case JSON_INTEGER:
		return json_integer(v->integer);
	case JSON_REAL:
		return json_real(v->real);
	case JSON_TRUE:
		return json_true();
	case JSON_FALSE:
		return json_false();
	default:
		return json_null();
	}
}
