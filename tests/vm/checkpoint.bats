#!/usr/bin/env bats
# Checkpoint and restore through criu, which needs a kernel that it knows.

load ../e2e/helpers
load ../e2e/oci

setup() {
	WORK=/var/tmp/svrun-e2e
	mkdir -p "$WORK"
	need_program criu
	oci_setup
	IMG=$T/img
	# A pipeline of two processes, a tmpfs, and a file in the root.
	change_config "$B" '.mounts += [{destination: "/mnt", type: "tmpfs", source: "tmpfs"}]'
	mkdir "$B/rootfs/mnt"
	set_script "$B" 'i=0; while :; do i=$((i + 1)); echo $i; sleep 0.05; done |
		while read -r i; do echo "$i" >/mnt/count; echo "$i" >/count; done'
}

teardown() {
	oci_teardown
	rm -f /etc/criu/default.conf
}

start() {
	oci "$@" run -d -b "$B" "$ID" </dev/null >/dev/null 2>&1
	await_count 3
}

count() {
	cat "$B/rootfs/count" 2>/dev/null || echo 0
}

await_count() { # ABOVE
	local i n
	for i in $(seq 200); do
		n=$(count)
		[ "${n:-0}" -le "$1" ] || return 0
		sleep 0.1
	done
	fail "the counter stands at $(count)"
}

await() { # CONDITION
	local i
	for i in $(seq 300); do
		! eval "$1" || return 0
		sleep 0.1
	done
	fail "it did not come to: $1"
}

checkpoint() {
	oci checkpoint --image-path "$IMG" "$@" "$ID" 2>&1
}

restore() {
	oci restore -d -b "$B" --image-path "$IMG" "$@" "$ID" </dev/null 2>&1
}

field() { # PID NAME
	awk -v name="$2:" '$1 == name { print $2 }' "/proc/$1/status"
}

@test "a restored container goes on where it was" {
	start
	oci exec "$ID" sh -c 'echo kept >/mnt/file'
	before=$(field "$(oci state "$ID" | jq .pid)" CapBnd)
	checkpoint
	expect_oci_clean
	[ -e "$IMG/inventory.img" ] && [ -e "$IMG/descriptors.json" ]
	at=$(count)
	restore --pid-file "$T/pid"
	await_count $((at + 2))
	[ "$(oci state "$ID" | jq -r .status)" = running ]
	[ "$(cat "$T/pid")" = "$(oci state "$ID" | jq .pid)" ]
	[ "$(oci exec "$ID" cat /mnt/file)" = kept ]
	[ "$(oci exec "$ID" sh -c 'kill -0 1 && ps | grep -c "while read"')" -ge 1 ]
	pid=$(cat "$T/pid")
	[ "$(field "$pid" NoNewPrivs)" = 1 ]
	[ "$(field "$pid" CapBnd)" = "$before" ]
	grep -q "/$ID\$" "/proc/$pid/cgroup"
	[ "$(count)" -lt $((at + 1000)) ]
	oci kill "$ID" KILL
	await_status stopped
	oci delete "$ID"
	expect_oci_clean
}

@test "the same images can be restored again, and a restored container can be saved again" {
	start
	checkpoint
	at=$(count)
	restore
	await_count "$at"
	oci delete --force "$ID"
	restore
	await_count "$at"
	checkpoint --work-path "$T/work"
	[ -s "$T/work/dump.log" ]
	restore --work-path "$T/work"
	[ -s "$T/work/restore.log" ]
	await_count "$(count)"
}

@test "in the foreground restore is the container's: its end, its status, its signals" {
	set_script "$B" 'trap "exit 7" TERM; while :; do sleep 0.1; echo x >>/count; done'
	oci run -d -b "$B" "$ID" </dev/null >/dev/null 2>&1
	await '[ -s "$B/rootfs/count" ]'
	checkpoint
	"$OCI" --root "$T/state" restore -b "$B" --image-path "$IMG" --pid-file "$T/pid" "$ID" </dev/null &
	await '[ -s "$T/pid" ]'
	await_status running
	kill -TERM $!
	status=0
	wait $! || status=$?
	expect_status 7
	expect_oci_clean
}

@test "a process that has ended and is not waited for stays so" {
	set_script "$B" 'sleep 0.1 & exec sh -c "echo 9 >/count; exec sleep 1000"'
	start
	sleep 0.5
	[ "$(oci exec "$ID" ps | grep -c "\[sleep\]")" = 1 ]
	checkpoint
	restore
	[ "$(oci exec "$ID" ps | grep -c "\[sleep\]")" = 1 ]
	oci delete --force "$ID"
	expect_oci_clean
}

