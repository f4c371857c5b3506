/* A libcuda.so.1 for tests: it serves the calls that svrun-gpu-probe makes, from memory, and can
 * refuse each, hang, lie and crash.
 *
 * What it does not prove: that any of this works with NVIDIA's driver. No GPU is asked, no device
 * node opened, no kernel module entered; "GPU memory" is malloc(). How long real calls take, which
 * other libraries and nodes they need, what they do when a GPU is broken, and every call that is
 *not here (the runtime API needs tables that only NVIDIA's library has, so PyTorch and CUDA samples
 *do not run with it) stay unproved. It does prove that svrun stands what such a library may do.
 *
 * What it is to do stands, a line each, in the file of the same name with ".script" behind it
 * (the library's own path: the probe has no environment to tell it anything):
 *
 *	gpus 2            how many (1)
 *	version 13000     what cuDriverGetVersion says
 *	fail CALL CODE    "fail cuInit 802"
 *	hang CALL         never returns; SIGTERM is ignored
 *	crash CALL        SIGSEGV
 *	child CALL        forks a process that holds the output open, and hangs
 *	print CALL        garbage on stdout; on every open descriptor with "print-all CALL"
 *	exit CALL         exits with status 0, having said nothing
 *	uuid HEX          of all GPUs alike (32 digits); else bytes that count up
 *	name TEXT         name-long: 10,000 bytes of it; name-bytes: no UTF-8; name-escape: a
 *sequence memory BYTES      (150754820096) copy-wrong        one bit is turned on the way back mig
 *each device is a MIG device of a GPU with another UUID
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct uuid {
	unsigned char bytes[16];
};

/* The rest of the script's line that begins with `word` (and, when given, then `call`), NULL
 * without one. What it returns is never freed: the process does not live long. */
static char *script(const char *word, const char *call)
{
	char line[512];
	static const char here;
	char path[4096];
	Dl_info info;
	FILE *f;

	if (!dladdr(&here, &info))
		return NULL;
	snprintf(path, sizeof(path), "%s.script", info.dli_fname);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		size_t n = strlen(word), m = call ? strlen(call) : 0;
		char *p = line + n;

		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, word, n) != 0 || (*p && *p++ != ' '))
			continue;
		if (call && (strncmp(p, call, m) != 0 || (p[m] && p[m] != ' ')))
			continue;
		fclose(f);
		return strdup(p + m);
	}
	if (f)
		fclose(f);
	return NULL;
}

static void hang(void)
{
	signal(SIGTERM, SIG_IGN);
	for (;;)
		pause();
}

static void print_garbage(int from, int to)
{
	static const char garbage[] = "\033[2J{\"garbage\": \xff\n";

	for (int fd = from; fd <= to; fd++)
		if (write(fd, garbage, sizeof(garbage) - 1) < 0)
			continue;
}

/* What the script wants of this call; the code to return. */
static int played(const char *call)
{
	char *code = script("fail", call);

	if (script("crash", call))
		raise(SIGSEGV);
	if (script("exit", call))
		_exit(0);
	if (script("print", call))
		print_garbage(1, 1);
	if (script("print-all", call))
		print_garbage(1, 20);
	if (script("child", call) && fork() >= 0)
		hang();
	if (script("hang", call))
		hang();
	return code ? (int)strtol(code, NULL, 10) : 0;
}

#define PLAY()                                                                                     \
	do {                                                                                       \
		int played_ = played(__func__);                                                    \
		if (played_ != 0)                                                                  \
			return played_;                                                            \
	} while (0)

int cuInit(unsigned flags)
{
	PLAY();
	return flags == 0 ? 0 : 1;
}

int cuDriverGetVersion(int *version)
{
	char *v = script("version", NULL);

	PLAY();
	*version = v ? (int)strtol(v, NULL, 10) : 13000;
	return 0;
}

int cuDeviceGetCount(int *n)
{
	char *v = script("gpus", NULL);

	*n = v ? (int)strtol(v, NULL, 10) : 1;
	PLAY();
	return 0;
}

int cuDeviceGet(int *d, int ordinal)
{
	PLAY();
	*d = ordinal;
	return 0;
}

int cuDeviceGetName(char *name, int size, int d)
{
	char *v = script("name", NULL);

	PLAY();
	snprintf(name, (size_t)size, "%s", v ? v : "SVRUN Test GPU");
	if (script("name-long", NULL)) {
		memset(name, 'x', 10000);
		name[10000] = '\0';
	}
	if (script("name-bytes", NULL))
		snprintf(name, (size_t)size, "GPU \xff\xfe");
	if (script("name-escape", NULL))
		snprintf(name, (size_t)size, "GPU \033[2J");
	(void)d;
	return 0;
}

static void uuid_of(struct uuid *u, int d, unsigned char kind)
{
	char *v = script("uuid", NULL);

	for (unsigned i = 0; i < 16; i++) {
		char two[3] = {0};

		u->bytes[i] = (unsigned char)(i + (i == 15 ? 16 * (unsigned)d : 0));
		if (v && strlen(v) == 32) {
			memcpy(two, v + 2 * i, 2);
			u->bytes[i] = (unsigned char)strtoul(two, NULL, 16);
		}
	}
	u->bytes[0] = (unsigned char)(u->bytes[0] + kind);
}

int cuDeviceGetUuid(struct uuid *u, int d)
{
	PLAY();
	uuid_of(u, d, 0);
	return 0;
}

int cuDeviceGetUuid_v2(struct uuid *u, int d)
{
	PLAY();
	uuid_of(u, d, script("mig", NULL) ? 0x80 : 0);
	return 0;
}

int cuDeviceGetPCIBusId(char *id, int size, int d)
{
	PLAY();
	snprintf(id, (size_t)size, "0000:%02X:00.0", 0x65 + d);
	return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int d)
{
	char *v = script("memory", NULL);

	PLAY();
	*bytes = v ? strtoull(v, NULL, 10) : 150754820096;
	(void)d;
	return 0;
}

int cuDeviceGetAttribute(int *v, int attribute, int d)
{
	PLAY();
	*v = attribute == 75 ? 9 : attribute == 16 ? 132 : attribute == 32 ? 1 : 0;
	(void)d;
	return 0;
}

int cuDevicePrimaryCtxRetain(void **c, int d)
{
	static int context;

	PLAY();
	*c = &context;
	(void)d;
	return 0;
}

int cuDevicePrimaryCtxRelease_v2(int d)
{
	PLAY();
	(void)d;
	return 0;
}

int cuCtxSetCurrent(void *c)
{
	PLAY();
	return c ? 0 : 201;
}

int cuMemAlloc_v2(unsigned long long *p, size_t n)
{
	PLAY();
	*p = (unsigned long long)(size_t)malloc(n);
	return *p ? 0 : 2;
}

int cuMemFree_v2(unsigned long long p)
{
	PLAY();
	free((void *)(size_t)p);
	return 0;
}

int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t n)
{
	PLAY();
	memcpy((void *)(size_t)to, from, n);
	return 0;
}

int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t n)
{
	PLAY();
	memcpy(to, (void *)(size_t)from, n);
	if (script("copy-wrong", NULL))
		((unsigned char *)to)[n / 2] ^= 4;
	return 0;
}

int cuGetErrorName(int code, const char **name)
{
	static char text[32];

	snprintf(text, sizeof(text), "CUDA_ERROR_TEST_%d", code);
	*name = text;
	return 0;
}
