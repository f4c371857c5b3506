/* What a built tree shows. */
#include "builder/lint-parts.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "images/glob.h"

enum { WEIGHTS_MIN = 4 << 20 }; /* bytes: smaller ones are test data and examples */

static const char *path_of(const struct node *n, char path[TREE_PATH_MAX + 2])
{
	path[0] = '/';
	node_path(n, path + 1);
	return path;
}

/* The key of the manifest that brought it. */
static const char *brought_by(struct lint_pass *p, const struct node *n)
{
	static const char *const keys[] = {[ORIGIN_STATE] = "",
		[ORIGIN_DEB] = "/apt/packages",
		[ORIGIN_NPM] = "/node",
		[ORIGIN_MODEL] = "/models",
		[ORIGIN_FILE] = "/files",
		[ORIGIN_WHEEL] = "/python",
		[ORIGIN_SOURCE] = "/sources",
		[ORIGIN_RUN] = "/run",
		[ORIGIN_BASE] = "/base"};
	const struct origin *o;

	if (n->origin >= p->c->norigins)
		return "";
	o = &p->c->origins[n->origin];
	if ((o->kind == ORIGIN_MODEL && o->entry < p->m->nmodels) ||
		(o->kind == ORIGIN_RUN && o->entry < p->m->nruns))
		return lint_text(p, "%s/%zu", keys[o->kind], o->entry);
	return keys[o->kind];
}

/* ": libc6", of whoever brought it. */
static const char *from(struct lint_pass *p, const struct node *n)
{
	const struct origin *o =
		n->origin < p->c->norigins ? &p->c->origins[n->origin] : &(struct origin){0};

	return o->name && *o->name ? lint_text(p, " (of %s)", o->name) : "";
}

static bool is_file(const struct node *n)
{
	return n->a.type == NODE_FILE;
}

/* ---- rights ---- */

int lint_tree_071(struct lint_pass *p, struct err *e)
{
	char path[TREE_PATH_MAX + 2];

	(void)e;
	for (struct node *n = tree_root(p->c->tree); n; n = tree_next(n))
		if (is_file(n) && (n->a.mode & 06000))
			lint_found(p, brought_by(p, n), NULL, "%s%s runs with the rights of its %s",
				path_of(n, path), from(p, n),
				n->a.mode & 04000 ? "owner" : "group");
	return 0;
}

int lint_tree_072(struct lint_pass *p, struct err *e)
{
	char path[TREE_PATH_MAX + 2];

	(void)e;
	for (struct node *n = tree_root(p->c->tree); n; n = tree_next(n)) {
		bool open_dir = n->a.type == NODE_DIR && (n->a.mode & 01002) == 0002;

		if (open_dir || (is_file(n) && (n->a.mode & 0002)))
			lint_found(p, brought_by(p, n), NULL, "everybody may write %s%s%s",
				open_dir ? "and delete in " : "", path_of(n, path), from(p, n));
	}
	return 0;
}

/* ---- merged /usr ---- */

int lint_tree_101(struct lint_pass *p, struct err *e)
{
	static const char *const names[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

	(void)e;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char usr[16];
		const struct node *n = tree_find(p->c->tree, names[i]);

		snprintf(usr, sizeof(usr), "usr/%s", names[i]);
		if (n && n->a.type == NODE_DIR && tree_find(p->c->tree, usr))
			lint_found(p, brought_by(p, n), lint_text(p, "a link to %s", usr),
				"/%s is a folder beside /%s", names[i], usr);
	}
	return 0;
}

/* ---- layers ---- */

static int32_t count_layers(struct tree *t)
{
	int32_t count = 0;

	for (struct node *n = tree_root(t); n; n = tree_next(n))
		if (n->layer >= count)
			count = n->layer + 1;
	return count;
}

int lint_tree_110(struct lint_pass *p, struct err *e)
{
	int32_t count = count_layers(p->c->tree);
	auto_free uint64_t *bytes = mem_array((size_t)count + 1, sizeof(*bytes));

	(void)e;
	for (struct node *n = tree_root(p->c->tree); n; n = tree_next(n))
		if (is_file(n) && n->layer >= 0)
			bytes[n->layer] += n->a.size;
	for (int32_t i = 0; i < count; i++)
		if (p->m->build.codec == CODEC_GZIP && bytes[i] > 4ull << 30)
			lint_found(p, "/build/layers", NULL,
				"layer %d has %.1f GiB, compressed with gzip", i,
				(double)bytes[i] / (1 << 30));
	return 0;
}

int lint_tree_111(struct lint_pass *p, struct err *e)
{
	int32_t count = count_layers(p->c->tree);

	(void)e;
	if (count > 100)
		lint_found(p, "/build/layers/max", "100 at most", "the image has %d layers", count);
	return 0;
}

/* ---- backends ---- */

static bool has_match(struct tree *t, const char *glob)
{
	char path[TREE_PATH_MAX + 2];

	for (struct node *n = tree_root(t); n; n = tree_next(n))
		if (n->a.type != NODE_DIR && glob_matches(glob, path_of(n, path)))
			return true;
	return false;
}

/* A build without CUDA works, on the CPU, and nobody is told. */
int lint_tree_121(struct lint_pass *p, struct err *e)
{
	static const struct {
		const char *what, *marker, *backend;
	} table[] = {
		{"PyTorch", "**/torch/lib/libtorch_cpu.so", "**/torch/lib/libtorch_cuda.so"},
		{"llama.cpp", "**/libggml-base.so*", "**/libggml-cuda.so*"},
		{"onnxruntime", "**/libonnxruntime.so*", "**/libonnxruntime_providers_cuda.so"},
		{"onnxruntime", "**/onnxruntime_pybind11_state*.so",
			"**/libonnxruntime_providers_cuda.so"},
	};
	const struct manifest_gpu *g = &p->m->gpu;

	(void)e;
	if (!g->present || g->mode != GPU_REQUIRED || g->vendor == GPU_AMD ||
		g->vendor == GPU_INTEL)
		return 0;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (has_match(p->c->tree, table[i].marker) &&
			!has_match(p->c->tree, table[i].backend))
			lint_found(p, "/gpu", lint_text(p, "%s", table[i].backend),
				"%s is here without CUDA: it would run on the CPU, silently",
				table[i].what);
	return 0;
}

/* ---- weights ---- */

static bool is_below_model(const struct lint_pass *p, const struct node *n, const char *path)
{
	if (n->origin < p->c->norigins && p->c->origins[n->origin].kind == ORIGIN_MODEL)
		return true;
	for (size_t i = 0; i < p->m->nmodels; i++) {
		size_t len = strlen(p->m->models[i].target);

		if (strncmp(path, p->m->models[i].target, len) == 0 && path[len] == '/')
			return true;
	}
	return false;
}

int lint_tree_140(struct lint_pass *p, struct err *e)
{
	char path[TREE_PATH_MAX + 2];

	(void)e;
	for (struct node *n = tree_root(p->c->tree); n; n = tree_next(n)) {
		if (!is_file(n) || n->a.size < WEIGHTS_MIN || !lint_is_weights(n->name) ||
			is_below_model(p, n, path_of(n, path)))
			continue;
		lint_found(p, brought_by(p, n), "an entry of /models",
			"%s%s looks like weights, of %.0f MiB", path, from(p, n),
			(double)n->a.size / (1 << 20));
	}
	return 0;
}
