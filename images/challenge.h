/* What a server asks for in WWW-Authenticate: one challenge after the other, in one field or in
 * several. Source: RFC 9110 11.6.1 and 11.2; formats.md 4.3.
 *
 * Thread-safe. Nothing here allocates: a value longer than its field makes that challenge, and only
 * that one, unusable.
 */
#ifndef IMAGES_CHALLENGE_H
#define IMAGES_CHALLENGE_H

#include <stdbool.h>
#include <stddef.h>

enum { CHALLENGES_MAX = 8 };

struct challenge {
	char scheme[32]; /* as it was written; compare without case */
	char realm[1024], service[256], scope[1024], error[64]; /* "" when missing */
};

struct challenges {
	struct challenge v[CHALLENGES_MAX];
	size_t n;
};

/* Add what a field's value (without the name) asks for. What cannot be read is left out, as are
 * challenges beyond the eighth: a server that means more than it can say asks in vain. */
void challenges_add(struct challenges *c, const char *value);

/* The first with that scheme, or NULL. */
const struct challenge *challenges_find(const struct challenges *c, const char *scheme);

#endif
