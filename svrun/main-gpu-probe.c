/* svrun-gpu-probe LIBCUDA: ask the driver what its GPUs are, and whether they work. A program of
 * its own, because the library that it loads takes seconds, may hang in the kernel, and holds GPU
 * memory: svrun runs it with a deadline (gpu-ask.h) and looks at what it says as at a stranger's.
 *
 * stdout: one JSON document (gpu-ask.h). stderr: the call that is about to be made, a line each, so
 * that who kills it knows where it hung; and what the library prints itself.
 *
 * The driver API is declared here, because its header may not be passed on with this program.
 * Source: cuda.h of CUDA 13.0; the names with _v2 are those that its macros stand for. */
#include <dlfcn.h>
#include <fcntl.h>
#include <jansson.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"

typedef int cu_result, cu_device;
typedef void *cu_context;
typedef unsigned long long cu_pointer;
struct cu_uuid {
	unsigned char bytes[16];
};

enum {
	CU_SUCCESS = 0,
	CU_ATTRIBUTE_MULTIPROCESSORS = 16,
	CU_ATTRIBUTE_INTEGRATED = 18,
	CU_ATTRIBUTE_COMPUTE_MODE = 20,
	CU_ATTRIBUTE_ECC = 32,
	CU_ATTRIBUTE_CC_MAJOR = 75,
	CU_ATTRIBUTE_CC_MINOR = 76,
	NAME_ROOM = 16 << 10, /* a library that ignores the length is to be found out, not obeyed */
	COPY = 1 << 20,
	DEVICES_MAX = 1024,
};

struct cu {
	cu_result (*Init)(unsigned flags);
	cu_result (*DriverGetVersion)(int *version);
	cu_result (*DeviceGetCount)(int *n);
	cu_result (*DeviceGet)(cu_device *d, int ordinal);
	cu_result (*DeviceGetName)(char *name, int size, cu_device d);
	cu_result (*DeviceGetUuid)(struct cu_uuid *u, cu_device d); /* of the GPU of a MIG device */
	cu_result (*DeviceGetUuid_v2)(struct cu_uuid *u, cu_device d);
	cu_result (*DeviceGetPCIBusId)(char *id, int size, cu_device d);
	cu_result (*DeviceTotalMem_v2)(size_t *bytes, cu_device d);
	cu_result (*DeviceGetAttribute)(int *v, int attribute, cu_device d);
	cu_result (*DevicePrimaryCtxRetain)(cu_context *c, cu_device d);
	cu_result (*DevicePrimaryCtxRelease_v2)(cu_device d);
	cu_result (*CtxSetCurrent)(cu_context c);
	cu_result (*MemAlloc_v2)(cu_pointer *p, size_t n);
	cu_result (*MemFree_v2)(cu_pointer p);
	cu_result (*MemcpyHtoD_v2)(cu_pointer to, const void *from, size_t n);
	cu_result (*MemcpyDtoH_v2)(void *to, cu_pointer from, size_t n);
	cu_result (*GetErrorName)(cu_result r, const char **name);
};

#define SYMBOL(name)                                                                               \
	{                                                                                          \
		"cu" #name, offsetof(struct cu, name)                                              \
	}
static const struct {
	const char *name;
	size_t at;
} symbols[] = {SYMBOL(Init), SYMBOL(DriverGetVersion), SYMBOL(DeviceGetCount), SYMBOL(DeviceGet),
	SYMBOL(DeviceGetName), SYMBOL(DeviceGetUuid), SYMBOL(DeviceGetUuid_v2),
	SYMBOL(DeviceGetPCIBusId), SYMBOL(DeviceTotalMem_v2), SYMBOL(DeviceGetAttribute),
	SYMBOL(DevicePrimaryCtxRetain), SYMBOL(DevicePrimaryCtxRelease_v2), SYMBOL(CtxSetCurrent),
	SYMBOL(MemAlloc_v2), SYMBOL(MemFree_v2), SYMBOL(MemcpyHtoD_v2), SYMBOL(MemcpyDtoH_v2),
	SYMBOL(GetErrorName)};

