/* How the site reaches one registry: its entry in the configuration, and certificates in folders
 * laid out as docker and podman do. Source: docker's "Verify repository client with certificates",
 * containers-certs.d(5). */
#include "images/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"

enum { ENTRIES_MAX = 256, HOST_MAX = 300 };

struct found {
	char *ca, *cert, *key; /* names in the folder */
	unsigned cas;
	bool ca_crt; /* ca is "ca.crt", which wins over other names */
};

static int too_many(const char *dir, const char *what, struct err *e)
{
	err_set(e, ERR_USAGE, "%s: more than one %s", dir, what);
	return err_hint(e, "leave one there, or name the files in the configuration's registries");
}

static int note(struct found *f, struct arena *a, const char *dir, const char *name, struct err *e)
{
	if (str_ends(name, ".crt")) {
		f->cas++;
		if (f->ca_crt)
			return 0;
		f->ca_crt = str_eq(name, "ca.crt");
		f->ca = arena_strdup(a, name);
	} else if (str_ends(name, ".cert")) {
		if (f->cert)
			return too_many(dir, "*.cert", e);
		f->cert = arena_strdup(a, name);
	} else if (str_ends(name, ".key")) {
		if (f->key)
			return too_many(dir, "*.key", e);
		f->key = arena_strdup(a, name);
	}
	return 0;
}

/* Is it X.cert and X.key? */
static bool is_pair(const char *cert, const char *key)
{
	size_t n = strlen(cert) - strlen(".cert");

	return strlen(key) == n + strlen(".key") && strncmp(cert, key, n) == 0;
}

static int take_found(
	struct config_registry *r, const struct found *f, const char *dir, struct err *e)
{
	if (f->cas > 1 && !f->ca_crt)
		return too_many(dir, "*.crt, and none is ca.crt", e);
	if (!f->cert != !f->key || (f->cert && !is_pair(f->cert, f->key))) {
		err_set(e, ERR_USAGE, "%s: %s without its %s", dir, f->cert ? f->cert : f->key,
			f->cert ? "*.key" : "*.cert");
		return err_hint(e, "a client certificate is a pair of X.cert and X.key");
	}
	if (f->ca)
		r->ca = arena_printf(&r->own, "%s/%s", dir, f->ca);
	if (f->cert) {
		r->cert = arena_printf(&r->own, "%s/%s", dir, f->cert);
		r->key = arena_printf(&r->own, "%s/%s", dir, f->key);
	}
	return 0;
}

/* 1: there is such a folder, 0: there is none. */
static int read_folder(struct config_registry *r, const char *dir, struct err *e)
{
	DIR *d = opendir(dir);
	struct found f = {0};
	struct dirent *de;
	unsigned n = 0;
	int rc = 0;

	if (!d && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (!d)
		return err_sys(e, "open %s", dir);
	while (rc == 0 && (de = readdir(d))) {
		if (++n > ENTRIES_MAX)
			rc = err_set(e, ERR_USAGE, "%s: more than %d files", dir, ENTRIES_MAX);
		else
			rc = note(&f, &r->own, dir, de->d_name, e);
	}
	closedir(d);
	return rc < 0 || take_found(r, &f, dir, e) < 0 ? -1 : 1;
}

static int find_certificates(
	const struct config *c, const char *host, struct config_registry *r, struct err *e)
{
	/* A host is part of a path here. */
	if (!*host || *host == '.' || strchr(host, '/') || strlen(host) > HOST_MAX)
		return 0;
	for (const char *const *top = c->certs; top && *top; top++) {
		int rc = read_folder(r, arena_printf(&r->own, "%s/%s", *top, host), e);

		if (rc != 0)
			return rc < 0 ? -1 : 0;
	}
	return 0;
}

int config_registry(
	const struct config *c, const char *host, struct config_registry *r, struct err *e)
{
	const json_t *o = json_object_get(c->registries, host);
	const json_t *mirrors = json_object_get(o, "mirrors"), *v;
	const char **list;
	size_t i;

	*r = (struct config_registry){
		.nmirrors = json_array_size(mirrors),
		.plain_http = json_is_true(json_object_get(o, "plain-http")),
		.insecure = json_is_true(json_object_get(o, "insecure")),
		.is_private = json_is_true(json_object_get(o, "private")),
		.ca = json_string_value(json_object_get(o, "ca")),
		.cert = json_string_value(json_object_get(o, "cert")),
		.key = json_string_value(json_object_get(o, "key")),
	};
	list = arena_alloc(&r->own, (r->nmirrors + 1) * sizeof(*list));
	json_array_foreach (mirrors, i, v)
		list[i] = json_string_value(v);
	r->mirrors = list;
	if (!r->ca && !r->cert && find_certificates(c, host, r, e) < 0) {
		config_registry_fini(r);
		return err_ctx(e, "certificates of %.300s", host);
	}
	return 0;
}

void config_registry_fini(struct config_registry *r)
{
	arena_fini(&r->own);
	*r = (struct config_registry){0};
}
