#include "builder/script.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

enum {
	COMMANDS_MAX = 100000,
	WORDS_MAX = 1024, /* of one command */
	LOOPS_MAX = 16,
	NEST_MAX = 64, /* of substitutions */
	HEREDOCS_MAX = 8,
	BUDGET = 64 << 20, /* bytes of words made and of loop bodies read again */
};

struct variable {
	const char *name, *value; /* value NULL: not known */
};

struct loop {
	const char *variable; /* NULL: while, until, or words that are not known */
	struct strings values;
	size_t i;
	const char *body;
};

struct script {
	struct arena arena;
	const char *p, *end;
	struct variable *vars;
	size_t nvars, varcap;
	struct loop loops[LOOPS_MAX];
	size_t nloops;
	const char *heredocs[HEREDOCS_MAX]; /* terminators of those that begin after this line */
	size_t nheredocs;
	size_t ncommands, budget;
	struct buf word;
	bool word_unknown;
};

struct script *script_new(const char *text, size_t n)
{
	struct script *s = mem_alloc(sizeof(*s));

	s->p = text;
	s->end = text + n;
	s->word = BUF_INIT(n + COMMANDS_MAX);
	s->budget = BUDGET;
	return s;
}

void script_free(struct script *s)
{
	if (!s)
		return;
	free(s->vars);
	buf_fini(&s->word);
	arena_fini(&s->arena);
	free(s);
}

/* A script that costs more than the budget ends here. */
static bool spend(struct script *s, size_t n)
{
	if (n > s->budget) {
		s->p = s->end;
		return false;
	}
	s->budget -= n;
	return true;
}

/* ---- variables ---- */

static bool is_name_char(char c, bool first)
{
	return c == '_' || isalpha((unsigned char)c) || (!first && isdigit((unsigned char)c));
}

static bool is_name(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_name_char(s[i], i == 0))
			return false;
	return n > 0;
}

static void set_variable(struct script *s, const char *name, size_t n, const char *value)
{
	for (size_t i = 0; i < s->nvars; i++)
		if (strlen(s->vars[i].name) == n && memcmp(s->vars[i].name, name, n) == 0) {
			s->vars[i].value = value;
			return;
		}
	mem_grow(&s->vars, &s->varcap, s->nvars);
	s->vars[s->nvars++] =
		(struct variable){.name = arena_strndup(&s->arena, name, n), .value = value};
}

/* dpkg sets DPKG_ROOT to nothing when it installs into the running system. */
static const char *variable_value(const struct script *s, const char *name, size_t n)
{
	for (size_t i = 0; i < s->nvars; i++)
		if (strlen(s->vars[i].name) == n && memcmp(s->vars[i].name, name, n) == 0)
			return s->vars[i].value;
	return n == 9 && memcmp(name, "DPKG_ROOT", 9) == 0 ? "" : NULL;
}

/* ---- words ---- */

static void add(struct script *s, const char *p, size_t n)
{
	if (buf_add(&s->word, p, n, NULL) < 0) /* loops blow a variable up: no real script does */
		s->word_unknown = true;
}

/* Behind the closing character of a substitution that began before *p. */
static const char *skip_nested(const char *p, const char *end, char open, char close)
{
	unsigned depth = 1;

	for (; p < end; p++) {
		if (*p == '\\' && p + 1 < end) {
			p++;
		} else if (*p == '\'') {
			const char *q = memchr(p + 1, '\'', (size_t)(end - p - 1));

			p = q ? q : end - 1;
		} else if (*p == '"' && open != close) {
			for (p++; p < end && *p != '"'; p++)
				p += *p == '\\' && p + 1 < end;
			if (p == end)
				break;
		} else if (*p == open && open != close) {
			depth++;
		} else if (*p == close && --depth == 0) {
			return p + 1;
		}
		if (depth > NEST_MAX)
			break;
	}
	return end;
}

