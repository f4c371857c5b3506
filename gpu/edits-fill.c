/* What is done in the container's root: edits.h, gpu_edits_fill(). */
#include <fcntl.h>
#include <sys/file.h>

#include "base/elf.h"
#include "base/sys.h"
#include "gpu/compat.h"
#include "gpu/edits.h"
#include "gpu/facts.h"
#include "gpu/fill-proc.h"
#include "gpu/ldcache.h"
#include "gpu/path.h"

#define PROFILE "/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf"
/* Lines that the loader's folder file keeps for us: what to take back. */
#define NOTE_LINK "# link\t"
#define NOTE_FILE "# file\t"

enum { LAST_MAX = 1 << 20 };

/* ---- glibc ---- */

/* The version of the image's own; "" when it has none, or none that can be read. */
static void image_glibc(int root, char version[ELF_GLIBC_MAX])
{
	static const char *const paths[] = {"/lib64/libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6",
		"/lib/aarch64-linux-gnu/libc.so.6", "/usr/lib64/libc.so.6", "/usr/lib/libc.so.6",
		"/lib/libc.so.6"};
	struct elf_input in;
	struct elf_glibc g;

	*version = '\0';
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		auto_fd int fd = root_file_open(root, paths[i], 1);

		if (fd < 0)
			continue;
		if (elf_input_fd(&in, &fd, NULL) == 0 && elf_glibc(&g, &in, NULL) > 0)
			memcpy(version, g.defined, sizeof(g.defined));
		return;
	}
}

static int check_glibc(const struct gpu_edits *x, int root, struct err *e)
{
	char has[ELF_GLIBC_MAX];

	if (!x->glibc_needed)
		return 0;
	image_glibc(root, has);
	if (!*has || str_version_compare(has, x->glibc_needed) >= 0)
		return 0;
	err_set(e, ERR_UNSUPPORTED, "the GPU driver needs glibc %s, and the image has %s",
		x->glibc_needed, has);
	return err_hint(e, "use an image with glibc %s or newer, or a host with an older driver",
		x->glibc_needed);
}

/* ---- what an earlier start made ---- */

static bool wants_link(const struct gpu_edits *x, const char *path, const char *target)
{
	for (size_t i = 0; i < x->nlinks; i++)
		if (str_eq(x->links[i].path, path) && str_eq(x->links[i].target, target))
			return true;
	return false;
}

static int take_back(
	struct root_files *f, const struct gpu_edits *x, const char *last, struct err *e)
{
	auto_free char *text = mem_strdup(last);
	char *save = NULL;
	int rc = 0;

	for (char *line = strtok_r(text, "\n", &save); line && rc >= 0;
		line = strtok_r(NULL, "\n", &save)) {
		char *path = line + strlen(NOTE_LINK), *tab;

		if (str_starts(line, NOTE_FILE)) {
			if (str_eq(path, PROFILE) && !x->visible_profile)
				rc = root_file_remove(f, PROFILE, e);
			continue;
		}
		tab = str_starts(line, NOTE_LINK) ? strchr(path, '\t') : NULL;
		if (!tab)
			continue;
		*tab = '\0';
		if (!wants_link(x, path, tab + 1))
			rc = root_link_remove(f, path, tab + 1, e);
	}
	return rc < 0 ? -1 : 0;
}

/* ---- links ---- */

/* What would break the lines of the note is not noted. */
static bool is_plain(const char *text)
{
	return !strpbrk(text, "\t\n");
}

static int note(struct buf *notes, const char *what, const char *a, const char *b, struct err *e)
{
	auto_free char *line = mem_printf("%s%s%s%s\n", what, a, *b ? "\t" : "", b);

	return buf_add(notes, line, strlen(line), e);
}

/* lasting: only those that are not new at every start. */
static int make_links(struct root_files *f, const struct gpu_edits *x, bool lasting,
	struct buf *notes, struct err *e)
{
	const char *first = NULL;
	size_t missing = 0;

	for (size_t i = 0; i < x->nlinks; i++) {
		const struct edit_link *l = &x->links[i];

		if (lasting && path_is_new(l->path))
			continue;
		int rc = root_link(f, l->path, l->target, e);

		if (rc < 0)
			return -1;
		if (rc == 0) {
			first = first ? first : l->path;
			missing++;
			continue;
		}
		/* of what is new at every start there is nothing to take back */
		if (is_plain(l->path) && is_plain(l->target) && !path_is_new(l->path) &&
			note(notes, NOTE_LINK, l->path, l->target, e) < 0)
			return -1;
	}
	if (missing)
		warn("the container has no place for %zu links of the GPU's driver: %s%s", missing,
			first, missing > 1 ? " and others" : "");
	return 0;
}

