/* Python packages that do not fit each other. */
#include "builder/lint-parts.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "builder/python-tags.h"
#include "builder/python.h"

/* ---- which versions of torch and its companions there are ---- */

struct pin {
	const char *name, *version, *pointer;
};

enum { PINS_MAX = 64 };
struct pins {
	struct pin v[PINS_MAX];
	size_t n;
};

static const char *const family[] = {"torch", "torchvision", "torchaudio", NULL};

static void add_pin(struct pins *all, const char *name, const char *version, const char *pointer)
{
	for (size_t i = 0; family[i] && version; i++)
		if (python_same_name(family[i], name) && all->n < PINS_MAX)
			all->v[all->n++] = (struct pin){family[i], version, pointer};
}

/* "==2.9.1", "==2.9.*" and "2.9.*" say which version it is; other specifiers do not. */
static const char *pinned(struct lint_pass *p, const char *specifier)
{
	const char *s = specifier + strspn(specifier, "= ");
	size_t n = strspn(s, "0123456789.");

	if (!n || (s[n] && !str_eq(s + n, "*") && s[n] != '+'))
		return NULL;
	return lint_text(
		p, "%.*s%s", (int)(s[n - 1] == '.' ? n - 1 : n), s, s[n] == '+' ? s + n : "");
}

static void collect(struct lint_pass *p, struct pins *all)
{
	static const char debian[] = "python3-";
	const struct manifest_python *py = &p->m->python;

	for (size_t i = 0; i < py->guard.n; i++)
		add_pin(all, py->guard.v[i].name, pinned(p, py->guard.v[i].value),
			lint_below(p, "/python/guard", py->guard.v[i].name));
	for (size_t i = 0; i < py->nwheels; i++)
		add_pin(all, py->wheels[i].name, py->wheels[i].version,
			lint_text(p, "/python/wheels/%zu/version", i));
	for (size_t i = 0; p->l && i < p->l->nwheels; i++)
		add_pin(all, p->l->wheels[i].name, p->l->wheels[i].version, "/python");
	for (size_t i = 0; p->l && i < p->l->ndebs; i++)
		if (str_starts(p->l->debs[i].name, debian))
			add_pin(all, p->l->debs[i].name + strlen(debian), p->l->debs[i].version,
				"/apt/packages");
}

/* ---- what fits ---- */

struct numbers {
	unsigned long major, minor;
	bool ok;
};

static struct numbers numbers_of(const char *version)
{
	struct numbers n = {0};

	n.ok = sscanf(version, "%4lu.%4lu", &n.major, &n.minor) == 2;
	return n;
}

/* Each release of torch has one of torchvision and one of torchaudio, which are built against it.
 * Source: the table of versions in the README of torchvision. */
static bool companion(const char *name, struct numbers torch, struct numbers *want)
{
	bool vision = str_eq(name, "torchvision");

	*want = (struct numbers){.ok = torch.ok};
	if (torch.major == 1 && torch.minor >= 8)
		want->minor = vision ? torch.minor + 1 : torch.minor;
	else if (torch.major == 2 && vision)
		want->minor = torch.minor + 15;
	else if (torch.major == 2)
		*want = torch;
	else
		want->ok = false;
	return want->ok;
}

static void check_companion(struct lint_pass *p, const struct pin *torch, const struct pin *other)
{
	struct numbers want, has = numbers_of(other->version);

	if (companion(other->name, numbers_of(torch->version), &want) && has.ok &&
		(has.major != want.major || has.minor != want.minor))
		lint_found(p, other->pointer, lint_text(p, "%lu.%lu", want.major, want.minor),
			"%s %s was not built for torch %s", other->name, other->version,
			torch->version);
}

/* "cu128" of "2.7.0+cu128", or NULL. */
static const char *local_of(const char *version)
{
	const char *plus = strchr(version, '+');

	return plus && (str_starts(plus, "+cu") || str_starts(plus, "+cpu") ||
			       str_starts(plus, "+rocm") || str_starts(plus, "+xpu"))
		       ? plus + 1
		       : NULL;
}

static bool same_release(const char *a, const char *b)
{
	for (;; a++, b++) {
		size_t x = strspn(a, "0123456789"), y = strspn(b, "0123456789");

		if (x != y || strncmp(a, b, x) != 0)
			return false;
		a += x;
		b += y;
		if (*a != '.' || *b != '.')
			return true;
	}
}

static void check_pair(struct lint_pass *p, const struct pin *a, const struct pin *b)
{
	const char *x = local_of(a->version), *y = local_of(b->version);

	if (str_eq(a->name, b->name) && !same_release(a->version, b->version))
		lint_found(p, b->pointer, lint_text(p, "%s, as %s says", a->version, a->pointer),
			"%s %s", b->name, b->version);
	if (x && y && !str_eq(x, y))
		lint_found(p, b->pointer, lint_text(p, "+%s, as %s has", x, a->pointer),
			"%s is built for %s", b->name, y);
	if (str_eq(a->name, "torch") && !str_eq(b->name, "torch"))
		check_companion(p, a, b);
	if (str_eq(b->name, "torch") && !str_eq(a->name, "torch"))
		check_companion(p, b, a);
}

