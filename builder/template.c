#include "builder/template.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/rules.h"

/* NAME stands for the image's name. */
/* clang-format off */
#define HEAD \
	"{\n" \
	"  \"schema\": \"svrun.image/1\",\n" \
	"  \"name\": \"NAME\",\n" \
	"  \"version\": \"0.1.0\",\n" \
	"  \"title\": \"NAME\",\n" \
	"  \"description\": \"What it does, in one or two sentences.\",\n" \
	"  \"licenses\": [\"Apache-2.0\"],\n" \
	"  \"base\": { \"type\": \"scratch\" },\n" \
	"  \"apt\": {\n" \
	"    \"sources\": [\n" \
	"      {\n" \
	"        \"uri\": \"mirror:debian\",\n" \
	"        \"suites\": [\"bookworm\", \"bookworm-updates\"],\n" \
	"        \"components\": [\"main\"],\n" \
	"        \"signedBy\": \"keyring:debian-archive\"\n" \
	"      },\n" \
	"      {\n" \
	"        \"uri\": \"mirror:debian-security\",\n" \
	"        \"suites\": [\"bookworm-security\"],\n" \
	"        \"components\": [\"main\"],\n" \
	"        \"signedBy\": \"keyring:debian-archive\"\n" \
	"      }\n" \
	"    ],\n"

#define PRUNE \
	"    \"prune\": [\"apt-lists\", \"doc\", \"man\", \"info\", \"locale:!en\"]\n" \
	"  },\n"

#define USER \
	"  \"users\": [{ \"name\": \"app\", \"uid\": 1000, \"gid\": 1000, \"home\": \"/workspace\" }],\n" \
	"  \"groups\": [{ \"name\": \"app\", \"gid\": 1000 }],\n" \
	"  \"dirs\": [{ \"path\": \"/workspace\", \"uid\": 1000, \"gid\": 1000 }],\n" \
	"  \"user\": \"1000:1000\",\n" \
	"  \"workdir\": \"/workspace\",\n"

#define TAIL \
	"  \"build\": {\n" \
	"    \"epoch\": 1767225600,\n" \
	"    \"layers\": { \"strategy\": \"origin\", \"max\": 16 },\n" \
	"    \"compression\": { \"default\": \"zstd\", \"level\": 3 }\n" \
	"  }\n" \
	"}\n"

struct template_file {
	const char *name, *text; /* the last one is NULL */
};

static const struct template_file apt_files[] = {
	{"manifest.json", HEAD
	"    \"packages\": [\"?essential\", \"apt\", \"ca-certificates\"],\n" PRUNE USER
	"  \"files\": [\n"
	"    { \"id\": \"main\", \"dest\": \"/usr/local/bin/NAME\", \"mode\": \"0755\", \"from\": \"main.sh\" }\n"
	"  ],\n"
	"  \"env\": { \"HOME\": \"/workspace\", \"LANG\": \"C.UTF-8\" },\n"
	"  \"entrypoint\": [\"/usr/local/bin/NAME\"],\n"
	"  \"tests\": [\n"
	"    {\n"
	"      \"id\": \"starts\",\n"
	"      \"stage\": \"run\",\n"
	"      \"type\": \"exec\",\n"
	"      \"argv\": [\"/usr/local/bin/NAME\"],\n"
	"      \"expect\": { \"exit\": 0, \"stdout\": { \"contains\": \"hello from NAME\" } }\n"
	"    }\n"
	"  ],\n" TAIL},
	{"main.sh",
	"#!/bin/sh\n"
	"echo hello from NAME\n"},
	{0},
};

