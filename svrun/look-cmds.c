/* svrun image mount, svrun image unmount: looking inside. */
#include "svrun/command.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "images/mount-keep.h"
#include "images/mount.h"
#include "svrun/enter.h"
#include "svrun/options.h"

/* ---- what is mounted ---- */

static json_t *names_of(const struct store_name *v, size_t n, const struct digest *d)
{
	json_t *names = json_array();

	for (size_t i = 0; i < n; i++)
		if (digest_eq(&v[i].manifest, d))
			json_array_append_new(names, json_string(v[i].name));
	return names;
}

static void print_mount(const struct store *s, const struct digest *d, const json_t *names)
{
	const char *name = json_string_value(json_array_get(names, 0));
	char hex[DIGEST_HEX + 1];

	digest_hex(d, hex);
	printf("%-28s %.12s  %s/mnt/%s\n", name ? name : "-", hex, s->path, hex);
}

static json_t *describe_mount(const struct store *s, const struct digest *d, json_t *own_names)
{
	char hex[DIGEST_HEX + 1], text[DIGEST_TEXT + 1];
	auto_free char *path = mem_printf("%s/mnt/%s", s->path, digest_hex(d, hex));

	return json_pack("{s:s, s:o, s:s}", "digest", digest_text(d, text), "names", own_names,
		"path", path);
}

static int list(struct store *s, bool json, struct err *e)
{
	auto_json json_t *rows = json_array();
	auto_free struct digest *v = NULL;
	struct store_name *names;
	size_t n, nnames;

	if (mount_kept(s, &v, &n, e) < 0 || store_names(s, &names, &nnames, e) < 0)
		return -1;
	if (!json)
		printf("%-28s %-12s  %s\n", "NAME", "DIGEST", "PATH");
	for (size_t i = 0; i < n; i++) {
		json_t *mine = names_of(names, nnames, &v[i]);

		if (!json)
			print_mount(s, &v[i], mine);
		json_array_append_new(rows, describe_mount(s, &v[i], mine));
	}
	store_names_free(names, nnames);
	if (json) {
		auto_buf struct buf b = BUF_INIT(64 << 20);

		json_text(rows, false, &b);
		fputs(b.data, stdout);
	}
	return 0;
}

/* ---- mount ---- */

static int mount_one(struct store *s, const char *ref, struct err *e)
{
	struct mount m;
	struct digest d;
	int rc;

	if (store_resolve(s, ref, &d, e) < 0)
		return -1;
	if (mount_open(&m, s, &d, e) < 0)
		return err_ctx(e, "%s", ref);
	rc = mount_keep(s, &d, e);
	if (rc == 0)
		puts(m.path);
	mount_close(&m, s); /* does not unmount what is kept */
	return rc;
}

int cmd_image_mount(const struct command *self, int argc, char **argv, struct err *e)
{
	const char *format = NULL;
	const struct option_spec options[] = {
		{"format", 0, OPTION_STRING, "FORMAT", "of the list: table or json", &format},
		{0},
	};
	struct store s;
	bool json;
	int rc = 0, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	json = format && str_eq(format, "json");
	if (format && !json && !str_eq(format, "table"))
		return err_set(e, ERR_USAGE, "--format: expected table or json, got '%s'", format);
	if (store_enter(&s, e) < 0)
		return -1;
	if (n == argc)
		rc = list(&s, json, e);
	for (int i = n; i < argc && rc == 0; i++)
		rc = mount_one(&s, argv[i], e);
	store_close(&s);
	return rc;
}

/* ---- unmount ---- */

static int unmount_all(struct store *s, struct err *e)
{
	auto_free struct digest *v = NULL;
	size_t n;

	if (mount_kept(s, &v, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (mount_unkeep(s, &v[i], e) < 0)
			return -1;
	return 0;
}

/* The image may have lost its name meanwhile, or be asked for by the path that mount printed. */
static int find_kept(struct store *s, const char *ref, struct digest *d, struct err *e)
{
	const char *slash = strrchr(ref, '/');

	if (slash && digest_from_hex(d, slash + 1) == 0)
		return 0;
	return store_resolve(s, ref, d, e);
}

static int unmount(struct store *s, char **refs, int n, struct err *e)
{
	for (int i = 0; i < n; i++) {
		struct digest d;

		if (find_kept(s, refs[i], &d, e) < 0)
			return -1;
		if (mount_unkeep(s, &d, e) < 0)
			return err_ctx(e, "%s", refs[i]);
	}
	return 0;
}

int cmd_image_unmount(const struct command *self, int argc, char **argv, struct err *e)
{
	bool all = false;
	const struct option_spec options[] = {
		{"all", 'a', OPTION_FLAG, NULL, "all that mount mounted", &all},
		{0},
	};
	struct store s;
	int rc, n = options_parse(self, options, argc, argv, false, e);

	if (n < 0)
		return -1;
	if ((n == argc) != all)
		return err_set(e, ERR_USAGE, "name images, or --all");
	if (store_enter(&s, e) < 0)
		return -1;
	rc = all ? unmount_all(&s, e) : unmount(&s, argv + n, argc - n, e);
	if (rc == 0)
		rc = mount_sweep(&s, e);
	store_close(&s);
	return rc;
}
