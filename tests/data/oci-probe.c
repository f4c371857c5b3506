/* What oci-security.bats runs inside containers, beside probe.c: an attacker, or a container that behaves badly. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

/* CVE-2019-5736: for so many seconds hold on to the program file of every process that shows up, and try to
 * open it for writing, now and when the process is gone. */
static int hunt(int seconds)
{
	static int held[4096];
	struct stat self, st;
	size_t n = 0, seen = 0, written = 0;
	time_t end = time(NULL) + seconds;
	char path[64];

	if (stat("/proc/self/exe", &self) < 0)
		return 1;
	say("hunting");
	while (time(NULL) < end && n < 4096) {
		for (int pid = 2; pid < 400; pid++) {
			int fd;

			snprintf(path, sizeof(path), "/proc/%d/exe", pid);
			fd = open(path, O_PATH | O_CLOEXEC);
			if (fd < 0)
				continue;
			if (fstat(fd, &st) < 0 || st.st_ino == self.st_ino) {
				close(fd);
				continue;
			}
			held[n++] = fd;
			seen++;
			if (n == 4096)
				break;
		}
	}
	for (size_t i = 0; i < n; i++) {
		int fd;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", held[i]);
		fd = open(path, O_WRONLY);
		written += fd >= 0;
	}
	printf("seen %zu, opened for writing %zu\n", seen, written);
	return written > 0;
}

/* The names of all abstract sockets in sight that take a connection. */
static int sockets(void)
{
	FILE *f = fopen("/proc/net/unix", "r");
	char line[512];
	int found = 0;

	while (f && fgets(line, sizeof(line), f)) {
		struct sockaddr_un a = {.sun_family = AF_UNIX};
		char *at = strchr(line, '@');
		size_t len;
		int fd;

		if (!at)
			continue;
		at[strcspn(at, "\n")] = '\0';
		len = strlen(at);
		if (len >= sizeof(a.sun_path))
			continue;
		memcpy(a.sun_path + 1, at + 1, len - 1);
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&a, (socklen_t)(sizeof(a.sun_family) + len)) == 0) {
			printf("connected to %s\n", at);
			found = 1;
		}
		close(fd);
	}
	return found;
}

/* Double fork, away from session, group, terminal and signals, and stay. */
static void detach(void)
{
	if (fork() > 0)
		return;
	setsid();
	if (fork() > 0)
		_exit(0);
	for (int sig = 1; sig < 32; sig++)
		signal(sig, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	for (;;)
		sleep(1000);
}

static void bomb(void)
{
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGCHLD)
			signal(sig, SIG_IGN);
	say("bombing");
	for (;;) {
		if (fork() < 0)
			usleep(1000);
	}
}

static void fill(void)
{
	for (size_t i = 0;; i++) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return;
		memset(p, 1, 1 << 20);
	}
}

/* Ignore everything that can be ignored. */
static void stubborn(void)
{
	for (int sig = 1; sig < 32; sig++)
		signal(sig, SIG_IGN);
	say("ready");
	for (;;)
		sleep(1000);
}

/* Mount something over everything that a runtime may look at later. */
static void cover(void)
{
	static const char *const at[] = {"/proc", "/sys", "/dev"};

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		if (mount("cover", at[i], "tmpfs", 0, NULL) < 0)
			printf("%s: %s\n", at[i], strerror(errno));
	mkdir("/proc/self", 0755);
	if (symlink("/bin/sh", "/proc/self/exe") < 0)
		perror("link");
	say("covered");
	for (;;)
		sleep(1000);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "hunt") == 0 && argc == 3)
		return hunt(atoi(argv[2]));
	if (strcmp(what, "sockets") == 0)
		return sockets();
	if (strcmp(what, "detach") == 0) {
		for (int i = 0; i < 5; i++)
			detach();
		stubborn();
	} else if (strcmp(what, "bomb") == 0)
		bomb();
	else if (strcmp(what, "fill") == 0)
		fill();
	else if (strcmp(what, "stubborn") == 0)
		stubborn();
	else if (strcmp(what, "cover") == 0)
		cover();
	return 2;
}
