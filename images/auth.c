#include "images/auth.h"

#include <openssl/crypto.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "images/request.h"

void auth_init(struct auth *a, struct http *http, const struct http_site *site, const char *path)
{
	*a = (struct auth){.http = http, .site = site, .path = path};
	pthread_mutex_init(&a->lock, NULL);
	tokens_init(&a->tokens);
}

static void forget(struct auth *a)
{
	if (a->fixed)
		OPENSSL_cleanse(a->fixed, strlen(a->fixed));
	free(a->fixed);
	a->fixed = NULL;
	if (a->found)
		credential_fini(&a->credential);
	a->credential = (struct credential){0};
	a->found = false;
}

void auth_fini(struct auth *a)
{
	forget(a);
	tokens_fini(&a->tokens);
	free(a->realm);
	free(a->service);
	free(a->scope);
	pthread_mutex_destroy(&a->lock);
}

bool auth_unknown(struct auth *a)
{
	bool unknown;

	pthread_mutex_lock(&a->lock);
	unknown = a->how == AUTH_UNKNOWN;
	pthread_mutex_unlock(&a->lock);
	return unknown;
}

/* ---- what is sent ---- */

static int find_credential(struct auth *a, struct err *e)
{
	if (a->found)
		return 0;
	if (a->user) {
		a->credential.user = mem_strdup(a->user);
		a->credential.secret = mem_strdup(a->secret);
	} else if (credential_find(a->site->host, a->path, &a->credential, e) < 0) {
		return -1;
	}
	a->found = true;
	return 0;
}

/* The scope that is asked for, and what the endpoint asked for beyond. */
static char *whole_scope(const struct auth *a, const char *scope)
{
	const char *more = a->scope ? a->scope : "";

	return mem_printf("%s%s%s", scope, scope[0] && more[0] ? " " : "", more);
}

static int bearer(
	struct auth *a, const char *scope, char **value, unsigned *generation, struct err *e)
{
	auto_free char *whole = whole_scope(a, scope);
	const struct token_ask q = {.http = a->http,
		.site = a->site,
		.realm = a->realm,
		.service = a->service,
		.scope = whole,
		.credential = &a->credential};
	struct err first = {0};

	if (tokens_get(&a->tokens, &q, value, generation, &first) == 0) {
		a->knows_us = true;
		return 0;
	}
	if (first.kind != ERR_DENIED || !a->knows_us) {
		if (e)
			*e = first;
		return -1;
	}
	forget(a); /* good once: a helper may have others by now, or somebody logged in again */
	a->knows_us = false;
	return find_credential(a, e) < 0 ? -1 : tokens_get(&a->tokens, &q, value, generation, e);
}

static int fixed(struct auth *a, char **value, unsigned *generation, struct err *e)
{
	const struct credential *c = &a->credential;

	if (!a->fixed) {
		if (c->registry && token_usable(c->registry))
			a->fixed = mem_printf("Bearer %s", c->registry);
		else if (c->user && c->secret)
			a->fixed = request_basic(c->user, c->secret);
		if (!a->fixed) {
			err_set(e, ERR_DENIED, "%s asks for credentials, and has none here",
				a->site->host);
			return err_hint(e, "svrun image login %s", a->site->host);
		}
		a->generation = ++a->tokens.generations;
		a->proven = false;
	}
	*value = mem_strdup(a->fixed);
	*generation = a->generation;
	return 0;
}

int auth_value(struct auth *a, const char *scope, char **value, unsigned *generation, struct err *e)
{
	int rc = 0;

	*value = NULL;
	*generation = 0;
	pthread_mutex_lock(&a->lock);
	if (a->how == AUTH_BASIC || a->how == AUTH_BEARER)
		rc = find_credential(a, e);
	if (rc == 0 && (a->how == AUTH_BASIC || (a->how == AUTH_BEARER && a->credential.registry)))
		rc = fixed(a, value, generation, e);
	else if (rc == 0 && a->how == AUTH_BEARER)
		rc = bearer(a, scope, value, generation, e);
	pthread_mutex_unlock(&a->lock);
	return rc;
}

