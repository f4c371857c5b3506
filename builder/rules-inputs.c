/* What goes into an image. */
#include "builder/rule-parts.h"

/* ---- files beside the manifest ---- */

/* "../NAME/path" is how resolve.h writes a path beside a parent manifest. */
static bool is_local(const char *s)
{
	if (str_starts(s, "../"))
		return rule_is_rel(s + 3) && strchr(s + 3, '/');
	return rule_is_rel(s);
}

static bool is_signed_by(const char *s)
{
	if (str_starts(s, "keyring:"))
		return only(s + strlen("keyring:"), LOWER DIGIT "-", LOWER, 64);
	return is_local(s);
}

static bool is_file_url(const char *s)
{
	return str_starts(s, "file:") && is_local(s + strlen("file:"));
}

static bool is_locked_url(const char *s)
{
	return is_file_url(s) || rule_is_address(s);
}

/* A registry's image by name, or one of the store. What it names is found out when it is asked for;
 * it is never a path or an option. */
static bool is_reference(const char *s)
{
	return only(s, LOWER UPPER DIGIT "._:/@-[]", LOWER UPPER DIGIT "[", 512);
}

static bool is_source_url(const char *s)
{
	return is_locked_url(s) ||
	       (!str_starts(s, "file:") && !strstr(s, "://") && is_reference(s));
}

static bool is_model_url(const char *s)
{
	return rule_is_address(s) || (!strstr(s, "://") && is_reference(s));
}

const struct rule rule_local = {.ok = is_local,
	.expected = "a relative path without . .. // or a final slash",
	.code = SV_PATH,
	.local = LOCAL_PATH};
const struct rule rule_signed_by = {.ok = is_signed_by,
	.expected = "keyring:NAME, or the path of a keyring beside the manifest",
	.local = LOCAL_KEYRING};
const struct rule rule_source_url = {.ok = is_source_url,
	.expected = "mirror:NAME/path, https://HOST/path, file:PATH or an image's reference",
	.local = LOCAL_URL};
const struct rule rule_locked_url = {
	.ok = is_locked_url, .expected = "mirror:NAME/path, https://HOST/path or file:PATH"};
const struct rule rule_model_url = {.ok = is_model_url,
	.expected = "mirror:NAME/path or https://HOST/path, without credentials and query, or an "
		    "image's reference"};
const struct rule rule_reference = {
	.ok = is_reference, .expected = "an image: HOST/NAME:TAG, or store:NAME"};

/* ---- inheritance ---- */

static bool is_from(const char *s)
{
	char name[80];
	struct digest d;
	size_t n = strcspn(s, "@");

	if (n >= sizeof(name))
		return false;
	memcpy(name, s, n);
	name[n] = '\0';
	return rule_is_name(name) && (!s[n] || digest_parse(&d, s + n + 1, NULL) == 0);
}

const struct rule rule_from = {
	.ok = is_from, .expected = "the name of a manifest, or NAME@sha256:DIGEST"};

/* ---- sources ---- */

static bool is_commit(const char *s)
{
	return strlen(s) == 40 && strspn(s, DIGIT "abcdef") == 40;
}

static bool is_snapshot(const char *s)
{
	return strlen(s) == 16 && s[8] == 'T' && s[15] == 'Z' && strspn(s, DIGIT) == 8 &&
	       strspn(s + 9, DIGIT) == 6;
}

static bool is_version_pattern(const char *s)
{
	return only(s, LOWER UPPER DIGIT ".+~:-*", NULL, 128);
}

static bool is_abs_glob(const char *s)
{
	return s[0] == '/' && rule_is_glob(s) && !strstr(s, "/../") && !str_ends(s, "/..");
}

/* OWNER/NAME or NAME of a model hub */
static bool is_repo(const char *s)
{
	return only(s, LOWER UPPER DIGIT "._/-", LOWER UPPER DIGIT, 200) && rule_is_rel(s);
}

const struct rule rule_commit = {.ok = is_commit, .expected = "a commit: 40 lower-case hex digits"};
const struct rule rule_snapshot = {.ok = is_snapshot, .expected = "YYYYMMDDTHHMMSSZ"};
const struct rule rule_version_pattern = {
	.ok = is_version_pattern, .expected = "a version, with * for any text"};
const struct rule rule_glob = {
	.ok = rule_is_glob, .expected = "a pattern: at most 256 bytes and two **"};
const struct rule rule_abs_glob = {.ok = is_abs_glob,
	.expected = "an absolute path or pattern: at most 256 bytes and two **",
	.code = SV_PATH};
const struct rule rule_repo = {.ok = is_repo, .expected = "OWNER/NAME"};
/* ---- Python ---- */

static bool is_dist_name(const char *s)
{
	size_t n = strlen(s);

	return only(s, LOWER UPPER DIGIT "._-", LOWER UPPER DIGIT, 128) &&
	       strchr(LOWER UPPER DIGIT, s[n - 1]);
}

static bool is_dist_version(const char *s)
{
	return only(s, LOWER UPPER DIGIT ".+!_-", LOWER UPPER DIGIT, 128);
}

static bool is_wheel_file(const char *s)
{
	return only(s, LOWER UPPER DIGIT "._+!-", LOWER UPPER DIGIT, 255) && str_ends(s, ".whl");
}

static bool is_specifier(const char *s)
{
	return only(s, LOWER UPPER DIGIT ".+!*<>=~, _-", NULL, 256);
}

const struct rule rule_dist_name = {
	.ok = is_dist_name, .expected = "the name of a Python distribution"};
const struct rule rule_dist_version = {.ok = is_dist_version, .expected = "a version (PEP 440)"};
const struct rule rule_wheel_file = {.ok = is_wheel_file, .expected = "the file name of a wheel"};
const struct rule rule_specifier = {
	.ok = is_specifier, .expected = "a version specifier, like ==2.7.* or >=1.2,<2"};

/* ---- users ---- */

static bool is_account(const char *s)
{
	return only(s, LOWER DIGIT "_-", LOWER "_", 32);
}

const struct rule rule_account = {
	.ok = is_account, .expected = "a-z 0-9 _ -, at most 32 characters, no digit first"};
