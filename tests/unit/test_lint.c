#include "tests/unit/elf-make.h"

#include <dirent.h>

#include "base/file.h"
#include "base/str.h"
#include "builder/compose.h"
#include "builder/lint.h"

#define HEAD "{\"schema\": \"svrun.image/1\", \"name\": \"a\", \"version\": \"1\""

/* ---- what the manifest and its lock show: a case that fires and one that does not ---- */

/* What a lock has, as far as rules look at it. */
struct locked {
	const char *debs[6], *wheels[4], *npms[2]; /* NAME=VERSION */
	const char *model;
	size_t layers; /* of the base */
	bool stale;
};

struct sample {
	const char *
		json; /* what follows HEAD; a whole text when it does not begin with a comma or } */
	const struct locked *lock;
};

struct rule_case {
	int code;
	struct sample fires, quiet;
};

#define APT(packages, more)                                                                        \
	", \"apt\": {\"sources\": [{\"uri\": \"mirror:debian\", \"suites\": [\"bookworm\"], "      \
	"\"components\": [\"main\"], \"signedBy\": \"keyring:debian-archive\"}], \"packages\": "   \
	"[" packages "], \"prune\": [\"doc\"]" more "}}"
#define MODEL(more) ", \"models\": [{\"id\": \"m\", \"target\": \"/models/m\", " more "}]}"
#define SAFE(more)                                                                                 \
	MODEL("\"format\": \"safetensors\", \"source\": {\"type\": \"file\", \"path\": \"m\"}, "   \
	      "\"files\": [{\"path\": \"m\", \"sha256\": \"" HEX "\", \"size\": 5}]" more)
#define LICENSE(more) SAFE(", \"license\": {\"spdx\": \"MIT\"" more "}")
#define HF(more)                                                                                   \
	MODEL("\"format\": \"safetensors\", \"delivery\": \"runtime\", \"source\": {\"type\": "    \
	      "\"hf\", \"repo\": \"a/b\", \"revision\": "                                          \
	      "\"0123456789012345678901234567890123456789\"" more)
#define OCI(more)                                                                                  \
	MODEL("\"format\": \"safetensors\", \"delivery\": \"runtime\", \"source\": {\"type\": "    \
	      "\"oci\", \"url\": \"a/b:1" more "\"}")
#define HEX "b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c"
#define RUN(more) ", \"run\": [{\"id\": \"r\", " more "}]}"
#define GPU(more) ", \"gpu\": {\"mode\": \"required\", \"vendor\": \"nvidia\"" more "}}"
#define EXEC(more)                                                                                 \
	", \"tests\": [{\"id\": \"t\", \"stage\": \"run\", \"type\": \"exec\", " more "}]}"
#define WHEEL(name, version, file)                                                                 \
	"{\"name\": \"" name "\", \"version\": \"" version "\", \"file\": \"" file                 \
	"\", \"path\": \"w\", \"sha256\": \"" HEX "\", \"size\": 5}"
#define PYTHON(wheels, more)                                                                       \
	", \"python\": {\"prefix\": \"/opt/v\", \"wheels\": [" wheels "]" more "}}"
#define TORCH(version) WHEEL("torch", version, "torch-2.7.1-cp311-cp311-manylinux_2_28_x86_64.whl")
#define PORT(more) ", \"ports\": [{\"port\": 80, \"protocol\": \"http\"" more "}]"
#define READY(port) ", \"health\": {\"readiness\": {\"http\": {\"port\": " port "}}}}"
#define SERVICES(after)                                                                            \
	", \"base\": {\"type\": \"oci\", \"ref\": \"a:1\", \"digest\": \"sha256:" HEX              \
	"\"}" PORT("") ", \"services\": [{\"id\": \"db\", \"argv\": [\"/db\"], \"ports\": "        \
		       "[5432]}, {\"id\": "                                                        \
		       "\"web\", \"argv\": [\"/web\"], \"ports\": [80]" after "}]" READY("80")
#define SOURCE(more)                                                                               \
	", \"sources\": [{\"id\": \"s\", \"type\": \"file\", \"size\": 5, \"sha256\": \"" HEX      \
	"\", " more "}]}"

static const struct locked slow_blas = {.debs = {"libblas3=3.11", "python3-numpy=1.24"}},
			   fast_blas = {.debs = {"libblas3=3.11", "libopenblas0-pthread=0.3",
						"python3-numpy=1.24"}},
			   stale = {.stale = true}, fresh = {0}, deep_base = {.layers = 90},
			   flat_base = {.layers = 5},
			   python311 = {.debs = {"libc6=2.36-9", "python3=3.11.2-1",
						"python3.11=3.11.2-6"}},
			   torches = {.wheels = {"torch=2.7.1", "torchvision=0.21.0"}},
			   matching = {.wheels = {"torch=2.7.1+cu128", "torchvision=0.22.1+cu128"}},
			   two_cv = {.wheels = {"opencv-python=4.9", "opencv-python-headless=4.9"}},
			   one_cv = {.wheels = {"opencv-python=4.9"}},
			   locked_model = {.model = "m"},
			   llama = {.npms = {"node-llama-cpp=3.0.0"}};

