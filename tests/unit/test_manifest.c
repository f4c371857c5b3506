#include "tests/unit/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/manifest-keys.h"

#define HEAD "{\"schema\": \"svrun.image/1\", \"name\": \"a\", \"version\": \"1\""

static char start[4096]; /* where the tests begin: the root of the project */

static void go_back(void)
{
	assert_int_equal(chdir(start), 0);
}

static int parse(struct manifest *m, const char *text, struct complaints *c)
{
	*c = (struct complaints){0};
	return manifest_parse(m, "dir/m.json", text, strlen(text), NULL, c, NULL);
}

/* The one complaint about text begins like this. */
static void complains(const char *text, const char *line)
{
	struct complaints c;
	struct manifest m;

	if (parse(&m, text, &c) == 0)
		fail_msg("accepted: %s", text);
	if (c.count != 1 || !str_starts(c.text.data, line))
		fail_msg("expected '%s', got '%s'", line, c.text.data);
	complaints_fini(&c);
}

/* ---- files with what is said about them beside them ---- */

static void compare_with(const char *json, const char *txt)
{
	auto_buf struct buf want = BUF_INIT(1 << 20);
	struct complaints c = {0};
	struct manifest m;
	struct err e = {0};
	char summary[600];

	assert_int_equal(file_read(AT_FDCWD, txt, &want, NULL), 0);
	assert_true(want.len > 0);
	assert_int_equal(manifest_load(&m, json, NULL, &c, &e), -1);
	if (!str_eq(c.text.data, want.data))
		fail_msg("%s: expected\n%sgot\n%s", json, want.data, c.text.data);
	assert_int_equal(e.kind, ERR_USAGE);
	snprintf(summary, sizeof(summary), "%zu error%s in %s", c.count, c.count == 1 ? "" : "s",
		json);
	assert_string_equal(e.text, summary);
	complaints_fini(&c);
}

TEST(every_bad_manifest_gets_exactly_its_complaints)
{
	DIR *d;
	const struct dirent *de;
	size_t n = 0;

	assert_int_equal(chdir("tests/data/manifest/bad"), 0);
	d = opendir(".");
	assert_non_null(d);
	while ((de = readdir(d))) {
		auto_free char *txt = mem_strdup(de->d_name);

		if (!str_ends(de->d_name, ".json"))
			continue;
		memcpy(txt + strlen(txt) - 4, "txt", 4);
		compare_with(de->d_name, txt);
		n++;
	}
	closedir(d);
	go_back();
	assert_true(n >= 40);
}

TEST(the_smallest_manifest_gets_the_defaults)
{
	struct complaints c;
	struct manifest m;

	assert_int_equal(parse(&m, HEAD "}", &c), 0);
	assert_string_equal(m.path, "dir/m.json");
	assert_string_equal(m.dir, "dir");
	assert_string_equal(m.name, "a");
	assert_false(m.apt.present || m.node.present || m.has_entrypoint || m.has_cmd);
	assert_true(m.apt.merge_usr);
	assert_int_equal(m.build.max_layers, 24);
	assert_int_equal(m.build.codec, CODEC_ZSTD);
	assert_int_equal(m.build.level, 3);
	assert_int_equal(m.build.models_codec, CODEC_NONE);
	assert_int_equal(m.build.epoch, 0);
	assert_int_equal(m.build.strategy, LAYERS_GROUPS);
	manifest_fini(&m);
}

/* ---- every key ---- */

static void check_apt(const struct manifest_apt *a)
{
	assert_true(a->present && a->recommends && a->merge_usr);
	assert_int_equal(a->configure, APT_NONE);
	assert_int_equal(a->nsources, 2);
	assert_string_equal(a->sources[0].uri, "mirror:debian");
	assert_false(a->sources[0].check_valid_until);
	assert_true(a->sources[1].check_valid_until);
	assert_int_equal(a->sources[0].suites.n, 2);
	assert_string_equal(a->sources[0].suites.v[1], "bookworm-updates");
	assert_string_equal(a->sources[1].components.v[0], "main");
	assert_string_equal(a->sources[1].signed_by, "keys/site.gpg");
	assert_int_equal(a->packages.n, 5);
	assert_string_equal(a->packages.v[3], "vim=2:9.0.1378-2");
	assert_int_equal(a->alternatives.n, 2);
	assert_string_equal(a->alternatives.v[0].name, "awk"); /* sorted */
	assert_string_equal(a->alternatives.v[0].value, "/usr/bin/mawk");
	assert_int_equal(a->prune.n, 6);
}

