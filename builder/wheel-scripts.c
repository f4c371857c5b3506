#include "builder/wheel-scripts.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

enum {
	SCRIPTS_MAX = 10000,
	NAME_BYTES = 200,
	SHEBANG_MAX = 127, /* bytes that every Linux takes, with "#!" and the line's end */
};

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
static const char digits[] = "0123456789";

/* ---- the file ---- */

struct scan {
	struct arena *a;
	struct wheel_scripts *out;
	size_t line;
};

static int bad(const struct scan *s, const char *what, const char *why, struct err *e)
{
	char shown[STR_SHOWN];

	return err_set(e, ERR_CORRUPT, "SV175: entry_points.txt:%zu: '%s' %s", s->line,
		str_shown(what, shown), why);
}

/* Nothing but a line's end may end a line, for whoever reads it: Python ends lines at more than
 * other programs do. */
static bool is_plain(const char *text, size_t n)
{
	if (!str_utf8(text, n))
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c < ' ' && c != '\t' && c != '\n' &&
			    !(c == '\r' && i + 1 < n && text[i + 1] == '\n')) ||
			c == 0x7f)
			return false;
		if (c == 0xc2 && (unsigned char)text[i + 1] < 0xa0) /* C1, NEL among them */
			return false;
		if (c == 0xe2 && (unsigned char)text[i + 1] == 0x80 &&
			((unsigned char)text[i + 2] & ~1) == 0xa8) /* U+2028, U+2029 */
			return false;
	}
	return true;
}

static char *trim(char *s)
{
	size_t n;

	s += strspn(s, " \t\r");
	n = strlen(s);
	while (n > 0 && strchr(" \t\r", s[n - 1]))
		n--;
	s[n] = '\0';
	return s;
}

/* "a.b.c": identifiers with dots between; returns what is behind it. NULL: it is none. */
static const char *dotted(const char *s)
{
	for (;; s++) {
		size_t n;

		if (!*s || !strchr(letters, *s))
			return NULL;
		for (n = 0; s[n] && (strchr(letters, s[n]) || strchr(digits, s[n]));)
			n++;
		s += n;
		if (*s != '.')
			return s;
	}
}

static bool is_name(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || n > NAME_BYTES || s[0] == '.' || s[0] == '-')
		return false;
	for (; *s; s++)
		if (!strchr(letters, *s) && !strchr(digits, *s) && !strchr(".+-", *s))
			return false;
	return true;
}

/* "[extra, other]" may follow; it says what must be installed, and nothing about the script. */
static bool is_extras(const char *s)
{
	s += strspn(s, " \t");
	if (!*s)
		return true;
	if (*s != '[' || !str_ends(s, "]"))
		return false;
	for (s++; s[1]; s++)
		if (!strchr(letters, *s) && !strchr(digits, *s) && !strchr(".-, \t", *s))
			return false;
	return true;
}

static int add(
	struct scan *s, const char *name, const char *module, const char *attr, struct err *e)
{
	struct wheel_scripts *out = s->out;

	for (size_t i = 0; i < out->n; i++) {
		if (strcasecmp(out->v[i].name, name) != 0)
			continue;
		if (str_eq(out->v[i].name, name) && str_eq(out->v[i].module, module) &&
			str_eq(out->v[i].attr, attr))
			return 0;
		return bad(s, name, "is there twice", e);
	}
	if (out->n == SCRIPTS_MAX)
		return bad(s, name, "is one too many", e);
	mem_grow(&out->v, &out->cap, out->n);
	out->v[out->n++] = (struct wheel_script){
		.name = arena_strdup(s->a, name), .module = module, .attr = attr};
	return 0;
}

/* "NAME = MODULE:ATTR [EXTRAS]" */
static int take_script(struct scan *s, char *line, struct err *e)
{
	char *equals = strchr(line, '='), *name = line, *value;
	const char *colon, *attr, *end;

	if (!equals)
		return bad(s, line, "is not NAME = MODULE:ATTRIBUTE", e);
	*equals = '\0';
	name = trim(name);
	value = trim(equals + 1);
	if (!is_name(name))
		return bad(s, name, "is no name for a program", e);
	colon = dotted(value);
	if (colon)
		colon += strspn(colon, " \t");
	if (!colon || *colon != ':')
		return bad(s, value, "is not MODULE:ATTRIBUTE", e);
	attr = colon + 1 + strspn(colon + 1, " \t");
	end = dotted(attr);
	if (!end || !is_extras(end))
		return bad(s, value, "is not MODULE:ATTRIBUTE", e);
	return add(s, name, arena_strndup(s->a, value, (size_t)(dotted(value) - value)),
		arena_strndup(s->a, attr, (size_t)(end - attr)), e);
}

