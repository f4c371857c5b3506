/* svrun image key, sign, verify-signature. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/sign.h"
#include "images/policy.h"
#include "images/reference.h"
#include "images/secret.h"
#include "svrun/command.h"
#include "svrun/enter.h"
#include "svrun/options.h"
#include "svrun/prompt.h"
#include "svrun/signers.h"

static const char password_variable[] = "SVRUN_KEY_PASSWORD";

/* ---- key ---- */

/* *password is NULL when it is empty: a key without encryption. */
static int ask_new_password(char **password, struct err *e)
{
	const char *given = getenv(password_variable);
	auto_secret char *first = NULL, *again = NULL;

	*password = NULL;
	if (given) {
		*password = *given ? mem_strdup(given) : NULL;
		return 0;
	}
	first = prompt("password for the new key", true, e);
	again = first ? prompt("the same again", true, e) : NULL;
	if (!again)
		return err_hint(
			e, "set %s; with an empty one the key is not encrypted", password_variable);
	if (!str_eq(first, again))
		return err_set(e, ERR_USAGE, "the two passwords differ");
	*password = *first ? steal_ptr(&first) : NULL;
	return 0;
}

int cmd_image_key(const struct command *self, int argc, char **argv, struct err *e)
{
	const struct option_spec options[] = {{0}};
	auto_secret char *password = NULL;
	auto_free char *pub = NULL;
	struct sign_key *k;
	char id[DIGEST_HEX + 1];
	int n = options_parse(self, options, argc, argv, false, e);

	if (n < 0 || ask_new_password(&password, e) < 0 || sign_key_make(argv[n], password, e) < 0)
		return -1;
	pub = mem_printf("%s.pub", argv[n]);
	if (sign_key_load_public(&k, pub, e) < 0)
		return -1;
	sign_key_id(k, id);
	sign_key_free(k);
	printf("%s.key (%s), %s, id %s\n", argv[n],
		password ? "encrypted" : "not encrypted: whoever reads it can sign", pub, id);
	return 0;
}

/* ---- sign ---- */

static int load_key(struct sign_key **k, const char *path, struct err *e)
{
	const char *given = getenv(password_variable);
	auto_secret char *password = given ? mem_strdup(given) : NULL;
	int encrypted = sign_key_is_encrypted(path, e);

	if (encrypted < 0)
		return -1;
	if (encrypted && !password) {
		auto_free char *question = mem_printf("password of %s", path);

		password = prompt(question, true, e);
		if (!password)
			return err_hint(e, "set %s", password_variable);
	}
	return sign_key_load(k, path, password, e);
}

/* What cosign signs as the image's name: where it is, without tag and digest. */
static char *reference_to_sign(const char *ref, const char *as)
{
	struct reference r;
	const char *text = as ? as : ref;

	if (reference_parse_name(&r, text, NULL) < 0)
		return mem_strdup(text);
	return r.host[0] ? mem_printf("%s/%s", r.host, r.path) : mem_strdup(r.path);
}

/* The index that the name leads to, too: it is what a tag in a registry names. */
static int sign_index(struct store *s, const char *ref, const char *as,
	const struct digest *manifest, const struct sign_key *k, struct err *e)
{
	struct store_name *v;
	size_t n, at;
	int rc;

	if (store_names(s, &v, &n, e) < 0)
		return -1;
	rc = str_starts(ref, "sha256:") ? 0 : store_name_find(v, n, ref, &at, NULL);
	rc = rc > 0 && !digest_eq(&v[at].manifest, manifest)
		     ? sign_image(s, as, &v[at].manifest, k, e)
		     : 0;
	store_names_free(v, n);
	return rc;
}

static int sign(const char *ref, const char *as, const struct sign_key *k, struct err *e)
{
	auto_free char *name = reference_to_sign(ref, as);
	char text[DIGEST_TEXT + 1], id[DIGEST_HEX + 1];
	struct digest d;
	struct store s;
	int rc;

	if (store_enter(&s, e) < 0)
		return -1;
	rc = store_resolve(&s, ref, &d, e) < 0 || sign_image(&s, name, &d, k, e) < 0 ||
			     sign_index(&s, ref, name, &d, k, e) < 0
		     ? -1
		     : 0;
	store_close(&s);
	if (rc < 0)
		return -1;
	sign_key_id(k, id);
	printf("%s signed as %s by key %.16s; svrun image push takes the signature along\n",
		digest_text(&d, text), name, id);
	return 0;
}

