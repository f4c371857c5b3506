#include "builder/python-tags.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum {
	GLIBC_MINOR_MAX = 99, /* nothing from outside makes lists longer than this */
	PYTHON_MINOR_MAX = 99,
	PLATFORMS_MAX = 2 * GLIBC_MINOR_MAX + 8,
	TAG_BYTES = 128,
	SETS_MAX = 256, /* tags that the sets of one file name stand for */
};

struct list {
	struct strings s;
	struct arena *a;
};

static void add(struct list *l, const char *python, const char *abi, const char *platform)
{
	l->s.v[l->s.n++] = arena_printf(l->a, "%s-%s-%s", python, abi, platform);
}

/* ---- platforms ---- */

static void add_platform(struct list *l, const char *name, const char *machine)
{
	l->s.v[l->s.n++] = arena_printf(l->a, "%s_%s", name, machine);
}

/* Of glibc 2 only: there is no other yet. Before PEP 600 three of its versions had names. */
static void add_manylinux(struct list *l, const struct python_platform *p)
{
	static const struct {
		unsigned minor;
		const char *name;
	} old[] = {{17, "manylinux2014"}, {12, "manylinux2010"}, {5, "manylinux1"}};
	unsigned oldest = str_eq(p->machine, "x86_64") ? 5 : 17;
	unsigned newest = p->glibc_minor < GLIBC_MINOR_MAX ? p->glibc_minor : GLIBC_MINOR_MAX;

	for (unsigned minor = newest; p->glibc_major == 2 && minor >= oldest; minor--) {
		char name[32];

		snprintf(name, sizeof(name), "manylinux_2_%u", minor);
		add_platform(l, name, p->machine);
		for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++)
			if (old[i].minor == minor)
				add_platform(l, old[i].name, p->machine);
	}
}

static void add_musllinux(struct list *l, const struct python_platform *p)
{
	unsigned newest = p->musl_minor < GLIBC_MINOR_MAX ? p->musl_minor : GLIBC_MINOR_MAX;

	for (unsigned minor = newest + 1; p->musl_major == 1 && minor-- > 0;) {
		char name[32];

		snprintf(name, sizeof(name), "musllinux_1_%u", minor);
		add_platform(l, name, p->machine);
	}
}

/* ---- tags ---- */

static void add_all(
	struct list *l, const char *python, const char *abi, const struct strings *platforms)
{
	for (size_t i = 0; i < platforms->n; i++)
		add(l, python, abi, platforms->v[i]);
}

static char *python_tag(char out[32], const char *prefix, unsigned major, unsigned minor)
{
	snprintf(out, 32, "%s%u%u", prefix, major, minor);
	return out;
}

static void add_cpython(
	struct list *l, unsigned major, unsigned minor, const struct strings *platforms)
{
	char python[32];

	python_tag(python, "cp", major, minor);
	if (major == 3 && minor < 8) /* with pymalloc, which was a choice then */
		add_all(l, python, arena_printf(l->a, "%sm", python), platforms);
	else
		add_all(l, python, python, platforms);
	add_all(l, python, "abi3", platforms);
	add_all(l, python, "none", platforms);
	for (unsigned older = minor; older-- > 2;)
		add_all(l, python_tag(python, "cp", major, older), "abi3", platforms);
}

/* "py311", "py3", "py310", "py39" ... */
static void add_python(
	struct list *l, unsigned major, unsigned minor, const struct strings *platforms)
{
	const char *one[] = {"any"};
	const struct strings any = {one, 1};
	char python[32];

	if (!platforms)
		platforms = &any;
	add_all(l, python_tag(python, "py", major, minor), "none", platforms);
	snprintf(python, sizeof(python), "py%u", major);
	add_all(l, python, "none", platforms);
	for (unsigned older = minor; older-- > 0;)
		add_all(l, python_tag(python, "py", major, older), "none", platforms);
}

struct strings python_tags(const struct python_platform *p, struct arena *a)
{
	unsigned minor = p->minor < PYTHON_MINOR_MAX ? p->minor : PYTHON_MINOR_MAX;
	struct list platforms = {.a = a}, l = {.a = a};
	char python[32];

	platforms.s.v = arena_alloc(a, PLATFORMS_MAX * sizeof(char *));
	add_manylinux(&platforms, p);
	add_musllinux(&platforms, p);
	add_platform(&platforms, "linux", p->machine);
	/* 3 + minor of cpXY, 2 + minor of pyXY with each platform; pyXY and cpXY with "any" */
	l.s.v = arena_alloc(a, (5 + 2 * minor) * (platforms.s.n + 1) * sizeof(char *));
	add_cpython(&l, p->major, minor, &platforms.s);
	add_python(&l, p->major, minor, &platforms.s);
	add(&l, python_tag(python, "cp", p->major, minor), "none", "any");
	add_python(&l, p->major, minor, NULL);
	return l.s;
}

/* ---- a wheel's ---- */

/* The next word of a compressed set; false at its end. */
static bool next_tag(const char **s, char out[TAG_BYTES])
{
	size_t n = strcspn(*s, ".");

	if (n == 0 || n >= TAG_BYTES)
		return false;
	memcpy(out, *s, n);
	out[n] = '\0';
	*s += n + ((*s)[n] == '.');
	return true;
}

static int rank_of(const struct strings *tags, const char *tag, int best)
{
	size_t end = best < 0 ? tags->n : (size_t)best;

	for (size_t i = 0; i < end; i++)
		if (str_eq(tags->v[i], tag))
			return (int)i;
	return best;
}

int python_tags_rank(const struct strings *tags, const struct wheel_name *w)
{
	char python[TAG_BYTES], abi[TAG_BYTES], platform[TAG_BYTES], tag[3 * TAG_BYTES];
	int best = -1;
	unsigned n = 0;

	for (const char *x = w->python; next_tag(&x, python);)
		for (const char *y = w->abi; next_tag(&y, abi);)
			for (const char *z = w->platform; next_tag(&z, platform);) {
				if (++n > SETS_MAX)
					return best;
				snprintf(tag, sizeof(tag), "%s-%s-%s", python, abi, platform);
				best = rank_of(tags, tag, best);
			}
	return best;
}
