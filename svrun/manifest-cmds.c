/* svrun image resolve, svrun image new. */
#include <fcntl.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/resolve.h"
#include "builder/template.h"
#include "svrun/app.h"
#include "svrun/command.h"
#include "svrun/output.h"

enum { TEXT_MAX = 1 << 30 };

static int print_resolved(const char *name, const struct app_choice *c, bool json, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	struct app a;

	if (app_open(&a, name, c, e) < 0)
		return -1;
	resolved_print(a.m.source, json, &text);
	app_close(&a);
	fwrite(text.data, 1, text.len, stdout);
	return 0;
}

int cmd_image_resolve(const struct command *self, int argc, char **argv, struct err *e)
{
	struct app_choice c = {0};
	const char *format = NULL;
	bool json = false;
	const struct option_spec options[] = {
		APP_CHOICE_OPTIONS(c),
		{"format", 0, OPTION_STRING, "FORMAT", "table or json", &format},
		{0},
	};
	int n = options_parse(self, options, argc, argv, false, e), rc = -1;

	if (n >= 0 && output_format(format, &json, e) == 0)
		rc = print_resolved(argv[n], &c, json, e);
	option_list_fini(&c.vars);
	return rc;
}

/* Beside the other manifests, where a repository has a folder for them. */
int cmd_image_new(const struct command *self, int argc, char **argv, struct err *e)
{
	const char *template = NULL;
	auto_free char *dir = NULL;
	struct stat st;
	bool catalogue;
	const struct option_spec options[] = {
		{"template", 0, OPTION_STRING, "KIND", "apt (the default), node, python or gpu",
			&template},
		{0},
	};
	int n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	catalogue = sys_fstatat(AT_FDCWD, "manifests", &st, 0) == 0 && S_ISDIR(st.st_mode);
	dir = mem_printf("%s%s", catalogue ? "manifests/" : "", argv[n]);
	if (template_write(dir, argv[n], template, e) < 0)
		return -1;
	printf("%s/manifest.json\n", dir);
	return 0;
}
