#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "runtime/confine.h"
#include "svrun/bundle.h"
#include "svrun/run-models.h"

enum { HOST_FILE_MAX = 1 << 20 };

/* ---- small files: an image has none that fit this start ---- */

static int add_file(const struct bundle_request *r, json_t *mounts, const char *name,
	const char *destination, const char *text, size_t n, struct err *e)
{
	if (instance_write(r->instance, name, text, n, e) < 0)
		return -1;
	confine_mount(mounts, destination, "bind", name, "bind,rprivate,nosuid,nodev,noexec");
	return 0;
}

/* With the host's network its names count: copies, so that nothing of the host is mounted. */
static int copy_host_file(const struct bundle_request *r, json_t *mounts, const char *name,
	const char *path, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(HOST_FILE_MAX);

	if (access(path, F_OK) < 0)
		return 0;
	if (file_read(AT_FDCWD, path, &b, e) < 0)
		return -1;
	return add_file(r, mounts, name, path, b.len ? b.data : "", b.len, e);
}

static int add_files(const struct bundle_request *r, json_t *mounts, struct err *e)
{
	const char *hostname = r->o->hostname ? r->o->hostname : r->instance->id;
	char text[256];
	int n;

	if (r->o->network && str_eq(r->o->network, "host")) {
		if (copy_host_file(r, mounts, "hosts", "/etc/hosts", e) < 0)
			return -1;
		return copy_host_file(r, mounts, "resolv.conf", "/etc/resolv.conf", e);
	}
	n = snprintf(text, sizeof(text), "127.0.0.1\tlocalhost %s\n::1\tlocalhost\n", hostname);
	return add_file(r, mounts, "hosts", "/etc/hosts", text, (size_t)n, e);
}

/* ---- volumes and tmpfs ---- */

static int bad_volume(const char *v, struct err *e)
{
	err_set(e, ERR_USAGE, "--volume '%.200s': expected SOURCE:DESTINATION[:ro]", v);
	return err_hint(e, "both are paths, the destination an absolute one");
}

/* Destinations go into config.json, which is UTF-8. */
static int check_destination(const char *option, const char *d, struct err *e)
{
	if (*d != '/' || !str_utf8(d, strlen(d)))
		return err_set(e, ERR_USAGE, "%s: '%.200s' is not an absolute path", option, d);
	return 0;
}

static int add_volume(json_t *mounts, const char *text, struct err *e)
{
	char source[PATH_MAX];
	auto_free char *copy = mem_strdup(text);
	char *destination = strchr(copy, ':'), *mode;

	if (!destination || destination == copy)
		return bad_volume(text, e);
	*destination++ = '\0';
	mode = strchr(destination, ':');
	if (mode)
		*mode++ = '\0';
	if (mode && !str_eq(mode, "ro") && !str_eq(mode, "rw"))
		return bad_volume(text, e);
	if (!strchr(copy, '/') && !str_eq(copy, ".")) {
		err_set(e, ERR_USAGE, "--volume '%.200s': '%.80s' is not a path", text, copy);
		return err_hint(e, "for a folder here write ./%.80s", copy);
	}
	if (check_destination("--volume", destination, e) < 0)
		return -1;
	if (!realpath(copy, source)) {
		err_sys(e, "--volume: %s", copy);
		return err_hint(e, "the source must exist");
	}
	if (!str_utf8(source, strlen(source)))
		return err_set(e, ERR_USAGE, "--volume: %s is not UTF-8", source);
	confine_mount(mounts, destination, "bind", source,
		mode && str_eq(mode, "ro") ? "rbind,rprivate,rro" : "rbind,rprivate");
	return 0;
}

static int add_tmpfs(json_t *mounts, const char *text, struct err *e)
{
	auto_free char *copy = mem_strdup(text);
	char *options = strchr(copy, ':');
	auto_free char *all = NULL;

	if (options)
		*options++ = '\0';
	if (check_destination("--tmpfs", copy, e) < 0)
		return -1;
	if (options && !str_utf8(options, strlen(options)))
		return err_set(e, ERR_USAGE, "--tmpfs '%.200s': options are not UTF-8", text);
	all = mem_printf(
		"nosuid,nodev,noexec,mode=1777%s%s", options ? "," : "", options ? options : "");
	confine_mount(mounts, copy, "tmpfs", "tmpfs", all);
	return 0;
}

static int fill(const struct bundle_request *r, json_t *mounts, struct err *e)
{
	const struct run_options *o = r->o;

	confine_mounts(mounts, o->shm_bytes);
	if (add_files(r, mounts, e) < 0)
		return -1;
	for (size_t i = 0; i < o->tmpfs.n; i++)
		if (add_tmpfs(mounts, o->tmpfs.v[i], e) < 0)
			return -1;
	for (size_t i = 0; i < o->volumes.n; i++)
		if (add_volume(mounts, o->volumes.v[i], e) < 0)
			return -1;
	if (r->models) /* they may lie within a volume */
		return run_models_mount(o, r->models, r->store, mounts, e);
	return 0;
}

json_t *bundle_mounts(const struct bundle_request *r, struct err *e)
{
	json_t *mounts = json_array();

	if (fill(r, mounts, e) == 0)
		return mounts;
	json_decref(mounts);
	return NULL;
}
