/* What gc.c and gc-files.c share. */
#ifndef IMAGES_GC_PRIVATE_H
#define IMAGES_GC_PRIVATE_H

#include "images/digest-map.h"
#include "images/gc.h"

struct gc {
	struct store *s;
	bool dry;
	struct gc_report *r;
	struct digest_map images; /* manifests, configs and layers that stay */
	struct digest_map chunks;
};

/* ROOT/blobs, indexes, layers; temporary files; parts of downloads. */
int gc_documents(struct gc *g, struct err *e) must_check;
/* Metadata images, each while nobody can start it. EXISTS: somebody just did. */
int gc_metadata(struct gc *g, struct err *e) must_check;

#endif
