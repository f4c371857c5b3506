#include "builder/rules.h"

#include <signal.h>
#include <stdio.h>

#include "builder/npm.h"
#include "builder/rule-parts.h"
#include "images/tree.h"

/* ---- names and texts ---- */

bool rule_is_name(const char *s)
{
	size_t n = strlen(s);

	return only(s, LOWER DIGIT "._-", LOWER DIGIT, 64) && strchr(LOWER DIGIT, s[n - 1]);
}

static bool is_id(const char *s)
{
	return strlen(s) < 64 && rule_is_name(s); /* struct layer has room for 63 */
}

static bool is_version(const char *s)
{
	return only(s, LOWER UPPER DIGIT ".+~-", LOWER UPPER DIGIT, 64);
}

static bool is_line(const char *s)
{
	return *s && no_control(s);
}

static bool is_text(const char *s)
{
	for (; *s; s++)
		if (((unsigned char)*s < 0x20 && *s != '\n' && *s != '\t') || *s == 0x7f)
			return false;
	return true;
}

static bool is_spdx(const char *s)
{
	return only(s, LOWER UPPER DIGIT ".+-:() ", LOWER UPPER "(", 256);
}

/* An address for people. */
static bool is_link(const char *s)
{
	return (str_starts(s, "https://") || str_starts(s, "http://")) && no_control(s) &&
	       !strchr(s, ' ');
}

static bool is_territory(const char *s)
{
	return strlen(s) == 2 && only(s, UPPER, NULL, 2);
}

const struct rule rule_name = {.ok = rule_is_name,
	.expected = "a-z 0-9 . _ -, at most 64 characters, a letter or digit at both ends",
	.max = 64};
const struct rule rule_id = {.ok = is_id,
	.expected = "a-z 0-9 . _ -, at most 63 characters, a letter or digit at both ends",
	.max = 63};
const struct rule rule_version = {.ok = is_version,
	.expected = "letters, digits and . + ~ -, at most 64 characters, a letter or digit first",
	.max = 64};
const struct rule rule_line = {
	.ok = is_line, .expected = "one line of text", .max = 256, .vars = VARS_TEXT};
const struct rule rule_text = {.ok = is_text,
	.expected = "text without control characters",
	.max = 16384,
	.vars = VARS_TEXT};
const struct rule rule_spdx = {.ok = is_spdx, .expected = "an SPDX licence expression", .max = 256};
const struct rule rule_program = {.max = 1 << 20, .vars = VARS_NEVER};
const struct rule rule_link = {.ok = is_link, .expected = "an http:// or https:// address"};
const struct rule rule_territory = {
	.ok = is_territory, .expected = "two capital letters (ISO 3166, or EU)"};

/* ---- paths ---- */

bool rule_is_rel(const char *s)
{
	return *s && no_control(s) && tree_check_path(s, NULL) == 0;
}

static bool is_abs(const char *s)
{
	return s[0] == '/' && rule_is_rel(s + 1);
}

static bool is_abs_or_root(const char *s)
{
	return is_abs(s) || str_eq(s, "/");
}

const struct rule rule_abs = {.ok = is_abs,
	.expected = "an absolute path without . .. // or a final slash",
	.code = SV_PATH};
const struct rule rule_abs_or_root = {.ok = is_abs_or_root,
	.expected = "an absolute path without . .. // or a final slash",
	.code = SV_PATH};
const struct rule rule_rel = {.ok = rule_is_rel,
	.expected = "a relative path without . .. // or a final slash",
	.code = SV_PATH};
const struct rule rule_target = {
	.ok = is_line, .expected = "what the link points to", .max = TREE_PATH_MAX};

/* ---- addresses ---- */

