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

static const struct spec_device_rule after[] = {
	{.allow = true, .type = 'c', .access = DEVICE_MKNOD},
	{.allow = true, .type = 'b', .access = DEVICE_MKNOD},
	{.allow = true, .type = 'c', .major = NUM(1), .minor = NUM(3), .access = ALL_ACCESS},
	{.allow = true, .type = 'c', .major = NUM(1), .minor = NUM(5), .access = ALL_ACCESS},
	{.allow = true, .type = 'c', .major = NUM(1), .minor = NUM(7), .access = ALL_ACCESS},
	{.allow = true, .type = 'c', .major = NUM(1), .minor = NUM(8), .access = ALL_ACCESS},
	{.allow = true, .type = 'c', .major = NUM(1), .minor = NUM(9), .access = ALL_ACCESS},
	{.allow = true, .type = 'c', .major = NUM(5), .minor = NUM(0), .access = ALL_ACCESS},
	{.allow = true, .type = 'c', .major = NUM(5), .minor = NUM(2), .access = ALL_ACCESS},
	{.allow = true, .type = 'c', .major = NUM(136), .access = ALL_ACCESS}, /* pts */
};
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

static void emit(struct prog *p, struct bpf_insn insn)
{
	mem_grow(&p->v, &p->cap, p->n);
	p->v[p->n++] = insn;
}

/* r2 type, r3 access, r4 major, r5 minor; r1 is the context, free after that. */
static void load_context(struct prog *p)
{
	static const struct {
		unsigned reg;
		size_t off;
	} loads[] = {
		{BPF_REG_2, offsetof(struct bpf_cgroup_dev_ctx, access_type)},
		{BPF_REG_4, offsetof(struct bpf_cgroup_dev_ctx, major)},
		{BPF_REG_5, offsetof(struct bpf_cgroup_dev_ctx, minor)},
	};

	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		emit(p, (struct bpf_insn){.code = BPF_LDX | BPF_W | BPF_MEM,
				.dst_reg = loads[i].reg & 15,
				.src_reg = BPF_REG_1,
				.off = (short)loads[i].off});
	emit(p, (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_X,
			.dst_reg = BPF_REG_3,
			.src_reg = BPF_REG_2});
	emit(p, (struct bpf_insn){
			.code = BPF_ALU | BPF_RSH | BPF_K, .dst_reg = BPF_REG_3, .imm = 16});
	emit(p, (struct bpf_insn){
			.code = BPF_ALU | BPF_AND | BPF_K, .dst_reg = BPF_REG_2, .imm = 0xffff});
}

/* Tests that do not hold jump to the next rule; the distances are known after the rule. */
static size_t unless_equal(struct prog *p, unsigned reg, int32_t value)
{
	emit(p, (struct bpf_insn){
			.code = BPF_JMP32 | BPF_JNE | BPF_K, .dst_reg = reg & 15, .imm = value});
	return p->n - 1;
}

static void emit_return(struct prog *p, int value)
{
	emit(p, (struct bpf_insn){
			.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = value});
	emit(p, (struct bpf_insn){.code = BPF_JMP | BPF_EXIT});
}

static void emit_rule(struct prog *p, const struct spec_device_rule *d)
{
	size_t jumps[4], n = 0;
	unsigned beyond = ~d->access & ALL_ACCESS;

	if (d->type != 'a')
		jumps[n++] = unless_equal(
			p, BPF_REG_2, d->type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR);
	if (d->type != 'a' && d->major.set)
		jumps[n++] = unless_equal(p, BPF_REG_4, (int32_t)d->major.v);
	if (d->type != 'a' && d->minor.set)
		jumps[n++] = unless_equal(p, BPF_REG_5, (int32_t)d->minor.v);
	if (d->type != 'a' && beyond) {
		/* Allow: nothing beyond the rule is asked for. Deny: something of the rule is. */
		emit(p, (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_X,
				.dst_reg = BPF_REG_1,
				.src_reg = BPF_REG_3});
		emit(p, (struct bpf_insn){.code = BPF_ALU | BPF_AND | BPF_K,
				.dst_reg = BPF_REG_1,
				.imm = (int32_t)(d->allow ? beyond : d->access)});
		emit(p, (struct bpf_insn){
				.code = BPF_JMP32 | (d->allow ? BPF_JNE : BPF_JEQ) | BPF_K,
				.dst_reg = BPF_REG_1});
		jumps[n++] = p->n - 1;
	}
	emit_return(p, d->allow);
	for (size_t i = 0; i < n; i++)
		p->v[jumps[i]].off = (short)(p->n - jumps[i] - 1);
}

void cgroup_devices_program(const struct spec_resources *r, struct bpf_insn **insns, size_t *n)
{
	struct prog p = {0};

	load_context(&p);
	for (size_t i = count(r); i-- > first(r);)
		emit_rule(&p, rule(r, i));
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
