#include "builder/ld-conf.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "images/glob.h"

enum {
	FOLDERS_MAX = 256,
	FILES_MAX = 256,
	DEPTH_MAX = 8,
	FILE_BYTES = 64 << 10,
	LINE_BYTES = 4096,
};

struct conf {
	const struct rootfs *r;
	struct arena *arena;
	struct strings *out;
	size_t files;
	struct err *e;
};

static int read_file(struct conf *c, const char *path, int depth);

static void add_folder(struct conf *c, const char *path)
{
	if (path[0] != '/' || c->out->n == FOLDERS_MAX)
		return;
	for (size_t i = 0; i < c->out->n; i++)
		if (str_eq(c->out->v[i], path))
			return;
	c->out->v[c->out->n++] = arena_strdup(c->arena, path);
}

/* ---- include ---- */

/* Every file that pattern leads to, whose first `done` bytes are without wildcards and there. */
static int expand(struct conf *c, const char *pattern, size_t done, int depth)
{
	char path[TREE_PATH_MAX + 1], part[TREE_NAME_MAX + 1];
	const char *rest = pattern + done + strspn(pattern + done, "/");
	size_t n = strcspn(rest, "/");
	struct strings names;

	if (!*rest)
		return read_file(c, pattern, depth);
	if (n > TREE_NAME_MAX)
		return 0;
	memcpy(part, rest, n);
	part[n] = '\0';
	snprintf(path, sizeof(path), "%.*s", (int)done, pattern);
	names = rootfs_list(c->r, path, c->arena);
	for (size_t i = 0; i < names.n && c->files < FILES_MAX; i++) {
		if ((names.v[i][0] == '.' && part[0] != '.') || !glob_matches(part, names.v[i]))
			continue;
		if ((size_t)snprintf(path, sizeof(path), "%.*s%s%s%s", (int)done, pattern,
			    done ? "/" : "", names.v[i], rest + n) >= sizeof(path))
			continue;
		if (expand(c, path, (done ? done + 1 : 0) + strlen(names.v[i]), depth) < 0)
			return -1;
	}
	return 0;
}

static int include(struct conf *c, const char *pattern, const char *from, int depth)
{
	char path[TREE_PATH_MAX + 1];
	const char *slash = strrchr(from, '/');
	int n;

	if (depth == DEPTH_MAX)
		return 0;
	if (pattern[0] == '/')
		n = snprintf(path, sizeof(path), "%s", pattern + strspn(pattern, "/"));
	else
		n = snprintf(path, sizeof(path), "%.*s%s", slash ? (int)(slash - from + 1) : 0,
			from, pattern);
	return (size_t)n < sizeof(path) ? expand(c, path, 0, depth + 1) : 0;
}

/* ---- lines ---- */

static int take_line(struct conf *c, char *line, const char *file, int depth)
{
	static const char blanks[] = " \t\r\f\v", between[] = " \t\r\f\v,:";
	int rc = 0;

	line[strcspn(line, "#")] = '\0';
	line += strspn(line, blanks);
	if (str_starts(line, "hwcap") && strchr(blanks, line[5]))
		return 0;
	if (!str_starts(line, "include") || !line[7] || !strchr(blanks, line[7])) {
		for (char *p = line; *(p += strspn(p, between)) && rc == 0;) {
			size_t n = strcspn(p, between);
			char end = p[n];

			p[n] = '\0';
			p[strcspn(p, "=")] = '\0'; /* FOLDER=TYPE, of old */
			add_folder(c, p);
			p += n + (end != '\0');
		}
		return 0;
	}
	for (char *p = line + 7; *(p += strspn(p, blanks)) && rc == 0;) {
		size_t n = strcspn(p, blanks);
		char end = p[n];

		p[n] = '\0';
		rc = include(c, p, file, depth);
		p += n + (end != '\0');
	}
	return rc;
}

static int read_file(struct conf *c, const char *path, int depth)
{
	auto_buf struct buf text = BUF_INIT(FILE_BYTES);
	const struct node *n = tree_resolve(c->r->tree, path);
	char *next;

	n = n && n->link ? n->link : n;
	if (!n || n->a.type != NODE_FILE || n->a.size > FILE_BYTES || c->files++ >= FILES_MAX)
		return 0;
	if (rootfs_read(c->r, path, &text, c->e) < 0)
		return -1;
	for (char *p = text.data; p; p = next) {
		next = strchr(p, '\n');
		if (next)
			*next++ = '\0';
		if (strlen(p) < LINE_BYTES && take_line(c, p, path, depth) < 0)
			return -1;
	}
	return 0;
}

int ld_conf_folders(const struct rootfs *r, struct arena *a, struct strings *out, struct err *e)
{
	struct conf c = {.r = r, .arena = a, .out = out, .e = e};

	*out = (struct strings){.v = arena_alloc(a, FOLDERS_MAX * sizeof(*out->v))};
	return read_file(&c, "etc/ld.so.conf", 0);
}
