#include "svrun/gpu-answer.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"

/* ---- codes ---- */

/* Source: cuda.h of CUDA 13.0, enum cudaError_enum, and what its comments and NVIDIA's forums give
 * as reasons. */
static const struct {
	int code;
	const char *name, *means, *advice;
} codes[] = {
	{2, "CUDA_ERROR_OUT_OF_MEMORY", "the GPU's memory is full",
		"end what uses the GPU (nvidia-smi lists it), or take another GPU"},
	{34, "CUDA_ERROR_STUB_LIBRARY",
		"this libcuda is the stub that the CUDA toolkit has for linking, not a driver",
		"install the driver's libcuda, and take .../stubs out of the library path"},
	{46, "CUDA_ERROR_DEVICE_UNAVAILABLE",
		"the GPU is taken, in exclusive compute mode or by MPS",
		"end the process that has it, or: nvidia-smi -c DEFAULT"},
	{100, "CUDA_ERROR_NO_DEVICE", "the driver sees no GPU",
		"look for the GPU's end in `dmesg | grep -i -e xid -e nvrm`; with MIG on, make "
		"instances "
		"(nvidia-smi mig -cgi 19 -C)"},
	{214, "CUDA_ERROR_ECC_UNCORRECTABLE",
		"the GPU's memory has an error that ECC cannot correct",
		"reset the GPU (nvidia-smi -r) when nothing uses it; have it replaced if that "
		"comes "
		"again"},
	{220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "NVLink has an error that it cannot correct",
		"reset the GPUs (nvidia-smi -r) when nothing uses them, and look at nvidia-smi "
		"nvlink "
		"-e"},
	{304, "CUDA_ERROR_OPERATING_SYSTEM", "the operating system refused the driver something",
		"look at `dmesg | grep -i nvrm`, at the nodes in /dev, and at memory limits"},
	{801, "CUDA_ERROR_NOT_SUPPORTED", "the GPU or the driver does not do this",
		"install a driver that knows this GPU"},
	{802, "CUDA_ERROR_SYSTEM_NOT_READY",
		"the NVSwitch fabric is not set up: the fabric manager has not run, or not to its "
		"end",
		"start nvidia-fabricmanager of the driver's own version, and read its log"},
	{803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
		"libcuda and the loaded kernel module are of different versions",
		"after a driver upgrade, boot again or load the new module; remove what is left of "
		"other drivers"},
	{804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
		"cuda-compat's libcuda is used on a GPU that it is not for",
		"take cuda-compat out of the library path, or upgrade the host's driver"},
	{805, "CUDA_ERROR_MPS_CONNECTION_FAILED", "the MPS server cannot be reached",
		"start or stop nvidia-cuda-mps-control"},
	{807, "CUDA_ERROR_MPS_SERVER_NOT_READY", "the MPS server is not ready",
		"wait for it, or start nvidia-cuda-mps-control anew"},
	{999, "CUDA_ERROR_UNKNOWN",
		"the driver does not say; often nvidia-uvm is not loaded, or has lost its GPUs",
		"modprobe nvidia-uvm, see that /dev/nvidia-uvm is there, and look at `dmesg | grep "
		"-i "
		"nvrm`"},
};

bool gpu_answer_failure_of(const json_t *o, struct gpu_failure *f)
{
	const json_t *failed = json_object_get(o, "failed");

	if (!failed)
		return false;
	*f = (struct gpu_failure){.call = json_string_value(json_object_get(failed, "call")),
		.code = (int)json_integer_value(json_object_get(failed, "code")),
		.name = json_string_value(json_object_get(failed, "name")),
		.gpu = -1,
		.means = "the driver refused it",
		.advice = "look at `dmesg | grep -i nvrm`"};
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].code == f->code) {
			f->name = codes[i].name;
			f->means = codes[i].means;
			f->advice = codes[i].advice;
		}
	if (!f->name)
		f->name = "an error that is not known here";
	return true;
}

