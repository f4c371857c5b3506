/* svrun-oci: the OCI runtime for engines. Options, the table of verbs, errors as engines read them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/self.h"
#include "svrun/oci.h"
#include "svrun/supervise.h"

static const struct oci_verb verbs[] = {
	{{"create", "ID", "make a container, up to but without its program", 1, 1,
		 .full = "svrun-oci create"},
		true, oci_create},
	{{"start", "ID", "run the program of a created container", 1, 1, .full = "svrun-oci start"},
		false, oci_start},
	{{"run", "ID", "create, start, wait for the end, and delete", 1, 1,
		 .full = "svrun-oci run"},
		true, oci_run},
	{{"exec", "ID [COMMAND [ARG...]]", "run one more process in a container", 1, -1,
		 .full = "svrun-oci exec"},
		true, oci_exec},
	{{"state", "ID", "print the state of a container as JSON", 1, 1, .full = "svrun-oci state"},
		false, oci_state},
	{{"list", "", "list containers", 0, 0, .full = "svrun-oci list"}, false, oci_list},
	{{"ps", "ID [PS-OPTION...]", "list the processes of a container", 1, -1,
		 .full = "svrun-oci ps"},
		false, oci_ps},
	{{"kill", "ID [SIGNAL]", "send a signal (SIGTERM) to a container", 1, 2,
		 .full = "svrun-oci kill"},
		false, oci_kill},
	{{"delete", "ID", "remove what a container has left", 1, 1, .full = "svrun-oci delete"},
		false, oci_delete},
	{{"pause", "ID", "freeze all processes of a container", 1, 1, .full = "svrun-oci pause"},
		false, oci_pause},
	{{"resume", "ID", "undo pause", 1, 1, .full = "svrun-oci resume"}, false, oci_resume},
	{{"update", "ID", "change a container's limits", 1, 1, .full = "svrun-oci update"}, false,
		oci_update},
	{{"events", "ID", "tell what a container uses, and when it runs out of memory", 1, 1,
		 .full = "svrun-oci events"},
		false, oci_events},
	{{"checkpoint", "ID", "save a running container", 1, 1, .full = "svrun-oci checkpoint"},
		false, oci_checkpoint},
	{{"restore", "ID", "start a container from what checkpoint saved", 1, 1,
		 .full = "svrun-oci restore"},
		true, oci_restore},
	{{"spec", "", "write an example config.json", 0, 0, .full = "svrun-oci spec"}, false,
		oci_spec},
	{{"features", "", "print what this runtime can do as JSON", 0, 0,
		 .full = "svrun-oci features"},
		false, oci_features},
};
enum { VERBS = sizeof(verbs) / sizeof(verbs[0]) };

static const struct oci_verb *find(const char *name)
{
	for (size_t i = 0; i < VERBS; i++)
		if (str_eq(verbs[i].c.name, name))
			return &verbs[i];
	return NULL;
}

static int unknown(const char *name, struct err *e)
{
	const char *names[VERBS + 1] = {NULL}, *near;

	for (size_t i = 0; i < VERBS; i++)
		names[i] = verbs[i].c.name;
	near = str_nearest(name, names);
	err_set(e, ERR_USAGE, "unknown command '%s'", name);
	if (near)
		err_hint(e, "did you mean '%s'?", near);
	return err_hint(e, "see svrun-oci --help");
}

static void print_version(void)
{
	puts("svrun-oci version " SVRUN_VERSION "\nspec: " SPEC_VERSION);
}

/* ---- options before the verb ---- */

struct global {
	struct oci oci;
	const char *cgroup_manager, *rootless;
	bool version;
	int first; /* of the verb, in argv */
};

static char *summary(void)
{
	auto_buf struct buf b = BUF_INIT(8192);

	buf_printf(&b, "An OCI runtime: runs containers from bundles, for engines.\n\nverbs:");
	for (size_t i = 0; i < VERBS; i++)
		buf_printf(&b, "\n  %-10s %s", verbs[i].c.name, verbs[i].c.summary);
	buf_printf(&b, "\n  %-10s %s", "version", "print the version");
	buf_printf(&b, "\n  %-10s %s", "help", "tell more about a verb");
	return steal_ptr(&b.data);
}

