#include "images/sign-key.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"

enum {
	PEM_MAX = 64 << 10,
	PASSWORD_MAX = 1024,
	SALT = 16,
	IV = 16,
	/* as `openssl pkcs8 -scrypt`: 16 MiB, and within the limit of its decoder */
	SCRYPT_N = 16384,
	SCRYPT_R = 8,
	SCRYPT_P = 1,
};

struct sign_key {
	EVP_PKEY *pkey;
};

#define auto_bio __attribute__((cleanup(bio_free_ref)))
static void bio_free_ref(BIO **b)
{
	BIO_free(*b);
}

#define auto_pkey __attribute__((cleanup(pkey_free_ref)))
static void pkey_free_ref(EVP_PKEY **k)
{
	EVP_PKEY_free(*k);
}

/* libcrypto's reason for the last failure; its queue is emptied. */
static int crypto_err(struct err *e, enum err_kind kind, const char *what)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error();
	return err_set(e, kind, "%s: %s", what, reason ? reason : "libcrypto refuses");
}

static void pem_fini(struct buf *b)
{
	if (b->data)
		OPENSSL_cleanse(b->data, b->cap);
	buf_fini(b);
}
#define auto_pem __attribute__((cleanup(pem_fini)))

/* ---- making ---- */

static PKCS8_PRIV_KEY_INFO *private_info(EVP_PKEY *k, struct err *e)
{
	PKCS8_PRIV_KEY_INFO *info = EVP_PKEY2PKCS8(k);

	if (!info)
		crypto_err(e, ERR_SYSTEM, "make a key");
	return info;
}

static X509_SIG *encrypt(PKCS8_PRIV_KEY_INFO *info, const char *password, struct err *e)
{
	unsigned char salt[SALT], iv[IV];
	X509_ALGOR *how = NULL;
	X509_SIG *sig = NULL;

	if (RAND_bytes(salt, sizeof(salt)) == 1 && RAND_bytes(iv, sizeof(iv)) == 1)
		how = PKCS5_pbe2_set_scrypt(
			EVP_aes_256_cbc(), salt, sizeof(salt), iv, SCRYPT_N, SCRYPT_R, SCRYPT_P);
	if (how)
		sig = PKCS8_set0_pbe(password, (int)strlen(password), info, how);
	if (!sig) {
		X509_ALGOR_free(how);
		crypto_err(e, ERR_SYSTEM, "encrypt a key");
	}
	return sig;
}

static int write_private(BIO *out, EVP_PKEY *k, const char *password, struct err *e)
{
	PKCS8_PRIV_KEY_INFO *info = private_info(k, e);
	X509_SIG *sig = NULL;
	int rc = -1;

	if (!info)
		return -1;
	if (!password) {
		rc = PEM_write_bio_PKCS8_PRIV_KEY_INFO(out, info) == 1
			     ? 0
			     : crypto_err(e, ERR_SYSTEM, "write a key");
	} else if ((sig = encrypt(info, password, e))) {
		rc = PEM_write_bio_PKCS8(out, sig) == 1 ? 0
							: crypto_err(e, ERR_SYSTEM, "write a key");
		X509_SIG_free(sig);
	}
	PKCS8_PRIV_KEY_INFO_free(info);
	return rc;
}

/* Only where nothing is: a key that is overwritten is lost. */
static int write_new(const char *path, BIO *from, mode_t mode, struct err *e)
{
	char *data;
	long n = BIO_get_mem_data(from, &data);
	auto_fd int fd = sys_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);

	if (fd < 0 && errno == EEXIST)
		return err_set(e, ERR_EXISTS, "%s is there already", path);
	if (fd < 0)
		return err_sys(e, "create %s", path);
	if (sys_write_all(fd, data, (size_t)n) < 0 || fsync(fd) < 0)
		return err_sys(e, "write %s", path);
	return 0;
}

