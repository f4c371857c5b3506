#!/usr/bin/env bats
# CDI specs: svrun-oci with annotations and with the hooks of NVIDIA's toolkit; svrun gpu cdi; what is made is
# given to podman, with runc and with svrun-oci. The GPUs are nodes that nobody answers behind: opening one that is
# granted says ENXIO.

# shellcheck disable=SC2016 # what stands in single quotes is for jq, or for a shell inside

load helpers
load oci
load podman

setup() {
	oci_setup
	SPECS=$T/cdi
	mkdir "$SPECS"
}

teardown() {
	rmdir /run/cdi 2>/dev/null || true
	podman_teardown
	oci_teardown
}

# A spec with one device, v.com/dev=0, of these edits; stdin or text.
put_spec() { # EDITS [FILE]
	jq -n --argjson edits "$1" '{cdiVersion: "1.1.0", kind: "v.com/dev",
		devices: [{name: "0", containerEdits: $edits}]}' >"$SPECS/${2-v.json}"
}

ask_for() { # NAMES
	change_config "$B" '.annotations["cdi.k8s.io/plugin_dev"] = $n' --arg n "$1"
}

cdi() {
	oci --cdi-spec-dir "$SPECS" "$@"
}

# A host with GPUs, for `svrun gpu`.
make_host() { # KIND
	[ -d "$BATS_FILE_TMPDIR/$1" ] || "$TOP/tests/gpu/make-root" "$1" "$BATS_FILE_TMPDIR/$1" >/dev/null
	export SVRUN_GPU_ROOT=$BATS_FILE_TMPDIR/$1
}

# ---- svrun-oci ----

@test "a device that annotations ask for is there, with its variables, mounts and groups" {
	mkdir "$T/lib"
	echo content >"$T/lib/file"
	put_spec '{"deviceNodes": [{"path": "/dev/v0", "hostPath": "/dev/full", "permissions": "w"}],
		"mounts": [{"hostPath": "'"$T"'/lib", "containerPath": "/opt/v", "options": ["ro", "nosuid"]}],
		"env": ["V=x"], "additionalGids": [0, 4711]}'
	ask_for v.com/dev=0
	set_script "$B" 'ls -l /dev/v0; cat /opt/v/file; echo $V; touch /opt/v/new; grep Groups /proc/self/status'
	run_split cdi run --bundle "$B" "$ID"
	expect_in "$out" "1,   7" content x 4711
	expect_in "$err" "Read-only file system"
	expect_oci_clean
}

@test "a config that asks for nothing opens no folder of specs" {
	need_program strace
	put_spec '{"env": ["A=b"]}'
	strace -f -qq -e trace=open,openat,openat2,stat,access -o "$T/trace" "$OCI" --root "$T/state" \
		--cdi-spec-dir "$SPECS" run --bundle "$B" "$ID"
	! grep cdi "$T/trace" || fail "$(grep cdi "$T/trace")"
}

@test "of a hundred specs each is opened, looked at and read once" {
	need_program strace
	local i
	for i in $(seq 100); do
		printf '{"cdiVersion":"0.5.0","kind":"v%d.com/dev","devices":[{"name":"0","containerEdits":{"env":["N=%d"]}}]}' \
			"$i" "$i" >"$SPECS/$i.json"
	done
	ask_for v77.com/dev=0
	set_script "$B" 'echo $N'
	strace -f -qq -y -e trace=openat,read,newfstatat,fstat,close -o "$T/trace" "$OCI" --root "$T/state" \
		--cdi-spec-dir "$SPECS" run --bundle "$B" "$ID" >"$T/out"
	[ "$(cat "$T/out")" = 77 ]
	[ "$(grep -c '/cdi/[0-9]*\.json>*' "$T/trace")" -le 400 ] || fail "$(grep /cdi/1.json "$T/trace")"
	[ "$(grep -c 'read(.*/cdi/[0-9]*\.json>' "$T/trace")" = 100 ]
}

@test "what cannot be had is an error that says where was searched, and leaves nothing" {
	put_spec '{"env": ["A=b"]}'
	echo '{"kind": "v.com/dev", oops' >"$SPECS/broken.json"
	ask_for v.com/dev=7
	run_split cdi create --bundle "$B" "$ID"
	expect_status 1
	expect_in "$err" "CDI devices that cannot be had: v.com/dev=7 (searched: $SPECS)" \
		"$SPECS/broken.json:1:26:" "there are 0"
	ask_for v.com
	run_split cdi create --bundle "$B" "$ID"
	expect_in "$err" "annotation cdi.k8s.io/plugin_dev: CDI device 'v.com': is not vendor/class=name"
	run_split cdi --no-cdi run --bundle "$B" "$ID"
	expect_status 0
	expect_oci_clean
}

