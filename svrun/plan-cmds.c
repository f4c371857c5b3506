/* svrun image plan */
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
