#include "images/credentials.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "images/auth-file.h"
#include "images/credential-helper.h"
#include "images/secret.h"

enum { PLACES = 3 };

void credential_fini(struct credential *c)
{
	secret_free(c->user);
	secret_free(c->secret);
	secret_free(c->identity);
	secret_free(c->registry);
	free(c->origin);
	*c = (struct credential){0};
}

/* ---- which files ---- */

struct places {
	char *v[PLACES]; /* in the order of looking */
	size_t n;
	char *own; /* where logins go; NULL: nowhere is known. Borrowed from v */
};

#define auto_places __attribute__((cleanup(places_fini)))

static void places_fini(struct places *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i]);
}

/* A variable that names a folder or file: only absolute ones mean something. */
static const char *path_of(const char *variable)
{
	const char *s = getenv(variable);

	return s && s[0] == '/' ? s : NULL;
}

static void places_init(struct places *p)
{
	const char *only = getenv("REGISTRY_AUTH_FILE"), *run = path_of("XDG_RUNTIME_DIR"),
		   *config = path_of("XDG_CONFIG_HOME"), *docker = getenv("DOCKER_CONFIG"),
		   *home = path_of("HOME");

	*p = (struct places){0};
	if (only && *only) {
		p->own = p->v[p->n++] = mem_strdup(only);
		return;
	}
	p->v[p->n++] = run ? mem_printf("%s/containers/auth.json", run)
			   : mem_printf("/run/containers/%ld/auth.json", (long)geteuid());
	if (config || home)
		p->v[p->n++] = mem_printf("%s%s/containers/auth.json", config ? config : home,
			config ? "" : "/.config");
	if (docker && *docker)
		p->own = p->v[p->n++] = mem_printf("%s/config.json", docker);
	else if (home)
		p->own = p->v[p->n++] = mem_printf("%s/.docker/config.json", home);
}

/* ---- looking ---- */

/* One helper, which "" means there is none. */
static int ask_helper(const char *name, const char *host, struct credential *c,
	const struct auth_file *f, struct err *e)
{
	if (!name)
		return -1;
	if (!*name)
		return 0;
	if (credential_helper_get(name, host, c, e) < 0)
		return err_ctx(e, "%s", f->doc.name);
	return c->user || c->identity;
}

static int find_in(
	const char *file, const char *host, const char *path, struct credential *c, struct err *e)
{
	struct auth_file f;
	int rc = auth_file_load(&f, file, e);

	if (rc <= 0)
		return rc;
	rc = ask_helper(auth_file_helper(&f, host, path, e), host, c, &f, e);
	if (rc == 0)
		rc = ask_helper(auth_file_store(&f, e), host, c, &f, e);
	if (rc == 0)
		rc = auth_file_find(&f, host, path, c, e);
	auth_file_close(&f);
	return rc;
}

int credential_find(const char *host, const char *path, struct credential *c, struct err *e)
{
	auto_places struct places p;
	int rc = 0;

	places_init(&p);
	*c = (struct credential){0};
	for (size_t i = 0; rc == 0 && i < p.n; i++)
		rc = find_in(p.v[i], host, path ? path : "", c, e);
	return rc < 0 ? err_ctx(e, "credentials for %s", host) : rc;
}

/* ---- keeping ---- */

/* What a file says about who keeps a host's secret: the name of a helper, to free(), or "" for the
 * file itself. NULL: error. *has: would a look into this file end there? */
static char *keeper(const char *file, const char *host, bool *has, struct err *e)
{
	struct auth_file f;
	const char *name;
	char *own = NULL;
	int rc = auth_file_load(&f, file, e);

	*has = false;
	if (rc <= 0)
		return rc < 0 ? NULL : mem_strdup("");
	name = auth_file_helper(&f, host, "", e);
	*has = (name && *name) || auth_file_has(&f, host);
	if (name && !*name)
		name = auth_file_store(&f, e);
	if (name)
		own = mem_strdup(name);
	auth_file_close(&f);
	return own;
}

static int keep(const char *file, const char *helper, const char *host, const char *user,
	const char *secret, char **where, struct err *e)
{
	if (!*helper) {
		if (auth_file_update(file, host, user, secret, e) < 0)
			return -1;
		*where = mem_strdup(file);
		return 0;
	}
	/* What the file itself has would only be an old copy in the clear. */
	if (credential_helper_store(helper, host, user, secret, e) < 0 ||
		auth_file_update(file, host, NULL, NULL, e) < 0)
		return err_ctx(e, "%s", file);
	*where = mem_printf("docker-credential-%s", helper);
	return 0;
}

int credential_store(
	const char *host, const char *user, const char *secret, char **where, struct err *e)
{
	auto_places struct places p;

	places_init(&p);
	if (!*user || strchr(user, ':'))
		return err_set(e, ERR_USAGE, "a user's name may not be empty, and has no ':'");
	for (size_t i = 0; i < p.n; i++) {
		bool has;
		auto_free char *helper = keeper(p.v[i], host, &has, e);

		if (!helper)
			return -1;
		if (has || p.v[i] == p.own)
			return keep(p.v[i], helper, host, user, secret, where, e);
	}
	err_set(e, ERR_USAGE, "no place to keep credentials");
	return err_hint(e, "set HOME, DOCKER_CONFIG or REGISTRY_AUTH_FILE");
}

/* ---- forgetting ---- */

static void add_place(struct buf *b, const char *prefix, const char *name)
{
	buf_printf(b, "%s%s%s", b->len ? ", " : "", prefix, name);
}

/* Helpers erase what is not there without a word: ask first, so that "forgotten" is true. */
static int forget_helper(const char *name, const char *host, struct buf *b, struct err *e)
{
	struct credential c = {0};
	int rc = !name ? -1 : *name ? credential_helper_get(name, host, &c, e) : 0;

	credential_fini(&c);
	if (rc > 0)
		rc = credential_helper_erase(name, host, e);
	if (rc > 0)
		add_place(b, "docker-credential-", name);
	return rc < 0 ? -1 : 0;
}

static int forget_in(const char *file, const char *host, struct buf *b, struct err *e)
{
	struct auth_file f;
	int rc = auth_file_load(&f, file, e);

	if (rc <= 0)
		return rc;
	rc = forget_helper(auth_file_helper(&f, host, "", e), host, b, e);
	if (rc == 0)
		rc = forget_helper(auth_file_store(&f, e), host, b, e);
	auth_file_close(&f);
	if (rc < 0)
		return err_ctx(e, "%s", file);
	rc = auth_file_update(file, host, NULL, NULL, e);
	if (rc > 0)
		add_place(b, "", file);
	return rc;
}

int credential_remove(const char *host, char **where, struct err *e)
{
	auto_places struct places p;
	auto_buf struct buf b = BUF_INIT(1 << 20);

	places_init(&p);
	for (size_t i = 0; i < p.n; i++)
		if (forget_in(p.v[i], host, &b, e) < 0)
			return -1;
	if (!b.len)
		return err_set(e, ERR_NOT_FOUND, "no credentials for %s", host);
	*where = mem_strdup(b.data);
	return 0;
}
