/* svrun image build */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/build.h"
#include "builder/cache-share.h"
#include "images/pool.h"
#include "images/progress.h"
#include "images/push.h"
#include "images/workers.h"
#include "svrun/build-request.h"
#include "svrun/command.h"
#include "svrun/output.h"
#include "svrun/scan.h"
#include "svrun/test.h"

enum { JOBS_MAX = 64, APPS_MAX = 4096 };

/* ---- one app ---- */

/* --locked: nothing may be other than when the lock was made, the packer included. */
static int check_locked(const struct app *a, const struct lock *l, struct err *e)
{
	struct digest envelope = lock_envelope();

	if (digest_eq(&l->envelope, &envelope))
		return 0;
	err_set(e, ERR_USAGE,
		"--locked: %s was locked for another version of svrun or its compressors: the "
		"image would be another",
		a->m.path);
	return err_hint(e, "svrun image lock %s", a->m.dir);
}

static int load_secrets(const struct build_request *r, struct build_secret *v, struct err *e)
{
	for (size_t i = 0; i < r->secrets.n; i++)
		if (build_secret_load(&v[i], r->secrets.v[i], e) < 0)
			return -1;
	return 0;
}

/* REF of one app is its whole name; a REF that ends in a slash gets NAME:VERSION behind it. */
static int push(const struct build_request *r, const struct app *a, struct store *s,
	struct progress *p, struct err *e)
{
	auto_free char *versioned = NULL, *plain = NULL, *ref = NULL;
	struct push_options o = {
		.plain_http = r->plain_http, .accepted = r->accepted.v, .naccepted = r->accepted.n};
	struct push_result result;

	build_names(&a->m, &versioned, &plain);
	ref = mem_printf("%s%s", r->push, str_ends(r->push, "/") ? versioned : "");
	o.ref = ref;
	if (image_push(s, &a->config, versioned, &o, p, &result, e) < 0)
		return -1;
	progress_note(p, "%s %s", result.ref, result.present ? "is there already" : "pushed");
	return 0;
}

static int export(const struct build_request *r, const struct app *a, struct store *s,
	const struct digest *key, const struct build_result *b, struct progress *p, struct err *e)
{
	const struct cache_share_site site = {.config = &a->config,
		.plain_http = r->plain_http,
		.accepted = {r->accepted.v, r->accepted.n}};
	struct cache_share_result x;

	if (cache_share_export(
		    s, &site, r->cache_to, key, &b->manifest, b->steps.v, b->steps.n, p, &x, e) < 0)
		return -1;
	if (x.present && x.sent == 0)
		progress_note(p, "the shared cache has it");
	else
		progress_note(
			p, "to the shared cache: %zu blobs sent, %zu were there", x.sent, x.there);
	return 0;
}

static void print_result(const struct build_request *r, const struct app *a,
	const struct build_result *b, json_t *scanned)
{
	char text[DIGEST_TEXT + 1];
	const struct build_count *c = &b->count;

	digest_text(&b->manifest, text);
	if (!r->json) {
		puts(text);
		return;
	}
	auto_json json_t *j = json_pack(
		"{s:s, s:s, s:s, s:b, s:b, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}}",
		"name", a->m.name, "version", a->m.version, "manifest", text, "cached", b->cached,
		"imported", b->imported, "count", "inputsUnpacked", (json_int_t)c->inputs_unpacked,
		"inputsReused", (json_int_t)c->inputs_reused, "stepsRun", (json_int_t)c->steps_run,
		"stepsReused", (json_int_t)c->steps_reused, "layersWritten",
		(json_int_t)c->layers_written, "layersReused", (json_int_t)c->layers_reused,
		"bytesUnpacked", (json_int_t)c->bytes_unpacked, "bytesCompressed",
		(json_int_t)c->bytes_compressed, "bytesWritten", (json_int_t)c->bytes_written);

	if (scanned)
		json_object_set(j, "scan", scanned);
	output_json(j);
}

/* ---- names ---- */

/* What they named before the build. */
struct before {
	char *names[2]; /* NAME:VERSION..., NAME or NULL */
	struct store_name *v;
	size_t n;
};

static int before_init(struct before *x, const struct app *a, struct store *s, struct err *e)
{
	*x = (struct before){.n = 0};
	build_names(&a->m, &x->names[0], &x->names[1]);
	return store_names(s, &x->v, &x->n, e);
}

