/* Any text as a CDI spec (the first byte says which form): refused with its name, or every device
 * of it becomes edits or a refusal, those edits a config, and the document is the same again after
 * it was written as YAML. */
#include <assert.h>

#include "base/json.h"
#include "base/str.h"
#include "gpu/cdi-spec.h"
#include "gpu/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void edit(const json_t *edits)
{
	auto_json json_t *config = json_pack("{s:{s:{}}}", "process", "user");
	struct gpu_edits x;
	struct err e = {0};

	gpu_edits_init(&x);
	if (cdi_edits_add(&x, edits, NULL, &e) < 0) {
		assert(e.kind == ERR_DENIED || e.kind == ERR_CORRUPT);
	} else {
		assert(x.nhooks == 0); /* there is no policy */
		for (size_t i = 0; i < x.nnodes; i++)
			assert(*x.nodes[i].path == '/' && x.nodes[i].access);
		for (size_t i = 0; i < x.nenv; i++)
			assert(*x.env[i].name && !strchr(x.env[i].name, '='));
		for (size_t i = 0; i < x.nlinks; i++)
			assert(*x.links[i].path == '/');
		cdi_profile(&x, NULL);
		if (gpu_edits_apply(&x, NULL, config, &e) < 0)
			assert(e.kind != ERR_NONE && e.kind != ERR_CORRUPT);
	}
	gpu_edits_fini(&x);
}

static void write_and_read(const json_t *spec)
{
	auto_buf struct buf b = BUF_INIT(64 << 20);
	auto_json json_t *again = NULL;
	struct err e = {0};

	yaml_text(spec, &b);
	again = cdi_parse("again.yaml", b.data, b.len, &e);
	if (!again) /* what JSON may say, and YAML not: deeper, longer, DEL and others */
		assert(e.kind == ERR_CORRUPT);
	else
		assert(json_equal(spec, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const bool yaml = size > 0 && data[0] == 'y';
	const char *name = yaml ? "f.yaml" : "f.json";
	auto_free char *text = NULL;
	auto_json json_t *spec = NULL;
	struct err e = {0};
	size_t i;
	json_t *d;

	if (size == 0)
		return 0;
	text = mem_dup(data + 1, size - 1);
	spec = cdi_read(name, text, size - 1, &e);
	if (!spec) {
		assert(e.kind == ERR_CORRUPT && str_starts(e.text, name));
		return 0;
	}
	assert(cdi_validate(spec, name, &e) == 0);
	edit(json_object_get(spec, "containerEdits"));
	json_array_foreach (json_object_get(spec, "devices"), i, d)
		edit(json_object_get(d, "containerEdits"));
	write_and_read(spec);
	return 0;
}
