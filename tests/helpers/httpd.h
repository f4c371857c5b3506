/* An HTTP/1.1 server on 127.0.0.1 for tests of what real servers do wrong. One thread per
 * connection; files and their faults are set before the requests come. Include once per test. */
#ifndef TESTS_HTTPD_H
#define TESTS_HTTPD_H

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HTTPD_FILES = 256, HTTPD_CONNECTIONS = 4096 };

struct httpd_file {
	char path[64]; /* "/a" */
	const void *data;
	size_t n;

	/* faults; of the first `times` requests, or of all when it is 0 */
	unsigned times;
	int status;         /* instead of the file */
	const char *header; /* one more line, with its CRLF */
	size_t cut;         /* close after so many bytes of the body */
	bool ignore_range;  /* 200 for everything */
	bool wrong_range;   /* 206 for one byte further on */
	size_t total;       /* Content-Range's */
	bool only;          /* the faults are for ranges that begin at only_from */
	size_t only_from;
	bool overrun;      /* with no_length: all of the file follows the range */
	bool no_length;    /* the end of the connection is the end of the body */
	size_t claim;      /* Content-Length */
	size_t pause_at;   /* nothing more after so many bytes of the body */
	bool endless;      /* no length, and never an end */
	bool hang;         /* no answer at all */
	unsigned drip_ms;  /* between one byte and the next */
	unsigned delay_ms; /* before the answer */
	size_t flip;       /* 1 + position of a byte that is wrong */

	/* what came */
	unsigned requests, ranged, faulty;
	size_t range_start; /* of the last one */
	size_t asked;       /* bytes of all ranges */
};

struct httpd {
	int fd, port;
	pthread_t thread;
	pthread_mutex_t lock;
	struct httpd_file files[HTTPD_FILES];
	size_t nfiles;
	unsigned connections; /* ever */
	size_t identity;      /* requests that asked for the identity encoding */
	size_t sent;          /* bytes of bodies */
	bool stop;
	struct httpd_connection {
		struct httpd *h;
		pthread_t thread;
		int fd;
	} open[HTTPD_CONNECTIONS];
	size_t nopen;
};

static bool httpd_write(int fd, const void *p, size_t n)
{
	const char *s = p;

	while (n > 0) {
		ssize_t k = send(fd, s, n, MSG_NOSIGNAL);

		if (k <= 0)
			return false;
		s += k;
		n -= (size_t)k;
	}
	return true;
}

/* Sleep, but not when the server is to stop. */
static bool httpd_sleep(struct httpd *h, unsigned ms)
{
	for (unsigned i = 0; i < ms; i += 10) {
		bool stop;

		pthread_mutex_lock(&h->lock);
		stop = h->stop;
		pthread_mutex_unlock(&h->lock);
		if (stop)
			return false;
		usleep((ms - i < 10 ? ms - i : 10) * 1000);
	}
	return true;
}

static bool httpd_body(struct httpd *h, int fd, const struct httpd_file *f, size_t from, size_t to)
{
	size_t n = to - from, end = f->cut && f->cut < n ? f->cut : n;
	unsigned char *flipped = f->flip ? malloc(f->n) : NULL;
	const unsigned char *copy = f->data;
	bool ok = true;

	if (flipped) {
		memcpy(flipped, f->data, f->n);
		flipped[f->flip - 1] ^= 1;
		copy = flipped;
	}
	for (size_t at = 0; ok && at < end;) {
		size_t k = f->drip_ms ? 1 : end - at;

		if (f->pause_at && at == f->pause_at)
			while (httpd_sleep(h, 100))
				;
		if (f->pause_at > at && f->pause_at < end)
			k = f->pause_at - at;
		ok = httpd_write(fd, copy + from + at, k) && httpd_sleep(h, f->drip_ms);
		at += k;
		pthread_mutex_lock(&h->lock);
		h->sent += k;
		pthread_mutex_unlock(&h->lock);
	}
	if (ok && f->overrun)
		ok = httpd_write(fd, copy, f->n);
	while (ok && f->endless)
		ok = httpd_write(fd, copy, f->n) && httpd_sleep(h, 1);
	free(flipped);
	return ok && end == n && !f->no_length;
}

/* Answer one request; false closes the connection. */
static bool httpd_file_answer(
	struct httpd *h, int fd, const struct httpd_file *f, bool ranged, size_t from, size_t to)
{
	char head[512], length[64] = "", range[96] = "";
	bool partial = ranged && !f->ignore_range;

