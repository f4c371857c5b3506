/* From granted GPUs to edits, on fixtures of whole hosts. */
#include "tests/unit/test.h"

#include "gpu/nvidia.h"
#include "gpu/view.h"
#include "tests/unit/gpu-root.h"

enum { USUAL = GPU_CAP_COMPUTE | GPU_CAP_UTILITY };

struct start {
	struct gpu_host h;
	struct gpu_inventory i;
	struct gpu_edits x;
	struct gpu_grants g;
	struct gpu_extras extras;
	struct err e;
};

static void start_open(struct start *s, const char *kind)
{
	*s = (struct start){0};
	gpu_root_open(kind, &s->h, &s->i);
	gpu_edits_init(&s->x);
	s->g.v = mem_array(64, sizeof(*s->g.v));
}

static void start_close(struct start *s)
{
	free(s->g.v);
	gpu_edits_fini(&s->x);
	gpu_inventory_fini(&s->i);
	gpu_host_close(&s->h);
}

static void grant(struct start *s, size_t index, int mig)
{
	struct gpu_device *d = &s->i.v[index];

	s->g.v[s->g.n++] = (struct gpu_grant){d, mig < 0 ? NULL : &d->migs[mig]};
}

static void make(struct start *s, unsigned caps)
{
	if (gpu_nvidia_edits(&s->x, &s->h, &s->i, &s->g, caps, &s->extras, &s->e) < 0)
		fail_msg("%s", s->e.text);
}

static const struct edit_node *node(const struct start *s, const char *path)
{
	for (size_t i = 0; i < s->x.nnodes; i++)
		if (str_eq(s->x.nodes[i].path, path))
			return &s->x.nodes[i];
	return NULL;
}

static const struct edit_mount *mount_at(const struct start *s, const char *path)
{
	for (size_t i = 0; i < s->x.nmounts; i++)
		if (str_eq(s->x.mounts[i].destination, path))
			return &s->x.mounts[i];
	return NULL;
}

static bool has_option(const struct edit_mount *m, const char *option)
{
	for (size_t i = 0; i < m->noptions; i++)
		if (str_eq(m->options[i], option))
			return true;
	return false;
}

/* Exactly these nodes, between spaces. */
static void nodes_are(const struct start *s, const char *wanted)
{
	size_t n = 0;

	for (const char *p = wanted; *p; p += strspn(p, " "), n++) {
		size_t len = strcspn(p, " ");
		auto_free char *path = mem_printf("/dev/%.*s", (int)len, p);

		if (!node(s, path))
			fail_msg("%s is not given", path);
		p += len;
	}
	if (n != s->x.nnodes)
		for (size_t i = 0; i < s->x.nnodes; i++)
			if (!strstr(wanted, s->x.nodes[i].path + strlen("/dev/")))
				fail_msg("%s is given", s->x.nodes[i].path);
	assert_int_equal(n, s->x.nnodes);
}

TEST(a_gpu_is_its_node_and_what_all_need)
{
	static const struct {
		unsigned caps;
		const char *nodes;
	} t[] = {
		{USUAL, "nvidia2 nvidiactl nvidia-uvm nvidia-uvm-tools"},
		{GPU_CAP_UTILITY, "nvidia2 nvidiactl"},
		{GPU_CAP_VIDEO, "nvidia2 nvidiactl nvidia-uvm nvidia-uvm-tools"},
		{GPU_CAP_GRAPHICS, "nvidia2 nvidiactl nvidia-modeset dri/card3 dri/renderD130"},
		{GPU_CAP_DISPLAY | GPU_CAP_UTILITY,
			"nvidia2 nvidiactl nvidia-modeset dri/card3 dri/renderD130"},
		{0, "nvidia2 nvidiactl"},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct start s;

		start_open(&s, "eight");
		grant(&s, 2, -1);
		make(&s, t[i].caps);
		nodes_are(&s, t[i].nodes);
		for (size_t k = 0; k < s.x.nnodes; k++) {
			assert_string_equal(s.x.nodes[k].access, "rw");
			assert_true(s.x.nodes[k].has_number && s.x.nodes[k].type == 'c');
		}
		assert_true(s.x.no_mknod && s.x.keep_device_files);
		assert_int_equal(mount_at(&s, GPU_VIEW_PATH) != NULL, t[i].caps != 0);
		start_close(&s);
	}
}

