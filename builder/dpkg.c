#include "builder/dpkg.h"

#include <string.h>

#include "base/str.h"
#include "builder/alternatives.h"
#include "builder/configure.h"
#include "builder/diversions.h"
#include "builder/prune.h"
#include "builder/rootfs.h"

enum {
	STATUS_MAX = 256 << 20,
	LIST_MAX = 256 << 20,
	TRIGGERS_MAX = 4 << 20,
	TRIGGER_LINES = 1024, /* of one package; real ones have a dozen */
	TRIGGER_NAMES = 4096,
	CONFFILES_MAX = 4096,        /* of one package, ... */
	CONFFILES_BYTES = 256 << 20, /* and of all these files: each is read and hashed */
};

struct database {
	struct rootfs r;
	const struct deb *const *debs;
	size_t n;
	bool installed; /* else unpacked */
	const struct manifest_apt *apt;
};

static const struct owner plain = {.mode = 0644};

static int put_text(struct buf *b, const char *text, struct err *e)
{
	return buf_add(b, text, strlen(text), e);
}

static int put_slice(struct buf *b, struct slice s, struct err *e)
{
	return buf_add(b, s.p, s.n, e);
}

static int write_buf(
	const struct database *db, const char *path, const struct buf *b, struct err *e)
{
	return rootfs_file(&db->r, path, b->data ? b->data : "", b->len, plain, e);
}

/* ---- info/ ---- */

/* "info/libc6:amd64.list": packages that can be installed for several architectures have theirs in
 * the name. Source: dpkg, lib/dpkg/db-ctrl-access.c. */
static char *info_path(const struct deb *d, const char *file)
{
	bool same = d->multi_arch && str_eq(d->multi_arch, "same");

	return mem_printf(
		"var/lib/dpkg/info/%s%s%s.%s", d->name, same ? ":" : "", same ? d->arch : "", file);
}

/* Did another package that Replaces this one take the path over? It is no longer in the list then.
 */
static bool is_lost(const struct database *db, const struct entry *en, const char *place)
{
	const struct node *n =
		en->a.type == NODE_FILE && !en->pruned ? rootfs_at(db->r.tree, place) : NULL;
	const struct attr *a = n ? n->link ? &n->link->a : &n->a : NULL;

	if (!a || a->type == NODE_DIR || n->origin == db->r.origin)
		return false;
	return a->type != NODE_FILE || a->nchunks != en->a.nchunks ||
	       (a->nchunks && !digest_eq(&a->chunks[0].digest, &en->a.chunks[0].digest));
}

static int write_list(const struct database *db, const struct deb *d, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(LIST_MAX);
	auto_free char *path = info_path(d, "list");

	for (size_t i = 0; i < d->data.n; i++) {
		const struct entry *en = &d->data.v[i];

		if (is_lost(db, en, deb_place(d, i)))
			continue;
		if (strchr(en->path, '\n'))
			return err_set(e, ERR_CORRUPT, "a file name with a line break in it");
		if (put_text(&b, en->path[0] ? "/" : "/.", e) < 0 ||
			put_text(&b, en->path, e) < 0 || put_text(&b, "\n", e) < 0)
			return -1;
	}
	return write_buf(db, path, &b, e);
}

static int write_info(const struct database *db, const struct deb *d, struct err *e)
{
	if (write_list(db, d, e) < 0)
		return -1;
	for (size_t i = 0; i < d->nfiles; i++) {
		const struct deb_file *f = &d->files[i];
		auto_free char *path = info_path(d, f->name);

		if (str_eq(f->name, "list")) /* dpkg's own */
			continue;
		if (rootfs_file(&db->r, path, f->data, f->len, (struct owner){.mode = f->mode}, e) <
			0)
			return -1;
	}
	return 0;
}

/* ---- status ---- */

/* The file that a line of conffiles names, when there is one; else the line is a flag, or stale. */
static const struct node *conffile(const struct database *db, struct slice line)
{
	char path[TREE_PATH_MAX + 1];
	const struct node *n;

	if (line.n < 2 || line.n > TREE_PATH_MAX || line.p[0] != '/')
		return NULL;
	memcpy(path, line.p + 1, line.n - 1);
	path[line.n - 1] = '\0';
	n = rootfs_at(db->r.tree, path);
	return n && (n->link ? n->link : n)->a.type == NODE_FILE ? n : NULL;
}

