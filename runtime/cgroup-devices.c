#include "runtime/cgroup-devices.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"

#define NUM(n)                                                                                     \
	{                                                                                          \
		.set = true, .v = (n)                                                              \
	}
enum { ALL_ACCESS = DEVICE_READ | DEVICE_WRITE | DEVICE_MKNOD };

static const struct spec_device_rule before[] = {
	{.allow = false, .type = 'a', .access = ALL_ACCESS},
};

#define NODE(major_n, minor_n)                                                                     \
	{                                                                                          \
		.allow = true, .type = 'c', .major = NUM(major_n), .minor = NUM(minor_n),          \
		.access = ALL_ACCESS                                                               \
	}
/* Any node may be made; null, zero, full, random, urandom, tty, ptmx, and all of pts. */
static const struct spec_device_rule after[] = {
	{.allow = true, .type = 'c', .access = DEVICE_MKNOD},
	{.allow = true, .type = 'b', .access = DEVICE_MKNOD}, NODE(1, 3), NODE(1, 5), NODE(1, 7),
	NODE(1, 8), NODE(1, 9), NODE(5, 0), NODE(5, 2),
	{.allow = true, .type = 'c', .major = NUM(136), .access = ALL_ACCESS}};
enum { BEFORE = sizeof(before) / sizeof(before[0]), AFTER = sizeof(after) / sizeof(after[0]) };

static size_t count(const struct spec_resources *r)
{
	return BEFORE + r->ndevices + AFTER;
}

static const struct spec_device_rule *rule(const struct spec_resources *r, size_t i)
{
	if (i < BEFORE)
		return &before[i];
	i -= BEFORE;
	return i < r->ndevices ? &r->devices[i] : &after[i - r->ndevices];
}

/* What is before the last rule for all devices cannot matter. */
static size_t first(const struct spec_resources *r)
{
	size_t i = count(r) - 1;

	while (rule(r, i)->type != 'a')
		i--;
	return i;
}

/* ---- version 1 ---- */

static void print_number(char *out, size_t size, const struct opt_i64 *n)
{
	if (n->set)
		snprintf(out, size, "%u", (unsigned)n->v);
	else
		snprintf(out, size, "*");
}

static int write_rule(int allow, int deny, const struct spec_device_rule *d, struct err *e)
{
	char line[64], major[16], minor[16];
	int n;

	print_number(major, sizeof(major), &d->major);
	print_number(minor, sizeof(minor), &d->minor);
	n = snprintf(line, sizeof(line), "%c %s:%s %s%s%s", d->type, major, minor,
		d->access & DEVICE_READ ? "r" : "", d->access & DEVICE_WRITE ? "w" : "",
		d->access & DEVICE_MKNOD ? "m" : "");
	if (d->type == 'a') /* the kernel takes "a" for all of it, and nothing finer */
		n = snprintf(line, sizeof(line), "a");
	if (sys_write_all(d->allow ? allow : deny, line, (size_t)n) < 0)
		return err_sys(e, "device rule '%s %s'", d->allow ? "allow" : "deny", line);
	return 0;
}

int cgroup_devices_write(int dir, const struct spec_resources *r, struct err *e)
{
	auto_fd int allow = sys_openat(dir, "devices.allow", O_WRONLY, 0);
	auto_fd int deny = sys_openat(dir, "devices.deny", O_WRONLY, 0);

	if (allow < 0 || deny < 0)
		return err_sys(e, "devices.allow");
	for (size_t i = first(r); i < count(r); i++)
		if (write_rule(allow, deny, rule(r, i), e) < 0)
			return -1;
	return 0;
}

/* ---- version 2 ---- */

struct prog {
	struct bpf_insn *v;
	size_t n, cap;
};

static void emit(struct prog *p, unsigned code, unsigned dst, unsigned src, int32_t imm)
{
	mem_grow(&p->v, &p->cap, p->n);
	p->v[p->n++] = (struct bpf_insn){
		.code = (uint8_t)code, .dst_reg = dst & 15, .src_reg = src & 15, .imm = imm};
}

static void emit_load(struct prog *p, unsigned dst, size_t offset)
{
	emit(p, BPF_LDX | BPF_W | BPF_MEM, dst, BPF_REG_1, 0);
	p->v[p->n - 1].off = (short)offset;
}

/* A device is one number to the program, because a rule is to be one branch: states of several that
 * meet again are what the kernel's verifier spends its time on, ten times that of the rest. */
enum { MAJOR_BITS = 12, MINOR_BITS = 20 }; /* the kernel's MKDEV */
enum { TYPE = BPF_REG_2, ACCESS, MAJOR, MINOR, TYPE_MAJOR, DEVICE };

