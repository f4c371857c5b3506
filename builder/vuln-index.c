#include "builder/vuln-index.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "images/digest.h"

static const char magic[] = "svrun.vuln/1 ";

enum { HEAD = sizeof(magic) - 1 + DIGEST_HEX + 1 };

bool vuln_is_name(const char *s)
{
	size_t n = strnlen(s, VULN_NAME_MAX + 1);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] <= ' ' || s[i] == 0x7f)
			return false;
	return n > 0 && n <= VULN_NAME_MAX;
}

/* ---- making ---- */

void vuln_index_begin(struct vuln_index_maker *m)
{
	*m = (struct vuln_index_maker){.have = json_object()};
}

void vuln_index_abort(struct vuln_index_maker *m)
{
	arena_fini(&m->arena);
	free(m->v);
	json_decref(m->have);
	*m = (struct vuln_index_maker){0};
}

static int add_line(struct vuln_index_maker *m, const char *space, const char *name,
	const char *text, struct err *e)
{
	char shown[STR_SHOWN];

	if (!vuln_is_name(name))
		return err_set(e, ERR_CORRUPT, "'%s' is no name: printable, at most %d bytes",
			str_shown(name, shown), VULN_NAME_MAX);
	m->bytes += strlen(space) + strlen(name) + strlen(text) + 3;
	if (m->n >= VULN_LINES_MAX || m->bytes > VULN_INDEX_MAX - HEAD)
		return err_set(e, ERR_CORRUPT,
			"more than the limit of %d records or %d MiB of them", VULN_LINES_MAX,
			VULN_INDEX_MAX >> 20);
	mem_grow(&m->v, &m->cap, m->n);
	m->v[m->n++] = arena_printf(&m->arena, "%s\t%s\t%s\n", space, name, text);
	return 0;
}

void vuln_index_have(struct vuln_index_maker *m, const char *space)
{
	if (!json_object_get(m->have, space))
		json_object_set_new(m->have, space, json_integer(0));
}

int vuln_index_add(struct vuln_index_maker *m, const char *space, const char *name,
	const json_t *record, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(VULN_INDEX_MAX);
	json_t *count;

	json_text(record, true, &text);
	if (add_line(m, space, name, text.data, e) < 0)
		return -1;
	vuln_index_have(m, space);
	count = json_object_get(m->have, space);
	json_integer_set(count, json_integer_value(count) + 1);
	return 0;
}

int vuln_index_level(struct vuln_index_maker *m, const char *id, enum vuln_level l, struct err *e)
{
	char text[2] = {(char)('0' + l), '\0'};

	return l > VULN_NEGLIGIBLE ? add_line(m, "level", id, text, e) : 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each line once: what two dumps say in the same words is one record. */
static int write_lines(struct vuln_index_maker *m, struct buf *out, struct err *e)
{
	const char *last = "";

	if (m->n)
		qsort(m->v, m->n, sizeof(*m->v), by_text);
	for (size_t i = 0; i < m->n; i++) {
		if (!str_eq(m->v[i], last) && buf_add(out, m->v[i], strlen(m->v[i]), e) < 0)
			return -1;
		last = m->v[i];
	}
	return 0;
}

int vuln_index_end(struct vuln_index_maker *m, struct buf *out, struct err *e)
{
	char hex[DIGEST_HEX + 1];
	const char *space;
	json_t *count;
	struct digest sum;
	int rc = 0;

	json_object_foreach (m->have, space, count) {
		char number[32];

		snprintf(number, sizeof(number), "%" PRIi64, (int64_t)json_integer_value(count));
		rc = rc < 0 ? -1 : add_line(m, "have", space, number, e);
	}
	out->len = 0;
	if (rc == 0)
		rc = buf_reserve(out, HEAD + m->bytes, e);
	if (rc == 0) {
		out->len = HEAD;
		rc = write_lines(m, out, e);
	}
	if (rc == 0) {
		sum = digest_of(out->data + HEAD, out->len - HEAD);
		memcpy(out->data, magic, sizeof(magic) - 1);
		memcpy(out->data + sizeof(magic) - 1, digest_hex(&sum, hex), DIGEST_HEX);
		out->data[HEAD - 1] = '\n';
		out->data[out->len] = '\0';
	}
	vuln_index_abort(m);
	return rc;
}

/* ---- looking ---- */

bool vuln_index_check(const struct buf *text)
{
	char hex[DIGEST_HEX + 1];
	struct digest sum;

	if (text->len < HEAD || memcmp(text->data, magic, sizeof(magic) - 1) != 0 ||
		text->data[HEAD - 1] != '\n' || text->data[text->len - 1] != '\n')
		return false;
	sum = digest_of(text->data + HEAD, text->len - HEAD);
	return memcmp(text->data + sizeof(magic) - 1, digest_hex(&sum, hex), DIGEST_HEX) == 0;
}

/* The first line that is not before the prefix. */
static const char *lower_bound(const struct buf *text, const char *prefix)
{
	const char *from = text->data + HEAD, *to = text->data + text->len;
	size_t n = strlen(prefix);

	while (from < to) {
		const char *mid = from + (to - from) / 2;

		while (mid > from && mid[-1] != '\n')
			mid--;
		if (strncmp(mid, prefix, n) < 0)
			from = (const char *)memchr(mid, '\n', (size_t)(to - mid)) + 1;
		else
			to = mid;
	}
	return from;
}

int vuln_index_each(const struct buf *text, const char *space, const char *name,
	int (*fn)(void *ctx, const json_t *record, struct err *e), void *ctx, struct err *e)
{
	auto_free char *prefix = mem_printf("%s\t%s\t", space, name);
	const char *end = text->data + text->len;
	size_t n = strlen(prefix);

	for (const char *line = lower_bound(text, prefix), *stop;
		line < end && strncmp(line, prefix, n) == 0; line = stop + 1) {
		auto_json json_t *record = NULL;

		stop = memchr(line, '\n', (size_t)(end - line));
		record = json_parse(line + n, (size_t)(stop - line) - n, e);
		if (!record || fn(ctx, record, e) < 0)
			return -1;
	}
	return 0;
}

enum vuln_level vuln_index_level_of(const struct buf *text, const char *id)
{
	auto_free char *prefix = mem_printf("level\t%s\t", id);
	const char *end = text->data + text->len;
	enum vuln_level worst = VULN_UNKNOWN;
	size_t n = strlen(prefix);

	for (const char *line = lower_bound(text, prefix);
		line < end && strncmp(line, prefix, n) == 0; line += n + 2) {
		enum vuln_level l = (enum vuln_level)(line[n] - '0');

		worst = l > worst && l < VULN_LEVELS ? l : worst;
	}
	return worst;
}

bool vuln_index_has(const struct buf *text, const char *space)
{
	auto_free char *prefix = mem_printf("have\t%s\t", space);
	const char *line = lower_bound(text, prefix);

	return line < text->data + text->len && str_starts(line, prefix);
}
