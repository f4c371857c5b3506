#include "builder/sandbox-watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/str.h"
#include "base/sys.h"

enum { TICK_MS = 200, PIECE = 64 << 10, COUNT_DEPTH_MAX = 64 };

static const uint64_t spare_most = UINT64_C(1) << 30; /* of a big disk; of a small one a tenth */

struct watching {
	struct watch *w;
	struct sandbox_end *end;
	double begun, next_look, next_count;
	uint64_t free_at_start, log_bytes;
	bool killed, ended, silent;
	unsigned char *piece;
};

/* ---- the disk ---- */

static int free_bytes(int fd, uint64_t *avail, uint64_t *size)
{
	struct statvfs fs;

	if (fstatvfs(fd, &fs) < 0)
		return -1;
	*avail = (uint64_t)fs.f_bavail * fs.f_frsize;
	*size = (uint64_t)fs.f_blocks * fs.f_frsize;
	return 0;
}

int watch_space(int fd, uint64_t asked, uint64_t *max, uint64_t *spare, struct err *e)
{
	uint64_t avail, size, left;

	if (free_bytes(fd, &avail, &size) < 0)
		return err_sys(e, "free space");
	*spare = size / 10 < spare_most ? size / 10 : spare_most;
	left = avail > *spare ? avail - *spare : 0;
	*max = asked && asked < left ? asked : asked ? left : left / 2;
	return 0;
}

/* Bytes on the disk below dirfd (closed here); what is deeper than anyone builds is not counted:
 * the free space of the disk is watched besides. */
static uint64_t count_bytes(int dirfd_, unsigned depth, dev_t dev)
{
	DIR *dir = dirfd_ < 0 ? NULL : fdopendir(dirfd_);
	uint64_t sum = 0;
	struct dirent *d;
	struct stat st;

	if (!dir) {
		sys_close_ref(&dirfd_);
		return 0;
	}
	while ((d = readdir(dir))) {
		if (str_eq(d->d_name, ".") || str_eq(d->d_name, "..") ||
			sys_fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			st.st_dev != dev)
			continue;
		sum += (uint64_t)st.st_blocks * 512 / (S_ISDIR(st.st_mode) ? 1 : st.st_nlink);
		if (S_ISDIR(st.st_mode) && depth < COUNT_DEPTH_MAX)
			sum += count_bytes(sys_openat(dirfd(dir), d->d_name,
						   O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0),
				depth + 1, dev);
	}
	closedir(dir);
	return sum;
}

/* Counting costs time: only when the disk has lost as much as it may have written, and seldom. */
static bool wrote_too_much(struct watching *x, uint64_t avail, double now)
{
	uint64_t lost = x->free_at_start > avail ? x->free_at_start - avail : 0, bytes;
	struct stat st;

	if (lost < x->w->max_bytes / 2 || now < x->next_count || sys_fstat(x->w->upper, &st) < 0)
		return false;
	bytes = count_bytes(sys_openat(x->w->upper, ".", O_RDONLY | O_DIRECTORY, 0), 0, st.st_dev);
	x->next_count = sys_now_ms() + 10 * (sys_now_ms() - now);
	return bytes + x->log_bytes > x->w->max_bytes;
}

/* ---- limits ---- */

static void kill_it(struct watching *x)
{
	x->killed = true;
	/* One that has ended meanwhile is what we wait for. */
	if (syscall(SYS_pidfd_send_signal, container_pidfd(x->w->c), SIGKILL, NULL, 0) < 0)
		return;
}

/* Whoever wants to tidy up before a signal ends us holds it back meanwhile (step-run.c). */
static bool told_to_end(void)
{
	sigset_t waiting;

	return sigpending(&waiting) == 0 &&
	       (sigismember(&waiting, SIGTERM) == 1 || sigismember(&waiting, SIGINT) == 1 ||
		       sigismember(&waiting, SIGHUP) == 1);
}