/* " /etc/x MD5" of every conffile that is there. */
static int put_conffiles(
	const struct database *db, const struct deb *d, struct buf *b, struct err *e)
{
	const struct deb_file *f = deb_file(d, "conffiles");
	struct slice text = {.p = f ? f->data : NULL, .n = f ? f->len : 0}, line;
	uint64_t bytes = 0;
	unsigned count = 0;

	while (slice_piece(&text, '\n', &line)) {
		const struct node *n = conffile(db, line);
		char md5[33];

		if (!n)
			continue;
		bytes += (n->link ? n->link : n)->a.size;
		if (count >= CONFFILES_MAX || bytes > CONFFILES_BYTES)
			return err_set(e, ERR_CORRUPT,
				"'%.*s' is one too many: more than %d files or %d bytes",
				(int)(line.n < 200 ? line.n : 200), line.p, CONFFILES_MAX,
				CONFFILES_BYTES);
		if (rootfs_md5(&db->r, n, md5, e) < 0 ||
			(count == 0 && put_text(b, "Conffiles:\n", e) < 0) ||
			put_text(b, " ", e) < 0 || put_slice(b, line, e) < 0 ||
			put_text(b, " ", e) < 0 || put_text(b, md5, e) < 0 ||
			put_text(b, "\n", e) < 0)
			return -1;
		count++;
	}
	return 0;
}

static bool is_held(const struct database *db, const struct deb *d)
{
	for (size_t i = 0; i < db->apt->holds.n; i++)
		if (str_eq(db->apt->holds.v[i], d->name))
			return true;
	return false;
}

/* The control file with its fields as they are, and the two that say that it is installed. */
static int put_status(const struct database *db, const struct deb *d, struct buf *b, struct err *e)
{
	struct slice text = slice_of(d->control), line;
	bool skip = false;

	if (put_text(b, "Package: ", e) < 0 || put_text(b, d->name, e) < 0 ||
		put_text(b, is_held(db, d) ? "\nStatus: hold ok " : "\nStatus: install ok ", e) <
			0 ||
		put_text(b, db->installed ? "installed\n" : "unpacked\n", e) < 0)
		return -1;
	while (slice_line(&text, &line)) {
		bool goes_on = line.n && (line.p[0] == ' ' || line.p[0] == '\t');

		skip = goes_on ? skip : slice_starts(line, "Package:");
		if (!skip && (put_slice(b, line, e) < 0 || put_text(b, "\n", e) < 0))
			return -1;
	}
	if (put_conffiles(db, d, b, e) < 0)
		return err_ctx(e, "conffiles of %s", d->name);
	return put_text(b, "\n", e);
}

/* ---- triggers ---- */

struct triggers {
	struct arena arena;
	struct buf file; /* interest in paths: "PATH PACKAGE" */
	struct {
		const char *name; /* interest in a name: triggers/NAME lists packages */
		struct buf text;
	} * v;
	size_t n, cap;
};

static struct buf *trigger_buf(struct triggers *t, struct slice name)
{
	for (size_t i = 0; i < t->n; i++)
		if (slice_eq(name, t->v[i].name))
			return &t->v[i].text;
	mem_grow(&t->v, &t->cap, t->n);
	t->v[t->n].name = arena_strndup(&t->arena, name.p, name.n);
	t->v[t->n].text = BUF_INIT(TRIGGERS_MAX);
	return &t->v[t->n++].text;
}

