#include "builder/lint-parts.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/python-name.h"
#include "images/glob.h"

bool lint_matches(const char *s, const char *const *globs)
{
	for (; *globs; globs++)
		if (glob_matches(*globs, s))
			return true;
	return false;
}

bool lint_listed(const char *s, const char *const *words)
{
	for (; *words; words++)
		if (str_eq(*words, s))
			return true;
	return false;
}

const char *lint_join(struct lint_pass *p, const struct strings *words)
{
	auto_buf struct buf b = BUF_INIT(64 << 20);

	for (size_t i = 0; i < words->n; i++)
		buf_printf(&b, "%s%s", i ? " " : "", words->v[i]);
	return arena_strdup(&p->out->arena, b.data ? b.data : "");
}

/* ---- packages ---- */

const char *lint_deb_name(struct lint_pass *p, const char *package)
{
	return arena_strndup(&p->out->arena, package, strcspn(package, "=/"));
}

const char *lint_has_deb(struct lint_pass *p, const char *const *globs)
{
	for (size_t i = 0; i < p->m->apt.packages.n; i++) {
		const char *name = lint_deb_name(p, p->m->apt.packages.v[i]);

		if (lint_matches(name, globs))
			return name;
	}
	for (size_t i = 0; p->l && i < p->l->ndebs; i++)
		if (lint_matches(p->l->debs[i].name, globs))
			return p->l->debs[i].name;
	return NULL;
}

const char *lint_has_wheel(struct lint_pass *p, const char *const *names)
{
	for (; *names; names++) {
		for (size_t i = 0; i < p->m->python.nwheels; i++)
			if (python_same_name(p->m->python.wheels[i].name, *names))
				return *names;
		for (size_t i = 0; p->l && i < p->l->nwheels; i++)
			if (python_same_name(p->l->wheels[i].name, *names))
				return *names;
	}
	return NULL;
}

const char *lint_has_npm(struct lint_pass *p, const char *const *globs)
{
	for (size_t i = 0; p->l && i < p->l->nnpms; i++)
		if (lint_matches(p->l->npms[i].name, globs))
			return p->l->npms[i].name;
	return NULL;
}

/* ---- weights ---- */

static bool has_end(const char *path, const char *const *ends)
{
	for (; *ends; ends++)
		if (str_ends(path, *ends))
			return true;
	return false;
}

static bool is_torch_bin(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return str_ends(name, ".bin") &&
	       (str_starts(name, "pytorch_model") || str_starts(name, "diffusion_pytorch_model") ||
		       str_starts(name, "model"));
}

bool lint_is_pickle(const char *path)
{
	static const char *const ends[] = {".ckpt", ".pt", ".pth", ".pkl", ".pickle", NULL};

	return has_end(path, ends) || is_torch_bin(path);
}

bool lint_is_weights(const char *path)
{
	static const char *const ends[] = {".safetensors", ".gguf", ".ggml", ".onnx", ".ckpt",
		".pt", ".pth", ".h5", ".tflite", NULL};

	return has_end(path, ends) || is_torch_bin(path);
}
