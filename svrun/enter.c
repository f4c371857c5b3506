#include "svrun/enter.h"

#include "base/config.h"
#include "images/mount.h"
#include "svrun/instance.h"

static int enter(struct store *s, bool create, struct err *e)
{
	struct config c;
	int rc;

	if (config_load(&c, e) < 0)
		return -1;
	rc = store_open(s, c.root, create, e);
	config_fini(&c);
	if (rc < 0)
		return -1;
	if (instances_sweep(s->fd, e) == 0 && mount_sweep(s, e) == 0)
		return 0;
	store_close(s);
	return -1;
}

int store_enter(struct store *s, struct err *e)
{
	return enter(s, false, e);
}

int store_enter_new(struct store *s, struct err *e)
{
	return enter(s, true, e);
}
