#include "builder/step-mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "base/mem.h"
#include "base/sys.h"

#define LOCKS "cache/mount-locks"

static const char mark[] = "not looked through yet\n";

char *step_mount_folder(const char *id)
{
	return mem_printf("cache/mounts/%s", id);
}

int step_mount_remove(struct store *s, const char *id, struct err *e)
{
	auto_free char *folder = step_mount_folder(id);

	return sys_remove_tree(s->fd, folder) < 0 ? err_sys(e, "remove %s/%s", s->path, folder) : 0;
}

int step_mount_mark(int lock, bool set, struct err *e)
{
	if (sys_ftruncate(lock, 0) < 0 ||
		(set && sys_pwrite_all(lock, mark, sizeof(mark) - 1, 0) < 0))
		return err_sys(e, "mark a cache folder");
	return 0;
}

/* lock is held. */
static int remove_marked(struct store *s, const char *id, int lock, struct err *e)
{
	struct stat st;

	if (sys_fstat(lock, &st) < 0)
		return err_sys(e, "stat %s/%s/%s", s->path, LOCKS, id);
	if (st.st_size == 0)
		return 0;
	return step_mount_remove(s, id, e) < 0 ? -1 : step_mount_mark(lock, false, e);
}

int step_mount_open(struct store *s, const char *id, bool wait, int *out, struct err *e)
{
	auto_free char *folder = step_mount_folder(id);
	auto_free char *name = mem_printf("%s/%s", LOCKS, id);

	if (sys_mkdir_p(s->fd, LOCKS, 0700) < 0)
		return err_sys(e, "make %s/%s", s->path, LOCKS);

	auto_fd int lock = sys_openat(s->fd, name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);

	if (lock < 0)
		return err_sys(e, "open %s/%s", s->path, name);
	if (sys_flock(lock, wait ? LOCK_EX : LOCK_EX | LOCK_NB) < 0)
		return !wait && errno == EWOULDBLOCK ? 0 : err_sys(e, "lock %s/%s", s->path, name);
	if (remove_marked(s, id, lock, e) < 0)
		return -1;
	/* For whatever user the step has; nobody else gets into the store. */
	if (sys_mkdir_p(s->fd, folder, 0755) < 0 || fchmodat(s->fd, folder, 01777, 0) < 0)
		return err_sys(e, "make %s/%s", s->path, folder);
	*out = steal_fd(&lock);
	return 1;
}

static int sweep_one(void *store, int dirfd, const char *id, struct err *e)
{
	struct store *s = store;
	auto_fd int lock = sys_openat(dirfd, id, O_RDWR | O_NOFOLLOW, 0);

	if (lock < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open %s/%s/%s", s->path, LOCKS, id);
	if (sys_flock(lock, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : err_sys(e, "lock %s/%s/%s", s->path, LOCKS, id);
	return remove_marked(s, id, lock, e);
}

int step_mounts_sweep(struct store *s, struct err *e)
{
	return store_folder_each(s, LOCKS, sweep_one, s, e);
}
