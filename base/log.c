#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/str.h"

void warn(const char *fmt, ...)
{
	char line[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	str_plain(line, "\n\t");
	fprintf(stderr, "svrun: warning: %s\n", line);
}
