#include "builder/mirror-host.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/proc.h"
#include "base/str.h"

enum { TARGETS_MAX = 8 << 20, SOURCES_MAX = 1 << 20, FILES_MAX = 1000 };

/* ---- by label: what apt knows of the lists it has ---- */

/* "Debian-Security" -> "debian-security", "Some Label" -> "some-label". */
static void to_name(char *label)
{
	for (; *label; label++)
		*label = *label == ' ' ? '-' : (char)tolower((unsigned char)*label);
}

static void ask_program(struct mirrors *m)
{
	static const char *const argv[] = {"apt-get", "indextargets", "--format",
		"$(REPO_URI) $(LABEL)", "Created-By: Packages", NULL};
	auto_buf struct buf out = BUF_INIT(TARGETS_MAX), errout = BUF_INIT(TARGETS_MAX);
	const struct proc p = {.argv = argv, .out = &out, .errout = &errout};
	char *line, *next;

	if (proc_run(&p, NULL) != 0 || !out.len)
		return;
	for (line = out.data; line && *line; line = next) {
		char *label = strchr(line, ' ');

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (!label || (next && label >= next))
			continue;
		*label++ = '\0';
		to_name(label);
		mirror_found(m, label, line);
	}
}

/* ---- by place: the files that list sources, before the first apt-get update ---- */

struct source {
	char *uris, *suites, *keyring; /* lists separated by spaces; borrowed; NULL: none */
};

static bool ends_in(const char *uri, size_t n, const char *end)
{
	size_t k = strlen(end);

	while (n > 0 && uri[n - 1] == '/')
		n--;
	return n >= k && strncmp(uri + n - k, end, k) == 0;
}

static bool has_security_suite(const struct source *s)
{
	return s->suites && (strstr(s->suites, "-security") || strstr(s->suites, "/updates"));
}

/* The mirror that one of the source's addresses is, or NULL. The path tells best; behind an address
 * that does not tell, the keyring and the suites do. */
static const char *classify(const struct source *s, const char *uri, size_t n)
{
	static const struct {
		const char *end, *name;
	} paths[] = {{"/debian-security", "debian-security"}, {"/debian", "debian"},
		{"/ubuntu", "ubuntu"}, {"/ubuntu-ports", "ubuntu"}};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (ends_in(uri, n, paths[i].end))
			return paths[i].name;
	if (s->keyring && strstr(s->keyring, "ubuntu-archive-keyring"))
		return "ubuntu";
	if (s->keyring && strstr(s->keyring, "debian-archive-keyring"))
		return has_security_suite(s) ? "debian-security" : "debian";
	return NULL;
}

static void add_source(struct mirrors *m, const struct source *s)
{
	const char *p = s->uris;
	size_t n;

	for (p += strspn(p, " \t"); *p; p += n, p += strspn(p, " \t")) {
		auto_free char *uri = NULL;
		const char *name;

		n = strcspn(p, " \t");
		name = classify(s, p, n);
		uri = mem_printf("%.*s", (int)n, p);
		if (name)
			mirror_found(m, name, uri);
	}
}

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; p && (p = strstr(p, word)); p += n)
		if ((p == list || isspace((unsigned char)p[-1])) &&
			(!p[n] || isspace((unsigned char)p[n])))
			return true;
	return false;
}

/* A stanza of a .sources file (deb822: "Field: value", continued lines begin with a space). */
static void add_stanza(struct mirrors *m, char *stanza)
{
	struct source s = {0};
	const char *types = NULL, *enabled = "yes";
	char *line, *next;

	for (line = stanza; line; line = next) {
		char *colon;

		for (next = strchr(line, '\n'); next && (next[1] == ' ' || next[1] == '\t');
			next = strchr(next, '\n'))
			*next = ' '; /* join a continued line */
		if (next)
			*next++ = '\0';
		colon = strchr(line, ':');
		if (*line == '#' || !colon)
			continue;
		*colon++ = '\0';
		colon += strspn(colon, " \t");
		if (strcasecmp(line, "Types") == 0)
			types = colon;
		else if (strcasecmp(line, "URIs") == 0)
			s.uris = colon;
		else if (strcasecmp(line, "Suites") == 0)
			s.suites = colon;
		else if (strcasecmp(line, "Signed-By") == 0)
			s.keyring = colon;
		else if (strcasecmp(line, "Enabled") == 0)
			enabled = colon;
	}
	if (s.uris && has_word(types, "deb") && strncasecmp(enabled, "no", 2) != 0)
		add_source(m, &s);
}