int sign_key_make(const char *name, const char *password, struct err *e)
{
	auto_pkey EVP_PKEY *k = EVP_EC_gen("P-256");
	auto_bio BIO *private = BIO_new(BIO_s_secmem()), *public = BIO_new(BIO_s_mem());
	auto_free char *key = mem_printf("%s.key", name), *pub = mem_printf("%s.pub", name);

	if (!k || !private || !public)
		return crypto_err(e, ERR_SYSTEM, "make a key");
	if (password && strlen(password) > PASSWORD_MAX)
		return err_set(e, ERR_USAGE, "a password has at most %d bytes", PASSWORD_MAX);
	if (write_private(private, k, password, e) < 0)
		return -1;
	if (PEM_write_bio_PUBKEY(public, k) != 1)
		return crypto_err(e, ERR_SYSTEM, "write a key");
	if (faccessat(AT_FDCWD, pub, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return err_set(e, ERR_EXISTS, "%s is there already", pub);
	if (write_new(key, private, 0600, e) < 0)
		return -1;
	return write_new(pub, public, 0644, e);
}

/* ---- reading ---- */

static int read_pem(const char *path, struct buf *b, struct err *e)
{
	auto_fd int fd = sys_open(path, O_RDONLY, 0);

	if (fd < 0)
		return err_sys(e, "open %s", path);
	return file_read_fd(fd, path, b, e);
}

static bool has_label(const struct buf *b, const char *label)
{
	auto_free char *line = mem_printf("-----BEGIN %s-----", label);

	return b->data && strstr(b->data, line);
}

/* cosign keeps its keys in a format of its own: scrypt and NaCl's secretbox. */
static int check_labels(const char *path, const struct buf *b, struct err *e)
{
	if (has_label(b, "ENCRYPTED SIGSTORE PRIVATE KEY") ||
		has_label(b, "ENCRYPTED COSIGN PRIVATE KEY")) {
		err_set(e, ERR_UNSUPPORTED, "%s is a private key in cosign's own format", path);
		return err_hint(e,
			"make a key with svrun image key NAME; cosign import-key-pair --key "
			"NAME.key gives it to cosign, too");
	}
	if (has_label(b, "PUBLIC KEY"))
		return err_set(
			e, ERR_USAGE, "%s is a public key: signing needs the private one", path);
	if (!has_label(b, "PRIVATE KEY") && !has_label(b, "ENCRYPTED PRIVATE KEY") &&
		!has_label(b, "EC PRIVATE KEY"))
		return err_set(e, ERR_CORRUPT, "%s: no private key in PEM", path);
	return 0;
}

static int check_curve(const char *name, const EVP_PKEY *k, struct err *e)
{
	char group[64] = "";
	size_t n;

	if (EVP_PKEY_get_base_id(k) == EVP_PKEY_EC &&
		EVP_PKEY_get_group_name(k, group, sizeof(group), &n) == 1 &&
		str_eq(group, "prime256v1"))
		return 0;
	return err_set(e, ERR_UNSUPPORTED, "%s: expected an ECDSA key on P-256, found %s%s%s", name,
		EVP_PKEY_get0_type_name(k) ? EVP_PKEY_get0_type_name(k) : "another key",
		*group ? " on " : "", group);
}

static struct sign_key *keep(EVP_PKEY **k)
{
	struct sign_key *out = mem_alloc(sizeof(*out));

	out->pkey = steal_ptr(k);
	return out;
}

int sign_key_is_encrypted(const char *path, struct err *e)
{
	auto_pem struct buf b = BUF_INIT(PEM_MAX);

	if (read_pem(path, &b, e) < 0 || check_labels(path, &b, e) < 0)
		return -1;
	return has_label(&b, "ENCRYPTED PRIVATE KEY") || (b.data && strstr(b.data, "Proc-Type:"));
}

/* Without a password libcrypto would ask at the terminal. */
static int give_password(char *out, int size, int writing, void *ctx)
{
	const char *password = ctx;
	size_t n = password ? strlen(password) : 0;

	(void)writing;
	if (n == 0 || n > (size_t)size)
		return -1;
	memcpy(out, password, n);
	return (int)n;
}

int sign_key_load(struct sign_key **out, const char *path, const char *password, struct err *e)
{
	auto_pem struct buf b = BUF_INIT(PEM_MAX);
	auto_free char *secret = password ? mem_strdup(password) : NULL;
	auto_bio BIO *in = NULL;
	auto_pkey EVP_PKEY *k = NULL;
	bool encrypted;

	if (read_pem(path, &b, e) < 0 || check_labels(path, &b, e) < 0)
		return -1;
	encrypted = has_label(&b, "ENCRYPTED PRIVATE KEY") || strstr(b.data, "Proc-Type:");
	if (encrypted && !password)
		return err_set(e, ERR_DENIED, "%s is encrypted, and there is no password", path);
	in = BIO_new_mem_buf(b.data, (int)b.len);
	k = in ? PEM_read_bio_PrivateKey(in, NULL, give_password, secret) : NULL;
	if (secret)
		OPENSSL_cleanse(secret, strlen(secret));
	if (!k && encrypted) {
		ERR_clear_error();
		return err_set(
			e, ERR_DENIED, "%s: the password is wrong, or the key is damaged", path);
	}
	if (!k)
		return crypto_err(e, ERR_CORRUPT, path);
	if (check_curve(path, k, e) < 0)
		return -1;
	*out = keep(&k);
	return 0;
}

int sign_key_parse_public(
	struct sign_key **out, const char *name, const void *p, size_t n, struct err *e)
{
	auto_bio BIO *in = n <= PEM_MAX ? BIO_new_mem_buf(p, (int)n) : NULL;
	auto_pkey EVP_PKEY *k = in ? PEM_read_bio_PUBKEY(in, NULL, give_password, NULL) : NULL;

	if (!k) {
		ERR_clear_error();
		return err_set(
			e, ERR_CORRUPT, "%s: no public key in PEM (SubjectPublicKeyInfo)", name);
	}
	if (check_curve(name, k, e) < 0)
		return -1;
	*out = keep(&k);
	return 0;
}

int sign_key_load_public(struct sign_key **out, const char *path, struct err *e)
{
	auto_pem struct buf b = BUF_INIT(PEM_MAX);

	if (read_pem(path, &b, e) < 0)
		return -1;
	if (has_label(&b, "PRIVATE KEY") || has_label(&b, "ENCRYPTED PRIVATE KEY") ||
		has_label(&b, "EC PRIVATE KEY"))
		return err_set(
			e, ERR_USAGE, "%s is a private key: checking needs the public one", path);
	return sign_key_parse_public(out, path, b.data ? b.data : "", b.len, e);
}

int sign_key_of_certificate(struct sign_key **out, const char *name, void *x509, struct err *e)
{
	auto_pkey EVP_PKEY *k = X509_get_pubkey(x509);

	if (!k)
		return crypto_err(e, ERR_CORRUPT, name);
	if (check_curve(name, k, e) < 0)
		return -1;
	*out = keep(&k);
	return 0;
}

void sign_key_free(struct sign_key *k)
{
	if (!k)
		return;
	EVP_PKEY_free(k->pkey);
	free(k);
}

void sign_key_id(const struct sign_key *k, char hex[DIGEST_HEX + 1])
{
	unsigned char *der = NULL;
	int n = i2d_PUBKEY(k->pkey, &der);
	struct digest d = digest_of(der, n > 0 ? (size_t)n : 0);

	OPENSSL_free(der);
	digest_hex(&d, hex);
}

/* ---- using ---- */

int sign_bytes(const struct sign_key *k, const void *p, size_t n, struct buf *der, struct err *e)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	unsigned char out[SIGN_DER_MAX];
	size_t len = sizeof(out);
	bool ok = ctx && EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, k->pkey) == 1 &&
		  EVP_DigestSign(ctx, out, &len, p, n) == 1;

	EVP_MD_CTX_free(ctx);
	if (!ok)
		return crypto_err(e, ERR_SYSTEM, "sign");
	return buf_add(der, out, len, e);
}

int sign_check(const struct sign_key *k, const void *p, size_t n, const void *der, size_t len,
	struct err *e)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	int rc = -1;

	if (len <= SIGN_DER_MAX && ctx &&
		EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, k->pkey) == 1)
		rc = EVP_DigestVerify(ctx, der, len, p, n);
	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	if (rc == 1)
		return 0;
	return err_set(e, ERR_DENIED,
		rc == 0 ? "the signature is not by this key over these bytes"
			: "the signature is malformed");
}
