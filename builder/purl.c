#include "builder/purl.h"

#include <string.h>

#include "base/str.h"

enum { PURL_MAX = 64 << 10 };

/* What may stand as it is: RFC 3986's unreserved characters, and the colon. */
static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       strchr("-._~:", c);
}

/* Slashes of a namespace or of a value stay. */
static void put(struct buf *b, const char *text, bool slashes)
{
	for (const char *c = text; *c && b->len + 4 < b->max; c++)
		if (is_plain(*c) || (slashes && *c == '/'))
			buf_put(b, c, 1);
		else
			buf_printf(b, "%%%02X", (unsigned)(unsigned char)*c);
}

const char *purl_text(struct arena *a, const struct purl *p)
{
	auto_buf struct buf b = BUF_INIT(PURL_MAX);
	char between = '?';

	buf_printf(&b, "pkg:%s/", p->type);
	if (p->space) {
		put(&b, p->space, true);
		buf_put(&b, "/", 1);
	}
	put(&b, p->name, false);
	if (p->version) {
		buf_put(&b, "@", 1);
		put(&b, p->version, false);
	}
	for (size_t i = 0; i < sizeof(p->qualifiers) / sizeof(p->qualifiers[0]); i++) {
		if (!p->qualifiers[i].key || !p->qualifiers[i].value)
			continue;
		buf_put(&b, &between, 1);
		buf_printf(&b, "%s=", p->qualifiers[i].key);
		put(&b, p->qualifiers[i].value, true);
		between = '&';
	}
	return arena_strdup(a, b.data);
}

const char *purl_npm(struct arena *a, const char *name, const char *version)
{
	const char *slash = name[0] == '@' ? strchr(name, '/') : NULL;
	struct purl p = {.type = "npm", .name = slash ? slash + 1 : name, .version = version};

	if (slash)
		p.space = arena_strndup(a, name, (size_t)(slash - name));
	return purl_text(a, &p);
}
