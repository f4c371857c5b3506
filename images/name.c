/* Names of images: their grammar, and finding the image that a person means. */
#include "images/store.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum { TAG_MAX = 128, PREFIX_MIN = 6 };

static bool lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* [a-z0-9]+ ( ("." | "_" | "__" | "-"+) [a-z0-9]+ )* ; returns what follows, NULL when malformed.
 */
static const char *component(const char *p)
{
	if (!lower_alnum(*p))
		return NULL;
	for (;;) {
		const char *sep;

		while (lower_alnum(*p))
			p++;
		sep = p;
		if (*p == '.')
			p++;
		else if (*p == '_')
			p += p[1] == '_' ? 2 : 1;
		else
			while (*p == '-')
				p++;
		if (p == sep)
			return p;
		if (!lower_alnum(*p))
			return NULL;
	}
}

static bool is_tag(const char *t)
{
	size_t n = strlen(t);

	if (n == 0 || n > TAG_MAX || t[0] == '.' || t[0] == '-')
		return false;
	for (; *t; t++)
		if (!isalnum((unsigned char)*t) && !strchr("_.-", *t))
			return false;
	return true;
}

int store_name_parse(const char *ref, char out[STORE_NAME], struct err *e)
{
	const char *p = component(ref);

	while (p && *p == '/')
		p = component(p + 1);
	if (!p || (*p && *p != ':') || (*p == ':' && !is_tag(p + 1)) || strlen(ref) > 255) {
		err_set(e, ERR_USAGE, "'%.300s' is not an image name", ref);
		return err_hint(
			e, "NAME or NAME:TAG: lower-case letters, digits and . _ - between them");
	}
	snprintf(out, STORE_NAME, "%s", ref);
	if (str_eq(p, ":latest"))
		out[p - ref] = '\0';
	return 0;
}

static int not_found(const struct store_name *v, size_t n, const char *ref, struct err *e)
{
	auto_free const char **names = mem_array(n + 1, sizeof(const char *));
	auto_buf struct buf list = BUF_INIT(1 << 20);
	const char *near;

	for (size_t i = 0; i < n; i++) {
		names[i] = v[i].name;
		if (i < 8)
			buf_printf(&list, "%s%s", i ? ", " : "", v[i].name);
	}
	err_set(e, ERR_NOT_FOUND, "no image '%s' in the store", ref);
	near = str_nearest(ref, names);
	if (near)
		return err_hint(e, "did you mean '%s'?", near);
	if (n == 0)
		return err_hint(e, "the store is empty; svrun image build makes images");
	return err_hint(e, "there are: %s%s", list.data, n > 8 ? ", ..." : "");
}

static int by_prefix(
	const struct store_name *v, size_t n, const char *prefix, struct digest *d, struct err *e)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		char hex[DIGEST_HEX + 1];

		if (!str_starts(digest_hex(&v[i].manifest, hex), prefix))
			continue;
		if (found && digest_eq(d, &v[i].manifest))
			continue;
		*d = v[i].manifest;
		found++;
	}
	if (found > 1)
		return err_set(e, ERR_USAGE, "'%s' begins %zu images' digests", prefix, found);
	return found ? 0 : not_found(v, n, prefix, e);
}

static int by_digest(struct store *s, const char *text, struct digest *d, struct err *e)
{
	if (digest_parse(d, text, e) < 0) {
		e->kind = ERR_USAGE;
		return -1;
	}
	return store_has(s, d) ? 0 : err_set(e, ERR_NOT_FOUND, "no image %s in the store", text);
}

static bool is_prefix(const char *ref)
{
	size_t n = strlen(ref);

	return n >= PREFIX_MIN && n <= DIGEST_HEX && strspn(ref, "0123456789abcdef") == n;
}

static int by_any(
	const struct store_name *v, size_t n, const char *ref, struct digest *d, struct err *e)
{
	char name[STORE_NAME];
	bool malformed = store_name_parse(ref, name, is_prefix(ref) ? NULL : e) < 0;

	for (size_t i = 0; !malformed && i < n; i++)
		if (str_eq(v[i].name, name)) {
			*d = v[i].manifest;
			return 0;
		}
	if (is_prefix(ref))
		return by_prefix(v, n, ref, d, e);
	return malformed ? -1 : not_found(v, n, ref, e);
}

int store_resolve(struct store *s, const char *ref, struct digest *manifest, struct err *e)
{
	const char *at = strchr(ref, '@');
	struct store_name *v;
	size_t n;
	int rc;

	if (at || str_starts(ref, "sha256:"))
		return by_digest(s, at ? at + 1 : ref, manifest, e);
	if (store_names(s, &v, &n, e) < 0)
		return -1;
	rc = by_any(v, n, ref, manifest, e);
	store_names_free(v, n);
	return rc;
}