bool gpu_answer_failure(const json_t *answer, struct gpu_failure *f)
{
	const json_t *gpu;
	size_t i;

	if (gpu_answer_failure_of(answer, f))
		return true;
	json_array_foreach (json_object_get(answer, "gpus"), i, gpu) {
		if (gpu_answer_failure_of(gpu, f)) {
			f->gpu = (int)i;
			return true;
		}
	}
	return false;
}

/* ---- reading ---- */

enum kind { TEXT, UUID, BUS, VERSION, INTEGER, MILLISECONDS, BOOLEAN };
struct member {
	const char *key;
	enum kind kind;
	bool optional;
	json_int_t min, max; /* of a number; max: bytes of a text */
};

static bool is_text(const char *s, json_int_t max)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < ' ' || s[i] == 0x7f)
			return false;
	return n > 0 && n <= (size_t)max;
}

/* c stands for a hex digit in lower case, others for themselves. */
static bool looks_like(const char *s, const char *pattern)
{
	for (; *pattern; pattern++, s++)
		if (*pattern == 'c' ? !strchr("0123456789abcdef", *s) || !*s : *s != *pattern)
			return false;
	return *s == '\0';
}

static bool is_uuid(const char *s)
{
	return (str_starts(s, "GPU-") || str_starts(s, "MIG-")) &&
	       looks_like(s + 4, "cccccccc-cccc-cccc-cccc-cccccccccccc");
}

static bool is_version(const char *s)
{
	size_t major = strspn(s, "0123456789"), minor;

	if (major == 0 || major > 4 || s[major] != '.')
		return false;
	minor = strspn(s + major + 1, "0123456789");
	return minor > 0 && minor <= 4 && s[major + 1 + minor] == '\0';
}

enum { BUS_ROOM = sizeof("00000000:00:00.0") };
/* The bus id as everywhere here: lower case, 4 digits of domain unless it needs 8. */
static bool normal_bus(const char *s, char out[BUS_ROOM])
{
	size_t n = strlen(s);

	if (n >= BUS_ROOM)
		return false;
	for (size_t i = 0; i <= n; i++)
		out[i] = (char)tolower((unsigned char)s[i]);
	if (looks_like(out, "0000cccc:cc:cc.c"))
		memmove(out, out + 4, n - 4 + 1);
	return looks_like(out, "cccc:cc:cc.c") || looks_like(out, "cccccccc:cc:cc.c");
}

static json_t *string_value(const struct member *m, const char *s)
{
	char bus[BUS_ROOM];

	switch (m->kind) {
	case TEXT:
		return is_text(s, m->max) ? json_string(s) : NULL;
	case UUID:
		return is_uuid(s) ? json_string(s) : NULL;
	case VERSION:
		return is_version(s) ? json_string(s) : NULL;
	case BUS:
		return normal_bus(s, bus) ? json_string(bus) : NULL;
	default:
		return NULL;
	}
}

static json_t *value(const struct member *m, const json_t *v)
{
	double d = json_number_value(v);

	if (json_is_string(v))
		return string_value(m, json_string_value(v));
	if (m->kind == BOOLEAN && json_is_boolean(v))
		return json_boolean(json_is_true(v));
	if (m->kind == MILLISECONDS && json_is_number(v) && d >= 0 && d < 1e9)
		return json_real(d);
	if (m->kind == INTEGER && json_is_integer(v) && json_integer_value(v) >= m->min &&
		json_integer_value(v) <= m->max)
		return json_integer(json_integer_value(v));
	return NULL;
}

/* Members of `in` to `out`, up to the row without a key. */
static int take(json_t *out, const json_t *in, const struct member *m, struct err *e)
{
	for (; m->key; m++) {
		const json_t *v = json_object_get(in, m->key);
		json_t *copy = v ? value(m, v) : NULL;
		auto_free char *shown =
			v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII)
			  : NULL;

		if (copy)
			json_object_set_new(out, m->key, copy);
		else if (v)
			return err_set(
				e, ERR_CORRUPT, "%s: %.80s cannot be", m->key, shown ? shown : "?");
		else if (!m->optional)
			return err_set(e, ERR_CORRUPT, "%s: missing", m->key);
	}
	return 0;
}

