#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static enum err_kind kind_of_errno(int sys)
{
	return sys == ENOENT                   ? ERR_NOT_FOUND
	       : sys == EACCES || sys == EPERM ? ERR_DENIED
	       : sys == EEXIST                 ? ERR_EXISTS
					       : ERR_SYSTEM;
}

int err_at(struct err *e, enum err_kind kind, int sys, const char *file, int line, const char *fmt,
	...)
{
	va_list ap;

	if (!e)
		return -1;
	e->kind = sys ? kind_of_errno(sys) : kind;
	e->sys = sys;
	e->file = file;
	e->line = line;
	e->hint[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	if (sys) {
		size_t n = strlen(e->text);

		snprintf(e->text + n, sizeof(e->text) - n, ": %s", strerror(sys));
		errno = sys;
	}
	return -1;
}

int err_ctx(struct err *e, const char *fmt, ...)
{
	char old[sizeof(e->text)];
	size_t n;
	va_list ap;

	if (!e)
		return -1;
	memcpy(old, e->text, sizeof(old));
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text) / 2, fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	snprintf(e->text + n, sizeof(e->text) - n, ": %.*s", (int)(sizeof(old) - 1), old);
	return -1;
}

int err_hint(struct err *e, const char *fmt, ...)
{
	va_list ap;

	if (!e || e->hint[0])
		return -1;
	va_start(ap, fmt);
	vsnprintf(e->hint, sizeof(e->hint), fmt, ap);
	va_end(ap);
	return -1;
}

/* Names of files and members are in it: what a terminal would obey is shown as '?'. */
static void print(const char *before, const char *text)
{
	char plain[sizeof(((struct err *)0)->text)];

	snprintf(plain, sizeof(plain), "%s", text);
	str_plain(plain, "\n\t");
	fprintf(stderr, "%s: %s\n", before, plain);
}

void err_print(const struct err *e, const char *program)
{
	print(program, e->text);
	if (e->hint[0])
		print("hint", e->hint);
}

void warn(const char *fmt, ...)
{
	char line[sizeof(((struct err *)0)->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	print("svrun: warning", line);
}
