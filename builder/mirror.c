#include "builder/mirror.h"

#include <string.h>

#include "base/str.h"
#include "builder/mirror-host.h"

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-"
enum { NAME_BYTES = 64, ADDRESS_BYTES = 2048 };

void mirrors_init(struct mirrors *m, const struct config *c)
{
	*m = (struct mirrors){
		.config = c, .found = json_object(), .credentials = json_object(), .root = ""};
}

void mirrors_fini(struct mirrors *m)
{
	arena_fini(&m->arena);
	json_decref(m->found);
	json_decref(m->credentials);
	*m = (struct mirrors){0};
}

/* ---- what was found ---- */

/* An address that can be fetched from, without its final slashes; NULL for any other. */
static char *clean_address(const char *address)
{
	static const char printable[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789-._~:/@!$&'()*+,;=[]%";
	size_t n = strlen(address);

	if (n > ADDRESS_BYTES || strspn(address, printable) != n)
		return NULL;
	while (n > 0 && address[n - 1] == '/')
		n--;
	if (str_starts(address, "file:/") && !str_starts(address, "file://")) /* apt's short form */
		return mem_printf("file://%.*s", (int)n - 5, address + 5);
	if (!str_starts(address, "http://") && !str_starts(address, "https://") &&
		!str_starts(address, "file:///"))
		return NULL;
	return mem_printf("%.*s", (int)n, address);
}

void mirror_found(struct mirrors *m, const char *name, const char *address)
{
	size_t n = strlen(name);
	auto_free char *clean = clean_address(address);

	if (!clean || n < 1 || n > NAME_BYTES || strspn(name, NAME_CHARS) != n)
		return;
	if (!mirror_is_found(m, name))
		json_object_set_new(m->found, name, json_string(clean));
}

bool mirror_is_found(const struct mirrors *m, const char *name)
{
	return json_is_string(json_object_get(m->found, name));
}

/* ---- names to addresses ---- */

static const struct {
	const char *name; /* NULL: any other */
	void (*ask)(struct mirrors *m, const char *name);
	const char *looked;
} hosts[] = {
	{"npm", mirror_ask_npm, "npm is not set up on this host, either"},
	{NULL, mirror_ask_apt, "none of this host's apt sources is it, either"},
};

static int unknown(const struct mirrors *m, const char *name, const char *looked, struct err *e)
{
	const char *const usual[] = {"debian", "debian-security", "ubuntu", "npm", NULL};
	const char *near = str_nearest(name, usual);

	err_set(e, ERR_NOT_FOUND, "mirror '%s' has no address: %s does not name it, and %s", name,
		m->config->path, looked);
	if (near && !str_eq(near, name))
		return err_hint(e, "did you mean 'mirror:%s'?", near);
	return err_hint(e, "write {\"mirrors\": {\"%s\": \"https://HOST/PATH\"}} to %s", name,
		m->config->path);
}

/* Address of a mirror, without a final slash. */
static const char *lookup(struct mirrors *m, const char *name, struct err *e)
{
	const char *site = config_mirror(m->config, name), *host;
	size_t i = 0;

	if (site)
		return site;
	while (hosts[i].name && !str_eq(hosts[i].name, name))
		i++;
	if (!json_object_get(m->found, name)) {
		hosts[i].ask(m, name);
		if (!mirror_is_found(m, name))
			json_object_set_new(m->found, name, json_null());
	}
	host = json_string_value(json_object_get(m->found, name));
	if (!host)
		unknown(m, name, hosts[i].looked, e);
	return host;
}

const char *mirror_url(struct mirrors *m, const char *uri, struct err *e)
{
	const char *rest, *address;
	char name[NAME_BYTES + 1];
	size_t n;

	if (str_starts(uri, "https://") || str_starts(uri, "http://"))
		return arena_strdup(&m->arena, uri);
	if (!str_starts(uri, "mirror:"))
		return err_set(e, ERR_USAGE,
			       "'%.200s': expected mirror:NAME/path, https:// or http://", uri),
		       NULL;
	uri += strlen("mirror:");
	n = strspn(uri, NAME_CHARS);
	rest = uri + n;
	if (n < 1 || n > NAME_BYTES || (*rest && *rest != '/'))
		return err_set(e, ERR_USAGE, "'mirror:%.200s': not the name of a mirror", uri),
		       NULL;
	memcpy(name, uri, n);
	name[n] = '\0';
	address = lookup(m, name, e);
	return address ? arena_printf(&m->arena, "%s%s", address, rest) : NULL;
}
