/* A manifest and those that it names in `from`: read, each once, in the order in which they are
 * merged. */
#ifndef BUILDER_FAMILY_H
#define BUILDER_FAMILY_H

#include "builder/schema.h"
#include "builder/value.h"

enum {
	FAMILY_MAX = 64,        /* documents */
	FAMILY_DEPTH = 8,       /* generations above the first */
	MANIFEST_MAX = 1 << 20, /* bytes of one */
	COMPLAINTS_MAX = 100,   /* about one */
};

struct member {
	struct origin origin;
	char *path;
	const char *name; /* of a parent */
	struct value *root;
	const struct member *child; /* while its parents are read: who named it */
	bool done;
};

struct family {
	struct arena *arena;
	char *folder; /* that holds their folders */
	struct member *v[FAMILY_MAX];
	size_t n;                         /* v[0] is the one that was asked for */
	struct member *order[FAMILY_MAX]; /* parents before children */
	size_t ordered;
	bool partial; /* one could not be read */
};

/* Complaints go to the documents' reports. -1: the system failed. */
int family_read(struct family *f, struct arena *a, const char *path, const void *text, size_t n,
	const struct key *k, struct err *e) must_check;
void family_fini(struct family *f);

#endif
