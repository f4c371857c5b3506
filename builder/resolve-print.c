/* `svrun image resolve`. */
#include "builder/resolve.h"

#include <string.h>

#include "builder/document.h"

struct printing {
	const struct resolved *r;
	struct buf *out;
	struct buf pointer;
	json_t *origins;
};

static void put_place(struct printing *p)
{
	const char *file, *pointer = p->pointer.data ? p->pointer.data : "";
	int line, col;

	resolved_place(p->r, pointer, false, &file, &line, &col);
	buf_printf(p->out, "  # %s:%d", file, line);
}

static void put_text(struct printing *p, const json_t *v)
{
	char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);

	buf_printf(p->out, "%s", text ? text : "null");
	free(text);
}

static void put_value(struct printing *p, json_t *v, int depth, bool more);

static void put_member(
	struct printing *p, const char *name, size_t i, json_t *v, int depth, bool more)
{
	size_t len = name ? pointer_push(&p->pointer, name) : pointer_push_index(&p->pointer, i);

	buf_printf(p->out, "%*s", 2 * depth, "");
	if (name) {
		json_t *key = json_string(name);

		put_text(p, key);
		buf_printf(p->out, ": ");
		json_decref(key);
	}
	put_value(p, v, depth, more);
	pointer_pop(&p->pointer, len);
}

static void put_value(struct printing *p, json_t *v, int depth, bool more)
{
	size_t i = 0, n = json_is_object(v) ? json_object_size(v) : json_array_size(v);
	const char *name, *comma = more ? "," : "";
	json_t *member;

	if (n == 0) {
		put_text(p, v);
		buf_printf(p->out, "%s", comma);
		put_place(p);
		buf_printf(p->out, "\n");
		return;
	}
	buf_printf(p->out, json_is_object(v) ? "{" : "[");
	put_place(p);
	buf_printf(p->out, "\n");
	if (json_is_array(v))
		json_array_foreach (v, i, member)
			put_member(p, NULL, i, member, depth + 1, i + 1 < n);
	else
		json_object_foreach (v, name, member)
			put_member(p, name, 0, member, depth + 1, ++i < n);
	buf_printf(p->out, "%*s%s%s\n", 2 * depth, "", json_is_object(v) ? "}" : "]", comma);
}

static void collect(struct printing *p, json_t *v)
{
	const char *file, *name, *pointer = p->pointer.data ? p->pointer.data : "";
	int line, col;
	size_t i;
	json_t *member;

	resolved_place(p->r, pointer, false, &file, &line, &col);
	json_object_set_new(p->origins, pointer, json_sprintf("%s:%d:%d", file, line, col));
	json_array_foreach (v, i, member) {
		size_t len = pointer_push_index(&p->pointer, i);

		collect(p, member);
		pointer_pop(&p->pointer, len);
	}
	json_object_foreach (v, name, member) {
		size_t len = pointer_push(&p->pointer, name);

		collect(p, member);
		pointer_pop(&p->pointer, len);
	}
}

void resolved_print(const struct resolved *r, bool json, struct buf *out)
{
	struct printing p = {.r = r, .out = out, .pointer = BUF_INIT(8 << 20)};
	json_t *root = resolved_root(r);

	if (json) {
		auto_json json_t *o = json_object();

		p.origins = json_object();
		collect(&p, root);
		json_object_set(o, "document", root);
		json_object_set_new(o, "origins", p.origins);
		json_text(o, false, out);
	} else {
		put_value(&p, root, 0, false);
	}
	buf_fini(&p.pointer);
}
