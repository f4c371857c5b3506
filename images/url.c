#include "images/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <curl/curl.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"

static void curl_url_ref(CURLU **u)
{
	curl_url_cleanup(*u);
}
#define auto_curlu __attribute__((cleanup(curl_url_ref)))

static void curl_text_ref(char **s)
{
	curl_free(*s);
}
#define auto_curl_text __attribute__((cleanup(curl_text_ref)))

char *url_show(const char *url, char *out, size_t size)
{
	const char *host = strstr(url, "://");
	size_t n = host ? strcspn(host + 3, "/?#") : 0, end;
	const char *rest = url;

	for (size_t i = 0; i < n; i++)
		if (host[3 + i] == '@')
			rest = host + 3 + i + 1;
	end = strcspn(rest, "?#");
	snprintf(out, size, "%.*s%.*s", rest == url ? 0 : (int)(host + 3 - url), url, (int)end,
		rest);
	return out;
}

bool url_is_plain(const char *url)
{
	return strncasecmp(url, "http://", 7) == 0;
}

bool url_is_private(const char *url)
{
	auto_free char *host = url_host(url);
	char *port = host ? strrchr(host, ':') : NULL;
	struct in_addr a;

	if (!host || !url_is_plain(url))
		return host != NULL;
	if (port && !strchr(port, ']'))
		*port = '\0';
	if (inet_pton(AF_INET, host, &a) == 1)
		return ntohl(a.s_addr) >> 24 == 127;
	return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0;
}

bool url_same_origin(const char *a, const char *b)
{
	static const CURLUPart parts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
	auto_curlu CURLU *u = curl_url(), *v = curl_url();

	if (curl_url_set(u, CURLUPART_URL, a, 0) || curl_url_set(v, CURLUPART_URL, b, 0))
		return false;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		auto_curl_text char *x = NULL, *y = NULL;

		if (curl_url_get(u, parts[i], &x, CURLU_DEFAULT_PORT) ||
			curl_url_get(v, parts[i], &y, CURLU_DEFAULT_PORT) || strcasecmp(x, y) != 0)
			return false;
	}
	return true;
}

char *url_host(const char *url)
{
	auto_curlu CURLU *u = curl_url();
	auto_curl_text char *host = NULL, *port = NULL;

	if (curl_url_set(u, CURLUPART_URL, url, 0) || curl_url_get(u, CURLUPART_HOST, &host, 0))
		return NULL;
	for (char *p = host; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	if (curl_url_get(u, CURLUPART_PORT, &port, CURLU_NO_DEFAULT_PORT) != CURLUE_OK)
		return mem_strdup(host);
	return mem_printf("%s:%s", host, port);
}

/* What curl_url_set() would take, but no header may carry. */
static bool printable(const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s > '~')
			return false;
	return true;
}

static bool wanted_scheme(CURLU *u)
{
	auto_curl_text char *scheme = NULL;

	return curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
	       (strcasecmp(scheme, "http") == 0 || strcasecmp(scheme, "https") == 0);
}

char *url_resolve(const char *base, const char *text, struct err *e)
{
	auto_curlu CURLU *u = curl_url();
	auto_curl_text char *full = NULL;
	char shown[256];

	url_show(base, shown, sizeof(shown));
	if (strlen(text) > URL_MAX || !printable(text) || curl_url_set(u, CURLUPART_URL, base, 0) ||
		curl_url_set(u, CURLUPART_URL, text, CURLU_DISALLOW_USER) || !wanted_scheme(u)) {
		err_set(e, ERR_CORRUPT, "%s leads to an address that is malformed", shown);
		return NULL;
	}
	curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0);
	if (curl_url_get(u, CURLUPART_URL, &full, 0) || strlen(full) > URL_MAX) {
		err_set(e, ERR_CORRUPT, "%s leads to an address that is malformed", shown);
		return NULL;
	}
	if (url_is_plain(full) && !url_is_plain(base)) {
		err_set(e, ERR_DENIED, "%s leads from https to http", shown);
		err_hint(e, "a proxy in front of the registry must tell it X-Forwarded-Proto");
		return NULL;
	}
	return mem_strdup(full);
}
