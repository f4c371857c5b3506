#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/manifest.h"
#include "builder/resolve.h"

static char top[64];

#define HEAD(name) "{\"schema\": \"svrun.image/1\", \"name\": \"" name "\", \"version\": \"1\""

static void put(const char *name, const char *text)
{
	auto_free char *folder = mem_printf("%s/%s", top, name),
		       *path = mem_printf("%s/manifest.json", folder);

	assert_int_equal(sys_mkdir_p(AT_FDCWD, folder, 0755), 0);
	assert_int_equal(file_write(AT_FDCWD, path, text, strlen(text), 0644, NULL), 0);
}

static int load(struct manifest *m, const char *name, const struct manifest_choice *choice,
	struct complaints *c, struct err *e)
{
	auto_free char *path = mem_printf("%s/%s", top, name);

	*c = (struct complaints){0};
	*e = (struct err){0};
	return manifest_load(m, path, choice, c, e);
}

/* The member of the merged document at a pointer is this JSON text. */
static void is(const struct manifest *m, const char *key, const char *want)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);

	json_text(json_object_get(m->doc.root, key), true, &b);
	if (!str_eq(b.data, want))
		fail_msg("%s: expected %s, got %s", key, want, b.data);
}

/* FILE:LINE:COL of a pointer, without the folder of the test. */
static void from(const struct manifest *m, const char *pointer, const char *want)
{
	const char *file;
	auto_free char *got = NULL;
	int line, col;

	resolved_place(m->source, pointer, false, &file, &line, &col);
	assert_true(str_starts(file, top));
	got = mem_printf("%s:%d:%d", file + strlen(top) + 1, line, col);
	if (!str_eq(got, want))
		fail_msg("%s: expected %s, got %s", pointer, want, got);
}

/* All complaints about a manifest, one after the other, each without the folder of the test. */
static void complains(const char *name, const struct manifest_choice *choice, const char *want)
{
	struct complaints c;
	struct manifest m;
	struct err e;
	auto_buf struct buf got = BUF_INIT(1 << 20);

	if (load(&m, name, choice, &c, &e) == 0)
		fail_msg("accepted: %s", name);
	assert_int_equal(e.kind, ERR_USAGE);
	for (const char *p = c.text.data ? c.text.data : ""; *p;) {
		size_t skip = str_starts(p, top) ? strlen(top) + 1 : 0, n = strcspn(p, "\n") + 1;

		buf_printf(&got, "%.*s", (int)(n - skip), p + skip);
		p += n;
	}
	if (!got.data || !str_eq(got.data, want))
		fail_msg("expected\n%sgot\n%s%s", want, got.data ? got.data : "", e.text);
	complaints_fini(&c);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "/tmp/svrun-test-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return sys_remove_tree(AT_FDCWD, top);
}

/* ---- merging ---- */

#define SOURCE(uri)                                                                                \
	"{\"uri\": \"mirror:" uri "\", \"suites\": [\"s\"], \"components\": [\"main\"], "          \
	"\"signedBy\": \"keys/k.gpg\"}"