static const struct template_file node_files[] = {
	{"manifest.json", HEAD
	"    \"packages\": [\"?essential\", \"apt\", \"ca-certificates\", \"nodejs\"],\n" PRUNE USER
	"  \"node\": { \"lock\": \"package-lock.json\", \"prefix\": \"/opt/app\", \"omit\": [\"dev\"] },\n"
	"  \"files\": [\n"
	"    { \"id\": \"main\", \"dest\": \"/opt/app/main.mjs\", \"from\": \"main.mjs\" },\n"
	"    { \"id\": \"package\", \"dest\": \"/opt/app/package.json\", \"from\": \"package.json\" }\n"
	"  ],\n"
	"  \"env\": { \"HOME\": \"/workspace\", \"LANG\": \"C.UTF-8\", \"NODE_ENV\": \"production\" },\n"
	"  \"entrypoint\": [\"/usr/bin/node\", \"/opt/app/main.mjs\"],\n"
	"  \"ports\": [{ \"port\": 8000, \"name\": \"http\", \"protocol\": \"http\", \"primary\": true }],\n"
	"  \"health\": {\n"
	"    \"readiness\": {\n"
	"      \"http\": { \"port\": 8000, \"path\": \"/\" },\n"
	"      \"periodMs\": 1000,\n"
	"      \"failureThreshold\": 30\n"
	"    }\n"
	"  },\n"
	"  \"tests\": [\n"
	"    {\n"
	"      \"id\": \"answers\",\n"
	"      \"stage\": \"run\",\n"
	"      \"type\": \"http\",\n"
	"      \"request\": { \"port\": 8000, \"path\": \"/\" },\n"
	"      \"after\": \"readiness\",\n"
	"      \"expect\": { \"status\": [200], \"stdout\": { \"contains\": \"hello from NAME\" } }\n"
	"    }\n"
	"  ],\n" TAIL},
	{"main.mjs",
	"import http from 'node:http';\n"
	"\n"
	"const server = http.createServer((request, response) => response.end('hello from NAME\\n'));\n"
	"server.listen(8000, '0.0.0.0');\n"
	"for (const signal of ['SIGINT', 'SIGTERM'])\n"
	"  process.on(signal, () => process.exit(0));\n"},
	{"package.json",
	"{\n"
	"  \"name\": \"NAME\",\n"
	"  \"version\": \"0.1.0\",\n"
	"  \"private\": true,\n"
	"  \"type\": \"module\"\n"
	"}\n"},
	{"package-lock.json",
	"{\n"
	"  \"name\": \"NAME\",\n"
	"  \"version\": \"0.1.0\",\n"
	"  \"lockfileVersion\": 3,\n"
	"  \"requires\": true,\n"
	"  \"packages\": {\n"
	"    \"\": {\n"
	"      \"name\": \"NAME\",\n"
	"      \"version\": \"0.1.0\"\n"
	"    }\n"
	"  }\n"
	"}\n"},
	{0},
};

static const struct template_file python_files[] = {
	{"manifest.json", HEAD
	"    \"packages\": [\"?essential\", \"apt\", \"ca-certificates\", \"python3\"],\n" PRUNE USER
	"  \"python\": {\n"
	"    \"prefix\": \"/opt/venv\",\n"
	"    \"interpreter\": \"/usr/bin/python3\",\n"
	"    \"lock\": \"requirements.txt\"\n"
	"  },\n"
	"  \"files\": [{ \"id\": \"main\", \"dest\": \"/opt/app/main.py\", \"from\": \"main.py\" }],\n"
	"  \"env\": { \"HOME\": \"/workspace\", \"LANG\": \"C.UTF-8\", \"OMP_NUM_THREADS\": \"${runtime:cpus}\", \"PYTHONUNBUFFERED\": \"1\" },\n"
	"  \"entrypoint\": [\"/opt/venv/bin/python\", \"/opt/app/main.py\"],\n"
	"  \"tests\": [\n"
	"    {\n"
	"      \"id\": \"starts\",\n"
	"      \"stage\": \"run\",\n"
	"      \"type\": \"exec\",\n"
	"      \"argv\": [\"/opt/venv/bin/python\", \"/opt/app/main.py\"],\n"
	"      \"expect\": { \"exit\": 0, \"stdout\": { \"contains\": \"hello from NAME\" } }\n"
	"    }\n"
	"  ],\n" TAIL},
	{"main.py",
	"print('hello from NAME')\n"},
	{"requirements.txt",
	"# NAME==VERSION --hash=sha256:... lines, as pip-compile --generate-hashes writes them\n"},
	{0},
};

