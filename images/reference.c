#include "images/reference.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

enum { LABEL_MAX = 63, NAME_MAX_DNS = 253, PORT_MAX = 65535, QUOTED = 120 };

static bool lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool alnum(char c)
{
	return lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

/* "the host 'x_y' has ...". Parts are quoted only to a length. */
static int bad(struct err *e, const char *part, const char *s, size_t n, const char *why)
{
	char text[QUOTED + 1];
	size_t len = n < QUOTED ? n : QUOTED;

	for (size_t i = 0; i < len; i++)
		text[i] = s[i] < ' ' || s[i] > '~' ? '?' : s[i];
	text[len] = '\0';
	return err_set(e, ERR_USAGE, "the %s '%s%s' %s", part, text, n > len ? "..." : "", why);
}

/* ---- host ---- */

static const char *check_domain(const char *s, size_t n)
{
	size_t label = 0;

	if (n == 0)
		return "is empty";
	if (n > NAME_MAX_DNS)
		return "is longer than 253 bytes";
	for (size_t i = 0; i <= n; i++) {
		if (i < n && s[i] != '.') {
			if (!alnum(s[i]) && s[i] != '-')
				return "has something else than letters, digits, '.' and '-'";
			if (s[i] == '-' && label == 0)
				return "has a part that begins with '-'";
			label++;
			continue;
		}
		if (label == 0)
			return "has an empty part";
		if (label > LABEL_MAX)
			return "has a part longer than 63 bytes";
		if (s[i - 1] == '-')
			return "has a part that ends with '-'";
		label = 0;
	}
	return NULL;
}

static const char *check_ipv6(const char *s, size_t n)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr a;

	if (n >= sizeof(text))
		return "has no IPv6 address in its brackets";
	memcpy(text, s, n);
	text[n] = '\0';
	return inet_pton(AF_INET6, text, &a) == 1 ? NULL : "has no IPv6 address in its brackets";
}

static const char *check_port(const char *s, size_t n)
{
	unsigned long v = 0;

	if (n == 0 || n > 5 || s[0] == '0')
		return "has a port that is not a number from 1 to 65535";
	for (size_t i = 0; i < n; i++) {
		if (!isdigit((unsigned char)s[i]))
			return "has a port that is not a number from 1 to 65535";
		v = v * 10 + (unsigned long)(s[i] - '0');
	}
	return v <= PORT_MAX ? NULL : "has a port that is not a number from 1 to 65535";
}

static const char *check_host(const char *s, size_t n)
{
	const char *end = s + n, *p = memchr(s, ':', n), *why;

	if (n && s[0] == '[') {
		p = memchr(s, ']', n);
		if (!p)
			return "has a '[' without ']'";
		why = check_ipv6(s + 1, (size_t)(p - s) - 1);
		if (!why && ++p < end && *p != ':')
			why = "has something other than a port after its ']'";
	} else {
		p = p ? p : end;
		why = check_domain(s, (size_t)(p - s));
	}
	if (why || p == end)
		return why;
	if (end - p == 1 && end[0] == '/' && end[1] == '/') /* n bytes of a longer text */
		return "is a scheme: leave that and its // out";
	return check_port(p + 1, (size_t)(end - p) - 1);
}

static int take_host(char out[REFERENCE_HOST], const char *s, size_t n, struct err *e)
{
	const char *why = check_host(s, n);

	if (why)
		return bad(e, "host", s, n, why);
	for (size_t i = 0; i < n; i++)
		out[i] = (char)tolower((unsigned char)s[i]);
	out[n] = '\0';
	return 0;
}

int reference_host(const char *text, char out[REFERENCE_HOST], struct err *e)
{
	const char *s = str_starts(text, "https://") ? text + 8 : text;
	size_t n = strlen(s);

	if (str_starts(text, "http://")) {
		bad(e, "host", text, strlen(text), "has a scheme");
		return err_hint(e, "%s, with plain-http", text + 7);
	}
	n -= n > 0 && s[n - 1] == '/';
	if (memchr(s, '/', n)) {
		bad(e, "host", s, n, "has a path");
		return err_hint(e, "name only the host: %.*s", (int)strcspn(s, "/"), s);
	}
	return take_host(out, s, n, e);
}

