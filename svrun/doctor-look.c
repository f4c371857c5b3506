/* What the checks of svrun doctor share. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sys.h"
#include "svrun/doctor.h"

enum { TEXT_MAX = 1 << 20, CHILD_MS = 5000 };

/* Names of files, and what drivers print, are in it: text for terminals and for JSON. */
static char *clean(struct doctor *d, const char *text)
{
	char *copy = arena_strdup(&d->mem, text);

	str_plain(copy, "");
	if (!str_utf8(copy, strlen(copy)))
		for (char *c = copy; *c; c++)
			if ((unsigned char)*c >= 0x80)
				*c = '?';
	return copy;
}

void found(struct doctor *d, const char *id, enum finding_level level, const char *advice,
	const char *fmt, ...)
{
	char text[sizeof(((struct err *)0)->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	mem_grow(&d->v, &d->cap, d->n);
	d->v[d->n++] = (struct finding){.id = id,
		.level = level,
		.found = clean(d, text),
		.advice = advice ? clean(d, advice) : NULL};
}

void found_err(struct doctor *d, const char *id, enum finding_level level, const struct err *e,
	const char *advice)
{
	found(d, id, level, e->hint[0] ? e->hint : advice, "%s", e->text);
}

const char *look_text(struct doctor *d, int dirfd, const char *path)
{
	auto_buf struct buf b = BUF_INIT(TEXT_MAX);
	size_t n;

	if (dirfd == -1 || file_read(dirfd, path, &b, NULL) < 0)
		return NULL;
	n = b.len;
	while (n > 0 && b.data[n - 1] == '\n')
		n--;
	return arena_strndup(&d->mem, b.data ? b.data : "", n);
}

long long look_number(struct doctor *d, int dirfd, const char *path)
{
	const char *text = look_text(d, dirfd, path);
	uint64_t v;

	return text && str_u64(text, INT64_MAX, &v) == 0 ? (long long)v : -1;
}

bool look_word(const char *text, const char *word)
{
	static const char separators[] = " \t\n,[]";
	size_t n = strlen(word);

	while (text && *text) {
		size_t m;

		text += strspn(text, separators);
		m = strcspn(text, separators);
		if (m == n && strncmp(text, word, n) == 0)
			return true;
		text += m;
	}
	return false;
}

int look_in_child(int (*try)(void *ctx), void *ctx)
{
	struct pollfd end = {.events = POLLIN};
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(try(ctx));
	}
	auto_fd int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	end.fd = fd;
	if (fd >= 0 && poll(&end, 1, CHILD_MS) == 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : ETIMEDOUT;
}