static const struct rule_case cases[] = {
	/* of the parser */
	{.code = 0, {.json = "{"}, {.json = "}"}},
	{.code = 1, {.json = ", \"nam\": 1}"}, {.json = ", \"x-nam\": 1}"}},
	{.code = 2, {.json = ", \"name\": \"b\"}"}, {.json = "}"}},
	{.code = 4,
		{.json = ", \"x\": "
			 "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
			 "]]]]}"},
		{.json = ", \"x-x\": [[[1]]]}"}},
	{.code = 5, {.json = "{\"schema\": \"svrun.image/1\", \"name\": \"a\"}"}, {.json = "}"}},
	{.code = 6, {.json = ", \"title\": 5}"}, {.json = ", \"title\": \"5\"}"}},
	{.code = 7, {.json = ", \"category\": \"dog\"}"}, {.json = ", \"category\": \"llm\"}"}},
	{.code = 8,
		{.json = ", \"dirs\": [{\"path\": \"/a/../b\"}]}"},
		{.json = ", \"dirs\": [{\"path\": \"/a\"}]}"}},
	{.code = 9,
		{.json = ", \"dirs\": [{\"path\": \"/a\"}, {\"path\": \"/a\"}]}"},
		{.json = ", \"dirs\": [{\"path\": \"/a\"}, {\"path\": \"/b\"}]}"}},
	{.code = 13,
		{.json = ", \"base\": {\"type\": \"oci\", \"ref\": \"a:1\", \"digest\": \"sha256:"
			 "0000000000000000000000000000000000000000000000000000000000000000\"}}"},
		{.json = ", \"base\": {\"type\": \"oci\", \"ref\": \"a:1\", \"digest\": "
			 "\"sha256:" HEX "\"}}"}},
	{.code = 15,
		{.json = ", \"env\": {\"A\": \"${cpus}\"}}"},
		{.json = ", \"env\": {\"A\": \"${runtime:cpus}\"}}"}},
	{.code = 16, {.json = ", \"from\": [\"no-such-parent\"]}"}, {.json = "}"}},
	{.code = 20,
		{.json = ", \"ports\": [{\"port\": 1}, {\"port\": 1}]}"},
		{.json = ", \"ports\": [{\"port\": 1}, {\"port\": 2}]}"}},
	{.code = 130,
		{.json = ", \"env\": {\"A_TOKEN\": \"x\"}}"},
		{.json = ", \"env\": {\"A\": \"x\"}}"}},
	/* inputs */
	{.code = 10,
		{.json = ", \"base\": {\"type\": \"oci\", \"ref\": \"a:1\"}}"},
		{.json = ", \"base\": {\"type\": \"oci\", \"ref\": \"a:1\", \"digest\": "
			 "\"sha256:" HEX "\"}}"}},
	{.code = 11, {.json = OCI("")}, {.json = OCI("@sha256:" HEX)}},
	{.code = 11, {.json = OCI("")}, {.json = OCI(""), .lock = &locked_model}},
	{.code = 11,
		{.json = ", \"sources\": [{\"id\": \"s\", \"type\": \"git\", \"url\": "
			 "\"mirror:x/a\", "
			 "\"dest\": \"/a\"}]}"},
		{.json = ", \"sources\": [{\"id\": \"s\", \"type\": \"git\", \"url\": "
			 "\"mirror:x/a\", "
			 "\"dest\": \"/a\", \"commit\": "
			 "\"0123456789012345678901234567890123456789\"}]}"}},
	{.code = 12,
		{.json = ", \"base\": {\"type\": \"oci\", \"ref\": \"a:latest\", \"digest\": "
			 "\"sha256:" HEX "\"}}"},
		{.json = ", \"base\": {\"type\": \"oci\", \"ref\": \"a:12.11\", \"digest\": "
			 "\"sha256:" HEX "\"}}"}},
	{.code = 12,
		{.json = SOURCE("\"url\": \"mirror:x/main/a.py\", \"dest\": \"/a\"")},
		{.json = SOURCE("\"url\": \"mirror:x/v1/main.py\", \"dest\": \"/a\"")}},
	{.code = 17, {.json = "}", &stale}, {.json = "}", &fresh}},
	{.code = 18,
		{.json = ", \"x-lint\": {\"allow\": [{\"id\": \"SV070\"}]}}"},
		{.json = ", \"x-lint\": {\"allow\": [{\"id\": \"SV070\", \"reason\": \"why\"}]}}"}},
	{.code = 18,
		{.json = ", \"x-lint\": {\"allow\": [{\"id\": \"SV999\", \"reason\": \"why\"}]}}"},
		{.json = "}"}},
	/* what it shows */
	{.code = 21, {.json = PORT("") "}"}, {.json = PORT("") READY("80")}},
	{.code = 22, {.json = PORT("") READY("81")}, {.json = PORT("") READY("80")}},
	{.code = 22,
		{.json = SERVICES("")}, /* nobody waits for it */
		{.json = SERVICES(", \"after\": [\"db\"]")}},
	{.code = 23,
		{.json = ", \"cmd\": [\"/bin/sh\", \"-c\", \"pip install -r x && run\"]}"},
		{.json = ", \"cmd\": [\"/bin/sh\", \"-c\", \"run\"]}"}},
	{.code = 23,
		{.json = ", \"cmd\": [\"/go\"], \"files\": [{\"dest\": \"/go\", \"inline\": \"git "
			 "clone "
			 "x\"}]}"},
		{.json = ", \"cmd\": [\"/go\"], \"files\": [{\"dest\": \"/x\", \"inline\": \"git "
			 "clone "
			 "x\"}]}"}},
	{.code = 24,
		{.json = ", \"category\": \"notebook\"" PORT("") "}"},
		{.json = ", \"category\": \"notebook\"" PORT(", \"auth\": \"token\"") "}"}},
	{.code = 25,
		{.json = ", \"ports\": [{\"port\": 1, \"protocol\": \"http\"}, {\"port\": 2, "
			 "\"protocol\": "
			 "\"http\"}]}"},
		{.json = ", \"ports\": [{\"port\": 1, \"protocol\": \"http\", \"primary\": true}, "
			 "{\"port\": "
			 "2, \"protocol\": \"http\"}]}"}},
	/* GPUs */
	{.code = 30,
		{.json = GPU("")},
		{.json = GPU(", \"vramGiB\": {\"min\": 8}, \"computeCapability\": {\"min\": "
			     "\"8.0\"}")}},
	{.code = 31,
		{.json = GPU(", \"vramGiB\": {\"min\": 8}, \"count\": {\"max\": 4}")},
		{.json = GPU(", \"vramGiB\": {\"min\": 8, \"per\": \"gpu\"}, \"count\": {\"max\": "
			     "4}")}},
	{.code = 32,
		{.json = GPU(", \"archs\": [\"7.0\", \"8.0\"], \"cuda\": {\"min\": \"13.0\"}")},
		{.json = GPU(", \"archs\": [\"7.5\", \"8.0\"], \"cuda\": {\"min\": \"13.0\"}")}},
	{.code = 32,
		{.json = GPU(", \"archs\": [\"8.6\"], \"computeCapability\": {\"min\": \"8.0\"}")},
		{.json = GPU(", \"archs\": [\"8.0\"], \"computeCapability\": {\"min\": \"8.6\"}")}},
	{.code = 32,
		{.json = GPU(", \"archs\": [\"8.0\"], \"computeCapability\": {\"min\": \"9.0\"}")},
		{.json = GPU(
			 ", \"archs\": [\"8.0+PTX\"], \"computeCapability\": {\"min\": \"9.0\"}")}},
	{.code = 33,
		{.json = GPU("")},
		{.json = ", \"modes\": {\"cpu\": {\"gpu\": {\"mode\": \"none\"}}}" GPU("")}},
	{.code = 34, {.json = GPU("")}, {.json = GPU(", \"archs\": [\"8.0\"]")}},
	{.code = 35,
		{.json = GPU(", \"forwardCompat\": true")},
		{.json = GPU(", \"forwardCompat\": true, \"driver\": {\"min\": \"535\"}")}},
	{.code = 35,
		{.json = ", \"gpu\": {\"mode\": \"optional\", \"vendor\": \"amd\", \"cuda\": "
			 "{\"min\": \"12.0\"}}}"},
		{.json = ", \"gpu\": {\"mode\": \"optional\", \"vendor\": \"amd\", "
			 "\"vramGiB\": {\"min\": 24}}}"}},
	{.code = 35,
		{.json = ", \"gpu\": {\"mode\": \"none\", \"count\": {\"min\": 1}}}"},
		{.json = ", \"gpu\": {\"mode\": \"required\", \"count\": {\"min\": 1}}, "
			 "\"modes\": {\"cpu\": {\"gpu\": {\"mode\": \"none\"}}}}"}},
	{.code = 36,
		{.json = GPU(", \"cuda\": {\"min\": \"13.0\"}, \"driver\": {\"min\": \"525\"}")},
		{.json = GPU(
			 ", \"cuda\": {\"min\": \"13.0\"}, \"driver\": {\"min\": \"580.65\"}")}},
	{.code = 37,
		{.json = GPU(""), &torches},
		{.json = ", \"resources\": {\"shmMiB\": 2048}" GPU(""), &torches}},
	{.code = 38,
		{.json = GPU(", \"brands\": [\"geforce\", \"gforce\"]")},
		{.json = GPU(", \"brands\": [\"geforce\", \"nvidia\"]")}},
	{.code = 39,
		{.json = ", \"gpu\": {\"mode\": \"optional\", \"vendor\": \"intel\"}}"},
		{.json = ", \"gpu\": {\"mode\": \"optional\", \"vendor\": \"any\"}}"}},
	/* Debian packages */
	{.code = 40,
		{.json = APT("\"?essential\"", ", \"recommends\": true")},
		{.json = APT("\"?essential\"", "")}},
	{.code = 41,
		{.json = APT("\"?essential\"", ""), &slow_blas},
		{.json = APT("\"?essential\"", ""), &fast_blas}},
	{.code = 41,
		{.json = APT("\"python3-numpy\"", ", \"alternatives\": {\"libblas.so.3-x\": "
						  "\"/usr/lib/x/blas/libblas.so.3\"}")},
		{.json = APT("\"python3-numpy\"",
			 ", \"alternatives\": {\"libblas.so.3-x\": "
			 "\"/usr/lib/x/openblas-pthread/libblas.so.3\"}")}},
	{.code = 42,
		{.json = APT("\"libfoo-dev\"", "")},
		{.json = ", \"category\": \"training\"" APT("\"libfoo-dev\"", "")}},
	{.code = 42, {.json = APT("\"gcc-12=12.2\"", "")}, {.json = APT("\"gcc-12-base\"", "")}},
	{.code = 43,
		{.json = ", \"apt\": {\"sources\": [{\"uri\": \"mirror:debian\", \"suites\": "
			 "[\"bookworm\"], "
			 "\"components\": [\"main\"], \"signedBy\": \"keyring:x\"}], \"packages\": "
			 "[\"bash\"]}}"},
		{.json = APT("\"bash\"", "")}},
	{.code = 44,
		{.json = APT("\"bash\"", ", \"database\": \"status.d\"")},
		{.json = APT("\"bash\"", ", \"database\": \"dpkg\"")}},
	{.code = 44,
		{.json = APT("\"bash\"", ", \"database\": \"none\"")},
		{.json = APT("\"bash\"", "")}},
	{.code = 45,
		{.json = APT("\"bash\"", ", \"configure\": \"none\"")},
		{.json = APT("\"bash\"", ", \"configure\": \"builtin\"")}},
	{.code = 46, {.json = APT("\"bash\"", "")}, {.json = APT("\"bash\", \"?essential\"", "")}},
	/* Python */
	{.code = 50,
		{.json = ", \"python\": {\"prefix\": \"/opt/v\"}}", &torches},
		{.json = ", \"python\": {\"prefix\": \"/opt/v\"}}", &matching}},
	{.code = 50,
		{.json = PYTHON(TORCH("2.7.1"), ", \"guard\": {\"torch\": \"==2.6.*\"}")},
		{.json = PYTHON(TORCH("2.7.1"), ", \"guard\": {\"torch\": \"==2.7.*\"}")}},
	{.code = 50,
		{.json = ", \"gpu\": {\"mode\": \"required\"}" PYTHON(TORCH("2.7.1+cpu"), "")},
		{.json = ", \"gpu\": {\"mode\": \"optional\"}" PYTHON(TORCH("2.7.1+cpu"), "")}},
	{.code = 52,
		{.json = PYTHON(WHEEL("a", "1", "a-1-cp312-cp312-manylinux_2_28_x86_64.whl"), ""),
			&python311},
		{.json = PYTHON(WHEEL("a", "1", "a-1-cp311-cp311-manylinux_2_28_x86_64.whl"), ""),
			&python311}},
	{.code = 52,
		{.json = PYTHON(WHEEL("a", "1", "a-1-cp311-cp311-win_amd64.whl"), "")},
		{.json = PYTHON(WHEEL("a", "1", "a-1-cp311-cp311-manylinux_2_28_x86_64.whl"), "")}},
	{.code = 56,
		{.json = PYTHON(TORCH("2.7.1"), "")},
		{.json = PYTHON(TORCH("2.7.1"), ", \"guard\": {\"torch\": \"==2.7.1\"}")}},
	{.code = 57, {.json = "}", &two_cv}, {.json = "}", &one_cv}},
	/* steps */
	{.code = 60,
		{.json = RUN("\"argv\": [\"/x\"], \"writes\": [\"/a\"], \"network\": true")},
		{.json = RUN("\"argv\": [\"/x\"], \"writes\": [\"/a\"], \"network\": false")}},
	{.code = 62,
		{.json = RUN("\"argv\": [\"/x\"], \"writes\": [\"/root/.cache/**\"]")},
		{.json = ", \"build\": {\"volatile\": [\"/root/.cache/**\"]}" RUN(
			 "\"argv\": [\"/x\"], \"writes\": [\"/root/.cache/**\"]")}},
	{.code = 63,
		{.json = RUN("\"argv\": [\"/x\"], \"writes\": [\"/**\"]")},
		{.json = RUN("\"argv\": [\"/x\"], \"writes\": [\"/opt/**\"]")}},
	{.code = 64,
		{.json = RUN("\"argv\": [\"/x\"], \"writes\": []")},
		{.json = RUN("\"argv\": [\"/x\"], \"writes\": [\"/a\"]")}},
	{.code = 66,
		{.json = RUN("\"script\": \"pip install x\", \"writes\": [\"/a\"]")},
		{.json = RUN("\"script\": \"pip install --no-index x\", \"writes\": [\"/a\"]")}},
	{.code = 70,
		{.json = ", \"cmd\": [\"/x\"]}"},
		{.json = ", \"cmd\": [\"/x\"], \"user\": \"1000:1000\"}"}},
	{.code = 71,
		{.json = ", \"files\": [{\"dest\": \"/x\", \"inline\": \"\", \"mode\": "
			 "\"4755\"}]}"},
		{.json = ", \"files\": [{\"dest\": \"/x\", \"inline\": \"\", \"mode\": "
			 "\"0755\"}]}"}},
	{.code = 72,
		{.json = ", \"dirs\": [{\"path\": \"/x\", \"mode\": \"0777\"}]}"},
		{.json = ", \"dirs\": [{\"path\": \"/x\", \"mode\": \"1777\"}]}"}},
	{.code = 73,
		{.json = ", \"env\": {\"PATH\": \"$PATH:/x\"}}"},
		{.json = ", \"env\": {\"PATH\": \"/x\", \"PRICE\": \"5$ or $1\"}}"}},
	{.code = 74,
		{.json = ", \"user\": \"app\"}"},
		{.json = ", \"user\": \"app\", \"users\": [{\"name\": \"app\", \"uid\": 1000, "
			 "\"gid\": 1000}]}"}},
	{.code = 74,
		{.json = ", \"user\": \"app\"" APT("\"?essential\"", "")},
		{.json = ", \"user\": \"www-data\"" APT("\"?essential\"", "")}},
	/* layers */
	{.code = 110,
		{.json = ", \"build\": {\"compression\": {\"models\": \"gzip\"}}" MODEL(
			 "\"format\": \"gguf\", \"source\": {\"type\": \"file\", \"path\": \"m\"}, "
			 "\"files\": [{\"path\": \"m\", \"sha256\": \"" HEX
			 "\", \"size\": 5000000000}]")},
		{.json = MODEL(
			 "\"format\": \"gguf\", \"source\": {\"type\": \"file\", \"path\": \"m\"}, "
			 "\"files\": [{\"path\": \"m\", \"sha256\": \"" HEX
			 "\", \"size\": 5000000000}]")}},
	{.code = 111, {.json = "}", &deep_base}, {.json = "}", &flat_base}},
	{.code = 112,
		{.json = ", \"build\": {\"layers\": {\"strategy\": \"single\"}}}"},
		{.json = ", \"build\": {\"layers\": {\"strategy\": \"origin\"}}}"}},
	{.code = 113,
		{.json = ", \"build\": {\"compression\": {\"models\": \"zstd\"}}" SAFE("")},
		{.json = SAFE("")}},
	{.code = 114,
		{.json = ", \"build\": {\"compression\": {\"default\": \"gzip\"}}}"},
		{.json = ", \"build\": {\"compression\": {\"default\": \"zstd\"}}}"}},
	/* secrets, weights */
	{.code = 132,
		{.json = ", \"inputs\": [{\"env\": \"API_KEY\", \"type\": \"string\", \"title\": "
			 "\"K\"}]}"},
		{.json = ", \"inputs\": [{\"env\": \"API_KEY\", \"type\": \"secret\", \"title\": "
			 "\"K\"}]}"}},
	{.code = 140,
		{.json = ", \"files\": [{\"dest\": \"/x.gguf\", \"from\": \"x\"}]}"},
		{.json = ", \"files\": [{\"dest\": \"/x.json\", \"from\": \"x\"}]}"}},
	{.code = 141,
		{.json = MODEL(
			 "\"format\": \"ckpt\", \"allowPickle\": true, \"source\": {\"type\": "
			 "\"file\", "
			 "\"path\": \"m\"}, \"files\": [{\"path\": \"m\", \"sha256\": \"" HEX
			 "\", \"size\": 5}]")},
		{.json = SAFE("")}},
	{.code = 142, {.json = LICENSE(", \"nonCommercial\": true")}, {.json = LICENSE("")}},
	{.code = 142,
		{.json = LICENSE(", \"excludedTerritories\": [\"EU\"]")},
		{.json = LICENSE("")}},
	{.code = 143,
		{.json = LICENSE(", \"gated\": true")},
		{.json = SAFE(
			 ", \"delivery\": \"volume\", \"license\": {\"spdx\": \"MIT\", \"gated\": "
			 "true}")}},
	{.code = 144, {.json = SAFE("")}, {.json = LICENSE("")}},
	{.code = 145,
		{.json = HF("}, \"license\": {\"spdx\": \"MIT\", \"gated\": true}")},
		{.json = HF(", \"secret\": \"token\"}, \"license\": {\"spdx\": \"MIT\", \"gated\": "
			    "true}")}},
	{.code = 146,
		{.json = LICENSE(", \"redistribute\": \"with-notice\"")},
		{.json = LICENSE(", \"redistribute\": \"with-notice\", \"notice\": \"/NOTICE\"")}},
	{.code = 147,
		{.json = LICENSE(", \"redistribute\": \"no\"")},
		{.json = LICENSE(", \"redistribute\": \"yes\"")}},
	/* tests */
	{.code = 150,
		{.json = EXEC("\"argv\": [\"/x\"], \"required\": false")},
		{.json = EXEC("\"argv\": [\"/x\"]")}},
	{.code = 150,
		{.json = EXEC("\"argv\": [\"/bin/sh\", \"-c\", \"x || true\"]")},
		{.json = EXEC(
			 "\"argv\": [\"/bin/sh\", \"-c\", \"x || true\"], \"expect\": {\"stdout\": "
			 "{\"contains\": \"ok\"}}")}},
	{.code = 150,
		{.json = ", \"tests\": [{\"id\": \"t\", \"stage\": \"image\", \"type\": "
			 "\"metadata\", \"expect\": {}}]}"},
		{.json = ", \"tests\": [{\"id\": \"t\", \"stage\": \"image\", \"type\": "
			 "\"metadata\", "
			 "\"expect\": {\"user\": \"1\"}}]}"}},
	{.code = 151,
		{.json = EXEC("\"argv\": [\"/x\"], \"disabled\": true")},
		{.json = EXEC("\"argv\": [\"/x\"]")}},
	{.code = 152, {.json = "}"}, {.json = EXEC("\"argv\": [\"/x\"]")}},
	{.code = 153,
		{.json = EXEC("\"argv\": [\"/x\"], \"needs\": \"gpu\"")},
		{.json = EXEC("\"argv\": [\"/x\"]")}},
	{.code = 160,
		{.json = ", \"env\": {\"OMP_NUM_THREADS\": \"8\"}}"},
		{.json = ", \"env\": {\"OMP_NUM_THREADS\": \"${runtime:cpus}\"}}"}},
	{.code = 160,
		{.json = ", \"env\": {\"OMP_NUM_THREADS\": \"64\"}}"},
		{.json = ", \"env\": {\"OMP_NUM_THREADS\": \"1\"}}"}},
	{.code = 160,
		{.json = ", \"cmd\": [\"/x\", \"--threads=6\"]}"},
		{.json = ", \"cmd\": [\"/x\", \"--threads=${runtime:cpus}\"]}"}},
	{.code = 160,
		{.json = ", \"cmd\": [\"/x\"]}", &llama},
		{.json = ", \"env\": {\"N\": \"${runtime:cpus}\"}, \"cmd\": [\"/x\"]}", &llama}},
};

