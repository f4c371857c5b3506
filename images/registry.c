#include "images/registry.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "images/registry-call.h"

enum {
	SLOWEST = 64 << 10, /* bytes a second that a big document must come with */
	SHORT_TRIES = 3,    /* of one that comes shorter than it is */
};

/* ---- finding it ---- */

static void endpoint_init(struct registry *r, struct endpoint *p, struct http_site *site,
	const char *path, const struct registry_options *o)
{
	p->site = site;
	p->path = mem_strdup(path);
	p->name = mem_printf("%s%s%s", site->host, path[0] ? "/" : "", path);
	p->base = mem_printf("http%s://%s/v2/%s", site->plain ? "" : "s", site->host, path);
	p->scope = mem_printf("repository:%s:pull%s", path, o->push ? ",push" : "");
	if (o->push && o->mount_from)
		p->mount_scope = mem_printf("%s repository:%s:pull", p->scope, o->mount_from);
	p->tries = MIRROR_TRIES;
	pthread_mutex_init(&p->lock, NULL);
	auth_init(&p->auth, &r->http, site, p->path);
	p->auth.mount_from = r->mount_from;
}

static void endpoint_fini(struct endpoint *p)
{
	auth_fini(&p->auth);
	pthread_mutex_destroy(&p->lock);
	free(p->base);
	free(p->name);
	free(p->path);
	free(p->scope);
	free(p->mount_scope);
}

/* "host[:port][/prefix]" */
static int add_mirror(
	struct registry *r, const char *mirror, const struct registry_options *o, struct err *e)
{
	size_t n = strcspn(mirror, "/"), m = strlen(mirror);
	auto_free char *host = mem_dup(mirror, n + 1), *path = NULL;
	struct http_site *site;

	host[n] = '\0';
	while (m > n && mirror[m - 1] == '/')
		m--;
	site = http_site(&r->http, host, e);
	if (!site)
		return -1;
	path = m > n ? mem_printf("%.*s/%s", (int)(m - n - 1), mirror + n + 1, o->path)
		     : mem_strdup(o->path);
	endpoint_init(r, &r->v[r->n++], site, path, o);
	return 0;
}

static int find_endpoints(struct registry *r, const struct registry_options *o, struct err *e)
{
	struct http_site *site = http_site(&r->http, o->host, e);
	size_t mirrors;

	if (!site)
		return -1;
	site->plain = site->plain || o->plain_http;
	site->insecure = site->insecure || o->insecure;
	mirrors = o->push ? 0 : site->config.nmirrors;
	r->v = mem_array(mirrors + 1, sizeof(*r->v));
	for (size_t i = 0; i < mirrors; i++)
		if (add_mirror(r, site->config.mirrors[i], o, e) < 0)
			return err_ctx(e, "mirror %s", site->config.mirrors[i]);
	endpoint_init(r, &r->v[r->n], site, o->path, o);
	r->v[r->n].last = true;
	r->v[r->n].tries = EXCHANGE_TRIES;
	r->n++;
	return 0;
}

struct registry *registry_open(const struct registry_options *o, struct err *e)
{
	struct registry *r = mem_alloc(sizeof(*r));

	http_open(&r->http, o->config);
	r->backoff_ms = 250;
	r->chunk = UPLOAD_CHUNK;
	r->name = mem_printf("%s%s%s", o->host, o->path[0] ? "/" : "", o->path);
	r->locations = locations_new();
	r->mount_from = o->mount_from ? mem_strdup(o->mount_from) : NULL;
	if (find_endpoints(r, o, e) < 0) {
		registry_close(r);
		return NULL;
	}
	return r;
}

void registry_close(struct registry *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++)
		endpoint_fini(&r->v[i]);
	free(r->v);
	locations_free(r->locations);
	http_close(&r->http);
	free(r->mount_from);
	free(r->name);
	free(r);
}

const char *registry_name(const struct registry *r)
{
	return r->name;
}

size_t registry_endpoints(const struct registry *r)
{
	return r->n;
}

/* ---- documents ---- */

int registry_ping(struct registry *r, const char *user, const char *secret, struct err *e)
{
	struct endpoint *p = &r->v[r->n - 1];
	auto_free char *url = mem_printf("%.*s", (int)(strlen(p->base) - strlen(p->path)), p->base);
	const struct call c = {.method = "GET", .what = "/v2/", .url = url, .scope = ""};
	auto_exchange struct exchange x;
	int rc;

	exchange_init(&x, "GET", 1 << 20);
	p->auth.user = user;
	p->auth.secret = secret;
	rc = call_send(r, p, &c, &x, e);
	p->auth.user = p->auth.secret = NULL;
	if (rc < 0)
		return -1;
	if (x.status == 200)
		return 0;
	call_failed(p, c.what, &x, e);
	return err_hint(e, "%s does not look like a registry", p->site->host);
}

/* Which types are understood: some registries convert to what they are asked for. */
static const char accept_manifests[] = "Accept: application/vnd.oci.image.index.v1+json, "
				       "application/vnd.oci.image.manifest.v1+json, "
				       "application/vnd.docker.distribution.manifest.list.v2+json, "
				       "application/vnd.docker.distribution.manifest.v2+json";
static const char *const manifest_fields[] = {accept_manifests, NULL};

static void media_type(const struct exchange *x, char type[REGISTRY_TYPE])
{
	const char *text = exchange_field(x, "Content-Type", 0);
	size_t n = text ? strcspn(text, "; \t") : 0;

	if (n >= REGISTRY_TYPE)
		n = 0;
	for (size_t i = 0; i < n; i++)
		type[i] = (char)tolower((unsigned char)text[i]);
	type[n] = '\0';
}

