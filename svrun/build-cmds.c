/* svrun image lock, svrun image build. */
#include "svrun/command.h"

#include <stdio.h>

#include "base/str.h"
#include "builder/build.h"
#include "images/config.h"
#include "images/mount.h"
#include "svrun/options.h"

struct build_request {
	const char *app, *progress, *compression;
	bool no_cache, timings, files, quiet;
};

static int load_app(struct manifest *m, const char *app, struct err *e)
{
	struct complaints c = {0};
	int rc = manifest_load(m, app, NULL, &c, e);

	if (rc < 0 && c.count)
		fputs(c.text.data, stderr);
	complaints_fini(&c);
	return rc;
}

static int parse_progress(const struct build_request *r, struct progress **p, struct err *e)
{
	const char *mode = r->progress ? r->progress : r->timings ? "timings" : NULL;

	return options_progress(mode, false, p, e);
}

/* A manifest with what every verb needs beside it. */
struct app {
	struct config config;
	struct mirrors mirrors;
	struct manifest m;
};

static int app_open(struct app *a, const char *name, struct err *e)
{
	if (config_load(&a->config, e) < 0)
		return -1;
	if (load_app(&a->m, name, e) < 0) {
		config_fini(&a->config);
		return -1;
	}
	mirrors_init(&a->mirrors, &a->config);
	return 0;
}

static void app_close(struct app *a)
{
	mirrors_fini(&a->mirrors);
	manifest_fini(&a->m);
	config_fini(&a->config);
}

/* ---- lock ---- */

static int lock_app(const struct build_request *r, struct progress *p, struct err *e)
{
	struct app a;
	int rc;

	if (app_open(&a, r->app, e) < 0)
		return -1;
	rc = r->files ? build_lock_files(&a.m, e) : build_lock(&a.m, &a.mirrors, p, e);
	if (rc == 0)
		printf("%s/lock.json\n", a.m.dir);
	app_close(&a);
	return rc;
}

int cmd_image_lock(const struct command *self, int argc, char **argv, struct err *e)
{
	struct build_request r = {0};
	struct progress *p;
	const struct option_spec options[] = {
		{"files", 0, OPTION_FLAG, NULL, "only renew the digests of local files", &r.files},
		{"progress", 0, OPTION_STRING, "MODE", "auto, plain, json or none", &r.progress},
		{0},
	};
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0 || parse_progress(&r, &p, e) < 0)
		return -1;
	r.app = argv[n];
	rc = lock_app(&r, p, e);
	progress_free(p);
	return rc;
}

/* ---- build ---- */

static int build_locked(struct app *a, const struct build_options *o, struct progress *p,
	struct digest *d, bool *cached, struct err *e)
{
	struct lock l;
	struct store s;
	int rc = -1;

	if (lock_load(&l, a->m.dir, e) < 0)
		return -1;
	if (store_open(&s, a->config.root, true, e) == 0) {
		rc = mount_sweep(&s, e);
		if (rc == 0)
			rc = build_run(&a->m, &l, &a->mirrors, &s, o, p, d, cached, e);
		store_close(&s);
	}
	lock_fini(&l);
	return rc;
}

static int build_app(const struct build_request *r, const struct build_options *o,
	struct progress *p, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	struct app a;
	struct digest d;
	bool cached;
	int rc;

	if (app_open(&a, r->app, e) < 0)
		return -1;
	rc = build_locked(&a, o, p, &d, &cached, e);
	if (rc == 0) {
		progress_note(
			p, "%s:%s %s", a.m.name, a.m.version, cached ? "is up to date" : "built");
		puts(digest_text(&d, text));
	}
	app_close(&a);
	return rc;
}

int cmd_image_build(const struct command *self, int argc, char **argv, struct err *e)
{
	struct build_request r = {0};
	struct build_options o = {0};
	struct progress *p;
	enum codec codec;
	const struct option_spec options[] = {
		{"no-cache", 0, OPTION_FLAG, NULL, "build even when nothing changed", &r.no_cache},
		{"compression", 0, OPTION_STRING, "CODEC",
			"zstd, gzip or none instead of the manifest's", &r.compression},
		{"progress", 0, OPTION_STRING, "MODE", "auto, plain, json or none", &r.progress},
		{"timings", 0, OPTION_FLAG, NULL, "print 'timing STAGE N ms' lines", &r.timings},
		{"quiet", 'q', OPTION_FLAG, NULL, "print the manifest's digest only", &r.quiet},
		{0},
	};
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	if (r.compression && codec_parse(r.compression, &codec) < 0)
		return err_set(e, ERR_USAGE, "--compression: expected zstd, gzip or none, got '%s'",
			r.compression);
	if (r.quiet)
		r.progress = "none";
	if (parse_progress(&r, &p, e) < 0)
		return -1;
	r.app = argv[n];
	o.no_cache = r.no_cache;
	o.codec = r.compression ? &codec : NULL;
	rc = build_app(&r, &o, p, e);
	progress_free(p);
	return rc;
}