/* ---- running a case ---- */

static void add_locked(struct lock *l, const struct locked *k, const struct manifest *m)
{
	struct arena *a = &l->arena;

	*l = (struct lock){.platform = manifest_platform()};
	if (!k->stale)
		l->manifest = lock_manifest_digest(m);
	l->base.nlayers = k->layers;
	l->base.present = k->layers > 0;
	if (k->model) {
		l->models = arena_alloc(a, sizeof(*l->models));
		l->models[l->nmodels++].id = k->model;
	}
	l->debs = arena_alloc(a, 6 * sizeof(*l->debs));
	l->wheels = arena_alloc(a, 4 * sizeof(*l->wheels));
	l->npms = arena_alloc(a, 2 * sizeof(*l->npms));
	for (; l->ndebs < 6 && k->debs[l->ndebs]; l->ndebs++) {
		const char *s = k->debs[l->ndebs];

		l->debs[l->ndebs] = (struct lock_deb){.name = arena_strndup(a, s, strcspn(s, "=")),
			.version = strchr(s, '=') + 1};
	}
	for (; l->nwheels < 4 && k->wheels[l->nwheels]; l->nwheels++) {
		const char *s = k->wheels[l->nwheels];

		l->wheels[l->nwheels] =
			(struct lock_wheel){.name = arena_strndup(a, s, strcspn(s, "=")),
				.version = strchr(s, '=') + 1};
	}
	for (; l->nnpms < 2 && k->npms[l->nnpms]; l->nnpms++) {
		const char *s = k->npms[l->nnpms];

		l->npms[l->nnpms] = (struct lock_npm){.name = arena_strndup(a, s, strcspn(s, "=")),
			.version = strchr(s, '=') + 1};
	}
}