TEST(minors_count_and_not_indexes)
{
	struct start s;

	start_open(&s, "minors");
	grant(&s, 0, -1);
	make(&s, GPU_CAP_UTILITY);
	nodes_are(&s, "nvidia2 nvidiactl");
	assert_int_equal(node(&s, "/dev/nvidia2")->minor, 2);
	assert_int_equal(node(&s, "/dev/nvidia2")->major, 195);
	start_close(&s);
}

TEST(only_granted_gpus_are_seen)
{
	struct start s;

	start_open(&s, "minors");
	grant(&s, 0, -1);
	grant(&s, 3, -1);
	make(&s, GPU_CAP_GRAPHICS);
	assert_true(s.x.gpus_hidden);
	assert_int_equal(s.x.ngpu_buses, 2);
	assert_string_equal(s.x.gpu_buses[0], "0000:01:00.0");
	assert_string_equal(s.x.gpu_buses[1], "0000:c4:00.0");
	assert_non_null(strstr(s.x.visible_profile, "0x6]")); /* minors 2 and 1 */
	start_close(&s);
	start_open(&s, "minors");
	for (size_t i = 0; i < 4; i++)
		grant(&s, i, -1);
	make(&s, USUAL);
	assert_false(s.x.gpus_hidden);
	start_close(&s);
	/* files alone */
	start_open(&s, "minors");
	make(&s, USUAL);
	nodes_are(&s, "");
	assert_true(s.x.gpus_hidden && s.x.ngpu_buses == 0);
	start_close(&s);
}

TEST(a_part_of_a_gpu_is_its_two_capabilities)
{
	struct start s;

	start_open(&s, "mig");
	assert_int_equal(s.i.v[0].nmigs, 3);
	grant(&s, 0, 1);
	grant(&s, 0, 2);
	make(&s, GPU_CAP_GRAPHICS | GPU_CAP_UTILITY);
	/* GPU instance 1's second compute instance, and the one of GPU instance 5; no DRI */
	nodes_are(&s, "nvidia0 nvidiactl nvidia-modeset nvidia-caps/nvidia-cap12 "
		      "nvidia-caps/nvidia-cap14 nvidia-caps/nvidia-cap48 nvidia-caps/nvidia-cap49");
	assert_int_equal(s.x.ngpu_buses, 1);
	start_close(&s);
}

TEST(dri_nodes_have_their_links_and_groups)
{
	struct start s;
	bool video = false, render = false;

	start_open(&s, "eight");
	grant(&s, 0, -1);
	s.extras.dri = true;
	make(&s, USUAL);
	assert_non_null(node(&s, "/dev/dri/card1"));
	assert_string_equal(s.x.links[0].path, "/dev/dri/by-path/pci-0000:18:00.0-card");
	assert_string_equal(s.x.links[0].target, "../card1");
	for (size_t i = 0; i < s.x.ngids; i++) {
		video = video || s.x.gids[i] == 44;
		render = render || s.x.gids[i] == 105;
	}
	assert_true(video && render);
	start_close(&s);
}

