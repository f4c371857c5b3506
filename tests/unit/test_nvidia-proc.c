#include "tests/unit/test.h"

#include "base/str.h"
#include "gpu/amd-sys.h"
#include "gpu/nvidia-proc.h"

/* ---- PCI addresses ---- */

TEST(a_pci_address_is_read_in_every_form_that_drivers_print)
{
	static const struct {
		const char *text, *want; /* NULL: none */
		bool short_domain;
	} cases[] = {
		{"0000:65:00.0", "0000:65:00.0", false},
		{"00000000:65:00.0", "0000:65:00.0", false},
		{"0000:C1:00.0", "0000:c1:00.0", false},
		{"10001:00:00.0", "10001:00:00.0", false},
		{"FFFFFFFF:ff:1f.7", "ffffffff:ff:1f.7", false},
		{"65:00.0", "0000:65:00.0", true},
		{"65:00.0", NULL, false},
		{"0000:65:20.0", NULL, false},
		{"0000:65:00.8", NULL, false},
		{"0000:65:00", NULL, false},
		{"0000:65:00.0 ", NULL, false},
		{"0000:65:00.00", NULL, false},
		{"123456789:65:00.0", NULL, false},
		{"000:65:00.0", NULL, false},
		{"0000:6:00.0", NULL, true},
		{"0000:65:00.0:1", NULL, false},
		{"g000:65:00.0", NULL, false},
		{"", NULL, true},
		{":", NULL, true},
		{"::.", NULL, true},
		{"-1:00:00.0", NULL, false},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct pci_bus b;
		char text[PCI_BUS_TEXT];
		int rc = pci_bus_parse(&b, cases[k].text, cases[k].short_domain);

		if ((rc == 0) != (cases[k].want != NULL))
			fail_msg("%s: %d", cases[k].text, rc);
		if (rc == 0)
			assert_string_equal(pci_bus_text(&b, text), cases[k].want);
	}
}

/* ---- information ---- */

static const char whole[] =
	"Model: \t\t NVIDIA A10G\nIRQ:   \t\t 42\n"
	"GPU UUID: \t GPU-82523fd8-3897-f599-d088-ccd04ae45ec1\n"
	"Video BIOS: \t 94.02.75.00.01\nBus Type: \t PCIe\nDMA Size: \t 47 bits\n"
	"DMA Mask: \t 0x7fffffffffff\nBus Location: \t 0000:00:1e.0\n"
	"Device Minor: \t 3\nGPU Firmware: \t 535.129.03\nGPU Excluded:\t No\n";

TEST(what_the_driver_prints_about_a_gpu_is_understood)
{
	struct nvidia_information i;
	struct arena mem = {0};
	struct err e = {0};

	assert_int_equal(nvidia_information_parse(&i, "f", whole, &mem, &e), 0);
	assert_string_equal(i.model, "NVIDIA A10G");
	assert_string_equal(i.uuid, "GPU-82523fd8-3897-f599-d088-ccd04ae45ec1");
	assert_string_equal(i.firmware, "535.129.03");
	assert_int_equal(i.minor, 3);
	assert_int_equal(i.bus.slot, 0x1e);
	assert_false(i.excluded);
	/* an older driver, a GPU that nobody opened yet */
	assert_int_equal(
		nvidia_information_parse(&i, "f",
			"Model:           GeForce GTX TITAN X\r\n"
			"GPU UUID:        "
			"GPU-\?\?\?\?\?\?\?\?-\?\?\?\?-\?\?\?\?-\?\?\?\?-\?\?\?\?\?\?\?\?\?\?\?\?\n"
			"Bus Location:    0000:65:00.0\nDevice Minor:    0\n"
			"Blacklisted:     Yes",
			&mem, &e),
		0);
	assert_string_equal(i.model, "GeForce GTX TITAN X");
	assert_null(i.uuid);
	assert_null(i.firmware);
	assert_true(i.excluded);
	arena_fini(&mem);
}

