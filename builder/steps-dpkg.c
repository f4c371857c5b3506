/* preinst scripts and `dpkg --configure -a` over the packages that compose_tree() left unpacked. */
#include <string.h>

#include "base/str.h"
#include "builder/preinst.h"
#include "builder/prune.h"
#include "builder/rootfs.h"
#include "builder/steps-private.h"
#include "images/glob.h"

enum {
	HOUR_MS = 3600000,
	/* The script is one word, and a word has 128 KiB at most. */
	NAMES_MAX = 64 << 10
};

/* py3compile, which packages' scripts run one after the other, leaves what is there already and has
 * the time of its source: made beforehand, on all cores. (Times in the tree are those in the
 * image.) $code is the program for it; $compile is to be waited for. */
static const char compile[] =
	"PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 "
	"python3 -s -c \"$code\" TIMESTAMP /usr/lib/python3/dist-packages & compile=$!\n";

/* The words behind the script are the chosen alternatives, name (or link) and target by turns. */
static const char choose[] = "while [ $# -gt 0 ]; do\n"
			     "	name=$1\n"
			     "	for f in /var/lib/dpkg/alternatives/*; do\n"
			     "		{ read -r mode; read -r link; } <\"$f\"\n"
			     "		[ \"$link\" != \"$1\" ] || name=${f##*/}\n"
			     "	done\n"
			     "	update-alternatives --set \"$name\" \"$2\"\n"
			     "	shift 2\n"
			     "done\n";

/* Differ from run to run, or say nothing that another file does not. */
static const char *const volatiles[] = {
	"var/log/alternatives.log",
	"var/log/dpkg.log",
	"var/log/apt/**",
	"var/cache/ldconfig/aux-cache",
	"var/lib/dpkg/*-old",
	"var/lib/dpkg/lock",
	"var/lib/dpkg/lock-frontend",
	"var/lib/dpkg/triggers/Lock",
	"var/cache/debconf/*-old",
	"usr/sbin/policy-rc.d",
};

static bool keep(const struct step *st, const struct entry *en)
{
	for (size_t i = 0; i < sizeof(volatiles) / sizeof(volatiles[0]); i++)
		if (en->kind == ENTRY_PUT && glob_matches(volatiles[i], en->path))
			return false;
	/* /run is the container's at its start; packages only expect their folders in it. */
	if (str_starts(en->path, "run/") && en->kind == ENTRY_PUT && en->a.type != NODE_DIR)
		return false;
	return en->kind != ENTRY_PUT || !prune_matches(st->prune, en->path);
}

/* What others' scripts take for granted comes first, whatever it depends on: these two, then what
 * is essential; the rest in dpkg's own order. */
static const char *const first[] = {"base-passwd", "base-files"};

static bool is_first(const struct dpkg_package *p)
{
	return str_eq(p->name, first[0]) || str_eq(p->name, first[1]);
}

static bool is_essential(const struct dpkg_package *p)
{
	return p->essential && !is_first(p);
}

static bool is_beside_python(const struct dpkg_package *p)
{
	return !p->python && !p->essential && !is_first(p);
}

/* More than fit are left to the last, which has all. */
static void configure(const struct dpkg_order *o, bool (*which)(const struct dpkg_package *),
	const char *option, struct buf *out)
{
	auto_buf struct buf names = BUF_INIT(16 << 20);

	for (size_t i = 0; i < o->n; i++)
		if (which(&o->v[i]))
			buf_printf(&names, " %s", o->v[i].file);
	if (names.len > 0 && names.len <= NAMES_MAX)
		buf_printf(out, "dpkg %s --configure%s\n", option, names.data);
}

static bool has_package(const struct dpkg_order *o, const char *name)
{
	for (size_t i = 0; i < o->n; i++)
		if (str_eq(o->v[i].name, name))
			return true;
	return false;
}

