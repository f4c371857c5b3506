#include "images/identity.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/str.h"
#include "images/glob.h"

enum {
	CERTIFICATES_MAX = 64, /* of a root, or that a signature brings */
	FILE_MAX = 1 << 20,
	CHAIN_DEPTH = 8,
	LEVEL = 2, /* of libcrypto: 112 bits */
	SUBJECT_MAX = 2048,
};

/* Fulcio's extensions: the issuer as bare bytes, and, later, as an UTF8String. */
#define ISSUER_OID "1.3.6.1.4.1.57264.1.1"
#define ISSUER2_OID "1.3.6.1.4.1.57264.1.8"

struct identity_root {
	char *name;
	X509_STORE *store;
	struct sign_key *log;
};

#define auto_x509 __attribute__((cleanup(x509_free_ref)))
static void x509_free_ref(X509 **x)
{
	X509_free(*x);
}

typedef STACK_OF(X509) certificates;
#define auto_x509s __attribute__((cleanup(x509s_free_ref)))
static void x509s_free_ref(certificates **l)
{
	sk_X509_pop_free(*l, X509_free);
}

static int deny(struct err *e, const char *why)
{
	ERR_clear_error();
	return err_set(e, ERR_DENIED, "%s", why);
}

/* ---- certificates ---- */

/* All in a PEM text; NULL: it is malformed, or has too many. */
static certificates *read_all(const char *pem, size_t n)
{
	BIO *in = BIO_new_mem_buf(pem, (int)n);
	certificates *l = sk_X509_new_null();
	X509 *x = NULL;
	bool fine = in && l;

	while (fine && (x = PEM_read_bio_X509(in, NULL, NULL, NULL)))
		if (sk_X509_num(l) >= CERTIFICATES_MAX || !sk_X509_push(l, x)) {
			X509_free(x);
			fine = false;
		}
	/* it ends where no more begins */
	fine = fine && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
	ERR_clear_error();
	BIO_free(in);
	if (fine)
		return l;
	sk_X509_pop_free(l, X509_free);
	return NULL;
}

/* The one in a PEM text. */
static X509 *read_one(const char *pem)
{
	auto_x509s certificates *l = read_all(pem, strlen(pem));

	return l && sk_X509_num(l) == 1 ? sk_X509_pop(l) : NULL;
}

/* ---- roots ---- */

static int load_certificates(struct identity_root *r, const char *path, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(FILE_MAX);
	auto_x509s certificates *l = NULL;

	if (file_read(AT_FDCWD, path, &b, e) < 0)
		return -1;
	l = read_all(b.data ? b.data : "", b.len);
	if (!l || sk_X509_num(l) == 0)
		return err_set(e, ERR_USAGE, "%s: expected certificates in PEM, at most %d", path,
			CERTIFICATES_MAX);
	r->store = X509_STORE_new();
	for (int i = 0; i < sk_X509_num(l); i++)
		if (!r->store || X509_STORE_add_cert(r->store, sk_X509_value(l, i)) != 1)
			return err_set(e, ERR_SYSTEM, "%s: libcrypto refuses", path);
	return 0;
}

static const json_t *find_root(const json_t *roots, const char **name, struct err *e)
{
	const json_t *o = *name ? json_object_get(roots, *name) : NULL;
	const char *only = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)roots));

	if (o)
		return o;
	if (!*name && json_object_size(roots) == 1) {
		*name = only;
		return json_object_get(roots, only);
	}
	if (*name)
		err_set(e, ERR_USAGE, "the site configuration has no root '%.100s'", *name);
	else if (json_object_size(roots) == 0)
		err_set(e, ERR_USAGE, "the site configuration has no roots");
	else
		err_set(e, ERR_USAGE, "the site configuration has %zu roots: which?",
			json_object_size(roots));
	err_hint(e, "\"roots\": {\"NAME\": {\"certificates\": \"/FILE.pem\", \"log\": "
		    "\"/FILE.pub\"}}: docs/policy.md");
	return NULL;
}

int identity_root_load(
	struct identity_root **out, const json_t *roots, const char *name, struct err *e)
{
	const json_t *o = find_root(roots, &name, e);
	struct identity_root *r;