TEST(extras_are_given_by_name)
{
	static const struct {
		const char *word, *node, *mount;
	} t[] = {
		{"gds", "/dev/nvidia-fs3", "/run/udev"},
		{"gds", "/dev/nvidia-fs0", "/etc/cufile.json"},
		{"gdrcopy", "/dev/gdrdrv", NULL},
		{"nvswitch", "/dev/nvidia-nvswitchctl", NULL},
		{"nvswitch", "/dev/nvidia-nvswitch3", NULL},
		{"infiniband", "/dev/infiniband/uverbs2", NULL},
		{"infiniband", "/dev/infiniband/rdma_cm", NULL},
		{"modeset", "/dev/nvidia-modeset", NULL},
		{"mig-config", "/dev/nvidia-caps/nvidia-cap1", NULL},
		{"mig-monitor", "/dev/nvidia-caps/nvidia-cap2", NULL},
		{"imex=1", "/dev/nvidia-caps-imex-channels/channel1", NULL},
		{"imex=2047", "/dev/nvidia-caps-imex-channels/channel2047", NULL},
		{"imex=all", "/dev/nvidia-caps-imex-channels/channel2", NULL},
		{"mps", "/dev/nvidiactl", "/tmp/nvidia-mps"},
	};

	gpu_sh("mkdir -p eight/tmp/nvidia-mps");
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		for (int given = 0; given < 2; given++) {
			struct start s;

			start_open(&s, "eight");
			grant(&s, 0, -1);
			if (given)
				assert_int_equal(gpu_extras_parse(&s.extras, t[i].word, &s.e), 0);
			make(&s, GPU_CAP_UTILITY);
			if (!str_eq(t[i].word, "mps"))
				assert_int_equal(node(&s, t[i].node) != NULL, given);
			if (t[i].mount)
				assert_int_equal(mount_at(&s, t[i].mount) != NULL, given);
			start_close(&s);
		}
}

TEST(pipes_are_writable_and_files_are_not)
{
	struct start s;

	start_open(&s, "eight");
	grant(&s, 0, -1);
	s.extras.mps = s.extras.gds = true;
	make(&s, USUAL);
	assert_false(has_option(mount_at(&s, "/tmp/nvidia-mps"), "ro"));
	assert_true(has_option(mount_at(&s, "/tmp/nvidia-mps"), "noexec"));
	assert_true(has_option(mount_at(&s, "/run/udev"), "ro"));
	assert_true(has_option(mount_at(&s, GPU_VIEW_PATH), "ro"));
	assert_false(has_option(mount_at(&s, GPU_VIEW_PATH), "noexec"));
	start_close(&s);
	/* a folder of /tmp that anybody made */
	start_open(&s, "eight");
	gpu_sh("chown 4242 eight/tmp/nvidia-mps");
	grant(&s, 0, -1);
	s.extras.mps = true;
	assert_int_equal(gpu_nvidia_edits(&s.x, &s.h, &s.i, &s.g, USUAL, &s.extras, &s.e), -1);
	assert_int_equal(s.e.kind, ERR_DENIED);
	start_close(&s);
}

TEST(what_the_host_lacks_is_named)
{
	static const struct {
		const char *kind, *word, *text;
	} t[] = {
		{"minors", "gds", "/dev/nvidia-fs*"},
		{"minors", "gdrcopy", "/dev/gdrdrv"},
		{"minors", "nvswitch", "/dev/nvidia-nvswitch*"},
		{"minors", "infiniband", "/dev/infiniband"},
		{"minors", "imex=0", "IMEX channels"},
		{"minors", "mps", "/tmp/nvidia-mps"},
		{"minors", "fabric-mgmt", "fabric"},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct start s;

		start_open(&s, t[i].kind);
		grant(&s, 0, -1);
		assert_int_equal(gpu_extras_parse(&s.extras, t[i].word, &s.e), 0);
		assert_int_equal(
			gpu_nvidia_edits(&s.x, &s.h, &s.i, &s.g, USUAL, &s.extras, &s.e), -1);
		assert_int_equal(s.e.kind, ERR_NOT_FOUND);
		if (!strstr(s.e.text, t[i].text))
			fail_msg("%s", s.e.text);
		start_close(&s);
	}
}

TEST(a_node_that_is_something_else_is_refused)
{
	static const char *const swaps[] = {"mknod minors/dev/nvidia3 c 195 0",
		"ln -s /dev/null minors/dev/nvidia3", ": >minors/dev/nvidia3",
		"mknod minors/dev/nvidia3 b 195 3"};

	for (size_t i = 0; i < sizeof(swaps) / sizeof(swaps[0]); i++) {
		struct start s;

		start_open(&s, "minors");
		gpu_sh("rm minors/dev/nvidia3");
		gpu_sh(swaps[i]);
		grant(&s, 1, -1);
		assert_int_equal(
			gpu_nvidia_edits(&s.x, &s.h, &s.i, &s.g, GPU_CAP_UTILITY, &s.extras, &s.e),
			-1);
		assert_int_equal(s.e.kind, ERR_DENIED);
		assert_non_null(strstr(s.e.text, "nvidia3"));
		start_close(&s);
	}
	gpu_sh("rm minors/dev/nvidia3; mknod minors/dev/nvidia3 c 195 3");
}

