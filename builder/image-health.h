/* A manifest's probes as Docker's Healthcheck. */
#ifndef BUILDER_IMAGE_HEALTH_H
#define BUILDER_IMAGE_HEALTH_H

#include "builder/manifest.h"

/* {Test, Interval, Timeout, Retries, StartPeriod}: the readiness probe, else that of the start,
 * else liveness; NULL: there is none. What HTTP and TCP probes ask is asked by a program of the
 * image: curl, wget, python3, bash or nc, whichever there is. A new reference. */
json_t *image_healthcheck(const struct manifest *m);

#endif
