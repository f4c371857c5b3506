/* The manifest svrun.image/1: parsed, validated, with its defaults filled in.
 *
 * Every error is reported, not just the first, as
 *   FILE:LINE:COL: SVnnn /json/pointer: message; expected ..., got ...; hint
 * A parsed manifest lives in its arena. Paths of local inputs are relative to the manifest's
 * folder.
 */
#ifndef BUILDER_MANIFEST_H
#define BUILDER_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "images/digest.h"
#include "images/layer.h"

struct pair {
	const char *name, *value;
};

struct pairs {
	struct pair *v;
	size_t n;
};

struct apt_source {
	const char *uri; /* "mirror:NAME" with an optional path behind it */
	struct strings suites, components;
	bool check_valid_until; /* default true; false: take Release files past their date */
	const char *signed_by;  /* "keyring:NAME": /usr/share/keyrings/NAME-keyring.gpg; or a path
				   beside the manifest */
};

enum apt_configure { APT_BUILTIN, APT_NONE };

struct manifest_apt {
	bool present;
	struct apt_source *sources;
	size_t nsources;
	struct strings packages; /* "name", "name=version", "name/suite", "?essential" */
	bool recommends;         /* default false */
	enum apt_configure configure;
	bool merge_usr;            /* "merge": "usr", the default and only value */
	struct pairs alternatives; /* alternative's name or its link
				      ("libblas.so.3-x86_64-linux-gnu") -> target path */
	struct strings prune;      /* apt-lists doc man info locale:!LANG pyc */
};

struct manifest_node {
	bool present;
	const char *lock;    /* package-lock.json beside the manifest */
	const char *prefix;  /* absolute; node_modules goes below it */
	struct strings omit; /* "dev", "optional:GLOB" (GLOB matches the package name) */
};

struct manifest_file {
	const char *id;          /* may be NULL */
	const char *dest;        /* absolute */
	const char *inline_text; /* one of these two */
	const char *from;        /* a file beside the manifest */
	uint32_t mode, uid, gid; /* default 0644 */
};

struct manifest_dir {
	const char *path;
	uint32_t mode, uid, gid; /* default 0755 */
};

struct manifest_link {
	const char *path, *target;
};

struct model_file {
	const char *path; /* below the model's target, relative */
	struct digest sha256;
	uint64_t size;
};

enum model_source { MODEL_FILE, MODEL_HTTPS };

struct manifest_model {
	const char *id, *target, *format; /* target: absolute folder */
	enum model_source source;
	const char *source_path; /* FILE: folder or file beside the manifest */
	const char *source_url;  /* HTTPS: "mirror:NAME/path" or https://...; a single file, or a
				    folder of them */
	struct model_file *files;
	size_t nfiles;
};

struct manifest_port {
	uint32_t port;
	const char *name, *protocol;
};

struct layer_group {
	const char *id;
	struct strings match; /* deb:GLOB npm:GLOB model:ID path:GLOB */
};

enum layer_strategy { LAYERS_GROUPS, LAYERS_ORIGIN, LAYERS_SINGLE };

struct manifest_build {
	int64_t epoch; /* seconds; mtimes are clamped to it, "created" is it. Default 0 */
	enum layer_strategy strategy;
	uint32_t max_layers; /* default 24, at most 100 */
	struct layer_group *groups;
	size_t ngroups;
	enum codec codec;        /* default zstd */
	int level;               /* default 3 */
	enum codec models_codec; /* default none */
};

struct manifest {
	struct arena arena;
	struct json_doc doc;
	char *path, *dir;     /* the file, and its folder */
	struct digest digest; /* of the document as canonical JSON (sorted, compact) */

	const char *name, *version, *title, *description;
	struct strings licenses;
	struct manifest_apt apt;
	struct manifest_node node;
	struct manifest_file *files;
	size_t nfiles;
	struct manifest_dir *dirs;
	size_t ndirs;
	struct manifest_link *links;
	size_t nlinks;
	struct manifest_model *models;
	size_t nmodels;
	struct pairs env; /* sorted by name; values may hold ${runtime:cpus|gpus|memMiB} */
	const char *user, *workdir, *stop_signal;
	struct strings entrypoint, cmd;
	bool has_entrypoint, has_cmd;
	struct manifest_port *ports;
	size_t nports;
	struct pairs labels;
	struct manifest_build build;
};

/* Where all the complaints go: one line each, in the order of the document. */
struct complaints {
	struct buf text;
	size_t count;
};

/* Load APP: the path of a manifest, or of a folder with a manifest.json, or a name NAME looked up
 * as manifests/NAME/manifest.json below the current folder. On -1 with complaints, e is USAGE "N
 * errors in FILE" and c holds them. */
int manifest_load(
	struct manifest *m, const char *app, struct complaints *c, struct err *e) must_check;
/* The same from text in memory; path is what errors call it, and its folder is m->dir. */
int manifest_parse(struct manifest *m, const char *path, const void *text, size_t n,
	struct complaints *c, struct err *e) must_check;
void manifest_fini(struct manifest *m);
void complaints_fini(struct complaints *c);

/* What this machine builds, the only entry that "platforms" may have: "linux/amd64". */
const char *manifest_platform(void);

#endif
