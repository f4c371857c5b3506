#include "runtime/spec.h"

#include <ctype.h>
#include <net/if.h>

#include "base/str.h"

enum { WEIGHT_MIN = 10, WEIGHT_MAX = 1000, SWAPPINESS_MAX = 100 };

/* ---- devices ---- */

struct rule_reading {
	struct spec_device_rule rule;
	const char *type, *access;
};

static int read_access(const struct at *a, const char *s, unsigned *out, struct err *e)
{
	*out = s && *s ? 0 : DEVICE_READ | DEVICE_WRITE | DEVICE_MKNOD;
	for (; s && *s; s++) {
		if (*s == 'r')
			*out |= DEVICE_READ;
		else if (*s == 'w')
			*out |= DEVICE_WRITE;
		else if (*s == 'm')
			*out |= DEVICE_MKNOD;
		else if (*s != 'a') /* a type that strayed in here: others read "rwa" as "rw" */
			return at_error(a, e, "access: '%c' is not r, w or m", *s);
	}
	return *out ? 0 : at_error(a, e, "access: expected r, w and m");
}

static int read_device_rule(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"allow", FIELD_BOOL, offsetof(struct rule_reading, rule.allow), true, NULL},
		{"type", FIELD_OPT_STR, offsetof(struct rule_reading, type), false, NULL},
		{"major", FIELD_OPT_I64, offsetof(struct rule_reading, rule.major), false, NULL},
		{"minor", FIELD_OPT_I64, offsetof(struct rule_reading, rule.minor), false, NULL},
		{"access", FIELD_STR, offsetof(struct rule_reading, access), false, NULL},
		{0},
	};
	struct rule_reading r = {0};
	struct opt_i64 *numbers[] = {&r.rule.major, &r.rule.minor};

	if (fields_read(a, fields, &r, mem, e) < 0 ||
		read_access(a, r.access, &r.rule.access, e) < 0)
		return -1;
	if (r.type && (strlen(r.type) != 1 || !strchr("abc", r.type[0])))
		return at_error(a, e, "type: expected a, b or c, got '%.20s'", r.type);
	r.rule.type = r.type ? r.type[0] : 'a';
	for (int i = 0; i < 2; i++) {
		if (numbers[i]->set && numbers[i]->v == -1) /* engines write -1 for all */
			numbers[i]->set = false;
		if (numbers[i]->set && (numbers[i]->v < 0 || numbers[i]->v > UINT32_MAX))
			return at_error(a, e, "major and minor: expected a device number");
	}
	*(struct spec_device_rule *)out = r.rule;
	return 0;
}

static int read_device_rules(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec_resources *r = out;

	return fields_read_array(
		a, sizeof(*r->devices), &r->devices, &r->ndevices, read_device_rule, mem, e);
}

/* ---- memory, cpu, pids ---- */

/* Accounting below a cgroup has been the only kind since Linux 5.11. */
static int read_hierarchy(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	(void)out;
	(void)mem;
	if (!json_is_boolean(a->v))
		return at_error(a, e, "expected true or false");
	return json_is_true(a->v) ? 0 : at_unsupported(a, e, "the kernel knows only true");
}

static int read_memory(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"limit", FIELD_OPT_I64, offsetof(struct spec_resources, memory_limit), false,
			NULL},
		{"reservation", FIELD_OPT_I64, offsetof(struct spec_resources, memory_reservation),
			false, NULL},
		{"swap", FIELD_OPT_I64, offsetof(struct spec_resources, memory_swap), false, NULL},
		{"kernel", FIELD_OPT_I64, offsetof(struct spec_resources, memory_kernel), false,
			NULL},
		{"kernelTCP", FIELD_OPT_I64, offsetof(struct spec_resources, memory_kernel_tcp),
			false, NULL},
		{"swappiness", FIELD_OPT_U63, offsetof(struct spec_resources, memory_swappiness),
			false, NULL},
		{"disableOOMKiller", FIELD_BOOL,
			offsetof(struct spec_resources, memory_no_oom_killer), false, NULL},
		{"checkBeforeUpdate", FIELD_BOOL, offsetof(struct spec_resources, memory_check),
			false, NULL},
		{"useHierarchy", FIELD_READ, 0, false, read_hierarchy},
		{0},
	};
	const struct spec_resources *r = out;

	if (fields_read(a, fields, out, mem, e) < 0)
		return -1;
	if (r->memory_limit.v < -1 || r->memory_reservation.v < -1 || r->memory_swap.v < -1 ||
		r->memory_kernel.v < -1 || r->memory_kernel_tcp.v < -1)
		return at_error(a, e, "expected bytes, or -1 for no limit");
	if (r->memory_limit.v > 0 && r->memory_swap.v > 0 && r->memory_swap.v < r->memory_limit.v)
		return at_error(a, e, "swap is memory and swap together: at least the limit");
	if (r->memory_swappiness.v > SWAPPINESS_MAX)
		return at_error(a, e, "swappiness: expected 0 to %d", SWAPPINESS_MAX);
	return 0;
}

