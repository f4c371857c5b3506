#include "images/progress.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "images/meter.h"
#include "images/progress-json.h"

enum {
	DRAW_MS = 100,
	JSON_MS = 1000,
	LABEL = 96,
	LABEL_SHOWN = 24, /* longer ones push their line to the right */
	COLUMNS = 80,
	ROWS = 24,
	TEXT = 512,
	OUTPUT_MAX = 4 << 20,
};

struct progress_line {
	struct progress *p;
	struct progress_line *next;
	char label[LABEL];
	char stage[32]; /* "": it has none of its own */
	struct meter m;
	uint64_t told; /* bytes that JSON lines have told of */
	bool ended;
};

struct progress {
	enum progress_mode mode;
	bool bar, running;
	bool sums; /* the stage's total is its lines' */
	pthread_mutex_t lock;
	char stage[32];
	struct meter m;
	struct progress_line *lines, **tail;
	struct progress_step *steps; /* the stages of the whole work, and which is under way */
	size_t nsteps, at;
	unsigned shown; /* rows on the terminal, the cursor is behind the last one */
	double drawn;
};

int progress_mode_parse(const char *s, enum progress_mode *mode)
{
	static const char *const names[] = {"auto", "plain", "json", "timings", "none"};

	for (unsigned i = 0; i < 5; i++)
		if (strcmp(s, names[i]) == 0) {
			*mode = (enum progress_mode)i;
			return 0;
		}
	return -1;
}

static bool can_move(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0);
}

struct progress *progress_new(enum progress_mode mode)
{
	struct progress *p;

	if (mode == PROGRESS_NONE)
		return NULL;
	p = mem_alloc(sizeof(*p));
	p->mode = mode;
	p->bar = mode == PROGRESS_AUTO && can_move();
	p->tail = &p->lines;
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

static void drop_steps(struct progress *p)
{
	for (size_t i = 0; i < p->nsteps; i++) {
		free((char *)(uintptr_t)p->steps[i].name);
		free((size_t *)(uintptr_t)p->steps[i].after);
	}
	free(p->steps);
	p->steps = NULL;
	p->nsteps = p->at = 0;
}

void progress_free(struct progress *p)
{
	if (!p)
		return;
	progress_end(p);
	drop_steps(p);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* All that belongs together goes out in one write, so that it neither flickers nor mixes with what
 * other processes say. */
static void put_out(struct buf *b)
{
	if (b->len)
		fwrite(b->data, 1, b->len, stderr);
	fflush(stderr);
	buf_fini(b);
}

/* ---- a terminal: a row for each line that is under way, then the stage's ---- */

static void erase(struct progress *p, struct buf *b)
{
	if (p->shown == 0)
		return;
	for (unsigned i = 1; i < p->shown; i++)
		buf_printf(b, "\033[A");
	buf_printf(b, "\r\033[J");
	p->shown = 0;
}

static void add_row(struct progress *p, struct buf *b, const char *text, unsigned columns)
{
	/* One column is left: a full row would wrap, and could not be erased as one. */
	buf_printf(b, "%s%.*s", p->shown ? "\n" : "", (int)columns - 1, text);
	p->shown++;
}

static void size_of_terminal(unsigned *rows, unsigned *columns)
{
	struct winsize w = {0};

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) < 0)
		w = (struct winsize){0};
	*rows = w.ws_row ? w.ws_row : ROWS;
	*columns = w.ws_col ? w.ws_col : COLUMNS;
	if (*columns < 2)
		*columns = 2;
}

/* Does it wait for the one before it? */
static bool is_after_last(const struct progress *p, size_t i)
{
	const struct progress_step *s = &p->steps[i];

	for (size_t k = 0; k < s->nafter; k++)
		if (s->after[k] + 1 == i)
			return true;
	return false;
}

/* "fetch > unpack > [run:compile] > compose > publish": where that is too long, from what is under
 * way on. */
static void add_steps_row(struct progress *p, struct buf *b, unsigned columns)
{
	char text[TEXT];
	size_t n = 0, from = 0, length = 0;

	for (size_t i = 0; i < p->nsteps; i++)
		length += strlen(p->steps[i].name) + 3;
	if (length > columns)
		from = p->at;
	for (size_t i = from; i < p->nsteps && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, i == p->at ? "%s[%s]" : "%s%s",
			i == from             ? (from ? "... > " : "")
			: is_after_last(p, i) ? " > "
					      : ", ",
			p->steps[i].name);
	if (p->nsteps)
		add_row(p, b, text, columns);
}

