/* What the manifest asks for and the image gets as files of its own: the first process that
 * `services` and `init` mean, `icon` and `readme`. They become entries of m->files, and the
 * entrypoint. */
#ifndef BUILDER_SERVICES_H
#define BUILDER_SERVICES_H

#include "builder/manifest.h"

/* Where they are in the image. */
#define SERVICES_INIT "/usr/lib/svrun/init"
#define SERVICES_SHARE "/usr/share/svrun"

/* The first process is a program for the Perl that every Debian has (perl-base is Essential): it
 * starts the services in their order, each with its user, folder and environment; passes signals on
 * to all; reaps; starts a service again as its `restart` says, a second after it ended; and ends
 * when all have ended, with the status of the first that failed. With `init` alone it does this
 * for the one program behind "--". */
void services_apply(struct manifest *m);

/* The program. */
void services_program(const struct manifest *m, struct buf *out);

/* Has the image the Perl that it takes? A base image may have it. */
bool services_can_run(const struct manifest *m);

#endif
