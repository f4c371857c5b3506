#include "builder/secrets.h"

#include <ctype.h>
#include <strings.h>

#include "base/str.h"

#define TOKEN_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

/* Prefixes that services give their tokens, and the least length of what follows. */
static const struct {
	const char *prefix;
	size_t min;
	const char *kind;
} tokens[] = {
	{"hf_", 30, "a model hub's token"},
	{"ghp_", 30, "a code host's token"},
	{"gho_", 30, "a code host's token"},
	{"ghs_", 30, "a code host's token"},
	{"github_pat_", 30, "a code host's token"},
	{"glpat-", 18, "a code host's token"},
	{"npm_", 30, "a package registry's token"},
	{"pypi-", 50, "a package registry's token"},
	{"sk-", 20, "an API key"},
	{"sk_live_", 16, "an API key"},
	{"AIza", 30, "an API key"},
	{"AKIA", 16, "a cloud access key"},
	{"ASIA", 16, "a cloud access key"},
	{"xoxb-", 20, "a chat token"},
	{"xoxp-", 20, "a chat token"},
	{"r8_", 30, "an API token"},
};

/* Names end in one of these words, counted from "_" or the beginning. */
static const char *const words[] = {"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY",
	"API_KEY", "ACCESS_KEY", "SECRET_KEY", "PRIVATE_KEY", "AUTH_KEY", "CREDENTIALS"};

static bool is_secret_name(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t w = strlen(words[i]);

		if (n >= w && strcasecmp(name + n - w, words[i]) == 0 &&
			(n == w || name[n - w - 1] == '_'))
			return true;
	}
	return false;
}

static const char *token_kind(const char *value)
{
	for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
		size_t n = strlen(tokens[i].prefix);

		for (const char *p = value; (p = strstr(p, tokens[i].prefix)); p += n) {
			bool starts = p == value || !isalnum((unsigned char)p[-1]);

			if (starts && strspn(p + n, TOKEN_CHARS) >= tokens[i].min)
				return tokens[i].kind;
		}
	}
	return NULL;
}

/* SCHEME://USER:PASSWORD@HOST */
static bool has_url_password(const char *value)
{
	for (const char *p = value; (p = strstr(p, "://"));) {
		size_t n;

		p += 3;
		n = strcspn(p, "/?# \t\n\"'");
		const char *at = memchr(p, '@', n), *colon = memchr(p, ':', n);

		if (at && colon && colon < at && colon + 1 < at)
			return true;
	}
	return false;
}

const char *secret_kind(const char *name, const char *value)
{
	if (name && *value && is_secret_name(name))
		return "a secret, by its name";
	if (strstr(value, "PRIVATE KEY-----"))
		return "a private key";
	if (has_url_password(value))
		return "a password in an address";
	return token_kind(value);
}
