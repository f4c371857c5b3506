#include "builder/image-health.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum { SHELL_MAX = 1 << 20 };
static const json_int_t ns_per_ms = 1000000;

/* 'text', for a shell. */
static void put_quoted(struct buf *b, const char *s)
{
	buf_put(b, "'", 1);
	for (; *s; s++) {
		if (*s == '\'')
			buf_printf(b, "'\\''");
		else
			buf_put(b, s, 1);
	}
	buf_put(b, "'", 1);
}

static json_t *shell_test(const struct manifest_probe *p)
{
	auto_buf struct buf b = BUF_INIT(SHELL_MAX), url = BUF_INIT(SHELL_MAX);

	if (p->kind == PROBE_TCP) {
		buf_printf(&b,
			"nc -z 127.0.0.1 %u 2>/dev/null || bash -c ':</dev/tcp/127.0.0.1/%u' "
			"2>/dev/null || exit 1",
			p->port, p->port);
		return json_pack("[s, s]", "CMD-SHELL", b.data);
	}
	buf_printf(&url, "http://127.0.0.1:%u%s", p->port, p->path ? p->path : "/");
	buf_printf(&b, "curl -fsS -o /dev/null ");
	put_quoted(&b, url.data);
	buf_printf(&b, " 2>/dev/null || wget -q -O /dev/null ");
	put_quoted(&b, url.data);
	buf_printf(&b, " 2>/dev/null || python3 -c 'import sys,urllib.request as r;"
		       "r.urlopen(sys.argv[1])' ");
	put_quoted(&b, url.data);
	buf_printf(&b, " 2>/dev/null || exit 1");
	return json_pack("[s, s]", "CMD-SHELL", b.data);
}

static json_t *exec_test(const struct manifest_probe *p)
{
	json_t *test = json_pack("[s]", "CMD");

	for (size_t i = 0; i < p->argv.n; i++)
		json_array_append_new(test, json_string(p->argv.v[i]));
	return test;
}

json_t *image_healthcheck(const struct manifest *m)
{
	const struct manifest_health *h = &m->health;
	const struct manifest_probe *p = h->readiness.kind ? &h->readiness
					 : h->startup.kind ? &h->startup
							   : &h->liveness;
	json_int_t start = p->initial_delay_ms;

	if (p->kind == PROBE_NONE)
		return NULL;
	if (h->startup.kind)
		start = h->startup.initial_delay_ms +
			(json_int_t)h->startup.period_ms * h->startup.failure_threshold;
	return json_pack("{s:o, s:I, s:I, s:I, s:I}", "Test",
		p->kind == PROBE_EXEC ? exec_test(p) : shell_test(p), "Interval",
		p->period_ms * ns_per_ms, "Timeout", p->timeout_ms * ns_per_ms, "Retries",
		(json_int_t)p->failure_threshold, "StartPeriod", start * ns_per_ms);
}
