#include "tests/unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/pool.h"
#include "images/workers.h"

/* ---- a pool in a scratch folder ---- */

struct fixture {
	char dir[32];
	int fd;
	struct pool *pool;
	struct err e;
};

static void open_pool(struct fixture *f, bool write)
{
	f->pool = pool_open(f->fd, write, &f->e);
	if (!f->pool)
		fail_msg("%s", f->e.text);
}

static void close_pool(struct fixture *f)
{
	pool_close(f->pool);
	f->pool = NULL;
}

static void setup(struct fixture *f)
{
	*f = (struct fixture){.dir = "/tmp/svrun-test-XXXXXX"};
	assert_non_null(mkdtemp(f->dir));
	f->fd = sys_open(f->dir, O_RDONLY | O_DIRECTORY, 0);
	assert_true(f->fd >= 0);
	open_pool(f, true);
}

static void teardown(struct fixture *f)
{
	close_pool(f);
	close(f->fd);
	assert_int_equal(sys_remove_tree(AT_FDCWD, f->dir), 0);
}

/* The i-th of a series of different data. */
static void fill(unsigned char *p, uint32_t n, uint32_t i)
{
	uint32_t x = i * 2654435761u + 1;

	for (uint32_t k = 0; k < n; k++) {
		x = x * 1664525u + 1013904223u;
		p[k] = (unsigned char)(x >> 24);
	}
}

static struct chunk put(struct fixture *f, uint32_t n, uint32_t i)
{
	auto_free unsigned char *data = mem_alloc(n);
	struct chunk c = {.block = CHUNK_NO_BLOCK};

	fill(data, n, i);
	if (pool_put(f->pool, data, n, &c, &f->e) < 0)
		fail_msg("%s", f->e.text);
	return c;
}

static void commit(struct fixture *f)
{
	if (pool_commit(f->pool, &f->e) < 0)
		fail_msg("%s", f->e.text);
}

static int find(struct fixture *f, const struct chunk *c)
{
	struct chunk x = {.digest = c->digest, .length = c->length, .block = CHUNK_NO_BLOCK};
	int rc = pool_find(f->pool, &x, &f->e);

	if (rc < 0)
		fail_msg("%s", f->e.text);
	if (rc == 1)
		assert_int_equal(x.block, c->block);
	return rc;
}

static int check(struct fixture *f, const struct chunk *c)
{
	auto_free void *scratch = mem_alloc(CHUNK_SIZE);

	return pool_check(f->pool, c, scratch, &f->e);
}

static void write_at(struct fixture *f, const char *path, off_t at, const void *p, size_t n)
{
	auto_fd int fd = sys_openat(f->fd, path, O_RDWR, 0);

	assert_true(fd >= 0);
	assert_int_equal(sys_pwrite_all(fd, p, n, at), 0);
}

static void truncate_to(struct fixture *f, const char *path, off_t n)
{
	auto_fd int fd = sys_openat(f->fd, path, O_RDWR, 0);

	assert_true(fd >= 0);
	assert_int_equal(sys_ftruncate(fd, n), 0);
}

static off_t size_of(struct fixture *f, const char *path)
{
	struct stat st;

	assert_int_equal(sys_fstatat(f->fd, path, &st, 0), 0);
	return st.st_size;
}

static void expect_corrupt(struct fixture *f, const char *text)
{
	f->e = (struct err){0};
	f->pool = pool_open(f->fd, true, &f->e);
	assert_null(f->pool);
	assert_int_equal(f->e.kind, ERR_CORRUPT);
	if (!strstr(f->e.text, text))
		fail_msg("'%s' lacks '%s'", f->e.text, text);
	assert_non_null(strstr(f->e.hint, "aside"));
}

/* ---- putting and finding ---- */

TEST(a_chunk_is_found_with_its_bytes_after_it_was_put)
{
	static const uint32_t sizes[] = {
		1, 4095, 4096, 4097, 32768, 32769, 100000, CHUNK_SIZE - 1, CHUNK_SIZE};
	struct chunk c[sizeof(sizes) / sizeof(sizes[0])];
	struct fixture f;

	setup(&f);
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		c[i] = put(&f, sizes[i], i);
		assert_int_equal(find(&f, &c[i]), 1);
		assert_int_equal(check(&f, &c[i]), 0);
	}
	commit(&f);
	close_pool(&f);
	open_pool(&f, false);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(find(&f, &c[i]), 1);
		assert_int_equal(check(&f, &c[i]), 0);
	}
	teardown(&f);
}

TEST(the_same_data_are_written_once)
{
	struct fixture f;
	struct chunk a, b, c;

	setup(&f);
	a = put(&f, 5000, 1);
	b = put(&f, 5000, 1);
	assert_int_equal(a.block, b.block);
	commit(&f);
	c = put(&f, 5000, 1);
	assert_int_equal(a.block, c.block);
	close_pool(&f);
	open_pool(&f, true);
	c = put(&f, 5000, 1);
	assert_int_equal(a.block, c.block);
	b = put(&f, 5000, 2);
	assert_int_not_equal(a.block, b.block);
	teardown(&f);
}

