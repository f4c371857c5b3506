/* What scripts/gpu-check runs in containers and roots: looks at devices, files, the loader and the
 * driver, and prints one line for each thing. Words of more than one look are divided by "--".
 *
 *	open PATH...          "PATH ok" or the error's name, as opening for reading and writing
 *	mknod PATH MAJOR MINOR
 *	unlink PATH...
 *	cat PATH              ls DIR
 *	dlopen NAME           where the loader found it
 *	cuda                  cuInit, a context, 1 MiB there and back, a kernel from PTX
 *
 * Linked statically (-DSTATIC) it has no dlopen and no cuda. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

static void result(const char *what, int rc)
{
	printf("%s %s\n", what, rc < 0 ? strerrorname_np(errno) : "ok");
}

static void look_open(int n, char **v)
{
	for (int i = 0; i < n; i++) {
		int fd = open(v[i], O_RDWR | O_CLOEXEC | O_NONBLOCK);

		result(v[i], fd);
		if (fd >= 0)
			close(fd);
	}
}

static void look_mknod(int n, char **v)
{
	if (n == 3)
		result(v[0], mknod(v[0], S_IFCHR | 0666,
				     makedev((unsigned)strtoul(v[1], NULL, 10),
					     (unsigned)strtoul(v[2], NULL, 10))));
}

static void look_unlink(int n, char **v)
{
	for (int i = 0; i < n; i++)
		result(v[i], unlink(v[i]));
}

static void look_cat(int n, char **v)
{
	char b[4096];
	ssize_t got;
	int fd = n > 0 ? open(v[0], O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		result(n > 0 ? v[0] : "cat", -1);
	while (fd >= 0 && (got = read(fd, b, sizeof(b))) > 0)
		fwrite(b, 1, (size_t)got, stdout);
	if (fd >= 0)
		close(fd);
}

static void look_ls(int n, char **v)
{
	struct dirent **list;
	int count = n > 0 ? scandir(v[0], &list, NULL, alphasort) : -1;

	if (count < 0)
		result(n > 0 ? v[0] : "ls", -1);
	for (int i = 0; i < count; i++)
		if (list[i]->d_name[0] != '.')
			puts(list[i]->d_name);
}

#ifndef STATIC
static void look_dlopen(int n, char **v)
{
	struct link_map *map;
	void *lib = n > 0 ? dlopen(v[0], RTLD_NOW) : NULL;

	if (lib && dlinfo(lib, RTLD_DI_LINKMAP, &map) == 0)
		printf("%s %s\n", v[0], map->l_name);
	else
		printf("%s %s\n", n > 0 ? v[0] : "dlopen", dlerror());
}

/* ---- CUDA's driver API; source: cuda.h of CUDA 13.0 ---- */

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void *lib;

/* The result of a call with up to three words; -1 when the library lacks it. */
static int call(const char *name, void *a, void *b, void *c)
{
	int (*f)(void *, void *, void *) = NULL;
	void *p = dlsym(lib, name);

	memcpy(&f, &p, sizeof(f));
	return f ? f(a, b, c) : -1;
}

static void *word(unsigned long n)
{
	return (void *)n;
}

static const char ptx[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
			  ".visible .entry nothing() { ret; }\n";

static void use_gpu(void)
{
	enum { SIZE = 1 << 20 };
	static unsigned char there[SIZE], back[SIZE];
	unsigned long p = 0;
	void *context = NULL, *module = NULL;
	double from = now_ms();
	int device = 0, rc;

	printf("device %d\n", call("cuDeviceGet", &device, NULL, NULL));
	rc = call("cuDevicePrimaryCtxRetain", &context, word((unsigned long)device), NULL);
	printf("context %d %.1f ms\n", rc, now_ms() - from);
	if (rc != 0)
		return;
	call("cuCtxSetCurrent", context, NULL, NULL);
	for (size_t i = 0; i < SIZE; i++)
		there[i] = (unsigned char)(i * 31 + i / 251);
	rc = call("cuMemAlloc_v2", &p, word(SIZE), NULL);
	if (rc == 0)
		rc = call("cuMemcpyHtoD_v2", word(p), there, word(SIZE));
	if (rc == 0)
		rc = call("cuMemcpyDtoH_v2", back, word(p), word(SIZE));
	printf("copy %d %s\n", rc, rc == 0 && memcmp(there, back, SIZE) == 0 ? "right" : "wrong");
	printf("jit %d\n",
		call("cuModuleLoadData", &module, word((unsigned long)(size_t)ptx), NULL));
}

static void look_cuda(int n, char **v)
{
	int version = 0, count = 0, rc;
	double from = now_ms();

	(void)n;
	(void)v;
	lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib) {
		printf("library %s\n", dlerror());
		return;
	}
	call("cuDriverGetVersion", &version, NULL, NULL);
	printf("load %.1f ms, CUDA %d\n", now_ms() - from, version);
	from = now_ms();
	rc = call("cuInit", NULL, NULL, NULL);
	printf("init %d %.1f ms\n", rc, now_ms() - from);
	if (rc != 0)
		return;
	call("cuDeviceGetCount", &count, NULL, NULL);
	printf("count %d\n", count);
	if (count > 0)
		use_gpu();
}
#endif

static const struct {
	const char *name;
	void (*look)(int n, char **v);
} looks[] = {{"open", look_open}, {"mknod", look_mknod}, {"unlink", look_unlink}, {"cat", look_cat},
	{"ls", look_ls},
#ifndef STATIC
	{"dlopen", look_dlopen}, {"cuda", look_cuda},
#endif
	{NULL, NULL}};

int main(int argc, char **argv)
{
	for (int i = 1; i < argc;) {
		int from = i + 1, k = 0;

		while (looks[k].name && strcmp(looks[k].name, argv[i]) != 0)
			k++;
		for (i = from; i < argc && strcmp(argv[i], "--") != 0;)
			i++;
		if (!looks[k].look)
			return 2;
		looks[k].look(i - from, argv + from);
		fflush(stdout);
		i++;
	}
	return 0;
}
