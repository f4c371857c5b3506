/* One request and its answer, for answers that are small: bounded, with the fields of the head, and
 * what a failure means. Blocking; an exchange belongs to one thread.
 * Source: RFC 9110; formats.md 4; distribution-spec "Error Codes". */
#ifndef IMAGES_EXCHANGE_H
#define IMAGES_EXCHANGE_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum {
	EXCHANGE_DOCUMENT_S = 120, /* a whole small document */
	EXCHANGE_ANSWER_S = 300,   /* an upload's answer, once everything was sent */
	EXCHANGE_RETRY_S = 60,     /* the longest wait that a server may ask for */
	EXCHANGE_TRIES = 6,
	EXCHANGE_ERROR_MAX = 64 << 10, /* the body of an answer that is an error */
	EXCHANGE_HEAD_MAX = 128 << 10,
	EXCHANGE_WORDS = 512,
};

/* What is sent: n bytes of memory, or of fd from offset on. */
struct exchange_body {
	const void *data; /* NULL: fd */
	int fd;
	uint64_t offset, n;
	void (*sent)(void *ctx, uint64_t at); /* NULL, or told of the first `at` bytes */
	void *ctx;

	uint64_t at;
	int error; /* errno of reading fd */
};

struct exchange {
	const char *method;         /* GET, HEAD, POST, PUT, PATCH, DELETE */
	struct exchange_body *body; /* NULL: none */
	unsigned deadline_s;        /* 0: only the stall limits */

	CURLcode code;
	long status; /* 0: there was no answer */
	uint64_t retry_after_s;
	struct buf answer; /* the body: at most max bytes, or EXCHANGE_ERROR_MAX of an error */
	size_t max;
	bool too_long;   /* it had more */
	bool elsewhere;  /* the sender's: it was led to another address */
	struct buf head; /* "name: value" and a NUL for each field of the last answer */
	char text[CURL_ERROR_SIZE];

	CURL *h;
	uint64_t moved; /* bytes both ways when moved_ms was taken */
	double moved_ms;
};

#define auto_exchange __attribute__((cleanup(exchange_fini)))
void exchange_init(struct exchange *x, const char *method, size_t max);
void exchange_fini(struct exchange *x);
/* Perform h, whose address, headers and certificates are set. How it went is in code and status. An
 * exchange may be performed again. */
void exchange_perform(struct exchange *x, CURL *h);
/* The nth value of a field of the answer, or NULL. Borrowed until the next exchange_perform(). */
const char *exchange_field(const struct exchange *x, const char *name, size_t nth);
/* What an error document says: "errors" of registries, "details" or "error_description" of token
 * servers. ": CODE: message", with control characters made harmless, or "". Returns out. */
char *exchange_words(const struct exchange *x, char out[EXCHANGE_WORDS]);

/* ---- failures, also those of others' transfers ---- */

/* Another try may go better: 408, 425, 429, 5xx but 501 and 505. */
bool exchange_status_passes(long status);
/* May another try go better? *kind and *hint (NULL: none) for an error. */
bool exchange_code_passes(CURLcode code, enum err_kind *kind, const char **hint);
/* What libcurl's codes do not tell apart, its words may: a hint, or NULL. */
const char *exchange_text_hint(const char *text);
/* The host was not reached at all, or did not answer as what it should be. */
bool exchange_code_unreachable(CURLcode code);
/* How long to wait after the nth try (1, 2, ...): base_ms, and twice as long every time, give or
 * take a quarter so that many do not come back at once; at least retry_after_s, at most
 * EXCHANGE_RETRY_S of it. */
unsigned exchange_wait_ms(uint64_t retry_after_s, unsigned base_ms, unsigned n);
/* Seconds that h's answer asks to wait for, as a number or as a date; 0: it does not. */
uint64_t exchange_retry_after(CURL *h);
void exchange_sleep(unsigned ms);

#endif
