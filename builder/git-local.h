/* A repository beside the manifest. Git goes wherever a repository says that its data are, and
 * reads it with the rights of whoever builds: it gets only one that is all there. */
#ifndef BUILDER_GIT_LOCAL_H
#define BUILDER_GIT_LOCAL_H

#include "base/err.h"

/* The absolute path, for git, of the repository dir/path (a working tree's, or a bare one); to be
 * freed. NULL: DENIED when a part of it is elsewhere or may be (a link, "gitdir:", alternates, a
 * working tree of another repository), USAGE when it is none. */
char *git_local(const char *dir, const char *path, struct err *e) must_check;

#endif