TEST(the_rest_of_the_last_block_is_zero_even_in_used_space)
{
	static const char zeros[POOL_BLOCK];
	char block[POOL_BLOCK];
	struct fixture f;
	struct chunk c;

	setup(&f);
	put(&f, CHUNK_SIZE, 1); /* not committed: its space is used again */
	close_pool(&f);
	open_pool(&f, true);
	c = put(&f, 5000, 2);
	assert_int_equal(sys_pread_all(pool_fd(f.pool), block, POOL_BLOCK,
				 (off_t)(c.block + 1) * POOL_BLOCK),
		0);
	assert_memory_equal(block + 5000 - POOL_BLOCK, zeros, 2 * POOL_BLOCK - 5000);
	teardown(&f);
}

TEST(what_was_not_committed_is_gone_and_its_space_is_used_again)
{
	struct fixture f;
	struct chunk a, b;

	setup(&f);
	a = put(&f, 10000, 1);
	close_pool(&f);
	open_pool(&f, true);
	assert_int_equal(find(&f, &a), 0);
	b = put(&f, 10000, 2);
	assert_int_equal(a.block, b.block);
	teardown(&f);
}

TEST(a_chunk_of_another_length_is_refused)
{
	struct fixture f;
	struct chunk c;

	setup(&f);
	c = put(&f, 10000, 1);
	commit(&f);
	close_pool(&f);
	open_pool(&f, false);
	c.length++;
	assert_int_equal(pool_find(f.pool, &c, &f.e), -1);
	assert_int_equal(f.e.kind, ERR_CORRUPT);
	assert_non_null(strstr(f.e.text, "expected 10001 bytes, found 10000"));
	teardown(&f);
}

TEST(a_missing_pool_is_not_found)
{
	struct fixture f;

	setup(&f);
	close_pool(&f);
	assert_int_equal(sys_remove_tree(f.fd, "pool"), 0);
	assert_null(pool_open(f.fd, false, &f.e));
	assert_int_equal(f.e.kind, ERR_NOT_FOUND);
	teardown(&f);
}

/* ---- threads and processes ---- */

enum { PUTS = 2000, KINDS = 97 };

struct putting {
	struct fixture *f;
	struct chunk c[PUTS];
};

static int put_one(void *ctx, size_t i, struct err *e)
{
	struct putting *p = ctx;

	(void)e;
	p->c[i] = put(p->f, 3000, (uint32_t)i % KINDS);
	return 0;
}

TEST(threads_that_put_the_same_data_get_the_same_block)
{
	struct fixture f;
	auto_free struct putting *p = mem_alloc(sizeof(*p));

	setup(&f);
	p->f = &f;
	assert_int_equal(workers_each(PUTS, 8, put_one, p, NULL), 0);
	commit(&f);
	for (size_t i = 0; i < PUTS; i++) {
		assert_int_equal(p->c[i].block, p->c[i % KINDS].block);
		assert_int_equal(check(&f, &p->c[i]), 0);
	}
	close_pool(&f);
	open_pool(&f, false);
	for (size_t i = 0; i < PUTS; i++)
		assert_int_equal(find(&f, &p->c[i]), 1);
	teardown(&f);
}

/* Run fn in another process; its exit status, or minus the signal that ended it. */
static int in_child(struct fixture *f, void (*fn)(struct fixture *f, int pipe_fd), int pipe_fd)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		fn(f, pipe_fd);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void put_and_die(struct fixture *f, int pipe_fd)
{
	struct chunk c[3];

	open_pool(f, true);
	c[0] = put(f, 20000, 1);
	commit(f);
	c[1] = put(f, 30000, 2);
	c[2] = put(f, 40000, 3);
	(void)!write(pipe_fd, c, sizeof(c));
	raise(SIGKILL);
}

TEST(space_of_a_killed_process_is_taken_back_and_what_it_committed_stays)
{
	struct fixture f;
	struct chunk c[3], again;
	int fds[2];

	setup(&f);
	close_pool(&f);
	assert_int_equal(sys_pipe(fds), 0);
	assert_int_equal(in_child(&f, put_and_die, fds[1]), -SIGKILL);
	assert_int_equal(sys_read_all(fds[0], c, sizeof(c)), 0);
	open_pool(&f, true);
	assert_int_equal(find(&f, &c[0]), 1);
	assert_int_equal(check(&f, &c[0]), 0);
	assert_int_equal(find(&f, &c[1]), 0);
	assert_int_equal(find(&f, &c[2]), 0);
	again = put(&f, 50000, 4);
	assert_int_equal(again.block, c[1].block);
	close(fds[0]);
	close(fds[1]);
	teardown(&f);
}

struct other {
	pid_t pid;
	int to, from;
};

