/* What runs in an image, is asked of it, and shown of it. */
#include "builder/rule-parts.h"

#include <regex.h>

/* Dotted numbers: `least` to `most` of them. */
static bool dotted(const char *s, size_t least, size_t most)
{
	size_t n = 0;

	for (;; s++, n++) {
		size_t digits = strspn(s, DIGIT);

		if (digits < 1 || digits > 5 || n == most)
			return false;
		s += digits;
		if (*s != '.')
			return !*s && n + 1 >= least;
	}
}

/* ---- steps ---- */

const struct rule rule_build_text = {.max = 32768};

/* ---- GPUs ---- */

static bool is_compute(const char *s)
{
	return dotted(s, 2, 2);
}

static bool is_cuda(const char *s)
{
	return dotted(s, 1, 3);
}

static bool is_gpu_arch(const char *s)
{
	char number[16];
	size_t n = strlen(s);

	n = str_ends(s, "+PTX") ? n - 4 : n;
	if (n >= sizeof(number))
		return false;
	memcpy(number, s, n);
	number[n] = '\0';
	return is_compute(number);
}

static bool is_capability(const char *s)
{
	static const char *const words[] = {
		"compute", "compat32", "graphics", "utility", "video", "display", "ngx", "all"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (str_eq(s, words[i]))
			return true;
	return false;
}

const struct rule rule_compute = {.ok = is_compute, .expected = "a compute capability, like 8.0"};
const struct rule rule_cuda = {.ok = is_cuda, .expected = "a version, like 12.8"};
const struct rule rule_driver = {.ok = is_cuda, .expected = "a version, like 525 or 525.60.13"};
const struct rule rule_gpu_arch = {
	.ok = is_gpu_arch, .expected = "a compute capability, like 8.0 or 9.0+PTX"};
const struct rule rule_capability = {.ok = is_capability,
	.expected = "compute, compat32, graphics, utility, video, display, ngx or all"};

/* ---- limits ---- */

static bool is_ulimit_name(const char *s)
{
	static const char *const names[] = {"as", "core", "cpu", "data", "fsize", "locks",
		"memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio", "rttime",
		"sigpending", "stack"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_eq(s, names[i]))
			return true;
	return false;
}

static bool is_limit(const char *s, size_t n)
{
	char number[24];
	uint64_t v;

	if (n >= sizeof(number))
		return false;
	memcpy(number, s, n);
	number[n] = '\0';
	return str_eq(number, "unlimited") || str_u64(number, UINT64_MAX, &v) == 0;
}

static bool is_ulimit(const char *s)
{
	size_t n = strcspn(s, ":");

	return is_limit(s, n) && (!s[n] || is_limit(s + n + 1, strlen(s + n + 1)));
}

const struct rule rule_ulimit_name = {
	.ok = is_ulimit_name, .expected = "a limit's name, like nofile or memlock"};
const struct rule rule_ulimit = {
	.ok = is_ulimit, .expected = "SOFT or SOFT:HARD; unlimited is one"};

/* ---- probes and tests ---- */

/* Bounded in what libc makes of it: repeats multiply, and a back reference tries everything. */
static bool is_regex(const char *s)
{
	unsigned long repeats = 1;
	size_t groups = 0;
	regex_t re;

	for (const char *p = s; *p; p++) {
		if (*p == '\\' && p[1] && strchr(DIGIT, *++p))
			return false;
		groups += *p == '(';
		if (*p == '{') {
			size_t digits = strspn(p + 1, DIGIT);
			unsigned long most = strtoul(p + 1, NULL, 10);

			if (p[1 + digits] == ',' && strchr(DIGIT, p[2 + digits]))
				most = strtoul(p + 2 + digits, NULL, 10);
			if (most > 255)
				return false;
			repeats *= most ? most : 1;
			if (repeats > 1000)
				return false;
		}
	}
	if (strlen(s) > 1024 || groups > 64 || regcomp(&re, s, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	regfree(&re);
	return true;
}

static bool is_http_path(const char *s)
{
	return s[0] == '/' && no_control(s) && !strchr(s, ' ') && !strchr(s, '#');
}

static bool is_header_name(const char *s)
{
	return only(s, LOWER UPPER DIGIT "!#$%&'*+-.^_`|~", NULL, 128);
}

static bool is_pointer(const char *s)
{
	return (!*s || *s == '/') && no_control(s);
}

static bool is_code(const char *s)
{
	return strlen(s) == 5 && str_starts(s, "SV") && strspn(s + 2, DIGIT) == 3;
}

static bool is_port_key(const char *s)
{
	char number[8];
	uint64_t port;
	size_t n = strspn(s, DIGIT);

	if (n >= sizeof(number))
		return false;
	memcpy(number, s, n);
	number[n] = '\0';
	return str_u64(number, 65535, &port) == 0 && port &&
	       (str_eq(s + n, "/tcp") || str_eq(s + n, "/udp"));
}

static bool is_owner(const char *s)
{
	size_t n = strspn(s, DIGIT);

	return n && n <= 10 && s[n] == ':' && strspn(s + n + 1, DIGIT) == strlen(s + n + 1) &&
	       s[n + 1] && strlen(s + n + 1) <= 10;
}

static bool is_octal(const char *s)
{
	return strlen(s) == 4 && strspn(s, "01234567") == 4;
}

const struct rule rule_regex = {
	.ok = is_regex, .expected = "an extended regular expression (POSIX), at most 1024 bytes"};
const struct rule rule_http_path = {.ok = is_http_path, .expected = "a path that begins with /"};
const struct rule rule_header_name = {.ok = is_header_name, .expected = "the name of a header"};
const struct rule rule_header_value = {.ok = no_control, .expected = "one line of text"};
const struct rule rule_expected_text = {.max = 32768};
const struct rule rule_pointer = {.ok = is_pointer, .expected = "a JSON pointer (RFC 6901)"};
const struct rule rule_code = {.ok = is_code, .expected = "a code, like SV120"};
const struct rule rule_port_key = {.ok = is_port_key, .expected = "PORT/tcp or PORT/udp"};
const struct rule rule_owner = {.ok = is_owner, .expected = "UID:GID"};
const struct rule rule_octal = {
	.ok = is_octal, .expected = "a string of four octal digits, like \"0644\""};

/* ---- variables, modes, the build ---- */

static bool is_var_name(const char *s)
{
	return only(s, LOWER UPPER DIGIT "_", LOWER UPPER, 64);
}

static bool is_day(int month, int day)
{
	static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1];
}

static bool is_iso_date(const char *s)
{
	static const char shape[] = "0000-00-00";

	for (size_t i = 0; i < sizeof(shape); i++)
		if (shape[i] == '0' ? !s[i] || !strchr(DIGIT, s[i]) : s[i] != shape[i])
			return false;
	/* a day that never comes would hold for good: days are compared as texts */
	return is_day((s[5] - '0') * 10 + s[6] - '0', (s[8] - '0') * 10 + s[9] - '0');
}

static bool is_sbom(const char *s)
{
	return str_eq(s, "spdx-2.3") || str_eq(s, "cyclonedx-1.5") || str_eq(s, "cyclonedx-1.6");
}

const struct rule rule_var_name = {.ok = is_var_name,
	.expected = "letters, digits and _, a letter first, at most 64 characters"};
const struct rule rule_mode_name = {.ok = rule_is_name,
	.expected = "a-z 0-9 . _ -, at most 64 characters, a letter or digit at both ends"};
const struct rule rule_iso_date = {.ok = is_iso_date, .expected = "YYYY-MM-DD"};
const struct rule rule_sbom = {
	.ok = is_sbom, .expected = "spdx-2.3, cyclonedx-1.5 or cyclonedx-1.6"};

const char *rule_variable_hint(const struct rule *rule)
{
	if (rule == &rule_env_value)
		return "no shell reads env: write out what it shall be, or declare it in vars";
	return rule == &rule_arg ? "a shell's variable can be written without braces" : NULL;
}
