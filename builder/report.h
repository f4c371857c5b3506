/* Complaints about a JSON text that people write, each with its place; sorted, and bounded in
 * number.
 *
 *   FILE:LINE:COL: SVnnn /json/pointer: message; expected ..., got ...; hint
 *
 * Lines and columns count from 1, columns in bytes. Whatever comes from the text is shown without
 * control characters and cut to a readable length. */
#ifndef BUILDER_REPORT_H
#define BUILDER_REPORT_H

#include "base/json.h"
#include "builder/manifest.h"

/* Numbers never change their meaning; docs/manifest.md explains each. */
enum {
	SV_SYNTAX = 0,       /* not JSON */
	SV_UNKNOWN = 1,      /* unknown key */
	SV_DUPLICATE = 2,    /* a key twice in one object */
	/* 3 was: not of this version yet */
	SV_LIMIT = 4,        /* too long, too deep, too many */
	SV_MISSING = 5,      /* required key */
	SV_TYPE = 6,         /* of the wrong JSON type */
	SV_VALUE = 7,        /* of the right type, but not a value that the key takes */
	SV_PATH = 8,         /* a path that is not clean */
	SV_CONFLICT = 9,     /* two values that cannot both be */
	SV_BASE_DIGEST = 10, /* a base that is not named by its digest */
	SV_DIGEST = 11,      /* a source that is not named by its content */
	SV_PLACEHOLDER = 13, /* an all-zero digest */
	SV_VARIABLE = 15,    /* "${...}" that nothing expands */
	SV_INHERIT = 16,     /* a parent in "from" that cannot be one */
	SV_PORT = 20,        /* a port twice */
	SV_SECRET = 130,     /* looks like a secret */
	SV_PICKLE = 141,     /* weights that run code when they are loaded */
};

/* One complaint. What is not set is not printed. */
struct fault {
	int code;
	const char *pointer;  /* "" is the document */
	bool at_key;          /* its place is the key's, not the value's */
	const char *at;       /* its place is this byte of the text, whatever pointer says */
	size_t byte;          /* behind the start of a string value, in decoded bytes */
	const char *expected; /* "a string" */
	const json_t *got;    /* shown as JSON */
	const char *hint;
};

struct report_line {
	size_t at; /* offset in the text */
	char *text;
};

struct report {
	struct resolved *source; /* not NULL: a document made of several, whose own reports get all
				    complaints, by pointer (resolve.h); nothing else is used */
	const char *name; /* FILE */
	const char *text; /* the whole document, NUL-terminated */
	size_t len;
	const struct json_doc *doc; /* for pointers; NULL while it isn't parsed */
	struct report_line *v;
	size_t n, cap;
	size_t total; /* with those beyond max */
	size_t max;   /* lines kept: finding a place reads the text from its beginning */
};

void report_init(struct report *r, const char *name, const void *text, size_t n, size_t max);
void report_fini(struct report *r);
void report_add(struct report *r, const struct fault *f, const char *fmt, ...) printf_like(3, 4);
/* Move the lines, in the order of the text, to c. */
void report_finish(struct report *r, struct complaints *c);

#endif
