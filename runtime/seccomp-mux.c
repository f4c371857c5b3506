#include "runtime/seccomp-mux.h"

#include <linux/audit.h>
#include <linux/ipc.h>
#include <linux/net.h>

#include "base/str.h"

/* Only the low bits count: of a register that has 64, and of ipc's number, which has the version of
 * the interface above it. */
#define CALL(mask, call)                                                                           \
	{                                                                                          \
		.index = 0, .op = OP_MASKED_EQ, .value = (mask), .value2 = (call)                  \
	}
#define SOCKET(name, direct, call)                                                                 \
	{                                                                                          \
		name, direct, 102, CALL(UINT32_MAX, call)                                          \
	}
#define IPC(name, direct, call)                                                                    \
	{                                                                                          \
		name, direct, 117, CALL(0xffff, call)                                              \
	}

/* The kernel's arch/x86/entry/syscalls/syscall_32.tbl; libseccomp answers these names with numbers
 * of its own. A machine that we build for has no other architecture with such calls. */
static const struct seccomp_mux i386[] = {
	SOCKET("socket", 359, SYS_SOCKET),
	SOCKET("socketpair", 360, SYS_SOCKETPAIR),
	SOCKET("bind", 361, SYS_BIND),
	SOCKET("connect", 362, SYS_CONNECT),
	SOCKET("listen", 363, SYS_LISTEN),
	SOCKET("accept", -1, SYS_ACCEPT),
	SOCKET("accept4", 364, SYS_ACCEPT4),
	SOCKET("getsockopt", 365, SYS_GETSOCKOPT),
	SOCKET("setsockopt", 366, SYS_SETSOCKOPT),
	SOCKET("getsockname", 367, SYS_GETSOCKNAME),
	SOCKET("getpeername", 368, SYS_GETPEERNAME),
	SOCKET("send", -1, SYS_SEND),
	SOCKET("sendto", 369, SYS_SENDTO),
	SOCKET("sendmsg", 370, SYS_SENDMSG),
	SOCKET("sendmmsg", 345, SYS_SENDMMSG),
	SOCKET("recv", -1, SYS_RECV),
	SOCKET("recvfrom", 371, SYS_RECVFROM),
	SOCKET("recvmsg", 372, SYS_RECVMSG),
	SOCKET("recvmmsg", 337, SYS_RECVMMSG),
	SOCKET("shutdown", 373, SYS_SHUTDOWN),
	IPC("semget", 393, SEMGET),
	IPC("semctl", 394, SEMCTL),
	IPC("semop", -1, SEMOP),
	IPC("semtimedop", -1, SEMTIMEDOP),
	IPC("shmget", 395, SHMGET),
	IPC("shmctl", 396, SHMCTL),
	IPC("shmat", 397, SHMAT),
	IPC("shmdt", 398, SHMDT),
	IPC("msgget", 399, MSGGET),
	IPC("msgsnd", 400, MSGSND),
	IPC("msgrcv", 401, MSGRCV),
	IPC("msgctl", 402, MSGCTL),
};

const struct seccomp_mux *seccomp_muxes(uint32_t audit_arch, size_t *n)
{
	*n = audit_arch == AUDIT_ARCH_I386 ? sizeof(i386) / sizeof(i386[0]) : 0;
	return i386;
}

const struct seccomp_mux *seccomp_mux(uint32_t audit_arch, const char *name)
{
	size_t n;
	const struct seccomp_mux *v = seccomp_muxes(audit_arch, &n);

	for (size_t i = 0; i < n; i++)
		if (str_eq(v[i].name, name))
			return &v[i];
	return NULL;
}