static void check_objects(const struct manifest *m)
{
	assert_int_equal(m->nfiles, 2);
	assert_string_equal(m->files[0].id, "hello");
	assert_int_equal(m->files[0].mode, 0755);
	assert_int_equal(m->files[0].uid, 10);
	assert_int_equal(m->files[0].gid, 20);
	assert_string_equal(m->files[0].inline_text, "#!/bin/sh\necho ${1:-hello}\n");
	assert_null(m->files[0].from);
	assert_int_equal(m->files[1].mode, 0644);
	assert_string_equal(m->files[1].from, "app.conf");
	assert_int_equal(m->ndirs, 2);
	assert_int_equal(m->dirs[0].mode, 01777);
	assert_int_equal(m->dirs[1].mode, 0755);
	assert_int_equal(m->nlinks, 1);
	assert_string_equal(m->links[0].target, "../../opt/app/bin/app");
	assert_int_equal(m->nports, 3);
	assert_int_equal(m->ports[0].port, 8000);
	assert_string_equal(m->ports[0].protocol, "http");
	assert_string_equal(m->ports[1].protocol, "tcp");
	assert_string_equal(m->node.prefix, "/opt/app");
	assert_int_equal(m->node.omit.n, 2);
}

static void check_the_models(const struct manifest *m)
{
	char hex[DIGEST_HEX + 1];

	assert_int_equal(m->nmodels, 2);
	assert_int_equal(m->models[0].format, FORMAT_GGUF);
	assert_int_equal(m->models[0].source, MODEL_FILE);
	assert_string_equal(m->models[0].source_path, "tiny.gguf");
	assert_int_equal(m->models[0].files[0].size, 812288);
	assert_int_equal(m->models[1].source, MODEL_HTTPS);
	assert_string_equal(m->models[1].source_url, "mirror:models/big");
	assert_int_equal(m->models[1].nfiles, 2);
	assert_int_equal(m->models[1].files[1].size, 1ull << 46);
	digest_hex(&m->models[1].files[1].sha256, hex);
	assert_int_equal(strncmp(hex, "efefef", 6), 0);
}

TEST(every_key_lands_in_its_field)
{
	struct complaints c = {0};
	struct manifest m;
	struct err e = {0};

	if (manifest_load(&m, "tests/data/manifest/good/full.json", NULL, &c, &e) < 0)
		fail_msg("%s\n%s", e.text, c.text.data);
	assert_string_equal(m.version, "1.0+a~b");
	assert_string_equal(m.title, "Every key");
	assert_int_equal(m.licenses.n, 2);
	check_apt(&m.apt);
	check_objects(&m);
	check_the_models(&m);
	assert_int_equal(m.env.n, 4);
	assert_string_equal(m.env.v[0].name, "GPUS");
	assert_string_equal(m.env.v[1].value, "${runtime:memMiB}m $HOME");
	assert_string_equal(m.user, "app:1000");
	assert_string_equal(m.workdir, "/");
	assert_string_equal(m.stop_signal, "SIGRTMIN+3");
	assert_true(m.has_entrypoint && m.has_cmd);
	assert_int_equal(m.entrypoint.n, 2);
	assert_string_equal(m.cmd.v[1], "--threads=${runtime:cpus}");
	assert_int_equal(m.labels.n, 2);
	assert_int_equal(m.build.epoch, 1767225600);
	assert_int_equal(m.build.max_layers, 32);
	assert_int_equal(m.build.ngroups, 3);
	assert_string_equal(m.build.groups[1].match.v[1], "path:/opt/**");
	assert_int_equal(m.build.codec, CODEC_GZIP);
	assert_int_equal(m.build.level, 9);
	assert_int_equal(m.build.models_codec, CODEC_ZSTD);
	manifest_fini(&m);
}

/* ---- the rest of the language ---- */

