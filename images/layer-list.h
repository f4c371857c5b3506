/* What a layer of others holds, kept in the store (ROOT/layers) so that it is read once: another
 * image with the same layer fetches nothing. Docs: docs/layers.md.
 *
 *   layers/HEX      by the layer's digest: made of the whole layer, whose digest was checked
 *   layers/HEX.toc  made by a table of contents; good for that table only (key), because nothing
 *                   has proven the layer's digest: another image can name the same layer with a
 *                   table of its own, and must not decide what is in this one */
#ifndef IMAGES_LAYER_LIST_H
#define IMAGES_LAYER_LIST_H

#include "images/entries.h"
#include "images/store.h"

#define LAYER_LIST_WHOLE ""
#define LAYER_LIST_TOC ".toc"

struct layer_list {
	struct digest key;      /* of WHOLE the layer's digest, of TOC toc_key() */
	uint64_t tar_size;      /* 0: not known */
	struct entries entries; /* chunks have no block */
};

/* 1; 0 when there is none, or one that is damaged, which is as good as none; -1. */
int layer_list_load(struct store *s, const struct digest *layer, const char *kind,
	struct layer_list *l, struct err *e) must_check;
int layer_list_save(struct store *s, const struct digest *layer, const char *kind,
	const struct layer_list *l, struct err *e) must_check;
void layer_list_fini(struct layer_list *l);

#endif
