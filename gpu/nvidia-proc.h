/* The texts of NVIDIA's kernel module in /proc, and /proc/devices. Buffers in, values out: nothing
 * is opened. `name` is what errors call the file. Errors: CORRUPT with name and what is wrong.
 * Source: open-gpu-kernel-modules nv-procfs.c, nv-caps.c; fs/proc/devices.c. */
#ifndef GPU_NVIDIA_PROC_H
#define GPU_NVIDIA_PROC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

enum {
	NVIDIA_MAJOR = 195,     /* fixed; the others are given out when modules load */
	NVIDIA_MINOR_MAX = 247, /* above are nvidia-modeset and nvidiactl */
	NVIDIA_CTL_MINOR = 255,
	NVIDIA_MODESET_MINOR = 254,
	NVIDIA_CAPS_MINORS = 8192
};

/* "0000:65:00.0" in any case, a domain of 4 to 8 digits. */
struct pci_bus {
	uint32_t domain;
	uint8_t bus, slot, function;
};
enum { PCI_BUS_TEXT = sizeof("ffffffff:ff:ff.7") };
/* 0, or -1 without an error: it is none. With short_domain also "65:00.0", as people write it. */
int pci_bus_parse(struct pci_bus *b, const char *text, bool short_domain) must_check;
/* The form of sysfs. Returns out. */
const char *pci_bus_text(const struct pci_bus *b, char out[PCI_BUS_TEXT]);
int pci_bus_compare(const struct pci_bus *a, const struct pci_bus *b);

/* /proc/driver/nvidia/gpus/BUS/information. */
struct nvidia_information {
	const char *model, *uuid,
		*firmware; /* uuid, firmware: NULL where the driver has none yet */
	struct pci_bus bus;
	uint32_t minor;
	bool excluded;
};
int nvidia_information_parse(struct nvidia_information *i, const char *name, const char *text,
	struct arena *mem, struct err *e) must_check;

/* /proc/driver/nvidia/version. */
int nvidia_version_parse(
	const char *name, const char *text, char version[32], bool *open, struct err *e) must_check;

/* The major of a character device in /proc/devices by one of its names. 1; 0: none has it. */
int proc_devices_major(const char *name, const char *text, const char *device, uint32_t *major,
	struct err *e) must_check;

/* "KEY: NUMBER" of params or of a capability's file ("DeviceFileMinor"). 1; 0: it has no such line.
 */
int nvidia_key_number(const char *name, const char *text, const char *key, uint32_t max,
	uint32_t *v, struct err *e) must_check;

/* The minor of "gpu0/gi1/access" in nvidia-caps/mig-minors and the like. 1, 0. */
int nvidia_cap_minor(const char *name, const char *text, const char *cap, uint32_t *minor,
	struct err *e) must_check;

/* The number behind a word: "gi12" is 12 with "gi". */
bool numbered_name(const char *text, const char *word, uint32_t max, uint32_t *n);

#endif
