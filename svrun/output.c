#include "svrun/output.h"

#include <stdio.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "svrun/options.h"

const char *output_size(uint64_t n, char out[32])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double v = (double)n;
	size_t i = 0;

	for (; v >= 1024 && i < 4; i++)
		v /= 1024;
	snprintf(out, 32, i ? "%.1f %s" : "%.0f %s", v, units[i]);
	return out;
}

int output_format(const char *format, bool *json, struct err *e)
{
	*json = format && str_eq(format, "json");
	if (!format || *json || str_eq(format, "table"))
		return 0;
	return err_set(e, ERR_USAGE, "--format: expected table or json, got '%s'", format);
}

int output_options(const struct command *self, int argc, char **argv, bool *json, struct err *e)
{
	const char *format = NULL;
	const struct option_spec options[] = {
		{"format", 0, OPTION_STRING, "FORMAT", "table or json", &format},
		{0},
	};
	int n = options_parse(self, options, argc, argv, false, e);

	return n < 0 || output_format(format, json, e) < 0 ? -1 : n;
}

char *output_plain(const char *text)
{
	char *copy = mem_strdup(text ? text : "");

	str_plain(copy, "");
	return copy;
}

void output_json(const json_t *j)
{
	auto_buf struct buf b = BUF_INIT(64 << 20);

	json_text(j, false, &b);
	fputs(b.data, stdout);
}
