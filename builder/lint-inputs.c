/* What goes into an image: bases, sources, Debian packages, the lock, and what is allowed. */
#include "builder/lint-parts.h"

#include <string.h>

#include "base/str.h"

static bool is_zero(const struct digest *d)
{
	static const struct digest zero;

	return digest_eq(d, &zero);
}

/* ---- digests ---- */

void lint_010(struct lint_pass *p)
{
	if (p->m->base.type == BASE_OCI && is_zero(&p->m->base.digest))
		lint_found(p, "/base", "digest", "the base is not named by its digest");
}

static bool is_locked(const struct lint_pass *p, const char *id)
{
	for (size_t i = 0; p->l && i < p->l->nmodels; i++)
		if (str_eq(p->l->models[i].id, id))
			return true;
	return false;
}

/* Weights that are not in the image are fetched by whoever starts it. (The revision of a hub is a
 * commit; a lock has the digests of what the manifest does not say.) */
static void models_without_digests(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nmodels; i++) {
		const struct manifest_model *o = &p->m->models[i];

		if (o->delivery == DELIVERY_RUNTIME && !o->nfiles && !is_locked(p, o->id) &&
			!(o->source == MODEL_HF && o->revision) &&
			!(o->source == MODEL_OCI && o->source_url &&
				strstr(o->source_url, "@sha256:")))
			lint_found(p, lint_text(p, "/models/%zu", i),
				"files with sha256 and size, or a lock",
				"the model '%s' is fetched at the start, whatever it is then",
				o->id);
	}
}

void lint_011(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nsources; i++) {
		const struct manifest_source *s = &p->m->sources[i];
		bool local = s->url && str_starts(s->url, "file:");
		const char *at = lint_text(p, "/sources/%zu", i);

		if (s->type == SOURCE_GIT && !s->commit)
			lint_found(p, at, "commit", "the source '%s' has no commit", s->id);
		if ((s->type == SOURCE_ARCHIVE || s->type == SOURCE_OCI ||
			    (s->type == SOURCE_FILE && !local)) &&
			is_zero(&s->sha256))
			lint_found(p, at, "sha256", "the source '%s' has no digest", s->id);
	}
	models_without_digests(p);
}

/* ---- names whose meaning changes ---- */

static const char *floating_part(const char *url)
{
	static const char *const parts[] = {"/latest/", "/main/", "/master/", "/HEAD/", "/head/",
		"/nightly/", "/current/", "refs/heads/", "latest.tar", "latest.zip", NULL};

	for (size_t i = 0; parts[i]; i++)
		if (strstr(url, parts[i]))
			return parts[i];
	return NULL;
}

static void check_url(struct lint_pass *p, const char *pointer, const char *url)
{
	const char *part = url ? floating_part(url) : NULL;

	if (part)
		lint_found(p, pointer, "an address of one release or commit",
			"'%.*s' is something else tomorrow: the digest will not match", 32, part);
}

/* A tag that moves: what the digest is of can no longer be told from the name. */
static void check_ref(struct lint_pass *p, const char *pointer, const char *ref)
{
	const char *slash = ref ? strrchr(ref, '/') : NULL;
	const char *tag = ref ? strrchr(slash ? slash : ref, ':') : NULL;

	if (ref && !str_starts(ref, "store:") && !strchr(ref, '@') &&
		(!tag || str_eq(tag, ":latest")))
		lint_found(p, pointer, "a tag of one release, like :12.11",
			"the name of the image has %s", tag ? "the tag 'latest'" : "no tag");
}

static void check_suites(struct lint_pass *p)
{
	static const char *const moving[] = {"stable", "stable-*", "oldstable*", "testing",
		"testing-*", "unstable", "sid", "devel*", "rolling*", "experimental", NULL};

	for (size_t i = 0; i < p->m->apt.nsources; i++) {
		const struct strings *s = &p->m->apt.sources[i].suites;

		for (size_t k = 0; k < s->n; k++)
			if (lint_matches(s->v[k], moving))
				lint_found(p, lint_text(p, "/apt/sources/%zu/suites/%zu", i, k),
					"a release's name, like bookworm",
					"the suite '%s' is another release later", s->v[k]);
	}
}

static void check_models(struct lint_pass *p)
{
	for (size_t i = 0; i < p->m->nmodels; i++) {
		const struct manifest_model *o = &p->m->models[i];
		const char *at = lint_text(p, "/models/%zu/source/url", i);

		if (o->source == MODEL_HF && !o->revision)
			lint_found(p, lint_text(p, "/models/%zu/source", i), "a revision",
				"the model '%s' is of no revision", o->id);
		if (o->source == MODEL_OCI)
			check_ref(p, at, o->source_url);
		else
			check_url(p, at, o->source_url);
	}
}

void lint_012(struct lint_pass *p)
{
	if (p->m->base.type == BASE_OCI)
		check_ref(p, "/base/ref", p->m->base.ref);
	for (size_t i = 0; i < p->m->nsources; i++) {
		const char *at = lint_text(p, "/sources/%zu/url", i);

		if (p->m->sources[i].type == SOURCE_OCI)
			check_ref(p, at, p->m->sources[i].url);
		else if (p->m->sources[i].type != SOURCE_GIT)
			check_url(p, at, p->m->sources[i].url);
	}
	for (size_t i = 0; i < p->m->python.nwheels; i++)
		check_url(p, lint_text(p, "/python/wheels/%zu/url", i), p->m->python.wheels[i].url);
	check_suites(p);
	check_models(p);
}

