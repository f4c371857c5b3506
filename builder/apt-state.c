#include "builder/apt-state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/proc.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/control.h"

enum { APT_TEXT = 16 << 20 }; /* far more than a manifest can ask for */

static const char *debian_arch(const char *platform)
{
	static const char *const table[][2] = {
		{"linux/amd64", "amd64"},
		{"linux/arm64", "arm64"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (str_eq(platform, table[i][0]))
			return table[i][1];
	return NULL;
}

/* ---- sources ---- */

/* "keyring:NAME" is a keyring of the host's packages, anything else a file beside the manifest. */
static int find_keyring(
	struct apt_state *s, const struct manifest *m, struct apt_origin *o, struct err *e)
{
	const char *by = o->source->signed_by;
	bool host = by && str_starts(by, "keyring:");
	char real[PATH_MAX];
	const char *path;

	if (!by)
		return 0;
	path = host ? arena_printf(&s->arena, "/usr/share/keyrings/%s-keyring.gpg", by + 8)
		    : arena_printf(&s->arena, "%s/%s", m->dir, by);
	if (str_ends(path, ".asc")) {
		err_set(e, ERR_USAGE, "keyring %s is in text form", by);
		return err_hint(e, "make it binary: gpg --dearmor < %s", by);
	}
	if (!realpath(path, real)) {
		err_sys(e, "keyring %s: %s", by, path);
		return host ? err_hint(e, "apt-get install %s-keyring", by + 8) : -1;
	}
	o->keyring = arena_strdup(&s->arena, real);
	return 0;
}

/* apt prints file:///x as file:/x. */
static const char *as_apt_prints(struct arena *a, const char *url)
{
	if (str_starts(url, "file:///"))
		return arena_printf(a, "file:%s", url + 7);
	return arena_strdup(a, url);
}

/* What the source was at a time is on a mirror of its own: "mirror:debian" at 20240501T000000Z is
 * "mirror:debian-snapshot/20240501T000000Z", "mirror:debian/x" has "/x" behind the time. */
static const char *snapshot_uri(struct apt_state *s, const struct apt_source *source, struct err *e)
{
	size_t n = strcspn(source->uri, "/");

	if (!source->snapshot)
		return source->uri;
	if (!str_starts(source->uri, "mirror:")) {
		err_set(e, ERR_USAGE, "a snapshot is taken of a mirror, not of '%s'", source->uri);
		return NULL;
	}
	return arena_printf(&s->arena, "%.*s-snapshot/%s%s", (int)n, source->uri, source->snapshot,
		source->uri + n);
}

static int resolve_origins(
	struct apt_state *s, const struct manifest *m, struct mirrors *mirrors, struct err *e)
{
	s->norigins = m->apt.nsources;
	s->origins = arena_alloc(&s->arena, s->norigins * sizeof(*s->origins));
	for (size_t i = 0; i < s->norigins; i++) {
		struct apt_origin *o = &s->origins[i];
		const char *url;

		o->uri = snapshot_uri(s, &m->apt.sources[i], e);
		url = o->uri ? mirror_url(mirrors, o->uri, e) : NULL;
		if (!url)
			return err_ctx(e, "/apt/sources/%zu", i);
		o->source = &m->apt.sources[i];
		o->address = as_apt_prints(&s->arena, url);
		if (find_keyring(s, m, o, e) < 0)
			return err_ctx(e, "/apt/sources/%zu", i);
	}
	return 0;
}

static int put_word(struct buf *b, const char *word, struct err *e)
{
	if (!*word || strpbrk(word, " \t\r\n"))
		return err_set(e, ERR_USAGE, "'%s' cannot stand in a list of sources", word);
	buf_printf(b, " %s", word);
	return 0;
}

static int put_words(struct buf *b, const char *field, const struct strings *l, struct err *e)
{
	if (l->n == 0)
		return 0;
	buf_printf(b, "%s:", field);
	for (size_t i = 0; i < l->n; i++)
		if (put_word(b, l->v[i], e) < 0)
			return -1;
	buf_printf(b, "\n");
	return 0;
}

static int put_source(
	struct buf *b, const struct apt_state *s, const struct apt_origin *o, struct err *e)
{
	buf_printf(b, "Types: deb\nArchitectures: %s\nURIs:", s->arch);
	if (put_word(b, o->address, e) < 0)
		return -1;
	buf_printf(b, "\n");
	if (put_words(b, "Suites", &o->source->suites, e) < 0 ||
		put_words(b, "Components", &o->source->components, e) < 0)
		return -1;
	if (o->keyring) {
		buf_printf(b, "Signed-By:");
		if (put_word(b, o->keyring, e) < 0)
			return -1;
		buf_printf(b, "\n");
	}
	/* what was true then may have run out since */
	if (!o->source->check_valid_until || o->source->snapshot)
		buf_printf(b, "Check-Valid-Until: no\n");
	buf_printf(b, "\n");
	return 0;
}

static int write_sources(const struct apt_state *s, int dirfd, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(APT_TEXT);

	for (size_t i = 0; i < s->norigins; i++)
		if (put_source(&b, s, &s->origins[i], e) < 0)
			return err_ctx(e, "/apt/sources/%zu", i);
	return file_write(dirfd, "etc/sources.list.d/manifest.sources", b.data, b.len, 0644, e);
}

/* ---- pins ---- */

/* A priority above 1000 holds even where that means an older version. Source: apt_preferences(5).
 */
static int write_pins(const struct manifest *m, int dirfd, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(APT_TEXT);

	for (size_t i = 0; i < m->apt.pins.n; i++) {
		const struct pair *p = &m->apt.pins.v[i];

		if (strpbrk(p->name, " \t\r\n") || strpbrk(p->value, " \t\r\n"))
			return err_set(e, ERR_USAGE, "/apt/pins: '%s' with '%s' is no pin", p->name,
				p->value);
		buf_printf(&b, "Package: %s\nPin: version %s\nPin-Priority: 1001\n\n", p->name,
			p->value);
	}
	return b.len ? file_write(dirfd, "etc/preferences.d/manifest", b.data, b.len, 0644, e) : 0;
}

/* ---- configuration ---- */

/* The lines of `apt-config dump` that say how to reach a mirror, none that say what to install. */
static int copy_transport(struct buf *b, struct err *e)
{
	static const char *const keep[] = {
		"Acquire::http", "Acquire::ftp", "Acquire::Retries", "Acquire::ForceIPv"};
	static const char *const argv[] = {"apt-config", "dump", NULL};
	auto_buf struct buf out = BUF_INIT(APT_TEXT / 2);
	struct slice text, line;

	if (proc_check(&(struct proc){.argv = argv, .out = &out}, e) < 0)
		return err_hint(e, "apt resolves Debian packages: install apt");
	text = (struct slice){.p = out.data, .n = out.len};
	while (slice_line(&text, &line))
		for (size_t i = 0; i < sizeof(keep) / sizeof(keep[0]); i++)
			if (line.n > strlen(keep[i]) &&
				strncasecmp(line.p, keep[i], strlen(keep[i])) == 0)
				buf_printf(b, "%.*s\n", (int)line.n, line.p);
	return 0;
}

static int write_conf(const struct apt_state *s, const struct manifest *m, int dirfd, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(APT_TEXT);

	buf_printf(&b,
		"Dir::State \"%s/state\";\n"
		"Dir::State::status \"%s/status\";\n"
		"Dir::Cache \"%s/cache\";\n"
		"Dir::Etc \"%s/etc\";\n"
		"Dir::Etc::main \"/dev/null\";\n"
		"Dir::Etc::parts \"/dev/null\";\n"
		"Dir::Etc::netrc \"/etc/apt/auth.conf\";\n"
		"Dir::Etc::netrcparts \"/etc/apt/auth.conf.d\";\n",
		s->dir, s->dir, s->dir, s->dir);
	buf_printf(&b,
		"APT::Architecture \"%s\";\n"
		"APT::Architectures { \"%s\"; };\n"
		"APT::Install-Recommends \"%s\";\n"
		"APT::Install-Suggests \"false\";\n"
		"APT::Sandbox::User \"root\";\n" /* others may not enter our folder */
		"APT::Update::Error-Mode \"any\";\n"
		"Acquire::Languages { \"none\"; };\n"
		"Acquire::PDiffs \"false\";\n",
		s->arch, s->arch, m->apt.recommends ? "true" : "false");
	if (copy_transport(&b, e) < 0)
		return -1;
	return file_write(dirfd, "apt.conf", b.data, b.len, 0644, e);
}

static void make_env(struct apt_state *s)
{
	static const char *const pass[] = {"PATH", "HOME", "TMPDIR", "http_proxy", "https_proxy",
		"ftp_proxy", "all_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"};
	size_t n = 0;

	s->env =
		arena_alloc(&s->arena, (sizeof(pass) / sizeof(pass[0]) + 3) * sizeof(const char *));
	s->env[n++] = arena_printf(&s->arena, "APT_CONFIG=%s/apt.conf", s->dir);
	s->env[n++] = "LC_ALL=C";
	for (size_t i = 0; i < sizeof(pass) / sizeof(pass[0]); i++)
		if (getenv(pass[i]))
			s->env[n++] = arena_printf(&s->arena, "%s=%s", pass[i], getenv(pass[i]));
	s->env[n] = NULL;
}

static int make_folders(int dirfd, struct err *e)
{
	static const char *const folders[] = {"state/lists/partial", "cache/archives/partial",
		"etc/sources.list.d", "etc/preferences.d", "etc/trusted.gpg.d", "etc/apt.conf.d"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (sys_mkdir_p(dirfd, folders[i], 0755) < 0)
			return err_sys(e, "create %s", folders[i]);
	return file_write(dirfd, "status", "", 0, 0644, e); /* nothing is installed */
}

int apt_state_init(struct apt_state *s, const struct manifest *m, const char *platform,
	struct mirrors *mirrors, const char *dir, struct err *e)
{
	auto_fd int dirfd = sys_open(dir, O_RDONLY | O_DIRECTORY, 0);

	*s = (struct apt_state){.dir = dir, .arch = debian_arch(platform)};
	if (dirfd < 0)
		return err_sys(e, "open %s", dir);
	if (!s->arch)
		return err_set(e, ERR_UNSUPPORTED, "Debian packages for %s", platform);
	make_env(s);
	if (make_folders(dirfd, e) < 0 || resolve_origins(s, m, mirrors, e) < 0 ||
		write_sources(s, dirfd, e) < 0 || write_pins(m, dirfd, e) < 0 ||
		write_conf(s, m, dirfd, e) < 0) {
		apt_state_fini(s);
		return -1;
	}
	return 0;
}

void apt_state_fini(struct apt_state *s)
{
	arena_fini(&s->arena);
	*s = (struct apt_state){0};
}

int apt_state_run(const struct apt_state *s, const char *const *argv, struct buf *out,
	struct buf *errout, struct err *e)
{
	struct proc p = {.argv = argv, .env = s->env, .dir = s->dir, .out = out, .errout = errout};
	int rc = proc_run(&p, e);

	return rc < 0 ? err_hint(e, "apt resolves Debian packages: install apt") : rc;
}
