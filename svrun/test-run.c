#include "svrun/test-run.h"

#include <stdio.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "gpu/inventory.h"
#include "svrun/test-http.h"
#include "svrun/test-probe.h"

enum {
	START_MS = 60000,
	ENDING_MS = 300,
	LOGGER_MS = 50,
	RETRY_MS = 100,
	SHOWN = 300,
	STATUS_LOW = 200,
	STATUS_HIGH = 299
};

int test_has_gpu(struct err *e)
{
	struct gpu_host h;
	struct gpu_inventory i;
	int rc, n = 0;

	if (gpu_host_open(&h, e) < 0)
		return -1;
	rc = gpu_inventory_read(&i, &h, e);
	for (size_t k = 0; rc == 0 && k < i.n; k++)
		n += !i.v[k].excluded;
	if (rc == 0)
		gpu_inventory_fini(&i);
	gpu_host_close(&h);
	return rc < 0 ? -1 : n > 0;
}

/* How many a container of the test gets: what the manifest wants, where the host has any. */
static uint32_t gpus_of(const struct test_run *x, const struct manifest_test *t)
{
	const struct manifest_gpu *g = &x->m->gpu;
	bool wanted = t->needs_gpu || (g->present && g->mode != GPU_NONE);
	uint32_t n = g->count_default ? g->count_default : g->count_min;

	return !wanted || !x->has_gpu ? 0 : n ? n : 1;
}

static void keep_tail(struct test_result *r, const struct test_container *c)
{
	if (!c->ended)
		(void)poll(NULL, 0, LOGGER_MS); /* what it has just said is on its way */
	free(r->log);
	r->log = test_container_tail(c);
}

static int pause_for(struct test_run *x, double deadline, struct err *e)
{
	struct pollfd none = {.fd = -1};
	int left = test_left(deadline);

	return test_wait(x->signals, &none, 1, left < RETRY_MS ? left : RETRY_MS, e);
}

/* ---- the service ---- */

static void stop_service(struct test_run *x)
{
	if (x->has_service) {
		test_container_stop(&x->service);
		free(x->service.log);
	}
	free(x->failure);
	x->failure = NULL;
	x->has_service = x->ready = false;
}

void test_run_fini(struct test_run *x)
{
	stop_service(x);
}

static int start_service(struct test_run *x, const struct manifest_test *t, struct err *e)
{
	auto_free char *log = mem_printf("%sservice.log", x->logs);
	struct test_container_options o = {.m = x->m,
		.image = x->image,
		.log = log,
		.env = t->env,
		.accepted = x->accepted,
		.gpus = gpus_of(x, t)};
	int rc;

	if (test_container_start(&x->service, x->s, x->signals, &o, e) < 0)
		return -1;
	x->has_service = true;
	x->gpus = o.gpus;
	rc = test_container_await(&x->service, sys_now_ms() + START_MS, e);
	if (rc == 0) {
		char *ended = test_ended_text(&x->service);

		x->failure = ended ? ended : mem_printf("it did not start within %d ms", START_MS);
	}
	return rc < 0 ? -1 : 0;
}

/* Have it run, and ready if the test wants that: 1, or 0 with the result failed. One that did not
 * become ready once is not tried again. */
static int need_service(struct test_run *x, struct test_result *r, struct err *e)
{
	const struct manifest_test *t = r->test;
	char *why = NULL;
	int rc = 1;

	if (x->has_service && !x->failure && test_container_ended(&x->service))
		stop_service(x);
	if (x->has_service && x->gpus < gpus_of(x, t))
		stop_service(x);
	if (!x->has_service && start_service(x, t, e) < 0)
		return -1;
	if (!x->failure && t->after_readiness && !x->ready) {
		rc = test_ready(&x->service, &x->m->health, t->timeout_ms, &why, e);
		if (rc < 0) {
			free(why);
			return -1;
		}
		x->ready = rc > 0;
		if (rc == 0)
			x->failure = steal_ptr(&why);
		free(why);
	}
	if (!x->failure)
		return 1;
	test_fail(r, "the service did not become ready: %s", x->failure);
	return 0;
}

/* Why there was no answer: when the service is about to end, that is the reason. */
static void fail_of_service(struct test_run *x, struct test_result *r, const char *why)
{
	struct pollfd p = {.fd = x->service.pidfd, .events = POLLIN};

	(void)poll(&p, 1, ENDING_MS);
	auto_free char *ended = test_ended_text(&x->service);

	test_fail(r, "%s", ended ? ended : why);
}

