/* Is the service of a container ready? By the probes of its manifest (docs/manifest.md "health").
 */
#ifndef SVRUN_TEST_PROBE_H
#define SVRUN_TEST_PROBE_H

#include "svrun/test-container.h"

/* Wait for the startup probe, as long as it grants (initialDelayMs, periodMs times
 * failureThreshold), then, for up to ms more, for the readiness probe; for tests, both are asked
 * more often than their period says. Without either it is ready at once. 1 ready; 0 not, and *why
 * (malloc'ed) says what the last try found; -1. */
int test_ready(struct test_container *c, const struct manifest_health *h, uint32_t ms, char **why,
	struct err *e) must_check;

/* "the container has ended with status 3", once it has; malloc'ed. NULL: it runs. */
char *test_ended_text(struct test_container *c);

/* Is status in v, or, when v is empty, from low to high? */
bool test_status_fits(const uint32_t *v, size_t n, long low, long high, long status);
/* "200 or 204", "200 to 299"; malloc'ed. */
char *test_status_text(const uint32_t *v, size_t n, long low, long high);

#endif
