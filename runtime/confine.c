#include "runtime/confine.h"

#include <linux/capability.h>
#include <unistd.h>

#include "runtime/cgroup.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/str.h"
#include "runtime/caps.h"

/* Docker's list and what shows kernel addresses; folders become empty, files the null device. */
static const char *const masked[] = {
	"/proc/acpi",
	"/proc/asound",
	"/proc/interrupts",
	"/proc/kallsyms",
	"/proc/kcore",
	"/proc/keys",
	"/proc/latency_stats",
	"/proc/sched_debug",
	"/proc/scsi",
	"/proc/timer_list",
	"/proc/timer_stats",
	"/sys/devices/virtual/powercap",
	"/sys/firmware",
};

static const char *const read_only[] = {
	"/proc/bus",
	"/proc/fs",
	"/proc/irq",
	"/proc/sys",
	"/proc/sysrq-trigger",
};

static const struct {
	const char *destination, *type, *options;
} mounted[] = {
	{"/proc", "proc", "nosuid,noexec,nodev"},
	{"/dev", "tmpfs", "nosuid,noexec,strictatime,mode=755,size=65536k"},
	{"/dev/pts", "devpts", "nosuid,noexec,newinstance,ptmxmode=0666,mode=0620,gid=5"},
	{"/dev/shm", "tmpfs", "nosuid,noexec,nodev,mode=1777"},
	{"/dev/mqueue", "mqueue", "nosuid,noexec,nodev"},
	{"/sys", "sysfs", "nosuid,noexec,nodev,ro"},
	{"/sys/fs/cgroup", "cgroup", "nosuid,noexec,nodev,ro"},
};

static json_t *strings(const char *const *v, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_string(v[i]));
	return list;
}

/* How hot each core is tells what neighbours compute; where the processor says it at all. */
json_t *confine_masked(void)
{
	json_t *list = strings(masked, sizeof(masked) / sizeof(masked[0]));
	char path[96];

	for (int cpu = 0; cpu < 4096; cpu++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/thermal_throttle", cpu);
		if (access(path, F_OK) < 0)
			break;
		json_array_append_new(list, json_string(path));
	}
	return list;
}

json_t *confine_readonly(void)
{
	return strings(read_only, sizeof(read_only) / sizeof(read_only[0]));
}

static json_t *cap_list(uint64_t set)
{
	json_t *list = json_array();

	for (int cap = 0; caps_name(cap); cap++)
		if (set >> cap & 1)
			json_array_append_new(list, json_string(caps_name(cap)));
	return list;
}

json_t *confine_caps(uint64_t bounding, bool root)
{
	return json_pack("{s:o, s:o, s:o, s:[], s:[]}", "bounding", cap_list(bounding), "effective",
		cap_list(root ? bounding : 0), "permitted", cap_list(root ? bounding : 0),
		"inheritable", "ambient");
}

static json_t *options_of(const char *words)
{
	json_t *list = json_array();

	for (const char *p = words; *p;) {
		size_t n = strcspn(p, ",");

		if (n)
			json_array_append_new(list, json_stringn_nocheck(p, n));
		p += n + (p[n] == ',');
	}
	return list;
}

json_t *confine_mount(json_t *mounts, const char *destination, const char *type, const char *source,
	const char *options)
{
	json_t *list = options_of(options), *m = json_object();

	json_object_set_new(m, "destination", json_string_nocheck(destination));
	json_object_set_new(m, "type", json_string(type));
	json_object_set_new(m, "source", json_string_nocheck(source));
	json_object_set_new(m, "options", list);
	json_array_append_new(mounts, m);
	return list;
}

void confine_mounts(json_t *mounts, uint64_t shm_bytes)
{
	char size[40];

	for (size_t i = 0; i < sizeof(mounted) / sizeof(mounted[0]); i++) {
		json_t *list = confine_mount(mounts, mounted[i].destination, mounted[i].type,
			mounted[i].type, mounted[i].options);

		if (shm_bytes && str_eq(mounted[i].destination, "/dev/shm")) {
			snprintf(size, sizeof(size), "size=%" PRIu64, shm_bytes);
			json_array_append_new(list, json_string(size));
		}
	}
}

uint64_t confine_caps_default(void)
{
	static const int list[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FSETID, CAP_FOWNER, CAP_MKNOD,
		CAP_NET_RAW, CAP_SETGID, CAP_SETUID, CAP_SETFCAP, CAP_SETPCAP, CAP_NET_BIND_SERVICE,
		CAP_SYS_CHROOT, CAP_KILL, CAP_AUDIT_WRITE};
	uint64_t set = 0;

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		set |= UINT64_C(1) << list[i];
	return set;
}

bool confine_has_swap(void)
{
	return access(cgroup_is_v2() ? "/proc/swaps"
				     : "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes",
		       F_OK) == 0;
}
