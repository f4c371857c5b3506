#include "images/policy.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/str.h"
#include "images/glob.h"
#include "images/reference.h"

enum { POLICY_MAX = 1 << 20, RULES_MAX = 1024, KEYS_MAX = 256 };

static const char *const actions[] = {
	[POLICY_ACCEPT] = "accept", [POLICY_REJECT] = "reject", [POLICY_SIGNED] = "signed"};

/* ---- reading ---- */

struct reading {
	struct policy *p;
	const struct json_doc *doc;
	struct err *e;
};

/* The complaint with the place of what it is about. */
static int wrong(struct reading *r, const char *pointer, const char *what)
{
	int line, col;

	json_doc_locate(r->doc, pointer, false, &line, &col);
	return err_set(r->e, ERR_USAGE, "%s:%d:%d: %s: %s", r->p->path, line, col,
		*pointer ? pointer : "/", what);
}

static int wrong_in(struct reading *r, const char *where, const char *key, const char *what)
{
	auto_free char *pointer = mem_printf("%s/%s", where, key);

	return wrong(r, pointer, what);
}

static int check_keys(
	struct reading *r, const char *where, const json_t *o, const char *const *known)
{
	const char *key;
	json_t *v;

	if (!json_is_object(o))
		return wrong(r, where, "expected an object");
	json_object_foreach ((json_t *)(uintptr_t)o, key, v) {
		size_t i = 0;

		while (known[i] && !str_eq(known[i], key))
			i++;
		if (!known[i] && !str_starts(key, "x-")) {
			const char *near = str_nearest(key, known);
			auto_free char *text = mem_printf("unknown key%s%s%s",
				near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");

			return wrong_in(r, where, key, text);
		}
	}
	return 0;
}

/* A string without control characters, into the arena; *out is NULL when it is not there. */
static int take_text(
	struct reading *r, const char *where, const json_t *o, const char *key, const char **out)
{
	const json_t *v = json_object_get(o, key);
	const char *s = json_string_value(v);

	*out = NULL;
	if (!v)
		return 0;
	if (!s || !*s || strlen(s) != json_string_length(v))
		return wrong_in(r, where, key, "expected a string that is not empty");
	for (const char *c = s; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return wrong_in(r, where, key, "control characters are not allowed");
	*out = arena_strdup(&r->p->arena, s);
	return 0;
}

static int take_list(
	struct reading *r, const char *where, const json_t *o, const char *key, struct strings *out)
{
	const json_t *list = json_object_get(o, key), *v;
	size_t i;

	*out = (struct strings){0};
	if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > RULES_MAX)
		return wrong_in(r, where, key, "expected a list of strings, not empty");
	out->v = arena_alloc(&r->p->arena, json_array_size(list) * sizeof(*out->v));
	json_array_foreach (list, i, v) {
		const char *s = json_string_value(v);

		if (!s || !*s || strlen(s) != json_string_length(v))
			return wrong_in(r, where, key, "expected a list of strings, not empty");
		out->v[out->n++] = arena_strdup(&r->p->arena, s);
	}
	return 0;
}

/* ---- keys ---- */

static bool is_date(const char *s)
{
	static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int month, day;

	if (strlen(s) != 10 || s[4] != '-' || s[7] != '-')
		return false;
	for (size_t i = 0; i < 10; i++)
		if (i != 4 && i != 7 && (s[i] < '0' || s[i] > '9'))
			return false;
	month = (s[5] - '0') * 10 + s[6] - '0';
	day = (s[8] - '0') * 10 + s[9] - '0';
	return month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1];
}

static int take_key(struct reading *r, const char *name, const json_t *o)
{
	static const char *const known[] = {"file", "id", "until", NULL};
	struct policy_key *k = &r->p->keys[r->p->nkeys++];
	auto_free char *where = mem_printf("/keys/%s", name);
	struct digest id;

	k->name = arena_strdup(&r->p->arena, name);
	if (check_keys(r, where, o, known) < 0 || take_text(r, where, o, "file", &k->file) < 0 ||
		take_text(r, where, o, "id", &k->id) < 0 ||
		take_text(r, where, o, "until", &k->until) < 0)
		return -1;
	if (!k->file)
		return wrong(r, where, "missing key 'file': a public key in PEM");
	if (k->id && digest_from_hex(&id, k->id) < 0)
		return wrong_in(r, where, "id", "expected 64 lower-case hex digits");
	if (k->until && !is_date(k->until))
		return wrong_in(r, where, "until", "expected a day, YYYY-MM-DD");
	return 0;
}

