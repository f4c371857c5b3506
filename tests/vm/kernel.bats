#!/usr/bin/env bats
# What svrun-oci does by this kernel, and systemd's session, that the host may lack.

load ../e2e/helpers
load ../e2e/oci

setup() {
	WORK=/var/tmp/svrun-e2e
	mkdir -p "$WORK"
	oci_setup
}

teardown() {
	oci_teardown
	ip netns del "$ID" 2>/dev/null || true
}

run_script() { # SCRIPT [OPTION...]
	set_script "$B" "$1"
	shift
	run oci "$@" run -b "$B" "$ID" </dev/null
}

@test "an AppArmor profile holds, and one that is not loaded is an error" {
	apparmor_parser -r <<-'EOF2'
		profile vm-test flags=(attach_disconnected) {
			file,
			capability,
			signal,
			ptrace,
			deny /tmp/secret rw,
		}
	EOF2
	echo secret >"$B/rootfs/tmp/secret"
	change_config "$B" '.process.apparmorProfile = "vm-test"'
	run_script 'cat /proc/self/attr/current; cat /tmp/secret'
	[ "$status" = 1 ]
	expect_in "$output" "vm-test (enforce)" "Permission denied"
	set_script "$B" 'sleep 100'
	oci run -d -b "$B" "$ID" </dev/null >/dev/null 2>&1
	[ "$(oci exec "$ID" cat /proc/self/attr/current)" = "vm-test (enforce)" ]
	oci delete -f "$ID"
	change_config "$B" '.process.apparmorProfile = "no-such-profile"'
	run_script true
	[ "$status" != 0 ]
	expect_in "$output" no-such-profile
}

@test "time namespaces start at their offsets, and can be joined" {
	change_config "$B" '.linux.namespaces += [{type: "time"}]
		| .linux.timeOffsets = {monotonic: {secs: 1000000}, boottime: {secs: 5000000, nanosecs: 7}}'
	run_script 'cat /proc/uptime /proc/self/timens_offsets'
	[ "$status" = 0 ]
	[ "${lines[0]%%.*}" -gt 5000000 ]
	expect_in "$output" 1000000
	set_script "$B" 'sleep 100'
	oci run -d -b "$B" "$ID" </dev/null >/dev/null 2>&1
	uptime=$(oci exec "$ID" cat /proc/uptime)
	[ "${uptime%%.*}" -gt 5000000 ]
}

@test "user namespaces: ids, devices, files that keep their owners through id-mapped mounts" {
	mkdir "$T/vol"
	echo text >"$T/vol/file"
	chown 1234:1234 "$T/vol/file"
	chown -R 100000:100000 "$B/rootfs"
	chmod 711 "$T" "$B" "$WORK"
	change_config "$B" '.linux.namespaces += [{type: "user"}]
		| .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}]
		| .linux.gidMappings = [{containerID: 0, hostID: 100000, size: 65536}]
		| .mounts += [{destination: "/vol", type: "bind", source: $v, options: ["bind"],
			uidMappings: [{containerID: 0, hostID: 100000, size: 65536}],
			gidMappings: [{containerID: 0, hostID: 100000, size: 65536}]}]' --arg v "$T/vol"
	run_script 'id -u; cat /proc/self/uid_map; stat -c %u /vol/file; echo x >/dev/null; head -c 3 /dev/zero | wc -c'
	[ "$status" = 0 ]
	[ "${lines[0]}" = 0 ]
	expect_in "$output" 100000 1234
	[ "${lines[-1]}" = 3 ]
}

