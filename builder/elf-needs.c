#include "builder/elf-needs.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/elf-file.h"
#include "builder/ld-conf.h"
#include "images/glob.h"

enum {
	UNRESOLVED_MAX = 10000,
	LOOKUPS_MAX = 2000000,
};

/* The machines that Linux distributions are made for: their multiarch folder, what $PLATFORM is,
 * and their loader. */
static const struct machine {
	uint16_t machine;
	uint8_t bits;
	const char *triplet, *platform, *loader, *musl;
} machines[] = {
	{EM_X86_64, 64, "x86_64-linux-gnu", "x86_64", "lib64/ld-linux-x86-64.so.2",
		"lib/ld-musl-x86_64.so.1"},
	{EM_386, 32, "i386-linux-gnu", "i686", "lib/ld-linux.so.2", "lib/ld-musl-i386.so.1"},
	{EM_AARCH64, 64, "aarch64-linux-gnu", "aarch64", "lib/ld-linux-aarch64.so.1",
		"lib/ld-musl-aarch64.so.1"},
	{EM_ARM, 32, "arm-linux-gnueabihf", "v7l", "lib/ld-linux-armhf.so.3",
		"lib/ld-musl-armhf.so.1"},
	{EM_RISCV, 64, "riscv64-linux-gnu", "riscv64", "lib/ld-linux-riscv64-lp64d.so.1",
		"lib/ld-musl-riscv64.so.1"},
	{EM_PPC64, 64, "powerpc64le-linux-gnu", "power8", "lib64/ld64.so.2",
		"lib/ld-musl-powerpc64le.so.1"},
	{EM_S390, 64, "s390x-linux-gnu", "z13", "lib/ld64.so.1", "lib/ld-musl-s390x.so.1"},
};

struct search {
	const struct rootfs *r;
	struct arena *arena;
	const char *library_path;
	struct strings folders; /* of the cache */
	size_t lookups;
	struct elf_unresolved *v;
	size_t n, cap;
	struct err *e;
};

/* A file whose needs are looked for. */
struct loader {
	struct search *s;
	const struct machine *machine;
	const struct elf_file *f;
	const char *origin; /* its folder, absolute */
};

/* ---- one place ---- */

static const struct attr *object_of(const struct node *n)
{
	return n && n->link ? &n->link->a : n ? &n->a : NULL;
}

static bool same_kind(const struct elf_kind *a, const struct elf_kind *b)
{
	return a->machine == b->machine && a->bits == b->bits && a->big_endian == b->big_endian;
}

/* Is a library of the right kind at the absolute path? 1, 0, -1. */
static int is_at(struct search *s, const char *path, const struct elf_kind *want)
{
	const struct attr *file;
	struct elf_kind k;
	int rc;

	if (s->lookups++ >= LOOKUPS_MAX)
		return err_set(s->e, ERR_CORRUPT,
			"finding the libraries of all files takes more than %d look-ups",
			LOOKUPS_MAX);
	if (strlen(path) > TREE_PATH_MAX)
		return 0;
	file = object_of(tree_resolve(s->r->tree, path + strspn(path, "/")));
	if (!file || file->type != NODE_FILE)
		return 0;
	rc = elf_kind_of(file, s->r->pool, &k, s->e);
	return rc <= 0 ? rc : same_kind(&k, want);
}

static int in_folder(const struct loader *x, const char *folder, const char *name)
{
	auto_free char *path = mem_printf("%s/%s", folder, name);

	return is_at(x->s, path, &x->f->kind);
}

/* ---- lists of folders ---- */

/* The length of the token "$NAME" or "${NAME}" at p, or 0. */
static size_t token(const char *p, const char *name)
{
	size_t n = strlen(name);

	if (p[0] != '$')
		return 0;
	if (p[1] == '{')
		return strncmp(p + 2, name, n) == 0 && p[2 + n] == '}' ? n + 3 : 0;
	return strncmp(p + 1, name, n) == 0 ? n + 1 : 0;
}

/* One folder of a list, with its tokens replaced. lib: what $LIB is. */
static char *expand(const struct loader *x, const char *p, size_t n, const char *lib)
{
	auto_buf struct buf b = BUF_INIT(64 << 20);
	const char *end = p + n;

	while (p < end) {
		size_t step = token(p, "ORIGIN");
		const char *value = x->origin;

		if (!step && (step = token(p, "LIB")))
			value = lib;
		if (!step && (step = token(p, "PLATFORM")))
			value = x->machine->platform;
		if (step)
			buf_printf(&b, "%s", value);
		else
			buf_put(&b, p, step = 1);
		p += step;
	}
	return b.data ? steal_ptr(&b.data) : mem_strdup("");
}

