#include "builder/mirror-host.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/proc.h"
#include "base/str.h"

enum { NPMRC_MAX = 1 << 20, ANSWER_MAX = 64 * 1024 };

/* From the root: what npm says must not depend on the folder that somebody stands in. */
static void ask_program(struct mirrors *m)
{
	static const char *const argv[] = {"npm", "config", "get", "registry", NULL};
	auto_buf struct buf out = BUF_INIT(ANSWER_MAX), errout = BUF_INIT(ANSWER_MAX);
	const struct proc p = {.argv = argv, .dir = "/", .out = &out, .errout = &errout};

	if (proc_run(&p, NULL) != 0 || !out.len)
		return;
	out.data[strcspn(out.data, " \t\r\n")] = '\0';
	mirror_found(m, "npm", out.data);
}

/* The last "registry = ADDRESS" of an npmrc file (an ini file without sections that matter). */
static void ask_file(struct mirrors *m, const char *path)
{
	auto_buf struct buf text = BUF_INIT(NPMRC_MAX);
	auto_free char *value = NULL;
	char *line, *next;

	if (file_read(AT_FDCWD, path, &text, NULL) < 0 || !text.len)
		return;
	for (line = text.data; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		line += strspn(line, " \t");
		if (!str_starts(line, "registry"))
			continue;
		line += strlen("registry");
		line += strspn(line, " \t");
		if (*line++ != '=')
			continue;
		line += strspn(line, " \t\"'");
		line[strcspn(line, " \t\r\"'")] = '\0';
		free(value);
		value = mem_strdup(line);
	}
	if (value)
		mirror_found(m, "npm", value);
}

void mirror_ask_npm(struct mirrors *m, const char *name)
{
	static const char *const variables[] = {"npm_config_registry", "NPM_CONFIG_REGISTRY"};
	const char *home = getenv("HOME");
	auto_free char *own = mem_printf("%s%s/.npmrc", m->root, home ? home : "");
	auto_free char *host = mem_printf("%s/etc/npmrc", m->root);

	(void)name;
	ask_program(m);
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (getenv(variables[i]))
			mirror_found(m, "npm", getenv(variables[i]));
	if (home)
		ask_file(m, own);
	ask_file(m, host);
}