@test "no spec gets the host's memory, its root, or a way back to its mounts" {
	local edits
	local -a cases=(
		'{"deviceNodes": [{"path": "/dev/x", "type": "c", "major": 1, "minor": 1}]}' "leads to the host's memory"
		'{"deviceNodes": [{"path": "/dev/mem"}]}' "/dev/mem"
		'{"deviceNodes": [{"path": "/dev/kmsg"}]}' "/dev/kmsg leads to the kernel's messages"
		'{"deviceNodes": [{"path": "/dev/x", "hostPath": "/dev/console"}]}' "/dev/x leads to the host's console"
		'{"mounts": [{"hostPath": "/", "containerPath": "/x", "options": ["ro"]}]}' "mount of the host's root"
		'{"mounts": [{"hostPath": "/etc", "containerPath": "/x"}]}' "that may be written to"
		'{"mounts": [{"hostPath": "/srv", "containerPath": "/x", "options": ["rbind", "rshared"]}]}'
		"would be mounted on the host"
		'{"hooks": [{"hookName": "createRuntime", "path": "/bin/sh"}]}' "a program of the host is not run"
		'{"deviceNodes": [{"path": "/dev/x", "hostPath": "/dev/stdin"}]}' "is no device on this host, but a link"
		'{"mounts": [{"hostPath": "/no/such", "containerPath": "/x"}]}' "mount /no/such: No such file"
	)
	ask_for v.com/dev=0
	while [ ${#cases[@]} -gt 0 ]; do
		put_spec "${cases[0]}"
		run_split cdi create --bundle "$B" "$ID"
		[ "$status" = 1 ] || fail "created: ${cases[0]}"
		expect_in "$err" "${cases[1]}"
		cases=("${cases[@]:2}")
	done
	expect_oci_clean
}

@test "exec with CAP_MKNOD into a container with a GPU opens no other minor" {
	local minor
	mkdir "$T/nodes"
	for minor in 1 2; do
		mknod -m 666 "$T/nodes/nvidia$minor" c 195 "$minor"
	done
	put_spec '{"deviceNodes": [{"path": "/dev/nvidia1", "hostPath": "'"$T"'/nodes/nvidia1"}],
		"mounts": [{"hostPath": "'"$T"'/nodes", "containerPath": "/nodes"}]}'
	ask_for v.com/dev=0
	change_config "$B" '.process.capabilities |= map_values(["CAP_KILL", "CAP_MKNOD", "CAP_DAC_OVERRIDE"])'
	set_script "$B" 'sleep 1000'
	cdi create --bundle "$B" "$ID" >"$T/log" 2>&1
	oci start "$ID"
	run_split oci exec --cap CAP_MKNOD "$ID" sh -c 'mknod /tmp/made c 195 2; cat /tmp/made /nodes/nvidia2 /nodes/nvidia1 /dev/nvidia1; :'
	expect_status 0
	expect_in "$err" "/tmp/made: Operation not permitted" "'/nodes/nvidia2': Operation not permitted" \
		"'/dev/nvidia1': No such device or address"
	oci delete --force "$ID"
	expect_oci_clean
}

@test "a container of a user namespace has the device of a spec, and no other" {
	mkdir "$T/nodes"
	mknod -m 666 "$T/nodes/nvidia2" c 195 2
	put_spec '{"deviceNodes": [{"path": "/dev/v0", "hostPath": "/dev/full", "permissions": "rw"}],
		"mounts": [{"hostPath": "'"$T"'/nodes", "containerPath": "/nodes"}],
		"env": ["V=x"], "hooks": [{"hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook",
			"args": ["nvidia-cdi-hook", "create-symlinks", "--link", "sh::/bin/linked"]}]}'
	ask_for v.com/dev=0
	change_config "$B" '.linux.namespaces += [{type: "user"}, {type: "cgroup"}]
		| .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}] | .linux.gidMappings = .linux.uidMappings'
	chown -R 100000:100000 "$B/rootfs"
	chmod 755 "$T" "$B"
	set_script "$B" 'ls -l /dev/v0; head -c 2 /dev/v0 | wc -c; echo $V; readlink /bin/linked; cat /nodes/nvidia2; mknod /tmp/x c 1 7'
	run_split cdi run --bundle "$B" "$ID"
	expect_in "$out" "1,   7" x sh
	[ "$(sed -n 2p <<<"$out")" = 2 ] || fail "$out" "$err"
	expect_in "$err" "'/nodes/nvidia2': Operation not permitted" "/tmp/x: Operation not permitted"
	expect_oci_clean
}

