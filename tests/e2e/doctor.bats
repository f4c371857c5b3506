#!/usr/bin/env bats
# svrun doctor, svrun gpu hold, svrun-gpu-probe, scripts/gpu-check. GPUs are fixtures: real nodes without a
# driver behind them, and a libcuda of our own (tests/gpu/libcuda.c says what that does not prove).
load helpers

setup() {
	need_root
	T=$BATS_TEST_TMPDIR
	export SVRUN_ROOT=$T/store
}

setup_file() {
	local kind
	[ "$(id -u)" = 0 ] || return 0
	for kind in one eight none; do
		"$BATS_TEST_DIRNAME/../gpu/make-root" "$kind" "$BATS_FILE_TMPDIR/$kind"
	done
	gcc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$BATS_FILE_TMPDIR/libcuda.so" \
		"$BATS_TEST_DIRNAME/../gpu/libcuda.c"
}

host() { # KIND: a copy to change
	HOST=$T/host
	rm -rf "$HOST"
	cp -a "$BATS_FILE_TMPDIR/$1" "$HOST"
	export SVRUN_GPU_ROOT=$HOST
}

# A driver that plays the lines.
fake_driver() { # LINE...
	LIBRARY=$HOST/usr/lib/x86_64-linux-gnu/libcuda.so.999.88.77
	cp "$BATS_FILE_TMPDIR/libcuda.so" "$LIBRARY"
	printf '%s\n' "$@" 'uuid 5a0000000123456789ab0123456789ab' >"$LIBRARY.script"
}