static void draw(struct progress *p, struct buf *b, double now)
{
	unsigned rows, columns, waiting = 0, more = 0;
	char text[TEXT], meter[TEXT / 2], rest[64] = "";

	size_of_terminal(&rows, &columns);
	erase(p, b);
	for (struct progress_line *l = p->lines; l; l = l->next) {
		if (l->ended)
			continue;
		waiting += l->m.done == 0 && !l->stage[0];
		if (l->m.done == 0 && !l->stage[0])
			continue;
		meter_sample(&l->m, now);
		meter_text(&l->m, meter, sizeof(meter));
		snprintf(text, sizeof(text), "  %-*s%s%s%s", LABEL_SHOWN, l->label, l->stage,
			l->stage[0] ? " " : "", meter);
		if (p->shown + 2 + (p->nsteps > 0) < rows)
			add_row(p, b, text, columns);
		else
			more++;
	}
	meter_sample(&p->m, now);
	meter_text(&p->m, meter, sizeof(meter));
	if (more + waiting)
		snprintf(rest, sizeof(rest), "  (%u more)", more + waiting);
	snprintf(text, sizeof(text), "%-8s%s%s", p->stage, meter, rest);
	add_row(p, b, text, columns);
	add_steps_row(p, b, columns);
}

/* ---- JSON lines ---- */

/* Labels may come from outside; they are ASCII by then (set_label()). */
static void add_json(struct buf *b, const struct progress *p, const struct progress_line *l,
	double now, bool done, const char *note)
{
	const struct meter *m = l ? &l->m : &p->m;

	buf_printf(b, "{");
	progress_json_string(b, "stage", p->stage);
	if (l)
		progress_json_string(b, "line", l->label);
	if (l && l->stage[0])
		progress_json_string(b, "step", l->stage);
	buf_printf(b, "\"bytes\":%" PRIu64 ",\"seconds\":%.3f,\"total\":%" PRIu64 ",\"rate\":%.0f,",
		m->done, meter_seconds(m, now), m->total, done ? meter_average(m, now) : m->rate);
	if (note)
		progress_json_string(b, "note", note);
	buf_printf(b, "\"done\":%s}\n", done ? "true" : "false");
}

static void tell_json(struct progress *p, struct buf *b, double now)
{
	for (struct progress_line *l = p->lines; l; l = l->next) {
		if (l->ended || l->told == l->m.done)
			continue;
		meter_sample(&l->m, now);
		add_json(b, p, l, now, false, NULL);
		l->told = l->m.done;
	}
	meter_sample(&p->m, now);
	add_json(b, p, NULL, now, false, NULL);
}

/* ---- on its way, and at its end ---- */

/* Something was added: show it, if it is time to. */
static void tick(struct progress *p)
{
	struct buf b = BUF_INIT(OUTPUT_MAX);
	double now;

	if ((!p->bar && p->mode != PROGRESS_JSON) || !p->running)
		return;
	now = sys_now_ms();
	if (now - p->drawn <= (p->bar ? DRAW_MS : JSON_MS))
		return;
	p->drawn = now;
	if (p->bar)
		draw(p, &b, now);
	else
		tell_json(p, &b, now);
	put_out(&b);
}

static void end_text(struct progress *p, struct buf *b, double now)
{
	char text[TEXT];

	meter_result(&p->m, now, text, sizeof(text));
	erase(p, b);
	buf_printf(b, "%-8s%s\n", p->stage, text);
}

static void drop_lines(struct progress *p)
{
	while (p->lines) {
		struct progress_line *l = p->lines;

		p->lines = l->next;
		free(l);
	}
	p->tail = &p->lines;
}

static void finish(struct progress *p)
{
	struct buf b = BUF_INIT(OUTPUT_MAX);
	double now = sys_now_ms();

	drop_lines(p);
	if (!p->running)
		return;
	p->running = false;
	if (p->mode == PROGRESS_JSON)
		add_json(&b, p, NULL, now, true, NULL);
	else if (p->mode == PROGRESS_TIMINGS)
		buf_printf(&b, "timing %s %.1f ms\n", p->stage, now - p->m.started);
	else
		end_text(p, &b, now);
	put_out(&b);
}

static void add_json_steps(struct buf *b, const struct progress *p)
{
	buf_printf(b, "{\"steps\":[");
	for (size_t i = 0; i < p->nsteps; i++) {
		const struct progress_step *s = &p->steps[i];

		buf_printf(b, "%s{\"step\":\"%s\",\"after\":[", i ? "," : "", s->name);
		for (size_t k = 0; k < s->nafter; k++)
			buf_printf(b, "%s\"%s\"", k ? "," : "", p->steps[s->after[k]].name);
		buf_printf(b, "]}");
	}
	buf_printf(b, "]}\n");
}

static struct progress_step copy_step(const struct progress_step *s, size_t at)
{
	const size_t last = at - 1;
	char *name = mem_strdup(s->name);
	size_t n = s->after ? s->nafter : at > 0;

	str_plain(name, "");
	for (char *c = name; *c; c++) /* it stands in JSON, too */
		if (*c == '"' || *c == '\\' || *c & ~0x7f)
			*c = '?';
	return (struct progress_step){
		name, mem_dup(s->after ? s->after : &last, n * sizeof(last)), n};
}

void progress_steps(struct progress *p, const struct progress_step *v, size_t n)
{
	struct buf b = BUF_INIT(OUTPUT_MAX);

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	drop_steps(p);
	p->steps = mem_array(n, sizeof(*p->steps));
	for (; p->nsteps < n; p->nsteps++)
		p->steps[p->nsteps] = copy_step(&v[p->nsteps], p->nsteps);
	if (p->mode == PROGRESS_JSON)
		add_json_steps(&b, p);
	put_out(&b);
	pthread_mutex_unlock(&p->lock);
}

