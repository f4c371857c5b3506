/* svrun image log */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/build.h"
#include "svrun/app.h"
#include "svrun/command.h"

enum { STEPS_MAX = 4096 };

static const char end_of_name[] = ".log";

/* "npm:@scope/name" is the file npm:@scope+name.log (step-report.c). */
static void swap(char *text, char from, char to)
{
	for (; *text; text++)
		if (*text == from)
			*text = to;
}

/* "compile" is the manifest's step run:compile. */
static int open_log(const struct store *s, const char *folder, const char *step, struct err *e)
{
	static const char *const prefixes[] = {"", "run:"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		auto_free char *file = mem_printf("%s%s%s", prefixes[i], step, end_of_name);
		swap(file, '/', '+');
		auto_free char *path = mem_printf("%s/%s", folder, file);
		int fd = sys_open_beneath(s->fd, path, O_RDONLY, 0);

		if (fd >= 0)
			return fd;
		if (errno != ENOENT)
			return err_sys(e, "open %s/%s", s->path, path);
	}
	err_set(e, ERR_NOT_FOUND, "%s/%s has no log of a step '%s'", s->path, folder, step);
	return err_hint(e, "those that have one: svrun image log APP");
}

static int copy_out(int fd, struct err *e)
{
	char piece[65536];
	ssize_t n;

	while ((n = sys_read(fd, piece, sizeof(piece))) > 0)
		if (sys_write_all(STDOUT_FILENO, piece, (size_t)n) < 0)
			return err_sys(e, "write");
	return n < 0 ? err_sys(e, "read the log") : 0;
}

static int by_text(const void *a, const void *b)
{
	char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

static void print_steps(DIR *dir)
{
	auto_free char **v = mem_array(STEPS_MAX, sizeof(*v));
	struct dirent *x;
	size_t n = 0;

	while ((x = readdir(dir)) && n < STEPS_MAX)
		if (str_ends(x->d_name, end_of_name))
			v[n++] = mem_printf(
				"%.*s", (int)(strlen(x->d_name) - strlen(end_of_name)), x->d_name);
	qsort(v, n, sizeof(*v), by_text);
	for (size_t i = 0; i < n; i++) {
		swap(v[i], '+', '/');
		puts(v[i]);
		free(v[i]);
	}
}

/* Nothing when none ever ran. */
static int list_logs(const struct store *s, const char *folder, struct err *e)
{
	int fd = sys_open_beneath(s->fd, folder, O_RDONLY | O_DIRECTORY, 0);
	DIR *dir;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open %s/%s", s->path, folder);
	dir = fdopendir(fd);
	if (!dir) {
		err_sys(e, "list %s/%s", s->path, folder);
		sys_close_ref(&fd);
		return -1;
	}
	print_steps(dir);
	closedir(dir);
	return 0;
}

static int show(const struct app *a, const char *step, struct err *e)
{
	auto_free char *folder = build_log_folder(&a->m);
	struct store s;
	int rc = -1;

	if (store_open(&s, a->config.root, false, e) < 0)
		return -1;
	auto_fd int fd = step ? open_log(&s, folder, step, e) : -1;

	if (!step)
		rc = list_logs(&s, folder, e);
	else if (fd >= 0)
		rc = copy_out(fd, e);
	store_close(&s);
	return rc;
}

int cmd_image_log(const struct command *self, int argc, char **argv, struct err *e)
{
	struct app_choice choice = {0};
	const struct option_spec options[] = {APP_CHOICE_OPTIONS(choice), {0}};
	struct app a;
	int rc = -1, n = options_parse(self, options, argc, argv, false, e);

	if (n >= 0 && app_open(&a, argv[n], &choice, e) == 0) {
		rc = show(&a, n + 1 < argc ? argv[n + 1] : NULL, e);
		app_close(&a);
	}
	option_list_fini(&choice.vars);
	return rc;
}
