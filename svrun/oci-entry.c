/* Where svrun-oci begins (the linker's --entry), before libc: what self_protect() does,
 * done before a first libc has initialised itself, only to be replaced. In a virtual machine each
 * CPUID instruction costs 4 us, and libc asks 65 times: a quarter of a millisecond of every `exec`.
 *
 *	svrun_start -> first_step -> execveat of a read-only copy of ourselves -> svrun_start ...
 *	                    |
 *	                    +-> libc's _start -> main -> self_protect(): sees that it is done, or
 *	                                                 does it where this could not
 *
 * Nothing here may use libc, a stack protector (there is no thread pointer yet) or a relocation.
 * Any error is left to self_protect() to find again and to tell. */
#if defined(__x86_64__)

#include <fcntl.h>
#include <linux/mount.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

/* ST_RDONLY, MS_PRIVATE, AT_EMPTY_PATH, whose headers do not go with the kernel's. */
enum { RDONLY = 1, PRIVATE = 1 << 18, EMPTY_PATH = 0x1000 };

#define BEFORE_LIBC __attribute__((no_stack_protector))

BEFORE_LIBC static inline long call(long nr, long a, const void *b, long c, const void *d, long e)
{
	register const void *r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e, rc __asm__("rax") = nr;

	__asm__ volatile("syscall"
			 : "+r"(rc)
			 : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return rc;
}

BEFORE_LIBC static bool same(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		;
	return *a == *b;
}

/* Is one of the verbs among the arguments that start a process in a container? One that is not
 * meant so costs a start, nothing else. */
BEFORE_LIBC static bool wanted(char *const *argv)
{
	for (; *argv; argv++)
		if (same(*argv, "exec") || same(*argv, "run") || same(*argv, "create") ||
			same(*argv, "restore"))
			return true;
	return false;
}

/* stack: argc, argv..., NULL, envp..., NULL, as the kernel leaves it. */
__attribute__((used)) void first_step(long *stack); /* called from below */
BEFORE_LIBC void first_step(long *stack)
{
	char *const *argv = (char *const *)(stack + 1), *const *envp = argv + *stack + 1;
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY, .propagation = PRIVATE};
	struct statfs fs;
	long exe, fd;

	if (!wanted(argv))
		return;
	exe = call(
		SYS_open, (long)"/proc/self/exe", (void *)(long)(O_RDONLY | O_CLOEXEC), 0, NULL, 0);
	if (exe < 0)
		return;
	if (call(SYS_fstatfs, exe, &fs, 0, NULL, 0) == 0 && !(fs.f_flags & RDONLY)) {
		fd = call(SYS_open_tree, exe, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | EMPTY_PATH,
			NULL, 0);
		if (fd >= 0 &&
			call(SYS_mount_setattr, fd, "", EMPTY_PATH, &attr, sizeof(attr)) == 0)
			call(SYS_execveat, fd, "", (long)argv, envp, EMPTY_PATH);
		if (fd >= 0)
			call(SYS_close, fd, NULL, 0, NULL, 0);
	}
	call(SYS_close, exe, NULL, 0, NULL, 0);
}

/* The kernel starts with argc at the top of the stack and 0 in rdx; so does libc. */
__asm__(".text\n"
	".globl svrun_start\n"
	"svrun_start:\n"
	"	mov %rsp, %rbx\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call first_step\n"
	"	mov %rbx, %rsp\n"
	"	xor %ebx, %ebx\n"
	"	xor %edx, %edx\n"
	"	xor %ebp, %ebp\n"
	"	jmp _start\n");

#endif