	if (!o)
		return -1;
	r = mem_alloc(sizeof(*r));
	r->name = mem_strdup(name);
	if (load_certificates(r, json_string_value(json_object_get(o, "certificates")), e) < 0 ||
		sign_key_load_public(&r->log, json_string_value(json_object_get(o, "log")), e) <
			0) {
		if (e && e->kind == ERR_NOT_FOUND) /* callers take that for a missing image */
			e->kind = ERR_USAGE;
		err_ctx(e, "root '%s'", name);
		identity_root_free(r);
		return -1;
	}
	*out = r;
	return 0;
}

void identity_root_free(struct identity_root *r)
{
	if (!r)
		return;
	X509_STORE_free(r->store);
	sign_key_free(r->log);
	free(r->name);
	free(r);
}

/* ---- who it is ---- */

/* The bytes of an extension that is there once; NULL: it is not. */
static const ASN1_OCTET_STRING *extension(const X509 *x, const char *oid)
{
	ASN1_OBJECT *o = OBJ_txt2obj(oid, 1);
	int at = o ? X509_get_ext_by_OBJ(x, o, -1) : -1;
	bool twice = at >= 0 && X509_get_ext_by_OBJ(x, o, at) >= 0;

	ASN1_OBJECT_free(o);
	return at < 0 || twice ? NULL : X509_EXTENSION_get_data(X509_get_ext(x, at));
}

static bool is_text(const unsigned char *p, int n, const char *text)
{
	return n >= 0 && (size_t)n == strlen(text) && memcmp(p, text, (size_t)n) == 0;
}

/* Either extension will do; both must say the same. */
static bool is_issued_by(const X509 *x, const char *issuer)
{
	const ASN1_OCTET_STRING *bare = extension(x, ISSUER_OID), *der = extension(x, ISSUER2_OID);
	bool fine = bare || der;

	if (bare)
		fine = is_text(ASN1_STRING_get0_data(bare), ASN1_STRING_length(bare), issuer);
	if (der && fine) {
		const unsigned char *p = ASN1_STRING_get0_data(der),
				    *end = p + ASN1_STRING_length(der);
		ASN1_UTF8STRING *s = d2i_ASN1_UTF8STRING(NULL, &p, ASN1_STRING_length(der));

		fine = s && p == end &&
		       is_text(ASN1_STRING_get0_data(s), ASN1_STRING_length(s), issuer);
		ASN1_UTF8STRING_free(s);
	}
	return fine;
}

/* The only e-mail address or URI that it is for; to free(). NULL: none, several, or none that could
 * be shown. */
static char *subject_of(const X509 *x)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	char *found = NULL;
	int n = 0;

	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);
		const ASN1_IA5STRING *s = g->type == GEN_EMAIL ? g->d.rfc822Name
					  : g->type == GEN_URI ? g->d.uniformResourceIdentifier
							       : NULL;
		int len = s ? ASN1_STRING_length(s) : 0;

		if (!s)
			continue;
		if (n++ == 0 && len > 0 && len <= SUBJECT_MAX)
			found = mem_printf("%.*s", len, (const char *)ASN1_STRING_get0_data(s));
		if (found && strlen(found) != (size_t)len) { /* a NUL would cut it */
			free(found);
			found = NULL;
		}
	}
	GENERAL_NAMES_free(names);
	if (n == 1 && found && str_utf8(found, strlen(found)))
		return found;
	free(found);
	return NULL;
}

static int check_names(const struct identity *who, const X509 *x, char **subject, struct err *e)
{
	auto_free char *found = subject_of(x);
	char shown[STR_SHOWN];

	if (!found)
		return deny(e, "its certificate is not for exactly one e-mail address or URI");
	if (!glob_matches(who->subject, found))
		return err_set(e, ERR_DENIED, "its certificate is for '%s', expected '%s'",
			str_shown(found, shown), who->subject);
	if (!is_issued_by(x, who->issuer))
		return err_set(e, ERR_DENIED,
			"its certificate is for '%s', but not by the word of issuer '%s'",
			str_shown(found, shown), who->issuer);
	if (subject)
		*subject = steal_ptr(&found);
	return 0;
}

/* ---- is it good? ---- */

static int check_time(const X509 *x, int64_t at, struct err *e)
{
	time_t t = (time_t)at;

	/* X509_cmp_time(): -1 before or at t, 1 after, 0 malformed */
	if (X509_cmp_time(X509_get0_notBefore(x), &t) == -1 &&
		X509_cmp_time(X509_get0_notAfter(x), &t) == 1)
		return 0;
	return deny(e, "its certificate was not valid when the log saw it");
}

