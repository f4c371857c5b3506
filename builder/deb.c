#include "builder/deb.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"

enum {
	AR_HEADER = 60,
	AR_MEMBERS = 16,          /* a package has three */
	CONTROL_FILES = 64,       /* of one package; real ones have at most a dozen */
	CONTROL_BYTES = 32 << 20, /* all of them: md5sums of big packages are some megabytes */
	DATA_ENTRIES = 1 << 20,
	RATIO = 1000, /* unpacked to packed, beyond a first RATIO_FREE bytes */
	RATIO_FREE = 64 << 20,
};

static const uint64_t data_bytes_max = 32ull << 30;

/* ---- ar: a magic, then per member a header of text fields and its data, padded to 2 ---- */

struct member {
	char name[17];
	uint64_t at, size;
};

static int read_at(int fd, void *p, size_t n, uint64_t at, const char *name, struct err *e)
{
	if (sys_pread_all(fd, p, n, (off_t)at) == 0)
		return 0;
	if (errno != ENODATA)
		return err_sys(e, "read %s", name);
	return err_set(e, ERR_CORRUPT, "%s: truncated at byte %" PRIu64, name, at);
}

static int ar_header(
	int fd, uint64_t at, uint64_t end, struct member *m, const char *name, struct err *e)
{
	char h[AR_HEADER], digits[11];
	size_t n;

	if (read_at(fd, h, sizeof(h), at, name, e) < 0)
		return -1;
	memcpy(m->name, h, 16);
	for (n = 16; n > 0 && (m->name[n - 1] == ' ' || m->name[n - 1] == '/'); n--)
		;
	m->name[n] = '\0';
	memcpy(digits, h + 48, 10);
	for (n = 10; n > 0 && digits[n - 1] == ' '; n--)
		;
	digits[n] = '\0';
	m->at = at + AR_HEADER;
	if (memcmp(h + 58, "`\n", 2) != 0 || str_u64(digits, UINT32_MAX * 3ull, &m->size) < 0)
		return err_set(e, ERR_CORRUPT, "%s: damaged ar header at byte %" PRIu64, name, at);
	if (m->at > end || m->size > end - m->at)
		return err_set(e, ERR_CORRUPT,
			"%s: truncated: member %s of %" PRIu64 " bytes goes beyond the end", name,
			m->name, m->size);
	return 0;
}

/* The three members, in the order that deb(5) demands; names that begin with _ may stand between.
 */
static int ar_read(int fd, struct member part[3], const char *name, struct err *e)
{
	static const char *const names[] = {"debian-binary", "control.tar", "data.tar"};
	struct stat st;
	char magic[8];
	uint64_t at = sizeof(magic), end;
	size_t found = 0;

	if (sys_fstat(fd, &st) < 0)
		return err_sys(e, "%s", name);
	end = (uint64_t)st.st_size;
	if (read_at(fd, magic, sizeof(magic), 0, name, e) < 0)
		return -1;
	if (memcmp(magic, "!<arch>\n", sizeof(magic)) != 0)
		return err_set(e, ERR_CORRUPT, "%s: no Debian package (no ar archive)", name);
	for (size_t i = 0; i < AR_MEMBERS && found < 3; i++) {
		struct member m;

		if (at >= end)
			return err_set(e, ERR_CORRUPT, "%s: truncated before member %s", name,
				names[found]);
		if (ar_header(fd, at, end, &m, name, e) < 0)
			return -1;
		at = m.at + m.size + (m.size & 1);
		if (str_starts(m.name, names[found]))
			part[found++] = m;
		else if (m.name[0] != '_')
			return err_set(e, ERR_CORRUPT, "%s: member '%s' where %s should be", name,
				m.name, names[found]);
	}
	if (found < 3)
		return err_set(e, ERR_CORRUPT, "%s: more than %d members", name, AR_MEMBERS);
	return 0;
}

static int check_format(int fd, const struct member *m, const char *name, struct err *e)
{
	char text[4];

	if (read_at(fd, text, sizeof(text), m->at, name, e) < 0)
		return -1;
	if (memcmp(text, "2.", 2) != 0)
		return err_set(e, ERR_CORRUPT, "%s: not a package of format 2", name);
	return 0;
}

