#include "svrun/tty.h"

#include <sys/ioctl.h>
#include <unistd.h>

void tty_raw(struct tty *t, int fd)
{
	t->fd = -1;
	if (tcgetattr(fd, &t->before) < 0)
		return;
	t->fd = fd;
	tty_raw_again(t);
}

void tty_raw_again(struct tty *t)
{
	struct termios raw = t->before;

	if (t->fd < 0)
		return;
	cfmakeraw(&raw);
	tcsetattr(t->fd, TCSADRAIN, &raw);
}

void tty_restore(struct tty *t)
{
	if (t->fd >= 0)
		tcsetattr(t->fd, TCSADRAIN, &t->before);
	t->fd = -1;
}

static bool get_size(struct winsize *w)
{
	for (int fd = 0; fd < 3; fd++)
		if (ioctl(fd, TIOCGWINSZ, w) == 0 && w->ws_row && w->ws_col)
			return true;
	return false;
}

bool tty_size(uint32_t *rows, uint32_t *columns)
{
	struct winsize w;

	if (!get_size(&w))
		return false;
	*rows = w.ws_row;
	*columns = w.ws_col;
	return true;
}

void tty_copy_size(int master)
{
	struct winsize w;

	/* A terminal that cannot be resized keeps its size: nothing depends on it. */
	if (get_size(&w) && ioctl(master, TIOCSWINSZ, &w) < 0)
		return;
}
