/* What `svrun image build` was asked for. */
#ifndef SVRUN_BUILD_REQUEST_H
#define SVRUN_BUILD_REQUEST_H

#include "svrun/app.h"

struct build_request {
	const char *progress, *compression, *jobs, *push, *cache_from, *cache_to, *format;
	bool no_cache, test, timings, quiet, all, locked, json, plain_http;
	struct app_choice choice;
	struct option_list secrets, accepted;
};

/* One of the images that are asked for. */
struct build_job {
	const char *app, *matrix; /* matrix: an entry, or NULL */
	const char *label;        /* "app", "app (entry)" */
};

/* Build several images, each in a process of its own, `jobs` at a time: what they share is
 * unpacked, compressed and run by the first that comes to it. Their digests go to stdout in the
 * order of apps, their progress into one display, their notes and errors to stderr with the label
 * before them. All are tried; an error says how many failed. 1: what failed are tests. */
int build_many(const struct build_request *r, const struct build_job *list, size_t n, size_t jobs,
	struct progress *p, struct err *e) must_check;

#endif
