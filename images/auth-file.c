#include "images/auth-file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/base64.h"
#include "images/secret.h"

enum { FILE_MAX = 4 << 20, POINTER_MAX = 1024 };

int auth_file_load(struct auth_file *f, const char *path, struct err *e)
{
	struct err own = {0};

	*f = (struct auth_file){0};
	if (json_doc_load(&f->doc, AT_FDCWD, path, FILE_MAX, &own) == 0) {
		if (json_is_object(f->doc.root))
			return 1;
		auth_file_close(f);
		return err_set(e, ERR_CORRUPT, "%s: expected an object", path);
	}
	if (own.kind == ERR_NOT_FOUND)
		return 0;
	if (own.kind == ERR_CORRUPT && strstr(own.text, " near "))
		*strstr(own.text, " near ") = '\0'; /* what follows is from the file */
	if (e)
		*e = own;
	return -1;
}

void auth_file_close(struct auth_file *f)
{
	secret_doc_fini(&f->doc);
}

/* ---- errors that say where ---- */

static void add_token(char *pointer, const char *key)
{
	size_t n = strlen(pointer);

	for (pointer[n++] = '/'; *key && n + 3 < POINTER_MAX; key++) {
		if (*key == '/' || *key == '~') {
			pointer[n++] = '~';
			pointer[n++] = *key == '/' ? '1' : '0';
		} else {
			pointer[n++] = *key;
		}
	}
	pointer[n] = '\0';
}

/* "FILE:LINE:COL: auths: 'host': auth: what". key and member may be NULL. */
static int bad(const struct auth_file *f, const char *object, const char *key, const char *member,
	const char *what, struct err *e)
{
	char pointer[POINTER_MAX] = "";
	int line, col;

	add_token(pointer, object);
	if (key)
		add_token(pointer, key);
	if (key && member)
		add_token(pointer, member);
	json_doc_locate(&f->doc, pointer, false, &line, &col);
	return err_set(e, ERR_CORRUPT, "%s:%d:%d: %s%s%.200s%s%s%s: %s", f->doc.name, line, col,
		object, key ? ": '" : "", key ? key : "", key ? "'" : "", member ? ": " : "",
		member ? member : "", what);
}

/* The object that a key names; NULL also when it is not there. */
static json_t *section(const struct auth_file *f, const char *name, bool *wrong, struct err *e)
{
	json_t *o = json_object_get(f->doc.root, name);

	*wrong = o && !json_is_object(o) && !json_is_null(o);
	if (*wrong)
		bad(f, name, NULL, NULL, "expected an object", e);
	return json_is_object(o) ? o : NULL;
}

/* ---- keys ---- */

size_t auth_file_fits(const char *key, const char *host, const char *path)
{
	const char *scheme = strstr(key, "://"), *k = scheme ? scheme + 3 : key;
	size_t n = strlen(host);

	if (strncasecmp(k, host, n) != 0 || (k[n] && k[n] != '/'))
		return 0;
	if (scheme)
		return 1;
	k += n;
	n = strlen(k);
	while (n > 0 && k[n - 1] == '/')
		n--;
	if (n == 0)
		return 2;
	k++; /* the slash */
	n--;
	return strncmp(k, path, n) == 0 && (!path[n] || path[n] == '/') ? 2 + n : 0;
}

const char *auth_file_helper(struct auth_file *f, const char *host, const char *path, struct err *e)
{
	const char *key, *best = "", *best_key = NULL;
	size_t most = 0;
	json_t *o, *v;
	bool wrong;

	o = section(f, "credHelpers", &wrong, e);
	if (wrong)
		return NULL;
	json_object_foreach (o, key, v) {
		size_t n = auth_file_fits(key, host, path);

		if (n <= most)
			continue;
		most = n;
		best = json_string_value(v);
		best_key = key;
	}
	if (!best)
		bad(f, "credHelpers", best_key, NULL, "expected the name of a helper", e);
	return best;
}