static int take_lines(struct scan *s, char *text, struct err *e)
{
	bool wanted = false;
	char *next;

	for (char *line = text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		s->line++;
		line = trim(line);
		if (!*line || *line == '#' || *line == ';')
			continue;
		if (*line == '[') {
			if (!str_ends(line, "]"))
				return bad(s, line, "is no section", e);
			wanted = str_eq(line, "[console_scripts]") || str_eq(line, "[gui_scripts]");
		} else if (wanted && take_script(s, line, e) < 0) {
			return -1;
		}
	}
	return 0;
}

/* ---- pip's own names ---- */

/* "pip", "pip3", "pip3.10"; "easy_install", "easy_install-3.10". */
static bool is_versioned(const char *name, const char *base)
{
	size_t n = strlen(base);

	if (strncmp(name, base, n) != 0)
		return false;
	name += n;
	if (*name == '-' && str_eq(base, "easy_install"))
		name++;
	return !name[strspn(name, "0123456789.")];
}

/* A wheel for every Python cannot know the version that these names are to have. */
static int name_after_python(
	struct scan *s, const char *base, const char *const *names, size_t n, struct err *e)
{
	struct wheel_scripts *out = s->out;
	struct wheel_script plain = {0};
	size_t kept = 0;

	for (size_t i = 0; i < out->n; i++)
		if (str_eq(out->v[i].name, base))
			plain = out->v[i];
	if (!plain.name)
		return 0;
	for (size_t i = 0; i < out->n; i++)
		if (!is_versioned(out->v[i].name, base))
			out->v[kept++] = out->v[i];
	out->n = kept;
	for (size_t i = 0; i < n; i++)
		if (add(s, names[i], plain.module, plain.attr, e) < 0)
			return -1;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct wheel_script *x = a, *y = b;

	return strcmp(x->name, y->name);
}

int wheel_scripts_parse(struct wheel_scripts *out, struct arena *a, const char *text, size_t n,
	const char *python, struct err *e)
{
	struct scan s = {.a = a, .out = out};
	const char *pip[] = {"pip", arena_printf(a, "pip%.*s", (int)strcspn(python, "."), python),
		arena_printf(a, "pip%s", python)};
	const char *easy[] = {"easy_install", arena_printf(a, "easy_install-%s", python)};

	*out = (struct wheel_scripts){0};
	if (!is_plain(text, n))
		return err_set(e, ERR_CORRUPT,
			"SV175: entry_points.txt has control characters or is not UTF-8");
	if (take_lines(&s, arena_strndup(a, text, n), e) < 0 ||
		name_after_python(&s, "pip", pip, 3, e) < 0 ||
		name_after_python(&s, "easy_install", easy, 2, e) < 0) {
		wheel_scripts_fini(out);
		return -1;
	}
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_name);
	return 0;
}

void wheel_scripts_fini(struct wheel_scripts *s)
{
	free(s->v);
	*s = (struct wheel_scripts){0};
}

bool wheel_scripts_make(const struct wheel_scripts *s, const char *file)
{
	static const char *const tails[] = {".exe", "-script.py", ".pya", NULL};
	size_t n = strlen(file);

	for (size_t i = 0; tails[i]; i++) {
		size_t k = strlen(tails[i]);

		if (n > k && strcasecmp(file + n - k, tails[i]) == 0) {
			n -= k;
			break;
		}
	}
	for (size_t i = 0; i < s->n; i++)
		if (strlen(s->v[i].name) == n && strncmp(s->v[i].name, file, n) == 0)
			return true;
	return false;
}

/* ---- the text ---- */

char *wheel_shebang(const char *executable)
{
	bool blank = strchr(executable, ' ') != NULL;
	const char *quote = blank ? "\"" : "";

	if (!blank && strlen(executable) + 3 <= SHEBANG_MAX)
		return mem_printf("#!%s\n", executable);
	return mem_printf(
		"#!/bin/sh\n'''exec' %s%s%s \"$0\" \"$@\"\n' '''\n", quote, executable, quote);
}

char *wheel_script_text(const struct wheel_script *s, const char *executable)
{
	auto_free char *first = wheel_shebang(executable);
	int import = (int)strcspn(s->attr, ".");

	return mem_printf("%s"
			  "# -*- coding: utf-8 -*-\n"
			  "import re\n"
			  "import sys\n"
			  "from %s import %.*s\n"
			  "if __name__ == '__main__':\n"
			  "    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])\n"
			  "    sys.exit(%s())\n",
		first, s->module, import, s->attr, s->attr);
}
