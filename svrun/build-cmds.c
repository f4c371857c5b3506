/* svrun image lock, svrun image build. */
#include "svrun/command.h"

#include <stdio.h>

#include "base/config.h"
#include "base/str.h"
#include "builder/build.h"
#include "images/mount.h"
#include "svrun/options.h"

struct build_request {
	const char *app, *progress, *compression;
	bool no_cache, timings, files, quiet;
};

static int load_app(struct manifest *m, const char *app, struct err *e)
{
	struct complaints c = {0};
	int rc = manifest_load(m, app, &c, e);

	if (rc < 0 && c.count)
		fputs(c.text.data, stderr);
	complaints_fini(&c);
	return rc;
}

static int parse_progress(const struct build_request *r, struct progress **p, struct err *e)
{
	enum progress_mode mode = r->timings ? PROGRESS_TIMINGS : PROGRESS_AUTO;

	if (r->progress && progress_mode_parse(r->progress, &mode) < 0)
		return err_set(e, ERR_USAGE,
			"--progress: expected auto, plain, json, timings or none, got '%s'",
			r->progress);
	*p = progress_new(mode);
	return 0;
}

/* ---- lock ---- */

static int lock_app(const struct build_request *r, struct progress *p, struct err *e)
{
	struct config config;
	struct mirrors mirrors;
	struct manifest m;
	int rc;

	if (config_load(&config, e) < 0)
		return -1;
	if (load_app(&m, r->app, e) < 0) {
		config_fini(&config);
		return -1;
	}
	mirrors_init(&mirrors, &config);
	rc = r->files ? build_lock_files(&m, e) : build_lock(&m, &mirrors, p, e);
	if (rc == 0)
		printf("%s/lock.json\n", m.dir);
	mirrors_fini(&mirrors);
	manifest_fini(&m);
	config_fini(&config);
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

static int build_app(const struct build_request *r, const struct build_options *o,
	struct progress *p, struct err *e)
{
	struct config config;
	struct mirrors mirrors;
	struct manifest m;
	struct lock l;
	struct store s;
	struct digest d;
	char text[DIGEST_TEXT + 1];
	bool cached;
	int rc = -1;

	if (config_load(&config, e) < 0)
		return -1;
	if (load_app(&m, r->app, e) < 0) {
		config_fini(&config);
		return -1;
	}
	mirrors_init(&mirrors, &config);
	if (lock_load(&l, m.dir, e) == 0) {
		if (store_open(&s, config.root, true, e) == 0) {
			rc = mount_sweep(&s, e) < 0
				     ? -1
				     : build_run(&m, &l, &mirrors, &s, o, p, &d, &cached, e);
			store_close(&s);
		}
		lock_fini(&l);
	}
	if (rc == 0 && !r->quiet)
		progress_note(p, "%s:%s %s", m.name, m.version, cached ? "is up to date" : "built");
	if (rc == 0)
		puts(digest_text(&d, text));
	mirrors_fini(&mirrors);
	manifest_fini(&m);
	config_fini(&config);
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
