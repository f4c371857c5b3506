#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void warn(const char *fmt, ...)
{
	char line[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "svrun: warning: %s\n", line);
}
