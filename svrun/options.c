#include "svrun/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"

enum { OPTIONS_MAX = 64 };

static const struct option_spec *by_name(const struct option_spec *t, const char *name, size_t n)
{
	for (; t->name; t++)
		if (strlen(t->name) == n && strncmp(t->name, name, n) == 0)
			return t;
	return NULL;
}

static const struct option_spec *by_letter(const struct option_spec *t, char letter)
{
	for (; t->name; t++)
		if (t->letter && t->letter == letter)
			return t;
	return NULL;
}

static void set(const struct option_spec *o, const char *value)
{
	struct option_list *l = o->dest;

	switch (o->kind) {
	case OPTION_FLAG:
		*(bool *)o->dest = true;
		return;
	case OPTION_STRING:
		*(const char **)o->dest = value;
		return;
	case OPTION_LIST:
		mem_grow(&l->v, &l->cap, l->n);
		l->v[l->n++] = value;
		return;
	case OPTION_ABSENT: /* absent() */
		return;
	}
}

static int absent(const struct option_spec *o, const char *word, struct err *e)
{
	err_set(e, ERR_USAGE, "no option '%s' in this version", word);
	return err_hint(e, "%s", o->help);
}

static int unknown(const struct option_spec *t, const char *word, struct err *e)
{
	const char *names[OPTIONS_MAX + 1] = {NULL}, *near;
	auto_free char *name = mem_strdup(str_starts(word, "--") ? word + 2 : word);
	size_t n = 0;

	name[strcspn(name, "=")] = '\0';
	for (; t->name && n < OPTIONS_MAX; t++)
		if (t->kind != OPTION_ABSENT)
			names[n++] = t->name;
	near = str_nearest(name, names);
	err_set(e, ERR_USAGE, "unknown option '%s'", word);
	if (near)
		err_hint(e, "did you mean --%s?", near);
	return err_hint(e, "see --help");
}

/* "--name", "--name=value", "--name value". Returns how many words it used, or -1. */
static int parse_long(const struct option_spec *t, char **argv, int left, struct err *e)
{
	const char *name = argv[0] + 2, *eq = strchr(name, '=');
	const struct option_spec *o = by_name(t, name, eq ? (size_t)(eq - name) : strlen(name));

	if (!o)
		return unknown(t, argv[0], e);
	if (o->kind == OPTION_ABSENT)
		return absent(o, argv[0], e);
	if (o->kind == OPTION_FLAG && eq)
		return err_set(e, ERR_USAGE, "--%s takes no value", o->name);
	if (o->kind == OPTION_FLAG || eq) {
		set(o, eq ? eq + 1 : NULL);
		return 1;
	}
	if (left < 2)
		return err_set(e, ERR_USAGE, "--%s needs a value: %s", o->name, o->arg);
	set(o, argv[1]);
	return 2;
}

/* "-a", "-abc", "-aVALUE", "-a VALUE". */
static int parse_short(const struct option_spec *t, char **argv, int left, struct err *e)
{
	for (const char *c = argv[0] + 1; *c; c++) {
		const struct option_spec *o = by_letter(t, *c);

		if (!o)
			return unknown(t, argv[0], e);
		if (o->kind == OPTION_ABSENT)
			return absent(o, argv[0], e);
		if (o->kind == OPTION_FLAG) {
			set(o, NULL);
			continue;
		}
		if (c[1]) {
			set(o, c[1] == '=' ? c + 2 : c + 1);
			return 1;
		}
		if (left < 2)
			return err_set(e, ERR_USAGE, "-%c needs a value: %s", *c, o->arg);
		set(o, argv[1]);
		return 2;
	}
	return 1;
}

static int wants_help(const struct option_spec *t, const char *word)
{
	return (str_eq(word, "--help") && !by_name(t, "help", 4)) ||
	       (str_eq(word, "-h") && !by_letter(t, 'h'));
}

static void print_table(const struct option_spec *t)
{
	if (t->name)
		puts("\noptions:");
	for (; t->name; t++) {
		char left[64];

		if (t->kind == OPTION_ABSENT)
			continue;
		snprintf(left, sizeof(left), "%c%c%s --%s%s%s", t->letter ? '-' : ' ',
			t->letter ? t->letter : ' ', t->letter ? "," : " ", t->name,
			t->arg ? " " : "", t->arg ? t->arg : "");
		printf("  %-28s %s\n", left, t->help);
	}
}

static void print_help(const struct command *self, const struct option_spec *t)
{
	auto_free char *usage = command_usage(self, t->name);

	printf("usage: %s\n\n%s\n", usage, self->summary);
	print_table(t);
}

static int check_words(
	const struct command *self, const struct option_spec *t, int n, struct err *e)
{
	auto_free char *usage = command_usage(self, t->name);

	if (n >= self->min && (self->max < 0 || n <= self->max))
		return 0;
	err_set(e, ERR_USAGE, "%s arguments", n < self->min ? "missing" : "too many");
	return err_hint(e, "usage: %s", usage);
}

int options_parse(const struct command *self, const struct option_spec *table, int argc,
	char **argv, bool stop_at_word, struct err *e)
{
	int first, words = 0, i = 1;
	auto_free char **kept = mem_array((size_t)argc, sizeof(*kept));

	while (i < argc) {
		int used;

		if (str_eq(argv[i], "--")) {
			i++;
			break;
		}
		if (wants_help(table, argv[i])) {
			print_help(self, table);
			e->kind = ERR_NONE;
			return -1;
		}
		if (argv[i][0] != '-' || argv[i][1] == '\0') {
			if (stop_at_word)
				break;
			kept[words++] = argv[i++];
			continue;
		}
		used = argv[i][1] == '-' ? parse_long(table, argv + i, argc - i, e)
					 : parse_short(table, argv + i, argc - i, e);
		if (used < 0)
			return -1;
		i += used;
	}
	first = i - words;
	if (words)
		memcpy(argv + first, kept, (size_t)words * sizeof(*kept));
	return check_words(self, table, argc - first, e) < 0 ? -1 : first;
}

void option_list_fini(struct option_list *l)
{
	free(l->v);
	*l = (struct option_list){0};
}

int option_bytes(const char *s, uint64_t *v)
{
	static const char units[] = "bkmgt";
	const char *unit;
	char *end;
	double n, factor = 1;

	if (!isdigit((unsigned char)*s))
		return -1;
	errno = 0;
	n = strtod(s, &end);
	if (errno || !isfinite(n) || (size_t)(end - s) != strspn(s, "0123456789."))
		return -1; /* strtod alone takes 1e3 and 0x10 */
	if (*end) {
		unit = strchr(units, tolower((unsigned char)*end));
		if (!unit || !*unit)
			return -1;
		for (; unit > units; unit--)
			factor *= 1024;
		end++;
		if (*end && strcasecmp(end, "b") != 0 && strcasecmp(end, "ib") != 0)
			return -1;
	}
	if (n * factor >= 9e18)
		return -1;
	*v = (uint64_t)(n * factor);
	return 0;
}
