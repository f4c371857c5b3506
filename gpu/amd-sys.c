#include "gpu/amd-sys.h"

#include <string.h>

#include "base/str.h"

int kfd_number(const char *name, const char *text, const char *key, uint64_t max, uint64_t *v,
	struct err *e)
{
	size_t k = strlen(key);

	for (const char *line = text; *line;) {
		const char *end = strchrnul(line, '\n');
		size_t n = (size_t)(end - line);
		char number[24];

		if (n > k + 1 && memcmp(line, key, k) == 0 && line[k] == ' ') {
			n -= k + 1;
			if (n >= sizeof(number))
				n = sizeof(number) - 1;
			memcpy(number, line + k + 1, n);
			number[n] = '\0';
			if (str_u64(number, max, v) < 0)
				return err_set(e, ERR_CORRUPT, "%s: %s is not a number", name, key);
			return 1;
		}
		line = *end ? end + 1 : end;
	}
	return 0;
}

int kfd_properties_parse(
	struct kfd_properties *p, const char *name, const char *text, struct err *e)
{
	const struct {
		const char *key;
		uint64_t max;
		uint32_t *to;
	} numbers[] = {
		{"vendor_id", UINT32_MAX, &p->vendor},
		{"location_id", UINT32_MAX, &p->location},
		{"domain", UINT32_MAX, &p->domain},
		{"drm_render_minor", 4095, &p->render_minor},
		{"gfx_target_version", 10000000, &p->gfx},
	};

	*p = (struct kfd_properties){0};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint64_t v = 0;

		if (kfd_number(name, text, numbers[i].key, numbers[i].max, &v, e) < 0)
			return -1;
		*numbers[i].to = (uint32_t)v;
	}
	return kfd_number(name, text, "unique_id", UINT64_MAX, &p->unique_id, e) < 0 ? -1 : 0;
}

const char *kfd_gfx_name(uint32_t gfx, char out[16])
{
	snprintf(out, 16, "gfx%u%x%x", gfx / 10000, gfx / 100 % 100, gfx % 100);
	return out;
}
