/* Byte code of Python packages, made by the image's own interpreter. */
#include <string.h>

#include "base/str.h"
#include "builder/python.h"
#include "builder/rootfs.h"
#include "builder/steps-private.h"

enum { HALF_HOUR_MS = 1800000 };

/* What `python -m compileall --invalidation-mode unchecked-hash` does, one process for each folder,
 * as many at a time as there are processors: what marshal writes depends on what the process has
 * compiled before, so that it must not be chance. The words behind it are folders; "path": those
 * that the interpreter looks in. */
const char steps_bytecode_script[] =
	"import importlib.util, os, py_compile, sys\n"
	"mode = py_compile.PycInvalidationMode[sys.argv[1]]\n"
	"tops = [p for w in sys.argv[2:] for p in (sys.path if w == 'path' else [w])]\n"
	"tops = dict.fromkeys(os.path.realpath(p) for p in tops if p and os.path.isdir(p))\n"
	"todo = {}\n"
	"for top in tops:\n"
	"    for folder, folders, files in os.walk(top):\n"
	"        if os.path.basename(folder) == '__pycache__':\n"
	"            folders.clear()\n"
	"            continue\n"
	"        v = sorted(os.path.join(folder, f) for f in files if f.endswith('.py'))\n"
	"        v = [f for f in v if os.path.isfile(f) and not "
	"os.path.exists(importlib.util.cache_from_source(f))]\n"
	"        if v:\n"
	"            todo[folder] = v\n"
	"def compile(files):\n"
	"    for f in files:\n"
	"        try:\n"
	"            py_compile.compile(f, doraise=True, invalidation_mode=mode)\n"
	"        except (py_compile.PyCompileError, ValueError, RecursionError) as e:\n"
	"            print(f, 'is not compiled:', str(e).splitlines()[-1], flush=True)\n"
	"bad = running = 0\n"
	"for folder in sorted(todo):\n"
	"    if running == len(os.sched_getaffinity(0)):\n"
	"        bad |= os.wait()[1]\n"
	"        running -= 1\n"
	"    if os.fork() == 0:\n"
	"        try:\n"
	"            compile(todo[folder])\n"
	"        except BaseException as e:\n"
	"            print(folder, repr(e), flush=True)\n"
	"            os._exit(1)\n"
	"        os._exit(0)\n"
	"    running += 1\n"
	"while running:\n"
	"    bad |= os.wait()[1]\n"
	"    running -= 1\n"
	"sys.exit(bad != 0)\n";

static bool keep(const struct step *st, const struct entry *en)
{
	(void)st;
	return en->kind == ENTRY_PUT &&
	       (strstr(en->path, "/__pycache__/") || str_ends(en->path, "/__pycache__"));
}

/* The interpreter of the packages' own environment, when there is one. */
static const char *choose_interpreter(struct steps *s)
{
	const struct manifest_python *p = &s->x->m->python;
	struct rootfs r = {.tree = s->c->tree};
	const char *venv = arena_printf(&s->arena, "%s/bin/python3", p->prefix ? p->prefix : "");

	if (p->prefix && rootfs_has(&r, venv + 1))
		return venv;
	return p->interpreter ? p->interpreter : "/usr/bin/python3";
}

int steps_add_bytecode(struct steps *s, struct step_list *l, struct err *e)
{
	static const struct pair env[] = {{"PYTHONDONTWRITEBYTECODE", "1"}, {"PYTHONHASHSEED", "0"},
		{"PYTHONNOUSERSITE", "1"}};
	const struct manifest_python *p = &s->x->m->python;
	const char *python = choose_interpreter(s), *version = python_of_lock(s->x->l);
	const char *words[] = {python, "-c", steps_bytecode_script, "UNCHECKED_HASH", "path",
		arena_printf(&s->arena, "%s/lib/python%s/site-packages",
			p->prefix ? p->prefix : "/usr/local", version ? version : "3")};
	struct rootfs r = {.tree = s->c->tree};
	struct step *st;

	if (!p->present || p->bytecode == BYTECODE_NONE)
		return 0;
	if (!rootfs_has(&r, python + 1)) {
		err_set(e, ERR_USAGE, "/python/bytecode: the image has no %s", python);
		return err_hint(e, "add python3 to /apt/packages, or set \"bytecode\": \"none\"");
	}
	st = steps_new(l, "bytecode", "/python/bytecode");
	st->box.argv = steps_words(s, sizeof(words) / sizeof(words[0]), words);
	st->box.env = (struct pairs){
		arena_dup(&s->arena, env, sizeof(env)), sizeof(env) / sizeof(env[0])};
	st->box.timeout_ms = HALF_HOUR_MS;
	st->doc = json_pack("{s:s, s:o, s:o}", "kind", "bytecode", "argv",
		steps_json(&st->box.argv), "env", steps_json_pairs(&st->box.env));
	st->sees = 1U << ORIGIN_STATE | 1U << ORIGIN_DEB | 1U << ORIGIN_BASE | 1U << ORIGIN_WHEEL;
	st->keep = keep;
	st->origin = (struct origin){.kind = ORIGIN_RUN, .name = "bytecode", .entry = SIZE_MAX};
	return 0;
}
