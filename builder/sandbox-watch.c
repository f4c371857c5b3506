#include "builder/sandbox-watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/str.h"
#include "base/sys.h"

enum {
	TICK_MS = 200,
	TICK_LEAST_MS = 10,
	FAST_DISK_PER_MS = 4000000,
	PIECE = 64 << 10,
	COUNT_DEPTH_MAX = 64
};

static const uint64_t spare_most = UINT64_C(1) << 30; /* of a big disk; of a small one a tenth */

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
	/* Half: what it wrote is written once more, to the pool. */
	left = avail > *spare ? (avail - *spare) / 2 : 0;
	*max = asked && asked < left ? asked : left;
	return 0;
}

/* Bytes on the disk below dirfd (closed here) of what changed since then; what is deeper than
 * anyone builds is not counted: the free space of the disk is watched besides. */
static uint64_t count_bytes(int dirfd_, unsigned depth, dev_t dev, time_t since)
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
		if (st.st_ctime >= since)
			sum += (uint64_t)st.st_blocks * 512 /
			       (S_ISDIR(st.st_mode) ? 1 : st.st_nlink);
		if (S_ISDIR(st.st_mode) && depth < COUNT_DEPTH_MAX)
			sum += count_bytes(sys_openat(dirfd(dir), d->d_name,
						   O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0),
				depth + 1, dev, since);
	}
	closedir(dir);
	return sum;
}

static uint64_t count_all(const struct watch *w)
{
	struct stat st;

	if (sys_fstat(w->upper, &st) < 0)
		return 0;
	return count_bytes(sys_openat(w->upper, ".", O_RDONLY | O_DIRECTORY, 0), 0, st.st_dev, 0);
}

uint64_t watch_written(const struct watch *w)
{
	uint64_t sum = count_all(w) + w->log_bytes;
	struct stat st;

	if (sys_fstat(w->upper, &st) < 0)
		return sum;
	for (size_t i = 0; i < w->nbinds; i++)
		if (w->binds[i].writable)
			sum += count_bytes(
				sys_open(w->binds[i].host, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0),
				0, st.st_dev, w->since);
	return sum;
}

/* Counting costs time: seldom, and where nobody asked for a limit, only when the disk has lost as
 * much as it may have written. */
static bool wrote_too_much(struct watch *w, uint64_t avail, double now)
{
	uint64_t lost = w->free_at_start > avail ? w->free_at_start - avail : 0, bytes;

	if ((!w->exact && lost < w->max_bytes / 2) || now < w->next_count)
		return false;
	bytes = count_all(w);
	w->next_count = sys_now_ms() + 10 * (sys_now_ms() - now);
	return bytes + w->log_bytes > w->max_bytes + w->own_bytes;
}

/* ---- limits ---- */

