/* Names of images: their grammar, and finding the image that a person means. */
#include "images/store.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/image.h"
#include "images/reference.h"

enum { PREFIX_MIN = 6, DOCUMENT_MAX = 8 << 20, LISTED = 8 };

_Static_assert((int)REFERENCE_TEXT <= (int)STORE_NAME, "a reference is a name");

int store_name_parse(const char *ref, char out[STORE_NAME], struct err *e)
{
	struct reference r;

	if (reference_parse_name(&r, ref, e) < 0)
		return -1;
	reference_text(&r, out);
	return 0;
}

static int not_found(const struct store_name *v, size_t n, const char *ref, struct err *e)
{
	auto_free const char **names = mem_array(n + 1, sizeof(const char *));
	auto_buf struct buf list = BUF_INIT(1 << 20);
	const char *near;

	for (size_t i = 0; i < n; i++) {
		names[i] = v[i].name;
		if (i < LISTED)
			buf_printf(&list, "%s%.300s", i ? ", " : "", v[i].name);
	}
	err_set(e, ERR_NOT_FOUND, "no image '%.300s' in the store", ref);
	near = str_nearest(ref, names);
	if (near)
		return err_hint(e, "did you mean '%s'?", near);
	if (n == 0)
		return err_hint(e, "the store is empty; svrun image build makes images, svrun "
				   "image pull fetches them");
	return err_hint(e, "there are: %s%s", list.data, n > LISTED ? ", ..." : "");
}

static int by_prefix(
	const struct store_name *v, size_t n, const char *prefix, struct digest *d, struct err *e)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		char hex[DIGEST_HEX + 1];

		if (!str_starts(digest_hex(&v[i].manifest, hex), prefix))
			continue;
		if (found && digest_eq(d, &v[i].manifest))
			continue;
		*d = v[i].manifest;
		found++;
	}
	if (found > 1)
		return err_set(e, ERR_USAGE, "'%s' begins %zu images' digests", prefix, found);
	return found ? 0 : not_found(v, n, prefix, e);
}

static int by_digest(struct store *s, const char *text, struct digest *d, struct err *e)
{
	if (digest_parse(d, text, NULL) < 0)
		return err_set(e, ERR_USAGE,
			"'%.300s': expected sha256: and 64 lower-case hex digits", text);
	return store_has(s, d) ? 0 : err_set(e, ERR_NOT_FOUND, "no image %s in the store", text);
}

static bool is_prefix(const char *ref)
{
	size_t n = strlen(ref);

	return n >= PREFIX_MIN && n <= DIGEST_HEX && strspn(ref, "0123456789abcdef") == n;
}

/* Is canonical the last part of name, behind a slash? */
static bool ends_name(const char *name, const char *canonical)
{
	size_t n = strlen(name), m = strlen(canonical);

	return n > m + 1 && name[n - m - 1] == '/' && str_eq(name + n - m, canonical);
}

static int ambiguous(const struct store_name *v, size_t n, const char *canonical, struct err *e)
{
	auto_buf struct buf list = BUF_INIT(1 << 20);
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		if (ends_name(v[i].name, canonical) && ++found <= LISTED)
			buf_printf(&list, "%s%.300s", found > 1 ? ", " : "", v[i].name);
	err_set(e, ERR_USAGE, "'%s' may mean %zu images", canonical, found);
	return err_hint(e, "write one of: %s%s", list.data, found > LISTED ? ", ..." : "");
}

int store_name_find(
	const struct store_name *v, size_t n, const char *ref, size_t *at, struct err *e)
{
	char canonical[STORE_NAME];
	size_t found = n;

	if (store_name_parse(ref, canonical, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (str_eq(v[i].name, canonical)) {
			*at = i;
			return 1;
		}
	for (size_t i = 0; i < n && !reference_has_host(ref); i++) {
		if (!ends_name(v[i].name, canonical))
			continue;
		/* Several names of one image are no question of which one is meant. */
		if (found < n && !digest_eq(&v[i].manifest, &v[found].manifest))
			return ambiguous(v, n, canonical, e);
		found = found < n ? found : i;
	}
	*at = found;
	return found < n;
}

static int find(struct store *s, const struct store_name *v, size_t n, const char *ref,
	struct digest *d, struct err *e)
{
	const char *at = strchr(ref, '@');
	bool only_digest = str_starts(ref, "sha256:");
	size_t i = 0;
	int rc = only_digest ? 0 : store_name_find(v, n, ref, &i, e);

	if (rc < 0)
		return -1;
	if (rc > 0) {
		*d = v[i].manifest;
		return 0;
	}
	if (only_digest || at)
		return by_digest(s, at ? at + 1 : ref, d, e);
	return is_prefix(ref) ? by_prefix(v, n, ref, d, e) : not_found(v, n, ref, e);
}

/* ---- images for several platforms ---- */

/* An image index says so with the member "manifests", which no manifest has: other documents are
 * told apart without parsing them, because image_load() is about to do that. */
static int may_be_index(struct store *s, const struct digest *d, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(DOCUMENT_MAX);
	uint64_t size;
	char text[DIGEST_TEXT + 1];

	if (!store_has(s, d))
		return 0; /* who loads it says that it is missing, and image rm can take its name */

	auto_fd int fd = store_blob_open(s, d, &size, e);

	if (fd < 0)
		return -1;
	if (size > DOCUMENT_MAX)
		return 0;
	if (file_read_fd(fd, digest_text(d, text), &b, e) < 0)
		return -1;
	return memmem(b.data, b.len, "\"manifests\"", strlen("\"manifests\"")) != NULL;
}

int store_choose(struct store *s, const char *ref, struct digest *d, struct err *e)
{
	auto_buf struct buf b = {0};
	auto_json json_t *doc = NULL;
	struct descriptor chosen;
	char text[DIGEST_TEXT + 1];
	int rc = may_be_index(s, d, e);

	if (rc <= 0)
		return rc;
	if (store_blob_read(s, d, DOCUMENT_MAX, &b, e) < 0)
		return -1;
	doc = json_parse(b.data, b.len, e);
	if (!doc)
		return err_ctx(e, "%.300s: %s", ref, digest_text(d, text));
	if (!json_is_array(json_object_get(doc, "manifests")))
		return 0;
	if (image_choose(doc, NULL, &chosen, e) < 0)
		return err_ctx(e, "%.300s", ref);
	*d = chosen.digest;
	if (store_has(s, d))
		return 0;
	err_set(e, ERR_NOT_FOUND, "%.300s: the image for this machine, %s, is not in the store",
		ref, digest_text(d, text));
	return err_hint(e, "svrun image pull fetches it");
}

int store_resolve(struct store *s, const char *ref, struct digest *manifest, struct err *e)
{
	struct store_name *v;
	size_t n;
	int rc;

	if (store_names(s, &v, &n, e) < 0)
		return -1;
	rc = find(s, v, n, ref, manifest, e);
	store_names_free(v, n);
	return rc < 0 ? -1 : store_choose(s, ref, manifest, e);
}
