#include "svrun/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

enum { COMMANDS_MAX = 64 };

char *command_usage(const struct command *c, bool options)
{
	return mem_printf(
		"%s%s%s%s", c->full, options ? " [options]" : "", c->words[0] ? " " : "", c->words);
}

static void print_commands(FILE *out, const struct command *table, const char *prefix)
{
	fprintf(out, "usage: %s COMMAND [options] ...\n\ncommands:\n", prefix);
	for (; table->name; table++)
		fprintf(out, "  %-10s %s\n", table->name, table->summary);
	fprintf(out, "\n%s COMMAND --help tells more about one.\n", prefix);
}

static const struct command *find(const struct command *table, const char *name)
{
	for (; table->name; table++)
		if (str_eq(table->name, name))
			return table;
	return NULL;
}

/* What other engines call it, where the spelling does not lead there. */
static const struct {
	const char *word, *command;
} elsewhere[] = {
	{"delete", "svrun image rm"},
	{"images", "svrun image ls"},
	{"list", "svrun image ls"},
	{"remove", "svrun image rm"},
	{"rmi", "svrun image rm"},
	{"umount", "svrun image unmount"},
};

static int unknown(const struct command *table, const char *prefix, const char *name, struct err *e)
{
	const char *names[COMMANDS_MAX + 1] = {NULL}, *near;
	size_t n = 0;

	err_set(e, ERR_USAGE, "unknown command '%s %s'", prefix, name);
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		if (str_eq(name, elsewhere[i].word))
			return err_hint(e, "did you mean '%s'?", elsewhere[i].command);
	for (; table->name && n < COMMANDS_MAX; table++) {
		if (table->sub && find(table->sub, name))
			return err_hint(e, "did you mean '%s %s'?", table->full, name);
		names[n++] = table->name;
	}
	near = str_nearest(name, names);
	if (near)
		err_hint(e, "did you mean '%s %s'?", prefix, near);
	return err_hint(e, "see %s --help", prefix);
}

/* Beside us (0), or where it is installed (1). */
static int place(const char *program, int which, char path[PATH_MAX], struct err *e)
{
	char self[PATH_MAX / 2];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n < 0)
		return err_sys(e, "readlink /proc/self/exe");
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	snprintf(path, PATH_MAX, "%s/%s%s", self, which == 0 ? "" : "../libexec/svrun/", program);
	return 0;
}

static int not_found(const char *program, const char *path, struct err *e)
{
	err_sys(e, "start %s", path);
	return err_hint(e, "install %s beside svrun, or in ../libexec/svrun", program);
}

int command_exec(const char *program, char *const *argv, struct err *e)
{
	char path[PATH_MAX];

	for (int i = 0; i < 2; i++) {
		if (place(program, i, path, e) < 0)
			return -1;
		execv(path, argv);
		if (errno != ENOENT)
			break;
	}
	return not_found(program, path, e);
}

char *command_find(const char *program, struct err *e)
{
	char path[PATH_MAX];

	for (int i = 0; i < 2; i++) {
		if (place(program, i, path, e) < 0)
			return NULL;
		if (access(path, X_OK) == 0)
			return mem_strdup(path);
	}
	not_found(program, path, e);
	return NULL;
}

static int dispatch(const struct command *table, const char *prefix, int argc, char **argv,
	char **whole_argv, struct err *e)
{
	const struct command *c;

	if (argc < 2) {
		print_commands(stderr, table, prefix);
		return err_set(e, ERR_USAGE, "no command given");
	}
	if (str_eq(argv[1], "--help") || str_eq(argv[1], "-h") || str_eq(argv[1], "help")) {
		print_commands(stdout, table, prefix);
		return 0;
	}
	c = find(table, str_eq(argv[1], "--version") ? "version" : argv[1]);
	if (!c)
		return unknown(table, prefix, argv[1], e);
	if (c->sub)
		return dispatch(c->sub, c->full, argc - 1, argv + 1, whole_argv, e);
	if (c->program)
		return command_exec(c->program, whole_argv, e);
	return c->run(c, argc - 1, argv + 1, e);
}

/* "svrun help image ls" is "svrun image ls --help". */
static char **turn_help(int argc, char **argv)
{
	static char help[] = "--help";
	char **turned = mem_array((size_t)argc + 1, sizeof(char *));

	turned[0] = argv[0];
	for (int i = 2; i < argc; i++)
		turned[i - 1] = argv[i];
	turned[argc - 1] = help;
	return turned;
}

int command_main(const struct command *table, int argc, char **argv)
{
	struct err e = {0};
	auto_free char **turned =
		argc > 2 && str_eq(argv[1], "help") ? turn_help(argc, argv) : NULL;
	char **words = turned ? turned : argv;
	int rc = dispatch(table, "svrun", argc, words, words, &e);

	if (fflush(stdout) != 0 && rc == 0)
		rc = err_sys(&e, "write stdout");
	else if (ferror(stdout) &&
		 rc == 0) /* an earlier part was lost, and only the rest flushed */
		rc = err_set(&e, ERR_SYSTEM, "write stdout: not all could be written");
	if (rc >= 0)
		return rc;
	if (e.kind == ERR_NONE) /* the help was asked for */
		return 0;
	err_print(&e, "svrun");
	/* `svrun run` passes on the container's own status: ours is docker's. */
	return e.kind == ERR_USAGE ? 2 : 125;
}