static void read_stanzas(struct mirrors *m, char *text)
{
	for (char *end; text; text = end) {
		end = strstr(text, "\n\n");
		if (end) {
			end[0] = '\0';
			end += 2;
		}
		add_stanza(m, text);
	}
}

/* "deb [signed-by=KEYRING arch=...] URI SUITE COMPONENT..." */
static void read_lines(struct mirrors *m, char *text)
{
	char *line, *next;

	for (line = text; line; line = next) {
		struct source s = {0};

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		line += strspn(line, " \t");
		if (!str_starts(line, "deb ") && !str_starts(line, "deb\t"))
			continue;
		line += strcspn(line, " \t");
		line += strspn(line, " \t");
		if (*line == '[') {
			s.keyring = line;
			line = strchr(line, ']');
			if (!line)
				continue;
			*line++ = '\0';
			line += strspn(line, " \t");
		}
		s.uris = line;
		s.suites = line + strcspn(line, " \t");
		if (*s.suites)
			*s.suites++ = '\0';
		add_source(m, &s);
	}
}

static void read_sources(struct mirrors *m, const char *path)
{
	auto_buf struct buf text = BUF_INIT(SOURCES_MAX);

	if (file_read(AT_FDCWD, path, &text, NULL) < 0 || !text.len)
		return;
	if (str_ends(path, ".sources"))
		read_stanzas(m, text.data);
	else
		read_lines(m, text.data);
}

static int by_string(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void ask_files(struct mirrors *m)
{
	struct arena a = {0};
	const char *list = arena_printf(&a, "%s/etc/apt/sources.list", m->root);
	const char *dir = arena_printf(&a, "%s/etc/apt/sources.list.d", m->root);
	char **v = arena_alloc(&a, FILES_MAX * sizeof(*v));
	DIR *d = opendir(dir);
	const struct dirent *de;
	size_t n = 0;

	while (d && n < FILES_MAX && (de = readdir(d)))
		if (str_ends(de->d_name, ".sources") || str_ends(de->d_name, ".list"))
			v[n++] = arena_printf(&a, "%s/%s", dir, de->d_name);
	if (d)
		closedir(d);
	qsort(v, n, sizeof(*v), by_string);
	read_sources(m, list);
	for (size_t i = 0; i < n; i++)
		read_sources(m, v[i]);
	arena_fini(&a);
}

/* ---- by default: what debootstrap would use, on a host of another distribution ---- */

/* The first Debian address behind `key` in one of debootstrap's scripts. Others than sid's name old
 * releases' archives. */
static void ask_script(struct mirrors *m, const char *file, const char *key)
{
	auto_free char *path = mem_printf("%s%s", m->root, file);
	auto_buf struct buf text = BUF_INIT(SOURCES_MAX);

	if (file_read(AT_FDCWD, path, &text, NULL) < 0 || !text.len)
		return;
	for (const char *p = text.data; (p = strstr(p, key));) {
		auto_free char *address = NULL, *security = NULL;
		size_t n;

		p += strlen(key);
		p += strspn(p, " \t\"");
		n = strcspn(p, " \t\r\n\"");
		if (!ends_in(p, n, "/debian"))
			continue;
		while (p[n - 1] == '/')
			n--;
		address = mem_printf("%.*s", (int)n, p);
		security = mem_printf("%s-security", address);
		mirror_found(m, "debian", address);
		mirror_found(m, "debian-security", security);
		return;
	}
}

void mirror_ask_apt(struct mirrors *m, const char *name)
{
	ask_program(m);
	if (!mirror_is_found(m, name))
		ask_files(m);
	if (!mirror_is_found(m, name))
		ask_script(m, "/usr/share/debootstrap/scripts/sid", "default_mirror ");
	if (!mirror_is_found(m, name))
		ask_script(m, "/usr/sbin/debootstrap", "\nDEF_MIRROR=");
}
