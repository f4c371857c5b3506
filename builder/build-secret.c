#include "builder/build-secret.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"

enum { ID_MAX = 64 };

/* ---- memory that is neither swapped out, nor dumped, nor left behind ---- */

static size_t whole_pages(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (n + page - 1) / page * page;
}

static void *locked_new(size_t n, struct err *e)
{
	size_t size = whole_pages(n);
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mlock(p, size) < 0) {
		err_sys(e, "lock memory for a secret");
		if (p != MAP_FAILED)
			munmap(p, size);
		return NULL;
	}
	/* Kernels and limits that refuse these do not make the secret less usable. */
	(void)madvise(p, size, MADV_DONTDUMP);
	(void)madvise(p, size, MADV_DONTFORK);
	return p;
}

static void locked_free(void *p, size_t n)
{
	if (!p)
		return;
	explicit_bzero(p, n);
	munmap(p, whole_pages(n));
}

/* ---- loading ---- */

static bool is_id(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("_.-", s[i]))
			return false;
	return n > 0 && n <= ID_MAX && isalnum((unsigned char)s[0]);
}

static int read_value(struct build_secret *s, const char *path, struct err *e)
{
	struct stat st;
	auto_fd int fd = sys_open(path, O_RDONLY, 0);

	if (fd < 0 || sys_fstat(fd, &st) < 0)
		return err_sys(e, "open %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_USAGE, "%s is no file", path);
	if (st.st_size > BUILD_SECRET_MAX)
		return err_set(e, ERR_USAGE, "%s is longer than %d bytes", path, BUILD_SECRET_MAX);
	s->value = locked_new(BUILD_SECRET_MAX, e);
	if (!s->value)
		return -1;
	s->n = (size_t)st.st_size;
	if (sys_read_all(fd, s->value, s->n) < 0)
		return err_sys(e, "read %s", path);
	if (s->n && s->value[s->n - 1] == '\n')
		s->n--;
	if (s->n && s->value[s->n - 1] == '\r')
		s->n--;
	if (s->n >= BUILD_SECRET_MIN)
		return 0;
	err_set(e, ERR_USAGE, "%s: the secret is shorter than %d bytes", path, BUILD_SECRET_MIN);
	return err_hint(e,
		"svrun looks for it in all that the build writes; this would be found by "
		"chance");
}

int build_secret_load(struct build_secret *s, const char *option, struct err *e)
{
	const char *eq = strchr(option, '=');

	*s = (struct build_secret){0};
	if (!eq || !is_id(option, (size_t)(eq - option)) || !eq[1]) {
		err_set(e, ERR_USAGE, "--secret: expected ID=FILE");
		return err_hint(e, "ID is the one that the manifest's \"secrets\" name");
	}
	s->id = mem_printf("%.*s", (int)(eq - option), option);
	return read_value(s, eq + 1, e) < 0 ? err_ctx(e, "--secret %s", s->id) : 0;
}

void build_secret_fini(struct build_secret *s)
{
	char *id;

	memcpy(&id, &s->id, sizeof(id)); /* ours, though nobody may change it */
	free(id);
	locked_free(s->value, BUILD_SECRET_MAX);
	*s = (struct build_secret){0};
}
