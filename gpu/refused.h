/* Devices of the host that are the host: whoever has one has it all, so nobody gets them, whatever
 * name they come by. One table for nodes that a caller names (svrun/device-node.h) and those of CDI
 * specs (edits.h). Source: the kernel's admin-guide/devices.txt. */
#ifndef GPU_REFUSED_H
#define GPU_REFUSED_H

#include <stdbool.h>
#include <stdint.h>

/* What a node of this type ('c', 'b', 'p') and number leads to: "the host's memory"; NULL: it may
 * be given. disks: those of the host may be given, too, as block devices or SCSI generic ones; what
 * makes disks of others (loop-control, the device mapper's control) may not. */
const char *refused_device(char type, uint32_t major, uint32_t minor, bool disks);

#endif
