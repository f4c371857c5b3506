/* One start of a container: resolve, mount, bundle, create, supervise, in one process. */
#include "svrun/run.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/config.h"
#include "images/digest.h"
#include "images/image.h"
#include "images/mount.h"
#include "images/store.h"
#include "runtime/container.h"
#include "svrun/bundle.h"
#include "svrun/enter.h"
#include "svrun/gpus.h"
#include "svrun/instance.h"
#include "svrun/run-keep.h"
#include "svrun/run-mode.h"
#include "svrun/run-options.h"
#include "svrun/run-policy.h"
#include "svrun/run-pull.h"
#include "svrun/supervise.h"

enum { CONFIG_MAX = 4 << 20 };

/* An open image, and the store it is in. */
struct source {
	struct config config;
	struct store store;
	struct image image;
	struct mount mount;
	char digest[DIGEST_TEXT + 1];
	bool has_config, has_store, has_image, has_mount;
};

static void source_close(struct source *s)
{
	if (s->has_mount)
		mount_close(&s->mount, &s->store);
	if (s->has_image)
		image_fini(&s->image);
	if (s->has_store)
		store_close(&s->store);
	if (s->has_config)
		config_fini(&s->config);
}

static int source_open(struct source *s, const struct run_options *o, struct err *e)
{
	struct digest d;

	if (config_load(&s->config, e) < 0)
		return -1;
	s->has_config = true;
	if (store_enter_at(&s->store, &s->config, true, e) < 0)
		return -1;
	s->has_store = true;
	if (run_find(o, &s->config, &s->store, &d, e) < 0 ||
		run_policy_confirm(o, &s->config, &s->store, &d, e) < 0 ||
		image_load(&s->image, &s->store, &d, e) < 0)
		return -1;
	s->has_image = true;
	digest_text(&d, s->digest);
	if (mount_open(&s->mount, &s->store, &d, e) < 0)
		return -1;
	s->has_mount = true;
	return 0;
}

static void timing(const struct run_options *o, const char *what, double since)
{
	if (o->timings)
		fprintf(stderr, "timing %s %.1f ms\n", what, sys_now_ms() - since);
}

/* config.json: read by the runtime, and kept as the record of what ran. */
static int make_spec(
	const struct bundle_request *r, const struct gpus *gpus, struct spec *spec, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(CONFIG_MAX);
	auto_json json_t *config = bundle_make(r, e);

	if (!config || gpus_apply(gpus, config, e) < 0)
		return -1;
	json_text(config, true, &text);
	if (instance_write(r->instance, "config.json", text.data, text.len, e) < 0 ||
		run_keep(r->instance, r->o, r->digest, e) < 0)
		return -1;
	return spec_read(spec, config, "config.json", e);
}

struct running {
	const struct run_options *o;
	struct instance *instance;
	json_t *config; /* the image's, in its mode */
	json_t *env;    /* the caller's variables */
	struct gpus *gpus;
	const struct spec *spec;
	struct supervise *sup;
	int root, store;
	double begun;
	bool started;
};

/* What goes wrong behind the program's end: its own status matters more. */
static void warn_of(struct err *e)
{
	warn("%s", e->text);
	*e = (struct err){0};
}

