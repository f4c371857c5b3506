#include <dirent.h>
#include <fcntl.h>

#include "base/elf.h"
#include "base/sys.h"
#include "gpu/driver-table.h"
#include "gpu/ldcache.h"
#include "gpu/view.h"

enum { DIRS_MAX = 24, PATH_BYTES = 4096, VERSION_MAX = 64 };

/* Folders that exist, in the order of the search. */
struct dirs {
	const char *names[DIRS_MAX]; /* below the driver's root */
	int fds[DIRS_MAX];
	size_t n;
};

struct search {
	const struct gpu_host *h;
	struct driver_files *f;
	const char *version;
	unsigned caps;
	int root; /* the driver's */
	struct dirs dirs;
	char glibc[ELF_GLIBC_MAX];
	struct err *e;
};

static void dirs_close(struct dirs *d)
{
	while (d->n)
		sys_close_ref(&d->fds[--d->n]);
}

static void dirs_add(struct dirs *d, int root, const char *name)
{
	int fd = d->n < DIRS_MAX ? sys_open_in_root(root, name, O_PATH | O_DIRECTORY, 0) : -1;

	if (fd < 0)
		return;
	d->names[d->n] = name;
	d->fds[d->n++] = fd;
}

static void dirs_open(struct dirs *d, int root, const char *const *names)
{
	d->n = 0;
	for (; *names; names++)
		dirs_add(d, root, *names);
}

/* ---- one file ---- */