static int read_cpu(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"shares", FIELD_OPT_U63, offsetof(struct spec_resources, cpu_shares), false, NULL},
		{"quota", FIELD_OPT_I64, offsetof(struct spec_resources, cpu_quota), false, NULL},
		{"period", FIELD_OPT_U63, offsetof(struct spec_resources, cpu_period), false, NULL},
		{"burst", FIELD_OPT_U63, offsetof(struct spec_resources, cpu_burst), false, NULL},
		{"idle", FIELD_OPT_I64, offsetof(struct spec_resources, cpu_idle), false, NULL},
		{"realtimeRuntime", FIELD_OPT_I64, offsetof(struct spec_resources, cpu_rt_runtime),
			false, NULL},
		{"realtimePeriod", FIELD_OPT_U63, offsetof(struct spec_resources, cpu_rt_period),
			false, NULL},
		{"cpus", FIELD_RANGES, offsetof(struct spec_resources, cpus), false, NULL},
		{"mems", FIELD_RANGES, offsetof(struct spec_resources, mems), false, NULL},
		{0},
	};
	const struct spec_resources *r = out;

	if (fields_read(a, fields, out, mem, e) < 0)
		return -1;
	if (r->cpu_quota.v < -1 || r->cpu_rt_runtime.v < -1)
		return at_error(a, e, "expected microseconds, or -1 for no limit");
	if (r->cpu_quota.v > 0 && r->cpu_burst.v > r->cpu_quota.v)
		return at_error(a, e, "burst: more than the quota");
	if (r->cpu_idle.v != 0 && r->cpu_idle.v != 1)
		return at_error(a, e, "idle: expected 0 or 1");
	return 0;
}

static int read_pids(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"limit", FIELD_OPT_I64, offsetof(struct spec_resources, pids), false, NULL},
		{0},
	};
	const struct spec_resources *r = out;

	if (fields_read(a, fields, out, mem, e) < 0)
		return -1;
	return r->pids.v < -1 ? at_error(a, e, "limit: expected a number, or -1 for no limit") : 0;
}

/* ---- block devices ---- */

static int check_weight(
	const struct at *a, const char *name, const struct opt_i64 *w, struct err *e)
{
	if (w->v != 0 && (w->v < WEIGHT_MIN || w->v > WEIGHT_MAX)) /* 0: engines' way to say none */
		return at_error(a, e, "%s: expected %d to %d", name, WEIGHT_MIN, WEIGHT_MAX);
	return 0;
}

static int read_weight(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"major", FIELD_U32, offsetof(struct spec_block_value, major), true, NULL},
		{"minor", FIELD_U32, offsetof(struct spec_block_value, minor), true, NULL},
		{"weight", FIELD_OPT_U32, offsetof(struct spec_block_value, value), false, NULL},
		{"leafWeight", FIELD_OPT_U32, offsetof(struct spec_block_value, leaf), false, NULL},
		{0},
	};
	const struct spec_block_value *v = out;

	if (fields_read(a, fields, out, mem, e) < 0)
		return -1;
	if (!v->value.set && !v->leaf.set)
		return at_error(a, e, "weight or leafWeight is needed");
	if (check_weight(a, "weight", &v->value, e) < 0)
		return -1;
	return check_weight(a, "leafWeight", &v->leaf, e);
}

static int read_rate(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"major", FIELD_U32, offsetof(struct spec_block_value, major), true, NULL},
		{"minor", FIELD_U32, offsetof(struct spec_block_value, minor), true, NULL},
		{"rate", FIELD_OPT_U63, offsetof(struct spec_block_value, value), true, NULL},
		{0},
	};

	return fields_read(a, fields, out, mem, e);
}

static int read_weights(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec_block_values *v = out;

	return fields_read_array(a, sizeof(*v->v), &v->v, &v->n, read_weight, mem, e);
}

static int read_rates(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec_block_values *v = out;

	return fields_read_array(a, sizeof(*v->v), &v->v, &v->n, read_rate, mem, e);
}

static int read_block(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"weight", FIELD_OPT_U32, offsetof(struct spec_resources, block_weight), false,
			NULL},
		{"leafWeight", FIELD_OPT_U32, offsetof(struct spec_resources, block_leaf_weight),
			false, NULL},
		{"weightDevice", FIELD_READ, offsetof(struct spec_resources, block_weights), false,
			read_weights},
		{"throttleReadBpsDevice", FIELD_READ, offsetof(struct spec_resources, read_bps),
			false, read_rates},
		{"throttleWriteBpsDevice", FIELD_READ, offsetof(struct spec_resources, write_bps),
			false, read_rates},
		{"throttleReadIOPSDevice", FIELD_READ, offsetof(struct spec_resources, read_iops),
			false, read_rates},
		{"throttleWriteIOPSDevice", FIELD_READ, offsetof(struct spec_resources, write_iops),
			false, read_rates},
		{0},
	};
	struct spec_resources *r = out;

	if (fields_read(a, fields, out, mem, e) < 0 ||
		check_weight(a, "weight", &r->block_weight, e) < 0 ||
		check_weight(a, "leafWeight", &r->block_leaf_weight, e) < 0)
		return -1;
	r->block_weight.set = r->block_weight.v != 0;
	r->block_leaf_weight.set = r->block_leaf_weight.v != 0;
	return 0;
}