TEST(an_information_file_that_is_not_whole_is_refused_by_its_line)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"", "\"Model\" is missing"},
		{"Model: X\n", "\"Bus Location\" is missing"},
		{"Model: X\nBus Location: 0000:01:00.0\n", "\"Device Minor\" is missing"},
		{"Model: X\nBus Location: 0000:01:00.0\nDevice Mi", "\"Device Minor\" is missing"},
		{"Model: X\nBus Location: 0000:01:00.0\nDevice Minor: \t ", "no value"},
		{"Model: X\nBus Location: 0000:01:00.0\nDevice Minor: 255\n",
			"\"255\" is no value"},
		{"Model: X\nBus Location: 0000:01:00.0\nDevice Minor: 248\n", "no value"},
		{"Model: X\nBus Location: 0000:01:00.0\nDevice Minor: -1\n", "no value"},
		{"Model: X\nBus Location: 0000:01:00.0\nDevice Minor: 0x1\n", "no value"},
		{"Model: X\nBus Location: 0000:01:00.0\nDevice Minor: 99999999999999999999999\n",
			"no value"},
		{"Model: X\nBus Location: ../../etc\nDevice Minor: 1\n", "no value"},
		{"Model: X\nModel: Y\n", "stands there twice"},
		{"Model: X\nGPU UUID: GPU-1\n", "no value of \"GPU UUID\""},
		{"Model: X\nGPU UUID: GPU-82523fd8-3897-f599-d088-ccd04ae45ec1x\n", "no value"},
		{"Model: X\nGPU UUID: MIG-82523fd8-3897-f599-d088-ccd04ae45ec1\n", "no value"},
		{"Model: X\nGPU Excluded: Maybe\n", "\"Maybe\" is no value"},
		{"Model: \xff\xfe\n", "no value of \"Model\""},
		{"Model: X\nGPU Firmware: $(reboot)\n", "no value of \"GPU Firmware\""},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct nvidia_information i;
		struct arena mem = {0};
		struct err e = {0};
		if (nvidia_information_parse(&i, "f", cases[k].text, &mem, &e) == 0 ||
			e.kind != ERR_CORRUPT || !strstr(e.text, cases[k].error))
			fail_msg("%zu: %s", k, e.text);
		arena_fini(&mem);
	}
}

TEST(a_model_cannot_drive_a_terminal)
{
	struct nvidia_information i;
	struct arena mem = {0};

	assert_int_equal(nvidia_information_parse(&i, "f",
				 "Model: a\033[2Jb\nBus Location: 0000:01:00.0\nDevice Minor: 0\n",
				 &mem, NULL),
		0);
	assert_string_equal(i.model, "a?[2Jb");
	arena_fini(&mem);
}

/* ---- version ---- */

TEST(the_version_of_the_kernel_module_is_found_in_the_lines_of_all_branches)
{
	static const struct {
		const char *text, *version;
		bool open;
	} cases[] = {
		{"NVRM version: NVIDIA UNIX x86_64 Kernel Module  384.81  Wed Aug 17 22:24:07 PDT "
		 "2016\n",
			"384.81", false},
		{"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 "
		 "UTC 2023\nGCC version:  gcc version 12.3.0\n",
			"535.129.03", false},
		{"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release "
		 "Build\n",
			"580.95.05", true},
		{"NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.4.0  Release",
			"540.4.0", true},
		{"GCC version: 1.2.3\n", NULL, false},
		{"NVRM version: \n", NULL, false},
		{"NVRM version: ../../1.2 580\n", NULL, false},
		{"NVRM version: 580..1 .5 5. 1.2.3.4\n", NULL, false},
		{"", NULL, false},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		char version[32];
		bool open = false;
		struct err e = {0};
		int rc = nvidia_version_parse("f", cases[k].text, version, &open, &e);

		if ((rc == 0) != (cases[k].version != NULL))
			fail_msg("%zu: %d", k, rc);
		if (rc == 0) {
			assert_string_equal(version, cases[k].version);
			assert_int_equal(open, cases[k].open);
		}
	}
}

/* ---- numbers ---- */

TEST(majors_are_those_of_character_devices)
{
	static const char text[] = "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n"
				   "510 nvidia-uvm\n\nBlock devices:\n 42 nvidia-caps\n";
	uint32_t major = 0;
	struct err e = {0};

	assert_int_equal(proc_devices_major("f", text, "nvidia-uvm", &major, &e), 1);
	assert_int_equal(major, 510);
	assert_int_equal(proc_devices_major("f", text, "nvidia", &major, &e), 1);
	assert_int_equal(major, 195);
	assert_int_equal(proc_devices_major("f", text, "nvidia-caps", &major, &e), 0);
	assert_int_equal(proc_devices_major("f", text, "nvidia-u", &major, &e), 0);
	assert_int_equal(
		proc_devices_major("f", "Character devices:\n99999 x\n", "x", &major, &e), -1);
	assert_int_equal(proc_devices_major("f", "", "x", &major, &e), 0);
}

