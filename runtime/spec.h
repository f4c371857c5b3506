/* An OCI runtime configuration (config.json) as plain data: runtime-spec 1.3 config.md and
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

/* The newest version of the specification whose members are read. */
#define SPEC_VERSION "1.3.0"

/* ---- namespaces and ids ---- */

enum ns_kind {
	NS_MOUNT,
	NS_PID,
	NS_NETWORK,
	NS_IPC,
	NS_UTS,
	NS_CGROUP,
	NS_USER,
	NS_TIME,
	NS_KINDS
};

struct spec_namespace {
	bool given;
	const char *path; /* an existing one to join, absolute; NULL: a new one */
};

struct spec_idmap {
	uint32_t container, host, size; /* size >= 1, no wrap-around */
};
enum { SPEC_IDMAPS_MAX = 340 }; /* the kernel's */

struct spec_idmaps {
	struct spec_idmap *v;
	size_t n;
};

struct spec_time_offset {
	bool set;
	int64_t secs;
	uint32_t nanosecs; /* < 10^9 */
};

/* ---- process ---- */

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
/* Another way to say "no limit", within jansson's integers. */
#define SPEC_RLIM_INFINITY ((uint64_t)INT64_MAX)
/* The number of "RLIMIT_NOFILE", or -1. */
int spec_rlimit_resource(const char *name);

/* sched_setattr(2). */
struct spec_scheduler {
	bool given;
	uint32_t policy; /* SCHED_* */
	int nice;
	uint32_t priority;
	uint32_t flags;                     /* SCHED_FLAG_* */
	uint64_t runtime, deadline, period; /* nanoseconds */
};

/* ioprio_set(2). */
struct spec_io_priority {
	bool given;
	int class, priority; /* IOPRIO_CLASS_* (1 to 3), 0 to 7 */
};

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
	const char *apparmor, *selinux; /* profile, label; NULL: none */
	struct spec_scheduler scheduler;
	struct spec_io_priority io_priority;
	/* Lists of CPUs, "0-3,5": of the process that `exec` starts, before and after it is in the
	 * container's cgroup. NULL: as it is. */
	const char *exec_cpus_initial, *exec_cpus_final;
};

/* ---- mounts and devices ---- */

struct spec_mount {
	const char *destination, *type, *source;
	struct strings options;
	struct spec_idmaps uids, gids; /* of an id-mapped mount */
};

struct spec_device {
	const char *path;
	mode_t type; /* S_IFCHR, S_IFBLK, S_IFIFO */
	uint32_t major, minor;
	struct opt_i64 mode;
	uint32_t uid, gid;
};

/* ---- resources ---- */

/* A rule of the devices controller. */
struct spec_device_rule {
	bool allow;
	int type;                    /* 'a', 'b', 'c' */
	struct opt_i64 major, minor; /* unset: all */
	unsigned access;             /* DEVICE_READ... */
};
enum { DEVICE_MKNOD = 1, DEVICE_READ = 2, DEVICE_WRITE = 4 }; /* the kernel's BPF_DEVCG_ACC_* */

/* A value for one block device. */
struct spec_block_value {
	uint32_t major, minor;
	struct opt_i64 value, leaf; /* weight and leafWeight, or a rate in `value` */
};
struct spec_block_values {
	struct spec_block_value *v;
	size_t n;
};

struct spec_hugetlb {
	const char *page_size; /* "2MB" */
	int64_t limit;         /* bytes */
};

struct spec_rdma {
	const char *device;
	struct opt_i64 handles, objects;
};

/* net_prio's interface and priority, unified's file and text, annotations, sysctls. */
struct spec_pair {
	const char *name, *value;
};
struct spec_pairs {
	struct spec_pair *v;
	size_t n;
};

/* All in bytes, microseconds and processes; -1: no limit. */
struct spec_resources {
	struct spec_device_rule *devices;
	size_t ndevices;
	struct opt_i64 memory_limit, memory_reservation, memory_swap;
	struct opt_i64 memory_kernel, memory_kernel_tcp, memory_swappiness;
	bool memory_no_oom_killer, memory_check;
	struct opt_i64 cpu_shares, cpu_quota, cpu_period, cpu_burst, cpu_idle;
	struct opt_i64 cpu_rt_runtime, cpu_rt_period;
	const char *cpus, *mems; /* lists, "0-3,5"; NULL: all */
	struct opt_i64 pids;
	struct opt_i64 block_weight, block_leaf_weight;
	struct spec_block_values block_weights, read_bps, write_bps, read_iops, write_iops;
	struct spec_hugetlb *hugetlb;
	size_t nhugetlb;
	struct spec_rdma *rdma;
	size_t nrdma;
	struct opt_i64 net_class;
	struct spec_pairs net_priorities; /* value: decimal */
	struct spec_pairs unified;        /* version 2 file -> text; names are plain file names */
};

/* ---- hooks, and the seldom used ---- */

