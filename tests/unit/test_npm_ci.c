/* What we install from a lock is what `npm ci --ignore-scripts --omit=dev` installs: the same
 * names, types, modes, link targets and bytes. Uses the host's npm and the registry it is
 * configured to use. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/proc.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/cache.h"
#include "builder/npm.h"

static const char data_dir[] = "tests/data/npm";

struct fixture {
	char dir[32];
	struct store s;
	struct lock l;
	struct pool *pool;
	struct tree *t;
	struct err e;
};

static void setup(struct fixture *f)
{
	*f = (struct fixture){.dir = "/tmp/svrun-test-XXXXXX", .l.platform = "linux/amd64"};
#ifdef __aarch64__
	f->l.platform = "linux/arm64";
#endif
	assert_non_null(mkdtemp(f->dir));
	f->s.path = f->dir;
	f->s.fd = sys_open(f->dir, O_RDONLY | O_DIRECTORY, 0);
	f->pool = pool_open(f->s.fd, true, &f->e);
	if (!f->pool)
		fail_msg("%s", f->e.text);
	f->t = tree_new();
}

static void teardown(struct fixture *f)
{
	tree_free(f->t);
	arena_fini(&f->l.arena);
	pool_close(f->pool);
	close(f->s.fd);
	assert_int_equal(sys_remove_tree(AT_FDCWD, f->dir), 0);
}

#define skip_aloud(f, ...)                                                                         \
	do {                                                                                       \
		print_message("skipped: " __VA_ARGS__);                                            \
		teardown(f);                                                                       \
		skip();                                                                            \
	} while (0)

/* ---- ours ---- */

static struct input input_of(struct fixture *f, const struct lock_npm *n, const char *registry)
{
	static const char mirror[] = "mirror:npm/";
	struct input in = {.name = n->name, .kind = HASH_SHA512, .max = 1 << 20};

	assert_true(str_starts(n->url, mirror));
	in.url = arena_printf(&f->l.arena, "%s%s", registry, n->url + sizeof(mirror) - 1);
	assert_int_equal(npm_integrity(n->integrity, in.digest, &f->e), 0);
	return in;
}

static int fetch(struct fixture *f, const char *registry, struct input **in)
{
	static const char *omit[] = {"dev"};
	struct manifest m = {
		.dir = f->dir, .node = {.lock = "app/package-lock.json", .omit = {omit, 1}}};

	if (npm_lock(&f->l, &m, &f->e) < 0)
		return -1;
	*in = arena_alloc(&f->l.arena, f->l.nnpms * sizeof(**in));
	for (size_t i = 0; i < f->l.nnpms; i++)
		(*in)[i] = input_of(f, &f->l.npms[i], registry);
	return cache_fetch(&f->s, *in, f->l.nnpms, NULL, &f->e);
}

static int unpack(struct fixture *f, const struct input *in)
{
	for (size_t i = 0; i < f->l.nnpms; i++) {
		auto_fd int fd = cache_open(&f->s, &in[i], &f->e);
		struct entries out = {0};
		int rc = fd < 0 ? -1 : npm_unpack(&f->l.npms[i], "/", fd, f->pool, &out, &f->e);

		for (size_t k = 0; rc == 0 && k < out.n; k++)
			rc = tree_put(f->t, out.v[k].path, &out.v[k].a, 1, &f->e) ? 0 : -1;
		entries_fini(&out);
		if (rc < 0)
			return -1;
	}
	return npm_bins(f->t, &f->l, "/", 0, 1, &f->e);
}

/* ---- npm's ---- */

static char *registry_of_host(void)
{
	static const char *const argv[] = {"npm", "config", "get", "registry", NULL};
	struct buf out = BUF_INIT(4096);
	struct err e;

	if (proc_run(&(struct proc){.argv = argv, .out = &out}, &e) != 0 || out.len < 2) {
		buf_fini(&out);
		return NULL;
	}
	out.data[strcspn(out.data, "\n")] = '\0';
	return out.data;
}

static int copy(struct fixture *f, const char *name, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(1 << 20);
	auto_free char *from = mem_printf("%s/%s", data_dir, name),
		       *to = mem_printf("app/%s", name);

	return file_read(AT_FDCWD, from, &text, e) < 0
		       ? -1
		       : file_write(f->s.fd, to, text.data, text.len, 0644, e);
}

