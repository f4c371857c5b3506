/* svrun image plan, svrun image log */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/build.h"
#include "builder/plan.h"
#include "svrun/app.h"
#include "svrun/command.h"
#include "svrun/output.h"

enum { TEXT_MAX = 64 << 20 };

struct plan_request {
	const char *app, *format, *compression;
	bool all, json;
	enum codec codec;
	struct app_choice choice;
};

static int print_plan(const struct plan_request *r, const struct app *a, const struct lock *l,
	struct store *s, struct pool *pool, struct err *e)
{
	auto_buf struct buf out = BUF_INIT(TEXT_MAX);
	struct plan p;

	if (plan_make(&p, &a->m, l, s, pool, r->compression ? &r->codec : NULL, e) < 0)
		return -1;
	if (r->json) {
		auto_json json_t *j = plan_json(&p, &a->m, l);

		output_json(j);
	} else {
		plan_print(&p, &a->m, l, r->all, &out);
		fputs(out.data, stdout);
	}
	plan_fini(&p);
	return 0;
}

/* Without a store, or a pool in it, everything is still to be done: that is a plan, too. */
static int plan_locked(
	const struct plan_request *r, const struct app *a, const struct lock *l, struct err *e)
{
	struct store s = {.fd = -1, .path = a->config.root};
	bool opened = store_open(&s, a->config.root, false, NULL) == 0;
	struct pool *pool = NULL;
	int rc;

	if (!opened)
		s = (struct store){.fd = -1, .path = a->config.root};
	else if (faccessat(s.fd, "pool/data", F_OK, 0) == 0)
		pool = pool_open(s.fd, false, NULL);
	rc = print_plan(r, a, l, &s, pool, e);
	pool_close(pool);
	if (opened)
		store_close(&s);
	return rc;
}

static int plan_app(const struct plan_request *r, struct err *e)
{
	struct app a;
	struct lock l;
	int rc = -1;

	if (app_open(&a, r->app, &r->choice, e) < 0)
		return -1;
	if (lock_load_of(&l, &a.m, e) == 0) {
		rc = lock_check(&l, &a.m, e);
		if (rc == 0)
			rc = plan_locked(r, &a, &l, e);
		lock_fini(&l);
	}
	app_close(&a);
	return rc;
}

int cmd_image_plan(const struct command *self, int argc, char **argv, struct err *e)
{
	struct plan_request r = {0};
	const struct option_spec options[] = {
		{"all", 'a', OPTION_FLAG, NULL, "list every input, not only what is missing",
			&r.all},
		{"compression", 0, OPTION_STRING, "CODEC",
			"zstd, gzip or none instead of the manifest's", &r.compression},
		APP_CHOICE_OPTIONS(r.choice),
		{"format", 0, OPTION_STRING, "FORMAT", "table or json", &r.format},
		{0},
	};
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0 || output_format(r.format, &r.json, e) < 0)
		rc = -1;
	else if (r.compression && codec_parse(r.compression, &r.codec) < 0)
		rc = err_set(e, ERR_USAGE, "--compression: expected zstd, gzip or none, got '%s'",
			r.compression);
	else {
		r.app = argv[n];
		rc = plan_app(&r, e);
	}
	option_list_fini(&r.choice.vars);
	return rc;
}

/* ---- log ---- */

/* "compile" is the manifest's step run:compile. */
static int open_log(const struct store *s, const char *folder, const char *step, struct err *e)
{
	static const char *const prefixes[] = {"", "run:"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		auto_free char *path = mem_printf("%s/%s%s.log", folder, prefixes[i], step);
		int fd = sys_open_beneath(s->fd, path, O_RDONLY, 0);

		if (fd >= 0)
			return fd;
		if (errno != ENOENT)
			return err_sys(e, "open %s/%s", s->path, path);
	}
	err_set(e, ERR_NOT_FOUND, "%s/%s has no log of a step '%s'", s->path, folder, step);
	return err_hint(e, "steps that run code have one, once they ran: svrun image plan APP");
}

static int copy_out(int fd, struct err *e)
{
	char piece[65536];
	ssize_t n;

	while ((n = sys_read(fd, piece, sizeof(piece))) > 0)
		if (sys_write_all(STDOUT_FILENO, piece, (size_t)n) < 0)
			return err_sys(e, "write");
	return n < 0 ? err_sys(e, "read the log") : 0;
}

static int show_log(const struct app *a, const char *step, struct err *e)
{
	auto_free char *folder = build_log_folder(&a->m);
	struct store s;
	int rc = -1;

	if (strchr(step, '/'))
		return err_set(e, ERR_USAGE, "'%s' is no step's id", step);
	if (store_open(&s, a->config.root, false, e) < 0)
		return -1;
	auto_fd int fd = open_log(&s, folder, step, e);

	if (fd >= 0)
		rc = copy_out(fd, e);
	store_close(&s);
	return rc;
}

int cmd_image_log(const struct command *self, int argc, char **argv, struct err *e)
{
	const struct option_spec options[] = {{0}};
	struct app_choice choice = {0};
	struct app a;
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0 || app_open(&a, argv[n], &choice, e) < 0)
		return -1;
	rc = show_log(&a, argv[n + 1], e);
	app_close(&a);
	return rc;
}
