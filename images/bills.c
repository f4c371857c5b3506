#include "images/bills.h"

#include <errno.h>
#include <stdio.h>

#include "base/file.h"
#include "base/sys.h"

enum { NAME = 8 + DIGEST_HEX };

static const char *path_of(const struct digest *manifest, char out[NAME])
{
	char hex[DIGEST_HEX + 1];

	snprintf(out, NAME, "bills/%s", digest_hex(manifest, hex));
	return out;
}

int bills_put(
	struct store *s, const struct digest *manifest, const void *p, size_t n, struct err *e)
{
	char path[NAME];

	if (sys_mkdirat(s->fd, "bills", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "create %s/bills", s->path);
	return file_write(s->fd, path_of(manifest, path), p, n, 0600, e);
}

int bills_get(struct store *s, const struct digest *manifest, struct buf *b, struct err *e)
{
	char path[NAME];
	struct err fault = {0};

	if (file_read(s->fd, path_of(manifest, path), b, &fault) == 0)
		return 1;
	if (fault.kind == ERR_NOT_FOUND)
		return 0;
	if (e)
		*e = fault;
	return -1;
}

int bills_remove(struct store *s, const struct digest *manifest, struct err *e)
{
	char path[NAME];

	if (sys_unlinkat(s->fd, path_of(manifest, path), 0) < 0 && errno != ENOENT)
		return err_sys(e, "remove %s/%s", s->path, path);
	return 0;
}
