/* Git commits as sources. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/content.h"
#include "builder/git-local.h"
#include "builder/git.h"
#include "builder/source-type.h"

enum { POINTER_MAX = 1024, TARGET_MAX = TREE_PATH_MAX };

/* ---- the canonical listing, and the files while they pass ---- */

/* ms, u NULL: only the listing is wanted. */
struct listing {
	const struct manifest_source *ms;
	const struct source_unpack *u;
	struct content content;
	struct hash hash;
	bool put;        /* the file that is read goes into the image */
	bool small;      /* it is small enough to be a pointer, or a link's target */
	struct buf head; /* its data, when it is */
	struct arena arena;
	const char **lines;
	size_t n, cap;
};

/* What Git LFS leaves in the place of a file: "version ADDRESS", "oid sha256:HEX", "size N". */
static bool is_lfs_pointer(const struct buf *b)
{
	return b->data && str_starts(b->data, "version ") && strstr(b->data, "\noid sha256:") &&
	       strstr(b->data, "\nsize ");
}

static int refuse_lfs(const struct listing *l, const struct git_file *f, struct err *e)
{
	const char *oid = strstr(l->head.data, "\noid sha256:") + strlen("\noid sha256:");
	const char *size = strstr(l->head.data, "\nsize ") + strlen("\nsize ");

	err_set(e, ERR_UNSUPPORTED, "'%.500s' is a pointer of Git LFS, its data are elsewhere",
		f->path);
	return err_hint(e,
		"add a source {\"type\": \"file\", \"sha256\": \"%.64s\", \"size\": %.*s} for it, "
		"and "
		"exclude it here",
		oid, (int)strspn(size, "0123456789"), size);
}

static int begin(void *ctx, const struct git_file *f, uint64_t size, struct err *e)
{
	struct listing *l = ctx;
	const char *path = source_strip(l->ms, f->path);

	l->put = path && source_keeps(l->ms, path);
	l->small = size <= POINTER_MAX || f->mode == 0120000;
	l->head.len = 0;
	hash_init(&l->hash, HASH_SHA256);
	if (f->mode == 0120000 && size > TARGET_MAX)
		return err_set(e, ERR_CORRUPT, "'%.500s': a link's target is longer than %d bytes",
			f->path, TARGET_MAX);
	if (l->u)
		content_begin(&l->content);
	return 0;
}

static int data(void *ctx, const void *p, size_t n, struct err *e)
{
	struct listing *l = ctx;

	hash_add(&l->hash, p, n);
	if (l->small && buf_add(&l->head, p, n, e) < 0)
		return -1;
	return l->u && l->put ? content_add(&l->content, p, n, e) : 0;
}

static int put(struct listing *l, const struct git_file *f, struct err *e)
{
	struct attr a = {.type = NODE_FILE, .mode = f->mode & 0777, .mtime = l->u->epoch};

	if (f->mode == 0120000) {
		if (!l->head.len || strlen(l->head.data) != l->head.len)
			return err_set(e, ERR_CORRUPT, "'%.500s': a link to nothing", f->path);
		a.type = NODE_SYMLINK;
		a.mode = 0777;
		a.target = arena_strdup(&l->u->out->arena, l->head.data);
	} else if (content_end(&l->content, &l->u->out->arena, &a, e) < 0) {
		return -1;
	}
	return source_put(l->u, source_strip(l->ms, f->path), &a, e) ? 0 : -1;
}