@test "without root, in a delegated session: its own cgroup, limits, exec, and nothing is left" {
	cp -r "$B" /home/svrun/bundle
	jq '.linux.namespaces += [{type: "user"}, {type: "cgroup"}]
		| .linux.uidMappings = [{containerID: 0, hostID: 1000, size: 1}, {containerID: 1, hostID: 100000, size: 65535}]
		| .linux.gidMappings = [{containerID: 0, hostID: 1000, size: 1}, {containerID: 1, hostID: 100000, size: 65535}]
		| .linux.resources = {memory: {limit: 33554432}, pids: {limit: 20}}
		| .linux.cgroupsPath = "user.slice:svrun:rootless"
		| .process.args = ["sleep", "100"]' "$B/config.json" >/home/svrun/bundle/config.json
	chown -R svrun: /home/svrun/bundle
	cat >"$T/as-user" <<-EOF2
		set -e
		oci() { "$OCI" --root /run/user/1000/t --systemd-cgroup "\$@"; }
		oci run -d -b /home/svrun/bundle rootless </dev/null >/dev/null 2>&1
		pid=\$(oci state rootless | jq .pid)
		dir=/sys/fs/cgroup\$(cut -d: -f3 /proc/\$pid/cgroup)
		echo "\$dir"
		cat "\$dir/memory.max" "\$dir/pids.max"
		oci exec rootless cat /proc/self/uid_map
		oci exec --user 5 rootless id -u
		oci pause rootless
		oci state rootless | jq -r .status
		oci resume rootless
		oci delete -f rootless
		[ ! -e "\$dir" ] && ! ls /run/user/1000/t | grep . && echo clean
	EOF2
	chmod 711 "$T"
	chmod 644 "$T/as-user"
	run as-svrun bash "$T/as-user"
	rm -rf /home/svrun/bundle
	echo "$output"
	[ "$status" = 0 ]
	[[ ${lines[0]} == /sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/*svrun-rootless.scope ]]
	[ "${lines[1]} ${lines[2]}" = "33554432 20" ]
	expect_in "$output" 100000 paused
	[ "${lines[5]}" = 5 ]
	[ "${lines[-1]}" = clean ]
}

@test "without root, without delegation and without ids of others" {
	cp -r "$B" /home/svrun/bundle
	jq '.linux.namespaces += [{type: "user"}] | del(.linux.cgroupsPath, .linux.resources)
		| .linux.uidMappings = [{containerID: 0, hostID: 1000, size: 1}]
		| .linux.gidMappings = [{containerID: 0, hostID: 1000, size: 1}]
		| (.mounts[] | select(.type == "devpts") | .options) -= ["gid=5"]
		| .process.args = ["id", "-u"]' "$B/config.json" >/home/svrun/bundle/config.json
	chown -R svrun: /home/svrun/bundle
	run runuser -u svrun -- env XDG_RUNTIME_DIR=/run/user/1000 "$OCI" run -b /home/svrun/bundle alone </dev/null
	expect_status 0
	[ "$output" = 0 ]
	jq '.linux.resources = {memory: {limit: 33554432}} | .linux.cgroupsPath = "/nope"' \
		/home/svrun/bundle/config.json >/home/svrun/bundle/new.json
	mv /home/svrun/bundle/new.json /home/svrun/bundle/config.json
	run runuser -u svrun -- env XDG_RUNTIME_DIR=/run/user/1000 "$OCI" run -b /home/svrun/bundle alone </dev/null
	rm -rf /home/svrun/bundle
	[ "$status" != 0 ]
	expect_in "$output" cgroup
}

@test "containerd runs it with its own shim" {
	need_program ctr
	mkdir -p "$T/ctd"
	containerd --root "$T/ctd/root" --state "$T/ctd/state" --address "$T/ctd/sock" >"$T/ctd/log" 2>&1 &
	server=$!
	for _ in $(seq 100); do [ -S "$T/ctd/sock" ] && ctr -a "$T/ctd/sock" version >/dev/null 2>&1 && break; sleep 0.2; done
	run ctr -a "$T/ctd/sock" run --rm --runc-binary "$OCI" --rootfs "$B/rootfs" "$ID" /bin/sh -c 'echo from the shim; exit 4'
	kill "$server"
	wait "$server" || true
	echo "$output"
	[ "$status" = 4 ]
	expect_in "$output" "from the shim"
}