void progress_begin(struct progress *p, const char *stage, uint64_t total)
{
	struct buf b = BUF_INIT(OUTPUT_MAX);

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	finish(p);
	for (size_t i = p->at; i < p->nsteps; i++)
		if (strcmp(p->steps[i].name, stage) == 0)
			p->at = i;
	snprintf(p->stage, sizeof(p->stage), "%s", stage);
	p->drawn = sys_now_ms();
	meter_start(&p->m, 0, total, p->drawn);
	p->sums = total == 0;
	p->running = true;
	/* a step that runs code counts no bytes: it is shown when it begins */
	if (p->bar && p->nsteps)
		draw(p, &b, p->drawn);
	put_out(&b);
	pthread_mutex_unlock(&p->lock);
}

void progress_add(struct progress *p, uint64_t bytes)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->m.done += bytes;
	tick(p);
	pthread_mutex_unlock(&p->lock);
}

void progress_end(struct progress *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	finish(p);
	pthread_mutex_unlock(&p->lock);
}

/* ---- lines ---- */

/* What could drive a terminal, or be wider than a column, is shown as '?'. */
static void set_label(struct progress_line *l, const char *label)
{
	size_t n = 0;

	for (; label[n] && n + 1 < sizeof(l->label); n++)
		l->label[n] = label[n] < ' ' || label[n] > '~' ? '?' : label[n];
	l->label[n] = '\0';
}

struct progress_line *progress_line(struct progress *p, const char *label, uint64_t total)
{
	struct progress_line *l;

	if (!p)
		return NULL;
	l = mem_alloc(sizeof(*l));
	l->p = p;
	set_label(l, label);
	meter_start(&l->m, 0, total, sys_now_ms());
	pthread_mutex_lock(&p->lock);
	*p->tail = l;
	p->tail = &l->next;
	if (p->sums)
		p->m.total += total;
	pthread_mutex_unlock(&p->lock);
	return l;
}

void progress_line_add(struct progress_line *l, uint64_t bytes)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->p->lock);
	if (l->m.done == 0) /* it may have waited for its turn: its time is from here */
		meter_start(&l->m, bytes, l->m.total, sys_now_ms());
	else
		l->m.done += bytes;
	l->p->m.done += bytes;
	tick(l->p);
	pthread_mutex_unlock(&l->p->lock);
}

void progress_line_stage(struct progress_line *l, const char *stage, uint64_t total, uint64_t done)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->p->lock);
	if (strcmp(l->stage, stage) != 0) {
		snprintf(l->stage, sizeof(l->stage), "%s", stage);
		str_plain(l->stage, "");
		meter_start(&l->m, 0, total, sys_now_ms());
	}
	if (done > l->m.done)
		l->p->m.done += done - l->m.done;
	l->m.done = done;
	l->m.total = total;
	tick(l->p);
	pthread_mutex_unlock(&l->p->lock);
}

static void end_line(struct progress *p, struct progress_line *l, const char *note, struct buf *b)
{
	double now = sys_now_ms();
	char text[TEXT];

	if (p->mode == PROGRESS_JSON) {
		add_json(b, p, l, now, true, note);
		return;
	}
	if (p->mode == PROGRESS_TIMINGS)
		return;
	meter_result(&l->m, now, text, sizeof(text));
	erase(p, b);
	buf_printf(b, "  %-*s%s%s\n", LABEL_SHOWN, l->label, note ? " " : "", note ? note : text);
	if (p->bar && p->running) {
		p->drawn = now;
		draw(p, b, now);
	}
}

void progress_line_end(struct progress_line *l, const char *note)
{
	struct buf b = BUF_INIT(OUTPUT_MAX);
	struct progress *p;
	uint64_t rest;

	if (!l)
		return;
	p = l->p;
	pthread_mutex_lock(&p->lock);
	if (!l->ended) {
		l->ended = true;
		rest = !l->stage[0] && l->m.total > l->m.done ? l->m.total - l->m.done : 0;
		p->m.total -= rest < p->m.total ? rest : p->m.total;
		end_line(p, l, note, &b);
		put_out(&b);
	}
	pthread_mutex_unlock(&p->lock);
}

void progress_note(struct progress *p, const char *fmt, ...)
{
	struct buf b = BUF_INIT(OUTPUT_MAX);
	char line[1024];
	va_list ap;

	if (!p)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&p->lock);
	if (p->mode == PROGRESS_JSON) {
		buf_put(&b, "{", 1);
		progress_json_string(&b, "note", line);
		b.len--; /* the comma */
		buf_put(&b, "}\n", 2);
		put_out(&b);
	} else if (p->mode != PROGRESS_TIMINGS) {
		bool again = p->shown > 0;

		erase(p, &b);
		buf_printf(&b, "%s\n", line);
		if (again)
			draw(p, &b, sys_now_ms());
		put_out(&b);
	}
	pthread_mutex_unlock(&p->lock);
}
