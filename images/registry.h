/* A registry, for one repository: finding it (mirrors, then itself), authenticating, and the
 * requests of the distribution specification. Source: distribution-spec; formats.md 4; RFC 9110.
 *
 * Functions are thread-safe unless said otherwise: one struct registry serves a whole pull or push
 * with many connections. What may pass (429 with Retry-After, 5xx, broken connections, a token that
 * ran out) is tried again within limits; errors name the registry, the repository, what was asked
 * and the registry's own words (the "errors" document). Errors: NOT_FOUND, DENIED (hint: svrun
 * image login HOST), CORRUPT (digest, length, type), NETWORK, UNSUPPORTED.
 */
#ifndef IMAGES_REGISTRY_H
#define IMAGES_REGISTRY_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "images/config.h"
#include "images/descriptor.h"
#include "images/digest.h"
#include "images/progress.h"

struct registry;

struct registry_options {
	const struct config *config; /* mirrors, certificates, insecure registries */
	const char *host, *path;     /* of the repository */
	bool push;                   /* ask for a token that may push; mirrors are not used */
	const char *mount_from;    /* push: another repository of this host that blobs may be taken
				    * from    (its pull scope is asked for, too); NULL: none */
	bool plain_http, insecure; /* as the config's keys, from the command line */
};

/* Asks nothing yet. config and the strings are copied or must live as long. */
struct registry *registry_open(const struct registry_options *o, struct err *e) must_check;
void registry_close(struct registry *r);
/* "host/path", borrowed. */
const char *registry_name(const struct registry *r);

/* ---- requests that are answered in one piece; blocking ---- */

enum { REGISTRY_TYPE = 128, REGISTRY_MANIFEST_MAX = 8 << 20 };

/* GET /v2/ with whatever authentication it asks for: `svrun image login` tries credentials so.
 * user NULL: those that are stored. */
int registry_ping(
	struct registry *r, const char *user, const char *secret, struct err *e) must_check;

/* GET a manifest or index by tag or digest text, into b (at most REGISTRY_MANIFEST_MAX). *d is its
 * digest, checked against the one asked for and against Docker-Content-Digest; type its media type
 * (Content-Type without parameters). */
int registry_manifest(struct registry *r, const char *target, struct buf *b,
	char type[REGISTRY_TYPE], struct digest *d, struct err *e) must_check;
/* HEAD: 1, 0 (404), -1. */
int registry_has_manifest(struct registry *r, const char *target, struct err *e) must_check;

/* GET a whole small blob (config, index layer), checked against digest and size. b->max must allow
 * size. */
int registry_blob(struct registry *r, const struct digest *d, uint64_t size, struct buf *b,
	struct err *e) must_check;

/* The descriptors of manifests that say to have this subject: *list is an array of the caller's. 1,
 * 0 when the registry has no referrers API (404): the tag sha256-HEX may have an index of them. */
int registry_referrers(struct registry *r, const struct digest *subject, json_t **list,
	struct err *e) must_check;

/* ---- push ---- */

/* HEAD a blob: 1, 0, -1. */
int registry_has_blob(struct registry *r, const struct digest *d, struct err *e) must_check;
/* Take a blob over from mount_from: 1 done, 0 the registry would not. */
int registry_mount_blob(struct registry *r, const struct digest *d, struct err *e) must_check;
/* Upload size bytes of fd from its beginning, in chunks (PATCH), resuming where a broken connection
 * or a 416 left it (GET Location). The session is cancelled when it fails for good. One thread a
 * blob; several blobs at once. */
int registry_upload(struct registry *r, const struct digest *d, int fd, uint64_t size,
	struct progress *p, struct err *e) must_check;
int registry_put_manifest(struct registry *r, const char *target, const char *type,
	const void *data, size_t n, struct err *e) must_check;
/* The same for one with a subject. *listed: the registry says (OCI-Subject) that its referrers API
 * lists it from now on. */
int registry_put_referrer(struct registry *r, const char *target, const char *type,
	const void *data, size_t n, bool *listed, struct err *e) must_check;

/* ---- ranges of blobs: for download.c's own transfers ---- */

/* Where one try of a blob goes. */
struct registry_aim {
	unsigned endpoint;          /* mirrors count from 0, the registry itself is the last */
	bool redirected;            /* to a location that an earlier answer led to */
	unsigned generation;        /* of the token or location that was used */
	struct curl_slist *headers; /* owned; registry_aim_fini() */
	char text[CURL_ERROR_SIZE]; /* libcurl writes to it as long as the transfer lasts */
};

size_t registry_endpoints(const struct registry *r);

/* Point handle h at a blob on an endpoint, or on a later one when that cannot be had at the moment
 * (a->endpoint says which): address (the cached location of an earlier redirect
 * while it is good), protocols, TLS, proxy, timeouts, Accept-Encoding: identity, Authorization (a
 * token is fetched, or renewed 10 s before it ends: blocking), which never goes to another host.
 * The caller sets range, private pointer and callbacks, and leaves FOLLOWLOCATION as it is set
 * here. */
int registry_aim(struct registry *r, unsigned endpoint, const struct digest *blob, CURL *h,
	struct registry_aim *a, struct err *e) must_check;
void registry_aim_fini(struct registry_aim *a);

enum registry_verdict {
	REGISTRY_OK,    /* 200 or 206 and all arrived */
	REGISTRY_AGAIN, /* aim again, after *wait_ms: redirected (which is remembered for the
			 * blob), token or location renewed, 429, 5xx, broken */
	REGISTRY_NEXT,  /* this endpoint will not do for this blob: try the next one, if there is */
	REGISTRY_FAILED, /* no try would help */
};

/* What the end of a try means: code is curl's, the status is asked of h. tries: how many this piece
 * has had on this endpoint (1, 2, ...), which bounds AGAIN. e is set unless OK. Thread-safe. */
enum registry_verdict registry_judge(struct registry *r, const struct registry_aim *a,
	const struct digest *blob, CURL *h, CURLcode code, unsigned tries, unsigned *wait_ms,
	struct err *e);

#endif
