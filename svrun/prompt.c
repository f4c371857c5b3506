#include "svrun/prompt.h"

#include <fcntl.h>
#include <string.h>
#include <termios.h>

#include "base/mem.h"
#include "base/sys.h"

enum { KEY_INTERRUPT = 3, KEY_END = 4, KEY_BACK = 8, KEY_KILL = 21, KEY_DELETE = 127 };

/* A key without meaning for editing goes into the answer. 1: the answer is complete. */
static int take_key(char key, char *text, size_t *n, struct err *e)
{
	switch (key) {
	case '\r':
	case '\n':
		return 1;
	case KEY_INTERRUPT:
		return err_set(e, ERR_DENIED, "interrupted");
	case KEY_END:
		return *n ? 1 : err_set(e, ERR_DENIED, "interrupted");
	case KEY_BACK:
	case KEY_DELETE:
		*n -= *n > 0;
		return 0;
	case KEY_KILL:
		*n = 0;
		return 0;
	default:
		if (*n + 1 >= PROMPT_MAX)
			return err_set(e, ERR_CORRUPT, "longer than the limit of %d bytes",
				PROMPT_MAX - 1);
		text[(*n)++] = key;
		return 0;
	}
}

static int read_answer(int fd, char *text, struct err *e)
{
	size_t n = 0;
	int rc = 0;

	while (rc == 0) {
		char key;
		ssize_t got = sys_read(fd, &key, 1);

		if (got < 0)
			return err_sys(e, "read the terminal");
		rc = got == 0 ? err_set(e, ERR_DENIED, "interrupted") : take_key(key, text, &n, e);
	}
	text[n] = '\0';
	return rc < 0 ? -1 : 0;
}

/* Keys come one by one and without signals: Ctrl-C must not leave a terminal without echo behind.
 */
static int read_hidden(int fd, char *text, struct err *e)
{
	struct termios was, raw;
	int rc;

	if (tcgetattr(fd, &was) < 0)
		return err_sys(e, "the terminal");
	raw = was;
	raw.c_lflag &= ~(tcflag_t)(ECHO | ICANON | ISIG);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	if (tcsetattr(fd, TCSAFLUSH, &raw) < 0)
		return err_sys(e, "the terminal");
	rc = read_answer(fd, text, e);
	tcsetattr(fd, TCSAFLUSH, &was);
	sys_write_all(fd, "\n", 1);
	return rc;
}

char *prompt(const char *question, bool hidden, struct err *e)
{
	auto_fd int fd = sys_open("/dev/tty", O_RDWR | O_NOCTTY, 0);
	char text[PROMPT_MAX], *answer = NULL;
	int rc;

	if (fd < 0)
		return err_set(e, ERR_USAGE, "no terminal to ask for %s", question), NULL;
	if (sys_write_all(fd, question, strlen(question)) < 0 || sys_write_all(fd, ": ", 2) < 0)
		return err_sys(e, "write to the terminal"), NULL;
	rc = hidden ? read_hidden(fd, text, e) : read_answer(fd, text, e);
	if (rc == 0)
		answer = mem_strdup(text);
	explicit_bzero(text, sizeof(text));
	return answer;
}