/* 1: there is one, and it is taken. */
static int take_failed(json_t *out, const json_t *in, struct err *e)
{
	static const struct member members[] = {{"call", TEXT, false, 0, 64},
		{"code", INTEGER, false, 1, 99999}, {"name", TEXT, true, 0, 128}, {0}};
	const json_t *failed = json_object_get(in, "failed");
	json_t *copy;

	if (!failed)
		return 0;
	copy = json_object();
	json_object_set_new(out, "failed", copy);
	return take(copy, failed, members, e) < 0 ? err_ctx(e, "failed") : 1;
}

static int take_gpu(json_t *out, const json_t *in, size_t ordinal, struct err *e)
{
	/* Whether they must be there depends on how far it got. */
	struct member members[] = {{"uuid", UUID, false, 0, 0}, {"mig", BOOLEAN, false, 0, 0},
		{"name", TEXT, false, 0, 256}, {"bus", BUS, false, 0, 0},
		{"memory", INTEGER, false, 1, (json_int_t)1 << 46}, {"cc", INTEGER, false, 10, 999},
		{"multiprocessors", INTEGER, false, 1, 65536}, {"integrated", INTEGER, false, 0, 1},
		{"computeMode", INTEGER, false, 0, 16}, {"ecc", INTEGER, false, 0, 1},
		{"contextMs", MILLISECONDS, false, 0, 0}, {"copied", BOOLEAN, false, 0, 0},
		{"parent", UUID, true, 0, 0}, {0}};
	int failed = take_failed(out, in, e);

	if (failed < 0)
		return -1;
	for (struct member *m = members; m->key && failed; m++)
		m->optional = true;
	json_object_set_new(out, "ordinal", json_integer((json_int_t)ordinal));
	return take(out, in, members, e);
}

static int check_unique(const json_t *gpus, struct err *e)
{
	for (size_t i = 0; i < json_array_size(gpus); i++) {
		const json_t *a = json_object_get(json_array_get(gpus, i), "uuid");

		for (size_t k = 0; a && k < i; k++)
			if (json_equal(a, json_object_get(json_array_get(gpus, k), "uuid")))
				return err_set(e, ERR_CORRUPT, "GPUs %zu and %zu have one UUID, %s",
					k, i, json_string_value(a));
	}
	return 0;
}

static int take_gpus(json_t *out, const json_t *in, struct err *e)
{
	const json_t *gpus = json_object_get(in, "gpus"), *gpu;
	json_t *list = json_array();
	size_t i;

	json_object_set_new(out, "gpus", list);
	if (json_array_size(gpus) > GPUS_MAX)
		return err_set(
			e, ERR_CORRUPT, "%zu GPUs are more than can be", json_array_size(gpus));
	json_array_foreach (gpus, i, gpu) {
		json_t *copy = json_object();

		json_array_append_new(list, copy);
		if (take_gpu(copy, gpu, i, e) < 0)
			return err_ctx(e, "GPU %zu", i);
	}
	return check_unique(list, e);
}

json_t *gpu_answer_read(const char *text, size_t n, struct err *e)
{
	struct member members[] = {{"library", TEXT, true, 0, 4096}, {"cuda", VERSION, true, 0, 0},
		{"loadMs", MILLISECONDS, true, 0, 0}, {"initMs", MILLISECONDS, true, 0, 0},
		{"missing", TEXT, true, 0, 4096}, {0}};
	auto_json json_t *in = json_parse(text, n, e), *out = json_object();
	const char *schema = json_string_value(json_object_get(in, "schema"));
	int failed;

	if (!in)
		return NULL;
	if (!schema || !str_eq(schema, GPU_ANSWER_SCHEMA)) {
		err_set(e, ERR_CORRUPT, "schema: not \"" GPU_ANSWER_SCHEMA "\"");
		return NULL;
	}
	json_object_set_new(out, "schema", json_string(schema));
	failed = take_failed(out, in, e);
	if (failed < 0)
		return NULL;
	if (failed == 0 && !json_object_get(in, "missing"))
		for (struct member *m = members; m->key; m++)
			m->optional = str_eq(m->key, "missing");
	if (take(out, in, members, e) < 0 || take_gpus(out, in, e) < 0)
		return NULL;
	return steal_ptr(&out);
}

