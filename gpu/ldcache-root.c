/* The loader's files in a container's root. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/stat.h>

#include "base/str.h"
#include "base/sys.h"
#include "gpu/ldcache.h"

#define CACHE "/etc/ld.so.cache"
#define CONF "/etc/ld.so.conf"
#define CONF_TEXT "# svrun: for the folders that GPUs need\ninclude /etc/ld.so.conf.d/*.conf\n"
#define LAST "/etc/ld.so.conf.d/00-svrun-gpu.conf"
#define LIBRARY "# library "
/* What musl searches without its file; with one, only what stands in it. */
#define MUSL_DEFAULT "/lib\n/usr/local/lib\n/usr/lib\n"

enum {
	CONF_MAX = 1 << 20,
	NAMES_MAX = 1 << 16, /* names looked at in one folder, */
	FOLDER_MAX = 1024,   /* and libraries among them */
	LINES_MAX = 1024,    /* of what the last start added */
	FOLDERS_MAX = 64,    /* that a cache has libraries of */
};

int ldcache_last(int root, struct buf *b, struct err *e)
{
	return root_file_read(root, LAST, b, e);
}

/* ---- what a folder has ---- */

struct found {
	struct arena mem;
	struct ld_entry *v;
	size_t n, cap;
	struct strings dirs; /* those that have nothing but what is to be found */
	struct buf single;   /* a line for each library of the others */
};

static bool in_folder_of(const char *path, const char *other)
{
	size_t n = (size_t)(strrchr(path, '/') - path);

	return strncmp(path, other, n) == 0 && other[n] == '/' && !strchr(other + n + 1, '/');
}

static void add(struct found *f, const struct ld_entry *l)
{
	mem_grow(&f->v, &f->cap, f->n);
	f->v[f->n++] = *l;
}

/* A library's second name in its folder: what is called as it calls itself is its link. */
static void add_once(struct found *f, const struct ld_entry *l, const char *name)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].flags == l->flags && str_eq(f->v[i].soname, l->soname) &&
			in_folder_of(l->path, f->v[i].path)) {
			if (str_eq(name, l->soname))
				f->v[i].path = l->path;
			return;
		}
	add(f, l);
}