TEST(objects_merge_scalars_replace_and_arrays_append)
{
	struct complaints c;
	struct manifest m;
	struct err e;

	put("base", HEAD("base") ", \"title\": \"Base\",\n"
				 "\"apt\": {\"sources\": [" SOURCE(
					 "a") "],\n"
					      " \"packages\": [\"?essential\", \"curl\"], "
					      "\"recommends\": true},\n"
					      "\"env\": {\"A\": \"1\", \"B\": \"1\"}, \"cmd\": "
					      "[\"x\"],\n"
					      "\"files\": [{\"id\": \"f\", \"dest\": \"/f\", "
					      "\"from\": \"f.txt\"},\n"
					      "  {\"id\": \"g\", \"dest\": \"/g\", \"inline\": "
					      "\"\"}],\n"
					      "\"user\": \"app\"}");
	put("app",
		HEAD("app") ", \"from\": [\"base\"],\n"
			    "\"apt\": {\"packages\": [\"curl\", \"vim\"], \"recommends\": false},\n"
			    "\"env\": {\"B\": \"2\", \"C\": \"2\"}, \"cmd\": [\"x\", \"y\"],\n"
			    "\"files\": [{\"id\": \"h\", \"dest\": \"/h\", \"from\": \"h.txt\"},\n"
			    "  {\"id\": \"f\", \"mode\": \"0755\"}],\n"
			    "\"user\": null}");
	if (load(&m, "app", NULL, &c, &e) < 0)
		fail_msg("%s", c.text.data);
	assert_string_equal(m.name, "app");
	assert_string_equal(m.title, "Base");
	is(&m, "env", "{\"A\":\"1\",\"B\":\"2\",\"C\":\"2\"}");
	is(&m, "cmd", "[\"x\",\"x\",\"y\"]");
	assert_int_equal(m.apt.packages.n, 3);
	assert_false(m.apt.recommends);
	assert_null(m.user);
	assert_int_equal(m.nfiles, 3);
	assert_int_equal(m.files[0].mode, 0755);
	assert_string_equal(m.files[0].from, "../base/f.txt");
	assert_string_equal(m.files[2].from, "h.txt");
	assert_string_equal(m.apt.sources[0].signed_by, "../base/keys/k.gpg");
	from(&m, "/apt/packages/1", "base/manifest.json:3:29");
	from(&m, "/apt/packages/2", "app/manifest.json:2:30");
	from(&m, "/env/A", "base/manifest.json:4:14");
	from(&m, "/env/B", "app/manifest.json:3:14");
	from(&m, "/files/0/dest", "base/manifest.json:5:31");
	from(&m, "/files/0/mode", "app/manifest.json:5:23");
	from(&m, "/files/0/nothing", "app/manifest.json:5:3");
	assert_false(json_object_get(m.doc.root, "from"));
	manifest_fini(&m);
}

TEST(replace_and_remove)
{
	struct complaints c;
	struct manifest m;
	struct err e;

	put("base", HEAD("base") ", \"env\": {\"A\": \"1\", \"B\": \"1\"}, \"cmd\": [\"x\"], "
				 "\"entrypoint\": [\"e\"], \"dirs\": [{\"path\": \"/a\"}],\n"
				 "\"files\": [{\"id\": \"f\", \"dest\": \"/f\", \"inline\": \"\"}, "
				 "{\"id\": \"g\", \"dest\": \"/g\", \"inline\": \"\"}],\n"
				 "\"licenses\": [\"MIT\", \"ISC\"], \"labels\": {\"a\": \"b\"}}");
	put("app",
		HEAD("app") ", \"from\": [\"base\"], \"env\": {\"$remove\": [\"A\"]},\n"
			    "\"cmd\": {\"$replace\": [\"z\"]}, \"files\": {\"$remove\": [\"f\"]},\n"
			    "\"licenses\": {\"$remove\": [\"ISC\"]}, \"labels\": {\"$replace\": "
			    "{\"c\": \"d\"}}, \"dirs\": {\"$replace\": []}}");
	if (load(&m, "app", NULL, &c, &e) < 0)
		fail_msg("%s", c.text.data);
	is(&m, "env", "{\"B\":\"1\"}");
	is(&m, "cmd", "[\"z\"]");
	is(&m, "entrypoint", "[\"e\"]");
	is(&m, "licenses", "[\"MIT\"]");
	is(&m, "labels", "{\"c\":\"d\"}");
	is(&m, "dirs", "[]");
	assert_int_equal(m.nfiles, 1);
	assert_string_equal(m.files[0].id, "g");
	from(&m, "/cmd/0", "app/manifest.json:2:22");
	manifest_fini(&m);

	put("bad", HEAD("bad") ", \"from\": [\"base\"],\n\"env\": {\"$remove\": [\"Z\", 1]},\n"
			       "\"user\": {\"$remove\": [\"Z\"]},\n\"cmd\": {\"$remove\": \"x\"}}");
	complains("bad", NULL,
		"bad/manifest.json:2:21: SV009 /env/$remove/0: nothing inherited is called 'Z'\n"
		"bad/manifest.json:2:26: SV006 /env/$remove/1: wrong type; expected a string\n"
		"bad/manifest.json:3:9: SV006 /user: wrong type; expected a string, got an array\n"
		"bad/manifest.json:3:10: SV009 /user/$remove: there is nothing inherited here to "
		"remove from\n"
		"bad/manifest.json:4:20: SV006 /cmd/$remove: wrong type; expected an array of "
		"strings\n");
}

