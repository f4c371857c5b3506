/* svrun-oci: what its verbs share. One verb or two in each svrun/oci-*.c; main-oci.c has the table.
 *
 * Exit statuses: 1 for any error of the runtime (255 for `exec` when the process could not be
 * started for another reason than its program), else that of the container's process. A verb that
 * returns -1 ends with 1; one that returns a status with e set has the error shown too. */
#ifndef SVRUN_OCI_H
#define SVRUN_OCI_H

#include <stdbool.h>

#include "gpu/cdi.h"
#include "svrun/command.h"
#include "svrun/options.h"
#include "svrun/state.h"

/* The options before the verb. */
struct oci {
	const char *root_path; /* --root */
	const char *log, *log_format;
	bool systemd_cgroup, no_cgroup, debug;
	const char *criu;                       /* --criu PATH; NULL: looked up in PATH */
	struct option_list cdi_dirs, cdi_hooks; /* --cdi-spec-dir, --cdi-allow-hook */
	bool no_cdi;                            /* --no-cdi */
};

struct oci_verb {
	struct command c; /* c.run is not used */
	bool protect;     /* it starts processes: self_protect() comes first */
	int (*run)(const struct oci *o, const struct command *self, int argc, char **argv,
		struct err *e);
};

/* Open --root, made when missing. */
int oci_root(const struct oci *o, struct err *e) must_check;
/* state_open() in it. */
int oci_open(
	const struct oci *o, const char *id, bool lock, struct state *s, struct err *e) must_check;
/* Write a pid into a file, as engines want it: no newline, replaced at once. */
int oci_pid_file(const char *path, pid_t pid, struct err *e) must_check;

/* What CDI and the toolkit's hooks add to a container (oci-cdi.c). Zeroed: nothing. */
struct oci_cdi {
	struct gpu_edits edits;
	struct cdi cdi;
};
/* spec_parse(), with what annotations (cdi.k8s.io/...) and hooks of NVIDIA's toolkit ask for put
 * into the config; where it has neither, nothing is opened. Nothing is in d on failure. */
int oci_cdi_parse(const struct oci *o, struct oci_cdi *d, struct spec *spec, const char *name,
	const char *text, size_t n, struct err *e) must_check;
/* The work that is left for when the container's root is there; d lives until then. */
struct container_options;
void oci_cdi_fill(struct oci_cdi *d, struct container_options *o);
void oci_cdi_fini(struct oci_cdi *d);

/* Read a bundle's config, compile its filter (nothing in *filter without one), and keep both in a
 * new container's folder. d: what CDI adds, to oci_cdi_fini(). */
int oci_read_bundle(const struct oci *o, struct state *s, struct spec *spec, struct oci_cdi *d,
	struct seccomp_prog *filter, const char *folder, const char *config,
	struct err *e) must_check;
/* Fill the rest of the state from the config, and write it: before anything else is made. */
int oci_describe(const struct oci *o, struct state *s, const struct spec *spec,
	const char *console_socket, struct err *e) must_check;
/* Kill what there is of a container, and remove all it has, its folder last. */
int oci_remove(const struct state *s, struct err *e) must_check;
/* --preserve-fds N (NULL: 0), and the LISTEN_FDS of our environment that are meant for us: *listen
 * of them come first. Errors: USAGE, also when one of them is not open. */
int oci_preserved(
	const char *preserve_fds, unsigned *n, unsigned *listen, struct err *e) must_check;
/* Tell the process of the *listen ones. */
void oci_listen_env(struct spec *s, unsigned listen);
/* The hooks that change nothing any more when they fail: each runs, and is warned of. */
void oci_late_hooks(const struct spec *s, enum hook_kind kind, const struct state *state,
	enum state_status status);
/* What a cgroup has used: the object "data" of runc's `events --stats` (cpu, memory, pids, blkio,
 * hugetlb ...), to json_decref(). What the host does not count is left out, or 0. (oci-stats.c) */
json_t *oci_stats(const struct cgroup *c);

#define OCI_VERB(name)                                                                             \
	int name(const struct oci *o, const struct command *self, int argc, char **argv,           \
		struct err *e)
OCI_VERB(oci_create);     /* oci-create.c */
OCI_VERB(oci_run);        /* oci-create.c */
OCI_VERB(oci_restore);    /* oci-checkpoint.c */
OCI_VERB(oci_checkpoint); /* oci-checkpoint.c */
OCI_VERB(oci_start);      /* oci-start.c */
OCI_VERB(oci_state);      /* oci-look.c */
OCI_VERB(oci_list);       /* oci-look.c */
OCI_VERB(oci_ps);         /* oci-look.c */
OCI_VERB(oci_kill);       /* oci-kill.c */
OCI_VERB(oci_delete);     /* oci-kill.c */
OCI_VERB(oci_pause);      /* oci-cgroup.c */
OCI_VERB(oci_resume);     /* oci-cgroup.c */
OCI_VERB(oci_update);     /* oci-cgroup.c */
OCI_VERB(oci_events);     /* oci-events.c */
OCI_VERB(oci_exec);       /* oci-exec.c */
OCI_VERB(oci_spec);       /* oci-spec.c */
OCI_VERB(oci_features);   /* oci-features.c */

#endif
