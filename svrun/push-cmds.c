/* svrun image push, svrun image convert. */
#include "svrun/command.h"

#include <stdio.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/config.h"
#include "images/progress.h"
#include "images/push.h"
#include "svrun/enter.h"
#include "svrun/options.h"

struct request {
	const char *image, *to;
	const char *compression, *level, *progress;
	bool all_platforms, plain_http, insecure, quiet;
	struct convert_options convert;
	struct option_list accepted;
};

/* --level counts only with a compression that has levels. */
static int parse_compression(struct request *r, struct err *e)
{
	uint64_t level;

	if (r->compression && codec_parse(r->compression, &r->convert.codec) < 0)
		return err_set(e, ERR_USAGE, "--compression: expected zstd, gzip or none, got '%s'",
			r->compression);
	if (!r->level)
		return 0;
	if (!r->compression || r->convert.codec == CODEC_NONE)
		return err_set(e, ERR_USAGE, "--level goes with --compression zstd or gzip");
	if (str_u64(r->level, INT32_MAX, &level) < 0 || level == 0)
		return err_set(
			e, ERR_USAGE, "--level: expected a number from 1, got '%s'", r->level);
	r->convert.level = (int)level;
	return 0;
}

/* Run fn with the site's configuration and store. */
static int with_store(const struct request *r,
	int (*fn)(const struct request *, struct store *, const struct config *, struct progress *,
		struct err *),
	struct err *e)
{
	struct progress *p = NULL;
	struct config c;
	struct store s;
	int rc = -1;

	if (options_progress(r->progress, r->quiet, &p, e) < 0)
		return -1;
	if (config_load(&c, e) == 0) {
		if (store_enter_at(&s, &c, false, e) == 0) {
			rc = fn(r, &s, &c, p, e);
			store_close(&s);
		}
		config_fini(&c);
	}
	progress_free(p);
	return rc;
}

/* ---- push ---- */

static void tell(const struct push_result *r, struct progress *p)
{
	if (r->present)
		progress_note(p, "%s is up to date", r->ref);
	else
		progress_note(p, "%s: %zu blobs sent (%.1f MiB), %zu mounted, %zu there already",
			r->ref, r->sent, (double)r->bytes / (1 << 20), r->mounted, r->there);
	if (r->skipped)
		progress_note(p, "%s: %zu layers that may not be distributed were not sent", r->ref,
			r->skipped);
}

static int push(const struct request *r, struct store *s, const struct config *c,
	struct progress *p, struct err *e)
{
	const struct push_options o = {.ref = r->to,
		.all_platforms = r->all_platforms,
		.convert = r->compression ? &r->convert : NULL,
		.plain_http = r->plain_http,
		.insecure = r->insecure,
		.accepted = r->accepted.v,
		.naccepted = r->accepted.n};
	char text[DIGEST_TEXT + 1];
	struct push_result result;

	if (image_push(s, c, r->image, &o, p, &result, e) < 0)
		return -1;
	tell(&result, p);
	puts(digest_text(&result.manifest, text));
	return 0;
}

int cmd_image_push(const struct command *self, int argc, char **argv, struct err *e)
{
	struct request r = {0};
	const struct option_spec options[] = {
		{"compression", 0, OPTION_STRING, "CODEC",
			"send the layers as zstd, gzip or none instead of as they are",
			&r.compression},
		{"level", 0, OPTION_STRING, "N", "of that compression", &r.level},
		{"all-platforms", 'a', OPTION_FLAG, NULL,
			"an image index and all its images, not this machine's image alone",
			&r.all_platforms},
		{"plain-http", 0, OPTION_FLAG, NULL, "http:// instead of https://", &r.plain_http},
		{"insecure", 0, OPTION_FLAG, NULL, "do not check the registry's certificate",
			&r.insecure},
		{"accept-license", 0, OPTION_LIST, "ID", "accept the licence of a model",
			&r.accepted},
		{"quiet", 'q', OPTION_FLAG, NULL, "print the manifest's digest only", &r.quiet},
		{"progress", 0, OPTION_STRING, "MODE", "auto, plain, json, timings or none",
			&r.progress},
		{0},
	};
	int rc, n = options_parse(self, options, argc, argv, false, e);

	rc = n < 0 || parse_compression(&r, e) < 0 ? -1 : 0;
	if (rc == 0) {
		r.image = argv[n];
		r.to = n + 1 < argc ? argv[n + 1] : NULL;
		rc = with_store(&r, push, e);
	}
	option_list_fini(&r.accepted);
	return rc;
}

/* ---- convert ---- */

static bool is_whole(struct store *s, const struct image *im)
{
	for (size_t i = 0; i < im->nlayers; i++)
		if (!store_has(s, &im->layers[i].digest))
			return false;
	return true;
}

/* Layers that stayed as they were may still be where the old image came from only. */
static int set_name(const struct request *r, struct store *s, const struct converted *made,
	const char *source, struct err *e)
{
	struct image im;
	int rc;

	if (image_load(&im, s, &made->manifest, e) < 0)
		return -1;
	rc = store_name_set(
		s, r->to, &made->manifest, made->size, is_whole(s, &im) ? NULL : source, e);
	image_fini(&im);
	return rc;
}

static int convert_loaded(const struct request *r, struct image *im, struct store *s,
	const struct config *c, struct progress *p, struct err *e)
{
	auto_free char *source = store_source(s, &im->manifest_digest);
	char text[DIGEST_TEXT + 1];
	struct converted made;
	int rc;

	if (image_convert(im, s, c, source, &r->convert, &made, p, e) < 0)
		return -1;
	rc = set_name(r, s, &made, source, e);
	sys_close_ref(&made.hold);
	if (rc == 0)
		puts(digest_text(&made.manifest, text));
	return rc;
}

static int convert(const struct request *r, struct store *s, const struct config *c,
	struct progress *p, struct err *e)
{
	char name[STORE_NAME];
	struct digest d;
	struct image im;
	int rc;

	if (store_name_parse(r->to, name, e) < 0 || store_resolve(s, r->image, &d, e) < 0 ||
		image_load(&im, s, &d, e) < 0)
		return -1;
	rc = convert_loaded(r, &im, s, c, p, e);
	image_fini(&im);
	return rc;
}

int cmd_image_convert(const struct command *self, int argc, char **argv, struct err *e)
{
	struct request r = {.convert.codec = CODEC_ZSTD};
	const struct option_spec options[] = {
		{"compression", 0, OPTION_STRING, "CODEC",
			"zstd (which it is anyway), gzip or none", &r.compression},
		{"level", 0, OPTION_STRING, "N", "of the compression", &r.level},
		{"quiet", 'q', OPTION_FLAG, NULL, "print the manifest's digest only", &r.quiet},
		{"progress", 0, OPTION_STRING, "MODE", "auto, plain, json, timings or none",
			&r.progress},
		{0},
	};
	int n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	if (!r.compression)
		r.compression = "zstd";
	if (parse_compression(&r, e) < 0)
		return -1;
	r.image = argv[n];
	r.to = argv[n + 1];
	return with_store(&r, convert, e);
}