TEST(a_parent_of_two_parents_is_merged_once)
{
	struct complaints c;
	struct manifest m;
	struct err e;

	put("root", HEAD("root") ", \"cmd\": [\"root\"]}");
	put("left", HEAD("left") ", \"from\": [\"root\"], \"cmd\": [\"left\"]}");
	put("right", HEAD("right") ", \"from\": [\"root\"], \"cmd\": [\"right\"]}");
	put("app", HEAD("app") ", \"from\": [\"left\", \"right\"], \"cmd\": [\"app\"]}");
	if (load(&m, "app", NULL, &c, &e) < 0)
		fail_msg("%s", c.text.data);
	is(&m, "cmd", "[\"root\",\"left\",\"right\",\"app\"]");
	manifest_fini(&m);
}

/* ---- parents that cannot be ---- */

TEST(a_circle_is_shown)
{
	put("a", HEAD("a") ",\n\"from\": [\"b\"]}");
	put("b", HEAD("b") ",\n\"from\": [\"c\"]}");
	put("c", HEAD("c") ",\n\"from\": [\"b\"]}");
	put("self", HEAD("self") ",\n\"from\": [\"self\"]}");
	complains("a", NULL, "c/manifest.json:2:10: SV016 /from/0: a circle: a -> b -> c -> b\n");
	complains("self", NULL, "self/manifest.json:2:10: SV016 /from/0: a circle: self -> self\n");
}

TEST(nine_generations_are_too_many)
{
	char name[8], text[200];
	struct complaints c;
	struct manifest m;
	struct err e;

	for (int i = 0; i <= 9; i++) {
		snprintf(name, sizeof(name), "g%d", i);
		snprintf(text, sizeof(text),
			"{\"schema\": \"svrun.image/1\", \"name\": \"%s\", \"version\": "
			"\"1\"%s%.*d%s}",
			name, i ? ", \"from\": [\"g" : "", i ? 1 : 0, i ? i - 1 : 0,
			i ? "\"]" : "");
		if (i == 0)
			snprintf(text, sizeof(text), "%s", HEAD("g0") "}");
		put(name, text);
	}
	assert_int_equal(load(&m, "g8", NULL, &c, &e), 0);
	manifest_fini(&m);
	complains("g9", NULL,
		"g1/manifest.json:1:68: SV016 /from/0: more than 8 deep: g9 -> g8 -> g7 -> g6 -> "
		"g5 -> g4 -> g3 -> g2 -> g1 -> g0\n");
}

TEST(a_parent_has_the_digest_that_is_asked_for)
{
	static const char base[] = HEAD("base") "}";
	struct digest d = digest_of("{\"name\":\"base\",\"schema\":\"svrun.image/1\","
				    "\"version\":\"1\"}",
		strlen("{\"name\":\"base\",\"schema\":\"svrun.image/1\",\"version\":\"1\"}"));
	struct complaints c;
	struct manifest m;
	struct err e;
	char text[DIGEST_TEXT + 1];
	auto_free char *good = mem_printf(
			       "%s, \"from\": [\"base@%s\"]}", HEAD("app"), digest_text(&d, text)),
		       *want = mem_printf("app/manifest.json:1:69: SV016 /from/0: %s/base/"
					  "manifest.json has the digest %s\n",
			       top, text);

	put("base", base);
	put("app", good);
	assert_int_equal(load(&m, "app", NULL, &c, &e), 0);
	manifest_fini(&m);
	put("app",
		HEAD("app") ", \"from\": [\"base@sha256:" /* 64 digits */
			    "abababababababababababababababababababababababababababababababab\"]}");
	complains("app", NULL, want);
}