/* At the character behind '$'. */
static void expand(struct script *s)
{
	const char *name = s->p, *value;
	size_t n = 0;

	if (s->p < s->end && *s->p == '(') {
		s->p = skip_nested(s->p + 1, s->end, '(', ')');
		s->word_unknown = true;
		return;
	}
	if (s->p < s->end && *s->p == '{') {
		name = s->p + 1;
		s->p = skip_nested(s->p + 1, s->end, '{', '}');
		n = s->p > name ? (size_t)(s->p - name - 1) : 0;
		if (!is_name(name, n)) { /* ${X:-default} and the like */
			s->word_unknown = true;
			return;
		}
	} else {
		while (name + n < s->end && is_name_char(name[n], n == 0))
			n++;
		if (n == 0) { /* $1, $@, $?, or a dollar sign */
			s->p += s->p < s->end && strchr("@*#?-$!0123456789", *s->p) ? 1 : 0;
			s->word_unknown = true;
			return;
		}
		s->p += n;
	}
	value = variable_value(s, name, n);
	if (value)
		add(s, value, strlen(value));
	else
		s->word_unknown = true;
}

static void backslash(struct script *s, bool quoted)
{
	s->p++;
	if (s->p == s->end)
		return;
	if (*s->p != '\n') {
		if (quoted && !strchr("$`\"\\", *s->p))
			add(s, "\\", 1);
		add(s, s->p, 1);
	}
	s->p++;
}

static void double_quoted(struct script *s)
{
	s->p++;
	while (s->p < s->end && *s->p != '"') {
		if (*s->p == '\\') {
			backslash(s, true);
		} else if (*s->p == '$') {
			s->p++;
			expand(s);
		} else if (*s->p == '`') {
			s->p = skip_nested(s->p + 1, s->end, '`', '`');
			s->word_unknown = true;
		} else {
			add(s, s->p++, 1);
		}
	}
	s->p += s->p < s->end;
}

static void single_quoted(struct script *s)
{
	const char *start = s->p + 1;
	const char *close = memchr(start, '\'', (size_t)(s->end - start));

	close = close ? close : s->end;
	add(s, start, (size_t)(close - start));
	s->p = close < s->end ? close + 1 : close;
}

static bool ends_word(char c)
{
	return strchr(" \t\n;&|()<>", c) != NULL;
}

/* The word at p; false when there is none. */
static bool read_word(struct script *s)
{
	const char *start = s->p;

	s->word.len = 0;
	s->word_unknown = false;
	while (s->p < s->end && *s->p && !ends_word(*s->p)) {
		if (*s->p == '\\') {
			backslash(s, false);
		} else if (*s->p == '\'') {
			single_quoted(s);
		} else if (*s->p == '"') {
			double_quoted(s);
		} else if (*s->p == '$') {
			s->p++;
			expand(s);
		} else if (*s->p == '`') {
			s->p = skip_nested(s->p + 1, s->end, '`', '`');
			s->word_unknown = true;
		} else {
			add(s, s->p++, 1);
		}
	}
	return s->p > start;
}

/* ---- between words ---- */

static void skip_blanks(struct script *s)
{
	while (s->p < s->end) {
		if (*s->p == ' ' || *s->p == '\t')
			s->p++;
		else if (*s->p == '\\' && s->p + 1 < s->end && s->p[1] == '\n')
			s->p += 2;
		else if (*s->p == '#')
			while (s->p < s->end && *s->p != '\n')
				s->p++;
		else
			break;
	}
}

/* At the first character behind a newline: skip the texts of here-documents. */
static void skip_heredocs(struct script *s)
{
	for (size_t i = 0; i < s->nheredocs; i++) {
		size_t n = strlen(s->heredocs[i]);

		while (s->p < s->end) {
			const char *line = s->p;
			const char *nl = memchr(line, '\n', (size_t)(s->end - line));
			const char *eol = nl ? nl : s->end;

			s->p = nl ? nl + 1 : s->end;
			while (line < eol && *line == '\t') /* <<- */
				line++;
			if ((size_t)(eol - line) == n && memcmp(line, s->heredocs[i], n) == 0)
				break;
		}
	}
	s->nheredocs = 0;
}

/* A redirection at '<' or '>': it and its target are no words of the command. */
static void skip_redirection(struct script *s)
{
	bool heredoc = s->p + 1 < s->end && s->p[0] == '<' && s->p[1] == '<';

	while (s->p < s->end && strchr("<>&|-", *s->p))
		s->p++;
	skip_blanks(s);
	if (read_word(s) && heredoc && s->nheredocs < HEREDOCS_MAX)
		s->heredocs[s->nheredocs++] =
			arena_strndup(&s->arena, s->word.data ? s->word.data : "", s->word.len);
}

