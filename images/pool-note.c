/* Notes: small texts beside the chunks. */
#include <string.h>

#include "base/sys.h"
#include "images/pool-private.h"

enum {
	NOTE_CHECK = 4,
	NOTE_MAX = 64 << 10,
};

static void note_check(
	const struct digest *key, const void *text, size_t n, uint8_t out[NOTE_CHECK])
{
	struct hash h;
	struct digest d;

	hash_init(&h, HASH_SHA256);
	hash_add(&h, key->b, DIGEST_SIZE);
	hash_add(&h, text, n);
	d = hash_digest(&h);
	memcpy(out, d.b, NOTE_CHECK);
}

int pool_note_put(struct pool *p, const struct digest *key, const char *val, struct err *e)
{
	size_t n = strlen(val);
	auto_free uint8_t *value = mem_alloc(NOTE_CHECK + n);
	MDB_txn *t;

	if (n > NOTE_MAX)
		return err_set(e, ERR_UNSUPPORTED, "a note of %zu bytes", n);
	note_check(key, val, n, value);
	memcpy(value + NOTE_CHECK, val, n);
	t = pool_db_begin(&p->db, true, e);
	if (!t)
		return -1;
	if (pool_db_put(&p->db, t, p->db.notes, key->b, DIGEST_SIZE, value, NOTE_CHECK + n, e) == 0)
		return pool_db_commit(&p->db, t, e) < 0 ? sys_hint_space(e, p->fd, 0) : 0;
	mdb_txn_abort(t);
	return sys_hint_space(e, p->fd, 0);
}

int pool_note_get(struct pool *p, const struct digest *key, char **val, struct err *e)
{
	MDB_txn *t = pool_db_begin(&p->db, false, e);
	uint8_t check[NOTE_CHECK];
	MDB_val v;
	int rc;

	*val = NULL;
	if (!t)
		return -1;
	rc = pool_db_get(&p->db, t, p->db.notes, key->b, DIGEST_SIZE, &v, e);
	if (rc > 0 && v.mv_size >= NOTE_CHECK && v.mv_size <= NOTE_CHECK + NOTE_MAX) {
		const char *text = (char *)v.mv_data + NOTE_CHECK;
		size_t n = v.mv_size - NOTE_CHECK;

		note_check(key, text, n, check);
		if (memcmp(check, v.mv_data, NOTE_CHECK) == 0)
			*val = mem_printf("%.*s", (int)n, text);
	}
	mdb_txn_abort(t);
	if (rc <= 0 || *val)
		return rc;
	err_set(e, ERR_CORRUPT, "%s: a damaged note", p->db.name);
	return pool_db_hint(&p->db, e);
}