static struct archive *open_member(int fd, const struct member *m, const char *name, struct err *e)
{
	static const struct {
		const char *suffix;
		int filter;
	} table[] = {
		{".tar", ARCHIVE_FILTER_NONE},
		{".tar.gz", ARCHIVE_FILTER_GZIP},
		{".tar.xz", ARCHIVE_FILTER_XZ},
		{".tar.zst", ARCHIVE_FILTER_ZSTD},
		{".tar.bz2", ARCHIVE_FILTER_BZIP2},
		{".tar.lzma", ARCHIVE_FILTER_LZMA},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (str_ends(m->name, table[i].suffix))
			return archive_open_fd(fd, m->at, m->size, table[i].filter, name, e);
	err_set(e, ERR_UNSUPPORTED, "%s: compression of member %s", name, m->name);
	return NULL;
}

/* ---- control.tar: a few small files ---- */

struct control_reader {
	struct deb *d;
	struct archive *archive;
	const char *name;
	size_t bytes, cap;
};

/* The name without "./"; control files lie in no folder. NULL: not one of them. */
static const char *control_name(const char *name)
{
	while (str_starts(name, "./"))
		name += 2;
	return *name && !strchr(name, '/') && name[0] != '.' ? name : NULL;
}

static int read_small(struct control_reader *r, struct archive_entry *en, const char *name,
	struct deb_file *f, struct err *e)
{
	int64_t size = archive_entry_size(en);
	char *data;
	la_ssize_t n;

