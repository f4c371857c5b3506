#include "builder/apt.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/apt-closure.h"
#include "builder/apt-release.h"
#include "builder/apt-state.h"

enum {
	OUTPUT_MAX = 64 << 20, /* records of 16,384 packages */
	PACKAGES_MAX = 16384,
	QUOTE_MAX = 900, /* of apt's explanation in an error */
};

/* ---- apt's explanations ---- */

static struct slice slice_buf(const struct buf *b)
{
	return (struct slice){.p = b->data ? b->data : "", .n = b->len};
}

static void quote(struct buf *q, struct slice line)
{
	line = slice_trim(line);
	if (q->len + line.n + 2 < QUOTE_MAX)
		buf_printf(q, "%s%.*s", q->len ? "; " : "", (int)line.n, line.p);
}

/* Its "E: " lines without their prefix, and what gpgv said, which comes as warnings. */
static void quote_errors(struct buf *q, const struct buf *errout)
{
	struct slice text = slice_buf(errout), line;

	while (slice_line(&text, &line))
		if (slice_starts(line, "E: ") || slice_starts(line, "W: GPG error"))
			quote(q, (struct slice){.p = line.p + 3, .n = line.n - 3});
}

/* What stands under "The following packages have unmet dependencies:". */
static void quote_unmet(struct buf *q, const struct buf *out)
{
	struct slice text = slice_buf(out), line;
	bool inside = false;

	while (slice_line(&text, &line)) {
		if (inside && slice_starts(line, " "))
			quote(q, line);
		else
			inside = slice_starts(line, "The following packages have unmet");
	}
}

static bool is_name_char(char c)
{
	return c && strchr("abcdefghijklmnopqrstuvwxyz0123456789+-.", c);
}

/* Does text name the package, as a word of its own? A full stop may end a sentence. */
static bool names_package(struct slice text, struct slice name)
{
	for (size_t i = 0; name.n && i + name.n <= text.n; i++) {
		char before = (char)(i ? text.p[i - 1] : ' ');
		char after = (char)(i + name.n < text.n ? text.p[i + name.n] : ' ');

		if (memcmp(text.p + i, name.p, name.n) == 0 && !is_name_char(before) &&
			(!is_name_char(after) || after == '.'))
			return true;
	}
	return false;
}

/* Put FILE:LINE:COL: /apt/packages/N before the text, for the first asked package that it names. */
static int locate(const struct manifest *m, const struct buf *q, struct err *e)
{
	for (size_t i = 0; i < m->apt.packages.n; i++) {
		auto_free char *pointer = mem_printf("/apt/packages/%zu", i);

		if (!names_package(slice_buf(q), apt_asked_name(m->apt.packages.v[i])))
			continue;
		err_ctx(e, "%s", pointer);
		return manifest_at(m, pointer, e);
	}
	err_ctx(e, "/apt/packages");
	return manifest_at(m, "/apt/packages", e);
}

static int unresolvable(
	const struct manifest *m, const struct buf *out, const struct buf *errout, struct err *e)
{
	auto_buf struct buf q = BUF_INIT(QUOTE_MAX + 1);

	quote_unmet(&q, out);
	quote_errors(&q, errout);
	err_set(e, ERR_USAGE, "apt cannot resolve the packages: %s",
		q.len ? q.data : "it does not say why");
	return locate(m, &q, e);
}

/* ---- the steps ---- */

static int update(const struct apt_state *s, struct err *e)
{
	static const char *const argv[] = {"apt-get", "update", "-q", NULL};
	static const char *const distrust[] = {"NO_PUBKEY", "BADSIG", "EXPKEYSIG", "REVKEYSIG",
		"not signed", "signatures", "Hash Sum mismatch"};
	auto_buf struct buf out = BUF_INIT(OUTPUT_MAX), errout = BUF_INIT(OUTPUT_MAX);
	auto_buf struct buf q = BUF_INIT(QUOTE_MAX + 1);
	enum err_kind kind = ERR_NETWORK;
	int rc = apt_state_run(s, argv, &out, &errout, e);

	if (rc <= 0)
		return rc;
	quote_errors(&q, &errout);
	for (size_t i = 0; i < sizeof(distrust) / sizeof(distrust[0]); i++)
		if (q.len && strstr(q.data, distrust[i]))
			kind = ERR_CORRUPT;
	return err_set(
		e, kind, "apt cannot read the sources: %s", q.len ? q.data : "it does not say why");
}

