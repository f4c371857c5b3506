#include "builder/requirements.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "builder/pep440.h"
#include "builder/pylock.h"
#include "builder/python-name.h"

enum {
	PINS_MAX = 20000,
	LIMITS_MAX = 20000,
	LINE_MAX = 1 << 20, /* continued ones: some packages have a thousand hashes */
	HASHES_MAX = 10000,
	FOLDERS_MAX = 100,
	VIA_MAX = 64,
};

struct scan {
	struct requirements *r;
	struct arena *a;
	const struct marker_env *env;
	const struct requirements_files *files;
	bool *seen; /* of files: as requirements; then as many: as limits */
	const char *name;
	size_t line; /* where the logical line began */
	bool limits; /* in a file of -c */
	bool taken;  /* the last requirement was */
	struct err *e;
};

static int bad(
	const struct scan *s, enum err_kind kind, int code, const char *what, const char *text)
{
	char shown[STR_SHOWN];

	return err_set(s->e, kind, "SV%03d: %s:%zu: %s%s%s", code, s->name, s->line, what,
		text ? " " : "", text ? str_shown(text, shown) : "");
}

/* ---- options ---- */

/* Those that say what holds here anyway. */
static bool is_idle(const char *option)
{
	static const char *const idle[] = {"--require-hashes", "--only-binary", "--prefer-binary",
		"--no-binary", "--no-deps", "--no-cache-dir", "--pre", NULL};
	size_t n = strcspn(option, "= ");

	for (size_t i = 0; idle[i]; i++)
		if (strlen(idle[i]) == n && strncmp(idle[i], option, n) == 0)
			return true;
	return false;
}

/* The value of "--name=value" or "--name value". */
static const char *value_of(const char *line, const char *name)
{
	size_t n = strlen(name);

	if (strncmp(line, name, n) != 0 || (line[n] != '=' && line[n] != ' '))
		return NULL;
	line += n + 1;
	return line + strspn(line, " ");
}

static int take_file(struct scan *s, size_t i);

/* What is included is read where it stands, once. */
static int take_include(struct scan *s, const char *value, bool limits)
{
	const char *path = requirements_path(s->a, s->name, value);
	const char *url = wheel_local_url(s->a, "", path);
	struct scan inner = *s;
	size_t i = 0;

	while (url && i < s->files->n && !str_eq(s->files->v[i].name, url + strlen("file:")))
		i++;
	if (!url || i == s->files->n)
		return bad(s, ERR_USAGE, 54, "a file that cannot be included:", value);
	inner.limits = s->limits || limits;
	inner.taken = false;
	return take_file(&inner, i);
}

static int take_option(struct scan *s, const char *line)
{
	const char *folder = value_of(line, "--find-links"), *file;
	struct requirements *r = s->r;
	bool limits;

	if (is_idle(line))
		return 0;
	file = requirements_include(line, &limits);
	if (file)
		return take_include(s, file, limits);
	if (str_eq(line, "--no-index")) {
		r->no_index = true;
		return 0;
	}
	if (!folder)
		folder = value_of(line, "-f");
	if (folder && strstr(folder, "://"))
		return bad(s, ERR_USAGE, 54, "--find-links takes folders beside it, not", folder);
	if (folder) {
		if (r->folders.n == FOLDERS_MAX)
			return bad(s, ERR_CORRUPT, 54, "too many --find-links", NULL);
		if (!r->folders.v)
			r->folders.v = arena_alloc(s->a, FOLDERS_MAX * sizeof(char *));
		r->folders.v[r->folders.n++] = requirements_path(s->a, s->name, folder);
		return 0;
	}
	bad(s, ERR_USAGE, 54, "an option that is not taken:", line);
	if (strstr(line, "index-url"))
		return err_hint(s->e, "packages come from the mirror 'pypi' of the site's "
				      "configuration");
	return err_hint(s->e, "write out files that have all requirements, pinned");
}

/* ---- requirements ---- */

static int take_hash(const struct scan *s, struct pinned *p, const char *text)
{
	char hex[DIGEST_HEX + 1];
	size_t n = strcspn(text, " ");

	if (!str_starts(text, "sha256:"))
		return 0; /* of several, the sha256 counts */
	if (p->nhashes == HASHES_MAX)
		return bad(s, ERR_CORRUPT, 54, "too many hashes", NULL);
	if (n != 7 + DIGEST_HEX)
		return bad(s, ERR_CORRUPT, 54, "expected sha256: and 64 hex digits, got", text);
	memcpy(hex, text + 7, DIGEST_HEX);
	hex[DIGEST_HEX] = '\0';
	if (digest_from_hex(&p->hashes[p->nhashes], hex) < 0)
		return bad(s, ERR_CORRUPT, 54, "expected sha256: and 64 hex digits, got", text);
	p->nhashes++;
	return 0;
}