/* Colons between, in LD_LIBRARY_PATH semicolons, too. What is relative is so to wherever the
 * program is started: nobody knows. */
static int in_list(const struct loader *x, const char *list, const char *name)
{
	char multiarch[64];
	const char *const libs[] = {multiarch, x->machine->bits == 64 ? "lib64" : "lib", NULL};

	snprintf(multiarch, sizeof(multiarch), "lib/%s", x->machine->triplet);
	while (list && *list) {
		size_t n = strcspn(list, ":;");
		bool twice = memmem(list, n, "LIB", 3);

		for (size_t i = 0; libs[i] && (i == 0 || twice); i++) {
			auto_free char *folder = expand(x, list, n, libs[i]);
			int rc = folder[0] == '/' ? in_folder(x, folder, name) : 0;

			if (rc)
				return rc;
		}
		list += n + (list[n] != '\0');
	}
	return 0;
}

static int in_folders(const struct loader *x, const struct strings *l, const char *name)
{
	int rc = 0;

	for (size_t i = 0; i < l->n && rc == 0; i++)
		rc = in_folder(x, l->v[i], name);
	return rc;
}

static int in_defaults(const struct loader *x, const char *name)
{
	char first[64], second[64];
	const char *const folders[] = {first, second, x->machine->bits == 64 ? "/lib64" : "/lib32",
		x->machine->bits == 64 ? "/usr/lib64" : "/usr/lib32", "/lib", "/usr/lib"};
	int rc = 0;

	snprintf(first, sizeof(first), "/lib/%s", x->machine->triplet);
	snprintf(second, sizeof(second), "/usr/lib/%s", x->machine->triplet);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && rc == 0; i++)
		rc = in_folder(x, folders[i], name);
	if (rc == 0 && rootfs_has(x->s->r, x->machine->musl))
		rc = in_folder(x, "/usr/local/lib", name);
	return rc;
}

/* In the order of ld.so(8). */
static int find(const struct loader *x, const char *name)
{
	const struct elf_file *f = x->f;
	int rc = 0;

	if (strchr(name, '/'))
		return name[0] == '/' ? is_at(x->s, name, &f->kind) : 0;
	if (!*name)
		return 0;
	if (!f->runpath)
		rc = in_list(x, f->rpath, name);
	if (rc == 0)
		rc = in_list(x, x->s->library_path, name);
	if (rc == 0)
		rc = in_list(x, f->runpath, name);
	if (rc == 0 && !f->no_default_lib)
		rc = in_folders(x, &x->s->folders, name);
	if (rc == 0 && !f->no_default_lib)
		rc = in_defaults(x, name);
	return rc;
}

/* ---- one file ---- */

static int add(struct search *s, const char *path, const char *library, bool is_damaged)
{
	char shown[STR_SHOWN];

	if (s->n == UNRESOLVED_MAX)
		return err_set(
			s->e, ERR_CORRUPT, "more than %d libraries are missing", UNRESOLVED_MAX);
	mem_grow(&s->v, &s->cap, s->n);
	s->v[s->n++] = (struct elf_unresolved){.path = arena_strdup(s->arena, path),
		.library = arena_strdup(s->arena, is_damaged ? library : str_shown(library, shown)),
		.damaged = is_damaged};
	return 0;
}

static bool is_native(const struct machine *m)
{
	return m->machine == (str_eq(manifest_platform(), "linux/arm64") ? EM_AARCH64 : EM_X86_64);
}

/* The machine whose loader would load the file in this image; NULL: none. */
static const struct machine *machine_of(const struct search *s, const struct elf_kind *k)
{
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		const struct machine *m = &machines[i];

		if (m->machine == k->machine && m->bits == k->bits &&
			k->big_endian == (k->machine == EM_S390))
			return is_native(m) || rootfs_has(s->r, m->loader) ||
					       rootfs_has(s->r, m->musl)
				       ? m
				       : NULL;
	}
	return NULL;
}

static int look_for(const struct loader *x, const char *path)
{
	const struct elf_file *f = x->f;

	if (f->interpreter) {
		int rc = is_at(x->s, f->interpreter, &f->kind);

		if (rc < 0 || (rc == 0 && add(x->s, path, f->interpreter, false) < 0))
			return -1;
	}
	for (size_t i = 0; i < f->needs.n; i++) {
		int rc = find(x, f->needs.v[i]);

		if (rc < 0 || (rc == 0 && add(x->s, path, f->needs.v[i], false) < 0))
			return -1;
	}
	return 0;
}

