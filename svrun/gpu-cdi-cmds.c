/* svrun gpu cdi: specs for other engines are made; those of the host are listed and checked. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "base/sys.h"
#include "gpu/cdi-make.h"
#include "gpu/cdi-spec.h"
#include "gpu/yaml.h"
#include "svrun/command.h"
#include "svrun/options.h"
#include "svrun/output.h"

enum { SPEC_TEXT_MAX = 64 << 20 };

static int cmd_generate(const struct command *self, int argc, char **argv, struct err *e);
static int cmd_list(const struct command *self, int argc, char **argv, struct err *e);
static int cmd_validate(const struct command *self, int argc, char **argv, struct err *e);

const struct command gpu_cdi_commands[] = {
	{"generate", "", "write a CDI spec of the host's GPUs", 0, 0, cmd_generate,
		.full = "svrun gpu cdi generate"},
	{"list", "", "list the devices of the host's CDI specs", 0, 0, cmd_list,
		.full = "svrun gpu cdi list"},
	{"validate", "[FILE...]", "check CDI specs: these, or the host's", 0, -1, cmd_validate,
		.full = "svrun gpu cdi validate"},
	{0},
};

/* ---- generate ---- */

struct generating {
	const char *output, *format, *vendor, *class, *maker, *caps;
	bool yaml;
	struct cdi_making m;
	struct gpu_host host;
	struct gpu_inventory inventory;
	struct driver_files files;
};

static int choose(struct generating *g, struct err *e)
{
	const char *format = g->format;

	if (!format)
		format = g->output && str_ends(g->output, ".json") ? "json" : "yaml";
	if (!str_eq(format, "json") && !str_eq(format, "yaml"))
		return err_set(
			e, ERR_USAGE, "--format: expected json or yaml, got '%.40s'", format);
	g->yaml = str_eq(format, "yaml");
	if (g->output && !str_ends(g->output, g->yaml ? ".yaml" : ".json"))
		return err_set(e, ERR_USAGE,
			"--output %s: engines read a spec as %s only by the ending .%s", g->output,
			format, format);
	if (g->maker && !str_eq(g->maker, "nvidia") && !str_eq(g->maker, "amd"))
		return err_set(
			e, ERR_USAGE, "--maker: expected nvidia or amd, got '%.40s'", g->maker);
	return gpu_capabilities_parse(g->caps ? g->caps : "compute,utility", &g->m.caps, e);
}

/* NVIDIA's, unless there are AMD's only. */
static void choose_maker(struct generating *g)
{
	const struct gpu_inventory *i = &g->inventory;
	bool amd = i->n > 0;

	for (size_t k = 0; k < i->n; k++)
		amd = amd && i->v[k].maker == GPU_MAKER_AMD;
	amd = g->maker ? str_eq(g->maker, "amd") : amd;
	g->m.maker = amd ? GPU_MAKER_AMD : GPU_MAKER_NVIDIA;
	g->m.vendor = g->vendor ? g->vendor : amd ? "amd.com" : "nvidia.com";
	g->m.class = g->class ? g->class : "gpu";
}

static int write_spec(const struct generating *g, const struct buf *b, struct err *e)
{
	const char *slash = g->output ? strrchr(g->output, '/') : NULL;

	if (slash && slash > g->output) { /* few hosts have /etc/cdi */
		auto_free char *dir = mem_printf("%.*s", (int)(slash - g->output), g->output);

		if (sys_mkdir_p(AT_FDCWD, dir, 0755) < 0)
			return err_sys(e, "create %s", dir);
	}
	if (g->output)
		return file_write(AT_FDCWD, g->output, b->data, b->len, 0644, e);
	fwrite(b->data, 1, b->len, stdout);
	return 0;
}

static int generate(struct generating *g, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(SPEC_TEXT_MAX);
	const struct driver_files *files = NULL;
	auto_json json_t *spec = NULL;

	choose_maker(g);
	if (g->m.maker == GPU_MAKER_NVIDIA && g->inventory.driver && !g->inventory.dxg) {
		if (driver_files_find(&g->files, &g->host, g->inventory.driver, g->m.caps, e) < 0)
			return -1;
		files = &g->files;
	}
	spec = cdi_make(&g->m, &g->host, &g->inventory, files, e);
	if (!spec || cdi_validate(spec, "the spec that was made", e) < 0)
		return -1;
	if (g->yaml)
		yaml_text(spec, &b);
	else
		json_text(spec, false, &b);
	for (size_t i = 0; i < g->m.absent.n; i++)
		warn("%s is not there yet, and is left out", g->m.absent.v[i]);
	return write_spec(g, &b, e);
}