@test "leave-running, and a paused container" {
	start
	pid=$(oci state "$ID" | jq .pid)
	checkpoint --leave-running
	await_count "$(count)"
	[ "$(oci state "$ID" | jq .pid)" = "$pid" ]
	run restore
	expect_status 1
	expect_in "$output" "already exists"
	oci pause "$ID"
	rm -r "$IMG"
	checkpoint
	at=$(count)
	restore
	await_count "$at"
}

@test "pre-dumps make the last dump smaller" {
	start
	oci checkpoint --image-path "$T/pre" --pre-dump "$ID"
	[ "$(oci state "$ID" | jq -r .status)" = running ]
	checkpoint --parent-path ../pre
	[ -L "$IMG/parent" ]
	at=$(count)
	restore
	await_count "$at"
	oci delete -f "$ID"
	start
	run checkpoint --parent-path "$T/pre"
	expect_status 1
	expect_in "$output" "--parent-path must be relative"
	run checkpoint --parent-path ../none
	expect_status 1
	expect_in "$output" "--parent-path"
}

@test "standard streams that are pipes are ours again" {
	set_script "$B" 'while :; do echo out; echo err >&2; sleep 0.1; done'
	mkfifo "$T/one" "$T/two"
	(oci run -d -b "$B" "$ID" </dev/null 2>"$T/err" | cat >"$T/out") &
	await '[ -s "$T/out" ]'
	pid=$(oci state "$ID" | jq .pid)
	[[ $(readlink "/proc/$pid/fd/1") == pipe:* ]]
	# a file of the host as stderr is nothing that could be saved
	run checkpoint
	expect_status 1
	expect_in "$output" "Error ("
	oci delete -f "$ID"
	wait
	(oci run -d -b "$B" "$ID" </dev/null 2>&1 | cat >"$T/out") &
	await '[ -s "$T/out" ]'
	checkpoint
	wait
	: >"$T/out"
	(oci restore -d -b "$B" --image-path "$IMG" "$ID" </dev/null 2>&1 | cat >"$T/out") &
	await 'grep -q err "$T/out" && grep -q out "$T/out"'
	oci delete -f "$ID"
	wait
}

@test "a terminal" {
	need_program python3
	change_config "$B" '.process.terminal = true'
	set_script "$B" 'while :; do tty; sleep 0.1; done'
	cat >"$T/server.py" <<-'PY'
		import os, socket, sys
		s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(1)
		open(sys.argv[1] + ".ready", "w").close()
		c, _ = s.accept()
		data, fds, _, _ = socket.recv_fds(c, 4096, 1)
		got = b""
		while got.count(b"\n") < 3: got += os.read(fds[0], 4096)
		open(sys.argv[2], "wb").write(got)
		try:
		    while os.read(fds[0], 4096): pass
		except OSError: pass
	PY
	python3 "$T/server.py" "$T/sock" "$T/seen" &
	await '[ -e "$T/sock.ready" ]'
	oci run -d -b "$B" --console-socket "$T/sock" "$ID" </dev/null
	await '[ -s "$T/seen" ]'
	checkpoint
	wait
	python3 "$T/server.py" "$T/sock2" "$T/seen2" &
	await '[ -e "$T/sock2.ready" ]'
	run restore
	expect_status 1
	expect_in "$output" "process.terminal needs --console-socket"
	restore --console-socket "$T/sock2"
	await '[ -s "$T/seen2" ]'
	grep -q /dev/pts/0 "$T/seen2"
	oci delete -f "$ID"
	wait
}