TEST(errors_of_all_documents_come_at_once)
{
	auto_free char *want = NULL;

	put("broken", "{\"schema\": \"svrun.image/1\",\n  \"name\": }");
	put("wrong", "{\"schema\": \"svrun.image/2\", \"cmd\": [1],\n\"env\": {\"A\": \"${x}\"}, "
		     "\"twice\": 1, \"twice\": 2, \"from\": [\"-\"]}");
	put("app", HEAD("app") ",\n\"from\": [\"gone\", \"broken\", \"wrong\"],\n\"user\": 1}");
	want = mem_printf(
		"app/manifest.json:2:10: SV016 /from/0: no manifest 'gone': tried "
		"%s/gone/manifest.json\n"
		"app/manifest.json:3:9: SV006 /user: wrong type; expected a string, got 1\n"
		"broken/manifest.json:2:11: SV000 unexpected token near '}'\n"
		"wrong/manifest.json:1:12: SV016 /schema: not a manifest svrun.image/1\n"
		"wrong/manifest.json:1:37: SV006 /cmd/0: wrong type; expected a string, "
		"got 1\n"
		"wrong/manifest.json:2:14: SV015 /env/A: unknown variable '${x}'; expected "
		"${runtime:cpus}, ${runtime:gpus} or ${runtime:memMiB}; no shell reads env: write "
		"out what it shall be, or declare it in vars\n"
		"wrong/manifest.json:2:35: SV001 /twice: unknown key 'twice'\n"
		"wrong/manifest.json:2:35: SV002 /twice: duplicate key 'twice'; only one "
		"of the two can be meant\n"
		"wrong/manifest.json:2:56: SV007 /from/0: not a valid value; expected the "
		"name of a manifest, or NAME@sha256:DIGEST\n",
		top);
	complains("app", NULL, want);
}

TEST(an_error_about_a_value_is_told_with_the_file_that_it_is_from)
{
	auto_free char *want = mem_printf("%s/base/manifest.json:2:8: wrong", top);
	struct complaints c;
	struct manifest m;
	struct err e;

	put("base", HEAD("base") ",\n\"cmd\": [\"x\"]}");
	put("app", HEAD("app") ", \"$schema\": \"../s\", \"from\": [\"base\"]}");
	assert_int_equal(load(&m, "app", NULL, &c, &e), 0);
	err_set(&e, ERR_USAGE, "wrong");
	assert_int_equal(manifest_at(&m, "/cmd", &e), -1);
	assert_string_equal(e.text, want);
	/* what editors put in is no part of the document, and hides no fault of it */
	assert_null(json_object_get(m.doc.root, "$schema"));
	manifest_fini(&m);
	put("app", HEAD("app") ",\n\"$schema\": 5,\n\"cmd\": {\"$schema\": \"x\"}}");
	complains("app", NULL,
		"app/manifest.json:2:12: SV006 /$schema: wrong type; expected a string, got 5\n"
		"app/manifest.json:3:8: SV006 /cmd: wrong type; expected an array of strings, "
		"got an object\n");
}

/* ---- choices ---- */

static const char choices[] =
	HEAD("app") ", \"vars\": {\"n\": {\"type\": \"integer\", \"default\": 3, \"min\": 1, "
		    "\"max\": 9}, \"s\": {\"default\": \"a\", \"pattern\": \"^[a-z]+$\"}, "
		    "\"b\": {\"type\": \"boolean\", \"default\": true}},\n"
		    "\"matrix\": [{\"id\": \"one\", \"vars\": {\"n\": 5}}, {\"id\": \"two\", "
		    "\"vars\": {\"s\": \"z\"}}],\n"
		    "\"env\": {\"N\": \"${n}\", \"S\": \"-${s}-${n}\", \"R\": "
		    "\"${runtime:cpus}${s}\"},\n"
		    "\"cmd\": [\"base\"], \"build\": {\"compression\": {\"level\": \"${n}\"}},\n"
		    "\"init\": \"${b}\", \"apt\": {\"packages\": [\"?essential\"], \"sources\": "
		    "[" SOURCE("a") "]},\n"
				    "\"modes\": {\"cpu\": {\"cmd\": [\"cpu\"], \"env\": {\"N\": "
				    "\"cpu\"}, \"gpu\": "
				    "{\"mode\": \"none\"}}}}";

TEST(the_matrix_and_var_set_variables)
{
	struct pair vars[] = {{"n", "7"}, {"b", "false"}};
	struct manifest_choice two = {.matrix = "two"}, given = {.vars = {vars, 2}};
	struct complaints c;
	struct manifest m;
	struct err e;

	put("app", choices);
	assert_int_equal(load(&m, "app", NULL, &c, &e), 0);
	is(&m, "env", "{\"N\":\"5\",\"R\":\"${runtime:cpus}a\",\"S\":\"-a-5\"}");
	assert_int_equal(m.build.level, 5);
	assert_true(m.init);
	assert_string_equal(m.matrix, "one");
	manifest_fini(&m);
	assert_int_equal(load(&m, "app", &two, &c, &e), 0);
	is(&m, "env", "{\"N\":\"3\",\"R\":\"${runtime:cpus}z\",\"S\":\"-z-3\"}");
	manifest_fini(&m);
	assert_int_equal(load(&m, "app", &given, &c, &e), 0);
	is(&m, "env", "{\"N\":\"7\",\"R\":\"${runtime:cpus}a\",\"S\":\"-a-7\"}");
	assert_false(m.init);
	assert_int_equal(resolved_matrix(m.source).n, 2);
	assert_string_equal(resolved_modes(m.source).v[0], "cpu");
	manifest_fini(&m);
}