static void check_rest_inputs(const struct manifest *m)
{
	assert_int_equal(m->base.type, BASE_OCI);
	assert_string_equal(m->base.key, "base.pub");
	assert_string_equal(m->apt.sources[0].snapshot, "20260711T101637Z");
	assert_int_equal(m->apt.database, DATABASE_STATUS_D);
	assert_string_equal(m->apt.pins.v[0].value, "3.11.*");
	assert_int_equal(m->python.nwheels, 2);
	assert_int_equal(m->python.bytecode, BYTECODE_NONE);
	assert_int_equal(m->node.scripts.n, 2);
	assert_int_equal(m->nsources, 4);
	assert_true(m->sources[0].has_tree && !m->sources[1].has_tree);
	assert_string_equal(m->sources[2].inline_text, "${cuda} ${HOME:-x}");
	assert_int_equal(m->sources[2].mode, 0600);
	assert_int_equal(m->models[0].source, MODEL_HF);
	assert_int_equal(m->models[0].delivery, DELIVERY_RUNTIME);
	assert_true(m->models[0].optional && m->models[0].allow_pickle);
	assert_string_equal(m->models[0].links.v[0].value, "/models/hub/x");
	assert_int_equal(m->nruns, 2);
	assert_string_equal(m->runs[0].argv.v[1], "12.6");
	assert_string_equal(m->runs[0].env.v[0].value, "5");
	assert_false(m->runs[0].secrets[0].required);
	assert_string_equal(m->runs[1].script, "echo ${X}");
	assert_string_equal(m->runs[1].interpreter, "/bin/bash");
	assert_int_equal(m->runs[1].timeout_ms, 600000);
	assert_string_equal(m->users[0].groups.v[0], "video");
}

static void check_rest_serve(const struct manifest *m)
{
	assert_int_equal(m->services[0].restart, RESTART_ALWAYS);
	assert_int_equal(m->services[0].ports[0], 8000);
	assert_string_equal(m->services[0].argv.v[2], "${runtime:cpus}");
	assert_int_equal(m->ports[0].auth, AUTH_TOKEN);
	assert_int_equal(m->volumes[0].purpose, VOLUME_MODELS);
	assert_int_equal(m->gpu.mode, GPU_REQUIRED);
	assert_int_equal(m->gpu.vram_per, PER_GPU);
	assert_string_equal(m->gpu.cuda_min, "12.6");
	assert_false(m->gpu.mig);
	assert_int_equal(m->gpu.interconnect, LINK_NVLINK);
	assert_int_equal(m->resources.workspace_gib, 20);
	assert_int_equal(m->health.startup.kind, PROBE_HTTP);
	assert_int_equal(m->health.startup.nstatus, 2);
	assert_string_equal(m->health.startup.body_matches, "^ok 12.6");
	assert_int_equal(m->health.readiness.kind, PROBE_TCP);
	assert_int_equal(m->health.readiness.period_ms, 10000);
	assert_int_equal(m->health.liveness.kind, PROBE_EXEC);
	assert_int_equal(m->nmodes, 1);
	assert_int_equal(m->modes[0].gpu.mode, GPU_NONE);
}

static void check_rest_tests(const struct manifest *m)
{
	const struct manifest_test *http = &m->tests[7];

	assert_int_equal(m->ntests, 11);
	assert_string_equal(m->tests[0].expect.type, "link");
	assert_string_equal(m->tests[0].paths.v[0], "/bin");
	assert_true(m->tests[2].expect.absent && m->tests[4].disabled);
	assert_true(m->tests[6].expect.has_number_at_least);
	assert_string_equal(m->tests[6].expect.contains.v[0], "y");
	assert_true(http->needs_gpu && http->after_readiness && !http->required);
	assert_int_equal(json_integer_value(json_object_get(http->json, "level")), 5);
	assert_string_equal(json_string_value(json_object_get(http->json, "cuda")), "12.6");
	assert_true(json_is_null(json_object_get(http->json, "n")));
	assert_true(json_is_null(json_object_get(http->expect.json[0].equals, "x")));
	assert_true(http->expect.json[0].has_minimum && http->expect.json[0].has_min_length);
	assert_int_equal(m->tests[10].expect.max_layers, 24);
	assert_string_equal(m->tests[8].method, "GET");
}