# The findings of these ids, "LEVEL ID FOUND -> ADVICE" a line; $status is the doctor's.
findings() { # ID-PATTERN [OPTION...]
	local pattern=$1
	shift
	run "$SVRUN" doctor --format json "$@"
	jq -e . >/dev/null <<<"$output" || fail "no JSON: $output" || return 1
	output=$(jq -r --arg p "^($pattern)\$" '.findings[] | select(.id | test($p))
		| "\(.level) \(.id) \(.found)\(if .advice then " -> " + .advice else "" end)"' <<<"$output")
}

@test "a host without GPUs: what is there is said, and that there is none" {
	host none
	run "$SVRUN" doctor
	expect_in "$output" "kernel.version" "namespace.mount" "cgroup.devices" "fs.erofs" "no GPU on this host"
	[[ ${lines[-1]} =~ ^[0-9]+\ ok,\ [0-9]+\ notes,\ [0-9]+\ warnings,\ [0-9]+\ errors$ ]]
	run "$SVRUN" doctor --cuda
	expect_in "$output" "no GPU on this host: there is no driver to be asked"
	! grep -q ' cuda\.' <<<"$output"
}

@test "this host has no errors, and each finding that is not ok says what to do, or is a note" {
	host none
	run "$SVRUN" doctor --format json
	expect_status 0
	jq -e '.schema == "svrun.doctor/1" and .errors == 0 and .ok > 20
		and (.findings | length) == .ok + .notes + .warnings + .errors
		and all(.findings[]; .id and .found and (.level | IN("ok", "note", "warning", "error")))
		and all(.findings[] | select(.level | IN("warning", "error")); .advice | length > 5)' <<<"$output"
}

@test "nothing is left behind: no cgroup, no folder in the store, no process" {
	host none
	mkdir -m 700 "$SVRUN_ROOT"
	findings 'store\..*|cgroup\..*'
	expect_in "$output" "ok store.overlay" "ok cgroup.devices"
	[ -z "$(ls -A "$SVRUN_ROOT")" ]
	[ -z "$(find /sys/fs/cgroup -maxdepth 4 -name 'svrun-doctor-*')" ]
}

@test "cgroup version 2 alone: a process is cloned into one, and its device filter holds" {
	host none
	cat >"$T/version-2" <<-'END'
		mount -t cgroup2 none /sys/fs/cgroup && exec "$@"
	END
	run unshare -m sh "$T/version-2" "$SVRUN" doctor
	expect_in "$output" "cgroups: version 2" "a cgroup with its device filter: made, entered;" "was denied in it"
	[ -z "$(find /sys/fs/cgroup -maxdepth 4 -name 'svrun-doctor-*')" ]
}

@test "without rights it says so first, and what follows is told as refused" {
	host none
	cp "$SVRUN" "$T/svrun"
	chmod 755 "$T" "$T/svrun"
	run setpriv --reuid 65534 --regid 65534 --clear-groups "$T/svrun" doctor
	expect_status 1
	expect_in "${lines[1]}" "error    rights" "this is user 65534"
	expect_in "$output" "overlayfs: cannot be tried: Operation not permitted" "run svrun as root"
	run setpriv --bounding-set -all --inh-caps -all "$SVRUN" doctor
	expect_status 1
	expect_in "$output" "root without CAP_SYS_ADMIN: this is a container"
}

@test "a store that is full, or not there, is told" {
	host none
	findings 'store'
	expect_in "$output" "note store $SVRUN_ROOT: no store yet"
	new_disk 40M
	SVRUN_ROOT=$MOUNT findings 'store\.space'
	expect_status 1
	expect_in "$output" "error store.space" "are left -> svrun image gc"
}

@test "a broken site configuration is an error, and the rest is looked at all the same" {
	host one
	echo '{"rot": 1}' >"$T/config.json"
	SVRUN_CONFIG=$T/config.json findings 'config|gpu\.device'
	expect_status 1
	expect_in "$output" "error config" "rot" "ok gpu.device"
}

@test "a host with GPUs in order" {
	host eight
	findings 'gpu\..*'
	expect_status 0
	[ "$(grep -c '^ok gpu.device' <<<"$output")" = 8 ]
	expect_in "$output" "ok gpu.node" "ok gpu.module NVIDIA's kernel module 999.88.77" "ok gpu.files" \
		"ok gpu.persistence nvidia-persistenced's socket" "ok gpu.fabric 4 NVSwitches" \
		"note gpu.facts the driver was not asked since the boot"
}

@test "nodes: one that is missing is a warning with its numbers, another device in its place an error" {
	host one
	rm "$HOST/dev/nvidia0"
	findings 'gpu\.node'
	expect_status 0
	expect_in "$output" "warning gpu.node /dev/nvidia0 is missing" "mknod -m 666 /dev/nvidia0 c 195 0"
	mknod "$HOST/dev/nvidia0" c 1 3
	findings 'gpu\.node'
	expect_status 1
	expect_in "$output" "error gpu.node" "/dev/nvidia0 is not the character device 195:0"
	rm "$HOST/dev/nvidia0"
	ln -s null "$HOST/dev/nvidia0"
	findings 'gpu\.node'
	expect_status 1
}

@test "the classic: the kernel module and the files of user space are of different versions" {
	host one
	sed -i 's/999\.88\.77/999.99.1/' "$HOST/proc/driver/nvidia/version"
	findings 'gpu\.files'
	expect_status 1
	expect_in "$output" "error gpu.files" "999.99.1" "999.88.77"
}

@test "files that another driver left are a warning" {
	host one
	touch "$HOST/usr/lib/x86_64-linux-gnu/libnvidia-old.so.888.11.22"
	findings 'gpu\.(files|leftovers)'
	expect_status 0
	expect_in "$output" "ok gpu.files" "warning gpu.leftovers 1 driver files of other versions (888.11.22)"
}

@test "nouveau has the GPU, or nobody" {
	host none
	local pci=$HOST/sys/bus/pci/devices/0000:01:00.0
	mkdir -p "$pci" "$HOST/sys/bus/pci/drivers/nouveau"
	echo 0x10de >"$pci/vendor"
	echo 0x030000 >"$pci/class"
	findings 'gpu\..*'
	expect_status 1
	expect_in "$output" "error gpu.driver NVIDIA's GPU 0000:01:00.0: no driver has it -> install NVIDIA's driver"
	ln -s ../../../bus/pci/drivers/nouveau "$pci/driver"
	findings 'gpu\..*'
	expect_status 1
	expect_in "$output" "nouveau has it, with which CUDA does not work -> blacklist nouveau"
	[[ $output != *gpu.none* ]]
}

@test "NVSwitches without a fabric manager, a module nvidia-uvm that is not loaded, nothing that keeps GPUs awake" {
	host eight
	rm -r "$HOST"/run/nvidia-{fabricmanager,persistenced}
	sed -i '/nvidia-uvm/d' "$HOST/proc/devices"
	rm -f "$HOST"/dev/nvidia-uvm*
	findings 'gpu\..*'
	expect_status 1
	expect_in "$output" "error gpu.fabric 4 NVSwitches, and no fabric manager runs: CUDA fails with error 802" \
		"error gpu.uvm" "-> modprobe nvidia-uvm" "warning gpu.persistence nothing keeps 8 of 8 GPUs awake"
}

@test "what the driver's files say and cannot be is an error that names the file" {
	"$TOP/tests/gpu/make-root" twice "$T/host"
	SVRUN_GPU_ROOT=$T/host findings 'gpu\..*'
	expect_status 1
	expect_in "$output" "error gpu.inventory" "have the same UUID"
}

# ---- CDI ----

cdi_spec() { # FILE KIND HOST-PATH
	jq -n --arg kind "$2" --arg path "$3" '{cdiVersion: "0.6.0", kind: $kind, devices: [
		{name: "0", containerEdits: {mounts: [{hostPath: $path, containerPath: "/x", options: ["ro"]}]}}]}' >"$1"
}

