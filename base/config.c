#include "base/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

enum { CONFIG_MAX = 1 << 20 };

static int check_mirrors(json_t *mirrors, struct err *e)
{
	const char *name;
	json_t *v;

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
	return 0;
}

static int read_file(struct config *c, struct err *e)
{
	static const char *const keys[] = {"root", "mirrors", NULL};
	struct json_doc d;
	const char *key, *root;
	json_t *v;

	if (json_doc_load(&d, AT_FDCWD, c->path, CONFIG_MAX, e) < 0)
		return -1;
	json_object_foreach (d.root, key, v) {
		const char *near = str_nearest(key, keys);

		if (str_eq(key, "root") || str_eq(key, "mirrors"))
			continue;
		err_set(e, ERR_USAGE, "%s: unknown key '%s'%s%s%s", c->path, key,
			near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
		json_doc_fini(&d);
		return -1;
	}
	v = json_object_get(d.root, "mirrors");
	if (!json_is_object(d.root) || (v && !json_is_object(v)) ||
		json_str_opt(d.root, "root", &root, e) < 0) {
		json_doc_fini(&d);
		return err_set(
			e, ERR_USAGE, "%s: expected an object with 'root' and 'mirrors'", c->path);
	}
	if (v)
		json_object_update(c->mirrors, v);
	if (root)
		c->root = mem_strdup(root);
	json_doc_fini(&d);
	return check_mirrors(c->mirrors, e) < 0 ? err_ctx(e, "%s", c->path) : 0;
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
	const char *path = getenv("SVRUN_CONFIG"), *root = getenv("SVRUN_ROOT");

	*c = (struct config){.path = mem_strdup(path ? path : "/etc/svrun/config.json"),
		.mirrors = json_object()};
	if ((path || access(c->path, F_OK) == 0) && read_file(c, e) < 0) {
		config_fini(c);
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
	json_decref(c->mirrors);
	*c = (struct config){0};
}

const char *config_mirror(const struct config *c, const char *name)
{
	return json_string_value(json_object_get(c->mirrors, name));
}
