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

/* ---- what goes in ---- */

enum base_type { BASE_SCRATCH, BASE_OCI };

struct manifest_base {
	enum base_type type;
	const char *ref;                   /* OCI: a registry reference, or "store:NAME" */
	struct digest digest;              /* of its manifest or index */
	const char *key; /* verify.key: PEM beside the manifest; or NULL */
	bool identity;   /* verify.identity: who signed it without a key (images/identity.h) */
	const char *issuer, *subject, *root; /* root: of the site's; NULL: its only one */
};

struct apt_source {
	const char *uri; /* "mirror:NAME" with an optional path behind it */
	struct strings suites, components;
	const char *snapshot;   /* YYYYMMDDTHHMMSSZ, or NULL */
	bool check_valid_until; /* default true; false: take Release files past their date */
	const char *signed_by;  /* "keyring:NAME": /usr/share/keyrings/NAME-keyring.gpg; or a path
				   beside the manifest */
};

enum apt_configure { APT_BUILTIN, APT_DPKG, APT_NONE };
enum apt_database { DATABASE_DPKG, DATABASE_STATUS_D, DATABASE_NONE };

struct manifest_apt {
	bool present;
	struct apt_source *sources;
	size_t nsources;
	struct strings packages; /* "name", "name=version", "name/suite", "?essential" */
	struct strings holds;    /* names that `apt-get upgrade` in the image leaves alone */
	struct pairs pins;       /* name -> version pattern ("2.3.*"), for the resolver */
	bool recommends;         /* default false */
	enum apt_configure configure;
	enum apt_database database;
	bool merge_usr;            /* "merge": "usr", the default and only value */
	struct pairs alternatives; /* alternative's name or its link
				      ("libblas.so.3-x86_64-linux-gnu") -> target path */
	struct strings prune;      /* apt-lists doc man info locale:!LANG pyc */
};

struct wheel_pin {
	const char *name, *version;
	const char *file; /* the wheel's file name, which has its tags */
	const char *path; /* beside the manifest ... */
	const char *url;  /* ... or "mirror:pypi/..." or https; both NULL: mirror:pypi by name */
	struct digest sha256;
	uint64_t size;
};

enum bytecode { BYTECODE_NONE, BYTECODE_UNCHECKED_HASH };

struct manifest_python {
	bool present;
	const char *interpreter; /* absolute, in the image; default /usr/bin/python3 */
	const char *prefix;      /* absolute: a venv that is made there, or "/usr/local" */
	const char *lock;        /* beside the manifest: pylock.toml (PEP 751), or requirements with
				    --hash; NULL: only wheels */
	struct wheel_pin *wheels;
	size_t nwheels;
	enum bytecode bytecode; /* default unchecked-hash */
	struct pairs guard;     /* distribution -> version specifier that must hold at the end */
};

struct manifest_node {
	bool present;
	const char *lock;    /* package-lock.json beside the manifest */
	const char *prefix;  /* absolute; node_modules goes below it */
	struct strings omit; /* "dev", "optional:GLOB" (GLOB matches the package name) */
	struct strings
		scripts; /* packages whose install scripts run, in the sandbox; default none */
};

enum source_type { SOURCE_GIT, SOURCE_ARCHIVE, SOURCE_FILE, SOURCE_INLINE, SOURCE_OCI };

