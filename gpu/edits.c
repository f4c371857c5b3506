#include "gpu/edits.h"

#include "base/sys.h"
#include "gpu/path.h"

void gpu_edits_init(struct gpu_edits *x)
{
	*x = (struct gpu_edits){.nnodes = 0};
}

void gpu_edits_fini(struct gpu_edits *x)
{
	free(x->nodes);
	free(x->mounts);
	free(x->hooks);
	free(x->links);
	free(x->netdevs);
	free(x->env);
	free(x->gids);
	free(x->ld_dirs);
	free(x->gpu_buses);
	arena_fini(&x->mem);
	if (x->has_view_lock)
		sys_close_ref(&x->view_lock);
	gpu_edits_init(x);
}

bool gpu_edits_empty(const struct gpu_edits *x)
{
	return !x->nnodes && !x->nmounts && !x->nhooks && !x->nlinks && !x->nnetdevs && !x->nenv &&
	       !x->ngids && !x->nld_dirs && !x->rdt.given && !x->compat_driver &&
	       !x->keep_device_files && !x->visible_profile && !x->gpus_hidden && !x->no_mknod;
}

/* An array that doubles whenever its number of elements is a power of two: they have no room for
 * how much they have room for. */
static void add(void *array, size_t *n, const void *element, size_t size)
{
	char *v;

	memcpy(&v, array, sizeof(v));
	if ((*n & (*n - 1)) == 0) {
		char *more = mem_array(*n ? *n * 2 : 1, size);

		if (*n)
			memcpy(more, v, *n * size);
		free(v);
		v = more;
		memcpy(array, &v, sizeof(v));
	}
	memcpy(v + (*n)++ * size, element, size);
}
#define ADD(array, n, element) add(&(array), &(n), (element), sizeof(*(array)))

/* Close the gap that element i leaves. */
#define DROP(array, n, i)                                                                          \
	memmove((array) + (i), (array) + (i) + 1, (--(n) - (i)) * sizeof(*(array)))

void gpu_edits_node(struct gpu_edits *x, const struct edit_node *n)
{
	for (size_t i = 0; i < x->nnodes; i++)
		if (path_relate(x->nodes[i].path, n->path) == PATH_SAME) {
			DROP(x->nodes, x->nnodes, i);
			break;
		}
	ADD(x->nodes, x->nnodes, n);
}

void gpu_edits_mount(struct gpu_edits *x, const struct edit_mount *m)
{
	for (size_t i = 0; i < x->nmounts; i++)
		if (path_relate(x->mounts[i].destination, m->destination) == PATH_SAME) {
			DROP(x->mounts, x->nmounts, i);
			break;
		}
	ADD(x->mounts, x->nmounts, m);
}

void gpu_edits_hook(struct gpu_edits *x, const struct edit_hook *h)
{
	ADD(x->hooks, x->nhooks, h);
}

void gpu_edits_link(struct gpu_edits *x, const char *path, const char *target)
{
	const struct edit_link l = {path, target};

	for (size_t i = 0; i < x->nlinks; i++)
		if (path_relate(x->links[i].path, path) == PATH_SAME) {
			DROP(x->links, x->nlinks, i);
			break;
		}
	ADD(x->links, x->nlinks, &l);
}

void gpu_edits_env(struct gpu_edits *x, const char *name, const char *value)
{
	const struct edit_env v = {name, value};

	for (size_t i = 0; i < x->nenv; i++)
		if (str_eq(x->env[i].name, name)) {
			x->env[i] = v;
			return;
		}
	ADD(x->env, x->nenv, &v);
}

void gpu_edits_gid(struct gpu_edits *x, uint32_t gid)
{
	for (size_t i = 0; i < x->ngids; i++)
		if (x->gids[i] == gid)
			return;
	if (gid != 0)
		ADD(x->gids, x->ngids, &gid);
}

void gpu_edits_ld_dir(struct gpu_edits *x, const char *dir)
{
	for (size_t i = 0; i < x->nld_dirs; i++)
		if (path_relate(x->ld_dirs[i], dir) == PATH_SAME)
			return;
	ADD(x->ld_dirs, x->nld_dirs, &dir);
}

void gpu_edits_netdev(struct gpu_edits *x, const char *host, const char *name)
{
	const struct edit_netdev d = {host, name};

	for (size_t i = 0; i < x->nnetdevs; i++)
		if (str_eq(x->netdevs[i].host, host)) {
			x->netdevs[i] = d;
			return;
		}
	ADD(x->netdevs, x->nnetdevs, &d);
}
