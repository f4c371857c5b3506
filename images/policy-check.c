/* The part of a policy that needs libcrypto. */
#include <string.h>

#include "base/str.h"
#include "images/glob.h"
#include "images/identity.h"
#include "images/policy.h"
#include "images/signature.h"

enum { EXPLAINED_MAX = 4096 }; /* bytes: more than is shown */

/* A key or an identity of the policy, as it is today. */
struct signer {
	const struct policy_key *of;
	struct sign_key *key; /* NULL: an identity */
	const char *name;
	struct identity_root *root;
	struct identity who;
	bool expired, signed_it;
};

static int load(const struct policy *p, struct signer *x, struct err *e)
{
	const char *slash = strrchr(p->path, '/');
	auto_free char *path =
		x->of->file[0] == '/' || !slash
			? mem_strdup(x->of->file)
			: mem_printf("%.*s/%s", (int)(slash - p->path), p->path, x->of->file);
	char id[DIGEST_HEX + 1];

	x->name = x->of->name;
	x->expired = x->of->until && strcmp(p->today, x->of->until) > 0;
	if (sign_key_load_public(&x->key, path, e) < 0) {
		if (e)
			e->kind = ERR_USAGE;
		return err_ctx(e, "%s: key '%s'", p->path, x->of->name);
	}
	sign_key_id(x->key, id);
	if (!x->of->id || str_eq(x->of->id, id))
		return 0;
	return err_set(e, ERR_USAGE, "%s: key '%s': expected the key with id %s, found %s in %s",
		p->path, x->of->name, x->of->id, id, path);
}

static int load_identity(
	const struct policy *p, const struct policy_identity *i, struct signer *x, struct err *e)
{
	auto_json json_t *none = json_object();

	x->name = i->name;
	if (identity_root_load(&x->root, p->roots ? p->roots : none, i->root, e) < 0)
		return err_ctx(e, "%s: identity '%s'", p->path, i->name);
	x->who = (struct identity){x->root, i->issuer, i->subject};
	return 0;
}

/* why (unless NULL) is filled when an identity did not. */
static bool is_by(const struct signature *x, const struct signer *by, struct err *why)
{
	return by->key ? signature_is_by(x, by->key) : identity_check(&by->who, x, NULL, why) == 0;
}

static bool fits(const struct policy_rule *r, const struct signature *x)
{
	return !r->identity || (x->reference && glob_matches(r->identity, x->reference));
}

struct signers {
	struct signer *v;
	size_t n;
	const struct signatures *found;
};

/* A signature by a key or an identity of the policy that did not do. */
static void explain_one(const struct policy_rule *r, const struct signer *by,
	const struct signature *x, struct buf *b)
{
	if (by->expired)
		buf_printf(b, "; one by '%s', which was good until %s", by->name, by->of->until);
	else if (!fits(r, x))
		buf_printf(b, "; one by '%s' of the image as '%.200s', expected %s", by->name,
			x->reference ? x->reference : "", r->identity);
	else
		buf_printf(b, "; one by '%s'", by->name);
}

/* What was found, each after "; ": what is by the policy's signers and did not do, and what is
 * wrong with certificates; else anything. */
static void explain(const struct policy_rule *r, const struct signers *g, struct buf *b)
{
	auto_free char *found = NULL;
	bool any = false;

	for (size_t i = 0; i < g->n; i++)
		for (size_t k = 0; k < g->found->n && b->len < EXPLAINED_MAX; k++) {
			const struct signature *x = &g->found->v[k];
			struct err why = {0};

			if (is_by(x, &g->v[i], &why))
				explain_one(r, &g->v[i], x, b);
			else if (!g->v[i].key && x->certificate)
				buf_printf(b, "; one (%s form) for '%s': %.300s", x->form,
					g->v[i].name, why.text);
			else
				continue;
			any = true;
		}
	if (any)
		return;
	found = signatures_describe(g->found);
	buf_printf(b, "; %s", found);
}

static int refuse(const struct policy *p, const struct policy_rule *r, const struct signers *g,
	const char *name, const struct digest *manifest, struct err *e)
{
	auto_buf struct buf who = BUF_INIT(1 << 20), found = BUF_INIT(1 << 20);
	char text[DIGEST_TEXT + 1];

	for (size_t i = 0; i < g->n; i++)
		buf_printf(&who, "%s'%s'", i ? ", " : "", g->v[i].name);
	explain(r, g, &found);
	return err_set(e, ERR_DENIED,
		"%s (%s): the policy (%s %s) wants it signed by %s%.300s; found: %.700s", name,
		digest_text(manifest, text), p->path, r->where,
		g->n == 1              ? ""
		: r->threshold == g->n ? "all of "
		: r->threshold == 1    ? "one of "
				       : "several of ",
		who.data, found.data + 2);
}

static uint64_t count(const struct policy_rule *r, struct signers *g)
{
	uint64_t n = 0;

	for (size_t i = 0; i < g->n; i++) {
		for (size_t k = 0; k < g->found->n && !g->v[i].signed_it; k++)
			g->v[i].signed_it = !g->v[i].expired && fits(r, &g->found->v[k]) &&
					    is_by(&g->found->v[k], &g->v[i], NULL);
		n += g->v[i].signed_it;
	}
	return n;
}

/* Two names for one key would let one signer count twice. */
static int check_distinct(const struct policy *p, const struct signers *g, struct err *e)
{
	for (size_t i = 0; i < g->n; i++)
		for (size_t k = 0; k < i && g->v[i].key; k++) { /* keys come first */
			char a[DIGEST_HEX + 1], b[DIGEST_HEX + 1];

			sign_key_id(g->v[i].key, a);
			sign_key_id(g->v[k].key, b);
			if (str_eq(a, b))
				return err_set(e, ERR_USAGE, "%s: '%s' and '%s' are the same key",
					p->path, g->v[k].name, g->v[i].name);
		}
	return 0;
}

static int load_all(
	const struct policy *p, const struct policy_rule *r, struct signer *v, struct err *e)
{
	for (size_t i = 0; i < r->nkeys; i++) {
		v[i].of = &p->keys[r->keys[i]];
		if (load(p, &v[i], e) < 0)
			return -1;
	}
	for (size_t i = 0; i < r->nidentities; i++)
		if (load_identity(p, &p->identities[r->identities[i]], &v[r->nkeys + i], e) < 0)
			return -1;
	return 0;
}

int policy_verify(const struct policy *p, const struct policy_rule *r, struct store *s,
	const char *name, const struct digest *manifest, struct err *e)
{
	auto_free struct signer *v = mem_array(r->nkeys + r->nidentities, sizeof(*v));
	struct signatures found = {0};
	struct signers g = {v, r->nkeys + r->nidentities, &found};
	int rc = policy_admits(p, r, name, e);

	if (rc < 0 || r->action != POLICY_SIGNED)
		return rc;
	rc = load_all(p, r, v, e);
	if (rc == 0)
		rc = check_distinct(p, &g, e);
	if (rc == 0)
		rc = signatures_load(&found, s, manifest, e);
	if (rc == 0 && count(r, &g) < r->threshold)
		rc = refuse(p, r, &g, name, manifest, e);
	signatures_fini(&found);
	for (size_t i = 0; i < g.n; i++) {
		sign_key_free(v[i].key);
		identity_root_free(v[i].root);
	}
	return rc;
}
