/* How a step failed, for people. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/resolve.h"
#include "builder/steps-private.h"

enum { TAIL_LINES = 40, TAIL_BYTES = 64 << 10 };

const char *step_log_path(struct steps *s, const struct step *st)
{
	char *path = arena_printf(&s->arena, "%s/%s.log", s->x->logs, st->id);

	for (char *p = path + strlen(s->x->logs) + 1; *p; p++) /* "npm:@scope/name" */
		if (*p == '/')
			*p = '+';
	return path;
}

int step_fault(struct steps *s, const struct step *st, const char *member, int code, struct err *e,
	const char *fmt, ...)
{
	const struct manifest *m = s->x->m;
	const char *pointer = arena_printf(&s->arena, "%s%s", st->pointer, member), *file;
	char text[1024];
	int line, col;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!m->source)
		return err_set(e, ERR_USAGE, "SV%03d %s: %s", code, pointer, text);
	resolved_place(m->source, pointer, false, &file, &line, &col);
	return err_set(
		e, ERR_USAGE, "%s:%d:%d: SV%03d %s: %s", file, line, col, code, pointer, text);
}

/* As ls -b would: names are the step's, and one with a line break must not forge a line. */
char *step_shown(const char *name)
{
	bool text = str_utf8(name, strlen(name));
	char *out = mem_alloc(4 * strlen(name) + 1), *to = out;

	for (const char *p = name; *p; p++) {
		unsigned char c = (unsigned char)*p, next = (unsigned char)p[1];
		bool c1 = c == 0xc2 && next < 0xa0;

		if (c < ' ' || c == 0x7f || (c >= 0x80 && !text) || c1)
			to += snprintf(to, 5, "\\x%02x", c);
		else
			*to++ = (char)c;
		if (c1 && text) {
			to += snprintf(to, 5, "\\x%02x", next);
			p++;
		}
	}
	*to = '\0';
	return out;
}

/* ---- the log's end ---- */

/* The last lines of the log, to free(). */
static char *read_tail(const char *path)
{
	char *text = mem_alloc(TAIL_BYTES + 1), *at;
	struct stat st;
	size_t n = 0, lines = 0;
	auto_fd int fd = sys_open(path, O_RDONLY, 0);

	if (fd >= 0 && sys_fstat(fd, &st) == 0) {
		n = st.st_size < TAIL_BYTES ? (size_t)st.st_size : TAIL_BYTES;
		if (sys_pread_all(fd, text, n, st.st_size - (off_t)n) < 0)
			n = 0;
	}
	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	for (at = text + n; at > text; at--)
		if (at[-1] == '\n' && ++lines == TAIL_LINES)
			break;
	memmove(text, at, strlen(at) + 1);
	for (char *p = text; *p; p++) /* a NUL would have ended the text here */
		if (*p == '\r')
			*p = ' ';
	str_plain(text, "\n\t");
	return text;
}

static void show_tail(struct steps *s, const struct step *st)
{
	auto_free char *text = read_tail(step_log_path(s, st));
	char *line = text, *end;

	if (!*text)
		return;
	progress_note(s->x->p, "%s: the last lines of its log:", st->id);
	for (; *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		progress_note(s->x->p, "  | %.*s", (int)(end - line), line);
	}
}

void step_log_line(struct steps *s, const struct step *st, const char *text)
{
	FILE *f = fopen(step_log_path(s, st), "ae");

	if (f) {
		fprintf(f, "svrun: %s\n", text);
		fclose(f);
	}
}

/* A log that cannot be written does not matter beside what is to be said. */
void step_log_paths(
	struct steps *s, const struct step *st, const char *what, const struct strings *paths)
{
	FILE *f = fopen(step_log_path(s, st), "ae");

	for (size_t i = 0; f && i < paths->n; i++) {
		auto_free char *path = step_shown(paths->v[i]);

		fprintf(f, "svrun: %s: %s\n", what, path);
	}
	if (f)
		fclose(f);
}

/* ---- the end ---- */

static void describe(const struct step *st, const struct sandbox_end *end, char *out, size_t size)
{
	const struct sandbox_step *b = &st->box;

	if (end->too_much_output)
		snprintf(out, size, "was stopped: it printed more than %d MiB",
			SANDBOX_LOG_MAX >> 20);
	else if (end->timed_out)
		snprintf(out, size, "was stopped after its time of %u ms", b->timeout_ms);
	else if (end->wrote_too_much)
		snprintf(out, size, "was stopped: it wrote more than %" PRIu64 " MiB",
			b->max_bytes >> 20);
	else if (end->out_of_disk)
		snprintf(out, size, "was stopped: it filled the disk");
	else if (end->out_of_pids)
		snprintf(out, size, "was stopped: it reached the limit of %u processes",
			b->pids ? b->pids : SANDBOX_PIDS);
	else if (end->out_of_memory && b->memory_mib)
		snprintf(out, size, "reached its memory limit of %u MiB", b->memory_mib);
	else if (end->out_of_memory)
		snprintf(out, size, "ran out of memory");
	else if (end->status > 128)
		snprintf(out, size, "was ended by signal %d", end->status - 128);
	else
		snprintf(out, size, "failed with exit status %d", end->status);
}

/* The build again: what ran before this step is found in the cache. */
static void put_command(const struct steps *s, const struct step *st, char *out, size_t size)
{
	const struct manifest *m = s->x->m;
	size_t n = 0;

	if (s->x->command) {
		snprintf(out, size, "%s", s->x->command);
		return;
	}
	n += (size_t)snprintf(out, size, "svrun image build %s", m->path ? m->path : m->name);
	if (m->mode && n < size)
		n += (size_t)snprintf(out + n, size - n, " --mode %s", m->mode);
	for (size_t i = 0; i < st->nsecrets && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, " --secret %s=FILE", st->secrets[i].id);
}

/* Of a full disk: the beginning of the log says what the step was about. */
static void shorten(const char *path)
{
	struct stat st;
	auto_fd int fd = sys_open(path, O_WRONLY, 0);

	if (fd >= 0 && sys_fstat(fd, &st) == 0 && st.st_size > TAIL_BYTES &&
		sys_ftruncate(fd, TAIL_BYTES) < 0)
		warn("%s cannot be made shorter", path);
}

/* Where the manifest says the limit that it reached; NULL: it reached none. */
static const char *limit_of(const struct step *st, const struct sandbox_end *end)
{
	bool own = str_starts(st->id, "run:");

	if (end->timed_out)
		return own ? "/timeoutMs" : "";
	if (end->wrote_too_much)
		return "/diskMiB";
	if (end->too_much_output || end->out_of_disk || end->out_of_pids)
		return "";
	return end->out_of_memory ? own && st->box.memory_mib ? "/memoryMiB" : "" : NULL;
}

int step_failed(
	struct steps *s, const struct step *st, const struct sandbox_end *end, struct err *e)
{
	const char *log = step_log_path(s, st), *limit = limit_of(st, end);
	char how[128], command[300];

	show_tail(s, st);
	if (end->out_of_disk)
		shorten(log);
	describe(st, end, how, sizeof(how));
	put_command(s, st, command, sizeof(command));
	if (limit)
		step_fault(s, st, limit, 67, e, "step %s %s; its log: %.700s", st->id, how, log);
	else
		err_set(e, ERR_SYSTEM, "step %s %s; its log: %s", st->id, how, log);
	if (end->out_of_disk) /* what it wrote is gone by now: sys_hint_space() finds room */
		return err_hint(e,
			"free space on the file system of %.200s, or set SVRUN_ROOT; then: %s",
			s->x->s->path, command);
	return err_hint(e, "run it again: %s", command);
}
