/* The criu program, which saves processes into image files and restores them: started as "criu
 * swrk", asked one thing, and heard until it answers. It gets an environment of its own, no
 * configuration files, and none of our descriptors but those it is given.
 *
 * Thread rule: one caller. Source: criu's images/rpc.proto (protocol buffers, version 2). */
#ifndef SVRUN_CRIU_H
#define SVRUN_CRIU_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

/* criu_req_type */
enum criu_kind { CRIU_DUMP = 1, CRIU_RESTORE = 2, CRIU_PRE_DUMP = 4 };

/* Fields of criu_opts that we use, by their numbers. */
enum criu_field {
	CRIU_IMAGES_FD = 1,
	CRIU_PID = 2,
	CRIU_LEAVE_RUNNING = 3,
	CRIU_EXT_UNIX_SK = 4,
	CRIU_TCP_ESTABLISHED = 5,
	CRIU_EVASIVE_DEVICES = 6,
	CRIU_SHELL_JOB = 7,
	CRIU_FILE_LOCKS = 8,
	CRIU_LOG_LEVEL = 9,
	CRIU_LOG_FILE = 10,
	CRIU_PAGE_SERVER = 11, /* {address = 1, port = 2} */
	CRIU_NOTIFY_SCRIPTS = 12,
	CRIU_ROOT = 13,
	CRIU_PARENT_IMAGES = 14,
	CRIU_TRACK_MEM = 15,
	CRIU_AUTO_DEDUP = 16,
	CRIU_WORK_FD = 17,
	CRIU_EXT_MOUNT = 23,   /* {key = 1, value = 2} */
	CRIU_CGROUP_ROOT = 25, /* {controller = 1, path = 2} */
	CRIU_RESTORE_SIBLING = 26,
	CRIU_INHERIT_FD = 27, /* {key = 1, fd = 2} */
	CRIU_CGROUPS_MODE = 34,
	CRIU_EXTERNAL = 37,
	CRIU_EMPTY_NS = 38,
	CRIU_JOIN_NS = 39, /* {ns = 1, file = 2} */
	CRIU_FREEZE_CGROUP = 44,
	CRIU_LAZY_PAGES = 48,
	CRIU_ORPHAN_PTS_MASTER = 50,
	CRIU_LSM_PROFILE = 53,
	CRIU_LSM_MOUNT_CONTEXT = 63,
	CRIU_MOUNTS_COMPAT = 65,
};

/* Messages in the making; b has a ceiling that no request of ours reaches. */
void criu_put_int(struct buf *b, unsigned field, uint64_t v);
void criu_put_str(struct buf *b, unsigned field, const char *v);
/* A message of two fields: 1 is a text, 2 a text or (b NULL) a number. */
void criu_put_pair(struct buf *b, unsigned field, const char *one, const char *two, uint64_t n);

/* What criu tells on its way ("setup-namespaces", "pre-resume", ...), before it goes on. */
struct criu_note {
	const char *script;
	pid_t pid; /* of the restored first process; 0: not told */
	int fd;    /* own: sent along, or -1 */
};

struct criu_options {
	const char *program; /* NULL: looked up in our PATH */
	enum criu_kind kind;
	struct buf *opts; /* the criu_opts message */
	int log_dir;      /* where its log is, for errors */
	const char *log;  /* the log's name */
	int stdio[3];     /* its 0-2, -1: the null device */
	const int *fds;   /* from CRIU_FIRST_FD on: what the request names by number */
	size_t nfds;
	/* In its process, before it is criu: enter a cgroup, make a mount namespace ... Also waits
	 * until `ready` has returned in the parent. */
	int (*enter)(void *ctx, struct err *e);
	int (*ready)(void *ctx, pid_t pid, struct err *e); /* or NULL */
	int (*note)(void *ctx, const struct criu_note *n, struct err *e);
	void *ctx;
};
enum { CRIU_FIRST_FD = 4 };

/* Run it to its end. *pid: the restored first process, our child. On failure nothing that it
 * restored lives; the error quotes its log. Errors: NOT_FOUND, without the program; SYSTEM. */
int criu_run(const struct criu_options *o, pid_t *pid, struct err *e) must_check;

#endif
