/* Install scripts of the npm packages that /node/scripts names, as npm runs them. Source: npm
 * scripts(7) "Life Cycle Operation Order", package.json(5). */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/npm.h"
#include "builder/rootfs.h"
#include "builder/steps-private.h"

enum { PACKAGE_MAX = 4 << 20, TEN_MINUTES_MS = 600000 };

/* In this order. */
static const char *const events[] = {"preinstall", "install", "postinstall"};
enum { EVENTS = sizeof(events) / sizeof(events[0]) };

/* The words: an event and its script, by turns. */
static const char runner[] = "set -e\n"
			     "while [ $# -gt 0 ]; do\n"
			     "	echo \"> $1: $2\"\n"
			     "	npm_lifecycle_event=$1 npm_lifecycle_script=$2 sh -c \"$2\"\n"
			     "	shift 2\n"
			     "done\n";

/* Its folder is the prefix's; what it writes elsewhere is no part of a package. */
static struct strings writes_of(struct steps *s)
{
	const char *glob = arena_printf(&s->arena, "%s/node_modules/**", s->x->m->node.prefix);

	return steps_words(s, 1, &glob);
}

static json_t *read_package(struct steps *s, const char *place, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(PACKAGE_MAX);
	auto_free char *path = mem_printf("%s/package.json", place);
	struct rootfs r = {.tree = s->c->tree, .pool = s->x->pool};
	int rc = rootfs_read(&r, path, &b, e);
	json_t *j;

	if (rc < 0)
		return NULL;
	if (rc == 0)
		return err_set(e, ERR_CORRUPT, "it has no package.json"), NULL;
	j = json_parse(b.data, b.len, e);
	if (!j)
		err_ctx(e, "/%s", path);
	return j;
}

/* npm builds what has a binding.gyp and no script of its own that would. */
static const char *script_of(struct steps *s, const json_t *package, const char *place, size_t i)
{
	const json_t *scripts = json_object_get(package, "scripts");
	const char *text = json_string_value(json_object_get(scripts, events[i]));
	auto_free char *gyp = mem_printf("%s/binding.gyp", place);
	struct rootfs r = {.tree = s->c->tree};

	if (text || !str_eq(events[i], "install"))
		return text;
	return json_object_get(scripts, "preinstall") || !rootfs_has(&r, gyp) ? NULL
									      : "node-gyp rebuild";
}

static struct strings make_argv(struct steps *s, const json_t *package, const char *place)
{
	const char *v[4 + 2 * EVENTS] = {"/bin/sh", "-c", runner, "npm"};
	size_t n = 4;

	for (size_t i = 0; i < EVENTS; i++) {
		const char *text = script_of(s, package, place, i);

		if (!text)
			continue;
		v[n++] = events[i];
		v[n++] = arena_strdup(&s->arena, text);
	}
	return steps_words(s, n, v);
}

/* Commands of the packages around it are found first. */
static struct pairs make_env(struct steps *s, const struct lock_npm *p, const char *place)
{
	const char *prefix = s->x->m->node.prefix;
	struct pair *v = arena_alloc(&s->arena, 8 * sizeof(*v));
	size_t n = 0;

	v[n++] = (struct pair){"INIT_CWD", prefix};
	v[n++] = (struct pair){"NODE_ENV", "production"};
	v[n++] = (struct pair){"PATH",
		arena_printf(&s->arena,
			"/%s/node_modules/.bin:%s/node_modules/.bin:/usr/local/sbin:/usr/local/bin:"
			"/usr/sbin:/usr/bin:/sbin:/bin",
			place, prefix)};
	v[n++] = (struct pair){"npm_command", "ci"};
	v[n++] = (struct pair){
		"npm_package_json", arena_printf(&s->arena, "/%s/package.json", place)};
	v[n++] = (struct pair){"npm_package_name", p->name};
	v[n++] = (struct pair){"npm_package_version", p->version};
	return (struct pairs){v, n};
}

static int add_package(struct steps *s, struct step_list *l, size_t i, size_t named, struct err *e)
{
	const struct lock_npm *p = &s->x->l->npms[i];
	auto_free char *place = npm_place(s->x->m->node.prefix, p->path);
	auto_json json_t *package = read_package(s, place, e);
	struct strings argv, *writes = arena_alloc(&s->arena, sizeof(*writes));
	struct step *st;

	if (!package)
		return err_ctx(e, "/node/scripts/%zu: %s", named, p->path);
	argv = make_argv(s, package, place);
	if (argv.n == 4) {
		progress_note(
			s->x->p, "/node/scripts/%zu: %s has no install script", named, p->path);
		return 0;
	}
	st = steps_new(l, arena_printf(&s->arena, "npm:%s", p->path + strlen("node_modules/")),
		arena_printf(&s->arena, "/node/scripts/%zu", named));
	st->box.argv = argv;
	st->box.env = make_env(s, p, place);
	st->box.workdir = arena_printf(&s->arena, "/%s", place);
	st->box.timeout_ms = TEN_MINUTES_MS;
	st->doc = json_pack("{s:s, s:o, s:o, s:s}", "kind", "npm", "argv", steps_json(&argv), "env",
		steps_json_pairs(&st->box.env), "workdir", st->box.workdir);
	st->sees = 1U << ORIGIN_STATE | 1U << ORIGIN_DEB | 1U << ORIGIN_BASE | 1U << ORIGIN_WHEEL |
		   1U << ORIGIN_NPM;
	*writes = writes_of(s);
	st->writes = writes;
	st->origin = (struct origin){.kind = ORIGIN_NPM, .name = p->name, .entry = i};
	return 0;
}

static unsigned depth(const char *path)
{
	unsigned n = 0;

	for (; (path = strstr(path, "node_modules/")); path++)
		n++;
	return n;
}

/* What a package needs is below it, or beside it: the deepest first. */
static int add_named(struct steps *s, struct step_list *l, size_t named, struct err *e)
{
	const struct lock *lock = s->x->l;
	const char *name = s->x->m->node.scripts.v[named];
	unsigned deepest = 0;
	bool found = false;

	for (size_t i = 0; i < lock->nnpms; i++)
		if (str_eq(lock->npms[i].name, name) && depth(lock->npms[i].path) > deepest)
			deepest = depth(lock->npms[i].path);
	for (unsigned d = deepest; d > 0; d--)
		for (size_t i = 0; i < lock->nnpms; i++) {
			if (!str_eq(lock->npms[i].name, name) || depth(lock->npms[i].path) != d)
				continue;
			found = true;
			if (add_package(s, l, i, named, e) < 0)
				return -1;
		}
	if (found)
		return 0;
	err_set(e, ERR_USAGE, "/node/scripts/%zu: the lock has no package '%.100s'", named, name);
	return err_hint(e, "take it out of /node/scripts, or lock again");
}

int steps_add_npm(struct steps *s, struct step_list *l, struct err *e)
{
	const struct manifest_node *n = &s->x->m->node;

	for (size_t i = 0; n->present && i < n->scripts.n; i++)
		if (add_named(s, l, i, e) < 0)
			return -1;
	return 0;
}
