/* Writing files with credentials. Other programs rewrite them, too, without a lock: so the whole of
 * it is read, changed and renamed into place in as short a time as possible. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/auth-file.h"
#include "images/base64.h"
#include "images/secret.h"

static void forget(json_t *o, const char *key)
{
	secret_json_wipe(json_object_get(o, key));
	json_object_del(o, key);
}

/* All keys that stand for the whole host. */
static bool drop(json_t *auths, const char *host)
{
	const char *key;
	bool found = false;
	json_t *v;
	void *tmp;

	json_object_foreach_safe (auths, tmp, key, v) {
		if (!auth_file_fits(key, host, ""))
			continue;
		found = true;
		forget(auths, key);
	}
	return found;
}

/* 1 changed, 0 not. */
static int change(
	json_t *root, const char *host, const char *user, const char *secret, struct err *e)
{
	static const char *const others[] = {
		"auth", "identitytoken", "registrytoken", "username", "password"};
	json_t *auths = json_object_get(root, "auths");

	if (auths && !json_is_object(auths) && !json_is_null(auths))
		return err_set(e, ERR_CORRUPT, "auths: expected an object");
	if (!user)
		return drop(auths, host);
	if (!json_is_object(auths)) {
		auths = json_object();
		json_object_set_new(root, "auths", auths);
	}

	auto_secret char *pair = mem_printf("%s:%s", user, secret);
	auto_secret char *auth = base64_encode(pair, strlen(pair));
	json_t *old = json_object_get(auths, host), *entry;

	/* The entry keeps its place and what others keep in it; other spellings of the host go. */
	entry = json_is_object(old) ? json_copy(old) : json_object();
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		forget(entry, others[i]);
	json_object_set_new(entry, "auth", json_string(auth));
	if (!old)
		drop(auths, host);
	json_object_set_new(auths, host, entry);
	return 1;
}

static int save(const char *path, const json_t *root, const struct stat *old, struct err *e)
{
	size_t flags = JSON_INDENT(2), n = json_dumpb(root, NULL, 0, flags);
	auto_secret_buf struct buf b = BUF_INIT(n + 2);

	if (buf_reserve(&b, n + 1, e) < 0)
		return -1;
	b.len = json_dumpb(root, b.data, n, flags);
	b.data[b.len++] = '\n';
	if (file_write(AT_FDCWD, path, b.data, b.len, 0600, e) < 0)
		return -1;
	/* With sudo in a user's folder, the file stays the user's. */
	if (old && (old->st_uid != geteuid() || old->st_gid != getegid()) &&
		lchown(path, old->st_uid, old->st_gid) < 0)
		return err_sys(e, "give %s back to its owner", path);
	return 0;
}

/* Hold the folder of path (made when it is missing) against other logins. */
static int lock_folder(const char *path, bool make, struct err *e)
{
	const char *slash = strrchr(path, '/');
	auto_free char *dir =
		slash ? mem_printf("%.*s", (int)(slash - path) + 1, path) : mem_strdup(".");
	auto_fd int fd = -1;

	if (make && sys_mkdir_p(AT_FDCWD, dir, 0700) < 0)
		return err_sys(e, "create %s", dir);
	fd = sys_open(dir, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 || sys_flock(fd, LOCK_EX) < 0)
		return err_sys(e, "lock %s", dir);
	return steal_fd(&fd);
}

int auth_file_update(
	const char *path, const char *host, const char *user, const char *secret, struct err *e)
{
	auto_free char *real = realpath(path, NULL); /* a link to elsewhere stays a link */
	const char *to = real ? real : path;
	auto_fd int lock = -1;
	struct auth_file f;
	struct stat st;
	int rc, exists;

	if (!real && !user)
		return 0;
	lock = lock_folder(to, user, e);
	if (lock < 0)
		return -1;
	exists = auth_file_load(&f, to, e);
	if (exists < 0 || (!exists && !user))
		return exists;
	if (exists && sys_fstatat(AT_FDCWD, to, &st, 0) < 0) {
		auth_file_close(&f);
		return err_sys(e, "%s", to);
	}
	if (!exists)
		f.doc.root = json_object();
	rc = change(f.doc.root, host, user, secret, e);
	if (rc < 0)
		err_ctx(e, "%s", to);
	if (rc > 0 && save(to, f.doc.root, exists ? &st : NULL, e) < 0)
		rc = -1;
	auth_file_close(&f);
	return rc;
}