static int put_profile(
	struct root_files *f, const struct gpu_edits *x, struct buf *notes, struct err *e)
{
	int rc;

	if (!x->visible_profile || !*x->visible_profile)
		return 0;
	rc = root_file_put(f, PROFILE, x->visible_profile, strlen(x->visible_profile), e);
	if (rc == 0)
		warn("the container has no place for %s: EGL shows every GPU that it finds",
			PROFILE);
	return rc > 0 ? note(notes, NOTE_FILE, PROFILE, "", e) : rc;
}

/* ---- the loader ---- */

/* The folder of newer libraries that the image brings, or NULL. A library that cannot be read is
 * not used: what the host has serves as well as it can. */
static const char *compat_dir(const struct gpu_edits *x, int root)
{
	bool at_least;
	const char *dir, *why, *cuda;
	struct err e = {0};
	int rc;

	if (!x->compat_driver)
		return NULL;
	cuda = gpu_driver_cuda(x->compat_driver, NULL, &at_least);
	rc = compat_decide(root, x->compat_driver, cuda, x->compat, &dir, &why, &e);
	if (rc < 0)
		warn("%s: not used", e.text);
	else if (rc == 0 && x->compat > 0)
		warn("forward compatibility: %s", why);
	return rc > 0 ? dir : NULL;
}

static int update_loader(struct root_files *f, const struct gpu_edits *x, const struct buf *notes,
	const char *last, struct err *e)
{
	const struct ld_dirs d = {
		.dirs = {x->ld_dirs, x->nld_dirs},
		.compat = compat_dir(x, f->root),
		.known = x->libs,
		.nknown = x->nlibs,
		.notes = notes->len ? notes->data : NULL,
	};

	return ldcache_add_dirs(f, &d, last, e);
}

/* ---- all ---- */

static int fill_files(struct root_files *f, const struct gpu_edits *x, bool lasting, struct err *e)
{
	auto_buf struct buf last = BUF_INIT(LAST_MAX), notes = BUF_INIT(LAST_MAX);
	struct err why = {0};
	int had = ldcache_last(f->root, &last, &why);

	if (had < 0 && why.kind != ERR_CORRUPT)
		return err_set(e, why.kind, "%s", why.text);
	if (had > 0 && take_back(f, x, last.data, e) < 0)
		return -1;
	if (make_links(f, x, lasting, &notes, e) < 0 || put_profile(f, x, &notes, e) < 0)
		return -1;
	return update_loader(f, x, &notes, had > 0 ? last.data : NULL, e);
}

static int fill_proc(struct root_files *f, const struct gpu_edits *x, struct err *e)
{
	if (x->keep_device_files && fill_proc_params(f, e) < 0)
		return -1;
	return x->gpus_hidden ? fill_proc_gpus(f, x->gpu_buses, x->ngpu_buses, e) : 0;
}

int gpu_edits_fill_files(const struct gpu_edits *x, int root, struct err *e)
{
	auto_root_files struct root_files f = {.tmpfs = -1};

	if (check_glibc(x, root, e) < 0 || root_files_open(&f, root, NULL, 0, e) < 0)
		return -1;
	return fill_files(&f, x, true, e);
}

/* By now the view is mounted, and whoever wants to make another need not wait for this container.
 */
static int let_go_of_view(const struct gpu_edits *x, struct err *e)
{
	if (x->has_view_lock && sys_flock(x->view_lock, LOCK_UN) < 0)
		return err_sys(e, "unlock the driver views");
	return 0;
}

int gpu_edits_fill_new(
	const struct gpu_edits *x, int root, const uint64_t *own, size_t nown, struct err *e)
{
	auto_root_files struct root_files f = {.tmpfs = -1};

	if (let_go_of_view(x, e) < 0 || root_files_open(&f, root, own, nown, e) < 0)
		return -1;
	for (size_t i = 0; i < x->nlinks; i++)
		if (path_is_new(x->links[i].path) &&
			root_link(&f, x->links[i].path, x->links[i].target, e) < 0)
			return -1;
	return fill_proc(&f, x, e);
}

int gpu_edits_fill(
	const struct gpu_edits *x, int root, const uint64_t *own, size_t nown, struct err *e)
{
	auto_root_files struct root_files f = {.tmpfs = -1};

	if (let_go_of_view(x, e) < 0 || check_glibc(x, root, e) < 0)
		return -1;
	if (root_files_open(&f, root, own, nown, e) < 0 || fill_files(&f, x, false, e) < 0)
		return -1;
	return fill_proc(&f, x, e);
}
