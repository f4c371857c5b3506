#include "images/toc-record.h"

#include <string.h>
#include <time.h>

#include "base/str.h"
#include "images/base64.h"
#include "images/toc-parse.h"

void toc_record_init(struct toc_record *r)
{
	*r = (struct toc_record){.name = BUF_INIT(TREE_PATH_MAX + 1),
		.link = BUF_INIT(TREE_PATH_MAX + 1),
		.text = BUF_INIT(TOC_STRING_MAX)};
}

void toc_record_fini(struct toc_record *r)
{
	buf_fini(&r->name);
	buf_fini(&r->link);
	buf_fini(&r->text);
	arena_fini(&r->arena);
}

static void clear(struct toc_record *r)
{
	struct buf name = r->name, link = r->link, text = r->text;

	arena_fini(&r->arena);
	name.len = link.len = text.len = 0;
	*r = (struct toc_record){.name = name, .link = link, .text = text};
	if (r->name.data)
		r->name.data[0] = '\0';
	if (r->link.data)
		r->link.data[0] = '\0';
}

/* ---- values ---- */

/* n digits. */
static int number(const char *s, size_t n, int *v)
{
	*v = 0;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -1;
		*v = *v * 10 + (s[i] - '0');
	}
	return 0;
}

/* "Z" or "+hh:mm" to seconds east. */
static int zone(const char *s, int *east)
{
	int h, m;

	*east = 0;
	if (str_eq(s, "Z"))
		return 0;
	if ((s[0] != '+' && s[0] != '-') || strlen(s) != 6 || s[3] != ':' ||
		number(s + 1, 2, &h) < 0 || number(s + 4, 2, &m) < 0 || h > 23 || m > 59)
		return -1;
	*east = (s[0] == '-' ? -1 : 1) * (h * 3600 + m * 60);
	return 0;
}

