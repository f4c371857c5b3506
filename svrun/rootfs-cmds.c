/* svrun image import, svrun image export. */
#include "svrun/command.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/export.h"
#include "images/import.h"
#include "images/progress.h"
#include "svrun/enter.h"
#include "svrun/options.h"

/* ---- the image's configuration (image-spec config.md) ---- */

enum member_kind { TEXT, LIST, SET, MAP };

/* TEXT: a string; LIST: of strings; SET: an object of empty objects; MAP: of strings. */
static const struct member {
	const char *key;
	enum member_kind kind;
} members[] = {
	{"Cmd", LIST},
	{"Entrypoint", LIST},
	{"Env", LIST},
	{"ExposedPorts", SET},
	{"Labels", MAP},
	{"StopSignal", TEXT},
	{"User", TEXT},
	{"Volumes", SET},
	{"WorkingDir", TEXT},
};
enum { NMEMBERS = sizeof(members) / sizeof(members[0]) };

static const struct member *find_member(const char *key, size_t n, struct err *e)
{
	const char *names[NMEMBERS + 1] = {NULL}, *near;
	auto_free char *text = mem_alloc(n + 1);

	memcpy(text, key, n);
	for (size_t i = 0; i < NMEMBERS; i++) {
		names[i] = members[i].key;
		if (str_eq(text, members[i].key))
			return &members[i];
	}
	near = str_nearest(text, names);
	err_set(e, ERR_USAGE, "--config: no member '%s' in an image's configuration", text);
	if (near)
		err_hint(e, "did you mean %s?", near);
	err_hint(e, "Cmd, Entrypoint, Env, ExposedPorts, Labels, StopSignal, User, Volumes, "
		    "WorkingDir");
	return NULL;
}

static bool is_strings(const json_t *v)
{
	const json_t *o;
	size_t i;

	json_array_foreach (v, i, o)
		if (!json_is_string(o))
			return false;
	return json_is_array(v);
}

static bool is_object_of(json_t *v, bool strings)
{
	const char *key;
	json_t *o;

	json_object_foreach (v, key, o)
		if (strings ? !json_is_string(o) : !json_is_object(o) || json_object_size(o) > 0)
			return false;
	return json_is_object(v);
}

static bool fits(json_t *v, enum member_kind kind)
{
	return kind == LIST ? is_strings(v) : is_object_of(v, kind == MAP);
}

static int set_member(json_t *config, const char *assignment, struct err *e)
{
	static const char *const wants[] = {[LIST] = "a JSON array of strings",
		[SET] = "a JSON object whose values are {}",
		[MAP] = "a JSON object of strings"};
	const char *eq = strchr(assignment, '=');
	const struct member *m;
	json_t *v;

	if (!eq)
		return err_set(e, ERR_USAGE, "--config: expected KEY=VALUE, got '%s'", assignment);
	m = find_member(assignment, (size_t)(eq - assignment), e);
	if (!m)
		return -1;
	v = m->kind == TEXT ? json_string(eq + 1)
			    : json_loads(eq + 1, JSON_REJECT_DUPLICATES, NULL);
	if (v && (m->kind == TEXT || fits(v, m->kind)))
		return json_object_set_new(config, m->key, v);
	json_decref(v);
	return err_set(e, ERR_USAGE, "--config %s: expected %s, got '%s'", m->key,
		m->kind == TEXT ? "text in UTF-8" : wants[m->kind], eq + 1);
}

/* What --cmd and --entrypoint take: a JSON array, or words with blanks between. */
static int set_words(json_t *config, const char *key, const char *text, struct err *e)
{
	json_t *v;

	if (!text)
		return 0;
	if (text[0] == '[') {
		v = json_loads(text, 0, NULL);
		if (v && is_strings(v))
			return json_object_set_new(config, key, v);
		json_decref(v);
		return err_set(
			e, ERR_USAGE, "%s: expected a JSON array of strings, got '%s'", key, text);
	}
	v = json_array();
	for (const char *p = text + strspn(text, " "); *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");

		json_array_append_new(v, json_stringn(p, n));
		p += n;
	}
	return json_object_set_new(config, key, v);
}

struct import_request {
	const char *input, *name, *cmd, *entrypoint, *workdir, *arch, *compression, *progress;
	struct option_list config, env;
	enum codec codec;
};

static json_t *env_of(const struct option_list *l, struct err *e)
{
	json_t *env = json_array();

	for (size_t i = 0; i < l->n; i++) {
		const char *eq = strchr(l->v[i], '=');

		if (eq && eq != l->v[i] && json_array_append_new(env, json_string(l->v[i])) == 0)
			continue;
		err_set(e, ERR_USAGE, "--env: expected NAME=VALUE, got '%s'", l->v[i]);
		json_decref(env);
		return NULL;
	}
	return env;
}

static int fill_config(const struct import_request *r, json_t *config, struct err *e)
{
	for (size_t i = 0; i < r->config.n; i++)
		if (set_member(config, r->config.v[i], e) < 0)
			return -1;
	if (r->env.n) {
		json_t *env = env_of(&r->env, e);

		if (!env)
			return -1;
		json_object_set_new(config, "Env", env);
	}
	if (r->workdir && r->workdir[0] != '/')
		return err_set(
			e, ERR_USAGE, "--workdir: expected an absolute path, got '%s'", r->workdir);
	if (r->workdir)
		json_object_set_new(config, "WorkingDir", json_string(r->workdir));
	return set_words(config, "Entrypoint", r->entrypoint, e) < 0
		       ? -1
		       : set_words(config, "Cmd", r->cmd, e);
}

