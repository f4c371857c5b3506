#!/usr/bin/env bats
# svrun-oci spec and features, and configurations that are refused.

load helpers
load oci

setup() {
	oci_setup
}

teardown() {
	oci_teardown
}

@test "spec writes a configuration that runs" {
	rm "$B/config.json"
	oci spec --bundle "$B"
	[ "$(jq -r .ociVersion "$B/config.json")" = "$(oci features | jq -r .ociVersionMax)" ]
	change_config "$B" '.process.terminal = false'
	set_script "$B" 'grep -E "^(Seccomp|CapBnd|NoNewPrivs)" /proc/self/status; hostname'
	run_split oci run --bundle "$B" "$ID"
	[ "$status" = 0 ] || fail "$err"
	expect_in "$out" "Seccomp:	2"
	expect_in "$out" "CapBnd:	0000000020000420"
	expect_in "$out" "NoNewPrivs:	1"
	expect_in "$out" svrun
}

@test "spec --rootless writes a configuration that runs in a user namespace" {
	rm "$B/config.json"
	(cd "$B" && oci spec --rootless)
	change_config "$B" '.process.terminal = false | .process.args = ["cat", "/proc/self/uid_map"]'
	run_split oci run --bundle "$B" "$ID"
	[ "$status" = 0 ] || fail "$err"
	[ "$(echo "$out" | tr -s ' ')" = " 0 0 1" ] || fail "$out"
}

@test "spec has a cgroup namespace where there is one tree of cgroups" {
	local has=false
	[ ! -e /sys/fs/cgroup/cgroup.controllers ] || has=true
	rm "$B/config.json"
	oci spec --bundle "$B"
	[ "$(jq '.linux.namespaces | any(.type == "cgroup")' "$B/config.json")" = $has ]
}

@test "spec never replaces a file" {
	cp "$B/config.json" "$T/before"
	run_split oci spec --bundle "$B"
	[ "$status" = 1 ]
	expect_in "$err" "$B/config.json: File exists"
	cmp "$T/before" "$B/config.json"
	run_split oci spec --bundle "$T/missing"
	[ "$status" = 1 ]
	expect_in "$err" "bundle $T/missing: No such file or directory"
}

@test "features tells of all that other runtimes of this machine have" {
	local theirs key
	oci features >"$T/ours"
	[ "$(jq -r '.linux.cgroup.v2 and .linux.seccomp.enabled and .linux.mountExtensions.idmap.enabled' \
		"$T/ours")" = true ]
	command -v runc >/dev/null || skip "needs runc"
	runc features >"$T/theirs" || skip "this runc has no features"
	for key in .hooks .mountOptions .linux.namespaces .linux.capabilities .linux.seccomp.actions \
		.linux.seccomp.operators .linux.seccomp.archs; do
		theirs=$(jq -c --slurpfile o "$T/ours" "($key) - (\$o[0]$key)" "$T/theirs")
		# Left to the file system (acl), or gone from the kernel (mand).
		[ "$theirs" = "[]" ] || [ "$theirs" = '["acl","iversion","mand","noacl"]' ] ||
			fail "$key: $theirs"
	done
}

@test "every listed architecture is accepted" {
	change_config "$B" '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW",
		architectures: $f[0].linux.seccomp.archs}' --slurpfile f <(oci features)
	run_split oci run --bundle "$B" "$ID"
	[ "$status" = 0 ] || fail "$err"
}

@test "a bad member is refused with its place, and nothing is left" {
	local change
	while IFS=@ read -r change text; do
		cp "$DATA/oci/config.json" "$B/config.json"
		change_config "$B" "$change"
		run_split oci create --bundle "$B" "$ID"
		[ "$status" = 1 ] || fail "$change: status $status"
		expect_in "$err" "config.json: $text"
		expect_oci_clean
	done <<'EOF'
.process.rlimits = [range(100) | {type: "RLIMIT_CORE", soft: 0, hard: 0}]@/process/rlimits: RLIMIT_CORE is there twice
.process.cwd = 7@/process/cwd: expected a string
.windows = {layerFolders: ["a"]}@/windows: this runtime does not do it
.linux.uidMappings = [{containerID: 0, hostID: 0, size: 1}]@/linux: uidMappings and gidMappings need each other
.linux.namespaces += [{type: "pid"}]@/linux/namespaces/5: pid namespace is there twice
.linux.sysctl = {"net/../x": "1"}@/linux/sysctl/net/../x: no name of a sysctl
.hooks.poststop = [{path: "x"}]@/hooks/poststop/0/path: expected an absolute path, got 'x'
EOF
}

@test "a text that is no JSON is refused with line and column" {
	printf '{\n "ociVersion": nope}' >"$B/config.json"
	run_split oci create --bundle "$B" "$ID"
	[ "$status" = 1 ]
	expect_in "$err" "config.json:2:"
	expect_oci_clean
}

@test "a capability that nobody knows is warned of and left out" {
	change_config "$B" '.process.capabilities.bounding += ["CAP_FLY"]'
	run_split oci run --bundle "$B" "$ID"
	[ "$status" = 0 ] || fail "$err"
	expect_in "$err" "capability 'CAP_FLY' is not known and ignored"
}
