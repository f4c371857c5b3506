#include "svrun/run-pull.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/config.h"
#include "images/reference.h"
#include "images/store.h"
#include "svrun/command.h"

enum { MEANINGS = 16 }; /* of a short name: an alias, or one of each place to search */

static const char done[] = "SVRUN_PULLED"; /* survives the second start, as nothing else does */

static bool always(const struct run_options *o)
{
	return o->pull && str_eq(o->pull, "always");
}

int run_find(const struct run_options *o, const struct config *c, struct store *s, struct digest *d,
	struct err *e)
{
	struct reference v[MEANINGS];
	char text[REFERENCE_TEXT];
	size_t n = 0;

	if (o->digest) {
		if (store_resolve(s, o->digest, d, e) == 0)
			return 0;
		return err_hint(e,
			"the image that it was started from is no longer here; its files "
			"are in the folder of the instance");
	}
	/* what was just pulled comes before a name of the store that happens to be the same */
	if (!always(o) && store_resolve(s, o->image, d, NULL) == 0)
		return 0;
	if (strncmp(o->image, "sha256:", 7) != 0 &&
		reference_expand(c, o->image, v, MEANINGS, &n, NULL) < 0)
		n = 0;
	for (size_t i = 0; i < n; i++)
		if (store_resolve(s, reference_text(&v[i], text), d, NULL) == 0)
			return 0;
	return store_resolve(s, o->image, d, e);
}

static bool missing(const struct run_options *o, const struct config *c)
{
	struct store s;
	struct digest d;
	int rc;

	if (store_open(&s, c->root, false, NULL) < 0)
		return true;
	rc = run_find(o, c, &s, &d, NULL);
	store_close(&s);
	return rc < 0;
}

/* Does the name say where the image may be had? */
static bool from_registry(const struct config *c, const char *image)
{
	struct reference r;
	size_t n;

	if (strncmp(image, "sha256:", 7) == 0)
		return false;
	return reference_expand(c, image, &r, 1, &n, NULL) == 0;
}

/* What it prints is not the container's output. */
int run_helper(const char *const *words, struct err *e)
{
	char *argv[64] = {NULL};
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct err fault = {0};

		for (size_t i = 0; words[i] && i + 1 < sizeof(argv) / sizeof(argv[0]); i++)
			argv[i] = mem_strdup(words[i]);
		if (sys_dup3(STDERR_FILENO, STDOUT_FILENO, 0) >= 0)
			command_exec("svrun-image", argv, &fault);
		err_print(&fault, "svrun");
		_exit(125);
	}
	if (pid < 0)
		return err_sys(e, "fork");
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, "wait for svrun-image");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int pull(const char *image, struct err *e)
{
	const char *const words[] = {"svrun", "image", "pull", image, NULL};
	int status = run_helper(words, e);

	if (status <= 0)
		return status;
	return err_set(e, ERR_NOT_FOUND, "the image could not be pulled");
}

int run_pull(const struct run_options *o, struct err *e)
{
	bool never = o->pull && str_eq(o->pull, "never");
	struct config c;
	bool remote;
	int rc = 0;

	if (never || getenv(done)) {
		unsetenv(done);
		return 0;
	}
	if (config_load(&c, e) < 0)
		return -1;
	/* a local name says nothing of where from: the store is not looked at twice for it */
	remote = from_registry(&c, o->image);
	if (remote && (always(o) || missing(o, &c)))
		rc = pull(o->image, e);
	else if (always(o) && !remote)
		rc = err_set(
			e, ERR_USAGE, "--pull always: '%s' does not say which registry", o->image);
	config_fini(&c);
	if (rc == 0)
		setenv(done, "1", 1);
	return rc;
}
