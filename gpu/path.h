/* Paths compared by their names: "/a//b/./c/" is "/a/b/c". Links are not looked at, and ".." is a
 * name like others. */
#ifndef GPU_PATH_H
#define GPU_PATH_H

#include <stdbool.h>
#include <stddef.h>

enum path_relation { PATH_SAME, PATH_ABOVE, PATH_BELOW, PATH_APART };
/* Where a stands to b. */
enum path_relation path_relate(const char *a, const char *b);
/* Is it in what every container gets anew, /dev, /proc or /sys? */
bool path_is_new(const char *path);
/* How many names it has. */
size_t path_depth(const char *path);

#endif