@test "binds, devices, masks and read-only places are as before" {
	mkdir "$T/rw" "$T/ro"
	echo text >"$T/ro/file"
	change_config "$B" '.mounts += [
		{destination: "/data/rw", type: "bind", source: ($t + "/rw"), options: ["rbind"]},
		{destination: "/data/ro", type: "bind", source: ($t + "/ro"), options: ["bind", "ro"]},
		{destination: "/data/again", source: ($t + "/ro"), options: ["bind", "ro", "nosuid", "noexec"]},
		{destination: "/etc/file", type: "bind", source: ($t + "/ro/file"), options: ["bind", "ro"]}]
		| .linux.namespaces += [{type: "cgroup"}]
		| .root.readonly = false' --arg t "$T"
	start
	pid=$(oci state "$ID" | jq .pid)
	awk '{ print $5 }' "/proc/$pid/mountinfo" | sort >"$T/before"
	checkpoint
	at=$(count)
	restore
	await_count "$at"
	pid=$(oci state "$ID" | jq .pid)
	awk '{ print $5 }' "/proc/$pid/mountinfo" | sort >"$T/after"
	diff "$T/before" "$T/after"
	[ "$(oci exec "$ID" cat /data/ro/file /etc/file /data/again/file)" = $'text\ntext\ntext' ]
	oci exec "$ID" sh -c 'echo x >/data/rw/new'
	[ -e "$T/rw/new" ]
	run oci exec "$ID" sh -c 'echo x >/data/ro/file'
	expect_in "$output" "Read-only"
	run oci exec "$ID" sh -c 'echo x >/data/again/file'
	expect_in "$output" "Read-only"
	[ "$(oci exec "$ID" cat /proc/self/cgroup)" = 0::/ ]
	[ "$(oci exec "$ID" sh -c 'ls /sys/fs/cgroup | grep -c cgroup.procs')" = 1 ]
	run oci exec "$ID" cat /proc/kcore
	[ -z "$output" ]
	oci delete -f "$ID"
	expect_oci_clean
}

@test "a root without places to mount on, at another path" {
	start
	checkpoint
	cp -a "$B" "$T/other"
	rm -r "$T/other/rootfs/mnt" "$T/other/rootfs/proc"
	rm "$T/other/rootfs/count"
	oci restore -d -b "$T/other" --image-path "$IMG" "$ID" </dev/null
	await '[ -s "$T/other/rootfs/count" ]'
}

@test "limits, and a cgroup that systemd makes" {
	change_config "$B" '.linux.cgroupsPath = ("system.slice:svrun:" + $id)
		| .linux.resources = {memory: {limit: 104857600}, pids: {limit: 50}}' --arg id "$ID"
	start --systemd-cgroup
	pid=$(oci state "$ID" | jq .pid)
	grep -q "0::/system.slice/svrun-$ID.scope" "/proc/$pid/cgroup"
	oci checkpoint --image-path "$IMG" "$ID"
	at=$(count)
	oci --systemd-cgroup restore -d -b "$B" --image-path "$IMG" "$ID" </dev/null
	await_count "$at"
	pid=$(oci state "$ID" | jq .pid)
	grep -q "0::/system.slice/svrun-$ID.scope" "/proc/$pid/cgroup"
	[ "$(cat "/sys/fs/cgroup/system.slice/svrun-$ID.scope/memory.max")" = 104857600 ]
	[ "$(cat "/sys/fs/cgroup/system.slice/svrun-$ID.scope/pids.max")" = 50 ]
	oci delete -f "$ID"
	expect_oci_clean
}

@test "the seccomp filter and the devices' rules hold after restore" {
	change_config "$B" '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW",
		syscalls: [{names: ["mkdir", "mkdirat"], action: "SCMP_ACT_ERRNO", errnoRet: 71}]}
		| .linux.resources.devices = [{allow: false, access: "rwm"}]'
	start
	checkpoint
	at=$(count)
	restore
	await_count "$at"
	[ "$(field "$(oci state "$ID" | jq .pid)" Seccomp)" = 2 ]
	run oci exec "$ID" mkdir /new
	[ "$status" != 0 ]
	oci delete -f "$ID"
}

@test "a network namespace of others, and an empty one" {
	ip netns add "$ID"
	change_config "$B" '.linux.namespaces |= map(if .type == "network" then .path = $p else . end)' \
		--arg p "/run/netns/$ID"
	start
	checkpoint
	at=$(count)
	restore
	await_count "$at"
	[ "$(stat -Lc %i "/proc/$(oci state "$ID" | jq .pid)/ns/net")" = "$(stat -c %i "/run/netns/$ID")" ]
	oci delete -f "$ID"
	ip netns del "$ID"
	change_config "$B" '.linux.namespaces |= map(del(.path))'
	start
	checkpoint --empty-ns network
	at=$(count)
	restore --empty-ns network
	await_count "$at"
	run checkpoint --empty-ns pid
	expect_status 1
	expect_in "$output" "--empty-ns"
}

# ---- images are not trusted more than they must be ----

refused() { # JQ TEXT
	cp "$B/config.json" "$T/saved.json"
	change_config "$B" "$1"
	run restore
	expect_status 1
	expect_in "$output" "$2" || return 1
	expect_oci_clean
	cp "$T/saved.json" "$B/config.json"
}