TEST(newer_libraries_of_the_image_are_for_datacenter_gpus)
{
	static const struct {
		const char *kind;
		unsigned caps;
		int choice;
		bool wanted;
	} t[] = {
		{"eight", USUAL, 0, true},
		{"eight", USUAL, -1, false},
		{"eight", GPU_CAP_UTILITY, 0, false},
		{"minors", USUAL, 0, false}, /* GeForce */
		{"minors", USUAL, 1, true},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct start s;

		start_open(&s, t[i].kind);
		grant(&s, 0, -1);
		s.extras.compat = t[i].choice;
		make(&s, t[i].caps);
		assert_int_equal(s.x.compat_driver != NULL, t[i].wanted);
		start_close(&s);
	}
}

TEST(windows_has_one_node)
{
	struct start s;

	start_open(&s, "wsl");
	make(&s, USUAL);
	nodes_are(&s, "dxg");
	assert_non_null(mount_at(&s, "/usr/lib/wsl"));
	start_close(&s);
}

TEST(amd_gpus_are_kfd_and_their_render_nodes)
{
	struct start s;

	start_open(&s, "amd");
	grant(&s, 1, -1);
	assert_int_equal(gpu_amd_edits(&s.x, &s.h, &s.i, &s.g, &s.e), 0);
	nodes_are(&s, "kfd dri/renderD129 dri/card2");
	assert_int_equal(s.x.nmounts, 0);
	assert_true(s.x.ngids == 2 && s.x.no_mknod);
	/* and nothing of the other maker's */
	make(&s, 0);
	nodes_are(&s, "kfd dri/renderD129 dri/card2");
	start_close(&s);
}

TEST(words_of_devices)
{
	static const struct {
		const char *word;
		bool fits;
	} t[] = {{"gds", true}, {"GDS", false}, {"gd", false}, {"gdsx", false}, {"", false},
		{"imex=", false}, {"imex=-1", false}, {"imex=1048576", false},
		{"imex=1048575", true}, {"imex=1,2", false}, {"imex", false}, {"mps", true}};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct gpu_extras x = {0};
		struct err e = {0};

		assert_int_equal(gpu_extras_parse(&x, t[i].word, &e), t[i].fits ? 0 : -1);
		if (!t[i].fits)
			assert_int_equal(e.kind, ERR_USAGE);
	}
}

static int make_roots(void **state __attribute__((unused)))
{
	return gpu_roots_make("eight minors mig wsl amd");
}

int main(void)
{
	const struct CMUnitTest any[] = {cmocka_unit_test(words_of_devices)};
	const struct CMUnitTest root[] = {
		cmocka_unit_test(a_gpu_is_its_node_and_what_all_need),
		cmocka_unit_test(minors_count_and_not_indexes),
		cmocka_unit_test(only_granted_gpus_are_seen),
		cmocka_unit_test(a_part_of_a_gpu_is_its_two_capabilities),
		cmocka_unit_test(dri_nodes_have_their_links_and_groups),
		cmocka_unit_test(extras_are_given_by_name),
		cmocka_unit_test(pipes_are_writable_and_files_are_not),
		cmocka_unit_test(what_the_host_lacks_is_named),
		cmocka_unit_test(a_node_that_is_something_else_is_refused),
		cmocka_unit_test(newer_libraries_of_the_image_are_for_datacenter_gpus),
		cmocka_unit_test(windows_has_one_node),
		cmocka_unit_test(amd_gpus_are_kfd_and_their_render_nodes),
	};
	int rc = cmocka_run_group_tests(any, NULL, NULL);

	if (geteuid() != 0) {
		print_message("[  SKIPPED ] the tests on hosts need root\n");
		return rc;
	}
	return rc ? rc : cmocka_run_group_tests(root, make_roots, gpu_roots_remove);
}
