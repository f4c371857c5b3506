#include "svrun/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/build.h"
#include "runtime/self.h"
#include "svrun/enter.h"
#include "svrun/test-run.h"
#include "svrun/test-subject.h"

enum { REPORT_MAX = 1 << 30 };

static const char *const stages[] = {"plan", "image", "run"};

struct testing {
	const struct test_options *o;
	struct test_source from;
	struct store store;
	bool has_store, has_gpu;
	int signals, ended_by;
	const char *name;      /* of the image, for reports */
	struct test_result *v; /* in the manifest's order */
	const char **modes;    /* of the image that each is for; NULL: that of the choice */
	bool *done;
	size_t n;
};

static FILE *out_of(const struct testing *x)
{
	return x->o->out ? x->o->out : stdout;
}

/* ---- which tests ---- */

static bool is_wanted(const struct testing *x, const struct manifest_test *t)
{
	const struct option_list *only = x->o->only;
	const char *mode = x->from.choice.mode;

	if (x->o->stage && !str_eq(x->o->stage, test_stage_name(t->stage)))
		return false;
	if (mode && t->mode && !str_eq(mode, t->mode))
		return false;
	for (size_t i = 0; only && i < only->n; i++)
		if (str_eq(only->v[i], t->id))
			return true;
	return !only || only->n == 0;
}

static int check_only(const struct testing *x, const struct manifest *m, struct err *e)
{
	auto_free const char **ids = mem_array(m->ntests + 1, sizeof(*ids));

	for (size_t i = 0; i < m->ntests; i++)
		ids[i] = m->tests[i].id;
	for (size_t i = 0; x->o->only && i < x->o->only->n; i++) {
		const char *id = x->o->only->v[i], *near = str_nearest(id, ids);
		bool found = false;

		for (size_t k = 0; k < m->ntests; k++)
			found = found || str_eq(ids[k], id);
		if (found)
			continue;
		err_set(e, ERR_USAGE, "no test is called '%.80s'", id);
		return near ? err_hint(e, "did you mean %s?", near) : -1;
	}
	return 0;
}

static bool has_mode(const struct manifest *m, const char *mode)
{
	for (size_t i = 0; i < m->nmodes; i++)
		if (str_eq(m->modes[i].name, mode))
			return true;
	return false;
}

/* What runs, runs in the mode "cpu" where the image wants a GPU and there is none. */
static const char *mode_of(
	const struct testing *x, const struct manifest *m, const struct manifest_test *t)
{
	if (t->mode || x->from.choice.mode)
		return t->mode;
	if (t->stage == STAGE_RUN && !t->needs_gpu && !x->has_gpu && m->gpu.present &&
		m->gpu.mode != GPU_NONE && has_mode(m, "cpu"))
		return "cpu";
	return NULL;
}

static int choose(struct testing *x, const struct manifest *m, struct err *e)
{
	if (check_only(x, m, e) < 0)
		return -1;
	x->v = mem_array(m->ntests, sizeof(*x->v));
	x->modes = mem_array(m->ntests, sizeof(*x->modes));
	x->done = mem_array(m->ntests, sizeof(*x->done));
	for (size_t i = 0; i < m->ntests; i++)
		if (is_wanted(x, &m->tests[i])) {
			x->modes[x->n] = mode_of(x, m, &m->tests[i]);
			x->v[x->n++].test = &m->tests[i];
		}
	return 0;
}

/* ---- one test ---- */

/* A skipped test that is required has failed: nobody has seen it pass. */
static void settle_skip(const struct testing *x, struct test_result *r)
{
	if (r->verdict != TEST_SKIPPED || !r->test->required || r->test->disabled ||
		x->o->allow_skip)
		return;
	auto_free char *why = steal_ptr(&r->text);

	test_fail(r, "required, but skipped: %s (--allow-skip: no failure)", why);
	r->unseen = true;
}

static void print_result(const struct testing *x, const struct test_result *r)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);

	if (x->o->json || (x->o->quiet && r->verdict == TEST_PASSED))
		return;
	test_lines(r, &b);
	fwrite(b.data, 1, b.len, out_of(x));
	fflush(out_of(x));
}

static void finish(struct testing *x, size_t i, double begun)
{
	struct test_result *r = &x->v[i];

	x->done[i] = true;
	r->seconds = (sys_now_ms() - begun) / 1000;
	settle_skip(x, r);
	print_result(x, r);
}

