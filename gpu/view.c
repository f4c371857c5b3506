#include "gpu/view.h"

#include <fcntl.h>
#include <sys/file.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "gpu/ldcache.h"
#include "gpu/view-build.h"

#define WSL "/usr/lib/wsl"
enum { TRIES = 4 }; /* the first without building; others may build or sweep between ours */

/* ---- capabilities ---- */

static const struct {
	const char *word;
	unsigned bit;
} words[] = {
	{"compute", GPU_CAP_COMPUTE},
	{"utility", GPU_CAP_UTILITY},
	{"video", GPU_CAP_VIDEO},
	{"graphics", GPU_CAP_GRAPHICS},
	{"display", GPU_CAP_DISPLAY},
	{"ngx", GPU_CAP_NGX},
	{"compat32", GPU_CAP_COMPAT32},
	{"all", GPU_CAP_ALL},
};

static int take_word(const char *word, size_t n, unsigned *caps, struct err *e)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i].word) == n && memcmp(words[i].word, word, n) == 0) {
			*caps |= words[i].bit;
			return 0;
		}
	err_set(e, ERR_USAGE, "no driver capability is called '%.*s'", (int)(n < 64 ? n : 64),
		word);
	return err_hint(
		e, "there are compute, utility, video, graphics, display, ngx, compat32, all");
}

int gpu_capabilities_parse(const char *text, unsigned *caps, struct err *e)
{
	unsigned got = 0;

	for (const char *p = text; *p;) {
		size_t n = strcspn(p, ",");

		if (n && take_word(p, n, &got, e) < 0)
			return -1;
		p += n + (p[n] == ',');
	}
	*caps = got;
	return 0;
}

/* ---- is it there? ---- */

static bool number_is(const json_t *list, size_t i, uint64_t v)
{
	return json_integer_value(json_array_get(list, i)) == (json_int_t)v;
}