static char *text_of(const struct sample *s)
{
	bool more = s->json[0] == ',' || s->json[0] == '}';

	return mem_printf("%s%s", more ? HEAD : "", s->json);
}

/* How often the parser or lint says code, with a hint. What else is said does not matter; but a
 * case of lint must be one that the parser takes. */
static size_t count_code(const struct sample *s, int code, bool must_parse)
{
	auto_free char *text = text_of(s);
	struct complaints c = {0};
	struct lint found = {0};
	struct manifest m;
	struct lock l;
	char mark[16];
	size_t n = 0;

	snprintf(mark, sizeof(mark), ": SV%03d", code);
	if (manifest_parse(&m, "dir/m.json", text, strlen(text), NULL, &c, NULL) < 0) {
		n = strstr(c.text.data, mark) != NULL;
		if (must_parse)
			fail_msg("SV%03d: %s\n%s", code, text, c.text.data);
		complaints_fini(&c);
		return n;
	}
	if (s->lock)
		add_locked(&l, s->lock, &m);
	lint_manifest(&found, &m, s->lock ? &l : NULL);
	for (size_t i = 0; i < found.n; i++)
		if (found.v[i].code == code) {
			n++;
			assert_true(found.v[i].hint && *found.v[i].hint);
			assert_true(*found.v[i].text && found.v[i].line > 0 && found.v[i].col > 0);
			assert_string_equal(found.v[i].file, "dir/m.json");
		}
	if (s->lock)
		lock_fini(&l);
	lint_fini(&found);
	manifest_fini(&m);
	complaints_fini(&c);
	return n;
}