static int cmd_generate(const struct command *self, int argc, char **argv, struct err *e)
{
	struct generating g = {.yaml = true};
	const struct option_spec options[] = {
		{"output", 'o', OPTION_STRING, "FILE", "write there, whole or not at all (stdout)",
			&g.output},
		{"format", 0, OPTION_STRING, "FORMAT", "json or yaml (as FILE ends; yaml)",
			&g.format},
		{"vendor", 0, OPTION_STRING, "NAME", "vendor of the devices (nvidia.com, amd.com)",
			&g.vendor},
		{"class", 0, OPTION_STRING, "NAME", "class of the devices (gpu)", &g.class},
		{"maker", 0, OPTION_STRING, "MAKER", "nvidia or amd (whose GPUs the host has)",
			&g.maker},
		{"capabilities", 0, OPTION_STRING, "LIST",
			"what the driver's files are for: compute, utility, video, graphics ... or "
			"all (compute,utility)",
			&g.caps},
		{0},
	};
	int rc;

	if (options_parse(self, options, argc, argv, false, e) < 0 || choose(&g, e) < 0 ||
		gpu_host_open(&g.host, e) < 0)
		return -1;
	rc = gpu_inventory_read(&g.inventory, &g.host, e);
	if (rc == 0) {
		rc = generate(&g, e);
		driver_files_fini(&g.files);
		cdi_making_fini(&g.m);
		gpu_inventory_fini(&g.inventory);
	}
	gpu_host_close(&g.host);
	return rc;
}

/* ---- list ---- */

/* --cdi-spec-dir, or the usual ones. */
static int load(struct cdi *c, const struct option_list *given, struct err *e)
{
	static const char *usual[] = {CDI_DIRS};
	const struct strings dirs = {given->n ? given->v : usual,
		given->n ? given->n : sizeof(usual) / sizeof(usual[0])};

	return cdi_load(c, &dirs, e);
}

static void print_devices(const struct cdi *c)
{
	size_t width = strlen("DEVICE");

	for (size_t i = 0; i < c->n; i++) {
		const struct cdi_device *d = &c->v[i];
		size_t n = strlen(d->vendor) + strlen(d->class) + strlen(d->name) + 2;

		width = n > width ? n : width;
	}
	if (c->n)
		printf("%-*s  %s\n", (int)width, "DEVICE", "SPEC");
	else
		puts("no CDI device");
	for (size_t i = 0; i < c->n; i++) {
		const struct cdi_device *d = &c->v[i];
		auto_free char *name = mem_printf("%s/%s=%s", d->vendor, d->class, d->name);
		auto_free char *file = output_plain(d->file);
		auto_free char *other = d->conflict ? output_plain(d->conflict) : NULL;

		printf("%-*s  %s%s%s\n", (int)width, name, file,
			other ? "  cannot be had: also in " : "", other ? other : "");
	}
	for (size_t i = 0; i < c->nerrors; i++) {
		auto_free char *text = output_plain(c->errors[i].text);

		warn("%s", text);
	}
}

static void print_json(const struct cdi *c)
{
	auto_json json_t *devices = json_array(), *errors = json_array(), *dirs = json_array();
	auto_json json_t *all = NULL;

	for (size_t i = 0; i < c->n; i++) {
		const struct cdi_device *d = &c->v[i];

		json_array_append_new(
			devices, json_pack("{s:o, s:s, s:s*}", "name",
					 json_sprintf("%s/%s=%s", d->vendor, d->class, d->name),
					 "file", d->file, "conflict", d->conflict));
	}
	for (size_t i = 0; i < c->nerrors; i++)
		json_array_append_new(errors, json_pack("{s:s, s:s}", "file", c->errors[i].file,
						      "error", c->errors[i].text));
	for (size_t i = 0; i < c->dirs.n; i++)
		json_array_append_new(dirs, json_string(c->dirs.v[i]));
	all = json_pack("{s:O, s:O, s:O}", "devices", devices, "errors", errors, "folders", dirs);
	output_json(all);
}

