#include "gpu/path.h"

#include <string.h>

/* The next name of a path, past "/" and "/./"; false at its end. */
static bool next_name(const char **p, size_t *n)
{
	for (;;) {
		*p += strspn(*p, "/");
		*n = strcspn(*p, "/");
		if (*n != 1 || **p != '.')
			return *n > 0;
		*p += *n;
	}
}

enum path_relation path_relate(const char *a, const char *b)
{
	size_t n, k;

	for (;;) {
		bool more = next_name(&a, &n), other = next_name(&b, &k);

		if (!more || !other)
			return more ? PATH_BELOW : other ? PATH_ABOVE : PATH_SAME;
		if (n != k || memcmp(a, b, n) != 0)
			return PATH_APART;
		a += n;
		b += k;
	}
}

bool path_is_new(const char *path)
{
	static const char *const roots[] = {"/dev", "/proc", "/sys"};

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		enum path_relation r = path_relate(path, roots[i]);

		if (r == PATH_SAME || r == PATH_BELOW)
			return true;
	}
	return false;
}

size_t path_depth(const char *path)
{
	size_t n, names = 0;

	for (; next_name(&path, &n); path += n)
		names++;
	return names;
}
