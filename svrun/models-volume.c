#include "svrun/models-volume.h"

#include "base/mem.h"
#include "base/str.h"

const char *models_volume(const char *target, const char *const *volumes, size_t n, char **folder)
{
	const char *rest = NULL;
	size_t longest = 0;

	for (size_t i = 0; i < n; i++) {
		const char *colon = strchr(volumes[i], ':'), *to = colon ? colon + 1 : "";
		size_t len = strcspn(to, ":");

		while (len > 1 && to[len - 1] == '/')
			len--;
		if (len < 2 || len < longest || strncmp(target, to, len) != 0 ||
			(target[len] && target[len] != '/'))
			continue;
		free(*folder);
		*folder = mem_printf("%.*s", (int)(colon - volumes[i]), volumes[i]);
		longest = len;
		rest = target + len + (target[len] == '/');
	}
	return rest;
}
