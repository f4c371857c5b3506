#include "builder/services.h"

#include <signal.h>
#include <string.h>

#include "base/str.h"

enum { PROGRAM_MAX = 16 << 20 };

/* services-init.pl, NUL-terminated (services-init.S). */
extern const char services_init[];

/* ---- the program ---- */

static void put_quoted(struct buf *b, const char *s)
{
	buf_put(b, "'", 1);
	for (; s && *s; s++) {
		if (*s == '\'' || *s == '\\')
			buf_put(b, "\\", 1);
		buf_put(b, s, 1);
	}
	buf_put(b, "'", 1);
}

/* Can one connect to it? What `ports` does not name may be it. */
static bool is_tcp(const struct manifest *m, uint32_t port)
{
	bool udp = false;

	for (size_t i = 0; i < m->nports; i++) {
		if (m->ports[i].port != port)
			continue;
		if (!str_eq(m->ports[i].protocol, "udp"))
			return true;
		udp = true;
	}
	return !udp;
}

static void put_service(struct buf *b, const struct manifest *m, const struct manifest_service *s)
{
	static const char *const restarts[] = {"no", "on-failure", "always"};

	buf_printf(b, "\t{id => ");
	put_quoted(b, s->id);
	buf_printf(b, ", argv => [");
	for (size_t i = 0; i < s->argv.n; i++) {
		buf_printf(b, i ? ", " : "");
		put_quoted(b, s->argv.v[i]);
	}
	buf_printf(b, "], env => {");
	for (size_t i = 0; i < s->env.n; i++) {
		buf_printf(b, "%s%s => ", i ? ", " : "", s->env.v[i].name);
		put_quoted(b, s->env.v[i].value);
	}
	buf_printf(b, "},\n\t\tuser => ");
	put_quoted(b, s->user);
	buf_printf(b, ", dir => ");
	put_quoted(b, s->workdir);
	buf_printf(b, ", restart => '%s', after => [", restarts[s->restart]);
	for (size_t i = 0; i < s->after.n; i++) {
		buf_printf(b, i ? ", " : "");
		put_quoted(b, s->after.v[i]);
	}
	buf_printf(b, "], ports => [");
	for (size_t i = 0; i < s->nports; i++)
		if (is_tcp(m, s->ports[i]))
			buf_printf(b, "%u, ", s->ports[i]);
	buf_printf(b, "]},\n");
}

/* What asks the container to end, as Perl calls it: TERM => 15. */
static void put_stop(struct buf *b, const char *name)
{
	uint64_t above;
	int sig = SIGTERM;

	if (!name)
		name = "SIGTERM";
	name += strlen("SIG");
	for (int i = 1; i < 32; i++)
		if (sigabbrev_np(i) && str_eq(name, sigabbrev_np(i)))
			sig = i;
	if (str_starts(name, "RTMIN+") && str_u64(name + strlen("RTMIN+"), 30, &above) == 0) {
		sig = SIGRTMIN + (int)above;
		if (sig == SIGRTMIN || sig == SIGRTMAX)
			buf_printf(b, "%s => %d", sig == SIGRTMIN ? "RTMIN" : "RTMAX", sig);
		else
			buf_printf(b, "NUM%d => %d", sig, sig);
		return;
	}
	buf_printf(b, "%s => %d", name, sig);
}

void services_program(const struct manifest *m, struct buf *out)
{
	buf_printf(out, "#!/usr/bin/perl\n"
			"# Made by svrun from the manifest's services.\n"
			"%%main::stop = (");
	put_stop(out, m->stop_signal);
	buf_printf(out, ");\n@main::services = (\n");
	for (size_t i = 0; i < m->nservices; i++)
		put_service(out, m, &m->services[i]);
	buf_printf(out, ");\n\n%s", services_init);
}

void services_key(const struct manifest *m, struct buf *out)
{
	auto_buf struct buf program = BUF_INIT(PROGRAM_MAX);
	char hex[DIGEST_HEX + 1];
	struct digest d;

	if (!m->nservices && !m->init)
		return;
	services_program(m, &program);
	d = digest_of(program.data, program.len);
	buf_printf(out, " init %s", digest_hex(&d, hex));
}

/* ---- what the manifest gets ---- */

bool services_can_run(const struct manifest *m)
{
	static const char *const names[] = {"?essential", "perl", "perl-base"};

	for (size_t i = 0; i < m->apt.packages.n; i++)
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			if (str_eq(m->apt.packages.v[i], names[k]))
				return true;
	return m->base.type == BASE_OCI;
}

static void add_file(struct manifest *m, struct manifest_file f)
{
	struct manifest_file *v = arena_alloc(&m->arena, (m->nfiles + 1) * sizeof(*v));

	if (m->nfiles)
		memcpy(v, m->files, m->nfiles * sizeof(*v));
	v[m->nfiles++] = f;
	m->files = v;
}

/* In its place among the sorted ones, unless the manifest has it. */
static void add_env(struct manifest *m, const char *name, const char *value)
{
	struct pair *v = arena_alloc(&m->arena, (m->env.n + 1) * sizeof(*v));
	size_t i = 0;

	while (i < m->env.n && strcmp(m->env.v[i].name, name) < 0)
		i++;
	if (i < m->env.n && str_eq(m->env.v[i].name, name))
		return;
	if (m->env.n)
		memcpy(v, m->env.v, i * sizeof(*v));
	v[i] = (struct pair){name, value};
	if (m->env.n > i)
		memcpy(v + i + 1, m->env.v + i, (m->env.n - i) * sizeof(*v));
	m->env = (struct pairs){v, m->env.n + 1};
}

static void set_entrypoint(struct manifest *m)
{
	const char **v = arena_alloc(&m->arena, (m->entrypoint.n + 3) * sizeof(*v));
	size_t n = 0;

	v[n++] = "/usr/bin/perl";
	v[n++] = SERVICES_INIT;
	if (!m->nservices)
		v[n++] = "--";
	for (size_t i = 0; !m->nservices && i < m->entrypoint.n; i++)
		v[n++] = m->entrypoint.v[i];
	m->entrypoint = (struct strings){v, n};
	m->has_entrypoint = true;
}

static void add_shared(struct manifest *m, const char *name, const char *from)
{
	const char *dot = from ? strrchr(from, '.') : NULL;

	if (dot && strchr(dot, '/'))
		dot = NULL;
	if (from)
		add_file(m, (struct manifest_file){
				    .dest = arena_printf(&m->arena, SERVICES_SHARE "/%s%s", name,
					    dot ? dot : ""),
				    .from = from,
				    .mode = 0644});
}

void services_apply(struct manifest *m)
{
	auto_buf struct buf program = BUF_INIT(PROGRAM_MAX);

	add_shared(m, "icon", m->icon);
	add_shared(m, "readme", m->readme);
	if (!m->nservices && !m->init)
		return;
	services_program(m, &program);
	add_file(m, (struct manifest_file){.dest = SERVICES_INIT,
			    .inline_text = arena_strdup(&m->arena, program.data),
			    .mode = 0755});
	set_entrypoint(m);
	if (strstr(program.data, "${runtime:") && m->nservices) {
		add_env(m, "SVRUN_CPUS", "${runtime:cpus}");
		add_env(m, "SVRUN_GPUS", "${runtime:gpus}");
		add_env(m, "SVRUN_MEM_MIB", "${runtime:memMiB}");
	}
}