static void look(struct watching *x)
{
	double now = sys_now_ms();
	uint64_t avail, size;

	if (x->killed || now < x->next_look)
		return;
	x->next_look = now + TICK_MS;
	if (x->w->timeout_ms && now - x->begun >= x->w->timeout_ms)
		x->end->timed_out = true;
	else if (free_bytes(x->w->upper, &avail, &size) == 0 &&
		 (avail < x->w->spare_bytes || wrote_too_much(x, avail, now)))
		x->end->out_of_disk = true;
	else if (container_out_of_pids(x->w->c))
		x->end->out_of_pids = true;
	else if (!told_to_end())
		return;
	kill_it(x);
}

/* ---- output ---- */

/* What it prints beyond the limit, and until its end has come, is lost. */
static int take_output(struct watching *x, struct err *e)
{
	ssize_t n = sys_read(x->w->output, x->piece, PIECE);
	bool bounded = x->w->max_bytes > SANDBOX_LOG_MAX;
	uint64_t left = (bounded ? SANDBOX_LOG_MAX : x->w->max_bytes) - x->log_bytes, keep;

	if (n < 0)
		return errno == EAGAIN ? 0 : err_sys(e, "read its output");
	if (n == 0)
		x->silent = true;
	keep = (uint64_t)n < left ? (uint64_t)n : left;
	x->log_bytes += keep;
	if (keep > 0 && sys_write_all(x->w->log, x->piece, (size_t)keep) < 0) {
		err_sys(e, "write its log");
		return sys_hint_space(e, x->w->log, keep);
	}
	if (keep < (uint64_t)n && !x->killed) {
		*(bounded ? &x->end->too_much_output : &x->end->out_of_disk) = true;
		kill_it(x);
	}
	return 0;
}

/* ---- the loop ---- */

static int time_left(const struct watching *x)
{
	double left = x->next_look - sys_now_ms();

	return left > 0 ? (int)left + 1 : 0;
}

static int wait_once(struct watching *x, struct err *e)
{
	struct pollfd p[2] = {{.fd = x->ended ? -1 : container_pidfd(x->w->c), .events = POLLIN},
		{.fd = x->silent ? -1 : x->w->output, .events = POLLIN}};

	/* Its first process takes all others with it, so its output ends soon after. */
	if (poll(p, 2, x->killed || x->ended ? -1 : time_left(x)) < 0)
		return errno == EINTR ? 0 : err_sys(e, "poll");
	if (p[1].revents && take_output(x, e) < 0)
		return -1;
	if (p[0].revents)
		x->ended = true;
	if (!x->ended)
		look(x);
	return 0;
}

static int reap(struct watching *x, struct err *e)
{
	siginfo_t info;

	while (waitid(P_PIDFD, (id_t)container_pidfd(x->w->c), &info, WEXITED | __WALL) < 0)
		if (errno != EINTR)
			return err_sys(e, "wait for it");
	x->end->status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	return 0;
}

static void judge(struct watching *x)
{
	struct sandbox_end *end = x->end;
	uint64_t avail, size;

	end->seconds = (sys_now_ms() - x->begun) / 1000;
	if (end->status == 0 && !x->killed)
		return;
	end->out_of_memory = container_out_of_memory(x->w->c);
	if (x->killed)
		return;
	end->out_of_pids = container_out_of_pids(x->w->c);
	/* It was told so by the kernel, before we saw it. */
	end->out_of_disk =
		end->status == 128 + SIGXFSZ ||
		(free_bytes(x->w->upper, &avail, &size) == 0 && avail < x->w->spare_bytes);
}

int watch_run(struct watch *w, struct sandbox_end *end, struct err *e)
{
	struct watching x = {.w = w, .end = end, .begun = sys_now_ms()};
	uint64_t size;
	int rc = 0;

	if (free_bytes(w->upper, &x.free_at_start, &size) < 0)
		return err_sys(e, "free space");
	if (fcntl(w->output, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, "pipe");
	x.piece = mem_alloc(PIECE);
	while (rc == 0 && (!x.ended || !x.silent))
		rc = wait_once(&x, e);
	free(x.piece);
	sys_close_ref(&w->output);
	if (rc < 0 || reap(&x, e) < 0)
		return -1;
	judge(&x);
	return 0;
}
