/* Answers of the packaging library (tests/data/python/oracle.py), to be compared with ours. */
#ifndef ORACLE_H
#define ORACLE_H

#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"

enum { ORACLE_FIELDS = 4, ORACLE_MAX = 64 << 20 };

/* Call check() for each line, with its fields; how many there were. Skips aloud without the
 * library.
 */
static size_t oracle_ask(const char *what, void (*check)(char *const field[ORACLE_FIELDS]))
{
	const char *const argv[] = {"/usr/bin/python3", "tests/data/python/oracle.py", what, NULL};
	const char *const probe[] = {"/usr/bin/python3", "-c", "import packaging.tags", NULL};
	auto_buf struct buf out = BUF_INIT(ORACLE_MAX);
	struct err e = {0};
	size_t n = 0;
	char *next;

	if (proc_run(&(struct proc){.argv = probe}, NULL) != 0) {
		print_message("skipped: python3-packaging is not installed\n");
		skip();
	}
	if (proc_check(&(struct proc){.argv = argv, .out = &out}, &e) < 0)
		fail_msg("%s", e.text);
	for (char *line = out.data; line && *line; line = next, n++) {
		char *field[ORACLE_FIELDS] = {0};

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		for (size_t i = 0; i < ORACLE_FIELDS && line; i++) {
			field[i] = line;
			line = strchr(line, '\t');
			if (line)
				*line++ = '\0';
		}
		check(field);
	}
	return n;
}

#endif