static int take_all_keys(struct reading *r, json_t *o)
{
	const char *name;
	json_t *v;

	if (!o)
		return 0;
	if (!json_is_object(o) || json_object_size(o) > KEYS_MAX)
		return wrong(r, "/keys", "expected an object of at most 256 keys");
	r->p->keys = arena_alloc(&r->p->arena, json_object_size(o) * sizeof(*r->p->keys));
	json_object_foreach (o, name, v)
		if (take_key(r, name, v) < 0)
			return -1;
	return 0;
}

/* ---- identities ---- */

static int take_identity(struct reading *r, const char *name, const json_t *o)
{
	static const char *const known[] = {"issuer", "subject", "root", NULL};
	struct policy_identity *x = &r->p->identities[r->p->nidentities++];
	auto_free char *where = mem_printf("/identities/%s", name);

	x->name = arena_strdup(&r->p->arena, name);
	if (check_keys(r, where, o, known) < 0 ||
		take_text(r, where, o, "issuer", &x->issuer) < 0 ||
		take_text(r, where, o, "subject", &x->subject) < 0 ||
		take_text(r, where, o, "root", &x->root) < 0)
		return -1;
	if (!x->issuer || !x->subject)
		return wrong(r, where, "missing key 'issuer' or 'subject'");
	return 0;
}

static int take_all_identities(struct reading *r, json_t *o)
{
	const char *name;
	json_t *v;

	if (!o)
		return 0;
	if (!json_is_object(o) || json_object_size(o) > KEYS_MAX)
		return wrong(r, "/identities", "expected an object of at most 256 identities");
	r->p->identities =
		arena_alloc(&r->p->arena, json_object_size(o) * sizeof(*r->p->identities));
	json_object_foreach (o, name, v)
		if (take_identity(r, name, v) < 0)
			return -1;
	return 0;
}

/* ---- rules ---- */

static int take_action(struct reading *r, const char *where, const json_t *o, struct policy_rule *x)
{
	const char *text;

	if (take_text(r, where, o, "action", &text) < 0)
		return -1;
	for (size_t i = 0; text && i < sizeof(actions) / sizeof(actions[0]); i++)
		if (str_eq(text, actions[i])) {
			x->action = (enum policy_action)i;
			return 0;
		}
	return wrong_in(r, where, "action", "expected accept, reject or signed");
}

static bool key_is(const struct policy *p, size_t i, const char *name)
{
	return str_eq(p->keys[i].name, name);
}

static bool identity_is(const struct policy *p, size_t i, const char *name)
{
	return str_eq(p->identities[i].name, name);
}

/* A list of names of the n that there are, each once: twice would count twice. */
static int take_numbers(struct reading *r, const char *where, const json_t *o, const char *key,
	bool (*is)(const struct policy *p, size_t i, const char *name), size_t n, size_t **out,
	size_t *count)
{
	struct strings names;

	if (take_list(r, where, o, key, &names) < 0)
		return -1;
	*out = arena_alloc(&r->p->arena, names.n * sizeof(**out));
	for (size_t i = 0; i < names.n; i++) {
		size_t at = 0;

		while (at < n && !is(r->p, at, names.v[i]))
			at++;
		if (at == n) {
			auto_free char *text =
				mem_printf("'%.100s' is not one of /%s", names.v[i], key);

			return wrong_in(r, where, key, text);
		}
		for (size_t k = 0; k < *count; k++)
			if ((*out)[k] == at)
				return wrong_in(r, where, key, "the same one twice");
		(*out)[(*count)++] = at;
	}
	return 0;
}

/* Where several must have signed, each signature must be of one of them only. */
static int check_identities(struct reading *r, const char *where, const struct policy_rule *x)
{
	for (size_t i = 0; x->threshold > 1 && i < x->nidentities; i++) {
		const struct policy_identity *a = &r->p->identities[x->identities[i]];

		if (strpbrk(a->subject, "*?["))
			return wrong_in(r, where, "identities",
				"with a threshold above 1, subjects are no patterns");
		for (size_t k = 0; k < i; k++)
			if (str_eq(a->subject, r->p->identities[x->identities[k]].subject))
				return wrong_in(r, where, "identities", "the same subject twice");
	}
	return 0;
}

