/* --progress, apart from the other options: svrun-oci has none, and images/ is not linked into it.
 */
#include "base/str.h"
#include "images/progress.h"
#include "svrun/options.h"

int options_progress(const char *mode_name, bool quiet, struct progress **p, struct err *e)
{
	enum progress_mode mode = PROGRESS_AUTO;

	if (mode_name && progress_mode_parse(mode_name, &mode) < 0)
		return err_set(e, ERR_USAGE,
			"--progress: expected auto, plain, json, timings or none, got '%s'",
			mode_name);
	*p = progress_new(quiet ? PROGRESS_NONE : mode);
	return 0;
}
