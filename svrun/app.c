#include "svrun/app.h"

#include <string.h>

#include "base/str.h"
#include "images/mount.h"

static int read_vars(struct app *a, const struct app_choice *c, struct err *e)
{
	a->vars.v = mem_array(c->vars.n, sizeof(*a->vars.v));
	for (size_t i = 0; i < c->vars.n; i++) {
		const char *text = c->vars.v[i], *eq = strchr(text, '=');

		if (!eq || eq == text)
			return err_set(e, ERR_USAGE, "--var: expected NAME=VALUE, got '%s'", text);
		a->vars.v[a->vars.n++] = (struct pair){
			.name = mem_printf("%.*s", (int)(eq - text), text), .value = eq + 1};
	}
	return 0;
}

static void vars_fini(struct app *a)
{
	for (size_t i = 0; i < a->vars.n; i++) {
		char *name = (char *)(uintptr_t)a->vars.v[i].name;

		free(name);
	}
	free(a->vars.v);
}

static int load(struct app *a, const char *name, const struct app_choice *c, struct err *e)
{
	struct complaints faults = {0};
	struct manifest_choice choice = {
		.mode = c->mode, .matrix = c->matrix, .platform = c->platform, .vars = a->vars};
	int rc = manifest_load(&a->m, name, &choice, &faults, e);

	if (rc < 0 && faults.count)
		fputs(faults.text.data, stderr);
	complaints_fini(&faults);
	return rc;
}

int app_open(struct app *a, const char *name, const struct app_choice *c, struct err *e)
{
	*a = (struct app){0};
	if (config_load(&a->config, e) < 0)
		return -1;
	if (read_vars(a, c, e) < 0 || load(a, name, c, e) < 0) {
		vars_fini(a);
		config_fini(&a->config);
		return -1;
	}
	mirrors_init(&a->mirrors, &a->config);
	return 0;
}

size_t app_entries(const char *name, const struct app_choice *c, struct arena *a, const char ***ids)
{
	struct manifest_choice choice = {.mode = c->mode, .platform = c->platform};
	struct complaints faults = {0};
	struct err unsaid = {0};
	struct app x = {.vars = {0}};
	size_t n = 0;

	*ids = NULL;
	if (read_vars(&x, c, &unsaid) == 0) {
		choice.vars = x.vars;
		if (manifest_load(&x.m, name, &choice, &faults, &unsaid) == 0) {
			*ids = arena_alloc(a, (x.m.nentries + 1) * sizeof(**ids));
			for (; n < x.m.nentries; n++)
				(*ids)[n] = arena_strdup(a, x.m.entries[n].id);
			manifest_fini(&x.m);
		}
	}
	complaints_fini(&faults);
	vars_fini(&x);
	return n;
}

void app_close(struct app *a)
{
	mirrors_fini(&a->mirrors);
	manifest_fini(&a->m);
	vars_fini(a);
	config_fini(&a->config);
}

int app_store(struct store *s, const struct app *a, struct err *e)
{
	if (store_open(s, a->config.root, true, e) < 0)
		return -1;
	if (mount_sweep(s, e) == 0)
		return 0;
	store_close(s);
	return -1;
}
