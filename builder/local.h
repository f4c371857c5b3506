/* Inputs that lie beside the manifest: opened only beneath its folder, pinned by content. */
#ifndef BUILDER_LOCAL_H
#define BUILDER_LOCAL_H

#include "builder/lock.h"
#include "images/pool.h"

/* Open dir/path read-only, never through a link that leads out of dir; a regular file. A path
 * "../NAME/..." is beside a parent manifest (resolve.h): it may lead nowhere but into the folder
 * that holds all manifests. Errors name the path. */
int local_open(const char *dir, const char *path, uint64_t *size, struct err *e) must_check;

/* A folder, likewise. */
int local_open_dir(const char *dir, const char *path, struct err *e) must_check;

/* sha256 and size of dir/path. With a pool, the digest of a file whose device, inode, size, mtime
 * and ctime are those of an earlier call comes from the pool's notes, so that a build with nothing
 * changed reads no data. */
int local_digest(const char *dir, const char *path, struct pool *p, struct digest *d,
	uint64_t *size, struct err *e) must_check;

/* Pin every local input of m into l->files: files.from, node.lock, python.lock and what it
 * includes, models of type file. */
int local_lock(struct lock *l, const struct manifest *m, struct err *e) must_check;

/* Does every pinned file still have its digest? CORRUPT names file, expected and found. */
int local_check(
	const struct lock *l, const struct manifest *m, struct pool *p, struct err *e) must_check;

/* Path, relative to the manifest, of file f of a model of type file. */
char *local_model_path(
	struct arena *a, const struct manifest_model *model, const struct model_file *f);

#endif
