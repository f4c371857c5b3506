/* The Container Device Interface 1.1: specs of /etc/cdi and /var/run/cdi, JSON and YAML.
 * Specs are hostile: sizes, depths and counts have limits, unknown members are errors, anchors and
 * aliases of YAML are refused. A broken file is an error of the devices that it might have had, and
 * told when one of them is asked for; others go on. Source: the CDI specification, SPEC.md and its
 * schema; gpu.md 2.1, 2.2. */
#ifndef GPU_CDI_H
#define GPU_CDI_H

#include "gpu/edits.h"

enum { CDI_FILE_MAX = 4 << 20, CDI_DEPTH_MAX = 32, CDI_FILES_MAX = 4096 };

/* "vendor/class=name" */
struct cdi_name {
	char *vendor, *class, *name;
};
/* Errors: USAGE, says what is wrong with it. The members are parts of one block: free vendor. */
int cdi_name_parse(struct cdi_name *n, const char *text, struct err *e) must_check;

struct cdi_device {
	const char *vendor, *class, *name;
	const char *file;     /* its spec */
	const char *conflict; /* another file of the same folder that has it too; NULL: none */
	const json_t *device; /* borrowed from the spec */
	size_t spec;          /* number of its spec */
};
struct cdi_error {
	const char *file;
	const char *text; /* "FILE:LINE:COL: ..." or with a JSON pointer */
};
struct cdi {
	struct arena mem;
	json_t **specs; /* every readable spec's document */
	size_t nspecs;
	struct cdi_device
		*v; /* sorted by qualified name; of those of one name the one that counts */
	size_t n;
	struct cdi_error *errors;
	size_t nerrors;
	struct strings dirs;
};

/* Where they are, unless --cdi-spec-dir says otherwise. */
#define CDI_DIRS "/etc/cdi", "/var/run/cdi"
/* Read all specs of the folders; later folders win. A missing folder is an empty one; a file that
 * anybody may write is an error of its own, as are pipes, devices and folders by the name of a
 * spec. */
int cdi_load(struct cdi *c, const struct strings *dirs, struct err *e) must_check;
/* For cdi_resolve() of these names alone: files that have nothing of their kinds are opened and
 * read, but not parsed; what is wrong with those is not seen. Errors: USAGE, a malformed name. */
int cdi_load_for(struct cdi *c, const struct strings *dirs, const struct strings *names,
	struct err *e) must_check;
void cdi_fini(struct cdi *c);

/* Which hooks may be run as programs: "nvidia-ctk hook chmod" style names are done natively and
 * need no leave; others are DENIED by name unless their hookName's program is listed here. */
struct cdi_policy {
	struct strings hooks; /* absolute paths */
};
/* Add the edits of the named devices, in the order of the names: a spec's own once, then each
 * device's. Nodes without permissions get "rw" (m is of no use with CAP_MKNOD dropped). DENIED what
 * no container gets, whatever a spec says: mounts of the host's root, /proc, sockets and folders
 * below /run but NVIDIA's, of what the system consists of unless read-only, mounts that would
 * propagate back to the host, file systems other than tmpfs; hooks. NOT_FOUND lists every name that
 * cannot be had, the folders searched, and the errors of their files. Names and edits stay borrowed
 * from c. */
int cdi_resolve(const struct cdi *c, const struct strings *names, const struct cdi_policy *p,
	struct gpu_edits *x, struct err *e) must_check;

/* One hook of the toolkit: done natively (1, x learns of it), unknown (0), -1 with bad arguments.
 * The OCI config's own createContainer hooks (as engines write them) are asked the same. */
int cdi_hook_native(struct gpu_edits *x, const char *path, const struct strings *args,
	struct err *e) must_check;

/* With update-application-profile among the hooks: what it would have written, for the GPUs
 * (/dev/nvidiaN) among the nodes of x and a config's linux.devices (NULL: none). cdi_resolve() has
 * done it for its own. */
void cdi_profile(struct gpu_edits *x, const json_t *devices);

/* The names that a config's annotations ask for: keys "cdi.k8s.io/PLUGIN_ID", values comma lists.
 * Added to names, in the arena. USAGE: a malformed one. */
int cdi_annotations(const json_t *annotations, struct strings *names, struct arena *mem,
	struct err *e) must_check;

/* One document, as `svrun gpu cdi validate` checks it. CORRUPT: the first thing that is wrong. */
int cdi_validate(const json_t *spec, const char *name, struct err *e) must_check;
/* YAML or JSON text (by the name's ending) to a document, with the limits above. The caller owns.
 */
json_t *cdi_parse(const char *name, const char *text, size_t n, struct err *e) must_check;

#endif
