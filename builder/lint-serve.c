/* How the program starts, and what it shows to the outside. */
#include "builder/lint-parts.h"

#include <string.h>

#include "base/str.h"
#include "builder/secrets.h"

static bool is_http(const struct manifest_port *port)
{
	return str_starts(port->protocol, "http");
}

static bool has_probe(const struct manifest_health *h)
{
	return h->startup.kind != PROBE_NONE || h->readiness.kind != PROBE_NONE;
}

/* ---- health and ports ---- */

void lint_021(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nports; i++)
		if (is_http(&p->m->ports[i]) && !has_probe(&p->m->health)) {
			lint_found(p, "/ports", "health.readiness",
				"nothing tells when port %u answers", p->m->ports[i].port);
			return;
		}
}

static void need_port(struct lint_pass *p, const char *pointer, uint32_t port)
{
	for (size_t i = 0; i < p->m->nports; i++)
		if (p->m->ports[i].port == port)
			return;
	if (port)
		lint_found(p, pointer, "one of /ports", "port %u is not among the image's ports",
			port);
}

static void check_probes(struct lint_pass *p, const char *pointer, const struct manifest_health *h)
{
	static const char *const names[] = {"startup", "readiness", "liveness"};
	const struct manifest_probe *probes[] = {&h->startup, &h->readiness, &h->liveness};

	for (size_t i = 0; i < 3; i++)
		if (probes[i]->kind == PROBE_HTTP || probes[i]->kind == PROBE_TCP)
			need_port(p,
				lint_text(p, "%s/%s/%s/port", pointer, names[i],
					probes[i]->kind == PROBE_HTTP ? "http" : "tcp"),
				probes[i]->port);
}

/* The ports of a service that others name in `after` are for these: they wait for it, inside. */
static bool is_waited_for(const struct manifest *m, const char *id)
{
	for (size_t i = 0; i < m->nservices; i++)
		for (size_t k = 0; k < m->services[i].after.n; k++)
			if (str_eq(m->services[i].after.v[k], id))
				return true;
	return false;
}

void lint_022(struct lint_pass *p)
{
	check_probes(p, "/health", &p->m->health);
	for (size_t i = 0; i < p->m->nmodes; i++)
		check_probes(p, lint_text(p, "/modes/%s/health", p->m->modes[i].name),
			&p->m->modes[i].health);
	for (size_t i = 0; i < p->m->nservices; i++) {
		const struct manifest_service *s = &p->m->services[i];

		if (is_waited_for(p->m, s->id))
			continue;
		for (size_t k = 0; k < s->nports; k++)
			need_port(p, lint_text(p, "/services/%zu/ports/%zu", i, k), s->ports[k]);
	}
	for (size_t i = 0; i < p->m->ntests; i++)
		if (p->m->tests[i].type == TEST_HTTP)
			need_port(
				p, lint_text(p, "/tests/%zu/request/port", i), p->m->tests[i].port);
}

void lint_024(struct lint_pass *p)
{
	static const char *const risky[] = {"notebook", "desktop", "agent", NULL};

	for (size_t i = 0; i < p->m->nports; i++)
		if (is_http(&p->m->ports[i]) && p->m->ports[i].auth == AUTH_NONE &&
			p->m->category && lint_listed(p->m->category, risky))
			lint_found(p, lint_text(p, "/ports/%zu", i), "\"auth\": \"token\"",
				"whoever reaches port %u of a %s can run anything in it",
				p->m->ports[i].port, p->m->category);
}

void lint_025(struct lint_pass *p)
{
	size_t http = 0;

	for (size_t i = 0; i < p->m->nports; i++) {
		if (p->m->ports[i].primary)
			return;
		http += is_http(&p->m->ports[i]);
	}
	if (http > 1)
		lint_found(p, "/ports", "\"primary\": true", "none of %zu web ports is the primary",
			http);
}

/* ---- what is installed when it starts ---- */

static const char *installer_in(const char *text)
{
	static const char *const parts[] = {"pip install", "pip3 install", "uv pip install",
		"apt-get install", "apt install", "npm install", "npm ci", "conda install",
		"mamba install", "git clone", "huggingface-cli download", "hf download", NULL};

	for (size_t i = 0; parts[i]; i++)
		if (strstr(text, parts[i]))
			return parts[i];
	return NULL;
}

static bool is_called(struct lint_pass *p, const char *path)
{
	const struct strings *argv[] = {&p->m->entrypoint, &p->m->cmd};

	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < argv[i]->n; k++)
			if (str_eq(argv[i]->v[k], path))
				return true;
	return false;
}

