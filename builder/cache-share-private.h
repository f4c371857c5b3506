/* Inside of the shared cache: actions in a registry. Only builder/cache-share*.c include this. */
#ifndef BUILDER_CACHE_SHARE_PRIVATE_H
#define BUILDER_CACHE_SHARE_PRIVATE_H

#include "base/json.h"
#include "builder/cache-share.h"
#include "images/digest-map.h"
#include "images/reference.h"
#include "images/registry.h"

enum { SHARE_TAG = 8 + DIGEST_HEX };
char *share_tag(const struct digest *key, char out[SHARE_TAG]);

/* USAGE, with the option's name, when text has a tag or digest. */
int share_repository(
	struct reference *r, const char *text, const char *option, struct err *e) must_check;
struct registry *share_open_registry(const struct cache_share_site *c, const struct reference *r,
	bool push, struct err *e) must_check;

/* An action that was found, its document checked against key and kind. */
struct share_action {
	json_t *artifact, *doc;
};
/* 1, 0 when there is no such action, -1. */
int share_read(struct share_action *a, struct registry *r, const struct digest *key,
	const char *kind, struct err *e) must_check;
void share_action_fini(struct share_action *a);
/* Its layer i, checked against its digest; b->max bounds it. */
int share_blob(const struct share_action *a, size_t i, struct registry *r, struct buf *b,
	struct err *e) must_check;

/* Where actions go. known: blobs that were asked for or sent already. */
struct share_to {
	struct registry *r;
	struct store *s;
	const struct cache_share_site *site;
	struct progress *p;
	struct cache_share_result *result;
	struct digest_map known;
};

/* The blobs of an action that is to be sent: config first, then document, then the others. */
struct share_out {
	const char *type;
	struct digest digest;
	uint64_t size;
	bool there;
};
int share_add(struct share_out *v, size_t *n, struct store *s, const char *type, const void *p,
	size_t size, struct err *e) must_check;
int share_send(struct share_to *to, const struct digest *key, struct share_out *v, size_t n,
	struct err *e) must_check;

/* A step whose list and chunks are here; one that is not is left out. */
int share_send_step(struct share_to *to, const struct digest *key, struct err *e) must_check;

#endif
