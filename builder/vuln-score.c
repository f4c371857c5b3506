#include "builder/vuln-score.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

static const char *const names[VULN_LEVELS] = {
	"unknown", "negligible", "low", "medium", "high", "critical"};

const char *vuln_level_name(enum vuln_level l)
{
	return names[l];
}

enum vuln_level vuln_level_of_word(const char *word)
{
	static const struct {
		const char *word;
		enum vuln_level level;
	} words[] = {{"negligible", VULN_NEGLIGIBLE}, {"unimportant", VULN_NEGLIGIBLE},
		{"low", VULN_LOW}, {"medium", VULN_MEDIUM}, {"moderate", VULN_MEDIUM},
		{"high", VULN_HIGH}, {"important", VULN_HIGH}, {"critical", VULN_CRITICAL}};
	size_t n = strlen(word);

	while (n && word[n - 1] == '*') /* Debian's "by our guess" */
		n--;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i].word) == n && strncasecmp(words[i].word, word, n) == 0)
			return words[i].level;
	return VULN_UNKNOWN;
}

/* ---- vectors ---- */

struct metric {
	const char *name;
	struct {
		char value;
		double weight;
	} of[4];
};

/* The weight of a metric in "AV:N/AC:L/..."; -1: it is not there, or nothing that it can be. */
static double weight(const char *vector, const struct metric *m)
{
	size_t n = strlen(m->name);

	for (const char *at = vector; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (strncmp(at, m->name, n) != 0 || at[n] != ':' || !at[n + 1] ||
			(at[n + 2] && at[n + 2] != '/'))
			continue;
		for (size_t i = 0; i < 4 && m->of[i].value; i++)
			if (m->of[i].value == at[n + 1])
				return m->of[i].weight;
		return -1;
	}
	return -1;
}

static bool weights(const char *vector, const struct metric *m, size_t n, double *out)
{
	for (size_t i = 0; i < n; i++) {
		out[i] = weight(vector, &m[i]);
		if (out[i] < 0)
			return false;
	}
	return true;
}

/* Up, to tenths, without what binary fractions add. */
static int round_up(double x)
{
	long n = lround(x * 100000);

	return (int)(n % 10000 == 0 ? n / 10000 : n / 10000 + 1);
}

static int score3(const char *vector)
{
	static const struct metric metrics[] = {
		{"AV", {{'N', 0.85}, {'A', 0.62}, {'L', 0.55}, {'P', 0.2}}},
		{"AC", {{'L', 0.77}, {'H', 0.44}}},
		{"UI", {{'N', 0.85}, {'R', 0.62}}},
		{"C", {{'H', 0.56}, {'L', 0.22}, {'N', 0}}},
		{"I", {{'H', 0.56}, {'L', 0.22}, {'N', 0}}},
		{"A", {{'H', 0.56}, {'L', 0.22}, {'N', 0}}},
		{"S", {{'U', 0}, {'C', 1}}},
	};
	static const struct metric rights[] = {
		{"PR", {{'N', 0.85}, {'L', 0.62}, {'H', 0.27}}},
		{"PR", {{'N', 0.85}, {'L', 0.68}, {'H', 0.5}}},
	};
	double w[7], pr, iss, impact, sum;
	bool changed;

	if (!weights(vector, metrics, 7, w))
		return -1;
	changed = w[6] > 0;
	pr = weight(vector, &rights[changed]);
	if (pr < 0)
		return -1;
	iss = 1 - (1 - w[3]) * (1 - w[4]) * (1 - w[5]);
	impact = changed ? 7.52 * (iss - 0.029) - 3.25 * pow(iss - 0.02, 15) : 6.42 * iss;
	if (impact <= 0)
		return 0;
	sum = (changed ? 1.08 : 1) * (impact + 8.22 * w[0] * w[1] * pr * w[2]);
	return round_up(sum < 10 ? sum : 10);
}

static int score2(const char *vector)
{
	static const struct metric metrics[] = {
		{"AV", {{'N', 1.0}, {'A', 0.646}, {'L', 0.395}}},
		{"AC", {{'L', 0.71}, {'M', 0.61}, {'H', 0.35}}},
		{"Au", {{'N', 0.704}, {'S', 0.56}, {'M', 0.45}}},
		{"C", {{'C', 0.66}, {'P', 0.275}, {'N', 0}}},
		{"I", {{'C', 0.66}, {'P', 0.275}, {'N', 0}}},
		{"A", {{'C', 0.66}, {'P', 0.275}, {'N', 0}}},
	};
	double w[6], impact;

	if (!weights(vector, metrics, 6, w))
		return -1;
	impact = 10.41 * (1 - (1 - w[3]) * (1 - w[4]) * (1 - w[5]));
	if (impact <= 0)
		return 0;
	return (int)lround((0.6 * impact + 0.4 * 20 * w[0] * w[1] * w[2] - 1.5) * 1.176 * 10);
}

int vuln_score(const char *vector)
{
	if (str_starts(vector, "CVSS:3."))
		return score3(vector);
	return str_starts(vector, "CVSS:") ? -1 : score2(vector);
}

enum vuln_level vuln_level_of_vector(const char *vector)
{
	int score = vuln_score(vector);

	if (score < 0)
		return VULN_UNKNOWN;
	if (score >= 90 && str_starts(vector, "CVSS:3."))
		return VULN_CRITICAL;
	return score >= 70 ? VULN_HIGH : score >= 40 ? VULN_MEDIUM : VULN_LOW;
}