/* Another process that puts data 1 and 2, and commits when told. */
static void start_other(struct fixture *f, struct other *o, bool soon)
{
	int to[2], from[2];
	char c;

	assert_int_equal(sys_pipe(to), 0);
	assert_int_equal(sys_pipe(from), 0);
	o->pid = fork();
	assert_true(o->pid >= 0);
	if (o->pid == 0) {
		struct chunk x[2];

		open_pool(f, true);
		x[0] = put(f, 7000, 1);
		x[1] = put(f, 7000, 2);
		(void)!write(from[1], x, sizeof(x));
		(void)!read(to[0], &c, 1);
		if (soon)
			assert_int_equal(pool_commit_soon(f->pool, &f->e), 0);
		else
			commit(f);
		close_pool(f);
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	o->to = to[1];
	o->from = from[0];
}

static void end_other(struct other *o)
{
	int status;

	assert_int_equal(write(o->to, "x", 1), 1);
	assert_int_equal(waitpid(o->pid, &status, 0), o->pid);
	assert_int_equal(status, 0);
	close(o->to);
	close(o->from);
}

TEST(two_processes_put_the_same_data_and_both_keep_what_they_wrote)
{
	struct fixture f;
	struct other o;
	struct chunk theirs[2], mine[2];

	setup(&f);
	close_pool(&f);
	start_other(&f, &o, false);
	assert_int_equal(sys_read_all(o.from, theirs, sizeof(theirs)), 0);
	open_pool(&f, true);
	mine[0] = put(&f, 7000, 1);
	mine[1] = put(&f, 7000, 3);
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 2; k++)
			assert_int_not_equal(mine[i].block, theirs[k].block);
	end_other(&o);
	commit(&f);
	close_pool(&f);

	open_pool(&f, true);
	assert_int_equal(find(&f, &theirs[0]), 1); /* it came first */
	assert_int_equal(find(&f, &mine[1]), 1);
	put(&f, CHUNK_SIZE, 4);
	put(&f, CHUNK_SIZE, 5);
	for (int i = 0; i < 2; i++) { /* nothing new was put over either */
		assert_int_equal(check(&f, &mine[i]), 0);
		assert_int_equal(check(&f, &theirs[i]), 0);
	}
	teardown(&f);
}

/* ---- many at once ---- */

/* Items with known digests: item i is series[i], of length[i] bytes. */
struct known {
	struct pool_item *v;
	struct chunk *c;
	unsigned char *data;
	size_t n;
};

static uint32_t known_length(size_t i)
{
	static const uint32_t lengths[] = {1, 4096, 100, 5000, 70000, 4095, 8192};

	return lengths[i % (sizeof(lengths) / sizeof(lengths[0]))];
}

static void known_init(struct known *k, size_t n, size_t kinds)
{
	enum { ROOM = 70000 };

	*k = (struct known){
		mem_array(n, sizeof(*k->v)), mem_array(n, sizeof(*k->c)), mem_array(n, ROOM), n};
	for (size_t i = 0; i < n; i++) {
		unsigned char *data = k->data + i * ROOM;

		k->c[i].length = known_length(i % kinds);
		k->c[i].block = CHUNK_NO_BLOCK;
		fill(data, k->c[i].length, (uint32_t)(i % kinds));
		k->c[i].digest = digest_of(data, k->c[i].length);
		k->v[i] = (struct pool_item){data, &k->c[i]};
	}
}

static void known_fini(struct known *k)
{
	free(k->v);
	free(k->c);
	free(k->data);
}

TEST(a_batch_is_put_with_its_duplicates_once_and_side_by_side)
{
	static const char zeros[POOL_BLOCK];
	char block[POOL_BLOCK];
	struct fixture f;
	struct known k;
	struct chunk before;

	setup(&f);
	before = put(&f, known_length(3), 3); /* one is there already, not recorded yet */
	known_init(&k, 3000, 1500);
	assert_int_equal(pool_put_known(f.pool, k.v, k.n, &f.e), 0);
	assert_int_equal(k.c[3].block, before.block);
	assert_int_equal(k.c[1].block, k.c[0].block + 1);
	assert_int_equal(k.c[2].block, k.c[1].block + 1);
	for (size_t i = 0; i < k.n; i++) {
		assert_int_equal(k.c[i].block, k.c[i % 1500].block);
		assert_int_equal(check(&f, &k.c[i]), 0);
	}
	assert_int_equal(
		sys_pread_all(pool_fd(f.pool), block, POOL_BLOCK, (off_t)k.c[2].block * POOL_BLOCK),
		0);
	assert_memory_equal(block + 100, zeros, POOL_BLOCK - 100);
	commit(&f);
	close_pool(&f);
	open_pool(&f, true);
	for (size_t i = 0; i < k.n; i++)
		assert_int_equal(find(&f, &k.c[i]), 1);
	before = k.c[7];
	assert_int_equal(
		pool_put_known(f.pool, k.v, k.n, &f.e), 0); /* all known: no space is taken */
	assert_int_equal(k.c[7].block, before.block);
	known_fini(&k);
	teardown(&f);
}

TEST(a_batch_with_one_wrong_digest_is_refused_whole)
{
	struct fixture f;
	struct known k;
	char want[DIGEST_TEXT + 1];

	setup(&f);
	known_init(&k, 10, 10);
	k.c[7].digest.b[0] ^= 1;
	assert_int_equal(pool_put_known(f.pool, k.v, k.n, &f.e), -1);
	assert_int_equal(f.e.kind, ERR_CORRUPT);
	assert_non_null(strstr(f.e.text, digest_text(&k.c[7].digest, want)));
	k.c[7].digest.b[0] ^= 1;
	assert_int_equal(find(&f, &k.c[0]), 0);
	k.c[7].length = CHUNK_SIZE + 1;
	assert_int_equal(pool_put_known(f.pool, k.v, k.n, &f.e), -1);
	known_fini(&k);
	teardown(&f);
}

