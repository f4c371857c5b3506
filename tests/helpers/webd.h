/* A scripted HTTP/1.1 server on 127.0.0.1 for tests of what clients send: every request goes to a
 * function of the test, one at a time. Include once per test. */
#ifndef TESTS_WEBD_H
#define TESTS_WEBD_H

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WEBD_CONNECTIONS = 512, WEBD_HEAD = 64 << 10 };

struct webd_request {
	char method[16], target[4096]; /* path and query */
	const char *head;              /* all lines, NUL-terminated */
	const unsigned char *body;
	size_t n;
	bool whole; /* false: the connection broke, or was broken, before the body's end */
};

struct webd_reply {
	int status;      /* 0: close without an answer */
	char head[4096]; /* more lines, each with its CRLF */
	const void *body;
	size_t n;
	size_t cut; /* close after so many bytes of the body */
	bool hang, endless;
};

struct webd {
	int fd, port;
	pthread_t thread;
	pthread_mutex_t lock;
	void (*handle)(struct webd *w, const struct webd_request *q, struct webd_reply *a);
	void *ctx;
	size_t take; /* 0, or break the connection after so many bytes of the next body */
	unsigned requests, connections;
	bool stop;
	struct webd_connection {
		struct webd *w;
		pthread_t thread;
		int fd;
	} open[WEBD_CONNECTIONS];
	size_t nopen;
};

/* The value of a field, or "". Valid until the next call. */
static __attribute__((unused)) const char *webd_field(
	const struct webd_request *q, const char *name)
{
	static _Thread_local char value[8192];
	size_t n = strlen(name);

	for (const char *s = strstr(q->head, "\r\n"); s; s = strstr(s + 2, "\r\n"))
		if (strncasecmp(s + 2, name, n) == 0 && s[2 + n] == ':') {
			s += 3 + n;
			s += strspn(s, " ");
			snprintf(value, sizeof(value), "%.*s", (int)strcspn(s, "\r"), s);
			return value;
		}
	return "";
}

static __attribute__((unused, format(printf, 2, 3))) void webd_head(
	struct webd_reply *a, const char *fmt, ...)
{
	size_t n = strlen(a->head);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(a->head + n, sizeof(a->head) - n, fmt, ap);
	va_end(ap);
	n = strlen(a->head);
	snprintf(a->head + n, sizeof(a->head) - n, "\r\n");
}

static bool webd_write(int fd, const void *p, size_t n)
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

static bool webd_stopped(struct webd *w)
{
	bool stop;

	pthread_mutex_lock(&w->lock);
	stop = w->stop;
	pthread_mutex_unlock(&w->lock);
	return stop;
}

static bool webd_send(struct webd *w, int fd, const struct webd_reply *a, bool head_only)
{
	char head[8192], length[64] = "";
	size_t n = a->cut && a->cut < a->n ? a->cut : a->n;

	while (a->hang && !webd_stopped(w))
		usleep(10000);
	if (a->status == 0 || a->hang)
		return false;
	if (!a->endless)
		snprintf(length, sizeof(length), "Content-Length: %zu\r\n", a->n);
	snprintf(head, sizeof(head), "HTTP/1.1 %d Said\r\n%s%s\r\n", a->status, length, a->head);
	if (!webd_write(fd, head, strlen(head)))
		return false;
	if (head_only || a->n == 0)
		return true;
	if (!webd_write(fd, a->body, n))
		return false;
	while (a->endless && !webd_stopped(w) && webd_write(fd, a->body, a->n))
		;
	return n == a->n && !a->endless;
}

/* Read n bytes of body, `have` of which are in data. */
static bool webd_body(
	struct webd *w, int fd, unsigned char *data, size_t have, size_t n, struct webd_request *q)
{
	size_t end = n;

	pthread_mutex_lock(&w->lock);
	if (w->take && w->take < n) {
		end = w->take;
		w->take = 0;
	}
	pthread_mutex_unlock(&w->lock);
	while (have < end) {
		ssize_t k = recv(fd, data + have, end - have, 0);

		if (k <= 0)
			break;
		have += (size_t)k;
	}
	q->body = data;
	q->n = have < end ? have : end;
	q->whole = q->n == n;
	return q->whole;
}