/* ---- exec ---- */

static void check_output(struct test_result *r, const struct buf *out, bool cut)
{
	const struct test_expect *want = &r->test->expect;
	const char *text = out->data ? out->data : "";
	auto_free char *wrong = NULL, *json = NULL;

	if (cut) {
		test_fail(r, "standard output has more than %d bytes", TEST_OUTPUT_MAX);
		return;
	}
	wrong = test_check_text(want, text, out->len);
	json = test_check_json(want, text, out->len);
	if (wrong || json)
		test_fail(r, "standard output: %s", wrong ? wrong : json);
}

static void check_exit(struct test_result *r, int status, const struct buf *out, bool cut)
{
	if (status != r->test->expect.exit)
		test_fail(r, "exit status %d, expected %d", status, r->test->expect.exit);
	else
		check_output(r, out, cut);
}

/* Instead of the image's own program: for what needs no service. */
static int exec_alone(struct test_run *x, struct test_result *r, struct err *e)
{
	const struct manifest_test *t = r->test;
	auto_free char *log = mem_printf("%s%s.log", x->logs, t->id);
	struct test_container_options o = {.m = x->m,
		.image = x->image,
		.argv = t->argv,
		.env = t->env,
		.user = t->user,
		.workdir = t->workdir,
		.capture = true,
		.log = log,
		.accepted = x->accepted,
		.gpus = gpus_of(x, t)};
	auto_buf struct buf out = BUF_INIT(TEST_OUTPUT_MAX);
	struct test_container c;
	bool cut = false;
	int rc;

	if (test_container_start(&c, x->s, x->signals, &o, e) < 0)
		return -1;
	rc = test_container_finish(&c, sys_now_ms() + t->timeout_ms, &out, &cut, e);
	test_container_stop(&c);
	test_container_note(&c, out.data, out.len);
	if (rc == 0)
		test_fail(r, "it did not end within %u ms", t->timeout_ms);
	else if (rc > 0)
		check_exit(r, c.status, &out, cut);
	if (r->verdict == TEST_FAILED)
		keep_tail(r, &c);
	free(c.log);
	return rc < 0 ? -1 : 0;
}

static int exec_inside(struct test_run *x, struct test_result *r, struct err *e)
{
	const struct manifest_test *t = r->test;
	struct test_process p = {
		.argv = t->argv, .env = t->env, .user = t->user, .workdir = t->workdir};
	auto_buf struct buf out = BUF_INIT(TEST_OUTPUT_MAX);
	struct err fault = {0};
	bool cut = false;
	int status, rc = need_service(x, r, e);

	if (rc <= 0)
		return rc;
	rc = test_container_exec(
		&x->service, &p, sys_now_ms() + t->timeout_ms, &out, &cut, &status, &fault);
	if (rc > 0)
		check_exit(r, status, &out, cut);
	else if (rc == 0 && status == TEST_NOT_RUNNING)
		fail_of_service(x, r, "the container has ended");
	else if (rc == 0)
		test_fail(r, "it did not end within %u ms", t->timeout_ms);
	else if (status == 126 || status == 127)
		test_fail(r, "%s", fault.text);
	else {
		if (e)
			*e = fault;
		return -1;
	}
	return 0;
}

static int test_exec(struct test_run *x, struct test_result *r, struct err *e)
{
	if (r->test->argv.n == 0) {
		test_fail(r, "the test has no argv");
		return 0;
	}
	return r->test->after_readiness ? exec_inside(x, r, e) : exec_alone(x, r, e);
}

/* ---- http ---- */

static void check_answer(struct test_result *r, const struct test_answer *a)
{
	const struct test_expect *want = &r->test->expect;
	const char *body = a->body.data ? a->body.data : "";
	auto_free char *wrong = NULL, *json = NULL;

	if (!test_status_fits(want->status, want->nstatus, STATUS_LOW, STATUS_HIGH, a->status)) {
		auto_free char *fit =
			test_status_text(want->status, want->nstatus, STATUS_LOW, STATUS_HIGH);

		test_fail(r, "status %ld, expected %s; the body begins: %.*s", a->status, fit,
			SHOWN, body);
		return;
	}
	wrong = test_check_text(want, body, a->body.len);
	json = test_check_json(want, body, a->body.len);
	if (wrong || json)
		test_fail(r, "the body: %s", wrong ? wrong : json);
}

