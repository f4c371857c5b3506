/* The site's policy: which images may be pulled and run (docs/policy.md).
 *
 *   { "schema": "svrun.policy/1",
 *     "keys": { "release": { "file": "release.pub", "id": "HEX", "until": "2027-01-31" } },
 *     "identities": { "ci": { "issuer": "https://...", "subject": "a@b.example", "root": "ours" }
 * }, "default": { "action": "reject" }, "rules": [ { "match": ["registry.example/prod-*"],
 * "action": "signed", "keys": ["release"], "threshold": 1, "identity": "registry.example/prod-*" }
 * ] }
 *
 * The first rule with a matching pattern decides, else the default. An image is known by the
 * repository that it came from ("host/path"), one that was made here by its name without the tag:
 * tags may be moved by anybody, so they decide nothing. */
#ifndef IMAGES_POLICY_H
#define IMAGES_POLICY_H

#include "base/json.h"
#include "images/config.h"
#include "images/store.h"

enum policy_action { POLICY_ACCEPT, POLICY_REJECT, POLICY_SIGNED };

struct policy_key {
	const char *name;
	const char *file;  /* PEM; relative to the policy's folder */
	const char *id;    /* that it must have; NULL: any */
	const char *until; /* YYYY-MM-DD, its last day; NULL: for ever */
};

/* Of somebody who signs without a key of his own (identity.h). */
struct policy_identity {
	const char *name;
	const char *issuer, *subject; /* subject: a pattern */
	const char *root;             /* of the site's configuration; NULL: its only one */
};

struct policy_rule {
	struct strings match; /* globs; of the default: none */
	enum policy_action action;
	size_t *keys; /* of the policy's */
	size_t nkeys;
	size_t *identities; /* of the policy's */
	size_t nidentities;
	uint64_t threshold;   /* so many of both must have signed */
	const char *identity; /* glob that the signed reference must match; NULL: any */
	const char *reason;   /* of REJECT; NULL */
	const char *where;    /* "/rules/0", for errors */
};

struct policy {
	struct arena arena;
	char *path;
	struct policy_key *keys;
	size_t nkeys;
	struct policy_identity *identities;
	size_t nidentities;
	json_t *roots; /* of the configuration; NULL: from text */
	struct policy_rule *rules;
	size_t nrules;
	struct policy_rule otherwise;
	char today[11]; /* in UTC */
};

/* The policy of a configuration that has one. A file that is missing or malformed is an error
 * (USAGE): nothing is let through by mistake. */
int policy_open(struct policy *p, const struct config *c, struct err *e) must_check;
/* From text; path is what errors call it. */
int policy_parse(
	struct policy *p, const char *path, const void *text, size_t n, struct err *e) must_check;
void policy_close(struct policy *p);

/* The rule for an image that is known by name. Never NULL. */
const struct policy_rule *policy_find(const struct policy *p, const char *name);
/* 0, or DENIED when the rule is to reject: says which rule, and its reason. */
int policy_admits(const struct policy *p, const struct policy_rule *r, const char *name,
	struct err *e) must_check;

/* What an image of the store that was asked for as ref is known by; *name to free(). */
int policy_name(struct store *s, const char *ref, const struct digest *manifest, char **name,
	struct err *e) must_check;

/* ---- policy-check.c, which needs libcrypto: not in svrun ---- */

/* Does the manifest have the signatures that a rule of SIGNED wants? DENIED names what was found;
 * USAGE: a key or root of the policy cannot be read, or is not the one it is said to be. */
int policy_verify(const struct policy *p, const struct policy_rule *r, struct store *s,
	const char *name, const struct digest *manifest, struct err *e) must_check;

#endif