static void check_argv(struct lint_pass *p, const char *pointer, const struct strings *argv)
{
	const char *what = installer_in(lint_join(p, argv));

	if (what)
		lint_found(p, pointer, NULL, "'%s' runs at every start", what);
}

void lint_023(struct lint_pass *p)
{
	check_argv(p, "/entrypoint", &p->m->entrypoint);
	check_argv(p, "/cmd", &p->m->cmd);
	for (size_t i = 0; i < p->m->nservices; i++)
		check_argv(p, lint_text(p, "/services/%zu/argv", i), &p->m->services[i].argv);
	for (size_t i = 0; i < p->m->nfiles; i++) {
		const struct manifest_file *f = &p->m->files[i];
		const char *what = f->inline_text && is_called(p, f->dest)
					   ? installer_in(f->inline_text)
					   : NULL;

		if (what)
			lint_found(p, lint_text(p, "/files/%zu/inline", i), NULL,
				"'%s' runs at every start", what);
	}
}

/* ---- users and secrets ---- */

static bool is_root(const char *user)
{
	return !user || str_eq(user, "root") || str_eq(user, "0") || str_starts(user, "root:") ||
	       str_starts(user, "0:");
}

void lint_070(struct lint_pass *p)
{
	if (!is_root(p->m->user))
		return;
	for (size_t i = 0; i < p->m->nservices; i++)
		if (is_root(p->m->services[i].user))
			lint_found(p, lint_text(p, "/services/%zu", i), "a user",
				"the service '%s' runs as root", p->m->services[i].id);
	if (!p->m->nservices && (p->m->entrypoint.n || p->m->cmd.n))
		lint_found(p, "/user", "a user, like 1000:1000", "the program runs as root");
}

/* "$PATH:/x", but not "$1" or a price. */
static bool names_variable(const char *s)
{
	while ((s = strchr(s, '$')))
		if (*++s == '_' || (*s >= 'A' && *s <= 'Z') || (*s >= 'a' && *s <= 'z'))
			return true;
	return false;
}

static void look_for_variables(struct lint_pass *p, const char *pointer, const struct pairs *env)
{
	for (size_t i = 0; i < env->n; i++)
		if (names_variable(env->v[i].value))
			lint_found(p, lint_below(p, pointer, env->v[i].name), NULL,
				"%s gets '%.64s' as it stands", env->v[i].name, env->v[i].value);
}

void lint_073(struct lint_pass *p)
{
	const struct manifest *m = p->m;

	look_for_variables(p, "/env", &m->env);
	for (size_t i = 0; i < m->nservices; i++)
		look_for_variables(p, lint_text(p, "/services/%zu/env", i), &m->services[i].env);
	for (size_t i = 0; i < m->nruns; i++)
		look_for_variables(p, lint_text(p, "/run/%zu/env", i), &m->runs[i].env);
	for (size_t i = 0; i < m->nmodes; i++)
		look_for_variables(
			p, lint_text(p, "/modes/%s/env", m->modes[i].name), &m->modes[i].env);
}

/* Others may write /etc/passwd: a base image, steps, what is unpacked. */
static bool others_make_users(const struct manifest *m)
{
	for (size_t i = 0; i < m->nfiles; i++)
		if (str_eq(m->files[i].dest, "/etc/passwd"))
			return true;
	return m->base.type != BASE_SCRATCH || m->nruns || m->nsources;
}

/* Of base-passwd, which is essential; what else packages make is made by few. */
static bool is_made(const struct lint_pass *p, const char *name)
{
	static const char *const debian[] = {"root", "daemon", "bin", "sys", "sync", "games", "man",
		"lp", "mail", "news", "uucp", "proxy", "www-data", "backup", "list", "irc", "gnats",
		"nobody", "_apt", NULL};

	for (size_t i = 0; i < p->m->nusers; i++)
		if (str_eq(p->m->users[i].name, name))
			return true;
	return p->m->apt.present ? lint_listed(name, debian) : str_eq(name, "root");
}

static void check_user(struct lint_pass *p, const char *pointer, const char *user)
{
	const char *name = user ? lint_text(p, "%.*s", (int)strcspn(user, ":"), user) : "0";

	if (name[strspn(name, "0123456789")] && !is_made(p, name))
		lint_found(p, pointer, "one of users", "nothing makes the user '%s'%s", name,
			p->m->apt.present ? ", unless a package does" : "");
}

void lint_074(struct lint_pass *p)
{
	if (others_make_users(p->m))
		return;
	check_user(p, "/user", p->m->user);
	for (size_t i = 0; i < p->m->nservices; i++)
		check_user(p, lint_text(p, "/services/%zu/user", i), p->m->services[i].user);
}