TEST(a_batch_of_unknown_digests_gets_them)
{
	struct fixture f;
	struct known k;
	struct digest *want;

	setup(&f);
	known_init(&k, 30, 20);
	want = mem_array(k.n, sizeof(*want));
	for (size_t i = 0; i < k.n; i++) {
		want[i] = k.c[i].digest;
		k.c[i].digest = (struct digest){{0}};
	}
	assert_int_equal(pool_put_all(f.pool, k.v, k.n, &f.e), 0);
	for (size_t i = 0; i < k.n; i++) {
		assert_true(digest_eq(&k.c[i].digest, &want[i]));
		assert_int_equal(k.c[i].block, k.c[i % 20].block);
		assert_int_equal(check(&f, &k.c[i]), 0);
	}
	free(want);
	known_fini(&k);
	teardown(&f);
}

struct batches {
	struct fixture *f;
	struct known k[16];
};

static int put_batch(void *ctx, size_t i, struct err *e)
{
	struct batches *b = ctx;

	return pool_put_known(b->f->pool, b->k[i].v, b->k[i].n, e);
}

/* Each thread has the same chunks, in an order of its own: they claim from each other. */
TEST(threads_whose_batches_overlap_agree_on_the_blocks)
{
	auto_free struct batches *b = mem_alloc(sizeof(*b));
	struct fixture f;

	setup(&f);
	b->f = &f;
	for (size_t i = 0; i < 16; i++) {
		known_init(&b->k[i], 200, 100);
		for (size_t x = 0; x < 200; x++) {
			size_t y = (x * 37 + i * 11) % 200;
			struct pool_item t = b->k[i].v[x];

			b->k[i].v[x] = b->k[i].v[y];
			b->k[i].v[y] = t;
		}
	}
	assert_int_equal(workers_each(16, 8, put_batch, b, &f.e), 0);
	commit(&f);
	for (size_t i = 0; i < 16; i++)
		for (size_t x = 0; x < 200; x++) {
			assert_int_equal(b->k[i].c[x].block, b->k[0].c[x % 100].block);
			assert_int_equal(check(&f, &b->k[i].c[x]), 0);
		}
	for (size_t i = 0; i < 16; i++)
		known_fini(&b->k[i]);
	teardown(&f);
}

TEST(many_are_looked_up_at_once)
{
	struct fixture f;
	struct chunk c[4] = {0}, *v[4] = {&c[0], &c[1], &c[2], &c[3]}, a, b;

	setup(&f);
	a = put(&f, 5000, 1);
	commit(&f);
	close_pool(&f);
	open_pool(&f, true);
	b = put(&f, 6000, 2);
	c[0] = c[3] = a;
	c[2] = b;
	c[1] = (struct chunk){.digest = digest_of("x", 1), .length = 1, .block = 77};
	for (int i = 0; i < 4; i++)
		c[i].block = 77;
	assert_int_equal(pool_find_all(f.pool, v, 4, &f.e), 0);
	assert_int_equal(c[0].block, a.block);
	assert_int_equal(c[1].block, CHUNK_NO_BLOCK);
	assert_int_equal(c[2].block, b.block);
	assert_int_equal(c[3].block, a.block);
	c[3].length--;
	c[3].block = 77;
	assert_int_equal(pool_find_all(f.pool, v, 4, &f.e), -1);
	assert_int_equal(f.e.kind, ERR_CORRUPT);
	teardown(&f);
}

/* ---- recorded before it is on disk ---- */

static bool exists(struct fixture *f, const char *path)
{
	struct stat st;

	return sys_fstatat(f->fd, path, &st, 0) == 0;
}

static void commit_soon(struct fixture *f)
{
	if (pool_commit_soon(f->pool, &f->e) < 0)
		fail_msg("%s", f->e.text);
}

static void zero(struct fixture *f, const struct chunk *c)
{
	auto_free char *zeros = mem_alloc(c->length);

	write_at(f, "pool/data", (off_t)c->block * POOL_BLOCK, zeros, c->length);
}

/* As the machine finds the store after its next boot. */
static void crash(struct fixture *f)
{
	static const char id[] = "00000000-0000-4000-8000-000000000000\n";

	assert_int_equal(pool_doubtful(f->fd, &f->e), 0);
	assert_int_equal(sys_mkdir_p(f->fd, "erofs", 0700), 0);
	assert_int_equal(file_write(f->fd, "erofs/x.img", "x", 1, 0600, &f->e), 0);
	assert_int_equal(file_write(f->fd, "pool/unsynced", id, sizeof(id) - 1, 0600, &f->e), 0);
	assert_int_equal(pool_doubtful(f->fd, &f->e), 1);
}

static void expect_settled(struct fixture *f)
{
	assert_int_equal(pool_doubtful(f->fd, &f->e), 0);
	assert_false(exists(f, "pool/unsynced"));
	assert_false(exists(f, "erofs/x.img"));
}

