/* Warnings, on stderr: only where an error is deliberately swallowed. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/err.h"

void warn(const char *fmt, ...) printf_like(1, 2);

#endif
