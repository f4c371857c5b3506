/* Licences as SPDX expressions. */
#include "builder/license.h"

#include "tests/unit/test.h"

static void check(const char *said, const char *want, const char *found)
{
	if (!want != !found || (want && strcmp(want, found) != 0))
		fail_msg("'%s': expected %s, found %s", said, want ? want : "nothing",
			found ? found : "nothing");
}

TEST(names_that_people_write_become_identifiers)
{
	static const char *const cases[][2] = {
		{"MIT", "MIT"},
		{" mit \n and the whole text of it", "MIT"},
		{"Expat", "MIT"},
		{"MIT License", "MIT"},
		{"Apache 2.0", "Apache-2.0"},
		{"apache-2.0", "Apache-2.0"},
		{"BSD-3-clause", "BSD-3-Clause"},
		{"GPL-2", "GPL-2.0-only"},
		{"GPL-2+", "GPL-2.0-or-later"},
		{"GPL-3.0+", "GPL-3.0-or-later"},
		{"LGPL-2.1+", "LGPL-2.1-or-later"},
		{"GFDL-NIV-1.3+", "GFDL-1.3-no-invariants-or-later"},
		{"GPL-9", "LicenseRef-GPL-9"},
		{"GPL-2.0-or-later", "GPL-2.0-or-later"},
		{"BSD License", "LicenseRef-BSD-License"},
		{"SEE LICENSE IN LICENSE.md", "LicenseRef-SEE-LICENSE-IN-LICENSE.md"},
		{"public-domain", "LicenseRef-public-domain"},
		{"LicenseRef-own", "LicenseRef-own"},
		{"UNKNOWN", NULL},
		{"", NULL},
		{"***", NULL},
		{"(MIT OR Apache-2.0)", "(MIT OR Apache-2.0)"},
		{"MIT and (GPL-2+ or Artistic)", "MIT AND (GPL-2.0-or-later OR Artistic-1.0-Perl)"},
		{"GPL-1+ or Artistic, and BSD-3-clause",
			"(GPL-1.0-or-later OR Artistic-1.0-Perl) AND BSD-3-Clause"},
		{"MIT, BSD-2-clause", "MIT AND BSD-2-Clause"},
		{"GPL-3+ with Autoconf exception", "LicenseRef-GPL-3.0-or-later-with-Autoconf"},
		{"MIT or GPL-2+ with OpenSSL-exception",
			"MIT OR LicenseRef-GPL-2.0-or-later-with-OpenSSL-exception"},
		{"MIT or", "LicenseRef-MIT-or"},
		{"(MIT", "LicenseRef-MIT"},
		{"MIT)", "LicenseRef-MIT"},
		{"with", "LicenseRef-with"},
		{"((((", NULL},
	};
	struct arena a = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check(cases[i][0], cases[i][1], license_of_text(&a, cases[i][0]));
	arena_fini(&a);
}

TEST(classifiers_say_what_their_last_part_says)
{
	static const char *const cases[][2] = {
		{"License :: OSI Approved :: MIT License", "MIT"},
		{"License :: OSI Approved :: Apache Software License", "Apache-2.0"},
		{"License :: OSI Approved :: BSD License", "LicenseRef-BSD-License"},
		{"License :: OSI Approved", NULL},
		{"Programming Language :: Python", NULL},
	};
	struct arena a = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check(cases[i][0], cases[i][1], license_of_classifier(&a, cases[i][0]));
	arena_fini(&a);
}

TEST(a_copyright_file_says_what_its_files_are_under)
{
	static const char head[] = "Format: https://x.example/copyright-format/1.0/\n";
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"\nFiles: *\nCopyright: me\nLicense: GPL-2+\n text of it\n", "GPL-2.0-or-later"},
		{"\nFiles: *\nLicense: MIT\n\nFiles: debian/*\nLicense: GPL-2+\n\nLicense: MIT\n "
		 "text\n"
		 "\nLicense: BSD-3-clause\n of nothing\n",
			"GPL-2.0-or-later AND MIT"},
		{"\nFiles: a\nLicense: MIT or ISC\n\nFiles: b\nLicense: Zlib\n",
			"(MIT OR ISC) AND Zlib"},
		{"License: Apache-2.0\n", "Apache-2.0"},
		{"\nFiles: *\nCopyright: me\n", NULL},
		{"", NULL},
	};
	struct arena a = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = arena_printf(&a, "%s%s", head, cases[i].text);

		check(cases[i].text, cases[i].want, license_of_debian(&a, text, strlen(text)));
		/* without the first line it is prose */
		check("prose", NULL,
			license_of_debian(&a, text + sizeof(head) - 1, strlen(cases[i].text)));
	}
	arena_fini(&a);
}

RUN_TESTS(cmocka_unit_test(names_that_people_write_become_identifiers),
	cmocka_unit_test(classifiers_say_what_their_last_part_says),
	cmocka_unit_test(a_copyright_file_says_what_its_files_are_under))
