/* Steps that run code, modes of files, and layers. */
#include "builder/lint-parts.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "images/glob.h"

/* ---- run ---- */

void lint_060(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nruns; i++)
		if (p->m->runs[i].network)
			lint_found(p, lint_text(p, "/run/%zu/network", i), "false",
				"the step '%s' reaches the network: what it gets is in no lock",
				p->m->runs[i].id);
}

static bool is_volatile(const struct manifest *m, const char *path)
{
	for (size_t i = 0; i < m->build.volatiles.n; i++)
		if (str_eq(m->build.volatiles.v[i], path) ||
			glob_matches(m->build.volatiles.v[i], path))
			return true;
	return false;
}

void lint_062(struct lint_pass *p)
{
	static const char *const junk[] = {"/tmp", "/tmp/**", "/var/tmp", "/var/tmp/**",
		"/var/cache/**", "/var/log/**", "**/.cache/**", "**/.npm/**", "**/__pycache__/**",
		"**/uv_cache.json", NULL};

	for (size_t i = 0; i < p->m->nruns; i++)
		for (size_t k = 0; k < p->m->runs[i].writes.n; k++) {
			const char *path = p->m->runs[i].writes.v[k];

			if (lint_matches(path, junk) && !is_volatile(p->m, path))
				lint_found(p, lint_text(p, "/run/%zu/writes/%zu", i, k),
					"the path in build.volatile",
					"'%s' is a cache or a log: it differs with each run", path);
		}
}

void lint_063(struct lint_pass *p)
{
	static const char *const all[] = {
		"/**", "/*", "/**/*", "/*/**", "/usr/**", "/etc/**", "/var/**", NULL};

	for (size_t i = 0; i < p->m->nruns; i++)
		for (size_t k = 0; k < p->m->runs[i].writes.n; k++)
			if (lint_listed(p->m->runs[i].writes.v[k], all))
				lint_found(p, lint_text(p, "/run/%zu/writes/%zu", i, k),
					"the folders that it fills",
					"'%s' lets the step '%s' change anything there",
					p->m->runs[i].writes.v[k], p->m->runs[i].id);
}

void lint_064(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nruns; i++)
		if (!p->m->runs[i].writes.n)
			lint_found(p, lint_text(p, "/run/%zu", i), "writes",
				"the step '%s' may write nothing: it leaves nothing",
				p->m->runs[i].id);
}

/* What cannot work without a network. */
static const char *download_in(const char *text)
{
	static const char *const parts[] = {"pip install", "pip3 install", "apt-get install",
		"apt-get update", "npm install", "npm ci", "git clone", "curl http", "curl -",
		"wget http", "wget -", "conda install", "huggingface-cli download", NULL};
	static const char *const local[] = {
		"--no-index", "--offline", "file:", "install .", "install -e .", NULL};

	for (size_t i = 0; local[i]; i++)
		if (strstr(text, local[i]))
			return NULL;
	for (size_t i = 0; parts[i]; i++)
		if (strstr(text, parts[i]))
			return parts[i];
	return NULL;
}

void lint_066(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nruns; i++) {
		const struct manifest_run *r = &p->m->runs[i];
		const char *what = download_in(r->script ? r->script : lint_join(p, &r->argv));

		if (what && !r->network)
			lint_found(p, lint_text(p, "/run/%zu/%s", i, r->script ? "script" : "argv"),
				NULL, "'%s' in the step '%s', which has no network", what, r->id);
	}
}

/* ---- modes of files ---- */

void lint_071(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nfiles; i++)
		if (p->m->files[i].mode & 06000)
			lint_found(p, lint_text(p, "/files/%zu/mode", i), "\"0755\"",
				"%s runs with the rights of its owner", p->m->files[i].dest);
	for (size_t i = 0; i < p->m->nsources; i++)
		if (p->m->sources[i].mode & 06000)
			lint_found(p, lint_text(p, "/sources/%zu/mode", i), "\"0755\"",
				"%s runs with the rights of its owner", p->m->sources[i].dest);
}

void lint_072(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nfiles; i++)
		if (p->m->files[i].mode & 0002)
			lint_found(p, lint_text(p, "/files/%zu/mode", i), NULL,
				"everybody may write %s", p->m->files[i].dest);
	for (size_t i = 0; i < p->m->ndirs; i++)
		if ((p->m->dirs[i].mode & 01002) == 0002)
			lint_found(p, lint_text(p, "/dirs/%zu/mode", i), "\"1777\"",
				"everybody may write and delete in %s", p->m->dirs[i].path);
}

/* ---- layers ---- */

static uint64_t bytes_of(const struct manifest_model *o)
{
	uint64_t n = 0;

	for (size_t i = 0; i < o->nfiles; i++)
		n += o->files[i].size;
	return n;
}

void lint_110(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nmodels; i++) {
		const struct manifest_model *o = &p->m->models[i];

		if (o->delivery == DELIVERY_LAYER && p->m->build.models_codec == CODEC_GZIP &&
			bytes_of(o) > 4ull << 30)
			lint_found(p, lint_text(p, "/models/%zu", i),
				"\"compression\": {\"models\": \"none\"}",
				"the layer of '%s' is more than 4 GiB of gzip", o->id);
	}
}

void lint_111(struct lint_pass *p)
{
	size_t base = p->l ? p->l->base.nlayers : 0;

	if (base && base + p->m->build.max_layers > 100)
		lint_found(p, "/build/layers/max", lint_text(p, "%zu", base < 100 ? 100 - base : 1),
			"%zu layers of the base and up to %u of ours", base,
			p->m->build.max_layers);
}

void lint_112(struct lint_pass *p)
{
	if (p->m->build.strategy == LAYERS_SINGLE)
		lint_found(p, "/build/layers/strategy", "\"groups\" or \"origin\"",
			"one layer is fetched again as a whole for each change");
}

void lint_113(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nmodels; i++)
		if (p->m->models[i].delivery == DELIVERY_LAYER &&
			p->m->build.models_codec != CODEC_NONE &&
			p->m->models[i].format != FORMAT_OTHER) {
			lint_found(p, "/build/compression/models", "\"none\"",
				"weights do not get smaller by %s",
				codec_name(p->m->build.models_codec));
			return;
		}
}

void lint_114(struct lint_pass *p)
{
	if (p->m->build.codec == CODEC_GZIP)
		lint_found(p, "/build/compression/default", "\"zstd\"",
			"gzip takes ten times as long to pack and five times to unpack");
}
