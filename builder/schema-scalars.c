/* Values that hold no other values, and no free text. */
#include "builder/schema-read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static const char *choices_text(struct arena *a, const struct choice *c)
{
	char text[512] = "";
	size_t n = 0;

	for (size_t i = 0; c[i].name && n < sizeof(text); i++) {
		const char *sep = i ? ", " : c[1].name ? "one of " : "";

		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\"%s\"", sep, c[i].name);
	}
	return arena_strdup(a, text);
}

static const struct choice *read_choice(struct reader *r, const struct key *k, const json_t *v)
{
	const char *s = json_string_value(v);

	for (const struct choice *c = k->choices; s && c->name; c++)
		if (str_eq(c->name, s))
			return c;
	reader_fault(r, NULL,
		(struct fault){.code = s ? SV_VALUE : SV_TYPE,
			.expected = choices_text(r->arena, k->choices),
			.got = v},
		s ? "not one of the values" : "wrong type");
	return NULL;
}

static void read_word(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	const struct choice *c = read_choice(r, k, v);

	if (c && out)
		memcpy(out, &c->name, sizeof(c->name));
}

static void read_enum(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	const struct choice *c = read_choice(r, k, v);
	bool yes = c && c->value != 0;

	if (c && out && k->width == sizeof(yes))
		memcpy(out, &yes, sizeof(yes));
	else if (c && out)
		memcpy(out, &c->value, sizeof(c->value));
}

static void read_bool(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	bool b = json_is_true(v);

	(void)k;
	if (!json_is_boolean(v))
		reader_wrong_type(r, "true or false", v);
	else if (out)
		memcpy(out, &b, sizeof(b));
}

static bool integer_ok(struct reader *r, const struct key *k, const json_t *v)
{
	json_int_t n = json_integer_value(v);

	if (!json_is_integer(v)) {
		reader_wrong_type(r, "an integer", v);
		return false;
	}
	if (n >= 0 && (uint64_t)n >= k->min && (uint64_t)n <= k->max)
		return true;
	reader_fault(r, NULL,
		(struct fault){.code = SV_VALUE,
			.expected =
				arena_printf(r->arena, "%" PRIu64 " to %" PRIu64, k->min, k->max),
			.got = v},
		"out of range");
	return false;
}

static void read_integer(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	json_int_t n = json_integer_value(v);
	uint32_t narrow = (uint32_t)n;

	if (!integer_ok(r, k, v) || !out)
		return;
	if (k->width == sizeof(narrow))
		memcpy(out, &narrow, sizeof(narrow));
	else
		memcpy(out, &n, sizeof(n));
}

static void read_signed(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	int64_t n = json_integer_value(v);

	(void)k;
	if (!json_is_integer(v))
		reader_wrong_type(r, "an integer", v);
	else if (out)
		memcpy(out, &n, sizeof(n));
}

static void read_number(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	double n = json_number_value(v);

	(void)k;
	if (!json_is_number(v))
		reader_wrong_type(r, "a number", v);
	else if (out)
		memcpy(out, &n, sizeof(n));
}

static void read_json(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	(void)r;
	(void)k;
	if (out)
		memcpy(out, &v, sizeof(v));
}

static void read_mode(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	const char *s = json_string_value(v);
	uint32_t mode;

	(void)k;
	if (!s || strlen(s) != 4 || strspn(s, "01234567") != 4) {
		reader_fault(r, NULL,
			(struct fault){.code = s ? SV_VALUE : SV_TYPE,
				.expected = "a string of four octal digits, like \"0644\"",
				.got = v},
			s ? "not a mode" : "wrong type");
		return;
	}
	mode = (uint32_t)strtoul(s, NULL, 8);
	if (out)
		memcpy(out, &mode, sizeof(mode));
}

static void read_hash(struct reader *r, const json_t *v, bool prefix, void *out)
{
	static const struct digest zero;
	const char *s = json_string_value(v);
	struct digest d;

	if (!s || (prefix ? digest_parse(&d, s, NULL) : digest_from_hex(&d, s)) < 0) {
		reader_fault(r, NULL,
			(struct fault){.code = s ? SV_VALUE : SV_TYPE,
				.expected = prefix ? "sha256: and 64 lower-case hex digits"
						   : "64 lower-case hex digits",
				.got = v},
			s ? "not a sha256" : "wrong type");
		return;
	}
	if (digest_eq(&d, &zero))
		reader_fault(r, NULL,
			(struct fault){
				.code = SV_PLACEHOLDER, .hint = "write the file's real sha256"},
			"an all-zero digest is a placeholder");
	else if (out)
		memcpy(out, &d, sizeof(d));
}

static void read_sha256(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	(void)k;
	read_hash(r, v, false, out);
}

static void read_digest(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	(void)k;
	read_hash(r, v, true, out);
}

void schema_read_scalar(struct reader *r, const struct key *k, const json_t *v, void *out)
{
	static void (*const readers[])(
		struct reader *, const struct key *, const json_t *, void *) = {
		[V_WORD] = read_word,
		[V_ENUM] = read_enum,
		[V_BOOL] = read_bool,
		[V_INTEGER] = read_integer,
		[V_SIGNED] = read_signed,
		[V_NUMBER] = read_number,
		[V_MODE] = read_mode,
		[V_SHA256] = read_sha256,
		[V_DIGEST] = read_digest,
		[V_JSON] = read_json,
	};

	readers[k->kind](r, k, v, out);
}