static int one_of(const char *option, const char *value, const char *const *good, struct err *e)
{
	if (!value)
		return 0;
	for (size_t i = 0; good[i]; i++)
		if (str_eq(value, good[i]))
			return 0;
	return err_set(e, ERR_USAGE, "%s: unknown value '%s'", option, value);
}

static int check(struct global *g, struct err *e)
{
	static const char *const formats[] = {"text", "json", NULL};
	static const char *const managers[] = {"cgroupfs", "systemd", "disabled", NULL};
	static const char *const choices[] = {"true", "false", "auto", NULL};
	const char *format = g->oci.log_format;

	g->oci.log_format = NULL; /* an error about it is text */
	if (one_of("--log-format", format, formats, e) < 0 ||
		one_of("--cgroup-manager", g->cgroup_manager, managers, e) < 0 ||
		one_of("--rootless", g->rootless, choices, e) < 0)
		return -1;
	g->oci.log_format = format;
	if (g->cgroup_manager && str_eq(g->cgroup_manager, "systemd"))
		g->oci.systemd_cgroup = true;
	g->oci.no_cgroup = g->cgroup_manager && str_eq(g->cgroup_manager, "disabled");
	return 0;
}

static int parse(struct global *g, int argc, char **argv, struct err *e)
{
	auto_free char *help = summary();
	const struct command self = {"svrun-oci", "VERB ...", help, 0, -1, .full = "svrun-oci"};
	const struct option_spec options[] = {
		{"root", 0, OPTION_STRING, "DIR", "where state is kept (/run/svrun-oci)",
			&g->oci.root_path},
		{"log", 0, OPTION_STRING, "FILE", "append errors to FILE too", &g->oci.log},
		{"log-format", 0, OPTION_STRING, "FORMAT", "text or json", &g->oci.log_format},
		{"systemd-cgroup", 0, OPTION_FLAG, NULL,
			"have systemd make cgroups: cgroupsPath is SLICE:PREFIX:NAME",
			&g->oci.systemd_cgroup},
		{"cgroup-manager", 0, OPTION_STRING, "MANAGER",
			"cgroupfs, systemd or disabled: none is made", &g->cgroup_manager},
		{"criu", 0, OPTION_STRING, "FILE", "the criu program", &g->oci.criu},
		{"cdi-spec-dir", 0, OPTION_LIST, "DIR",
			"where CDI specs are (/etc/cdi, /var/run/cdi); may be given again",
			&g->oci.cdi_dirs},
		{"cdi-allow-hook", 0, OPTION_LIST, "FILE",
			"a program that CDI specs may run as a hook; may be given again",
			&g->oci.cdi_hooks},
		{"no-cdi", 0, OPTION_FLAG, NULL,
			"annotations cdi.k8s.io/* ask for nothing; hooks are run as they are",
			&g->oci.no_cdi},
		{"rootless", 0, OPTION_STRING, "WORD",
			"true, false or auto: changes nothing, we see who runs us", &g->rootless},
		{"debug", 0, OPTION_FLAG, NULL, "log where errors come from", &g->oci.debug},
		{"version", 'v', OPTION_FLAG, NULL, "print the version", &g->version},
		{0},
	};

	g->first = options_parse(&self, options, argc, argv, true, e);
	return g->first < 0 ? -1 : check(g, e);
}

/* ---- the end ---- */

/* A text as JSON, in quotes. Names in it may be no UTF-8. */
static char *quoted(const char *text)
{
	auto_free char *copy = mem_strdup(text);
	json_t *s;
	char *q;

	if (!str_utf8(copy, strlen(copy)))
		for (char *p = copy; *p; p++)
			if ((unsigned char)*p >= 0x80)
				*p = '?';
	s = json_string(copy);
	q = json_dumps(s, JSON_ENCODE_ANY);
	json_decref(s);
	return q;
}