/* All "--hash=..." behind a requirement; cuts them off. */
static int take_hashes(const struct scan *s, struct pinned *p, char *line)
{
	char *options = strstr(line, " --"), *next = NULL;
	size_t n = 0;

	for (const char *c = options; c; c = strstr(c + 1, " --"))
		n++;
	p->hashes = arena_alloc(s->a, (n + 1) * sizeof(*p->hashes));
	for (char *c = options; c; c = next) {
		const char *hash;

		*c++ = '\0';
		next = strstr(c, " --");
		hash = value_of(c, "--hash");
		if (!hash)
			return bad(s, ERR_USAGE, 54, "an option that is not taken:", c);
		if (take_hash(s, p, hash) < 0)
			return -1;
	}
	return 0;
}

/* "==1.2" and nothing else: its version in the normal form. */
static const char *exact(struct arena *a, const char *specifiers)
{
	struct pep440 v;
	char normal[PEP440_TEXT];

	while (*specifiers == ' ')
		specifiers++;
	if (!str_starts(specifiers, "=="))
		return NULL;
	specifiers += specifiers[2] == '=' ? 3 : 2;
	return pep440_parse(&v, specifiers, strlen(specifiers)) < 0
		       ? NULL
		       : arena_strdup(a, pep440_text(&v, normal));
}

static bool is_local(const char *line)
{
	size_t n = strcspn(line, " ;");

	return (line[0] == '.' || memchr(line, '/', n)) && !strstr(line, "://") &&
	       !memchr(line, '@', n);
}

static int take_name(const struct scan *s, struct pinned *p, const char *line, const char **marker)
{
	struct requirement q;

	if (is_local(line)) {
		auto_free char *path = mem_printf("%.*s", (int)strcspn(line, " ;"), line);

		p->path = requirements_path(s->a, s->name, path);
		line += strcspn(line, ";");
		*marker = *line ? line + 1 : NULL;
		if (!str_ends(p->path, ".whl"))
			return bad(
				s, ERR_USAGE, 51, "no wheel, it would have to be built:", p->path);
		return 0;
	}
	if (requirement_parse(&q, s->a, line, s->e) < 0)
		return err_ctx(s->e, "%s:%zu", s->name, s->line);
	*marker = q.marker;
	p->name = q.name;
	p->extras = q.extras;
	p->version = exact(s->a, q.specifiers);
	if (q.url) {
		bad(s, ERR_USAGE, 53, "an address is no pinned requirement:", line);
		return err_hint(s->e, "name it in python.wheels of the manifest");
	}
	if (!p->version)
		return bad(s, ERR_USAGE, 53, "not pinned to one version (NAME==VERSION):", line);
	return 0;
}

/* "NAME<2": of those that are pinned elsewhere. Hashes there do not count. */
static int take_limit(struct scan *s, char *line)
{
	struct requirements *r = s->r;
	struct requirement q;
	char *options = strstr(line, " --");
	int rc;

	if (options)
		*options = '\0';
	if (is_local(line) || requirement_parse(&q, s->a, line, s->e) < 0 || q.url)
		return bad(s, ERR_USAGE, 54, "not what limits a version:", line);
	rc = q.marker ? marker_holds(q.marker, s->env, s->e) : 1;
	if (rc <= 0)
		return rc < 0 ? err_ctx(s->e, "%s:%zu", s->name, s->line) : 0;
	if (q.specifiers[0] && pep440_fits("1", q.specifiers) < 0)
		return bad(s, ERR_USAGE, 54, "not what limits a version:", line);
	if (r->nlimits == LIMITS_MAX)
		return bad(s, ERR_CORRUPT, 54, "too many limits", NULL);
	mem_grow(&r->limits, &r->limits_cap, r->nlimits);
	r->limits[r->nlimits++] =
		(struct requirement_limit){q.name, q.specifiers, s->name, s->line};
	return 0;
}

const struct requirement_limit *requirements_forbid(
	const struct requirements *r, const char *name, const char *version)
{
	for (size_t i = 0; i < r->nlimits; i++)
		if (str_eq(r->limits[i].name, name) && r->limits[i].specifiers[0] &&
			pep440_fits(version, r->limits[i].specifiers) != 1)
			return &r->limits[i];
	return NULL;
}

