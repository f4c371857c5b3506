#include "runtime/spec.h"

#include <ctype.h>
#include <net/if.h>

#include "base/str.h"

#define MEMBER(kind, name, member, ...)                                                            \
	FIELD(kind, name, struct spec_resources, member, __VA_ARGS__)
/* -1: no limit. A number that is not negative. */
#define LIMIT(name, member) MEMBER(OPT, name, member, .min = -1, .max = INT64_MAX)
#define COUNT(name, member) MEMBER(OPT, name, member, .max = INT64_MAX)

/* ---- devices ---- */

enum { ALL_ACCESS = DEVICE_READ | DEVICE_WRITE | DEVICE_MKNOD };

static int read_access(const struct at *a, void *out, struct err *e)
{
	static const char letters[] = "mrw"; /* DEVICE_MKNOD and its neighbours are the bits */
	const char *s = at_string(a, e);
	unsigned *access = out;

	if (!s || !*s)
		return s ? 0 : -1;
	for (; *s; s++) {
		const char *letter = strchr(letters, *s);

		if (letter)
			*access |= 1u << (letter - letters);
		else if (*s != 'a') /* a type that strayed in here: others read "rwa" as "rw" */
			return at_error(a, e, "'%c' is not r, w or m", *s);
	}
	return *access ? 0 : at_error(a, e, "expected r, w and m");
}

static int check_device_rule(const struct at *a, void *out, struct err *e)
{
	struct spec_device_rule *r = out;

	(void)a;
	(void)e;
	if (r->major.v < 0) /* engines write -1 for all */
		r->major = (struct opt_i64){0};
	if (r->minor.v < 0)
		r->minor = (struct opt_i64){0};
	r->type = r->type ? r->type : 'a';
	r->access = r->access ? r->access : ALL_ACCESS;
	return 0;
}

/* Controllers know "all devices" only with all numbers and all access: a finer rule for both types
 * becomes one for each. */
static int split_device_rules(const struct at *a, void *out, struct err *e)
{
	struct {
		struct spec_device_rule *v;
		size_t n;
	} was, now = {0};

	(void)e;
	memcpy(&was, out, sizeof(was));
	now.v = arena_alloc(a->mem, (2 * was.n + 1) * sizeof(*now.v));
	for (size_t i = 0; i < was.n; i++) {
		struct spec_device_rule *r = &now.v[now.n++];

		*r = was.v[i];
		if (r->type == 'a' && (r->major.set || r->minor.set || r->access != ALL_ACCESS)) {
			r->type = 'b';
			now.v[now.n++] = *r;
			now.v[now.n - 1].type = 'c';
		}
	}
	memcpy(out, &now, sizeof(now));
	return 0;
}

static const struct fields_word rule_types[] = {{"a", 'a'}, {"b", 'b'}, {"c", 'c'}, {"", 'a'}, {0}};

#define NUMBER(name, member)                                                                       \
	FIELD(OPT, name, struct spec_device_rule, member, .min = -1, .max = UINT32_MAX)

/* ---- memory, cpu, pids ---- */

/* Accounting below a cgroup has been the only kind since Linux 5.11. */
static int check_hierarchy(const struct at *a, void *out, struct err *e)
{
	(void)out;
	if (!json_is_boolean(a->v))
		return at_error(a, e, "expected true or false");
	return json_is_true(a->v) ? 0 : at_unsupported(a, e, "the kernel knows only true");
}

static int check_memory(const struct at *a, void *out, struct err *e)
{
	const struct spec_resources *r = out;

	if (r->memory_limit.v > 0 && r->memory_swap.v > 0 && r->memory_swap.v < r->memory_limit.v)
		return at_error(a, e, "swap is memory and swap together: at least the limit");
	return 0;
}

static int check_cpu(const struct at *a, void *out, struct err *e)
{
	const struct spec_resources *r = out;

	if (r->cpu_quota.v > 0 && r->cpu_burst.v > r->cpu_quota.v)
		return at_error(a, e, "burst: more than the quota");
	return 0;
}

/* ---- block devices ---- */

static int check_weight(const struct at *a, void *out, struct err *e)
{
	const struct opt_i64 *w = out;

	if (w->v != 0 && (w->v < 10 || w->v > 1000))
		return at_error(a, e, "expected 10 to 1000");
	return 0;
}

static int check_block(const struct at *a, void *out, struct err *e)
{
	struct spec_resources *r = out;

	(void)a;
	(void)e;
	r->block_weight.set = r->block_weight.v != 0; /* 0: engines' way to say none */
	r->block_leaf_weight.set = r->block_leaf_weight.v != 0;
	return 0;
}

static int check_weights(const struct at *a, void *out, struct err *e)
{
	const struct spec_block_value *b = out;

	return b->value.set || b->leaf.set ? 0 : at_error(a, e, "weight or leafWeight is needed");
}

#define BLOCK(kind, name, member, ...)                                                             \
	FIELD(kind, name, struct spec_block_value, member, __VA_ARGS__)
#define WEIGHT .max = UINT32_MAX, .check = check_weight
static const struct field rate_fields[] = {
	BLOCK(U32, "major", major, .required = true),
	BLOCK(U32, "minor", minor, .required = true),
	BLOCK(OPT, "rate", value, .required = true, .max = INT64_MAX),
	{0},
};

#define RATES(name, member)                                                                        \
	FIELD_LIST(ARRAY, name, struct spec_resources, member.v, .rows = rate_fields)

/* ---- huge pages, network, RDMA, unified ---- */

