#include "builder/scan-packages.h"

#include <string.h>

#include "base/str.h"
#include "tests/unit/test.h"

static void take(struct scan_packages *l, const char *text)
{
	struct err e = {0};
	auto_json json_t *doc = json_parse(text, strlen(text), &e);

	assert_non_null(doc);
	*l = (struct scan_packages){0};
	if (scan_packages_add_sbom(l, doc, &e) < 0)
		fail_msg("%s", e.text);
}

static void expect(const struct scan_packages *l, size_t i, enum version_kind k, const char *name,
	const char *source, const char *source_version)
{
	assert_true(i < l->n);
	assert_int_equal(l->v[i].kind, k);
	assert_string_equal(l->v[i].name, name);
	assert_string_equal(l->v[i].source, source);
	assert_string_equal(l->v[i].source_version, source_version);
}

TEST(an_sbom_of_spdx_names_packages_by_their_purls)
{
	struct scan_packages l;

	take(&l, "{\"packages\": [{\"externalRefs\": [{\"referenceType\": \"cpe23Type\", "
		 "\"referenceLocator\": \"cpe\"}, {\"referenceType\": \"purl\", "
		 "\"referenceLocator\": \"pkg:deb/debian/libssl3@1%3A3.0%2B1?arch=amd64&upstream="
		 "openssl%401%3A3.0&distro=debian-12\"}]}, {\"externalRefs\": [{\"referenceType\": "
		 "\"purl\", \"referenceLocator\": \"pkg:deb/debian/a@1~2+b12?upstream=b\"}]}, "
		 "{\"externalRefs\": 7}, {}]}");
	assert_int_equal(l.n, 2);
	expect(&l, 0, VERSION_DEB, "libssl3", "openssl", "1:3.0");
	assert_string_equal(l.v[0].version, "1:3.0+1");
	expect(&l, 1, VERSION_DEB, "a", "b", "1~2");
	assert_string_equal(l.distribution, "debian");
	assert_string_equal(l.release, "12");
	scan_packages_fini(&l);
}

TEST(an_sbom_of_cyclonedx_names_packages_within_packages)
{
	struct scan_packages l;

	take(&l, "{\"components\": [{\"purl\": \"pkg:npm/%40s/x@1.0.0#a\", \"components\": "
		 "[{\"purl\": \"pkg:pypi/Foo.Bar@1.0\"}]}, {\"purl\": \"pkg:golang/x@1\"}]}");
	assert_int_equal(l.n, 2);
	expect(&l, 0, VERSION_NPM, "@s/x", "@s/x", "1.0.0");
	expect(&l, 1, VERSION_PYPI, "foo-bar", "foo-bar", "1.0");
	scan_packages_fini(&l);
}

TEST(what_is_no_purl_is_left_out)
{
	static const char *const texts[] = {"", "pkg:", "pkg:npm", "pkg:npm/", "pkg:npm/x",
		"pkg:npm/@1", "npm/x@1", "pkg:npm/x@", "pkg:pypi/-@1", "pkg:deb/debian/@1"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		auto_free char *doc =
			mem_printf("{\"components\": [{\"purl\": \"%s\"}]}", texts[i]);
		struct scan_packages l;

		print_message("%s\n", texts[i]);
		take(&l, doc);
		assert_int_equal(l.n, 0);
		scan_packages_fini(&l);
	}
}

RUN_TESTS(cmocka_unit_test(an_sbom_of_spdx_names_packages_by_their_purls),
	cmocka_unit_test(an_sbom_of_cyclonedx_names_packages_within_packages),
	cmocka_unit_test(what_is_no_purl_is_left_out))
