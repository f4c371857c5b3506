/* Moving network interfaces of the host into a container: linux.netDevices of runtime-spec 1.3, by
 * rtnetlink. Addresses are kept, the interface is up afterwards. Source: config-linux.md "Network
 * Devices", rtnetlink(7). */
#ifndef RUNTIME_NETDEV_H
#define RUNTIME_NETDEV_H

#include "runtime/spec.h"

/* Move them into the network namespace of process `pid`. On failure those that were moved are back.
 * Errors: NOT_FOUND names the interface. */
int netdev_move(const struct spec *s, pid_t pid, struct err *e) must_check;

#endif
