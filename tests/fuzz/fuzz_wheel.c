/* Any bytes as a wheel: it is refused with a code, or all that it brings lies below its folders,
 * once, and its entry points are names. */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/wheel.h"
#include "images/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int drop(void *ctx, const void *data, size_t n, struct err *e)
{
	(void)data;
	(void)e;
	*(uint64_t *)ctx += n;
	return 0;
}

static void check(const struct wheel *w)
{
	char clean[TREE_PATH_MAX + 1];

	for (size_t i = 0; i < w->zip.n; i++) {
		const struct zip_member *m = &w->zip.v[i];
		uint64_t n = 0;
		int rc = tree_clean_path(m->name, clean, NULL);

		assert(rc == 0 && m->name[0] != '/' && !strchr(m->name, '\n'));
		rc = zip_read(&w->zip, m, drop, &n, NULL);
		assert(rc < 0 || n == m->size);
	}
	for (size_t i = 0; i < w->scripts.n; i++) {
		auto_free char *text = wheel_script_text(&w->scripts.v[i], "/usr/bin/python3");
		size_t lines = 0;

		for (const char *s = text; (s = strchr(s, '\n')); s++)
			lines++;
		assert(lines == 8);
		assert(!strchr(w->scripts.v[i].name, '/') && w->scripts.v[i].name[0] != '.');
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wheel w;
	struct err e = {0};
	int fd = memfd_create("wheel", MFD_CLOEXEC);

	assert(fd >= 0);
	if (sys_write_all(fd, data, size) < 0)
		abort();
	if (wheel_open(&w, fd, "demo-1.0-py3-none-any.whl", "3.11", &e) < 0) {
		assert(e.kind == ERR_CORRUPT || e.kind == ERR_UNSUPPORTED);
		assert(strstr(e.text, "SV17"));
	} else {
		check(&w);
		wheel_close(&w);
	}
	close(fd);
	return 0;
}
