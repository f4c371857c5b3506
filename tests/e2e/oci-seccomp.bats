#!/usr/bin/env bats
# Seccomp filters of config.json as a container feels them.

load helpers
load oci

setup() {
	oci_setup
	agent=
}

teardown() {
	[ -z "$agent" ] || kill "$agent" 2>/dev/null || true
	oci_teardown
}

# mkdir's system calls get ACTION; everything else is allowed.
filter() { # ACTION [JQ]
	change_config "$B" '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [
		{names: ["mkdir", "mkdirat"], action: $a}]} | '"${2-.}" --arg a "$1"
}

start_agent() { # ERRNO
	"$BATS_TEST_DIRNAME/seccomp-agent" "$T/agent" "$T/told" "$1" 3>&- &
	agent=$!
	for _ in $(seq 500); do
		[ ! -S "$T/agent" ] || return 0
		sleep 0.01
	done
	fail "no agent"
}

@test "an agent gets the listener, and decides" {
	local pid
	start_agent 28
	change_config "$B" '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", listenerPath: $p, listenerMetadata: "app=7",
		syscalls: [{names: ["mkdir", "mkdirat"], action: "SCMP_ACT_NOTIFY"}]} | .annotations = {k: "v"}' \
		--arg p "$T/agent"
	set_script "$B" 'mkdir /tmp/x; sleep 1000'
	oci create --bundle "$B" "$ID" 2>"$T/stderr"
	pid=$(oci state "$ID" | jq .pid)
	oci start "$ID"
	for _ in $(seq 500); do
		grep -q "No space left" "$T/stderr" && break
		sleep 0.01
	done
	expect_in "$(cat "$T/stderr")" "mkdir: can't create directory '/tmp/x': No space left on device"
	[ "$(jq -c '[.fds, .pid, .metadata, .state.id, .state.pid, .state.bundle, .state.annotations.k]' "$T/told")" \
		= "[[\"seccompFd\"],$pid,\"app=7\",\"$ID\",$pid,\"$B\",\"v\"]" ] || fail "$(cat "$T/told")"
	oci delete --force "$ID"
	expect_oci_clean
}

@test "exec's filter notifies the agent, too" {
	start_agent 30
	change_config "$B" '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", listenerPath: $p,
		syscalls: [{names: ["mkdir", "mkdirat"], action: "SCMP_ACT_NOTIFY"}]}' --arg p "$T/second"
	set_script "$B" 'sleep 1000'
	"$BATS_TEST_DIRNAME/seccomp-agent" "$T/second" "$T/first-told" 30 3>&- &
	local first=$!
	for _ in $(seq 500); do [ ! -S "$T/second" ] || break; sleep 0.01; done
	oci run --detach --bundle "$B" "$ID"
	mv "$T/agent" "$T/second"
	run_split oci exec "$ID" mkdir /tmp/x
	expect_status 1
	expect_in "$err" "Read-only file system"
	[ "$(jq .pid "$T/told")" != "$(jq .state.pid "$T/told")" ]
	oci delete --force "$ID"
	wait "$first" || true
	expect_oci_clean
}

@test "a filter that notifies without an agent is an error, and nothing is left" {
	change_config "$B" '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW",
		syscalls: [{names: ["mkdir"], action: "SCMP_ACT_NOTIFY"}]}'
	run_split oci run --bundle "$B" "$ID"
	[ "$status" != 0 ] || fail "ran"
	expect_in "$err" listenerPath
	change_config "$B" '.linux.seccomp.listenerPath = "/no/such/agent"'
	run_split oci run --bundle "$B" "$ID"
	[ "$status" != 0 ] || fail "ran"
	expect_in "$err" /no/such/agent
	expect_oci_clean
}

@test "each action does what it is called" {
	filter SCMP_ACT_ERRNO '.linux.seccomp.syscalls[0].errnoRet = 95'
	set_script "$B" 'mkdir /tmp/x'
	run_split oci run --bundle "$B" "$ID"
	expect_status 1
	expect_in "$err" "Operation not supported"
	filter SCMP_ACT_KILL_PROCESS
	set_script "$B" 'mkdir /tmp/x; echo $?'
	run_split oci run --bundle "$B" "$ID"
	[ "$out" = 159 ] || fail "$out" # 128 + SIGSYS
	filter SCMP_ACT_LOG
	run_split oci run --bundle "$B" "$ID"
	[ "$out" = 0 ] || fail "$out"
}