/* Is every file the one that was bound? A view of a reinstalled driver would keep the old ones. */
static bool is_current(const struct gpu_host *h, const json_t *doc)
{
	const json_t *files = json_object_get(doc, "files"), *f;
	size_t i;

	if (!json_is_array(files))
		return false;
	json_array_foreach (files, i, f) {
		const char *path = json_string_value(json_array_get(f, 0));
		struct stat st;

		if (!path || *path != '/' ||
			sys_fstatat(h->root, path + 1, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!number_is(f, 1, st.st_dev) || !number_is(f, 2, st.st_ino) ||
			!number_is(f, 3, (uint64_t)st.st_mtim.tv_sec) ||
			!number_is(f, 4, (uint64_t)st.st_mtim.tv_nsec))
			return false;
	}
	return true;
}

int view_load(const struct gpu_host *h, const char *name, json_t **doc, struct err *e)
{
	auto_free char *path = mem_printf("%s/views/%s/view.json", h->run, name);
	auto_buf struct buf b = BUF_INIT(VIEW_JSON_MAX);
	auto_fd int fd = sys_open(path, O_RDONLY | O_NOFOLLOW, 0);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open %s", path);
	if (file_read_fd(fd, path, &b, e) < 0)
		return -1;
	*doc = json_loadb(b.data, b.len, 0, NULL);
	if (*doc && is_current(h, *doc))
		return 1;
	json_decref(*doc);
	*doc = NULL;
	return 0;
}

/* ---- to edits ---- */

static const char *const view_options[] = {"rbind", "ro", "nosuid", "nodev", "rprivate"};
/* Not read-only: whoever connects to a socket writes to it. */
static const char *const socket_options[] = {"bind", "nosuid", "nodev", "noexec", "rprivate"};
#define OPTIONS(v) .options = (v), .noptions = sizeof(v) / sizeof((v)[0])

static const char *in_view(struct gpu_edits *x, const char *name)
{
	return arena_printf(&x->mem, "%s/%s", GPU_VIEW_PATH, name);
}

static void add_links(struct gpu_edits *x, const json_t *links)
{
	for (size_t i = 0; i < json_array_size(links); i++) {
		const json_t *l = json_array_get(links, i);
		const char *path = json_string_value(json_array_get(l, 0));
		const char *name = json_string_value(json_array_get(l, 1));

		if (path && name)
			gpu_edits_link(x, arena_strdup(&x->mem, path), in_view(x, name));
	}
}

static void add_libraries(struct gpu_edits *x, const json_t *libraries)
{
	struct ld_entry *v = arena_alloc(&x->mem, (json_array_size(libraries) + 1) * sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(libraries); i++) {
		const json_t *l = json_array_get(libraries, i);
		const char *soname = json_string_value(json_array_get(l, 0));
		const char *folder = json_string_value(json_array_get(l, 1));

		if (!soname || !folder)
			continue;
		v[n].path = arena_printf(&x->mem, "%s/%s/%s", GPU_VIEW_PATH, folder, soname);
		v[n].soname = strrchr(v[n].path, '/') + 1;
		v[n++].flags = (uint32_t)json_integer_value(json_array_get(l, 2));
	}
	x->libs = v;
	x->nlibs = n;
}

/* Daemons come and go, so sockets are looked for at each start. */
static void add_sockets(struct gpu_edits *x, const struct gpu_host *h, unsigned caps)
{
	struct strings found = {0};

	driver_sockets_find(&found, &x->mem, h, caps);
	for (size_t i = 0; i < found.n; i++)
		gpu_edits_mount(x, &(struct edit_mount){.source = arena_printf(&x->mem, "%s%s",
								h->prefix, found.v[i]),
					   .destination = found.v[i],
					   OPTIONS(socket_options)});
}

static void add_view(struct gpu_edits *x, const struct gpu_host *h, const char *name,
	const json_t *doc, unsigned caps)
{
	const char *glibc = json_string_value(json_object_get(doc, "glibc"));

	gpu_edits_mount(x,
		&(struct edit_mount){.source = arena_printf(&x->mem, "%s/views/%s", h->run, name),
			.destination = GPU_VIEW_PATH,
			OPTIONS(view_options)});
	gpu_edits_ld_dir(x, GPU_VIEW_PATH "/" VIEW_LIB);
	if (caps & GPU_CAP_COMPAT32)
		gpu_edits_ld_dir(x, GPU_VIEW_PATH "/" VIEW_LIB32);
	add_links(x, json_object_get(doc, "links"));
	add_libraries(x, json_object_get(doc, "libraries"));
	if (glibc)
		x->glibc_needed = arena_strdup(&x->mem, glibc);
	add_sockets(x, h, caps);
}

/* Windows brings the driver: two folders that its own mounts fill. */
static int add_wsl(struct gpu_edits *x, const struct gpu_host *h, unsigned caps, struct err *e)
{
	auto_fd int fd = sys_open_in_root(h->root, WSL "/lib", O_PATH | O_DIRECTORY, 0);

	if (fd < 0)
		return err_sys(e, "the driver of Windows: %s%s/lib", h->prefix, WSL);
	gpu_edits_mount(
		x, &(struct edit_mount){.source = arena_printf(&x->mem, "%s%s", h->prefix, WSL),
			   .destination = WSL,
			   OPTIONS(view_options)});
	gpu_edits_ld_dir(x, WSL "/lib");
	if (caps & GPU_CAP_UTILITY)
		gpu_edits_link(x, "/usr/bin/nvidia-smi", WSL "/lib/nvidia-smi");
	return 0;
}

/* Nobody lets go of the view between this and its mount: see gpu_edits.view_lock. 0: there is none,
 * and no lock. */
static int load_locked(struct gpu_edits *x, const struct gpu_host *h, const char *name,
	json_t **doc, struct err *e)
{
	auto_fd int lock = views_lock(h, LOCK_SH, e);
	int rc = lock < 0 ? -1 : view_load(h, name, doc, e);

	if (rc > 0) {
		x->has_view_lock = true;
		x->view_lock = steal_fd(&lock);
	}
	return rc;
}

int gpu_view_add(struct gpu_edits *x, const struct gpu_host *h, const struct gpu_inventory *i,
	unsigned caps, struct err *e)
{
	char name[VIEW_NAME_MAX];
	json_t *doc = NULL;
	int rc = 0;

	if (!caps)
		return 0;
	if (i->dxg)
		return add_wsl(x, h, caps, e);
	if (!i->driver)
		return err_set(e, ERR_NOT_FOUND, "NVIDIA's kernel module is not loaded");
	snprintf(name, sizeof(name), "%.64s-%02x", i->driver, caps & GPU_CAP_ALL);
	if (x->has_view_lock) /* of another set: building would wait for ourselves */
		sys_close_ref(&x->view_lock);
	x->has_view_lock = false;
	for (int tries = 0; rc == 0 && tries < TRIES; tries++) {
		if (tries && view_build(h, name, i->driver, caps & GPU_CAP_ALL, e) < 0)
			rc = -1;
		else
			rc = load_locked(x, h, name, &doc, e);
	}
	if (rc == 0)
		err_set(e, ERR_NOT_FOUND, "the driver's files changed while they were gathered");
	if (rc > 0)
		add_view(x, h, name, doc, caps);
	json_decref(doc);
	return rc > 0 ? 0 : -1;
}