TEST(every_rule_fires_where_it_should_and_only_there)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct rule_case *c = &cases[i];
		const struct lint_rule *r = lint_rule(c->code);
		bool parser = r && (r->by == LINT_BY_PARSER || c->code == 10 || c->code == 11);

		if (!r)
			fail_msg("SV%03d is no rule", c->code);
		if (!count_code(&c->fires, c->code, !parser))
			fail_msg("SV%03d does not fire: %s", c->code, c->fires.json);
		if (count_code(&c->quiet, c->code, true))
			fail_msg("SV%03d fires: %s", c->code, c->quiet.json);
	}
}

/* ---- trees ---- */

struct tree_case {
	int code;
	const char *json;
	void (*make)(struct fixture *f, bool bad);
};

static void make_setuid(struct fixture *f, bool bad)
{
	put_bytes(f, "usr/bin/x", "x", 1, bad ? 02755 : 0755);
}

static void make_writable(struct fixture *f, bool bad)
{
	put_node(f, "opt", &(struct attr){.type = NODE_DIR, .mode = bad ? 0777 : 01777});
}

static void make_usr(struct fixture *f, bool bad)
{
	put_bytes(f, "usr/bin/x", "x", 1, 0755);
	if (bad)
		put_bytes(f, "bin/x", "x", 1, 0755);
	else
		put_node(f, "bin", &(struct attr){.type = NODE_SYMLINK, .target = "usr/bin"});
}

