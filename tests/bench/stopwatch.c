/* Times commands that take milliseconds: no shell, no calibration, one line after another, so that
 *the tools of a comparison alternate without idle gaps between them. Link it statically: what a
 *vfork'ed child counts as its peak memory begins with ours.
 *
 *	stopwatch [-n ROUNDS] [-w WARMUPS] [-a] [-c] [-r FILE] PLAN
 *
 * A plan has one command a line, `NAME COMMAND ARGUMENT...`, run in each round in that order; {n}
 *in an argument is the number of the round. Lines of the name "-" are run and not measured. "sleep
 *MS" idles, and "reap" waits for all that was left to us by its parent, which a measured command
 *must not leave. A command that fails ends it all with exit status 1.
 *
 * Lines of the same command that follow each other, "COMMAND:TOOL", take turns at being first: what
 *a command leaves to the kernel still runs when the next begins.
 *
 * Prints one line for each name: NAME MEDIAN MIN P90 (microseconds) PEAK (KiB, with its children).
 * -a starts all rounds of a plan of one line at once; -r keeps each time, as "NAME ROUND TIME". */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINES = 64, ARGS = 96, ROUNDS = 4096, ARG_MAX_LEN = 512 };

struct line {
	char *name, *args[ARGS + 1];
	uint32_t times[ROUNDS];
	size_t n;
	long peak;
};

struct plan {
	struct line *v;
	size_t n;
	FILE *raw;
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
};

_Noreturn static void die(const char *what, const char *why)
{
	fprintf(stderr, "stopwatch: %s: %s\n", what, why);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void plan_read(struct plan *p, const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t cap = 0;

	if (!f)
		die(path, strerror(errno));
	p->v = calloc(LINES, sizeof(*p->v));
	while (p->v && getline(&text, &cap, f) > 0) {
		struct line *l = &p->v[p->n];
		char *save = NULL, *word = strtok_r(text, " \t\n", &save);
		size_t n = 0;

		if (!word || *word == '#')
			continue;
		if (p->n == LINES - 1)
			die(path, "too many lines");
		l->name = strdup(word);
		while ((word = strtok_r(NULL, " \t\n", &save))) {
			if (n == ARGS)
				die(path, "too many arguments");
			l->args[n++] = strdup(word);
		}
		p->n++;
	}
	free(text);
	fclose(f);
}

/* arg with {n} replaced, in room. */
static char *expand(const char *arg, size_t round, char room[ARG_MAX_LEN])
{
	const char *at = strstr(arg, "{n}");

	if (!at)
		snprintf(room, ARG_MAX_LEN, "%s", arg);
	else
		snprintf(room, ARG_MAX_LEN, "%.*s%zu%s", (int)(at - arg), arg, round, at + 3);
	return room;
}

static pid_t start(const struct plan *p, const struct line *l, size_t round)
{
	static char room[ARGS][ARG_MAX_LEN];
	char *argv[ARGS + 1] = {NULL};
	pid_t pid;
	int rc;

	for (size_t i = 0; l->args[i]; i++)
		argv[i] = expand(l->args[i], round, room[i]);
	if (!argv[0])
		die(l->name, "no command");
	rc = posix_spawn(&pid, argv[0], &p->files, &p->attr, argv, environ);
	if (rc)
		die(argv[0], strerror(rc));
	return pid;
}

static void check(const struct line *l, size_t round, int status)
{
	char text[64];

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	snprintf(text, sizeof(text), "%s %d in round %zu",
		WIFEXITED(status) ? "exit status" : "signal",
		WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), round);
	die(l->name, text);
}

static void note(struct plan *p, struct line *l, size_t round, uint64_t took, long peak)
{
	if (l->n < ROUNDS)
		l->times[l->n++] = (uint32_t)took;
	if (peak > l->peak)
		l->peak = peak;
	if (p->raw)
		fprintf(p->raw, "%s %zu %u\n", l->name, round, (unsigned)took);
}

