#include "builder/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/document.h"
#include "builder/manifest-keys.h"
#include "builder/resolve.h"
#include "builder/services.h"

enum {
	TEXT_MAX = 1 << 20,
	NAMES_MAX = 1000, /* of manifests, for "did you mean" */
};

static const char catalogue[] = "manifests";

const char *manifest_platform(void)
{
#if defined(__aarch64__)
	return "linux/arm64";
#else
	return "linux/amd64";
#endif
}

void complaints_fini(struct complaints *c)
{
	buf_fini(&c->text);
	*c = (struct complaints){0};
}

int manifest_at(const struct manifest *m, const char *pointer, struct err *e)
{
	const char *file;
	int line, col;

	if (m->source) {
		resolved_place(m->source, pointer, false, &file, &line, &col);
	} else { /* put together, not read */
		file = m->path ? m->path : "manifest.json";
		json_doc_locate(&m->doc, pointer, false, &line, &col);
	}
	return err_ctx(e, "%s:%d:%d", file, line, col);
}

void manifest_fini(struct manifest *m)
{
	for (size_t i = 0; i < m->nmodes; i++) {
		if (!m->modes[i].applied)
			continue;
		manifest_fini(m->modes[i].applied);
		free(m->modes[i].applied);
	}
	arena_fini(&m->arena);
	json_doc_fini(&m->doc);
	resolved_free(m->source);
	free(m->path);
	free(m->dir);
	*m = (struct manifest){0};
}

/* ---- parsing ---- */

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return mem_strdup(".");
	return slash == path ? mem_strdup("/") : mem_printf("%.*s", (int)(slash - path), path);
}

/* The merged document's tree, and its canonical form. */
static void take_document(struct manifest *m)
{
	m->doc.root = json_incref(resolved_root(m->source));
	m->doc.text = BUF_INIT(256 << 20); /* what vars.h and family.h may make, and more */
	json_text(m->doc.root, true, &m->doc.text);
	m->digest = digest_of(m->doc.text.data, m->doc.text.len);
}

static void take_choice(struct manifest *m)
{
	for (size_t i = 0; i < m->ntests; i++)
		if (m->tests[i].expect.type && str_eq(m->tests[i].expect.type, "symlink"))
			m->tests[i].expect.type = "link";
	m->mode = resolved_mode(m->source);
	m->matrix = resolved_entry(m->source);
	for (size_t i = 0; i < m->nvars; i++)
		m->vars[i].value = resolved_var(m->source, m->vars[i].name);
}

static void set_defaults(struct manifest *m)
{
	static const struct manifest_probe probe = {
		.path = "/", .period_ms = 10000, .timeout_ms = 5000, .failure_threshold = 3};

	*m = (struct manifest){.apt.merge_usr = true,
		.python = {.interpreter = "/usr/bin/python3", .bytecode = BYTECODE_UNCHECKED_HASH},
		.gpu.mig = true,
		.health = {probe, probe, probe},
		.build = {.max_layers = 24,
			.codec = CODEC_ZSTD,
			.level = 3,
			.models_codec = CODEC_NONE}};
}

/* Read what the documents say into m. */
static void read_manifest(struct manifest *m)
{
	struct report report = {.source = m->source};
	struct reader r = {.arena = &m->arena,
		.r = &report,
		.pointer = BUF_INIT(64 << 20),
		.partial = resolved_is_partial(m->source)};

	if (!resolved_whole(m->source))
		return;
	take_document(m);
	schema_read(&r, &manifest_schema, resolved_whole(m->source), m);
	take_choice(m);
	if (!r.partial)
		manifest_check(&r, m);
	buf_fini(&r.pointer);
}

/* The platform that is asked for: this machine's where the manifest has it, else its first. */
static int choose_platform(struct manifest *m, const char *asked, struct err *e)
{
	const char *want = asked ? asked : manifest_platform();
	char shown[STR_SHOWN];

	if (m->platforms.n == 0) {
		m->platforms.v = arena_alloc(&m->arena, sizeof(*m->platforms.v));
		m->platforms.v[0] = manifest_platform();
		m->platforms.n = 1;
	}
	for (size_t i = 0; i < m->platforms.n; i++)
		if (str_eq(m->platforms.v[i], want))
			m->platform = m->platforms.v[i];
	if (!m->platform && asked)
		return err_set(e, ERR_USAGE, "--platform %s: %s is for %s%s",
			str_shown(asked, shown), m->path, m->platforms.v[0],
			m->platforms.n > 1 ? " and others" : "");
	if (!m->platform)
		m->platform = m->platforms.v[0];
	return 0;
}

static int parse(struct manifest *m, const char *path, const void *text, size_t n,
	const struct manifest_choice *choice, struct complaints *c, struct err *e)
{
	size_t total;

	set_defaults(m);
	m->path = mem_strdup(path);
	m->dir = folder_of(path);
	if (resolve(&m->source, path, text, n, choice, e) < 0)
		return -1;
	read_manifest(m);
	total = resolved_finish(m->source, c);
	if (total)
		return err_set(
			e, ERR_USAGE, "%zu error%s in %s", total, total == 1 ? "" : "s", path);
	if (choose_platform(m, choice ? choice->platform : NULL, e) < 0)
		return -1;
	services_apply(m);
	return 0;
}