/* A service that was not waited for may take its time to listen. */
static bool may_come(struct test_run *x, const struct test_result *r, const struct test_answer *a,
	double deadline)
{
	bool ready = r->test->after_readiness && x->m->health.readiness.kind != PROBE_NONE;

	return a->refused && !ready && !test_container_ended(&x->service) &&
	       test_left(deadline) > RETRY_MS;
}

static int ask(struct test_run *x, struct test_result *r, const struct test_request *q,
	double deadline, struct err *e)
{
	for (;;) {
		struct test_answer a;
		auto_free char *why = NULL;
		int rc = test_http(&x->service, q, deadline, &a, &why, e);

		if (rc < 0)
			return -1;
		if (rc > 0)
			check_answer(r, &a);
		test_answer_fini(&a);
		if (rc == 0 && !may_come(x, r, &a, deadline))
			fail_of_service(x, r, why);
		if (rc > 0 || r->verdict == TEST_FAILED)
			return 0;
		if (pause_for(x, deadline, e) < 0)
			return -1;
	}
}

static int test_request(struct test_run *x, struct test_result *r, struct err *e)
{
	const struct manifest_test *t = r->test;
	auto_free char *json =
		t->json ? json_dumps(t->json, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS)
			: NULL;
	const char *body = json ? json : t->body;
	struct test_request q = {.method = t->method,
		.path = t->path,
		.port = t->port,
		.headers = t->headers,
		.body = body,
		.body_len = body ? strlen(body) : 0,
		.json = json != NULL};
	int rc = need_service(x, r, e);

	if (rc <= 0)
		return rc;
	return ask(x, r, &q, sys_now_ms() + t->timeout_ms, e);
}

/* ---- port ---- */

static bool is_udp(const struct manifest *m, uint32_t port)
{
	for (size_t i = 0; i < m->nports; i++)
		if (m->ports[i].port == port && m->ports[i].protocol)
			return str_eq(m->ports[i].protocol, "udp");
	return false;
}

static bool is_loopback(const char *address, size_t n)
{
	return str_starts(address, "127.") || str_starts(address, "::ffff:127.") ||
	       (n == 3 && strncmp(address, "::1", n) == 0);
}

/* All of the addresses ("::1, 127.0.0.1") are of the container's own loopback. */
static bool is_local(const char *addresses)
{
	for (const char *a = addresses; *a;) {
		size_t n = strcspn(a, ",");

		if (!is_loopback(a, n))
			return false;
		a += n + (a[n] ? 2 : 0);
	}
	return true;
}

static int test_port(struct test_run *x, struct test_result *r, struct err *e)
{
	const struct manifest_test *t = r->test;
	bool udp = is_udp(x->m, t->port);
	double deadline = sys_now_ms() + t->timeout_ms;
	char addresses[256];
	int rc = need_service(x, r, e);

	if (rc <= 0)
		return rc;
	for (;;) {
		rc = test_container_listens(&x->service, t->port, udp, addresses, e);
		if (rc != 0 || test_container_ended(&x->service) || test_left(deadline) == 0)
			break;
		if (pause_for(x, deadline, e) < 0)
			return -1;
	}
	if (rc < 0)
		return -1;
	if (rc == 0)
		fail_of_service(x, r, "nobody listens on the port");
	else if (is_local(addresses))
		test_fail(r,
			"the port is open on %s only, where nobody outside reaches it; let the "
			"program listen on 0.0.0.0 or ::",
			addresses);
	return 0;
}

/* ---- one of them ---- */

/* One that changes what the service gets is given one of its own. */
static int run_apart(struct test_run *x, struct test_result *r,
	int (*run)(struct test_run *x, struct test_result *r, struct err *e), struct err *e)
{
	int rc;

	stop_service(x);
	rc = run(x, r, e);
	if (rc == 0 && r->verdict == TEST_FAILED && x->has_service)
		keep_tail(r, &x->service);
	stop_service(x);
	return rc;
}

int test_run_one(struct test_run *x, struct test_result *r, struct err *e)
{
	enum test_type type = r->test->type;
	int rc;

	r->verdict = TEST_PASSED;
	if (type != TEST_EXEC && r->test->env.n)
		return run_apart(x, r, type == TEST_HTTP ? test_request : test_port, e);
	rc = type == TEST_EXEC   ? test_exec(x, r, e)
	     : type == TEST_HTTP ? test_request(x, r, e)
				 : test_port(x, r, e);
	if (rc == 0 && r->verdict == TEST_FAILED && !r->log && x->has_service &&
		(type != TEST_EXEC || r->test->after_readiness))
		keep_tail(r, &x->service);
	return rc;
}
