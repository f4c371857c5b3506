#include "images/descriptor.h"

#include "base/json.h"

int descriptor_read(struct descriptor *d, const json_t *o, struct err *e)
{
	const char *text = json_str(o, "digest", e);

	*d = (struct descriptor){.annotations = json_object_get(o, "annotations")};
	d->media_type = text ? json_str(o, "mediaType", e) : NULL;
	if (!d->media_type || digest_parse(&d->digest, text, e) < 0)
		return -1;
	return json_u64(o, "size", INT64_MAX, &d->size, e);
}