bool reference_has_host(const char *text)
{
	size_t n = strcspn(text, "/@");

	return text[n] == '/' && (memchr(text, '.', n) || memchr(text, ':', n) ||
					 (n == 9 && memcmp(text, "localhost", 9) == 0));
}

/* ---- path, tag, digest ---- */

/* [a-z0-9]+ ( ("." | "_" | "__" | "-"+) [a-z0-9]+ )*, and what is wrong when it is not. */
static const char *check_component(const char *p, const char *end)
{
	if (p == end)
		return "has an empty part";
	for (;;) {
		const char *sep;

		if (p == end || !lower_alnum(*p))
			break;
		while (p < end && lower_alnum(*p))
			p++;
		sep = p;
		if (p < end && *p == '.')
			p++;
		else if (p < end && *p == '_')
			p += end - p > 1 && p[1] == '_' ? 2 : 1;
		else
			while (p < end && *p == '-')
				p++;
		if (p == end && p == sep)
			return NULL;
		if (p == sep)
			break;
	}
	if (p < end && *p >= 'A' && *p <= 'Z')
		return "has upper case";
	if (p < end && !strchr("._-", *p))
		return "has something else than lower-case letters, digits and . _ -";
	return "has a part that begins or ends with one of . _ -, or has two of them in a row";
}

static int take_path(struct reference *r, const char *s, size_t n, struct err *e)
{
	const char *p = s, *end = s + n, *why = n >= sizeof(r->path) ? "is too long" : NULL;

	while (!why) {
		const char *slash = memchr(p, '/', (size_t)(end - p));

		why = check_component(p, slash ? slash : end);
		if (!slash)
			break;
		p = slash + 1;
	}
	if (why)
		return bad(e, "path", s, n, why);
	memcpy(r->path, s, n);
	r->path[n] = '\0';
	return 0;
}

static int take_tag(struct reference *r, const char *s, size_t n, struct err *e)
{
	const char *why = n == 0                   ? "is empty"
			  : n >= sizeof(r->tag)    ? "is longer than 128 bytes"
			  : *s == '.' || *s == '-' ? "begins with '.' or '-'"
						   : NULL;

	for (size_t i = 0; !why && i < n; i++)
		if (!alnum(s[i]) && (!s[i] || !strchr("_.-", s[i])))
			why = "has something else than letters, digits and . _ -";
	if (why)
		return bad(e, "tag", s, n, why);
	memcpy(r->tag, s, n);
	r->tag[n] = '\0';
	return 0;
}

static int take_digest(struct reference *r, const char *s, struct err *e)
{
	if (digest_parse(&r->digest, s, NULL) < 0)
		return bad(
			e, "digest", s, strlen(s), "is not sha256: and 64 lower-case hex digits");
	r->has_digest = true;
	return 0;
}

static int parse(struct reference *r, const char *text, struct err *e)
{
	const char *s = text, *at, *colon, *end;

	*r = (struct reference){0};
	if (reference_has_host(text)) {
		size_t n = strcspn(text, "/");

		if (take_host(r->host, text, n, e) < 0)
			return -1;
		s = text + n + 1;
	}
	at = strchr(s, '@');
	end = at ? at : s + strlen(s);
	colon = memchr(s, ':', (size_t)(end - s));
	if (take_path(r, s, (size_t)((colon ? colon : end) - s), e) < 0 ||
		(colon && take_tag(r, colon + 1, (size_t)(end - colon) - 1, e) < 0) ||
		(at && take_digest(r, at + 1, e) < 0))
		return -1;
	if (!r->tag[0] && !r->has_digest)
		snprintf(r->tag, sizeof(r->tag), "latest");
	return 0;
}

