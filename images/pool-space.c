#include "images/pool-space.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"
#include "images/pool.h"

enum {
	CHUNK_BLOCKS = CHUNK_SIZE / POOL_BLOCK,
	WANT_FIRST = (64 << 20) / POOL_BLOCK, /* doubles, so that long sessions reserve rarely */
	WANT_MAX = (1 << 30) / POOL_BLOCK,
	EXTENT_SIZE = 16,
	FREE_SIZE = 8,
};
/* Block numbers are 32 bits wide in EROFS, and all ones means a hole. */
static const uint64_t end_max = UINT32_MAX;

/* ---- sessions ---- */

static struct flock session_byte(uint64_t session)
{
	return (struct flock){
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)session, .l_len = 1};
}

static int begin_session(struct pool_space *s, uint64_t session, struct err *e)
{
	struct flock l = session_byte(session);

	if (fcntl(s->sessions, F_OFD_SETLK, &l) < 0)
		return err_sys(e, "lock %s/sessions", s->db->dir);
	return 0;
}

/* 1: a living process holds it, 0: dead, -1. */
static int session_alive(const struct pool_space *s, uint64_t session, struct err *e)
{
	struct flock l = session_byte(session);

	if (session == 0 || session > INT64_MAX)
		return 0;
	if (session == s->session)
		return 1;
	if (fcntl(s->sessions, F_OFD_GETLK, &l) < 0)
		return err_sys(e, "lock %s/sessions", s->db->dir);
	return l.l_type != F_UNLCK;
}

int pool_space_init(struct pool_space *s, struct pool_db *db, int pooldir, int data, struct err *e)
{
	*s = (struct pool_space){.db = db, .data = data, .want = WANT_FIRST};
	s->sessions = sys_openat(pooldir, "sessions", O_RDWR | O_CREAT, 0600);
	return s->sessions < 0 ? err_sys(e, "open %s/sessions", db->dir) : 0;
}

void pool_space_fini(struct pool_space *s)
{
	if (s->db)
		sys_close_ref(&s->sessions);
	free(s->open);
	*s = (struct pool_space){0};
}

/* ---- records ---- */

static int corrupt(const struct pool_space *s, const char *what, uint64_t start, struct err *e)
{
	err_set(e, ERR_CORRUPT, "%s: %s at block %" PRIu64, s->db->name, what, start);
	return pool_db_hint(s->db, e);
}

/* Open a cursor at the first record with a key of at least start. 1, 0 at the end, -1. */
static int seek(struct pool_space *s, MDB_cursor *c, MDB_cursor_op op, uint64_t start, size_t size,
	struct pool_range *r, MDB_val *v, struct err *e)
{
	uint8_t key[8];
	MDB_val k = {sizeof(key), key};
	int rc;

	pool_key_encode(key, start);
	rc = mdb_cursor_get(c, &k, v, op);
	if (rc == MDB_NOTFOUND)
		return 0;
	if (rc)
		return pool_db_error(s->db, rc, "read a range", e);
	if (k.mv_size != sizeof(key) || v->mv_size != size)
		return corrupt(s, "a range of a wrong size", start, e);
	r->start = pool_key_decode(k.mv_data);
	r->blocks = pool_u64_decode(v->mv_data);
	if (r->start < 1 || r->blocks < 1 || r->start > end_max || r->blocks > end_max - r->start)
		return corrupt(s, "an impossible range", r->start, e);
	return 1;
}

int pool_space_list(struct pool_db *db, MDB_txn *t, MDB_dbi table, struct pool_range **v, size_t *n,
	struct err *e)
{
	struct pool_space s = {.db = db};
	struct pool_range r;
	size_t cap = 0, size = table == db->extents ? EXTENT_SIZE : FREE_SIZE;
	MDB_val value;
	MDB_cursor *c;
	int rc = mdb_cursor_open(t, table, &c);