static const struct template_file gpu_files[] = {
	{"manifest.json", HEAD
	"    \"packages\": [\"?essential\", \"apt\", \"ca-certificates\", \"python3\"],\n" PRUNE USER
	"  \"files\": [{ \"id\": \"main\", \"dest\": \"/opt/app/main.py\", \"from\": \"main.py\" }],\n"
	"  \"env\": { \"HOME\": \"/workspace\", \"LANG\": \"C.UTF-8\", \"OMP_NUM_THREADS\": \"${runtime:cpus}\", \"PYTHONUNBUFFERED\": \"1\" },\n"
	"  \"entrypoint\": [\"/usr/bin/python3\", \"/opt/app/main.py\"],\n"
	"  \"gpu\": {\n"
	"    \"mode\": \"required\",\n"
	"    \"vendor\": \"nvidia\",\n"
	"    \"count\": { \"min\": 1, \"max\": 1 },\n"
	"    \"vramGiB\": { \"min\": 8, \"per\": \"gpu\" },\n"
	"    \"computeCapability\": { \"min\": \"8.0\" },\n"
	"    \"archs\": [\"8.0\", \"9.0+PTX\"],\n"
	"    \"cuda\": { \"min\": \"12.0\" },\n"
	"    \"driver\": { \"min\": \"525\" },\n"
	"    \"capabilities\": [\"compute\", \"utility\"]\n"
	"  },\n"
	"  \"modes\": {\n"
	"    \"cpu\": {\n"
	"      \"description\": \"The same without a GPU, to try and to test.\",\n"
	"      \"gpu\": { \"mode\": \"none\" },\n"
	"      \"cmd\": [\"--cpu\"]\n"
	"    }\n"
	"  },\n"
	"  \"resources\": { \"cpu\": { \"min\": 2 }, \"memoryMiB\": { \"min\": 4096 } },\n"
	"  \"tests\": [\n"
	"    {\n"
	"      \"id\": \"cpu\",\n"
	"      \"stage\": \"run\",\n"
	"      \"mode\": \"cpu\",\n"
	"      \"type\": \"exec\",\n"
	"      \"argv\": [\"/usr/bin/python3\", \"/opt/app/main.py\", \"--cpu\"],\n"
	"      \"expect\": { \"exit\": 0, \"stdout\": { \"contains\": \"without a GPU\" } }\n"
	"    },\n"
	"    {\n"
	"      \"id\": \"gpu\",\n"
	"      \"stage\": \"run\",\n"
	"      \"x-note\": \"where there is no GPU: svrun image test --allow-skip\",\n"
	"      \"needs\": \"gpu\",\n"
	"      \"type\": \"exec\",\n"
	"      \"argv\": [\"/usr/bin/python3\", \"/opt/app/main.py\"],\n"
	"      \"expect\": { \"exit\": 0 }\n"
	"    }\n"
	"  ],\n" TAIL},
	{"main.py",
	"import glob, sys\n"
	"\n"
	"if '--cpu' in sys.argv:\n"
	"    print('hello from NAME, without a GPU')\n"
	"elif glob.glob('/dev/nvidia[0-9]*'):\n"
	"    print('hello from NAME, with a GPU')\n"
	"else:\n"
	"    sys.exit('NAME: there is no GPU; with \"--cpu\" it does without')\n"},
	{0},
};

/* clang-format on */

static const struct {
	const char *name;
	const struct template_file *files;
} templates[] = {
	{"apt", apt_files}, {"node", node_files}, {"python", python_files}, {"gpu", gpu_files}};

static char *with_name(const char *text, const char *name)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);

	for (const char *at; (at = strstr(text, "NAME")); text = at + 4) {
		bool word = str_starts(at, "NAME==VERSION");

		buf_put(&b, text, (size_t)(at - text));
		buf_printf(&b, "%s", word ? "NAME" : name);
	}
	buf_printf(&b, "%s", text);
	return steal_ptr(&b.data);
}

static int write_files(
	const char *dir, const char *name, const struct template_file *f, struct err *e)
{
	for (; f->name; f++) {
		auto_free char *path = mem_printf("%s/%s", dir, f->name);
		auto_free char *text = with_name(f->text, name);
		uint32_t mode = str_ends(f->name, ".sh") ? 0755 : 0644;

		if (file_write(AT_FDCWD, path, text, strlen(text), mode, e) < 0)
			return -1;
	}
	return 0;
}

int template_write(const char *dir, const char *name, const char *template, struct err *e)
{
	const struct template_file *files = NULL;
	char shown[STR_SHOWN];

	for (size_t i = 0; i < sizeof(templates) / sizeof(templates[0]); i++)
		if (str_eq(template ? template : "apt", templates[i].name))
			files = templates[i].files;
	if (!files)
		return err_set(e, ERR_USAGE,
			"--template: expected apt, node, python or gpu, got '%s'",
			str_shown(template, shown));
	if (!rule_name.ok(name))
		return err_set(e, ERR_USAGE, "'%s' is no name for an image: expected %s",
			str_shown(name, shown), rule_name.expected);
	if (sys_mkdirat(AT_FDCWD, dir, 0755) < 0)
		return errno == EEXIST ? err_set(e, ERR_EXISTS, "%s exists already", dir)
				       : err_sys(e, "create %s", dir);
	if (write_files(dir, name, files, e) == 0)
		return 0;
	if (sys_remove_tree(AT_FDCWD, dir) < 0)
		err_hint(e, "%s is left behind", dir);
	return -1;
}