static int check_hugetlb(const struct at *a, void *out, struct err *e)
{
	struct spec_hugetlb *h = out;
	/* Part of the name of a file of the controller. */
	size_t digits = strspn(h->page_size, "0123456789");

	if (digits == 0 || digits > 10 || h->page_size[0] == '0' ||
		!strchr("KMG", h->page_size[digits]) || !h->page_size[digits] ||
		!str_eq(h->page_size + digits + 1, "B"))
		return at_error(a, e, "pageSize: expected a size such as 2MB");
	if (h->limit < 0) /* beyond INT64_MAX */
		h->limit = INT64_MAX;
	return 0;
}

static int check_priority(const struct at *a, void *out, struct err *e)
{
	const struct spec_pair *p = out;

	if (!*p->name || strlen(p->name) >= IFNAMSIZ || strpbrk(p->name, "/ \t\n"))
		return at_error(a, e, "name: no name of an interface");
	return 0;
}

static int read_decimal(const struct at *a, void *out, struct err *e)
{
	static const struct field number = {.kind = FIELD_U32};
	uint32_t v;

	if (field_read(a, &number, &v, e) < 0)
		return -1;
	*(const char **)out = arena_printf(a->mem, "%u", v);
	return 0;
}

static int check_rdma(const struct at *a, void *out, struct err *e)
{
	const struct spec_rdma *d = out;

	if (!*d->device || strpbrk(d->device, " \t\n/"))
		return at_error(a, e, "no name of a device");
	if (!d->handles.set && !d->objects.set)
		return at_error(a, e, "hcaHandles or hcaObjects is needed");
	return 0;
}

static int check_unified(const struct at *a, void *out, struct err *e)
{
	const char *s = a->key;

	if (spec_pair(a, out, e) < 0)
		return -1;
	/* A file of the cgroup's folder: "memory.high". */
	if (!isalpha((unsigned char)s[0]) || strchr(s, '/') || !strchr(s, '.') || strlen(s) > 255)
		return at_error(a, e, "no name of a file of the controllers");
	return 0;
}

const struct field spec_resources_fields[] = {
	FIELD_LIST(ARRAY, "devices", struct spec_resources, devices,
		ROWS(FIELD(BOOL, "allow", struct spec_device_rule, allow, .required = true),
			FIELD(WORD, "type", struct spec_device_rule, type, .words = rule_types),
			NUMBER("major", major), NUMBER("minor", minor),
			FIELD(READ, "access", struct spec_device_rule, access,
				.check = read_access)),
		.each = check_device_rule, .check = split_device_rules),
	FIELD_PART("memory",
		ROWS(LIMIT("limit", memory_limit), LIMIT("reservation", memory_reservation),
			LIMIT("swap", memory_swap), LIMIT("kernel", memory_kernel),
			LIMIT("kernelTCP", memory_kernel_tcp),
			MEMBER(OPT, "swappiness", memory_swappiness, .max = 100),
			MEMBER(BOOL, "disableOOMKiller", memory_no_oom_killer),
			MEMBER(BOOL, "checkBeforeUpdate", memory_check),
			{.name = "useHierarchy", .kind = FIELD_READ, .check = check_hierarchy}),
		.check = check_memory),
	FIELD_PART("cpu",
		ROWS(COUNT("shares", cpu_shares), LIMIT("quota", cpu_quota),
			COUNT("period", cpu_period), COUNT("burst", cpu_burst),
			MEMBER(OPT, "idle", cpu_idle, .max = 1),
			LIMIT("realtimeRuntime", cpu_rt_runtime),
			COUNT("realtimePeriod", cpu_rt_period), MEMBER(RANGES, "cpus", cpus),
			MEMBER(RANGES, "mems", mems)),
		.check = check_cpu),
	FIELD_PART("pids", ROWS(LIMIT("limit", pids))),
	FIELD_PART("blockIO",
		ROWS(MEMBER(OPT, "weight", block_weight, WEIGHT),
			MEMBER(OPT, "leafWeight", block_leaf_weight, WEIGHT),
			FIELD_LIST(ARRAY, "weightDevice", struct spec_resources, block_weights.v,
				ROWS(BLOCK(U32, "major", major, .required = true),
					BLOCK(U32, "minor", minor, .required = true),
					BLOCK(OPT, "weight", value, WEIGHT),
					BLOCK(OPT, "leafWeight", leaf, WEIGHT)),
				.each = check_weights),
			RATES("throttleReadBpsDevice", read_bps),
			RATES("throttleWriteBpsDevice", write_bps),
			RATES("throttleReadIOPSDevice", read_iops),
			RATES("throttleWriteIOPSDevice", write_iops)),
		.check = check_block),
	FIELD_LIST(ARRAY, "hugepageLimits", struct spec_resources, hugetlb,
		ROWS(FIELD(STR, "pageSize", struct spec_hugetlb, page_size, .required = true),
			FIELD(U64, "limit", struct spec_hugetlb, limit, .required = true)),
		.each = check_hugetlb),
	FIELD_PART("network",
		ROWS(MEMBER(OPT, "classID", net_class, .max = UINT32_MAX),
			FIELD_LIST(ARRAY, "priorities", struct spec_resources, net_priorities.v,
				ROWS(FIELD(STR, "name", struct spec_pair, name, .required = true),
					FIELD(READ, "priority", struct spec_pair, value,
						.required = true, .check = read_decimal)),
				.each = check_priority))),
	FIELD_LIST(MAP, "rdma", struct spec_resources, rdma,
		ROWS(FIELD(OPT, "hcaHandles", struct spec_rdma, handles, .max = UINT32_MAX),
			FIELD(OPT, "hcaObjects", struct spec_rdma, objects, .max = UINT32_MAX)),
		.each = check_rdma),
	FIELD_LIST(MAP, "unified", struct spec_resources, unified.v, .each = check_unified),
	{0},
};
