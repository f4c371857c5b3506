#include "svrun/run-models.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "runtime/confine.h"
#include "svrun/models-volume.h"
#include "svrun/run-pull.h"

enum { WORDS_MAX = 60 };

static const char done[] = "SVRUN_MODELS"; /* survives the second start: run-pull.c */

/* ---- what the user brings ---- */

static int refuse(const struct models_entry *x, const char *what, const char *why, struct err *e)
{
	err_set(e, ERR_NOT_FOUND, "the model %s: %s%s%s%s", x->id, x->target, *what ? "/" : "",
		what, why);
	return err_hint(e, "mount a folder that has its files: --volume DIR:%s", x->target);
}

static int check_file(
	const struct models_entry *x, int dir, const struct models_file *f, struct err *e)
{
	auto_fd int fd = sys_open_beneath(dir, f->path, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;

	if (fd < 0 || sys_fstat(fd, &st) < 0)
		return refuse(x, f->path, " is not there", e);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != f->size)
		return refuse(x, f->path, " has another size than the image expects", e);
	return 0;
}

static int check_volume(const struct run_options *o, const struct models_entry *x, struct err *e)
{
	auto_free char *folder = NULL;
	const char *below = models_volume(x->target, o->volumes.v, o->volumes.n, &folder);
	auto_fd int top = -1;
	auto_fd int dir = -1;

	if (x->optional)
		return 0;
	if (!below)
		return refuse(x, "", " is brought by the user, and nothing is mounted there", e);
	top = sys_open(folder, O_RDONLY | O_DIRECTORY, 0);
	dir = top < 0 ? -1 : sys_open_beneath(top, *below ? below : ".", O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return refuse(x, "", " is not in what is mounted", e);
	for (size_t i = 0; i < x->nfiles; i++)
		if (check_file(x, dir, &x->files[i], e) < 0)
			return -1;
	return 0;
}

/* ---- what is made ready ---- */

static bool is_marked(const struct models_entry *x, const char *folder, const char *below)
{
	char mark[sizeof(MODELS_MARK) + DIGEST_HEX];
	auto_fd int top = sys_open(folder, O_RDONLY | O_DIRECTORY, 0);
	auto_fd int dir =
		top < 0 ? -1
			: sys_open_beneath(top, *below ? below : ".", O_RDONLY | O_DIRECTORY, 0);

	return dir >= 0 && faccessat(dir, models_mark(x, mark), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_ready(const struct run_options *o, struct store *s, const struct models_entry *x)
{
	auto_free char *folder = NULL;
	const char *below;

	if (x->delivery == MODELS_ARTIFACT)
		return models_are_placed(s, x);
	if (x->delivery != MODELS_RUNTIME)
		return true;
	below = models_volume(x->target, o->volumes.v, o->volumes.n, &folder);
	return below ? is_marked(x, folder, below) : models_are_placed(s, x);
}

static int add(const char **words, size_t *n, const char *option, const struct option_list *l,
	struct err *e)
{
	for (size_t i = 0; i < l->n; i++) {
		if (*n + 2 >= WORDS_MAX)
			return err_set(e, ERR_USAGE, "too many options for the models");
		words[(*n)++] = option;
		words[(*n)++] = l->v[i];
	}
	return 0;
}

static int make_ready(const struct run_options *o, const char *digest, struct err *e)
{
	const char *words[WORDS_MAX + 2] = {"svrun", "image", "models"};
	size_t n = 3;
	int status;

	if (add(words, &n, "--secret", &o->secrets, e) < 0 ||
		add(words, &n, "--accept-license", &o->accepted, e) < 0 ||
		add(words, &n, "--volume", &o->volumes, e) < 0)
		return -1;
	words[n] = digest;
	status = run_helper(words, e);
	if (status <= 0)
		return status;
	return err_set(e, ERR_NOT_FOUND, "its models could not be made ready");
}

static int check(const struct run_options *o, struct store *s, const struct models *m,
	const char *digest, struct err *e)
{
	bool ready = true;

	if (models_check_accepted(m, o->accepted.v, o->accepted.n, ~0u, e) < 0)
		return -1;
	for (size_t i = 0; i < m->n; i++) {
		if (m->v[i].delivery == MODELS_VOLUME && check_volume(o, &m->v[i], e) < 0)
			return -1;
		ready = ready && (m->v[i].optional || is_ready(o, s, &m->v[i]));
	}
	return ready ? 0 : make_ready(o, digest, e);
}

static int with_store(
	const struct run_options *o, const struct config *c, struct store *s, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	struct models m = {0};
	struct digest d;
	struct image im;
	int rc;

	if (run_find(o, c, s, &d, e) < 0 || image_load(&im, s, &d, e) < 0)
		return -1;
	rc = models_read(&m, im.manifest, e);
	if (rc == 0 && m.n)
		rc = check(o, s, &m, digest_text(&d, text), e);
	models_fini(&m);
	image_fini(&im);
	return rc;
}

int run_models(const struct run_options *o, struct err *e)
{
	struct config c;
	struct store s;
	int rc;

	if (getenv(done)) {
		unsetenv(done);
		return 0;
	}
	if (config_load(&c, e) < 0)
		return -1;
	rc = store_open(&s, c.root, true, e);
	if (rc == 0) {
		rc = with_store(o, &c, &s, e);
		store_close(&s);
	}
	config_fini(&c);
	if (rc == 0)
		setenv(done, "1", 1);
	return rc;
}

/* ---- in the container ---- */

int run_models_mount(const struct run_options *o, const struct models *m, const char *store,
	json_t *mounts, struct err *e)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct models_entry *x = &m->v[i];
		auto_free char *folder = NULL, *source = NULL;
		char path[MODELS_PATH];

		const char *below = models_volume(x->target, o->volumes.v, o->volumes.n, &folder);

		if (!models_path(x, path) || (below && (x->delivery == MODELS_RUNTIME || !*below)))
			continue; /* it is in the volume, or the user put another in its place */
		source = mem_printf("%s/%s", store, path);
		if (access(source, F_OK) < 0) {
			if (x->optional)
				continue;
			return err_sys(e, "model %s", x->id);
		}
		confine_mount(mounts, x->target, "bind", source, "bind,rprivate,ro,nosuid,nodev");
	}
	return 0;
}
