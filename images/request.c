#include "images/request.h"

#include <openssl/crypto.h>
#include <string.h>

#include "base/str.h"
#include "images/base64.h"
#include "images/url.h"

static void slist_ref(struct curl_slist **l)
{
	curl_slist_free_all(*l);
}

static struct curl_slist *fields_of(const struct request *q, const char *url)
{
	/* who asks "Expect: 100-continue" waits a second for servers that do not know it */
	struct curl_slist *l = curl_slist_append(NULL, "Expect:");

	if (q->authorization && url_same_origin(url, q->url)) {
		auto_free char *field = mem_printf("Authorization: %s", q->authorization);

		l = curl_slist_append(l, field);
		OPENSSL_cleanse(field, strlen(field));
	}
	for (size_t i = 0; q->fields && q->fields[i]; i++)
		l = curl_slist_append(l, q->fields[i]);
	return l;
}

/* Send it to one address. */
static int send_to(struct http *http, const struct request *q, const char *url, struct exchange *x,
	CURL *h, struct err *e)
{
	__attribute__((cleanup(slist_ref))) struct curl_slist *fields = fields_of(q, url);
	struct http_site site = *q->site;

	if (!url_same_origin(url, q->url) &&
		http_site_led(http, q->site, url, q->content, &site, e) < 0)
		return -1;
	http_apply(h, &site);
	curl_easy_setopt(h, CURLOPT_URL, url);
	curl_easy_setopt(h, CURLOPT_HTTPHEADER, fields);
	exchange_perform(x, h);
	curl_easy_setopt(h, CURLOPT_HTTPHEADER, NULL);
	return 0;
}

static bool is_redirect(const struct exchange *x)
{
	bool any = str_eq(x->method, "GET") || str_eq(x->method, "HEAD");

	if (x->code != CURLE_OK && x->code != CURLE_WRITE_ERROR)
		return false;
	return x->status == 307 || x->status == 308 ||
	       (any && (x->status == 301 || x->status == 302 || x->status == 303));
}

int request_send(struct http *http, const struct request *q, struct exchange *x, CURL *h, char **at,
	struct err *e)
{
	auto_free char *url = mem_strdup(q->url);
	char shown[256];

	for (unsigned n = 0; n <= REQUEST_REDIRECTS; n++) {
		const char *location;
		char *next;

		if (send_to(http, q, url, x, h, e) < 0)
			return -1;
		location = !q->stay && is_redirect(x) ? exchange_field(x, "Location", 0) : NULL;
		if (!location) {
			if (at)
				*at = steal_ptr(&url);
			return 0;
		}
		next = url_resolve(url, location, e);
		if (!next)
			return -1;
		free(url);
		url = next;
	}
	return err_set(e, ERR_NETWORK, "%s: more than %d redirects",
		url_show(q->url, shown, sizeof(shown)), REQUEST_REDIRECTS);
}

char *request_basic(const char *user, const char *secret)
{
	auto_free char *plain = mem_printf("%s:%s", user, secret);
	auto_free char *text = base64_encode(plain, strlen(plain));
	char *value = mem_printf("Basic %s", text);

	OPENSSL_cleanse(plain, strlen(plain));
	OPENSSL_cleanse(text, strlen(text));
	return value;
}