void lint_132(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->ninputs; i++) {
		const struct manifest_input *in = &p->m->inputs[i];

		if (in->env && in->type != INPUT_SECRET && secret_kind(in->env, "x"))
			lint_found(p, lint_text(p, "/inputs/%zu/type", i), "\"secret\"",
				"%s is asked for, shown and kept in the clear", in->env);
	}
}

/* ---- threads ---- */

static const char *const thread_names[] = {"OMP_NUM_THREADS", "OMP_THREAD_LIMIT",
	"OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
	"NUMEXPR_MAX_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS",
	"RAYON_NUM_THREADS", "GOMAXPROCS", "UV_THREADPOOL_SIZE", "LLAMA_THREADS",
	"LLAMA_ARG_THREADS", "TORCH_NUM_THREADS", "ORT_NUM_THREADS", NULL};
static const char *const thread_options[] = {
	"--threads", "-t", "--n-threads", "--num-threads", "--threads-batch", "--nthreads", NULL};
static const char tied[] = "${runtime:cpus}";

/* One thread is always right; a number that somebody's machine had is not. */
static bool is_number(const char *s)
{
	uint64_t n;

	return str_u64(s, UINT64_MAX, &n) == 0 && n > 1;
}

static bool check_env(struct lint_pass *p, const char *pointer, const struct pairs *env)
{
	bool has = false;

	for (size_t i = 0; i < env->n; i++) {
		const struct pair *v = &env->v[i];

		has = has || strstr(v->value, tied) || lint_listed(v->name, thread_names);
		if (lint_listed(v->name, thread_names) && is_number(v->value))
			lint_found(p, lint_below(p, pointer, v->name), tied,
				"%s is %s whatever the container may use", v->name, v->value);
	}
	return has;
}

static bool check_words(struct lint_pass *p, const char *pointer, const struct strings *argv)
{
	bool has = false;

	for (size_t i = 0; i < argv->n; i++) {
		const char *equals = strchr(argv->v[i], '=');
		const char *name = lint_text(p, "%.*s", (int)strcspn(argv->v[i], "="), argv->v[i]);
		const char *value = equals ? equals + 1 : i + 1 < argv->n ? argv->v[i + 1] : "";

		has = has || strstr(argv->v[i], tied);
		if (!lint_listed(name, thread_options))
			continue;
		has = true;
		if (is_number(value))
			lint_found(p, lint_text(p, "%s/%zu", pointer, equals ? i : i + 1), tied,
				"%s is %s whatever the container may use", name, value);
	}
	return has;
}

static const char *uses_threads(struct lint_pass *p)
{
	static const char *const debs[] = {"python3-numpy", "python3-torch", "python3-scipy",
		"python3-sklearn", "libtorch*", "libopenblas*", "tesseract-ocr", NULL};
	static const char *const wheels[] = {"torch", "numpy", "onnxruntime", "tensorflow",
		"llama-cpp-python", "vllm", "jax", "ctranslate2", NULL};
	static const char *const npms[] = {
		"node-llama-cpp", "onnxruntime-node", "@tensorflow/tfjs-node", NULL};
	const char *name = lint_has_deb(p, debs);

	name = name ? name : lint_has_wheel(p, wheels);
	return name ? name : lint_has_npm(p, npms);
}

void lint_160(struct lint_pass *p)
{
	const struct manifest *m = p->m;
	bool has = check_env(p, "/env", &m->env);
	const char *user;

	has |= check_words(p, "/entrypoint", &m->entrypoint);
	has |= check_words(p, "/cmd", &m->cmd);
	for (size_t i = 0; i < m->nservices; i++) {
		has |= check_env(p, lint_text(p, "/services/%zu/env", i), &m->services[i].env);
		has |= check_words(p, lint_text(p, "/services/%zu/argv", i), &m->services[i].argv);
	}
	for (size_t i = 0; i < m->nmodes; i++) {
		const char *at = lint_text(p, "/modes/%s", m->modes[i].name);

		check_env(p, lint_text(p, "%s/env", at), &m->modes[i].env);
		check_words(p, lint_text(p, "%s/entrypoint", at), &m->modes[i].entrypoint);
		check_words(p, lint_text(p, "%s/cmd", at), &m->modes[i].cmd);
	}
	user = has ? NULL : uses_threads(p);
	if (user && (m->entrypoint.n || m->cmd.n || m->nservices))
		lint_found(p, "/env", "\"OMP_NUM_THREADS\": \"${runtime:cpus}\"",
			"%s starts a thread for each processor of the host", user);
}
