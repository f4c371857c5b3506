#include "tests/unit/test.h"

#include <stdlib.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/proc.h"
#include "base/str.h"
#include "base/sys.h"
#include "gpu/reserve.h"
#include "svrun/gpus.h"
#include "svrun/instance.h"

/* A host that tests/gpu/make-root makes up, with real nodes: as root only. */
struct fixture {
	char dir[40];
};

static int make(void **state)
{
	struct fixture *f = mem_alloc(sizeof(*f));
	struct err e = {0};

	snprintf(f->dir, sizeof(f->dir), "/tmp/svrun-gpus.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	*state = f;
	if (geteuid() != 0)
		return 0;
	auto_free char *host = mem_printf("%s/host", f->dir);
	const char *argv[] = {"tests/gpu/make-root", "eight", host, NULL};
	const struct proc p = {.argv = argv};

	if (proc_check(&p, &e) < 0)
		fail_msg("%s", e.text);
	setenv("SVRUN_GPU_ROOT", host, 1);
	return 0;
}

static int drop(void **state)
{
	struct fixture *f = *state;

	auto_free char *views = mem_printf("%s/host/run/svrun/gpu/views", f->dir);

	unsetenv("SVRUN_GPU_ROOT");
	(void)sys_umount2(views, MNT_DETACH); /* where there are any */
	assert_int_equal(sys_remove_tree(AT_FDCWD, f->dir), 0);
	free(f);
	return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make, drop)
#define NEED_ROOT()                                                                                \
	do {                                                                                       \
		if (geteuid() != 0)                                                                \
			skip();                                                                    \
	} while (0)

static int open_with(struct gpus **g, const char *label, const char *gpus, struct err *e)
{
	const char *v[] = {gpus};
	struct run_options o = {.gpus = {v, gpus ? 1 : 0, 0}};
	auto_json json_t *image =
		json_pack("{s:{s:{s:s*}}}", "config", "Labels", "run.svrun.gpu", label);
	auto_json json_t *env = json_array();
	struct gpus_ask ask = {.o = &o, .image = image, .env = env, .who = "x"};

	return gpus_open(g, &ask, e);
}

static json_t *bare_config(void)
{
	return json_pack("{s:{s:[]}, s:{}, s:{s:{s:[]}}, s:[]}", "process", "env", "annotations",
		"linux", "resources", "devices", "mounts");
}

TEST(nothing_is_read_when_nothing_was_asked_for)
{
	struct gpus *g;
	struct err e = {0};

	setenv("SVRUN_GPU_ROOT", "/nonexistent", 1);
	assert_int_equal(open_with(&g, NULL, NULL, &e), 0);
	assert_int_equal(gpus_count(g), 0);
	assert_false(gpus_has_any(g));
	gpus_close(g);
	assert_int_equal(open_with(&g, "{\"mode\":\"optional\"}", NULL, &e), 0);
	gpus_close(g);
}

TEST(an_image_that_needs_some_says_how_many)
{
	static const struct {
		const char *label, *hint;
	} cases[] = {
		{"{\"mode\":\"required\"}", "--gpus 1 gives"},
		{"{\"mode\":\"required\",\"count\":{\"min\":2}}", "--gpus 2 gives"},
		{"{\"mode\":\"required\",\"count\":{\"min\":2,\"default\":4}}", "--gpus 4 gives"},
		{"{\"mode\":\"required\",\"count\":{\"min\":-7}}", "--gpus 1 gives"},
		{"{\"mode\":\"required\",\"count\":{\"min\":999999999999}}", "--gpus 1 gives"},
		{"{\"mode\":\"required\",\"count\":[]}", "--gpus 1 gives"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gpus *g;
		struct err e = {0};

		assert_int_equal(open_with(&g, cases[i].label, NULL, &e), -1);
		assert_int_equal(e.kind, ERR_USAGE);
		assert_non_null(strstr(e.hint, cases[i].hint));
	}
}

TEST(labels_that_are_none_are_named)
{
	static const char *const labels[] = {"", "{", "[]", "3", "\"x\""};

	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
		struct gpus *g;
		struct err e = {0};

		assert_int_equal(open_with(&g, labels[i], NULL, &e), -1);
		assert_int_equal(e.kind, ERR_CORRUPT);
		assert_non_null(strstr(e.text, "label run.svrun.gpu"));
	}
}

TEST(what_was_granted_is_in_the_config_and_reserved_until_the_end)
{
	struct gpus *g, *other;
	struct err e = {0};

	NEED_ROOT();
	if (open_with(&g, NULL, "device=2,3", &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(gpus_count(g), 2);
	auto_json json_t *config = bare_config();
	if (gpus_apply(g, config, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(json_string_value(json_object_get(
				    json_object_get(config, "annotations"), INSTANCE_GPUS)),
		"2,3");
	assert_int_equal(open_with(&other, NULL, "device=3", &e), -1);
	assert_int_equal(e.kind, ERR_EXISTS);
	gpus_close(g);
	assert_int_equal(open_with(&other, NULL, "device=3", &e), 0);
	gpus_close(other);
}

TEST(a_gpu_that_goes_between_check_and_start_is_named)
{
	struct fixture *f = *state;
	struct gpus *g;
	struct err e = {0};

	NEED_ROOT();
	auto_free char *node = mem_printf("%s/host/dev/nvidia5", f->dir);
	assert_int_equal(open_with(&g, NULL, "device=5", &e), 0);
	assert_int_equal(unlink(node), 0);
	auto_json json_t *config = bare_config();
	assert_int_equal(gpus_apply(g, config, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_string_equal(e.text, "GPU 5 (NVIDIA H200) has gone since it was chosen: "
				    "/dev/nvidia5 is no longer there");
	gpus_close(g);
}

TEST(a_node_that_became_another_device_is_refused)
{
	struct fixture *f = *state;
	struct gpus *g;
	struct err e = {0};

	NEED_ROOT();
	auto_free char *node = mem_printf("%s/host/dev/nvidia5", f->dir);
	assert_int_equal(open_with(&g, NULL, "device=5", &e), 0);
	assert_int_equal(unlink(node), 0);
	assert_int_equal(symlink("/dev/zero", node), 0);
	auto_json json_t *config = bare_config();
	assert_int_equal(gpus_apply(g, config, &e), -1);
	assert_int_equal(e.kind, ERR_DENIED);
	gpus_close(g);
}

RUN_TESTS(CASE(nothing_is_read_when_nothing_was_asked_for),
	CASE(an_image_that_needs_some_says_how_many), CASE(labels_that_are_none_are_named),
	CASE(what_was_granted_is_in_the_config_and_reserved_until_the_end),
	CASE(a_gpu_that_goes_between_check_and_start_is_named),
	CASE(a_node_that_became_another_device_is_refused))