TEST(what_is_recorded_soon_is_found_and_marked_until_it_is_settled)
{
	struct fixture f;
	struct chunk a, b;

	setup(&f);
	commit_soon(&f); /* nothing to do: no mark */
	assert_false(exists(&f, "pool/unsynced"));
	a = put(&f, 5000, 1);
	commit_soon(&f);
	assert_true(exists(&f, "pool/unsynced"));
	b = put(&f, 6000, 2);
	commit_soon(&f);
	close_pool(&f);
	assert_int_equal(pool_doubtful(f.fd, &f.e), 0);
	open_pool(&f, true);
	assert_true(exists(&f, "pool/unsynced"));
	assert_int_equal(find(&f, &a), 1);
	assert_int_equal(find(&f, &b), 1);
	assert_int_equal(pool_settle(f.pool, &f.e), 0);
	assert_false(exists(&f, "pool/unsynced"));
	assert_int_equal(pool_settle(f.pool, &f.e), 0);
	put(&f, 7000, 3);
	commit_soon(&f); /* the mark that was known to be on disk is gone: it is made again */
	assert_true(exists(&f, "pool/unsynced"));
	commit(&f); /* it may rely on what is not synced */
	assert_false(exists(&f, "pool/unsynced"));
	teardown(&f);
}

TEST(after_a_crash_what_did_not_reach_the_disk_is_forgotten_and_the_rest_stays)
{
	struct fixture f;
	struct chunk synced, here, lost, again;

	setup(&f);
	synced = put(&f, 30000, 1);
	commit(&f);
	here = put(&f, 5000, 2);
	lost = put(&f, 6000, 3);
	commit_soon(&f);
	close_pool(&f);
	zero(&f, &lost);
	crash(&f);
	open_pool(&f, true);
	expect_settled(&f);
	assert_int_equal(find(&f, &synced), 1);
	assert_int_equal(find(&f, &here), 1);
	assert_int_equal(check(&f, &here), 0);
	assert_int_equal(find(&f, &lost), 0);
	again = put(&f, 6000, 3); /* its space is free */
	assert_int_equal(again.block, lost.block);
	commit(&f);
	assert_int_equal(find(&f, &again), 1);
	assert_int_equal(check(&f, &again), 0);
	teardown(&f);
}

TEST(after_a_crash_a_data_file_that_lost_its_end_is_usable)
{
	struct fixture f;
	struct chunk synced, lost;

	setup(&f);
	synced = put(&f, 30000, 1);
	commit(&f);
	lost = put(&f, 60000, 2);
	commit_soon(&f);
	close_pool(&f);
	truncate_to(&f, "pool/data", (off_t)lost.block * POOL_BLOCK);
	crash(&f);
	open_pool(&f, false); /* who only reads has it put right, too */
	expect_settled(&f);
	assert_int_equal(find(&f, &synced), 1);
	assert_int_equal(find(&f, &lost), 0);
	teardown(&f);
}

TEST(without_a_crash_nothing_is_hashed_or_forgotten)
{
	struct fixture f;
	struct chunk c;

	setup(&f);
	c = put(&f, 5000, 1);
	commit_soon(&f);
	close_pool(&f);
	zero(&f, &c);
	open_pool(&f, true);
	assert_int_equal(find(&f, &c), 1);
	teardown(&f);
}

TEST(after_a_crash_a_twin_that_is_right_takes_the_place_of_a_lost_chunk)
{
	struct fixture f;
	struct other o;
	struct chunk theirs[2], mine[2];

	setup(&f);
	close_pool(&f);
	start_other(&f, &o, true);
	assert_int_equal(sys_read_all(o.from, theirs, sizeof(theirs)), 0);
	open_pool(&f, true);
	mine[0] = put(&f, 7000, 1);
	mine[1] = put(&f, 7000, 2);
	commit_soon(&f);
	close_pool(&f);
	end_other(&o); /* theirs become twins */
	zero(&f, &mine[0]);
	zero(&f, &theirs[1]);
	crash(&f);
	open_pool(&f, true);
	expect_settled(&f);
	assert_int_equal(find(&f, &theirs[0]), 1);
	assert_int_equal(check(&f, &theirs[0]), 0);
	assert_int_equal(find(&f, &mine[1]), 1);
	assert_int_equal(check(&f, &mine[1]), 0);
	teardown(&f);
}

TEST(the_pool_can_be_had_alone_only_when_nobody_writes)
{
	struct fixture f;
	auto_fd int users = -1, hold = -1;

	setup(&f);
	users = sys_openat(f.fd, "pool/users", O_RDWR, 0);
	assert_true(users >= 0);
	assert_int_equal(sys_flock(users, LOCK_EX | LOCK_NB), -1);
	close_pool(&f);
	assert_int_equal(sys_flock(users, LOCK_EX | LOCK_NB), 0);
	open_pool(&f, false); /* readers do not count */
	close_pool(&f);
	assert_int_equal(sys_flock(users, LOCK_UN), 0);
	hold = pool_hold(f.fd, &f.e);
	assert_true(hold >= 0);
	assert_int_equal(sys_flock(users, LOCK_EX | LOCK_NB), -1);
	sys_close_ref(&hold);
	f.pool = pool_open_alone(f.fd, &f.e);
	assert_non_null(f.pool);
	assert_int_equal(sys_flock(users, LOCK_SH | LOCK_NB), -1);
	close_pool(&f);
	assert_int_equal(sys_flock(users, LOCK_SH | LOCK_NB), 0);
	teardown(&f);
}