/* ---- what came of it ---- */

void auth_let_in(struct auth *a, unsigned generation)
{
	pthread_mutex_lock(&a->lock);
	if (generation == 0 && a->how == AUTH_UNKNOWN)
		a->how = AUTH_NONE;
	else if (generation && generation == a->generation)
		a->proven = true;
	else if (generation)
		tokens_prove(&a->tokens, generation);
	pthread_mutex_unlock(&a->lock);
}

static bool replace(char **text, const char *with)
{
	if (*text && str_eq(*text, with))
		return false;
	free(*text);
	*text = mem_strdup(with);
	return true;
}

/* Is an item of a scope about the repository of that path? */
static bool is_about(const char *item, const char *path)
{
	size_t n = path ? strlen(path) : 0;

	return n && str_starts(item, "repository:") && strncmp(item + 11, path, n) == 0 &&
	       item[11 + n] == ':';
}

/* What a challenge wants and is not asked for anyway: not every registry, or proxy in front of one,
 * calls a repository what its address calls it. */
static void other_scope(const struct auth *a, const char *scope, struct buf *b)
{
	for (scope += strspn(scope, " "); *scope; scope += strspn(scope, " ")) {
		size_t n = strcspn(scope, " ");

		if (!is_about(scope, a->path) && !is_about(scope, a->mount_from))
			buf_printf(b, "%s%.*s", b->len ? " " : "", (int)n, scope);
		scope += n;
	}
}

/* 1: it asks for something else than before. */
static int learn(struct auth *a, const struct challenges *c, struct err *e)
{
	const struct challenge *b = challenges_find(c, "Bearer");
	auto_buf struct buf more = BUF_INIT(4096);
	enum auth_how before = a->how;
	bool changed = false;

	if (b && b->realm[0]) {
		a->how = AUTH_BEARER;
		changed = replace(&a->realm, b->realm);
		changed = replace(&a->service, b->service) || changed;
		other_scope(a, b->scope, &more);
		changed = replace(&a->scope, more.data ? more.data : "") || changed;
	} else if (challenges_find(c, "Basic")) {
		a->how = AUTH_BASIC;
	} else if (c->n) {
		return err_set(e, ERR_UNSUPPORTED, "asks for authentication by %s", c->v[0].scheme);
	} else {
		return 0;
	}
	return changed || a->how != before;
}

static int refused_now(struct auth *a, unsigned generation)
{
	bool again;

	if (generation == 0) { /* who sends nothing has not tried what is known now */
		if (a->how == AUTH_NONE)
			a->how = AUTH_UNKNOWN;
		return 1;
	}
	if (generation != a->generation)
		return tokens_refuse(&a->tokens, generation);
	again = a->proven;
	if (again) /* a helper may have a fresh one, or somebody logged in */
		forget(a);
	return again;
}

int auth_refused(struct auth *a, const struct challenges *c, unsigned generation, struct err *e)
{
	int rc, again;

	pthread_mutex_lock(&a->lock);
	rc = c ? learn(a, c, e) : 0;
	if (rc >= 0) {
		again = refused_now(a, generation);
		rc = rc || again;
		/* a 401 that does not say what for, to somebody who has nothing to say */
		if (c && c->n == 0 && generation == 0 && a->how < AUTH_BASIC)
			rc = 0;
	}
	pthread_mutex_unlock(&a->lock);
	return rc;
}

int auth_hint(struct auth *a, struct err *e)
{
	pthread_mutex_lock(&a->lock);
	if (a->found && a->credential.origin && (a->credential.user || a->credential.identity))
		err_hint(e, "the credentials in %s do not do: svrun image login %s",
			a->credential.origin, a->site->host);
	else
		err_hint(e, "it does not exist, or needs credentials: svrun image login %s",
			a->site->host);
	pthread_mutex_unlock(&a->lock);
	return -1;
}
