/* Programs that wheels bring: those of entry_points.txt, which installers write, and scripts whose
 * first line they mend.
 * Source: PyPA "Entry points"; what pip 23 writes (distlib's ScriptMaker). */
#ifndef BUILDER_WHEEL_SCRIPTS_H
#define BUILDER_WHEEL_SCRIPTS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

enum { ENTRY_POINTS_MAX = 1 << 20 };

struct wheel_script {
	const char *name;          /* of its file */
	const char *module, *attr; /* "pkg.cli", "App.run" */
};

struct wheel_scripts {
	struct wheel_script *v; /* sorted by name */
	size_t n, cap;
};

/* The console_scripts and gui_scripts of entry_points.txt; strings in the arena. Those of pip and
 * easy_install get the names that fit python ("3.11"), as pip does it. CORRUPT (SV175): a name or a
 * reference that could become something else in the file that is made of it. */
int wheel_scripts_parse(struct wheel_scripts *s, struct arena *a, const char *text, size_t n,
	const char *python, struct err *e) must_check;
void wheel_scripts_fini(struct wheel_scripts *s);

/* Does an entry point make what this file of the scripts folder is (NAME, NAME.exe, NAME-script.py,
 * NAME.pya)? */
bool wheel_scripts_make(const struct wheel_scripts *s, const char *file);

/* The text of one. executable: absolute. Owned by the caller. */
char *wheel_script_text(const struct wheel_script *s, const char *executable);

/* The first line, with its line end, for an executable: "#!EXECUTABLE", or two lines that sh and
 * Python both read when the kernel would not take that. To be freed. */
char *wheel_shebang(const char *executable);

#endif
