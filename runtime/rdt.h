/* Intel's cache and memory bandwidth allocation through resctrl. Source: runtime-spec
 * config-linux.md "IntelRdt", Documentation/arch/x86/resctrl.rst. */
#ifndef RUNTIME_RDT_H
#define RUNTIME_RDT_H

#include "runtime/spec.h"

/* Put process `pid` into its class. Without a closID that is the container's own, named as it; with
 * one and schemata it is made when it is missing, else it must have these; with a closID alone it
 * must be there. With monitoring, the process gets a monitoring group of the container's name in
 * it. On failure a class that was made is removed. Errors: UNSUPPORTED without resctrl, NOT_FOUND,
 * CORRUPT for schemata that the host refuses or that are not those of the class. */
int rdt_apply(const struct spec *s, const char *id, pid_t pid, struct err *e) must_check;
/* Remove the class when it is this container's own, else its monitoring group. */
int rdt_remove(const struct spec *s, const char *id, struct err *e) must_check;

/* The same in the resctrl whose root folder is `root`. */
int rdt_apply_in(int root, const struct spec_intel_rdt *r, const char *id, pid_t pid,
	struct err *e) must_check;
int rdt_remove_in(
	int root, const struct spec_intel_rdt *r, const char *id, struct err *e) must_check;

#endif
