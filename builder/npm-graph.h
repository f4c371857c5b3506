/* package-lock.json (version 2 or 3) as a graph: entries are placed packages, edges are what they
 * ask for, found the way node finds it. Which entries stay follows npm's own rules: an optional
 * package that is left out takes along what needs it, and what only it needed. */
#ifndef BUILDER_NPM_GRAPH_H
#define BUILDER_NPM_GRAPH_H

#include "base/json.h"
#include "builder/manifest.h"

/* One entry. All strings are the document's. */
struct npm_pkg {
	const char *key;     /* "node_modules/a/node_modules/b"; "" is the root */
	const char *name;    /* the registry's: an alias is placed under another one */
	const char *version; /* NULL: none given */
	json_t *j;
	bool dev, optional, dev_optional; /* as npm marked it */
	bool bundled;                     /* comes inside another package's tarball */
	bool gone;                        /* left out */
	bool reached;                     /* something that stays asks for it */
};

struct npm_edge {
	size_t from, to; /* of npm_graph.v */
	bool optional;
};

struct npm_graph {
	struct json_doc doc;
	const struct strings *omit;
	bool omit_dev;
	const char *os, *cpu, *libc; /* of the image, as node calls them */
	struct npm_pkg *v;           /* sorted by key: the root comes first */
	size_t n;
	struct npm_edge *edges; /* sorted by from */
	size_t nedges, cap;
	size_t *first; /* of edges, by entry; n + 1 of them */
	size_t lookups;
};

/* For a platform like "linux/amd64". omit: "dev", "optional:GLOB". UNSUPPORTED. */
int npm_graph_init(struct npm_graph *g, const char *platform, const struct strings *omit,
	struct err *e) must_check;
void npm_graph_fini(struct npm_graph *g);

/* Read the text of a lock; name is for errors: CORRUPT and UNSUPPORTED with file:line:col. Then
 * decide who is gone: an entry for another platform is, when it is optional; else it is
 * UNSUPPORTED. */
int npm_graph_read(struct npm_graph *g, const char *name, const void *text, size_t n,
	struct err *e) must_check;

/* FILE:LINE:COL: KEY: text. Returns -1. */
int npm_graph_bad(const struct npm_graph *g, const struct npm_pkg *p, enum err_kind kind,
	struct err *e, const char *fmt, ...) printf_like(5, 6);

/* A member that must be a string, or absent (NULL in *v). */
int npm_graph_text(const struct npm_graph *g, const struct npm_pkg *p, const char *key,
	const char **v, struct err *e) must_check;

#endif
