#include "runtime/sched.h"

#include <errno.h>
#include <linux/ioprio.h>
#include <linux/mempolicy.h>
#include <linux/sched/types.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"

/* The kernel's own limits (CONFIG_NR_CPUS, MAX_NUMNODES) are lower everywhere. */
enum { BITS = 8192, WORD = 8 * sizeof(unsigned long) };

struct bits {
	unsigned long w[BITS / WORD];
};

/* "0-3,5" */
static int read_list(const char *text, const char *what, struct bits *b, struct err *e)
{
	const char *next = text;
	uint64_t i, last;
	int rc;

	*b = (struct bits){0};
	while ((rc = str_range(&next, BITS - 1, &i, &last)) > 0)
		for (; i <= last; i++)
			b->w[i / WORD] |= 1UL << i % WORD;
	return rc < 0 ? err_set(e, ERR_USAGE, "%s: '%.100s' is no list such as 0-3,5", what, text)
		      : 0;
}

int sched_affinity(const char *cpus, struct err *e)
{
	struct bits b;

	if (!cpus)
		return 0;
	if (read_list(cpus, "CPU affinity", &b, e) < 0)
		return -1;
	if (syscall(SYS_sched_setaffinity, 0, sizeof(b), &b) == 0)
		return 0;
	err_sys(e, "CPU affinity %.100s", cpus);
	if (e && e->sys == EINVAL)
		err_hint(e, "none of them is online and in the cgroup's cpuset");
	return -1;
}

static int set_scheduler(const struct spec_scheduler *s, struct err *e)
{
	struct sched_attr a = {.size = SCHED_ATTR_SIZE_VER0,
		.sched_policy = s->policy,
		.sched_flags = s->flags,
		.sched_nice = s->nice,
		.sched_priority = s->priority,
		.sched_runtime = s->runtime,
		.sched_deadline = s->deadline,
		.sched_period = s->period};

	if (syscall(SYS_sched_setattr, 0, &a, 0) < 0)
		return err_sys(e, "process.scheduler");
	return 0;
}

static int set_io_priority(const struct spec_io_priority *p, struct err *e)
{
	if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
		    IOPRIO_PRIO_VALUE(p->class, p->priority)) < 0)
		return err_sys(e, "process.ioPriority");
	return 0;
}

static int set_memory_policy(const struct spec_memory_policy *p, struct err *e)
{
	struct bits nodes = {0};

	if (p->nodes && read_list(p->nodes, "linux.memoryPolicy.nodes", &nodes, e) < 0)
		return -1;
	/* One bit more than there are: the kernel does not look at the last one. */
	if (syscall(SYS_set_mempolicy, p->mode | (int)p->flags, p->nodes ? nodes.w : NULL,
		    p->nodes ? (unsigned long)BITS + 1 : 0) < 0)
		return err_sys(e, "linux.memoryPolicy");
	return 0;
}

int sched_apply(const struct spec *s, const struct spec_process *p, struct err *e)
{
	if (p->scheduler.given && set_scheduler(&p->scheduler, e) < 0)
		return -1;
	if (p->io_priority.given && set_io_priority(&p->io_priority, e) < 0)
		return -1;
	if (s->memory_policy.given && set_memory_policy(&s->memory_policy, e) < 0)
		return -1;
	if (s->personality.set && personality((unsigned long)s->personality.v) < 0)
		return err_sys(e, "linux.personality");
	return 0;
}
