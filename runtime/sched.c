#include "runtime/sched.h"

#include <errno.h>
#include <linux/ioprio.h>
#include <linux/mempolicy.h>
#include <linux/sched/types.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/cgroup-values.h"

/* The kernel's own limits (CONFIG_NR_CPUS, MAX_NUMNODES) are lower everywhere. The kernel's words
 * of bits are bytes of bits on processors that begin with the lowest one. */
enum { BITS = 8192 };
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bits are in words");

/* "0-3,5" */
static int read_list(const char *text, const char *what, uint8_t bits[BITS / 8], struct err *e)
{
	size_t n;

	return cgroup_bit_set(text, bits, BITS / 8, &n) < 0
		       ? err_set(e, ERR_USAGE, "%s: '%.100s' is no list such as 0-3,5", what, text)
		       : 0;
}

int sched_affinity(const char *cpus, struct err *e)
{
	uint8_t bits[BITS / 8];

	if (!cpus)
		return 0;
	if (read_list(cpus, "CPU affinity", bits, e) < 0)
		return -1;
	if (syscall(SYS_sched_setaffinity, 0, sizeof(bits), bits) == 0)
		return 0;
	err_sys(e, "CPU affinity %.100s", cpus);
	if (e && e->sys == EINVAL)
		err_hint(e, "none of them is online and in the cgroup's cpuset");
	return -1;
}

static int set_memory_policy(const struct spec_memory_policy *p, struct err *e)
{
	uint8_t nodes[BITS / 8];

	if (p->nodes && read_list(p->nodes, "linux.memoryPolicy.nodes", nodes, e) < 0)
		return -1;
	/* One bit more than there are: the kernel does not look at the last one. */
	if (syscall(SYS_set_mempolicy, p->mode | (int)p->flags, p->nodes ? nodes : NULL,
		    p->nodes ? (unsigned long)BITS + 1 : 0) < 0)
		return err_sys(e, "linux.memoryPolicy");
	return 0;
}

int sched_apply(const struct spec *s, const struct spec_process *p, struct err *e)
{
	const struct spec_scheduler *c = &p->scheduler;
	const struct spec_io_priority *io = &p->io_priority;
	struct sched_attr a = {.size = SCHED_ATTR_SIZE_VER0,
		.sched_policy = c->policy,
		.sched_flags = c->flags,
		.sched_nice = c->nice,
		.sched_priority = c->priority,
		.sched_runtime = c->runtime,
		.sched_deadline = c->deadline,
		.sched_period = c->period};

	if (c->given && syscall(SYS_sched_setattr, 0, &a, 0) < 0)
		return err_sys(e, "process.scheduler");
	if (io->given && syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
				 IOPRIO_PRIO_VALUE(io->class, io->priority)) < 0)
		return err_sys(e, "process.ioPriority");
	if (s->memory_policy.given && set_memory_policy(&s->memory_policy, e) < 0)
		return -1;
	if (s->personality.set && personality((unsigned long)s->personality.v) < 0)
		return err_sys(e, "linux.personality");
	return 0;
}