@test "CDI specs: broken, in conflict, of a driver that is gone" {
	host one
	mkdir "$T/cdi"
	cdi_spec "$T/cdi/a.json" nvidia.com/gpu /usr/lib/x86_64-linux-gnu/libcuda.so.1
	findings 'cdi.*' --cdi-spec-dir "$T/cdi"
	expect_status 0
	expect_in "$output" "ok cdi CDI: 1 specs with 1 devices"
	cdi_spec "$T/cdi/b.json" nvidia.com/gpu /usr/lib/x86_64-linux-gnu/libcuda.so.1
	cdi_spec "$T/cdi/d.json" example.com/gpu /usr/lib/x86_64-linux-gnu/libcuda.so.888.11.22
	echo '{' >"$T/cdi/c.json"
	echo '{' >"$T/cdi/"$'\xff\e[2J.json'
	findings 'cdi.*' --cdi-spec-dir "$T/cdi"
	expect_status 0
	[[ $output != *$'\e'* ]]
	expect_in "$output" "warning cdi.broken" "c.json" "cdi/??[2J.json" "warning cdi.conflict nvidia.com/gpu=0 is in" \
		"warning cdi.stale $T/cdi/d.json: 1 of the 1 host paths that it names are not there, /usr/lib/x86_64-linux-gnu/libcuda.so.888.11.22 is one"
}

