/* Command-line options from a table: the same table parses and prints the help. */
#ifndef SVRUN_OPTIONS_H
#define SVRUN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "svrun/command.h"

enum option_kind {
	OPTION_FLAG,   /* dest: bool * */
	OPTION_STRING, /* dest: const char **; the last one wins */
	OPTION_LIST,   /* dest: struct option_list *; may be given again */
	OPTION_ABSENT, /* what other programs have: an error whose hint is `help`; not in the help
			*/
};

/* Values of an OPTION_LIST, in order; pointers into argv. */
struct option_list {
	const char **v;
	size_t n, cap;
};

struct option_spec {
	const char *name; /* "memory": --memory; the last row of a table has NULL */
	char letter;      /* 'm': -m; 0: none */
	enum option_kind kind;
	const char *arg; /* what the value is called in the help; NULL for a flag */
	const char *help;
	void *dest;
};

/* Parse argv[1..argc) by the table: --name, --name VALUE, --name=VALUE, -n, -n VALUE, -nVALUE, -abc
 * (flags), and "--", which ends the options. With stop_at_word, the first word that is no option
 * ends them too (so that the options of a container's command are not ours); without, words and
 * options may be mixed: the words are moved to the end of argv in their order. Then checks the
 * number of words against self. Returns the index of the first word. -h and --help print the usage
 * and the table, and return -1 with kind ERR_NONE. Errors: USAGE, with a "did you mean". */
int options_parse(const struct command *self, const struct option_spec *table, int argc,
	char **argv, bool stop_at_word, struct err *e) must_check;

/* "512", "512k", "2g", "1.5GiB": bytes with a binary unit (b k m g t, optional iB or B). */
int option_bytes(const char *s, uint64_t *v) must_check;

void option_list_fini(struct option_list *l);

/* The progress that --progress MODE asks for (NULL: auto), none when quiet; to progress_free().
 * USAGE. */
struct progress;
int options_progress(const char *mode, bool quiet, struct progress **p, struct err *e) must_check;

#endif