int toc_time(const char *s, int64_t *t)
{
	static const char form[] = "dddd-dd-ddTdd:dd:dd";
	struct tm tm = {0};
	int east;

	for (size_t i = 0; form[i]; i++)
		if (form[i] == 'd' ? s[i] < '0' || s[i] > '9' : s[i] != form[i])
			return -1;
	if (number(s, 4, &tm.tm_year) < 0 || number(s + 5, 2, &tm.tm_mon) < 0 ||
		number(s + 8, 2, &tm.tm_mday) < 0 || number(s + 11, 2, &tm.tm_hour) < 0 ||
		number(s + 14, 2, &tm.tm_min) < 0 || number(s + 17, 2, &tm.tm_sec) < 0)
		return -1;
	if (tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_mday > 31 ||
		tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
		return -1;
	s += sizeof(form) - 1;
	if (*s == '.') {
		size_t n = strspn(s + 1, "0123456789");

		if (n == 0)
			return -1;
		s += 1 + n;
	}
	if (zone(s, &east) < 0)
		return -1;
	if (tm.tm_year == 1) {
		*t = 0;
		return 0;
	}
	tm.tm_year -= 1900;
	tm.tm_mon--;
	*t = timegm(&tm) - east;
	return 0;
}

/* U+FFFD stands where the writer had bytes that are not UTF-8: the true name is not known. */
static int check_replaced(const char *s, struct err *e)
{
	return strstr(s, "\xef\xbf\xbd")
		       ? err_set(e, ERR_UNSUPPORTED, "a name that is not UTF-8 was lost")
		       : 0;
}

static int set_type(struct toc_record *r, struct err *e)
{
	if (str_copy(r->type, sizeof(r->type), r->text.data) < 0)
		return err_set(e, ERR_UNSUPPORTED, "unknown type '%s...'", r->type);
	return 0;
}

static int set_name(struct toc_record *r, struct err *e)
{
	r->name.len = 0;
	return buf_add(&r->name, r->text.data, r->text.len, e) < 0
		       ? -1
		       : check_replaced(r->name.data, e);
}

static int set_link(struct toc_record *r, struct err *e)
{
	r->link.len = 0;
	return buf_add(&r->link, r->text.data, r->text.len, e) < 0
		       ? -1
		       : check_replaced(r->link.data, e);
}

static int set_time(struct toc_record *r, struct err *e)
{
	return toc_time(r->text.data, &r->mtime) < 0
		       ? err_set(e, ERR_CORRUPT, "'%.40s' is no time", r->text.data)
		       : 0;
}

/* An empty one is none: Go's way of leaving it out where omitempty was forgotten. */
static int set_digest(struct toc_record *r, struct err *e)
{
	r->has_digest = r->text.len > 0;
	return r->has_digest ? digest_parse(&r->digest, r->text.data, e) : 0;
}

static int set_chunk_digest(struct toc_record *r, struct err *e)
{
	r->has_chunk_digest = r->text.len > 0;
	return r->has_chunk_digest ? digest_parse(&r->chunk_digest, r->text.data, e) : 0;
}

static int set_chunk_type(struct toc_record *r, struct err *e)
{
	r->zeros = str_eq(r->text.data, "zeros");
	return r->zeros || r->text.len == 0
		       ? 0
		       : err_set(e, ERR_UNSUPPORTED, "unknown chunkType '%.40s'", r->text.data);
}

/* ---- extended attributes ---- */

static int by_name(const void *a, const void *b)
{
	const struct xattr *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int read_xattr(struct toc_record *r, struct toc_json *j, struct err *e)
{
	struct xattr *x = &r->xattrs[r->nxattrs];
	size_t n;

	if (r->nxattrs == TREE_XATTRS_MAX)
		return err_set(e, ERR_CORRUPT, "more than %d extended attributes", TREE_XATTRS_MAX);
	x->name = arena_strdup(&r->arena, j->key.data);
	if (check_replaced(x->name, e) < 0)
		return -1;
	if (toc_json_string(j, &r->text, e) <= 0)
		return err_set(e, ERR_CORRUPT, "extended attribute '%.100s' is no string", x->name);

	auto_free char *value = base64_decode(r->text.data, &n);

	if (!value)
		return err_set(
			e, ERR_CORRUPT, "extended attribute '%.100s' is not base64", x->name);
	x->value = arena_dup(&r->arena, value, n);
	x->len = n;
	r->nxattrs++;
	return 0;
}

static int read_xattrs(struct toc_record *r, struct toc_json *j, struct err *e)
{
	bool first = true;
	int rc = toc_json_object(j, e);

	if (rc <= 0)
		return rc;
	while ((rc = toc_json_member(j, &first, e)) > 0)
		if (read_xattr(r, j, e) < 0)
			return -1;
	qsort(r->xattrs, r->nxattrs, sizeof(r->xattrs[0]), by_name);
	for (uint32_t i = 1; rc == 0 && i < r->nxattrs; i++)
		if (str_eq(r->xattrs[i - 1].name, r->xattrs[i].name))
			return err_set(e, ERR_CORRUPT, "extended attribute '%.100s' twice",
				r->xattrs[i].name);
	return rc;
}

/* ---- fields ---- */

static const struct field {
	const char *name; /* in lower case */
	size_t at;        /* of a uint64_t, when max is set */
	uint64_t max;
	int (*set)(struct toc_record *r, struct err *e); /* of a string, in r->text */
} fields[] = {
	{"type", 0, 0, set_type},
	{"name", 0, 0, set_name},
	{"linkname", 0, 0, set_link},
	{"modtime", 0, 0, set_time},
	{"digest", 0, 0, set_digest},
	{"chunkdigest", 0, 0, set_chunk_digest},
	{"chunktype", 0, 0, set_chunk_type},
	{"mode", offsetof(struct toc_record, mode), UINT32_MAX, NULL},
	{"size", offsetof(struct toc_record, size), INT64_MAX, NULL},
	{"uid", offsetof(struct toc_record, uid), UINT32_MAX, NULL},
	{"gid", offsetof(struct toc_record, gid), UINT32_MAX, NULL},
	{"devmajor", offsetof(struct toc_record, major), UINT32_MAX, NULL},
	{"devminor", offsetof(struct toc_record, minor), UINT32_MAX, NULL},
	{"offset", offsetof(struct toc_record, offset), INT64_MAX, NULL},
	{"endoffset", offsetof(struct toc_record, end_offset), INT64_MAX, NULL},
	{"inneroffset", offsetof(struct toc_record, inner), INT64_MAX, NULL},
	{"chunksize", offsetof(struct toc_record, chunk_size), INT64_MAX, NULL},
	{"chunkoffset", offsetof(struct toc_record, chunk_offset), INT64_MAX, NULL},
	{"xattrs", 0, 0, NULL},
};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };
_Static_assert(FIELDS <= 32, "toc_record.seen has a bit for each");

/* The index of the field, FIELDS when it is none that we know; -1. Readers fold letters by Unicode,
 * so that a long s or a Kelvin sign would make a name mean one thing to them and nothing to us. */
static int find_field(const char *name, struct err *e)
{
	char low[16];
	size_t n = 0;
	int i = 0;

	for (; name[n]; n++) {
		char c = name[n];

		if ((unsigned char)c >= 0x80)
			return err_set(e, ERR_CORRUPT, "a field's name is not ASCII");
		if (n < sizeof(low) - 1)
			low[n] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	if (n >= sizeof(low))
		return FIELDS;
	low[n] = '\0';
	while (i < FIELDS && !str_eq(fields[i].name, low))
		i++;
	return i;
}

static int read_field(
	struct toc_record *r, struct toc_json *j, const struct field *f, struct err *e)
{
	int rc;

	if (f->max)
		return toc_json_number(j, f->max, (uint64_t *)(void *)((char *)r + f->at), e);
	if (!f->set)
		return read_xattrs(r, j, e);
	rc = toc_json_string(j, &r->text, e);
	return rc <= 0 ? rc : f->set(r, e);
}

int toc_record_read(struct toc_record *r, struct toc_json *j, struct err *e)
{
	bool first = true;
	int rc;

	clear(r);
	if (toc_json_open(j, '{', e) < 0)
		return -1;
	while ((rc = toc_json_member(j, &first, e)) > 0) {
		int i = find_field(j->key.data, e);

		if (i < 0)
			return -1;
		if (i == FIELDS) {
			if (toc_json_skip(j, e) < 0)
				return -1;
			continue;
		}
		if (r->seen & 1U << i)
			return err_set(e, ERR_CORRUPT, "%s twice", fields[i].name);
		r->seen |= 1U << i;
		if (read_field(r, j, &fields[i], e) < 0)
			return err_ctx(e, "%s", fields[i].name);
	}
	return rc;
}