static void kill_it(struct watch *w)
{
	w->killed = true;
	/* One that has ended meanwhile is what we wait for. */
	if (syscall(SYS_pidfd_send_signal, container_pidfd(w->c), SIGKILL, NULL, 0) < 0)
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

static bool *over_limit(struct watch *w)
{
	return w->exact ? &w->end->wrote_too_much : &w->end->out_of_disk;
}

/* The nearer the disk is to what must stay free, the sooner the next look. */
static double next_tick(const struct watch *w, uint64_t avail)
{
	uint64_t left = avail > w->spare_bytes ? avail - w->spare_bytes : 0;
	double ms = (double)(left / FAST_DISK_PER_MS);

	return ms < TICK_LEAST_MS ? TICK_LEAST_MS : ms < TICK_MS ? ms : TICK_MS;
}

static void look(struct watch *w)
{
	double now = sys_now_ms();
	uint64_t avail = 0, size;
	bool known;

	if (w->killed || now < w->next_look)
		return;
	known = free_bytes(w->upper, &avail, &size) == 0;
	w->next_look = now + (known ? next_tick(w, avail) : TICK_MS);
	w->disk_short = known && avail < w->spare_bytes;
	if (w->timeout_ms && now - w->begun >= w->timeout_ms)
		w->end->timed_out = true;
	else if (w->disk_short)
		return;
	else if (known && wrote_too_much(w, avail, now))
		*over_limit(w) = true;
	else if (container_out_of_pids(w->c))
		w->end->out_of_pids = true;
	else if (!told_to_end())
		return;
	kill_it(w);
}

/* ---- output ---- */

/* What it prints beyond the limit, and until its end has come, is lost. */
static int take_output(struct watch *w, struct err *e)
{
	ssize_t n = sys_read(w->output, w->piece, PIECE);
	bool bounded = w->max_bytes > SANDBOX_LOG_MAX;
	uint64_t left = (bounded ? SANDBOX_LOG_MAX : w->max_bytes) - w->log_bytes, keep;

	if (n < 0)
		return errno == EAGAIN ? 0 : err_sys(e, "read its output");
	if (n == 0)
		w->silent = true;
	keep = (uint64_t)n < left ? (uint64_t)n : left;
	w->log_bytes += keep;
	if (keep > 0 && sys_write_all(w->log, w->piece, (size_t)keep) < 0) {
		err_sys(e, "write its log");
		return sys_hint_space(e, w->log, keep);
	}
	if (keep < (uint64_t)n && !w->killed) {
		*(bounded ? &w->end->too_much_output : over_limit(w)) = true;
		kill_it(w);
	}
	return 0;
}

/* ---- waiting ---- */

static int time_left(const struct watch *w)
{
	double left = w->next_look - sys_now_ms();

	return left > 0 ? (int)left + 1 : 0;
}

int watch_begin(struct watch *w, struct err *e)
{
	uint64_t size;

	w->begun = sys_now_ms();
	w->since = time(NULL);
	if (free_bytes(w->upper, &w->free_at_start, &size) < 0)
		return err_sys(e, "free space");
	if (fcntl(w->output, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, "pipe");
	w->own_bytes = w->exact ? count_all(w) : 0;
	w->piece = mem_alloc(PIECE);
	return 0;
}

void watch_poll(const struct watch *w, struct pollfd p[WATCH_FDS])
{
	p[0] = (struct pollfd){.fd = w->ended ? -1 : container_pidfd(w->c), .events = POLLIN};
	p[1] = (struct pollfd){.fd = w->silent ? -1 : w->output, .events = POLLIN};
}

/* Its first process takes all others with it, so its output ends soon after. */
int watch_timeout(const struct watch *w)
{
	return w->killed || w->ended ? -1 : time_left(w);
}

int watch_handle(struct watch *w, const struct pollfd p[WATCH_FDS], struct err *e)
{
	if (p[1].revents && take_output(w, e) < 0)
		return -1;
	if (p[0].revents)
		w->ended = true;
	if (!w->ended)
		look(w);
	return 0;
}

bool watch_over(const struct watch *w)
{
	return w->ended && w->silent;
}

void watch_stop(struct watch *w)
{
	if (!w->killed && !w->ended)
		kill_it(w);
}

static int reap(struct watch *w, struct err *e)
{
	siginfo_t info;

	while (waitid(P_PIDFD, (id_t)container_pidfd(w->c), &info, WEXITED | __WALL) < 0)
		if (errno != EINTR)
			return err_sys(e, "wait for it");
	w->end->status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	return 0;
}

/* What it was told by the kernel, or wrote at last, before we saw it. */
static void judge(struct watch *w)
{
	struct sandbox_end *end = w->end;
	uint64_t avail, size;

	end->seconds = (sys_now_ms() - w->begun) / 1000;
	w->next_count = 0;
	if (!w->killed && (end->status == 128 + SIGXFSZ ||
				  (w->exact && wrote_too_much(w, w->free_at_start, 0))))
		*over_limit(w) = true;
	if (end->status == 0 && !w->killed)
		return;
	end->out_of_memory = container_out_of_memory(w->c);
	if (w->killed)
		return;
	end->out_of_pids = container_out_of_pids(w->c);
	if (free_bytes(w->upper, &avail, &size) == 0 && avail < w->spare_bytes)
		end->out_of_disk = true;
}

int watch_finish(struct watch *w, struct err *e)
{
	if (reap(w, e) < 0)
		return -1;
	judge(w);
	return 0;
}

void watch_fini(struct watch *w)
{
	free(w->piece);
	w->piece = NULL;
	sys_close_ref(&w->output);
}