struct manifest_source {
	const char *id;
	enum source_type type;
	const char *url;           /* GIT, ARCHIVE, FILE: "mirror:NAME/path", https, or "file:PATH"
				      beside the manifest; OCI: a reference */
	const char *inline_text;   /* INLINE */
	const char *commit;        /* GIT: 40 hex */
	struct digest sha256;      /* ARCHIVE, FILE; OCI: of the manifest */
	uint64_t size;             /* ARCHIVE, FILE */
	struct digest tree_sha256; /* GIT: of the canonical listing (source.h); has_tree */
	bool has_tree;
	uint32_t strip;                  /* leading path components that go */
	struct strings include, exclude; /* globs of paths after strip */
	const char *dest;                /* absolute */
	uint32_t mode;                   /* FILE, INLINE; default 0644 */
	uint32_t uid, gid;               /* of all that it brings */
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

struct manifest_user {
	const char *name, *home, *shell; /* home may be NULL: /home/NAME; shell: /bin/sh */
	uint32_t uid, gid;
	struct strings groups;
};

struct manifest_group {
	const char *name;
	uint32_t gid;
};

/* ---- models ---- */

struct model_file {
	const char *path; /* below the model's target, relative */
	struct digest sha256;
	uint64_t size;
};

enum model_format { FORMAT_OTHER, FORMAT_SAFETENSORS, FORMAT_GGUF, FORMAT_ONNX, FORMAT_CKPT };
enum model_source { MODEL_FILE, MODEL_HTTPS, MODEL_HF, MODEL_S3, MODEL_OCI };
/* LAYER: a layer of the image. ARTIFACT: an OCI artifact of its own that the image names, fetched
 * beside it. RUNTIME: fetched at the first start, into a volume. VOLUME: the user brings it. */
enum model_delivery { DELIVERY_LAYER, DELIVERY_ARTIFACT, DELIVERY_RUNTIME, DELIVERY_VOLUME };
enum license_acceptance { ACCEPT_NONE, ACCEPT_USER, ACCEPT_ORG };
enum license_redistribute { REDISTRIBUTE_YES, REDISTRIBUTE_NO, REDISTRIBUTE_WITH_NOTICE };

struct model_license {
	bool present;
	const char *spdx, *name, *url, *notice;
	bool gated, non_commercial;
	enum license_acceptance acceptance;
	enum license_redistribute redistribute;
	struct strings excluded_territories;
	uint64_t max_monthly_users; /* 0: no limit */
};

struct manifest_model {
	const char *id, *target; /* target: absolute folder */
	enum model_format format;
	enum model_delivery delivery;
	bool optional, allow_pickle;
	const char *parameters, *quantization;
	uint32_t vram_gib;
	enum model_source source;
	const char *source_path; /* FILE: folder or file beside the manifest */
	const char *source_url;  /* HTTPS, S3: "mirror:NAME/path" or https://...; a single file, or
				    a folder of them. OCI: a reference */
	const char *repo, *revision; /* HF: mirror:huggingface/REPO/resolve/REVISION/PATH */
	struct strings include, exclude;
	const char *secret; /* id of --secret that authorises the fetch */
	struct model_file *files;
	size_t nfiles;
	struct pairs links; /* path -> target, symbolic */
	struct model_license license;
};

/* ---- steps ---- */

struct run_secret {
	const char *id, *target; /* target: absolute; default /run/secrets/ID */
	bool required;           /* default true */
};

struct run_cache {
	const char *id, *target;
};

struct manifest_run {
	const char *id;
	struct strings argv;              /* or script, run by interpreter */
	const char *script, *interpreter; /* default /bin/sh */
	struct strings inputs;            /* ids of sources, files and steps that it sees */
	struct pairs env;
	bool network; /* default false */
	struct run_secret *secrets;
	size_t nsecrets;
	struct run_cache *caches;
	size_t ncaches;
	struct strings writes; /* globs of absolute paths; required, may be empty */
	const char *user, *workdir;
	uint32_t timeout_ms, memory_mib, cpus, disk_mib; /* default 600000; 0: none of its own */
};

/* ---- what runs ---- */

enum restart { RESTART_NO, RESTART_ON_FAILURE, RESTART_ALWAYS };

struct manifest_service {
	const char *id, *user, *workdir;
	struct strings argv, after;
	struct pairs env;
	enum restart restart;
	uint32_t *ports;
	size_t nports;
};

enum port_auth { AUTH_NONE, AUTH_TOKEN };

struct manifest_port {
	uint32_t port;
	const char *name, *protocol; /* http https tcp udp */
	const char *path, *label;    /* of the page to open; may be NULL */
	bool primary;
	enum port_auth auth;
};

enum volume_purpose { VOLUME_WORKSPACE, VOLUME_MODELS, VOLUME_CACHE, VOLUME_SECRETS };

struct manifest_volume {
	const char *path,
		*bind; /* bind: a path on the host that the site must allow; may be NULL */
	enum volume_purpose purpose;
	uint32_t size_gib;
	bool read_only;
};

enum gpu_mode { GPU_NONE, GPU_OPTIONAL, GPU_REQUIRED };
enum gpu_vendor { GPU_ANY, GPU_NVIDIA, GPU_AMD, GPU_INTEL };
enum gpu_per { PER_UNSET, PER_GPU, PER_TOTAL };
enum gpu_interconnect { LINK_NONE, LINK_NVLINK, LINK_RDMA };

struct manifest_gpu {
	bool present;
	enum gpu_mode mode;
	enum gpu_vendor vendor;
	uint32_t count_min, count_max, count_default; /* 0: not said */
	uint32_t vram_min, vram_recommended;          /* GiB */
	enum gpu_per vram_per;
	const char *cc_min, *cc_max;                /* "8.0" */
	const char *cuda_min, *cuda_max;            /* "12.8" */
	const char *driver_min;                     /* "525", "525.60.13" */
	struct strings capabilities, archs, brands; /* archs: "8.0", "9.0+PTX" */
	bool forward_compat, mig;                   /* mig default true: allowed */
	enum gpu_interconnect interconnect;
};

struct manifest_resources {
	uint32_t cpu_min, cpu_recommended, memory_min, memory_recommended; /* MiB */
	uint32_t image_gib, workspace_gib, shm_mib, pids;
	struct pairs ulimits; /* "nofile" -> "SOFT[:HARD]" */
};

enum probe_kind { PROBE_NONE, PROBE_HTTP, PROBE_TCP, PROBE_EXEC };

struct manifest_probe {
	enum probe_kind kind; /* NONE: there is no such probe */
	uint32_t port;
	const char *path, *body_matches; /* an extended regular expression */
	uint32_t *status;                /* accepted; none: 200 to 399 */
	size_t nstatus;
	struct pairs headers;
	struct strings argv;
	uint32_t period_ms, timeout_ms, failure_threshold, initial_delay_ms;
};

struct manifest_health {
	struct manifest_probe startup, readiness, liveness;
};

/* A named overlay, and the keys that it has: already applied when it was asked for. What it does
 * not say is zero here, and the manifest's when it is applied. */
struct manifest_mode {
	const char *name, *description;
	struct manifest_gpu gpu;
	struct manifest_python python;
	struct manifest_node node;
	struct manifest_model *models;
	size_t nmodels;
	struct pairs env;
	struct strings entrypoint, cmd;
	bool has_entrypoint, has_cmd;
	struct manifest_resources resources;
	struct manifest_health health;
	struct manifest *applied; /* the whole manifest in this mode; NULL while one is applied */
};

/* ---- tests ---- */

enum test_stage { STAGE_PLAN, STAGE_IMAGE, STAGE_RUN };
enum test_type {
	TEST_FILE,
	TEST_METADATA,
	TEST_LINT,
	TEST_ELF,
	TEST_PYTHON_GUARD,
	TEST_EXEC,
	TEST_HTTP,
	TEST_PORT,
	TEST_SIZE
};

struct test_json {
	const char *pointer;
	const json_t *equals; /* or NULL; borrowed from the document */
	bool has_minimum, has_min_length;
	double minimum;
	uint64_t min_length; /* of a string, array or object */
};

struct test_expect {
	int exit;                     /* default 0 */
	const char *equals, *matches; /* of standard output; matches: extended regular expression */
	struct strings contains;
	bool has_number_at_least;
	double number_at_least;
	uint32_t *status; /* HTTP; none: 200 to 299 */
	size_t nstatus;
	struct test_json *json; /* of the answer's body, or of standard output */
	size_t njson;
	struct strings unresolved, allow_unresolved; /* ELF: names of libraries */
	uint64_t max_bytes;                          /* SIZE: of all layers, compressed */
	uint32_t max_layers;
	/* FILE */
	bool absent;              /* there is no such file */
	const char *type;         /* file dir link; NULL: any */
	const char *target;       /* of a link */
	const char *mode, *owner; /* "0755", "0:0" */
	struct digest sha256;
	bool has_sha256;
	/* METADATA: parts of the OCI config */
	struct pairs env, labels;
	struct strings entrypoint, cmd, ports;
	const char *user, *workdir;
};

struct manifest_test {
	const char *id;
	enum test_stage stage;
	enum test_type type;
	const char *mode;                   /* of the manifest to run it in, or NULL */
	bool needs_gpu, required, disabled; /* required default true */
	struct strings paths;               /* globs: FILE, ELF, SIZE */
	struct strings rules;               /* LINT: "SV120"; none: all that are errors */
	struct strings argv;                /* EXEC */
	struct pairs env;
	const char *user, *workdir;
	const char *method, *path, *body; /* HTTP */
	uint32_t port;
	struct pairs headers;
	const json_t *json; /* HTTP: body as JSON; or NULL */
	bool after_readiness;
	uint32_t timeout_ms; /* default 30000 */
	struct test_expect expect;
};

/* ---- the marketplace's form ---- */

enum input_type {
	INPUT_STRING,
	INPUT_INTEGER,
	INPUT_BOOLEAN,
	INPUT_SELECT,
	INPUT_SECRET,
	INPUT_MODEL
};

struct manifest_input {
	const char *env, *var; /* one of them */
	enum input_type type;
	const char *title, *description;
	bool has_min, has_max, required, advanced;
	int64_t min, max;
	struct strings options;
};

struct manifest_preset {
	const char *id, *title;
	struct pairs values; /* input's env or var -> value */
};

/* ---- the build ---- */

struct layer_group {
	const char *id;
	struct strings match; /* deb:GLOB whl:GLOB npm:GLOB model:ID path:GLOB run:ID source:ID */
};

enum layer_strategy { LAYERS_GROUPS, LAYERS_ORIGIN, LAYERS_SINGLE };

struct scan_allow {
	const char *id, *until, *reason; /* until: YYYY-MM-DD */
};

struct manifest_build {
	int64_t epoch; /* seconds; mtimes are clamped to it, "created" is it. Default 0 */
	enum layer_strategy strategy;
	uint32_t max_layers; /* default 24, at most 100 */
	struct layer_group *groups;
	size_t ngroups;
	enum codec codec;         /* default zstd */
	int level;                /* default 3 */
	enum codec models_codec;  /* default none */
	struct strings sbom;      /* spdx-2.3, cyclonedx-1.5: attached at push */
	bool provenance;          /* "slsa-v1" */
	bool scan;                /* look for known vulnerabilities (scan.h) */
	const char *scan_fail_on; /* low medium high critical; NULL: no gate */
	bool scan_ignore_unfixed;
	struct scan_allow *allow;
	size_t nallow;
	bool squash;
	struct strings volatiles; /* globs of paths that never reach a layer */
};

/* ---- the document ---- */

enum var_type { VAR_STRING, VAR_INTEGER, VAR_BOOLEAN };

struct manifest_var {
	const char *name;
	enum var_type type;
	const char *title, *pattern;
	const json_t *value; /* what it is: the default, the matrix's, or --var's */
	bool has_min, has_max;
	int64_t min, max;
	struct strings choices; /* "enum", as text */
};

/* Of the matrix. */
struct manifest_entry {
	const char *id;
};

struct manifest {
	struct arena arena;
	struct resolved *source; /* resolve.h: documents, their places, the merged one */
	struct json_doc doc;     /* the merged document's tree; its text is its canonical form */
	char *path, *dir;        /* the file, and its folder */
	struct digest digest;    /* of the merged document as canonical JSON (sorted, compact) */