int reference_parse_name(struct reference *r, const char *text, struct err *e)
{
	if (parse(r, text, e) == 0)
		return 0;
	err_ctx(e, "'%.300s' is not an image name", text);
	return err_hint(
		e, "[HOST[:PORT]/]NAME[:TAG][@DIGEST], such as registry.example/team/app:1.0");
}

int reference_parse(struct reference *r, const char *text, struct err *e)
{
	if (reference_has_host(text))
		return reference_parse_name(r, text, e);
	err_set(e, ERR_USAGE, "'%.300s' is not an image name: it has no host", text);
	return err_hint(
		e, "HOST[:PORT]/NAME[:TAG][@DIGEST], such as registry.example/team/app:1.0");
}

char *reference_text(const struct reference *r, char out[REFERENCE_TEXT])
{
	char digest[DIGEST_TEXT + 1] = "";
	bool tag = r->tag[0] && (r->has_digest || !str_eq(r->tag, "latest"));

	if (r->has_digest)
		digest_text(&r->digest, digest);
	snprintf(out, REFERENCE_TEXT, "%s%s%s%s%s%s%s", r->host, r->host[0] ? "/" : "", r->path,
		tag ? ":" : "", tag ? r->tag : "", r->has_digest ? "@" : "", digest);
	return out;
}

const char *reference_target(const struct reference *r, char out[DIGEST_TEXT + 1])
{
	return r->has_digest ? digest_text(&r->digest, out) : r->tag;
}

/* ---- short names ---- */

/* Put what the site calls a repository before the tag and digest that text has. */
static int take_site(struct reference *r, const struct config *c, const char *key,
	const char *repository, const struct reference *text, struct err *e)
{
	struct reference site;

	if (reference_parse(&site, repository, e) < 0)
		return err_ctx(e, "%s: short-names: %s", c->path, key);
	if (site.has_digest || !str_eq(site.tag, "latest") || str_ends(repository, ":latest"))
		return err_set(e, ERR_USAGE,
			"%s: short-names: %s: '%s' has a tag or digest: a repository is expected",
			c->path, key, repository);
	*r = *text;
	memcpy(r->host, site.host, sizeof(r->host));
	memcpy(r->path, site.path, sizeof(r->path));
	return 0;
}

static int search(const struct config *c, const struct reference *text, struct reference *v,
	size_t max, size_t *n, struct err *e)
{
	const json_t *list = json_object_get(c->short_names, "search"), *o;
	size_t i;

	json_array_foreach (list, i, o) {
		auto_free char *repository =
			mem_printf("%s/%s", json_string_value(o) ?: "", text->path);

		if (*n == max)
			break;
		if (take_site(&v[*n], c, "search", repository, text, e) < 0)
			return -1;
		(*n)++;
	}
	return 0;
}

int reference_expand(const struct config *c, const char *text, struct reference *v, size_t max,
	size_t *n, struct err *e)
{
	struct reference r;
	const char *alias;

	*n = 0;
	if (max == 0 || reference_parse_name(&r, text, e) < 0)
		return max ? -1 : 0;
	if (r.host[0]) {
		v[(*n)++] = r;
		return 0;
	}
	alias = json_string_value(
		json_object_get(json_object_get(c->short_names, "aliases"), r.path));
	if (alias) {
		(*n)++;
		return take_site(v, c, "aliases", alias, &r, e);
	}
	if (search(c, &r, v, max, n, e) < 0)
		return -1;
	if (*n)
		return 0;
	err_set(e, ERR_NOT_FOUND, "'%.300s' names no registry", text);
	return err_hint(e,
		"write HOST/%s, or set short-names in %s: {\"short-names\": {\"aliases\": "
		"{\"%.60s\": "
		"\"registry.example/%.60s\"}}}",
		r.path, c->path, r.path, r.path);
}
