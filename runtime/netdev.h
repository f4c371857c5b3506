/* Moving network interfaces of the host into a container, with their addresses, and up afterwards.
 * Source: config-linux.md "Network Devices" (1.3), rtnetlink(7). */
#ifndef RUNTIME_NETDEV_H
#define RUNTIME_NETDEV_H

#include "runtime/spec.h"

/* On failure those that were moved are back. Errors: NOT_FOUND names the interface. */
int netdev_move(const struct spec *s, pid_t pid, struct err *e) must_check;

#endif
