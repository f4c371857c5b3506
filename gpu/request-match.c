/* Names of GPUs, against what the host has. */
#include "gpu/request.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "gpu/nvidia-proc.h"

enum { LIST_MAX = 900, TOLD_MAX = 4 };

/* ---- one name ---- */

struct search {
	const struct gpu_inventory *i;
	const char *name;
	struct gpu_grant found;
	size_t n; /* how many there are */
};

static void found(struct search *s, const struct gpu_device *d, const struct gpu_mig *m)
{
	if (s->n++ == 0)
		s->found = (struct gpu_grant){d, m};
}

static const struct gpu_mig *mig_at(const struct gpu_device *d, uint32_t index)
{
	return index < d->nmigs ? &d->migs[index] : NULL;
}

/* "3", "0:1" */
static bool by_index(struct search *s)
{
	const char *colon = strchr(s->name, ':');
	char first[16];
	uint64_t index, mig = 0;

	snprintf(first, sizeof(first), "%.*s",
		(int)(colon ? colon - s->name : (ptrdiff_t)strlen(s->name)), s->name);
	if (str_u64(first, UINT32_MAX - 1, &index) < 0 ||
		(colon && str_u64(colon + 1, UINT32_MAX - 1, &mig) < 0))
		return false;
	for (size_t k = 0; k < s->i->n; k++) {
		const struct gpu_device *d = &s->i->v[k];

		if (d->index != index || d->excluded)
			continue;
		if (!colon)
			found(s, d, NULL);
		else if (mig_at(d, (uint32_t)mig))
			found(s, d, mig_at(d, (uint32_t)mig));
	}
	return true;
}

static bool by_bus(struct search *s)
{
	struct pci_bus want, has = {0};

	if (pci_bus_parse(&want, s->name, true) < 0)
		return false;
	for (size_t k = 0; k < s->i->n; k++)
		if (pci_bus_parse(&has, s->i->v[k].bus, false) == 0 &&
			pci_bus_compare(&want, &has) == 0)
			found(s, &s->i->v[k], NULL);
	return true;
}

/* "MIG-GPU-UUID/1/0", as drivers before 470 call the compute instance 0 of GPU instance 1. */
static bool by_instances(struct search *s)
{
	const char *uuid = s->name + strlen("MIG-"), *slash = strchr(s->name, '/'),
		   *second = slash ? strchr(slash + 1, '/') : NULL;
	char text[16];
	uint64_t gi, ci;

	if (!str_starts(s->name, "MIG-GPU-") || !second)
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)(second - slash - 1), slash + 1);
	if (str_u64(text, UINT32_MAX, &gi) < 0 || str_u64(second + 1, UINT32_MAX, &ci) < 0)
		return true;
	for (size_t k = 0; k < s->i->n; k++) {
		const struct gpu_device *d = &s->i->v[k];

		if (!d->uuid || strlen(d->uuid) != (size_t)(slash - uuid) ||
			strncasecmp(d->uuid, uuid, (size_t)(slash - uuid)) != 0)
			continue;
		for (size_t m = 0; m < d->nmigs; m++)
			if (d->migs[m].gi == gi && d->migs[m].ci == ci)
				found(s, d, &d->migs[m]);
	}
	return true;
}

/* The whole of a UUID, or the beginning of only one. */
static void by_uuid(struct search *s)
{
	size_t n = strlen(s->name);

	for (size_t k = 0; k < s->i->n; k++) {
		const struct gpu_device *d = &s->i->v[k];

		if (d->uuid && strncasecmp(d->uuid, s->name, n) == 0)
			found(s, d, NULL);
		for (size_t m = 0; m < d->nmigs; m++)
			if (d->migs[m].uuid && strncasecmp(d->migs[m].uuid, s->name, n) == 0)
				found(s, d, &d->migs[m]);
	}
}

int gpu_name_match(
	const struct gpu_inventory *i, const char *name, struct gpu_grant *g, struct err *e)
{
	struct search s = {.i = i, .name = name};
	char shown[STR_SHOWN];

	if (!by_index(&s) && !by_bus(&s) && !by_instances(&s) &&
		(strncasecmp(name, "GPU-", 4) == 0 || strncasecmp(name, "MIG-", 4) == 0) && name[4])
		by_uuid(&s);
	if (s.n > 1) {
		err_set(e, ERR_USAGE, "'%s' fits %zu of the host's GPUs", str_shown(name, shown),
			s.n);
		return err_hint(e, "name it by its whole UUID or its PCI bus id: svrun gpu ls");
	}
	if (s.n && s.found.device->excluded)
		return err_set(e, ERR_DENIED,
			"the GPU at %s is excluded by the configuration of the driver",
			s.found.device->bus);
	*g = s.found;
	return s.n ? 1 : 0;
}

/* ---- all names ---- */

