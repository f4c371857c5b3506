/* A manifest as commands name it: APP, with the options that choose one of its images. */
#ifndef SVRUN_APP_H
#define SVRUN_APP_H

#include "builder/manifest.h"
#include "builder/mirror.h"
#include "images/store.h"
#include "svrun/options.h"

/* --mode, --matrix, --platform, --var NAME=VALUE. */
struct app_choice {
	const char *mode, *matrix, *platform;
	struct option_list vars;
};

/* Rows for a table of options; `c` is a struct app_choice. */
#define APP_CHOICE_OPTIONS(c)                                                                      \
	{"mode", 0, OPTION_STRING, "MODE", "one of the manifest's modes", &(c).mode},              \
		{"matrix", 0, OPTION_STRING, "ID", "one entry of the manifest's matrix",           \
			&(c).matrix},                                                              \
		{"platform", 0, OPTION_STRING, "OS/ARCH", "instead of this machine's",             \
			&(c).platform},                                                            \
	{                                                                                          \
		"var", 0, OPTION_LIST, "NAME=VALUE", "a variable's value", &(c).vars               \
	}

/* The site's configuration and the manifest, loaded; complaints about it go to stderr. */
struct app {
	struct config config;
	struct mirrors mirrors;
	struct manifest m;
	struct pairs vars;
};
int app_open(struct app *a, const char *name, const struct app_choice *c, struct err *e) must_check;
void app_close(struct app *a);

/* The site's store, made when it is missing; store_close() is due. What dead processes left is
 * taken back. */
int app_store(struct store *s, const struct app *a, struct err *e) must_check;

/* The ids of the matrix of a manifest, in the arena; 0 when it has none, or cannot be read: who
 * opens it says why. */
size_t app_entries(
	const char *name, const struct app_choice *c, struct arena *a, const char ***ids);

#endif