/* The compiled filter, out of the store where it has been made before. */
static int make_filter(struct running *r, struct seccomp_prog *filter, struct err *e)
{
	auto_fd int dir = -1;

	if (!r->spec->has_seccomp)
		return 0;
	if (sys_mkdirat(r->store, "filters", 0700) == 0 || errno == EEXIST)
		dir = sys_openat(r->store, "filters", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return seccomp_cached(filter, dir, &r->spec->seccomp, e);
}

/* *status: what svrun run ends with. */
static int run_container(struct running *r, int *status, struct err *e)
{
	__attribute__((cleanup(seccomp_prog_fini))) struct seccomp_prog filter = {0};
	struct container_options options = {.spec = r->spec,
		.id = r->instance->id,
		.bundle = r->instance->path,
		.root = r->root,
		.filter = r->spec->has_seccomp ? &filter : NULL,
		.door = -1,
		.at_once = true,
		.wait = supervise_wait,
		.wait_ctx = r->sup};
	struct container *c;
	int rc;

	if (gpus_has_any(r->gpus) || r->instance->again) {
		if (!r->instance->again && !r->o->volumes.n && !r->o->tmpfs.n && !r->o->devices.n)
			gpus_untouched(r->gpus);
		options.fill = gpus_fill;
		options.fill_ctx = r->gpus;
	}
	if (make_filter(r, &filter, e) < 0)
		return -1;
	memcpy(options.stdio, r->sup->stdio, sizeof(options.stdio));
	if (cgroup_place(&options.cgroup, r->spec->cgroups_path, options.id, false, e) < 0 ||
		instance_begin(r->instance, e) < 0 || container_create(&c, &options, e) < 0)
		return -1;
	sys_close_ref(&r->root); /* the container has it; its end must be the end of the mount */
	rc = container_start(c, status, e);
	if (rc == 0) {
		struct supervised process = {
			container_pid(c), container_pidfd(c), container_take_terminal(c)};

		r->started = true;
		timing(r->o, "start", r->begun);
		if (instance_started(r->instance, container_pid(c), e) < 0)
			warn_of(e);
		rc = supervise_run(r->sup, &process, status, e);
	}
	if (rc == 0 && container_out_of_memory(c))
		warn("the container reached its memory limit, and a process in it was killed");
	if (container_delete(c, rc ? NULL : e) < 0 && rc == 0)
		warn_of(e);
	return rc;
}

static int run_with_spec(struct running *r, int *status, struct err *e)
{
	struct supervise_options so = {.interactive = r->o->interactive,
		.terminal = r->o->terminal,
		.stop_seconds = r->o->stop_seconds};
	struct supervise sup;
	int rc;

	if (supervise_init(&sup, &so, e) < 0)
		return -1;
	r->sup = &sup;
	rc = run_container(r, status, e);
	if (rc < 0 && !r->started && sup.killed_by)
		*status = 128 + sup.killed_by;
	supervise_fini(&sup);
	return rc;
}

static int run_instance(struct running *r, const struct source *s, int *status, struct err *e)
{
	struct models models = {0};
	auto_fd int layer = -1;
	struct spec spec;
	int rc;

	r->begun = sys_now_ms();
	if (gpus_layer(r->gpus, &(struct gpus_layer_image){s->mount.path, s->digest}, &layer, e) <
		0)
		return -1;
	r->root = instance_overlay(r->instance, s->mount.path, layer, e);
	if (r->root < 0)
		return -1;
	struct bundle_request request = {.o = r->o,
		.image = r->config,
		.env = r->env,
		.gpus = gpus_count(r->gpus),
		.digest = s->digest,
		.instance = r->instance,
		.lower = s->mount.path,
		.rootfd = r->root,
		.models = &models,
		.store = s->store.path};
	rc = models_read(&models, s->image.manifest, e);
	if (rc == 0)
		rc = make_spec(&request, r->gpus, &spec, e);
	if (rc == 0) {
		r->spec = &spec;
		rc = run_with_spec(r, status, e);
		spec_fini(&spec);
	}
	models_fini(&models);
	sys_close_ref(&r->root);
	return rc;
}

/* What a start writes goes to the store: of a full disk the reader wants to know which. */
static void hint_space(int fd, struct err *e)
{
	errno = e->sys;
	sys_hint_space(e, fd, 0);
}

/* What the image and the caller say, before anything is made. */
static int read_both(struct running *r, const struct source *s, struct err *e)
{
	r->config = run_mode_config(s->image.config, r->o, e);
	r->env = r->config ? bundle_env(r->o, e) : NULL;
	return r->env ? 0 : -1;
}

static int find_gpus(struct running *r, struct err *e)
{
	struct gpus_ask ask = {
		.o = r->o, .image = r->config, .env = r->env, .who = r->instance->id};
	double begun = sys_now_ms();
	int rc = gpus_open(&r->gpus, &ask, e);

	if (rc == 0 && gpus_has_any(r->gpus))
		timing(r->o, "gpus", begun);
	return rc;
}

/* The instance is locked, and ours. */
static int run_in(struct running *r, const struct source *s, int *status, struct err *e)
{
	int rc = find_gpus(r, e);

	if (rc == 0)
		rc = run_instance(r, s, status, e);
	if (rc < 0)
		hint_space(s->store.fd, e);
	if (!r->started)
		instance_abort(r->instance);
	else if (instance_end(r->instance, *status, rc ? NULL : e) < 0 && rc == 0)
		warn_of(e);
	gpus_close(r->gpus);
	return rc;
}

static int make_instance(struct instance *i, const struct source *s, const struct run_options *o,
	const char *again, struct err *e)
{
	if (again)
		return instance_again(i, s->store.fd, s->store.path, again, e);
	return instance_create(i, s->store.fd, s->store.path, o->name, o->rm, e);
}

int run_start(const struct run_options *o, const char *again, int *status, struct err *e)
{
	struct source s = {.has_config = false};
	struct instance i;
	struct running r = {.o = o, .instance = &i, .root = -1};
	double begun = sys_now_ms();
	int rc;

	umask(022); /* the modes of small files and folders are what the container sees */
	rc = source_open(&s, o, e);
	timing(o, "mount", begun);
	if (rc == 0)
		rc = read_both(&r, &s, e);
	if (rc == 0)
		rc = make_instance(&i, &s, o, again, e);
	if (rc < 0 && s.has_store)
		hint_space(s.store.fd, e);
	if (rc == 0) {
		r.store = s.store.fd;
		rc = run_in(&r, &s, status, e);
	}
	json_decref(r.config);
	json_decref(r.env);
	source_close(&s);
	return rc;
}
