#include "images/digest-map.h"

#include <string.h>

enum { SLOTS_FIRST = 1024 };

void digest_map_fini(struct digest_map *m)
{
	free(m->slots);
	*m = (struct digest_map){0};
}

static uint64_t key_of(const struct digest *d)
{
	uint64_t key;

	memcpy(&key, d->b, sizeof(key));
	return key ? key : 1;
}

/* Where the key is, or belongs. */
static struct digest_slot *slot_of(const struct digest_map *m, uint64_t key)
{
	for (uint64_t i = key;; i++) {
		struct digest_slot *s = &m->slots[i & (m->nslots - 1)];

		if (!s->key || s->key == key)
			return s;
	}
}

static void grow(struct digest_map *m)
{
	struct digest_map old = *m;

	m->nslots = old.nslots ? 2 * old.nslots : SLOTS_FIRST;
	m->slots = mem_array(m->nslots, sizeof(*m->slots));
	for (size_t i = 0; i < old.nslots; i++)
		if (old.slots[i].key)
			*slot_of(m, old.slots[i].key) = old.slots[i];
	free(old.slots);
}

struct digest_slot *digest_map_add(struct digest_map *m, const struct digest *d)
{
	struct digest_slot *s;

	if (m->n >= m->nslots / 4 * 3)
		grow(m);
	s = slot_of(m, key_of(d));
	if (!s->key) {
		s->key = key_of(d);
		m->n++;
	}
	return s;
}

struct digest_slot *digest_map_find(const struct digest_map *m, const struct digest *d)
{
	struct digest_slot *s = m->nslots ? slot_of(m, key_of(d)) : NULL;

	return s && s->key ? s : NULL;
}