	if (size < 0 || (uint64_t)size > CONTROL_BYTES - r->bytes)
		return err_set(e, ERR_CORRUPT,
			"%s: control file '%.100s' makes all of them bigger than %d bytes", r->name,
			name, CONTROL_BYTES);
	data = arena_alloc(&r->d->arena, (size_t)size + 1);
	n = archive_read_data(r->archive, data, (size_t)size);
	if (n != size)
		return err_set(
			e, ERR_CORRUPT, "%s: control file '%.100s' is truncated", r->name, name);
	r->bytes += (size_t)size;
	*f = (struct deb_file){.name = arena_strdup(&r->d->arena, name),
		.data = data,
		.len = (size_t)size,
		.mode = archive_entry_perm(en) & 0755};
	return 0;
}

static int control_member(struct control_reader *r, struct archive_entry *en, struct err *e)
{
	const char *path = archive_entry_pathname(en);
	const char *name = path ? control_name(path) : NULL;
	struct deb *d = r->d;

	if (path && archive_entry_filetype(en) == AE_IFDIR &&
		(str_eq(path, "./") || str_eq(path, ".")))
		return 0;
	if (!name || archive_entry_filetype(en) != AE_IFREG || archive_entry_hardlink(en))
		return err_set(e, ERR_CORRUPT, "%s: '%.100s' is no control file", r->name,
			path ? path : "");
	if (d->nfiles >= CONTROL_FILES)
		return err_set(
			e, ERR_CORRUPT, "%s: more than %d control files", r->name, CONTROL_FILES);
	if (deb_file(d, name))
		return err_set(
			e, ERR_CORRUPT, "%s: control file '%.100s' is there twice", r->name, name);
	if (read_small(r, en, name, &d->files[d->nfiles], e) < 0)
		return -1;
	d->nfiles++;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct deb_file *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static bool made_of(const char *s, const char *chars)
{
	return *s && strspn(s, chars) == strlen(s);
}

/* These become file names and lines of the package database. Source: deb-control(5). */
static int check_identity(const struct deb *d, const char *name, struct err *e)
{
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"
	static const char upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" LOWER DIGITS ".+~:-";

	if (!d->name || !made_of(d->name, LOWER DIGITS "+.-") || d->name[0] == '.' ||
		strlen(d->name) > 200)
		return err_set(e, ERR_CORRUPT, "%s: bad package name '%.100s'", name,
			d->name ? d->name : "");
	if (!d->version || !made_of(d->version, upper))
		return err_set(e, ERR_CORRUPT, "%s: bad version '%.100s'", name,
			d->version ? d->version : "");
	if (!d->arch || !made_of(d->arch, LOWER DIGITS "-"))
		return err_set(e, ERR_CORRUPT, "%s: bad architecture '%.100s'", name,
			d->arch ? d->arch : "");
	if (deb_field(d, "Status").p || deb_field(d, "Conffiles").p)
		return err_set(
			e, ERR_CORRUPT, "%s: a field that only an installed package has", name);
	return 0;
#undef LOWER
#undef DIGITS
}

/* Take the file "control" out of d->files and read it. */
static int take_control(struct deb *d, const char *name, struct err *e)
{
	const struct deb_file *f = deb_file(d, "control");
	struct slice text, stanza;
	size_t i;

	if (!f)
		return err_set(e, ERR_CORRUPT, "%s: no control file", name);
	text = (struct slice){.p = f->data, .n = f->len};
	if (!control_next(&text, &stanza) || slice_trim(text).n > 0)
		return err_set(e, ERR_CORRUPT, "%s: the control file is not one stanza", name);
	if (control_check(stanza, e) < 0)
		return err_ctx(e, "%s: control file", name);
	d->control = arena_strndup(&d->arena, stanza.p, stanza.n);
	d->name = control_str(&d->arena, stanza, "Package");
	d->version = control_str(&d->arena, stanza, "Version");
	d->arch = control_str(&d->arena, stanza, "Architecture");
	d->multi_arch = control_str(&d->arena, stanza, "Multi-Arch");
	i = (size_t)(f - d->files);
	memmove(&d->files[i], &d->files[i + 1], (d->nfiles - i - 1) * sizeof(*d->files));
	d->nfiles--;
	return check_identity(d, name, e);
}

static int read_control(
	struct deb *d, int fd, const struct member *m, const char *name, struct err *e)
{
	auto_archive struct archive *a = open_member(fd, m, name, e);
	struct control_reader r = {.d = d, .archive = a, .name = name};
	struct archive_entry *en;
	int rc;

	if (!a)
		return -1;
	d->files = arena_alloc(&d->arena, CONTROL_FILES * sizeof(*d->files));
	while ((rc = archive_read_next_header(a, &en)) == ARCHIVE_OK || rc == ARCHIVE_WARN)
		if (control_member(&r, en, e) < 0)
			return -1;
	if (rc != ARCHIVE_EOF)
		return err_set(
			e, ERR_CORRUPT, "%s: %s: %s", name, m->name, archive_error_string(a));
	qsort(d->files, d->nfiles, sizeof(*d->files), by_name);
	return take_control(d, name, e);
}

/* ---- the whole ---- */

static int read_data(struct deb *d, int fd, const struct member *m, const char *name,
	const struct prune *prune, struct pool *p, struct err *e)
{
	auto_archive struct archive *a = open_member(fd, m, name, e);
	uint64_t limit = RATIO_FREE + m->size * RATIO;
	struct archive_rules r = {.name = name,
		.keep_owner = true,
		.prune = prune,
		.max_entries = DATA_ENTRIES,
		.mtime = -1};

	if (!a)
		return -1;
	r.max_bytes = r.max_file = limit < data_bytes_max ? limit : data_bytes_max;
	return archive_unpack(a, &r, p, &d->data, e);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Does a hard link that stays lead to a file whose data were not kept? */
static bool needs_pruned(const struct deb *d)
{
	auto_free const char **pruned = mem_array(d->data.n, sizeof(*pruned));
	size_t n = 0;

	for (size_t i = 0; i < d->data.n; i++)
		if (d->data.v[i].pruned)
			pruned[n++] = d->data.v[i].path;
	if (n == 0)
		return false;
	qsort(pruned, n, sizeof(*pruned), by_text);
	for (size_t i = 0; i < d->data.n; i++) {
		const struct entry *link = &d->data.v[i];

		if (link->a.type == NODE_HARDLINK && !link->pruned &&
			bsearch(&link->a.target, pruned, n, sizeof(*pruned), by_text))
			return true;
	}
	return false;
}

int deb_unpack(struct deb *d, int fd, const char *name, const struct prune *prune, struct pool *p,
	struct err *e)
{
	struct member part[3] = {0};

	*d = (struct deb){0};
	if (ar_read(fd, part, name, e) < 0 || check_format(fd, &part[0], name, e) < 0 ||
		read_control(d, fd, &part[1], name, e) < 0 ||
		read_data(d, fd, &part[2], name, prune, p, e) < 0)
		return -1;
	if (!needs_pruned(d))
		return 0;
	entries_fini(&d->data);
	return read_data(d, fd, &part[2], name, NULL, p, e);
}

void deb_fini(struct deb *d)
{
	entries_fini(&d->data);
	arena_fini(&d->arena);
	*d = (struct deb){0};
}

const char *deb_place(const struct deb *d, size_t i)
{
	return d->places && d->places[i] ? d->places[i] : d->data.v[i].path;
}

const struct deb_file *deb_file(const struct deb *d, const char *name)
{
	for (size_t i = 0; i < d->nfiles; i++)
		if (str_eq(d->files[i].name, name))
			return &d->files[i];
	return NULL;
}

struct slice deb_field(const struct deb *d, const char *field)
{
	return control_field(slice_of(d->control), field);
}
