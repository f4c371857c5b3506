/* The service of the images whose tests are tested: a little HTTP server, and programs to exec. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int requests;

static void answer(int fd, int status, const char *body)
{
	char head[256];
	int n = snprintf(head, sizeof(head),
		"HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", status,
		strlen(body));

	if (write(fd, head, (size_t)n) < 0 || write(fd, body, strlen(body)) < 0)
		perror("write");
}

static void flood(int fd, const char *head)
{
	static char piece[65536];

	memset(piece, 'x', sizeof(piece));
	if (write(fd, head, strlen(head)) < 0)
		return;
	while (write(fd, piece, sizeof(piece)) > 0)
		;
}

static void serve_one(int fd)
{
	static char in[65536];
	char method[16] = "", path[256] = "", *body;
	ssize_t n = read(fd, in, sizeof(in) - 1);
	const char *threads = getenv("THREADS"), *after = getenv("READY_AFTER");

	if (n <= 0)
		return;
	in[n] = '\0';
	sscanf(in, "%15s %255s", method, path);
	body = strstr(in, "\r\n\r\n");
	printf("%s %s\n", method, path);
	fflush(stdout);
	requests++;
	if (strcmp(path, "/json") == 0) {
		char text[256];

		snprintf(text, sizeof(text),
			"{\"name\": \"serve\", \"items\": [1, 2, 3], \"n\": 7.5, \"threads\": \"%s\"}",
			threads ? threads : "");
		answer(fd, 200, text);
	} else if (strcmp(path, "/echo") == 0) {
		answer(fd, 201, body ? body + 4 : "");
	} else if (strcmp(path, "/head") == 0) {
		answer(fd, 200, in);
	} else if (strcmp(path, "/ready") == 0) {
		answer(fd, after && requests <= atoi(after) ? 503 : 200, "ready\n");
	} else if (strncmp(path, "/status/", 8) == 0) {
		answer(fd, atoi(path + 8), "a status\n");
	} else if (strcmp(path, "/slow") == 0) {
		sleep(60);
	} else if (strcmp(path, "/flood") == 0) {
		flood(fd, "HTTP/1.1 200 X\r\n\r\n");
	} else if (strcmp(path, "/headers") == 0) {
		flood(fd, "HTTP/1.1 200 X\r\nA: ");
	} else if (strcmp(path, "/redirect") == 0) {
		const char *to = "HTTP/1.1 302 X\r\nLocation: file:///etc/passwd\r\n\r\n";

		if (write(fd, to, strlen(to)) < 0)
			perror("write");
	} else if (strcmp(path, "/noise") == 0) {
		if (write(fd, "what?\r\n\r\n", 9) < 0)
			perror("write");
	} else if (strcmp(path, "/exit") == 0) {
		exit(3);
	} else {
		answer(fd, 200, "hello\n");
	}
}

static int serve(const char *address, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
	int on = 1, s = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, address, &a.sin_addr);
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(s, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(s, 64) < 0) {
		perror("listen");
		return 1;
	}
	printf("listening on %s:%d\n", address, port);
	fflush(stdout);
	for (;;) {
		int fd = accept(s, NULL, NULL);

		if (fd < 0)
			continue;
		serve_one(fd);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";

	signal(SIGPIPE, SIG_IGN);
	if (strcmp(word, "serve") == 0)
		return serve(argc > 3 ? argv[3] : "0.0.0.0", argc > 2 ? atoi(argv[2]) : 8000);
	if (strcmp(word, "say") == 0)
		return puts(argc > 2 ? argv[2] : "hello") < 0;
	if (strcmp(word, "exit") == 0)
		return argc > 2 ? atoi(argv[2]) : 1;
	if (strcmp(word, "env") == 0) {
		const char *v = argc > 2 ? getenv(argv[2]) : NULL;

		printf("%s\n", v ? v : "unset");
		return 0;
	}
	if (strcmp(word, "ids") == 0)
		return printf("%d:%d\n", (int)getuid(), (int)getgid()) < 0;
	if (strcmp(word, "lines") == 0) {
		for (int i = 1; i <= (argc > 2 ? atoi(argv[2]) : 100); i++)
			fprintf(stderr, "line %d\n", i);
		return 9;
	}
	if (strcmp(word, "flood") == 0)
		for (;;)
			if (puts("yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy") < 0)
				return 1;
	if (strcmp(word, "hang") == 0) {
		puts("hanging");
		fflush(stdout);
		pause();
	}
	if (strcmp(word, "bytes") == 0)
		return fwrite("<a&b>\"\x1b[31m\x01\xff\xfe\0end\n", 1, 19, stdout) != 19;
	return 0;
}
