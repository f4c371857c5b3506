#include "images/source.h"

#include "base/mem.h"
#include "base/sys.h"

enum { READ = 256 << 10 };

static int fd_next(struct source *source, const void **data, size_t *n, struct err *e)
{
	struct source_fd *s = (struct source_fd *)source;
	ssize_t got =
		s->left ? sys_read(s->fd, s->buf, s->left < READ ? (size_t)s->left : READ) : 0;

	if (got < 0)
		return err_sys(e, "read %s", s->name);
	s->left -= (uint64_t)got;
	*data = s->buf;
	*n = (size_t)got;
	return got > 0;
}

void source_fd_init(struct source_fd *s, int fd, uint64_t max, const char *name)
{
	*s = (struct source_fd){.source.next = fd_next,
		.fd = fd,
		.left = max,
		.name = name,
		.buf = mem_alloc(READ)};
}

void source_fd_fini(struct source_fd *s)
{
	free(s->buf);
	s->buf = NULL;
}