static int take_signers(
	struct reading *r, const char *where, const json_t *o, struct policy_rule *x)
{
	bool has_keys = json_object_get(o, "keys"), others = json_object_get(o, "identities");

	if ((has_keys || !others) &&
		take_numbers(r, where, o, "keys", key_is, r->p->nkeys, &x->keys, &x->nkeys) < 0)
		return -1;
	if (others && take_numbers(r, where, o, "identities", identity_is, r->p->nidentities,
			      &x->identities, &x->nidentities) < 0)
		return -1;
	x->threshold = 1;
	if (json_object_get(o, "threshold") &&
		(json_u64(o, "threshold", x->nkeys + x->nidentities, &x->threshold, NULL) < 0 ||
			!x->threshold))
		return wrong_in(r, where, "threshold",
			"expected a number from 1 to that of keys and identities");
	if (check_identities(r, where, x) < 0)
		return -1;
	return take_text(r, where, o, "identity", &x->identity);
}

static int take_rule(struct reading *r, const char *where, const json_t *o, bool has_match,
	struct policy_rule *x)
{
	static const char *const known[] = {
		"match", "action", "keys", "identities", "threshold", "identity", "reason", NULL};
	static const char *const of_signed[] = {
		"keys", "identities", "threshold", "identity", NULL};

	x->where = arena_strdup(&r->p->arena, where);
	if (check_keys(r, where, o, has_match ? known : known + 1) < 0 ||
		(has_match && take_list(r, where, o, "match", &x->match) < 0) ||
		take_action(r, where, o, x) < 0 || take_text(r, where, o, "reason", &x->reason) < 0)
		return -1;
	if (x->action == POLICY_SIGNED)
		return take_signers(r, where, o, x);
	for (size_t i = 0; of_signed[i]; i++)
		if (json_object_get(o, of_signed[i]))
			return wrong_in(r, where, of_signed[i], "goes with action signed");
	return 0;
}

static int take_rules(struct reading *r, const json_t *list)
{
	const json_t *v;
	size_t i;

	if (!list)
		return 0;
	if (!json_is_array(list) || json_array_size(list) > RULES_MAX)
		return wrong(r, "/rules", "expected a list of at most 1024 rules");
	r->p->rules = arena_alloc(&r->p->arena, json_array_size(list) * sizeof(*r->p->rules));
	json_array_foreach (list, i, v) {
		char where[32];

		snprintf(where, sizeof(where), "/rules/%zu", i);
		if (take_rule(r, where, v, true, &r->p->rules[r->p->nrules++]) < 0)
			return -1;
	}
	return 0;
}

static int take(struct reading *r, json_t *root)
{
	static const char *const known[] = {
		"schema", "keys", "identities", "default", "rules", NULL};
	const char *schema;

	if (check_keys(r, "", root, known) < 0 || take_text(r, "", root, "schema", &schema) < 0)
		return -1;
	if (!schema || !str_eq(schema, "svrun.policy/1"))
		return wrong(r, "/schema", "expected \"svrun.policy/1\"");
	if (!json_object_get(root, "default"))
		return wrong(r, "", "missing key 'default': what holds when no rule matches");
	if (take_all_keys(r, json_object_get(root, "keys")) < 0 ||
		take_all_identities(r, json_object_get(root, "identities")) < 0 ||
		take_rules(r, json_object_get(root, "rules")) < 0)
		return -1;
	return take_rule(r, "/default", json_object_get(root, "default"), false, &r->p->otherwise);
}

/* ---- opening ---- */

int policy_parse(struct policy *p, const char *path, const void *text, size_t n, struct err *e)
{
	struct json_doc doc;
	struct reading r = {p, &doc, e};
	time_t now = time(NULL);
	struct tm tm;
	int rc;

	*p = (struct policy){.path = mem_strdup(path)};
	if (!gmtime_r(&now, &tm) || strftime(p->today, sizeof(p->today), "%Y-%m-%d", &tm) == 0)
		rc = err_set(e, ERR_SYSTEM, "what day is it?");
	else
		rc = json_doc_parse(&doc, path, text, n, e);
	if (rc == 0) {
		rc = take(&r, doc.root);
		json_doc_fini(&doc);
	} else if (e) {
		e->kind = ERR_USAGE;
	}
	if (rc < 0)
		policy_close(p);
	return rc;
}

