#include "runtime/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"

/* The plain system calls instead of libcap: it probes the kernel when it is loaded, and all that is
 * needed here is two calls and this table. */
static const char *const names[] = {"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH",
	"CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP",
	"CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST", "CAP_NET_ADMIN",
	"CAP_NET_RAW", "CAP_IPC_LOCK", "CAP_IPC_OWNER", "CAP_SYS_MODULE", "CAP_SYS_RAWIO",
	"CAP_SYS_CHROOT", "CAP_SYS_PTRACE", "CAP_SYS_PACCT", "CAP_SYS_ADMIN", "CAP_SYS_BOOT",
	"CAP_SYS_NICE", "CAP_SYS_RESOURCE", "CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_MKNOD",
	"CAP_LEASE", "CAP_AUDIT_WRITE", "CAP_AUDIT_CONTROL", "CAP_SETFCAP", "CAP_MAC_OVERRIDE",
	"CAP_MAC_ADMIN", "CAP_SYSLOG", "CAP_WAKE_ALARM", "CAP_BLOCK_SUSPEND", "CAP_AUDIT_READ",
	"CAP_PERFMON", "CAP_BPF", "CAP_CHECKPOINT_RESTORE"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

int caps_number(const char *name)
{
	for (int i = 0; i < NAMES; i++)
		if (str_eq(names[i], name))
			return i;
	return -1;
}

const char *caps_name(int cap)
{
	return cap >= 0 && cap < NAMES ? names[cap] : NULL;
}

int caps_apply_bounding(const struct caps *c, struct err *e)
{
	/* Beyond the table too: a newer kernel's capabilities must not survive. EINVAL is the end.
	 */
	for (int cap = 0; cap < 64; cap++) {
		if (c->bounding >> cap & 1 || prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL && cap > CAP_WAKE_ALARM)
			break;
		return err_sys(e, "drop capability %s from the bounding set",
			caps_name(cap) ? caps_name(cap) : "of a newer kernel");
	}
	return 0;
}

int caps_apply(const struct caps *c, struct err *e)
{
	/* Only what is permitted and inheritable can be ambient. `runc spec` itself asks for more,
	 * so that cannot be an error. */
	uint64_t ambient = c->ambient & c->permitted & c->inheritable;
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{(uint32_t)c->effective, (uint32_t)c->permitted, (uint32_t)c->inheritable},
		{(uint32_t)(c->effective >> 32), (uint32_t)(c->permitted >> 32),
			(uint32_t)(c->inheritable >> 32)},
	};

	if (syscall(SYS_capset, &head, data) < 0) {
		err_sys(e, "set capabilities");
		return err_hint(e, "svrun itself may lack one that was asked for");
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_sys(e, "clear ambient capabilities");
	for (int cap = 0; cap < NAMES; cap++)
		if (ambient >> cap & 1 &&
			prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return err_sys(e, "raise ambient capability %s", names[cap]);
	return 0;
}
