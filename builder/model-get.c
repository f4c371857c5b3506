/* What has no digest yet: listings, and files that a listing tells nothing of. */
#include <curl/curl.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/str.h"
#include "base/sys.h"
#include "builder/model.h"
#include "builder/partial.h"
#include "images/http.h"
#include "images/url.h"

static const uint64_t file_max = 1ull << 40;

struct get {
	struct buf *text; /* into this, or */
	int fd;           /* into this */
	struct hash hash;
	uint64_t size;
	struct arena *a;
	const char *next;
	struct err e;
};

/* Link: <ADDRESS>; rel="next" */
static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
	struct get *g = ctx;
	auto_free char *line = mem_printf("%.*s", (int)n, data);
	char *from, *to;

	if (g->a && strncasecmp(line, "link:", 5) == 0 && strstr(line, "rel=\"next\"")) {
		from = strchr(line, '<');
		to = from ? strchr(from, '>') : NULL;
		if (to)
			g->next = arena_strndup(g->a, from + 1, (size_t)(to - from - 1));
	}
	return size * n;
}

static size_t on_data(char *data, size_t size, size_t n, void *ctx)
{
	struct get *g = ctx;

	if (g->text)
		return buf_add(g->text, data, n, &g->e) < 0 ? 0 : size * n;
	if (g->size + n > file_max)
		return err_set(&g->e, ERR_CORRUPT, "more than the limit of 1 TiB"), 0;
	if (sys_write_all(g->fd, data, n) < 0)
		return err_sys(&g->e, "write"), 0;
	hash_add(&g->hash, data, n);
	g->size += n;
	return size * n;
}

static struct curl_slist *authorize(CURL *h, const struct input *auth, const char *url)
{
	auto_free char *header = NULL;
	struct curl_slist *list = NULL;

	if (!auth || (!auth->authorization && !auth->s3_key))
		return NULL;
	if (str_starts(url, "https://"))
		http_redirects(h, "https");
	if (auth->s3_key) {
		curl_easy_setopt(h, CURLOPT_USERPWD, auth->s3_key);
		curl_easy_setopt(h, CURLOPT_AWS_SIGV4, "aws:amz");
		return NULL;
	}
	header = mem_printf("Authorization: %s", auth->authorization);
	list = curl_slist_append(NULL, header);
	explicit_bzero(header, strlen(header));
	curl_easy_setopt(h, CURLOPT_HTTPHEADER, list);
	return list;
}

static int judge(struct get *g, const char *url, CURLcode code, long status, struct err *e)
{
	char where[512];

	if (code == CURLE_OK)
		return 0;
	url_show(url, where, sizeof(where));
	if (g->e.kind != ERR_NONE) {
		if (e)
			*e = g->e;
		return err_ctx(e, "%s", where);
	}
	if (code != CURLE_HTTP_RETURNED_ERROR)
		return err_set(e, ERR_NETWORK, "%s: %s", where, curl_easy_strerror(code));
	return err_set(e,
		status == 404                    ? ERR_NOT_FOUND
		: status == 401 || status == 403 ? ERR_DENIED
						 : ERR_NETWORK,
		"%s: HTTP status %ld", where, status);
}

static int get(struct get *g, const char *url, const struct input *auth, struct err *e)
{
	struct curl_slist *list;
	long status = 0;
	CURLcode code;
	CURL *h;

	http_init();
	h = curl_easy_init();
	if (!h)
		return err_set(e, ERR_SYSTEM, "no memory for a transfer");
	http_common(h, "http,https,file");
	curl_easy_setopt(h, CURLOPT_URL, url);
	curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(h, CURLOPT_MAXREDIRS, 10L);
	curl_easy_setopt(h, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(h, CURLOPT_HEADERDATA, g);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, g);
	list = authorize(h, auth, url);
	code = curl_easy_perform(h);
	curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(h);
	curl_slist_free_all(list);
	return judge(g, url, code, status, e);
}

int model_get(const char *url, const struct input *auth, struct buf *b, struct arena *a,
	const char **next, struct err *e)
{
	struct get g = {.text = b, .fd = -1, .a = a};

	if (get(&g, url, auth, e) < 0)
		return -1;
	*next = g.next;
	return 0;
}

/* It gets its name in the cache when it is known what it is. */
int model_get_file(struct store *s, const char *name, const char *url, const struct input *auth,
	struct model_file *f, struct progress *p, struct err *e)
{
	struct input in = {.name = name, .kind = HASH_SHA256};
	char final[CACHE_NAME], tmp[64];
	struct get g = {.fd = -1};
	auto_fd int dir = -1;
	auto_fd int fd = -1;

	if (partial_prepare(s, e) < 0)
		return -1;
	dir = sys_openat(s->fd, "cache/sha256", O_RDONLY | O_DIRECTORY, 0);
	fd = dir < 0 ? -1 : file_tmp(dir, tmp, 0600, e);
	if (fd < 0)
		return dir < 0 ? err_sys(e, "open %s/cache", s->path) : -1;
	hash_init(&g.hash, HASH_SHA256);
	g.fd = fd;
	progress_note(p, "%s: fetched, to learn its digest", name);
	if (get(&g, url, auth, e) < 0)
		return err_ctx(e, "%s", name);
	f->size = g.size;
	f->sha256 = hash_digest(&g.hash);
	memcpy(in.digest, f->sha256.b, DIGEST_SIZE);
	cache_name(&in, final);
	return file_publish(dir, fd, tmp, strrchr(final, '/') + 1, false, e);
}
