#include "tests/unit/test.h"

#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/progress.h"

#define MIB ((uint64_t)1 << 20)

static void wait_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Long enough for the next thing added to be shown. */
static void until_drawn(void)
{
	wait_ms(110);
}

/* ---- what goes to a pipe ---- */

/* Run fn in a child whose stderr is b. */
static void capture(void (*fn)(void), struct buf *b)
{
	int fds[2], status;
	char tmp[4096];
	ssize_t n;
	pid_t pid;

	assert_int_equal(sys_pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		fn();
		_exit(0);
	}
	close(fds[1]);
	while ((n = sys_read(fds[0], tmp, sizeof(tmp))) > 0)
		buf_put(b, tmp, (size_t)n);
	close(fds[0]);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static void stages(enum progress_mode mode)
{
	struct progress *p = progress_new(mode);

	progress_begin(p, "fetch", 2 * MIB);
	progress_add(p, MIB);
	progress_add(p, MIB);
	progress_note(p, "a note");
	progress_begin(p, "unpack", 0);
	progress_free(p);
}

static void plain_stages(void)
{
	stages(PROGRESS_PLAIN);
}

static void auto_stages(void)
{
	stages(PROGRESS_AUTO);
}

TEST(without_a_terminal_there_is_a_line_when_a_stage_is_done)
{
	for (int i = 0; i < 2; i++) {
		auto_buf struct buf b = BUF_INIT(1 << 16);
		const char *line;

		capture(i ? auto_stages : plain_stages, &b);
		line = b.data;
		assert_true(str_starts(line, "a note\nfetch         2.0 MiB  "));
		line = strstr(line, "unpack  ");
		assert_non_null(line);
		assert_non_null(strstr(line, " s\n"));
		assert_null(strchr(b.data, '\033'));
	}
}

static void timing_stages(void)
{
	struct progress *p = progress_new(PROGRESS_TIMINGS);
	struct progress_line *l;

	progress_begin(p, "pull", 0);
	l = progress_line(p, "x", 1);
	progress_line_add(l, 1);
	progress_line_end(l, NULL);
	progress_note(p, "not for scripts");
	progress_free(p);
}

TEST(timings_are_of_stages_only)
{
	auto_buf struct buf b = BUF_INIT(1 << 16);

	capture(timing_stages, &b);
	assert_true(str_starts(b.data, "timing pull "));
	assert_true(str_ends(b.data, " ms\n"));
	assert_true(strchr(b.data, '\n') == b.data + b.len - 1);
}

TEST(nothing_is_said_without_one)
{
	struct progress_line *l;

	assert_null(progress_new(PROGRESS_NONE));
	l = progress_line(NULL, "x", 1);
	assert_null(l);
	progress_begin(NULL, "x", 1);
	progress_line_add(l, 1);
	progress_line_end(l, NULL);
	progress_note(NULL, "x");
	progress_end(NULL);
	progress_free(NULL);
}

static void plain_lines(void)
{
	struct progress *p = progress_new(PROGRESS_AUTO);
	struct progress_line *a, *b;

	progress_begin(p, "pull", 30 * MIB);
	a = progress_line(p, "aaaa", 10 * MIB);
	b = progress_line(p, "bb\033[31m\xc3\xa4", 20 * MIB);
	progress_line(p, "never ends", 1);
	progress_line_add(a, 4 * MIB);
	progress_line_end(b, "already here");
	progress_line_add(a, 6 * MIB);
	progress_line_end(a, NULL);
	progress_line_end(a, NULL);
	progress_free(p);
}

TEST(without_a_terminal_a_line_says_how_it_ended)
{
	auto_buf struct buf b = BUF_INIT(1 << 16);
	const char *line;

	capture(plain_lines, &b);
	line = b.data;
	assert_true(str_starts(line, "  bb?[31m??                already here\n"));
	line = strchr(line, '\n') + 1;
	assert_true(str_starts(line, "  aaaa                         10.0 MiB  "));
	line = strchr(line, '\n') + 1;
	assert_true(str_starts(line, "pull         10.0 MiB  "));
	line = strchr(line, '\n') + 1;
	assert_string_equal(line, "");
}

/* ---- JSON lines ---- */

static void json_lines(void)
{
	struct progress *p = progress_new(PROGRESS_JSON);
	struct progress_line *a, *b;

	progress_begin(p, "pull", 0);
	a = progress_line(p, "a\"\\\n", 1000);
	b = progress_line(p, "b", 500);
	progress_line_add(a, 100);
	wait_ms(1010);
	progress_line_add(a, 100);
	progress_line_end(b, "already here");
	progress_line_add(a, 800);
	progress_line_end(a, NULL);
	progress_note(p, "a \"note\"\t\xc3");
	progress_free(p);
}

TEST(json_lines_tell_what_has_moved_and_how_it_ended)
{
	static const struct {
		const char *line;
		int bytes, total;
		bool done;
		const char *note;
	} want[] = {
		{"a\"\\?", 200, 1000, false, NULL},
		{NULL, 200, 1500, false, NULL},
		{"b", 0, 500, true, "already here"},
		{"a\"\\?", 1000, 1000, true, NULL},
		{NULL, 1000, 1000, true, NULL},
	};
	auto_buf struct buf b = BUF_INIT(1 << 16);
	char *line, *end;
	size_t n = 0, notes = 0;

	capture(json_lines, &b);
	for (line = b.data; (end = strchr(line, '\n')); line = end + 1) {
		json_t *o = json_loadb(line, (size_t)(end - line), 0, NULL);
		const char *name = json_string_value(json_object_get(o, "line")),
			   *note = json_string_value(json_object_get(o, "note"));

		assert_non_null(o);
		if (!json_object_get(o, "stage")) { /* a note alone, cut in a letter */
			assert_string_equal(note, "a \"note\"\t?");
			json_decref(o);
			notes++;
			continue;
		}
		assert_true(n < sizeof(want) / sizeof(want[0]));
		assert_string_equal(json_string_value(json_object_get(o, "stage")), "pull");
		assert_string_equal(name ? name : "", want[n].line ? want[n].line : "");
		assert_int_equal(json_integer_value(json_object_get(o, "bytes")), want[n].bytes);
		assert_int_equal(json_integer_value(json_object_get(o, "total")), want[n].total);
		assert_int_equal(json_is_true(json_object_get(o, "done")), want[n].done);
		assert_string_equal(note ? note : "", want[n].note ? want[n].note : "");
		assert_true(json_is_real(json_object_get(o, "seconds")));
		assert_true(json_is_integer(json_object_get(o, "rate")));
		json_decref(o);
		n++;
	}
	assert_int_equal(n, sizeof(want) / sizeof(want[0]));
	assert_int_equal(notes, 1);
}

static const size_t behind[] = {0}, both[] = {1, 2};
static const struct progress_step steps[] = {{.name = "fetch"}, {.name = "run:a\"\033[31m"},
	{.name = "run:b", .after = behind, .nafter = 1},
	{.name = "publish", .after = both, .nafter = 2}};

static void json_steps(void)
{
	struct progress *p = progress_new(PROGRESS_JSON);

	progress_steps(p, steps, 4);
	progress_free(p);
}

TEST(the_steps_to_come_are_one_json_line_each_after_those_it_waits_for)
{
	auto_buf struct buf b = BUF_INIT(1 << 16);

	capture(json_steps, &b);
	buf_put(&b, "", 1);
	assert_string_equal(b.data,
		"{\"steps\":[{\"step\":\"fetch\",\"after\":[]},"
		"{\"step\":\"run:a??[31m\",\"after\":[\"fetch\"]},"
		"{\"step\":\"run:b\",\"after\":[\"fetch\"]},"
		"{\"step\":\"publish\",\"after\":[\"run:a??[31m\",\"run:b\"]}]}\n");
}

/* ---- a terminal ---- */

enum { ROWS = 6, COLUMNS = 78 };

/* As much of a terminal as is needed to see what a person sees. */
struct screen {
	char cell[ROWS][COLUMNS + 1];
	unsigned row, col;
	bool overflowed; /* a row was too long */
};

static void scroll(struct screen *s)
{
	if (s->row + 1 < ROWS) {
		s->row++;
		return;
	}
	memmove(s->cell[0], s->cell[1], sizeof(s->cell) - sizeof(s->cell[0]));
	memset(s->cell[ROWS - 1], 0, COLUMNS + 1);
}

static void erase_below(struct screen *s)
{
	memset(s->cell[s->row] + s->col, 0, COLUMNS - s->col);
	for (unsigned r = s->row + 1; r < ROWS; r++)
		memset(s->cell[r], 0, COLUMNS);
}

/* Returns how many bytes it used. */
static size_t show(struct screen *s, const char *p)
{
	if (str_starts(p, "\033[A")) {
		assert_true(s->row > 0);
		s->row--;
		return 3;
	}
	if (str_starts(p, "\033[J")) {
		erase_below(s);
		return 3;
	}
	assert_int_not_equal(*p, '\033');
	if (*p == '\r') {
		s->col = 0;
	} else if (*p == '\n') {
		scroll(s);
	} else if (s->col == COLUMNS) {
		s->overflowed = true;
	} else {
		s->cell[s->row][s->col++] = *p;
	}
	return 1;
}

/* Run fn in a child with a terminal. Where it writes '#' (on a line of its own) the screen is kept
 * as it was before: snaps of them. Returns how many, and the last screen behind them. */
static size_t watch(void (*fn)(void), struct screen *v, size_t snaps)
{
	struct winsize w = {.ws_row = ROWS, .ws_col = COLUMNS};
	auto_buf struct buf b = BUF_INIT(1 << 20);
	struct screen s = {0};
	size_t n = 0;
	char tmp[4096];
	ssize_t got;
	int fd, status;
	pid_t pid = forkpty(&fd, NULL, NULL, &w);

	assert_true(pid >= 0);
	if (pid == 0) {
		setenv("TERM", "vt100", 1);
		fn();
		_exit(0);
	}
	while ((got = read(fd, tmp, sizeof(tmp))) > 0) /* EIO is its end */
		buf_put(&b, tmp, (size_t)got);
	close(fd);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	for (const char *p = b.data; p && *p;) {
		if (*p == '#') {
			assert_true(n < snaps);
			v[n++] = s;
			p++;
			continue;
		}
		p += show(&s, p);
	}
	v[n++] = s;
	assert_false(s.overflowed);
	return n;
}

static void snap(void)
{
	assert_int_equal(sys_write_all(STDERR_FILENO, "#", 1), 0);
}

static void moving_lines(void)
{
	struct progress *p = progress_new(PROGRESS_AUTO);
	struct progress_line *a, *b;

	progress_begin(p, "pull", 100 * MIB);
	a = progress_line(p, "aaaa", 40 * MIB);
	b = progress_line(p, "bbbb", 50 * MIB);
	progress_line(p, "waits", 10 * MIB);
	progress_line_add(a, 4 * MIB);
	until_drawn();
	progress_line_add(b, 5 * MIB);
	snap();
	progress_note(p, "a note");
	snap();
	until_drawn();
	progress_line_add(b, 45 * MIB);
	progress_line_end(b, NULL);
	snap();
	progress_line_end(a, "given up");
	snap();
	progress_free(p);
}

static void expect_row(const struct screen *s, unsigned row, const char *start, const char *part)
{
	if (!str_starts(s->cell[row], start) || !strstr(s->cell[row], part))
		fail_msg("row %u: '%s', not '%s...%s'", row, s->cell[row], start, part);
}

static void steps_on_a_terminal(void)
{
	static const size_t before[] = {1}, last[] = {2, 3};
	static const struct progress_step all[] = {{.name = "fetch"}, {.name = "unpack"},
		{.name = "run:compile"}, {.name = "run:b", .after = before, .nafter = 1},
		{.name = "compose", .after = last, .nafter = 2}, {.name = "publish"}};
	struct progress *p = progress_new(PROGRESS_AUTO);
	struct progress_line *l;

	progress_steps(p, all, 6);
	progress_begin(p, "run:compile", 0);
	snap();
	progress_begin(p, "compose", MIB);
	l = progress_line(p, "app", 0);
	progress_line_stage(l, "unpack", 4 * MIB, MIB);
	until_drawn();
	progress_line_stage(l, "unpack", 4 * MIB, 2 * MIB);
	snap();
	progress_free(p);
}

TEST(on_a_terminal_the_last_row_says_how_far_the_work_is)
{
	struct screen v[3];

	assert_int_equal(watch(steps_on_a_terminal, v, 2), 3);
	expect_row(&v[0], 0, "run:compile", "");
	expect_row(&v[0], 1, "fetch > unpack > [run:compile], run:b > compose > publish", "");
	expect_row(&v[1], 1, "  app                     unpack ", "2.0 MiB of 4.0 MiB  50 %");
	expect_row(&v[1], 2, "compose ", "");
	expect_row(&v[1], 3, "fetch > unpack > run:compile, run:b > [compose] > publish", "");
	assert_string_equal(v[2].cell[3], "");
}

TEST(on_a_terminal_lines_move_in_place_and_finished_ones_stay_above)
{
	struct screen v[5];

	assert_int_equal(watch(moving_lines, v, 4), 5);
	expect_row(&v[0], 0, "  aaaa                          4.0 MiB of 40.0 MiB  10 %", " MiB/s");
	expect_row(&v[0], 1, "  bbbb                          5.0 MiB of 50.0 MiB  10 %", " MiB/s");
	expect_row(&v[0], 2, "pull          9.0 MiB of 100.0 MiB   9 %", "(1 more)");
	assert_string_equal(v[0].cell[3], "");

	expect_row(&v[1], 0, "a note", "");
	expect_row(&v[1], 1, "  aaaa ", "");
	expect_row(&v[1], 3, "pull ", "");
	assert_string_equal(v[1].cell[4], "");

	expect_row(&v[2], 1, "  bbbb                         50.0 MiB  ", " MiB/s");
	expect_row(&v[2], 2, "  aaaa ", " 10 %");
	expect_row(&v[2], 3, "pull         54.0 MiB of 100.0 MiB  54 %", "");
	assert_string_equal(v[2].cell[4], "");

	expect_row(&v[3], 2, "  aaaa                     given up", "");
	expect_row(&v[3], 3, "pull         54.0 MiB of 64.0 MiB  84 %", "");

	expect_row(&v[4], 0, "a note", "");
	expect_row(&v[4], 3, "pull         54.0 MiB  ", " MiB/s");
	assert_string_equal(v[4].cell[4], "");
}

static void many_lines(void)
{
	struct progress *p = progress_new(PROGRESS_AUTO);
	struct progress_line *l[20];

	progress_begin(p, "pull", 0);
	for (int i = 0; i < 20; i++) {
		char label[16];

		snprintf(label, sizeof(label), "layer-%d", i);
		l[i] = progress_line(p, label, 10 * MIB);
		progress_line_add(l[i], MIB);
	}
	until_drawn();
	progress_line_add(l[19], MIB);
	snap();
	for (int i = 0; i < 20; i++)
		progress_line_end(l[i], NULL);
	progress_free(p);
}

TEST(more_lines_than_the_terminal_has_are_counted)
{
	struct screen v[2];

	assert_int_equal(watch(many_lines, v, 1), 2);
	for (unsigned i = 0; i < ROWS - 2; i++)
		expect_row(&v[0], i, i == 3 ? "  layer-3 " : "  layer-", " MiB of 10.0 MiB");
	expect_row(&v[0], ROWS - 2, "pull         21.0 MiB of 200.0 MiB  10 %", "(16 more)");
	assert_string_equal(v[0].cell[ROWS - 1], "");
	expect_row(&v[1], ROWS - 3, "  layer-19 ", "2.0 MiB");
	expect_row(&v[1], ROWS - 2, "pull         21.0 MiB  ", "");
}

static void long_label(void)
{
	struct progress *p = progress_new(PROGRESS_AUTO);
	struct progress_line *l;
	char label[500];

	memset(label, 'x', sizeof(label) - 1);
	label[sizeof(label) - 1] = '\0';
	progress_begin(p, "pull", 0);
	l = progress_line(p, label, 10 * MIB);
	progress_line_add(l, MIB);
	until_drawn();
	progress_line_add(l, MIB);
	snap();
	progress_add(p, 1);
	until_drawn();
	progress_add(p, 1);
	progress_end(p);
	progress_free(p);
}

TEST(a_row_is_never_wider_than_the_terminal)
{
	struct screen v[2];

	assert_int_equal(watch(long_label, v, 1), 2);
	assert_int_equal(strlen(v[0].cell[0]), COLUMNS - 1);
	expect_row(&v[0], 1, "pull ", "");
	expect_row(&v[1], 0, "pull          2.0 MiB", "");
	assert_string_equal(v[1].cell[1], "");
}

/* ---- threads ---- */

struct crowd {
	struct progress *p;
	struct progress_line *l;
};

static void *add_many(void *arg)
{
	struct crowd *c = arg;

	for (int i = 0; i < 1000; i++) {
		progress_line_add(c->l, 1024);
		if (i % 100 == 0)
			progress_note(c->p, "n");
	}
	progress_line_end(c->l, NULL);
	return NULL;
}

static void crowd(void)
{
	struct progress *p = progress_new(PROGRESS_AUTO);
	struct crowd c[8];
	pthread_t t[8];

	progress_begin(p, "pull", 0);
	for (int i = 0; i < 8; i++) {
		char label[16];

		snprintf(label, sizeof(label), "l%d", i);
		c[i] = (struct crowd){p, progress_line(p, label, 1024000)};
	}
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&t[i], NULL, add_many, &c[i]), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	progress_free(p);
}