/* ---- the lock ---- */

void lint_017(struct lint_pass *p)
{
	struct err e = {0};

	if (p->l && lock_check(p->l, p->m, &e) < 0)
		lint_found(p, "", NULL, "the lock is of another version of this manifest");
}

/* ---- x-lint ---- */

static const char *wrong_with(const json_t *entry)
{
	const char *id = json_string_value(json_object_get(entry, "id"));
	const char *reason = json_string_value(json_object_get(entry, "reason"));
	uint64_t code;

	if (!id || !str_starts(id, "SV") || str_u64(id + 2, 999, &code) < 0 ||
		!lint_rule((int)code))
		return "no code that there is";
	if (!reason || !*reason)
		return "no reason";
	if (json_object_get(entry, "pointer") && !json_is_string(json_object_get(entry, "pointer")))
		return "a pointer that is no string";
	return NULL;
}

void lint_018(struct lint_pass *p)
{
	const json_t *own = json_object_get(p->m->doc.root, "x-lint");
	const json_t *allow = json_object_get(own, "allow");

	if (own && !json_is_array(allow))
		lint_found(p, "/x-lint", "{\"allow\": [...]}", "nothing is allowed here");
	for (size_t i = 0; i < json_array_size(allow); i++) {
		const char *wrong = wrong_with(json_array_get(allow, i));

		if (wrong)
			lint_found(p, lint_text(p, "/x-lint/allow/%zu", i),
				"{\"id\": \"SVnnn\", \"reason\": \"...\"}",
				"this allows nothing: it has %s", wrong);
	}
}

/* ---- Debian packages ---- */

void lint_040(struct lint_pass *p)
{
	if (p->m->apt.recommends)
		lint_found(p, "/apt/recommends", "false", "recommended packages are installed");
}

/* The reference implementation, by the lock or by an alternative that asks for it. */
void lint_041(struct lint_pass *p)
{
	static const char *const users[] = {"python3-numpy", "python3-torch", "python3-scipy",
		"python3-sklearn", "libtorch*", "r-base-core", "octave", NULL};
	static const char *const fast[] = {
		"libopenblas*", "libblis*", "libatlas3-base", "libmkl-*", "intel-mkl*", NULL};
	static const char *const slow[] = {"libblas3", NULL};
	const struct pairs *alternatives = &p->m->apt.alternatives;
	const char *user = lint_has_deb(p, users);

	if (user && lint_has_deb(p, slow) && !lint_has_deb(p, fast))
		lint_found(p, "/apt/packages", "libopenblas0-pthread",
			"%s computes with the reference BLAS (libblas3)", user);
	for (size_t i = 0; user && i < alternatives->n; i++) {
		const struct pair *a = &alternatives->v[i];

		if ((str_starts(a->name, "libblas.so") && strstr(a->value, "/blas/")) ||
			(str_starts(a->name, "liblapack.so") && strstr(a->value, "/lapack/")))
			lint_found(p, lint_below(p, "/apt/alternatives", a->name),
				"the library of openblas-pthread",
				"%s computes with the reference %s", user,
				str_starts(a->name, "libblas") ? "BLAS" : "LAPACK");
	}
}

void lint_042(struct lint_pass *p)
{
	static const char *const tools[] = {"*-dev", "build-essential", "gcc", "gcc-??", "g++",
		"g++-*", "clang", "clang-*", "cmake", "make", "ninja-build", "nvidia-cuda-toolkit",
		"cuda-toolkit-*", "rustc", "cargo", NULL};
	static const char *const may[] = {"notebook", "training", "desktop", NULL};

	if (p->m->category && lint_listed(p->m->category, may))
		return;
	for (size_t i = 0; i < p->m->apt.packages.n; i++) {
		const char *name = lint_deb_name(p, p->m->apt.packages.v[i]);

		if (lint_matches(name, tools))
			lint_found(p, lint_text(p, "/apt/packages/%zu", i), NULL,
				"'%s' is for building programs, not for running them", name);
	}
}

void lint_043(struct lint_pass *p)
{
	if (p->m->apt.present && !p->m->apt.prune.n)
		lint_found(p, "/apt", "prune", "documentation and translations stay in the image");
}

void lint_044(struct lint_pass *p)
{
	if (p->m->apt.present && p->m->apt.database != DATABASE_DPKG)
		lint_found(p, "/apt/database", "dpkg",
			"apt-get does not work in the image: it has no package database");
}

void lint_045(struct lint_pass *p)
{
	if (p->m->apt.present && p->m->apt.configure == APT_NONE)
		lint_found(p, "/apt/configure", "builtin or dpkg",
			"packages are only unpacked: users, alternatives and certificates are "
			"missing");
}

void lint_046(struct lint_pass *p)
{
	const struct strings *packages = &p->m->apt.packages;

	if (!p->m->apt.present || p->m->base.type != BASE_SCRATCH)
		return;
	for (size_t i = 0; i < packages->n; i++)
		if (str_eq(packages->v[i], "?essential"))
			return;
	lint_found(p, "/apt/packages", "?essential",
		"the image has no shell and no /etc/passwd: no package depends on Essential ones");
}
