#include "builder/merge.h"

#include <string.h>

#include "base/str.h"

/* ---- {"$replace": ...}, {"$remove": [...]} ---- */

static const struct value *operation(const struct value *v)
{
	for (size_t i = 0; v->kind == JSON_OBJECT && i < v->n; i++)
		if (v->v[i]->key[0] == '$' && !str_eq(v->v[i]->key, "$schema")) /* editors' */
			return v->v[i];
	return NULL;
}

static void check_operation(const struct value *v, const struct value *op)
{
	if (v->n > 1)
		value_fault(op, (struct fault){.code = SV_CONFLICT, .at_key = true},
			"'%s' stands alone in its object", op->key);
	else if (!str_eq(op->key, "$replace") && !str_eq(op->key, "$remove"))
		value_fault(op,
			(struct fault){.code = SV_UNKNOWN,
				.at_key = true,
				.expected = "\"$replace\" or \"$remove\""},
			"unknown operation '%s'", op->key);
}

static struct value *copy(struct merge *m, const struct value *v)
{
	return arena_dup(m->arena, v, sizeof(*v));
}

/* inner in the place of the member v, whose name it gets. */
static struct value *instead(struct merge *m, const struct value *v, const struct value *inner)
{
	struct value *r = copy(m, inner);

	r->key = v->key;
	r->key_at = v->key_at;
	r->up = v->up;
	r->index = v->index;
	return r;
}

static struct value *nothing(struct merge *m, const struct value *v, const struct key *k)
{
	struct value *r = copy(m, v);

	r->kind = k->kind == V_PAIRS || k->kind == V_OBJECT || k->kind == V_NAMED ? JSON_OBJECT
										  : JSON_ARRAY;
	r->n = r->cap = 0;
	r->v = NULL;
	return r;
}

/* A value on top of nothing. */
static struct value *settle(struct merge *m, struct value *v, const struct key *k, bool quiet)
{
	const struct value *op = k->kind == V_JSON ? NULL : operation(v);

	if (op) {
		if (!quiet)
			check_operation(v, op);
		if (str_eq(op->key, "$replace")) {
			struct value *inner = instead(m, v, op);

			return settle(m, inner, k, quiet);
		}
		if (!quiet && str_eq(op->key, "$remove"))
			value_fault(op, (struct fault){.code = SV_CONFLICT, .at_key = true},
				"there is nothing inherited here to remove from");
		return nothing(m, v, k);
	}
	if (k->kind == V_JSON || (v->kind != JSON_OBJECT && v->kind != JSON_ARRAY))
		return v;
	for (size_t i = 0; i < v->n; i++) {
		struct key child = schema_child(k, v->v[i]->key);

		if (!child.partial || quiet) /* modes keep theirs */
			v->v[i] = settle(m, v->v[i], &child, quiet);
	}
	return v;
}

void merge_settle_modes(struct merge *m, struct value *modes, const struct key *k)
{
	settle(m, modes, k, true);
}

/* Does the element (or member) v answer to this id, text or name? */
static bool is_called(const struct value *v, const char *name)
{
	const char *own = v->key                   ? v->key
			  : v->kind == JSON_OBJECT ? value_text_of(v, "id")
						   : value_text(v);

	return own && str_eq(own, name);
}

static struct value *without(struct merge *m, const struct value *under, const struct value *op)
{
	struct value *r = copy(m, under);

	if (op->kind != JSON_ARRAY) {
		value_fault(op, (struct fault){.code = SV_TYPE, .expected = "an array of strings"},
			"wrong type");
		return r;
	}
	if (op->n > SCHEMA_ITEMS / 10) {
		value_fault(op, (struct fault){.code = SV_LIMIT}, "%zu items; at most %d", op->n,
			SCHEMA_ITEMS / 10);
		return r;
	}
	r->v = arena_dup(m->arena, r->v ? (void *)r->v : "", r->n * sizeof(*r->v));
	r->cap = r->n;
	for (size_t i = 0; i < op->n; i++) {
		const char *name = value_text(op->v[i]);
		size_t n = 0, before = r->n;

		for (size_t x = 0; name && x < before; x++)
			if (!is_called(r->v[x], name))
				r->v[n++] = r->v[x];
		r->n = name ? n : before;
		if (!name)
			value_fault(op->v[i],
				(struct fault){.code = SV_TYPE, .expected = "a string"},
				"wrong type");
		else if (n == before)
			value_fault(op->v[i], (struct fault){.code = SV_CONFLICT},
				"nothing inherited is called '%s'", name);
	}
	return r;
}

