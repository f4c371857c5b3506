#!/usr/bin/env bats
# Hooks, namespaces, users and running without root, through svrun-oci.

load helpers
load oci

setup() {
	oci_setup
}

teardown() {
	oci_teardown
}

# A hook that adds a line to $T/log: its kind, where it runs, the status it is told.
log_hooks() { # KIND...
	local kind
	for kind; do
		change_config "$B" '.hooks[$k] = [{path: "/bin/sh", args: ["sh", "-c", $s]}]' \
			--arg k "$kind" --arg s "echo $kind \$(uname -n | grep -x inside) \$(pwd) \
				\$(sed -E 's/.*\"status\": ?\"([a-z]*)\".*/\\1/') >>$T/log"
	done
}

@test "hooks of all kinds run in their order and places" {
	log_hooks prestart createRuntime createContainer poststart poststop
	change_config "$B" '.hooks.startContainer = [{path: "/bin/sh",
		args: ["sh", "-c", "cat >/tmp/state"]}]'
	set_script "$B" 'grep -o "\"status\": *\"[a-z]*\"" /tmp/state'
	oci create --bundle "$B" "$ID"
	[ "$(cat "$T/log")" = "prestart / creating
createRuntime / creating
createContainer inside / created" ] || fail "$(cat "$T/log")"
	oci start "$ID"
	expect_in "$(cat "$T/log")" "poststart / running"
	await_status stopped
	oci delete "$ID"
	expect_in "$(cat "$T/log")" "poststop / stopped"
	expect_oci_clean
}

@test "a hook gets the environment of the config and nothing else" {
	change_config "$B" '.hooks.createRuntime = [{path: "/bin/sh", env: ["A=b"],
		args: ["sh", "-c", $s]}]' --arg s "env >$T/env"
	SECRET=1 oci run --bundle "$B" "$ID"
	expect_in "$(cat "$T/env")" A=b
	! grep -E 'SECRET|HOME' "$T/env" || fail "$(cat "$T/env")"
}

@test "a hook that fails at each stage leaves nothing, and says what it said" {
	local kind
	for kind in prestart createRuntime createContainer; do
		make_bundle "$T/$kind" '.hooks[$ARGS.named.k] = []' 2>/dev/null || make_bundle "$T/$kind"
		change_config "$T/$kind" '.hooks[$k] = [{path: "/bin/sh",
			args: ["sh", "-c", "echo too bad >&2; exit 3"]}]' --arg k "$kind"
		run_split oci create --bundle "$T/$kind" "$ID"
		[ "$status" != 0 ] || fail "$kind: created"
		expect_in "$err" "$kind hook 0, /bin/sh: ended with status 3: too bad"
		expect_oci_clean
	done
}

@test "a startContainer hook that fails ends the container" {
	change_config "$B" '.hooks.startContainer = [{path: "/bin/sh", args: ["sh", "-c", "exit 3"]}]'
	set_script "$B" 'touch /ran'
	oci create --bundle "$B" "$ID"
	run_split oci start "$ID"
	[ "$status" != 0 ]
	expect_in "$err" "startContainer hook 0"
	await_status stopped
	[ ! -e "$B/rootfs/ran" ]
	oci delete "$ID"
	expect_oci_clean
}

@test "a startContainer hook is confined as the container's program is" {
	change_config "$B" '.hooks.startContainer = [{path: "/bin/sh",
		args: ["sh", "-c", "cat /proc/self/status >/tmp/hook"]}] | .process.user = {uid: 7, gid: 7} |
		.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW"}'
	set_script "$B" 'cat /proc/self/status >/tmp/own; for k in Uid Groups CapEff CapBnd Seccomp: NoNewPrivs; do
		grep -h "^$k" /tmp/hook /tmp/own; done'
	chmod 1777 "$B/rootfs/tmp"
	run_split oci run --bundle "$B" "$ID"
	expect_status 0
	[ "$(sort -u <<<"$out" | wc -l)" = 6 ] || fail "$out"
	expect_in "$out" "Uid:	7" "Seccomp:	2" "CapEff:	0000000000000000"
}

@test "a poststart or poststop hook that fails is warned of, and changes nothing" {
	change_config "$B" '.hooks.poststart = [{path: "/bin/sh", args: ["sh", "-c", "exit 3"]}]
		| .hooks.poststop = .hooks.poststart'
	run_split oci run --bundle "$B" "$ID"
	expect_status 0
	expect_in "$err" "poststart hook 0" "poststop hook 0"
	expect_oci_clean
}

@test "a hook with a timeout is killed" {
	change_config "$B" '.hooks.createRuntime = [{path: "/bin/sleep", args: ["sleep", "1000"], timeout: 1}]'
	run_split oci create --bundle "$B" "$ID"
	[ "$status" != 0 ]
	expect_in "$err" "did not end within 1 s"
	expect_oci_clean
}

