/* svrun doctor --cuda: what the driver says, GPU by GPU, and how that fits what the kernel says. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "svrun/doctor.h"
#include "svrun/gpu-answer.h"
#include "svrun/gpu-ask.h"
#include "svrun/output.h"

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "?";
}

static void tell_failure(struct doctor *d, const struct gpu_failure *f, const char *where)
{
	found(d, "cuda.call", FINDING_ERROR, f->advice, "%s%s: error %d, %s: %s", where, f->call,
		f->code, f->name, f->means);
}

/* ---- one GPU ---- */

static void tell_gpu(struct doctor *d, const json_t *gpu, size_t number)
{
	json_int_t cc = json_integer_value(json_object_get(gpu, "cc"));
	char where[32], memory[32];
	struct gpu_failure f;

	snprintf(where, sizeof(where), "GPU %zu: ", number);
	if (gpu_answer_failure_of(gpu, &f)) {
		tell_failure(d, &f, where);
		return;
	}
	output_size((uint64_t)json_integer_value(json_object_get(gpu, "memory")), memory);
	if (!json_is_true(json_object_get(gpu, "copied"))) {
		found(d, "cuda.copy", FINDING_ERROR,
			"take the GPU out of service, and look at its ECC errors: nvidia-smi -q -d "
			"ECC",
			"%s%s: 1 MiB did not come back from it as it went there", where,
			text_of(gpu, "uuid"));
		return;
	}
	found(d, "cuda.gpu", FINDING_OK, NULL,
		"%s%s, %s: %s, compute capability %lld.%lld; context in %.0f ms, 1 MiB there and "
		"back",
		where, text_of(gpu, "name"), text_of(gpu, "uuid"), memory, (long long)cc / 10,
		(long long)cc % 10, json_number_value(json_object_get(gpu, "contextMs")));
}

/* ---- the kernel's word against the driver's ---- */

static void compare(struct doctor *d, const struct gpu_inventory *i, const json_t *answer)
{
	const char *strange = gpu_answer_strange(answer, i);
	size_t k = gpu_answer_lacks(answer, i, 0);

	if (strange)
		found(d, "cuda.unknown", FINDING_ERROR,
			"see whose libcuda that is: it does not speak for this host's GPUs",
			"the driver speaks of %s, which the kernel does not have", strange);
	for (; k < i->n; k = gpu_answer_lacks(answer, i, k + 1))
		found(d, "cuda.absent", FINDING_ERROR,
			"look for its end in `dmesg | grep -i xid`; reset it, or boot again",
			"GPU %u (%s) is not among those that the driver has", i->v[k].index,
			i->v[k].uuid);
}

static void tell_answer(struct doctor *d, const struct gpu_inventory *i, const json_t *answer)
{
	const json_t *gpus = json_object_get(answer, "gpus"), *gpu;
	struct gpu_failure f;
	size_t k;

	if (json_object_get(answer, "missing")) {
		found(d, "cuda.library", FINDING_ERROR,
			"install the driver's user-space files again: its own libraries miss one "
			"another",
			"%s", text_of(answer, "missing"));
		return;
	}
	if (gpu_answer_failure_of(answer, &f)) {
		tell_failure(d, &f, "");
		return;
	}
	found(d, "cuda.init", FINDING_OK, NULL, "CUDA %s: %zu GPUs, cuInit in %.0f ms",
		text_of(answer, "cuda"), json_array_size(gpus),
		json_number_value(json_object_get(answer, "initMs")));
	json_array_foreach (gpus, k, gpu)
		tell_gpu(d, gpu, k);
	compare(d, i, answer);
}

void doctor_cuda(struct doctor *d, const struct gpu_inventory *i)
{
	struct err e = {0};
	auto_json json_t *answer = gpu_ask(d->host, i, NULL, d->seconds, &e);
	int kept;

	if (!answer) {
		found_err(d, "cuda.probe", FINDING_ERROR, &e,
			"install the driver's user-space files again; look at `dmesg | grep -i -e "
			"xid -e nvrm`");
		return;
	}
	tell_answer(d, i, answer);
	kept = gpu_answer_keep(d->host, i, answer, &e);
	if (kept < 0)
		found_err(d, "cuda.kept", FINDING_WARNING, &e,
			"run svrun doctor as root, so that starts know what the driver said");
}
