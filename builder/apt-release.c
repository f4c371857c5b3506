#include "builder/apt-release.h"

#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/control.h"

enum { RELEASE_MAX = 32 << 20, STATUS_MAX = 1 << 20, SIGNERS_MAX = 32 };

/* Name of a file in apt's lists folder: the address without its scheme, "/" as "_", and these
 * characters as %xx. Source: apt, URItoFileName(). */
static char *list_name(struct arena *a, const char *address, const char *rest)
{
	static const char quoted[] = "\\|{}[]<>\"^~_=!@#$%^&*";
	auto_free char *url = mem_printf("%s/%s", address, rest);
	const char *p = strstr(url, "://");
	char *out = arena_alloc(a, 3 * strlen(url) + 1), *w = out;

	p = p ? p + 3 : str_starts(url, "file:") ? url + 5 : url;
	for (; *p; p++) {
		if (strchr(quoted, *p))
			w += snprintf(w, 4, "%%%02x", (unsigned char)*p);
		else
			*w++ = (char)(*p == '/' ? '_' : *p);
	}
	*w = '\0';
	return out;
}

static int by_text(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* The primary keys of all good signatures, of gpgv's status lines
 * "[GNUPG:] VALIDSIG FINGERPRINT DATE ... PRIMARY". */
static int collect_signers(struct arena *a, struct slice text, struct strings *out, struct err *e)
{
	struct slice line, word, last = {0};

	out->v = arena_alloc(a, SIGNERS_MAX * sizeof(const char *));
	while (slice_line(&text, &line)) {
		if (!slice_starts(line, "[GNUPG:] VALIDSIG "))
			continue;
		while (slice_piece(&line, ' ', &word))
			last = word.n ? word : last;
		if (out->n >= SIGNERS_MAX)
			return err_set(e, ERR_CORRUPT, "more than %d signatures", SIGNERS_MAX);
		out->v[out->n++] = arena_strndup(a, last.p, last.n);
	}
	if (out->n == 0)
		return err_set(e, ERR_CORRUPT, "no good signature");
	qsort(out->v, out->n, sizeof(const char *), by_text);
	return 0;
}

static int find_signers(const struct apt_state *s, const struct apt_origin *o, const char *file,
	struct arena *a, struct strings *out, struct err *e)
{
	auto_buf struct buf status = BUF_INIT(STATUS_MAX);
	const char *argv[] = {"gpgv", "--status-fd", "1", "--keyring", o->keyring, file, NULL};

	if (!o->keyring)
		return err_set(e, ERR_USAGE, "a source without signedBy");
	/* its status tells of keys that it does not have, too; one good signature is enough for apt
	 */
	if (apt_state_run(s, argv, &status, NULL, e) < 0)
		return -1;
	return collect_signers(a, (struct slice){.p = status.data, .n = status.len}, out, e);
}

/* A clear-signed text is: a header stanza, the signed stanza, the signature. */
static struct slice signed_stanza(struct slice text)
{
	struct slice stanza = {0};

	while (control_next(&text, &stanza))
		if (control_field(stanza, "Suite").p || control_field(stanza, "Codename").p ||
			control_field(stanza, "Date").p)
			return stanza;
	return (struct slice){.p = "", .n = 0};
}

static int release_fact(const struct apt_state *s, const struct apt_origin *o, const char *suite,
	struct lock *l, struct err *e)
{
	struct arena *a = &l->arena;
	auto_free char *flat = mem_printf("%sInRelease", suite);
	auto_free char *dist = mem_printf("dists/%s/InRelease", suite);
	const char *name = list_name(a, o->address, str_ends(suite, "/") ? flat : dist);
	auto_free char *path = mem_printf("%s/state/lists/%s", s->dir, name);
	auto_buf struct buf text = BUF_INIT(RELEASE_MAX);
	struct lock_index *x = &l->indexes[l->nindexes];
	const char *date;

	if (file_read(AT_FDCWD, path, &text, e) < 0)
		return err_hint(e, "the mirror must have an InRelease file");
	*x = (struct lock_index){.uri = arena_strdup(a, o->uri),
		.suite = arena_strdup(a, suite),
		.release = digest_of(text.data, text.len)};
	date = control_str(a, signed_stanza((struct slice){.p = text.data, .n = text.len}), "Date");
	x->date = date ? date : "";
	if (find_signers(s, o, path, a, &x->signed_by, e) < 0)
		return -1;
	l->nindexes++;
	return 0;
}

int apt_release_facts(const struct apt_state *s, struct lock *l, struct err *e)
{
	size_t n = 0;

	for (size_t i = 0; i < s->norigins; i++)
		n += s->origins[i].source->suites.n;
	l->indexes = arena_alloc(&l->arena, n * sizeof(*l->indexes));
	l->nindexes = 0;
	for (size_t i = 0; i < s->norigins; i++) {
		const struct strings *suites = &s->origins[i].source->suites;

		for (size_t k = 0; k < suites->n; k++)
			if (release_fact(s, &s->origins[i], suites->v[k], l, e) < 0)
				return err_ctx(e, "release file of %s %s",
					s->origins[i].uri, suites->v[k]);
	}
	return 0;
}
