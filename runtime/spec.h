/* An OCI runtime configuration (config.json) as plain data: runtime-spec 1.2 config.md and
 * config-linux.md. What this version does not do is refused by name while reading, so that the rest
 * of runtime/ may rely on every field it sees. */
#ifndef RUNTIME_SPEC_H
#define RUNTIME_SPEC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"
#include "base/mem.h"
#include "runtime/caps.h"
#include "runtime/fields.h"
#include "runtime/seccomp.h"

enum ns_kind { NS_MOUNT, NS_PID, NS_NETWORK, NS_IPC, NS_UTS, NS_CGROUP, NS_KINDS };

struct spec_user {
	uint32_t uid, gid;
	struct opt_i64 umask;
	uint32_t *groups; /* exactly these supplementary groups */
	size_t ngroups;
};

struct spec_rlimit {
	const char *name; /* "RLIMIT_NOFILE" */
	int resource;
	uint64_t soft, hard; /* RLIM_INFINITY: none */
};
/* How documents say "no limit" within jansson's integers; greater ones become this when loaded. */
#define SPEC_RLIM_INFINITY ((uint64_t)INT64_MAX)
/* The number of "RLIMIT_NOFILE", or -1. */
int spec_rlimit_resource(const char *name);

struct spec_process {
	bool given; /* a document without it can be created, not started */
	bool terminal, no_new_privs;
	uint32_t rows, columns; /* 0: unknown */
	struct spec_user user;
	struct strings args, env;
	const char *cwd;
	struct caps caps;
	struct spec_rlimit *rlimits;
	size_t nrlimits;
	struct opt_i64 oom_score_adj;
};

struct spec_mount {
	const char *destination, *type, *source;
	struct strings options;
};

struct spec_device {
	const char *path;
	mode_t type; /* S_IFCHR, S_IFBLK, S_IFIFO */
	uint32_t major, minor;
	struct opt_i64 mode;
	uint32_t uid, gid;
};

/* A rule of the devices controller. */
struct spec_device_rule {
	bool allow;
	char type;                   /* 'a', 'b', 'c' */
	struct opt_i64 major, minor; /* unset: all */
	unsigned access;             /* DEVICE_READ... */
};
enum { DEVICE_MKNOD = 1, DEVICE_READ = 2, DEVICE_WRITE = 4 }; /* the kernel's BPF_DEVCG_ACC_* */

/* All in bytes, microseconds and processes; -1: no limit. */
struct spec_resources {
	struct spec_device_rule *devices;
	size_t ndevices;
	struct opt_i64 memory_limit, memory_reservation, memory_swap;
	struct opt_i64 cpu_shares, cpu_quota, cpu_period;
	const char *cpus, *mems; /* lists, "0-3,5"; NULL: all */
	struct opt_i64 pids;
};

struct spec_sysctl {
	const char *name, *value;
};

struct spec {
	struct arena mem;
	json_t *json; /* the strings below are borrowed from it */
	const char *version;
	struct spec_process process;
	const char *root; /* relative to the bundle, or absolute */
	bool root_readonly;
	const char *hostname, *domainname;
	struct spec_mount *mounts;
	size_t nmounts;
	bool namespaces[NS_KINDS]; /* new ones */
	struct spec_device *devices;
	size_t ndevices;
	const char *cgroup_path; /* below each hierarchy's root; NULL: none is made */
	struct spec_resources resources;
	bool has_seccomp;
	struct spec_seccomp seccomp;
	struct strings masked, readonly;
	struct spec_sysctl *sysctls;
	size_t nsysctls;
};

/* Read a parsed document; takes a reference. name is how errors call it. Errors: CORRUPT with the
 * JSON pointer, UNSUPPORTED with the field's name. */
int spec_read(struct spec *s, json_t *json, const char *name, struct err *e) must_check;
/* The same from a file of at most 8 MiB. */
int spec_load(struct spec *s, int dirfd, const char *path, struct err *e) must_check;
void spec_fini(struct spec *s);

/* The part below /linux (spec-linux.c). */
int spec_read_linux(const struct at *a, void *spec, struct arena *mem, struct err *e) must_check;

#endif