TEST(a_mode_replaces_arrays)
{
	struct manifest_choice cpu = {.mode = "cpu"};
	struct complaints c;
	struct manifest m;
	struct err e;

	put("app", choices);
	assert_int_equal(load(&m, "app", &cpu, &c, &e), 0);
	assert_string_equal(m.mode, "cpu");
	is(&m, "cmd", "[\"cpu\"]");
	assert_string_equal(m.env.v[0].value, "cpu");
	assert_int_equal(m.gpu.mode, GPU_NONE);
	from(&m, "/env/N", "app/manifest.json:6:48");
	from(&m, "/env/S", "app/manifest.json:3:27");
	assert_null(json_object_get(m.doc.root, "modes"));
	manifest_fini(&m);
}

TEST(what_is_chosen_must_be_there)
{
	static const struct {
		const char *mode, *matrix, *var, *value, *text, *hint;
	} table[] = {
		{"gpu", NULL, NULL, NULL, "--mode gpu: the manifest has no such mode",
			"it has cpu"},
		{NULL, "three", NULL, NULL,
			"--matrix three: the manifest has no such entry of its matrix",
			"it has one, two"},
		{NULL, NULL, "nn", "1", "--var nn: the manifest has no such variable", ""},
		{NULL, NULL, "n", "x", "--var n: wrong type; expected an integer, got 'x'", ""},
		{NULL, NULL, "n", "10",
			"--var n: not a value of the variable; expected at most 9, got '10'", ""},
		{NULL, NULL, "s", "A",
			"--var s: not a value of the variable; expected a text that matches "
			"^[a-z]+$, got 'A'",
			""},
		{NULL, NULL, "s", "${n}",
			"--var s: a variable's value cannot name a variable, got "
			"'${n}'",
			""},
		{NULL, NULL, "s", "\xff", "--var s: its value is not UTF-8", ""},
		{NULL, NULL, "b", "yes", "--var b: wrong type; expected true or false, got 'yes'",
			""},
	};

	put("app", choices);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct pair var = {table[i].var, table[i].value};
		struct manifest_choice choice = {.mode = table[i].mode,
			.matrix = table[i].matrix,
			.vars = {&var, table[i].var != NULL}};
		struct complaints c;
		struct manifest m;
		struct err e;

		assert_int_equal(load(&m, "app", &choice, &c, &e), -1);
		assert_int_equal(e.kind, ERR_USAGE);
		assert_string_equal(e.text, table[i].text);
		assert_string_equal(e.hint, table[i].hint);
		assert_int_equal(c.count, 0);
	}
}

/* ---- bounds ---- */

TEST(variables_that_explode_are_bounded)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);

	buf_printf(&b, "%s", HEAD("app") ", \"vars\": {\"a\": {\"default\": \"");
	for (int i = 0; i < 4000; i++)
		buf_printf(&b, "aaaaaaaa");
	buf_printf(&b, "\"}},\n\"cmd\": [\"");
	for (int i = 0; i < 1000; i++)
		buf_printf(&b, "${a}");
	buf_printf(&b, "\"]}");
	put("app", b.data);
	complains("app", NULL, "app/manifest.json:2:9: SV004 /cmd/0: variables make it too long\n");
}

TEST(a_parent_is_no_device_and_not_endless)
{
	auto_free char *fifo = mem_printf("%s/pipe/manifest.json", top),
		       *folder = mem_printf("%s/pipe", top), *want = NULL;
	auto_buf struct buf big = BUF_INIT(4 << 20);

	assert_int_equal(sys_mkdir_p(AT_FDCWD, folder, 0755), 0);
	assert_int_equal(mkfifo(fifo, 0644), 0);
	while (big.len <= 1 << 20)
		buf_printf(&big, "                                                  ");
	put("big", big.data);
	put("app", HEAD("app") ",\n\"from\": [\"pipe\", \"big\"]}");
	want = mem_printf(
		"app/manifest.json:2:10: SV016 /from/0: %s: not a regular file\n"
		"app/manifest.json:2:18: SV016 /from/1: %s/big/manifest.json: longer than "
		"the limit of 1048576 bytes\n",
		fifo, top);
	complains("app", NULL, want);
}

