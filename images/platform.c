/* Images for several platforms: which one is meant. Source: image-spec image-index.md. */
#include "images/image.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/str.h"

bool image_type_is_index(const char *t)
{
	return str_eq(t, OCI_INDEX_TYPE) || str_eq(t, DOCKER_LIST_TYPE);
}

bool image_type_is_manifest(const char *t)
{
	return str_eq(t, OCI_MANIFEST_TYPE) || str_eq(t, DOCKER_MANIFEST_TYPE);
}

struct platform {
	char os[32], arch[32], variant[32];
};

/* As Go's GOARCH calls them, which is what images use. */
static void host_platform(struct platform *p)
{
	static const struct {
		const char *machine, *arch;
	} names[] = {{"x86_64", "amd64"}, {"aarch64", "arm64"}};
	struct utsname u;

	*p = (struct platform){.os = "linux"};
	uname(&u);
	snprintf(p->arch, sizeof(p->arch), "%.31s", u.machine);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_eq(u.machine, names[i].machine))
			snprintf(p->arch, sizeof(p->arch), "%s", names[i].arch);
}

static int parse_platform(struct platform *p, const char *text, struct err *e)
{
	char *parts[] = {p->os, p->arch, p->variant};
	size_t n = 0;

	*p = (struct platform){0};
	for (const char *s = text; n < 3; s++) {
		size_t len = strcspn(s, "/");

		if (len == 0 || len >= sizeof(p->os))
			break;
		memcpy(parts[n++], s, len);
		s += len;
		if (!*s && n >= 2)
			return 0;
		if (!*s)
			break;
	}
	err_set(e, ERR_USAGE, "'%.100s' is not a platform", text);
	return err_hint(e, "OS/ARCH or OS/ARCH/VARIANT, such as linux/amd64 or linux/arm64/v8");
}

static const char *part(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(json_object_get(o, "platform"), key));

	return s ? s : "";
}

/* An image without a platform is for any; a variant counts only when one is asked for. */
static bool fits(const json_t *o, const struct platform *p)
{
	if (!json_object_get(o, "platform"))
		return true;
	return str_eq(part(o, "os"), p->os) && str_eq(part(o, "architecture"), p->arch) &&
	       (!p->variant[0] || str_eq(part(o, "variant"), p->variant));
}

static int not_there(const json_t *list, const struct platform *p, struct err *e)
{
	auto_buf struct buf have = BUF_INIT(1 << 20);
	const json_t *o;
	size_t i;

	json_array_foreach (list, i, o)
		if (i < 32 && !str_eq(part(o, "os"), "unknown"))
			buf_printf(&have, "%s%.40s/%.40s%s%.40s", have.len ? ", " : "",
				part(o, "os"), part(o, "architecture"),
				part(o, "variant")[0] ? "/" : "", part(o, "variant"));
	err_set(e, ERR_NOT_FOUND, "no image for the platform %s/%s%s%s", p->os, p->arch,
		p->variant[0] ? "/" : "", p->variant);
	return err_hint(e, "there are: %s", have.len ? have.data : "none");
}

int image_choose(const json_t *index, const char *platform, struct descriptor *d, struct err *e)
{
	const json_t *list = json_array_of(index, "manifests", e), *o;
	struct platform p;
	size_t i;

	if (!list)
		return -1;
	if (json_object_get(index, "layers") || json_object_get(index, "config"))
		return err_set(e, ERR_CORRUPT, "an index that is also a manifest");
	host_platform(&p);
	if (platform && parse_platform(&p, platform, e) < 0)
		return -1;
	json_array_foreach (list, i, o) {
		const char *type = json_string_value(json_object_get(o, "mediaType"));

		if (!type || !image_type_is_manifest(type) || !fits(o, &p))
			continue;
		return descriptor_read(d, o, e) < 0 ? err_ctx(e, "/manifests/%zu", i) : 0;
	}
	return not_there(list, &p, e);
}

int image_check_platform(const json_t *config, const char *platform, struct err *e)
{
	const char *os = json_string_value(json_object_get(config, "os"));
	const char *arch = json_string_value(json_object_get(config, "architecture"));
	const char *variant = json_string_value(json_object_get(config, "variant"));
	struct platform p;

	host_platform(&p);
	if (platform && parse_platform(&p, platform, e) < 0)
		return -1;
	if (!os || !arch || !*os || !*arch)
		return 0;
	if (str_eq(os, p.os) && str_eq(arch, p.arch) &&
		(!p.variant[0] || !variant || str_eq(variant, p.variant)))
		return 0;
	return err_set(e, ERR_NOT_FOUND, "the image is for %.40s/%.40s, not for %s/%s%s%s", os,
		arch, p.os, p.arch, p.variant[0] ? "/" : "", p.variant);
}
