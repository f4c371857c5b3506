#include "builder/pep440.h"

#include <string.h>

#include "base/str.h"

/* ---- reading ---- */

struct scan {
	struct pep440 *v;
	size_t at, n;
};

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_separator(char c)
{
	return c == '.' || c == '-' || c == '_';
}

static char peek(const struct scan *s)
{
	return s->at < s->n ? s->v->text[s->at] : '\0';
}

static bool take(struct scan *s, char c)
{
	if (s->at >= s->n || peek(s) != c)
		return false;
	s->at++;
	return true;
}

/* false: there are no digits here. */
static bool take_number(struct scan *s, struct pep440_span *number)
{
	const char *text = s->v->text;
	size_t start = s->at;

	while (is_digit(peek(s)))
		s->at++;
	*number = (struct pep440_span){.at = (uint16_t)start, .n = (uint16_t)(s->at - start)};
	if (number->n == 0)
		return false;
	while (number->n > 0 && text[number->at] == '0') {
		number->at++;
		number->n--;
	}
	return true;
}

struct spelling {
	const char *word;
	char kind;
};

/* "-rc.1", ".post", "dev2": a separator, one of the words, a separator, a number. The longest
 * spelling of a word comes first in its table. Returns its kind, or 0 and nothing is taken. */
static char take_letters(struct scan *s, const struct spelling *w, struct pep440_span *number)
{
	size_t start = s->at;

	if (is_separator(peek(s)))
		s->at++;
	for (; w->word; w++) {
		size_t n = strlen(w->word);

		if (s->n - s->at < n || memcmp(s->v->text + s->at, w->word, n) != 0)
			continue;
		s->at += n;
		if (is_separator(peek(s)))
			s->at++;
		(void)take_number(s, number); /* an omitted number is zero */
		return w->kind;
	}
	s->at = start;
	return 0;
}

static void take_post(struct scan *s)
{
	static const struct spelling words[] = {{"post", 1}, {"rev", 1}, {"r", 1}, {NULL, 0}};
	size_t start = s->at;

	if (take(s, '-') && take_number(s, &s->v->post)) {
		s->v->has_post = true;
		return;
	}
	s->at = start;
	s->v->has_post = take_letters(s, words, &s->v->post) != 0;
}

static int take_release(struct scan *s)
{
	struct pep440 *v = s->v;
	size_t start = s->at;

	if (!take_number(s, &v->epoch))
		return -1;
	if (!take(s, '!')) {
		v->epoch = (struct pep440_span){0};
		s->at = start;
	}
	do {
		size_t dot = s->at;

		if (v->nrelease == PEP440_PARTS)
			return -1;
		if (take_number(s, &v->release[v->nrelease])) {
			v->nrelease++;
			continue;
		}
		if (v->nrelease == 0)
			return -1;
		s->at = dot - 1; /* the dot begins ".post1" or the like */
		return 0;
	} while (take(s, '.'));
	return 0;
}

static bool is_alnum(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z');
}

static int take_local(struct scan *s)
{
	struct pep440 *v = s->v;

	do {
		struct pep440_span *part = &v->local[v->nlocal];
		bool number = true;

		if (v->nlocal == PEP440_PARTS)
			return -1;
		part->at = (uint16_t)s->at;
		for (; is_alnum(peek(s)); s->at++)
			number = number && is_digit(peek(s));
		part->n = (uint16_t)(s->at - part->at);
		if (part->n == 0)
			return -1;
		while (number && part->n > 1 && v->text[part->at] == '0') {
			part->at++;
			part->n--;
		}
		v->nlocal++;
	} while (is_separator(peek(s)) && s->at++ < s->n);
	return 0;
}

int pep440_parse(struct pep440 *v, const char *text, size_t n)
{
	static const struct spelling pre[] = {{"alpha", 'a'}, {"a", 'a'}, {"beta", 'b'}, {"b", 'b'},
		{"rc", 'r'}, {"c", 'r'}, {"preview", 'r'}, {"pre", 'r'}, {NULL, 0}};
	static const struct spelling dev[] = {{"dev", 1}, {NULL, 0}};
	struct scan s = {.v = v};

	while (n > 0 && is_blank(text[0])) {
		text++;
		n--;
	}
	while (n > 0 && is_blank(text[n - 1]))
		n--;
	if (n == 0 || n > PEP440_MAX || memchr(text, '\0', n))
		return -1;
	*v = (struct pep440){0};
	for (size_t i = 0; i < n; i++)
		v->text[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + 32) : text[i];
	s.n = n;
	(void)take(&s, 'v');
	if (take_release(&s) < 0)
		return -1;
	v->pre_kind = take_letters(&s, pre, &v->pre);
	take_post(&s);
	v->has_dev = take_letters(&s, dev, &v->dev) != 0;
	if (take(&s, '+') && take_local(&s) < 0)
		return -1;
	return s.at == s.n ? 0 : -1;
}