TEST(merging_big_objects_takes_no_time)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);
	struct complaints c;
	struct manifest m;
	struct err e;
	double begin = sys_now_ms();

	buf_printf(&b, "%s", HEAD("x") ", \"x-a\": {\"0\": 0");
	for (int i = 0; i < 60000; i++)
		buf_printf(&b, ",\"k%d\":%d", i, i);
	buf_printf(&b, "}");
	put("base", "");
	buf_printf(&b, "}");
	put("base", b.data);
	b.len -= 1;
	buf_printf(&b, ",\"from\":[\"base\"]}");
	put("app", b.data);
	assert_int_equal(load(&m, "app", NULL, &c, &e), 0);
	manifest_fini(&m);
	assert_true(sys_now_ms() - begin < 30000);
}

/* ---- printing ---- */

TEST(each_line_says_where_it_is_from)
{
	auto_buf struct buf text = BUF_INIT(1 << 20), json = BUF_INIT(1 << 20);
	struct complaints c;
	struct manifest m;
	struct err e;
	auto_free char *want = NULL;

	put("base", HEAD("base") ",\n\"env\": {\"A\": \"1\"}}");
	put("app", HEAD("app") ", \"from\": [\"base\"],\n\"cmd\": []}");
	assert_int_equal(load(&m, "app", NULL, &c, &e), 0);
	resolved_print(m.source, false, &text);
	want = mem_printf("{  # %1$s/app/manifest.json:1\n"
			  "  \"schema\": \"svrun.image/1\",  # %1$s/app/manifest.json:1\n"
			  "  \"name\": \"app\",  # %1$s/app/manifest.json:1\n"
			  "  \"version\": \"1\",  # %1$s/app/manifest.json:1\n"
			  "  \"env\": {  # %1$s/base/manifest.json:2\n"
			  "    \"A\": \"1\"  # %1$s/base/manifest.json:2\n"
			  "  },\n"
			  "  \"cmd\": []  # %1$s/app/manifest.json:2\n"
			  "}\n",
		top);
	assert_string_equal(text.data, want);
	resolved_print(m.source, true, &json);
	assert_non_null(strstr(json.data, "\"/env/A\": \""));
	assert_non_null(strstr(json.data, "/base/manifest.json:2:14\""));
	manifest_fini(&m);
}

TEST(the_folder_of_all_manifests)
{
	static const struct {
		const char *dir, *folder;
	} table[] = {{"manifests/ocr", "manifests"}, {"ocr", "."}, {".", ".."}, {"..", "../.."},
		{"/a", "/"}, {"a/..", "a/../.."}, {"/a/b/c", "/a/b"}};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		auto_free char *folder = manifests_folder(table[i].dir);

		assert_string_equal(folder, table[i].folder);
	}
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
RUN_TESTS(IN_FOLDER(objects_merge_scalars_replace_and_arrays_append), IN_FOLDER(replace_and_remove),
	IN_FOLDER(a_parent_of_two_parents_is_merged_once), IN_FOLDER(a_circle_is_shown),
	IN_FOLDER(nine_generations_are_too_many),
	IN_FOLDER(a_parent_has_the_digest_that_is_asked_for),
	IN_FOLDER(errors_of_all_documents_come_at_once),
	IN_FOLDER(an_error_about_a_value_is_told_with_the_file_that_it_is_from),
	IN_FOLDER(the_matrix_and_var_set_variables), IN_FOLDER(a_mode_replaces_arrays),
	IN_FOLDER(what_is_chosen_must_be_there), IN_FOLDER(variables_that_explode_are_bounded),
	IN_FOLDER(a_parent_is_no_device_and_not_endless),
	IN_FOLDER(merging_big_objects_takes_no_time), IN_FOLDER(each_line_says_where_it_is_from),
	cmocka_unit_test(the_folder_of_all_manifests))
