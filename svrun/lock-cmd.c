/* svrun image lock */
#include <stdio.h>

#include "base/str.h"
#include "builder/lock-make.h"
#include "images/progress.h"
#include "svrun/app.h"
#include "svrun/command.h"

enum { DIFF_MAX = 64 << 20, DRIFT = 1 };

struct lock_request {
	const char *app, *update, *progress;
	bool files, check;
	struct app_choice choice;
	struct option_list secrets;
	struct lock_secrets loaded;
};

static int resolve(struct lock *l, const struct lock_request *r, struct app *a,
	const struct lock *old, struct progress *p, struct err *e)
{
	struct store s;
	int rc;

	if (app_store(&s, a, e) < 0)
		return -1;
	rc = r->update ? lock_update(l, old, r->update, &a->m, &a->mirrors, &s, &r->loaded, p, e)
		       : lock_make(l, &a->m, &a->mirrors, &s, &r->loaded, p, e);
	store_close(&s);
	return rc;
}

/* Print what would change: 0 nothing, DRIFT. */
static int tell(const struct app *a, const struct lock *old, const struct lock *now)
{
	auto_buf struct buf out = BUF_INIT(DIFF_MAX);
	size_t n = lock_diff(old, now, &out);

	if (n == 0 && !digest_eq(&old->manifest, &now->manifest)) {
		buf_printf(&out, "what names the inputs changed, but not what they are\n");
		n = 1;
	}
	if (out.len)
		fputs(out.data, stdout);
	if (n)
		fprintf(stderr, "svrun: %s: its lock is not what would be locked now\n", a->m.path);
	return n ? DRIFT : 0;
}

static int with_old(const struct lock_request *r, struct app *a, struct progress *p, struct err *e)
{
	struct lock old, now = {0};
	int rc;

	if (lock_load_of(&old, &a->m, e) < 0)
		return -1;
	rc = r->update ? lock_check(&old, &a->m, e) : 0;
	if (rc == 0)
		rc = resolve(&now, r, a, &old, p, e);
	if (rc == 0 && r->check)
		rc = tell(a, &old, &now);
	else if (rc == 0)
		rc = lock_save_of(&now, &a->m, e);
	lock_fini(&now);
	lock_fini(&old);
	return rc;
}

static int anew(const struct lock_request *r, struct app *a, struct progress *p, struct err *e)
{
	struct lock l = {0};
	int rc = resolve(&l, r, a, NULL, p, e);

	if (rc == 0)
		rc = lock_save_of(&l, &a->m, e);
	lock_fini(&l);
	return rc;
}

static int lock_app(const struct lock_request *r, struct progress *p, struct err *e)
{
	struct app a;
	int rc;

	if (app_open(&a, r->app, &r->choice, e) < 0)
		return -1;
	rc = r->files                ? lock_make_files(&a.m, e)
	     : r->check || r->update ? with_old(r, &a, p, e)
				     : anew(r, &a, p, e);
	if (rc == 0 && !r->check) {
		auto_free char *path = lock_path(&a.m);

		puts(path);
	}
	app_close(&a);
	return rc;
}

static int with_secrets(struct lock_request *r, struct progress *p, struct err *e)
{
	auto_free struct build_secret *v = mem_array(r->secrets.n, sizeof(*v));
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < r->secrets.n; i++)
		rc = build_secret_load(&v[i], r->secrets.v[i], e);
	r->loaded = (struct lock_secrets){v, r->secrets.n};
	if (rc == 0)
		rc = lock_app(r, p, e);
	for (size_t i = 0; i < r->secrets.n; i++)
		build_secret_fini(&v[i]);
	return rc;
}

int cmd_image_lock(const struct command *self, int argc, char **argv, struct err *e)
{
	struct lock_request r = {0};
	struct progress *p = NULL;
	const struct option_spec options[] = {
		{"files", 0, OPTION_FLAG, NULL, "only renew the digests of local files", &r.files},
		{"check", 0, OPTION_FLAG, NULL,
			"write nothing: print what would change, and exit with 1", &r.check},
		{"update", 0, OPTION_STRING, "PKG", "move only this package, source, model or base",
			&r.update},
		APP_CHOICE_OPTIONS(r.choice),
		{"secret", 0, OPTION_LIST, "ID=FILE", "a file for sources of models that name it",
			&r.secrets},
		{"progress", 0, OPTION_STRING, "MODE", "auto, plain, json or none", &r.progress},
		{0},
	};
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		rc = -1;
	else if (r.files && (r.check || r.update))
		rc = err_set(e, ERR_USAGE, "--files goes alone");
	else if (options_progress(r.progress, false, &p, e) < 0)
		rc = -1;
	else {
		r.app = argv[n];
		rc = with_secrets(&r, p, e);
	}
	progress_free(p);
	option_list_fini(&r.choice.vars);
	option_list_fini(&r.secrets);
	return rc;
}
