/* svrun doctor: memory, entropy, limits, programs that some commands start. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/sys.h"
#include "svrun/doctor.h"
#include "svrun/output.h"

static uint64_t meminfo(const char *text, const char *key)
{
	const char *at = text ? strstr(text, key) : NULL;

	return at ? strtoull(at + strlen(key), NULL, 10) << 10 : 0;
}

static void check_memory(struct doctor *d)
{
	const char *text = look_text(d, AT_FDCWD, "/proc/meminfo");
	uint64_t left = meminfo(text, "MemAvailable:");
	char all[32], available[32], swap[32];

	output_size(meminfo(text, "MemTotal:"), all);
	output_size(left, available);
	output_size(meminfo(text, "SwapTotal:"), swap);
	if (left < 256 << 20)
		found(d, "host.memory", FINDING_WARNING, "end what uses it, or add memory",
			"memory: %s are left of %s", available, all);
	else
		found(d, "host.memory", FINDING_OK, NULL, "memory: %s are left of %s, swap %s",
			available, all, swap);
}

static void check_entropy(struct doctor *d)
{
	char byte;

	if (getrandom(&byte, 1, GRND_NONBLOCK) == 1)
		found(d, "host.entropy", FINDING_OK, NULL, "random numbers: at once");
	else
		found(d, "host.entropy", FINDING_WARNING,
			"install rng-tools, or give the virtual machine a virtio-rng device",
			"random numbers: the kernel has not gathered enough yet");
}

static void check_descriptors(struct doctor *d)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return;
	if (r.rlim_max < 4096)
		found(d, "host.descriptors", FINDING_WARNING,
			"raise it: ulimit -Hn 524288, or LimitNOFILE=524288 in the service's unit",
			"open files: at most %llu", (unsigned long long)r.rlim_max);
	else
		found(d, "host.descriptors", FINDING_OK, NULL, "open files: %llu, at most %llu",
			(unsigned long long)r.rlim_cur, (unsigned long long)r.rlim_max);
}

/* Numbers below which hosts with many containers fail in ways that name none of them. */
static const struct {
	const char *id, *name;
	long long least;
} sysctls[] = {
	{"host.inotify", "fs.inotify.max_user_instances", 128},
	{"host.inotify", "fs.inotify.max_user_watches", 8192},
	{"host.mounts", "fs.mount-max", 10000},
	{"host.maps", "vm.max_map_count", 65530},
	{"host.pids", "kernel.pid_max", 32768},
	{"host.keys", "kernel.keys.maxkeys", 200},
};

static void check_sysctls(struct doctor *d)
{
	size_t low = 0;

	for (size_t i = 0; i < sizeof(sysctls) / sizeof(sysctls[0]); i++) {
		auto_free char *path = mem_printf("/proc/sys/%s", sysctls[i].name);
		long long v;

		for (char *c = path; *c; c++)
			if (*c == '.')
				*c = '/';
		v = look_number(d, AT_FDCWD, path);
		if (v < 0 || v >= sysctls[i].least)
			continue;
		low++;
		found(d, sysctls[i].id, FINDING_WARNING,
			arena_printf(&d->mem, "sysctl -w %s=%lld, and the same in /etc/sysctl.d",
				sysctls[i].name, 8 * sysctls[i].least),
			"%s is %lld", sysctls[i].name, v);
	}
	if (low == 0)
		found(d, "host.sysctls", FINDING_OK, NULL,
			"limits of the kernel: none that is low");
}

static bool in_path(const char *program)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t n = strcspn(path, ":");
		auto_free char *file = mem_printf("%.*s/%s", (int)n, path, program);

		if (access(file, X_OK) == 0)
			return true;
		path += n + (path[n] == ':');
	}
	return false;
}

static void check_programs(struct doctor *d)
{
	static const struct {
		const char *program, *for_what;
	} v[] = {
		{"criu", "svrun-oci checkpoint and restore"},
		{"apt-get", "manifests with apt"},
		{"gpgv", "signed package indexes"},
		{"git", "sources of type git"},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		if (in_path(v[i].program))
			found(d, "host.program", FINDING_OK, NULL, "%s: found", v[i].program);
		else
			found(d, "host.program", FINDING_NOTE,
				arena_printf(&d->mem, "install it for %s", v[i].for_what),
				"%s: not in PATH", v[i].program);
}

void doctor_host(struct doctor *d)
{
	check_memory(d);
	check_entropy(d);
	check_descriptors(d);
	check_sysctls(d);
	check_programs(d);
}
