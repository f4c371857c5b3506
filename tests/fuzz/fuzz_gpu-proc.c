/* Any bytes as files of /proc and /sys about GPUs: what is taken is within its limits. The first
 * byte chooses the file. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "gpu/amd-sys.h"
#include "gpu/nvidia-proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void information(const char *text)
{
	struct nvidia_information i;
	struct arena mem = {0};
	struct err e = {0};

	if (nvidia_information_parse(&i, "f", text, &mem, &e) < 0) {
		assert(e.kind == ERR_CORRUPT);
	} else {
		char bus[PCI_BUS_TEXT];
		struct pci_bus again;

		assert(i.model && str_utf8(i.model, strlen(i.model)) &&
			i.minor <= NVIDIA_MINOR_MAX);
		assert(!i.uuid || strlen(i.uuid) == 40);
		assert(pci_bus_parse(&again, pci_bus_text(&i.bus, bus), false) == 0);
		assert(pci_bus_compare(&again, &i.bus) == 0);
	}
	arena_fini(&mem);
}

static void version(const char *text)
{
	char v[32];
	bool open;
	struct err e = {0};

	if (nvidia_version_parse("f", text, v, &open, &e) < 0)
		assert(e.kind == ERR_CORRUPT);
	else
		assert(strspn(v, "0123456789.") == strlen(v) && strchr(v, '.'));
}

static void devices(const char *text)
{
	uint32_t major = 0;

	if (proc_devices_major("f", text, "nvidia-uvm", &major, NULL) > 0)
		assert(major > 0 && major <= 4095);
}

static void minors(const char *text)
{
	uint32_t minor = 0;

	if (nvidia_cap_minor("f", text, "gpu0/gi1/access", &minor, NULL) > 0)
		assert(minor < NVIDIA_CAPS_MINORS);
	if (nvidia_key_number("f", text, "DeviceFileMinor", 8191, &minor, NULL) > 0)
		assert(minor < NVIDIA_CAPS_MINORS);
}

static void kfd(const char *text)
{
	struct kfd_properties p;
	char gfx[16];

	if (kfd_properties_parse(&p, "f", text, NULL) == 0)
		assert(str_starts(kfd_gfx_name(p.gfx, gfx), "gfx") && p.render_minor <= 4095);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const files[])(const char *) = {information, version, devices, minors, kfd};
	auto_free char *text = mem_alloc(size + 1);

	if (size == 0)
		return 0;
	memcpy(text, data + 1, size - 1);
	files[data[0] % (sizeof(files) / sizeof(files[0]))](text);
	return 0;
}
