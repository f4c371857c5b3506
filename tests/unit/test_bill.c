/* The bill of materials: kept and read again, and what is found in it. */
#include "builder/bill.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "builder/sbom.h"
#include "images/bills.h"
#include "tests/unit/fixture.h"

static struct bill_layer layers[] = {{.id = "os"}, {.id = "files"}};
static struct bill_place places[] = {
	{"/apt/packages/0", "x/manifest.json:3:5"}, {"/files/0", "x/manifest.json:9:1"}};
static const char *asked[] = {"manifest:/apt/packages/0"}, *needed[] = {"a"};
static uint32_t first[] = {0}, both[] = {0, 1};

/* A bill in static storage: never given to bill_fini(). */
static struct bill example(void)
{
	static struct bill_item items[] = {
		{.kind = ORIGIN_STATE, .name = "state"},
		{.kind = ORIGIN_DEB,
			.name = "a",
			.version = "1:1+b1",
			.arch = "amd64",
			.purl = "pkg:deb/debian/a@1:1%2Bb1?arch=amd64",
			.license = "MIT OR LicenseRef-x",
			.hash_kind = "sha256",
			.hash = "00",
			.why = {asked, 1},
			.installed = true,
			.via = 1,
			.layers = first,
			.nlayers = 1,
			.files = 2,
			.bytes = 7},
		{.kind = ORIGIN_DEB,
			.name = "b",
			.version = "2",
			.arch = "all",
			.why = {needed, 1},
			.installed = true,
			.via = 2,
			.layers = both,
			.nlayers = 2},
		{.kind = ORIGIN_DEB, .name = "gone", .version = "3", .arch = "all", .via = 3},
	};
	static struct bill_file files[] = {{"a", 1, 0}, {"a/b", 1, 0}, {"a/b\nc", 2, 1},
		{"a-b", 2, 1}, {"a0", 0, 1}, {"b", 1, 0}};

	return (struct bill){.name = "x",
		.version = "1",
		.platform = "linux/amd64",
		.created = "2026-01-01T00:00:00Z",
		.document = "{}",
		.lock_text = "{}",
		.layers = layers,
		.nlayers = 2,
		.places = places,
		.nplaces = 2,
		.items = items,
		.nitems = 4,
		.files = files,
		.nfiles = 6};
}

TEST(what_is_kept_is_what_is_read_again)
{
	struct bill a = example(), b;
	auto_buf struct buf kept = BUF_INIT(1 << 20), again = BUF_INIT(1 << 20);
	struct err e = {0};

	assert_int_equal(bill_encode(&a, &kept, &e), 0);
	if (bill_decode(&b, kept.data, kept.len, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(b.nfiles, 6);
	assert_string_equal(b.files[2].path, "a/b\nc");
	assert_string_equal(b.items[1].version, "1:1+b1");
	assert_null(b.items[2].license);
	assert_int_equal(b.items[2].layers[1], 1);
	assert_string_equal(b.items[2].why.v[0], "a");
	assert_int_equal(bill_encode(&b, &again, &e), 0);
	assert_int_equal(again.len, kept.len);
	assert_memory_equal(again.data, kept.data, kept.len);
	bill_fini(&b);
	for (size_t n = 0; n < kept.len; n++) /* cut anywhere */
		assert_int_equal(bill_decode(&b, kept.data, n, NULL), -1);
}

/* Who is told to people that ask for ref. */
static void expect_bill_of(struct store *s, const char *ref, const char *name, const char *version)
{
	const struct digest d = {{1}};
	struct err e = {0};
	struct bill b;

	if (bill_read(&b, s, &d, ref, &e) < 0)
		fail_msg("%s: %s", ref, e.text);
	assert_string_equal(b.name, name);
	assert_string_equal(b.version, version);
	bill_fini(&b);
}

TEST(apps_with_the_same_image_have_a_bill_each_and_the_first_stays_the_first)
{
	static const struct {
		const char *name, *version;
	} saved[] = {{"big", "1"}, {"bigger", "1"}, {"bigger", "2"}, {"big", "3"}};
	char folder[] = "/tmp/test-bill.XXXXXX", text[64];
	const struct digest d = {{1}};
	struct store s = {.path = mkdtemp(folder)};
	struct bill b = example();

	s.fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < sizeof(saved) / sizeof(saved[0]); i++) {
		b.name = saved[i].name;
		b.version = saved[i].version;
		assert_int_equal(bill_save(&b, &s, &d, NULL), 0);
	}
	expect_bill_of(&s, NULL, "big", "3");
	expect_bill_of(&s, "big:3", "big", "3");
	expect_bill_of(&s, "host:5000/team/bigger:2", "bigger", "2");
	expect_bill_of(&s, "bigge", "big", "3");
	expect_bill_of(&s, "sha256:01", "big", "3");
	/* what is damaged gives way */
	assert_int_equal(bills_put(&s, &d, "no bill", 7, NULL), 0);
	assert_int_equal(bill_read(&b, &s, &d, "big", NULL), -1);
	b = example();
	assert_int_equal(bill_save(&b, &s, &d, NULL), 0);
	expect_bill_of(&s, "x", "x", b.version);
	assert_int_equal(bills_merge(&s, &d, "no bill", 7, NULL), -1);
	assert_int_equal(bills_remove(&s, &d, NULL), 0);
	snprintf(text, sizeof(text), "%s/bills", folder);
	rmdir(text);
	rmdir(folder);
	close(s.fd);
}

TEST(files_and_places_are_found_by_name)
{
	struct bill b = example();

	for (size_t i = 0; i < b.nfiles; i++)
		assert_ptr_equal(bill_find(&b, b.files[i].path), &b.files[i]);
	assert_null(bill_find(&b, "a/"));
	assert_null(bill_find(&b, ""));
	assert_null(bill_find(&b, "c"));
	assert_string_equal(bill_place_of(&b, "/files/0"), "x/manifest.json:9:1");
	assert_null(bill_place_of(&b, "/files/1"));
}

static bool names(const json_t *list, const char *name)
{
	const json_t *o;
	size_t i;

	json_array_foreach (list, i, o)
		if (str_eq(json_string_value(json_object_get(o, "name")), name))
			return true;
	return false;
}

TEST(sboms_name_what_is_installed_and_nothing_else)
{
	struct bill b = example();
	struct digest d = digest_of("x", 1);
	auto_json json_t *spdx = sbom_spdx(&b, &d, NULL),
			 *cdx = sbom_cyclonedx("1.5", &b, &d, NULL);
	const json_t *packages = json_object_get(spdx, "packages"),
		     *components = json_object_get(cdx, "components");

	assert_non_null(packages);
	assert_true(names(packages, "a") && names(packages, "b"));
	assert_false(names(packages, "gone") || names(packages, "state"));
	assert_int_equal(json_array_size(components), 2);
	assert_int_equal(json_array_size(json_object_get(spdx, "hasExtractedLicensingInfos")), 1);
}

RUN_TESTS(cmocka_unit_test(what_is_kept_is_what_is_read_again),
	cmocka_unit_test(apps_with_the_same_image_have_a_bill_each_and_the_first_stays_the_first),
	cmocka_unit_test(files_and_places_are_found_by_name),
	cmocka_unit_test(sboms_name_what_is_installed_and_nothing_else))