/* argv of a program and its words; in the arena. */
static const char **make_argv(struct arena *a, const char *const *head, const struct strings *tail)
{
	size_t n = 0;
	const char **argv;

	while (head[n])
		n++;
	argv = arena_alloc(a, (n + tail->n + 1) * sizeof(*argv));
	memcpy(argv, head, n * sizeof(*argv));
	if (tail->n)
		memcpy(argv + n, tail->v, tail->n * sizeof(*argv));
	return argv;
}

static int resolve(struct apt_state *s, const struct manifest *m, struct buf *uris, struct err *e)
{
	static const char *const head[] = {
		"apt-get", "install", "-q", "-y", "--print-uris", "--", NULL};
	auto_buf struct buf errout = BUF_INIT(OUTPUT_MAX);
	const char **argv = make_argv(&s->arena, head, &m->apt.packages);
	int rc = apt_state_run(s, argv, uris, &errout, e);

	return rc > 0 ? unresolvable(m, uris, &errout, e) : rc;
}

/* The records of all chosen packages in one call. */
static int show(struct apt_state *s, const struct buf *uris, struct buf *records, struct err *e)
{
	static const char *const head[] = {"apt-cache", "show", "-q", "--", NULL};
	struct strings chosen = {.v = arena_alloc(&s->arena, PACKAGES_MAX * sizeof(const char *))};
	struct slice text = slice_buf(uris);
	auto_buf struct buf errout = BUF_INIT(OUTPUT_MAX);
	char *name_version, *uri;
	int rc;

	while (apt_closure_next(&text, &s->arena, &name_version, &uri)) {
		if (chosen.n >= PACKAGES_MAX)
			return err_set(e, ERR_UNSUPPORTED, "more than %d packages", PACKAGES_MAX);
		chosen.v[chosen.n++] = name_version;
	}
	if (chosen.n == 0)
		return 0;
	rc = apt_state_run(s, make_argv(&s->arena, head, &chosen), records, &errout, e);
	if (rc > 0)
		return err_set(e, ERR_CORRUPT, "apt-cache show ended with status %d: %.500s", rc,
			errout.data ? errout.data : "");
	return rc;
}

static void note_size(const struct lock *l, struct progress *p)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < l->ndebs; i++)
		bytes += l->debs[i].size;
	progress_note(p, "apt chose %zu packages, %.1f MiB", l->ndebs, (double)bytes / (1 << 20));
}

static int lock_all(struct apt_state *s, struct lock *l, const struct manifest *m,
	struct progress *p, struct err *e)
{
	auto_buf struct buf uris = BUF_INIT(OUTPUT_MAX), records = BUF_INIT(OUTPUT_MAX);

	if (update(s, e) < 0 || apt_release_facts(s, l, e) < 0)
		return -1;
	if (m->apt.packages.n == 0)
		return 0;
	if (resolve(s, m, &uris, e) < 0 || show(s, &uris, &records, e) < 0 ||
		apt_closure_read(l, m, s, slice_buf(&uris), slice_buf(&records), e) < 0)
		return -1;
	note_size(l, p);
	return 0;
}

int apt_lock(struct lock *l, const struct manifest *m, struct mirrors *mirrors, const char *tmpdir,
	struct progress *p, struct err *e)
{
	struct apt_state s;
	int rc;

	if (apt_state_init(&s, m, l->platform, mirrors, tmpdir, e) < 0)
		return -1;
	rc = lock_all(&s, l, m, p, e);
	apt_state_fini(&s);
	return rc;
}
