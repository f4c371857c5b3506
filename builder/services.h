/* What the manifest asks for and the image gets as files of its own: the first process that
 * `services` and `init` mean, `icon` and `readme`. They become entries of m->files, and the
 * entrypoint. */
#ifndef BUILDER_SERVICES_H
#define BUILDER_SERVICES_H

#include "builder/manifest.h"

/* Where they are in the image. */
#define SERVICES_INIT "/usr/lib/svrun/init"
#define SERVICES_SHARE "/usr/share/svrun"

/* The first process is a program for the Perl that every Debian has (perl-base is Essential), and
 * no compiled one: what a compiler makes differs from one build host to another, and the image must
 * not. Its text is services-init.pl, behind what the manifest says.
 *
 * It starts the services, each with its user, folder and environment: one with `after` when those
 * that it names have started and each of their TCP `ports` accepts a connection on the loopback, or
 * 60 seconds later, or when one of them has failed for good (it says so and goes on); the others at
 * once, in the order of the list. It passes signals on to all, and reaps. It starts a service again
 * as its `restart` says: 1 second after its end, then 2, 4 .. 30, and 1 again once it has run for a
 * minute. After the stop signal, TERM, INT or QUIT nothing starts any more. It ends when all have
 * ended, with the status of the first that failed; to be ended by one of those signals is no
 * failure.
 *
 * With `init` alone it does this for the one program behind "--", whose status it is, whatever it
 * was: 143 for one that SIGTERM ended, as engines show it. */
void services_apply(struct manifest *m);

/* The program. */
void services_program(const struct manifest *m, struct buf *out);

/* What belongs into the key of an image beside the document: the program that is in the image. */
void services_key(const struct manifest *m, struct buf *out);

/* Has the image the Perl that it takes? A base image may have it. */
bool services_can_run(const struct manifest *m);

#endif