@test "a process that is not what the config says never runs" {
	mkdir "$T/vol"
	change_config "$B" '.mounts += [{destination: "/vol", type: "bind", source: $v, options: ["bind"]}]
		| .process.noNewPrivileges = false' --arg v "$T/vol"
	start
	checkpoint
	at=$(count)
	refused '.process.capabilities.bounding = [] | .process.capabilities.permitted = [] |
		.process.capabilities.effective = [] | .process.capabilities.ambient = []' \
		"a process has capabilities that the config does not grant"
	refused '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW"}' "a process without the config's seccomp filter"
	refused '.mounts[-1].options = ["bind", "ro"]' "/vol is not read-only"
	refused '.mounts |= map(select(.destination != "/vol"))' "Error ("
	refused '.linux.namespaces += [{type: "cgroup"}]' "a process in another cgroup namespace"
	refused '.linux.maskedPaths += ["/root"]' "/root is not masked"
	refused '.linux.readonlyPaths += ["/etc"]' "/etc is not read-only"
	refused '.process.user.uid = 1000' "a process has the Uid 0, which the config does not grant"
	[ "$(count)" = "$at" ]
	restore
	await_count "$at"
}

@test "what is no checkpoint is refused, and leaves nothing" {
	start
	checkpoint
	cp -r "$IMG" "$T/good"
	run oci restore -d -b "$B" --image-path "$T/none" "$ID"
	expect_status 1
	expect_in "$output" "descriptors.json"
	for text in '' '{' '{}' '[1]' '["a", "b", "c", "d"]' "$(printf '["%070000d"]' 0)"; do
		printf '%s' "$text" >"$IMG/descriptors.json"
		run restore
		expect_status 1
		expect_oci_clean
	done
	echo '["pipe:[1]x", "file[zz:1]", "/etc/shadow"]' >"$IMG/descriptors.json"
	run restore
	expect_status 1
	for file in inventory pstree core-1 mountpoints-12; do
		rm -rf "$IMG"
		cp -r "$T/good" "$IMG"
		[ -e "$IMG/$file.img" ] || continue
		head -c 4000 /dev/urandom >"$IMG/$file.img"
		run restore
		expect_status 1
		expect_oci_clean
	done
}

@test "criu gets no environment, no configuration and none of our descriptors" {
	start
	mkdir -p /etc/criu
	printf 'action-script %s\n' "$T/evil" >/etc/criu/default.conf
	printf '#!/bin/sh\ntouch "%s"\n' "$T/was-run" >"$T/evil"
	chmod +x "$T/evil"
	CRIU_CONFIG_FILE=/etc/criu/default.conf checkpoint
	at=$(count)
	restore
	await_count "$at"
	[ ! -e "$T/was-run" ]
	cat >"$T/fake" <<-EOF
		#!/bin/bash
		exec >"$T/told"
		printf '%s\n' "\$@" "\$PWD"
		tr '\0' '\n' </proc/\$\$/environ
		ls /proc/self/fd
		exit 1
	EOF
	chmod +x "$T/fake"
	run env SECRET=1 LD_PRELOAD= "$OCI" --root "$T/state" --criu "$T/fake" checkpoint --image-path "$T/x" "$ID" 9</etc/passwd
	expect_status 1
	expect_in "$output" "criu"
	cat "$T/told"
	[ "$(sed -n 1,5p "$T/told")" = "$(printf -- '--no-default-config\nswrk\n3\n/\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin')" ]
	! grep -q SECRET "$T/told"
	! grep -qx 9 "$T/told"
	await_count "$(count)"
	run oci --criu "$T/none" checkpoint --image-path "$T/x" "$ID"
	expect_status 1
	expect_in "$output" "start $T/none" "install criu"
}

@test "only what runs can be checkpointed" {
	run oci checkpoint --image-path "$IMG" "$ID"
	expect_status 1
	expect_in "$output" "does not exist"
	oci create -b "$B" "$ID" </dev/null >/dev/null
	run checkpoint
	expect_status 1
	expect_in "$output" "is created, and cannot be checkpointed"
	oci delete -f "$ID"
	set_script "$B" true
	oci run -d -b "$B" "$ID" </dev/null >/dev/null
	await_status stopped
	run checkpoint
	expect_status 1
	expect_in "$output" "is stopped, and cannot be checkpointed"
	run oci checkpoint --page-server nowhere "$ID"
	expect_in "$output" "--page-server: expected ADDRESS:PORT"
	run oci checkpoint --manage-cgroups-mode odd "$ID"
	expect_in "$output" "--manage-cgroups-mode: expected"
	run oci checkpoint --status-fd 77 "$ID"
	expect_in "$output" "--status-fd: 77 is not open"
}
