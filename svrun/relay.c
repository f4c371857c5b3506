#include "svrun/relay.h"

#include <errno.h>
#include <string.h>

#include "base/sys.h"

enum { WRITE_MAX = 4096 }; /* what poll promises to take */

void relay_init(struct relay *r, int own_from, int own_to)
{
	r->from = own_from;
	r->to = own_to;
	r->start = r->len = 0;
	r->error = 0;
	r->typed = false;
	r->last = '\n';
}

void relay_fini(struct relay *r)
{
	sys_close_ref(&r->from);
	sys_close_ref(&r->to);
	r->len = 0;
}

bool relay_done(const struct relay *r)
{
	return r->to < 0 || (r->from < 0 && r->len == 0);
}

void relay_want(const struct relay *r, struct pollfd p[2])
{
	p[0] = (struct pollfd){.fd = r->len < RELAY_SIZE ? r->from : -1, .events = POLLIN};
	p[1] = (struct pollfd){.fd = r->to, .events = r->len ? POLLOUT : 0};
}

/* The reader is told by the end of its stream, the writer by EPIPE: what either side does about it
 * is its own business. */
static void end_if_over(struct relay *r)
{
	if (r->to < 0)
		sys_close_ref(&r->from);
	if (r->from < 0 && r->len == 0)
		sys_close_ref(&r->to);
}

/* A terminal has no end that closing could tell. Behind a newline ^D is the end, behind other text
 * the first one only sends the line. */
static void type_end(struct relay *r)
{
	for (int n = r->last == '\n' ? 1 : RELAY_TYPED; r->typed && n > 0; n--)
		r->buf[r->len++] = 'D' - '@';
}

static void fill(struct relay *r)
{
	ssize_t n;

	if (r->start) {
		memmove(r->buf, r->buf + r->start, r->len);
		r->start = 0;
	}
	n = sys_read(r->from, r->buf + r->len, RELAY_SIZE - r->len);
	if (n > 0) {
		r->len += (size_t)n;
		r->last = r->buf[r->len - 1];
	} else if (n == 0 || errno != EAGAIN) { /* EIO: the last user of a terminal closed it */
		sys_close_ref(&r->from);
		type_end(r);
	}
}

static void drain(struct relay *r)
{
	ssize_t n = sys_write(r->to, r->buf + r->start, r->len < WRITE_MAX ? r->len : WRITE_MAX);

	if (n >= 0) {
		r->start += (size_t)n;
		r->len -= (size_t)n;
	} else if (errno != EAGAIN) {
		r->error = errno == EPIPE || errno == EIO ? 0 : errno;
		r->len = 0;
		sys_close_ref(&r->to);
	}
}

void relay_step(struct relay *r, const struct pollfd p[2])
{
	if (p[0].fd >= 0 && p[0].revents)
		fill(r);
	if (p[1].fd >= 0 && p[1].revents && r->len)
		drain(r);
	else if (p[1].fd >= 0 && p[1].revents & (POLLERR | POLLHUP))
		sys_close_ref(&r->to);
	end_if_over(r);
}
