#include "svrun/enter.h"

#include "base/config.h"
#include "images/mount.h"
#include "svrun/instance.h"

int store_enter(struct store *s, struct err *e)
{
	struct config c;
	int rc;

	if (config_load(&c, e) < 0)
		return -1;
	rc = store_open(s, c.root, false, e);
	config_fini(&c);
	if (rc < 0)
		return -1;
	if (instances_sweep(s->fd, e) == 0 && mount_sweep(s, e) == 0)
		return 0;
	store_close(s);
	return -1;
}