enum hook_kind {
	HOOK_PRESTART,
	HOOK_CREATE_RUNTIME,
	HOOK_CREATE_CONTAINER,
	HOOK_START_CONTAINER,
	HOOK_POSTSTART,
	HOOK_POSTSTOP,
	HOOK_KINDS
};

struct spec_hook {
	const char *path; /* absolute */
	struct strings args, env;
	struct opt_i64 timeout; /* seconds, > 0 */
};
struct spec_hooks {
	struct spec_hook *v;
	size_t n;
};
/* "createRuntime" */
const char *hook_name(enum hook_kind kind);

struct spec_intel_rdt {
	bool given;
	const char *clos;        /* NULL: the container's id */
	const char *l3, *membw;  /* one schema each, NULL: none */
	struct strings schemata; /* further ones */
	bool monitoring;         /* enableCMT and enableMBM, before 1.3 */
};

/* A network interface to move into the container. */
struct spec_net_device {
	const char *name;     /* on the host */
	const char *new_name; /* inside; NULL: the same */
};

/* set_mempolicy(2). */
struct spec_memory_policy {
	bool given;
	int mode;          /* MPOL_* */
	uint32_t flags;    /* MPOL_F_* */
	const char *nodes; /* list, "0-3"; NULL: none */
};
/* The words of config.json for the two. */
extern const struct fields_word spec_memory_modes[], spec_memory_flags[];

struct spec {
	struct arena mem;
	json_t *json; /* the strings below are borrowed from it */
	const char *version;
	struct spec_process process;
	const char *root; /* relative to the bundle, or absolute; NULL: none given */
	bool root_readonly;
	const char *hostname, *domainname;
	struct spec_mount *mounts;
	size_t nmounts;
	struct spec_hooks hooks[HOOK_KINDS];
	struct spec_pairs annotations;
	struct spec_namespace namespaces[NS_KINDS];
	struct spec_idmaps uids, gids;               /* of a new user namespace */
	struct spec_time_offset monotonic, boottime; /* of a new time namespace */
	struct spec_device *devices;
	size_t ndevices;
	const char *cgroups_path; /* as written: a path, or slice:prefix:name; NULL: none given */
	struct spec_resources resources;
	bool has_seccomp;
	struct spec_seccomp seccomp;
	struct strings masked, readonly;
	struct spec_pairs sysctls;
	const char *mount_label; /* SELinux context of the mounts; NULL: none */
	uint32_t propagation;    /* of the root: MS_SHARED, MS_SLAVE ...; 0: not given */
	bool propagation_all;    /* and of everything below: "rslave" */
	struct {
		bool set;
		uint32_t v; /* for personality(2) */
	} personality;
	struct spec_intel_rdt rdt;
	struct spec_net_device *net_devices;
	size_t nnet_devices;
	struct spec_memory_policy memory_policy;
};

/* Does it have a namespace of this kind of its own, one way or the other? Is it a new one? */
static inline bool spec_has_ns(const struct spec *s, enum ns_kind k)
{
	return s->namespaces[k].given;
}
static inline bool spec_new_ns(const struct spec *s, enum ns_kind k)
{
	return s->namespaces[k].given && !s->namespaces[k].path;
}

/* json_doc_parse() and json_doc_load() for any of these documents: engines write integers beyond
 * INT64_MAX, which those refuse and FIELD_U64 takes. */
int spec_doc_parse(
	struct json_doc *d, const char *name, const void *p, size_t n, struct err *e) must_check;
int spec_doc_load(
	struct json_doc *d, int dirfd, const char *path, size_t max, struct err *e) must_check;

/* Read a parsed document (taking a reference), a text, or a file of at most SPEC_MAX bytes. name is
 * how errors call it. Errors: CORRUPT and UNSUPPORTED, with the JSON pointer. */
enum { SPEC_MAX = 8 << 20 };
int spec_read(struct spec *s, json_t *json, const char *name, struct err *e) must_check;
int spec_parse(
	struct spec *s, const char *name, const char *text, size_t n, struct err *e) must_check;
int spec_load(struct spec *s, int dirfd, const char *path, struct err *e) must_check;
void spec_fini(struct spec *s);

/* A process alone, for `exec --process FILE`, and resources alone, for `update --resources FILE`.
 * Strings are borrowed from json, arrays live in mem. */
int spec_read_process(struct spec_process *p, json_t *json, const char *name, struct arena *mem,
	struct err *e) must_check;
int spec_read_resources(struct spec_resources *r, json_t *json, const char *name, struct arena *mem,
	struct err *e) must_check;

/* ---- parts, for fields.h: spec-process.c, spec-linux.c, spec-resources.c ---- */

extern const struct field spec_linux_fields[], spec_resources_fields[];
field_check spec_process, spec_linux_check;
field_check spec_pair, spec_idmaps; /* the value of a struct spec_pair; a struct spec_idmaps */

#endif
