#include "builder/python-target.h"

#include <string.h>

#include "base/str.h"
#include "builder/pep440.h"
#include "builder/python-base.h"
#include "builder/python-scheme.h"
#include "builder/python.h"

enum { OFFERS_SHOWN = 6 };

/* ---- what debs bring ---- */

/* Texts that outlive every lock, for versions that are only part of one in it. */
#define TEN(major, tens)                                                                           \
	major "." tens "0", major "." tens "1", major "." tens "2", major "." tens "3",            \
		major "." tens "4", major "." tens "5", major "." tens "6", major "." tens "7",    \
		major "." tens "8", major "." tens "9"

static const char *lasting(const char *version)
{
	static const char *const known[] = {TEN("3", ""), TEN("3", "1"), TEN("3", "2"),
		TEN("3", "3"), TEN("2", "1"), TEN("2", "2"), TEN("2", "3"), TEN("2", "4"),
		TEN("2", "5"), TEN("2", "6"), TEN("2", "7"), NULL};
	const char *dot = strchr(version, '.');
	size_t n = dot ? (size_t)(dot - version) + 1 : 0;

	n += strspn(version + n, "0123456789");
	for (size_t i = 0; known[i]; i++)
		if (strlen(known[i]) == n && strncmp(known[i], version, n) == 0)
			return known[i];
	return NULL;
}

static const struct lock_deb *deb_of(const struct lock *l, const char *name)
{
	for (size_t i = 0; i < l->ndebs; i++)
		if (str_eq(l->debs[i].name, name))
			return &l->debs[i];
	return NULL;
}

/* Upstream's part: without the epoch. */
static const char *upstream(const struct lock_deb *d)
{
	const char *colon = strchr(d->version, ':');

	return colon ? colon + 1 : d->version;
}

/* python3 says which is /usr/bin/python3; without it, any pythonX.Y there is. */
const char *python_of_lock(const struct lock *l)
{
	static const char *const names[] = {"python3", "python3-minimal", NULL};
	const char *found = NULL;

	if (l->python)
		return l->python;
	for (size_t i = 0; names[i]; i++) {
		const struct lock_deb *d = deb_of(l, names[i]);

		if (d)
			return lasting(upstream(d));
	}
	for (size_t i = 0; i < l->ndebs && !found; i++) {
		const char *name = l->debs[i].name;
		size_t n = strlen("python");

		if (str_starts(name, "python3.") &&
			strspn(name + n, "0123456789.") == strcspn(name + n, "-") &&
			(!strchr(name, '-') || str_ends(name, "-minimal")))
			found = lasting(name + n);
	}
	return found;
}

const char *glibc_of_lock(const struct lock *l)
{
	const struct lock_deb *d = deb_of(l, "libc6");

	return d ? lasting(upstream(d)) : NULL;
}

/* "3.11.2" of the deb pythonX.Y-minimal; NULL: not known. */
static const char *full_version(struct arena *a, const struct lock *l, const char *python)
{
	auto_free char *minimal = mem_printf("python%s-minimal", python);
	auto_free char *whole = mem_printf("python%s", python);
	const struct lock_deb *d = deb_of(l, minimal);
	const char *v;

	if (!d)
		d = deb_of(l, whole);
	if (!d)
		return NULL;
	v = upstream(d);
	return arena_strndup(a, v, strspn(v, "0123456789."));
}

/* ---- the target ---- */

/* By the debs, else by the base image; when neither tells, what every image of the last ten years
 * has: manylinux2014. */
static void find_libc(struct python_target *t, struct python_platform *p, const struct lock *l,
	const struct python_base *base)
{
	const char *deb = glibc_of_lock(l);

	if (deb && python_version_parts(deb, &p->glibc_major, &p->glibc_minor) == 0) {
		t->libc = arena_printf(t->a, "glibc %s", deb);
		return;
	}
	p->glibc_major = base->glibc_major;
	p->glibc_minor = base->glibc_minor;
	p->musl_major = base->musl_major;
	p->musl_minor = base->musl_minor;
	if (base->musl_major) {
		t->libc = arena_printf(t->a, "musl %u.%u", p->musl_major, p->musl_minor);
	} else if (base->glibc_major) {
		t->libc = arena_printf(t->a, "glibc %u.%u", p->glibc_major, p->glibc_minor);
	} else {
		p->glibc_major = 2;
		p->glibc_minor = 17;
		t->libc = "glibc 2.17 (the image's own is not known)";
	}
}

