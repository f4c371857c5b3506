#include "svrun/signers.h"

#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "images/image.h"
#include "images/pool.h"
#include "images/reference.h"
#include "images/referrers.h"

int signers_load(struct signers *x, const struct option_list *files, struct err *e)
{
	*x = (struct signers){.v = mem_array(files->n, sizeof(struct sign_key *))};
	for (size_t i = 0; i < files->n; i++) {
		if (sign_key_load_public(&x->v[i], files->v[i], e) < 0) {
			signers_free(x);
			return -1;
		}
		x->n++;
	}
	return 0;
}

void signers_free(struct signers *x)
{
	for (size_t i = 0; i < x->n; i++)
		sign_key_free(x->v[i]);
	free(x->v);
	*x = (struct signers){0};
}

/* An image that was chosen from an index may be signed through it: what do the names of the image
 * lead to there? */
static int fetch_index(
	struct registry *r, struct store *s, const struct digest *manifest, struct err *e)
{
	struct store_name *v;
	size_t n;
	int rc = store_names(s, &v, &n, e);

	if (rc < 0)
		return -1;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		auto_buf struct buf b = BUF_INIT(REGISTRY_MANIFEST_MAX);
		char type[REGISTRY_TYPE];
		struct reference ref;
		struct digest d;

		if (!digest_eq(&v[i].manifest, manifest) || !v[i].source ||
			!str_eq(v[i].source, registry_name(r)) ||
			reference_parse(&ref, v[i].name, NULL) < 0 || !ref.tag[0] ||
			registry_manifest(r, ref.tag, &b, type, &d, NULL) < 0 ||
			!image_type_is_index(type))
			continue;
		rc = referrers_fetch_index(r, s, manifest, b.data, b.len, e);
	}
	store_names_free(v, n);
	return rc;
}

static int fetch_from(struct store *s, const struct signers_site *site, const char *source,
	const struct digest *manifest, struct err *e)
{
	auto_free char *host = mem_strdup(source);
	char *slash = strchr(host, '/');
	struct registry_options o = {.config = site->config,
		.host = host,
		.plain_http = site->plain_http,
		.insecure = site->insecure};
	auto_fd int hold = -1;
	struct registry *r;
	int rc;

	if (!slash) /* not what svrun writes */
		return 0;
	*slash = '\0';
	o.path = slash + 1;
	hold = pool_hold(s->fd, e);
	r = hold < 0 ? NULL : registry_open(&o, e);
	if (!r)
		return -1;
	rc = referrers_fetch(r, s, manifest, e) < 0 || fetch_index(r, s, manifest, e) < 0 ? -1 : 0;
	registry_close(r);
	return rc;
}

int signers_fetch(struct store *s, const struct signers_site *site, const struct digest *manifest,
	struct err *e)
{
	auto_free char *source = store_source(s, manifest);
	struct signatures l;
	size_t n;

	if (signatures_load(&l, s, manifest, e) < 0)
		return -1;
	n = l.n;
	signatures_fini(&l);
	return n || !source ? 0 : fetch_from(s, site, source, manifest, e);
}