/* ---- damage ---- */

TEST(a_cut_off_data_file_is_an_error_that_says_both_lengths)
{
	struct fixture f;
	struct chunk c;
	char text[128];

	setup(&f);
	c = put(&f, 20000, 1);
	commit(&f);
	close_pool(&f);
	truncate_to(&f, "pool/data", (off_t)(c.block + 2) * POOL_BLOCK);
	snprintf(text, sizeof(text), "pool/data: expected at least %d bytes, found %d",
		(int)(c.block + 5) * POOL_BLOCK, (int)(c.block + 2) * POOL_BLOCK);
	expect_corrupt(&f, text);
	teardown(&f);
}

TEST(altered_data_are_an_error_with_both_digests_and_can_be_repaired)
{
	struct fixture f;
	struct chunk c;
	unsigned char data[20000];
	char want[DIGEST_TEXT + 1];

	setup(&f);
	c = put(&f, sizeof(data), 1);
	commit(&f);
	write_at(&f, "pool/data", (off_t)c.block * POOL_BLOCK + 777, "oops", 4);
	assert_int_equal(check(&f, &c), -1);
	assert_int_equal(f.e.kind, ERR_CORRUPT);
	assert_non_null(strstr(f.e.text, digest_text(&c.digest, want)));
	assert_non_null(strstr(f.e.text, "found sha256:"));
	assert_non_null(strstr(f.e.text, "/pool/data"));
	assert_non_null(strstr(f.e.hint, "verify --repair"));

	fill(data, sizeof(data), 2);
	assert_int_equal(pool_repair(f.pool, &c, data, NULL), -1);
	fill(data, sizeof(data), 1);
	assert_int_equal(pool_repair(f.pool, &c, data, &f.e), 0);
	assert_int_equal(check(&f, &c), 0);
	teardown(&f);
}

TEST(files_that_are_no_pool_are_named)
{
	static const struct {
		const char *path, *say;
		off_t at;
		char bytes[16];
	} cases[] = {
		{"pool/data", "pool/data: expected the header svrun-pool/1", 0, "GARBAGE"},
		{"pool/data", "the records of another data file", 16, "another identity"},
		{"pool/db/data.mdb", "pool/db/data.mdb: page 0", 16, "GARBAGE"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;

		setup(&f);
		put(&f, 20000, 1);
		commit(&f);
		close_pool(&f);
		write_at(&f, cases[i].path, cases[i].at, cases[i].bytes, sizeof(cases[i].bytes));
		expect_corrupt(&f, cases[i].say);
		teardown(&f);
	}
}

TEST(lost_records_are_an_error_and_never_an_empty_pool)
{
	static const char *const lost[] = {"pool/db", "pool/db/data.mdb"};

	for (size_t i = 0; i < 2; i++) {
		struct fixture f;

		setup(&f);
		put(&f, 20000, 1);
		commit(&f);
		close_pool(&f);
		assert_int_equal(sys_remove_tree(f.fd, lost[i]), 0);
		expect_corrupt(&f, "pool/db/data.mdb: expected the records of");
		teardown(&f);
	}
}

TEST(a_cut_off_lmdb_is_an_error_wherever_it_was_cut)
{
	struct fixture f;
	auto_buf struct buf whole = BUF_INIT(16 << 20);

	setup(&f);
	for (uint32_t i = 0; i < 500; i++)
		put(&f, 100, i);
	commit(&f);
	close_pool(&f);
	assert_int_equal(file_read(f.fd, "pool/db/data.mdb", &whole, NULL), 0);
	for (size_t n = 0; n < whole.len; n += 4096) {
		truncate_to(&f, "pool/db/data.mdb", (off_t)n);
		f.e = (struct err){0};
		f.pool = pool_open(f.fd, true, &f.e);
		if (f.pool)
			fail_msg("opened with %zu of %zu bytes", n, whole.len);
		assert_int_equal(f.e.kind, ERR_CORRUPT);
		assert_non_null(strstr(f.e.text, "pool/db/data.mdb"));
		write_at(&f, "pool/db/data.mdb", 0, whole.data, whole.len);
	}
	open_pool(&f, true);
	teardown(&f);
}

TEST(an_lmdb_that_was_never_made_whole_is_made_again)
{
	static const off_t lengths[] = {1, 100, 4096, 4100};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct fixture f;

		setup(&f); /* nothing was put: as a kill or a full disk leaves it */
		close_pool(&f);
		truncate_to(&f, "pool/db/data.mdb", lengths[i]);
		open_pool(&f, true);
		put(&f, 20000, 1);
		commit(&f);
		close_pool(&f);
		open_pool(&f, true);
		teardown(&f);
	}
}

/* Whatever is altered: an error, or the right data; never a signal, never wrong data. */
static void use_damaged(struct fixture *f, int pipe_fd)
{
	(void)pipe_fd;
	f->pool = pool_open(f->fd, true, &f->e);
	if (!f->pool)
		_exit(f->e.kind == ERR_CORRUPT ? 1 : 9);
	for (uint32_t i = 0; i < 300; i++) {
		unsigned char data[100];
		struct chunk c = {.length = sizeof(data), .block = CHUNK_NO_BLOCK};

		fill(data, sizeof(data), i);
		c.digest = digest_of(data, sizeof(data));
		if (pool_find(f->pool, &c, NULL) == 1 && check(f, &c) < 0)
			_exit(8);
	}
	close_pool(f);
}