/* "interest-noawait /usr/share/fonts". Source: deb-triggers(5), dpkg src/trigdeferred.c. */
static int add_trigger(struct triggers *t, const struct deb *d, struct slice line, struct err *e)
{
	bool same = d->multi_arch && str_eq(d->multi_arch, "same");
	struct slice word, name;
	struct buf *b;

	if (!slice_piece(&line, ' ', &word) || !slice_starts(word, "interest"))
		return 0;
	name = slice_trim(line);
	if (name.n == 0 || name.n > TREE_NAME_MAX || memchr(name.p, ' ', name.n))
		return 0;
	if (name.p[0] != '/' && (memchr(name.p, '/', name.n) || name.p[0] == '.'))
		return 0;
	b = name.p[0] == '/' ? &t->file : trigger_buf(t, name);
	if (name.p[0] == '/' && (put_slice(b, name, e) < 0 || put_text(b, " ", e) < 0))
		return -1;
	if (put_text(b, d->name, e) < 0 ||
		(same && (put_text(b, ":", e) < 0 || put_text(b, d->arch, e) < 0)) ||
		(slice_eq(word, "interest-noawait") && put_text(b, "/noawait", e) < 0))
		return -1;
	return put_text(b, "\n", e);
}

static int collect_triggers(const struct database *db, struct triggers *t, struct err *e)
{
	for (size_t i = 0; i < db->n; i++) {
		const struct deb_file *f = deb_file(db->debs[i], "triggers");
		struct slice text = {.p = f ? f->data : NULL, .n = f ? f->len : 0}, line;
		unsigned lines = 0;

		while (slice_piece(&text, '\n', &line)) {
			if (++lines > TRIGGER_LINES || t->n > TRIGGER_NAMES)
				return err_set(e, ERR_CORRUPT,
					"triggers of %s: more than %d lines, or %d names",
					db->debs[i]->name, TRIGGER_LINES, TRIGGER_NAMES);
			if (add_trigger(t, db->debs[i], line, e) < 0)
				return err_ctx(e, "triggers of %s", db->debs[i]->name);
		}
	}
	return 0;
}

static int write_triggers(const struct database *db, struct err *e)
{
	struct triggers t = {.file = BUF_INIT(TRIGGERS_MAX)};
	int rc = collect_triggers(db, &t, e);

	if (rc == 0)
		rc = write_buf(db, "var/lib/dpkg/triggers/File", &t.file, e);
	if (rc == 0)
		rc = rootfs_file(&db->r, "var/lib/dpkg/triggers/Unincorp", "", 0, plain, e);
	for (size_t i = 0; i < t.n; i++) {
		auto_free char *path = mem_printf("var/lib/dpkg/triggers/%s", t.v[i].name);

		if (rc == 0)
			rc = write_buf(db, path, &t.v[i].text, e);
		buf_fini(&t.v[i].text);
	}
	free(t.v);
	buf_fini(&t.file);
	arena_fini(&t.arena);
	return rc;
}

/* ---- apt's own state ---- */

static int write_extended_states(const struct database *db, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(STATUS_MAX);
	const char *native = "all";

	for (size_t i = 0; i < db->n; i++)
		if (!str_eq(db->debs[i]->arch, "all"))
			native = db->debs[i]->arch;
	for (size_t i = 0; i < db->n; i++) {
		const struct deb *d = db->debs[i];

		if (d->automatic)
			buf_printf(&b, "Package: %s\nArchitecture: %s\nAuto-Installed: 1\n\n",
				d->name, str_eq(d->arch, "all") ? native : d->arch);
	}
	return b.len ? write_buf(db, "var/lib/apt/extended_states", &b, e) : 0;
}

/* ---- a file for each package, for scanners: there is no dpkg to read more ---- */

