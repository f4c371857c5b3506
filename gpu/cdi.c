#include "gpu/cdi.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "gpu/cdi-spec.h"

enum { TOTAL_MAX = 64 << 20, ERRORS_MAX = 1000 };

struct loading {
	struct cdi *c;
	struct strings kinds; /* "vendor/class" of what is asked for; n 0: all */
	size_t *dir_of;       /* number of the folder that v[i] is from */
	size_t cap, cap_dir, cap_specs, cap_errors;
	size_t total; /* bytes read */
	size_t dir;   /* number of the one that is read */
	struct buf text;
};

static void add_error(struct loading *l, const char *file, const char *fmt, ...) printf_like(3, 4);
static void add_error(struct loading *l, const char *file, const char *fmt, ...)
{
	struct cdi *c = l->c;
	char text[1024];
	va_list ap;

	if (c->nerrors >= ERRORS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	mem_grow(&c->errors, &l->cap_errors, c->nerrors);
	c->errors[c->nerrors++] =
		(struct cdi_error){arena_strdup(&c->mem, file), arena_strdup(&c->mem, text)};
}

/* ---- a file ---- */

/* May the text have a device of the kinds that are asked for? A kind has no character that JSON or
 * YAML must escape; one that escapes all the same has a backslash somewhere. */
static bool may_have(const struct loading *l, const struct buf *b)
{
	if (l->kinds.n == 0 || memchr(b->data, '\\', b->len))
		return true;
	for (size_t i = 0; i < l->kinds.n; i++)
		if (memmem(b->data, b->len, l->kinds.v[i], strlen(l->kinds.v[i])))
			return true;
	return false;
}

static void add_devices(struct loading *l, json_t *spec, const char *file)
{
	struct cdi *c = l->c;
	const char *kind = json_string_value(json_object_get(spec, "kind"));
	const char *slash = strchr(kind, '/'), *vendor;
	size_t i;
	json_t *d;

	vendor = arena_strndup(&c->mem, kind, (size_t)(slash - kind));
	mem_grow(&c->specs, &l->cap_specs, c->nspecs);
	c->specs[c->nspecs++] = spec;
	json_array_foreach (json_object_get(spec, "devices"), i, d) {
		mem_grow(&c->v, &l->cap, c->n);
		mem_grow(&l->dir_of, &l->cap_dir, c->n);
		l->dir_of[c->n] = l->dir;
		c->v[c->n++] = (struct cdi_device){.vendor = vendor,
			.class = slash + 1,
			.name = json_string_value(json_object_get(d, "name")),
			.file = file,
			.device = d,
			.spec = c->nspecs - 1};
	}
}

static void take_text(struct loading *l, const char *file)
{
	struct err e = {0};
	json_t *spec;

	if (!may_have(l, &l->text))
		return;
	spec = cdi_read(file, l->text.data, l->text.len, &e);
	if (spec)
		add_devices(l, spec, arena_strdup(&l->c->mem, file));
	else
		add_error(l, file, "%s", e.text);
}

static const char *what_is(mode_t mode)
{
	return S_ISDIR(mode)    ? "a folder"
	       : S_ISFIFO(mode) ? "a pipe"
	       : S_ISSOCK(mode) ? "a socket"
				: "a device";
}

/* One fstat and one read for a file of the size that it says. */
static int read_text(struct loading *l, int fd, const char *file)
{
	struct stat st;
	size_t size;
	ssize_t n;

	if (sys_fstat(fd, &st) < 0) {
		add_error(l, file, "%s: %s", file, strerror(errno));
		return -1;
	}
	size = (size_t)st.st_size;
	if (!S_ISREG(st.st_mode)) {
		add_error(l, file, "%s: %s, not a file", file, what_is(st.st_mode));
		return -1;
	}
	if (st.st_mode & S_IWOTH) {
		add_error(l, file, "%s: anybody may write to it", file);
		return -1;
	}
	if (size > CDI_FILE_MAX || l->total + size > TOTAL_MAX) {
		add_error(l, file, "%s: longer than the limit of %d bytes", file,
			size > CDI_FILE_MAX ? CDI_FILE_MAX : TOTAL_MAX);
		return -1;
	}
	l->text.len = 0;
	if (buf_reserve(&l->text, size + 1, NULL) < 0)
		return -1;
	n = sys_read(fd, l->text.data, size + 1);
	if (n < 0 || (size_t)n > size) {
		add_error(l, file, "%s: %s", file, n < 0 ? strerror(errno) : "it grows");
		return -1;
	}
	l->text.len = (size_t)n;
	l->text.data[n] = '\0';
	l->total += size;
	return 0;
}

/* Devices are not opened: that may do something. */
static void read_file(struct loading *l, int dir, const char *dir_name, const struct dirent *d)
{
	auto_free char *file = mem_printf("%s/%s", dir_name, d->d_name);
	auto_fd int fd = -1;
	struct stat st;

	if (d->d_type != DT_REG) {
		if (sys_fstatat(dir, d->d_name, &st, 0) < 0) {
			add_error(l, file, "%s: %s", file, strerror(errno));
			return;
		}
		if (!S_ISREG(st.st_mode)) {
			add_error(l, file, "%s: %s, not a file", file, what_is(st.st_mode));
			return;
		}
	}
	fd = sys_openat(dir, d->d_name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		add_error(l, file, "%s: %s", file, strerror(errno));
	else if (read_text(l, fd, file) == 0)
		take_text(l, file);
}

/* ---- folders ---- */

static int is_spec(const struct dirent *d)
{
	return d->d_name[0] != '.' &&
	       (str_ends(d->d_name, ".json") || str_ends(d->d_name, ".yaml"));
}

static void read_dir(struct loading *l, const char *name)
{
	struct dirent **v;
	auto_fd int dir = sys_open(name, O_RDONLY | O_DIRECTORY, 0);
	int n;

	if (dir < 0) {
		if (errno != ENOENT)
			add_error(l, name, "%s: %s", name, strerror(errno));
		return;
	}
	n = scandirat(dir, ".", &v, is_spec, alphasort);
	if (n < 0) {
		add_error(l, name, "%s: %s", name, strerror(errno));
		return;
	}
	if (n > CDI_FILES_MAX)
		add_error(l, name, "%s: more than %d specs: the rest is not read", name,
			CDI_FILES_MAX);
	for (int i = 0; i < n; i++) {
		if (i < CDI_FILES_MAX)
			read_file(l, dir, name, v[i]);
		free(v[i]);
	}
	free(v);
}

/* ---- which device counts ---- */

static int by_name(const void *pa, const void *pb)
{
	const struct cdi_device *a = pa, *b = pb;
	int r = strcmp(a->vendor, b->vendor);

	r = r ? r : strcmp(a->class, b->class);
	return r ? r : strcmp(a->name, b->name);
}

struct ranked {
	struct cdi_device d;
	size_t dir, order;
};

/* Of one name, those of the last folder first. */
static int by_rank(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;
	int r = by_name(&a->d, &b->d);

	if (r)
		return r;
	if (a->dir != b->dir)
		return a->dir > b->dir ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

static void settle(struct loading *l)
{
	struct cdi *c = l->c;
	auto_free struct ranked *all = mem_array(c->n, sizeof(*all));
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		all[i] = (struct ranked){c->v[i], l->dir_of[i], i};
	qsort(all, c->n, sizeof(*all), by_rank);
	for (size_t i = 0, first = 0; i < c->n; i++) {
		if (i == 0 || by_name(&all[i].d, &all[i - 1].d) != 0) {
			first = i;
			c->v[n++] = all[i].d;
		} else if (all[i].dir == all[first].dir) {
			c->v[n - 1].conflict = all[i].d.file;
		}
	}
	c->n = n;
}

static void load(struct loading *l, const struct strings *dirs)
{
	struct cdi *c = l->c;

	l->text = BUF_INIT(CDI_FILE_MAX + 2);
	c->dirs.v = arena_alloc(&c->mem, (dirs->n + 1) * sizeof(*c->dirs.v));
	for (; l->dir < dirs->n; l->dir++) {
		c->dirs.v[c->dirs.n++] = arena_strdup(&c->mem, dirs->v[l->dir]);
		read_dir(l, dirs->v[l->dir]);
	}
	settle(l);
	free(l->dir_of);
	buf_fini(&l->text);
}

int cdi_load(struct cdi *c, const struct strings *dirs, struct err *e)
{
	struct loading l = {.c = c};

	(void)e;
	*c = (struct cdi){.n = 0};
	load(&l, dirs);
	return 0;
}

int cdi_load_for(
	struct cdi *c, const struct strings *dirs, const struct strings *names, struct err *e)
{
	struct loading l = {.c = c};

	*c = (struct cdi){.n = 0};
	l.kinds.v = arena_alloc(&c->mem, (names->n + 1) * sizeof(*l.kinds.v));
	for (size_t i = 0; i < names->n; i++) {
		struct cdi_name n;
		size_t k = 0;
		char *kind;

		if (cdi_name_parse(&n, names->v[i], e) < 0) {
			cdi_fini(c);
			return -1;
		}
		kind = arena_printf(&c->mem, "%s/%s", n.vendor, n.class);
		free(n.vendor);
		while (k < l.kinds.n && !str_eq(l.kinds.v[k], kind))
			k++;
		l.kinds.v[k] = kind;
		l.kinds.n += k == l.kinds.n;
	}
	if (l.kinds.n)
		load(&l, dirs);
	return 0;
}

void cdi_fini(struct cdi *c)
{
	for (size_t i = 0; i < c->nspecs; i++)
		json_decref(c->specs[i]);
	free(c->specs);
	free(c->v);
	free(c->errors);
	arena_fini(&c->mem);
	*c = (struct cdi){.n = 0};
}

/* ---- names to edits ---- */

static const struct cdi_device *find(const struct cdi *c, const struct cdi_name *n)
{
	const struct cdi_device key = {.vendor = n->vendor, .class = n->class, .name = n->name};

	return c->n ? bsearch(&key, c->v, c->n, sizeof(*c->v), by_name) : NULL;
}

/* Text up to what an error has room for. */
static void say(struct buf *b, const char *fmt, ...) printf_like(2, 3);
static void say(struct buf *b, const char *fmt, ...)
{
	auto_free char *s = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n > 0 && b->len + (size_t)n < b->max)
		buf_put(b, s, (size_t)n);
}

/* Which devices of the kind there are. */
static void say_known(const struct cdi *c, const struct cdi_name *n, struct buf *b)
{
	size_t known = 0;

	for (size_t i = 0; i < c->n; i++)
		if (str_eq(c->v[i].vendor, n->vendor) && str_eq(c->v[i].class, n->class))
			say(b, "%s%s", known++ ? ", " : "there are ", c->v[i].name);
	if (!known)
		say(b,
			"no spec there has a %s/%s; svrun gpu cdi list shows what there is, svrun "
			"gpu "
			"cdi generate makes one of this host's GPUs",
			n->vendor, n->class);
}

static int not_found(const struct cdi *c, const struct strings *missing, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(1400), hint = BUF_INIT(380);
	struct cdi_name n;

	for (size_t i = 0; i < missing->n; i++)
		say(&b, "%s%s", i ? ", " : "", missing->v[i]);
	say(&b, " (searched:");
	for (size_t i = 0; i < c->dirs.n; i++)
		say(&b, " %s", c->dirs.v[i]);
	say(&b, ")");
	for (size_t i = 0; i < c->nerrors; i++)
		say(&b, "; %s", c->errors[i].text);
	err_set(e, ERR_NOT_FOUND, "CDI devices that cannot be had: %s", b.data);
	if (cdi_name_parse(&n, missing->v[0], NULL) < 0)
		return -1;
	say_known(c, &n, &hint);
	free(n.vendor);
	return hint.data ? err_hint(e, "%s", hint.data) : -1;
}

static int add_one(const struct cdi *c, const struct cdi_device *d, bool *done,
	const struct cdi_policy *p, struct gpu_edits *x, struct err *e)
{
	const json_t *own = json_object_get(c->specs[d->spec], "containerEdits");

	if ((!done[d->spec] && cdi_edits_add(x, own, p, e) < 0) ||
		cdi_edits_add(x, json_object_get(d->device, "containerEdits"), p, e) < 0)
		return err_ctx(
			e, "CDI device %s/%s=%s of %s", d->vendor, d->class, d->name, d->file);
	done[d->spec] = true;
	return 0;
}

int cdi_resolve(const struct cdi *c, const struct strings *names, const struct cdi_policy *p,
	struct gpu_edits *x, struct err *e)
{
	auto_free const struct cdi_device **found = mem_array(names->n, sizeof(*found));
	auto_free const char **missing = mem_array(names->n, sizeof(*missing));
	auto_free bool *done = mem_array(c->nspecs, sizeof(*done));
	size_t nmissing = 0, n = 0;

	for (size_t i = 0; i < names->n; i++) {
		const struct cdi_device *d;
		struct cdi_name name;
		size_t k = 0;

		if (cdi_name_parse(&name, names->v[i], e) < 0)
			return -1;
		d = find(c, &name);
		free(name.vendor);
		if (d && d->conflict)
			return err_set(e, ERR_EXISTS, "CDI device %s is in both %s and %s",
				names->v[i], d->file, d->conflict);
		while (d && k < n && found[k] != d)
			k++;
		if (!d)
			missing[nmissing++] = names->v[i];
		else if (k == n)
			found[n++] = d;
	}
	if (nmissing)
		return not_found(c, &(struct strings){missing, nmissing}, e);
	for (size_t i = 0; i < n; i++)
		if (add_one(c, found[i], done, p, x, e) < 0)
			return -1;
	cdi_profile(x, NULL);
	return 0;
}
