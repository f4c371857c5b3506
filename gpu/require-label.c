#include "gpu/require-label.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "gpu/require.h"

enum { COUNT_MAX = 4096, GIB_MAX = 1 << 20, LIST_MAX = 64, WORD_MAX = 64 };

static int wrong(const char *key, const char *expected, struct err *e)
{
	return err_set(e, ERR_CORRUPT, "run.svrun.gpu: %s: expected %s", key, expected);
}

/* The member "a.b" of a member; NULL: there is none. -1: a is no object. */
static int find(const json_t *label, const char *key, const json_t **v, struct err *e)
{
	const char *dot = strchr(key, '.');
	char first[WORD_MAX];

	*v = NULL;
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(key, "."), key);
	label = json_object_get(label, first);
	if (dot && label && !json_is_object(label))
		return wrong(first, "an object", e);
	*v = dot ? json_object_get(label, dot + 1) : label;
	return 0;
}

static int number(const json_t *label, const char *key, uint32_t max, uint32_t *v, struct err *e)
{
	const json_t *member;

	if (find(label, key, &member, e) < 0)
		return -1;
	if (!member)
		return 0;
	if (!json_is_integer(member) || json_integer_value(member) < 0 ||
		json_integer_value(member) > max)
		return wrong(key, "a number of a sensible size", e);
	*v = (uint32_t)json_integer_value(member);
	return 0;
}

/* One of words; the first when it is not there. */
static int choice(const json_t *label, const char *key, const char *const *words, const char **v,
	struct err *e)
{
	const json_t *member;
	char all[WORD_MAX * 2] = "";

	*v = words[0];
	if (find(label, key, &member, e) < 0)
		return -1;
	if (!member)
		return 0;
	for (size_t i = 0; words[i]; i++) {
		size_t n = strlen(all);

		if (json_is_string(member) && str_eq(json_string_value(member), words[i])) {
			*v = words[i];
			return 0;
		}
		snprintf(all + n, sizeof(all) - n, "%s%s", n ? ", " : "", words[i]);
	}
	return wrong(key, all, e);
}

static int flag(const json_t *label, const char *key, bool *v, struct err *e)
{
	const json_t *member = json_object_get(label, key);

	*v = json_is_true(member);
	return !member || json_is_boolean(member) ? 0 : wrong(key, "true or false", e);
}

static bool is_version(const char *s)
{
	return strlen(s) <= 32 && gpu_is_version(s);
}

static int version(const json_t *label, const char *key, const char **v, struct err *e)
{
	const json_t *member;

	if (find(label, key, &member, e) < 0)
		return -1;
	*v = json_string_value(member);
	return !member || (*v && is_version(*v)) ? 0 : wrong(key, "a version like 12.8", e);
}

static bool is_arch(const char *s)
{
	char number[40];
	size_t n = strlen(s);

	n -= str_ends(s, "+PTX") ? strlen("+PTX") : 0;
	if (n >= sizeof(number))
		return false;
	snprintf(number, sizeof(number), "%.*s", (int)n, s);
	return is_version(number);
}

static bool is_word(const char *s)
{
	size_t n = 0;

	for (; s[n]; n++)
		if (n >= WORD_MAX || (!isalnum((unsigned char)s[n]) && !strchr("-_.", s[n])))
			return false;
	return n > 0;
}

static int list(const json_t *label, const char *key, bool (*ok)(const char *),
	const char *expected, struct strings *to, struct arena *mem, struct err *e)
{
	const json_t *member = json_object_get(label, key), *word;
	size_t k;

	if (!member)
		return 0;
	if (!json_is_array(member) || json_array_size(member) > LIST_MAX)
		return wrong(key, expected, e);
	to->v = arena_alloc(mem, (json_array_size(member) + 1) * sizeof(*to->v));
	json_array_foreach (member, k, word) {
		if (!json_is_string(word) || !ok(json_string_value(word)))
			return wrong(key, expected, e);
		to->v[to->n++] = json_string_value(word);
	}
	return 0;
}

int gpu_label_read(struct gpu_label *l, const json_t *label, struct arena *mem, struct err *e)
{
	static const char *const modes[] = {"none", "optional", "required", NULL},
				 *const vendors[] = {"any", "nvidia", "amd", "intel", NULL},
				 *const pers[] = {"gpu", "total", NULL},
				 *const migs[] = {"allowed", "denied", NULL},
				 *const links[] = {"none", "nvlink", "rdma", NULL};
	const char *per, *mig;

	*l = (struct gpu_label){0};
	if (label && !json_is_object(label))
		return err_set(e, ERR_CORRUPT, "run.svrun.gpu: expected an object");
	if (choice(label, "mode", modes, &l->mode, e) < 0 ||
		choice(label, "vendor", vendors, &l->vendor, e) < 0 ||
		number(label, "count.min", COUNT_MAX, &l->count_min, e) < 0 ||
		number(label, "count.max", COUNT_MAX, &l->count_max, e) < 0 ||
		number(label, "count.default", COUNT_MAX, &l->count_default, e) < 0 ||
		number(label, "vramGiB.min", GIB_MAX, &l->vram_min, e) < 0 ||
		choice(label, "vramGiB.per", pers, &per, e) < 0 ||
		version(label, "computeCapability.min", &l->cc_min, e) < 0 ||
		version(label, "computeCapability.max", &l->cc_max, e) < 0 ||
		version(label, "cuda.min", &l->cuda_min, e) < 0 ||
		version(label, "cuda.max", &l->cuda_max, e) < 0 ||
		version(label, "driver.min", &l->driver_min, e) < 0 ||
		list(label, "archs", is_arch, "a list like [\"8.0\", \"9.0+PTX\"]", &l->archs, mem,
			e) < 0 ||
		list(label, "brands", is_word, "a list of words", &l->brands, mem, e) < 0 ||
		flag(label, "forwardCompat", &l->forward_compat, e) < 0 ||
		choice(label, "mig", migs, &mig, e) < 0 ||
		choice(label, "interconnect", links, &l->interconnect, e) < 0)
		return -1;
	l->vram_total = str_eq(per, "total");
	l->no_mig = str_eq(mig, "denied");
	return 0;
}