	if (!httpd_sleep(h, f->delay_ms))
		return false;
	while (f->hang)
		if (!httpd_sleep(h, 100))
			return false;
	if (partial && from >= f->n) {
		snprintf(head, sizeof(head),
			"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n");
		return httpd_write(fd, head, strlen(head));
	}
	if (f->status) {
		snprintf(head, sizeof(head),
			"HTTP/1.1 %d Fault\r\nContent-Length: 5\r\n%s\r\nfault", f->status,
			f->header ? f->header : "");
		return httpd_write(fd, head, strlen(head));
	}
	if (!partial)
		from = 0;
	if (!partial || to > f->n)
		to = f->n;
	if (partial)
		snprintf(range, sizeof(range), "Content-Range: bytes %zu-%zu/%zu\r\n",
			from + f->wrong_range, to - 1 + f->wrong_range, f->total ? f->total : f->n);
	if (!f->no_length && !f->endless)
		snprintf(length, sizeof(length), "Content-Length: %zu\r\n",
			f->claim ? f->claim : to - from);
	snprintf(head, sizeof(head), "HTTP/1.1 %s\r\n%s%s%s\r\n",
		partial ? "206 Partial Content" : "200 OK", length, range,
		f->header ? f->header : "");
	return httpd_write(fd, head, strlen(head)) && httpd_body(h, fd, f, from, to);
}

static bool httpd_answer(struct httpd *h, int fd, const char *request)
{
	static const char missing[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
	const char *range = strstr(request, "Range: bytes=");
	char *dash = NULL, path[64];
	size_t from = range ? (size_t)strtoull(range + 13, &dash, 10) : 0;
	size_t to = dash && dash[1] >= '0' && dash[1] <= '9'
			    ? (size_t)strtoull(dash + 1, NULL, 10) + 1
			    : SIZE_MAX;
	struct httpd_file copy = {0};

	if (sscanf(request, "GET %63s", path) != 1)
		return false;
	pthread_mutex_lock(&h->lock);
	h->identity += strstr(request, "Accept-Encoding: identity\r\n") != NULL;
	for (size_t i = 0; i < h->nfiles; i++) {
		struct httpd_file *f = &h->files[i];

		if (strcmp(f->path, path) != 0)
			continue;
		f->requests++;
		f->ranged += range != NULL;
		f->range_start = from;
		f->asked += (to < f->n ? to : f->n) - (from < f->n ? from : f->n);
		copy = *f;
		f->faulty += !f->only || from == f->only_from;
		if ((f->times && f->faulty > f->times) ||
			(f->only && from != f->only_from)) /* well again */
			copy = (struct httpd_file){.data = f->data, .n = f->n, .path = "/"};
	}
	pthread_mutex_unlock(&h->lock);
	if (!copy.path[0])
		return httpd_write(fd, missing, sizeof(missing) - 1);
	return httpd_file_answer(h, fd, &copy, range != NULL, from, to);
}

static void *httpd_serve(void *ctx)
{
	struct httpd_connection *c = ctx;
	char buf[8192];
	size_t n = 0;

	for (;;) {
		char *end;
		ssize_t k = recv(c->fd, buf + n, sizeof(buf) - 1 - n, 0);

		if (k <= 0)
			break;
		n += (size_t)k;
		buf[n] = '\0';
		end = strstr(buf, "\r\n\r\n");
		if (!end)
			continue;
		if (!httpd_answer(c->h, c->fd, buf))
			break;
		n -= (size_t)(end + 4 - buf);
		memmove(buf, end + 4, n);
	}
	shutdown(c->fd, SHUT_RDWR);
	return NULL;
}

static void *httpd_accept(void *ctx)
{
	struct httpd *h = ctx;

	for (;;) {
		int fd = accept(h->fd, NULL, NULL);
		struct httpd_connection *c;

		if (fd < 0)
			return NULL;
		pthread_mutex_lock(&h->lock);
		assert(h->nopen < HTTPD_CONNECTIONS);
		c = &h->open[h->nopen++];
		*c = (struct httpd_connection){.h = h, .fd = fd};
		h->connections++;
		pthread_create(&c->thread, NULL, httpd_serve, c);
		pthread_mutex_unlock(&h->lock);
	}
}

static void httpd_start(struct httpd *h)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int rc;

	memset(h, 0, sizeof(*h));
	pthread_mutex_init(&h->lock, NULL);
	h->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	rc = bind(h->fd, (struct sockaddr *)&a, sizeof(a));
	assert(rc == 0);
	rc = listen(h->fd, 64);
	assert(rc == 0);
	rc = getsockname(h->fd, (struct sockaddr *)&a, &len);
	assert(rc == 0);
	h->port = ntohs(a.sin_port);
	pthread_create(&h->thread, NULL, httpd_accept, h);
}

static void httpd_stop(struct httpd *h)
{
	pthread_mutex_lock(&h->lock);
	h->stop = true;
	pthread_mutex_unlock(&h->lock);
	shutdown(h->fd, SHUT_RDWR);
	pthread_join(h->thread, NULL);
	close(h->fd);
	for (size_t i = 0; i < h->nopen; i++) {
		shutdown(h->open[i].fd, SHUT_RDWR);
		pthread_join(h->open[i].thread, NULL);
		close(h->open[i].fd);
	}
	pthread_mutex_destroy(&h->lock);
}

/* Serve data (which must stay) at path; faults are set in what this returns. */
static struct httpd_file *httpd_add(struct httpd *h, const char *path, const void *data, size_t n)
{
	struct httpd_file *f = &h->files[h->nfiles++];

	assert(h->nfiles <= HTTPD_FILES);
	memset(f, 0, sizeof(*f));
	snprintf(f->path, sizeof(f->path), "%s", path);
	f->data = data;
	f->n = n;
	return f;
}

#endif
