/* The scan that a build makes when its manifest has build.scan. */
#ifndef SVRUN_SCAN_H
#define SVRUN_SCAN_H

#include "base/json.h"
#include "images/progress.h"
#include "svrun/app.h"

/* Before anything is built: has the site data to scan by? USAGE. */
int scan_build_check(const struct app *a, struct err *e) must_check;
/* Scan an image that has just been built of the app, and say what was found, and which entries of
 * /build/scan/allow match nothing or are over. *report: what --format json adds, to json_decref().
 * DENIED: it has what the manifest does not let through. */
int scan_build(const struct app *a, struct store *s, const struct digest *manifest,
	struct progress *p, json_t **report, struct err *e) must_check;

#endif
