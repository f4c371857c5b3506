/* svrun image sbom, provenance. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/provenance.h"
#include "builder/sbom-files.h"
#include "builder/sbom.h"
#include "images/signature.h"
#include "svrun/command.h"
#include "svrun/enter.h"
#include "svrun/options.h"

/* To a file, whole or not at all; NULL or "-": stdout. */
static int write_out(const char *path, const struct buf *b, struct err *e)
{
	if (path && !str_eq(path, "-"))
		return file_write(AT_FDCWD, path, b->data, b->len, 0644, e);
	if (fwrite(b->data, 1, b->len, stdout) != b->len)
		return err_sys(e, "write stdout");
	return 0;
}

static int enter(struct store *s, const char *ref, struct digest *d, struct err *e)
{
	if (store_enter(s, e) < 0)
		return -1;
	if (store_resolve(s, ref, d, e) == 0)
		return 0;
	store_close(s);
	return -1;
}

/* ---- sbom ---- */

struct sbom_request {
	const char *out, *ref;
	enum sbom_format format;
	bool files;
};

/* Of an image that came from elsewhere: the one it brought. */
static int attached_sbom(const struct sbom_request *r, struct store *s, const struct digest *d,
	struct buf *out, struct err *e)
{
	static const char *const versions[] = {
		[SBOM_CYCLONEDX] = "cyclonedx-1.5", [SBOM_CYCLONEDX_1_6] = "cyclonedx-1.6"};
	const char *type = sbom_media_type(r->format);
	struct err fault = {0};
	struct bill none;
	int rc = r->format == SBOM_SPDX
			 ? 0
			 : attached_blob(s, d, type, SBOM_ANNOTATION, versions[r->format], out, e);

	if (rc == 0 && r->format != SBOM_CYCLONEDX_1_6) /* others do not say which */
		rc = attached_blob(s, d, type, NULL, NULL, out, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	rc = bill_load(&none, s, d, NULL, &fault); /* for its words */
	if (rc == 0)
		bill_fini(&none);
	if (e)
		*e = fault;
	return -1;
}

static int make_sbom(const struct sbom_request *r, struct store *s, const struct digest *d,
	struct buf *out, struct err *e)
{
	auto_free struct sbom_sums *sums = NULL;
	struct err fault = {0};
	struct bill b;
	int rc = bill_load(&b, s, d, r->ref, &fault);

	if (rc < 0 && fault.kind == ERR_NOT_FOUND && !r->files)
		return attached_sbom(r, s, d, out, e);
	if (rc < 0) {
		if (e)
			*e = fault;
		return -1;
	}
	if (r->files)
		rc = sbom_sum_files(&b, s, d, &sums, e);
	if (rc == 0)
		sbom_text(r->format, &b, d, sums, out);
	bill_fini(&b);
	return rc;
}

int cmd_image_sbom(const struct command *self, int argc, char **argv, struct err *e)
{
	struct sbom_request r = {.format = SBOM_SPDX};
	const char *format = "spdx";
	const struct option_spec options[] = {
		{"format", 0, OPTION_STRING, "FORMAT",
			"spdx (2.3), cyclonedx (1.5) or cyclonedx-1.6", &format},
		{"output", 'o', OPTION_STRING, "FILE", "write it there", &r.out},
		{"files", 0, OPTION_FLAG, NULL, "name every file, its checksums and its layer",
			&r.files},
		{0},
	};
	auto_buf struct buf out = BUF_INIT(SBOM_TEXT_MAX);
	struct digest d;
	struct store s;
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	if (sbom_format_parse(format, &r.format, e) < 0)
		return err_ctx(e, "--format");
	if (enter(&s, argv[n], &d, e) < 0)
		return -1;
	r.ref = argv[n];
	rc = make_sbom(&r, &s, &d, &out, e);
	store_close(&s);
	if (rc < 0)
		return err_ctx(e, "sbom of %s", argv[n]);
	return write_out(r.out, &out, e);
}

/* ---- provenance ---- */

/* The envelope that signing made: 1, 0, -1. */
static int signed_provenance(
	struct store *s, const struct digest *d, struct buf *out, struct err *e)
{
	auto_buf struct buf bundle = {0};
	auto_json json_t *doc = NULL;
	int rc = attached_blob(
		s, d, BUNDLE_TYPE, BUNDLE_PREDICATE, PROVENANCE_PREDICATE, &bundle, e);

	if (rc <= 0)
		return rc;
	doc = json_parse(bundle.data ? bundle.data : "", bundle.len, e);
	if (!doc || !json_object_of(doc, "dsseEnvelope", e))
		return -1;
	json_text(json_object_get(doc, "dsseEnvelope"), false, out);
	return 1;
}

static int statement(
	struct store *s, const char *ref, const struct digest *d, struct buf *out, struct err *e)
{
	auto_buf struct buf compact = BUF_INIT(PROVENANCE_MAX);
	auto_json json_t *doc = NULL;
	struct bill b;
	int rc;

	if (bill_load(&b, s, d, ref, e) < 0)
		return -1;
	rc = provenance_text(&b, d, &compact, e);
	bill_fini(&b);
	doc = rc < 0 ? NULL : json_parse(compact.data, compact.len, e);
	if (!doc)
		return -1;
	json_text(doc, false, out);
	return 0;
}

int cmd_image_provenance(const struct command *self, int argc, char **argv, struct err *e)
{
	const char *path = NULL;
	bool plain = false;
	const struct option_spec options[] = {
		{"output", 'o', OPTION_STRING, "FILE", "write it there", &path},
		{"statement", 0, OPTION_FLAG, NULL,
			"the statement itself, also when there is a signed envelope", &plain},
		{0},
	};
	auto_buf struct buf out = BUF_INIT(2 * PROVENANCE_MAX);
	struct digest d;
	struct store s;
	int rc = 0, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0 || enter(&s, argv[n], &d, e) < 0)
		return -1;
	if (!plain)
		rc = signed_provenance(&s, &d, &out, e);
	if (rc == 0)
		rc = statement(&s, argv[n], &d, &out, e);
	store_close(&s);
	if (rc < 0)
		return err_ctx(e, "provenance of %s", argv[n]);
	return write_out(path, &out, e);
}
