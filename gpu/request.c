#include "gpu/request.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

enum { TEXT_MAX = 4096, NAME_MAX_ = 96 };

static bool is_name(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr(":.-/_", s[i]))
			return false;
	return n > 0 && n < NAME_MAX_;
}

static int bad(const char *text, struct err *e)
{
	char shown[STR_SHOWN];

	err_set(e, ERR_USAGE, "'%s' names no GPU", str_shown(text, shown));
	return err_hint(e,
		"all, none, a number, or a list of: index (device=0), 0:1 (a MIG device), "
		"UUID, PCI bus id; svrun gpu ls shows them");
}

static void add_name(struct gpu_request *r, const char *name, size_t n)
{
	const char **grown = arena_alloc(&r->mem, (r->names.n + 1) * sizeof(*grown));

	for (size_t i = 0; i < r->names.n; i++)
		if (strlen(r->names.v[i]) == n && memcmp(r->names.v[i], name, n) == 0)
			return;
	if (r->names.n)
		memcpy(grown, r->names.v, r->names.n * sizeof(*grown));
	grown[r->names.n++] = arena_strndup(&r->mem, name, n);
	r->names.v = grown;
}

static int add_names(struct gpu_request *r, const char *list, struct err *e)
{
	for (const char *s = list; s;) {
		size_t n = strcspn(s, ",");

		if (!is_name(s, n))
			return bad(list, e);
		if (r->names.n == GPUS_MAX)
			return err_set(e, ERR_USAGE, "more than %d names", GPUS_MAX);
		add_name(r, s, n);
		s = s[n] ? s + n + 1 : NULL;
	}
	return 0;
}

static int add_count(struct gpu_request *r, const char *text, struct err *e)
{
	uint64_t v;

	if (str_eq(text, "all") || str_eq(text, "-1")) {
		r->all = true;
		return 0;
	}
	if (str_u64(text, GPUS_MAX, &v) < 0 || r->count + v > GPUS_MAX)
		return bad(text, e);
	if (v == 0) {
		err_set(e, ERR_USAGE, "0 is no number of GPUs");
		return err_hint(e, "\"device=0\" is the GPU of index 0, \"none\" is no GPU");
	}
	r->count += (uint32_t)v;
	return 0;
}

static bool all_digits(const char *s)
{
	return *s && s[strspn(s, "0123456789")] == '\0';
}

static int add(struct gpu_request *r, const char *text, struct err *e)
{
	if (str_eq(text, "all"))
		r->all = true;
	else if (str_eq(text, "none"))
		r->none = true;
	else if (str_starts(text, "device="))
		return add_names(r, text + strlen("device="), e);
	else if (str_starts(text, "count="))
		return add_count(r, text + strlen("count="), e);
	else if (all_digits(text))
		return add_count(r, text, e);
	else
		return add_names(r, text, e);
	return 0;
}

int gpu_request_parse(struct gpu_request *r, const char *text, struct err *e)
{
	size_t n = strlen(text);
	/* Docker's own syntax is a line of CSV: '"device=0,1"' with the quotes. */
	bool quoted = n >= 2 && text[0] == '"' && text[n - 1] == '"';
	char word[TEXT_MAX];

	if (n >= sizeof(word))
		return err_set(e, ERR_USAGE, "longer than %d bytes", TEXT_MAX - 1);
	snprintf(word, sizeof(word), "%.*s", (int)(quoted ? n - 2 : n), text + quoted);
	r->given = true;
	if (add(r, word, e) < 0)
		return -1;
	if (r->none && (r->all || r->count || r->names.n))
		return err_set(e, ERR_USAGE, "\"none\" and GPUs at once");
	if (r->all && r->count)
		return err_set(e, ERR_USAGE, "\"all\" and a number at once");
	return 0;
}

void gpu_request_fini(struct gpu_request *r)
{
	arena_fini(&r->mem);
	*r = (struct gpu_request){0};
}
