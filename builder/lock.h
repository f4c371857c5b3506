/* The lock svrun.lock/1, lock.json beside the manifest: every input by digest. Machine-written,
 * sorted, byte-stable. */
#ifndef BUILDER_LOCK_H
#define BUILDER_LOCK_H

#include "builder/manifest.h"

struct lock_deb {
	const char *name, *version, *arch;
	const char *url;    /* "mirror:debian/pool/main/..." */
	const char *source; /* Debian source package: groups by origin */
	struct digest sha256;
	uint64_t size;
	bool essential;
	struct strings why; /* "manifest:/apt/packages/2", or the names of packages that need it */
};

/* What apt had verified when the lock was made. */
struct lock_index {
	const char *uri, *suite, *date;
	struct strings signed_by; /* fingerprints */
	struct digest release;    /* sha256 of InRelease */
};

struct lock_wheel {
	const char *name, *version; /* name normalised (PEP 503) */
	const char *file;           /* NAME-VERSION-TAGS.whl */
	const char *url; /* "mirror:pypi/...", https, or "file:PATH" beside the manifest */
	struct digest sha256;
	uint64_t size;
	struct strings why; /* "manifest:/python/wheels/2", "pylock.toml", or names that need it */
	struct strings extras; /* it was asked for as "name[extra]"; sorted */
};

struct lock_source { /* by manifest's sources[].id */
	const char *id, *url;
	const char *commit;        /* GIT */
	struct digest tree_sha256; /* GIT: canonical listing (source.h); has_tree */
	bool has_tree;
	struct digest sha256; /* ARCHIVE, FILE; OCI: manifest for this platform */
	uint64_t size;
};

struct lock_layer {
	struct digest digest, diff_id;
	uint64_t size;
};

struct lock_base {
	bool present;
	const char *ref;
	struct digest manifest, config; /* of the image for the lock's platform */
	struct lock_layer *layers;
	size_t nlayers;
};

struct lock_model { /* those fetched from somewhere: delivery layer and artifact */
	const char *id;
	struct digest set; /* sha256 of the sorted "HEX  PATH\n" lines of its files */
	struct model_file *files;
	size_t nfiles;
};

struct lock_npm {
	const char *path; /* the key in package-lock.json: "node_modules/a/node_modules/b" */
	const char *name, *version;
	const char *url;       /* "mirror:npm/NAME/-/BASE-VERSION.tgz" */
	const char *integrity; /* "sha512-BASE64" */
	struct pairs bin;      /* command -> path in the package */
};

struct lock_file {        /* files.from, node.lock and models: local inputs pinned by content */
	const char *path; /* relative to the manifest */
	struct digest sha256;
	uint64_t size;
};

struct lock {
	struct arena arena;
	struct digest manifest; /* canonical digest of the manifest it was made from */
	struct digest envelope; /* of engine, compressors and their versions: lock_envelope() */
	const char *platform;   /* "linux/amd64" */
	struct lock_index *indexes;
	size_t nindexes;
	struct lock_deb *debs; /* sorted by name, arch */
	size_t ndebs;
	struct lock_npm *npms; /* sorted by path */
	size_t nnpms;
	const char *python;        /* "3.11", of the base image's interpreter; NULL: debs tell */
	struct lock_wheel *wheels; /* sorted by name */
	size_t nwheels;
	struct lock_source *sources; /* sorted by id */
	size_t nsources;
	struct lock_model *models; /* sorted by id */
	size_t nmodels;
	struct lock_base base;
	struct lock_file *files; /* sorted by path */
	size_t nfiles;
	struct digest digest; /* of the lock's canonical JSON */
};

/* Read dir/lock.json. NOT_FOUND hints at `svrun image lock`; CORRUPT has file:line:col. Does not
 * check that it belongs to a manifest. */
int lock_load(struct lock *l, const char *dir, struct err *e) must_check;
/* The lock of m as it was loaded: lock_path() in its folder, lock.json where nothing was chosen,
 * lock.ENTRY.MODE.PLATFORM.json with those that were (PLATFORM: when it isn't this machine's). */
char *lock_path(const struct manifest *m); /* to be freed */
int lock_load_of(struct lock *l, const struct manifest *m, struct err *e) must_check;
int lock_save_of(const struct lock *l, const struct manifest *m, struct err *e) must_check;
/* The same from text in memory; name is what errors call it. */
int lock_parse(
	struct lock *l, const char *name, const void *text, size_t n, struct err *e) must_check;
/* Is l the lock of m? USAGE with the hint to lock again otherwise: every manifest key that names
 * inputs (base, apt, python, node, sources,
 * models, files.from) must agree; others may change without a new lock. */
int lock_check(const struct lock *l, const struct manifest *m, struct err *e) must_check;
/* Write dir/lock.json atomically, with lock_envelope(). */
int lock_save(const struct lock *l, const char *dir, struct err *e) must_check;
/* The text of lock.json. */
void lock_text(const struct lock *l, struct buf *b);
void lock_fini(struct lock *l);

/* What the packer is: an image of a lock with another envelope is made anew. */
struct digest lock_envelope(void);

/* Digest of the parts of a manifest that decide the inputs (goes into lock->manifest). */
struct digest lock_manifest_digest(const struct manifest *m);

#endif
