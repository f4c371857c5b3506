/* One input being downloaded: a libcurl handle that fills a partial file, and the verdict on how a
 * try ended.
 * Source: RFC 9110 14 (ranges) and 15 (status codes); formats.md 4.1. */
#ifndef BUILDER_TRANSFER_H
#define BUILDER_TRANSFER_H

#include <curl/curl.h>

#include "builder/fetch.h"
#include "builder/partial.h"

enum verdict {
	VERDICT_NONE,
	VERDICT_DONE,   /* it is in the cache */
	VERDICT_RETRY,  /* e says why; the partial is open and holds what may be kept */
	VERDICT_FAILED, /* e says why; another try would not help */
};

struct transfer {
	const struct fetch_limits *limits;
	const uint64_t
		*need; /* bytes that all inputs still lack: for the hint when the disk is full */
	struct partial part;
	CURL *curl;
	struct curl_slist *headers;

	/* the try in progress */
	bool ranged, accepted;
	enum verdict refused; /* by a callback, which can only stop the transfer */
	bool has_range;       /* the answer's Content-Range, and where it starts and ends */
	uint64_t range_start, range_total; /* total 0: not said */
	bool whole;                        /* the answer began at byte 0 and said how long it is */
	double retry_after_ms;
	struct err e;
	char text[CURL_ERROR_SIZE], where[512];
};

/* Get the handle ready; keeps connections in the multi handle, not here. */
int transfer_init(struct transfer *t, const struct fetch_limits *l, const uint64_t *need,
	struct err *e) must_check;
void transfer_fini(struct transfer *t);

/* Set t->curl up to fetch what t->part lacks, to be added to a multi handle. */
void transfer_begin(struct transfer *t);
/* The try ended with `code`. */
enum verdict transfer_end(struct transfer *t, CURLcode code);

#endif
