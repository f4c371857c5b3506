/* The error value: what failed, where, and what a person can do about it. Flat and smaller than
 * PIPE_BUF: it needs no memory, and crosses fork in one write(). `struct err *e` comes last in
 * every fallible function, is untouched on success and set once on failure; NULL means "do not
 * care". Setters return -1, for `return err_sys(e, "open %s", path);`. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <errno.h>
#include <stddef.h>

#define must_check __attribute__((warn_unused_result))
#define printf_like(f, a) __attribute__((format(printf, f, a)))

/* What the caller may do about it. */
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
#define err_set(e, kind, ...) err_at(e, kind, 0, __FILE__, __LINE__, __VA_ARGS__)
#define err_sys(e, ...) err_at(e, ERR_SYSTEM, errno, __FILE__, __LINE__, __VA_ARGS__)

int err_at(struct err *e, enum err_kind kind, int sys, const char *file, int line, const char *fmt,
	...) printf_like(6, 7);

/* Put "fmt: " before the text: only where the caller knows more than the callee (which layer). */
int err_ctx(struct err *e, const char *fmt, ...) printf_like(2, 3);

/* Say what to do. The first hint, nearest to the root cause, stays. */
int err_hint(struct err *e, const char *fmt, ...) printf_like(2, 3);

/* Print "svrun: text" and "hint: ..." to stderr. Only commands call this. */
void err_print(const struct err *e, const char *program);
/* "svrun: warning: ..." on stderr: only where an error is deliberately swallowed. */
void warn(const char *fmt, ...) printf_like(1, 2);

#endif
