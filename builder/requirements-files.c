#include "builder/requirements-files.h"

#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/control.h"
#include "builder/local.h"
#include "builder/pylock.h"

enum { FILES_MAX = 64, BYTES_MAX = 32 << 20 };

bool requirements_are(const char *path)
{
	return !str_ends(path, ".toml") && !str_ends(path, ".json");
}

const char *requirements_include(const char *line, bool *limits)
{
	static const struct {
		const char *name;
		bool limits;
	} options[] = {
		{"-r", false}, {"--requirement", false}, {"-c", true}, {"--constraint", true}};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		size_t n = strlen(options[i].name);
		bool is_long = line[1] == '-';

		if (strncmp(line, options[i].name, n) != 0 ||
			(is_long && line[n] != '=' && line[n] != ' '))
			continue;
		*limits = options[i].limits;
		line += n + (line[n] == '=');
		return line + strspn(line, " ");
	}
	return NULL;
}

char *requirements_path(struct arena *a, const char *name, const char *path)
{
	const char *slash = strrchr(name, '/');

	if (!slash || path[0] == '/')
		return arena_strdup(a, path);
	return arena_printf(a, "%.*s/%s", (int)(slash - name), name, path);
}

static int add(struct requirements_files *f, struct arena *a, const char *dir, const char *name,
	size_t *bytes, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(BYTES_MAX - *bytes);
	auto_fd int fd = -1;

	for (size_t i = 0; i < f->n; i++)
		if (str_eq(f->v[i].name, name))
			return 0;
	if (f->n == FILES_MAX)
		return err_set(
			e, ERR_CORRUPT, "SV054: %s is one more than %d files", name, FILES_MAX);
	fd = local_open(dir, name, NULL, e);
	if (fd < 0)
		return -1;
	if (file_read_fd(fd, name, &text, e) < 0)
		return -1;
	*bytes += text.len;
	f->v[f->n++] = (struct requirements_text){.name = arena_strdup(a, name),
		.text = arena_strndup(a, text.data ? text.data : "", text.len),
		.n = text.len};
	return 0;
}

/* What a line of file i includes. */
static int follow(struct requirements_files *f, struct arena *a, const char *dir, size_t i,
	const char *value, size_t *bytes, struct err *e)
{
	const char *path = requirements_path(a, f->v[i].name, value);
	const char *url = wheel_local_url(a, "", path);

	if (!url)
		return err_set(
			e, ERR_DENIED, "SV054: %.200s leads out of the manifest's folder", path);
	return add(f, a, dir, url + strlen("file:"), bytes, e);
}

static int follow_all(struct requirements_files *f, struct arena *a, const char *dir, size_t i,
	size_t *bytes, struct err *e)
{
	struct slice text = {.p = f->v[i].text, .n = f->v[i].n}, line;

	for (size_t number = 1; slice_piece(&text, '\n', &line); number++) {
		auto_free char *s = NULL;
		const char *value;
		bool limits;

		line = slice_trim(line);
		if (line.n < 3 || line.p[0] != '-')
			continue;
		s = mem_printf("%.*s", (int)line.n, line.p);
		for (char *c = s; *c; c++)
			*c = *c == '\t' ? ' ' : *c;
		s[strstr(s, " #") ? (size_t)(strstr(s, " #") - s) : strlen(s)] = '\0';
		for (size_t n = strlen(s); n > 0 && s[n - 1] == ' ';)
			s[--n] = '\0';
		value = requirements_include(s, &limits);
		if (value && follow(f, a, dir, i, value, bytes, e) < 0)
			return err_ctx(e, "%s:%zu", f->v[i].name, number);
	}
	return 0;
}

int requirements_files(struct requirements_files *f, struct arena *a, const char *dir,
	const char *path, struct err *e)
{
	size_t bytes = 0;

	*f = (struct requirements_files){.v = arena_alloc(a, FILES_MAX * sizeof(*f->v))};
	if (add(f, a, dir, path, &bytes, e) < 0)
		return -1;
	for (size_t i = 0; i < f->n; i++)
		if (follow_all(f, a, dir, i, &bytes, e) < 0)
			return -1;
	return 0;
}
