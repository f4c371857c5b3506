/* Libraries that the programs of a tree will not find. */
#include "builder/lint-parts.h"

#include "base/str.h"

/* Of the driver, which the host brings when the container starts. */
static const char *const of_driver[] = {"libcuda.so.1", "libnvidia-*.so*", "libnvcuvid.so.1",
	"libnvoptix.so.1", "libcudadebugger.so.1", NULL};

enum kind { NOWHERE, ELSEWHERE, DAMAGED };

static enum kind kind_of(const struct elf_unresolved *u)
{
	return u->damaged ? DAMAGED : u->elsewhere ? ELSEWHERE : NOWHERE;
}

static void say(struct lint_pass *p, const struct elf_unresolved *u)
{
	if (u->damaged)
		lint_found(p, "", NULL, "%s: %s", u->path, u->library);
	else if (u->elsewhere)
		lint_found(p, "", NULL, "%s needs %s, which is at %s", u->path, u->library,
			u->elsewhere);
	else
		lint_found(
			p, "", NULL, "%s needs %s, which is not in the image", u->path, u->library);
}

static const char *library_path(const struct manifest *m)
{
	for (size_t i = 0; i < m->env.n; i++)
		if (str_eq(m->env.v[i].name, "LD_LIBRARY_PATH"))
			return m->env.v[i].value;
	return NULL;
}

static int report(struct lint_pass *p, enum kind want, struct err *e)
{
	const struct rootfs r = {.tree = p->c->tree, .pool = p->pool};

	if (!p->searched && elf_unresolved(&r, NULL, library_path(p->m), &p->out->arena,
				    &p->missing, &p->nmissing, e) < 0)
		return -1;
	p->searched = true;
	for (size_t i = 0; i < p->nmissing; i++)
		if (kind_of(&p->missing[i]) == want &&
			(want == DAMAGED || !lint_matches(p->missing[i].library, of_driver)))
			say(p, &p->missing[i]);
	return 0;
}

int lint_tree_120(struct lint_pass *p, struct err *e)
{
	return report(p, NOWHERE, e);
}

int lint_tree_122(struct lint_pass *p, struct err *e)
{
	return report(p, ELSEWHERE, e);
}

int lint_tree_123(struct lint_pass *p, struct err *e)
{
	return report(p, DAMAGED, e);
}
