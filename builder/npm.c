#include "builder/npm.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum {
	NAME_MAX_BYTES = 214, /* the npm registry's limit, scope included */
	NESTING_MAX = 64,     /* node_modules in node_modules */
	SHOWN = 200,          /* bytes of a hostile name in an error */
};

static const char modules[] = "node_modules/";

/* ---- names ---- */

/* Letters of the registry's old and new rules: nothing that a URL or a path would need escaped. */
static size_t name_part(const char *s)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-._~!'()*";
	size_t n = strspn(s, letters);

	return s[0] == '.' || (n == 12 && strncmp(s, "node_modules", 12) == 0) ? 0 : n;
}

/* Bytes of the name that s begins with; 0 when it begins with none. */
static size_t name_length(const char *s)
{
	size_t scope = 0, n;

	if (*s == '@') {
		scope = name_part(s + 1) + 2;
		if (scope == 2 || s[scope - 1] != '/')
			return 0;
	}
	n = name_part(s + scope);
	return n == 0 || scope + n > NAME_MAX_BYTES ? 0 : scope + n;
}

bool npm_is_name(const char *s)
{
	size_t n = name_length(s);

	return n > 0 && s[n] == '\0';
}

int npm_check_path(const char *path, struct err *e)
{
	const char *s = path;

	for (unsigned depth = 1;; depth++) {
		size_t n;

		if (!str_starts(s, modules))
			break;
		s += sizeof(modules) - 1;
		n = name_length(s);
		if (n == 0)
			break;
		s += n;
		if (*s == '\0')
			return tree_check_path(path, e);
		if (*s++ != '/')
			break;
		if (depth == NESTING_MAX)
			return err_set(e, ERR_CORRUPT,
				"'%.*s' is nested deeper than the limit of %d", SHOWN, path,
				NESTING_MAX);
	}
	return err_set(e, ERR_CORRUPT, "'%.*s' is no node_modules path of a package", SHOWN, path);
}

const char *npm_path_name(const char *path)
{
	const char *last = path;

	for (const char *s = path; (s = strstr(s, modules)); s += sizeof(modules) - 1)
		last = s + sizeof(modules) - 1;
	return last;
}

char *npm_place(const char *prefix, const char *path)
{
	size_t n;

	prefix += strspn(prefix, "/");
	n = strlen(prefix);
	while (n > 0 && prefix[n - 1] == '/')
		n--;
	return mem_printf("%.*s%s%s", (int)n, prefix, n ? "/" : "", path);
}

int npm_check_bin(const struct pair *bin, struct err *e)
{
	char clean[TREE_PATH_MAX + 1];

	if (!bin->name[0] || strchr(bin->name, '/') || tree_check_path(bin->name, e) < 0)
		return err_set(e, ERR_CORRUPT, "command '%.*s' is no file name", SHOWN, bin->name);
	if (bin->value[0] == '/' || tree_clean_path(bin->value, clean, e) < 0 || !clean[0])
		return err_set(e, ERR_CORRUPT, "command %.*s: '%.*s' is no path in its package",
			SHOWN, bin->name, SHOWN, bin->value);
	return 0;
}

/* ---- integrity ---- */

static int base64_value(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *p = c ? strchr(digits, c) : NULL;

	return p ? (int)(p - digits) : -1;
}

/* 64 bytes: 86 digits, whose last one has four bits to spare, and "==". */
static int decode64(const char *s, uint8_t out[64])
{
	unsigned bits = 0, n = 0;
	size_t at = 0;

	for (; n < 86; n++) {
		int v = base64_value(s[n]);

		if (v < 0)
			return -1;
		bits = bits << 6 | (unsigned)v;
		if (n % 4 != 0)
			out[at++] = (uint8_t)(bits >> (6 - n % 4 * 2));
		if (at == 64)
			break;
	}
	if (bits & 15)
		return -1;
	s += 86;
	return strncmp(s, "==", 2) == 0 && (s[2] == '\0' || s[2] == ' ' || s[2] == '?') ? 0 : -1;
}

int npm_integrity(const char *text, uint8_t out[64], struct err *e)
{
	for (const char *s = text; *s; s += strcspn(s, " ")) {
		s += strspn(s, " ");
		if (str_starts(s, "sha512-"))
			return decode64(s + 7, out) == 0
				       ? 0
				       : err_set(e, ERR_CORRUPT,
						 "integrity '%.*s' is no sha512 in base64", SHOWN,
						 text);
	}
	if (strstr(text, "sha1-"))
		return err_set(e, ERR_UNSUPPORTED,
			"integrity '%.*s' is only a sha1, which proves nothing; sha512 is needed",
			SHOWN, text);
	return err_set(e, ERR_CORRUPT, "integrity '%.*s' has no sha512", SHOWN, text);
}

/* ---- node_modules/.bin ---- */

/* One command, as npm does it: what the package does not have is skipped, and of two packages that
 * bring the same command the first one has it. */
static int link_bin(struct tree *t, const char *place, const struct pair *bin, struct attr *a,
	uint32_t origin, struct err *e)
{
	const char *rest = npm_path_name(place); /* "@scope/name" */
	char file[TREE_PATH_MAX + 1];
	struct node *target;

	if (npm_check_bin(bin, e) < 0 || tree_clean_path(bin->value, file, e) < 0)
		return -1;

	auto_free char *full = mem_printf("%s/%s", place, file);
	auto_free char *at = mem_printf("%.*s.bin/%s", (int)(rest - place), place, bin->name);
	auto_free char *relative = mem_printf("../%s/%s", rest, file);

	target = tree_resolve(t, full);
	if (!target || tree_resolve(t, at))
		return 0;
	if (target->a.type == NODE_HARDLINK)
		target = target->link;
	if (target->a.type == NODE_FILE)
		target->a.mode = 0755;
	a->target = relative;
	return tree_put(t, at, a, origin, e) ? 0 : -1;
}

int npm_bins(struct tree *t, const struct lock *l, const char *prefix, int64_t epoch,
	uint32_t origin, struct err *e)
{
	struct attr a = {.type = NODE_SYMLINK, .mode = 0777, .mtime = epoch};

	for (size_t i = 0; i < l->nnpms; i++) {
		const struct lock_npm *n = &l->npms[i];
		auto_free char *place = npm_place(prefix, n->path);

		if (npm_check_path(n->path, e) < 0)
			return -1;
		for (size_t k = 0; k < n->bin.n; k++)
			if (link_bin(t, place, &n->bin.v[k], &a, origin, e) < 0)
				return err_ctx(e, "npm package %s", n->path);
	}
	return 0;
}