/* ---- order ---- */

static int compare_numbers(
	const struct pep440 *a, struct pep440_span x, const struct pep440 *b, struct pep440_span y)
{
	if (x.n != y.n)
		return x.n < y.n ? -1 : 1;
	return memcmp(a->text + x.at, b->text + y.at, x.n);
}

/* Missing numbers are zero: 1.0 is 1. */
static int compare_releases(const struct pep440 *a, const struct pep440 *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct pep440_span zero = {0};
		int c = compare_numbers(a, i < a->nrelease ? a->release[i] : zero, b,
			i < b->nrelease ? b->release[i] : zero);

		if (c)
			return c;
	}
	return 0;
}

static int compare_bases(const struct pep440 *a, const struct pep440 *b)
{
	int c = compare_numbers(a, a->epoch, b, b->epoch);

	return c ? c : compare_releases(a, b, PEP440_PARTS);
}

/* Of what is behind the release: 1.0.dev0, then 1.0a0 to 1.0rc9, then 1.0 and its posts. */
static int pre_rank(const struct pep440 *v)
{
	if (v->pre_kind)
		return v->pre_kind;
	return v->has_dev && !v->has_post ? 0 : 256;
}

static int compare_local_part(
	const struct pep440 *a, struct pep440_span x, const struct pep440 *b, struct pep440_span y)
{
	bool number = is_digit(a->text[x.at]), other;
	size_t n = x.n < y.n ? x.n : y.n;
	int c;

	for (size_t i = 0; i < x.n; i++)
		number = number && is_digit(a->text[x.at + i]);
	other = true;
	for (size_t i = 0; i < y.n; i++)
		other = other && is_digit(b->text[y.at + i]);
	if (number != other)
		return number ? 1 : -1;
	if (number && x.n != y.n)
		return x.n < y.n ? -1 : 1;
	c = memcmp(a->text + x.at, b->text + y.at, n);
	return c || x.n == y.n ? c : x.n < y.n ? -1 : 1;
}

static int compare_locals(const struct pep440 *a, const struct pep440 *b)
{
	for (size_t i = 0; i < a->nlocal && i < b->nlocal; i++) {
		int c = compare_local_part(a, a->local[i], b, b->local[i]);

		if (c)
			return c;
	}
	return a->nlocal == b->nlocal ? 0 : a->nlocal < b->nlocal ? -1 : 1;
}

static int compare_public(const struct pep440 *a, const struct pep440 *b)
{
	int c = compare_bases(a, b);

	if (c == 0)
		c = pre_rank(a) - pre_rank(b);
	if (c == 0)
		c = compare_numbers(a, a->pre, b, b->pre);
	if (c == 0)
		c = (int)a->has_post - (int)b->has_post;
	if (c == 0)
		c = compare_numbers(a, a->post, b, b->post);
	if (c == 0)
		c = (int)b->has_dev - (int)a->has_dev;
	return c ? c : compare_numbers(a, a->dev, b, b->dev);
}

int pep440_compare(const struct pep440 *a, const struct pep440 *b)
{
	int c = compare_public(a, b);

	return c ? c : compare_locals(a, b);
}

bool pep440_same(const char *a, const char *b)
{
	struct pep440 x, y;

	return pep440_parse(&x, a, strlen(a)) == 0 && pep440_parse(&y, b, strlen(b)) == 0 &&
	       pep440_compare(&x, &y) == 0;
}

/* ---- normal form ---- */

static size_t add(
	char *out, size_t at, const char *word, const struct pep440 *v, struct pep440_span number)
{
	int n = snprintf(out + at, PEP440_TEXT - at, "%s%.*s", word, number.n ? (int)number.n : 1,
		number.n ? v->text + number.at : "0");

	return at + (size_t)n;
}

char *pep440_text(const struct pep440 *v, char out[PEP440_TEXT])
{
	const char *pre = v->pre_kind == 'a' ? "a" : v->pre_kind == 'b' ? "b" : "rc";
	size_t at = 0;

	if (v->epoch.n) {
		at = add(out, at, "", v, v->epoch);
		out[at++] = '!';
	}
	for (size_t i = 0; i < v->nrelease; i++)
		at = add(out, at, i ? "." : "", v, v->release[i]);
	if (v->pre_kind)
		at = add(out, at, pre, v, v->pre);
	if (v->has_post)
		at = add(out, at, ".post", v, v->post);
	if (v->has_dev)
		at = add(out, at, ".dev", v, v->dev);
	for (size_t i = 0; i < v->nlocal; i++)
		at = add(out, at, i ? "." : "+", v, v->local[i]);
	out[at] = '\0';
	return out;
}

