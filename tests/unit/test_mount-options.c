#include "tests/unit/test.h"

#include <linux/mount.h>

#include "base/str.h"
#include "runtime/mount-options.h"

/* Words separated by commas. The array and the copy live in the arena. */
static int parse(struct mount_options *o, struct arena *mem, const char *words, struct err *e)
{
	struct strings s = {arena_alloc(mem, 32 * sizeof(char *)), 0};
	char *copy = arena_strdup(mem, words), *end;

	for (char *p = copy; p && *p; p = end) {
		end = strchr(p, ',');
		if (end)
			*end++ = '\0';
		s.v[s.n++] = p;
	}
	return mount_options_parse(o, &s, mem, e);
}

static const struct {
	const char *words;
	uint64_t set, clear, set_all, clear_all, propagation, propagation_all;
	bool bind, bind_all;
	const char *data;
} cases[] = {
	{"", 0, 0, 0, 0, 0, 0, false, false, ""},
	{"defaults", 0, 0, 0, 0, 0, 0, false, false, ""},
	{"ro,nosuid", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0, 0, 0, 0, 0, false, false, ""},
	{"ro,rw", 0, MOUNT_ATTR_RDONLY, 0, 0, 0, 0, false, false, ""},
	{"rw,ro", MOUNT_ATTR_RDONLY, 0, 0, 0, 0, 0, false, false, ""},
	{"rro", 0, 0, MOUNT_ATTR_RDONLY, 0, 0, 0, false, false, ""},
	{"rrw,rnoexec", 0, 0, MOUNT_ATTR_NOEXEC, MOUNT_ATTR_RDONLY, 0, 0, false, false, ""},
	{"noatime", MOUNT_ATTR_NOATIME, MOUNT_ATTR__ATIME, 0, 0, 0, 0, false, false, ""},
	{"strictatime,noatime", MOUNT_ATTR_NOATIME, MOUNT_ATTR__ATIME & ~MOUNT_ATTR_NOATIME, 0, 0,
		0, 0, false, false, ""},
	{"relatime", 0, MOUNT_ATTR__ATIME, 0, 0, 0, 0, false, false, ""},
	{"bind,private", 0, 0, 0, 0, MS_PRIVATE, 0, true, false, ""},
	{"rbind,rslave", 0, 0, 0, 0, 0, MS_SLAVE, true, true, ""},
	{"mode=755,size=64k,newinstance", 0, 0, 0, 0, 0, 0, false, false,
		"mode=755 size=64k newinstance "},
};

TEST(options_are_sorted_into_what_the_kernel_takes)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct arena mem = {0};
		struct mount_options o;
		char data[128] = "";

		assert_int_equal(parse(&o, &mem, cases[i].words, NULL), 0);
		for (size_t k = 0; k < o.data.n; k++)
			snprintf(data + strlen(data), sizeof(data) - strlen(data), "%s ",
				o.data.v[k]);
		if (o.set != cases[i].set || o.set_all != cases[i].set_all ||
			o.clear_all != cases[i].clear_all ||
			o.propagation != cases[i].propagation ||
			o.propagation_all != cases[i].propagation_all || o.bind != cases[i].bind ||
			o.bind_all != cases[i].bind_all || !str_eq(data, cases[i].data))
			fail_msg("%s: set %#llx, all %#llx, data '%s'", cases[i].words,
				(unsigned long long)o.set, (unsigned long long)o.set_all, data);
		/* mount_setattr(2) wants the whole mask cleared when an access time is set. */
		if (cases[i].clear & MOUNT_ATTR__ATIME)
			assert_int_equal(o.clear & MOUNT_ATTR__ATIME, MOUNT_ATTR__ATIME);
		else
			assert_int_equal(o.clear, cases[i].clear);
		arena_fini(&mem);
	}
}

TEST(options_that_would_be_dropped_are_refused_by_name)
{
	static const char *const words[] = {"mand", "move", "rmove"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct arena mem = {0};
		struct mount_options o;
		struct err e = {0};
		char text[96];

		snprintf(text, sizeof(text), "mount option '%s' is not supported", words[i]);
		assert_int_equal(parse(&o, &mem, words[i], &e), -1);
		assert_int_equal(e.kind, ERR_UNSUPPORTED);
		assert_string_equal(e.text, text);
		arena_fini(&mem);
	}
}

TEST(words_that_are_not_for_the_kernel_switch_something_on)
{
	static const struct {
		const char *words;
		struct mount_options want;
	} switched[] = {
		{"remount,ro", {.remount = true, .set = MOUNT_ATTR_RDONLY}},
		{"tmpcopyup", {.tmpcopyup = true}},
		{"idmap", {.idmap = true}},
		{"ridmap", {.idmap = true, .idmap_all = true}},
		{"src-nofollow", {.src_nofollow = true}},
		{"dest-nofollow", {.dest_nofollow = true}},
		{"copy-symlink", {.copy_symlink = true}},
		{"async,nolazytime,nomand,noiversion,silent,loud", {0}},
	};

	for (size_t i = 0; i < sizeof(switched) / sizeof(switched[0]); i++) {
		struct arena mem = {0};
		struct mount_options o;

		assert_int_equal(parse(&o, &mem, switched[i].words, NULL), 0);
		assert_int_equal(o.data.n, 0);
		o.data = (struct strings){0};
		if (memcmp(&o, &switched[i].want, sizeof(o)) != 0)
			fail_msg("%s", switched[i].words);
		arena_fini(&mem);
	}
}

TEST(every_name_that_is_listed_is_known_and_none_is_listed_twice)
{
	char name[32], other[32];
	size_t n = 0;

	for (; mount_options_name(n, name); n++) {
		const char *word = name;
		struct strings s = {&word, 1};
		struct arena mem = {0};
		struct mount_options o;

		assert_int_equal(mount_options_parse(&o, &s, &mem, NULL), 0);
		if (o.data.n && !str_eq(name, "sync") && !str_eq(name, "dirsync") &&
			!str_eq(name, "lazytime"))
			fail_msg("%s is listed, but left to the file system", name);
		arena_fini(&mem);
		for (size_t k = 0; k < n; k++) {
			assert_true(mount_options_name(k, other));
			assert_string_not_equal(name, other);
		}
	}
	assert_int_equal(n, 7 + 3 + 9 + 2 * 18 + 2 * 4);
}

RUN_TESTS(cmocka_unit_test(options_are_sorted_into_what_the_kernel_takes),
	cmocka_unit_test(options_that_would_be_dropped_are_refused_by_name),
	cmocka_unit_test(words_that_are_not_for_the_kernel_switch_something_on),
	cmocka_unit_test(every_name_that_is_listed_is_known_and_none_is_listed_twice))