/* One library. Damaged ones, and those of other systems, are not for the loader. */
static int look_at(struct found *f, int root, const char *path, const char *name, struct err *e)
{
	auto_fd int fd = root_file_open(root, path, 1);
	struct arena scratch = {0}; /* a hostile one has megabytes of names */
	struct elf_input in;
	struct elf_file elf;
	struct ld_entry l = {0};

	if (fd < 0)
		return 0;
	if (elf_input_fd(&in, &fd, e) < 0)
		return -1;
	if (elf_read(&elf, &in, &scratch, NULL) > 0 && !elf.interpreter) {
		l.flags = ldcache_flags(&elf.kind);
		l.soname = arena_strdup(&f->mem, elf.soname ? elf.soname : name);
		l.path = arena_strdup(&f->mem, path);
	}
	arena_fini(&scratch);
	if (l.flags)
		add_once(f, &l, name);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* Is that name of a folder a mount of its own? */
static bool is_mounted(int folder, const char *name)
{
	struct statx x;

	return statx(folder, name, AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &x) == 0 &&
	       (x.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* mounted: only what is mounted in it. */
static int look_through(struct found *f, int root, const char *dir, bool mounted, struct err *e)
{
	int fd = sys_open_in_root(root, dir, O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	auto_free const char **names = NULL;
	size_t n = 0, cap = 0;
	int rc = 0;

	if (!d) {
		sys_close_ref(&fd);
		return 0; /* the image has no such folder */
	}
	for (size_t seen = 0; n < FOLDER_MAX && seen < NAMES_MAX; seen++) {
		const struct dirent *entry = readdir(d);

		if (!entry)
			break;
		if (!strstr(entry->d_name, ".so") || entry->d_type == DT_DIR)
			continue;
		if (mounted && !is_mounted(fd, entry->d_name))
			continue;
		mem_grow(&names, &cap, n);
		names[n++] = arena_strdup(&f->mem, entry->d_name);
	}
	closedir(d);
	if (n)
		qsort(names, n, sizeof(*names), by_name);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = look_at(f, root, arena_printf(&f->mem, "%s/%s", dir, names[i]), names[i], e);
	return rc;
}

static bool stat_folder(int root, const char *path, size_t n, struct stat *st)
{
	auto_free char *text = mem_printf("%.*s/", (int)n, path);
	auto_fd int fd = sys_open_in_root(root, text, O_PATH | O_DIRECTORY, 0);

	return fd >= 0 && sys_fstat(fd, st) == 0;
}

/* Does the image's cache have libraries of this folder, whatever it calls it? /lib is most often
 * /usr/lib. */
static bool is_system(const struct ldcache *c, int root, const char *dir)
{
	struct stat wanted, st;
	const char *seen[FOLDERS_MAX];
	size_t nseen = 0;

	if (!stat_folder(root, dir, strlen(dir), &wanted))
		return false;
	for (size_t i = 0; i < c->n && nseen < FOLDERS_MAX; i++) {
		const char *path = c->v[i].path, *slash = strrchr(path, '/');
		size_t k = 0;

		while (slash && k < nseen && !in_folder_of(path, seen[k]))
			k++;
		if (!slash || k < nseen)
			continue;
		seen[nseen++] = path;
		if (stat_folder(root, path, (size_t)(slash - path), &st) &&
			st.st_dev == wanted.st_dev && st.st_ino == wanted.st_ino)
			return true;
	}
	return false;
}

/* The libraries of one folder. */
static int find_in(struct found *f, int root, const struct ld_dirs *d, const char *dir,
	const struct ldcache *c, struct err *e)
{
	size_t before = f->n;
	bool system;

	for (size_t k = 0; k < d->nknown; k++)
		if (ldcache_lies_in(d->known[k].path, dir))
			add(f, &d->known[k]);
	if (f->n > before) {
		f->dirs.v[f->dirs.n++] = dir;
		return 0;
	}
	system = is_system(c, root, dir);
	if (!system)
		f->dirs.v[f->dirs.n++] = dir;
	if (look_through(f, root, dir, system, e) < 0)
		return -1;
	for (size_t i = before; system && i < f->n; i++)
		buf_printf(&f->single, LIBRARY "%s\n", f->v[i].path);
	return 0;
}

/* The libraries of all folders, those of the first folder first. */
static int find_all(
	struct found *f, int root, const struct ld_dirs *d, const struct ldcache *c, struct err *e)
{
	f->dirs.v = arena_alloc(&f->mem, (d->dirs.n + 1) * sizeof(*f->dirs.v));
	if (d->compat) {
		f->dirs.v[f->dirs.n++] = d->compat;
		if (look_through(f, root, d->compat, false, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < d->dirs.n; i++)
		if (find_in(f, root, d, d->dirs.v[i], c, e) < 0)
			return -1;
	return 0;
}

/* ---- the files ---- */

/* The folders and libraries among the lines of LAST: our own text, which the container may have
 * changed, to its own harm. */
static void read_last(char *text, struct strings *out, struct arena *mem)
{
	char *save = NULL;

	out->v = arena_alloc(mem, LINES_MAX * sizeof(*out->v));
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (str_starts(line, LIBRARY))
			line += strlen(LIBRARY);
		if (*line == '/' && out->n < LINES_MAX)
			out->v[out->n++] = line;
	}
}

/* The image's cache; a damaged one counts as none. *had: there is a file. */
static int read_cache(struct ldcache *c, int root, struct buf *old, bool *had, struct err *e)
{
	struct err why = {0};
	int rc = root_file_read(root, CACHE, old, &why);

	*c = (struct ldcache){0};
	*had = rc != 0;
	if (rc > 0)
		rc = ldcache_read(c, old->data, old->len, &why);
	if (rc >= 0)
		return 0;
	ldcache_fini(c);
	if (why.kind != ERR_CORRUPT)
		return err_set(e, why.kind, "%s", why.text);
	warn("the image's %s is damaged, and made anew: %s", CACHE, why.text);
	return 0;
}

/* What root_file_put() has met. */
static const char *why_no_place(int root)
{
	auto_fd int fd = sys_open_in_root(root, CACHE, O_PATH | O_NOFOLLOW, 0);
	struct stat st;

	if (fd < 0 || sys_fstat(fd, &st) < 0)
		return "is not there, and the container's /etc is read-only or on a volume";
	return S_ISDIR(st.st_mode) ? "is a folder in the container"
				   : "is on a volume of the container";
}

static int update_cache(struct root_files *f, struct found *found, const struct ld_dirs *d,
	const struct strings *last, struct err *e)
{
	auto_buf struct buf old = BUF_INIT(LDCACHE_MAX), merged = BUF_INIT(LDCACHE_MAX);
	struct ldcache c = {0};
	bool had;
	int rc = read_cache(&c, f->root, &old, &had, e);

	if (rc == 0) {
		ldcache_drop(&c, last);
		rc = find_all(found, f->root, d, &c, e);
	}
	if (rc == 0)
		rc = ldcache_write(&c, found->v, found->n, &merged, e);
	ldcache_fini(&c);
	if (rc < 0)
		return err_ctx(e, "the image's %s", CACHE);
	if (merged.len == 0)
		return had && root_file_remove(f, CACHE, e) < 0 ? -1 : 0;
	rc = root_file_put(f, CACHE, merged.data, merged.len, e);
	if (rc == 0 && found->n)
		warn("%s %s: programs find the GPU's libraries by LD_LIBRARY_PATH only", CACHE,
			why_no_place(f->root));
	return rc < 0 ? -1 : 0;
}

static int take_back_conf(struct root_files *f, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(CONF_MAX);

	if (root_file_read(f->root, CONF, &b, NULL) > 0 && str_eq(b.data, CONF_TEXT) &&
		root_file_remove(f, CONF, e) < 0)
		return -1;
	return root_file_remove(f, LAST, e) < 0 ? -1 : 0;
}

static int add_lines(struct buf *b, const struct strings *lines, struct err *e)
{
	for (size_t i = 0; i < lines->n; i++)
		if (buf_add(b, lines->v[i], strlen(lines->v[i]), e) < 0 ||
			buf_add(b, "\n", 1, e) < 0)
			return -1;
	return 0;
}

static int update_conf(struct root_files *f, const struct strings *dirs, const char *single,
	const char *notes, bool glibc, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(CONF_MAX);
	auto_fd int conf = -1;

	if (add_lines(&b, dirs, e) < 0 || buf_add(&b, single, strlen(single), e) < 0 ||
		buf_add(&b, notes, strlen(notes), e) < 0)
		return -1;
	if (b.len == 0)
		return take_back_conf(f, e);
	if (root_file_put(f, LAST, b.data, b.len, e) < 0)
		return -1;
	conf = sys_open_in_root(f->root, CONF, O_PATH | O_NOFOLLOW, 0);
	if (!glibc || dirs->n == 0 || conf >= 0)
		return 0;
	return root_file_put(f, CONF, CONF_TEXT, strlen(CONF_TEXT), e) < 0 ? -1 : 0;
}

/* ---- musl ---- */

/* The architecture in the name of musl's loader, or NULL: the image has none. */
static const char *musl_of(int root)
{
	static const char *const arches[] = {"x86_64", "aarch64", "i386", "x32", "armhf", "arm",
		"powerpc64le", "powerpc64", "riscv64", "s390x", "loongarch64"};
	char path[64];

	for (size_t i = 0; i < sizeof(arches) / sizeof(arches[0]); i++) {
		auto_fd int fd = -1;

		snprintf(path, sizeof(path), "/lib/ld-musl-%s.so.1", arches[i]);
		fd = sys_open_in_root(root, path, O_PATH | O_NOFOLLOW, 0);
		if (fd >= 0)
			return arches[i];
	}
	return NULL;
}

static bool among(const struct strings *list, const char *p, size_t n)
{
	for (size_t i = 0; i < list->n; i++)
		if (strlen(list->v[i]) == n && memcmp(list->v[i], p, n) == 0)
			return true;
	return false;
}

/* Its file has folders between newlines or colons. */
static int update_musl(struct root_files *f, const char *arch, const struct ld_dirs *d,
	const struct strings *last, struct err *e)
{
	auto_buf struct buf old = BUF_INIT(CONF_MAX), b = BUF_INIT(2 * CONF_MAX);
	char path[64];
	int rc;

	snprintf(path, sizeof(path), "/etc/ld-musl-%s.path", arch);
	rc = root_file_read(f->root, path, &old, e);
	if (rc < 0 || (rc == 0 && buf_add(&old, MUSL_DEFAULT, strlen(MUSL_DEFAULT), e) < 0))
		return -1;
	if (add_lines(&b, &d->dirs, e) < 0)
		return -1;
	for (const char *p = old.data; p && *p;) {
		size_t n = strcspn(p, ":\n");

		if (n && !among(last, p, n) && !among(&d->dirs, p, n) &&
			(buf_add(&b, p, n, e) < 0 || buf_add(&b, "\n", 1, e) < 0))
			return -1;
		p += n + (p[n] != '\0');
	}
	if (b.len == 0 || str_eq(b.data, MUSL_DEFAULT))
		rc = rc ? root_file_remove(f, path, e) : 0;
	else
		rc = root_file_put(f, path, b.data, b.len, e);
	return rc < 0 ? -1 : 0;
}

/* ---- all ---- */

int ldcache_add_dirs(struct root_files *f, const struct ld_dirs *d, const char *last, struct err *e)
{
	struct found found = {.single = BUF_INIT(CONF_MAX)};
	struct arena mem = {0};
	struct strings before = {0};
	bool any = d->dirs.n || d->compat;
	const char *musl;
	int rc = 0;

	if (!last && !any && !d->notes)
		return 0;
	read_last(arena_strdup(&mem, last ? last : ""), &before, &mem);
	musl = any || before.n ? musl_of(f->root) : NULL;
	/* an image may have both */
	auto_fd int cache = musl ? sys_open_in_root(f->root, CACHE, O_PATH | O_NOFOLLOW, 0) : -1;
	bool glibc = !musl || cache >= 0;

	if (glibc && (any || before.n))
		rc = update_cache(f, &found, d, &before, e);
	if (rc == 0 && musl)
		rc = update_musl(f, musl, d, &before, e);
	if (rc == 0)
		rc = update_conf(f, glibc ? &found.dirs : &d->dirs,
			found.single.len ? found.single.data : "", d->notes ? d->notes : "", glibc,
			e);
	buf_fini(&found.single);
	mem_free_ref(&found.v);
	arena_fini(&found.mem);
	arena_fini(&mem);
	return rc;
}
