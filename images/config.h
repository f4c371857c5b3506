/* Site configuration: /etc/svrun/config.json, or the file that $SVRUN_CONFIG names
 * (docs/config.md).
 *
 *   { "root": "/var/lib/svrun",                      where images and instances live
 *     "mirrors": { "debian": "http://...", ... },    addresses of named mirrors
 *     "registries": { "registry.example:5000": { "mirrors": [...], "plain-http": true, ... } },
 *     "short-names": { "aliases": { "ubuntu": "registry.example/library/ubuntu" },
 *                      "search": ["registry.example/library"] },
 *     "policy": "/etc/svrun/policy.json",              which images may be pulled and run (policy.h)
 *     "vulnerabilities": "/srv/vulnerabilities",       what is known of them (builder/vuln.h)
 *     "roots": { "ours": { "certificates": "/etc/svrun/ca.pem", "log": "/etc/svrun/log.pub" } } }
 *                                                      who may vouch for signers (identity.h)
 *
 * $SVRUN_ROOT wins over "root"; without either it is /var/lib/svrun for root, and
 * $XDG_DATA_HOME/svrun or ~/.local/share/svrun for others. A missing file is an empty one, unless
 * $SVRUN_CONFIG names it. */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

struct config {
	char *path;               /* the file read, or the one that would be */
	char *root;               /* absolute */
	char *policy;             /* absolute; NULL: every image may be run */
	char *vulnerabilities;    /* absolute; NULL: no data */
	json_t *roots;            /* object of {certificates, log}: absolute paths; never NULL */
	json_t *mirrors;          /* object of strings; never NULL */
	json_t *registries;       /* by host, in lower case; never NULL */
	json_t *short_names;      /* {"aliases": {...}, "search": [...]}; never NULL */
	const char *const *certs; /* folders laid out as docker's certs.d; ends with NULL */
};

/* How the site reaches one registry ("registries" of the configuration, and certificates in
 * /etc/svrun, /etc/containers and /etc/docker certs.d/HOST[:PORT]). Strings are borrowed from the
 * config, or owned by this. */
struct config_registry {
	const char *const
		*mirrors; /* "host[:port][/prefix]", in order, before the registry itself */
	size_t nmirrors;
	bool plain_http;             /* http:// instead of https:// */
	bool insecure;               /* certificates are not checked */
	bool is_private;             /* what may not be passed on may be pushed there */
	const char *ca, *cert, *key; /* PEM files, or NULL */
	struct arena own;
};

/* Unknown keys and wrong types are USAGE, with a "did you mean". */
int config_load(struct config *c, struct err *e) must_check;
void config_fini(struct config *c);

/* Fills r (all empty when the site says nothing of host). Certificates: those that the site's entry
 * names; without any, those of the first folder certs.d/HOST[:PORT] there is: ca.crt, or the only
 * *.crt; the only pair X.cert and X.key. Free with config_registry_fini(). Errors: USAGE (a folder
 * that has more, or half a pair), DENIED and SYSTEM (it cannot be read). */
int config_registry(const struct config *c, const char *host, struct config_registry *r,
	struct err *e) must_check;
void config_registry_fini(struct config_registry *r);

/* Borrowed address of a named mirror without a final slash, or NULL when the site has none. */
const char *config_mirror(const struct config *c, const char *name);

#endif