TEST(an_altered_lmdb_is_an_error_or_does_no_harm)
{
	struct fixture f;
	auto_buf struct buf whole = BUF_INIT(16 << 20);
	unsigned x = 12345, refused = 0;

	setup(&f);
	for (uint32_t i = 0; i < 300; i++)
		put(&f, 100, i);
	commit(&f);
	close_pool(&f);
	assert_int_equal(file_read(f.fd, "pool/db/data.mdb", &whole, NULL), 0);
	for (int i = 0; i < 400; i++) {
		size_t at = (x = x * 1103515245 + 12345) % whole.len;
		unsigned char bytes[8];
		size_t n = i % 2 ? 1 : sizeof(bytes);
		int rc;

		if (at + n > whole.len)
			continue;
		fill(bytes, sizeof(bytes), x);
		write_at(&f, "pool/db/data.mdb", (off_t)at, bytes, n);
		rc = in_child(&f, use_damaged, -1);
		if (rc != 0 && rc != 1)
			fail_msg("%zu bytes at %zu: %d", n, at, rc);
		refused += rc == 1;
		truncate_to(&f, "pool/db/data.mdb", 0);
		write_at(&f, "pool/db/data.mdb", 0, whole.data, whole.len);
	}
	assert_true(refused > 20);
	open_pool(&f, true);
	teardown(&f);
}

TEST(a_full_file_system_is_named_and_the_pool_stays_usable)
{
	struct fixture f;
	struct chunk first, c;
	auto_free unsigned char *data = mem_alloc(CHUNK_SIZE);
	int rc = 0;

	if (geteuid() != 0)
		skip();
	setup(&f);
	close_pool(&f);
	close(f.fd);
	if (mount("none", f.dir, "tmpfs", 0, "size=12m") < 0)
		skip();
	f.fd = sys_open(f.dir, O_RDONLY | O_DIRECTORY, 0);
	open_pool(&f, true);
	first = put(&f, CHUNK_SIZE, 0);
	commit(&f);
	for (uint32_t i = 1; i < 20 && rc == 0; i++) {
		fill(data, CHUNK_SIZE, i);
		rc = pool_put(f.pool, data, CHUNK_SIZE, &c, &f.e);
	}
	assert_int_equal(rc, -1);
	assert_non_null(strstr(f.e.text, "No space left"));
	assert_non_null(strstr(f.e.hint, f.dir));
	assert_non_null(strstr(f.e.hint, "is full"));
	close_pool(&f);
	open_pool(&f, true);
	assert_int_equal(find(&f, &first), 1);
	assert_int_equal(check(&f, &first), 0);
	put(&f, CHUNK_SIZE, 7); /* there is room again */
	commit(&f);
	close_pool(&f);
	close(f.fd);
	assert_int_equal(umount(f.dir), 0);
	f.fd = sys_open(f.dir, O_RDONLY | O_DIRECTORY, 0);
	teardown(&f);
}

/* What a batch could not write is as if it was never put: its space is free, and others may try. */
TEST(a_batch_that_does_not_fit_leaves_nothing_behind)
{
	struct fixture f;
	struct known k;
	struct chunk one;

	if (geteuid() != 0)
		skip();
	setup(&f);
	close_pool(&f);
	close(f.fd);
	if (mount("none", f.dir, "tmpfs", 0, "size=4m") < 0)
		skip();
	f.fd = sys_open(f.dir, O_RDONLY | O_DIRECTORY, 0);
	open_pool(&f, true);
	known_init(&k, 700, 700); /* 10 MB */
	assert_int_equal(pool_put_known(f.pool, k.v, k.n, &f.e), -1);
	assert_non_null(strstr(f.e.text, "No space left"));
	assert_int_equal(k.c[0].block, CHUNK_NO_BLOCK);
	assert_int_equal(find(&f, &k.c[699]), 0);
	assert_int_equal(mount("none", f.dir, "tmpfs", MS_REMOUNT, "size=32m"), 0);
	assert_int_equal(pool_put_known(f.pool, k.v, k.n, &f.e), 0);
	commit(&f);
	for (size_t i = 0; i < k.n; i++)
		assert_int_equal(check(&f, &k.c[i]), 0);
	one = k.c[0];
	known_fini(&k);
	close_pool(&f);
	open_pool(&f, true);
	assert_int_equal(find(&f, &one), 1);
	close_pool(&f);
	close(f.fd);
	assert_int_equal(umount(f.dir), 0);
	f.fd = sys_open(f.dir, O_RDONLY | O_DIRECTORY, 0);
	teardown(&f);
}

/* ---- notes ---- */