	*v = NULL;
	*n = 0;
	if (rc)
		return pool_db_error(db, rc, "read ranges", e);
	for (rc = seek(&s, c, MDB_FIRST, 0, size, &r, &value, e); rc > 0;
		rc = seek(&s, c, MDB_NEXT, 0, size, &r, &value, e)) {
		mem_grow(v, &cap, *n);
		(*v)[(*n)++] = r;
	}
	mdb_cursor_close(c);
	if (rc == 0)
		return 0;
	free(*v);
	*v = NULL;
	*n = 0;
	return -1;
}

static int delete_at(struct pool_space *s, MDB_cursor *c, struct err *e)
{
	int rc = mdb_cursor_del(c, 0);

	return rc ? pool_db_error(s->db, rc, "delete a range", e) : 0;
}

static int free_put(struct pool_space *s, MDB_txn *t, const struct pool_range *r, struct err *e)
{
	uint8_t key[8], value[FREE_SIZE];

	pool_key_encode(key, r->start);
	pool_u64_encode(value, r->blocks);
	return pool_db_put(s->db, t, s->db->free, key, sizeof(key), value, sizeof(value), e);
}

/* Join r with the free ranges beside it, which are deleted. */
static int absorb_neighbours(
	struct pool_space *s, MDB_cursor *c, struct pool_range *r, struct err *e)
{
	struct pool_range x;
	MDB_val v;
	int rc = seek(s, c, MDB_SET_RANGE, r->start, FREE_SIZE, &x, &v, e);

	if (rc > 0 && x.start < r->start + r->blocks)
		return corrupt(s, "blocks that are free twice", x.start, e);
	if (rc > 0 && x.start == r->start + r->blocks) {
		r->blocks += x.blocks;
		if (delete_at(s, c, e) < 0)
			return -1;
	}
	/* back to the one before: the cursor stands on the next one, or nowhere */
	if (rc >= 0)
		rc = seek(s, c, MDB_SET_RANGE, r->start, FREE_SIZE, &x, &v, e);
	if (rc >= 0)
		rc = seek(s, c, rc ? MDB_PREV : MDB_LAST, 0, FREE_SIZE, &x, &v, e);
	if (rc > 0 && x.start + x.blocks > r->start)
		return corrupt(s, "blocks that are free twice", r->start, e);
	if (rc > 0 && x.start + x.blocks == r->start) {
		r->start = x.start;
		r->blocks += x.blocks;
		return delete_at(s, c, e);
	}
	return rc < 0 ? -1 : 0;
}

/* Add a range to the free ones, or take it off the end. */
static int free_add(struct pool_space *s, MDB_txn *t, struct pool_range r, struct err *e)
{
	struct pool_state state;
	MDB_cursor *c;
	int rc = mdb_cursor_open(t, s->db->free, &c);

	if (rc)
		return pool_db_error(s->db, rc, "read the free ranges", e);
	rc = absorb_neighbours(s, c, &r, e);
	mdb_cursor_close(c);
	if (rc < 0 || pool_state_get(s->db, t, &state, e) < 0)
		return -1;
	if (r.start + r.blocks > state.end)
		return corrupt(s, "a range beyond the end", r.start, e);
	if (r.start + r.blocks < state.end)
		return free_put(s, t, &r, e);
	state.end = r.start;
	return pool_state_put(s->db, t, &state, e);
}

/* ---- reserving ---- */

/* Move free ranges that hold any chunk into `got`, up to s->want blocks. Smaller ones wait until
 * their neighbours are free: they cost address space, not disk space. */
static int take_free(struct pool_space *s, MDB_txn *t, struct pool_range *got, size_t max,
	size_t *n, struct err *e)
{
	struct pool_range r;
	uint64_t sum = 0, from = 0;
	MDB_val v;
	MDB_cursor *c;
	int rc = mdb_cursor_open(t, s->db->free, &c);

	if (rc)
		return pool_db_error(s->db, rc, "read the free ranges", e);
	while (*n < max && sum < s->want &&
		(rc = seek(s, c, MDB_SET_RANGE, from, FREE_SIZE, &r, &v, e)) > 0) {
		struct pool_range rest = r;

		from = r.start + r.blocks;
		if (r.blocks < CHUNK_BLOCKS)
			continue;
		rc = delete_at(s, c, e);
		if (rc == 0 && r.blocks > s->want - sum && s->want - sum >= CHUNK_BLOCKS) {
			r.blocks = s->want - sum;
			rest.start += r.blocks;
			rest.blocks -= r.blocks;
			rc = free_put(s, t, &rest, e);
		}
		if (rc < 0)
			break;
		got[(*n)++] = r;
		sum += r.blocks;
	}
	mdb_cursor_close(c);
	return rc < 0 ? -1 : 0;
}

