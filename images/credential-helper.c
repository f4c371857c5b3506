#include "images/credential-helper.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "images/secret.h"

enum { ANSWER_MAX = 1 << 20, NAME_LEN = 128, HELPER_SECONDS = 30, WORDS = 300 };

static int check_name(const char *name, struct err *e)
{
	size_t n = strlen(name);

	/* It becomes part of a program's name: a slash would be any program. */
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
			n = 0;
	if (n > 0 && n <= NAME_LEN)
		return 0;
	return err_set(e, ERR_USAGE, "'%.100s' is no name of a credential helper", name);
}

/* The first line of what it said, without what could drive a terminal. */
static void first_line(const struct buf *b, char out[WORDS])
{
	size_t n = 0;

	for (const char *p = b->data; p && *p && *p != '\n' && n + 1 < WORDS; p++)
		out[n++] = *p < ' ' || *p > '~' ? '?' : *p;
	out[n] = '\0';
}

static bool says_not_found(const struct buf *b)
{
	return b->data && strcasestr(b->data, "credentials not found");
}

/* That a program is missing or forbidden says nothing of the credentials. */
static int cannot_run(const char *program, struct err *e)
{
	if (!e || (e->kind != ERR_NOT_FOUND && e->kind != ERR_DENIED))
		return -1;
	e->kind = ERR_SYSTEM;
	return err_hint(e, "install %s, or take it out of credHelpers and credsStore", program);
}

/* 1: it did, 0: it has no such credentials, -1. out: what it said, at most out->max. */
static int ask(const char *name, const char *verb, const char *in, size_t n, struct buf *out,
	struct err *e)
{
	auto_secret_buf struct buf errs = BUF_INIT(ANSWER_MAX);
	auto_free char *program = mem_printf("docker-credential-%s", name);
	const char *const argv[] = {program, verb, NULL};
	char words[WORDS];
	int rc;

	if (check_name(name, e) < 0)
		return -1;
	/* All of it at once: growing would leave copies of the secret behind. */
	if (buf_reserve(out, ANSWER_MAX, e) < 0)
		return -1;
	rc = proc_run(&(struct proc){.argv = argv,
			      .in = in,
			      .in_size = n,
			      .out = out,
			      .errout = &errs,
			      .seconds = HELPER_SECONDS},
		e);
	if (rc < 0)
		return cannot_run(program, e);
	if (rc == 0)
		return 1;
	if (says_not_found(out) || says_not_found(&errs))
		return 0;
	first_line(out->len ? out : &errs, words);
	return err_set(e, ERR_SYSTEM, "%s %s ended with status %d: %s", program, verb, rc, words);
}

static int take_answer(json_t *o, struct credential *c, struct err *e)
{
	const char *user = json_str(o, "Username", e), *secret;

	secret = user ? json_str(o, "Secret", e) : NULL;
	if (!secret)
		return -1;
	if (!*user && !*secret)
		return 0;
	if (str_eq(user, "<token>")) {
		c->identity = mem_strdup(secret);
		return 1;
	}
	c->user = mem_strdup(user);
	c->secret = mem_strdup(secret);
	return 1;
}

int credential_helper_get(const char *name, const char *host, struct credential *c, struct err *e)
{
	auto_secret_buf struct buf out = BUF_INIT(ANSWER_MAX);
	auto_secret_json json_t *o = NULL;
	int rc = ask(name, "get", host, strlen(host), &out, e);

	*c = (struct credential){0};
	if (rc <= 0)
		return rc;
	o = json_parse(out.data, out.len, NULL); /* its error would quote the secret */
	rc = o ? take_answer(o, c, e) : err_set(e, ERR_CORRUPT, "expected JSON");
	if (rc < 0)
		return err_ctx(e, "answer of docker-credential-%s for %s", name, host);
	if (rc > 0)
		c->origin = mem_printf("docker-credential-%s", name);
	return rc;
}

int credential_helper_store(
	const char *name, const char *host, const char *user, const char *secret, struct err *e)
{
	auto_secret_buf struct buf in = BUF_INIT(ANSWER_MAX), out = BUF_INIT(ANSWER_MAX);
	auto_secret_json json_t *o =
		json_pack("{s:s, s:s, s:s}", "ServerURL", host, "Username", user, "Secret", secret);
	int rc;

	if (!o)
		return err_set(e, ERR_USAGE, "user and password must be UTF-8");
	if (buf_reserve(&in, ANSWER_MAX - 1, e) < 0)
		return -1;
	json_text(o, true, &in);
	rc = ask(name, "store", in.data, in.len, &out, e);
	return rc == 0  ? err_set(e, ERR_SYSTEM, "docker-credential-%s store found nothing", name)
	       : rc < 0 ? -1
			: 0;
}

int credential_helper_erase(const char *name, const char *host, struct err *e)
{
	auto_secret_buf struct buf out = BUF_INIT(ANSWER_MAX);

	return ask(name, "erase", host, strlen(host), &out, e);
}