TEST(threads_share_one)
{
	struct screen v[1];
	auto_buf struct buf b = BUF_INIT(1 << 16);

	assert_int_equal(watch(crowd, v, 0), 1);
	expect_row(&v[0], ROWS - 2, "pull          7.8 MiB", "");
	capture(crowd, &b);
	assert_non_null(strstr(b.data, "pull          7.8 MiB"));
}

RUN_TESTS(cmocka_unit_test(without_a_terminal_there_is_a_line_when_a_stage_is_done),
	cmocka_unit_test(timings_are_of_stages_only), cmocka_unit_test(nothing_is_said_without_one),
	cmocka_unit_test(without_a_terminal_a_line_says_how_it_ended),
	cmocka_unit_test(json_lines_tell_what_has_moved_and_how_it_ended),
	cmocka_unit_test(the_steps_to_come_are_one_json_line_each_after_those_it_waits_for),
	cmocka_unit_test(on_a_terminal_the_last_row_says_how_far_the_work_is),
	cmocka_unit_test(on_a_terminal_lines_move_in_place_and_finished_ones_stay_above),
	cmocka_unit_test(more_lines_than_the_terminal_has_are_counted),
	cmocka_unit_test(a_row_is_never_wider_than_the_terminal),
	cmocka_unit_test(threads_share_one))
