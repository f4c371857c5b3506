/* svrun image login, svrun image logout. */
#include "svrun/command.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "images/config.h"
#include "images/credentials.h"
#include "images/reference.h"
#include "images/registry.h"
#include "images/secret.h"
#include "svrun/options.h"
#include "svrun/prompt.h"

enum { SECRET_MAX = 64 << 10 };

struct login_request {
	char host[REFERENCE_HOST];
	const char *user;
	bool password_stdin, plain_http, insecure;
};

/* All of stdin, without the newline that echo and editors put behind it. */
static char *secret_from_stdin(struct err *e)
{
	auto_secret_buf struct buf b = BUF_INIT(SECRET_MAX);

	if (buf_reserve(&b, SECRET_MAX, e) < 0 || file_read_fd(STDIN_FILENO, "stdin", &b, e) < 0)
		return NULL;
	if (strlen(b.data) != b.len)
		return err_set(e, ERR_USAGE, "the password on stdin has a zero byte"), NULL;
	if (str_ends(b.data, "\n"))
		b.data[--b.len] = '\0';
	if (str_ends(b.data, "\r"))
		b.data[--b.len] = '\0';
	if (b.len == 0)
		return err_set(e, ERR_USAGE, "no password on stdin"), NULL;
	return mem_strdup(b.data);
}

static int check(const struct login_request *r, const char *user, const char *secret, struct err *e)
{
	struct config c;
	struct registry *registry;
	int rc;

	if (config_load(&c, e) < 0)
		return -1;
	registry = registry_open(&(struct registry_options){.config = &c,
					 .host = r->host,
					 .path = "",
					 .plain_http = r->plain_http,
					 .insecure = r->insecure},
		e);
	rc = registry ? registry_ping(registry, user, secret, e) : -1;
	registry_close(registry);
	config_fini(&c);
	if (rc == 0)
		return 0;
	/* that one should log in is no help here; which certificate is missing would be */
	if (e->kind == ERR_DENIED && (!e->hint[0] || strstr(e->hint, "svrun image login"))) {
		e->hint[0] = '\0';
		err_hint(e, "check the user's name and password");
	}
	return err_ctx(e, "login to %s", r->host);
}

static int login(const struct login_request *r, struct err *e)
{
	auto_free char *asked = r->user ? mem_strdup(r->user) : NULL;
	auto_secret char *secret = NULL;
	auto_free char *where = NULL;

	if (!asked && r->password_stdin)
		return err_set(e, ERR_USAGE, "--password-stdin needs --user");
	if (!asked) {
		asked = prompt("user", false, e);
		if (!asked)
			return err_hint(e, "use --user and --password-stdin");
	}
	secret = r->password_stdin ? secret_from_stdin(e) : prompt("password", true, e);
	if (!secret)
		return r->password_stdin ? -1 : err_hint(e, "use --password-stdin");
	if (check(r, asked, secret, e) < 0 ||
		credential_store(r->host, asked, secret, &where, e) < 0)
		return -1;
	printf("%s: logged in as %s, kept in %s\n", r->host, asked, where);
	return 0;
}

int cmd_image_login(const struct command *self, int argc, char **argv, struct err *e)
{
	struct login_request r = {0};
	const struct option_spec options[] = {
		{"user", 'u', OPTION_STRING, "USER", "the user's name; asked for when missing",
			&r.user},
		{"password-stdin", 0, OPTION_FLAG, NULL, "read the password from stdin",
			&r.password_stdin},
		{"plain-http", 0, OPTION_FLAG, NULL, "http:// instead of https://", &r.plain_http},
		{"insecure", 0, OPTION_FLAG, NULL, "do not check the registry's certificate",
			&r.insecure},
		{"username", 0, OPTION_STRING, "USER", "the same as --user", &r.user},
		{"password", 'p', OPTION_ABSENT, NULL,
			"others would see it in the list of processes and the shell's history: use "
			"--password-stdin",
			NULL},
		{0},
	};
	int n = options_parse(self, options, argc, argv, false, e);

	if (n < 0 || reference_host(argv[n], r.host, e) < 0)
		return -1;
	return login(&r, e);
}

int cmd_image_logout(const struct command *self, int argc, char **argv, struct err *e)
{
	const struct option_spec options[] = {{0}};
	auto_free char *where = NULL;
	char host[REFERENCE_HOST];
	int n = options_parse(self, options, argc, argv, false, e);

	if (n < 0 || reference_host(argv[n], host, e) < 0 || credential_remove(host, &where, e) < 0)
		return -1;
	printf("%s: forgotten in %s\n", host, where);
	return 0;
}