TEST(the_rest_of_the_language_lands_in_its_fields)
{
	struct complaints c = {0};
	struct manifest m;
	struct err e = {0};

	if (manifest_load(&m, "tests/data/manifest/good/rest.json", NULL, &c, &e) < 0)
		fail_msg("%s\n%s", e.text, c.text.data);
	assert_string_equal(m.version, "2-cu12.6"); /* the first entry of the matrix */
	assert_string_equal(m.matrix, "cu126");
	assert_null(m.mode);
	assert_int_equal(m.nvars, 3);
	assert_string_equal(json_string_value(m.vars[0].value), "12.6");
	assert_true(json_is_true(m.vars[1].value));
	assert_int_equal(m.vars[2].min, -1);
	check_rest_inputs(&m);
	check_rest_serve(&m);
	check_rest_tests(&m);
	assert_int_equal(m.ninputs, 3);
	assert_int_equal(m.inputs[1].min, -1);
	assert_string_equal(m.inputs[2].options.v[1], "2");
	assert_string_equal(m.presets[0].values.v[1].value, "3");
	assert_string_equal(m.annotations.v[0].value, "12.6 ${unknown}");
	assert_int_equal(m.build.level, 5);
	assert_true(m.build.squash && m.build.provenance);
	assert_int_equal(m.build.sbom.n, 2);
	manifest_fini(&m);
	complaints_fini(&c);
}

/* Does one of the documents have the key? `v` are the values that its object has in them. */
static void covered(const struct schema *t, const json_t *v, const char *above)
{
	for (const struct key *k = t->keys; k->name; k++) {
		auto_free char *name = mem_printf("%s/%s", above, k->name);
		auto_json json_t *inner = json_array();
		json_t *object, *member;
		const char *key;
		size_t i, x;
		bool found = false;

		json_array_foreach (v, i, object) {
			json_t *value = json_object_get(object, k->name);

			found = found || value;
			if (k->kind == V_OBJECT)
				json_array_append(inner, value);
			if (k->kind == V_OBJECTS)
				json_array_foreach (value, x, member)
					json_array_append(inner, member);
			if (k->kind == V_NAMED)
				json_object_foreach (value, key, member)
					json_array_append(inner, member);
		}
		if (!found && !str_starts(name, "/modes/") && !str_starts(name, "/health/"))
			fail_msg("no good manifest has %s", name);
		if (k->of && found && !k->partial)
			covered(k->of, inner, name);
	}
}

TEST(every_key_is_in_a_good_manifest_of_the_tests)
{
	static const char *const paths[] = {
		"tests/data/manifest/good/full.json", "tests/data/manifest/good/rest.json",
		"tests/data/manifest/good/signed-base.json"};
	auto_json json_t *v = json_array();

	for (size_t i = 0; i < 3; i++)
		json_array_append_new(v, json_load_file(paths[i], 0, NULL));
	assert_int_equal(json_array_size(v), 3);
	covered(&manifest_schema, v, "");
}

/* ---- schema.json says what the tables say ---- */

/* The first alternative, which is the value itself: others are a variable, null, an operation. */
static const json_t *follow(const json_t *root, const json_t *s)
{
	for (;;) {
		const char *ref = json_string_value(json_object_get(s, "$ref"));
		const json_t *any = json_object_get(s, "anyOf");

		if (ref)
			s = json_object_get(
				json_object_get(root, "$defs"), ref + strlen("#/$defs/"));
		else if (any)
			s = json_array_get(any, 0);
		else
			return s;
	}
}

static bool schema_requires(const json_t *s, const char *name)
{
	const json_t *list = json_object_get(s, "required");

	for (size_t i = 0; i < json_array_size(list); i++)
		if (str_eq(json_string_value(json_array_get(list, i)), name))
			return true;
	return false;
}

static void same_choices(const struct key *k, const json_t *s)
{
	const json_t *list = json_object_get(s, "enum"), *one = json_object_get(s, "const");
	size_t n = 0;

	for (; k->choices[n].name; n++) {
		bool found = one && str_eq(json_string_value(one), k->choices[n].name);

		for (size_t x = 0; x < json_array_size(list); x++)
			found = found || str_eq(json_string_value(json_array_get(list, x)),
						 k->choices[n].name);
		if (!found)
			fail_msg("key %s: choice %s differs", k->name, k->choices[n].name);
	}
	assert_int_equal(n, one ? 1 : json_array_size(list));
}

static void same_number(const struct key *k, const json_t *s, const char *name, uint64_t want)
{
	const json_t *v = json_object_get(s, name);

	if ((uint64_t)json_integer_value(v) != want)
		fail_msg("key %s: %s is %lld, not %llu", k->name, name,
			(long long)json_integer_value(v), (unsigned long long)want);
}