/* Say which call comes, make it, and note in `out` what went wrong. */
#define CALL(cu, out, name, ...)                                                                   \
	(tell("cu" #name), check(cu, out, "cu" #name, (cu)->name(__VA_ARGS__)))

static void tell(const char *call)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "> %s\n", call);

	(void)!sys_write(STDERR_FILENO, line, (size_t)n); /* nobody reads: no harm */
}

static bool check(const struct cu *cu, json_t *out, const char *call, cu_result r)
{
	const char *name = NULL;
	json_t *failed;

	if (r == CU_SUCCESS)
		return true;
	if (cu->GetErrorName(r, &name) != CU_SUCCESS)
		name = NULL;
	failed = json_pack("{s:s, s:i}", "call", call, "code", r);
	if (name && str_utf8(name, strnlen(name, NAME_ROOM)))
		json_object_set_new(failed, "name", json_string(name));
	json_object_set_new(out, "failed", failed);
	return false;
}

static void put_double(json_t *out, const char *key, double since)
{
	/* Microseconds are noise; what reads this is a person. */
	json_object_set_new(out, key, json_real((double)(long)((sys_now_ms() - since) * 10) / 10));
}

/* ---- one GPU ---- */

static void put_uuid(json_t *out, const char *key, bool mig, const struct cu_uuid *u)
{
	char text[64];
	size_t n = (size_t)snprintf(text, sizeof(text), mig ? "MIG-" : "GPU-");

	for (int i = 0; i < 16; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u->bytes[i]);
	json_object_set_new(out, key, json_string(text));
}

static bool identity(const struct cu *cu, cu_device d, json_t *out)
{
	struct cu_uuid own, whole;
	char name[NAME_ROOM] = "", bus[NAME_ROOM] = "";
	bool mig;

	if (!CALL(cu, out, DeviceGetName, name, 256, d) ||
		!CALL(cu, out, DeviceGetUuid_v2, &own, d) ||
		!CALL(cu, out, DeviceGetUuid, &whole, d) ||
		!CALL(cu, out, DeviceGetPCIBusId, bus, 64, d))
		return false;
	name[NAME_ROOM - 1] = bus[NAME_ROOM - 1] = '\0';
	/* The second version gives the MIG device's, where there is one; the first the GPU's. */
	mig = memcmp(&own, &whole, sizeof(own)) != 0;
	put_uuid(out, "uuid", mig, &own);
	if (mig)
		put_uuid(out, "parent", false, &whole);
	json_object_set_new(out, "mig", json_boolean(mig));
	json_object_set_new(out, "name", json_string(name)); /* not UTF-8: NULL, refused later */
	json_object_set_new(out, "bus", json_string(bus));
	return true;
}

static bool abilities(const struct cu *cu, cu_device d, json_t *out)
{
	static const struct {
		const char *key;
		int attribute;
	} v[] = {{"multiprocessors", CU_ATTRIBUTE_MULTIPROCESSORS},
		{"integrated", CU_ATTRIBUTE_INTEGRATED}, {"computeMode", CU_ATTRIBUTE_COMPUTE_MODE},
		{"ecc", CU_ATTRIBUTE_ECC}};
	size_t bytes = 0;
	int major, minor, value;

	if (!CALL(cu, out, DeviceTotalMem_v2, &bytes, d) ||
		!CALL(cu, out, DeviceGetAttribute, &major, CU_ATTRIBUTE_CC_MAJOR, d) ||
		!CALL(cu, out, DeviceGetAttribute, &minor, CU_ATTRIBUTE_CC_MINOR, d))
		return false;
	json_object_set_new(
		out, "memory", json_integer(bytes > INT64_MAX ? INT64_MAX : (json_int_t)bytes));
	json_object_set_new(out, "cc", json_integer((json_int_t)major * 10 + minor));
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		if (!CALL(cu, out, DeviceGetAttribute, &value, v[i].attribute, d))
			return false;
		json_object_set_new(out, v[i].key, json_integer(value));
	}
	return true;
}

/* FNV-1a, 64 bits. */
static uint64_t checksum(const unsigned char *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325;

	while (n-- > 0)
		h = (h ^ *p++) * 0x100000001b3;
	return h;
}

