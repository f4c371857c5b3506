/* How much the site's data may unpack to. */
#include "builder/vuln.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/mman.h>

#include "base/str.h"
#include "base/sys.h"
#include "tests/unit/test.h"

enum { MIB = 1 << 20 };

static const char record[] = "{\"id\": \"A\", \"modified\": \"x\", \"affected\": []}";

/* An archive of n members, each a record and as many blanks as make it `size` bytes. */
static int make(bool zip, const char *member, size_t n, size_t size)
{
	int fd = memfd_create("archive", MFD_CLOEXEC);
	struct archive *a = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	auto_free char *text = mem_alloc(size);

	memset(text, ' ', size);
	memcpy(text, record, strlen(record));
	if (zip)
		archive_write_set_format_zip(a);
	else
		archive_write_set_format_ustar(a);
	if (!zip)
		archive_write_add_filter_gzip(a);
	assert_int_equal(archive_write_open_fd(a, fd), ARCHIVE_OK);
	archive_entry_set_pathname(entry, member);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0644);
	archive_entry_set_size(entry, (la_int64_t)size);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
		assert_int_equal(archive_write_data(a, text, size), size);
	}
	archive_entry_free(entry);
	assert_int_equal(archive_write_free(a), ARCHIVE_OK);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

TEST(an_archive_unpacks_to_no_more_than_many_times_its_size_nor_than_is_left)
{
	static const struct {
		const char *name, *member;
		size_t n, size;
		uint64_t left;
		const char *want; /* NULL: it is read */
	} cases[] = {
		{"x.zip", "a.json", 3, 4 * MIB, VULN_DATA_MAX, NULL},
		{"x.tar.gz", "a.json", 3, 4 * MIB, VULN_DATA_MAX, NULL},
		{"x.zip", "a.json", 20, 4 * MIB, VULN_DATA_MAX, "100 times"},
		{"x.tar.gz", "a.json", 20, 4 * MIB, VULN_DATA_MAX, "100 times"},
		/* what is skipped is unpacked, too */
		{"x.tar.gz", "a.txt", 20, 4 * MIB, VULN_DATA_MAX, "100 times"},
		{"x.zip", "a.json", 3, 4 * MIB, 8 * MIB, "the folder's data are more than 4 GiB"},
		{"x.tar.gz", "a.json", 40, sizeof(record), 40 * 512,
			"the folder's data are more than 4 GiB"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_fd int fd = make(str_ends(cases[i].name, ".zip"), cases[i].member, cases[i].n,
			cases[i].size);
		struct vuln_index_maker m;
		uint64_t left = cases[i].left;
		struct err e = {0};
		int rc;

		vuln_index_begin(&m);
		rc = vuln_read(&m, cases[i].name, fd, &left, &e);
		vuln_index_abort(&m);
		print_message("%s of %zu: %s\n", cases[i].name, cases[i].n, e.text);
		assert_int_equal(rc, cases[i].want ? -1 : 0);
		if (cases[i].want)
			assert_non_null(strstr(e.text, cases[i].want));
		else
			assert_in_range(left, VULN_DATA_MAX - 13 * MIB, VULN_DATA_MAX - 12 * MIB);
	}
}

RUN_TESTS(cmocka_unit_test(an_archive_unpacks_to_no_more_than_many_times_its_size_nor_than_is_left))