@test "a container joins the namespaces of another" {
	local pid
	set_script "$B" 'sleep 1000'
	oci run --detach --bundle "$B" "$ID"
	pid=$(oci state "$ID" | jq .pid)
	make_bundle "$T/second" 'del(.hostname)'
	set_script "$T/second" 'hostname; ps | grep -q "[s]leep 1000" && echo seen; readlink /proc/self/ns/net'
	change_config "$T/second" '.linux.namespaces |= map(
		if .type == "mount" or .type == "cgroup" then . else
			.path = "/proc/\($p)/ns/\(if .type == "network" then "net" else .type end)" end)' \
		--argjson p "$pid"
	run_split oci run --bundle "$T/second" "$ID-2"
	expect_status 0
	[ "$out" = "inside
seen
$(readlink "/proc/$pid/ns/net")" ] || fail "$out"
	oci delete --force "$ID"
	expect_oci_clean
}

@test "a joined mount namespace is used as it is" {
	local pid
	set_script "$B" 'touch /tmp/mark; sleep 1000'
	oci run --detach --bundle "$B" "$ID"
	pid=$(oci state "$ID" | jq .pid)
	make_bundle "$T/second" 'del(.hostname) | .mounts = []'
	set_script "$T/second" 'ls /tmp/mark'
	change_config "$T/second" 'del(.linux.maskedPaths, .linux.readonlyPaths) | .linux.namespaces = [
		{type: "pid"}, {type: "mount", path: "/proc/\($p)/ns/mnt"}]' --argjson p "$pid"
	run_split oci run --bundle "$T/second" "$ID-2"
	expect_status 0
	[ "$out" = /tmp/mark ] || fail "$out"
	oci delete --force "$ID"
}

@test "the host's namespaces are kept where the config names none" {
	change_config "$B" 'del(.hostname) | .linux.namespaces |= map(select(.type == "mount" or .type == "cgroup"))'
	set_script "$B" 'for n in net pid uts; do readlink /proc/self/ns/$n; done'
	run_split oci run --bundle "$B" "$ID"
	expect_status 0
	[ "$out" = "$(readlink /proc/self/ns/net /proc/self/ns/pid /proc/self/ns/uts)" ] || fail "$out"
	set_script "$B" '(sleep 1000 &) ; sleep 1000'
	oci run --detach --bundle "$B" "$ID"
	oci delete --force "$ID"
	expect_oci_clean
}

@test "a user namespace maps root, and devices and mounts work in it" {
	change_config "$B" '.linux.namespaces += [{type: "user"}]
		| .linux.uidMappings = [{containerID: 0, hostID: 200000, size: 65536}]
		| .linux.gidMappings = .linux.uidMappings'
	chown -R 200000:200000 "$B/rootfs"
	set_script "$B" 'id -u; cat /proc/self/uid_map; echo x >/dev/null; touch /new; test -c /dev/zero'
	run_split oci run --bundle "$B" "$ID"
	expect_status 0
	expect_in "$out" "200000"
	[ "$(stat -c %u "$B/rootfs/new")" = 200000 ]
	expect_oci_clean
}

@test "a time namespace has its offsets" {
	change_config "$B" '.linux.namespaces += [{type: "time"}]
		| .linux.timeOffsets = {boottime: {secs: 5000000}, monotonic: {secs: 7, nanosecs: 5}}'
	set_script "$B" 'cat /proc/self/timens_offsets; cut -d. -f1 /proc/uptime 2>/dev/null || cat /proc/uptime'
	run_split oci run --bundle "$B" "$ID"
	expect_status 0
	expect_in "$(tr -s ' ' <<<"$out")" "boottime 5000000 0" "monotonic 7 5"
}

@test "without root: one id, its own files, no cgroup" {
	local user=nobody
	command -v setpriv >/dev/null || skip "needs setpriv"
	chmod 755 "$T" "$B"
	mkdir -m 700 "$T/state-nobody" && chown "$user" "$T/state-nobody"
	change_config "$B" '.linux.namespaces |= map(select(.type != "network")) | .linux.namespaces += [{type: "user"}]
		| .linux.uidMappings = [{containerID: 0, hostID: ($id | tonumber), size: 1}]
		| .linux.gidMappings = [{containerID: 0, hostID: ($gid | tonumber), size: 1}]
		| del(.linux.resources) | .mounts |= map(select(.type != "sysfs" and .type != "cgroup"))' \
		--arg id "$(id -u $user)" --arg gid "$(id -g $user)"
	change_config "$B" '.mounts |= map(.options = (.options // [] | map(select(startswith("gid=") | not))))'
	set_script "$B" 'id -u; echo x >/dev/null; hostname'
	cp "$OCI" "$T/svrun-oci" && chmod 755 "$T/svrun-oci"
	run_split setpriv --reuid "$user" --regid "$(id -g $user)" --clear-groups --inh-caps=-all --bounding-set=-all \
		"$T/svrun-oci" --root "$T/state-nobody" run --bundle "$B" "$ID"
	expect_status 0
	[ "$out" = "0
inside" ] || fail "$out" "$err"
}
