/* Questions to the person at the terminal (/dev/tty, whatever stdin and stdout are). */
#ifndef SVRUN_PROMPT_H
#define SVRUN_PROMPT_H

#include <stdbool.h>

#include "base/err.h"

enum { PROMPT_MAX = 4096 };

/* The answer without its newline; to free(). hidden: it is not shown. Errors: USAGE (no terminal),
 * DENIED (interrupted), CORRUPT (longer than PROMPT_MAX). */
char *prompt(const char *question, bool hidden, struct err *e) must_check;

#endif
