/* Ending an instance from outside. */
#ifndef SVRUN_INSTANCE_STOP_H
#define SVRUN_INSTANCE_STOP_H

#include "base/err.h"

/* Ask the svrun that stays with it to stop it (supervise.h), and wait until both have ended. After
 * so many seconds its first process is killed; -1: when its own time to stop is over. 1; 0: it did
 * not run. Errors: NOT_FOUND. */
int instance_stop(int root, const char *id, int seconds, struct err *e) must_check;

#endif
