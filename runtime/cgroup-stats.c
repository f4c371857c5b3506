#include "runtime/cgroup.h"
json_t *cgroup_stats(const struct cgroup *c)
{
	(void)c;
	return json_object();
}
