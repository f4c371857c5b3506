#include "images/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"

enum { CONFIG_MAX = 1 << 20 };

/* ---- the values of keys ---- */

static int wrong(struct err *e, const char *where, const char *expected)
{
	return err_set(e, ERR_USAGE, "%s: expected %s", where, expected);
}

/* A string that is not empty and has no NUL and nothing that is not printable: it ends up in
 * addresses, paths and messages. */
static const char *text_of(const json_t *v)
{
	const char *s = json_string_value(v);

	if (!s || !*s || strlen(s) != json_string_length(v))
		return NULL;
	for (const char *p = s; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return NULL;
	return s;
}

static int unknown_key(const char *where, const char *key, const char *const *keys, struct err *e)
{
	const char *near = str_nearest(key, keys);

	return err_set(e, ERR_USAGE, "%s%sunknown key '%.100s'%s%s%s", where, *where ? ": " : "",
		key, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static bool listed(const char *key, const char *const *keys)
{
	for (; *keys; keys++)
		if (str_eq(key, *keys))
			return true;
	return false;
}

static int check_keys(const char *where, json_t *o, const char *const *keys, struct err *e)
{
	const char *key;
	json_t *v;

	json_object_foreach (o, key, v)
		if (!listed(key, keys))
			return unknown_key(where, key, keys, e);
	return 0;
}

/* ---- mirrors of packages and models ---- */

static int take_mirrors(struct config *c, json_t *mirrors, struct err *e)
{
	const char *name;
	json_t *v;

	if (!json_is_object(mirrors))
		return wrong(e, "mirrors", "an object");
	json_object_foreach (mirrors, name, v) {
		const char *url = json_string_value(v);
		size_t n = url ? strlen(url) : 0;

		if (!url || !(str_starts(url, "http://") || str_starts(url, "https://") ||
				    str_starts(url, "file:///")))
			return err_set(e, ERR_USAGE,
				"mirrors: '%s': expected an http://, https:// or file:/// address",
				name);
		while (n > 0 && url[n - 1] == '/')
			n--;
		json_string_setn(v, url, n);
	}
	json_object_update(c->mirrors, mirrors);
	return 0;
}

/* ---- registries ---- */

/* "host[:port]", with "/prefix" when that is allowed. The whole grammar is images/reference.h's;
 * here it is about what people write by mistake. */
static int check_host(const char *where, const char *s, bool prefix, struct err *e)
{
	if (strstr(s, "://")) {
		err_set(e, ERR_USAGE, "%s: '%.200s': expected a host without a scheme", where, s);
		return err_hint(e, "plain-http of the host's own entry chooses http://");
	}
	if (s[strcspn(s, " @?#\\")] || *s == '/' || *s == ':' || str_ends(s, "/") ||
		(!prefix && strchr(s, '/')))
		return err_set(e, ERR_USAGE, "%s: '%.200s': expected HOST[:PORT]%s", where, s,
			prefix ? "[/PREFIX]" : "");
	return 0;
}

static int check_hosts(const char *where, const json_t *list, struct err *e)
{
	const json_t *v;
	size_t i;

	if (!json_is_array(list))
		return wrong(e, where, "a list of HOST[:PORT][/PREFIX]");
	json_array_foreach (list, i, v) {
		const char *s = text_of(v);

		if (!s)
			return wrong(e, where, "a list of HOST[:PORT][/PREFIX]");
		if (check_host(where, s, true, e) < 0)
			return -1;
	}
	return 0;
}

static int check_registry(const char *where, json_t *o, struct err *e)
{
	static const char *const keys[] = {
		"mirrors", "plain-http", "insecure", "private", "ca", "cert", "key", NULL};
	static const char *const files[] = {"ca", "cert", "key"};
	const json_t *mirrors = json_object_get(o, "mirrors");
	bool flag;

	if (!json_is_object(o))
		return wrong(e, where, "an object");
	if (check_keys(where, o, keys, e) < 0)
		return -1;
	if ((mirrors && check_hosts("mirrors", mirrors, e) < 0) ||
		json_bool_opt(o, "plain-http", false, &flag, e) < 0 ||
		json_bool_opt(o, "insecure", false, &flag, e) < 0 ||
		json_bool_opt(o, "private", false, &flag, e) < 0)
		return err_ctx(e, "%s", where);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const json_t *v = json_object_get(o, files[i]);
		const char *path = text_of(v);

		if (v && (!path || path[0] != '/'))
			return err_set(e, ERR_USAGE, "%s: key '%s': expected an absolute path",
				where, files[i]);
	}
	if (!json_object_get(o, "cert") != !json_object_get(o, "key"))
		return err_set(e, ERR_USAGE, "%s: 'cert' and 'key' belong together", where);
	return 0;
}

static int take_registries(struct config *c, json_t *registries, struct err *e)
{
	const char *host;
	json_t *v;

	if (!json_is_object(registries))
		return wrong(e, "registries", "an object");
	json_object_foreach (registries, host, v) {
		auto_free char *lower = mem_strdup(host);
		auto_free char *where = mem_printf("registries: '%.300s'", host);

		for (char *p = lower; *p; p++)
			*p = (char)tolower((unsigned char)*p);
		if (check_host("registries", *host ? host : "/", false, e) < 0 ||
			check_registry(where, v, e) < 0)
			return -1;
		json_object_set(c->registries, lower, v);
	}
	return 0;
}

/* ---- short names ---- */

static int take_short_names(struct config *c, json_t *o, struct err *e)
{
	static const char *const keys[] = {"aliases", "search", NULL};
	json_t *aliases = json_object_get(o, "aliases"), *list = json_object_get(o, "search"), *v;
	const char *name;

	if (!json_is_object(o))
		return wrong(e, "short-names", "an object");
	if (check_keys("short-names", o, keys, e) < 0)
		return -1;
	if (aliases && !json_is_object(aliases))
		return wrong(e, "short-names: aliases", "an object");
	json_object_foreach (aliases, name, v) {
		const char *s = text_of(v);

		if (!s || !strchr(s, '/'))
			return err_set(e, ERR_USAGE,
				"short-names: aliases: '%.100s': expected HOST[:PORT]/NAME", name);
	}
	if (list && check_hosts("short-names: search", list, e) < 0)
		return -1;
	json_object_update(c->short_names, o);
	return 0;
}

/* ---- the file ---- */

static int take_root(struct config *c, json_t *v, struct err *e)
{
	const char *root = text_of(v);

	if (!root)
		return wrong(e, "root", "a path");
	free(c->root);
	c->root = mem_strdup(root);
	return 0;
}

static int take_path(char **out, const char *key, const json_t *v, struct err *e)
{
	const char *path = text_of(v);

	if (!path || path[0] != '/')
		return wrong(e, key, "an absolute path");
	free(*out);
	*out = mem_strdup(path);
	return 0;
}

static int take_policy(struct config *c, json_t *v, struct err *e)
{
	return take_path(&c->policy, "policy", v, e);
}

static int take_vulnerabilities(struct config *c, json_t *v, struct err *e)
{
	return take_path(&c->vulnerabilities, "vulnerabilities", v, e);
}

static int take_roots(struct config *c, json_t *o, struct err *e)
{
	static const char *const keys[] = {"certificates", "log", NULL};
	const char *name;
	json_t *v;

	if (!json_is_object(o))
		return wrong(e, "roots", "an object");
	json_object_foreach (o, name, v) {
		auto_free char *where = mem_printf("roots: '%.100s'", name);

		if (!json_is_object(v))
			return wrong(e, where, "an object");
		if (check_keys(where, v, keys, e) < 0)
			return -1;
		for (size_t i = 0; keys[i]; i++) {
			const char *path = text_of(json_object_get(v, keys[i]));

			if (!path || path[0] != '/')
				return err_set(e, ERR_USAGE,
					"%s: key '%s': expected an absolute path", where, keys[i]);
		}
	}
	json_object_update(c->roots, o);
	return 0;
}

static const struct {
	const char *key;
	int (*take)(struct config *c, json_t *v, struct err *e);
} readers[] = {
	{"root", take_root},
	{"policy", take_policy},
	{"vulnerabilities", take_vulnerabilities},
	{"roots", take_roots},
	{"mirrors", take_mirrors},
	{"registries", take_registries},
	{"short-names", take_short_names},
};

enum { READERS = sizeof(readers) / sizeof(readers[0]) };

static int take(struct config *c, json_t *root, struct err *e)
{
	const char *keys[READERS + 1] = {NULL}, *key;
	json_t *v;

	if (!json_is_object(root))
		return err_set(e, ERR_USAGE, "expected an object");
	for (size_t i = 0; i < READERS; i++)
		keys[i] = readers[i].key;
	if (check_keys("", root, keys, e) < 0)
		return -1;
	json_object_foreach (root, key, v)
		for (size_t i = 0; i < READERS; i++)
			if (str_eq(key, keys[i]) && readers[i].take(c, v, e) < 0)
				return -1;
	return 0;
}

static int read_file(struct config *c, struct err *e)
{
	struct json_doc d;
	int rc;

	if (json_doc_load(&d, AT_FDCWD, c->path, CONFIG_MAX, e) < 0)
		return -1;
	rc = take(c, d.root, e);
	json_doc_fini(&d);
	if (rc == 0)
		return 0;
	if (e)
		e->kind = ERR_USAGE;
	return err_ctx(e, "%s", c->path);
}

static char *default_root(void)
{
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		return mem_strdup("/var/lib/svrun");
	if (data && data[0] == '/')
		return mem_printf("%s/svrun", data);
	return mem_printf("%s/.local/share/svrun", home && home[0] == '/' ? home : "/tmp");
}

int config_load(struct config *c, struct err *e)
{
	static const char *const certs[] = {
		"/etc/svrun/certs.d", "/etc/containers/certs.d", "/etc/docker/certs.d", NULL};
	const char *path = getenv("SVRUN_CONFIG"), *root = getenv("SVRUN_ROOT");

	*c = (struct config){.path = mem_strdup(path ? path : "/etc/svrun/config.json"),
		.roots = json_object(),
		.mirrors = json_object(),
		.registries = json_object(),
		.short_names = json_object(),
		.certs = certs};
	if ((path || access(c->path, F_OK) == 0) && read_file(c, e) < 0) {
		config_fini(c);
		if (e && e->kind == ERR_NOT_FOUND) { /* callers take that for a missing store */
			e->kind = ERR_USAGE;
			err_hint(e, "$SVRUN_CONFIG names a file that does not exist");
		}
		return -1;
	}
	if (root && *root) {
		free(c->root);
		c->root = mem_strdup(root);
	}
	if (!c->root)
		c->root = default_root();
	if (c->root[0] != '/') { /* children may change folder */
		auto_free char *cwd = getcwd(NULL, 0);
		char *abs;

		if (!cwd) {
			config_fini(c);
			return err_sys(e, "getcwd");
		}
		abs = mem_printf("%s/%s", cwd, c->root);
		free(c->root);
		c->root = abs;
	}
	return 0;
}

void config_fini(struct config *c)
{
	free(c->path);
	free(c->root);
	free(c->policy);
	free(c->vulnerabilities);
	json_decref(c->roots);
	json_decref(c->mirrors);
	json_decref(c->registries);
	json_decref(c->short_names);
	*c = (struct config){0};
}

const char *config_mirror(const struct config *c, const char *name)
{
	return json_string_value(json_object_get(c->mirrors, name));
}