static int take_requirement(struct scan *s, char *line)
{
	struct requirements *r = s->r;
	struct pinned p = {.file = s->name, .line = s->line};
	const char *marker = NULL;
	int rc;

	s->taken = false;
	if (take_hashes(s, &p, line) < 0 || take_name(s, &p, line, &marker) < 0)
		return -1;
	rc = marker ? marker_holds(marker, s->env, s->e) : 1;
	if (rc <= 0)
		return rc < 0 ? err_ctx(s->e, "%s:%zu", s->name, s->line) : 0;
	if (p.nhashes == 0) {
		bad(s, ERR_USAGE, 53, "no --hash=sha256:... at", line);
		return err_hint(s->e, "pip-compile --generate-hashes writes them");
	}
	if (r->n == PINS_MAX)
		return bad(s, ERR_CORRUPT, 54, "too many requirements", NULL);
	mem_grow(&r->v, &r->cap, r->n);
	r->v[r->n++] = p;
	s->taken = true;
	return 0;
}

/* ---- lines ---- */

/* "# via flask" and "#   flask" lines below a requirement tell who needs it. */
static void take_via(struct scan *s, const char *comment)
{
	struct pinned *p = s->taken ? &s->r->v[s->r->n - 1] : NULL;
	const char *name;
	size_t n;

	comment += strspn(comment, "# \t");
	if (str_starts(comment, "via "))
		comment += 4;
	comment += strspn(comment, " ");
	n = strcspn(comment, " \t\r([");
	name = python_name_normal(s->a, comment, n);
	if (!p || !name || comment[n] == ' ' || str_eq(name, "via"))
		return;
	if (!p->why.v)
		p->why.v = arena_alloc(s->a, VIA_MAX * sizeof(char *));
	if (p->why.n < VIA_MAX)
		p->why.v[p->why.n++] = name;
}

/* A comment begins at the line's start or behind a blank. */
static size_t without_comment(const char *line, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t'))
			return i;
	return n;
}

static int take_line(struct scan *s, struct buf *line)
{
	char *text = line->data + strspn(line->data, " ");
	size_t n = strlen(text);

	while (n > 0 && text[n - 1] == ' ')
		text[--n] = '\0';
	if (n == 0)
		return 0;
	if (strstr(text, "${"))
		return bad(s, ERR_USAGE, 54, "variables are not expanded:", text);
	if (*text == '-')
		return take_option(s, text);
	return s->limits ? take_limit(s, text) : take_requirement(s, text);
}

static int take_lines(struct scan *s, const char *text, const char *end, struct buf *line)
{
	size_t number = 0;

	for (const char *p = text; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t whole = (size_t)((nl ? nl : end) - p), n;
		bool more;

		number++;
		if (whole > 0 && p[whole - 1] == '\r')
			whole--;
		if (line->len == 0)
			s->line = number;
		n = without_comment(p, whole);
		if (n < whole) {
			auto_free char *comment = mem_printf("%.*s", (int)(whole - n), p + n);

			take_via(s, comment);
		}
		more = n == whole && n > 0 && p[n - 1] == '\\';
		if (buf_add(line, p, more ? n - 1 : n, s->e) < 0)
			return bad(s, ERR_CORRUPT, 54, "a line that is too long", NULL);
		for (size_t i = 0; i < line->len; i++)
			line->data[i] = line->data[i] == '\t' ? ' ' : line->data[i];
		p = nl ? nl + 1 : end;
		if (more && p < end)
			continue;
		if (take_line(s, line) < 0)
			return -1;
		line->len = 0;
		line->data[0] = '\0';
	}
	return 0;
}

static int take_file(struct scan *s, size_t i)
{
	const struct requirements_text *f = &s->files->v[i];
	auto_buf struct buf line = BUF_INIT(LINE_MAX);
	bool *seen = &s->seen[s->limits ? s->files->n + i : i];

	if (*seen)
		return 0;
	*seen = true;
	s->name = f->name;
	s->line = 1;
	if (!str_utf8(f->text, f->n))
		return bad(s, ERR_CORRUPT, 54, "not UTF-8", NULL);
	return f->n ? take_lines(s, f->text, f->text + f->n, &line) : 0;
}

int requirements_read(struct requirements *r, struct arena *a, const struct marker_env *env,
	const struct requirements_files *f, struct err *e)
{
	auto_free bool *seen = mem_array(2 * f->n, sizeof(*seen));
	struct scan s = {.r = r, .a = a, .env = env, .files = f, .seen = seen, .e = e};

	*r = (struct requirements){0};
	if (take_file(&s, 0) == 0)
		return 0;
	requirements_fini(r);
	return -1;
}

void requirements_fini(struct requirements *r)
{
	free(r->v);
	free(r->limits);
	*r = (struct requirements){0};
}
