#include "builder/git.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/tree.h"

enum {
	FETCH_SECONDS = 3600,
	TREE_BYTES = 256 << 20, /* what ls-tree says */
	ARGS_MAX = 48,
	ENV_MAX = 24,
	HEADER_MAX = 128, /* "ID blob SIZE" */
};
static const uint64_t files_bytes = 256ull << 30; /* of one commit */

/* ---- running it ---- */

/* Settings that a repository must not be able to give, in front of every command. */
static const char *const settings[] = {"git", "--no-replace-objects", "--literal-pathspecs", "-c",
	"core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.version=2", "-c",
	"credential.helper=", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c",
	"fetch.fsckObjects=true", "-c", "transfer.fsckObjects=true", "-c", "core.symlinks=false",
	"-c", "uploadpack.packObjectsHook="};

/* What git needs of ours: where programs are, how to get out, whom to trust. */
static const char *const passed[] = {"PATH", "http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy",
	"NO_PROXY", "all_proxy", "ALL_PROXY", "SSL_CERT_DIR", "SUDO_UID", "TMPDIR"};

static const char *const fixed[] = {"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
	"GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=/bin/false",
	"SSH_ASKPASS=/bin/false", "GIT_ALLOW_PROTOCOL=http:https:file", "GIT_NO_LAZY_FETCH=1",
	"GIT_OPTIONAL_LOCKS=0", "HOME=/nonexistent", "LC_ALL=C"};

static void fill_env(struct arena *a, const char *env[ENV_MAX])
{
	const char *certs = getenv("SSL_CERT_FILE");
	size_t n = 0;

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		env[n++] = fixed[i];
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		if (getenv(passed[i]))
			env[n++] = arena_printf(a, "%s=%s", passed[i], getenv(passed[i]));
	if (certs)
		env[n++] = arena_printf(a, "GIT_SSL_CAINFO=%s", certs);
	env[n] = NULL;
}

/* args ends with NULL. p has what is to be done with its output. */
static int git(const char *repo, const char *const *args, struct proc p, struct err *e)
{
	const char *argv[ARGS_MAX], *env[ENV_MAX];
	struct arena a = {0};
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		argv[n++] = settings[i];
	argv[n++] = "--git-dir";
	argv[n++] = repo;
	while (*args)
		argv[n++] = *args++;
	argv[n] = NULL;
	fill_env(&a, env);
	p.argv = argv;
	p.env = env;
	rc = proc_check(&p, e);
	arena_fini(&a);
	return rc;
}

/* ---- where commits are kept ---- */

static char *repo_path(const struct store *s, const char *commit)
{
	return mem_printf("%s/cache/git/%s", s->path, commit);
}

