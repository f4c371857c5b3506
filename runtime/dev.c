#include "runtime/dev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/fs-mount.h"
#include "runtime/idmap.h"

#ifndef MNT_DETACH
#define MNT_DETACH 2
#endif

static const struct {
	const char *path;
	unsigned major, minor;
} nodes[] = {{"/dev/null", 1, 3}, {"/dev/zero", 1, 5}, {"/dev/full", 1, 7}, {"/dev/random", 1, 8},
	{"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0}};

static const struct {
	const char *name, *target;
} links[] = {
	{"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"},
	{"stderr", "/proc/self/fd/2"}, {"ptmx", "pts/ptmx"},
	{"core", "/proc/kcore"}, /* where the kernel has it */
};

struct filling {
	int root;
	const struct own_mounts *own;
	bool bind; /* a user namespace can't make device nodes: they are bound */
	int made;  /* of dev_prepare(), or -1: then the host's are bound */
};

/* A device to be made: in an open folder. */
struct node {
	int dir;
	const char *name, *path; /* the path that it has inside, and on the host */
	mode_t mode;             /* with the type */
	dev_t dev;
};

static bool is_device(int fd, mode_t mode, dev_t dev)
{
	struct stat st;

	return sys_fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == (mode & S_IFMT) &&
	       (S_ISFIFO(mode) || st.st_rdev == dev);
}

int dev_null(struct err *e)
{
	auto_fd int fd = sys_open("/dev/null", O_PATH | O_NOFOLLOW, 0);

	if (fd < 0)
		return err_sys(e, "/dev/null");
	if (!is_device(fd, S_IFCHR, makedev(1, 3)))
		return err_set(e, ERR_DENIED, "the host's /dev/null is not the null device");
	return steal_fd(&fd);
}

/* What is there already, in an image whose /dev has no mount, must be just what we would make. */
static int check_node(const struct node *n, struct err *e)
{
	auto_fd int fd = sys_openat(n->dir, n->name, O_PATH | O_NOFOLLOW, 0);

	if (fd < 0)
		return err_sys(e, "device %s", n->name);
	if (!is_device(fd, n->mode, n->dev))
		return err_set(e, ERR_CORRUPT, "device %s in the root is something else", n->name);
	return 0;
}

static int bind_node(const struct node *n, int source, struct err *e)
{
	auto_fd int mnt = fs_bind(source, "", false, e);

	if (mnt < 0)
		return -1;
	auto_fd int at =
		sys_openat(n->dir, n->name, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0600);
	if (at < 0 && errno == EEXIST)
		return check_node(n, e);
	if (at < 0)
		return err_sys(e, "make a place for device %s", n->path);
	return fs_attach(mnt, at, e);
}

static int make_node(const struct filling *f, const struct node *n, struct err *e)
{
	if (!f->bind || S_ISFIFO(n->mode)) {
		if (mknodat(n->dir, n->name, n->mode, n->dev) == 0)
			return 0;
		if (errno == EEXIST)
			return check_node(n, e);
		if (errno != EPERM || S_ISFIFO(n->mode)) /* EPERM: without CAP_MKNOD */
			return err_sys(e, "make device %s", n->path);
	}
	auto_fd int host = sys_open(n->path, O_PATH, 0);
	if (host < 0)
		return err_sys(e, "the host's device %s", n->path);
	if (!is_device(host, n->mode, n->dev))
		return err_set(e, ERR_UNSUPPORTED,
			"device %s is another one on the host, and cannot be made in a user "
			"namespace",
			n->path);
	return bind_node(n, host, e);
}

static mode_t mode_of(const struct spec_device *d)
{
	return d->type | (d->mode.set ? (mode_t)d->mode.v & 07777 : 0666);
}

/* number: in the config. */
static int make_device(
	const struct filling *f, const struct spec_device *d, size_t number, struct err *e)
{
	struct node n = {.path = d->path, .mode = mode_of(d), .dev = makedev(d->major, d->minor)};
	char name[24];

	auto_fd int dir = mount_point_folder(f->root, d->path, &n.name, true, f->own, e);
	if (dir < 0)
		return err_ctx(e, "device %s", d->path);
	if (!*n.name || str_eq(n.name, ".") || str_eq(n.name, ".."))
		return err_set(e, ERR_CORRUPT, "device %s: not a file name", d->path);
	if (!own_mounts_has(f->own, dir))
		return err_set(e, ERR_DENIED, "device %s: its folder is a volume", d->path);
	n.dir = dir;
	snprintf(name, sizeof(name), "%zu", number);
	auto_fd int made = f->made < 0 ? -1 : sys_openat(f->made, name, O_PATH | O_NOFOLLOW, 0);
	if (made >= 0)
		return bind_node(&n, made, e);
	if (make_node(f, &n, e) < 0)
		return -1;
	if (f->bind && !S_ISFIFO(d->type)) /* the host's node: its owner is not ours to change */
		return 0;
	if (fchownat(dir, n.name, d->uid, d->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "owner of device %s", d->path);
	return 0;
}

static int make_defaults(const struct filling *f, int dev, struct err *e)
{
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		struct node n = {dev, nodes[i].path + strlen("/dev/"), nodes[i].path,
			S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)};

		if (make_node(f, &n, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		if (str_eq(links[i].name, "core") && access(links[i].target, F_OK) < 0)
			continue;
		if (sys_symlinkat(links[i].target, dev, links[i].name) < 0 && errno != EEXIST)
			return err_sys(e, "/dev/%s", links[i].name);
	}
	return 0;
}

int dev_prepare(const struct spec *s, int *made, struct err *e)
{
	*made = -1;
	if (!spec_new_ns(s, NS_USER) || !s->ndevices || geteuid() != 0)
		return 0;
	auto_fd int folder = fs_mount("tmpfs", "devices", NULL, 0, MOUNT_ATTR_NOEXEC, e);
	if (folder < 0)
		return -1;
	for (size_t i = 0; i < s->ndevices; i++) {
		const struct spec_device *d = &s->devices[i];
		int64_t uid = idmap_host(&s->uids, d->uid), gid = idmap_host(&s->gids, d->gid);
		char name[24];

		if (S_ISFIFO(d->type) || uid < 0 || gid < 0)
			continue;
		snprintf(name, sizeof(name), "%zu", i);
		if (mknodat(folder, name, mode_of(d), makedev(d->major, d->minor)) < 0)
			return errno == EPERM ? 0 : err_sys(e, "make device %s", d->path);
		if (fchmodat(folder, name, mode_of(d) & 07777, 0) < 0 || /* whatever the umask */
			fchownat(folder, name, (uid_t)uid, (gid_t)gid, AT_SYMLINK_NOFOLLOW) < 0)
			return err_sys(e, "owner of device %s", d->path);
	}
	*made = steal_fd(&folder);
	return 0;
}

int dev_fill(int root, const struct spec *s, const struct own_mounts *own, int made, struct err *e)
{
	const struct filling f = {root, own, spec_has_ns(s, NS_USER), made};
	int rc = 0;

	auto_fd int dev = mount_point(root, "/dev", POINT_DIR, true, own, e);
	if (dev < 0)
		return -1;
	/* Asked of the mount, not of the config: "/dev/", or a link of the image, gets there, too.
	 * A volume: it is what it is, and nothing is made in the host's folder. */
	bool mine = own_mounts_has(own, dev);

	/* Nodes can be bound only from a mount of our own namespace: that of dev_prepare() lies
	 * over the root, which is used by descriptor, until all are. */
	if (made >= 0 && fs_attach(made, root, e) < 0)
		return err_ctx(e, "devices");
	for (size_t i = 0; i < s->ndevices && rc == 0; i++)
		if (mine || !str_starts(s->devices[i].path, "/dev/"))
			rc = make_device(&f, &s->devices[i], i, e);
	if (made >= 0 && (fchdir(made) < 0 || sys_umount2(".", MNT_DETACH) < 0 || fchdir(root) < 0))
		return err_sys(e, "devices");
	return rc == 0 && mine ? make_defaults(&f, dev, e) : rc;
}

/* What a container may have put over the multiplexer is not even opened: a device, or a file whose
 * opening its owner hears of, would be by then. */
static int open_multiplexer(int root, struct err *e)
{
	auto_fd int pts = sys_open_in_root(root, "/dev/pts", O_PATH | O_DIRECTORY, 0);
	struct statfs fs;

	if (pts < 0)
		return err_sys(e, "terminal: /dev/pts");
	if (fstatfs(pts, &fs) < 0 || fs.f_type != DEVPTS_SUPER_MAGIC)
		return err_set(e, ERR_CORRUPT, "terminal: /dev/pts is not a devpts");
	auto_fd int master = sys_openat2(pts, "ptmx", O_RDWR | O_NOCTTY, 0,
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	if (master < 0)
		return err_sys(e, "terminal: /dev/pts/ptmx");
	if (!is_device(master, S_IFCHR, makedev(5, 2)))
		return err_set(e, ERR_CORRUPT, "terminal: /dev/pts/ptmx is something else");
	return steal_fd(&master);
}

int dev_terminal(int root, const struct own_mounts *own, int *slave, struct err *e)
{
	int unlock = 0;

	auto_fd int master = open_multiplexer(root, e);
	if (master < 0)
		return -1;
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return err_sys(e, "terminal: unlock");
	auto_fd int other = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (other < 0)
		return err_sys(e, "terminal: open the other side");
	/* CVE-2025-52565: the console comes by descriptor from the devpts that was mounted, never
	 * by a path that the container may have changed. */
	auto_fd int mnt = own ? fs_bind(other, "", false, e) : -1;
	auto_fd int at = mnt < 0 ? -1 : mount_point(root, "/dev/console", POINT_FILE, true, own, e);
	if (own && (at < 0 || fs_attach(mnt, at, e) < 0))
		return err_ctx(e, "/dev/console");
	*slave = steal_fd(&other);
	return steal_fd(&master);
}