@test "a compiled filter is kept, used again, and made again when it is damaged" {
	local kept
	filter SCMP_ACT_ERRNO
	set_script "$B" 'mkdir /tmp/x 2>/dev/null; echo $?'
	run_split oci run --bundle "$B" "$ID"
	[ "$out" = 1 ] || fail "$out" "$err"
	kept=$(find "$T/state/.seccomp" -type f)
	[ "$(wc -w <<<"$kept")" = 1 ] || fail "kept: $kept"
	[ "$(stat -c %a "$T/state/.seccomp")" = 700 ]
	head -c 100 /dev/urandom >"$kept"
	run_split oci run --bundle "$B" "$ID"
	[ "$out" = 1 ] || fail "$out" "$err"
	: >"$kept"
	run_split oci run --bundle "$B" "$ID"
	[ "$out" = 1 ] || fail "$out" "$err"
}

# What system calls of 32-bit x86 answer: one "NUMBER [ARGUMENT...]" each.
answers32() {
	local call script=
	need_program gcc
	[ "$(uname -m)" = x86_64 ] || skip "needs x86-64"
	gcc -O2 -static -no-pie -o "$B/rootfs/bin/int80" "$DATA/int80.c"
	[ "$("$B/rootfs/bin/int80" 20)" -gt 0 ] 2>/dev/null || skip "no 32-bit system calls here"
	for call; do script+="int80 $call; "; done
	set_script "$B" "$script"
	run_split oci run --bundle "$B" "$ID"
	[ "$status" = 0 ] || fail "$err"
	echo "$out" | tr '\n' ' '
}

@test "what a list forbids is forbidden to 32-bit callers, too, by each way to call it" {
	local got
	change_config "$B" '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW",
		architectures: ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
		syscalls: [{names: ["socket", "shmget"], action: "SCMP_ACT_ERRNO", errnoRet: 95}]}'
	# socket, socketcall(SOCKET), shmget, ipc(SHMGET); the two again with bits that the kernel does
	# not look at; socketpair, socketcall(SOCKETPAIR), semget, ipc(SEMGET) are not in the list
	got=$(answers32 "359 1 1 0" "102 1 @1,1,0" "395 0 4096 0x3ff" "117 23 0 4096 0x3ff" \
		"102 0x700000001 @1,1,0" "117 0x700010017 0 4096 0x3ff" \
		"360 1 1 0 @0,0" "102 99" "393 0 0 0x3ff" "117 2 0 0 0x3ff")
	[ "$got" = "-95 -95 -95 -95 -95 -95 0 -22 -22 -22 " ] || fail "$got"
}

@test "arguments of 32-bit callers are what the kernel takes of them" {
	local got
	change_config "$B" '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW",
		architectures: ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86"], syscalls: [{names: ["socket"],
		args: [{index: 0, value: 2, op: "SCMP_CMP_EQ"}], action: "SCMP_ACT_ERRNO", errnoRet: 95}]}'
	# An argument behind a pointer may be the forbidden one.
	got=$(answers32 "359 2 1 0" "359 0x700000002 1 0" "359 1 1 0" "102 1 @1,1,0" "102 1 @2,1,0")
	[ "$got" = "-95 -95 3 -95 -95 " ] || fail "$got"
}

@test "the usual filter lets 32-bit programs have sockets and System V IPC" {
	local got
	(cd "$T" && oci spec)
	change_config "$B" '.linux.seccomp = $new[0].linux.seccomp' --slurpfile new "$T/config.json"
	# AF_UNIX, AF_VSOCK, AF_ALG; their family hidden in socketcall; listen(99) both ways; semget both
	# ways; mount
	got=$(answers32 "359 1 1 0" "359 40 1 0" "359 0x100000028 1 0" "359 38 5 0" "102 1 @38,5,0" "363 99 1" \
		"102 4 @99,1" "393 0 0 0x3ff" "117 2 0 0 0x3ff" "21 0 0 0 0 0")
	[ "$got" = "3 -1 -1 -97 -97 -9 -9 -22 -22 -1 " ] || fail "$got"
}
