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

/* r2 type, r3 access, r4 major, r5 minor; r1 is the context, free after that. */
static void load_context(struct prog *p)
{
	emit_load(p, BPF_REG_2, offsetof(struct bpf_cgroup_dev_ctx, access_type));
	emit_load(p, BPF_REG_4, offsetof(struct bpf_cgroup_dev_ctx, major));
	emit_load(p, BPF_REG_5, offsetof(struct bpf_cgroup_dev_ctx, minor));
	emit(p, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_3, BPF_REG_2, 0);
	emit(p, BPF_ALU | BPF_RSH | BPF_K, BPF_REG_3, 0, 16);
	emit(p, BPF_ALU | BPF_AND | BPF_K, BPF_REG_2, 0, 0xffff);
}

/* Tests that do not hold jump to the next rule; the distances are known after the rule. */
static void emit_rule(struct prog *p, const struct spec_device_rule *d)
{
	const unsigned unless_equal = BPF_JMP32 | BPF_JNE | BPF_K;
	unsigned beyond = ~d->access & ALL_ACCESS;
	size_t jumps[4], n = 0;

	if (d->type != 'a')
		jumps[n++] = emit(p, unless_equal, BPF_REG_2, 0,
			d->type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR);
	if (d->type != 'a' && d->major.set)
		jumps[n++] = emit(p, unless_equal, BPF_REG_4, 0, (int32_t)d->major.v);
	if (d->type != 'a' && d->minor.set)
		jumps[n++] = emit(p, unless_equal, BPF_REG_5, 0, (int32_t)d->minor.v);
	if (d->type != 'a' && beyond) {
		/* Allow: nothing beyond the rule is asked for. Deny: something of the rule is. */
		emit(p, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_3, 0);
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
	struct prog p = {0};

	load_context(&p);
	for (size_t i = rules(r, &v); i-- > 0;)
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