static int take_end(
	struct pool_space *s, struct pool_state *state, struct pool_range *got, struct err *e)
{
	uint64_t blocks = s->want;

	if (blocks > end_max - state->end)
		blocks = end_max - state->end;
	if (blocks < CHUNK_BLOCKS)
		return err_set(e, ERR_SYSTEM, "%s/data is full: 16 TiB", s->db->dir);
	*got = (struct pool_range){state->end, blocks};
	state->end += blocks;
	return 0;
}

static int extent_put(struct pool_space *s, MDB_txn *t, uint64_t session,
	const struct pool_range *r, struct err *e)
{
	uint8_t key[8], value[EXTENT_SIZE];

	pool_key_encode(key, r->start);
	pool_u64_encode(value, r->blocks);
	pool_u64_encode(value + 8, session);
	return pool_db_put(s->db, t, s->db->extents, key, sizeof(key), value, sizeof(value), e);
}

static int reserve_within(struct pool_space *s, MDB_txn *t, struct pool_range *got, size_t max,
	size_t *n, uint64_t *session, struct err *e)
{
	struct pool_state state;

	if (pool_state_get(s->db, t, &state, e) < 0)
		return -1;
	*session = s->session ? s->session : ++state.session;
	if (!s->session && begin_session(s, *session, e) < 0)
		return -1;
	if (take_free(s, t, got, max, n, e) < 0)
		return -1;
	if (*n == 0) {
		if (take_end(s, &state, &got[0], e) < 0)
			return -1;
		*n = 1;
	}
	for (size_t i = 0; i < *n; i++)
		if (extent_put(s, t, *session, &got[i], e) < 0)
			return -1;
	return pool_state_put(s->db, t, &state, e);
}

static int reserve(struct pool_space *s, struct err *e)
{
	enum { RANGES_MAX = 256 };
	struct pool_range got[RANGES_MAX];
	uint64_t session;
	size_t n = 0;
	/* lost in a power cut, the blocks are simply free again: nothing recorded is in them */
	MDB_txn *t = pool_db_begin_lazy(s->db, e);

	if (!t)
		return -1;
	if (reserve_within(s, t, got, RANGES_MAX, &n, &session, e) < 0) {
		mdb_txn_abort(t);
		return -1;
	}
	if (pool_db_commit(s->db, t, e) < 0)
		return -1;
	s->session = session;
	if (s->want < WANT_MAX)
		s->want *= 2;
	for (size_t i = 0; i < n; i++) {
		mem_grow(&s->open, &s->cap, s->n);
		s->open[s->n++] = got[i];
	}
	return 0;
}

void pool_space_expect(struct pool_space *s, uint64_t blocks)
{
	if (blocks > s->want)
		s->want = blocks < WANT_MAX ? blocks : WANT_MAX;
}

int pool_space_take(struct pool_space *s, uint32_t blocks, uint64_t *start, struct err *e)
{
	for (;;) {
		for (size_t i = 0; i < s->n; i++) {
			struct pool_range *r = &s->open[i];

			if (r->blocks < blocks)
				continue;
			*start = r->start;
			r->start += blocks;
			r->blocks -= blocks;
			if (r->blocks == 0)
				*r = s->open[--s->n];
			return 0;
		}
		if (reserve(s, e) < 0)
			return -1;
	}
}