/* Nothing to be done for it: 1. */
static bool skip(const struct testing *x, struct test_result *r)
{
	if (r->test->disabled)
		test_skip(r, "disabled");
	else if (r->test->needs_gpu && !x->has_gpu)
		test_skip(r, "it needs a GPU, and this host has none");
	else
		return false;
	return true;
}

static bool needs_running(const struct manifest_test *t)
{
	return t->stage == STAGE_RUN &&
	       (t->type == TEST_EXEC || t->type == TEST_HTTP || t->type == TEST_PORT);
}

static int test_one(struct testing *x, struct test_subject *s, struct test_run *run,
	struct test_result *r, struct err *e)
{
	struct tested what;

	if (needs_running(r->test)) {
		test_subject_unload(s); /* no process that is forked may have the pool open */
		return test_run_one(run, r, e);
	}
	if (r->test->stage != STAGE_PLAN && test_subject_load(s, &x->store, e) < 0)
		return -1;
	what = test_subject_tested(s);
	if (r->test->stage == STAGE_PLAN) /* it sees no image, even when one is open */
		what = (struct tested){.m = what.m, .l = what.l};
	return image_test(r, &what, e);
}

/* A test that could not be carried out has failed; only who is interrupted stops. */
static int test_once(struct testing *x, struct test_subject *s, struct test_run *run,
	struct test_result *r, struct err *e)
{
	struct err fault = {0};
	struct signalfd_siginfo info;

	if (test_one(x, s, run, r, &fault) == 0)
		return 0;
	if (x->signals >= 0 && sys_read(x->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		x->ended_by = (int)info.ssi_signo;
		return err_set(e, ERR_DENIED, "interrupted");
	}
	test_fail(r, "%s", fault.text);
	return 0;
}

/* ---- all tests of one image ---- */

static bool same_mode(const char *a, const char *b)
{
	return a == b || (a && b && str_eq(a, b));
}

static bool is_left(const struct testing *x, size_t i, const char *mode, bool image)
{
	return !x->done[i] && same_mode(x->modes[i], mode) &&
	       (x->v[i].test->stage != STAGE_PLAN) == image;
}

static char *make_logs(struct testing *x, const struct manifest *m, const char *mode, struct err *e)
{
	auto_free char *folder = build_log_folder(m);
	auto_free char *path =
		mem_printf("%s/tests%s%s", folder, mode ? "-" : "", mode ? mode : "");

	if (sys_mkdir_p(x->store.fd, path, 0700) < 0) {
		err_sys(e, "create %s/%s", x->store.path, path);
		return NULL;
	}
	return mem_printf("%s/%s/", x->store.path, path);
}

static int run_all(
	struct testing *x, struct test_subject *s, const char *mode, bool image, struct err *e)
{
	char digest[DIGEST_TEXT + 1];
	auto_free char *logs = image ? make_logs(x, test_subject_manifest(s), mode, e) : NULL;
	struct test_run run = {.s = &x->store,
		.signals = x->signals,
		.logs = logs,
		.m = test_subject_manifest(s),
		.accepted = x->o->accepted,
		.has_gpu = x->has_gpu,
		.image = digest_text(&s->digest, digest)};
	int rc = image && !logs ? -1 : 0;

