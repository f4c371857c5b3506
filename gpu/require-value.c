/* The grammar of NVIDIA_REQUIRE_*: alternatives between blanks, predicates between commas, each
 * PROPERTY OP VALUE. Source: the container toolkit's internal/requirements and
 * libnvidia-container's dsl.c, where they agree; what only one of them takes is refused. */
#include "gpu/require.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

enum { VALUE_MAX = 64 << 10, WORD_MAX = 128 };

enum relation { EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, NRELATIONS };
static const char *const relations[NRELATIONS] = {"=", "!=", "<", "<=", ">", ">="};

struct predicate {
	char property[WORD_MAX], value[WORD_MAX];
	enum relation relation;
};

bool gpu_is_version(const char *s)
{
	for (size_t i = 0; s[i]; i++)
		if (!isdigit((unsigned char)s[i]) && (s[i] != '.' || i == 0 || s[i - 1] == '.'))
			return false;
	return *s && s[strlen(s) - 1] != '.';
}

static bool holds(enum relation r, int order)
{
	switch (r) {
	case EQUAL:
		return order == 0;
	case NOT_EQUAL:
		return order != 0;
	case LESS:
		return order < 0;
	case LESS_EQUAL:
		return order <= 0;
	case GREATER:
		return order > 0;
	default:
		return order >= 0;
	}
}

/* n bytes of s are "cuda>=12.8". */
static int parse(struct predicate *p, const char *s, size_t n, struct err *e)
{
	char text[2 * WORD_MAX], shown[STR_SHOWN];
	size_t name, op;
	enum relation r;

	if (n < sizeof(text)) {
		memcpy(text, s, n);
		text[n] = '\0';
		name = strcspn(text, "<>=!");
		op = strspn(text + name, "<>=!");
		for (r = 0; r < NRELATIONS; r++)
			if (strlen(relations[r]) == op &&
				strncmp(text + name, relations[r], op) == 0)
				break;
		p->relation = r;
		if (name && name < WORD_MAX && r < NRELATIONS && text[name + op] &&
			str_copy(p->value, WORD_MAX, text + name + op) == 0) {
			memcpy(p->property, text, name);
			p->property[name] = '\0';
			return 0;
		}
	} else {
		snprintf(text, sizeof(text), "%.*s", (int)sizeof(text) - 1, s);
	}
	return err_set(
		e, ERR_CORRUPT, "'%s' is no requirement like cuda>=12.8", str_shown(text, shown));
}

struct property {
	const char *name;
	const char *has; /* NULL: unknown */
	bool version;
};

enum answer { NO, YES, UNKNOWN, SKIPPED };

/* -1: CORRUPT. */
static int ask(const struct predicate *p, const struct gpu_properties *of, struct err *e)
{
	const struct property known[] = {{"cuda", of->cuda, true}, {"driver", of->driver, true},
		{"arch", of->arch, true}, {"brand", of->brand, false}};
	char shown[STR_SHOWN];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct property *k = &known[i];

		if (strcasecmp(k->name, p->property) != 0)
			continue;
		if (k->version && !gpu_is_version(p->value))
			return err_set(e, ERR_CORRUPT, "'%s' is no version of %s",
				str_shown(p->value, shown), k->name);
		if (!k->version && p->relation != EQUAL && p->relation != NOT_EQUAL)
			return err_set(
				e, ERR_CORRUPT, "%s is only compared with = and !=", k->name);
		if (!k->has || (k->version && !gpu_is_version(k->has)))
			return UNKNOWN;
		return holds(p->relation, k->version ? str_version_compare(k->has, p->value)
						     : strcasecmp(k->has, p->value))
			       ? YES
			       : NO;
	}
	return SKIPPED;
}

/* One alternative: all of its predicates. The answer of one that is not met stands for it. */
static int ask_all(
	const char *s, size_t n, const struct gpu_properties *p, enum answer *answer, struct err *e)
{
	*answer = SKIPPED;
	for (size_t at = 0; at < n;) {
		size_t k = 0;
		struct predicate one;
		int rc;

		while (at + k < n && s[at + k] != ',')
			k++;
		rc = k ? parse(&one, s + at, k, e) : 0;
		if (rc == 0)
			rc = k ? ask(&one, p, e) : SKIPPED;
		if (rc < 0)
			return -1;
		if (rc == NO || (rc == UNKNOWN && *answer != NO) ||
			(rc == YES && *answer == SKIPPED))
			*answer = (enum answer)rc;
		at += k + 1;
	}
	return 0;
}

int gpu_require_value(
	const char *value, const struct gpu_properties *p, const char **why, struct err *e)
{
	size_t asked = 0, n = strlen(value);
	bool met = false, unknown = false;

	*why = NULL;
	if (n > VALUE_MAX)
		return err_set(e, ERR_CORRUPT, "longer than %d bytes", VALUE_MAX);
	/* All are read, though one is enough: what is malformed is told whatever the host has. */
	for (const char *s = value; *s;) {
		size_t k = strcspn(s, " \t\n");
		enum answer answer;

		if (ask_all(s, k, p, &answer, e) < 0)
			return -1;
		asked += answer != SKIPPED;
		met = met || answer == YES;
		unknown = unknown || answer == UNKNOWN;
		s += k + (s[k] != '\0');
	}
	if (met || !asked)
		return 1;
	*why = unknown ? "not all of it is known here" : "none of its alternatives holds";
	return 0;
}
