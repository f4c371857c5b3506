#include "builder/preinst.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "builder/control.h"

enum { STATUS_MAX = 256 << 20, PACKAGES_MAX = 1 << 20 };

/* ---- what runs in the image ---- */

/* Words: file (without ".preinst"), package, architecture. The names in tmp.ci are what debconf and
 * scripts look for. */
static const char runner[] =
	"preinst() {\n"
	"	ci=/var/lib/dpkg/tmp.ci\n"
	"	rm -rf $ci; mkdir $ci\n"
	"	for x in preinst postinst prerm postrm config templates conffiles md5sums "
	"triggers; do\n"
	"		f=/var/lib/dpkg/info/$1.$x\n"
	"		[ ! -e \"$f\" ] || cp -p \"$f\" $ci/$x\n"
	"	done\n"
	"	printf 'Package: %s\\nArchitecture: %s\\n' \"$2\" \"$3\" >$ci/control\n"
	"	echo \"preinst of $2\"\n"
	"	(cd / && env DPKG_MAINTSCRIPT_PACKAGE=\"$2\" DPKG_MAINTSCRIPT_PACKAGE_REFCOUNT=1 "
	"\\\n"
	"		DPKG_MAINTSCRIPT_ARCH=\"$3\" DPKG_MAINTSCRIPT_NAME=preinst "
	"DPKG_MAINTSCRIPT_DEBUG=0 \\\n"
	"		DPKG_ADMINDIR=/var/lib/dpkg DPKG_ROOT= DPKG_RUNNING_VERSION=\"$dpkg\" "
	"PERL_DL_NONLAZY=1 \\\n"
	"		$ci/preinst install </dev/null) || {\n"
	"		echo \"svrun: the preinst script of the package $2 failed with exit status "
	"$?\"\n"
	"		exit 1\n"
	"	}\n"
	"	rm -rf $ci\n"
	"}\n"
	"dpkg=$(dpkg-query -W -f '${Version}' dpkg)\n";

/* Both packages ship the file, and only one is there: what the script diverts had to be out of the
 * way before the other was unpacked. */
static const char check[] =
	"ships() {\n"
	"	for l in /var/lib/dpkg/info/$1.list /var/lib/dpkg/info/$1:*.list; do\n"
	"		if [ -e \"$l\" ] && grep -qxF -- \"$2\" \"$l\"; then return 0; fi\n"
	"	done\n"
	"	return 1\n"
	"}\n"
	"there() { [ -e \"$1\" ] || [ -L \"$1\" ]; }\n"
	"while read -r from && read -r to && read -r by; do\n"
	"	there \"$from\" && ! there \"$to\" && ships \"$by\" \"$from\" || continue\n"
	"	for l in $(grep -lxF -- \"$from\" /var/lib/dpkg/info/*.list || :); do\n"
	"		other=${l##*/}; other=${other%.list}; other=${other%%:*}\n"
	"		[ \"$other\" != \"$by\" ] || continue\n"
	"		echo \"svrun: the preinst script of the package $by diverts $from of "
	"$other to $to, \"\\\n"
	"\"in words that are not known before it runs: both were unpacked at the same place\"\n"
	"		exit 1\n"
	"	done\n"
	"done </var/lib/dpkg/diversions\n";

/* ---- the packages ---- */

struct package {
	const char *name, *file, *arch; /* file: as in /var/lib/dpkg/info */
	struct slice needs[2];          /* what is left of Pre-Depends and Depends */
	bool essential, has, seen;
};

struct provider {
	struct slice name;
	size_t package;
};

struct order {
	const struct rootfs *r;
	struct arena arena;
	struct package *v;
	size_t n, cap;
	struct provider *names; /* sorted; names of packages before what they provide */
	size_t nnames, names_cap;
	size_t *stack, depth;
	size_t *out, nout;
};

static bool is_plain(const char *s)
{
	return s && *s && s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789+-.")] == '\0';
}

static int add_package(struct order *o, struct slice stanza, struct err *e)
{
	struct package *p;
	const char *same = control_str(&o->arena, stanza, "Multi-Arch");
	auto_free char *path = NULL;

	if (o->n == PACKAGES_MAX)
		return err_set(e, ERR_CORRUPT, "more than %d packages", PACKAGES_MAX);
	mem_grow(&o->v, &o->cap, o->n);
	p = &o->v[o->n++];
	*p = (struct package){.name = control_str(&o->arena, stanza, "Package"),
		.arch = control_str(&o->arena, stanza, "Architecture"),
		.needs = {control_field(stanza, "Pre-Depends"), control_field(stanza, "Depends")},
		.essential = slice_eq(control_field(stanza, "Essential"), "yes")};
	if (!is_plain(p->name) || !is_plain(p->arch))
		return err_set(e, ERR_CORRUPT, "a package with the name or architecture '%.100s'",
			p->name ? p->name : "");
	p->file = same && str_eq(same, "same") ? arena_printf(&o->arena, "%s:%s", p->name, p->arch)
					       : p->name;
	path = mem_printf("var/lib/dpkg/info/%s.preinst", p->file);
	p->has = rootfs_has(o->r, path);
	return 0;
}

