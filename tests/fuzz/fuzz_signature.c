/* Whatever a registry gives as a signature: a payload, a bundle, annotations. It is refused, or its
 * bytes are there to be checked; and no key and no identity signed it. The first byte chooses the
 * form; for the tag form the annotations stand before a zero byte, the payload behind it. */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "images/identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char pem[] = "-----BEGIN PUBLIC KEY-----\n"
			  "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\n"
			  "6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\n"
			  "-----END PUBLIC KEY-----\n";

static const char certificate[] =
	"-----BEGIN CERTIFICATE-----\n"
	"MIIBdDCCARugAwIBAgIUSCtcrQW6WqOXMkFizkEakWCx+qUwCgYIKoZIzj0EAwIw\n"
	"DzENMAsGA1UECgwEZnV6ejAgFw0yNjExMzAyMDQ1MTVaGA8yMTI2MTEwNjIwNDUx\n"
	"NVowDzENMAsGA1UECgwEZnV6ejBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABK2W\n"
	"+hYotormYRsEHKtZxYbIFS0g4KecbZ1maC8yRHUGGWSH5yMb5RP3GrgQvpgWaFWr\n"
	"ajWMu3bLYPuSt2F2B3KjUzBRMB0GA1UdDgQWBBT32scFinFcZ9yndQ2xoD8jRJGZ\n"
	"1TAfBgNVHSMEGDAWgBT32scFinFcZ9yndQ2xoD8jRJGZ1TAPBgNVHRMBAf8EBTAD\n"
	"AQH/MAoGCCqGSM49BAMCA0cAMEQCIFq5DMge6yiDpmm19SJz/ZSyngjpzVp0cX/X\n"
	"BeDcNHzWAiB2amGyFOriUVHpbvf3G/Lm61YUx8iutufhYtvAFpXafg==\n"
	"-----END CERTIFICATE-----\n";

/* The path of a file with this text, for ever. */
static json_t *file_of(const char *text)
{
	int fd = memfd_create("root", 0);

	assert(fd >= 0 && sys_write_all(fd, text, strlen(text)) == 0);
	return json_sprintf("/proc/self/fd/%d", fd);
}

static const struct identity *somebody(void)
{
	static struct identity who = {.issuer = "https://issuer.invalid", .subject = "**"};
	struct identity_root *root;

	if (!who.root) {
		auto_json json_t *roots = json_pack("{s:{s:o, s:o}}", "r", "certificates",
			file_of(certificate), "log", file_of(pem));

		assert(identity_root_load(&root, roots, NULL, NULL) == 0);
		who.root = root;
	}
	return &who;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sign_key *key;
	struct digest image = digest_of("image", 5);
	struct signatures l = {0};
	auto_free char *text = NULL;

	if (!key)
		assert(sign_key_parse_public(&key, "k.pub", pem, strlen(pem), NULL) == 0);
	if (size == 0 || size > SIGNATURE_PAYLOAD_MAX)
		return 0;
	if (data[0] & 1) {
		signatures_add_bundle(&l, &image, data + 1, size - 1);
	} else {
		const uint8_t *zero = memchr(data + 1, 0, size - 1);
		size_t n = zero ? (size_t)(zero - data - 1) : 0;
		json_t *a = json_parse(data + 1, n, NULL);

		signatures_add_simple(&l, "tag", &image, data + 1 + n, size - 1 - n, a);
		json_decref(a);
		assert(l.n == 1);
	}
	for (size_t i = 0; i < l.n; i++) {
		assert(l.v[i].fault || (l.v[i].bytes && l.v[i].der && l.v[i].nder));
		assert(!signature_is_by(&l.v[i], key));
		assert(identity_check(somebody(), &l.v[i], NULL, NULL) < 0);
	}
	text = signatures_describe(&l);
	assert(text);
	signatures_fini(&l);
	return 0;
}