/* One request that begins in buf; false closes the connection. */
static bool webd_answer(struct webd *w, int fd, char *buf, size_t *have)
{
	char *end = strstr(buf, "\r\n\r\n");
	struct webd_request q = {.head = buf, .whole = true};
	struct webd_reply a = {0};
	const char *length;
	unsigned char *body;
	size_t n, rest = *have - (size_t)(end + 4 - buf), mine;
	bool ok;

	end[2] = '\0';
	if (sscanf(buf, "%15s %4095s", q.method, q.target) != 2)
		return false;
	length = webd_field(&q, "Content-Length");
	n = (size_t)strtoull(length, NULL, 10);
	mine = rest < n ? rest : n;
	body = malloc(n + 1);
	assert(body);
	memcpy(body, end + 4, mine);
	ok = webd_body(w, fd, body, mine, n, &q);
	pthread_mutex_lock(&w->lock);
	w->requests++;
	w->handle(w, &q, &a);
	pthread_mutex_unlock(&w->lock);
	ok = ok && webd_send(w, fd, &a, strcmp(q.method, "HEAD") == 0);
	memmove(buf, end + 4 + mine, rest - mine);
	*have = rest - mine;
	buf[*have] = '\0';
	free(body);
	return ok;
}

static void *webd_serve(void *ctx)
{
	struct webd_connection *c = ctx;
	char *buf = calloc(1, WEBD_HEAD + 1);
	size_t n = 0;

	assert(buf);
	for (;;) {
		ssize_t k;

		if (strstr(buf, "\r\n\r\n")) {
			if (!webd_answer(c->w, c->fd, buf, &n))
				break;
			continue;
		}
		k = recv(c->fd, buf + n, WEBD_HEAD - n, 0);
		if (k <= 0)
			break;
		n += (size_t)k;
		buf[n] = '\0';
	}
	send(c->fd, "", 0, MSG_NOSIGNAL); /* nothing; but TSan sees what came before what follows */
	shutdown(c->fd, SHUT_RDWR);
	free(buf);
	return NULL;
}

static void *webd_accept(void *ctx)
{
	struct webd *w = ctx;

	for (;;) {
		int fd = accept(w->fd, NULL, NULL);
		struct webd_connection *c;

		if (fd < 0)
			return NULL;
		pthread_mutex_lock(&w->lock);
		assert(w->nopen < WEBD_CONNECTIONS);
		c = &w->open[w->nopen++];
		*c = (struct webd_connection){.w = w, .fd = fd};
		w->connections++;
		pthread_create(&c->thread, NULL, webd_serve, c);
		pthread_mutex_unlock(&w->lock);
	}
}

static void webd_start(struct webd *w,
	void (*handle)(struct webd *w, const struct webd_request *q, struct webd_reply *a),
	void *ctx)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int rc;

	memset(w, 0, sizeof(*w));
	w->handle = handle;
	w->ctx = ctx;
	pthread_mutex_init(&w->lock, NULL);
	w->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	rc = bind(w->fd, (struct sockaddr *)&a, sizeof(a));
	assert(rc == 0);
	rc = listen(w->fd, 64);
	assert(rc == 0);
	rc = getsockname(w->fd, (struct sockaddr *)&a, &len);
	assert(rc == 0);
	w->port = ntohs(a.sin_port);
	pthread_create(&w->thread, NULL, webd_accept, w);
}

static void webd_stop(struct webd *w)
{
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_mutex_unlock(&w->lock);
	shutdown(w->fd, SHUT_RDWR);
	pthread_join(w->thread, NULL);
	close(w->fd);
	for (size_t i = 0; i < w->nopen; i++) {
		shutdown(w->open[i].fd, SHUT_RDWR);
		pthread_join(w->open[i].thread, NULL);
		close(w->open[i].fd);
	}
	pthread_mutex_destroy(&w->lock);
}

#endif