# No such program is on this host: if it were run, create would fail.
@test "the toolkit's hooks in an engine's config are done without any program" {
	local hook=/usr/bin/nvidia-cdi-hook
	[ ! -e "$hook" ] || skip "$hook is installed"
	change_config "$B" '.hooks.createContainer = [
		{path: $p, args: ["nvidia-cdi-hook", "create-symlinks", "--link", "libx.so.1::/opt/lib/libx.so",
			"--link", "/dev/null::/opt/old"]},
		{path: $p, args: ["nvidia-cdi-hook", "update-ldcache", "--folder", "/opt/lib"]},
		{path: $p, args: ["nvidia-cdi-hook", "chmod", "--mode", "755", "--path", "/dev/dri"]},
		{path: "/usr/bin/nvidia-ctk", args: ["nvidia-ctk", "hook", "disable-device-node-modification"]},
		{path: "/bin/sh", args: ["sh", "-c", "echo ran >" + $t]}]' --arg p "$hook" --arg t "$T/ran"
	mkdir -p "$B/rootfs/opt/lib"
	echo something >"$B/rootfs/opt/old"
	# no link has the name that the library is loaded by: the cache has
	echo 'int x;' | gcc -shared -fPIC -nostdlib -Wl,-soname,libx.so.1 -x c - -o "$B/rootfs/opt/lib/libx.so.1.2.3"
	set_script "$B" 'readlink /opt/lib/libx.so; readlink /opt/old'
	run_split cdi run --bundle "$B" "$ID"
	expect_status 0
	[ "$out" = "libx.so.1
/dev/null" ] || fail "$out" "$err"
	expect_in "$(ldconfig -p -C "$B/rootfs/etc/ld.so.cache")" "libx.so.1 (libc6,x86-64) => /opt/lib/libx.so.1.2.3"
	[ "$(cat "$T/ran")" = ran ] || fail "the hook of somebody else did not run"
	run_split cdi --no-cdi run --bundle "$B" "$ID"
	expect_in "$err" "createContainer hook 0, $hook: "
	expect_oci_clean
}

@test "a hook of the toolkit with wrong arguments is refused" {
	change_config "$B" '.hooks.createContainer = [{path: "/usr/bin/nvidia-cdi-hook",
		args: ["nvidia-cdi-hook", "create-symlinks", "--link", "nothing"]}]'
	run_split cdi create --bundle "$B" "$ID"
	expect_in "$err" "createContainer hook 0: hook create-symlinks: --link 'nothing': expected TARGET::LINK"
	expect_oci_clean
}

# CVE-2025-23266: a hook with the image's environment, in the image's root, loads what LD_PRELOAD says there.
@test "a hook that is allowed has an empty environment and /, whatever the image says" {
	local hook=/var/svrun-test-hook.$$
	printf '#!/bin/sh\n{ tr "\\0" "\\n" </proc/$$/environ; echo "cwd $(pwd)"; cat; } >%s/said\n' "$T" >"$hook"
	chmod 755 "$hook"
	put_spec '{"hooks": [{"hookName": "createContainer", "path": "'$hook'", "args": ["x"]}]}'
	ask_for v.com/dev=0
	change_config "$B" '.process.env += ["LD_PRELOAD=./evil.so", "EVIL=1"]'
	LD_PRELOAD='' SECRET=1 run_split cdi --cdi-allow-hook "$hook" run --bundle "$B" "$ID"
	[ "$status" = 0 ] || { rm -f "$hook"; fail "$err"; }
	[ "$(stat -c %a "$T/said")" = 644 ] || { rm -f "$hook"; fail "a hook makes files for everybody to write to"; }
	expect_in "$(cat "$T/said")" "cwd /" '"status":"created"' "\"id\":\"$ID\""
	! grep -E 'LD_PRELOAD|EVIL|SECRET|HOME' "$T/said" || { rm -f "$hook"; fail "$(cat "$T/said")"; }
	# as soon as somebody else may write to it, it is not run
	rm "$T/said"
	chmod 757 "$hook"
	run_split cdi --cdi-allow-hook "$hook" run --bundle "$B" "$ID"
	rm -f "$hook"
	expect_in "$err" "others than its owner may write to $hook"
	[ ! -e "$T/said" ]
	expect_oci_clean
}

