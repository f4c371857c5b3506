/* Users and groups by name: /etc/passwd and /etc/group of an image, read inside its root only, and
 * bounded (CVE-2024-9676). */
#ifndef RUNTIME_PASSWD_H
#define RUNTIME_PASSWD_H

#include <stdint.h>

#include "base/err.h"

enum { PASSWD_GROUPS_MAX = 256, PASSWD_HOME_MAX = 4096 };

struct passwd_ids {
	uint32_t uid, gid;
	uint32_t groups[PASSWD_GROUPS_MAX]; /* gid first, then those that list the user */
	uint32_t ngroups;
	char home[PASSWD_HOME_MAX]; /* "/" when passwd has none */
};

/* "", "name", "7", "name:group", "7:7": as image-spec config.md "User". Numbers are strict decimals
 * up to 2^31 - 1, need no entry, and are never looked up as names; without a group the user's own
 * one and the supplementary ones are taken. Errors: NOT_FOUND names what is missing, USAGE, CORRUPT
 * for an unreadable file. */
int passwd_resolve(int rootfd, const char *user, struct passwd_ids *ids, struct err *e) must_check;

/* The home of a user id, "/" when nothing says otherwise (or the file is not fit to be read). */
void passwd_home(int rootfd, uint32_t uid, char home[PASSWD_HOME_MAX]);

#endif
