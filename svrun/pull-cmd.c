/* svrun image pull. */
#include "svrun/command.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/sys.h"
#include "images/config.h"
#include "images/pool.h"
#include "images/progress.h"
#include "images/pull.h"
#include "svrun/enter.h"
#include "svrun/options.h"

/* The images can be run now; a process of its own waits for the disk. If it does not get to its
 * end, the next one does, or the data are checked after a restart: pool.h, pool_settle(). */
static void settle_behind(struct store *s)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid != 0) /* without one nothing is lost */
		return;
	if (setsid() >= 0 && fork() == 0) {
		struct err e = {0};
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		struct pool *p;

		for (int fd = 0; null >= 0 && fd <= 2; fd++)
			(void)sys_dup3(null, fd, 0);
		if (s->fd > 3)
			(void)sys_close_range(3, (unsigned)s->fd - 1, 0);
		(void)sys_close_range((unsigned)s->fd + 1, ~0u, 0);
		p = pool_open(s->fd, true, &e);
		if (p && pool_settle(p, &e) == 0)
			pool_close(p);
	}
	_exit(0);
}

/* Nothing was fetched then that somebody would wait for. */
static bool is_refusal(const struct err *e)
{
	return e->kind == ERR_DENIED || e->kind == ERR_NOT_FOUND || e->kind == ERR_USAGE;
}

static void report(const struct pull_result *r, bool quiet)
{
	char text[DIGEST_TEXT + 1];

	digest_text(&r->manifest, text);
	if (quiet)
		puts(text);
	else if (r->present)
		printf("%s %s is up to date\n", r->name, text);
	else
		printf("%s %s pulled, %.1f MiB\n", r->name, text, (double)r->received / (1 << 20));
}

static int pull_each(char **refs, int n, const struct pull_options *o, bool quiet,
	struct progress *p, struct err *e)
{
	struct config c;
	struct store s;
	bool fetched = false;
	int rc = 0;

	if (config_load(&c, e) < 0)
		return -1;
	if (store_enter_at(&s, &c, true, e) < 0) {
		config_fini(&c);
		return -1;
	}
	for (int i = 0; rc == 0 && i < n; i++) {
		struct pull_result r;

		rc = image_pull(&s, &c, refs[i], o, p, &r, e);
		if (rc == 0)
			report(&r, quiet);
		fetched = fetched || (rc < 0 ? !is_refusal(e) : !r.present);
	}
	if (fetched)
		settle_behind(&s);
	store_close(&s);
	config_fini(&c);
	return rc;
}

int cmd_image_pull(const struct command *self, int argc, char **argv, struct err *e)
{
	const char *mode_name = NULL;
	bool quiet = false;
	struct pull_options o = {0};
	const struct option_spec options[] = {
		{"platform", 0, OPTION_STRING, "OS/ARCH",
			"of an image for several, this one (this machine's)", &o.platform},
		{"all-platforms", 'a', OPTION_FLAG, NULL, "all of them, and the index",
			&o.all_platforms},
		{"strict", 0, OPTION_FLAG, NULL,
			"fetch whole layers, prove their digests, DiffIDs and the image's index",
			&o.strict},
		{"plain-http", 0, OPTION_FLAG, NULL, "http:// instead of https://", &o.plain_http},
		{"insecure", 0, OPTION_FLAG, NULL, "do not check the registry's certificate",
			&o.insecure},
		{"quiet", 'q', OPTION_FLAG, NULL, "print digests only", &quiet},
		{"progress", 0, OPTION_STRING, "MODE", "auto, plain, json, timings or none",
			&mode_name},
		{0},
	};
	struct progress *p;
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	if (o.platform && o.all_platforms)
		return err_set(e, ERR_USAGE, "--platform and --all-platforms exclude each other");
	if (options_progress(mode_name, quiet, &p, e) < 0)
		return -1;
	rc = pull_each(argv + n, argc - n, &o, quiet, p, e);
	progress_free(p);
	return rc;
}