/* As Go's GOARCH calls it, which is what images use. */
static const char *host_arch(struct utsname *u)
{
	uname(u);
	return str_eq(u->machine, "x86_64")    ? "amd64"
	       : str_eq(u->machine, "aarch64") ? "arm64"
					       : u->machine;
}

static json_t *make_config(const struct import_request *r, struct err *e)
{
	struct utsname u;
	json_t *config = json_object(),
	       *doc = json_pack("{s:s, s:s, s:o}", "architecture",
		       r->arch ? r->arch : host_arch(&u), "os", "linux", "config", config);

	if (fill_config(r, config, e) == 0)
		return doc;
	json_decref(doc);
	return NULL;
}

/* ---- import ---- */

static int import_into(struct store *s, const struct import_request *r,
	const struct image_import *how, int fd, struct err *e)
{
	struct pool *p = pool_open(s->fd, true, e);
	char text[DIGEST_TEXT + 1];
	struct digest d;
	uint64_t size;
	int rc;

	if (!p)
		return -1;
	rc = image_import(s, p, fd, how, &d, &size, e);
	if (rc == 0)
		rc = store_name_set(s, r->name, &d, size, NULL, e);
	pool_close(p);
	if (rc == 0)
		puts(digest_text(&d, text));
	return rc;
}

static int import(const struct import_request *r, struct err *e)
{
	bool pipe = str_eq(r->input, "-");
	auto_json json_t *config = make_config(r, e);
	struct image_import how = {
		.name = pipe ? "standard input" : r->input, .codec = r->codec, .config = config};
	auto_fd int fd = -1;
	struct store s;
	int rc;

	if (!config)
		return -1;
	if (pipe && isatty(STDIN_FILENO))
		return err_set(e, ERR_USAGE, "standard input is a terminal");
	fd = pipe ? -1 : sys_open(r->input, O_RDONLY, 0);
	if (!pipe && fd < 0)
		return err_sys(e, "open %s", r->input);
	if (options_progress(r->progress, false, &how.progress, e) < 0)
		return -1;
	rc = store_enter_new(&s, e);
	if (rc == 0) {
		rc = import_into(&s, r, &how, pipe ? STDIN_FILENO : fd, e);
		store_close(&s);
	}
	progress_free(how.progress);
	return rc;
}

int cmd_image_import(const struct command *self, int argc, char **argv, struct err *e)
{
	struct import_request r = {.codec = CODEC_ZSTD};
	char canonical[STORE_NAME];
	const struct option_spec options[] = {
		{"cmd", 0, OPTION_STRING, "WORDS", "what is run: words, or a JSON array", &r.cmd},
		{"entrypoint", 0, OPTION_STRING, "WORDS", "what is run before the command's words",
			&r.entrypoint},
		{"env", 'e', OPTION_LIST, "NAME=VALUE", "a variable", &r.env},
		{"workdir", 'w', OPTION_STRING, "DIR", "where the command starts", &r.workdir},
		{"config", 'c', OPTION_LIST, "KEY=VALUE",
			"any member of the OCI configuration: User=1000, Labels={...}", &r.config},
		{"arch", 0, OPTION_STRING, "ARCH", "amd64, arm64 (this machine's)", &r.arch},
		{"compression", 0, OPTION_STRING, "CODEC", "of the layer: zstd, gzip or none",
			&r.compression},
		{"progress", 0, OPTION_STRING, "MODE", "auto, plain, json, timings or none",
			&r.progress},
		{0},
	};
	int rc = -1, n = options_parse(self, options, argc, argv, false, e);

	if (n >= 0 && r.compression && codec_parse(r.compression, &r.codec) < 0) {
		err_set(e, ERR_USAGE, "--compression: expected zstd, gzip or none, got '%s'",
			r.compression);
	} else if (n >= 0) {
		r.input = argv[n];
		r.name = argv[n + 1];
		if (store_name_parse(r.name, canonical, e) == 0)
			rc = import(&r, e);
	}
	option_list_fini(&r.config);
	option_list_fini(&r.env);
	return rc;
}

/* ---- export ---- */

static int export(const char *ref, const char *output, struct progress *p, struct err *e)
{
	struct store s;
	struct image im;
	struct digest d;
	struct outlet o;
	int rc = -1;

	if (store_enter(&s, e) < 0)
		return -1;
	if (store_resolve(&s, ref, &d, e) == 0 && image_load(&im, &s, &d, e) == 0) {
		rc = outlet_open(&o, output, STDOUT_FILENO, "standard output", e);
		if (rc == 0) {
			rc = image_export(&im, &s, &o, p, e);
			if (rc == 0)
				rc = outlet_commit(&o, e);
			outlet_close(&o);
		}
		image_fini(&im);
	}
	store_close(&s);
	return rc < 0 ? err_ctx(e, "export %s", ref) : 0;
}

int cmd_image_export(const struct command *self, int argc, char **argv, struct err *e)
{
	const char *output = NULL, *mode = NULL;
	struct progress *p;
	const struct option_spec options[] = {
		{"output", 'o', OPTION_STRING, "FILE", "instead of standard output", &output},
		{"progress", 0, OPTION_STRING, "MODE", "auto, plain, json, timings or none", &mode},
		{0},
	};
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	if (output && str_eq(output, "-"))
		output = NULL;
	if (!output && isatty(STDOUT_FILENO)) {
		err_set(e, ERR_USAGE, "standard output is a terminal");
		return err_hint(e, "%s IMAGE -o FILE, or: %s IMAGE | ...", self->full, self->full);
	}
	if (options_progress(mode, false, &p, e) < 0)
		return -1;
	signal(SIGPIPE, SIG_IGN); /* a reader that goes away is an error like others */
	rc = export(argv[n], output, p, e);
	progress_free(p);
	return rc;
}
