/* Does a value look like a secret? An image is copied to many places; secrets belong to the start
 * of a container. A heuristic: it knows the names people give secrets and the forms of common
 * tokens. */
#ifndef BUILDER_SECRETS_H
#define BUILDER_SECRETS_H

/* What it looks like ("a private key"), or NULL. name: of the variable, or NULL. */
const char *secret_kind(const char *name, const char *value);

#endif