static int check_file(struct search *s, const struct attr *file, char *path, struct arena *scratch)
{
	struct elf_file f;
	struct elf_kind k;
	struct loader x = {.s = s, .f = &f};
	struct err e = {0};
	char *slash;
	int rc = elf_kind_of(file, s->r->pool, &k, s->e);

	if (rc <= 0)
		return rc;
	x.machine = machine_of(s, &k);
	if (!x.machine)
		return 0;
	rc = elf_file_read(&f, file, s->r->pool, scratch, &e);
	if (rc < 0 && e.kind == ERR_CORRUPT)
		return add(s, path, e.text, true);
	if (rc < 0 && s->e)
		*s->e = e;
	if (rc <= 0)
		return rc;
	slash = strrchr(path, '/');
	x.origin = arena_strndup(scratch, path, slash == path ? 1 : (size_t)(slash - path));
	return look_for(&x, path);
}

/* ---- all files ---- */

static bool is_wanted(const struct node *n, const char *path, const struct strings *globs)
{
	if (n->a.type != NODE_FILE && (n->a.type != NODE_HARDLINK || !globs || !globs->n))
		return false;
	if (!globs || !globs->n)
		return !str_starts(path, "/usr/lib/debug/");
	for (size_t i = 0; i < globs->n; i++)
		if (glob_matches(globs->v[i], path))
			return true;
	return false;
}

static int check_all(struct search *s, const struct strings *globs)
{
	char path[TREE_PATH_MAX + 2] = "/";
	int rc = 0;

	for (struct node *n = tree_root(s->r->tree); n && rc == 0; n = tree_next(n)) {
		struct arena scratch = {0};

		if (n->a.type != NODE_FILE && n->a.type != NODE_HARDLINK)
			continue;
		node_path(n, path + 1);
		if (is_wanted(n, path, globs))
			rc = check_file(s, object_of(n), path, &scratch);
		if (rc < 0)
			err_ctx(s->e, "%s", path);
		arena_fini(&scratch);
	}
	return rc;
}

static int by_library(const void *a, const void *b)
{
	const struct elf_unresolved *x = a, *y = b;
	int c = strcmp(x->library, y->library);

	return c ? c : strcmp(x->path, y->path);
}

static int by_path(const void *a, const void *b)
{
	const struct elf_unresolved *x = a, *y = b;
	int c = strcmp(x->path, y->path);

	return c ? c : strcmp(x->library, y->library);
}

/* The first of the (sorted) entries with that library. */
static struct elf_unresolved *first_of(struct search *s, const char *library)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (strcmp(s->v[mid].library, library) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low < s->n && str_eq(s->v[low].library, library) ? &s->v[low] : NULL;
}

/* Where the libraries that nobody finds are. */
static void find_elsewhere(struct search *s)
{
	char path[TREE_PATH_MAX + 2] = "/";

	qsort(s->v, s->n, sizeof(*s->v), by_library);
	for (struct node *n = tree_root(s->r->tree); n; n = tree_next(n)) {
		struct elf_unresolved *u = first_of(s, n->name ? n->name : "");
		struct elf_kind k;
		const struct attr *file;

		if (!u || u->elsewhere || u->damaged)
			continue;
		node_path(n, path + 1);
		file = object_of(tree_resolve(s->r->tree, path + 1));
		if (!file || elf_kind_of(file, s->r->pool, &k, NULL) <= 0)
			continue;
		for (const char *at = arena_strdup(s->arena, path);
			u < s->v + s->n && str_eq(u->library, n->name); u++)
			u->elsewhere = at;
	}
}

int elf_unresolved(const struct rootfs *r, const struct strings *globs, const char *library_path,
	struct arena *a, struct elf_unresolved **v, size_t *n, struct err *e)
{
	struct search s = {.r = r, .arena = a, .library_path = library_path, .e = e};
	int rc = 0;

	*v = NULL;
	*n = 0;
	if (rootfs_has(r, "etc/ld.so.cache"))
		rc = ld_conf_folders(r, a, &s.folders, e);
	if (rc == 0)
		rc = check_all(&s, globs);
	if (rc == 0 && s.n) {
		find_elsewhere(&s);
		qsort(s.v, s.n, sizeof(*s.v), by_path);
		*v = arena_dup(a, s.v, s.n * sizeof(*s.v));
		*n = s.n;
	}
	free(s.v);
	return rc;
}
