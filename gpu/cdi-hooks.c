/* Hooks of CDI specs: those of NVIDIA's toolkit are done natively, by what gpu_edits_fill() makes
 * of the edits; no program runs with the image's files around it. Source: gpu.md 2.2; the toolkit's
 * cmd/nvidia-cdi-hook. */
#include <fcntl.h>
#include <limits.h>

#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "gpu/cdi-spec.h"

enum { OPTIONS_MAX = 4096 };

/* ---- what each does ---- */

/* A value of an option; CORRUPT: what is wrong with it. */
typedef int take(struct gpu_edits *x, const char *value, struct err *e);

static const char *absolute(struct gpu_edits *x, const char *path)
{
	return *path == '/' ? arena_strdup(&x->mem, path) : arena_printf(&x->mem, "/%s", path);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* TARGET::LINK */
static int take_link(struct gpu_edits *x, const char *value, struct err *e)
{
	const char *parting = strstr(value, "::"), *last;

	if (!parting || parting == value || !parting[2] || strstr(parting + 2, "::"))
		return err_set(e, ERR_CORRUPT, "--link '%.200s': expected TARGET::LINK", value);
	last = base_name(parting + 2);
	if (!*last || str_eq(last, ".") || str_eq(last, ".."))
		return err_set(e, ERR_CORRUPT, "--link '%.200s': '%.100s' is a folder, not a link",
			value, parting + 2);
	gpu_edits_link(x, absolute(x, parting + 2),
		arena_strndup(&x->mem, value, (size_t)(parting - value)));
	return 0;
}

static int take_folder(struct gpu_edits *x, const char *value, struct err *e)
{
	if (!*value || strlen(value) >= PATH_MAX || strpbrk(value, "\n:"))
		return err_set(e, ERR_CORRUPT, "--folder '%.200s': no folder", value);
	gpu_edits_ld_dir(x, absolute(x, value));
	return 0;
}

static int take_driver(struct gpu_edits *x, const char *value, struct err *e)
{
	if (value[strspn(value, "0123456789.")] || strlen(value) > 32)
		return err_set(e, ERR_CORRUPT, "--host-driver-version '%.200s': no version", value);
	if (*value)
		x->compat_driver = arena_strdup(&x->mem, value);
	return 0;
}

static int take_nothing(struct gpu_edits *x, const char *value, struct err *e)
{
	(void)x;
	(void)value;
	(void)e;
	return 0;
}

static void keep_files(struct gpu_edits *x)
{
	x->keep_device_files = true;
}

static void want_profile(struct gpu_edits *x)
{
	if (!x->visible_profile)
		x->visible_profile = "";
}

static const struct verb {
	const char *name;
	struct {
		const char *name;
		take *take;
		bool list; /* several, between commas */
	} options[3];
	void (*then)(struct gpu_edits *x);
} verbs[] = {
	{"create-symlinks", {{"link", take_link, true}}, NULL},
	{"update-ldcache", {{"folder", take_folder, true}, {"ldconfig-path", take_nothing, false}},
		NULL},
	/* The cache that we write has the names that libraries give themselves, whatever their
	 * files are called: what these links are for. */
	{"create-soname-symlinks",
		{{"folder", take_folder, true}, {"ldconfig-path", take_nothing, false}}, NULL},
	{"enable-cuda-compat", {{"host-driver-version", take_driver, false}}, NULL},
	{"cuda-compat", {{"host-driver-version", take_driver, false}}, NULL},
	{"disable-device-node-modification", {{0}}, keep_files},
	{"update-nvidia-params", {{0}}, keep_files},
	/* The folders above our nodes are made so that everybody may enter them. */
	{"chmod", {{"path", take_nothing, true}, {"mode", take_nothing, false}}, NULL},
	{"update-application-profile", {{0}}, want_profile},
};

/* ---- arguments ---- */

/* Where the options of the verb begin, or 0: this is none of the toolkit's hooks. */
static size_t find_verb(const char *path, const struct strings *args, const struct verb **verb)
{
	bool hook = str_eq(base_name(path), "nvidia-cdi-hook"), ctk = false;

	*verb = NULL;
	if (!hook && !str_eq(base_name(path), "nvidia-ctk"))
		return 0;
	for (size_t i = 1; i < args->n; i++) {
		const char *word = args->v[i];

		if (*word == '-') /* --debug, --quiet: of all verbs */
			continue;
		if (!hook && !ctk) {
			ctk = str_eq(word, "hook");
			if (!ctk)
				return 0;
			continue;
		}
		for (size_t k = 0; k < sizeof(verbs) / sizeof(verbs[0]); k++)
			if (str_eq(word, verbs[k].name))
				*verb = &verbs[k];
		return i + 1;
	}
	return 0;
}

static int take_value(
	struct gpu_edits *x, const struct verb *v, size_t option, const char *value, struct err *e)
{
	size_t n;

	if (!v->options[option].list)
		return v->options[option].take(x, value, e);
	for (;; value += n + 1) {
		char *one;

		n = strcspn(value, ",");
		one = arena_strndup(&x->mem, value, n);
		if (v->options[option].take(x, one, e) < 0)
			return -1;
		if (!value[n])
			return 0;
	}
}

/* One option, at args->v[*i]: its value is behind '=', or the next word. */
static int take_option(struct gpu_edits *x, const struct verb *v, const struct strings *args,
	size_t *i, struct err *e)
{
	const char *word = args->v[*i], *name = word + strspn(word, "-"), *equals, *value;
	size_t n, k = 0;

	equals = strchr(name, '=');
	n = equals ? (size_t)(equals - name) : strlen(name);
	if (name == word || name - word > 2)
		return err_set(e, ERR_CORRUPT, "unexpected argument '%.200s'", word);
	while (k < 3 && v->options[k].name &&
		(strncmp(v->options[k].name, name, n) != 0 || v->options[k].name[n]))
		k++;
	/* --container-spec is for the toolkit's own tests. */
	if ((k == 3 || !v->options[k].name) && strncmp(name, "container-spec", n) != 0)
		return err_set(e, ERR_CORRUPT, "unknown option '%.200s'", word);
	value = equals ? equals + 1 : *i + 1 < args->n ? args->v[++*i] : NULL;
	if (!value)
		return err_set(e, ERR_CORRUPT, "option '%.200s' without a value", word);
	return k < 3 && v->options[k].name ? take_value(x, v, k, value, e) : 0;
}

int cdi_hook_native(
	struct gpu_edits *x, const char *path, const struct strings *args, struct err *e)
{
	const struct verb *v;
	size_t i = find_verb(path, args, &v);

	if (!v)
		return 0;
	if (args->n > OPTIONS_MAX)
		return err_set(
			e, ERR_CORRUPT, "hook %s: more than %d arguments", v->name, OPTIONS_MAX);
	for (; i < args->n; i++)
		if (take_option(x, v, args, &i, e) < 0)
			return err_ctx(e, "hook %s", v->name);
	if (v->then)
		v->then(x);
	return 1;
}

/* ---- which GPUs EGL and Vulkan may see ---- */

/* N of /dev/nvidiaN, as a bit. */
static uint64_t gpu_bit(const char *path)
{
	uint64_t n;

	if (!path || !str_starts(path, "/dev/nvidia") ||
		str_u64(path + strlen("/dev/nvidia"), 63, &n) < 0)
		return 0;
	return 1ULL << n;
}

void cdi_profile(struct gpu_edits *x, const json_t *devices)
{
	uint64_t mask = 0;
	size_t i;
	json_t *d;

	if (!x->visible_profile)
		return;
	for (i = 0; i < x->nnodes; i++)
		mask |= gpu_bit(x->nodes[i].path);
	json_array_foreach (devices, i, d)
		mask |= gpu_bit(json_string_value(json_object_get(d, "path")));
	x->visible_profile =
		!mask ? NULL
		      : arena_printf(&x->mem,
				"{\"profiles\":[{\"name\":\"_container_\",\"settings\":["
				"\"EGLVisibleDGPUDevices\",0x%llx]}],\"rules\":[{\"pattern\":[],"
				"\"profile\":\"_container_\"}]}",
				(unsigned long long)mask);
}

/* ---- programs that a policy allows ---- */

static int check_owner(const char *path, bool last, struct err *e)
{
	struct stat st;

	if (sys_fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "hook %s", path);
	if (last ? !S_ISREG(st.st_mode) : !S_ISDIR(st.st_mode))
		return err_set(e, ERR_DENIED, "hook %s: is no %s", path, last ? "file" : "folder");
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return err_set(e, ERR_DENIED, "hook: %s belongs to user %u, not to root", path,
			(unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, ERR_DENIED, "hook: others than its owner may write to %s", path);
	return 0;
}

int cdi_program(const char *path, const char **resolved, struct arena *mem, struct err *e)
{
	auto_free char *real = realpath(path, NULL);

	if (!real)
		return err_sys(e, "hook %s", path);
	*resolved = arena_strdup(mem, real);
	if (check_owner(real, true, e) < 0)
		return -1;
	for (char *slash; (slash = strrchr(real, '/'));) {
		*slash = '\0';
		if (check_owner(*real ? real : "/", false, e) < 0)
			return -1;
	}
	return 0;
}