@test "a hook that is allowed and hangs is ended by its timeout" {
	put_spec '{"hooks": [{"hookName": "createRuntime", "path": "/usr/bin/sleep", "args": ["sleep", "60"],
		"timeout": 1}]}'
	ask_for v.com/dev=0
	run_split cdi --cdi-allow-hook /usr/bin/sleep create --bundle "$B" "$ID"
	expect_in "$err" "did not end within 1 s"
	expect_oci_clean
}

# ---- svrun gpu cdi ----

@test "a spec is made of every sort of host, and is valid in both forms" {
	local kind
	for kind in one mig minors amd; do
		make_host "$kind"
		"$SVRUN" gpu cdi generate --output "$T/$kind.yaml"
		"$SVRUN" gpu cdi generate --format json >"$T/$kind.json"
		"$SVRUN" gpu cdi validate "$T/$kind.yaml" "$T/$kind.json"
	done
	jq -e '.cdiVersion == "0.5.0" and .kind == "nvidia.com/gpu" and .containerEdits.hooks == null and
		.containerEdits.env == ["NVIDIA_VISIBLE_DEVICES=void"] and
		([.devices[].name | select(test("GPU") | not)] == ["0:0", "0:1", "0:2", "1", "all"])' "$T/mig.json"
	# the index is that of the bus; the node is that of the minor
	make_host minors
	[ "$(jq -c '[.devices[] | select(.name | test("^[0-9]$")) | .containerEdits.deviceNodes[0].path]' \
		"$T/minors.json")" = "$("$SVRUN" gpu ls --format json |
		jq -c '[.gpus | sort_by(.index)[] | .nodes[0]]')" ]
	# a node is in each once, of AMD's render nodes and of the parts of one GPU
	jq -es 'all(.[].devices[].containerEdits.deviceNodes; (map(.path) | unique | length) == length)' "$T"/*.json
	"$SVRUN" gpu cdi generate --output "$T/etc/cdi/nvidia.yaml" # what is missing is made
	[ -s "$T/etc/cdi/nvidia.yaml" ]
	jq -e '.kind == "amd.com/gpu" and .cdiVersion == "0.7.0" and
		([.containerEdits.deviceNodes[].path] == ["/dev/kfd"])' "$T/amd.json"
	jq -e '[.containerEdits.mounts[].containerPath] | contains(["/usr/lib64/libcuda.so.1",
		"/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.999.88.77",
		"/usr/bin/nvidia-smi"])' "$T/one.json"
}

@test "a spec that cannot be made is an error and leaves the old file" {
	echo old >"$T/old.json"
	make_host none
	run_split "$SVRUN" gpu cdi generate --output "$T/old.json"
	expect_status 125
	expect_in "$err" "no NVIDIA GPU is on this host"
	[ "$(cat "$T/old.json")" = old ]
	make_host wsl
	run_split "$SVRUN" gpu cdi generate
	expect_in "$err" "on WSL2 a spec without hooks cannot be made"
	make_host one
	run_split "$SVRUN" gpu cdi generate --output "$T/x.txt"
	expect_status 2
	run_split "$SVRUN" gpu cdi generate --vendor 7up
	expect_in "$err" "--vendor 7up does not begin with a letter"
}

@test "devices are listed with their specs, conflicts and what is broken" {
	mkdir "$T/later"
	put_spec '{"env": ["A=b"]}' a.json
	put_spec '{"env": ["A=c"]}' b.json
	jq -n '{cdiVersion: "0.5.0", kind: "w.com/dev", devices: [{name: "1", containerEdits: {env: ["A=b"]}}]}' \
		>"$T/later/w.json"
	echo '[' >"$T/later/bad.yaml"
	run_split "$SVRUN" gpu cdi list --cdi-spec-dir "$SPECS" --cdi-spec-dir "$T/later"
	expect_status 0
	expect_in "$out" "v.com/dev=0  $SPECS/a.json  cannot be had: also in $SPECS/b.json" \
		"w.com/dev=1  $T/later/w.json"
	expect_in "$err" "warning: $T/later/bad.yaml:2:1:"
	"$SVRUN" gpu cdi list --cdi-spec-dir "$SPECS" --cdi-spec-dir "$T/later" --format json |
		jq -e '(.devices | length == 2) and .devices[0].conflict and (.errors | length == 1)'
	run_split "$SVRUN" gpu cdi validate --cdi-spec-dir "$SPECS"
	expect_status 1
	expect_in "$out" "$SPECS/a.json: v.com/dev=0 is in $SPECS/b.json, too"
}

@test "everything that is wrong with a spec is told, with its place" {
	cat >"$T/x.yaml" <<-'YAML'
		cdiVersion: 0.3.0
		kind: v.com
		devices:
		- name: 0
		  containerEdits:
		    deviceNodes:
		    - path: dev/x
		      perms: rw
	YAML
	run_split "$SVRUN" gpu cdi validate "$T/x.yaml"
	expect_status 1
	[ "$out" = "$T/x.yaml:2:7: /kind: expected vendor/class
$T/x.yaml:7:7: /devices/0/containerEdits/deviceNodes/0: unknown member 'perms'
$T/x.yaml:7:13: /devices/0/containerEdits/deviceNodes/0/path: expected an absolute path
$T/x.yaml:1:13: /cdiVersion: 0.3.0, but /devices/0/name needs 0.5.0" ] || fail "$out"
}

# ---- other engines ----

# Podman with $T/run/cdi as /run/cdi, which is empty or not there on this host.
podman_cdi() {
	mkdir -p /run/cdi
	unshare -m sh -c 'mount --bind "$1" /run/cdi && shift &&
		{ umount /sys/fs/cgroup/unified 2>/dev/null || true; } && exec "$@"' sh "$SPECS" \
		podman "${STORAGE[@]}" run --rm --network none "$@"
}

@test "podman runs with a spec that was made: with runc, and with svrun-oci" {
	local runtime
	podman_setup
	make_host eight
	"$SVRUN" gpu cdi generate --output "$SPECS/nvidia.yaml"
	for runtime in runc "$OCI"; do
		run_split podman_cdi --runtime "$runtime" --device nvidia.com/gpu=1 --rootfs "$B/rootfs" sh -c '
			ls /dev | grep nvidia; ls /usr/lib64/libcuda.so.1 /usr/bin/nvidia-smi; echo $NVIDIA_VISIBLE_DEVICES
			cat /dev/nvidia1; mknod /tmp/other c 195 0; cat /tmp/other'
		expect_in "$out" nvidia1 nvidiactl nvidia-uvm /usr/lib64/libcuda.so.1 /usr/bin/nvidia-smi void
		[[ $out != *nvidia0* ]] || fail "$runtime: $out"
		expect_in "$err" "'/dev/nvidia1': No such device or address" "Operation not permitted"
		[[ $err != *"other': No such device or address"* ]] || fail "$runtime: another GPU: $err"
		rm -f "$B/rootfs/tmp/other"
	done
}

@test "podman with svrun-oci: the hooks of the toolkit's spec are done natively" {
	podman_setup
	[ ! -e /usr/bin/nvidia-cdi-hook ] || skip "nvidia-cdi-hook is installed"
	cat >"$SPECS/nvidia.yaml" <<-'YAML'
		cdiVersion: 0.5.0
		kind: nvidia.com/gpu
		devices:
		- name: "0"
		  containerEdits:
		    deviceNodes:
		    - {path: /dev/nvidia0, hostPath: /dev/full}
		    hooks:
		    - hookName: createContainer
		      path: /usr/bin/nvidia-cdi-hook
		      args: [nvidia-cdi-hook, create-symlinks, --link, "libcuda.so.1::/usr/lib64/libcuda.so"]
		    - hookName: createContainer
		      path: /usr/bin/nvidia-cdi-hook
		      args: [nvidia-cdi-hook, update-ldcache, --folder, /usr/lib64]
	YAML
	run_split podman_cdi --runtime "$OCI" --device nvidia.com/gpu=0 --rootfs "$B/rootfs" sh -c \
		'readlink /usr/lib64/libcuda.so; ls -l /dev/nvidia0'
	expect_status 0
	expect_in "$out" libcuda.so.1 "1,   7"
}
