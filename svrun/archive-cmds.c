/* svrun image load, svrun image save. */
#include "svrun/command.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/archive-load.h"
#include "images/archive-save.h"
#include "images/complete.h"
#include "images/config.h"
#include "images/progress.h"
#include "svrun/enter.h"
#include "svrun/options.h"

/* ---- load ---- */

struct load_request {
	const char *input, *progress;
	bool quiet;
	struct archive_load how;
};

static void report(const struct archive_images *l)
{
	char text[DIGEST_TEXT + 1];
	const json_t *name;
	size_t i, k;

	for (i = 0; i < l->n; i++)
		json_array_foreach (l->v[i].names, k, name)
			printf("%s %s\n", json_string_value(name),
				digest_text(&l->v[i].manifest, text));
}

static int load_input(
	struct store *s, const struct load_request *r, struct archive_images *out, struct err *e)
{
	struct stat st;
	auto_fd int fd = -1;

	if (!r->input || str_eq(r->input, "-")) {
		if (isatty(STDIN_FILENO)) {
			err_set(e, ERR_USAGE, "standard input is a terminal");
			return err_hint(e, "svrun image load FILE, or: ... | svrun image load");
		}
		return archive_load(s, NULL, STDIN_FILENO, "standard input", &r->how, out, e);
	}
	fd = sys_open(r->input, O_RDONLY, 0);
	if (fd < 0 || sys_fstat(fd, &st) < 0)
		return err_sys(e, "open %s", r->input);
	return archive_load(
		s, S_ISDIR(st.st_mode) ? r->input : NULL, fd, r->input, &r->how, out, e);
}

static int load(struct load_request *r, struct err *e)
{
	struct archive_images images;
	struct store s;
	int rc;

	if (options_progress(r->progress, r->quiet, &r->how.progress, e) < 0)
		return -1;
	rc = store_enter_new(&s, e);
	if (rc == 0) {
		rc = load_input(&s, r, &images, e);
		store_close(&s);
	}
	progress_free(r->how.progress);
	if (rc == 0) {
		report(&images);
		archive_images_fini(&images);
	}
	return rc;
}

int cmd_image_load(const struct command *self, int argc, char **argv, struct err *e)
{
	struct load_request r = {0};
	char canonical[STORE_NAME];
	const struct option_spec options[] = {
		{"input", 'i', OPTION_STRING, "FILE", "instead of the word", &r.input},
		{"name", 0, OPTION_STRING, "NEW",
			"the image's name here, whatever the archive says", &r.how.rename},
		{"platform", 0, OPTION_STRING, "OS/ARCH",
			"of an image for several, this one (this machine's)", &r.how.platform},
		{"quiet", 'q', OPTION_FLAG, NULL, "no progress", &r.quiet},
		{"progress", 0, OPTION_STRING, "MODE", "auto, plain, json, timings or none",
			&r.progress},
		{0},
	};
	int n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	if (r.input && n < argc)
		return err_set(
			e, ERR_USAGE, "--input %s and '%s': which of the two?", r.input, argv[n]);
	if (n < argc)
		r.input = argv[n];
	if (r.how.rename && store_name_parse(r.how.rename, canonical, e) < 0)
		return err_ctx(e, "--name");
	return load(&r, e);
}

/* ---- save ---- */

static const struct format {
	const char *name;
	bool folder;
	int (*save)(struct store *s, const struct archive_saved *v, size_t n, struct outlet *o,
		struct progress *p, struct err *e);
} formats[] = {
	{"oci-archive", false, oci_archive_save},
	{"oci-dir", true, oci_archive_save},
	{"docker-archive", false, docker_archive_save},
};

struct save_request {
	const char *output;
	bool referrers;
	const struct format *format;
	struct progress *progress;
	struct config config;
	struct store store;
	struct image *images;
	struct archive_saved *saved;
	size_t n;
};

static int parse_format(const char *name, const struct format **f, struct err *e)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!name || str_eq(name, formats[i].name)) {
			*f = &formats[i];
			return 0;
		}
	return err_set(e, ERR_USAGE,
		"--format: expected oci-archive, oci-dir or docker-archive, got '%s'", name);
}

