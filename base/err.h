/* The error value: what failed, where, and what a person can do about it.
 *
 * One flat struct, smaller than PIPE_BUF: it needs no memory, crosses fork in one write(), and can
 * be copied between threads. `struct err *e` comes last in every fallible function, is untouched on
 * success and set once on failure; NULL means "do not care". All setters return -1, so that
 * `return err_sys(e, "open %s", path);` is the idiom.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stddef.h>

#define must_check __attribute__((warn_unused_result))
#define printf_like(f, a) __attribute__((format(printf, f, a)))

/* What the caller may do about it. Two tables turn a kind into an exit and an HTTP status. */
enum err_kind {
	ERR_NONE = 0,
	ERR_USAGE,       /* the request is wrong: correct it and call again */
	ERR_NOT_FOUND,   /* the named thing does not exist */
	ERR_EXISTS,      /* the named thing exists already, or is in use */
	ERR_DENIED,      /* the caller may not do this */
	ERR_CORRUPT,     /* data from outside is not what it should be */
	ERR_UNSUPPORTED, /* well-formed, but not something this host or version does */
	ERR_NETWORK,     /* worth another try later */
	ERR_SYSTEM,      /* a system call failed */
};

struct err {
	enum err_kind kind;
	int sys; /* errno of the root cause, 0 when there is none */
	const char *file;
	int line;
	char text[1536], hint[384];
};

/* Root causes. err_sys() appends strerror(errno) and sets kind from errno (ENOENT is NOT_FOUND,
 * EACCES and EPERM are DENIED, EEXIST is EXISTS, the rest SYSTEM). */
#define err_set(e, kind, ...) err_set_at(e, kind, __FILE__, __LINE__, __VA_ARGS__)
#define err_sys(e, ...) err_sys_at(e, __FILE__, __LINE__, __VA_ARGS__)

int err_set_at(struct err *e, enum err_kind kind, const char *file, int line, const char *fmt, ...)
	printf_like(5, 6);
int err_sys_at(struct err *e, const char *file, int line, const char *fmt, ...) printf_like(4, 5);

/* Put "fmt: " before the text: only where the caller knows more than the callee (which layer). */
int err_ctx(struct err *e, const char *fmt, ...) printf_like(2, 3);

/* Say what to do. The hint nearest to the root cause stays; a later one is dropped. */
int err_hint(struct err *e, const char *fmt, ...) printf_like(2, 3);

/* Exit status of a command that ends with this error: 2 for USAGE, 125 for the rest, so that
 * `svrun run` can pass on the container's own status (docker's convention). */
int err_exit_status(const struct err *e);

/* Name of a kind, as printed in JSON: "not-found". */
const char *err_kind_name(enum err_kind kind);

/* Print "svrun: text" and "hint: ..." to stderr. Only commands call this. */
void err_print(const struct err *e, const char *program);

#endif