/* ---- the kernel's word against the driver's ---- */

static bool is_given(const struct gpu_device *g)
{
	return g->maker == GPU_MAKER_NVIDIA && !g->excluded && g->uuid;
}

/* The GPU's UUID, of a MIG device that of the whole. */
static const char *uuid_of(const json_t *gpu)
{
	const char *parent = json_string_value(json_object_get(gpu, "parent"));

	return parent ? parent : json_string_value(json_object_get(gpu, "uuid"));
}

const char *gpu_answer_strange(const json_t *answer, const struct gpu_inventory *i)
{
	const json_t *gpu;
	size_t n;

	json_array_foreach (json_object_get(answer, "gpus"), n, gpu) {
		const char *uuid = uuid_of(gpu);
		size_t k = 0;

		while (uuid && k < i->n && !(is_given(&i->v[k]) && str_eq(i->v[k].uuid, uuid)))
			k++;
		if (uuid && k == i->n)
			return uuid;
	}
	return NULL;
}

size_t gpu_answer_lacks(const json_t *answer, const struct gpu_inventory *i, size_t from)
{
	const json_t *gpus = json_object_get(answer, "gpus"), *gpu;
	size_t n;

	for (; from < i->n; from++) {
		bool there = !is_given(&i->v[from]);

		json_array_foreach (gpus, n, gpu) {
			const char *uuid = uuid_of(gpu);

			there = there || json_is_true(json_object_get(gpu, "mig")) ||
				(uuid && str_eq(uuid, i->v[from].uuid));
		}
		if (!there)
			break;
	}
	return from;
}

/* ---- keeping ---- */

static bool is_good(const json_t *answer)
{
	struct gpu_failure f;
	const json_t *gpu;
	size_t i;

	if (gpu_answer_failure(answer, &f) || json_object_get(answer, "missing"))
		return false;
	json_array_foreach (json_object_get(answer, "gpus"), i, gpu) {
		if (!json_is_true(json_object_get(gpu, "copied")))
			return false;
	}
	return true;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static json_t *device_list(const struct gpu_inventory *i)
{
	auto_free const char **v = mem_array(i->n + 1, sizeof(char *));
	json_t *list = json_array();
	size_t n = 0;

	for (size_t k = 0; k < i->n; k++)
		if (is_given(&i->v[k]))
			v[n++] = i->v[k].uuid;
	qsort(v, n, sizeof(*v), compare);
	for (size_t k = 0; k < n; k++)
		json_array_append_new(list, json_string(v[k]));
	return list;
}

int gpu_answer_keep(const struct gpu_host *h, const struct gpu_inventory *i, const json_t *answer,
	struct err *e)
{
	auto_buf struct buf boot = BUF_INIT(128), text = BUF_INIT(2 * GPU_ANSWER_MAX);
	auto_free char *path = mem_printf("%s/probe.json", h->run);
	auto_json json_t *kept = NULL;

	if (!is_good(answer) || !i->driver || gpu_answer_strange(answer, i) ||
		gpu_answer_lacks(answer, i, 0) < i->n)
		return 0;
	if (file_read(h->proc, "sys/kernel/random/boot_id", &boot, e) < 0)
		return -1;
	boot.data[strcspn(boot.data, "\n")] = '\0';
	kept = json_deep_copy(answer);
	json_object_set_new(kept, "driver", json_string(i->driver));
	json_object_set_new(kept, "boot", json_string(boot.data));
	json_object_set_new(kept, "devices", device_list(i));
	json_text(kept, false, &text);
	if (sys_mkdir_p(AT_FDCWD, h->run, 0755) < 0)
		return err_sys(e, "make %s", h->run);
	return file_write(AT_FDCWD, path, text.data, text.len, 0644, e) < 0 ? -1 : 1;
}