static int write_status_d(const struct database *db, struct err *e)
{
	for (size_t i = 0; i < db->n; i++) {
		const struct deb *d = db->debs[i];
		const struct deb_file *sums = deb_file(d, "md5sums");
		auto_free char *path = mem_printf("var/lib/dpkg/status.d/%s", d->name);
		auto_free char *sums_path = mem_printf("%s.md5sums", path);
		auto_buf struct buf b = BUF_INIT(STATUS_MAX);

		if (put_status(db, d, &b, e) < 0 || write_buf(db, path, &b, e) < 0)
			return err_ctx(e, "database entry of package %s", d->name);
		if (sums && rootfs_file(&db->r, sums_path, sums->data, sums->len, plain, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- no database ---- */

/* The configuration has written there (alternatives, diversions), and packages ship the folders. */
static void remove_database(const struct database *db)
{
	struct node *n = tree_find(db->r.tree, "var/lib/dpkg");

	if (n && n->layer == CHUNK_NO_LAYER) /* else of the base */
		tree_remove(db->r.tree, n);
}

/* ---- the whole ---- */

static int check_holds(const struct database *db, struct err *e)
{
	for (size_t i = 0; i < db->apt->holds.n; i++) {
		bool found = false;

		for (size_t k = 0; k < db->n && !found; k++)
			found = str_eq(db->debs[k]->name, db->apt->holds.v[i]);
		if (!found)
			return err_set(e, ERR_USAGE, "/apt/holds/%zu: no package '%s' is installed",
				i, db->apt->holds.v[i]);
	}
	return 0;
}

/* Those that were made when files were unpacked; scripts find them there. */
static int write_diversions(const struct database *db, struct err *e)
{
	struct arena a = {0};
	auto_buf struct buf b = BUF_INIT(LIST_MAX);
	struct diversion *v;
	size_t n;
	int rc;

	if (db->apt->configure != APT_DPKG || rootfs_has(&db->r, "var/lib/dpkg/diversions"))
		return 0;
	v = diversions_find(db->debs, db->n, &a, &n);
	diversions_text(v, n, &b);
	rc = n ? write_buf(db, "var/lib/dpkg/diversions", &b, e) : 0;
	arena_fini(&a);
	return rc;
}

static int write_database(const struct database *db, struct err *e)
{
	static const char *const empty[] = {"available", "diversions", "statoverride"};
	static const char *const folders[] = {"updates", "parts", "alternatives"};
	auto_buf struct buf status = BUF_INIT(STATUS_MAX);

	for (size_t i = 0; i < db->n; i++) {
		if (write_info(db, db->debs[i], e) < 0 ||
			put_status(db, db->debs[i], &status, e) < 0)
			return err_ctx(e, "database entry of package %s", db->debs[i]->name);
	}
	if (write_buf(db, "var/lib/dpkg/status", &status, e) < 0 ||
		rootfs_file(&db->r, "var/lib/dpkg/info/format", "1\n", 2, plain, e) < 0 ||
		write_diversions(db, e) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		auto_free char *path = mem_printf("var/lib/dpkg/%s", empty[i]);

		if (!rootfs_has(&db->r, path) && rootfs_file(&db->r, path, "", 0, plain, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		auto_free char *path = mem_printf("var/lib/dpkg/%s", folders[i]);

		if (rootfs_dir(&db->r, path, (struct owner){.mode = 0755}, e) < 0)
			return -1;
	}
	if (write_triggers(db, e) < 0)
		return -1;
	return write_extended_states(db, e);
}

/* Prune comes before the alternatives: a manual page that is not there is offered by nobody. */
int dpkg_finish(struct tree *t, const struct manifest_apt *apt, const struct deb *const *debs,
	size_t n, struct pool *p, int64_t epoch, uint32_t origin, struct err *e)
{
	struct database db = {
		.r = {.tree = t, .pool = p, .epoch = epoch, .origin = origin},
		.debs = debs,
		.n = n,
		.installed = apt->configure == APT_BUILTIN,
		.apt = apt,
	};

	struct prune *prune = prune_new(&apt->prune, e);
	int rc = prune ? 0 : -1;

	if (rc == 0 && db.installed && configure_builtin(&db.r, debs, n, e) < 0)
		rc = err_ctx(e, "built-in configuration");
	if (rc == 0 && apt->configure == APT_DPKG)
		rc = configure_seed(&db.r, debs, n, e);
	if (rc == 0)
		rc = prune_tree(&db.r, prune, e);
	prune_free(prune);
	if (rc == 0 && db.installed)
		rc = alternatives_make(&db.r, debs, n, &apt->alternatives, e);
	if (rc < 0 || check_holds(&db, e) < 0)
		return -1;
	if (apt->database == DATABASE_STATUS_D)
		return write_status_d(&db, e);
	if (apt->database == DATABASE_DPKG)
		return write_database(&db, e);
	remove_database(&db);
	return 0;
}
