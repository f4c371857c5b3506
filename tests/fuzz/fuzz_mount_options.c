/* Any words as mount options: no flag is both set and cleared, saying all of them twice says the
 * same, and what is left to the file system is what no list names. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <linux/mount.h>

#include "runtime/mount-options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS = 64 };

static bool is_listed(const char *word)
{
	char name[32];

	for (size_t i = 0; mount_options_name(i, name); i++)
		if (strcmp(name, word) == 0)
			return strcmp(name, "sync") != 0 && strcmp(name, "dirsync") != 0 &&
			       strcmp(name, "lazytime") != 0;
	return false;
}

static void check(const struct mount_options *o)
{
	/* mount_setattr(2) wants the whole mask of access times cleared when one is set. */
	assert((o->set & o->clear & ~(uint64_t)MOUNT_ATTR__ATIME) == 0);
	assert((o->set_all & o->clear_all & ~(uint64_t)MOUNT_ATTR__ATIME) == 0);
	assert(!o->bind_all || o->bind);
	assert(!o->idmap_all || o->idmap);
	for (size_t i = 0; i < o->data.n; i++)
		assert(!is_listed(o->data.v[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *words[2 * WORDS];
	struct strings s = {words, 0};
	struct mount_options o, twice;
	struct arena mem = {0};
	struct err e = {0};
	char *text = arena_strndup(&mem, (const char *)data, size), *end;

	for (char *p = text; p && s.n < WORDS; p = end) {
		end = strchr(p, ',');
		if (end)
			*end++ = '\0';
		words[s.n++] = p;
	}
	if (mount_options_parse(&o, &s, &mem, &e) < 0) {
		assert(e.kind == ERR_UNSUPPORTED && strlen(e.text) > 0);
	} else {
		check(&o);
		memcpy(words + s.n, words, s.n * sizeof(words[0]));
		s.n *= 2;
		if (mount_options_parse(&twice, &s, &mem, &e) < 0)
			abort();
		assert(twice.data.n == 2 * o.data.n);
		twice.data = o.data;
		assert(memcmp(&o, &twice, sizeof(o)) == 0);
	}
	arena_fini(&mem);
	return 0;
}