static void load_context(struct prog *p)
{
	emit_load(p, TYPE, offsetof(struct bpf_cgroup_dev_ctx, access_type));
	emit_load(p, MAJOR, offsetof(struct bpf_cgroup_dev_ctx, major));
	emit_load(p, MINOR, offsetof(struct bpf_cgroup_dev_ctx, minor));
	emit(p, BPF_ALU64 | BPF_MOV | BPF_X, ACCESS, TYPE, 0);
	emit(p, BPF_ALU | BPF_RSH | BPF_K, ACCESS, 0, 16);
	emit(p, BPF_ALU | BPF_AND | BPF_K, TYPE, 0, 0xffff);
	emit(p, BPF_ALU64 | BPF_MOV | BPF_X, TYPE_MAJOR, TYPE, 0);
	emit(p, BPF_ALU64 | BPF_LSH | BPF_K, TYPE_MAJOR, 0, MAJOR_BITS);
	emit(p, BPF_ALU64 | BPF_OR | BPF_X, TYPE_MAJOR, MAJOR, 0);
	emit(p, BPF_ALU64 | BPF_MOV | BPF_X, DEVICE, TYPE_MAJOR, 0);
	emit(p, BPF_ALU64 | BPF_LSH | BPF_K, DEVICE, 0, MINOR_BITS);
	emit(p, BPF_ALU64 | BPF_OR | BPF_X, DEVICE, MINOR, 0);
}

/* No device has such a number. */
static bool fits_none(const struct spec_device_rule *d)
{
	return (d->major.set && d->major.v >> MAJOR_BITS) ||
	       (d->minor.set && d->minor.v >> MINOR_BITS);
}

/* Does a later rule decide for all that this one is about? */
static bool is_in_after(const struct spec_device_rule *d)
{
	for (size_t i = 0; i < AFTER; i++) {
		const struct spec_device_rule *a = &after[i];

		if (a->access == ALL_ACCESS && d->type == a->type && d->major.set &&
			d->major.v == a->major.v &&
			(!a->minor.set || (d->minor.set && d->minor.v == a->minor.v)))
			return true;
	}
	return false;
}

/* Returns where the jumps are that are to go to the next rule. */
static size_t emit_tests(struct prog *p, const struct spec_device_rule *d, size_t jumps[2])
{
	unsigned type = d->type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR;
	const unsigned unless_equal = BPF_JMP32 | BPF_JNE | BPF_K;
	uint64_t device = (uint64_t)type << MAJOR_BITS | (uint64_t)d->major.v;
	size_t n = 0;

	if (d->major.set && d->minor.set) {
		device = device << MINOR_BITS | (uint64_t)d->minor.v;
		emit(p, BPF_LD | BPF_DW | BPF_IMM, BPF_REG_0, 0, (int32_t)device);
		emit(p, 0, 0, 0, (int32_t)(device >> 32));
		emit(p, BPF_JMP | BPF_JNE | BPF_X, DEVICE, BPF_REG_0, 0);
	} else if (d->major.set) {
		emit(p, unless_equal, TYPE_MAJOR, 0, (int32_t)device);
	} else {
		emit(p, unless_equal, TYPE, 0, (int32_t)type);
	}
	jumps[n++] = p->n - 1;
	if (!d->major.set && d->minor.set) {
		emit(p, unless_equal, MINOR, 0, (int32_t)d->minor.v);
		jumps[n++] = p->n - 1;
	}
	return n;
}

/* Tests that do not hold jump to the next rule; the distances are known after the rule. */
static void emit_rule(struct prog *p, const struct spec_device_rule *d)
{
	unsigned beyond = ~d->access & ALL_ACCESS;
	size_t jumps[3], n = d->type == 'a' ? 0 : emit_tests(p, d, jumps);

	if (d->type != 'a' && beyond) {
		/* Allow: nothing beyond the rule is asked for. Deny: something of the rule is. */
		emit(p, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, ACCESS, 0);
		emit(p, BPF_ALU | BPF_AND | BPF_K, BPF_REG_1, 0,
			(int32_t)(d->allow ? beyond : d->access));
		emit(p, BPF_JMP32 | (d->allow ? BPF_JNE : BPF_JEQ) | BPF_K, BPF_REG_1, 0, 0);
		jumps[n++] = p->n - 1;
	}
	emit(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, d->allow);
	emit(p, BPF_JMP | BPF_EXIT, 0, 0, 0);
	for (size_t i = 0; i < n; i++)
		p->v[jumps[i]].off = (short)(p->n - jumps[i] - 1);
}

void cgroup_devices_program(const struct spec_resources *r, struct bpf_insn **insns, size_t *n)
{
	struct prog p = {0};

	load_context(&p);
	for (size_t i = count(r); i-- > first(r);) {
		const struct spec_device_rule *d = rule(r, i);
		bool own = i >= BEFORE && i < BEFORE + r->ndevices;

		if (!own || (!fits_none(d) && !is_in_after(d)))
			emit_rule(&p, d);
	}
	*insns = p.v;
	*n = p.n;
}

static int bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

int cgroup_devices_attach(int dir, const struct spec_resources *r, struct err *e)
{
	auto_free struct bpf_insn *insns = NULL;
	union bpf_attr attr;
	size_t n;

	cgroup_devices_program(r, &insns, &n);
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = (uint32_t)n;
	attr.license = (uintptr_t) "GPL";
	auto_fd int prog = bpf(BPF_PROG_LOAD, &attr);
	if (prog < 0)
		return err_sys(e, "load the device filter (%zu instructions)", n);
	memset(&attr, 0, sizeof(attr));
	attr.target_fd = (uint32_t)dir;
	attr.attach_bpf_fd = (uint32_t)prog;
	attr.attach_type = BPF_CGROUP_DEVICE;
	attr.attach_flags = BPF_F_ALLOW_MULTI; /* the filters of the cgroups above stay in force */
	if (bpf(BPF_PROG_ATTACH, &attr) < 0)
		return err_sys(e, "attach the device filter");
	return 0;
}
