#include "svrun/test-http.h"

#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"

enum { HEADERS_MAX = 64 << 10, POLL_MS = 1000 };

struct request {
	const struct test_request *q;
	struct test_answer *a;
	CURL *easy;
	CURLM *multi;
	struct curl_slist *headers, *names;
	char *url, *name;
	char error[CURL_ERROR_SIZE];
	size_t header_bytes;
	bool too_long;
};

static size_t take_body(char *p, size_t size, size_t n, void *ctx)
{
	struct request *r = ctx;

	if (buf_add(&r->a->body, p, size * n, NULL) == 0)
		return size * n;
	r->too_long = true;
	return 0;
}

/* Headers are not kept, but a server that never ends them must not go on until the deadline. */
static size_t take_header(char *p, size_t size, size_t n, void *ctx)
{
	struct request *r = ctx;

	(void)p;
	r->header_bytes += size * n;
	r->too_long = r->too_long || r->header_bytes > HEADERS_MAX;
	return r->too_long ? 0 : size * n;
}

static bool has_header(const struct pairs *h, const char *name)
{
	for (size_t i = 0; i < h->n; i++)
		if (strcasecmp(h->v[i].name, name) == 0)
			return true;
	return false;
}

static void add_headers(struct request *r)
{
	for (size_t i = 0; i < r->q->headers.n; i++) {
		const struct pair *h = &r->q->headers.v[i];
		/* curl takes "Name:" as "leave it out", and "Name;" as an empty one */
		auto_free char *line =
			mem_printf(*h->value ? "%s: %s" : "%s;%s", h->name, h->value);

		r->headers = curl_slist_append(r->headers, line);
	}
	if (r->q->json && !has_header(&r->q->headers, "Content-Type"))
		r->headers = curl_slist_append(r->headers, "Content-Type: application/json");
	/* not asked for: a server that waits for a "100 Continue" of ours would only be slower */
	r->headers = curl_slist_append(r->headers, "Expect:");
}

static void prepare_body(struct request *r)
{
	const struct test_request *q = r->q;

	if (str_eq(q->method, "HEAD"))
		curl_easy_setopt(r->easy, CURLOPT_NOBODY, 1L);
	if (q->body) {
		curl_easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body_len);
		curl_easy_setopt(r->easy, CURLOPT_POSTFIELDS, q->body);
	}
	curl_easy_setopt(r->easy, CURLOPT_CUSTOMREQUEST, q->method);
}

/* Both addresses of the name, so that a server on either is found, and no resolver is asked. */
static void prepare(struct request *r, double deadline)
{
	r->url = mem_printf("http://localhost:%u%s", r->q->port, r->q->path);
	r->name = mem_printf("localhost:%u:127.0.0.1,[::1]", r->q->port);
	r->names = curl_slist_append(NULL, r->name);
	add_headers(r);
	curl_easy_setopt(r->easy, CURLOPT_URL, r->url);
	curl_easy_setopt(r->easy, CURLOPT_RESOLVE, r->names);
	curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, r->headers);
	curl_easy_setopt(r->easy, CURLOPT_PROTOCOLS_STR, "http");
	curl_easy_setopt(r->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(r->easy, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(r->easy, CURLOPT_PROXY, "");
	curl_easy_setopt(r->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(r->easy, CURLOPT_TIMEOUT_MS, (long)test_left(deadline) + 1);
	curl_easy_setopt(r->easy, CURLOPT_USERAGENT, "svrun/" SVRUN_VERSION);
	curl_easy_setopt(r->easy, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(r->easy, CURLOPT_WRITEDATA, r);
	curl_easy_setopt(r->easy, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(r->easy, CURLOPT_HEADERDATA, r);
	curl_easy_setopt(r->easy, CURLOPT_ERRORBUFFER, r->error);
	prepare_body(r);
}

/* 1 answered, 0 not, -1. */
static int perform(struct request *r, int signals, char **why, struct err *e)
{
	struct curl_waitfd extra = {.fd = signals, .events = CURL_WAIT_POLLIN};
	int running = 1, left;
	CURLcode code = CURLE_OK;
	CURLMsg *m;

	curl_multi_add_handle(r->multi, r->easy);
	while (running) {
		struct pollfd none = {.fd = -1};

		if (curl_multi_perform(r->multi, &running) != CURLM_OK ||
			(running && curl_multi_poll(r->multi, &extra, signals >= 0, POLL_MS,
					    NULL) != CURLM_OK))
			return err_set(e, ERR_SYSTEM, "curl cannot go on");
		if (test_wait(signals, &none, 1, 0, e) < 0)
			return -1;
	}
	while ((m = curl_multi_info_read(r->multi, &left)))
		if (m->msg == CURLMSG_DONE)
			code = m->data.result;
	curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &r->a->status);
	if (code == CURLE_OK)
		return 1;
	r->a->refused = code == CURLE_COULDNT_CONNECT;
	*why = r->too_long || code == CURLE_OUT_OF_MEMORY /* what it says of endless headers */
		       ? mem_printf("the answer is longer than %d MiB", TEST_BODY_MAX >> 20)
		       : *r->error ? mem_strdup(r->error) : mem_strdup(curl_easy_strerror(code));
	str_plain(*why, "");
	return 0;
}

static void request_fini(struct request *r)
{
	if (r->multi && r->easy)
		curl_multi_remove_handle(r->multi, r->easy);
	curl_easy_cleanup(r->easy);
	if (r->multi)
		curl_multi_cleanup(r->multi);
	curl_slist_free_all(r->headers);
	curl_slist_free_all(r->names);
	free(r->url);
	free(r->name);
}

int test_http(struct test_container *c, const struct test_request *q, double deadline,
	struct test_answer *a, char **why, struct err *e)
{
	struct request r = {.q = q, .a = a, .easy = curl_easy_init(), .multi = curl_multi_init()};
	int back, rc;

	*why = NULL;
	*a = (struct test_answer){.body = BUF_INIT(TEST_BODY_MAX)};
	if (!r.easy || !r.multi) {
		rc = err_set(e, ERR_SYSTEM, "curl cannot start");
	} else {
		prepare(&r, deadline);
		rc = test_container_enter(c, &back, e);
		if (rc > 0) {
			rc = perform(&r, c->signals, why, e);
			test_container_leave(&back);
		} else if (rc == 0) {
			*why = mem_strdup("the container has ended");
		}
	}
	request_fini(&r);
	if (rc < 0)
		test_answer_fini(a);
	return rc;
}

void test_answer_fini(struct test_answer *a)
{
	buf_fini(&a->body);
}

/* ---- is there anybody? ---- */

static int connect_to(
	const struct sockaddr *to, socklen_t n, int signals, double deadline, struct err *e)
{
	auto_fd int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof(int);
	int rc, error = 0;

	if (fd < 0)
		return errno == EAFNOSUPPORT ? 0 : err_sys(e, "socket");
	if (connect(fd, to, n) == 0)
		return 1;
	if (errno != EINPROGRESS)
		return 0;
	rc = test_wait(signals, &p, 1, test_left(deadline), e);
	if (rc <= 0)
		return rc;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

int test_connect(struct test_container *c, uint32_t port, double deadline, struct err *e)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int back, rc;

	rc = test_container_enter(c, &back, e);
	if (rc <= 0)
		return rc;
	rc = connect_to((struct sockaddr *)&v4, sizeof(v4), c->signals, deadline, e);
	if (rc == 0)
		rc = connect_to((struct sockaddr *)&v6, sizeof(v6), c->signals, deadline, e);
	test_container_leave(&back);
	return rc;
}
