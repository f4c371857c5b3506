#include "svrun/enter.h"

#include "images/mount.h"
#include "svrun/instance.h"

int store_enter_at(struct store *s, const struct config *c, bool create, struct err *e)
{
	if (store_open(s, c->root, create, e) < 0)
		return -1;
	if (instances_sweep(s->fd, e) == 0 && mount_sweep(s, e) == 0)
		return 0;
	store_close(s);
	return err_ctx(e, "clean up after an earlier run");
}

static int enter(struct store *s, bool create, struct err *e)
{
	struct config c;
	int rc;

	if (config_load(&c, e) < 0)
		return -1;
	rc = store_enter_at(s, &c, create, e);
	config_fini(&c);
	return rc;
}

int store_enter(struct store *s, struct err *e)
{
	return enter(s, false, e);
}

int store_enter_new(struct store *s, struct err *e)
{
	return enter(s, true, e);
}
