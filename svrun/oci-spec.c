/* svrun-oci spec: a config.json to start from. */
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup.h"
#include "runtime/ns.h"
#include "runtime/seccomp-profile.h"
#include "svrun/oci.h"

/* Words separated by blanks. */
static json_t *list(const char *words)
{
	json_t *v = json_array();

	for (const char *p = words; *p;) {
		size_t n = strcspn(p, " ");

		json_array_append_new(v, json_stringn(p, n));
		p += n + strspn(p + n, " ");
	}
	return v;
}

static const struct {
	const char *destination, *type, *source, *options;
	const char *rootless; /* instead of options; "": none there */
} mounts[] = {
	{"/proc", "proc", "proc", NULL, NULL},
	{"/dev", "tmpfs", "tmpfs", "nosuid strictatime mode=755 size=65536k", NULL},
	{"/dev/pts", "devpts", "devpts", "nosuid noexec newinstance ptmxmode=0666 mode=0620 gid=5",
		"nosuid noexec newinstance ptmxmode=0666 mode=0620"}, /* one group is mapped */
	{"/dev/shm", "tmpfs", "shm", "nosuid noexec nodev mode=1777 size=65536k", NULL},
	{"/dev/mqueue", "mqueue", "mqueue", "nosuid noexec nodev", NULL},
	{"/sys", "sysfs", "sysfs", "nosuid noexec nodev ro", ""},
	/* A sysfs belongs to its network namespace, which is the host's. */
	{"/sys", "none", "/sys", "", "rbind nosuid noexec nodev ro"},
	{"/sys/fs/cgroup", "cgroup", "cgroup", "nosuid noexec nodev relatime ro", NULL},
};

static const char masked[] =
	"/proc/acpi /proc/asound /proc/interrupts /proc/kallsyms /proc/kcore /proc/keys "
	"/proc/latency_stats /proc/sched_debug /proc/scsi /proc/timer_list /proc/timer_stats "
	"/sys/devices/virtual/powercap /sys/firmware";
static const char read_only[] = "/proc/bus /proc/fs /proc/irq /proc/sys /proc/sysrq-trigger";

static const int caps[] = {CAP_AUDIT_WRITE, CAP_KILL, CAP_NET_BIND_SERVICE};

static json_t *make_mounts(bool rootless)
{
	json_t *v = json_array();

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		const char *options = mounts[i].options;
		json_t *m;

		if (rootless && mounts[i].rootless)
			options = mounts[i].rootless;
		if (options && !*options)
			continue;
		m = json_pack("{s:s, s:s, s:s}", "destination", mounts[i].destination, "type",
			mounts[i].type, "source", mounts[i].source);
		if (options)
			json_object_set_new(m, "options", list(options));
		json_array_append_new(v, m);
	}
	return v;
}

static json_t *make_namespaces(bool rootless)
{
	json_t *v = json_array();

	for (enum ns_kind k = 0; k < NS_KINDS; k++) {
		/* Without root nobody could connect a network to the host's. Hierarchies of version
		 * 1 are mounted folder by folder, and need no cgroup namespace. */
		bool wanted = k == NS_USER      ? rootless
			      : k == NS_NETWORK ? !rootless
			      : k == NS_CGROUP  ? cgroup_is_v2()
						: k != NS_TIME;

		if (wanted)
			json_array_append_new(v, json_pack("{s:s}", "type", ns_name(k)));
	}
	return v;
}

static json_t *make_linux(bool rootless)
{
	json_t *o = json_object();
	uint64_t set = 0;

	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++)
		set |= UINT64_C(1) << caps[i];
	if (rootless) {
		json_object_set_new(o, "uidMappings",
			json_pack("[{s:i, s:I, s:i}]", "containerID", 0, "hostID",
				(json_int_t)geteuid(), "size", 1));
		json_object_set_new(o, "gidMappings",
			json_pack("[{s:i, s:I, s:i}]", "containerID", 0, "hostID",
				(json_int_t)getegid(), "size", 1));
	} else {
		json_object_set_new(o, "resources",
			json_pack("{s:[{s:b, s:s}]}", "devices", "allow", 0, "access", "rwm"));
	}
	json_object_set_new(o, "namespaces", make_namespaces(rootless));
	json_object_set_new(o, "seccomp", seccomp_profile(set));
	json_object_set_new(o, "maskedPaths", list(masked));
	json_object_set_new(o, "readonlyPaths", list(read_only));
	return o;
}

static json_t *make_process(void)
{
	json_t *names = json_array(), *process;

	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++)
		json_array_append_new(names, json_string(caps_name(caps[i])));
	process = json_pack("{s:b, s:{s:i, s:i}, s:[s], s:[s, s], s:s, s:{s:O, s:O, s:O}, "
			    "s:[{s:s, s:i, s:i}], s:b}",
		"terminal", 1, "user", "uid", 0, "gid", 0, "args", "sh", "env",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm",
		"cwd", "/", "capabilities", "bounding", names, "effective", names, "permitted",
		names, "rlimits", "type", "RLIMIT_NOFILE", "hard", 1024, "soft", 1024,
		"noNewPrivileges", 1);
	json_decref(names);
	return process;
}

static int write_new(const char *bundle, const json_t *config, struct err *e)
{
	auto_fd int dir = sys_open(bundle, O_RDONLY | O_DIRECTORY, 0);
	auto_fd int fd = -1;
	char *text;
	int rc;

	if (dir < 0)
		return err_sys(e, "bundle %s", bundle);
	fd = sys_openat(dir, "config.json", O_WRONLY | O_CREAT | O_EXCL, 0666);
	if (fd < 0) {
		err_sys(e, "%s/config.json", bundle);
		return err_hint(e, "it is never replaced: remove it first");
	}
	text = json_dumps(config, JSON_INDENT(4));
	rc = sys_write_all(fd, text, strlen(text)) < 0 || sys_write_all(fd, "\n", 1) < 0;
	free(text);
	if (rc) {
		err_sys(e, "write %s/config.json", bundle);
		sys_unlinkat(dir, "config.json", 0);
	}
	return rc ? -1 : 0;
}

int oci_spec(const struct oci *o, const struct command *self, int argc, char **argv, struct err *e)
{
	const char *bundle = ".";
	bool rootless = false;
	const struct option_spec options[] = {
		{"bundle", 'b', OPTION_STRING, "DIR", "write DIR/config.json (.)", &bundle},
		{"rootless", 0, OPTION_FLAG, NULL, "for a container without root's rights",
			&rootless},
		{0},
	};
	auto_json json_t *config = NULL;

	(void)o;
	if (options_parse(self, options, argc, argv, false, e) < 0)
		return -1;
	config = json_pack("{s:s, s:o, s:{s:s, s:b}, s:s, s:o, s:o}", "ociVersion", SPEC_VERSION,
		"process", make_process(), "root", "path", "rootfs", "readonly", 1, "hostname",
		"svrun", "mounts", make_mounts(rootless), "linux", make_linux(rootless));
	return write_new(bundle, config, e);
}
