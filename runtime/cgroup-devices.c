#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/cgroup-file.h"

enum { ALL_ACCESS = DEVICE_READ | DEVICE_WRITE | DEVICE_MKNOD };

#define CHARACTER(access_, ...)                                                                    \
	{                                                                                          \
		.allow = true, .type = 'c', .access = (access_), __VA_ARGS__                       \
	}
#define NODE(major_n, minor_n)                                                                     \
	CHARACTER(ALL_ACCESS, .major = {true, major_n}, .minor = {true, minor_n})
/* Any node may be made; null, zero, full, random, urandom, tty, ptmx, and all of pts. */
static const struct spec_device_rule always[] = {CHARACTER(DEVICE_MKNOD),
	{.allow = true, .type = 'b', .access = DEVICE_MKNOD}, NODE(1, 3), NODE(1, 5), NODE(1, 7),
	NODE(1, 8), NODE(1, 9), NODE(5, 0), NODE(5, 2),
	CHARACTER(ALL_ACCESS, .major = {true, 136})};
enum { ALWAYS = sizeof(always) / sizeof(always[0]) };

/* All rules, from the last one for all devices: those before it cannot matter. *v is the caller's
 * to free. */
static size_t rules(const struct spec_resources *r, struct spec_device_rule **v)
{
	size_t from = r->ndevices, n = 0;

	while (from > 0 && r->devices[from - 1].type != 'a')
		from--;
	*v = mem_array(1 + r->ndevices + ALWAYS, sizeof(**v));
	if (from == 0)
		(*v)[n++] = (struct spec_device_rule){.type = 'a', .access = ALL_ACCESS};
	for (from -= from > 0; from < r->ndevices; from++)
		(*v)[n++] = r->devices[from];
	memcpy(*v + n, always, sizeof(always));
	return n + ALWAYS;
}

/* ---- version 1 ---- */

static int write_rule(int fds[2], const struct spec_device_rule *d, struct err *e)
{
	char line[64] = "a", major[16] = "*", minor[16] = "*";

	if (d->major.set)
		snprintf(major, sizeof(major), "%u", (unsigned)d->major.v);
	if (d->minor.set)
		snprintf(minor, sizeof(minor), "%u", (unsigned)d->minor.v);
	if (d->type != 'a') /* the kernel takes "a" for all of it, and nothing finer */
		snprintf(line, sizeof(line), "%c %s:%s %s%s%s", d->type, major, minor,
			d->access & DEVICE_READ ? "r" : "", d->access & DEVICE_WRITE ? "w" : "",
			d->access & DEVICE_MKNOD ? "m" : "");
	if (sys_write_all(fds[d->allow], line, strlen(line)) < 0)
		return err_sys(e, "device rule '%s %s'", d->allow ? "allow" : "deny", line);
	return 0;
}

int cgroup_devices_write(int dir, const struct spec_resources *r, struct err *e)
{
	auto_fd int deny = sys_openat(dir, "devices.deny", O_WRONLY, 0);
	auto_fd int allow = sys_openat(dir, "devices.allow", O_WRONLY, 0);
	auto_free struct spec_device_rule *v = NULL;
	size_t n = rules(r, &v);

	if (allow < 0 || deny < 0)
		return err_sys(e, "devices.allow");
	for (size_t i = 0; i < n; i++)
		if (write_rule((int[]){deny, allow}, &v[i], e) < 0)
			return -1;
	return 0;
}

/* ---- version 2 ---- */

struct prog {
	struct bpf_insn *v;
	size_t n, cap;
};

static size_t emit(struct prog *p, unsigned code, unsigned dst, unsigned src, int32_t imm)
{
	mem_grow(&p->v, &p->cap, p->n);
	p->v[p->n] = (struct bpf_insn){
		.code = (uint8_t)code, .dst_reg = dst & 15, .src_reg = src & 15, .imm = imm};
	return p->n++;
}

static void emit_load(struct prog *p, unsigned dst, size_t offset)
{
	size_t at = emit(p, BPF_LDX | BPF_W | BPF_MEM, dst, BPF_REG_1, 0);

	p->v[at].off = (short)offset;
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

/* Does one of those for every container decide for all that this one is about? */
static bool is_decided(const struct spec_device_rule *d)
{
	for (size_t i = 0; i < ALWAYS; i++) {
		const struct spec_device_rule *a = &always[i];

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
		jumps[n++] = emit(p, BPF_JMP | BPF_JNE | BPF_X, DEVICE, BPF_REG_0, 0);
	} else if (d->major.set) {
		jumps[n++] = emit(p, unless_equal, TYPE_MAJOR, 0, (int32_t)device);
	} else {
		jumps[n++] = emit(p, unless_equal, TYPE, 0, (int32_t)type);
		if (d->minor.set)
			jumps[n++] = emit(p, unless_equal, MINOR, 0, (int32_t)d->minor.v);
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
		jumps[n++] = emit(
			p, BPF_JMP32 | (d->allow ? BPF_JNE : BPF_JEQ) | BPF_K, BPF_REG_1, 0, 0);
	}
	emit(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, d->allow);
	emit(p, BPF_JMP | BPF_EXIT, 0, 0, 0);
	while (n-- > 0)
		p->v[jumps[n]].off = (short)(p->n - jumps[n] - 1);
}

void cgroup_devices_program(const struct spec_resources *r, struct bpf_insn **insns, size_t *n)
{
	auto_free struct spec_device_rule *v = NULL;
	size_t last = rules(r, &v), i = last;
	struct prog p = {0};

	load_context(&p);
	while (i-- > 0)
		if (i >= last - ALWAYS || (!fits_none(&v[i]) && !is_decided(&v[i])))
			emit_rule(&p, &v[i]);
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