int cmd_image_sign(const struct command *self, int argc, char **argv, struct err *e)
{
	const char *key = NULL, *as = NULL;
	const struct option_spec options[] = {
		{"key", 'k', OPTION_STRING, "FILE", "the private key, NAME.key", &key},
		{"as", 0, OPTION_STRING, "REF",
			"the name to sign, where the image will be pushed to (its own name)", &as},
		{0},
	};
	struct sign_key *k;
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	if (!key) {
		err_set(e, ERR_USAGE, "--key is missing");
		return err_hint(e, "svrun image key NAME makes NAME.key and NAME.pub");
	}
	if (load_key(&k, key, e) < 0)
		return -1;
	rc = sign(argv[n], as, k, e);
	sign_key_free(k);
	return rc < 0 ? err_ctx(e, "sign %s", argv[n]) : rc;
}

/* ---- verify-signature ---- */

struct request {
	struct option_list keys;
	bool policy;
	const char *as; /* what the policy is to know the image by; NULL: what the store says */
	struct signers_site site;
	struct signers signers;
};

/* Who signed, as what. Called when it is known that somebody did. */
static int tell(const struct request *r, struct store *s, const struct digest *d, struct err *e)
{
	struct signatures l;
	char text[DIGEST_TEXT + 1];

	if (signatures_load(&l, s, d, e) < 0)
		return -1;
	for (size_t k = 0; k < r->signers.n; k++)
		for (size_t i = 0; i < l.n; i++)
			if (signature_is_by(&l.v[i], r->signers.v[k]))
				printf("%s: signed by %s (%s form%s%s)\n", digest_text(d, text),
					r->keys.v[k], l.v[i].form, l.v[i].reference ? ", as " : "",
					l.v[i].reference ? l.v[i].reference : "");
	signatures_fini(&l);
	return 0;
}

static int by_keys(const struct request *r, struct store *s, const struct digest *d, struct err *e)
{
	if (signers_fetch(s, &r->site, d, e) < 0 ||
		sign_verify_image(s, d, r->signers.v, r->signers.n, e) < 0)
		return -1;
	return tell(r, s, d, e);
}

static int by_policy(const struct request *r, struct store *s, const char *ref,
	const struct digest *d, struct err *e)
{
	auto_free char *name = NULL;
	const struct policy_rule *rule;
	struct policy p;
	char text[DIGEST_TEXT + 1];
	int rc;

	if (!r->site.config->policy)
		return err_set(e, ERR_USAGE, "%s has no policy", r->site.config->path);
	if (policy_open(&p, r->site.config, e) < 0)
		return -1;
	if (r->as)
		name = mem_strdup(r->as);
	rc = name ? 0 : policy_name(s, ref, d, &name, e);
	if (rc == 0) {
		rule = policy_find(&p, name);
		if (rule->action == POLICY_SIGNED)
			rc = signers_fetch(s, &r->site, d, e);
		if (rc == 0)
			rc = policy_verify(&p, rule, s, name, d, e);
		if (rc == 0)
			printf("%s: the policy lets it run (%s %s)\n", digest_text(d, text), p.path,
				rule->where);
	}
	policy_close(&p);
	return rc;
}

static int verify(const struct request *r, char **refs, int n, struct err *e)
{
	struct store s;
	int rc = 0;

	if (store_enter_at(&s, r->site.config, false, e) < 0)
		return -1;
	for (int i = 0; rc == 0 && i < n; i++) {
		struct digest d;

		rc = store_resolve(&s, refs[i], &d, e);
		if (rc == 0)
			rc = r->policy ? by_policy(r, &s, refs[i], &d, e) : by_keys(r, &s, &d, e);
		if (rc < 0)
			err_ctx(e, "%s", refs[i]);
	}
	store_close(&s);
	return rc;
}

int cmd_image_verify_signature(const struct command *self, int argc, char **argv, struct err *e)
{
	struct request r = {.policy = false};
	struct config c;
	const struct option_spec options[] = {
		{"key", 'k', OPTION_LIST, "FILE", "a public key, NAME.pub; one of several will do",
			&r.keys},
		{"policy", 0, OPTION_FLAG, NULL, "what the site's policy wants, as pull and run do",
			&r.policy},
		{"as", 0, OPTION_STRING, "NAME", "with --policy: as an image of this name", &r.as},
		{"plain-http", 0, OPTION_FLAG, NULL, "http:// instead of https://",
			&r.site.plain_http},
		{"insecure", 0, OPTION_FLAG, NULL, "do not check the registry's certificate",
			&r.site.insecure},
		{0},
	};
	int rc = -1, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	if ((r.keys.n > 0) == r.policy)
		err_set(e, ERR_USAGE, "say --key FILE or --policy");
	else if (config_load(&c, e) == 0) {
		r.site.config = &c;
		if (signers_load(&r.signers, &r.keys, e) == 0) {
			rc = verify(&r, argv + n, argc - n, e);
			signers_free(&r.signers);
		}
		config_fini(&c);
	}
	option_list_fini(&r.keys);
	return rc;
}