/* Separators between commands. */
static void skip_separators(struct script *s)
{
	while (s->p < s->end) {
		skip_blanks(s);
		if (s->p == s->end || !(*s->p == '\0' || strchr("\n;&|()", *s->p)))
			break;
		if (*s->p++ == '\n')
			skip_heredocs(s);
	}
}

/* ---- commands ---- */

static void read_command(struct script *s, struct command *c)
{
	const char **v = arena_alloc(&s->arena, 8 * sizeof(*v));
	size_t cap = 8;

	*c = (struct command){.words.v = v};
	for (;;) {
		skip_blanks(s);
		if (s->p < s->end && (*s->p == '<' || *s->p == '>')) {
			skip_redirection(s);
			continue;
		}
		if (!read_word(s))
			return;
		if (c->words.n == WORDS_MAX) {
			c->unknown = true;
			continue;
		}
		if (c->words.n == cap) {
			v = arena_alloc(&s->arena, 2 * cap * sizeof(*v));
			memcpy(v, c->words.v, cap * sizeof(*v));
			c->words.v = v;
			cap *= 2;
		}
		v[c->words.n++] =
			arena_strndup(&s->arena, s->word.data ? s->word.data : "", s->word.len);
		spend(s, s->word.len + 2 * sizeof(*v));
		c->unknown |= s->word_unknown;
		if (s->word_unknown) /* an assignment of it must not look literal */
			v[c->words.n - 1] = arena_printf(&s->arena, "%s\001", v[c->words.n - 1]);
	}
}

static void shift(struct command *c)
{
	c->words.v++;
	c->words.n--;
}

static bool is_unknown(const char *word)
{
	return *word && word[strlen(word) - 1] == '\001';
}

/* Leading keywords and assignments; what stays is the command itself. */
static void strip_prefix(struct script *s, struct command *c)
{
	static const char *const words[] = {"if", "then", "else", "elif", "do", "!", "{", "}",
		"time", "export", "local", "readonly", "command"};

	for (; c->words.n > 0; shift(c)) {
		const char *w = c->words.v[0], *eq = strchr(w, '=');
		bool skip = false;

		if (eq && is_name(w, (size_t)(eq - w))) {
			set_variable(s, w, (size_t)(eq - w), is_unknown(w) ? NULL : eq + 1);
			skip = true;
		}
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			skip |= str_eq(w, words[i]);
		if (!skip)
			break;
	}
}

/* "for V in a b c": the body is read once for each word. */
static void begin_loop(struct script *s, const struct command *c)
{
	struct loop l = {0};
	const char *const *w = c->words.v;

	if (s->nloops == LOOPS_MAX)
		return;
	if (str_eq(w[0], "for") && c->words.n > 3 && str_eq(w[2], "in") && !c->unknown) {
		l.variable = w[1];
		l.values = (struct strings){.v = c->words.v + 3, .n = c->words.n - 3};
		l.body = s->p;
		set_variable(s, w[1], strlen(w[1]), l.values.v[0]);
	} else if (str_eq(w[0], "for") && c->words.n > 1) {
		set_variable(s, w[1], strlen(w[1]), NULL);
	}
	s->loops[s->nloops++] = l;
}

static void end_loop(struct script *s)
{
	struct loop *l;

	if (s->nloops == 0)
		return;
	l = &s->loops[s->nloops - 1];
	if (l->variable && ++l->i < l->values.n) {
		set_variable(s, l->variable, strlen(l->variable), l->values.v[l->i]);
		if (spend(s, (size_t)(s->p - l->body)))
			s->p = l->body;
		return;
	}
	s->nloops--;
}

bool script_next(struct script *s, struct command *c)
{
	while (s->ncommands++ < COMMANDS_MAX) {
		skip_separators(s);
		if (s->p == s->end)
			return false;
		read_command(s, c);
		strip_prefix(s, c);
		if (c->words.n == 0)
			continue;
		if (str_eq(c->words.v[0], "for") || str_eq(c->words.v[0], "while") ||
			str_eq(c->words.v[0], "until"))
			begin_loop(s, c);
		else if (str_eq(c->words.v[0], "done"))
			end_loop(s);
		else
			return true;
	}
	return false;
}
