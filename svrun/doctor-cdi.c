/* svrun doctor: CDI specs: those that cannot be read, that contradict one another, and that
 * describe a host which is no more (a driver that was upgraded, MIG devices that were made anew).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "gpu/cdi.h"
#include "svrun/doctor.h"

struct staleness {
	const struct doctor *d;
	size_t paths, missing;
	char first[256]; /* of those that are missing */
};

static void look_path(struct staleness *s, const json_t *path)
{
	const char *p = json_string_value(path), *prefix = s->d->host->prefix;

	if (p && *prefix && str_starts(p, prefix)) /* a spec that was made of this root */
		p += strlen(prefix);
	if (!p || p[0] != '/')
		return;
	auto_fd int fd = sys_open_in_root(s->d->host->root, p + 1, O_PATH, 0);

	s->paths++;
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR) && s->missing++ == 0)
		snprintf(s->first, sizeof(s->first), "%s", p);
}

static void look_edits(struct staleness *s, const json_t *edits)
{
	const json_t *one, *host;
	size_t i;

	json_array_foreach (json_object_get(edits, "mounts"), i, one)
		look_path(s, json_object_get(one, "hostPath"));
	json_array_foreach (json_object_get(edits, "deviceNodes"), i, one) {
		host = json_object_get(one, "hostPath");
		look_path(s, host ? host : json_object_get(one, "path"));
	}
	json_array_foreach (json_object_get(edits, "hooks"), i, one)
		look_path(s, json_object_get(one, "path"));
}

static void check_stale(struct doctor *d, const json_t *spec, const char *file)
{
	struct staleness s = {.d = d};
	const json_t *device;
	size_t i;

	look_edits(&s, json_object_get(spec, "containerEdits"));
	json_array_foreach (json_object_get(spec, "devices"), i, device)
		look_edits(&s, json_object_get(device, "containerEdits"));
	if (s.missing > 0)
		found(d, "cdi.stale", FINDING_WARNING,
			"generate it again, as after each driver upgrade: svrun gpu cdi generate, "
			"or what "
			"wrote it",
			"%s: %zu of the %zu host paths that it names are not there, %s is one",
			file, s.missing, s.paths, s.first);
}

static void check_specs(struct doctor *d, const struct cdi *c)
{
	size_t before = d->n;

	for (size_t k = 0; k < c->nerrors; k++)
		found(d, "cdi.broken", FINDING_WARNING, "correct the file, or remove it", "%s",
			c->errors[k].text);
	for (size_t k = 0; k < c->n; k++)
		if (c->v[k].conflict)
			found(d, "cdi.conflict", FINDING_WARNING,
				"remove one of the two: neither can be used",
				"%s/%s=%s is in %s and in %s", c->v[k].vendor, c->v[k].class,
				c->v[k].name, c->v[k].file, c->v[k].conflict);
	for (size_t s = 0; s < c->nspecs; s++)
		for (size_t k = 0; k < c->n; k++)
			if (c->v[k].spec == s) {
				check_stale(d, c->specs[s], c->v[k].file);
				break;
			}
	if (c->nspecs > 0 && d->n == before)
		found(d, "cdi", FINDING_OK, NULL, "CDI: %zu specs with %zu devices", c->nspecs,
			c->n);
}

void doctor_cdi(struct doctor *d)
{
	static const char *const usual[] = {CDI_DIRS};
	enum { USUAL = sizeof(usual) / sizeof(usual[0]) };
	const char *dirs[USUAL];
	struct strings in_root = {dirs, USUAL};
	struct err e = {0};
	struct cdi c;

	for (size_t k = 0; k < USUAL; k++)
		dirs[k] = arena_printf(&d->mem, "%s%s", d->host->prefix, usual[k]);
	if (cdi_load(&c, d->cdi_dirs.n > 0 ? &d->cdi_dirs : &in_root, &e) < 0) {
		found_err(d, "cdi", FINDING_WARNING, &e, "correct or remove the folder");
		return;
	}
	check_specs(d, &c);
	cdi_fini(&c);
}