static void same_type(const struct key *k, const json_t *s)
{
	static const char *const types[] = {[V_STRING] = "string",
		[V_STRINGS] = "array",
		[V_PAIRS] = "object",
		[V_BOOL] = "boolean",
		[V_INTEGER] = "integer",
		[V_SIGNED] = "integer",
		[V_NUMBER] = "number",
		[V_INTEGERS] = "array",
		[V_MODE] = "string",
		[V_SHA256] = "string",
		[V_DIGEST] = "string",
		[V_OBJECT] = "object",
		[V_OBJECTS] = "array",
		[V_NAMED] = "object"};
	const char *type = json_string_value(json_object_get(s, "type"));
	uint64_t max = k->max ? k->max : SCHEMA_ITEMS;

	if (k->kind >= sizeof(types) / sizeof(types[0]) || !types[k->kind])
		return; /* V_JSON may be anything, words have choices */
	if (!type || !str_eq(type, types[k->kind]))
		fail_msg("key %s: type %s", k->name, type ? type : "none");
	if (k->kind == V_INTEGER) {
		same_number(k, s, "minimum", k->min);
		same_number(k, s, "maximum", k->max);
	}
	if (k->kind == V_STRINGS || k->kind == V_OBJECTS) {
		same_number(k, s, "minItems", k->min);
		same_number(k, s, "maxItems", max);
	}
	if (k->kind == V_PAIRS || k->kind == V_NAMED)
		same_number(k, s, "maxProperties", max);
}

/* What a rule takes, as far as a maximum says it. */
static void same_rule(const struct key *k, const json_t *root, const json_t *s)
{
	const json_t *max = json_object_get(s, "maxLength");

	(void)root;
	if (k->kind == V_STRING && max)
		same_number(k, s, "maxLength", k->rule && k->rule->max ? k->rule->max : 4096);
}

/* complete: what $defs/complete says of this object. */
static void same_keys(
	const struct schema *t, const json_t *root, const json_t *s, const json_t *complete)
{
	const json_t *properties = json_object_get(s, "properties");
	const json_t *inner = json_object_get(complete, "properties");
	size_t n = 0;

	assert_true(json_is_false(json_object_get(s, "additionalProperties")));
	for (const struct key *k = t->keys; k->name; k++, n++) {
		const json_t *plain = json_object_get(properties, k->name);
		const json_t *p = follow(root, plain), *below = json_object_get(inner, k->name);

		if (!plain)
			fail_msg("schema.json lacks key %s", k->name);
		if (complete != json_null() && schema_requires(complete, k->name) != k->required)
			fail_msg("required differs for key %s", k->name);
		same_type(k, p);
		same_rule(k, root, p);
		if (k->choices && k->kind != V_STRINGS)
			same_choices(k, p);
		if (k->kind == V_OBJECT)
			same_keys(k->of, root, p, complete == json_null() ? complete : below);
		if (k->kind == V_OBJECTS)
			same_keys(k->of, root, follow(root, json_object_get(p, "items")),
				complete == json_null() ? complete
							: json_object_get(below, "items"));
		if (k->kind == V_NAMED)
			same_keys(k->of, root,
				follow(root, json_object_get(p, "additionalProperties")),
				k->partial ? json_null()
					   : json_object_get(below, "additionalProperties"));
	}
	assert_int_equal(json_object_size(properties), n);
}

TEST(the_json_schema_says_what_the_tables_say)
{
	struct json_doc d;
	const json_t *complete;

	assert_int_equal(json_doc_load(&d, AT_FDCWD, "manifests/schema.json", 4 << 20, NULL), 0);
	complete = json_object_get(json_object_get(d.root, "$defs"), "complete");
	assert_non_null(complete);
	same_keys(&manifest_schema, d.root, d.root, complete);
	json_doc_fini(&d);
}

/* Every key, by its path, has a line in docs/manifest.md: `key`, or its last two parts. */
static void documented(const struct schema *t, const char *text, const char *above)
{
	for (const struct key *k = t->keys; k->name; k++) {
		auto_free char *code = mem_printf("`%s%s%s`", above, *above ? "." : "", k->name);

		if (!strstr(text, code))
			fail_msg("docs/manifest.md lacks %s", code);
		if (k->of && !k->partial) {
			auto_free char *below =
				mem_printf("%s%s%s%s", above, *above ? "." : "", k->name,
					k->kind == V_OBJECTS ? "[]"
					: k->kind == V_NAMED ? ".NAME"
							     : "");

			if (!str_eq(k->name, "readiness") && !str_eq(k->name, "liveness"))
				documented(k->of, text, below);
		}
	}
}

