/* The terminal that svrun itself runs on. */
#ifndef SVRUN_TTY_H
#define SVRUN_TTY_H

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

struct tty {
	int fd; /* borrowed; -1: not in raw mode */
	struct termios before;
};

/* Put the terminal fd into raw mode: keys go to the container as they are. Nothing when it is none.
 */
void tty_raw(struct tty *t, int fd);
/* As it was. Fine to call again. */
void tty_restore(struct tty *t);
/* Again raw, after the shell had it in between. */
void tty_raw_again(struct tty *t);

/* Size of the first of the streams 0-2 that is a terminal; false when none is. */
bool tty_size(uint32_t *rows, uint32_t *columns);
/* Give the size of our terminal to the master of the container's. */
void tty_copy_size(int master);

#endif