static int npm_ci(struct fixture *f, struct err *e)
{
	auto_free char *app = mem_printf("%s/app", f->dir), *cache = mem_printf("%s/npm", f->dir);
	const char *const argv[] = {"npm", "ci", "--ignore-scripts", "--omit=dev", "--no-audit",
		"--no-fund", "--no-update-notifier", "--cache", cache, NULL};

	return proc_check(&(struct proc){.argv = argv, .dir = app}, e);
}

/* ---- both ---- */

static size_t counted;

static int count(const char *path __attribute__((unused)),
	const struct stat *st __attribute__((unused)), int type __attribute__((unused)),
	struct FTW *w __attribute__((unused)))
{
	counted++;
	return 0;
}

static void same_file(struct fixture *f, const struct node *n, int fd)
{
	auto_free char *ours = mem_alloc(CHUNK_SIZE), *theirs = mem_alloc(CHUNK_SIZE);

	for (uint32_t i = 0; i < n->a.nchunks; i++) {
		assert_int_equal(pool_read(f->pool, &n->a.chunks[i], ours, &f->e), 0);
		assert_int_equal(sys_read_all(fd, theirs, n->a.chunks[i].length), 0);
		assert_memory_equal(ours, theirs, n->a.chunks[i].length);
	}
}

static void same_node(struct fixture *f, const struct node *n)
{
	char path[TREE_PATH_MAX + 1], target[TREE_PATH_MAX + 1] = "";
	auto_free char *theirs = mem_printf("app/%s", node_path(n, path));
	static const mode_t types[] = {
		[NODE_DIR] = S_IFDIR, [NODE_FILE] = S_IFREG, [NODE_SYMLINK] = S_IFLNK};
	struct stat st;

	if (sys_fstatat(f->s.fd, theirs, &st, AT_SYMLINK_NOFOLLOW) < 0)
		fail_msg("npm has no %s", path);
	if ((st.st_mode & S_IFMT) != types[n->a.type] || (st.st_mode & 07777) != n->a.mode)
		fail_msg("%s: npm has mode %o, we have %o", path, st.st_mode, n->a.mode);
	if (n->a.type == NODE_SYMLINK) {
		assert_true(readlinkat(f->s.fd, theirs, target, sizeof(target) - 1) > 0);
		assert_string_equal(target, n->a.target);
	}
	if (n->a.type == NODE_FILE) {
		auto_fd int fd = sys_openat(f->s.fd, theirs, O_RDONLY, 0);

		assert_int_equal(st.st_size, n->a.size);
		same_file(f, n, fd);
	}
}

TEST(a_lock_installs_as_npm_ci_does)
{
	auto_free char *registry = registry_of_host();
	auto_free char *modules = NULL;
	struct fixture f;
	struct input *in = NULL;
	size_t commands = 0, ours = 0;

	setup(&f);
	if (!registry)
		skip_aloud(&f, "no npm on this host\n");
	assert_int_equal(sys_mkdir_p(f.s.fd, "app", 0755), 0);
	assert_int_equal(copy(&f, "package.json", &f.e) | copy(&f, "package-lock.json", &f.e), 0);
	umask(022);
	if (fetch(&f, registry, &in) < 0) {
		if (f.e.kind == ERR_NETWORK)
			skip_aloud(&f, "the npm registry is not reachable: %s\n", f.e.text);
		fail_msg("%s", f.e.text);
	}
	if (unpack(&f, in) < 0)
		fail_msg("%s", f.e.text);
	if (npm_ci(&f, &f.e) < 0)
		fail_msg("%s", f.e.text);
	assert_int_equal(sys_unlinkat(f.s.fd, "app/node_modules/.package-lock.json", 0), 0);
	tree_sort(f.t);
	for (struct node *n = tree_next(tree_root(f.t)); n; n = tree_next(n)) {
		same_node(&f, n);
		commands += n->a.type == NODE_SYMLINK;
		ours++;
	}
	counted = 0;
	modules = mem_printf("%s/app/node_modules", f.dir);
	assert_int_equal(nftw(modules, count, 16, FTW_PHYS), 0);
	assert_int_equal(ours, counted);
	assert_true(f.l.nnpms > 40 && commands >= 4);
	teardown(&f);
}

RUN_TESTS(cmocka_unit_test(a_lock_installs_as_npm_ci_does))