TEST(every_key_is_documented)
{
	auto_buf struct buf text = BUF_INIT(4 << 20);

	assert_int_equal(file_read(AT_FDCWD, "docs/manifest.md", &text, NULL), 0);
	documented(&manifest_schema, text.data, "");
}

/* ---- digest ---- */

static struct digest digest_of_text(const char *text)
{
	struct complaints c;
	struct manifest m;
	struct digest d;

	assert_int_equal(parse(&m, text, &c), 0);
	d = m.digest;
	manifest_fini(&m);
	return d;
}

TEST(the_digest_is_of_the_meaning_not_the_layout)
{
	struct digest a = digest_of_text(HEAD ", \"user\": \"\\u0061pp\"}");
	struct digest b = digest_of_text("{\"user\":\"app\",\"version\":\"1\",\n\"name\":\"a\","
					 "\"schema\":\"svrun.image/1\"}");
	struct digest other = digest_of_text(HEAD ", \"user\": \"apt\"}");

	assert_true(digest_eq(&a, &b));
	assert_false(digest_eq(&a, &other));
}

TEST(a_manifest_full_of_numbers_that_print_longer_has_a_digest)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);

	buf_printf(&b, "%s", HEAD ", \"x-n\": [1e9");
	for (int i = 0; i < 100000; i++)
		buf_printf(&b, ",1e15");
	buf_printf(&b, "]}");
	digest_of_text(b.data);
}

/* ---- limits ---- */

TEST(a_platform_is_chosen_from_those_the_manifest_has)
{
	static const char both[] = HEAD ", \"platforms\": [\"linux/riscv64\", \"linux/arm64/v8\"]}";
	struct manifest_choice choice = {.platform = "linux/arm64/v8"};
	struct complaints c = {0};
	struct manifest m;
	struct err e = {0};

	assert_int_equal(parse(&m, HEAD "}", &c), 0);
	assert_string_equal(m.platform, manifest_platform());
	manifest_fini(&m);
	assert_int_equal(parse(&m, both, &c), 0);
	assert_string_equal(m.platform, "linux/riscv64");
	manifest_fini(&m);
	assert_int_equal(manifest_parse(&m, "m.json", both, strlen(both), &choice, &c, &e), 0);
	assert_string_equal(m.platform, "linux/arm64/v8");
	manifest_fini(&m);
	choice.platform = "plan9/amd64";
	assert_int_equal(manifest_parse(&m, "m.json", both, strlen(both), &choice, &c, &e), -1);
	assert_string_equal(
		e.text, "--platform plan9/amd64: m.json is for linux/riscv64 and others");
	assert_int_equal(e.kind, ERR_USAGE);
	complains(HEAD ", \"platforms\": [\"linux\"]}", "dir/m.json:1:72: SV007 /platforms/0: ");
}

TEST(arrays_and_objects_have_a_limit)
{
	auto_buf struct buf list = BUF_INIT(1 << 20), map = BUF_INIT(1 << 20);

	buf_printf(&list, "%s", HEAD ", \"cmd\": [\"x\"");
	buf_printf(&map, "%s", HEAD ", \"env\": {\"A\": \"\"");
	for (int i = 0; i < 10000; i++) {
		buf_printf(&list, ",\"x\"");
		buf_printf(&map, ",\"A%d\":\"\"", i);
	}
	buf_printf(&list, "]}");
	buf_printf(&map, "}}");
	complains(list.data, "dir/m.json:1:65: SV004 /cmd: 10001 items; at most 10000\n");
	complains(map.data, "dir/m.json:1:65: SV004 /env: 10001 items; at most 10000\n");
}