/* By the interpreter's name, the debs, or what the base image has there, which the lock then says:
 * a build need not look for it. */
static int find_python(struct python_target *t, struct python_platform *p, struct lock *l,
	const struct manifest *m, const struct python_base *base, struct err *e)
{
	l->python = NULL;
	t->python = python_version_of_path(t->a, m->python.interpreter);
	if (!t->python)
		t->python = python_of_lock(l);
	if (!t->python && base->python[0])
		t->python = l->python = arena_strdup(t->a, base->python);
	if (t->python && python_version_parts(t->python, &p->major, &p->minor) == 0)
		return 0;
	err_set(e, ERR_USAGE,
		"/python/interpreter: no package of the lock brings %s%s, so its version is not "
		"known",
		m->python.interpreter, l->base.present ? ", nor has the base image it" : "");
	err_hint(e, "add python3 to apt.packages, or name the interpreter that the base image has");
	return manifest_at(m, "/python/interpreter", e);
}

int python_target_init(struct python_target *t, struct lock *l, const struct manifest *m,
	struct store *s, struct err *e)
{
	bool arm = l->platform && str_eq(l->platform, "linux/arm64");
	struct python_platform p = {.machine = arm ? "aarch64" : "x86_64"};
	struct python_base base;

	*t = (struct python_target){.a = &l->arena};
	if (python_base_read(&base, m, l, p.machine, s, e) < 0)
		return err_ctx(e, "/base");
	if (find_python(t, &p, l, m, &base, e) < 0)
		return -1;
	find_libc(t, &p, l, &base);
	t->tags = python_tags(&p, t->a);
	t->env = (struct marker_env){.python_version = t->python,
		.python_full_version = full_version(t->a, l, t->python),
		.machine = p.machine,
		.extra = ""};
	return 0;
}

/* ---- the choice ---- */

/* "2abc": by the number, then by what is behind it; none is before all. */
static int compare_builds(const char *a, const char *b)
{
	size_t x, y;

	if (!a || !b)
		return (a != NULL) - (b != NULL);
	a += strspn(a, "0");
	b += strspn(b, "0");
	x = strspn(a, "0123456789");
	y = strspn(b, "0123456789");
	return x != y ? (x < y ? -1 : 1) : strcmp(a, b);
}

static int none_fits(const struct python_target *t, const char *who, const struct wheel_offer *v,
	size_t n, struct err *e)
{
	auto_buf struct buf list = BUF_INIT(OFFERS_SHOWN * (STR_SHOWN + 2) + 64);
	char text[STR_SHOWN];

	buf_put(&list, "", 0);
	for (size_t i = 0; i < n && i < OFFERS_SHOWN; i++)
		buf_printf(&list, "%s%s", i ? ", " : "", str_shown(v[i].file, text));
	if (n > OFFERS_SHOWN)
		buf_printf(&list, " and %zu more", n - OFFERS_SHOWN);
	err_set(e, ERR_USAGE, "SV052: %s: no wheel fits Python %s on %s with %s; there are: %s",
		who, t->python, t->env.machine, t->libc, n ? list.data : "none");
	return err_hint(e, "the best one would be for %s", t->tags.v[0]);
}

int python_target_pick(const struct python_target *t, const char *who, const char *version,
	const struct wheel_offer *v, size_t n, struct err *e)
{
	int best = -1, best_rank = -1;
	struct wheel_name chosen = {0};

	for (size_t i = 0; i < n; i++) {
		struct wheel_name w;
		int rank, c;

		if (wheel_name_parse(&w, t->a, v[i].file, e) < 0)
			return err_ctx(e, "%s", who);
		if (version && !pep440_same(w.version, version))
			return err_set(e, ERR_CORRUPT, "SV174: %s: the wheel %s is of version %s",
				who, v[i].file, w.version);
		rank = python_tags_rank(&t->tags, &w);
		if (rank < 0 || (best >= 0 && rank > best_rank))
			continue;
		c = best >= 0 && rank == best_rank ? compare_builds(w.build, chosen.build) : 1;
		if (c < 0 || (c == 0 && strcmp(v[i].file, v[best].file) >= 0))
			continue;
		best = (int)i;
		best_rank = rank;
		chosen = w;
	}
	return best >= 0 ? best : none_fits(t, who, v, n, e);
}
