/* svrun-oci state, list and ps */
#include <ctype.h>
#include <stdio.h>

#include "base/proc.h"
#include "base/str.h"
#include "base/sys.h"
#include "svrun/oci.h"
#include "svrun/output.h"

/* As state_json() orders it; output_json() would sort the keys. */
static void print_json(const json_t *j)
{
	json_dumpf(j, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
	putchar('\n');
}

/* ---- state ---- */

static json_t *read_state(const struct oci *o, const char *id, struct err *e)
{
	enum state_status status;
	struct state s;
	json_t *j = NULL;

	if (oci_open(o, id, false, &s, e) < 0)
		return NULL;
	if (state_status(&s, &status, e) == 0)
		j = state_json(&s, status, true);
	state_close(&s);
	return j;
}

int oci_state(const struct oci *o, const struct command *self, int argc, char **argv, struct err *e)
{
	const struct option_spec options[] = {{0}};
	int first = options_parse(self, options, argc, argv, false, e);
	auto_json json_t *j = first < 0 ? NULL : read_state(o, argv[first], e);

	if (!j)
		return -1;
	print_json(j);
	return 0;
}

/* ---- list ---- */

/* One that is deleted meanwhile is left out. */
static json_t *read_all(const struct oci *o, char **ids, size_t n, struct err *e)
{
	json_t *all = json_array();

	for (size_t i = 0; i < n; i++) {
		struct err one = {0};
		json_t *j = read_state(o, ids[i], &one);

		if (j) {
			json_array_append_new(all, j);
			continue;
		}
		if (one.kind == ERR_NOT_FOUND)
			continue;
		*e = one;
		json_decref(all);
		return NULL;
	}
	return all;
}

static void print_table(const json_t *all)
{
	static const char *const keys[] = {"id", "pid", "status", "bundle", "created", "owner"};
	static const char *const heads[] = {"ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER"};
	enum { COLUMNS = sizeof(keys) / sizeof(keys[0]), WIDTH_MIN = 12, GAP = 3 };
	size_t n = json_array_size(all);
	auto_free char **cells = mem_array((n + 1) * COLUMNS, sizeof(*cells));
	int width[COLUMNS] = {0};

	for (size_t i = 0; i < (n + 1) * COLUMNS; i++) {
		size_t row = i / COLUMNS, col = i % COLUMNS;
		const json_t *v =
			row ? json_object_get(json_array_get(all, row - 1), keys[col]) : NULL;

		cells[i] = !row ? mem_strdup(heads[col])
			   : json_is_integer(v)
				   ? mem_printf("%lld", (long long)json_integer_value(v))
				   : output_plain(json_string_value(v));
		if ((int)strlen(cells[i]) + GAP > width[col])
			width[col] = (int)strlen(cells[i]) + GAP;
		if (width[col] < WIDTH_MIN)
			width[col] = WIDTH_MIN;
	}
	for (size_t i = 0; i < (n + 1) * COLUMNS; i++) {
		if (i % COLUMNS == COLUMNS - 1)
			printf("%s\n", cells[i]);
		else
			printf("%-*s", width[i % COLUMNS], cells[i]);
		free(cells[i]);
	}
}

static int list(const struct oci *o, bool json, bool quiet, struct err *e)
{
	auto_fd int root = oci_root(o, e);
	auto_json json_t *all = NULL;
	char **ids;
	size_t n;

	if (root < 0 || state_list(root, &ids, &n, e) < 0)
		return -1;
	if (!quiet)
		all = read_all(o, ids, n, e);
	for (size_t i = 0; i < n; i++) {
		if (quiet)
			puts(ids[i]);
		free(ids[i]);
	}
	free(ids);
	if (quiet)
		return 0;
	if (!all)
		return -1;
	if (json)
		print_json(all);
	else
		print_table(all);
	return 0;
}

int oci_list(const struct oci *o, const struct command *self, int argc, char **argv, struct err *e)
{
	const char *format = NULL;
	bool quiet = false, json;
	const struct option_spec options[] = {
		{"format", 'f', OPTION_STRING, "FORMAT", "table or json", &format},
		{"quiet", 'q', OPTION_FLAG, NULL, "ids only", &quiet},
		{0},
	};

	if (options_parse(self, options, argc, argv, false, e) < 0 ||
		output_format(format, &json, e) < 0)
		return -1;
	return list(o, json, quiet, e);
}

/* ---- ps ---- */

struct pids {
	pid_t *v;
	size_t n;
};

static int read_pids(const struct oci *o, const char *id, struct pids *p, struct err *e)
{
	struct state s;
	struct cgroup c;
	int rc;

	*p = (struct pids){NULL, 0};
	if (oci_open(o, id, false, &s, e) < 0)
		return -1;
	rc = cgroup_open(&c, &s.cgroup, "devices", e);
	if (rc == 0) {
		auto_fd int fd = state_pidfd(&s);

		if (c.ndirs)
			rc = cgroup_pids(&c, &p->v, &p->n, e);
		else if (fd >= 0) /* it has to do without one, and has processes */
			rc = err_set(e, ERR_UNSUPPORTED, "%s: the container has no cgroup", id);
		cgroup_fini(&c);
	}
	state_close(&s);
	return rc;
}

static bool has_pid(const struct pids *p, pid_t pid)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i] == pid)
			return true;
	return false;
}