/* What went there comes back: a pattern that no stuck bit and no page of zeros can imitate. */
static bool copy(const struct cu *cu, json_t *out)
{
	auto_free unsigned char *there = mem_alloc(COPY), *back = mem_alloc(COPY);
	uint64_t x = 0x9e3779b97f4a7c15;
	cu_pointer p = 0;
	bool ok;

	for (size_t i = 0; i < COPY; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		there[i] = (unsigned char)x;
	}
	if (!CALL(cu, out, MemAlloc_v2, &p, COPY))
		return false;
	ok = CALL(cu, out, MemcpyHtoD_v2, p, there, COPY) &&
	     CALL(cu, out, MemcpyDtoH_v2, back, p, COPY);
	if (ok)
		json_object_set_new(
			out, "copied", json_boolean(checksum(there, COPY) == checksum(back, COPY)));
	return CALL(cu, out, MemFree_v2, p) && ok;
}

static void use(const struct cu *cu, cu_device d, json_t *out)
{
	double from = sys_now_ms();
	cu_context c;

	if (!CALL(cu, out, DevicePrimaryCtxRetain, &c, d))
		return;
	put_double(out, "contextMs", from);
	if (CALL(cu, out, CtxSetCurrent, c))
		copy(cu, out);
	CALL(cu, out, DevicePrimaryCtxRelease_v2, d);
}

static json_t *device(const struct cu *cu, int ordinal)
{
	json_t *out = json_pack("{s:i}", "ordinal", ordinal);
	cu_device d;

	if (CALL(cu, out, DeviceGet, &d, ordinal) && identity(cu, d, out) && abilities(cu, d, out))
		use(cu, d, out);
	return out;
}

/* ---- the library ---- */

static bool load(struct cu *cu, const char *path, json_t *out)
{
	double from = sys_now_ms();
	struct link_map *map;
	void *lib;

	tell("dlopen");
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		json_object_set_new(out, "missing", json_string(dlerror()));
		return false;
	}
	put_double(out, "loadMs", from);
	if (dlinfo(lib, RTLD_DI_LINKMAP, &map) == 0)
		json_object_set_new(out, "library", json_string(map->l_name));
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *p = dlsym(lib, symbols[i].name);

		if (!p) {
			json_object_set_new(out, "missing",
				json_sprintf("%s has no %s", path, symbols[i].name));
			return false;
		}
		memcpy((char *)cu + symbols[i].at, &p, sizeof(p));
	}
	return true;
}

static void ask(const struct cu *cu, json_t *out)
{
	json_t *gpus = json_array();
	int version, n = 0;
	double from;

	json_object_set_new(out, "gpus", gpus);
	if (!CALL(cu, out, DriverGetVersion, &version))
		return;
	json_object_set_new(
		out, "cuda", json_sprintf("%d.%d", version / 1000, version % 1000 / 10));
	from = sys_now_ms();
	if (!CALL(cu, out, Init, 0))
		return;
	put_double(out, "initMs", from);
	if (!CALL(cu, out, DeviceGetCount, &n))
		return;
	for (int i = 0; i < n && i < DEVICES_MAX; i++)
		json_array_append_new(gpus, device(cu, i));
}

int main(int argc, char **argv)
{
	json_t *out = json_pack("{s:s}", "schema", "svrun.gpu-probe/1");
	struct cu cu;
	FILE *to;
	int fd;

	/* Nobody waits for us once svrun is gone; a crash is told by our status, not by a dump. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	/* The library gets nothing that whoever started svrun had open. */
	(void)!sys_close_range(3, ~0U, 0);
	/* What it prints is not to be in our document. */
	fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (argc != 2 || fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
		fputs("usage: svrun-gpu-probe LIBCUDA\n", stderr);
		return 2;
	}
	if (load(&cu, argv[1], out))
		ask(&cu, out);
	tell("end");
	to = fdopen(fd, "w");
	if (!to || json_dumpf(out, to, JSON_COMPACT) < 0 || fclose(to) != 0)
		return 1;
	/* The library's own clean-up may hang as its start may, and has nothing left to do for us:
	 * the kernel takes back what a process had of a GPU. */
	_exit(0);
}
