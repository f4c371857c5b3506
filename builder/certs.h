/* The CA certificates as update-ca-certificates(8) leaves them: ca-certificates.conf, the bundle, a
 * link per certificate, and the links by subject hash that OpenSSL looks up. */
#ifndef BUILDER_CERTS_H
#define BUILDER_CERTS_H

#include "builder/rootfs.h"

/* All of /usr/share/ca-certificates. A file that is no certificate is CORRUPT, by name. */
int certs_make(const struct rootfs *r, struct err *e) must_check;

#endif
