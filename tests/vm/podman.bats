#!/usr/bin/env bats
# Podman on cgroup version 2 with systemd, as distributions ship it, with our runtime.

load ../e2e/helpers

OCI=${OCI:-$TOP/out/svrun-oci}

setup_file() {
	local program
	mkdir -p /tmp/root/bin
	cp /bin/busybox /tmp/root/bin/
	for program in sh sleep cat echo true id ls; do
		ln -sf busybox "/tmp/root/bin/$program"
	done
	tar -C /tmp/root -c . | podman import - busybox >/dev/null 2>&1
	tar -C /tmp/root -c . >/tmp/root.tar
}

setup() {
	T=$(mktemp -d)
	ID=c-${T##*.}
}

teardown() {
	pod rm -f -t 0 -a >/dev/null 2>&1 || true
	pod pod rm -f -a >/dev/null 2>&1 || true
	rm -rf "$T"
}

pod() {
	podman --runtime "$OCI" "$@"
}

start() { # OPTION... ; counts in /n
	pod run -d --network none --name "$ID" "$@" busybox \
		/bin/sh -c 'i=0; while :; do i=$((i + 1)); echo $i; echo $i >/n; sleep 0.1; done' >/dev/null
}

@test "podman uses systemd and version 2" {
	[ "$(pod info -f '{{.Host.CgroupManager}} {{.Host.CgroupsVersion}}')" = "systemd v2" ]
}

@test "run: output, exit status, limits" {
	run pod run --rm --network none busybox /bin/sh -c 'echo hello; exit 3'
	[ "$status" = 3 ] && [ "$output" = hello ]
	start --memory 64m --pids-limit 30 --cpus 0.5
	pid=$(pod inspect -f '{{.State.Pid}}' "$ID")
	dir=/sys/fs/cgroup$(cut -d: -f3 "/proc/$pid/cgroup")
	[[ $dir == */machine.slice/libpod-*.scope* ]]
	[ "$(cat "$dir/memory.max")" = 67108864 ]
	[ "$(cat "$dir/pids.max")" = 30 ]
	[ "$(cat "$dir/cpu.max")" = "50000 100000" ]
}

@test "exec, pause, stats, logs, kill, stop" {
	start
	[ "$(pod exec "$ID" /bin/echo inside)" = inside ]
	run pod exec "$ID" /bin/sh -c 'exit 9'
	[ "$status" = 9 ]
	pod pause "$ID" >/dev/null
	[ "$(pod inspect -f '{{.State.Status}}' "$ID")" = paused ]
	pod unpause "$ID" >/dev/null
	pod stats --no-stream "$ID" | grep -q "$ID"
	pod logs "$ID" | grep -qx 1
	pod kill -s KILL "$ID" >/dev/null
	[ "$(pod wait "$ID")" = 137 ]
	start --replace
	pod stop -t 1 "$ID" >/dev/null 2>&1
	[ "$(pod inspect -f '{{.State.Status}}' "$ID")" = exited ]
}

@test "a terminal" {
	run script -qec "podman --runtime $OCI run --rm -it --network none busybox /bin/sh -c 'ls -l /proc/self/fd/0'" /dev/null
	[[ $output == *"/dev/pts/0"* ]]
}

@test "pods share namespaces" {
	pod pod create --network none --name p >/dev/null
	pod run -d --pod p --name "$ID" busybox /bin/sleep 1000 >/dev/null
	run pod run --rm --pod p busybox /bin/sh -c 'ls -l /proc/self/ns/net /proc/self/ns/ipc /proc/self/ns/uts'
	other=$(pod exec "$ID" /bin/sh -c 'ls -l /proc/self/ns/net /proc/self/ns/ipc /proc/self/ns/uts')
	[ "$(grep -o '\[.*\]' <<<"$output")" = "$(grep -o '\[.*\]' <<<"$other")" ]
}

@test "user namespaces" {
	[ "$(pod run --rm --network none --uidmap 0:100000:1000 busybox /bin/cat /proc/self/uid_map | tr -s ' ')" = " 0 100000 1000" ]
}

@test "the AppArmor profile and seccomp of podman are in force" {
	start
	pid=$(pod inspect -f '{{.State.Pid}}' "$ID")
	[[ $(cat "/proc/$pid/attr/current") == containers-default-*"(enforce)" ]]
	[ "$(awk '$1 == "Seccomp:" { print $2 }' "/proc/$pid/status")" = 2 ]
}

@test "checkpoint and restore, by podman" {
	start
	sleep 1
	pod container checkpoint "$ID" >/dev/null
	[ "$(pod inspect -f '{{.State.Status}}' "$ID")" = exited ]
	n=$(pod logs --tail 1 "$ID")
	pod container restore "$ID" >/dev/null
	[ "$(pod inspect -f '{{.State.Status}}' "$ID")" = running ]
	sleep 1
	after=$(pod exec "$ID" /bin/cat /n)
	[ "$after" -gt "$n" ] && [ "$after" -lt $((n + 600)) ]
	pid=$(pod inspect -f '{{.State.Pid}}' "$ID")
	[[ $(cat "/proc/$pid/attr/current") == containers-default-*"(enforce)" ]]
}

@test "a checkpoint moves to a container of another name" {
	start
	sleep 1
	pod container checkpoint --export "$T/c.tar.gz" "$ID" >/dev/null
	pod rm -f -t 0 "$ID" >/dev/null
	pod container restore --import "$T/c.tar.gz" --name moved >/dev/null
	sleep 1
	[ "$(pod exec moved /bin/cat /n)" -gt 1 ]
}

@test "without root: run, exec, limits, pause" {
	loginctl show-user svrun >/dev/null
	cat >"$T/as-user" <<-EOF
		set -e
		pod() { podman --runtime "$OCI" --cgroup-manager "\$1" "\${@:2}"; }
		podman import - busybox </tmp/root.tar >/dev/null 2>&1
		for manager in systemd cgroupfs; do
			pod \$manager run --rm --network none busybox /bin/id -u
			pod \$manager run -d --network none --name u --memory 64m busybox /bin/sleep 1000 >/dev/null
			pod \$manager exec u /bin/cat /proc/self/uid_map | tr -s ' '
			cat "/sys/fs/cgroup\$(cut -d: -f3 /proc/\$(pod \$manager inspect -f '{{.State.Pid}}' u)/cgroup)/memory.max"
			pod \$manager rm -f -t 0 u >/dev/null
		done
	EOF
	chmod 755 "$T" "$T/as-user"
	run as-svrun bash "$T/as-user"
	echo "$output"
	[ "$status" = 0 ]
	[ "$(grep -cx 0 <<<"$output")" = 2 ]
	[ "$(grep -c '^ 0 1000 1$' <<<"$output")" = 2 ]
	[ "$(grep -cx 67108864 <<<"$output")" -ge 1 ]
}
