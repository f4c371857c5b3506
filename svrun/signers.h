/* Public keys that a command was given, and whether an image is signed by one of them. */
#ifndef SVRUN_SIGNERS_H
#define SVRUN_SIGNERS_H

#include "images/config.h"
#include "images/signature.h"
#include "svrun/options.h"

struct signers {
	struct sign_key **v;
	size_t n;
};

int signers_load(struct signers *x, const struct option_list *files, struct err *e) must_check;
void signers_free(struct signers *x);

/* The signatures that are in the store; when there are none, and the image is from a registry,
 * those that it has there. plain_http, insecure: of that registry. The pool must not be open. */
struct signers_site {
	const struct config *config;
	bool plain_http, insecure;
};
int signers_fetch(struct store *s, const struct signers_site *site, const struct digest *manifest,
	struct err *e) must_check;

#endif
