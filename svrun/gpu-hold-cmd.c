/* svrun gpu hold: a service in the foreground that keeps GPUs awake. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "gpu/request.h"
#include "svrun/command.h"
#include "svrun/gpu-answer.h"
#include "svrun/gpu-ask.h"
#include "svrun/gpu-hold.h"
#include "svrun/options.h"

struct hold {
	bool no_probe;
	bool limited; /* else until a signal */
	uint64_t seconds;
	int fds[2 * GPUS_MAX];
	size_t nfds;
};

/* Which GPUs the words name; without any, all of NVIDIA's. */
static int choose(
	const struct gpu_inventory *i, char **words, int n, bool wanted[GPUS_MAX], struct err *e)
{
	for (int k = 0; k < n; k++) {
		/* A number alone would be so many GPUs; here it is which one. */
		auto_free char *word = mem_printf("device=%s", words[k]);
		struct gpu_request r = {0};
		struct gpu_grants g = {0};
		int rc = gpu_request_parse(&r, word, e) < 0 || gpu_request_match(&r, i, &g, e) < 0
				 ? -1
				 : 0;

		for (size_t v = 0; rc == 0 && v < g.n; v++)
			wanted[g.v[v].device - i->v] = true;
		free(g.v);
		gpu_request_fini(&r);
		if (rc < 0)
			return -1;
	}
	for (size_t v = 0; v < i->n; v++)
		wanted[v] = (n == 0 || wanted[v]) && i->v[v].maker == GPU_MAKER_NVIDIA &&
			    !i->v[v].excluded;
	return 0;
}

static int hold_all(struct hold *o, const struct gpu_host *h, const struct gpu_inventory *i,
	char **words, int n, struct err *e)
{
	bool wanted[GPUS_MAX] = {false};

	if (choose(i, words, n, wanted, e) < 0)
		return -1;
	for (size_t v = 0; v < i->n; v++) {
		if (!wanted[v])
			continue;
		if (gpu_hold(h, &i->v[v], &o->fds[o->nfds], &o->fds[o->nfds + 1], e) < 0)
			return -1;
		o->nfds += 2;
	}
	if (o->nfds)
		return 0;
	err_set(e, ERR_NOT_FOUND, "no NVIDIA GPU to hold");
	return err_hint(e, "svrun doctor looks for the reason; GPUs of others need no hold");
}

/* What starts need to know of the GPUs: a driver that does not answer is no reason to let go. */
static void probe(const struct gpu_host *h, const struct gpu_inventory *i)
{
	struct err e = {0};
	auto_json json_t *answer = gpu_ask(h, i, NULL, GPU_ASK_SECONDS, &e);
	struct gpu_failure f;

	if (!answer || gpu_answer_keep(h, i, answer, &e) < 0)
		warn("the driver was asked: %s", e.text);
	else if (gpu_answer_failure(answer, &f))
		warn("the driver was asked: %s: error %d, %s: %s", f.call, f.code, f.name, f.means);
}

static int block_signals(struct err *e)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || (fd = signalfd(-1, &set, SFD_CLOEXEC)) < 0)
		return err_sys(e, "signalfd");
	return fd;
}

static int wait_for(int signals, const struct hold *o, struct err *e)
{
	struct pollfd end = {signals, POLLIN, 0};
	double until = sys_now_ms() + 1e3 * (double)o->seconds;

	for (;;) {
		double left = until - sys_now_ms();
		int ms = !o->limited ? -1 : left <= 0 ? 0 : left > 1e6 ? 1000000 : (int)left + 1;
		int n = poll(&end, 1, ms);

		if (n > 0 || (n == 0 && ms == 0))
			return 0;
		if (n < 0 && errno != EINTR)
			return err_sys(e, "wait");
	}
}

static int hold(struct hold *o, const struct gpu_host *h, char **words, int n, struct err *e)
{
	struct gpu_inventory i;
	auto_fd int signals = block_signals(e);
	int rc;

	if (signals < 0 || gpu_inventory_read(&i, h, e) < 0)
		return -1;
	rc = hold_all(o, h, &i, words, n, e);
	if (rc == 0 && !o->no_probe)
		probe(h, &i);
	gpu_inventory_fini(&i);
	if (rc < 0 || notify_manager("READY=1", e) < 0)
		return -1;
	printf("holding %zu GPUs\n", o->nfds / 2);
	fflush(stdout);
	return wait_for(signals, o, e);
}

int cmd_gpu_hold(const struct command *self, int argc, char **argv, struct err *e)
{
	const char *seconds = NULL;
	struct hold o = {0};
	struct gpu_host h;
	const struct option_spec options[] = {
		{"for", 0, OPTION_STRING, "SECONDS", "end by itself after so long", &seconds},
		{"no-probe", 0, OPTION_FLAG, NULL, "do not ask the driver about the GPUs first",
			&o.no_probe},
		{0},
	};
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	o.limited = seconds != NULL;
	if (seconds && str_u64(seconds, 1 << 30, &o.seconds) < 0)
		return err_set(e, ERR_USAGE, "--for %s: not a number of seconds", seconds);
	if (gpu_host_open(&h, e) < 0)
		return -1;
	rc = hold(&o, &h, argv + n, argc - n, e);
	for (size_t k = 0; k < o.nfds; k++)
		sys_close_ref(&o.fds[k]);
	gpu_host_close(&h);
	return rc;
}
