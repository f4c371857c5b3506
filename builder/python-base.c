#include "builder/python-base.h"

#include <string.h>

#include "base/str.h"
#include "builder/base-image.h"
#include "builder/python-scheme.h"

enum { LIBC_MAX = 32 << 20, APK_MAX = 64 << 20 };

int python_read(const struct rootfs *r, const char *path, struct buf *b, struct err *e)
{
	struct node *n = tree_resolve(r->tree, path);
	struct attr *a = n ? &(n->link ? n->link : n)->a : NULL;

	for (uint32_t i = 0; a && a->type == NODE_FILE && i < a->nchunks; i++) {
		struct chunk *c = &a->chunks[i];
		int found = c->block == CHUNK_NO_BLOCK ? pool_find(r->pool, c, e) : 1;

		if (found < 0)
			return -1;
		if (!found)
			return err_set(e, ERR_NOT_FOUND, "/%s: its data are not here", path);
	}
	return rootfs_read(r, path, b, e);
}

/* "2.36" at the start of text. */
static bool take_version(const char *text, unsigned *major, unsigned *minor)
{
	unsigned v[2] = {0};

	for (size_t i = 0; i < 2; i++) {
		size_t n = strspn(text, "0123456789");

		if (n == 0 || n > 3 || (i == 0 && text[n] != '.'))
			return false;
		while (n-- > 0)
			v[i] = v[i] * 10 + (unsigned)(*text++ - '0');
		text++;
	}
	*major = v[0];
	*minor = v[1];
	return true;
}

/* Its banner, which running the library prints. */
static bool read_glibc(struct python_base *b, const struct rootfs *r, const char *path)
{
	static const char banner[] = "GNU C Library (", version[] = " version ";
	auto_buf struct buf text = BUF_INIT(LIBC_MAX);
	const char *at, *v;

	if (python_read(r, path, &text, NULL) != 1 || !text.len)
		return false;
	at = memmem(text.data, text.len, banner, sizeof(banner) - 1);
	v = at ? strstr(at, version) : NULL;
	return v && take_version(v + sizeof(version) - 1, &b->glibc_major, &b->glibc_minor);
}

/* The oldest that wheels are made for, when apk does not tell. */
static void read_musl(struct python_base *b, const struct rootfs *r)
{
	auto_buf struct buf text = BUF_INIT(APK_MAX);
	const char *at = NULL;

	b->musl_major = 1;
	b->musl_minor = 1;
	if (python_read(r, "lib/apk/db/installed", &text, NULL) == 1 && text.len)
		at = strstr(text.data, "P:musl\nV:");
	if (at)
		(void)take_version(at + strlen("P:musl\nV:"), &b->musl_major, &b->musl_minor);
}

/* Two versions: which of them the name means nobody can tell. */
static bool only_version(
	struct python_base *b, const struct rootfs *r, struct arena *a, const char *folder)
{
	struct strings names = rootfs_list(r, folder, a);
	const char *found = NULL;

	for (size_t i = 0; i < names.n; i++) {
		const char *v = python_version_of_path(a, names.v[i]);

		if (v && !str_ends(names.v[i], v))
			continue; /* python3.11-config */
		if (v && found && !str_eq(v, found))
			return false;
		found = v ? v : found;
	}
	if (found)
		snprintf(b->python, sizeof(b->python), "%s", found);
	return found;
}

static void find_interpreter(struct python_base *b, const struct rootfs *r, const char *interpreter)
{
	const struct node *n = tree_resolve(r->tree, interpreter + 1);
	size_t folder = (size_t)(strrchr(interpreter, '/') - interpreter);
	struct arena a = {0};
	const char *v = n ? python_version_of_path(&a, n->name) : NULL;
	auto_free char *bin = mem_printf("%.*s", (int)folder, interpreter);
	auto_free char *lib = mem_printf("%s/../lib", bin);

	if (v && str_ends(n->name, v))
		snprintf(b->python, sizeof(b->python), "%s", v);
	else if (n && !only_version(b, r, &a, bin + 1))
		only_version(b, r, &a, lib + 1);
	arena_fini(&a);
}

static void find_libc(struct python_base *b, const struct rootfs *r, const char *machine)
{
	static const char *const folders[] = {
		"lib/%s-linux-gnu", "usr/lib/%s-linux-gnu", "lib64", "usr/lib64", "lib", "usr/lib"};
	char path[128];

	snprintf(path, sizeof(path), "lib/ld-musl-%s.so.1", machine);
	if (rootfs_has(r, path)) {
		read_musl(b, r);
		return;
	}
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t n = strcspn(folders[i], "%");

		snprintf(path, sizeof(path), "%.*s%s%s/libc.so.6", (int)n, folders[i],
			folders[i][n] ? machine : "", folders[i][n] ? folders[i] + n + 2 : "");
		if (read_glibc(b, r, path))
			return;
	}
}

void python_base_find(
	struct python_base *b, const struct rootfs *r, const char *machine, const char *interpreter)
{
	*b = (struct python_base){0};
	find_libc(b, r, machine);
	if (interpreter)
		find_interpreter(b, r, interpreter);
}

int python_base_read(struct python_base *b, const struct manifest *m, const struct lock *l,
	const char *machine, struct store *s, struct err *e)
{
	struct base_image image;
	struct rootfs r = {0};

	*b = (struct python_base){0};
	if (!l->base.present || !s)
		return 0;
	if (base_image_open(&image, m, l, s, NULL, e) < 0)
		return -1;
	r.tree = image.tree;
	r.pool = pool_open(s->fd, false, e);
	if (r.pool)
		python_base_find(b, &r, machine, m->python.interpreter);
	pool_close(r.pool);
	base_image_close(&image);
	return r.pool ? 0 : -1;
}