const char *auth_file_store(struct auth_file *f, struct err *e)
{
	const json_t *v = json_object_get(f->doc.root, "credsStore");

	if (!v || json_is_null(v))
		return "";
	if (!json_is_string(v))
		bad(f, "credsStore", NULL, NULL, "expected the name of a helper", e);
	return json_string_value(v);
}

/* ---- entries of "auths" ---- */

static const char *member(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s && *s ? s : NULL;
}

/* docker leaves {} where a helper has the secret. */
static bool says_something(const json_t *o)
{
	return member(o, "auth") || member(o, "identitytoken") || member(o, "registrytoken") ||
	       (member(o, "username") && member(o, "password"));
}

static int take_auth(const struct auth_file *f, const char *key, const char *auth,
	struct credential *c, struct err *e)
{
	size_t n;
	char *text = base64_decode(auth, &n), *colon = text ? memchr(text, ':', n) : NULL;
	int rc = 0;

	while (n > 0 && text[n - 1] == '\0') /* docker pads some so */
		n--;
	if (!colon || memchr(text, '\0', n)) {
		rc = bad(f, "auths", key, "auth", "expected base64 of user:password", e);
	} else {
		*colon = '\0';
		c->user = mem_strdup(text);
		c->secret = mem_strdup(colon + 1);
	}
	secret_free(text);
	return rc;
}

static int take_entry(const struct auth_file *f, const char *key, const json_t *o,
	struct credential *c, struct err *e)
{
	static const char *const members[] = {
		"auth", "identitytoken", "registrytoken", "username", "password"};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		const json_t *v = json_object_get(o, members[i]);

		if (v && (!json_is_string(v) ||
				 strlen(json_string_value(v)) != json_string_length(v)))
			return bad(f, "auths", key, members[i], "expected a string", e);
	}
	if (member(o, "auth")) {
		if (take_auth(f, key, member(o, "auth"), c, e) < 0)
			return -1;
	} else if (member(o, "username") && member(o, "password")) {
		c->user = mem_strdup(member(o, "username"));
		c->secret = mem_strdup(member(o, "password"));
	}
	if (member(o, "identitytoken"))
		c->identity = mem_strdup(member(o, "identitytoken"));
	if (member(o, "registrytoken"))
		c->registry = mem_strdup(member(o, "registrytoken"));
	if (c->identity && c->secret && !*c->secret) { /* "user:" beside the token */
		secret_free(steal_ptr(&c->user));
		secret_free(steal_ptr(&c->secret));
	}
	c->origin = mem_strdup(f->doc.name);
	return 1;
}

int auth_file_find(struct auth_file *f, const char *host, const char *path, struct credential *c,
	struct err *e)
{
	const char *key, *best_key = NULL;
	const json_t *best = NULL;
	json_t *o, *v;
	size_t most = 0;
	bool wrong;

	*c = (struct credential){0};
	o = section(f, "auths", &wrong, e);
	if (wrong)
		return -1;
	json_object_foreach (o, key, v) {
		size_t n = auth_file_fits(key, host, path);

		if (n <= most)
			continue;
		if (!json_is_object(v))
			return bad(f, "auths", key, NULL, "expected an object", e);
		if (json_object_size(v) == 0)
			continue;
		most = n;
		best = v;
		best_key = key;
	}
	if (!best)
		return 0;
	if (take_entry(f, best_key, best, c, e) < 0) {
		credential_fini(c);
		return -1;
	}
	if (c->user || c->identity || c->registry)
		return 1;
	credential_fini(c);
	return 0;
}

bool auth_file_has(const struct auth_file *f, const char *host)
{
	const char *key;
	json_t *v;

	json_object_foreach (json_object_get(f->doc.root, "auths"), key, v)
		if (auth_file_fits(key, host, "") && says_something(v))
			return true;
	return false;
}