static void make_big_layer(struct fixture *f, bool bad)
{
	struct node *n = put_bytes(f, "x", "x", 1, 0644);
	uint32_t count = bad ? 5u << 10 : 5;
	struct chunk *chunks = arena_alloc(tree_arena(f->t), count * sizeof(*chunks));

	for (uint32_t i = 0; i < count; i++) { /* a sparse file: all of it is one chunk */
		chunks[i] = n->a.chunks[0];
		chunks[i].length = CHUNK_SIZE;
	}
	n->layer = 0;
	n->a.chunks = chunks;
	n->a.nchunks = count;
	n->a.size = (uint64_t)count * CHUNK_SIZE;
}

static void make_layers(struct fixture *f, bool bad)
{
	put_bytes(f, "x", "x", 1, 0644)->layer = bad ? 100 : 99;
}

static void make_library(struct fixture *f, bool bad)
{
	put_elf(f, "usr/bin/x", &(struct elf_spec){.needs = {"libx.so"}});
	put_elf(f, bad ? "usr/lib/liby.so" : "usr/lib/libx.so",
		&(struct elf_spec){.needs = {NULL}});
}

static void make_hidden(struct fixture *f, bool bad)
{
	put_elf(f, "usr/bin/x", &(struct elf_spec){.needs = {"libx.so"}, .runpath = "/opt/lib"});
	put_elf(f, bad ? "opt/other/libx.so" : "opt/lib/libx.so",
		&(struct elf_spec){.needs = {NULL}});
}

static void make_damaged(struct fixture *f, bool bad)
{
	struct elf_spec s = {.needs = {"libx.so"}};
	struct elf_out o;

	elf_make(&o, &s);
	if (bad)
		memset(o.b + o.dynamic + 8, 0xff, 8);
	put_bytes(f, "usr/bin/x", o.b, ELF_BYTES, 0755);
}

static void make_torch(struct fixture *f, bool bad)
{
	put_bytes(f, "opt/torch/lib/libtorch_cpu.so", "x", 1, 0644);
	if (!bad)
		put_bytes(f, "opt/torch/lib/libtorch_cuda.so", "x", 1, 0644);
}