/* The name that ref is, in the store's form; NULL when it is a digest. */
static char *name_of(struct store *s, const char *ref)
{
	char canonical[STORE_NAME], *found = NULL;
	struct store_name *v;
	size_t n;

	if (store_name_parse(ref, canonical, NULL) < 0 || store_names(s, &v, &n, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (str_eq(v[i].name, canonical))
			found = mem_strdup(canonical);
	store_names_free(v, n);
	return found;
}

static int open_image(struct save_request *r, const char *ref, struct err *e)
{
	struct image *im = &r->images[r->n];
	auto_free char *source = NULL;
	struct digest d;

	if (store_resolve(&r->store, ref, &d, e) < 0)
		return -1;
	if (image_load(im, &r->store, &d, e) < 0)
		return err_ctx(e, "%s", ref);
	r->saved[r->n].im = im;
	r->saved[r->n].name = name_of(&r->store, ref);
	r->saved[r->n].referrers = r->referrers;
	r->n++;
	source = store_source(&r->store, &d);
	if (image_complete(im, &r->store, &r->config, source, r->progress, e) < 0)
		return err_ctx(e, "%s", ref);
	return 0;
}

static int write_images(struct save_request *r, struct err *e)
{
	struct outlet o;
	int rc = r->format->folder
			 ? outlet_open_folder(&o, r->output, e)
			 : outlet_open(&o, r->output, STDOUT_FILENO, "standard output", e);

	if (rc < 0)
		return -1;
	rc = r->format->save(&r->store, r->saved, r->n, &o, r->progress, e);
	if (rc == 0)
		rc = outlet_commit(&o, e);
	outlet_close(&o);
	return rc;
}

static int save_from_store(struct save_request *r, char **refs, int n, struct err *e)
{
	int rc = 0;

	if (store_enter(&r->store, e) < 0)
		return -1;
	r->images = mem_array((size_t)n, sizeof(*r->images));
	r->saved = mem_array((size_t)n, sizeof(*r->saved));
	for (int i = 0; i < n && rc == 0; i++)
		rc = open_image(r, refs[i], e);
	if (rc == 0)
		rc = write_images(r, e);
	for (size_t i = 0; i < r->n; i++) {
		image_fini(&r->images[i]);
		free(r->saved[i].name);
	}
	free(r->images);
	free(r->saved);
	store_close(&r->store);
	return rc;
}

static int save(struct save_request *r, char **refs, int n, struct err *e)
{
	int rc;

	if (config_load(&r->config, e) < 0)
		return -1;
	signal(SIGPIPE, SIG_IGN); /* a reader that goes away is an error like others */
	rc = save_from_store(r, refs, n, e);
	config_fini(&r->config);
	return rc;
}

int cmd_image_save(const struct command *self, int argc, char **argv, struct err *e)
{
	struct save_request r = {0};
	const char *format = NULL, *progress = NULL;
	bool quiet = false;
	const struct option_spec options[] = {
		{"output", 'o', OPTION_STRING, "FILE",
			"instead of standard output; a folder for oci-dir", &r.output},
		{"format", 0, OPTION_STRING, "FORMAT", "oci-archive, oci-dir or docker-archive",
			&format},
		{"referrers", 0, OPTION_FLAG, NULL,
			"list what is attached in index.json, too, by tags, for other tools",
			&r.referrers},
		{"quiet", 'q', OPTION_FLAG, NULL, "no progress", &quiet},
		{"progress", 0, OPTION_STRING, "MODE", "auto, plain, json, timings or none",
			&progress},
		{0},
	};
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0 || parse_format(format, &r.format, e) < 0)
		return -1;
	if (r.output && str_eq(r.output, "-"))
		r.output = NULL;
	if (!r.output && r.format->folder)
		return err_set(e, ERR_USAGE, "--format oci-dir needs a folder: -o DIR");
	if (!r.output && isatty(STDOUT_FILENO)) {
		err_set(e, ERR_USAGE, "standard output is a terminal");
		return err_hint(e, "%s IMAGE -o FILE, or: %s IMAGE | ...", self->full, self->full);
	}
	if (options_progress(progress, quiet, &r.progress, e) < 0)
		return -1;
	rc = save(&r, argv + n, argc - n, e);
	progress_free(r.progress);
	return rc;
}