/* ---- specifiers ---- */

/* "1.2" of "==1.2.*": release numbers only. */
static int parse_prefix(struct pep440 *v, const char *text, size_t n)
{
	if (pep440_parse(v, text, n) < 0 || v->pre_kind || v->has_post || v->has_dev || v->nlocal)
		return -1;
	return is_digit(text[n - 1]) ? 0 : -1; /* no blank before ".*" */
}

static int has_prefix(const struct pep440 *v, const struct pep440 *prefix, size_t parts)
{
	return compare_numbers(v, v->epoch, prefix, prefix->epoch) == 0 &&
	       compare_releases(v, prefix, parts) == 0;
}

static int equal(const struct pep440 *v, const char *text, size_t n)
{
	struct pep440 want;

	while (n > 0 && is_blank(text[n - 1]))
		n--;
	if (n > 2 && memcmp(text + n - 2, ".*", 2) == 0)
		return parse_prefix(&want, text, n - 2) < 0 ? -1
							    : has_prefix(v, &want, want.nrelease);
	if (pep440_parse(&want, text, n) < 0)
		return -1;
	return want.nlocal ? pep440_compare(v, &want) == 0 : compare_public(v, &want) == 0;
}

static int arbitrary(const struct pep440 *v, const char *text, size_t n)
{
	char normal[PEP440_TEXT];
	size_t len = strlen(pep440_text(v, normal));

	while (n > 0 && is_blank(text[0])) {
		text++;
		n--;
	}
	while (n > 0 && is_blank(text[n - 1]))
		n--;
	for (size_t i = 0; i < n; i++)
		if (is_blank(text[i]) || text[i] == ';' || text[i] == ')')
			return -1;
	return n == len && strncasecmp(normal, text, n) == 0;
}

static bool is_pre(const struct pep440 *v)
{
	return v->pre_kind || v->has_dev;
}

/* "<2" does not take 2.0rc1, ">2" neither 2.0.post1 nor 2.0+local. */
static int ordered(const struct pep440 *v, const char *op, const struct pep440 *want)
{
	if (op[1] == '=')
		return op[0] == '<' ? compare_public(v, want) <= 0 : compare_public(v, want) >= 0;
	if (op[0] == '<')
		return pep440_compare(v, want) < 0 &&
		       !(!is_pre(want) && is_pre(v) && compare_bases(v, want) == 0);
	return pep440_compare(v, want) > 0 &&
	       !(((!want->has_post && v->has_post) || v->nlocal) && compare_bases(v, want) == 0);
}

static int fits_one(const struct pep440 *v, const char *text, size_t n)
{
	static const char *const ops[] = {"===", "==", "~=", "!=", "<=", ">=", "<", ">", NULL};
	struct pep440 want;
	size_t k = 0, len;
	int rc;

	while (ops[k] && (n < strlen(ops[k]) || strncmp(text, ops[k], strlen(ops[k])) != 0))
		k++;
	if (!ops[k])
		return -1;
	len = strlen(ops[k]);
	text += len;
	n -= len;
	if (len == 3)
		return arbitrary(v, text, n);
	if (k == 1 || k == 3) {
		rc = equal(v, text, n);
		return rc < 0 ? -1 : k == 1 ? rc : !rc;
	}
	if (pep440_parse(&want, text, n) < 0 || want.nlocal || (k == 2 && want.nrelease < 2))
		return -1;
	if (k == 2)
		return compare_public(v, &want) >= 0 && has_prefix(v, &want, want.nrelease - 1);
	return ordered(v, ops[k], &want);
}

int pep440_fits(const char *version, const char *specifiers)
{
	struct pep440 v;
	int all = 1;

	if (pep440_parse(&v, version, strlen(version)) < 0)
		return -1;
	for (const char *s = specifiers, *end;; s = end + 1) {
		size_t n;
		int rc;

		end = s + strcspn(s, ",");
		while (s < end && is_blank(*s))
			s++;
		n = (size_t)(end - s);
		rc = n ? fits_one(&v, s, n) : 1;
		if (rc < 0)
			return -1;
		all = all && rc;
		if (!*end)
			return all;
	}
}
