#include "tests/unit/test.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/model.h"

static int check(const char *path, const void *data, size_t n, bool allow, struct err *e)
{
	auto_fd int fd = memfd_create("model", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(sys_write_all(fd, data, n), 0);
	*e = (struct err){0};
	return model_check(fd, "m", path, allow, e);
}

#define T(s) (s), sizeof(s) - 1

static const struct {
	const char *path, *data;
	size_t n;
	bool pickle;
} cases[] = {
	{"a.bin", T("\x80\x04\x95\x0a...."), true},
	{"a.bin",
		T("\x80\x02"
		  "ctorch\n"),
		true}, /* cut off, and called as pickles are */
	{"weights", T("\x80\x05K\x01."), true},
	{"weights", T("\x80\x05raw floats"), false}, /* no stop at the end: two bytes by chance */
	{"weights", T("\x80\x09raw."), false},
	{"a.pkl", T("(lp0\nI1\na."), true}, /* the text protocols */
	{"a.pt", T("cos\nsystem\n(S'x'\ntR."), true}, {"a.txt", T("(lp0\nI1\na."), false},
	{"a.bin", T("raw floats"), false}, {"a.onnx", T("\x08\x07\x12\x07pytorch"), false},
	{"empty", T(""), false},
	{"a.pt", T("PK\3\4\24\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\20\0\0\0archive/data.pkl"),
		true}, /* no zip that can be read, but torch would */
};

TEST(a_pickle_is_known_by_its_bytes)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e;
		int rc = check(cases[i].path, cases[i].data, cases[i].n, false, &e);

		if ((rc < 0) != cases[i].pickle)
			fail_msg("case %zu, %s: %s", i, cases[i].path, e.text);
		if (rc < 0)
			assert_true(e.kind == ERR_DENIED && str_starts(e.text, "SV141"));
		assert_int_equal(check(cases[i].path, cases[i].data, cases[i].n, true, &e), 0);
	}
}

TEST(a_file_is_what_its_name_says)
{
	struct err e;

	assert_int_equal(check("a.gguf", T("GGUF\3"), false, &e), 0);
	assert_int_equal(check("a.gguf", T("<html>"), false, &e), -1);
	assert_non_null(strstr(e.text, "no GGUF file"));
	assert_int_equal(check("a.safetensors", T("\2\0\0\0\0\0\0\0{}"), false, &e), 0);
	assert_int_equal(check("a.safetensors", T("version https"), false, &e), -1);
	assert_int_equal(check("a.safetensors", T("\x80\x04."), false, &e), -1);
}

RUN_TESTS(cmocka_unit_test(a_pickle_is_known_by_its_bytes),
	cmocka_unit_test(a_file_is_what_its_name_says))