static int check_use(X509 *x, struct err *e)
{
	uint32_t flags = X509_get_extension_flags(x);

	if (flags & (EXFLAG_CA | EXFLAG_INVALID))
		return deny(e, "its certificate is that of an authority, or malformed");
	if (!(flags & EXFLAG_XKUSAGE) || !(X509_get_extended_key_usage(x) & XKU_CODE_SIGN))
		return deny(e, "its certificate is not for signing code");
	if ((flags & EXFLAG_KUSAGE) && !(X509_get_key_usage(x) & KU_DIGITAL_SIGNATURE))
		return deny(e, "its certificate is not for signatures");
	return 0;
}

/* Up to a certificate that the site trusts, as of the time that the log names. */
static int check_chain(
	const struct identity_root *r, X509 *x, const char *chain, int64_t at, struct err *e)
{
	auto_x509s certificates *more = chain ? read_all(chain, strlen(chain)) : sk_X509_new_null();
	X509_STORE_CTX *ctx = more ? X509_STORE_CTX_new() : NULL;
	X509_VERIFY_PARAM *param;
	bool ok = false;
	int code = 0;

	if (ctx && X509_STORE_CTX_init(ctx, r->store, x, more) == 1) {
		param = X509_STORE_CTX_get0_param(ctx);
		X509_VERIFY_PARAM_set_time(param, (time_t)at);
		X509_VERIFY_PARAM_set_depth(param, CHAIN_DEPTH);
		X509_VERIFY_PARAM_set_auth_level(param, LEVEL);
		X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN);
		ok = X509_verify_cert(ctx) == 1;
		code = X509_STORE_CTX_get_error(ctx);
	}
	X509_STORE_CTX_free(ctx);
	ERR_clear_error();
	if (ok)
		return 0;
	return err_set(e, ERR_DENIED, "its certificate is not by root '%s': %s", r->name,
		more ? X509_verify_cert_error_string(code) : "malformed chain");
}

static int check_signature(const struct signature *x, X509 *cert, struct err *e)
{
	struct sign_key *k;
	int rc;

	if (sign_key_of_certificate(&k, "its certificate", cert, e) < 0) {
		if (e)
			e->kind = ERR_DENIED;
		return -1;
	}
	rc = sign_check(k, x->bytes, x->nbytes, x->der, x->nder, NULL);
	sign_key_free(k);
	return rc < 0 ? deny(e, "it is not by its certificate's key over these bytes") : 0;
}

int identity_check(
	const struct identity *who, const struct signature *x, char **subject, struct err *e)
{
	auto_x509 X509 *cert = x->certificate ? read_one(x->certificate) : NULL;
	unsigned char *der = NULL;
	int64_t at = 0;
	int n, rc;

	if (x->fault)
		return deny(e, x->fault);
	if (!cert)
		return deny(e,
			x->certificate ? "its certificate is malformed" : "it has no certificate");
	n = i2d_X509(cert, &der);
	if (n <= 0)
		return deny(e, "its certificate is malformed");
	rc = identity_log_check(who->root->log, x, der, (size_t)n, &at, e);
	OPENSSL_free(der);
	if (rc < 0 || check_time(cert, at, e) < 0 || check_use(cert, e) < 0 ||
		check_chain(who->root, cert, x->chain, at, e) < 0 ||
		check_names(who, cert, subject, e) < 0)
		return -1;
	return check_signature(x, cert, e);
}

/* ---- an image ---- */

int sign_verify_identity(
	struct store *s, const struct digest *manifest, const struct identity *who, struct err *e)
{
	auto_buf struct buf found = BUF_INIT(1 << 20);
	char text[DIGEST_TEXT + 1];
	struct signatures l;
	bool signed_by = false;

	if (signatures_load(&l, s, manifest, e) < 0)
		return -1;
	for (size_t i = 0; i < l.n && !signed_by; i++) {
		struct err why = {0};

		signed_by = identity_check(who, &l.v[i], NULL, &why) == 0;
		if (!signed_by && i < 4)
			buf_printf(&found, "; one (%s form): %.300s", l.v[i].form, why.text);
	}
	if (!signed_by)
		err_set(e, ERR_DENIED, "%s is not signed by '%s' (issuer '%s'): found %zu%s",
			digest_text(manifest, text), who->subject, who->issuer, l.n,
			found.data ? found.data : " signatures");
	signatures_fini(&l);
	return signed_by ? 0 : -1;
}