@test "a CDI spec that svrun made is stale after a driver upgrade" {
	host one
	mkdir "$T/cdi"
	"$SVRUN" gpu cdi generate -o "$T/cdi/nvidia.yaml"
	findings 'cdi.*' --cdi-spec-dir "$T/cdi"
	expect_in "$output" "ok cdi CDI: 1 specs"
	for file in "$HOST"/usr/lib/x86_64-linux-gnu/*.so.999.88.77; do
		mv "$file" "${file%999.88.77}999.99.1"
	done
	findings 'cdi.*' --cdi-spec-dir "$T/cdi"
	expect_in "$output" "warning cdi.stale $T/cdi/nvidia.yaml:" "-> generate it again"
}

# ---- the driver is asked ----

@test "--cuda: the driver's word is told, and kept for later starts" {
	host one
	fake_driver
	findings 'cuda\..*' --cuda
	expect_status 0
	expect_in "$output" "ok cuda.init CUDA 13.0: 1 GPUs" "compute capability 9.0" "1 MiB there and back"
	jq -e '.driver == "999.88.77" and .boot == "01234567-89ab-cdef-0123-456789abcdef"
		and .gpus[0].memory == 150754820096' "$HOST/run/svrun/gpu/probe.json"
	findings 'gpu\.facts'
	expect_in "$output" "ok gpu.facts what the driver said"
	run "$SVRUN" gpu ls --format json
	[ "$(jq -r '.gpus[0] | "\(.vramMiB) \(.computeCapability) \(.knownFrom)"' <<<"$output")" = "143771 9.0 probe" ]
}

@test "--cuda: each refusal is recognised, with what to do" {
	host one
	local line says
	while IFS='|' read -r line says; do
		fake_driver "$line"
		findings 'cuda\..*' --cuda
		[ "$status" = 1 ] || fail "$line: status $status: $output"
		[[ $output == *error\ cuda*"$says"*" -> "* ]] || fail "$line: expected $says: $output"
		[ ! -e "$HOST/run/svrun/gpu/probe.json" ] || fail "$line: kept"
	done <<-'END'
		fail cuInit 34|CUDA_ERROR_STUB_LIBRARY: this libcuda is the stub
		fail cuInit 100|CUDA_ERROR_NO_DEVICE: the driver sees no GPU
		fail cuInit 802|the fabric manager has not run
		fail cuInit 803|libcuda and the loaded kernel module are of different versions
		fail cuInit 804|cuda-compat's libcuda is used on a GPU that it is not for
		fail cuInit 999|often nvidia-uvm is not loaded
		fail cuInit 4711|error 4711, CUDA_ERROR_TEST_4711: the driver refused it
		fail cuMemAlloc_v2 2|GPU 0: cuMemAlloc_v2: error 2, CUDA_ERROR_OUT_OF_MEMORY
		copy-wrong|1 MiB did not come back from it as it went there
		gpus 0|GPU 0 (GPU-5a000000-0123-4567-89ab-0123456789ab) is not among those
		uuid 00000000000000000000000000000000|which the kernel does not have
	END
}

@test "--cuda: a library that lies, prints or crashes is found out" {
	host one
	local line says
	while IFS='|' read -r line says; do
		fake_driver "$line"
		findings 'cuda\..*' --cuda
		[ "$status" = 1 ] || fail "$line: status $status: $output"
		[[ $output == *"error cuda.probe "*"$says"* ]] || fail "$line: expected $says: $output"
		[[ $output != *$'\e'* ]] || fail "$line: an escape sequence came through"
	done <<-'END'
		gpus 2|GPUs 0 and 1 have one UUID
		memory 18446744073709551615|GPU 0: memory:
		name-long|GPU 0: name: "xxxxx
		name-bytes|GPU 0: name: missing
		name-escape|GPU 0: name:
		print-all cuInit|what the driver's library says: json
		crash cuDeviceGetName|crashed in cuDeviceGetName (Segmentation fault)
		exit cuInit|the probe ended with status 0 in cuInit, and said nothing
	END
	fake_driver 'print-all cuInit'
	"$SVRUN" doctor --cuda >/dev/null 7>"$T/open" || true
	[ ! -s "$T/open" ] || fail "the library has what the caller had open"
	fake_driver 'print cuInit' # on its stdout, which is not ours
	findings 'cuda\..*' --cuda
	expect_status 0
}

@test "--cuda: a driver that hangs is killed with all that it started" {
	host one
	local line
	for line in 'hang cuInit' 'child cuDeviceGetCount'; do
		fake_driver "$line"
		findings 'cuda\..*' --cuda --timeout 1
		expect_status 1
		expect_in "$output" "the driver's library hangs in ${line#* }" "did not end within 1 s"
		! pgrep -f "svrun-gpu-probe $LIBRARY" || fail "$line: it is still there"
	done
}

@test "--cuda: the toolkit's own stub is recognised" {
	local stub=/usr/local/cuda/lib64/stubs/libcuda.so
	[ -e "$stub" ] || skip "no CUDA toolkit here"
	run "$(dirname "$SVRUN")/svrun-gpu-probe" "$stub"
	expect_status 0
	expect_in "$output" '"failed":{"call":"cuDriverGetVersion","code":34}'
}

@test "the probe has an environment of its own, and says what it cannot load" {
	host one
	fake_driver
	cp "$BATS_FILE_TMPDIR/libcuda.so" "$T/evil.so"
	LD_PRELOAD=$T/evil.so CUDA_VISIBLE_DEVICES='' findings 'cuda\..*' --cuda
	expect_status 0
	run "$(dirname "$SVRUN")/svrun-gpu-probe" "$T/none.so"
	expect_status 0
	expect_in "$output" '"missing":"'"$T/none.so"': cannot open shared object file'
	run "$(dirname "$SVRUN")/svrun-gpu-probe"
	expect_status 2
}

@test "doctor: wrong options" {
	run "$SVRUN" doctor --timeout 0
	expect_status 2
	expect_in "$output" "--timeout 0: not a number of seconds from 1 to 3600"
	run "$SVRUN" doctor --format xml
	expect_status 2
}

# ---- hold ----

@test "gpu hold: a node without a driver behind it is told; nothing to hold is NOT FOUND" {
	host one
	run "$SVRUN" gpu hold --for 1
	expect_status 125
	expect_in "$output" "open $HOST/dev/nvidia0: No such device or address" "modprobe nvidia"
	run "$SVRUN" gpu hold GPU-none
	expect_status 125
	run "$SVRUN" gpu hold --for soon
	expect_status 2
	host none
	run "$SVRUN" gpu hold
	expect_status 125
	expect_in "$output" "no NVIDIA GPU to hold"
}

# strace answers the open in the place of a driver.
hold() { # OPTION...
	strace -o "$T/strace" -P "$HOST/dev/nvidia0" -e inject=openat:retval=9 "$SVRUN" gpu hold "$@"
}

@test "gpu hold: it says when it is ready, knows the GPUs, is there once, and ends with SIGTERM" {
	host one
	fake_driver
	rm -r "$HOST/run/nvidia-persistenced"
	python3 - "$T/notify" >"$T/said" <<-'END' &
		import socket, sys
		s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		s.bind(sys.argv[1])
		s.settimeout(60)
		print(s.recv(100).decode(), flush=True)
	END
	local listener=$! holder pid
	until [ -S "$T/notify" ]; do sleep 0.05; done
	NOTIFY_SOCKET=$T/notify hold >"$T/out" 2>&1 3>&- &
	holder=$!
	wait "$listener"
	[ "$(cat "$T/said")" = READY=1 ]
	pid=$(cat "$HOST/run/svrun/gpu/held/0000:00:1e.0")
	findings 'gpu\.(persistence|facts)'
	expect_in "$output" "ok gpu.persistence svrun gpu hold keeps all GPUs awake" "ok gpu.facts"
	run "$SVRUN" gpu hold --for 1
	expect_status 125
	expect_in "$output" "GPU 0 (0000:00:1e.0) is held by process $pid" "one \`svrun gpu hold\` is enough"
	kill -TERM "$pid"
	wait "$holder"
	findings 'gpu\.persistence'
	expect_in "$output" "warning gpu.persistence nothing keeps 1 of 1 GPUs awake"
	run hold --for 0 --no-probe 0 GPU-5a000000
	expect_status 0
	expect_in "$output" "holding 1 GPUs"
}

# ---- gpu-check ----

@test "gpu-check: packed here, it runs from its folder; without GPUs its steps are skipped with the reason" {
	O=$(dirname "$SVRUN") "$TOP/scripts/gpu-check" pack "$T/pack"
	host none
	run "$T/pack/run"
	expect_status 0
	expect_in "$output" "skip  filter           no NVIDIA GPU on this host"
	[[ ${lines[-1]} =~ ^[0-9]+\ ok,\ 0\ failed,\ [0-9]+\ skipped$ ]]
	host one
	fake_driver
	run "$T/pack/run"
	expect_status 0
	expect_in "$output" "ok    filter" "not granted: EPERM" "ok    view" "ok    ld.so.cache" "ok    musl" \
		"skip  cuda-inside      a fixture: no driver answers"
}