bool git_has(struct store *s, const char *commit)
{
	char name[64];

	snprintf(name, sizeof(name), "cache/git/%s", commit);
	return faccessat(s->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Does the repository have the commit, with all that it leads to? */
static int has_commit(const char *repo, const char *commit, struct err *e)
{
	auto_free char *object = mem_printf("%s^{tree}", commit);
	const char *const args[] = {"rev-parse", "--quiet", "--verify", object, NULL};

	return git(repo, args, (struct proc){.seconds = 60}, e);
}

static int fetch_one(const char *repo, const char *url, const char *commit, struct err *e)
{
	const char *const args[] = {"fetch", "--quiet", "--depth=1", "--no-tags",
		"--no-recurse-submodules", "--no-write-fetch-head", "--end-of-options", url, commit,
		NULL};

	return git(repo, args, (struct proc){.seconds = FETCH_SECONDS}, e);
}

static int fetch_all(const char *repo, const char *url, struct err *e)
{
	const char *const args[] = {"fetch", "--quiet", "--no-tags", "--no-recurse-submodules",
		"--no-write-fetch-head", "--end-of-options", url, "+refs/heads/*:refs/heads/*",
		"+refs/tags/*:refs/tags/*", NULL};

	return git(repo, args, (struct proc){.seconds = FETCH_SECONDS}, e);
}

/* A server may know neither single commits nor shallow copies ("dumb" http). */
static int fetch_into(const char *repo, const char *url, const char *commit, struct err *e)
{
	struct err first = {0};

	if (fetch_one(repo, url, commit, &first) == 0)
		return has_commit(repo, commit, e);
	if (fetch_all(repo, url, NULL) < 0) {
		if (e)
			*e = first;
		if (e && e->kind == ERR_SYSTEM && e->sys == 0)
			e->kind = ERR_NETWORK;
		return -1;
	}
	if (has_commit(repo, commit, NULL) == 0)
		return 0;
	err_set(e, ERR_NOT_FOUND, "no branch or tag of it has the commit %s", commit);
	return err_hint(e, "correct the address or the commit");
}

static int init(const char *repo, struct err *e)
{
	const char *const args[] = {
		"init", "--quiet", "--bare", "--template=", "--object-format=sha1", NULL};

	return git(repo, args, (struct proc){.seconds = 60}, e);
}

/* keep: where it is kept then, or NULL. */
static int fetch(
	struct store *s, const char *url, const char *commit, const char *keep, struct err *e)
{
	auto_free char *name = mem_printf("cache/partial/git-%s", commit),
		       *repo = mem_printf("%s/%s", s->path, name);

	if (sys_mkdir_p(s->fd, "cache/partial", 0700) < 0 ||
		sys_mkdir_p(s->fd, "cache/git", 0700) < 0 || sys_remove_tree(s->fd, name) < 0)
		return err_sys(e, "%s/cache", s->path);
	if (init(repo, e) < 0 || fetch_into(repo, url, commit, e) < 0) {
		(void)!sys_remove_tree(s->fd, name);
		return -1;
	}
	if ((keep ? sys_renameat(s->fd, name, s->fd, keep) : sys_remove_tree(s->fd, name)) < 0)
		return err_sys(e, "rename %s", repo);
	return 0;
}

int git_fetch(struct store *s, const char *url, const char *commit, struct err *e)
{
	struct digest turn_of = digest_of(commit, strlen(commit));
	auto_free char *final = mem_printf("cache/git/%s", commit);
	auto_fd int turn = store_work_lock(s, &turn_of, e);

	if (turn < 0)
		return -1;
	return git_has(s, commit) ? 0 : fetch(s, url, commit, final, e);
}

int git_ask(struct store *s, const char *url, const char *commit, struct err *e)
{
	struct digest turn_of = digest_of(commit, strlen(commit));
	auto_fd int turn = store_work_lock(s, &turn_of, e);

	return turn < 0 ? -1 : fetch(s, url, commit, NULL, e);
}

/* ---- the tree ---- */

static int bad_line(struct err *e)
{
	return err_set(e, ERR_CORRUPT, "git ls-tree: a line that is none of its own");
}

/* "MODE TYPE ID\tPATH" */
static int parse_line(struct git_tree *t, size_t *cap, char *line, struct err *e)
{
	char *path = strchr(line, '\t'), *type = strchr(line, ' '), *end, text[STR_SHOWN];
	char *id = type ? strchr(type + 1, ' ') : NULL;
	unsigned long mode = strtoul(line, &end, 8);

	if (!path || !id || end != type || id > path || path - id - 1 != GIT_COMMIT)
		return bad_line(e);
	if (t->n == GIT_FILES_MAX)
		return err_set(e, ERR_CORRUPT, "more files than the limit of %d", GIT_FILES_MAX);
	*path++ = '\0';
	if (tree_check_path(path, e) < 0)
		return err_ctx(e, "'%s'", str_shown(path, text));
	if (strchr(path, '\n'))
		return err_set(
			e, ERR_CORRUPT, "'%s': a name with a line break", str_shown(path, text));
	if (mode == 0100664) /* what very old versions of git wrote */
		mode = 0100644;
	if (mode != 0100644 && mode != 0100755 && mode != 0120000 && mode != 0160000)
		return err_set(e, ERR_CORRUPT, "'%s': mode %lo", str_shown(path, text), mode);
	mem_grow(&t->v, cap, t->n);
	t->v[t->n++] = (struct git_file){.mode = (uint32_t)mode,
		.id = arena_strdup(&t->arena, id + 1),
		.path = arena_strdup(&t->arena, path)};
	return 0;
}

int git_tree(struct git_tree *t, struct store *s, const char *commit, struct err *e)
{
	auto_free char *repo = repo_path(s, commit);
	const char *const args[] = {"ls-tree", "-r", "-z", "--full-tree", commit, NULL};
	auto_buf struct buf b = BUF_INIT(TREE_BYTES);
	size_t cap = 0;

	*t = (struct git_tree){0};
	if (git(repo, args, (struct proc){.out = &b}, e) < 0)
		return -1;
	for (size_t at = 0; at < b.len; at += strlen(b.data + at) + 1) {
		size_t n = strlen(b.data + at);
		auto_free char *line = mem_strdup(b.data + at);

		if (at + n >= b.len || parse_line(t, &cap, line, e) < 0) {
			git_tree_fini(t);
			return at + n >= b.len ? bad_line(e) : err_ctx(e, "commit %s", commit);
		}
	}
	return 0;
}

void git_tree_fini(struct git_tree *t)
{
	free(t->v);
	arena_fini(&t->arena);
	*t = (struct git_tree){0};
}

/* ---- the files ---- */

/* What `git cat-file --batch` says: "ID blob SIZE\n", SIZE bytes, "\n", for each that was asked. */
struct batch {
	const struct git_tree *tree;
	const struct git_reader *r;
	size_t at; /* file that is read */
	enum { BATCH_HEADER, BATCH_DATA, BATCH_END } state;
	char header[HEADER_MAX];
	size_t nheader;
	uint64_t left, all;
};

static void skip_submodules(struct batch *b)
{
	while (b->at < b->tree->n && b->tree->v[b->at].mode == 0160000)
		b->at++;
}

static int begin_file(struct batch *b, struct err *e)
{
	const struct git_file *f = &b->tree->v[b->at];
	const char *size = b->header + GIT_COMMIT + strlen(" blob ");

	b->header[b->nheader] = '\0';
	if (b->at == b->tree->n || b->nheader <= (size_t)(size - b->header) ||
		memcmp(b->header, f->id, GIT_COMMIT) != 0 ||
		memcmp(b->header + GIT_COMMIT, " blob ", 6) != 0 ||
		str_u64(size, UINT64_MAX, &b->left) < 0)
		return err_set(e, ERR_CORRUPT, "git cat-file: '%s'", b->header);
	if (b->left > files_bytes - b->all)
		return err_set(e, ERR_CORRUPT,
			"'%.500s': its files are more than the limit of 256 GiB", f->path);
	b->all += b->left;
	b->state = b->left ? BATCH_DATA : BATCH_END;
	b->nheader = 0;
	return b->r->begin(b->r->ctx, f, b->left, e);
}

static int end_file(struct batch *b, struct err *e)
{
	if (b->r->end(b->r->ctx, &b->tree->v[b->at], e) < 0)
		return -1;
	b->at++;
	skip_submodules(b);
	b->state = BATCH_HEADER;
	return 0;
}

/* Takes some of the n bytes: how many, or -1. */
static ssize_t step(struct batch *b, const char *p, size_t n, struct err *e)
{
	size_t k = n < b->left ? n : (size_t)b->left;

	if (b->state == BATCH_DATA) {
		if (b->r->data(b->r->ctx, p, k, e) < 0)
			return -1;
		b->left -= k;
		if (!b->left)
			b->state = BATCH_END;
		return (ssize_t)k;
	}
	if (b->state == BATCH_END)
		return end_file(b, e) < 0 ? -1 : 1;
	if (*p == '\n')
		return begin_file(b, e) < 0 ? -1 : 1;
	if (b->nheader + 1 >= HEADER_MAX)
		return err_set(e, ERR_CORRUPT, "git cat-file: an endless line");
	b->header[b->nheader++] = *p;
	return 1;
}

static int take(void *ctx, const void *data, size_t n, struct err *e)
{
	const char *p = data;

	for (ssize_t k; n > 0; p += k, n -= (size_t)k) {
		k = step(ctx, p, n, e);
		if (k < 0)
			return -1;
	}
	return 0;
}

int git_read(struct store *s, const char *commit, const struct git_tree *t,
	const struct git_reader *r, struct err *e)
{
	auto_free char *repo = repo_path(s, commit);
	const char *const args[] = {"cat-file", "--batch", "--buffer", NULL};
	auto_buf struct buf in = BUF_INIT((GIT_COMMIT + 1) * (size_t)GIT_FILES_MAX + 1);
	struct batch b = {.tree = t, .r = r};

	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].mode != 0160000)
			buf_printf(&in, "%s\n", t->v[i].id);
	skip_submodules(&b);
	if (b.at == t->n)
		return 0;
	if (git(repo, args,
		    (struct proc){.in = in.data, .in_size = in.len, .take = take, .ctx = &b},
		    e) < 0)
		return -1;
	return b.at == t->n && b.state == BATCH_HEADER
		       ? 0
		       : err_set(e, ERR_CORRUPT, "git cat-file: ended early");
}
