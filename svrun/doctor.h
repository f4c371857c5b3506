/* svrun doctor: is this host fit for what svrun does? Each file looks at one part of the host,
 * tries things rather than reading versions, and adds findings; nothing it does outlives it. An
 * error of a check is a finding too: what cannot be looked at is said. */
#ifndef SVRUN_DOCTOR_H
#define SVRUN_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>

#include "base/mem.h"
#include "base/str.h"
#include "gpu/inventory.h"

enum finding_level {
	FINDING_OK,
	FINDING_NOTE,    /* works; worth knowing */
	FINDING_WARNING, /* works less well, or not all of it */
	FINDING_ERROR,   /* svrun, or what was asked about, does not work */
};

struct finding {
	const char *id; /* "kernel.version": what a program can go by */
	enum finding_level level;
	const char *found;  /* what was seen */
	const char *advice; /* one sentence to act on; NULL with ok, and with notes */
};

struct doctor {
	struct arena mem;
	struct finding *v;
	size_t n, cap;
	const struct gpu_host *host;
	bool cuda; /* ask the driver, too */
	unsigned seconds;
	struct strings cdi_dirs; /* from the command line; n 0: the usual ones */
};

/* Both texts are copied, without what a terminal would obey; what is no UTF-8 is shown as '?'. */
void found(struct doctor *d, const char *id, enum finding_level level, const char *advice,
	const char *fmt, ...) printf_like(5, 6);
/* What went wrong with a check, with the hint as its advice, `advice` without one. */
void found_err(struct doctor *d, const char *id, enum finding_level level, const struct err *e,
	const char *advice);

/* ---- the parts; each adds its findings ---- */
void doctor_kernel(struct doctor *d);     /* version, system calls, seccomp, security modules */
void doctor_namespaces(struct doctor *d); /* each kind, and what forbids them */
void doctor_cgroups(struct doctor *d);    /* version, controllers, device filter */
void doctor_files(struct doctor *d);      /* overlayfs, EROFS, FUSE, loop, /dev/shm */
void doctor_store(struct doctor *d);      /* the site's store: space, what its file system can */
void doctor_host(struct doctor *d);       /* memory, entropy, limits, programs */
void doctor_gpus(struct doctor *d);       /* kernel module, GPUs, nodes, driver files, CDI, CUDA */
/* Of doctor_gpus(): */
void doctor_driver(struct doctor *d, const struct gpu_inventory *i); /* (doctor-driver.c) */
void doctor_fabric(struct doctor *d, const struct gpu_inventory *i); /* (doctor-fabric.c) */
void doctor_cdi(struct doctor *d);                                   /* (doctor-cdi.c) */
void doctor_cuda(struct doctor *d, const struct gpu_inventory *i);   /* (doctor-cuda.c) */

/* ---- what checks share (doctor-look.c) ---- */

/* A small file's text without its last newline, in d->mem; NULL: not there. dirfd as openat's. */
const char *look_text(struct doctor *d, int dirfd, const char *path);
/* Its number; -1 without. */
long long look_number(struct doctor *d, int dirfd, const char *path);
/* Is the word on a line (or in a list, between separators) of the text? NULL has none. */
bool look_word(const char *text, const char *word);
/* Run try(ctx) in a child, where it may change namespaces and filters; it returns 0 or an errno,
 * and is killed after five seconds (ETIMEDOUT). */
int look_in_child(int (*try)(void *ctx), void *ctx);

#endif
