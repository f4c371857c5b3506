/* Intel's cache and memory bandwidth allocation through resctrl. Source: runtime-spec
 * config-linux.md "IntelRdt", Documentation/arch/x86/resctrl.rst. */
#ifndef RUNTIME_RDT_H
#define RUNTIME_RDT_H

#include "runtime/spec.h"

/* Put process `pid` into its class of service, made when it is missing. Errors: UNSUPPORTED names
 * the field when there is no resctrl mounted, CORRUPT for a schema that the host refuses. */
int rdt_apply(const struct spec *s, const char *id, pid_t pid, struct err *e) must_check;
/* Remove the class when it was made for this container alone. */
int rdt_remove(const struct spec *s, const char *id, struct err *e) must_check;
bool rdt_available(void);

#endif
