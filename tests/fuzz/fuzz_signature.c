/* Whatever a registry gives as a signature: a payload, a bundle, annotations. It is refused, or its
 * bytes are there to be checked; and no key signed it. The first byte chooses the form; for the tag
 * form the annotations stand before a zero byte, the payload behind it. */
#include <assert.h>
#include <string.h>

#include "images/signature.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char pem[] = "-----BEGIN PUBLIC KEY-----\n"
			  "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\n"
			  "6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\n"
			  "-----END PUBLIC KEY-----\n";

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
	}
	text = signatures_describe(&l);
	assert(text);
	signatures_fini(&l);
	return 0;
}
