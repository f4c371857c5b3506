/* A wheel: a zip archive with a distribution's files, and what they must be installed as. Inside of
 * python.h's wheel_unpack(), and what looks into wheels without unpacking them.
 *
 * Codes: SV170 the archive (zip.h), SV171 names and types of members, SV172 limits, SV173 RECORD,
 * SV174 who it says it is, SV175 entry points, SV176 its data folders. */
#ifndef BUILDER_WHEEL_H
#define BUILDER_WHEEL_H

#include "builder/python-name.h"
#include "builder/wheel-record.h"
#include "builder/wheel-scripts.h"
#include "builder/zip.h"

struct wheel {
	struct arena arena;
	struct zip zip;
	struct wheel_name name;
	const char *info, *data; /* "x-1.dist-info", "x-1.data" (NULL: none), without a slash */
	const char *project;     /* the name as METADATA writes it */
	struct record record;    /* as it is in the archive */
	struct wheel_scripts scripts;
};

#define auto_wheel __attribute__((cleanup(wheel_close)))
/* Everything but the files' data is checked. file: its name; python: "3.11". fd must stay open. */
int wheel_open(
	struct wheel *w, int fd, const char *file, const char *python, struct err *e) must_check;
void wheel_close(struct wheel *w);

#endif
