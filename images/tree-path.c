#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "images/tree.h"

int tree_check_name(const char *name, size_t n, struct err *e)
{
	if (n == 0)
		return err_set(e, ERR_CORRUPT, "empty component");
	if (memchr(name, '/', n))
		return err_set(e, ERR_CORRUPT, "component '%.*s' has a slash", (int)n, name);
	if (n > TREE_NAME_MAX)
		return err_set(
			e, ERR_CORRUPT, "a component is longer than %d bytes", TREE_NAME_MAX);
	if ((n == 1 && name[0] == '.') || (n == 2 && name[0] == '.' && name[1] == '.'))
		return err_set(e, ERR_CORRUPT, "component '%.*s'", (int)n, name);
	if (n >= 4 && memcmp(name, ".wh.", 4) == 0) /* would delete a file when the layer is read */
		return err_set(
			e, ERR_CORRUPT, "names that begin with .wh. cannot be kept in an image");
	return 0;
}

int tree_check_path(const char *path, struct err *e)
{
	size_t len = strnlen(path, TREE_PATH_MAX + 1), depth = 0;
	char shown[STR_SHOWN]; /* a line break in a name must not forge a line */

	if (len > TREE_PATH_MAX)
		return err_set(e, ERR_CORRUPT, "path '%s' is longer than %d bytes",
			str_shown(path, shown), TREE_PATH_MAX);
	for (const char *p = path; len > 0;) {
		const char *end = strchrnul(p, '/');

		if (tree_check_name(p, (size_t)(end - p), e) < 0)
			return err_ctx(e, "path '%s'", str_shown(path, shown));
		if (++depth > TREE_DEPTH_MAX)
			return err_set(e, ERR_CORRUPT, "path '%s' has more than %d components",
				str_shown(path, shown), TREE_DEPTH_MAX);
		if (*end == '\0')
			break;
		p = end + 1;
	}
	return 0;
}

int tree_strip_path(const char *name, char *out, struct err *e)
{
	char shown[STR_SHOWN];
	size_t n = 0;

	for (const char *p = name; *p;) {
		const char *end = strchrnul(p, '/');
		size_t len = (size_t)(end - p);

		if (len > 0 && !(len == 1 && p[0] == '.')) {
			if (len + 1 > TREE_PATH_MAX - n)
				return err_set(e, ERR_CORRUPT, "path '%s' is longer than %d bytes",
					str_shown(name, shown), TREE_PATH_MAX);
			if (n > 0)
				out[n++] = '/';
			memcpy(out + n, p, len);
			n += len;
		}
		p = *end ? end + 1 : end;
	}
	out[n] = '\0';
	return 0;
}

int tree_clean_path(const char *name, char *out, struct err *e)
{
	return tree_strip_path(name, out, e) < 0 ? -1 : tree_check_path(out, e);
}

char *node_path(const struct node *n, char *out)
{
	size_t len = 0;

	for (const struct node *p = n; p->parent; p = p->parent)
		len += strlen(p->name) + (p->parent->parent ? 1 : 0);
	assert(len <= TREE_PATH_MAX);
	out[len] = '\0';
	for (const struct node *p = n; p->parent; p = p->parent) {
		size_t k = strlen(p->name);

		len -= k;
		memcpy(out + len, p->name, k);
		if (p->parent->parent)
			out[--len] = '/';
	}
	return out;
}
