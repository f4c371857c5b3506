/* What every container of ours is confined by unless told otherwise, as parts of a config.json:
 * `svrun run` and the builder's sandbox have the same. The caller owns what is returned. */
#ifndef RUNTIME_CONFINE_H
#define RUNTIME_CONFINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* For linux.maskedPaths and linux.readonlyPaths. */
json_t *confine_masked(void);
json_t *confine_readonly(void);

/* For process.capabilities: for root what is in the bounding set; for others nothing that exec
 * would not leave them: the bounding set alone. Inheritable and ambient are empty (CVE-2022-24769).
 */
json_t *confine_caps(uint64_t bounding, bool root);

/* Append one mount to the array. options: words separated by commas. Returns its array of options,
 * borrowed. */
json_t *confine_mount(json_t *mounts, const char *destination, const char *type, const char *source,
	const char *options);
/* /proc, /dev, /sys and what is in them. shm_bytes: size of /dev/shm; 0: the kernel's choice. */
void confine_mounts(json_t *mounts, uint64_t shm_bytes);

/* The bounding set: Docker's list. */
uint64_t confine_caps_default(void);

/* Does the host account swap, so that "memory and swap" can be limited? Version 2 has the file in
 * every cgroup but the root. */
bool confine_has_swap(void);

#endif