/* The name at the beginning of "libc6:any (>= 2.36)". */
static struct slice name_of(struct slice s)
{
	size_t n = 0;

	s = slice_trim(s);
	while (n < s.n && !strchr(" \t\n(:[<", s.p[n]))
		n++;
	return (struct slice){s.p, n};
}

static void add_name(struct order *o, struct slice name, size_t package)
{
	if (name.n == 0)
		return;
	mem_grow(&o->names, &o->names_cap, o->nnames);
	o->names[o->nnames++] = (struct provider){name, package};
}

static int by_name(const void *a, const void *b)
{
	const struct provider *x = a, *y = b;
	size_t n = x->name.n < y->name.n ? x->name.n : y->name.n;
	int c = memcmp(x->name.p, y->name.p, n);

	if (c == 0 && x->name.n != y->name.n)
		c = x->name.n < y->name.n ? -1 : 1;
	return c ? c : x->package < y->package ? -1 : x->package > y->package;
}

static int read_packages(struct order *o, struct slice text, struct err *e)
{
	struct slice stanza, list, one, *provides = NULL;
	size_t cap = 0;
	int rc = 0;

	while (rc == 0 && control_next(&text, &stanza)) {
		mem_grow(&provides, &cap, o->n);
		provides[o->n] = control_field(stanza, "Provides");
		rc = add_package(o, stanza, e);
	}
	for (size_t i = 0; rc == 0 && i < o->n; i++) {
		add_name(o, slice_of(o->v[i].name), i);
		for (list = provides[i]; slice_piece(&list, ',', &one);)
			add_name(o, name_of(one), i);
	}
	free(provides);
	if (o->nnames)
		qsort(o->names, o->nnames, sizeof(*o->names), by_name);
	return rc;
}

/* ---- the order ---- */

/* The first package of that name, or that provides it; o->n: none. */
static size_t find(const struct order *o, struct slice name)
{
	struct provider key = {name, 0};
	size_t from = 0, to = o->nnames;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (by_name(&o->names[mid], &key) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	if (from == o->nnames || name.n != o->names[from].name.n ||
		memcmp(name.p, o->names[from].name.p, name.n) != 0)
		return o->n;
	return o->names[from].package;
}

/* The next that it needs and that nobody has come to yet; o->n: none. Of alternatives the first
 * that is there. */
static size_t next_need(const struct order *o, struct package *p)
{
	struct slice need, one;

	for (size_t i = 0; i < 2; i++)
		while (slice_piece(&p->needs[i], ',', &need)) {
			size_t found = o->n;

			while (found == o->n && slice_piece(&need, '|', &one))
				found = find(o, name_of(one));
			if (found < o->n && !o->v[found].seen)
				return found;
		}
	return o->n;
}

static void push(struct order *o, size_t i)
{
	o->v[i].seen = true;
	o->stack[o->depth++] = i;
}

/* What i needs, and i. */
static void visit(struct order *o, size_t i)
{
	if (i == o->n || o->v[i].seen)
		return;
	push(o, i);
	while (o->depth > 0) {
		size_t top = o->stack[o->depth - 1], need = next_need(o, &o->v[top]);

		if (need < o->n) {
			push(o, need);
			continue;
		}
		o->out[o->nout++] = top;
		o->depth--;
	}
}

static void make_order(struct order *o)
{
	o->stack = mem_array(o->n, sizeof(*o->stack));
	o->out = mem_array(o->n, sizeof(*o->out));
	visit(o, find(o, slice_of("base-passwd")));
	for (size_t i = 0; i < o->n; i++)
		if (o->v[i].essential)
			visit(o, i);
	for (size_t i = 0; i < o->n; i++)
		visit(o, i);
}

int preinst_text(const struct rootfs *r, struct buf *out, struct err *e)
{
	auto_buf struct buf status = BUF_INIT(STATUS_MAX);
	struct order o = {.r = r};
	bool any = false;
	int rc = rootfs_read(r, "var/lib/dpkg/status", &status, e);

	if (rc > 0)
		rc = read_packages(&o, (struct slice){status.data, status.len}, e);
	if (rc == 0 && o.n)
		make_order(&o);
	for (size_t i = 0; rc == 0 && i < o.nout; i++) {
		const struct package *p = &o.v[o.out[i]];

		if (!p->has)
			continue;
		buf_printf(
			out, "%spreinst %s %s %s\n", any ? "" : runner, p->file, p->name, p->arch);
		any = true;
	}
	if (any)
		buf_printf(out, "%s", check);
	free(o.v);
	free(o.names);
	free(o.stack);
	free(o.out);
	arena_fini(&o.arena);
	return rc < 0 ? err_ctx(e, "/var/lib/dpkg/status") : 0;
}
