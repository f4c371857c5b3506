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