/* dpkg runs one script at a time; so while Python compiles, it has those that no Python is in. */
static void write_script(const struct dpkg_order *o, struct buf *out)
{
	bool python = has_package(o, "python3-minimal");

	buf_printf(out, "set -e\ncode=$1\nshift\n");
	preinst_text(o, out);
	configure(o, is_first, "--force-depends", out);
	configure(o, is_essential, "--force-depends", out);
	if (python) {
		buf_printf(out, "%s", compile);
		configure(o, is_beside_python, "", out);
		buf_printf(out, "wait $compile || :\n");
	}
	buf_printf(out, "dpkg --configure -a\n%s", choose);
}

static const char *make_script(struct steps *s, struct err *e)
{
	const struct rootfs r = {.tree = s->c->tree, .pool = s->x->pool};
	auto_buf struct buf b = BUF_INIT(16 << 20);
	struct dpkg_order o;
	int rc = dpkg_order_read(&o, &r, e);

	if (rc == 0)
		write_script(&o, &b);
	dpkg_order_fini(&o);
	return rc < 0 ? NULL : arena_strdup(&s->arena, b.data);
}

static struct strings make_argv(struct steps *s, const char *text)
{
	const struct pairs *chosen = &s->x->m->apt.alternatives;
	const char **v = arena_alloc(&s->arena, (5 + 2 * chosen->n) * sizeof(*v));
	size_t n = 0;

	v[n++] = "/bin/sh";
	v[n++] = "-c";
	v[n++] = text;
	v[n++] = "dpkg";
	v[n++] = steps_bytecode_script;
	for (size_t i = 0; i < chosen->n; i++) {
		v[n++] = chosen->v[i].name;
		v[n++] = chosen->v[i].value;
	}
	return (struct strings){v, n};
}

int steps_add_dpkg(struct steps *s, struct step_list *l, struct err *e)
{
	/* Services are not started: there is nobody who would stop them. Source: invoke-rc.d(8). */
	static const struct sandbox_file policy = {
		"/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 19, 0755};
	static const struct pair env[] = {{"DEBCONF_NONINTERACTIVE_SEEN", "true"},
		{"DEBIAN_FRONTEND", "noninteractive"}, {"LC_ALL", "C.UTF-8"}};
	const struct manifest_apt *apt = &s->x->m->apt;
	struct rootfs r = {.tree = s->c->tree};
	const char *script;
	struct step *st;

	if (!apt->present || apt->configure != APT_DPKG || s->x->l->ndebs == 0)
		return 0;
	if (!rootfs_has(&r, "usr/bin/dpkg") || !rootfs_has(&r, "bin/sh")) {
		err_set(e, ERR_USAGE, "/apt/configure: the image has no dpkg, or no /bin/sh");
		return err_hint(e, "add \"?essential\" to /apt/packages");
	}
	st = steps_new(l, "dpkg", "/apt/configure");
	st->prune = prune_new(&apt->prune, e);
	if (!st->prune)
		return -1;
	script = make_script(s, e);
	if (!script)
		return -1;
	st->box.argv = make_argv(s, script);
	st->box.env = (struct pairs){
		arena_dup(&s->arena, env, sizeof(env)), sizeof(env) / sizeof(env[0])};
	st->box.files = arena_dup(&s->arena, &policy, sizeof(policy));
	st->box.nfiles = 1;
	st->box.keep_run = true;
	st->box.timeout_ms = HOUR_MS;
	st->doc =
		json_pack("{s:s, s:o, s:o, s:o}", "kind", "dpkg", "argv", steps_json(&st->box.argv),
			"env", steps_json_pairs(&st->box.env), "prune", steps_json(&apt->prune));
	st->sees = 1U << ORIGIN_STATE | 1U << ORIGIN_DEB | 1U << ORIGIN_BASE;
	st->keep = keep;
	st->origin = (struct origin){.kind = ORIGIN_STATE, .name = "dpkg", .entry = SIZE_MAX};
	return 0;
}
