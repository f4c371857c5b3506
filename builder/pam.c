#include "builder/pam.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/control.h"

enum {
	TEXT_MAX = 64 << 10, /* of a profile or a template */
	PROFILES_MAX = 256,
	MODULES_MAX = 1024,
	OUT_MAX = 64 << 20, /* more than all profiles together can make */
};

struct profile {
	const char *name; /* of its file */
	struct slice text;
	uint64_t priority;
	bool interactive_only; /* not for common-session-noninteractive */
};

struct pam {
	const struct rootfs *r;
	struct arena arena;
	struct profile *v; /* by priority, high first */
	size_t n;
};

static int by_priority(const void *a, const void *b)
{
	const struct profile *x = a, *y = b;

	if (x->priority != y->priority)
		return x->priority < y->priority ? 1 : -1;
	return strcmp(x->name, y->name);
}

static int read_profile(struct pam *p, const char *name, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(TEXT_MAX);
	auto_free char *path = mem_printf("usr/share/pam-configs/%s", name);
	struct profile x = {.name = name};
	const char *priority;

	if (rootfs_read(p->r, path, &b, e) < 0)
		return -1;
	x.text = (struct slice){
		.p = arena_strndup(&p->arena, b.data ? b.data : "", b.len), .n = b.len};
	priority = control_str(&p->arena, x.text, "Priority");
	if (!priority || str_u64(priority, UINT32_MAX, &x.priority) < 0)
		x.priority = 0;
	x.interactive_only = slice_eq(control_field(x.text, "Session-Interactive-Only"), "yes");
	if (slice_eq(control_field(x.text, "Default"), "yes") && p->n < PROFILES_MAX)
		p->v[p->n++] = x;
	return 0;
}

/* ---- one block of one file ---- */

struct block {
	const char *file; /* "session-noninteractive" */
	const char *type; /* "Session": the profile's fields */
	const char *word; /* "session": first word of every line */
	bool primary;     /* else additional */
};

/* The profile's lines for a block; the first module of a stack may have lines of its own. */
static struct slice profile_lines(
	struct arena *a, const struct profile *x, const struct block *k, bool first)
{
	struct slice kind = control_field(x->text, arena_printf(a, "%s-Type", k->type));
	struct slice lines = {0};

	if (!slice_eq(kind, k->primary ? "Primary" : "Additional") ||
		(x->interactive_only && str_eq(k->file, "session-noninteractive")))
		return lines;
	if (first)
		lines = control_field(x->text, arena_printf(a, "%s-Initial", k->type));
	if (!lines.p)
		lines = control_field(x->text, k->type);
	return lines;
}

static bool ends(struct slice s, const char *suffix)
{
	size_t n = strlen(suffix);

	return s.n >= n && memcmp(s.p + s.n - n, suffix, n) == 0;
}

/* "end" in "[success=end default=ignore]" is the number of lines to jump over. */
static void put_line(struct buf *b, const char *word, struct slice line, size_t jump)
{
	const char *end = memmem(line.p, line.n, "=end", 4);
	const char *space = ends(line, ".so") ? " " : ""; /* as pam-auth-update compares */

	buf_printf(b, "%s\t", word);
	if (!end)
		buf_printf(b, "%.*s%s\n", (int)line.n, line.p, space);
	else
		buf_printf(b, "%.*s=%zu%.*s%s\n", (int)(end - line.p), line.p, jump,
			(int)(line.p + line.n - end - 4), end + 4, space);
}

static void put_block(struct pam *p, struct buf *b, struct buf *state, const struct block *k)
{
	static const char permit[] = "[default=1]\t\t\tpam_permit.so";
	struct slice *lines = arena_alloc(&p->arena, MODULES_MAX * sizeof(*lines));
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct slice text = profile_lines(&p->arena, &p->v[i], k, n == 0), line;

		if (text.p)
			buf_printf(state, "Module: %s\n", p->v[i].name);
		while (slice_piece(&text, '\n', &line)) {
			if (line.n == 0 || n == MODULES_MAX)
				continue;
			lines[n++] = line;
			buf_printf(state, "%.*s\n", (int)line.n, line.p);
		}
	}
	if (n == 0 && k->primary) { /* there must be a module that lets the stack go on */
		buf_printf(state, "Module: null\n%s\n", permit);
		buf_printf(b, "%s\t%s\n", k->word, permit);
	}
	/* "end" jumps over the lines that follow, and over the fallback behind a primary block */
	for (size_t i = 0; i < n; i++)
		put_line(b, k->word, lines[i], n - 1 - i + k->primary);
}

/* ---- the files ---- */

static int make_file(
	struct pam *p, const char *file, const char *type, const char *word, struct err *e)
{
	auto_free char *from = mem_printf("usr/share/pam/common-%s", file);
	auto_free char *to = mem_printf("etc/pam.d/common-%s", file);
	auto_free char *seen = mem_printf("var/lib/pam/%s", file);
	auto_buf struct buf template = BUF_INIT(TEXT_MAX), out = BUF_INIT(OUT_MAX),
			    state = BUF_INIT(OUT_MAX);
	bool seen_primary = false, seen_additional = false;
	struct slice text, line;
	int rc = rootfs_read(p->r, from, &template, e);

	if (rc <= 0)
		return rc;
	text = (struct slice){.p = template.data, .n = template.len};
	while (slice_line(&text, &line)) {
		/* "$session_nonint_primary" */
		bool first = !seen_primary && slice_starts(line, "$") && ends(line, "_primary");
		bool second =
			!seen_additional && slice_starts(line, "$") && ends(line, "_additional");

		seen_primary |= first;
		seen_additional |= second;
		if (first || second)
			put_block(p, &out, &state,
				&(struct block){.file = file,
					.type = type,
					.word = word,
					.primary = first});
		else
			buf_printf(&out, "%.*s\n", (int)line.n, line.p);
	}
	if (rootfs_file(p->r, to, out.data ? out.data : "", out.len, (struct owner){.mode = 0644},
		    e) < 0)
		return -1;
	return rootfs_file(p->r, seen, state.data ? state.data : "", state.len,
		(struct owner){.mode = 0644}, e);
}

static int make(struct pam *p, struct err *e)
{
	static const struct {
		const char *file, *type, *word;
	} files[] = {
		{"auth", "Auth", "auth"},
		{"account", "Account", "account"},
		{"password", "Password", "password"},
		{"session", "Session", "session"},
		{"session-noninteractive", "Session", "session"},
	};
	struct strings names = rootfs_list(p->r, "usr/share/pam-configs", &p->arena);
	auto_buf struct buf seen = BUF_INIT(TEXT_MAX);

	for (size_t i = 0; i < names.n && i < PROFILES_MAX; i++) {
		if (read_profile(p, names.v[i], e) < 0)
			return -1;
		buf_printf(&seen, "%s\n", names.v[i]);
	}
	if (p->n)
		qsort(p->v, p->n, sizeof(*p->v), by_priority);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (make_file(p, files[i].file, files[i].type, files[i].word, e) < 0)
			return -1;
	return names.n ? rootfs_file(p->r, "var/lib/pam/seen", seen.data, seen.len,
				 (struct owner){.mode = 0644}, e)
		       : 0;
}

int pam_make(const struct rootfs *r, struct err *e)
{
	struct pam p = {.r = r};
	int rc;

	p.v = arena_alloc(&p.arena, PROFILES_MAX * sizeof(*p.v));
	rc = make(&p, e);
	arena_fini(&p.arena);
	return rc;
}
