#include "images/tree-attr.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"

/* Prefixes that the EROFS image can hold; the part after the prefix must not be empty. */
bool attr_xattr_ok(const char *name)
{
	static const char *const prefixes[] = {"user.", "trusted.", "security."};

	if (strlen(name) > TREE_NAME_MAX)
		return false;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (str_starts(name, prefixes[i]) && name[strlen(prefixes[i])])
			return true;
	return str_eq(name, "system.posix_acl_access") || str_eq(name, "system.posix_acl_default");
}

static int check_xattrs(const struct attr *a, struct err *e)
{
	size_t total = 0;

	if (a->nxattrs > TREE_XATTRS_MAX)
		return err_set(e, ERR_CORRUPT, "%" PRIu32 " extended attributes, the limit is %d",
			a->nxattrs, TREE_XATTRS_MAX);
	for (uint32_t i = 0; i < a->nxattrs; i++) {
		const struct xattr *x = &a->xattrs[i];

		if (!attr_xattr_ok(x->name))
			return err_set(e, ERR_CORRUPT,
				"extended attribute '%.200s': not user.*, trusted.*, security.* or "
				"an ACL",
				x->name);
		if (i > 0 && strcmp(x[-1].name, x->name) >= 0)
			return err_set(e, ERR_CORRUPT,
				"extended attribute '%.200s': twice, or not sorted", x->name);
		if (x->len > TREE_XATTR_VALUE_MAX)
			return err_set(e, ERR_CORRUPT,
				"extended attribute '%.200s': longer than %d bytes", x->name,
				TREE_XATTR_VALUE_MAX);
		total += strlen(x->name) + x->len;
	}
	if (total > TREE_XATTRS_BYTES)
		return err_set(e, ERR_CORRUPT, "%zu bytes of extended attributes, the limit is %d",
			total, TREE_XATTRS_BYTES);
	return 0;
}

int attr_check(const struct attr *a, struct err *e)
{
	switch (a->type) {
	case NODE_SYMLINK:
	case NODE_HARDLINK:
		if (!a->target || !a->target[0] || strlen(a->target) > TREE_PATH_MAX)
			return err_set(e, ERR_CORRUPT,
				"the link's target is empty or longer than %d bytes",
				TREE_PATH_MAX);
		break;
	case NODE_FILE:
		assert(a->nchunks == (a->size + CHUNK_SIZE - 1) / CHUNK_SIZE);
		break;
	case NODE_CHAR:
	case NODE_BLOCK:
		if (a->major >= 1 << 12 || a->minor >= 1 << 20)
			return err_set(e, ERR_CORRUPT, "device number %" PRIu32 ":%" PRIu32,
				a->major, a->minor);
		break;
	case NODE_DIR:
	case NODE_FIFO:
		break;
	}
	return check_xattrs(a, e);
}

bool attr_same_data(const struct attr *a, const struct attr *b)
{
	if (a->size != b->size || a->nchunks != b->nchunks)
		return false;
	for (uint32_t i = 0; i < a->nchunks; i++)
		if (!digest_eq(&a->chunks[i].digest, &b->chunks[i].digest))
			return false;
	return true;
}

bool attr_same_xattrs(const struct attr *a, const struct attr *b)
{
	if (a->nxattrs != b->nxattrs)
		return false;
	for (uint32_t i = 0; i < a->nxattrs; i++) {
		const struct xattr *x = &a->xattrs[i], *y = &b->xattrs[i];

		if (strcmp(x->name, y->name) != 0 || x->len != y->len ||
			(x->len && memcmp(x->value, y->value, x->len) != 0))
			return false;
	}
	return true;
}

struct attr attr_copy(struct arena *m, const struct attr *a)
{
	struct attr c = {.type = a->type,
		.mode = a->mode & 07777,
		.uid = a->uid,
		.gid = a->gid,
		.mtime = a->mtime,
		.nxattrs = a->nxattrs};

	if (a->type == NODE_SYMLINK)
		c.target = arena_strdup(m, a->target);
	if (a->type == NODE_CHAR || a->type == NODE_BLOCK) {
		c.major = a->major;
		c.minor = a->minor;
	}
	if (a->type == NODE_FILE && a->nchunks > 0) {
		c.size = a->size;
		c.nchunks = a->nchunks;
		c.chunks = arena_dup(m, a->chunks, a->nchunks * sizeof(*a->chunks));
	}
	if (a->nxattrs > 0)
		c.xattrs = arena_dup(m, a->xattrs, a->nxattrs * sizeof(*a->xattrs));
	for (uint32_t i = 0; i < a->nxattrs; i++) {
		c.xattrs[i].name = arena_strdup(m, a->xattrs[i].name);
		c.xattrs[i].value = arena_dup(m, a->xattrs[i].value, a->xattrs[i].len);
	}
	return c;
}