/* A build of torch that cannot use what gpu asks for. */
static void check_gpu(struct lint_pass *p, const struct pin *pin)
{
	const struct manifest_gpu *g = &p->m->gpu;
	const char *local = local_of(pin->version);

	if (!g->present || g->mode != GPU_REQUIRED || !local)
		return;
	if (str_eq(local, "cpu"))
		lint_found(p, pin->pointer, "a build for CUDA", "a GPU is required, %s %s has none",
			pin->name, pin->version);
	if (str_starts(local, "cu1") && g->cuda_min &&
		strtoul(g->cuda_min, NULL, 10) < strtoul(lint_text(p, "%.2s", local + 2), NULL, 10))
		lint_found(p, pin->pointer, lint_text(p, "cuda.min %.2s", local + 2),
			"%s %s does not run with CUDA %s", pin->name, pin->version, g->cuda_min);
}

void lint_050(struct lint_pass *p)
{
	struct pins all = {.n = 0};

	collect(p, &all);
	for (size_t i = 0; i < all.n; i++) {
		check_gpu(p, &all.v[i]);
		for (size_t k = i + 1; k < all.n; k++)
			check_pair(p, &all.v[i], &all.v[k]);
	}
}

/* ---- tags ---- */

static struct python_platform platform_of(const struct lint_pass *p)
{
	const char *python = p->l ? python_of_lock(p->l) : NULL;
	const char *glibc = p->l ? glibc_of_lock(p->l) : NULL;
	struct python_platform x = {.glibc_major = 2, .glibc_minor = 99};
	bool arm = p->m->platform && strstr(p->m->platform, "arm64");

	x.machine = arm ? "aarch64" : "x86_64";
	if (python && sscanf(python, "%2u.%3u", &x.major, &x.minor) != 2)
		x.major = 0;
	if (glibc && sscanf(glibc, "%2u.%3u", &x.glibc_major, &x.glibc_minor) != 2)
		x.glibc_minor = 99;
	return x;
}

/* Without a lock it is not known which Python there will be: any will do. */
static bool fits_any(struct lint_pass *p, const struct wheel_name *w, struct python_platform x)
{
	for (x.major = 3, x.minor = 7; x.minor < 20; x.minor++) {
		struct strings tags = python_tags(&x, &p->out->arena);

		if (python_tags_rank(&tags, w) >= 0)
			return true;
	}
	return false;
}

void lint_052(struct lint_pass *p)
{
	struct python_platform x = platform_of(p);
	struct strings tags = {0};
	struct wheel_name w;

	if (x.major && p->m->python.nwheels)
		tags = python_tags(&x, &p->out->arena);
	for (size_t i = 0; i < p->m->python.nwheels; i++) {
		const struct wheel_pin *pin = &p->m->python.wheels[i];

		if (wheel_name_parse(&w, &p->out->arena, pin->file, NULL) < 0 ||
			(x.major ? python_tags_rank(&tags, &w) >= 0 : fits_any(p, &w, x)))
			continue;
		lint_found(p, lint_text(p, "/python/wheels/%zu/file", i),
			x.major ? lint_text(p, "a wheel for Python %u.%u, %s", x.major, x.minor,
					  x.machine)
				: lint_text(p, "a wheel for Linux, %s", x.machine),
			"%s-%s-%s does not fit", w.python, w.abi, w.platform);
	}
}

/* ---- what pip lets happen ---- */

void lint_056(struct lint_pass *p)
{
	const struct manifest_python *py = &p->m->python;
	static const char *const torch[] = {"torch", NULL};
	static const char *const debs[] = {"python3-torch", NULL};

	if (!py->present || !(py->nwheels || py->lock) ||
		!(lint_has_wheel(p, torch) || lint_has_deb(p, debs)))
		return;
	for (size_t i = 0; i < py->guard.n; i++)
		if (python_same_name(py->guard.v[i].name, "torch"))
			return;
	lint_found(p, "/python", "guard.torch",
		"the next lock may bring another torch, and nobody would notice");
}

void lint_057(struct lint_pass *p)
{
	static const struct {
		const char *what;
		const char *names[6];
	} groups[] = {{"cv2", {"opencv-python", "opencv-python-headless", "opencv-contrib-python",
				      "opencv-contrib-python-headless"}},
		{"onnxruntime", {"onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino"}},
		{"tensorflow", {"tensorflow", "tensorflow-cpu", "tensorflow-gpu"}},
		{"faiss", {"faiss-cpu", "faiss-gpu"}}};

	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
		const char *first = NULL;

		for (size_t i = 0; groups[g].names[i]; i++) {
			const char *const one[] = {groups[g].names[i], NULL};

			if (!lint_has_wheel(p, one))
				continue;
			if (first)
				lint_found(p, "/python", NULL, "%s and %s both bring the module %s",
					first, *one, groups[g].what);
			first = first ? first : *one;
		}
	}
}