TEST(minors_of_capabilities_are_found_by_their_whole_name)
{
	static const char text[] = "config 1\nmonitor 2\ngpu0/gi1/access 12\n"
				   "gpu0/gi1/ci0/access 13\ngpu10/gi1/access 9000\n";
	uint32_t minor = 0;
	struct err e = {0};

	assert_int_equal(nvidia_cap_minor("f", text, "gpu0/gi1/ci0/access", &minor, &e), 1);
	assert_int_equal(minor, 13);
	assert_int_equal(nvidia_cap_minor("f", text, "gpu0/gi1", &minor, &e), 0);
	assert_int_equal(nvidia_cap_minor("f", text, "gpu1/gi1/access", &minor, &e), 0);
	assert_int_equal(nvidia_cap_minor("f", text, "gpu10/gi1/access", &minor, &e), -1);
	assert_int_equal(
		nvidia_key_number("f", "DeviceFileMinor: 7\n", "DeviceFileMinor", 100, &minor, &e),
		1);
	assert_int_equal(minor, 7);
	assert_int_equal(
		nvidia_key_number("f", "DeviceFileMinor: 7x\n", "DeviceFileMinor", 100, &minor, &e),
		-1);
}

TEST(a_number_behind_a_word_is_one_number_in_one_form)
{
	uint32_t n;

	assert_true(numbered_name("gi12", "gi", 4095, &n));
	assert_int_equal(n, 12);
	assert_true(numbered_name("gi0", "gi", 4095, &n));
	assert_false(numbered_name("gi", "gi", 4095, &n));
	assert_false(numbered_name("gi01", "gi", 4095, &n));
	assert_false(numbered_name("gi-1", "gi", 4095, &n));
	assert_false(numbered_name("gi5000", "gi", 4095, &n));
	assert_false(numbered_name("gi1/x", "gi", 4095, &n));
}

/* ---- AMD ---- */

TEST(properties_of_kfd_are_numbers_or_the_file_is_refused)
{
	struct kfd_properties p;
	struct err e = {0};
	char gfx[16];

	assert_int_equal(kfd_properties_parse(&p, "f",
				 "cpu_cores_count 0\nsimd_count 1216\ngfx_target_version 90402\n"
				 "vendor_id 4098\nlocation_id 3072\ndomain 1\n"
				 "drm_render_minor 128\nunique_id 13907095858110791681\n",
				 &e),
		0);
	assert_int_equal(p.vendor, 0x1002);
	assert_int_equal(p.location, 0xc00);
	assert_int_equal(p.domain, 1);
	assert_int_equal(p.render_minor, 128);
	assert_true(p.unique_id == 0xc0ffee0000000001);
	assert_string_equal(kfd_gfx_name(p.gfx, gfx), "gfx942");
	assert_string_equal(kfd_gfx_name(90010, gfx), "gfx90a");
	assert_string_equal(kfd_gfx_name(120001, gfx), "gfx1201");
	assert_int_equal(kfd_properties_parse(&p, "f", "location_id 1e3\n", &e), -1);
	assert_non_null(strstr(e.text, "location_id is not a number"));
	e = (struct err){0};
	assert_int_equal(
		kfd_properties_parse(&p, "f", "vendor_id 99999999999999999999999\n", &e), -1);
	e = (struct err){0};
	assert_int_equal(kfd_properties_parse(&p, "f", "vendor_id\nvendor_id", &e), 0);
	assert_int_equal(p.vendor, 0);
}

RUN_TESTS(cmocka_unit_test(a_pci_address_is_read_in_every_form_that_drivers_print),
	cmocka_unit_test(what_the_driver_prints_about_a_gpu_is_understood),
	cmocka_unit_test(an_information_file_that_is_not_whole_is_refused_by_its_line),
	cmocka_unit_test(a_model_cannot_drive_a_terminal),
	cmocka_unit_test(the_version_of_the_kernel_module_is_found_in_the_lines_of_all_branches),
	cmocka_unit_test(majors_are_those_of_character_devices),
	cmocka_unit_test(minors_of_capabilities_are_found_by_their_whole_name),
	cmocka_unit_test(a_number_behind_a_word_is_one_number_in_one_form),
	cmocka_unit_test(properties_of_kfd_are_numbers_or_the_file_is_refused))
