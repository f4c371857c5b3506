#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static void set(struct err *e, enum err_kind kind, int sys, const char *file, int line)
{
	e->kind = kind;
	e->sys = sys;
	e->file = file;
	e->line = line;
	e->hint[0] = '\0';
}

int err_set_at(struct err *e, enum err_kind kind, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return -1;
	set(e, kind, 0, file, line);
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return -1;
}

static enum err_kind kind_of_errno(int sys)
{
	switch (sys) {
	case ENOENT:
		return ERR_NOT_FOUND;
	case EACCES:
	case EPERM:
		return ERR_DENIED;
	case EEXIST:
		return ERR_EXISTS;
	default:
		return ERR_SYSTEM;
	}
}

int err_sys_at(struct err *e, const char *file, int line, const char *fmt, ...)
{
	int sys = errno;
	size_t n;
	va_list ap;

	if (!e)
		return -1;
	set(e, kind_of_errno(sys), sys, file, line);
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	snprintf(e->text + n, sizeof(e->text) - n, ": %s", strerror(sys));
	errno = sys;
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

int err_exit_status(const struct err *e)
{
	return e->kind == ERR_USAGE ? 2 : 125;
}

const char *err_kind_name(enum err_kind kind)
{
	static const char *const names[] = {
		[ERR_NONE] = "none",
		[ERR_USAGE] = "usage",
		[ERR_NOT_FOUND] = "not-found",
		[ERR_EXISTS] = "exists",
		[ERR_DENIED] = "denied",
		[ERR_CORRUPT] = "corrupt",
		[ERR_UNSUPPORTED] = "unsupported",
		[ERR_NETWORK] = "network",
		[ERR_SYSTEM] = "system",
	};

	return names[kind];
}

/* Names of files and members are in it: what a terminal would obey is shown as '?'. */
static const char *printable(const char *text, char *out, size_t size)
{
	snprintf(out, size, "%s", text);
	str_plain(out, "\n\t");
	return out;
}

void err_print(const struct err *e, const char *program)
{
	char text[sizeof(e->text)];

	fprintf(stderr, "%s: %s\n", program, printable(e->text, text, sizeof(text)));
	if (e->hint[0])
		fprintf(stderr, "hint: %s\n", printable(e->hint, text, sizeof(text)));
}
