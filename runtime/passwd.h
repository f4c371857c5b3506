/* /etc/passwd and /etc/group of an image, read inside its root only, and bounded (CVE-2024-9676).
 */
#ifndef RUNTIME_PASSWD_H
#define RUNTIME_PASSWD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum {
	PASSWD_FILE_MAX = 1 << 20,
	PASSWD_FIELDS = 6,
	PASSWD_HOME_MAX = 4096,
	/* Beyond it some system, or a careless cast, takes ids for negative, and -1 for "no
	 * change". */
	PASSWD_ID_MAX = INT32_MAX
};

/* A text that ends with a NUL; "" when there is no such file. Errors: CORRUPT, for what is no plain
 * file, too. */
int passwd_read(int rootfd, const char *path, struct buf *b, struct err *e) must_check;
/* Cut the next line of *text into fields at its colons. Returns how many, 0 at the end. */
size_t passwd_line(char **text, char *f[PASSWD_FIELDS]);
/* A strict decimal. */
int passwd_id(const char *s, uint32_t *id) must_check;

struct passwd_user {
	uint32_t uid, gid;
	const char *name, *home; /* in the text; home: "/" when there is none */
};
/* The first entry that fits, as for libc: of that name, or (NULL) of that id. */
bool passwd_find(char *text, const char *name, uint32_t uid, struct passwd_user *u);

/* The home of a user id, "/" when nothing says otherwise (or the file is not fit to be read). */
void passwd_home(int rootfd, uint32_t uid, char home[PASSWD_HOME_MAX]);

/* "", "name", "7", "name:group", "7:7", as image-spec config.md "User". Numbers are strict decimals
 * up to PASSWD_ID_MAX, need no entry, and are never looked up as names; without a group the user's
 * own one and the supplementary ones are taken. Errors: NOT_FOUND names what is missing, USAGE,
 * CORRUPT for an unreadable file. */
enum { PASSWD_GROUPS_MAX = 256 };
struct passwd_ids {
	uint32_t uid, gid;
	uint32_t groups[PASSWD_GROUPS_MAX]; /* gid first, then those that list the user */
	uint32_t ngroups;
	char home[PASSWD_HOME_MAX]; /* "/" when passwd has none */
};
int passwd_resolve(int rootfd, const char *user, struct passwd_ids *ids, struct err *e) must_check;

#endif