static void run_line(struct plan *p, struct line *l, size_t round, bool measured)
{
	struct rusage use;
	uint64_t begin;
	pid_t pid;
	int status;

	if (strcmp(l->name, "sleep") == 0) {
		usleep((useconds_t)(1000 * atoi(l->args[0] ? l->args[0] : "0")));
		return;
	}
	if (strcmp(l->name, "reap") == 0) {
		while (wait(NULL) > 0)
			;
		return;
	}
	begin = now();
	pid = start(p, l, round);
	while (wait4(pid, &status, 0, &use) < 0)
		if (errno != EINTR)
			die(l->name, strerror(errno));
	if (measured && strcmp(l->name, "-") != 0)
		note(p, l, round, now() - begin, use.ru_maxrss);
	check(l, round, status);
}

/* How many lines from the k-th on are of the same command. */
static size_t group_at(const struct plan *p, size_t k)
{
	const char *name = p->v[k].name, *colon = strchr(name, ':');
	size_t n = 1, len = colon ? (size_t)(colon - name) + 1 : 0;

	while (colon && k + n < p->n && strncmp(p->v[k + n].name, name, len) == 0)
		n++;
	return n;
}

static void run_round(struct plan *p, size_t round, bool measured)
{
	size_t n;

	for (size_t k = 0; k < p->n; k += n) {
		n = group_at(p, k);
		for (size_t i = 0; i < n; i++)
			run_line(p, &p->v[k + (i + round) % n], round, measured);
	}
}

/* All rounds of the first line at once; each takes as long as it ended after the first began. */
static void run_at_once(struct plan *p, size_t rounds)
{
	struct line *l = &p->v[0];
	uint64_t begin = now();
	struct rusage use;
	int status, bad = 0;

	for (size_t i = 0; i < rounds; i++)
		start(p, l, i);
	for (size_t i = 0; i < rounds; i++) {
		if (wait4(-1, &status, 0, &use) < 0)
			die(l->name, strerror(errno));
		note(p, l, i, now() - begin, use.ru_maxrss);
		bad += status != 0;
	}
	if (bad) {
		fprintf(stderr, "stopwatch: %s: %d of %zu failed\n", l->name, bad, rounds);
		exit(1);
	}
}

static int by_time(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void print(struct line *l)
{
	if (!l->n)
		return;
	qsort(l->times, l->n, sizeof(l->times[0]), by_time);
	printf("%s %u %u %u %ld\n", l->name, l->times[l->n / 2], l->times[0],
		l->times[l->n * 9 / 10], l->peak);
}

static size_t number(const char *text)
{
	int n = atoi(text);

	if (n < 0 || n > ROUNDS)
		die(text, "not a number of rounds");
	return (size_t)n;
}

int main(int argc, char **argv)
{
	struct plan p = {.n = 0};
	size_t rounds = 50, warmups = 3;
	bool at_once = false, clean = false;
	int o;

	while ((o = getopt(argc, argv, "n:w:r:ac")) > 0) {
		if (o == 'n')
			rounds = number(optarg);
		else if (o == 'w')
			warmups = number(optarg);
		else if (o == 'r')
			p.raw = fopen(optarg, "we");
		else if (o == 'a')
			at_once = true;
		else if (o == 'c')
			clean = true;
		else
			return 2;
	}
	if (optind != argc - 1)
		die("usage", "stopwatch [-n ROUNDS] [-w WARMUPS] [-a] [-c] [-r FILE] PLAN");
	plan_read(&p, argv[optind]);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	posix_spawn_file_actions_init(&p.files);
	posix_spawn_file_actions_addopen(&p.files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&p.files, 1, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_init(&p.attr);
	if (at_once)
		run_at_once(&p, rounds);
	for (size_t i = 0; !at_once && i < warmups + rounds; i++)
		run_round(&p, i, i >= warmups);
	for (size_t k = 0; k < p.n; k++)
		print(&p.v[k]);
	if (p.raw)
		fclose(p.raw);
	if (clean && waitpid(-1, NULL, WNOHANG) >= 0)
		die("the end", "processes are left");
	return 0;
}