	const char *name, *version, *title, *description, *category;
	const char *mode;     /* the mode that was applied, or NULL */
	const char *matrix;   /* the id of the matrix entry that was applied, or NULL */
	const char *platform; /* the one of platforms that was chosen */
	struct strings licenses, platforms;
	struct manifest_var *vars;
	size_t nvars;
	struct manifest_entry *entries; /* of the matrix */
	size_t nentries;
	struct manifest_base base;
	struct manifest_apt apt;
	struct manifest_python python;
	struct manifest_node node;
	struct manifest_source *sources;
	size_t nsources;
	struct manifest_file *files;
	size_t nfiles;
	struct manifest_dir *dirs;
	size_t ndirs;
	struct manifest_link *links;
	size_t nlinks;
	struct manifest_model *models;
	size_t nmodels;
	struct manifest_run *runs;
	size_t nruns;
	struct manifest_user *users;
	size_t nusers;
	struct manifest_group *groups;
	size_t ngroups;
	struct pairs env; /* sorted by name; values may hold ${runtime:cpus|gpus|memMiB} */
	const char *user, *workdir, *stop_signal;
	uint32_t stop_timeout_ms; /* 0: not said */
	bool init;
	struct strings entrypoint, cmd;
	bool has_entrypoint, has_cmd;
	struct manifest_service *services;
	size_t nservices;
	struct manifest_port *ports;
	size_t nports;
	struct manifest_volume *volumes;
	size_t nvolumes;
	struct manifest_gpu gpu;
	struct manifest_mode *modes; /* those it has; none is left to apply */
	size_t nmodes;
	struct manifest_resources resources;
	struct manifest_health health;
	struct manifest_test *tests;
	size_t ntests;
	struct manifest_input *inputs;
	size_t ninputs;
	struct manifest_preset *presets;
	size_t npresets;
	const char *icon, *readme; /* files beside the manifest */
	struct pairs labels, annotations;
	struct manifest_build build;
};

/* Where all the complaints go: one line each, in the order of the document. */
struct complaints {
	struct buf text;
	size_t count;
};

/* Which of the images that a manifest describes. */
struct manifest_choice {
	const char *mode;     /* NULL: none */
	const char *matrix;   /* an entry's id; NULL: the first, where there is a matrix */
	const char *platform; /* "linux/amd64"; NULL: this machine's */
	struct pairs vars;    /* --var NAME=VALUE */
};

/* Load APP: the path of a manifest, or of a folder with a manifest.json, or a name NAME looked up
 * as manifests/NAME/manifest.json below the current folder. `from`, vars, matrix and mode are
 * applied (resolve.h). choice may be NULL. On -1 with complaints, e is USAGE "N errors in FILE" and
 * c holds them. */
int manifest_load(struct manifest *m, const char *app, const struct manifest_choice *choice,
	struct complaints *c, struct err *e) must_check;
/* The same from text in memory; path is what errors call it, and its folder is m->dir. */
int manifest_parse(struct manifest *m, const char *path, const void *text, size_t n,
	const struct manifest_choice *choice, struct complaints *c, struct err *e) must_check;
/* Put "FILE:LINE:COL" before the message of e, which is about the value at a JSON pointer of the
 * merged document: the file is that which the value came from. Returns -1. */
int manifest_at(const struct manifest *m, const char *pointer, struct err *e);
void manifest_fini(struct manifest *m);
void complaints_fini(struct complaints *c);

/* What this machine builds, the only entry that "platforms" may have: "linux/amd64". */
const char *manifest_platform(void);

#endif
