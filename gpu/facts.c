#include "gpu/facts.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "gpu/host-files.h"
#include "gpu/models.h"

enum { PROBE_MAX = 1 << 20, GPU_MIB_MAX = 1 << 24 };

/* ---- the probe that is kept ---- */

static bool member_is(const json_t *doc, const char *key, const char *text)
{
	const char *v = json_string_value(json_object_get(doc, key));

	return v && text && str_eq(v, text);
}

/* Is it of this boot, this driver, and these GPUs? */
static int still_true(
	const json_t *doc, const struct gpu_host *h, const struct gpu_inventory *i, struct err *e)
{
	char boot[64] = "";
	int rc = host_line(h, "proc/sys/kernel/random/boot_id", boot, sizeof(boot), e);

	if (rc <= 0)
		return rc;
	return member_is(doc, "boot", boot) && member_is(doc, "driver", i->driver) &&
	       json_is_array(json_object_get(doc, "gpus"));
}

int gpu_probe_load(
	struct gpu_probe *p, const struct gpu_host *h, const struct gpu_inventory *i, struct err *e)
{
	auto_free char *path = mem_printf("%s/probe.json", h->run);
	auto_buf struct buf text = BUF_INIT(PROBE_MAX);
	auto_fd int fd = sys_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	struct err why = {0};
	int rc;

	*p = (struct gpu_probe){0};
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES
			       ? 0
			       : err_sys(e, "open %s", path);
	if (file_read_fd(fd, path, &text, e) < 0)
		return -1;
	p->doc = json_parse(text.data ? text.data : "", text.len, &why);
	if (!p->doc) { /* ours, from another version: as good as none, and written anew by the next
			*/
		warn("%s: %s", path, why.text);
		return 0;
	}
	rc = still_true(p->doc, h, i, e);
	if (rc <= 0)
		gpu_probe_free(p);
	return rc < 0 ? -1 : 0;
}

void gpu_probe_free(struct gpu_probe *p)
{
	json_decref(p->doc);
	p->doc = NULL;
}

static bool same_uuid(const json_t *gpu, const char *key, const char *uuid)
{
	const char *v = json_string_value(json_object_get(gpu, key));

	return v && uuid && strcasecmp(v, uuid) == 0;
}

/* The probe's words about a GPU (by UUID) or a MIG device (by its own); NULL: none. */
static const json_t *probed(const struct gpu_probe *p, const char *uuid, bool mig)
{
	const json_t *gpus = p ? json_object_get(p->doc, "gpus") : NULL, *gpu;
	size_t k;

	json_array_foreach (gpus, k, gpu)
		if (json_is_true(json_object_get(gpu, "mig")) == mig &&
			same_uuid(gpu, "uuid", uuid))
			return gpu;
	return NULL;
}

void gpu_probe_name_migs(struct gpu_inventory *i, const struct gpu_probe *p)
{
	const json_t *gpus = json_object_get(p->doc, "gpus"), *gpu;
	size_t k;

	/* Only where there is no choice: nothing tells which of several is which instance. */
	for (size_t d = 0; d < i->n; d++) {
		const char *uuid = NULL;
		size_t n = 0;

		json_array_foreach (gpus, k, gpu)
			if (json_is_true(json_object_get(gpu, "mig")) &&
				same_uuid(gpu, "parent", i->v[d].uuid)) {
				uuid = json_string_value(json_object_get(gpu, "uuid"));
				n++;
			}
		if (n == 1 && i->v[d].nmigs == 1 && uuid)
			i->v[d].migs[0].uuid = arena_strdup(&i->mem, uuid);
	}
}

/* ---- what is known ---- */

static void from_probe(struct gpu_facts *f, const json_t *gpu)
{
	json_int_t bytes = json_integer_value(json_object_get(gpu, "memory")),
		   cc = json_integer_value(json_object_get(gpu, "cc"));

	if (bytes > 0 && bytes >> 20 < GPU_MIB_MAX)
		f->vram_mib = (uint32_t)(bytes >> 20);
	if (cc > 0 && cc < 10000)
		f->cc = (uint32_t)cc;
	f->source = "probe";
}

void gpu_facts_of(const struct gpu_device *d, const struct gpu_mig *mig, const struct gpu_probe *p,
	struct gpu_facts *f)
{
	const struct gpu_model *m =
		d->maker == GPU_MAKER_NVIDIA && d->model ? gpu_model_find(d->model) : NULL;
	const json_t *whole = probed(p, d->uuid, false),
		     *part = mig ? probed(p, mig->uuid, true) : NULL;

	*f = (struct gpu_facts){.source = "model"};
	if (m) {
		f->cc = m->cc;
		f->vram_mib = m->vram_mib;
		f->brand = m->brand;
		f->datacenter = m->datacenter;
		f->nvlink = m->nvlink;
	}
	if (d->vram) {
		f->vram_mib = (uint32_t)(d->vram >> 20);
		f->source = "sysfs";
	}
	if (whole)
		from_probe(f, whole);
	if (mig) { /* a part of it, and only the driver knows how much */
		f->vram_mib = 0;
		f->nvlink = false;
	}
	if (part)
		from_probe(f, part);
}

const char *gpu_driver_cuda(const char *driver, const struct gpu_probe *p, bool *at_least)
{
	const char *cuda = p ? json_string_value(json_object_get(p->doc, "cuda")) : NULL;

	*at_least = false;
	if (cuda)
		return cuda;
	return driver ? gpu_model_cuda((uint32_t)strtoul(driver, NULL, 10), at_least) : NULL;
}
