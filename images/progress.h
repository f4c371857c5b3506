/* Progress of long work: passed down, NULL is silent. One stage at a time: rows that move on a
 * terminal, plain lines elsewhere, JSON lines on request. All functions accept NULL and are
 * thread-safe.
 *
 * A JSON line, about once a second for what has moved, and with "done": true at the end:
 *   {"stage":"pull","line":"LABEL","bytes":1,"seconds":0.1,"total":2,"rate":3,"done":false}
 * without "line" for the stage as a whole; rate is bytes a second, total 0 when it is unknown; a
 * line that ended may have a "note". */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct progress;

enum progress_mode {
	PROGRESS_AUTO,
	PROGRESS_PLAIN,
	PROGRESS_JSON,
	PROGRESS_TIMINGS, /* only "timing STAGE N ms" lines, for scripts */
	PROGRESS_NONE,
};

/* Writes to stderr. AUTO: a bar when stderr is a terminal, else plain lines. NONE returns NULL. */
struct progress *progress_new(enum progress_mode mode);
void progress_free(struct progress *p);

/* "auto", "plain", "json", "timings", "none"; -1 otherwise. */
int progress_mode_parse(const char *s, enum progress_mode *mode) must_check;

/* The stages to come: a row of its own on a terminal, which shows how far the work is ("fetch >
 * run:a, run:b > publish": a and b may be side by side), and one JSON line {"steps": [{"step":
 * "fetch", "after": []}, {"step": "run:a", "after": ["fetch"]}, ...]}. A stage that never begins
 * has been skipped. Copied. */
struct progress_step {
	const char *name;
	const size_t *after; /* numbers of those before it that it waits for; NULL: the last */
	size_t nafter;
};
void progress_steps(struct progress *p, const struct progress_step *v, size_t n);

/* Start a stage ("fetch", "unpack", "compose"): total in bytes, 0 when unknown. Ends the one
 * before. */
void progress_begin(struct progress *p, const char *stage, uint64_t total);
void progress_add(struct progress *p, uint64_t bytes);
/* End the stage and print its line: "fetch    312.4 MiB  2.1 s  148 MiB/s". */
void progress_end(struct progress *p);
/* Several things at once within a stage (the layers of a pull): a line each, with bytes, rate and
 * time left, that moves on a terminal; one line when it is done elsewhere; JSON lines about once a
 * second with PROGRESS_JSON. What is added to a line is added to its stage; a stage that began with
 * total 0 has that of its lines. Lines live until progress_end(). NULL in, NULL out. */
struct progress_line;
struct progress_line *progress_line(struct progress *p, const char *label, uint64_t total);
void progress_line_add(struct progress_line *l, uint64_t bytes);
/* A line whose work has stages of its own (a build among several): what it does now, and how far it
 * is. */
void progress_line_stage(struct progress_line *l, const char *stage, uint64_t total, uint64_t done);
/* It is done, whatever was added (what is missing is taken off the stage's total). note: what is
 * said instead of bytes and time ("already here"), or NULL. */
void progress_line_end(struct progress_line *l, const char *note);

/* A line of its own; {"note": "TEXT"} as JSON. */
void progress_note(struct progress *p, const char *fmt, ...) printf_like(2, 3);

#endif