static int cmd_list(const struct command *self, int argc, char **argv, struct err *e)
{
	struct option_list dirs = {0};
	const char *format = NULL;
	bool json = false;
	const struct option_spec options[] = {
		{"cdi-spec-dir", 0, OPTION_LIST, "DIR",
			"where CDI specs are (/etc/cdi, /var/run/cdi); may be given again", &dirs},
		{"format", 0, OPTION_STRING, "FORMAT", "table or json", &format},
		{0},
	};
	struct cdi c;
	int rc = options_parse(self, options, argc, argv, false, e);

	if (rc < 0 || output_format(format, &json, e) < 0 || load(&c, &dirs, e) < 0) {
		option_list_fini(&dirs);
		return -1;
	}
	if (json)
		print_json(&c);
	else
		print_devices(&c);
	cdi_fini(&c);
	option_list_fini(&dirs);
	return 0;
}

/* ---- validate ---- */

enum { FAULTS_MAX = 100 }; /* of one file */

struct checking {
	const char *name;
	const struct buf *text;
	size_t n;
};

static bool print_fault(void *ctx, const char *pointer, const char *text)
{
	struct checking *c = ctx;
	auto_free char *place = cdi_place(c->name, c->text->data, c->text->len, pointer, text);
	auto_free char *plain = output_plain(place);

	puts(plain);
	return ++c->n < FAULTS_MAX;
}

static int not_named(const char *name, struct err *e)
{
	err_set(e, ERR_USAGE, "%s: specs end in .json or .yaml", name);
	return err_hint(e, "--cdi-spec-dir DIR checks a folder of them");
}

/* 0: it is good; 1: what is wrong was told. */
static int validate_file(const char *name, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(CDI_FILE_MAX);
	struct checking c = {name, &b, 0};
	auto_json json_t *spec = NULL;
	struct err fault = {0};

	if (!str_ends(name, ".json") && !str_ends(name, ".yaml"))
		return not_named(name, e);
	if (file_read(AT_FDCWD, name, &b, e) < 0)
		return -1;
	spec = cdi_parse(name, b.data ? b.data : "", b.len, &fault);
	if (spec)
		return cdi_check(spec, print_fault, &c) > 0;
	auto_free char *plain = output_plain(fault.text);
	puts(plain);
	return 1;
}

static int validate_host(const struct option_list *dirs, struct err *e)
{
	struct cdi c;
	int bad;

	if (load(&c, dirs, e) < 0)
		return -1;
	bad = c.nerrors > 0;
	for (size_t i = 0; i < c.nerrors; i++) {
		auto_free char *plain = output_plain(c.errors[i].text);

		puts(plain);
	}
	for (size_t i = 0; i < c.n; i++)
		if (c.v[i].conflict) {
			auto_free char *file = output_plain(c.v[i].file);
			auto_free char *other = output_plain(c.v[i].conflict);

			printf("%s: %s/%s=%s is in %s, too\n", file, c.v[i].vendor, c.v[i].class,
				c.v[i].name, other);
			bad = 1;
		}
	cdi_fini(&c);
	return bad;
}

static int cmd_validate(const struct command *self, int argc, char **argv, struct err *e)
{
	struct option_list dirs = {0};
	const struct option_spec options[] = {
		{"cdi-spec-dir", 0, OPTION_LIST, "DIR",
			"without FILE: where CDI specs are (/etc/cdi, /var/run/cdi); may be given "
			"again",
			&dirs},
		{0},
	};
	int first = options_parse(self, options, argc, argv, false, e), bad = first;

	if (first >= 0 && first == argc)
		bad = validate_host(&dirs, e);
	else if (first >= 0)
		bad = 0;
	for (int i = first; i >= 0 && i < argc && bad >= 0; i++) {
		int rc = validate_file(argv[i], e);

		bad = rc < 0 ? -1 : bad | rc;
	}
	option_list_fini(&dirs);
	return bad;
}