/* Path of an address: printable, and no way to climb out of it, not even in percent-encoding. */
static bool is_url_path(const char *s)
{
	if (!no_control(s) || strpbrk(s, " \"<>\\^`{|}#?") || strstr(s, "//"))
		return false;
	for (const char *p = s; (p = strchr(p, '%')); p++) {
		char hex[3] = {p[1], p[1] ? p[2] : '\0', '\0'};
		unsigned long c = strtoul(hex, NULL, 16);

		if (strspn(hex, DIGIT "abcdefABCDEF") < 2 || c < 0x20 || c == '.' || c == '/')
			return false;
	}
	for (const char *p = s; *p;) {
		size_t n = strcspn(p, "/");

		if ((n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += n + (p[n] == '/');
	}
	return true;
}

/* "mirror:NAME" with or without "/path". */
static bool is_mirror_uri(const char *s)
{
	size_t n;

	if (!str_starts(s, "mirror:"))
		return false;
	s += strlen("mirror:");
	n = strspn(s, LOWER DIGIT "-");
	return n >= 1 && n <= 64 && s[0] != '-' && (!s[n] || s[n] == '/') && is_url_path(s + n);
}

bool rule_is_address(const char *s)
{
	size_t host;

	if (str_starts(s, "mirror:"))
		return is_mirror_uri(s) && strchr(s, '/') && s[strlen(s) - 1] != '/';
	if (!str_starts(s, "https://"))
		return false;
	s += strlen("https://");
	host = strspn(s, LOWER UPPER DIGIT ".-:[]");
	return host >= 1 && s[host] == '/' && s[host + 1] && is_url_path(s + host) &&
	       s[strlen(s) - 1] != '/';
}

const struct rule rule_mirror_uri = {
	.ok = is_mirror_uri, .expected = "mirror:NAME, or mirror:NAME/path"};
const struct rule rule_address = {.ok = rule_is_address,
	.expected = "mirror:NAME/path or https://HOST/path, without credentials and query"};

/* ---- packages ---- */

static bool is_deb_name(const char *s)
{
	/* "name-" asks apt-get to remove the package */
	return strlen(s) >= 2 && only(s, LOWER DIGIT "+.-", LOWER DIGIT, 128) && !str_ends(s, "-");
}

static bool is_deb_version(const char *s)
{
	return only(s, LOWER UPPER DIGIT ".+~:-", LOWER UPPER DIGIT, 128);
}

static bool is_deb_arch(const char *s)
{
	return only(s, LOWER DIGIT "-", LOWER, 32);
}

static bool is_suite(const char *s)
{
	return only(s, LOWER UPPER DIGIT "._-/", LOWER UPPER DIGIT, 64) && rule_is_rel(s);
}

static bool is_package(const char *s)
{
	char name[160];
	size_t n = strcspn(s, "=/");

	if (str_eq(s, "?essential"))
		return true;
	if (n >= sizeof(name))
		return false;
	memcpy(name, s, n);
	name[n] = '\0';
	if (!is_deb_name(name))
		return false;
	return !s[n] || (s[n] == '=' ? is_deb_version(s + n + 1) : is_suite(s + n + 1));
}

static bool is_alternative(const char *s)
{
	return only(s, LOWER UPPER DIGIT "._+-", LOWER UPPER DIGIT, 128);
}

static bool is_prune(const char *s)
{
	static const char *const words[] = {"apt-lists", "doc", "man", "info", "pyc"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (str_eq(s, words[i]))
			return true;
	return str_starts(s, "locale:!") && only(s + 8, LOWER UPPER "_@", LOWER, 32);
}

bool rule_is_glob(const char *s)
{
	size_t deep = 0;

	for (const char *p = s; (p = strstr(p, "**")); p += 2)
		deep++;
	return *s && no_control(s) && strlen(s) <= 256 && deep <= 2;
}

static bool is_omit(const char *s)
{
	return str_eq(s, "dev") || (str_starts(s, "optional:") && rule_is_glob(s + 9));
}

const struct rule rule_suite = {
	.ok = is_suite, .expected = "a suite, like bookworm or bookworm-security"};
const struct rule rule_component = {.ok = is_suite, .expected = "a component, like main"};
const struct rule rule_package = {
	.ok = is_package, .expected = "NAME, NAME=VERSION, NAME/SUITE or ?essential"};
const struct rule rule_alternative = {
	.ok = is_alternative, .expected = "the name of an alternative"};
const struct rule rule_prune = {
	.ok = is_prune, .expected = "apt-lists, doc, man, info, pyc or locale:!LANGUAGE"};
const struct rule rule_omit = {.ok = is_omit, .expected = "dev, or optional:PATTERN"};
const struct rule rule_deb_name = {.ok = is_deb_name, .expected = "the name of a Debian package"};
const struct rule rule_deb_version = {
	.ok = is_deb_version, .expected = "the version of a Debian package"};
const struct rule rule_deb_arch = {.ok = is_deb_arch, .expected = "a Debian architecture"};

/* ---- the OCI config ---- */

static bool is_env_name(const char *s)
{
	return only(s, LOWER UPPER DIGIT "_", LOWER UPPER "_", 256);
}

/* A name or a number, at most 2^32 - 2: the last one means "leave as it is". */
static bool is_id_or_name(const char *s, size_t n)
{
	char part[64];
	uint64_t id;

	if (n >= sizeof(part))
		return false;
	memcpy(part, s, n);
	part[n] = '\0';
	return str_u64(part, UINT32_MAX - 1, &id) == 0 ||
	       only(part, LOWER DIGIT "_-", LOWER "_", 32);
}

static bool is_user(const char *s)
{
	size_t n = strcspn(s, ":");

	return is_id_or_name(s, n) && (!s[n] || is_id_or_name(s + n + 1, strlen(s + n + 1)));
}

static bool is_signal(const char *s)
{
	uint64_t n;

	if (!str_starts(s, "SIG"))
		return false;
	if (str_starts(s, "SIGRTMIN+"))
		return str_u64(s + 9, 30, &n) == 0;
	for (int i = 1; i < 32; i++)
		if (sigabbrev_np(i) && str_eq(s + 3, sigabbrev_np(i)))
			return true;
	return false;
}

static bool is_label_name(const char *s)
{
	return only(s, LOWER UPPER DIGIT "._-/", LOWER UPPER DIGIT, 256);
}

const struct rule rule_env_name = {
	.ok = is_env_name, .expected = "letters, digits and _, no digit first"};
const struct rule rule_env_value = {.max = 32768, .vars = VARS_RUNTIME};
const struct rule rule_arg = {.max = 32768, .vars = VARS_RUNTIME};
const struct rule rule_user = {.ok = is_user, .expected = "USER, USER:GROUP, UID or UID:GID"};
const struct rule rule_signal = {
	.ok = is_signal, .expected = "a signal's name, like SIGTERM or SIGRTMIN+3"};
const struct rule rule_label_value = {.max = 32768, .vars = VARS_TEXT};
const struct rule rule_label_name = {
	.ok = is_label_name, .expected = "letters, digits and . _ - /"};

/* ---- layer groups ---- */

static bool is_match(const char *s)
{
	static const char *const globs[] = {"deb:", "npm:", "whl:"}, *const ids[] = {"model:",
									     "run:", "source:"};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (str_starts(s, ids[i]))
			return is_id(s + strlen(ids[i])) || str_eq(s + strlen(ids[i]), "*");
	for (size_t i = 0; i < sizeof(globs) / sizeof(globs[0]); i++)
		if (str_starts(s, globs[i]))
			return rule_is_glob(s + strlen(globs[i]));
	return str_starts(s, "path:/") && rule_is_glob(s + 5);
}

const struct rule rule_match = {.ok = is_match,
	.expected = "deb:PATTERN, whl:PATTERN, npm:PATTERN, model:ID, source:ID, run:ID or "
		    "path:/PATTERN"};

/* ---- the lock ---- */

static bool is_date(const char *s)
{
	return no_control(s); /* a Release file may have none */
}

static bool is_fingerprint(const char *s)
{
	return strlen(s) >= 16 && only(s, UPPER DIGIT, NULL, 64);
}

static bool is_npm_path(const char *s)
{
	return npm_check_path(s, NULL) == 0;
}

static bool is_npm_version(const char *s)
{
	return only(s, LOWER UPPER DIGIT ".+-", DIGIT, 256);
}

static bool is_integrity(const char *s)
{
	uint8_t digest[64];

	return npm_integrity(s, digest, NULL) == 0;
}

static bool is_npm_bin(const char *s)
{
	const struct pair bin = {"x", s};

	return npm_check_bin(&bin, NULL) == 0;
}

static bool is_npm_command(const char *s)
{
	const struct pair bin = {s, "x"};

	return npm_check_bin(&bin, NULL) == 0;
}

/* OS/ARCHITECTURE, with /VARIANT perhaps */
static bool is_platform(const char *s)
{
	size_t os = strspn(s, LOWER DIGIT),
	       arch = s[os] == '/' ? strspn(s + os + 1, LOWER DIGIT) : 0;
	const char *rest = arch ? s + os + 1 + arch : "?";

	return os > 0 && strlen(s) <= 64 &&
	       (!*rest || (*rest == '/' && only(rest + 1, LOWER DIGIT, NULL, 16)));
}

static bool is_digest(const char *s)
{
	struct digest d;

	return digest_parse(&d, s, NULL) == 0;
}

const struct rule rule_date = {.ok = is_date, .expected = "a date", .max = 64};
const struct rule rule_fingerprint = {
	.ok = is_fingerprint, .expected = "a key's fingerprint in capital hex digits"};
const struct rule rule_npm_name = {.ok = npm_is_name, .expected = "the name of an npm package"};
const struct rule rule_npm_version = {
	.ok = is_npm_version, .expected = "the version of an npm package"};
const struct rule rule_npm_path = {
	.ok = is_npm_path, .expected = "node_modules/NAME, once or nested", .code = SV_PATH};
const struct rule rule_npm_bin = {
	.ok = is_npm_bin, .expected = "a path in the package", .code = SV_PATH};
const struct rule rule_npm_command = {.ok = is_npm_command, .expected = "a file name"};
const struct rule rule_integrity = {
	.ok = is_integrity, .expected = "sha512- and 64 bytes in base64"};
const struct rule rule_digest = {
	.ok = is_digest, .expected = "sha256: and 64 lower-case hex digits"};
const struct rule rule_platform = {
	.ok = is_platform, .expected = "OS/ARCHITECTURE, like linux/amd64"};
