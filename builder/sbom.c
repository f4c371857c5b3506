#include "builder/sbom.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

int sbom_format_parse(const char *text, enum sbom_format *f, struct err *e)
{
	if (str_eq(text, "spdx") || str_eq(text, "spdx-2.3"))
		*f = SBOM_SPDX;
	else if (str_eq(text, "cyclonedx") || str_eq(text, "cyclonedx-1.5"))
		*f = SBOM_CYCLONEDX;
	else if (str_eq(text, "cyclonedx-1.6"))
		*f = SBOM_CYCLONEDX_1_6;
	else
		return err_set(e, ERR_USAGE,
			"expected spdx or cyclonedx (or cyclonedx-1.6), got '%.100s'", text);
	return 0;
}

const char *sbom_media_type(enum sbom_format f)
{
	return f == SBOM_SPDX ? "application/spdx+json" : "application/vnd.cyclonedx+json";
}

bool sbom_has(const struct bill_item *it)
{
	switch (it->kind) {
	case ORIGIN_DEB:
	case ORIGIN_WHEEL:
	case ORIGIN_NPM:
		return it->installed;
	case ORIGIN_SOURCE:
	case ORIGIN_MODEL:
		return it->files > 0;
	case ORIGIN_BASE:
		return it->purl != NULL;
	default:
		return false;
	}
}

/* The number makes it unique: two packages of npm, or two wheels in two folders, may share a name.
 */
char *sbom_ref(const struct bill *b, const struct bill_item *it, char out[SBOM_REF])
{
	size_t n = (size_t)snprintf(out, SBOM_REF, "%s-%.200s-%zu", bill_kind(it->kind), it->name,
		(size_t)(it - b->items));

	for (size_t i = 0; i < n && i < SBOM_REF; i++)
		if (!isalnum((unsigned char)out[i]) && out[i] != '.')
			out[i] = '-';
	return out;
}

char *sbom_image_name(const struct bill *b)
{
	return mem_printf("%s:%s", b->name, b->version);
}

void sbom_text(enum sbom_format f, const struct bill *b, const struct digest *manifest,
	const struct sbom_sums *sums, struct buf *out)
{
	auto_json json_t *j = f == SBOM_SPDX ? sbom_spdx(b, manifest, sums)
					     : sbom_cyclonedx(f == SBOM_CYCLONEDX ? "1.5" : "1.6",
						       b, manifest, sums);

	json_text(j, false, out);
}
