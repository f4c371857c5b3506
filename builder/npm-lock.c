#include "builder/npm.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/local.h"
#include "builder/npm-graph.h"

enum {
	LOCK_BYTES = 32 << 20,
	VERSION_BYTES = 256,
	SHOWN = 200, /* bytes of a hostile text in an error */
};

/* ---- what the lock says of a package that stays ---- */

static const char *base_name(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash ? slash + 1 : name;
}

/* Only what comes from a registry is a tarball by name and version. */
static int check_kind(const struct npm_graph *g, const struct npm_pkg *p, struct err *e)
{
	const char *from;

	if (npm_graph_text(g, p, "resolved", &from, e) < 0)
		return -1;
	if (json_is_true(json_object_get(p->j, "link")) || (from && str_starts(from, "file:")))
		return npm_graph_bad(
			g, p, ERR_UNSUPPORTED, e, "is a link or a file beside the lock");
	if (from && !str_starts(from, "https://") && !str_starts(from, "http://"))
		return npm_graph_bad(g, p, ERR_UNSUPPORTED, e,
			"'%.*s' is a git address or another one, not a registry's", SHOWN, from);
	return 0;
}

static int check_version(const struct npm_graph *g, const struct npm_pkg *p, struct err *e)
{
	static const char chars[] =
		"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz.+-";
	size_t n;

	if (!p->version)
		return npm_graph_bad(g, p, ERR_CORRUPT, e, "has no version");
	n = strspn(p->version, chars);
	if (n == 0 || p->version[n] || n > VERSION_BYTES)
		return npm_graph_bad(
			g, p, ERR_CORRUPT, e, "'%.*s' is no version", SHOWN, p->version);
	return 0;
}

/* An address in the lock is not used, but tells whether the package is the registry's own: there it
 * ends in its name and version. */
static int check_address(const struct npm_graph *g, const struct npm_pkg *p, struct err *e)
{
	const char *from = json_string_value(json_object_get(p->j, "resolved"));
	auto_free char *tail = mem_printf("/%s-%s.tgz", base_name(p->name), p->version);
	auto_free char *address = from ? mem_strdup(from) : NULL;

	if (!address)
		return 0;
	address[strcspn(address, "?#")] = '\0';
	if (!strstr(address, "/-/") || !str_ends(address, tail))
		return npm_graph_bad(g, p, ERR_UNSUPPORTED, e,
			"'%.*s' is a tarball of its own, not a registry's", SHOWN, from);
	return 0;
}

static int fill_integrity(const struct npm_graph *g, const struct npm_pkg *p, struct arena *arena,
	struct lock_npm *out, struct err *e)
{
	enum { SHA512_TEXT = 7 + 88 };
	uint8_t digest[64];
	const char *text;
	struct err why = {0};

	if (npm_graph_text(g, p, "integrity", &text, e) < 0)
		return -1;
	if (!text)
		return npm_graph_bad(
			g, p, ERR_CORRUPT, e, "has no integrity: nothing to verify it against");
	if (npm_integrity(text, digest, &why) < 0)
		return npm_graph_bad(g, p, why.kind, e, "%s", why.text);
	out->integrity = arena_strndup(arena, strstr(text, "sha512-"), SHA512_TEXT);
	return 0;
}

static int by_pair_name(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->name, ((const struct pair *)b)->name);
}

static int fill_bin(const struct npm_graph *g, const struct npm_pkg *p, struct arena *arena,
	struct lock_npm *out, struct err *e)
{
	json_t *bin = json_object_get(p->j, "bin"), *path;
	size_t n = json_is_object(bin) ? json_object_size(bin) : 1;
	struct err why = {0};
	const char *name;

	if (!bin)
		return 0;
	if (n > NPM_BINS_MAX)
		return npm_graph_bad(g, p, ERR_CORRUPT, e,
			"bin: %zu commands, more than the limit of %d", n, NPM_BINS_MAX);
	out->bin.v = arena_alloc(arena, n * sizeof(*out->bin.v));
	if (json_is_string(bin))
		out->bin.v[out->bin.n++] =
			(struct pair){.name = base_name(p->name), .value = json_string_value(bin)};
	else if (!json_is_object(bin))
		return npm_graph_bad(g, p, ERR_CORRUPT, e, "bin: expected an object or a string");
	json_object_foreach (bin, name, path)
		out->bin.v[out->bin.n++] =
			(struct pair){.name = name, .value = json_string_value(path)};
	for (size_t i = 0; i < out->bin.n; i++) {
		struct pair *b = &out->bin.v[i];

		if (!b->value)
			return npm_graph_bad(g, p, ERR_CORRUPT, e, "bin: expected strings");
		if (npm_check_bin(b, &why) < 0)
			return npm_graph_bad(g, p, why.kind, e, "bin: %s", why.text);
		b->name = arena_strdup(arena, b->name);
		b->value = arena_strdup(arena, b->value);
	}
	qsort(out->bin.v, out->bin.n, sizeof(*out->bin.v), by_pair_name);
	return 0;
}

static int fill(const struct npm_graph *g, const struct npm_pkg *p, struct arena *arena,
	struct lock_npm *out, struct err *e)
{
	if (check_kind(g, p, e) < 0 || check_version(g, p, e) < 0 || check_address(g, p, e) < 0 ||
		fill_integrity(g, p, arena, out, e) < 0 || fill_bin(g, p, arena, out, e) < 0)
		return -1;
	out->path = arena_strdup(arena, p->key);
	out->name = arena_strdup(arena, p->name);
	out->version = arena_strdup(arena, p->version);
	out->url = arena_printf(
		arena, "mirror:npm/%s/-/%s-%s.tgz", p->name, base_name(p->name), p->version);
	return 0;
}

/* What comes inside another package's tarball (inBundle) is installed with that one. */
static int fill_all(const struct npm_graph *g, struct lock *l, struct err *e)
{
	l->npms = arena_alloc(&l->arena, g->n * sizeof(*l->npms));
	l->nnpms = 0;
	for (size_t i = 1; i < g->n; i++)
		if (!g->v[i].gone && !g->v[i].bundled &&
			fill(g, &g->v[i], &l->arena, &l->npms[l->nnpms++], e) < 0)
			return -1;
	return 0;
}

/* ---- the file ---- */

static int read_lock(const struct manifest *m, const char *name, struct buf *text, struct err *e)
{
	auto_fd int fd = local_open(m->dir, m->node.lock, NULL, e);

	return fd < 0 ? -1 : file_read_fd(fd, name, text, e);
}

int npm_lock_parse(struct lock *l, const struct strings *omit, const char *name, const void *text,
	size_t n, struct err *e)
{
	struct npm_graph g;
	int rc;

	if (npm_graph_init(&g, l->platform, omit, e) < 0)
		return -1;
	rc = npm_graph_read(&g, name, text, n, e) < 0 || fill_all(&g, l, e) < 0 ? -1 : 0;
	npm_graph_fini(&g);
	return rc;
}

int npm_lock(struct lock *l, const struct manifest *m, struct err *e)
{
	auto_free char *name = mem_printf("%s/%s", m->dir, m->node.lock);
	auto_buf struct buf text = BUF_INIT(LOCK_BYTES);

	if (read_lock(m, name, &text, e) < 0)
		return -1;
	return npm_lock_parse(l, &m->node.omit, name, text.data, text.len, e);
}
