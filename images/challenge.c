#include "images/challenge.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"

#define ALPHA_DIGIT "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
static const char token_chars[] = ALPHA_DIGIT "!#$%&'*+-.^_`|~";
static const char token68_chars[] = ALPHA_DIGIT "-._~+/";

static const char *skip_space(const char *s)
{
	return s + strspn(s, " \t");
}

/* Copy n bytes of s, unless they do not fit. */
static bool take(char *dst, size_t size, const char *s, size_t n)
{
	if (n >= size)
		return false;
	memcpy(dst, s, n);
	dst[n] = '\0';
	return true;
}

/* Where the challenge's parameter of that name goes; NULL: it is none of ours. */
static char *field(struct challenge *c, const char *name, size_t n, size_t *size)
{
	const struct {
		const char *name;
		char *at;
		size_t size;
	} fields[] = {
		{"realm", c->realm, sizeof(c->realm)},
		{"service", c->service, sizeof(c->service)},
		{"scope", c->scope, sizeof(c->scope)},
		{"error", c->error, sizeof(c->error)},
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strlen(fields[i].name) == n && strncasecmp(fields[i].name, name, n) == 0) {
			*size = fields[i].size;
			return fields[i].at;
		}
	return NULL;
}

/* A quoted string at s. Returns what follows it, or NULL when it does not end. *ok turns false when
 * it does not fit, or holds what must not get into an address or an error. */
static const char *quoted(const char *s, char *dst, size_t size, bool *ok)
{
	size_t n = 0;

	for (s++; *s && *s != '"'; s++) {
		if (*s == '\\' && !*++s)
			return NULL;
		if ((unsigned char)*s < ' ' || *s == '\x7f')
			*ok = false;
		if (dst && n + 1 < size)
			dst[n++] = *s;
		else if (dst)
			*ok = false;
	}
	if (dst)
		dst[n] = '\0';
	return *s ? s + 1 : NULL;
}

/* The value of a parameter, after its '='. As quoted(). */
static const char *value(const char *s, char *dst, size_t size, bool *ok)
{
	size_t n;

	if (dst && dst[0]) /* given twice: which one is meant is anybody's guess */
		*ok = false;
	s = skip_space(s);
	if (*s == '"')
		return quoted(s, dst, size, ok);
	n = strspn(s, token_chars);
	if (dst && !take(dst, size, s, n))
		*ok = false;
	return n ? s + n : NULL;
}

/* Is s, the rest after a scheme, a token68 ("Negotiate YII=") and not a parameter? */
static const char *skip_token68(const char *s)
{
	const char *end = s + strspn(s, token68_chars);

	if (end == s)
		return NULL;
	end = skip_space(end + strspn(end, "="));
	return *end == '\0' || *end == ',' ? end : NULL;
}

static bool is_param(const char *s)
{
	size_t n = strspn(s, token_chars);

	return n && *skip_space(s + n) == '=';
}

/* A parameter, and what separates it from the next one. NULL when it cannot be read. */
static const char *param(const char *s, struct challenge *c, bool *ok)
{
	size_t n = strspn(s, token_chars), size = 0;
	char *dst = field(c, s, n, &size);

	s = value(skip_space(s + n) + 1, dst, size, ok);
	if (!s)
		return NULL;
	s = skip_space(s);
	return *s == '\0' || *s == ',' ? s : NULL;
}

static const char *next_item(const char *s)
{
	return s + strspn(s, ", \t");
}

/* One challenge at s. Returns what follows, or NULL when reading cannot go on. */
static const char *challenge_read(const char *s, struct challenge *c, bool *ok)
{
	size_t n = strspn(s, token_chars);
	const char *end;

	*c = (struct challenge){0};
	*ok = n > 0 && take(c->scheme, sizeof(c->scheme), s, n);
	s += n;
	if (n == 0 || (*s != '\0' && *s != ',' && *s != ' ' && *s != '\t'))
		return NULL;
	s = skip_space(s);
	end = skip_token68(s);
	if (end)
		s = end;
	while (*(s = next_item(s)) && is_param(s)) {
		s = param(s, c, ok);
		if (!s)
			return NULL;
	}
	return s;
}

void challenges_add(struct challenges *c, const char *text)
{
	struct challenge one;
	bool ok;

	for (text = next_item(text); *text && c->n < CHALLENGES_MAX; text = next_item(text)) {
		text = challenge_read(text, &one, &ok);
		if (!text)
			return;
		if (ok)
			c->v[c->n++] = one;
	}
}

const struct challenge *challenges_find(const struct challenges *c, const char *scheme)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcasecmp(c->v[i].scheme, scheme) == 0)
			return &c->v[i];
	return NULL;
}