	for (size_t i = 0; rc == 0 && i < x->n; i++) {
		double begun = sys_now_ms();

		if (!is_left(x, i, mode, image))
			continue;
		if (!skip(x, &x->v[i]))
			rc = test_once(x, s, &run, &x->v[i], e);
		if (rc == 0)
			finish(x, i, begun);
	}
	test_run_fini(&run);
	return rc;
}

static void skip_all(struct testing *x, const char *mode, bool image)
{
	for (size_t i = 0; i < x->n; i++)
		if (is_left(x, i, mode, image)) {
			if (!skip(x, &x->v[i]))
				test_skip(&x->v[i],
					"the image in mode %s was not built: svrun image lock and "
					"build, with --mode %s",
					mode, mode);
			finish(x, i, sys_now_ms());
		}
}

static int not_built(const struct testing *x, const struct test_subject *s, struct err *e)
{
	const char *word = x->from.word;

	err_set(e, ERR_NOT_FOUND, "the image %s was not built", s->name);
	if (strpbrk(word, "/:"))
		return err_hint(e, "svrun image build %s", word);
	return err_hint(e, "svrun image build %s; '%s' means the folder here, '%s:TAG' an image",
		word, word, word);
}

/* The tests of one mode, before or with its image. */
static int test_mode(struct testing *x, const char *mode, bool image, struct err *e)
{
	struct test_subject s;
	int rc = test_subject_open(&s, &x->from, mode, x->has_store ? &x->store : NULL, e);

	if (rc == 0)
		skip_all(x, mode, image);
	if (rc <= 0)
		return rc;
	rc = image ? test_subject_find(&s, &x->store, e) : 1;
	if (rc > 0) {
		rc = run_all(x, &s, mode, image, e);
	} else if (rc == 0 && mode) {
		skip_all(x, mode, image);
	} else if (rc == 0) {
		rc = not_built(x, &s, e);
	}
	test_subject_close(&s);
	return rc;
}

/* Where tests of the image itself come behind those of a mode: without it, what these say is of no
 * interest. */
static int check_built(struct testing *x, struct err *e)
{
	size_t modes = 0, i = 0;
	struct test_subject s;
	int rc;

	for (; i < x->n && !is_left(x, i, NULL, true); i++)
		modes += x->v[i].test->stage != STAGE_PLAN;
	if (i == x->n || !modes)
		return 0;
	rc = test_subject_open(&s, &x->from, NULL, &x->store, e);
	if (rc <= 0)
		return rc;
	rc = test_subject_find(&s, &x->store, e);
	if (rc == 0)
		rc = not_built(x, &s, e);
	test_subject_close(&s);
	return rc < 0 ? -1 : 0;
}

/* Those of the plan first, then those of the images, in the order in which their modes come. */
static int test_all(struct testing *x, struct err *e)
{
	for (int image = 0; image < 2; image++) {
		if (image && check_built(x, e) < 0)
			return -1;
		for (size_t i = 0; i < x->n; i++)
			if (is_left(x, i, x->modes[i], image) &&
				test_mode(x, x->modes[i], image, e) < 0)
				return -1;
	}
	return 0;
}

/* ---- reports ---- */

static size_t count(const struct testing *x, enum test_verdict v)
{
	size_t n = 0;

	for (size_t i = 0; i < x->n; i++)
		n += x->v[i].verdict == v;
	return n;
}

static size_t count_unseen(const struct testing *x)
{
	size_t n = 0;

	for (size_t i = 0; i < x->n; i++)
		n += x->v[i].unseen;
	return n;
}

static int write_junit(const struct testing *x, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(REPORT_MAX);

	test_junit(x->v, x->n, x->name, &b);
	return file_write(AT_FDCWD, x->o->junit, b.data, b.len, 0644, e);
}

static int report(const struct testing *x, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(REPORT_MAX);

	if (x->o->json) {
		test_json_report(x->v, x->n, x->name, &b);
		fwrite(b.data, 1, b.len, out_of(x));
	} else if (!x->o->quiet) {
		size_t unseen = count_unseen(x);

		fprintf(out_of(x), "%zu passed, %zu failed, %zu skipped", count(x, TEST_PASSED),
			count(x, TEST_FAILED), count(x, TEST_SKIPPED) + unseen);
		if (unseen)
			fprintf(out_of(x), " (%zu of them required: failed)", unseen);
		fputc('\n', out_of(x));
	}
	return x->o->junit ? write_junit(x, e) : 0;
}

/* ---- all of it ---- */

/* Blocked from here on: whoever waits looks at the descriptor, so that what was started is ended.
 */
static int open_signals(sigset_t *before, struct err *e)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, before) < 0)
		return err_sys(e, "block signals");
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_sys(e, "signalfd") : fd;
}

static int open_store(struct testing *x, struct err *e)
{
	struct config c;
	int rc;

	if (config_load(&c, e) < 0)
		return -1;
	rc = store_enter_at(&x->store, &c, false, e);
	x->has_store = rc == 0;
	config_fini(&c);
	return rc;
}

static int test_chosen(struct testing *x, const struct manifest *m, struct err *e)
{
	sigset_t before;
	int rc;

	if (choose(x, m, e) < 0)
		return -1;
	x->signals = open_signals(&before, e);
	if (x->signals < 0)
		return -1;
	rc = test_all(x, e);
	sys_close_ref(&x->signals);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return rc < 0 ? -1 : report(x, e);
}