static struct value *operate(struct merge *m, struct value *under, struct value *over,
	const struct value *op, const struct key *k)
{
	check_operation(over, op);
	if (str_eq(op->key, "$replace"))
		return settle(m, instead(m, over, op), k, false);
	if (str_eq(op->key, "$remove") && (under->kind == JSON_ARRAY || under->kind == JSON_OBJECT))
		return without(m, under, op);
	if (str_eq(op->key, "$remove"))
		value_fault(op, (struct fault){.code = SV_CONFLICT, .at_key = true},
			"what is inherited here has no elements");
	return under;
}

/* ---- objects and arrays ---- */

/* under's members at over's place: children keep their way up to the document they are from. */
static struct value *at_place_of(
	struct merge *m, const struct value *under, const struct value *over)
{
	struct value *r = copy(m, over);

	r->n = r->cap = under->n;
	r->v = arena_dup(m->arena, under->v ? (void *)under->v : "", under->n * sizeof(*r->v));
	return r;
}

static struct value *merge_objects(
	struct merge *m, struct value *under, struct value *over, const struct key *k)
{
	struct value *r = at_place_of(m, under, over);
	size_t n, fresh = 0;
	struct value_slot *slots = value_slots(r, SLOT_KEY, &n);
	struct value **added = mem_array(over->n + 1, sizeof(struct value *));

	for (size_t i = 0; i < over->n; i++) {
		struct value *o = over->v[i], **slot = value_slot_find(slots, n, o->key);
		struct key child = schema_child(k, o->key);

		if (slot)
			*slot = merge_values(m, *slot, o, &child);
		else
			added[fresh++] = merge_values(m, NULL, o, &child);
	}
	for (size_t i = 0; i < fresh; i++)
		value_add(m->arena, r, added[i]);
	free(slots);
	free(added);
	return r;
}

static struct value *merge_arrays(
	struct merge *m, struct value *under, struct value *over, const struct key *k)
{
	struct value *r = at_place_of(m, under, over);
	struct key child = schema_child(k, NULL);
	size_t n, fresh = 0;
	struct value_slot *slots = value_slots(r, k->set ? SLOT_TEXT : SLOT_ID, &n);
	struct value **added = mem_array(over->n + 1, sizeof(struct value *));

	for (size_t i = 0; i < over->n; i++) {
		struct value *o = over->v[i];
		const char *key = k->set ? value_text(o) : value_text_of(o, "id");
		struct value **slot = key ? value_slot_find(slots, n, key) : NULL;

		if (!slot)
			added[fresh++] = merge_values(m, NULL, o, &child);
		else if (!k->set)
			*slot = merge_values(m, *slot, o, &child);
	}
	for (size_t i = 0; i < fresh; i++)
		value_add(m->arena, r, added[i]);
	free(slots);
	free(added);
	return r;
}

struct value *merge_values(
	struct merge *m, struct value *under, struct value *over, const struct key *k)
{
	const struct value *op = k->kind == V_JSON ? NULL : operation(over);
	bool outer = m->literal;
	struct value *r;

	m->literal = outer || k->partial;
	if (m->literal && (!under || op || operation(under)))
		r = over;
	else if (!under)
		r = settle(m, over, k, false);
	else if (op)
		r = operate(m, under, over, op, k);
	else if (k->kind != V_JSON && under->kind == JSON_OBJECT && over->kind == JSON_OBJECT)
		r = merge_objects(m, under, over, k);
	else if (k->kind != V_JSON && under->kind == JSON_ARRAY && over->kind == JSON_ARRAY &&
		 !m->mode)
		r = merge_arrays(m, under, over, k);
	else
		r = settle(m, over, k, false);
	m->literal = outer;
	return r;
}