int driver_file_check(int fd, const char *path, struct err *e)
{
	struct stat st;

	if (sys_fstat(fd, &st) < 0)
		return err_sys(e, "look at %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_DENIED, "driver file %s is no regular file", path);
	if (st.st_uid != 0)
		return err_set(e, ERR_DENIED, "driver file %s belongs to user %u, not to root",
			path, st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, ERR_DENIED,
			"driver file %s can be written to by others than root", path);
	if (!(st.st_mode & S_IROTH))
		return err_set(e, ERR_DENIED, "driver file %s is not for everybody to read", path);
	return 0;
}

/* Where an open file is below the host's root, links resolved; in the arena. */
static const char *real_path(const struct search *s, int fd, const char *path)
{
	char proc[64], text[PATH_BYTES];
	size_t skip = strlen(s->h->prefix);
	ssize_t n;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	n = readlink(proc, text, sizeof(text) - 1);
	if (n < 0) {
		err_sys(s->e, "path of %s", path);
		return NULL;
	}
	text[n] = '\0';
	if (!str_starts(text, s->h->prefix) || text[skip] != '/') {
		err_set(s->e, ERR_DENIED, "driver file %s leads out of %s, to %s", path,
			*s->h->prefix ? s->h->prefix : "/", text);
		return NULL;
	}
	return arena_strdup(&s->f->mem, text + skip);
}

/* What a link leads to, in the driver's root. 1 with *fd; 0: there is none, or (loose) a link to
 * nowhere. */
static int open_file(const struct search *s, const char *path, bool loose, int *fd)
{
	*fd = sys_open_in_root(s->root, path, O_PATH, 0);
	if (*fd < 0) {
		if (loose && (errno == ENOENT || errno == ENOTDIR))
			return 0;
		return err_set(s->e, ERR_DENIED,
			"driver file %s%s/%s is a link that leads to nothing in the driver's root",
			s->h->prefix, str_eq(s->f->root, "/") ? "" : s->f->root, path);
	}
	return driver_file_check(*fd, path, s->e) < 0 ? -1 : 1;
}

static int open_for_reading(int fd, const char *path, struct err *e)
{
	char proc[64];
	int readable;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	readable = sys_open(proc, O_RDONLY, 0);
	return readable < 0 ? err_sys(e, "open %s", path) : readable;
}

static int note_glibc(struct search *s, const struct elf_input *in, const char *path)
{
	struct elf_glibc g;

	if (elf_glibc(&g, in, s->e) < 0)
		return err_ctx(s->e, "driver file %s", path);
	if (str_version_compare(g.needed, s->glibc) > 0)
		memcpy(s->glibc, g.needed, sizeof(s->glibc));
	return 0;
}

/* ---- libraries ---- */

static bool is_machine(const struct elf_kind *k, bool bits32)
{
	const struct elf_kind *want = &driver_kinds[bits32];

	return k->bits == want->bits && k->machine == want->machine &&
	       k->big_endian == want->big_endian;
}

static void add_alias(struct driver_file *d, const char *alias)
{
	size_t i = 0;

	if (!alias || str_eq(alias, strrchr(d->name, '/') + 1))
		return;
	while (i < 3 && d->aliases[i] && !str_eq(d->aliases[i], alias))
		i++;
	if (i < 3)
		d->aliases[i] = alias;
}

static void add_library(struct search *s, const struct driver_library *l, size_t dir,
	const char *source, const char *soname, bool bits32)
{
	struct driver_file *d = &s->f->v[s->f->n++];
	struct stat st;

	*d = (struct driver_file){.source = source,
		.soname = soname,
		.caps = l->caps & s->caps,
		.bits32 = bits32,
		.name = arena_printf(
			&s->f->mem, "%s/%s", bits32 ? "lib32" : "lib64", strrchr(source, '/') + 1)};
	add_alias(d, soname);
	if (l->plain && (l->always || sys_fstatat(s->dirs.fds[dir], l->plain, &st,
					      AT_SYMLINK_NOFOLLOW) == 0))
		add_alias(d, l->plain);
	/* where Mesa's loader of GBM backends looks */
	if (str_eq(l->stem, "libnvidia-allocator") && !bits32 &&
		(s->caps & (GPU_CAP_GRAPHICS | GPU_CAP_DISPLAY)))
		d->link = arena_printf(&s->f->mem, "/%s/gbm/nvidia-drm_gbm.so", driver_dirs[0]);
}

/* The library as dirs[i] has it. 1, 0: it is not there, or for another machine. */
static int try_library(
	struct search *s, const struct driver_library *l, const char *name, size_t i, bool bits32)
{
	char path[PATH_BYTES];
	struct elf_input in;
	struct elf_file elf;
	struct stat st;
	auto_fd int fd = -1, readable = -1;
	const char *source;
	int rc;

	if (sys_fstatat(s->dirs.fds[i], name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", s->dirs.names[i], name);
	rc = open_file(s, path, l->soname != NULL, &fd);
	if (rc <= 0)
		return rc;
	readable = open_for_reading(fd, path, s->e);
	if (readable < 0 || elf_input_fd(&in, &readable, s->e) < 0)
		return -1;
	rc = elf_read(&elf, &in, &s->f->mem, s->e);
	if (rc < 0)
		return err_ctx(s->e, "driver file %s", path);
	if (rc == 0)
		return err_set(s->e, ERR_CORRUPT, "driver file %s is no shared library", path);
	if (!is_machine(&elf.kind, bits32))
		return 0;
	if (elf.soname && (strchr(elf.soname, '/') || !*elf.soname || strlen(elf.soname) > 255))
		return err_set(s->e, ERR_CORRUPT, "driver file %s: its SONAME is no name", path);
	source = real_path(s, fd, path);
	if (!source || note_glibc(s, &in, path) < 0)
		return -1;
	add_library(s, l, i, source, elf.soname ? elf.soname : name, bits32);
	return 1;
}

static int take_libraries(struct search *s, bool bits32)
{
	for (size_t k = 0; k < driver_libraries_n; k++) {
		const struct driver_library *l = &driver_libraries[k];
		char name[256];
		int rc = 0;

		if (!(l->caps & s->caps))
			continue;
		if (l->soname)
			snprintf(name, sizeof(name), "%s", l->soname);
		else
			snprintf(name, sizeof(name), "%s.so.%s", l->stem, s->version);
		for (size_t i = 0; i < s->dirs.n && rc == 0; i++)
			rc = try_library(s, l, name, i, bits32);
		if (rc < 0)
			return -1;
	}
	return 0;
}

/* ---- the rest ---- */

/* "libglxserver_nvidia.so.888.11.22" when another version is wanted. */
static bool is_other_version(const char *source, const char *version)
{
	const char *at = strstr(strrchr(source, '/'), ".so.");

	return at && !str_eq(at + strlen(".so."), version);
}

/* The first of the folders that has the file. */
static int take_other(struct search *s, const struct driver_other *o, const char *const *dirs,
	const char *rest, const char *name, const char *link)
{
	char path[PATH_BYTES];
	struct elf_input in;

	for (; *dirs; dirs++) {
		auto_fd int fd = -1, readable = -1;
		const char *source;
		int rc;

		snprintf(path, sizeof(path), "%s/%s", *dirs, rest);
		rc = open_file(s, path, true, &fd);
		if (rc < 0)
			return -1;
		source = rc ? real_path(s, fd, path) : NULL;
		if (rc && !source)
			return -1;
		if (!source || is_other_version(source, s->version))
			continue;
		readable = open_for_reading(fd, path, s->e);
		if (readable < 0 || elf_input_fd(&in, &readable, s->e) < 0 ||
			note_glibc(s, &in, path) < 0)
			return -1;
		s->f->v[s->f->n++] = (struct driver_file){
			.source = source, .name = name, .link = link, .caps = o->caps & s->caps};
		return 0;
	}
	return 0;
}

static int take_others(struct search *s)
{
	static const char *const etc[] = {"etc", NULL};
	static const struct {
		const char *prefix, *link;
		const char *const *dirs;
	} places[] = {{"etc/", "/etc/", etc}, {"share/", "/usr/share/", driver_shares},
		{"xorg/", "/usr/lib/xorg/", driver_xorgs}};
	struct arena *mem = &s->f->mem;

	for (size_t i = 0; i < driver_programs_n; i++) {
		const struct driver_other *o = &driver_programs[i];

		if ((o->caps & s->caps) &&
			take_other(s, o, driver_bins, o->path, arena_printf(mem, "bin/%s", o->path),
				arena_printf(mem, "/usr/bin/%s", o->path)) < 0)
			return -1;
	}
	for (size_t i = 0; i < driver_data_n; i++)
		for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
			const struct driver_other *o = &driver_data[i];
			const char *rest = o->path + strlen(places[k].prefix);

			if ((o->caps & s->caps) && str_starts(o->path, places[k].prefix) &&
				take_other(s, o, places[k].dirs, rest, o->path,
					arena_printf(mem, "%s%s", places[k].link, rest)) < 0)
				return -1;
		}
	return 0;
}

void driver_sockets_find(
	struct strings *out, struct arena *mem, const struct gpu_host *h, unsigned caps)
{
	*out = (struct strings){.v = arena_alloc(mem, driver_sockets_n * sizeof(*out->v))};
	for (size_t i = 0; i < driver_sockets_n; i++) {
		auto_fd int fd = -1;
		struct stat st;

		if (!(driver_sockets[i].caps & caps))
			continue;
		fd = sys_open_in_root(h->root, driver_sockets[i].path, O_PATH, 0);
		if (fd >= 0 && sys_fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode))
			out->v[out->n++] = driver_sockets[i].path;
	}
}

/* ---- where it is ---- */

static bool has_driver(const struct search *s)
{
	static const char *const anchors[] = {"libcuda", "libnvidia-ml"};
	char name[128];
	struct stat st;

	for (size_t i = 0; i < s->dirs.n; i++)
		for (size_t k = 0; k < 2; k++) {
			snprintf(name, sizeof(name), "%s.so.%s", anchors[k], s->version);
			if (sys_fstatat(s->dirs.fds[i], name, &st, AT_SYMLINK_NOFOLLOW) == 0)
				return true;
		}
	return false;
}

/* A host may have the driver where only its own loader knows. */
static void add_cached_dir(struct search *s)
{
	auto_buf struct buf b = BUF_INIT(LDCACHE_MAX);
	struct ldcache c = {0};

	if (root_file_read(s->root, "etc/ld.so.cache", &b, NULL) > 0 &&
		ldcache_read(&c, b.data, b.len, NULL) == 0)
		for (size_t i = 0; i < c.n; i++) {
			const char *slash = strrchr(c.v[i].path, '/');

			if (slash && slash > c.v[i].path &&
				(str_eq(c.v[i].soname, "libcuda.so.1") ||
					str_eq(c.v[i].soname, "libnvidia-ml.so.1")))
				dirs_add(&s->dirs, s->root,
					arena_strndup(&s->f->mem, c.v[i].path + 1,
						(size_t)(slash - c.v[i].path - 1)));
		}
	ldcache_fini(&c);
}

static bool find_root(struct search *s)
{
	for (const char *const *r = driver_roots; *r; r++) {
		s->root = sys_open_in_root(s->h->root, **r ? *r : "/", O_PATH | O_DIRECTORY, 0);
		if (s->root < 0)
			continue;
		s->f->root = arena_printf(&s->f->mem, "/%s", *r);
		dirs_open(&s->dirs, s->root, driver_dirs);
		if (has_driver(s))
			return true;
		add_cached_dir(s);
		if (has_driver(s))
			return true;
		dirs_close(&s->dirs);
		sys_close_ref(&s->root);
	}
	return false;
}

/* Versions of libcuda that are there, for the hint. */
static void find_versions(int fd, struct buf *out)
{
	int readable = sys_openat(fd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *d = readable < 0 ? NULL : fdopendir(readable);
	const struct dirent *entry;

	if (!d) {
		sys_close_ref(&readable);
		return;
	}
	while ((entry = readdir(d)) && out->len < 128) {
		const char *version = entry->d_name + strlen("libcuda.so.");

		if (str_starts(entry->d_name, "libcuda.so.") && strchr(version, '.') &&
			strlen(version) < VERSION_MAX && (!out->len || !strstr(out->data, version)))
			buf_printf(out, "%s%s", out->len ? ", " : "", version);
	}
	closedir(d);
}

static int not_found(const struct search *s)
{
	auto_buf struct buf where = BUF_INIT(4096), versions = BUF_INIT(4096);

	for (const char *const *r = driver_roots; *r; r++) {
		auto_fd int root =
			sys_open_in_root(s->h->root, **r ? *r : "/", O_PATH | O_DIRECTORY, 0);

		for (const char *const *d = driver_dirs; root >= 0 && *d; d++) {
			auto_fd int fd = sys_open_in_root(root, *d, O_PATH | O_DIRECTORY, 0);

			if (fd < 0)
				continue;
			buf_printf(&where, "%s%s/%s%s%s", where.len ? ", " : "", s->h->prefix, *r,
				**r ? "/" : "", *d);
			find_versions(fd, &versions);
		}
	}
	err_set(s->e, ERR_NOT_FOUND,
		"the libraries of NVIDIA's driver %s, which the kernel has loaded, are in none of: "
		"%s",
		s->version, where.len ? where.data : "(no folder that they could be in)");
	if (versions.len)
		return err_hint(s->e,
			"found those of %s: load that version's kernel module (a restart does), or "
			"install %s",
			versions.data, s->version);
	return err_hint(s->e, "install the user-space part of driver %s", s->version);
}

static bool is_version(const char *text)
{
	return *text && strlen(text) < VERSION_MAX && !text[strspn(text, "0123456789.")];
}

int driver_files_find(struct driver_files *f, const struct gpu_host *h, const char *version,
	unsigned caps, struct err *e)
{
	struct search s = {.h = h, .f = f, .version = version, .caps = caps, .root = -1, .e = e};
	int rc;

	*f = (struct driver_files){.n = 0};
	if (!is_version(version))
		return err_set(e, ERR_CORRUPT, "'%.64s' is no version of a driver", version);
	f->v = arena_alloc(&f->mem,
		(2 * driver_libraries_n + driver_programs_n + driver_data_n) * sizeof(*f->v));
	if (!find_root(&s)) {
		rc = not_found(&s);
	} else {
		rc = take_libraries(&s, false);
		if (rc == 0 && (caps & GPU_CAP_COMPAT32)) {
			dirs_close(&s.dirs);
			dirs_open(&s.dirs, s.root, driver_dirs32);
			rc = take_libraries(&s, true);
		}
		if (rc == 0)
			rc = take_others(&s);
		driver_sockets_find(&f->sockets, &f->mem, h, caps);
	}
	if (rc == 0 && *s.glibc)
		f->glibc = arena_strdup(&f->mem, s.glibc);
	dirs_close(&s.dirs);
	sys_close_ref(&s.root);
	if (rc < 0)
		driver_files_fini(f);
	return rc;
}

void driver_files_fini(struct driver_files *f)
{
	arena_fini(&f->mem);
	*f = (struct driver_files){.n = 0};
}
