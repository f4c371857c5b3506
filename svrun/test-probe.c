#include "svrun/test-probe.h"

#include <stdio.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/image-test.h"
#include "svrun/test-http.h"

enum {
	FIRST_PAUSE_MS = 20,
	PAUSE_MAX_MS = 1000,
	ENDING_MS = 5000,
	PROBE_LOW = 200,
	PROBE_HIGH = 399
};

bool test_status_fits(const uint32_t *v, size_t n, long low, long high, long status)
{
	for (size_t i = 0; i < n; i++)
		if ((long)v[i] == status)
			return true;
	return n == 0 && status >= low && status <= high;
}

char *test_status_text(const uint32_t *v, size_t n, long low, long high)
{
	char text[256];
	size_t used = 0;

	if (n == 0)
		return mem_printf("%ld to %ld", low, high);
	for (size_t i = 0; i < n && used + 16 < sizeof(text); i++)
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, "%s%u", i ? " or " : "", v[i]);
	return mem_strdup(text);
}

/* Its svrun ends a moment after the program. */
char *test_ended_text(struct test_container *c)
{
	struct pollfd p = {.fd = c->pidfd, .events = POLLIN};

	if (!c->ended && c->pidfd >= 0 && faccessat(c->s->fd, "instances", F_OK, 0) == 0) {
		char path[INSTANCE_ID_MAX + 32];

		snprintf(path, sizeof(path), "instances/%s", c->name);
		if (faccessat(c->s->fd, path, F_OK, 0) < 0)
			(void)poll(&p, 1, ENDING_MS);
	}
	if (!test_container_ended(c))
		return NULL;
	return mem_printf("the container has ended with status %d", c->status);
}

/* ---- one try: 1, or 0 with why, or -1 ---- */

static int try_http(struct test_container *c, const struct manifest_probe *p, double deadline,
	char **why, struct err *e)
{
	struct test_request q = {.method = "GET",
		.path = p->path ? p->path : "/",
		.port = p->port,
		.headers = p->headers};
	struct test_answer a;
	int rc = test_http(c, &q, deadline, &a, why, e);

	if (rc < 0)
		return -1;
	if (rc > 0 && !test_status_fits(p->status, p->nstatus, PROBE_LOW, PROBE_HIGH, a.status)) {
		auto_free char *want =
			test_status_text(p->status, p->nstatus, PROBE_LOW, PROBE_HIGH);

		*why = mem_printf("GET %s: status %ld, expected %s", q.path, a.status, want);
		rc = 0;
	} else if (rc > 0 && p->body_matches &&
		   !test_matches(p->body_matches, a.body.data ? a.body.data : "", a.body.len)) {
		*why = mem_printf("GET %s: the body does not match /%s/", q.path, p->body_matches);
		rc = 0;
	}
	test_answer_fini(&a);
	return rc;
}

static int try_tcp(struct test_container *c, const struct manifest_probe *p, double deadline,
	char **why, struct err *e)
{
	int rc = test_connect(c, p->port, deadline, e);

	if (rc == 0)
		*why = mem_printf("nobody listens on port %u", p->port);
	return rc;
}

static int try_exec(struct test_container *c, const struct manifest_probe *p, double deadline,
	char **why, struct err *e)
{
	struct test_process process = {.argv = p->argv};
	auto_buf struct buf out = BUF_INIT(TEST_OUTPUT_MAX);
	struct err fault = {0};
	bool cut = false;
	int status, rc = test_container_exec(c, &process, deadline, &out, &cut, &status, &fault);

	if (rc < 0 && status != 126 && status != 127) {
		if (e)
			*e = fault;
		return -1;
	}
	if (rc < 0)
		*why = mem_printf("%s", fault.text);
	else if (rc == 0)
		*why = mem_printf("%s did not end in time", p->argv.v[0]);
	else if (status)
		*why = mem_printf("%s: exit status %d", p->argv.v[0], status);
	return *why == NULL;
}

static int try_once(struct test_container *c, const struct manifest_probe *p, double deadline,
	char **why, struct err *e)
{
	double end = sys_now_ms() + p->timeout_ms;

	if (end > deadline)
		end = deadline;
	return p->kind == PROBE_HTTP  ? try_http(c, p, end, why, e)
	       : p->kind == PROBE_TCP ? try_tcp(c, p, end, why, e)
				      : try_exec(c, p, end, why, e);
}

/* ---- until it is ready ---- */

static int pause_for(struct test_container *c, double ms, double deadline, struct err *e)
{
	struct pollfd p = {.fd = c->pidfd, .events = POLLIN};
	double end = sys_now_ms() + ms;

	return test_wait(c->signals, &p, 1, test_left(end < deadline ? end : deadline), e);
}

static int wait_for(struct test_container *c, const struct manifest_probe *p, double deadline,
	char **why, struct err *e)
{
	double pause = FIRST_PAUSE_MS,
	       most = p->period_ms < PAUSE_MAX_MS ? p->period_ms : PAUSE_MAX_MS;

	if (p->initial_delay_ms && pause_for(c, p->initial_delay_ms, deadline, e) < 0)
		return -1;
	for (;;) {
		auto_free char *before = steal_ptr(why);
		int rc = try_once(c, p, deadline, why, e);
		char *ended;

		if (rc != 0)
			return rc;
		/* a try that was cut short says less than the one before */
		if (before && test_left(deadline) == 0) {
			free(*why);
			*why = steal_ptr(&before);
		}
		ended = test_ended_text(c);
		if (ended) {
			free(*why);
			*why = ended;
			return 0;
		}
		if (test_left(deadline) == 0)
			return 0;
		if (pause_for(c, pause, deadline, e) < 0)
			return -1;
		pause = 2 * pause < most ? 2 * pause : most;
	}
}

int test_ready(struct test_container *c, const struct manifest_health *h, uint32_t ms, char **why,
	struct err *e)
{
	const struct manifest_probe *s = &h->startup, *r = &h->readiness;
	double now = sys_now_ms(),
	       granted = s->initial_delay_ms + (double)s->period_ms * s->failure_threshold;
	int rc = 1;

	*why = NULL;
	if (s->kind != PROBE_NONE)
		rc = wait_for(c, s, now + granted, why, e);
	if (rc > 0 && r->kind != PROBE_NONE) {
		double delay = s->kind == PROBE_NONE ? r->initial_delay_ms : 0;

		rc = wait_for(c, r, sys_now_ms() + delay + ms, why, e);
	}
	if (rc == 0 && !*why)
		*why = mem_strdup("no answer");
	return rc;
}