/* At any size, in particular one that ends within one of LMDB's files. */
TEST(a_full_file_system_never_ends_the_process)
{
	for (unsigned kib = 4; kib <= 96; kib += 4) {
		struct fixture f;
		char options[32];

		if (geteuid() != 0)
			skip();
		setup(&f);
		close_pool(&f);
		close(f.fd);
		snprintf(options, sizeof(options), "size=%uk", kib);
		if (mount("none", f.dir, "tmpfs", 0, options) < 0)
			skip();
		f.fd = sys_open(f.dir, O_RDONLY | O_DIRECTORY, 0);
		f.pool = pool_open(f.fd, true, &f.e);
		if (!f.pool) {
			assert_non_null(strstr(f.e.text, "No space left"));
			assert_non_null(strstr(f.e.hint, f.dir));
		}
		close_pool(&f);
		assert_int_equal(mount("none", f.dir, "tmpfs", MS_REMOUNT, "size=8m"), 0);
		open_pool(&f, true); /* room came, and what was half made is in no way */
		put(&f, 20000, 1);
		commit(&f);
		close_pool(&f);
		close(f.fd);
		assert_int_equal(umount(f.dir), 0);
		f.fd = sys_open(f.dir, O_RDONLY | O_DIRECTORY, 0);
		teardown(&f);
	}
}

TEST(a_note_is_read_as_it_was_put)
{
	struct fixture f;
	struct digest key = digest_of("key", 3);
	auto_free char *val = NULL;

	setup(&f);
	assert_int_equal(pool_note_get(f.pool, &key, &val, &f.e), 0);
	assert_null(val);
	assert_int_equal(pool_note_put(f.pool, &key, "first", &f.e), 0);
	assert_int_equal(pool_note_put(f.pool, &key, "second", &f.e), 0);
	close_pool(&f);
	open_pool(&f, false);
	assert_int_equal(pool_note_get(f.pool, &key, &val, &f.e), 1);
	assert_string_equal(val, "second");
	teardown(&f);
}

TEST(a_length_only_grows_by_what_was_put)
{
	struct fixture f;
	off_t before;

	setup(&f);
	put(&f, CHUNK_SIZE, 1);
	commit(&f);
	before = size_of(&f, "pool/data");
	assert_int_equal(before, POOL_BLOCK + CHUNK_SIZE);
	for (int i = 0; i < 5; i++) {
		put(&f, 100, 2);
		close_pool(&f);
		open_pool(&f, true);
	}
	assert_int_equal(size_of(&f, "pool/data"), before + POOL_BLOCK);
	teardown(&f);
}

RUN_TESTS(cmocka_unit_test(a_chunk_is_found_with_its_bytes_after_it_was_put),
	cmocka_unit_test(the_same_data_are_written_once),
	cmocka_unit_test(the_rest_of_the_last_block_is_zero_even_in_used_space),
	cmocka_unit_test(what_was_not_committed_is_gone_and_its_space_is_used_again),
	cmocka_unit_test(a_chunk_of_another_length_is_refused),
	cmocka_unit_test(a_missing_pool_is_not_found),
	cmocka_unit_test(threads_that_put_the_same_data_get_the_same_block),
	cmocka_unit_test(space_of_a_killed_process_is_taken_back_and_what_it_committed_stays),
	cmocka_unit_test(two_processes_put_the_same_data_and_both_keep_what_they_wrote),
	cmocka_unit_test(a_batch_is_put_with_its_duplicates_once_and_side_by_side),
	cmocka_unit_test(a_batch_with_one_wrong_digest_is_refused_whole),
	cmocka_unit_test(a_batch_of_unknown_digests_gets_them),
	cmocka_unit_test(threads_whose_batches_overlap_agree_on_the_blocks),
	cmocka_unit_test(many_are_looked_up_at_once),
	cmocka_unit_test(what_is_recorded_soon_is_found_and_marked_until_it_is_settled),
	cmocka_unit_test(after_a_crash_what_did_not_reach_the_disk_is_forgotten_and_the_rest_stays),
	cmocka_unit_test(after_a_crash_a_data_file_that_lost_its_end_is_usable),
	cmocka_unit_test(without_a_crash_nothing_is_hashed_or_forgotten),
	cmocka_unit_test(after_a_crash_a_twin_that_is_right_takes_the_place_of_a_lost_chunk),
	cmocka_unit_test(the_pool_can_be_had_alone_only_when_nobody_writes),
	cmocka_unit_test(a_cut_off_data_file_is_an_error_that_says_both_lengths),
	cmocka_unit_test(altered_data_are_an_error_with_both_digests_and_can_be_repaired),
	cmocka_unit_test(files_that_are_no_pool_are_named),
	cmocka_unit_test(lost_records_are_an_error_and_never_an_empty_pool),
	cmocka_unit_test(a_cut_off_lmdb_is_an_error_wherever_it_was_cut),
	cmocka_unit_test(an_lmdb_that_was_never_made_whole_is_made_again),
	cmocka_unit_test(an_altered_lmdb_is_an_error_or_does_no_harm),
	cmocka_unit_test(a_full_file_system_is_named_and_the_pool_stays_usable),
	cmocka_unit_test(a_full_file_system_never_ends_the_process),
	cmocka_unit_test(a_batch_that_does_not_fit_leaves_nothing_behind),
	cmocka_unit_test(a_note_is_read_as_it_was_put),
	cmocka_unit_test(a_length_only_grows_by_what_was_put))
