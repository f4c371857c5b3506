#include "builder/image-input.h"

#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/manifest.h"
#include "builder/unpacked.h"
#include "images/identity.h"
#include "images/policy.h"
#include "images/pool.h"
#include "images/pull.h"
#include "images/referrers.h"
#include "images/registry.h"
#include "images/signature.h"

#define STORE_PREFIX "store:"
#define NOTES "cache/indexes"

/* Is it there whole: does a name lead to it? 1, 0, -1. */
static int in_store(struct store *s, const struct digest *d, struct err *e)
{
	auto_free struct digest *v = NULL;
	size_t n = 0;

	if (store_manifests(s, &v, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (digest_eq(&v[i], d))
			return 1;
	return 0;
}

/* The image for this machine, when d is an index. 1, 0: its manifest is not here. */
static int chosen(struct store *s, const char *ref, struct digest *d, struct err *e)
{
	struct err fault = {0};

	if (store_choose(s, ref, d, &fault) == 0)
		return store_has(s, d);
	if (fault.kind == ERR_NOT_FOUND)
		return 0;
	if (e)
		*e = fault;
	return -1;
}

/* A pull keeps no index. What it led to is noted, so that nobody asks the registry again. */
static int note_chosen(
	struct store *s, const struct digest *index, const struct digest *manifest, struct err *e)
{
	char text[DIGEST_TEXT + 1];

	digest_text(manifest, text);
	return cache_file_put(s, NOTES, index, text, strlen(text), e);
}

/* 1: that image is here; 0, -1. */
static int noted(
	struct store *s, const struct digest *index, struct digest *manifest, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(4096);
	int rc = cache_file_get(s, NOTES, index, &b, e);

	if (rc <= 0)
		return rc;
	buf_put(&b, "", 0);
	return digest_parse(manifest, b.data, NULL) < 0 ? 0 : in_store(s, manifest, e);
}

static int pull(struct store *s, const struct config *c, const char *ref,
	const struct digest *digest, struct progress *p, struct digest *manifest, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	auto_free char *pinned = /* a digest in ref may be another one */
		mem_printf("%.*s@%s", (int)strcspn(ref, "@"), ref, digest_text(digest, text));
	const struct pull_options o = {0};
	struct pull_result r;

	if (image_pull(s, c, pinned, &o, p, &r, e) < 0)
		return -1;
	*manifest = r.manifest;
	return digest_eq(digest, manifest) ? 0 : note_chosen(s, digest, manifest, e);
}

/* ---- the policy ---- */

static int admit(const struct policy *p, struct store *s, const char *ref,
	const struct digest *manifest, struct err *e)
{
	const char *name = str_starts(ref, STORE_PREFIX) ? ref + strlen(STORE_PREFIX) : ref;
	auto_free char *known = NULL;

	if (policy_name(s, name, manifest, &known, e) < 0)
		return -1;
	return policy_verify(p, policy_find(p, known), s, *known ? known : ref, manifest, e);
}

int image_input_admit(struct store *s, const struct config *c, const char *ref,
	const struct digest *manifest, struct err *e)
{
	struct policy p;
	int rc;

	if (!c->policy)
		return 0;
	if (policy_open(&p, c, e) < 0)
		return -1;
	rc = admit(&p, s, ref, manifest, e);
	policy_close(&p);
	return rc;
}

static int admit_here(
	struct store *s, const char *ref, const struct digest *manifest, struct err *e)
{
	struct config c;
	int rc;

	if (config_load(&c, e) < 0)
		return -1;
	rc = image_input_admit(s, &c, ref, manifest, e);
	config_fini(&c);
	return rc;
}

int image_input(struct store *s, const char *ref, const struct digest *digest, struct progress *p,
	struct digest *manifest, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	struct config c;
	int rc = in_store(s, digest, e);

	*manifest = *digest;
	if (rc > 0)
		rc = chosen(s, ref, manifest, e);
	else if (rc == 0)
		rc = noted(s, digest, manifest, e);
	if (rc != 0)
		return rc < 0 ? -1 : admit_here(s, ref, manifest, e);
	if (str_starts(ref, STORE_PREFIX)) {
		err_set(e, ERR_NOT_FOUND, "%s is not in the store as %s", ref,
			digest_text(digest, text));
		return err_hint(
			e, "svrun image inspect %s shows its digest", ref + strlen(STORE_PREFIX));
	}
	if (config_load(&c, e) < 0)
		return -1;
	rc = pull(s, &c, ref, digest, p, manifest, e);
	config_fini(&c);
	return rc;
}

/* ---- signatures ---- */

static int fetch_signatures(struct store *s, const struct config *c, const char *ref,
	const struct digest *digest, struct err *e)
{
	struct reference r;
	size_t n;
	struct registry *registry;
	int rc;

	if (reference_expand(c, ref, &r, 1, &n, e) < 0)
		return -1;

	struct registry_options o = {.config = c, .host = r.host, .path = r.path};
	auto_fd int hold = pool_hold(s->fd, e);

	registry = hold < 0 ? NULL : registry_open(&o, e);
	if (!registry)
		return -1;
	rc = referrers_fetch(registry, s, digest, e);
	registry_close(registry);
	return rc;
}

/* What must have signed an image: a key, or an identity. */
struct wanted {
	struct sign_key *key;
	struct identity_root *root;
	struct identity who;
};

static void wanted_fini(struct wanted *w)
{
	sign_key_free(w->key);
	identity_root_free(w->root);
}

static int want_identity(struct wanted *w, const struct manifest_base *base, struct err *e)
{
	struct config c;
	int rc;

	*w = (struct wanted){0};
	if (config_load(&c, e) < 0)
		return -1;
	rc = identity_root_load(&w->root, c.roots, base->root, e);
	config_fini(&c);
	w->who = (struct identity){w->root, base->issuer, base->subject};
	return rc;
}

static int is_signed(
	struct store *s, const struct wanted *w, const struct digest *digest, struct err *e)
{
	return w->key ? sign_verify_image(s, digest, &(struct sign_key *){w->key}, 1, e)
		      : sign_verify_identity(s, digest, &w->who, e);
}

static int verify(struct store *s, const char *ref, const struct digest *digest,
	const struct wanted *w, struct err *e)
{
	struct config c;
	int rc;

	if (is_signed(s, w, digest, NULL) == 0)
		return 0;
	if (str_starts(ref, STORE_PREFIX))
		return is_signed(s, w, digest, e);
	if (config_load(&c, e) < 0)
		return -1;
	rc = fetch_signatures(s, &c, ref, digest, e);
	config_fini(&c);
	return rc < 0 ? -1 : is_signed(s, w, digest, e);
}

int image_input_verify(struct store *s, const char *ref, const struct digest *digest,
	const char *path, struct err *e)
{
	struct wanted w = {0};
	int rc;

	if (sign_key_load_public(&w.key, path, e) < 0)
		return -1;
	rc = verify(s, ref, digest, &w, e);
	wanted_fini(&w);
	return rc;
}

int image_input_verify_identity(struct store *s, const struct manifest_base *base, struct err *e)
{
	struct wanted w;
	int rc;

	if (want_identity(&w, base, e) < 0)
		return -1;
	rc = verify(s, base->ref, &base->digest, &w, e);
	wanted_fini(&w);
	return rc;
}

int image_input_recheck(struct store *s, const struct manifest_base *base, const char *key,
	const struct digest *manifest, struct err *e)
{
	struct wanted w = {0};
	int rc = 0;

	if (key)
		rc = sign_key_load_public(&w.key, key, e);
	else if (base->identity)
		rc = want_identity(&w, base, e);
	if (rc == 0 && (key || base->identity))
		rc = is_signed(s, &w, &base->digest, e);
	wanted_fini(&w);
	return rc < 0 ? -1 : admit_here(s, base->ref, manifest, e);
}