TEST(a_manifest_over_a_mebibyte_is_refused)
{
	auto_free char *text = mem_alloc((1 << 20) + 2);
	struct complaints c = {0};
	struct manifest m;
	struct err e = {0};

	memset(text, ' ', (1 << 20) + 1);
	assert_int_equal(manifest_parse(&m, "m.json", text, (1 << 20) + 1, NULL, &c, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	assert_string_equal(e.text, "m.json: longer than the limit of 1048576 bytes");
}

TEST(many_errors_in_a_big_manifest_take_no_time)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);
	struct complaints c;
	struct manifest m;
	double begin = sys_now_ms();

	buf_printf(&b, "%s", HEAD ", \"x-pad\": [");
	while (b.len < 600000)
		buf_printf(&b, "{\"\\u0041\":1},");
	buf_printf(&b, "0]");
	for (int i = 0; i < 9000; i++)
		buf_printf(&b, ",\"unknown-key-%d\":{\"a\":1,\"a\":2}", i);
	buf_printf(&b, "}");
	assert_int_equal(parse(&m, b.data, &c), -1);
	assert_int_equal(c.count, 18000);
	assert_non_null(strstr(c.text.data, "m.json: 17900 more errors are not shown\n"));
	complaints_fini(&c);
	assert_true(sys_now_ms() - begin < 20000);
}

/* ---- which file ---- */

static void loads(const char *app, const char *path, const char *dir)
{
	struct complaints c = {0};
	struct manifest m;
	struct err e = {0};

	if (manifest_load(&m, app, NULL, &c, &e) < 0)
		fail_msg("%s: %s", app, e.text);
	assert_string_equal(m.path, path);
	assert_string_equal(m.dir, dir);
	manifest_fini(&m);
}

static void put_manifest(const char *folder)
{
	auto_free char *path = mem_printf("%s/manifest.json", folder);

	assert_int_equal(sys_mkdir_p(AT_FDCWD, folder, 0755), 0);
	assert_int_equal(file_write(AT_FDCWD, path, HEAD "}", strlen(HEAD "}"), 0644, NULL), 0);
}

TEST(an_app_is_a_file_a_folder_or_a_name)
{
	char tmp[] = "/tmp/svrun-test-XXXXXX";
	struct complaints c = {0};
	struct manifest m;
	struct err e = {0};

	assert_non_null(mkdtemp(tmp));
	assert_int_equal(chdir(tmp), 0);
	put_manifest("manifests/ocr");
	put_manifest("manifests/tiny-llama-chat");
	put_manifest("mine");
	loads("ocr", "manifests/ocr/manifest.json", "manifests/ocr");
	loads("mine", "mine/manifest.json", "mine");
	loads("mine/", "mine/manifest.json", "mine");
	loads("mine/manifest.json", "mine/manifest.json", "mine");

	assert_int_equal(manifest_load(&m, "tiny-lama-chat", NULL, &c, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_string_equal(e.text,
		"no manifest 'tiny-lama-chat': tried tiny-lama-chat, tiny-lama-chat/manifest.json, "
		"manifests/tiny-lama-chat/manifest.json");
	assert_string_equal(e.hint, "did you mean 'tiny-llama-chat'?");
	e = (struct err){0};
	assert_int_equal(manifest_load(&m, "a/b", NULL, &c, &e), -1);
	assert_string_equal(e.text, "no manifest 'a/b': tried a/b, a/b/manifest.json");
	assert_string_equal(e.hint, "manifests/ has ocr, tiny-llama-chat");
	e = (struct err){0};
	assert_int_equal(mkfifo("fifo", 0644), 0);
	assert_int_equal(manifest_load(&m, "fifo", NULL, &c, &e), -1);
	assert_string_equal(e.text, "fifo: not a regular file");
	go_back();
	assert_int_equal(sys_remove_tree(AT_FDCWD, tmp), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_bad_manifest_gets_exactly_its_complaints),
		cmocka_unit_test(the_smallest_manifest_gets_the_defaults),
		cmocka_unit_test(every_key_lands_in_its_field),
		cmocka_unit_test(the_rest_of_the_language_lands_in_its_fields),
		cmocka_unit_test(every_key_is_in_a_good_manifest_of_the_tests),
		cmocka_unit_test(the_json_schema_says_what_the_tables_say),
		cmocka_unit_test(every_key_is_documented),
		cmocka_unit_test(the_digest_is_of_the_meaning_not_the_layout),
		cmocka_unit_test(a_manifest_full_of_numbers_that_print_longer_has_a_digest),
		cmocka_unit_test(a_platform_is_chosen_from_those_the_manifest_has),
		cmocka_unit_test(arrays_and_objects_have_a_limit),
		cmocka_unit_test(a_manifest_over_a_mebibyte_is_refused),
		cmocka_unit_test(many_errors_in_a_big_manifest_take_no_time),
		cmocka_unit_test(an_app_is_a_file_a_folder_or_a_name),
	};

	return getcwd(start, sizeof(start)) ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