static void make_weights(struct fixture *f, bool bad)
{
	const struct attr plain = {.mode = 0644};

	put_file(f, bad ? "opt/x.gguf" : "models/m/x.gguf", 5 << 20, 0, &plain);
	put_file(f, "opt/small.gguf", 1 << 20, 0, &plain);
}

static const struct tree_case tree_cases[] = {
	{71, "}", make_setuid},
	{72, "}", make_writable},
	{101, "}", make_usr},
	{110, ", \"build\": {\"compression\": {\"default\": \"gzip\"}}}", make_big_layer},
	{111, "}", make_layers},
	{120, "}", make_library},
	{121, GPU(""), make_torch},
	{122, "}", make_hidden},
	{123, "}", make_damaged},
	{140, LICENSE(""), make_weights},
};

static size_t count_in_tree(const struct tree_case *t, bool bad, struct lint_finding *first)
{
	struct fixture fixture, *f = &fixture;
	const struct sample s = {t->json, NULL};
	auto_free char *text = text_of(&s);
	struct complaints complaints = {0};
	struct composed c = {0};
	struct lint found = {0};
	struct manifest m;
	size_t n = 0;

	fixture_init(f);
	need(manifest_parse(&m, "dir/m.json", text, strlen(text), NULL, &complaints, &f->e));
	t->make(f, bad);
	tree_sort(f->t);
	c.tree = f->t;
	need(lint_tree(&found, &m, &c, f->p, &f->e));
	for (size_t i = 0; i < found.n; i++)
		n += found.v[i].code == t->code;
	if (first && n)
		*first = found.v[0];
	lint_fini(&found);
	manifest_fini(&m);
	fixture_fini(f);
	return n;
}

TEST(every_rule_about_trees_fires_where_it_should_and_only_there)
{
	for (size_t i = 0; i < sizeof(tree_cases) / sizeof(tree_cases[0]); i++) {
		const struct tree_case *t = &tree_cases[i];

		if (!count_in_tree(t, true, NULL))
			fail_msg("SV%03d does not fire in a tree", t->code);
		if (count_in_tree(t, false, NULL))
			fail_msg("SV%03d fires in a tree", t->code);
	}
}

TEST(a_finding_in_a_tree_names_the_input_that_brought_the_file)
{
	struct fixture fixture, *f = &fixture;
	const char *text = HEAD APT("\"?essential\"", "");
	struct origin origins[] = {
		{ORIGIN_STATE, "", "", false, 0}, {ORIGIN_DEB, "su", "", false, 0}};
	struct complaints complaints = {0};
	struct composed c = {.origins = origins, .norigins = 2};
	struct lint found = {0};
	struct manifest m;

	fixture_init(f);
	need(manifest_parse(&m, "m.json", text, strlen(text), NULL, &complaints, &f->e));
	put_bytes(f, "usr/bin/su", "x", 1, 04755)->origin = 1;
	c.tree = f->t;
	need(lint_tree(&found, &m, &c, f->p, &f->e));
	assert_int_equal(found.n, 1);
	assert_string_equal(found.v[0].pointer, "/apt/packages");
	assert_string_equal(
		found.v[0].text, "/usr/bin/su (of su) runs with the rights of its owner");
	lint_fini(&found);
	manifest_fini(&m);
	fixture_fini(f);
}

/* ---- the table ---- */