static bool has_grant(const struct gpu_grants *g, const struct gpu_grant *x)
{
	for (size_t k = 0; k < g->n; k++)
		if (g->v[k].device == x->device && g->v[k].mig == x->mig)
			return true;
	return false;
}

static void add_grant(struct gpu_grants *g, size_t *cap, const struct gpu_grant *x)
{
	if (has_grant(g, x))
		return;
	mem_grow(&g->v, cap, g->n);
	g->v[g->n++] = *x;
}

static void add_all(const struct gpu_inventory *i, struct gpu_grants *g, size_t *cap)
{
	for (size_t k = 0; k < i->n; k++) {
		const struct gpu_device *d = &i->v[k];

		if (d->excluded)
			continue;
		if (!d->nmigs)
			add_grant(g, cap, &(struct gpu_grant){d, NULL});
		for (size_t m = 0; m < d->nmigs; m++)
			add_grant(g, cap, &(struct gpu_grant){d, &d->migs[m]});
	}
}

static size_t givable(const struct gpu_inventory *i)
{
	size_t n = 0;

	for (size_t k = 0; k < i->n; k++)
		n += !i->v[k].excluded;
	return n;
}

/* What the host has, for people: "0 (NVIDIA L4, GPU-...), ..."; of many their indexes. */
static void list_host(const struct gpu_inventory *i, struct buf *b)
{
	bool many = givable(i) > TOLD_MAX;

	for (size_t k = 0; k < i->n && b->len < LIST_MAX; k++) {
		const struct gpu_device *d = &i->v[k];

		if (d->excluded)
			continue;
		buf_printf(b, "%s%u", b->len ? ", " : "", d->index);
		if (many)
			continue;
		buf_printf(b, " (%s, %s", d->model ? d->model : "?", d->uuid ? d->uuid : d->bus);
		if (d->nmigs)
			buf_printf(b, ", %zu MIG devices", d->nmigs);
		buf_printf(b, ")");
	}
}

static int not_found(const struct gpu_inventory *i, const char *missing, struct err *e)
{
	auto_buf struct buf has = BUF_INIT(1 << 20);

	list_host(i, &has);
	if (!has.len && i->dxg) {
		err_set(e, ERR_NOT_FOUND, "no GPU %s: WSL2 has one device for all of them",
			missing);
		return err_hint(e, "--gpus all gives it");
	}
	if (!has.len && i->driver) {
		err_set(e, ERR_NOT_FOUND, "no GPU %s: NVIDIA's driver %s is loaded and has no GPU",
			missing, i->driver);
		return err_hint(e, "dmesg tells why the driver leaves a GPU alone");
	}
	if (!has.len) {
		err_set(e, ERR_NOT_FOUND, "no GPU %s: this host has none that a driver serves",
			missing);
		return err_hint(e, "svrun doctor looks for the reason");
	}
	err_set(e, ERR_NOT_FOUND, "no GPU %s: the host has %.*s%s", missing,
		(int)(has.len < LIST_MAX ? has.len : LIST_MAX), has.data,
		has.len < LIST_MAX ? "" : " ...");
	return err_hint(e, "svrun gpu ls shows them, with UUID and PCI bus");
}

/* A whole GPU and a part of it cannot be held by one both. */
static int check_parts(const struct gpu_grants *g, struct err *e)
{
	for (size_t a = 0; a < g->n; a++)
		for (size_t b = 0; b < g->n; b++)
			if (!g->v[a].mig && g->v[b].mig && g->v[a].device == g->v[b].device)
				return err_set(e, ERR_USAGE,
					"GPU %u and its MIG device %u:%u are named both",
					g->v[a].device->index, g->v[b].device->index,
					g->v[b].mig->index);
	return 0;
}

static int match_names(const struct gpu_request *r, const struct gpu_inventory *i,
	struct gpu_grants *g, size_t *cap, struct err *e)
{
	auto_buf struct buf missing = BUF_INIT(1 << 20);

	for (size_t k = 0; k < r->names.n; k++) {
		struct gpu_grant one;
		int rc = gpu_name_match(i, r->names.v[k], &one, e);

		if (rc < 0)
			return -1;
		if (rc > 0)
			add_grant(g, cap, &one);
		else if (missing.len < LIST_MAX / 2)
			buf_printf(&missing, "%s%s", missing.len ? ", " : "", r->names.v[k]);
	}
	return missing.len ? not_found(i, missing.data, e) : check_parts(g, e);
}

int gpu_request_match(const struct gpu_request *r, const struct gpu_inventory *i,
	struct gpu_grants *g, struct err *e)
{
	struct gpu_grants got = {0};
	size_t cap = 0;
	int rc = 0;

	if (r->all) {
		add_all(i, &got, &cap);
		if (!got.n && !i->dxg)
			rc = not_found(i, "to give", e);
	}
	if (rc == 0 && r->names.n)
		rc = match_names(r, i, &got, &cap, e);
	if (rc < 0) {
		free(got.v);
		return -1;
	}
	*g = got;
	return 0;
}
