#include "images/http.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "images/url.h"

/* ---- handles ---- */

static void global_init(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

void http_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, global_init);
}

static void set_protocols(CURL *h, const char *protocols)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, protocols);
#else
	long file = strstr(protocols, "file") ? CURLPROTO_FILE : 0;

	curl_easy_setopt(h, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS | file);
#endif
	http_redirects(h, "http,https");
}

void http_redirects(CURL *h, const char *protocols)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(h, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
#else
	long plain = str_starts(protocols, "http,") ? CURLPROTO_HTTP : 0;

	curl_easy_setopt(h, CURLOPT_REDIR_PROTOCOLS, CURLPROTO_HTTPS | plain);
#endif
}

/* The command curl reads these; the library leaves them to programs. Proxies it reads itself. */
static void set_trust(CURL *h)
{
	static const char *const files[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE"};
	const char *dir = getenv("SSL_CERT_DIR");

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const char *file = getenv(files[i]);

		if (file && *file) {
			curl_easy_setopt(h, CURLOPT_CAINFO, file);
			return;
		}
	}
	if (dir && *dir)
		curl_easy_setopt(h, CURLOPT_CAPATH, dir);
}

void http_common(CURL *h, const char *protocols)
{
	set_protocols(h, protocols);
	set_trust(h);
	curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(h, CURLOPT_USERAGENT, "svrun/" SVRUN_VERSION);
	curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(h, CURLOPT_BUFFERSIZE, (long)HTTP_BUFFER);
	curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT, (long)HTTP_CONNECT_S);
	curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, (long)HTTP_STALL_S);
	curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, (long)HTTP_STALL_BYTES);
	/* the bytes as they are stored: their digest is what is known */
	curl_easy_setopt(h, CURLOPT_ACCEPT_ENCODING, "identity");
	curl_easy_setopt(h, CURLOPT_HTTP_CONTENT_DECODING, 0L);
}

CURL *http_take(struct http *http)
{
	CURL *h = NULL;

	pthread_mutex_lock(&http->lock);
	if (http->nidle)
		h = http->idle[--http->nidle];
	pthread_mutex_unlock(&http->lock);
	if (h)
		curl_easy_reset(h);
	else
		h = curl_easy_init();
	assert(h); /* memory */
	http_common(h, "http,https");
	return h;
}

void http_give(struct http *http, CURL *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&http->lock);
	mem_grow(&http->idle, &http->cap, http->nidle);
	http->idle[http->nidle++] = h;
	pthread_mutex_unlock(&http->lock);
}

/* ---- sites ---- */

void http_open(struct http *http, const struct config *config)
{
	http_init();
	*http = (struct http){.config = config};
	pthread_mutex_init(&http->lock, NULL);
}

void http_close(struct http *http)
{
	while (http->sites) {
		struct http_site *s = http->sites;

		http->sites = s->next;
		config_registry_fini(&s->config);
		free(s->host);
		free(s);
	}
	for (size_t i = 0; i < http->nidle; i++)
		curl_easy_cleanup(http->idle[i]);
	free(http->idle);
	pthread_mutex_destroy(&http->lock);
}

static struct http_site *site_new(struct http *http, const char *host, struct err *e)
{
	struct http_site *s = mem_alloc(sizeof(*s));

	if (http->config && config_registry(http->config, host, &s->config, e) < 0) {
		free(s);
		return NULL;
	}
	s->host = mem_strdup(host);
	s->plain = s->config.plain_http;
	s->insecure = s->config.insecure;
	s->ca = s->config.ca;
	s->cert = s->config.cert;
	s->key = s->config.key;
	s->next = http->sites;
	http->sites = s;
	return s;
}

struct http_site *http_site(struct http *http, const char *host, struct err *e)
{
	struct http_site *s;

	pthread_mutex_lock(&http->lock);
	for (s = http->sites; s; s = s->next)
		if (str_eq(s->host, host))
			break;
	if (!s)
		s = site_new(http, host, e);
	pthread_mutex_unlock(&http->lock);
	return s;
}

/* The host without its port: "[::1]:5000" -> "[::1]". */
static size_t name_length(const char *host)
{
	const char *end = strrchr(host, ':');

	return end && !strchr(end, ']') ? (size_t)(end - host) : strlen(host);
}

static bool same_name(const char *a, const char *b)
{
	size_t n = name_length(a);

	return n == name_length(b) && memcmp(a, b, n) == 0;
}

int http_site_led(struct http *http, const struct http_site *from, const char *url, bool content,
	struct http_site *led, struct err *e)
{
	auto_free char *host = url_host(url);
	const struct http_site *own;

	if (!host)
		return err_set(
			e, ERR_CORRUPT, "%s leads to an address that is malformed", from->host);
	own = http_site(http, host, e);
	if (!own)
		return -1;
	*led = *own;
	if (!led->ca && from->ca) {
		led->ca = from->ca;
		led->ca_also = true;
	}
	if (from->insecure && (content || same_name(own->host, from->host)))
		led->insecure = true;
	return 0;
}

void http_apply(CURL *h, const struct http_site *site)
{
	if (site->ca)
		curl_easy_setopt(h, CURLOPT_CAINFO, site->ca);
	if (site->ca &&
		!site->ca_also) /* the system's folder of certificates would stay in force */
		curl_easy_setopt(h, CURLOPT_CAPATH, NULL);
	curl_easy_setopt(h, CURLOPT_SSLCERT, site->cert);
	curl_easy_setopt(h, CURLOPT_SSLKEY, site->key);
	curl_easy_setopt(h, CURLOPT_SSL_VERIFYPEER, site->insecure ? 0L : 1L);
	curl_easy_setopt(h, CURLOPT_SSL_VERIFYHOST, site->insecure ? 0L : 2L);
}