static bool is_tested_here(int code, bool in_trees)
{
	for (size_t i = 0; !in_trees && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (cases[i].code == code)
			return true;
	for (size_t i = 0; in_trees && i < sizeof(tree_cases) / sizeof(tree_cases[0]); i++)
		if (tree_cases[i].code == code)
			return true;
	return false;
}

/* Does a test in that folder have the code in its text? */
static bool is_tested_in(const char *folder, int code)
{
	char mark[16];
	DIR *d = opendir(folder);
	const struct dirent *de;
	bool found = false;

	assert_non_null(d);
	snprintf(mark, sizeof(mark), "SV%03d", code);
	while (!found && (de = readdir(d))) {
		auto_buf struct buf text = BUF_INIT(4 << 20);
		auto_free char *path = mem_printf("%s/%s", folder, de->d_name);

		if ((str_ends(path, ".c") || str_ends(path, ".bats")) &&
			!str_ends(path, "test_lint.c") &&
			file_read(AT_FDCWD, path, &text, NULL) == 0)
			found = strstr(text.data, mark) != NULL;
	}
	closedir(d);
	return found;
}

TEST(every_code_has_texts_and_cases)
{
	size_t n;
	const struct lint_rule *r = lint_rules(&n);

	for (size_t i = 0; i < n; i++) {
		if (i && r[i].code <= r[i - 1].code)
			fail_msg("SV%03d is not in its order", r[i].code);
		if (!r[i].title || !*r[i].title || !r[i].why || !*r[i].why || !r[i].todo ||
			!*r[i].todo || str_ends(r[i].todo, "."))
			fail_msg("SV%03d has not all of its texts", r[i].code);
		if ((r[i].check || r[i].by == LINT_BY_PARSER) && !is_tested_here(r[i].code, false))
			fail_msg("SV%03d has no case", r[i].code);
		if (r[i].tree && !is_tested_here(r[i].code, true))
			fail_msg("SV%03d has no case of a tree", r[i].code);
		if (!r[i].check && !r[i].tree && r[i].by != LINT_BY_PARSER &&
			!is_tested_in("tests/unit", r[i].code) &&
			!is_tested_in("tests/e2e", r[i].code))
			fail_msg("SV%03d is in no test", r[i].code);
	}
}

/* Codes that the page about manifests lists. */
TEST(every_code_of_the_parser_is_in_the_table)
{
	auto_buf struct buf page = BUF_INIT(1 << 20);
	size_t n = 0;

	assert_int_equal(file_read(AT_FDCWD, "docs/manifest.md", &page, NULL), 0);
	for (const char *p = page.data; (p = strstr(p, "| SV")); p++, n++)
		if (!lint_rule((int)strtoul(p + 4, NULL, 10)))
			fail_msg("%.7s is no rule", p + 2);
	assert_true(n > 10);
}

TEST(the_documentation_is_what_the_table_says)
{
	auto_buf struct buf page = BUF_INIT(1 << 20), want = BUF_INIT(1 << 20);
	size_t n;
	const struct lint_rule *r = lint_rules(&n);
	const char *from;

	assert_int_equal(file_read(AT_FDCWD, "docs/lint.md", &page, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		buf_printf(&want, "%s", i ? "\n" : "");
		lint_explain(&r[i], &want);
	}
	from = strstr(page.data, "### SV000");
	assert_non_null(from);
	if (!str_eq(from, want.data))
		fail_msg("docs/lint.md is not what `svrun image lint --explain all` prints");
}

/* ---- what is allowed, and where it is said ---- */

static void lint_text_of(struct lint *found, const char *text)
{
	struct complaints c = {0};
	struct manifest m;
	struct err e = {0};

	if (manifest_parse(&m, "m.json", text, strlen(text), NULL, &c, &e) < 0)
		fail_msg("%s: %s", text, c.count ? c.text.data : e.text);
	lint_manifest(found, &m, NULL);
	lint_manifest(found, &m, NULL); /* adds nothing */
	manifest_fini(&m);
}

static size_t count_of(const struct lint *l, int code)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->v[i].code == code;
	return n;
}

TEST(what_is_allowed_with_a_reason_is_left_out)
{
	static const struct {
		const char *allow;
		size_t left;
	} table[] = {
		{"", 2},
		{"{\"id\": \"SV072\", \"reason\": \"why\"}", 0},
		{"{\"id\": \"SV072\"}", 2},
		{"{\"id\": \"SV071\", \"reason\": \"why\"}", 2},
		{"{\"id\": \"SV072\", \"reason\": \"why\", \"pointer\": \"/dirs/1\"}", 1},
		{"{\"id\": \"SV072\", \"reason\": \"why\", \"pointer\": \"/dirs/1/mode\"}", 1},
		{"{\"id\": \"SV072\", \"reason\": \"why\", \"pointer\": \"/dir\"}", 2},
		{"5", 2},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct lint found = {0};
		auto_free char *text = mem_printf(HEAD
			", \"dirs\": [{\"path\": \"/a\", \"mode\": \"0777\"}, {\"path\": "
			"\"/b\", \"mode\": \"0777\"}], \"x-lint\": {\"allow\": [%s]}}",
			table[i].allow);

		lint_text_of(&found, text);
		if (count_of(&found, 72) != table[i].left)
			fail_msg("%s: %zu left", table[i].allow, count_of(&found, 72));
		lint_fini(&found);
	}
}

TEST(findings_are_lines_in_the_order_of_the_document)
{
	auto_buf struct buf out = BUF_INIT(1 << 20);
	struct lint found = {0};

	lint_text_of(&found,
		"{\"schema\": \"svrun.image/1\", \"name\": \"a\", \"version\": \"1\",\n"
		"\"tests\": [{\"id\": \"t\", \"type\": \"size\", \"stage\": \"image\", \"expect\": "
		"{\"maxLayers\": 1}}], \"dirs\": [{\"path\": \"/a\", \"mode\": \"0777\"}],\n"
		"\"user\": \"root\", \"cmd\": [\"/x\"]}");
	for (size_t i = 0; i < found.n; i++)
		lint_line(&found.v[i], &out);
	assert_int_equal(found.n, 2);
	assert_int_equal(found.v[0].code, 72);
	assert_int_equal(found.v[0].line, 2);
	assert_int_equal(found.v[1].code, 70);
	assert_int_equal(found.v[1].line, 3);
	assert_int_equal(found.v[1].col, 9);
	assert_non_null(strstr(out.data,
		"m.json:3:9: SV070 /user: the program runs as root; expected a user, like "
		"1000:1000; set user, and give it its folders with dirs [warning]\n"));
	lint_fini(&found);
}

TEST(a_rule_that_fires_everywhere_is_counted)
{
	auto_buf struct buf text = BUF_INIT(1 << 20);
	struct lint found = {0};

	buf_printf(&text, HEAD ", \"dirs\": [");
	for (int i = 0; i < 300; i++)
		buf_printf(&text, "%s{\"path\": \"/%d\", \"mode\": \"0777\"}", i ? "," : "", i);
	buf_printf(&text, "]}");
	lint_text_of(&found, text.data);
	assert_int_equal(count_of(&found, 72), 101);
	assert_string_equal(found.v[0].text, "200 more like it");
	lint_fini(&found);
}

RUN_TESTS(cmocka_unit_test(every_rule_fires_where_it_should_and_only_there),
	cmocka_unit_test(every_rule_about_trees_fires_where_it_should_and_only_there),
	cmocka_unit_test(a_finding_in_a_tree_names_the_input_that_brought_the_file),
	cmocka_unit_test(every_code_has_texts_and_cases),
	cmocka_unit_test(every_code_of_the_parser_is_in_the_table),
	cmocka_unit_test(the_documentation_is_what_the_table_says),
	cmocka_unit_test(what_is_allowed_with_a_reason_is_left_out),
	cmocka_unit_test(findings_are_lines_in_the_order_of_the_document),
	cmocka_unit_test(a_rule_that_fires_everywhere_is_counted))