/* What is wrong only when a mode is applied; what is not is kept. */
static int check_modes(struct manifest *m, const void *text, size_t n,
	const struct manifest_choice *choice, struct complaints *c, struct err *e)
{
	size_t before = c->count, total;

	for (size_t i = 0; i < m->nmodes; i++) {
		struct manifest_choice with = choice ? *choice : (struct manifest_choice){0};
		struct manifest *other = mem_alloc(sizeof(*other));
		size_t count = c->count;

		with.mode = m->modes[i].name;
		if (parse(other, m->path, text, n, &with, c, e) == 0) {
			m->modes[i].applied = other;
			continue;
		}
		manifest_fini(other);
		free(other);
		if (c->count == count)
			return err_ctx(e, "mode %s", m->modes[i].name);
	}
	total = c->count - before;
	return total ? err_set(e, ERR_USAGE, "%zu error%s in %s", total, total == 1 ? "" : "s",
			       m->path)
		     : 0;
}

int manifest_parse(struct manifest *m, const char *path, const void *text, size_t n,
	const struct manifest_choice *choice, struct complaints *c, struct err *e)
{
	if (parse(m, path, text, n, choice, c, e) == 0 &&
		((choice && choice->mode) || check_modes(m, text, n, choice, c, e) == 0))
		return 0;
	manifest_fini(m);
	return -1;
}

/* ---- which file APP means ---- */

static int read_text(const char *path, struct buf *b, struct err *e)
{
	struct stat st;
	auto_fd int fd = sys_open(path, O_RDONLY | O_NONBLOCK, 0);

	if (fd < 0 || sys_fstat(fd, &st) < 0)
		return err_sys(e, "open %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_USAGE, "%s: not a regular file", path);
	return file_read_fd(fd, path, b, e);
}

static bool is_there(const char *path, bool folder)
{
	struct stat st;

	return sys_fstatat(AT_FDCWD, path, &st, 0) == 0 && (bool)S_ISDIR(st.st_mode) == folder;
}

static int by_string(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names in the catalogue, sorted; ends with NULL. */
static const char **catalogue_names(struct arena *a, size_t *count)
{
	const char **v = arena_alloc(a, (NAMES_MAX + 1) * sizeof(*v));
	DIR *d = opendir(catalogue);
	const struct dirent *de;
	size_t n = 0;

	while (d && n < NAMES_MAX && (de = readdir(d))) {
		const char *path = arena_printf(a, "%s/%s/manifest.json", catalogue, de->d_name);

		if (de->d_name[0] != '.' && is_there(path, false))
			v[n++] = arena_strdup(a, de->d_name);
	}
	if (d)
		closedir(d);
	qsort(v, n, sizeof(*v), by_string);
	*count = n;
	return v;
}

static int not_found(const char *app, struct err *e)
{
	struct arena a = {0};
	size_t n;
	const char **names = catalogue_names(&a, &n), *near = str_nearest(app, names);
	auto_buf struct buf list = BUF_INIT(1 << 20);
	bool name = !strchr(app, '/');

	err_set(e, ERR_NOT_FOUND, "no manifest '%s': tried %s, %s/manifest.json%s%s%s%s", app, app,
		app, name ? ", " : "", name ? catalogue : "", name ? "/" : "",
		name ? arena_printf(&a, "%s/manifest.json", app) : "");
	for (size_t i = 0; i < n && list.len < 250; i++)
		buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
	if (near)
		err_hint(e, "did you mean '%s'?", near);
	else if (n)
		err_hint(e, "%s/ has %s", catalogue, list.data);
	else
		err_hint(e, "run it where the folder %s/ is, or name a file", catalogue);
	arena_fini(&a);
	return -1;
}

/* The path of APP's manifest; to be freed. */
static char *find(const char *app, struct err *e)
{
	char *path;

	if (is_there(app, false))
		return mem_strdup(app);
	path = mem_printf("%s%smanifest.json", app, str_ends(app, "/") ? "" : "/");
	if (is_there(path, false))
		return path;
	free(path);
	path = mem_printf("%s/%s/manifest.json", catalogue, app);
	if (*app && !strchr(app, '/') && !str_starts(app, ".") && is_there(path, false))
		return path;
	free(path);
	not_found(app, e);
	return NULL;
}

int manifest_load(struct manifest *m, const char *app, const struct manifest_choice *choice,
	struct complaints *c, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	auto_free char *path = find(app, e);

	*m = (struct manifest){0};
	if (!path || read_text(path, &text, e) < 0)
		return -1;
	return manifest_parse(m, path, text.data ? text.data : "", text.len, choice, c, e);
}
