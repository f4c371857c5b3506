/* What codecs are called. Apart from frame.c, so that programs which only read documents need not
 * link compression libraries. */
#include "base/str.h"
#include "images/layer.h"

static const struct {
	const char *name, *media_type;
} codecs[] = {
	[CODEC_NONE] = {"none", "application/vnd.oci.image.layer.v1.tar"},
	[CODEC_ZSTD] = {"zstd", "application/vnd.oci.image.layer.v1.tar+zstd"},
	[CODEC_GZIP] = {"gzip", "application/vnd.oci.image.layer.v1.tar+gzip"},
};

const char *codec_name(enum codec c)
{
	return codecs[c].name;
}

const char *codec_media_type(enum codec c)
{
	return codecs[c].media_type;
}

int codec_parse(const char *name, enum codec *c)
{
	for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++)
		if (str_eq(name, codecs[i].name)) {
			*c = (enum codec)i;
			return 0;
		}
	return -1;
}