int pool_space_take_row(struct pool_space *s, const uint32_t *blocks, size_t count, uint64_t *start,
	size_t *n, struct err *e)
{
	uint64_t sum = blocks[0];

	if (pool_space_take(s, blocks[0], start, e) < 0)
		return -1;
	/* what follows the first chunk is the rest of its range, if there is a rest */
	for (*n = 1; *n < count; (*n)++) {
		size_t i = 0;

		while (i < s->n && s->open[i].start != *start + sum)
			i++;
		if (i == s->n || s->open[i].blocks < blocks[*n])
			break;
		s->open[i].start += blocks[*n];
		s->open[i].blocks -= blocks[*n];
		sum += blocks[*n];
		if (s->open[i].blocks == 0)
			s->open[i] = s->open[--s->n];
	}
	return 0;
}

void pool_space_give(struct pool_space *s, uint64_t start, uint32_t blocks)
{
	mem_grow(&s->open, &s->cap, s->n);
	s->open[s->n++] = (struct pool_range){start, blocks};
}

/* ---- giving back ---- */

/* Only gives the disk space back: whoever gets the blocks writes all of them. So failing, on a file
 * system that has no holes, is harmless. */
static void punch(const struct pool_space *s, const struct pool_range *r)
{
	int rc = fallocate(s->data, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		(off_t)(r->start * POOL_BLOCK), (off_t)(r->blocks * POOL_BLOCK));

	(void)rc;
}

/* Delete the extents of this session, or those of dead ones, and with `whole` free all of their
 * blocks. */
static int delete_extents(struct pool_space *s, MDB_txn *t, bool dead, bool whole, struct err *e)
{
	struct pool_range r;
	MDB_val v;
	MDB_cursor *c;
	int rc = mdb_cursor_open(t, s->db->extents, &c);

	if (rc)
		return pool_db_error(s->db, rc, "read the extents", e);
	for (uint64_t from = 0;; from = r.start + 1) {
		uint64_t session;

		rc = seek(s, c, MDB_SET_RANGE, from, EXTENT_SIZE, &r, &v, e);
		if (rc <= 0)
			break;
		session = pool_u64_decode((uint8_t *)v.mv_data + 8);
		rc = dead ? session_alive(s, session, e) : session != s->session;
		if (rc > 0)
			continue;
		if (rc == 0)
			rc = delete_at(s, c, e);
		if (rc == 0 && whole) {
			punch(s, &r);
			rc = free_add(s, t, r, e);
		}
		if (rc < 0)
			break;
	}
	mdb_cursor_close(c);
	return rc < 0 ? -1 : 0;
}

int pool_space_free(
	struct pool_space *s, MDB_txn *t, uint64_t start, uint64_t blocks, struct err *e)
{
	return free_add(s, t, (struct pool_range){start, blocks}, e);
}

int pool_space_release(struct pool_space *s, MDB_txn *t, struct err *e)
{
	if (delete_extents(s, t, false, false, e) < 0)
		return -1;
	for (size_t i = 0; i < s->n; i++)
		if (free_add(s, t, s->open[i], e) < 0)
			return -1;
	return 0;
}

void pool_space_released(struct pool_space *s)
{
	s->n = 0;
}

static int drop(struct pool_space *s, bool dead, struct err *e)
{
	MDB_txn *t = pool_db_begin(s->db, true, e);

	if (!t)
		return -1;
	if (delete_extents(s, t, dead, true, e) < 0) {
		mdb_txn_abort(t);
		return -1;
	}
	return pool_db_commit(s->db, t, e);
}

int pool_space_drop(struct pool_space *s, struct err *e)
{
	pool_space_released(s);
	return s->session ? drop(s, false, e) : 0;
}

int pool_space_sweep(struct pool_space *s, struct err *e)
{
	MDB_txn *t = pool_db_begin(s->db, false, e);
	MDB_stat st;
	int rc;

	if (!t)
		return -1;
	rc = mdb_stat(t, s->db->extents, &st);
	mdb_txn_abort(t);
	if (rc)
		return pool_db_error(s->db, rc, "stat", e);
	return st.ms_entries ? drop(s, true, e) : 0;
}