/* The i-th word of a line, as a number; 0 when it is none. */
static pid_t number_at(const char *line, size_t i)
{
	char word[16];
	uint64_t v;

	for (;; i--) {
		size_t n;

		line += strspn(line, " \t");
		n = strcspn(line, " \t");
		if (i == 0) {
			snprintf(word, sizeof(word), "%.*s", (int)n, line);
			return str_u64(word, INT32_MAX, &v) < 0 ? 0 : (pid_t)v;
		}
		if (!*line)
			return 0;
		line += n;
	}
}

static int pid_column(const char *head, size_t *column)
{
	for (*column = 0;; (*column)++) {
		size_t n;

		head += strspn(head, " \t");
		n = strcspn(head, " \t");
		if (n == 0)
			return -1;
		if (n == 3 && strncmp(head, "PID", 3) == 0)
			return 0;
		head += n;
	}
}

/* The lines of `ps` about processes of ours. */
static int filter_ps(char *text, const struct pids *p, struct err *e)
{
	size_t column = 0;
	bool head = true;

	for (char *line = text, *end; line && *line; line = end ? end + 1 : NULL) {
		end = strchr(line, '\n');
		if (end)
			*end = '\0';
		if (head && pid_column(line, &column) < 0)
			return err_set(e, ERR_USAGE, "ps printed no column PID");
		if (head || has_pid(p, number_at(line, column)))
			puts(line);
		head = false;
	}
	return 0;
}

static int print_ps(const struct pids *p, int argc, char **argv, struct err *e)
{
	enum { PS_MAX = 64 << 20 };
	auto_buf struct buf out = BUF_INIT(PS_MAX);
	auto_free const char **args = mem_array((size_t)argc + 3, sizeof(*args));
	struct proc ps = {.argv = args, .out = &out};

	args[0] = "ps";
	args[1] = "-ef";
	for (int i = 0; i < argc; i++)
		args[i + 1] = argv[i];
	if (proc_check(&ps, e) < 0)
		return -1;
	return filter_ps(out.data, p, e);
}

static void print_pids(const struct pids *p)
{
	auto_json json_t *all = json_array();

	for (size_t i = 0; i < p->n; i++)
		json_array_append_new(all, json_integer(p->v[i]));
	json_dumpf(all, stdout, JSON_COMPACT);
	putchar('\n');
}

int oci_ps(const struct oci *o, const struct command *self, int argc, char **argv, struct err *e)
{
	const char *format = NULL;
	bool json;
	const struct option_spec options[] = {
		{"format", 'f', OPTION_STRING, "FORMAT", "table, or json: pids only", &format},
		{0},
	};
	int first = options_parse(self, options, argc, argv, true, e), rc = 0;
	struct pids p;

	if (first < 0 || output_format(format, &json, e) < 0 ||
		read_pids(o, argv[first], &p, e) < 0)
		return -1;
	if (json)
		print_pids(&p);
	else
		rc = print_ps(&p, argc - first - 1, argv + first + 1, e);
	free(p.v);
	return rc;
}
