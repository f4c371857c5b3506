#include "builder/scan-version.h"

#include <string.h>

#include "base/str.h"
#include "builder/pep440.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t digits(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && is_digit(s[i]))
		i++;
	return i;
}

/* Of two runs of digits, of any length. */
static int compare_digits(const char *a, size_t n, const char *b, size_t m)
{
	for (; n && *a == '0'; n--)
		a++;
	for (; m && *b == '0'; m--)
		b++;
	return n != m ? (n < m ? -1 : 1) : n ? memcmp(a, b, n) : 0;
}

/* ---- Debian ---- */

struct part {
	const char *p;
	size_t n;
};

struct deb {
	struct part epoch, upstream, revision;
};

static bool is_deb_text(struct part t, const char *more)
{
	for (size_t i = 0; i < t.n; i++)
		if (!is_digit(t.p[i]) && !is_letter(t.p[i]) && !strchr(more, t.p[i]))
			return false;
	return true;
}

static int split_deb(const char *s, struct deb *d)
{
	const char *colon = strchr(s, ':'), *dash = strrchr(s, '-');

	*d = (struct deb){0};
	if (colon) {
		d->epoch = (struct part){s, (size_t)(colon - s)};
		s = colon + 1;
		if (d->epoch.n == 0 || digits(d->epoch.p, d->epoch.n) != d->epoch.n)
			return -1;
	}
	if (dash && dash >= s)
		d->revision = (struct part){dash + 1, strlen(dash + 1)};
	d->upstream = (struct part){s, dash && dash >= s ? (size_t)(dash - s) : strlen(s)};
	return d->upstream.n && is_deb_text(d->upstream, ".+-~:") && is_deb_text(d->revision, ".+~")
		       ? 0
		       : -1;
}

/* What is no digit: a tilde before the end, the end before letters, letters before the rest. */
static int rank(const struct part *t)
{
	if (t->n == 0 || is_digit(*t->p))
		return 0;
	if (*t->p == '~')
		return -1;
	return is_letter(*t->p) ? *t->p : *t->p + 256;
}

static int compare_deb_part(struct part a, struct part b)
{
	while (a.n || b.n) {
		size_t x, y;
		int c;

		while ((a.n && !is_digit(*a.p)) || (b.n && !is_digit(*b.p))) {
			c = rank(&a) - rank(&b);
			if (c)
				return c;
			a.p++, a.n--;
			b.p++, b.n--;
		}
		x = digits(a.p, a.n);
		y = digits(b.p, b.n);
		c = compare_digits(a.p, x, b.p, y);
		if (c)
			return c;
		a.p += x, a.n -= x;
		b.p += y, b.n -= y;
	}
	return 0;
}

static int compare_deb(const char *a, const char *b, int *order)
{
	struct deb x, y;

	if (split_deb(a, &x) < 0 || split_deb(b, &y) < 0)
		return -1;
	*order = compare_digits(x.epoch.p, x.epoch.n, y.epoch.p, y.epoch.n);
	if (!*order)
		*order = compare_deb_part(x.upstream, y.upstream);
	if (!*order)
		*order = compare_deb_part(x.revision, y.revision);
	return 0;
}

/* ---- Python ---- */

static int compare_pypi(const char *a, const char *b, int *order)
{
	struct pep440 x, y;

	if (pep440_parse(&x, a, strlen(a)) < 0 || pep440_parse(&y, b, strlen(b)) < 0)
		return -1;
	*order = pep440_compare(&x, &y);
	return 0;
}

/* ---- npm ---- */

enum { CORE = 3 };

struct semver {
	struct part core[CORE], pre;
};

static bool is_pre(struct part t)
{
	if (t.n == 0)
		return false;
	for (size_t i = 0; i < t.n; i++)
		if (!is_digit(t.p[i]) && !is_letter(t.p[i]) && t.p[i] != '-' && t.p[i] != '.')
			return false;
	return true;
}

/* "1.2.3-rc.1+build"; advisories also say "1.2" and "0", whose missing numbers are zero. */
static int split_semver(const char *s, struct semver *v)
{
	size_t i;

	*v = (struct semver){0};
	if (*s == 'v' || *s == '=')
		s++;
	for (i = 0; i < CORE; i++) {
		v->core[i] = (struct part){s, digits(s, strlen(s))};
		if (v->core[i].n == 0)
			return -1;
		s += v->core[i].n;
		if (*s != '.')
			break;
		s++;
	}
	if (i == CORE)
		return -1;
	if (*s == '-') {
		v->pre = (struct part){s + 1, strcspn(s + 1, "+")};
		if (!is_pre(v->pre))
			return -1;
		s += 1 + v->pre.n;
	}
	return *s == '\0' || *s == '+' ? 0 : -1;
}

/* The next identifier, up to a dot. */
static struct part next_identifier(struct part *t)
{
	struct part out = {t->p, 0};

	while (out.n < t->n && t->p[out.n] != '.')
		out.n++;
	t->p += out.n;
	t->n -= out.n;
	if (t->n) {
		t->p++;
		t->n--;
	}
	return out;
}

static int compare_identifiers(struct part a, struct part b)
{
	bool x = digits(a.p, a.n) == a.n, y = digits(b.p, b.n) == b.n;
	int c;

	if (x != y)
		return x ? -1 : 1;
	if (x)
		return compare_digits(a.p, a.n, b.p, b.n);
	c = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);
	return c || a.n == b.n ? c : a.n < b.n ? -1 : 1;
}

/* A version without a pre-release comes after all with one. */
static int compare_pres(struct part a, struct part b)
{
	if (!a.n || !b.n)
		return (int)(a.n == 0) - (int)(b.n == 0);
	while (a.n && b.n) {
		int c = compare_identifiers(next_identifier(&a), next_identifier(&b));

		if (c)
			return c;
	}
	return (int)(a.n != 0) - (int)(b.n != 0);
}

static int compare_npm(const char *a, const char *b, int *order)
{
	struct semver x, y;

	if (split_semver(a, &x) < 0 || split_semver(b, &y) < 0)
		return -1;
	*order = 0;
	for (size_t i = 0; i < CORE && !*order; i++)
		*order = compare_digits(x.core[i].p, x.core[i].n, y.core[i].p, y.core[i].n);
	if (!*order)
		*order = compare_pres(x.pre, y.pre);
	return 0;
}

int version_compare(enum version_kind k, const char *a, const char *b, int *order)
{
	static int (*const compare[])(const char *a, const char *b, int *order) = {
		[VERSION_DEB] = compare_deb,
		[VERSION_PYPI] = compare_pypi,
		[VERSION_NPM] = compare_npm,
	};

	*order = 0;
	if (strlen(a) > VERSION_MAX || strlen(b) > VERSION_MAX)
		return -1;
	return compare[k](a, b, order);
}
