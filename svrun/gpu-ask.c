#include "svrun/gpu-ask.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/str.h"
#include "base/sys.h"
#include "gpu/view.h"
#include "svrun/command.h"
#include "svrun/gpu-answer.h"

/* Its folder for LD_LIBRARY_PATH, because libcuda opens its JIT compiler by name; to free(). One
 * that has a libc is a whole system's: the host's loader knows it, or, in the root of a driver
 * container, must not see it, or the probe would start with a libc of another. */
static char *folder_of(const char *library)
{
	const char *slash = strrchr(library, '/');
	auto_free char *folder = slash ? mem_printf("%.*s", (int)(slash - library), library) : NULL;
	auto_free char *libc = folder ? mem_printf("%s/libc.so.6", folder) : NULL;

	return libc && access(libc, F_OK) < 0 ? steal_ptr(&folder) : NULL;
}

static char *find_library(const struct gpu_host *h, const struct gpu_inventory *i, struct err *e)
{
	struct driver_files f;
	char *path = NULL;

	if (!i->driver) {
		err_set(e, ERR_NOT_FOUND, "NVIDIA's kernel module is not loaded");
		return NULL;
	}
	if (driver_files_find(&f, h, i->driver, GPU_CAP_COMPUTE, e) < 0)
		return NULL;
	for (size_t k = 0; k < f.n && !path; k++)
		if (f.v[k].soname && str_eq(f.v[k].soname, "libcuda.so.1") && !f.v[k].bits32)
			path = mem_printf("%s%s", h->prefix, f.v[k].source);
	driver_files_fini(&f);
	if (!path)
		err_set(e, ERR_NOT_FOUND, "no libcuda.so.1 among the driver's files");
	return path;
}

/* The call that it was in: its last line of "> NAME". */
static void last_call(const struct buf *said, char out[64])
{
	const char *line = said->data;

	snprintf(out, 64, "its start");
	while (line && *line) {
		size_t n = strcspn(line, "\n");

		/* the library writes there, too */
		if (n > 2 && n < 64 && line[0] == '>' && line[1] == ' ' &&
			strspn(line + 2, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
					 "0123456789") == n - 2)
			snprintf(out, 64, "%.*s", (int)n - 2, line + 2);
		line += n + (line[n] == '\n');
	}
}

static json_t *judge(int status, const struct buf *out, const struct buf *said, struct err *e)
{
	json_t *answer;
	char call[64];

	last_call(said, call);
	if (status > 128) {
		err_set(e, ERR_SYSTEM, "the driver's library crashed in %s (%s)", call,
			strsignal(status - 128));
		err_hint(e, "look at `dmesg | grep -i -e xid -e nvrm`, and install the driver "
			    "again when that "
			    "says nothing");
		return NULL;
	}
	if (status != 0 || out->len == 0) {
		err_set(e, ERR_SYSTEM, "the probe ended with status %d in %s, and said nothing",
			status, call);
		return NULL;
	}
	answer = gpu_answer_read(out->data, out->len, e);
	if (!answer)
		err_ctx(e, "what the driver's library says");
	return answer;
}

static json_t *run(const char *program, const char *library, unsigned seconds, struct err *e)
{
	auto_free char *folder = folder_of(library);
	auto_free char *path = mem_printf("LD_LIBRARY_PATH=%s", folder ? folder : "");
	const char *const argv[] = {program, library, NULL};
	/* PCI's order is the inventory's; nothing is to be kept in a home that it does not have. */
	const char *const env[] = {"CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_CACHE_DISABLE=1",
		"PATH=/usr/bin:/bin:/usr/sbin:/sbin", folder ? path : NULL, NULL};
	auto_buf struct buf out = BUF_INIT(GPU_ANSWER_MAX), said = BUF_INIT(GPU_ANSWER_MAX);
	struct proc p = {.argv = argv,
		.env = env,
		.dir = "/",
		.out = &out,
		.errout = &said,
		.seconds = seconds,
		.group = true};
	int status = proc_run(&p, e);
	char call[64];

	if (status >= 0)
		return judge(status, &out, &said, e);
	if (said.len == 0) /* it could not be started */
		return NULL;
	last_call(&said, call);
	err_ctx(e, "the driver's library hangs in %s", call);
	err_hint(e,
		"look at `dmesg | grep -i -e xid -e nvrm`; a GPU that hangs needs a reset, or the "
		"host to boot again");
	return NULL;
}

json_t *gpu_ask(const struct gpu_host *h, const struct gpu_inventory *i, const char *library,
	unsigned seconds, struct err *e)
{
	auto_free char *program = command_find("svrun-gpu-probe", e);
	auto_free char *found = program && !library ? find_library(h, i, e) : NULL;

	if (!program || (!library && !found))
		return NULL;
	return run(program, library ? library : found, seconds, e);
}