int policy_open(struct policy *p, const struct config *c, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(POLICY_MAX);

	if (file_read(AT_FDCWD, c->policy, &b, e) < 0) {
		if (e)
			e->kind = ERR_USAGE; /* callers take NOT_FOUND for a missing image */
		return err_ctx(e, "policy of %s", c->path);
	}
	if (policy_parse(p, c->policy, b.data ? b.data : "", b.len, e) < 0)
		return -1;
	p->roots = json_incref(c->roots);
	return 0;
}

void policy_close(struct policy *p)
{
	arena_fini(&p->arena);
	json_decref(p->roots);
	free(p->path);
	*p = (struct policy){0};
}

/* ---- deciding ---- */

const struct policy_rule *policy_find(const struct policy *p, const char *name)
{
	for (size_t i = 0; i < p->nrules; i++)
		for (size_t k = 0; k < p->rules[i].match.n; k++)
			if (glob_matches(p->rules[i].match.v[k], name))
				return &p->rules[i];
	return &p->otherwise;
}

int policy_admits(
	const struct policy *p, const struct policy_rule *r, const char *name, struct err *e)
{
	if (r->action != POLICY_REJECT)
		return 0;
	return err_set(e, ERR_DENIED, "%s: the policy rejects it (%s %s)%s%s", name, p->path,
		r->where, r->reason ? ": " : "", r->reason ? r->reason : "");
}

/* "host/path", or the path of a name without a host. */
static char *repository_of(const char *name)
{
	struct reference r;

	if (reference_parse_name(&r, name, NULL) < 0)
		return mem_strdup(name);
	return r.host[0] ? mem_printf("%s/%s", r.host, r.path) : mem_strdup(r.path);
}

static char *known_as(const struct store_name *x)
{
	return x->source ? mem_strdup(x->source) : repository_of(x->name);
}

/* By digest: what its names agree on. Where they do not, none of them is to be had by accident. */
static int name_of_digest(
	const struct store_name *v, size_t n, const struct digest *d, char **name, struct err *e)
{
	*name = NULL;
	for (size_t i = 0; i < n; i++) {
		char *as = digest_eq(&v[i].manifest, d) ? known_as(&v[i]) : NULL;

		if (as && *name && !str_eq(as, *name)) {
			err_set(e, ERR_USAGE,
				"the policy cannot tell which it is: the image is known as %s and "
				"as %s",
				*name, as);
			free(as);
			free(steal_ptr(name));
			return err_hint(e, "say its name instead of its digest");
		}
		if (as) {
			free(*name);
			*name = as;
		}
	}
	if (!*name)
		*name = mem_strdup("");
	return 0;
}

/* A reference is anybody's text: "NAME@DIGEST" may name one image, and mean another. */
static bool leads_to(struct store *s, const struct store_name *x, const struct digest *manifest)
{
	struct digest d = x->manifest;

	return digest_eq(&d, manifest) ||
	       (store_choose(s, x->name, &d, NULL) == 0 && digest_eq(&d, manifest));
}

int policy_name(
	struct store *s, const char *ref, const struct digest *manifest, char **name, struct err *e)
{
	auto_free char *bare = mem_strdup(ref);
	char *digest = strstr(bare, "@sha256:");
	struct store_name *v;
	size_t n, at;
	int rc;

	*name = NULL;
	if (store_names(s, &v, &n, e) < 0)
		return -1;
	if (digest && digest != bare)
		*digest = '\0';
	rc = str_starts(bare, "sha256:") ? 0 : store_name_find(v, n, bare, &at, NULL);
	if (rc <= 0 || !leads_to(s, &v[at], manifest)) /* pulled by digest, that is in the name */
		rc = store_name_find(v, n, ref, &at, NULL);
	if (rc > 0 && leads_to(s, &v[at], manifest)) {
		*name = known_as(&v[at]);
		rc = 0;
	} else {
		rc = name_of_digest(v, n, manifest, name, e);
	}
	store_names_free(v, n);
	return rc;
}
