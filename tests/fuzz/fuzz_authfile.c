/* Any text as a file with credentials: refused with a place, or what is found is text that can be
 * sent. And base64 is what comes back when it is encoded again. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "images/auth-file.h"
#include "images/base64.h"
#include "images/secret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_base64(const char *text)
{
	size_t n;
	auto_free char *bytes = base64_decode(text, &n);
	auto_free char *again = bytes ? base64_encode(bytes, n) : NULL;

	assert(!bytes || str_eq(again, text));
}

static void check_file(struct auth_file *f, const char *host, const char *path)
{
	struct credential c;
	struct err e = {0};
	const char *helper = auth_file_helper(f, host, path, &e);
	int rc;

	assert(helper || str_starts(e.text, "auth.json:"));
	e = (struct err){0};
	helper = auth_file_store(f, &e);
	assert(helper || str_starts(e.text, "auth.json:"));
	e = (struct err){0};
	rc = auth_file_find(f, host, path, &c, &e);
	if (rc < 0) {
		assert(e.kind == ERR_CORRUPT && str_starts(e.text, "auth.json:"));
		return;
	}
	assert(rc == (c.user || c.identity || c.registry));
	if (rc == 1)
		assert(c.origin && (!c.user || (c.secret && !strchr(c.user, ':'))));
	credential_fini(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = mem_alloc(size + 1);
	struct auth_file f = {0};

	memcpy(text, data, size);
	check_base64(text);
	if (json_doc_parse(&f.doc, "auth.json", data, size, NULL) < 0)
		return 0;
	if (json_is_object(f.doc.root)) {
		check_file(&f, "r.example", "team/app");
		check_file(&f, "[::1]:5000", "");
		auth_file_has(&f, "r.example");
	}
	auth_file_close(&f);
	return 0;
}
