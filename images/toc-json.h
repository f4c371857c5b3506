/* JSON read once, from beginning to end, without keeping it: tables of contents have up to 150 MiB,
 * and a value for each would take ten times that. The caller says what it expects next; whatever
 * else comes is CORRUPT, with its position. Strict RFC 8259: no comments, no trailing commas. */
#ifndef IMAGES_TOC_JSON_H
#define IMAGES_TOC_JSON_H

#include <stdbool.h>

#include "base/mem.h"
#include "images/source.h"

enum { TOC_KEY_MAX = 255, TOC_JSON_DEPTH = 64 };

struct toc_json {
	struct source *src; /* borrowed */
	const unsigned char *p, *end;
	uint64_t read; /* bytes that came from src */
	struct buf key;
	const char *name; /* for errors */
};

void toc_json_init(struct toc_json *j, struct source *src, const char *name);
void toc_json_fini(struct toc_json *j);
/* Bytes read so far. */
uint64_t toc_json_at(const struct toc_json *j);

/* The opening bracket of an object or an array: { or [. */
int toc_json_open(struct toc_json *j, char bracket, struct err *e) must_check;
/* 1: j->key is the name of a member whose value comes next; 0: that was the object. *first is true
 * before the first call. Names of more than TOC_KEY_MAX bytes, or that are not UTF-8: CORRUPT. */
int toc_json_member(struct toc_json *j, bool *first, struct err *e) must_check;
/* 1: an element comes next; 0: that was the array. */
int toc_json_element(struct toc_json *j, bool *first, struct err *e) must_check;

/* 1: a string, in b (whose max bounds it; UTF-8 without NUL); 0: null. */
int toc_json_string(struct toc_json *j, struct buf *b, struct err *e) must_check;
/* 1: a whole number of 0 to max; 0: null. */
int toc_json_number(struct toc_json *j, uint64_t max, uint64_t *v, struct err *e) must_check;
/* 1: an object begins here, and its bracket is taken; 0: null. */
int toc_json_object(struct toc_json *j, struct err *e) must_check;
/* Any value. */
int toc_json_skip(struct toc_json *j, struct err *e) must_check;
/* Nothing comes any more, not even a space. */
int toc_json_end(struct toc_json *j, struct err *e) must_check;

#endif