static void before_fini(struct before *x)
{
	free(x->names[0]);
	free(x->names[1]);
	store_names_free(x->v, x->n);
}

/* NULL: there was no such name. */
static const struct store_name *before_of(const struct before *x, const char *name)
{
	char plain[STORE_NAME];

	if (store_name_parse(name, plain, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < x->n; i++)
		if (str_eq(x->v[i].name, plain))
			return &x->v[i];
	return NULL;
}

/* ---- after the build ---- */

/* Before anybody else gets the image, which has no names until then. 0, or the exit status. */
static int test(const struct build_request *r, const struct app *a, const struct before *old,
	const struct digest *image, struct err *e)
{
	struct test_options o = {
		.out = stderr, .quiet = r->quiet, .image = image, .accepted = &r->accepted};
	struct err fault = {0};
	int status, rc = test_app(a->m.path, &r->choice, &o, &status, e);

	if (rc < 0 || status == 0)
		return rc;
	err_set(&fault, ERR_DENIED, "%s does not pass its tests", old->names[0]);
	err_hint(&fault, "its names are as they were; without --test it gets them");
	err_print(&fault, "svrun");
	return status;
}

/* What is asked of an image that has no names yet, and its names. 0, or the exit status. */
static int admit(const struct build_request *r, const struct app *a, const struct lock *l,
	struct store *s, const struct digest *image, const struct before *old, struct progress *p,
	json_t **scanned, struct err *e)
{
	int rc = 0;

	if (!r->test && !a->m.build.scan)
		return 0;
	if (a->m.build.scan)
		rc = scan_build(a, s, image, p, scanned, e);
	if (rc == 0 && r->test)
		rc = test(r, a, old, image, e);
	return rc ? rc : build_set_names(&a->m, l, s, image, e);
}

static int deliver(const struct build_request *r, const struct app *a, const struct lock *l,
	struct store *s, const struct digest *key, const struct build_result *b,
	const struct before *old, struct progress *p, struct err *e)
{
	const struct store_name *was = before_of(old, old->names[0]);
	auto_json json_t *scanned = NULL;
	int rc;

	progress_note(p, "%s %s", old->names[0],
		b->cached     ? "is up to date"
		: b->imported ? "came out of the shared cache"
			      : "built");
	if (r->choice.vars.n && was && !digest_eq(&was->manifest, &b->manifest))
		progress_note(p, "%s was another image: --var is in no name", old->names[0]);
	rc = admit(r, a, l, s, &b->manifest, old, p, &scanned, e);
	if (rc != 0)
		return rc;
	if ((r->cache_to && export(r, a, s, key, b, p, e) < 0) ||
		(r->push && push(r, a, s, p, e) < 0))
		return -1;
	print_result(r, a, b, scanned);
	return 0;
}

static int build_in_store(const struct build_request *r, struct app *a, const struct lock *l,
	struct store *s, const struct build_options *o, struct progress *p, struct err *e)
{
	struct digest key = build_key(&a->m, l, o->codec);
	struct build_result b = {0};
	struct before old;
	int rc = before_init(&old, a, s, e);
	/* Nothing leads to an image that is looked at before it has names: it is no garbage. */
	auto_fd int hold = rc == 0 && o->unnamed ? pool_hold(s->fd, e) : -1;

	if (rc == 0 && o->unnamed && hold < 0)
		rc = -1;
	if (rc == 0)
		rc = build_run(&a->m, l, &a->mirrors, s, o, p, &b, e);
	if (rc == 0)
		rc = deliver(r, a, l, s, &key, &b, &old, p, e);
	before_fini(&old);
	build_result_fini(&b);
	return rc;
}

static int build_locked(const struct build_request *r, struct app *a, const struct build_options *o,
	struct progress *p, struct err *e)
{
	struct lock l;
	struct store s;
	int rc = -1;

	if (lock_load_of(&l, &a->m, e) < 0)
		return -1;
	if ((!r->locked || check_locked(a, &l, e) == 0) && app_store(&s, a, e) == 0) {
		rc = build_in_store(r, a, &l, &s, o, p, e);
		store_close(&s);
	}
	lock_fini(&l);
	return rc;
}

/* 0, or the exit status when its tests fail. */
static int build_app(const struct build_request *r, const char *name, size_t jobs,
	struct progress *p, struct err *e)
{
	auto_free struct build_secret *secrets = mem_array(r->secrets.n, sizeof(*secrets));
	struct build_options o = {.no_cache = r->no_cache,
		.jobs = jobs,
		.secrets = secrets,
		.nsecrets = r->secrets.n,
		.accepted = {r->accepted.v, r->accepted.n},
		.cache_from = r->cache_from,
		.cache_to = r->cache_to,
		.plain_http = r->plain_http};
	enum codec codec;
	struct app a;
	int rc = load_secrets(r, secrets, e);

	if (rc == 0)
		rc = app_open(&a, name, &r->choice, e);
	if (rc == 0) {
		o.config = &a.config;
		o.unnamed = r->test || a.m.build.scan;
		if (r->compression && codec_parse(r->compression, &codec) == 0)
			o.codec = &codec;
		rc = scan_build_check(&a, e) < 0 ? -1 : build_locked(r, &a, &o, p, e);
		app_close(&a);
	}
	for (size_t i = 0; i < r->secrets.n; i++)
		build_secret_fini(&secrets[i]);
	return rc;
}

/* ---- which apps ---- */

struct apps {
	struct arena arena;
	struct build_job *v;
	size_t n, cap;
};

static void add_app(struct apps *a, const char *name, const char *entry)
{
	mem_grow(&a->v, &a->cap, a->n);
	a->v[a->n++] = (struct build_job){.app = arena_strdup(&a->arena, name),
		.matrix = entry,
		.label = entry ? arena_printf(&a->arena, "%s (%s)", name, entry)
			       : arena_strdup(&a->arena, name)};
}

static int by_app(const void *a, const void *b)
{
	const struct build_job *x = a, *y = b;

	return strcmp(x->app, y->app);
}

/* Each once for each entry of its matrix, where all are asked for. */
static void add_entries(struct apps *a, const struct build_request *r)
{
	const char *asked = r->choice.matrix, **ids;
	bool all = asked && str_eq(asked, "all");
	struct build_job *apps = a->v;
	size_t n = a->n;

	*a = (struct apps){.arena = a->arena};
	for (size_t i = 0; i < n; i++) {
		size_t k = 0,
		       entries = all || (r->all && !asked)
					 ? app_entries(apps[i].app, &r->choice, &a->arena, &ids)
					 : 0;
		bool one = !all && asked;

		while (all && k < entries && !str_eq(ids[k], asked))
			k++;
		if (all && k < entries) /* an entry that is called so */
			one = true;
		if (one || entries == 0)
			add_app(a, apps[i].app, one ? asked : NULL);
		for (k = 0; !one && k < entries; k++)
			add_app(a, apps[i].app, ids[k]);
	}
	free(apps);
}

/* Every folder in manifests/ that has a manifest.json. */
static int list_all(struct apps *a, struct err *e)
{
	DIR *dir = opendir("manifests");
	struct dirent *x;

	if (!dir)
		return err_sys(e, "--all: open manifests");
	while ((x = readdir(dir)) && a->n < APPS_MAX) {
		auto_free char *path = mem_printf("manifests/%s/manifest.json", x->d_name);
		struct stat st;

		if (x->d_name[0] != '.' && sys_fstatat(AT_FDCWD, path, &st, 0) == 0)
			add_app(a, x->d_name, NULL);
	}
	closedir(dir);
	if (a->n == 0)
		return err_set(e, ERR_NOT_FOUND, "--all: no manifests/NAME/manifest.json here");
	qsort(a->v, a->n, sizeof(*a->v), by_app);
	return 0;
}

static int choose_apps(
	struct apps *a, const struct build_request *r, char **argv, int n, struct err *e)
{
	if (n == 0 && !r->all) {
		err_set(e, ERR_USAGE, "which app?");
		return err_hint(e, "svrun image build APP..., or --all");
	}
	if (n == 0 && list_all(a, e) < 0)
		return -1;
	for (int i = 0; i < n; i++)
		add_app(a, argv[i], NULL);
	add_entries(a, r);
	return 0;
}

/* ---- the command ---- */

static int check_request(struct build_request *r, size_t *jobs, struct err *e)
{
	enum codec codec;
	uint64_t n;

	if (r->compression && codec_parse(r->compression, &codec) < 0)
		return err_set(e, ERR_USAGE, "--compression: expected zstd, gzip or none, got '%s'",
			r->compression);
	if (output_format(r->format, &r->json, e) < 0)
		return -1;
	*jobs = workers_cores();
	if (!r->jobs)
		return 0;
	if (str_u64(r->jobs, JOBS_MAX, &n) < 0 || n == 0)
		return err_set(
			e, ERR_USAGE, "--jobs: expected 1 to %d, got '%s'", JOBS_MAX, r->jobs);
	*jobs = n;
	return 0;
}

static int build_one(struct build_request *r, const struct build_job *job, size_t jobs,
	struct progress *p, struct err *e)
{
	r->choice.matrix = job->matrix;
	return build_app(r, job->app, jobs, p, e);
}

static int build(struct build_request *r, char **argv, int n, struct err *e)
{
	struct progress *p = NULL;
	struct apps apps = {0};
	size_t jobs = 1;
	int rc = -1;

	if (check_request(r, &jobs, e) == 0 && choose_apps(&apps, r, argv, n, e) == 0 &&
		options_progress(r->progress  ? r->progress
				 : r->timings ? "timings"
					      : NULL,
			r->quiet, &p, e) == 0) {
		if (apps.n > 1 && r->push && !str_ends(r->push, "/"))
			rc = err_set(e, ERR_USAGE,
				"--push: of several images, the repository must end in a slash");
		else if (apps.n == 1)
			rc = build_one(r, &apps.v[0], jobs, p, e);
		else
			rc = build_many(r, apps.v, apps.n, jobs, p, e);
	}
	progress_free(p);
	free(apps.v);
	arena_fini(&apps.arena);
	return rc;
}

int cmd_image_build(const struct command *self, int argc, char **argv, struct err *e)
{
	struct build_request r = {0};
	const struct option_spec options[] = {
		{"all", 'a', OPTION_FLAG, NULL,
			"every app in manifests/, or of those named every entry of the matrix",
			&r.all},
		{"locked", 0, OPTION_FLAG, NULL,
			"fail when anything is other than when the lock was made", &r.locked},
		{"jobs", 'j', OPTION_STRING, "N", "so many apps, or steps of one, at a time",
			&r.jobs},
		{"test", 0, OPTION_FLAG, NULL, "run its tests: an image that fails goes nowhere",
			&r.test},
		{"push", 0, OPTION_STRING, "REF",
			"send the image there; REF/ gets NAME:VERSION behind it", &r.push},
		{"plain-http", 0, OPTION_FLAG, NULL, "push, and ask the shared cache, without TLS",
			&r.plain_http},
		APP_CHOICE_OPTIONS(r.choice),
		{"secret", 0, OPTION_LIST, "ID=FILE",
			"a file for steps and sources of models that name it", &r.secrets},
		{"accept-license", 0, OPTION_LIST, "ID", "accept the licence of a model",
			&r.accepted},
		{"cache-from", 0, OPTION_STRING, "REF",
			"a repository that may have the image of these inputs", &r.cache_from},
		{"cache-to", 0, OPTION_STRING, "REF", "put it into this repository", &r.cache_to},
		{"no-cache", 0, OPTION_FLAG, NULL, "do everything again", &r.no_cache},
		{"compression", 0, OPTION_STRING, "CODEC",
			"zstd, gzip or none instead of the manifest's", &r.compression},
		{"format", 0, OPTION_STRING, "FORMAT", "table or json: what was done", &r.format},
		{"progress", 0, OPTION_STRING, "MODE", "auto, plain, json or none", &r.progress},
		{"timings", 0, OPTION_FLAG, NULL, "print 'timing STAGE N ms' lines", &r.timings},
		{"quiet", 'q', OPTION_FLAG, NULL, "print the manifest's digest only", &r.quiet},
		{0},
	};
	/* Steps run programs that come from packages: our own file must be out of their reach.
	 * Before the options are parsed, which moves the words that are handed on. */
	bool ready = geteuid() != 0 || test_protect(argv, e) == 0;
	int n = ready ? options_parse(self, options, argc, argv, false, e) : -1;
	int rc = n >= 0 ? build(&r, argv + n, argc - n, e) : -1;

	option_list_fini(&r.choice.vars);
	option_list_fini(&r.secrets);
	option_list_fini(&r.accepted);
	return rc;
}
