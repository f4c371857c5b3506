/* What a registry knows of the manifests that refer to one. Source: distribution-spec "Listing
 * Referrers". */
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "images/registry-call.h"
#include "images/url.h"

enum { PAGES_MAX = 16, LISTED_MAX = 4096 };

/* The address of the next page, from `Link: <URL>; rel="next"`; to free(), or NULL. */
static char *next_page(const struct exchange *x, const char *url)
{
	const char *link = exchange_field(x, "Link", 0), *end;
	auto_free char *target = NULL;

	if (!link || link[0] != '<' || !(end = strchr(link, '>')) || !strstr(end, "next"))
		return NULL;
	target = mem_printf("%.*s", (int)(end - link - 1), link + 1);
	return url_resolve(url, target, NULL);
}

static int take_page(const struct endpoint *p, const char *what, const struct exchange *x,
	json_t *list, struct err *e)
{
	auto_json json_t *doc = json_parse(x->answer.data ? x->answer.data : "", x->answer.len, e);
	json_t *page = doc ? json_array_of(doc, "manifests", e) : NULL;

	if (!page)
		return err_ctx(e, "%s: %s", p->name, what);
	if (json_array_size(list) + json_array_size(page) > LISTED_MAX)
		return err_set(
			e, ERR_CORRUPT, "%s: %s: more than %d of them", p->name, what, LISTED_MAX);
	json_array_extend(list, page);
	return 0;
}

/* All pages of one endpoint. 1, 0 (404), -1. */
static int list_from(struct registry *r, struct endpoint *p, const struct digest *subject,
	json_t *list, struct err *e)
{
	static const char *const fields[] = {
		"Accept: application/vnd.oci.image.index.v1+json", NULL};
	char text[DIGEST_TEXT + 1];
	auto_free char *url = mem_printf("%s/referrers/%s", p->base, digest_text(subject, text));
	auto_free char *what = mem_printf("referrers of %s", text);

	for (unsigned pages = 0; url; pages++) {
		const struct call c = {.method = "GET", .what = what, .url = url, .fields = fields};
		auto_exchange struct exchange x;
		char *next;

		exchange_init(&x, "GET", REGISTRY_MANIFEST_MAX);
		if (call_send(r, p, &c, &x, e) < 0)
			return -1;
		if (x.status == 404 && pages == 0)
			return 0;
		if (x.status != 200)
			return call_failed(p, what, &x, e);
		if (take_page(p, what, &x, list, e) < 0)
			return -1;
		if (pages >= PAGES_MAX)
			return err_set(e, ERR_CORRUPT, "%s: %s: more than %d pages", p->name, what,
				PAGES_MAX);
		next = next_page(&x, url);
		free(url);
		url = next;
	}
	return 1;
}

/* A mirror may hold less than the registry itself, and lists what it holds: nobody but the registry
 * is asked. */
int registry_referrers(
	struct registry *r, const struct digest *subject, json_t **list, struct err *e)
{
	auto_json json_t *all = json_array();
	int rc = list_from(r, &r->v[r->n - 1], subject, all, e);

	if (rc > 0)
		*list = json_incref(all);
	return rc;
}