/* One line as runc logs it: engines read the last one that has "error". */
static char *log_line(const struct oci *o, const char *level, const char *text)
{
	auto_free char *msg = quoted(text);
	time_t now = time(NULL);
	char when[32];
	struct tm tm;

	if (!gmtime_r(&now, &tm) || strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		when[0] = '\0';
	if (o->log_format && str_eq(o->log_format, "json"))
		return mem_printf(
			"{\"level\":\"%s\",\"msg\":%s,\"time\":\"%s\"}\n", level, msg, when);
	return mem_printf("time=\"%s\" level=%s msg=%s\n", when, level, msg);
}

/* docker finds out by "permission denied" and "no such file or directory", in small letters as
 * runc's language has them, whether a program could not be run or is not there. */
static char *engine_words(const struct err *e)
{
	char *text = mem_strdup(e->text);
	const char *reason = e->sys ? strerror(e->sys) : "";
	size_t n = strlen(text), tail = strlen(reason);

	if (tail > 0 && str_ends(text, reason) && reason[0] >= 'A' && reason[0] <= 'Z')
		text[n - tail] = (char)(reason[0] - 'A' + 'a');
	return text;
}

static void append(const struct oci *o, const char *lines)
{
	auto_fd int fd = sys_open(o->log, O_WRONLY | O_CREAT | O_APPEND, 0644);

	if (fd < 0 || sys_write_all(fd, lines, strlen(lines)) < 0)
		fprintf(stderr, "svrun-oci: cannot write to --log %s: %m\n", o->log);
}

/* The file is there from the start, also when nothing goes wrong. */
static void log_begin(const struct oci *o, int argc, char **argv)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);
	auto_free char *line = NULL;

	if (o->debug) {
		for (int i = 0; i < argc && b.len < b.max / 2; i++)
			buf_printf(&b, "%s%.1000s", i ? " " : "", argv[i]);
		line = log_line(o, "debug", b.data);
	}
	if (o->log)
		append(o, line ? line : "");
	else if (line)
		fputs(line, stderr);
}

static void log_error(const struct oci *o, const struct err *e)
{
	auto_free char *where = mem_printf("at %s:%d", e->file, e->line);
	auto_free char *at = log_line(o, "debug", where);
	auto_free char *text = engine_words(e);
	auto_free char *line = log_line(o, "error", text);
	auto_free char *both = mem_printf("%s%s", o->debug ? at : "", line);

	append(o, both);
}

static void report(const struct oci *o, const struct err *e)
{
	if (o->log)
		log_error(o, e);
	if (!o->log && o->log_format && str_eq(o->log_format, "json")) {
		auto_free char *line = log_line(o, "error", e->text);

		fputs(line, stderr);
		return;
	}
	err_print(e, "svrun-oci");
}

static int dispatch(struct global *g, int argc, char **argv, struct err *e)
{
	static char help[] = "--help";
	char **words = argv + g->first;
	int n = argc - g->first;
	const struct oci_verb *v;

	if (n > 0 && str_eq(words[0], "help")) {
		char *again[] = {argv[0], help, NULL};

		if (n == 1) {
			struct global all = {.first = 0};

			return parse(&all, 2, again, e);
		}
		words++;
		n = 2;
		v = find(words[0]);
		again[0] = words[0];
		return v ? v->run(&g->oci, &v->c, n, again, e) : unknown(words[0], e);
	}
	if (g->version || (n > 0 && str_eq(words[0], "version"))) {
		print_version();
		return 0;
	}
	if (n == 0) {
		err_set(e, ERR_USAGE, "no verb given");
		return err_hint(e, "see svrun-oci --help");
	}
	v = find(words[0]);
	if (!v)
		return unknown(words[0], e);
	if (v->protect && self_protect(argv, e) < 0)
		return -1;
	log_begin(&g->oci, argc, argv);
	return v->run(&g->oci, &v->c, n, words, e);
}

int main(int argc, char **argv)
{
	struct global g = {.first = 0};
	struct err e = {0};
	int rc = supervise_streams_open(&e);

	if (rc == 0)
		rc = parse(&g, argc, argv, &e);
	if (rc == 0)
		rc = dispatch(&g, argc, argv, &e);
	if (fflush(stdout) != 0 && rc == 0)
		rc = err_sys(&e, "write stdout");
	else if (ferror(stdout) && rc == 0)
		rc = err_set(&e, ERR_SYSTEM, "write stdout: not all could be written");
	if (e.kind != ERR_NONE)
		report(&g.oci, &e);
	option_list_fini(&g.oci.cdi_dirs);
	option_list_fini(&g.oci.cdi_hooks);
	return rc >= 0 ? rc : e.kind == ERR_NONE ? 0 : 1;
}