/* The digest of what came: what was asked for, and what the registry says it is. */
static int check_manifest(const struct endpoint *p, const char *what, const char *target,
	const struct exchange *x, struct digest *d, struct err *e)
{
	const char *said = exchange_field(x, "Docker-Content-Digest", 0);
	struct digest want;

	*d = digest_of(x->answer.data ? x->answer.data : "", x->answer.len);
	if (strchr(target, ':')) {
		if (digest_parse(&want, target, e) < 0)
			return err_ctx(e, "%s: %s", p->name, what);
		return digest_check(&want, d, e, "%s: %s", p->name, what);
	}
	if (said && digest_parse(&want, said, NULL) == 0)
		return digest_check(&want, d, e, "%s: %s", p->name, what);
	return 0;
}

static int manifest_from(struct registry *r, struct endpoint *p, const char *target,
	struct exchange *x, struct digest *d, struct err *e)
{
	auto_free char *url = mem_printf("%s/manifests/%s", p->base, target);
	auto_free char *what = mem_printf("manifest %s", target);
	const struct call c = {.method = "GET",
		.what = what,
		.url = url,
		.fields = manifest_fields,
		.content = strchr(target, ':') != NULL};

	if (call_send(r, p, &c, x, e) < 0)
		return -1;
	if (x->status != 200)
		return call_failed(p, what, x, e);
	return check_manifest(p, what, target, x, d, e);
}

/* Is endpoint i to be left out, or did it fail with *one and another one is to be asked? */
static bool skip(struct registry *r, size_t i)
{
	return !r->v[i].last && endpoint_down(&r->v[i]);
}

static int give(struct err *e, const struct err *one)
{
	if (e)
		*e = *one;
	return -1;
}

int registry_manifest(struct registry *r, const char *target, struct buf *b,
	char type[REGISTRY_TYPE], struct digest *d, struct err *e)
{
	auto_exchange struct exchange x;
	struct err one = {0};

	exchange_init(&x, "GET", REGISTRY_MANIFEST_MAX);
	for (size_t i = 0; i < r->n; i++) {
		if (skip(r, i))
			continue;
		one = (struct err){0};
		if (manifest_from(r, &r->v[i], target, &x, d, &one) == 0) {
			media_type(&x, type);
			b->len = 0;
			return buf_add(b, x.answer.data ? x.answer.data : "", x.answer.len, e);
		}
		if (!r->v[i].last)
			endpoint_passed_over(&r->v[i], &one);
	}
	return give(e, &one);
}

int registry_has_manifest(struct registry *r, const char *target, struct err *e)
{
	struct endpoint *p = &r->v[r->n - 1];
	auto_free char *url = mem_printf("%s/manifests/%s", p->base, target);
	auto_free char *what = mem_printf("manifest %s", target);
	const struct call c = {
		.method = "HEAD", .what = what, .url = url, .fields = manifest_fields};
	auto_exchange struct exchange x;

	exchange_init(&x, "HEAD", EXCHANGE_ERROR_MAX);
	if (call_send(r, p, &c, &x, e) < 0)
		return -1;
	if (x.status == 200)
		return 1;
	return x.status == 404 ? 0 : call_failed(p, what, &x, e);
}

/* ---- blobs ---- */

static int blob_from(struct registry *r, struct endpoint *p, const struct digest *d, uint64_t size,
	struct exchange *x, struct err *e)
{
	char text[DIGEST_TEXT + 1];
	auto_free char *url = mem_printf("%s/blobs/%s", p->base, digest_text(d, text));
	auto_free char *what = mem_printf("blob %s", text);
	const struct call c = {.method = "GET",
		.what = what,
		.url = url,
		.content = true,
		.deadline_s = (unsigned)(EXCHANGE_DOCUMENT_S + size / SLOWEST)};
	struct digest found;
	unsigned tries = 0;

	do { /* a proxy in between may have cut it and told the length that was left */
		if (call_send(r, p, &c, x, e) < 0)
			return -1;
		if (x->status != 200)
			return call_failed(p, what, x, e);
	} while (x->answer.len < size && ++tries < SHORT_TRIES);
	if (x->answer.len != size)
		return err_set(e, ERR_CORRUPT, "%s: %s: expected %zu bytes, found %zu", p->name,
			what, (size_t)size, x->answer.len);
	found = digest_of(x->answer.data ? x->answer.data : "", x->answer.len);
	return digest_check(d, &found, e, "%s: %s", p->name, what);
}

int registry_blob(
	struct registry *r, const struct digest *d, uint64_t size, struct buf *b, struct err *e)
{
	auto_exchange struct exchange x;
	struct err one = {0};

	if (size > b->max)
		return err_set(e, ERR_CORRUPT,
			"%s: a blob of %zu bytes, more than the limit of %zu", r->name,
			(size_t)size, b->max);
	exchange_init(&x, "GET", (size_t)size);
	for (size_t i = 0; i < r->n; i++) {
		if (skip(r, i))
			continue;
		one = (struct err){0};
		if (blob_from(r, &r->v[i], d, size, &x, &one) == 0) {
			buf_fini(b); /* its max stays */
			b->data = x.answer.data;
			b->len = x.answer.len;
			b->cap = x.answer.cap;
			x.answer = (struct buf){0};
			return buf_reserve(b, 0, e); /* an empty one, too, ends with a NUL */
		}
		if (!r->v[i].last)
			endpoint_passed_over(&r->v[i], &one);
	}
	return give(e, &one);
}
