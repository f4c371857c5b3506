/* Layers by what is in them: a layer whose objects, attributes, chunk digests, codec and level are
 * those of one that was written before is that one, whatever image it was written for. So a byte
 * that several images share in one layer is compressed and hashed once.
 *
 * ROOT/cache/layers/HEX, by the layer's key: its digests and sizes, and where each chunk's frame
 * lies. Good only while the blob is in the store. */
#ifndef BUILDER_LAYER_CACHE_H
#define BUILDER_LAYER_CACHE_H

#include "builder/compose.h"
#include "images/layer.h"

/* The key: sha256 of the canonical list of the nodes and of what packs them. */
struct digest layer_key(const struct layer *l, struct node *const *nodes, size_t n);

/* layer_write(), unless the layer is there already (and no_cache is not set). Whoever writes the
 * same layer at the same time is waited for. count may be NULL. */
int layer_cache_write(struct layer *l, int32_t number, struct node *const *nodes, size_t n,
	struct pool *p, struct store *s, bool no_cache, struct progress *pr,
	struct build_count *count, struct err *e) must_check;

#endif