static int end(void *ctx, const struct git_file *f, struct err *e)
{
	struct listing *l = ctx;
	struct digest d = hash_digest(&l->hash);
	char hex[DIGEST_HEX + 1];

	mem_grow(&l->lines, &l->cap, l->n);
	l->lines[l->n++] =
		arena_printf(&l->arena, "%06o %s %s\n", f->mode, digest_hex(&d, hex), f->path);
	if (!l->put)
		return 0;
	if (f->mode != 0120000 && l->small && is_lfs_pointer(&l->head))
		return refuse_lfs(l, f, e);
	return l->u ? put(l, f, e) : 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct digest listing_digest(struct listing *l)
{
	struct hash h;

	hash_init(&h, HASH_SHA256);
	if (l->n)
		qsort(l->lines, l->n, sizeof(*l->lines), by_text);
	for (size_t i = 0; i < l->n; i++)
		hash_add(&h, l->lines[i], strlen(l->lines[i]));
	return hash_digest(&h);
}

/* A submodule is another repository; one that is left out does no harm. */
static int check_submodules(
	const struct manifest_source *ms, const struct git_tree *t, struct err *e)
{
	for (size_t i = 0; i < t->n; i++) {
		const char *path = source_strip(ms, t->v[i].path);

		if (t->v[i].mode != 0160000 || !path || !source_keeps(ms, path))
			continue;
		err_set(e, ERR_UNSUPPORTED, "'%.500s' is a submodule", t->v[i].path);
		return err_hint(e,
			"add a source of type git with its address and commit %s, and exclude it "
			"here",
			t->v[i].id);
	}
	return 0;
}

/* Read all of a commit; with u what is wanted goes into u->out. */
static int read_commit(const struct manifest_source *ms, const struct source_unpack *u,
	struct store *s, struct digest *d, struct err *e)
{
	struct listing l = {.ms = ms, .u = u, .head = BUF_INIT(TARGET_MAX + POINTER_MAX)};
	const struct git_reader r = {begin, data, end, &l};
	struct git_tree t;
	int rc;

	if (git_tree(&t, s, ms->commit, e) < 0)
		return -1;
	if (u)
		content_init(&l.content, u->pool);
	rc = check_submodules(ms, &t, e);
	if (rc == 0)
		rc = git_read(s, ms->commit, &t, &r, e);
	if (rc == 0)
		*d = listing_digest(&l);
	if (u)
		content_fini(&l.content);
	buf_fini(&l.head);
	free(l.lines);
	arena_fini(&l.arena);
	git_tree_fini(&t);
	return rc;
}

/* ---- the type ---- */

/* ask: the address must have it, even if it was fetched before from another one: a lock says that
 * it can be had there. */
static int have(
	const struct source_job *j, const struct manifest_source *ms, bool ask, struct err *e)
{
	bool here = git_has(j->s, ms->commit);
	const char *local = source_local(ms);
	auto_free char *path = NULL;
	const char *url;

	if (here && !ask)
		return 0;
	if (local)
		path = git_local(j->dir, local, e);
	url = local ? path : mirror_url(j->mirrors, ms->url, e);
	if (!url)
		return err_ctx(e, "%s/url", j->pointer);
	progress_begin(j->p, "git", 0);
	if ((here ? git_ask : git_fetch)(j->s, url, ms->commit, e) < 0)
		return err_ctx(e, "%s/url: %s", j->pointer, ms->url);
	progress_end(j->p);
	return 0;
}

static int lock_git(const struct source_job *j, const struct manifest_source *ms,
	struct lock_source *ls, struct arena *a, struct err *e)
{
	if (!ms->url || !ms->commit)
		return err_set(e, ERR_USAGE, "%s: missing key '%s'", j->pointer,
			ms->url ? "commit" : "url");
	if (have(j, ms, true, e) < 0 || read_commit(ms, NULL, j->s, &ls->tree_sha256, e) < 0)
		return -1;
	if (ms->has_tree && digest_check(&ms->tree_sha256, &ls->tree_sha256, e,
				    "%s/treeSha256: commit %s", j->pointer, ms->commit) < 0)
		return -1;
	ls->has_tree = true;
	ls->url = arena_strdup(a, ms->url);
	ls->commit = arena_strdup(a, ms->commit);
	return 0;
}

static int fetch_git(const struct source_job *j, const struct manifest_source *ms,
	const struct lock_source *ls, struct err *e)
{
	(void)ls;
	return have(j, ms, false, e);
}

static int unpack_git(const struct source_unpack *u, struct err *e)
{
	struct digest d;

	if (read_commit(u->ms, u, u->s, &d, e) < 0)
		return -1;
	return digest_check(&u->ls->tree_sha256, &d, e, "the tree of commit %s", u->ms->commit);
}

const struct source_ops source_git = {lock_git, fetch_git, unpack_git};