/* ---- huge pages, network, RDMA, unified ---- */

static int read_hugetlb(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"pageSize", FIELD_STR, offsetof(struct spec_hugetlb, page_size), true, NULL},
		{"limit", FIELD_U64, offsetof(struct spec_hugetlb, limit), true, NULL},
		{0},
	};
	struct spec_hugetlb *h = out;
	size_t digits;

	if (fields_read(a, fields, out, mem, e) < 0)
		return -1;
	/* Part of the name of a file of the controller. */
	digits = strspn(h->page_size, "0123456789");
	if (digits == 0 || digits > 10 || h->page_size[0] == '0' ||
		!strchr("KMG", h->page_size[digits]) || !h->page_size[digits] ||
		!str_eq(h->page_size + digits + 1, "B"))
		return at_error(a, e, "pageSize: expected a size such as 2MB");
	if (h->limit < 0) /* beyond INT64_MAX */
		h->limit = INT64_MAX;
	return 0;
}

static int read_hugetlbs(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec_resources *r = out;

	return fields_read_array(
		a, sizeof(*r->hugetlb), &r->hugetlb, &r->nhugetlb, read_hugetlb, mem, e);
}

struct priority_reading {
	const char *name;
	uint32_t priority;
};

static int read_priority(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"name", FIELD_STR, offsetof(struct priority_reading, name), true, NULL},
		{"priority", FIELD_U32, offsetof(struct priority_reading, priority), true, NULL},
		{0},
	};
	struct priority_reading r = {0};

	if (fields_read(a, fields, &r, mem, e) < 0)
		return -1;
	if (!*r.name || strlen(r.name) >= IFNAMSIZ || strpbrk(r.name, "/ \t\n"))
		return at_error(a, e, "name: no name of an interface");
	*(struct spec_pair *)out = (struct spec_pair){r.name, arena_printf(mem, "%u", r.priority)};
	return 0;
}

static int read_priorities(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	struct spec_pairs *p = out;

	return fields_read_array(a, sizeof(*p->v), &p->v, &p->n, read_priority, mem, e);
}

static int read_network(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"classID", FIELD_OPT_U32, offsetof(struct spec_resources, net_class), false, NULL},
		{"priorities", FIELD_READ, offsetof(struct spec_resources, net_priorities), false,
			read_priorities},
		{0},
	};

	return fields_read(a, fields, out, mem, e);
}

static int read_rdma(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"hcaHandles", FIELD_OPT_U32, offsetof(struct spec_rdma, handles), false, NULL},
		{"hcaObjects", FIELD_OPT_U32, offsetof(struct spec_rdma, objects), false, NULL},
		{0},
	};
	struct spec_resources *r = out;
	size_t n = json_object_size(a->v);
	const char *key;
	json_t *v;

	if (!json_is_object(a->v) || n > FIELDS_ELEMENTS_MAX)
		return at_error(a, e, "expected an object of at most %d", FIELDS_ELEMENTS_MAX);
	r->rdma = arena_alloc(mem, n ? n * sizeof(*r->rdma) : 1);
	json_object_foreach (a->v, key, v) {
		const struct at member = {a, key, 0, v};
		struct spec_rdma *d = &r->rdma[r->nrdma++];

		d->device = key;
		if (fields_read(&member, fields, d, mem, e) < 0)
			return -1;
		if (!*key || strpbrk(key, " \t\n/"))
			return at_error(&member, e, "no name of a device");
		if (!d->handles.set && !d->objects.set)
			return at_error(&member, e, "hcaHandles or hcaObjects is needed");
	}
	return 0;
}

static int read_unified(const struct at *a, void *out, struct arena *mem, struct err *e)
{
	const struct spec_pairs *p = out;

	if (spec_pairs(a, out, mem, e) < 0)
		return -1;
	for (size_t i = 0; i < p->n; i++) {
		const char *s = p->v[i].name;
		const struct at member = {a, s, 0, NULL};

		/* A file of the cgroup's folder: "memory.high". */
		if (!isalpha((unsigned char)s[0]) || strchr(s, '/') || !strchr(s, '.') ||
			strlen(s) > 255)
			return at_error(&member, e, "no name of a file of the controllers");
	}
	return 0;
}

int spec_resources(const struct at *a, void *spec_resources, struct arena *mem, struct err *e)
{
	static const struct field fields[] = {
		{"devices", FIELD_READ, 0, false, read_device_rules},
		{"memory", FIELD_READ, 0, false, read_memory},
		{"cpu", FIELD_READ, 0, false, read_cpu},
		{"pids", FIELD_READ, 0, false, read_pids},
		{"blockIO", FIELD_READ, 0, false, read_block},
		{"hugepageLimits", FIELD_READ, 0, false, read_hugetlbs},
		{"network", FIELD_READ, 0, false, read_network},
		{"rdma", FIELD_READ, 0, false, read_rdma},
		{"unified", FIELD_READ, offsetof(struct spec_resources, unified), false,
			read_unified},
		{0},
	};

	return fields_read(a, fields, spec_resources, mem, e);
}