static int test_source(struct testing *x, struct err *e)
{
	bool plan_only = x->o->stage && str_eq(x->o->stage, "plan") && x->from.is_app;
	struct test_subject s;
	int rc = plan_only ? 0 : open_store(x, e);

	if (rc == 0)
		rc = test_subject_open(&s, &x->from, NULL, x->has_store ? &x->store : NULL, e);
	if (rc > 0) {
		x->name = s.name;
		rc = test_chosen(x, test_subject_manifest(&s), e);
		for (size_t i = 0; i < x->n; i++)
			test_result_fini(&x->v[i]);
		test_subject_close(&s);
	}
	if (x->has_store)
		store_close(&x->store);
	return rc;
}

int test_app(const char *app, const struct app_choice *choice, const struct test_options *o,
	int *status, struct err *e)
{
	struct testing x = {.o = o,
		.from = {.word = app,
			.is_app = test_word_is_app(app),
			.choice = *choice,
			.image = o->image},
		.signals = -1};
	struct err fault = {0};
	int rc = test_has_gpu(e);

	if (rc < 0)
		return -1;
	x.has_gpu = rc > 0;
	if (!x.from.is_app &&
		(choice->mode || choice->matrix || choice->platform || choice->vars.n))
		return err_set(e, ERR_USAGE,
			"'%s' is no app: --mode, --matrix, --platform and --var choose one of its "
			"images",
			app);
	rc = test_source(&x, &fault);
	*status = count(&x, TEST_FAILED) > 0;
	free(x.v);
	free(x.modes);
	free(x.done);
	if (rc < 0 && x.ended_by) {
		err_print(&fault, "svrun");
		*status = 128 + x.ended_by;
		return 0;
	}
	if (rc < 0 && e)
		*e = fault;
	return rc < 0 ? -1 : 0;
}

int test_protect(char *const *argv, struct err *e)
{
	size_t n = 0;

	while (argv[n])
		n++;
	auto_free char **again = mem_array(n + 3, sizeof(*again));
	auto_free char *program = mem_strdup("svrun"), *image = mem_strdup("image");
	again[0] = program;
	again[1] = image;
	memcpy(again + 2, argv, n * sizeof(*argv));
	return self_protect(again, e);
}

static int run_command(const char *app, const struct app_choice *c, struct test_options *o,
	const char *format, int *status, struct err *e)
{
	size_t i = 0;

	if (format && !str_eq(format, "text") && !str_eq(format, "json"))
		return err_set(
			e, ERR_USAGE, "--format: expected text or json, got '%.80s'", format);
	while (o->stage && i < 3 && !str_eq(o->stage, stages[i]))
		i++;
	if (i == 3)
		return err_set(e, ERR_USAGE, "--stage: expected plan, image or run, got '%.80s'",
			o->stage);
	o->json = format && str_eq(format, "json");
	return test_app(app, c, o, status, e);
}

int cmd_image_test(const struct command *self, int argc, char **argv, struct err *e)
{
	struct app_choice choice = {0};
	struct option_list only = {0}, accepted = {0};
	struct test_options o = {.only = &only, .accepted = &accepted};
	const char *format = NULL;
	const struct option_spec options[] = {
		{"stage", 0, OPTION_STRING, "STAGE", "only those of plan, image or run", &o.stage},
		{"only", 0, OPTION_LIST, "ID", "only this test; may be given again", &only},
		{"junit", 0, OPTION_STRING, "FILE", "write a JUnit report", &o.junit},
		{"format", 0, OPTION_STRING, "FORMAT", "text (default) or json", &format},
		{"allow-skip", 0, OPTION_FLAG, NULL,
			"a required test that cannot be run here has not failed", &o.allow_skip},
		{"accept-license", 0, OPTION_LIST, "ID", "accept the licence of a model",
			&accepted},
		APP_CHOICE_OPTIONS(choice),
		{0},
	};
	int status = 0, rc, n;

	if (test_protect(argv, e) < 0)
		return -1;
	n = options_parse(self, options, argc, argv, false, e);
	rc = n < 0 ? -1 : run_command(argv[n], &choice, &o, format, &status, e);
	option_list_fini(&only);
	option_list_fini(&accepted);
	option_list_fini(&choice.vars);
	return rc < 0 ? -1 : status;
}
