#!/usr/bin/env bats
# svrun run --gpus, --device and what holds GPUs, on hosts that tests/gpu/make-root makes up: nobody answers behind
# the nodes, and so opening one gives ENXIO where the device filter lets it through, EPERM where it does not.

# shellcheck disable=SC2016,SC2154 # single quotes: a shell inside; run_split sets out, err and status
load helpers

# A host of KIND, seen instead of this one.
make_host() { # KIND [LAYOUT]
	need_root
	"$TOP/tests/gpu/make-root" "$1" "$T/host" "${@:2}"
	export SVRUN_GPU_ROOT=$T/host
}

# The image NAME: busybox, and /bin/look, which opens and makes nodes.
make_box() { # NAME [JQ-FILTER]
	[ -x /bin/busybox ] || skip "needs busybox-static"
	[ "$WORK/look" -nt "$TOP/tests/gpu/look.c" ] || {
		gcc -O2 -static -DSTATIC -o "$WORK/look.new" "$TOP/tests/gpu/look.c"
		mv "$WORK/look.new" "$WORK/look"
	}
	[ -d "$T/store" ] || new_store
	APP=$T/$1
	mkdir -p "$APP"
	cp /bin/busybox "$WORK/look" "$APP/"
	jq -n --arg name "$1" '{
		schema: "svrun.image/1", name: $name, version: "1",
		base: {type: "scratch"},
		files: [{dest: "/bin/busybox", from: "busybox", mode: "0755"}, {dest: "/bin/look", from: "look", mode: "0755"}],
		links: [{path: "/bin/sh", target: "busybox"}, {path: "/bin/ls", target: "busybox"}],
		env: {N: "${runtime:gpus}"},
		cmd: ["/bin/sh", "-c", "echo $N"],
		build: {epoch: 1767225600}
	}' | jq "${2:-.}" >"$APP/manifest.json"
	lock_and_build "$APP" >/dev/null
}

more_teardown() {
	local pid
	for pid in $(jobs -p); do
		kill -9 "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	[ -z "${SVRUN_ROOT-}" ] || "$SVRUN" ps >/dev/null 2>&1 || true
}

# Wait until a container has said something.
await_word() { # FILE
	for _ in $(seq 500); do
		[ ! -s "$1" ] || return 0
		sleep 0.02
	done
	fail "nothing is in $1"
}

run_box() { # OPTION... -- WORD...
	run_split "$SVRUN" run --rm "$@"
}

# ---- what is given ----

@test "nobody gets a GPU who did not ask, whatever the image says" {
	make_host eight
	make_box all '.env += {NVIDIA_VISIBLE_DEVICES: "all", CUDA_VERSION: "12.4", NVIDIA_DRIVER_CAPABILITIES: "all"}'
	for option in "--read-only" "--gpus none" "--cap-add MKNOD"; do
		# shellcheck disable=SC2086
		run_box $option all sh -c 'ls /dev /usr/local; echo $N'
		expect_status 0 || expect_status 1
		[[ $out != *nvidia* && $out == *0 ]] || fail "$out"
	done
	[ ! -e "$T/host/run/svrun/gpu/locks" ]
	[ -z "$(ls "$T/host/run/svrun/gpu/views" 2>/dev/null)" ]
}

@test "a GPU is its node and what all need, open for reading and writing, and no other minor" {
	make_host minors
	make_box box
	run_box --gpus device=1 -v "$T/host/dev:/all" box sh -c 'ls -d /dev/nvidia*; look open /dev/nvidia* /all/nvidia*; echo $N'
	expect_status 0
	minor=$(sed -n 's/^Device Minor: *\t* *//p' "$T"/host/proc/driver/nvidia/gpus/*/information | sed -n 2p)
	[ "$minor" != 1 ]
	[ "$(grep -c '^/dev/nvidia[0-9]$' <<<"$out")" = 1 ] || fail "$out"
	expect_in "$out" "/dev/nvidia$minor ENXIO" "/dev/nvidiactl ENXIO" "/dev/nvidia-uvm ENXIO" "/all/nvidia$minor ENXIO"
	for other in 0 1 2 3; do
		[ "$other" = "$minor" ] || expect_in "$out" "/all/nvidia$other EPERM"
	done
	[ "$(tail -n 1 <<<"$out")" = 1 ]
}

@test "the filter refuses every minor of the host but those granted, and nobody makes nodes" {
	make_host eight
	make_box box
	for i in $(seq 0 254); do
		[ -e "$T/host/dev/nvidia$i" ] || mknod -m 666 "$T/host/dev/nvidia$i" c 195 "$i"
	done
	run_box --gpus device=2,5 --cap-add MKNOD -v "$T/host/dev:/all" box sh -c \
		'look open /all/nvidia* /all/nvidia-caps/*; look mknod /made 195 0; look mknod /dev/made 195 2'
	expect_status 0
	[ "$(grep -c ' EPERM$' <<<"$out")" -ge 254 ] || fail "$out"
	[ "$(grep ' ENXIO$' <<<"$out" | sort | tr '\n' ' ')" = \
		"/all/nvidia-uvm ENXIO /all/nvidia-uvm-tools ENXIO /all/nvidia2 ENXIO /all/nvidia5 ENXIO /all/nvidiactl ENXIO " ] ||
		fail "$out"
	expect_in "$out" "/made EPERM" "/dev/made EPERM"
}

@test "a number takes those that are free, and ps tells which" {
	make_host eight
	make_box box
	"$SVRUN" run --rm --name a --gpus 3 box sh -c 'echo $N; busybox sleep 60' >"$T/log" &
	await_word "$T/log"
	[ "$(<"$T/log")" = 3 ]
	"$SVRUN" ps >"$T/ps"
	"$SVRUN" ps --format json >"$T/ps.json"
	[ "$(awk '$1 == "a" { print $3 }' "$T/ps")" = 0,1,2 ] || fail "$(<"$T/ps")"
	[ "$(jq -r '.schema, (.containers[] | select(.id == "a") | .status, .gpus)' "$T/ps.json" | tr '\n' ' ')" = \
		"svrun.ps/1 running 0,1,2 " ] || fail "$(<"$T/ps.json")"
	[ "$("$SVRUN" ps -a)" = "$(<"$T/ps")" ]
	run_box --gpus device=1 box
	expect_status 125
	expect_in "$err" "GPUs that were asked for are taken: GPU 1 (NVIDIA H200) by instance a" "--gpus-shared"
	run_box --gpus 6 box
	expect_status 125
	expect_in "$err" "6 GPUs asked for, 5 free; taken: GPU 0 (NVIDIA H200) by instance a"
	run_box --gpus 5 box
	[ "$out" = 5 ] || fail "$err"
	run_box --gpus 9 box
	expect_status 125
	expect_in "$err" "9 GPUs asked for, and the host has 8"
	"$SVRUN" stop a
	run_box --gpus all box
	[ "$out" = 8 ] || fail "$err"
}

@test "GPUs are shared by those who all say so" {
	make_host one
	make_box box
	"$SVRUN" run --rm --gpus all --gpus-shared box sh -c 'echo; busybox sleep 60' >"$T/log" &
	await_word "$T/log"
	run_box --gpus all --gpus-shared box
	[ "$out" = 1 ] || fail "$err"
	run_box --gpus all box
	expect_status 125
	expect_in "$err" "taken: GPU 0"
}

@test "MIG devices are given by their capabilities alone" {
	make_host mig
	make_box box
	run_box --gpus device=0:0 -v "$T/host/dev/nvidia-caps:/caps" box sh -c 'ls /dev/nvidia-caps; look open /dev/nvidia-caps/* /caps/*'
	expect_status 0
	[ "$(grep -c '^nvidia-cap[0-9]*$' <<<"$out")" = 2 ] || fail "$out"
	[ "$(grep -c '^/caps/.* ENXIO$' <<<"$out")" = 2 ] || fail "$out"
	[ "$(grep -c '^/caps/.* EPERM$' <<<"$out")" -ge 2 ] || fail "$out"
}

@test "AMD's GPUs are kfd and their render nodes" {
	make_host amd
	make_box box
	run_box --gpus device=1 box sh -c 'ls /dev /dev/dri; echo $N'
	expect_status 0
	expect_in "$out" kfd renderD
	[ "$(grep -c '^renderD' <<<"$out")" = 1 ] || fail "$out"
}

# ---- what images say ----

@test "an image narrows what it was given, and cannot ask for more" {
	make_host eight
	make_box box
	run_box --gpus device=3,4 -e NVIDIA_VISIBLE_DEVICES=4 box
	[ "$out" = 1 ] || fail "$out" "$err"
	run_box --gpus device=3,4 -e NVIDIA_VISIBLE_DEVICES=all box
	[ "$out" = 2 ]
	run_box --gpus device=3,4 -e NVIDIA_VISIBLE_DEVICES=none box sh -c 'ls /dev; ls /usr/local/nvidia; echo $N'
	[[ $out == *lib64*0 && $out != *nvidia3* ]] || fail "$out" "$err"
	run_box --gpus device=3 -e NVIDIA_VISIBLE_DEVICES=3,5 box
	expect_status 125
	expect_in "$err" "NVIDIA_VISIBLE_DEVICES" "not given to it: 5"
}

@test "an image that needs a GPU says so before anything starts" {
	make_host one
	make_box need '.gpu = {mode: "required", vramGiB: {min: 200, per: "gpu"}, computeCapability: {min: "9.9"},
		count: {min: 1, default: 1}} | .modes = {cpu: {gpu: {mode: "none"}, env: {N: "cpu"}}}'
	run_box need
	expect_status 2
	[ "$err" = "svrun: run need: the image needs GPUs, and was given none
hint: --gpus 1 gives it what it asks for; --mode cpu starts it without" ] || fail "$err"
	run_box --gpus 1 need
	expect_status 125
	expect_in "$err" vramGiB computeCapability "200 GiB"
	run_box --gpus device=0 need
	expect_status 125
	expect_in "$err" vramGiB computeCapability
	run_box --mode cpu need
	[ "$out" = cpu ] || fail "$err"
	run_box --gpus none need
	[ "$out" = 0 ] || fail "$err"
	make_box may '.gpu = {mode: "optional"}'
	run_box may
	[ "$out" = 0 ]
	[ -z "$(ls "$SVRUN_ROOT/instances")" ]
}

@test "NVIDIA_REQUIRE_ of an image is checked against the GPU that it would get" {
	make_host one
	make_box box
	run_box --gpus 1 -e "NVIDIA_REQUIRE_CUDA=cuda>=99.0 driver>=9999" box
	expect_status 125
	expect_in "$err" NVIDIA_REQUIRE_CUDA
	run_box --gpus 1 -e "NVIDIA_REQUIRE_CUDA=cuda>=99.0" -e NVIDIA_DISABLE_REQUIRE=true box
	[ "$out" = 1 ] || fail "$err"
}

# ---- who has what ----

@test "twenty launches at once over eight GPUs: eight get one each, the rest are told" {
	local until
	make_host eight
	make_box box
	for i in $(seq 20); do
		"$SVRUN" run --rm --name "r$i" --gpus 1 box sh -c 'ls /dev | busybox grep "^nvidia[0-9]"; busybox sleep 600' \
			>"$T/out.$i" 2>"$T/err.$i" &
	done
	# each has said its GPU, or why it has none: on a busy machine that takes its time
	until=$((SECONDS + 120))
	while [ $SECONDS -lt $until ]; do
		[ "$(for i in $(seq 20); do [ ! -s "$T/out.$i" ] && [ ! -s "$T/err.$i" ] || echo "$i"; done | wc -l)" -lt 20 ] || break
		sleep 0.05
	done
	[ "$(cat "$T"/out.* | sort -u | wc -l)" = 8 ] || fail "$(tail -n +1 "$T"/out.* "$T"/err.*)"
	[ "$(cat "$T"/out.* | wc -l)" = 8 ] || fail "$(tail -n +1 "$T"/out.*)"
	[ "$(grep -l '1 GPU asked for, 0 free; taken' "$T"/err.* | wc -l)" = 12 ] || fail "$(tail -n +1 "$T"/err.*)"
	# kill -9 frees
	for pid in $(jobs -p); do
		kill -9 "$pid" 2>/dev/null || true
	done
	until=$((SECONDS + 60))
	while [ $SECONDS -lt $until ]; do
		run_box --gpus all box
		[ "$status" != 0 ] || break
		sleep 0.05
	done
	[ "$out" = 8 ] || fail "$err"
}

@test "on WSL2 all is the one device that there is; none is counted, named or held" {
	make_host wsl
	make_box box '.gpu = {mode: "required", vramGiB: {min: 24}} | .env.NVIDIA_VISIBLE_DEVICES = "all"'
	run_box --gpus all box sh -c 'ls -d /dev/dxg; echo $N $NVIDIA_VISIBLE_DEVICES'
	expect_status 0
	[ "$out" = $'/dev/dxg\n1 void' ] || fail "$out"
	expect_in "$err" "WSL2: whether the GPUs are what the image needs cannot be told here"
	run_box --gpus 1 box
	expect_status 125
	expect_in "$err" "1 GPU asked for, and the host has none" "on WSL2 --gpus all gives what Windows has"
	run_box --gpus device=0 box
	expect_in "$err" "no GPU 0: WSL2 has one device for all of them"
	run_split "$SVRUN" gpu allocate all -- true
	expect_status 125
	expect_in "$err" "on WSL2 the GPUs are shared: none is held"
}

@test "what an image wishes for is no answer: without GPUs its variable is void" {
	make_host eight
	make_box box '.gpu = {mode: "optional", brands: ["geforce"]} | .env.NVIDIA_VISIBLE_DEVICES = "all"'
	for option in "" "--gpus none" "--mode cpu"; do
		# shellcheck disable=SC2086
		run_box $option box sh -c 'echo $NVIDIA_VISIBLE_DEVICES'
		expect_status 0
		[ "$out" = void ] || fail "$option: $out"
	done
	run_box -e NVIDIA_VISIBLE_DEVICES=0 box sh -c 'echo $NVIDIA_VISIBLE_DEVICES'
	[ "$out" = 0 ] || fail "$out"
	# a brand that is known is not asked of the driver
	run_box --gpus 1 box
	expect_status 125
	expect_in "$err" "brands: needs geforce, found nvidia (GPU 0, NVIDIA H200)"
	[[ $err != *"doctor --cuda"* ]] || fail "$err"
}

@test "an allocation is for all that runs within it, and for nobody else" {
	make_host eight
	make_box box
	run_split "$SVRUN" gpu allocate 2 -- sh -c "echo \$SVRUN_GPUS \$NVIDIA_VISIBLE_DEVICES; $SVRUN run --rm --gpus all box
		$SVRUN run --rm --gpus 3 box; $SVRUN run --rm --gpus device=5 box; env -u SVRUN_GPU_ALLOCATION $SVRUN run --rm --gpus 7 box"
	expect_status 125
	[ "$(sed -n 2p <<<"$out")" = 2 ] || fail "$out" "$err"
	[[ $out == "0,1 GPU-"*,GPU-* ]] || fail "$out"
	expect_in "$err" "3 GPUs asked for, and the allocation has 2" "GPU 5 (NVIDIA H200) is not of the allocation" \
		"7 GPUs asked for, 6 free; taken: GPU 0 (NVIDIA H200) by sh (process"
	run_split "$SVRUN" gpu allocate
	[ "$(grep -c ' free$' <<<"$out")" = 8 ] || fail "$out"
	out=$("$SVRUN" gpu allocate device=1 -- "$SVRUN" gpu allocate --format json)
	[ "$(jq -r '.schema, (.gpus[:2][] | .index, .state, .uuid[:4], (.by // "-")[:5])' <<<"$out" | tr '\n' ' ')" = \
		"svrun.gpu-allocate/1 0 free GPU- - 1 taken GPU- $(printf %.5s "$SVRUN") " ] || fail "$out"
	run_split "$SVRUN" gpu allocate 1
	expect_status 2
	run_split "$SVRUN" gpu allocate 1 -- sh -c 'exit 9'
	expect_status 9
	SVRUN_GPU_ALLOCATION=../locks run_box --gpus 1 box
	expect_status 125
	expect_in "$err" "the allocation '../locks' of GPUs has ended"
}

# ---- the same instance, with and without ----

@test "an instance moves from the CPU to GPUs and back, disk and all" {
	make_host eight
	make_box box '.modes = {cpu: {gpu: {mode: "none"}}} | .cmd = ["/bin/sh", "-c", "echo $N >> /log; ls -d /dev/nvidia[0-9]; ls /usr/local/nvidia /etc/ld.so.conf.d"]'
	"$SVRUN" run --name move --mode cpu box >/dev/null 2>&1 || true
	run_split "$SVRUN" start --gpus 2 move
	[[ $out == *"/dev/nvidia0"*"/dev/nvidia1"*lib64* ]] || fail "$out" "$err"
	[ "$("$SVRUN" start move | grep -c '^/dev/nvidia')" = 2 ]
	run_split "$SVRUN" start --mode cpu move
	[[ $out != *nvidia[0-9]* && $out != *lib64* && $out != *svrun-gpu* ]] || fail "$out"
	[ "$(<"$SVRUN_ROOT/instances/move/upper/log")" = "0
2
2
0" ]
	run_split "$SVRUN" start --gpus 9 move
	expect_status 125
	expect_in "$err" "start move: 9 GPUs asked for, and the host has 8"
	"$SVRUN" rm move
}

@test "restart gives a running instance GPUs, keeps them for it, and takes them back" {
	make_host one
	make_box box '.modes = {cpu: {gpu: {mode: "none"}}} | .cmd = ["/bin/sh", "-c", "echo $N; busybox sleep 60"]'
	"$SVRUN" run --name r --mode cpu box >"$T/1" 2>&1 &
	await_word "$T/1"
	"$SVRUN" restart --gpus 1 r >"$T/2" 2>&1 &
	await_word "$T/2"
	"$SVRUN" restart -e X=1 r >"$T/3" 2>&1 &
	await_word "$T/3"
	expect_in "$("$SVRUN" gpu allocate)" "GPU 0 (NVIDIA A10G)" "instance r"
	"$SVRUN" restart --mode cpu r >"$T/4" 2>&1 &
	await_word "$T/4"
	[ "$(cat "$T"/[1-4])" = "0
1
1
0" ] || fail "$(cat "$T"/[1-4])"
	expect_in "$("$SVRUN" gpu allocate)" " free"
	"$SVRUN" stop r
	"$SVRUN" rm r
}

@test "a new driver is what the next start gets; what runs keeps its files" {
	make_host one
	make_box box
	mkdir "$T/v"
	"$SVRUN" run --rm --name old --gpus 1 --gpus-shared -v "$T/v:/v" box sh -c \
		'ls /usr/local/nvidia/lib64; while [ ! -e /v/go ]; do busybox sleep 0.05; done; ls /usr/local/nvidia/lib64' >"$T/log" &
	await_word "$T/log"
	find "$T/host/usr" -name '*999.88.77*' -type f | while read -r f; do mv "$f" "${f//999.88.77/999.99.1}"; done
	sed -i 's/999\.88\.77/999.99.1/g' "$T/host/proc/driver/nvidia/version"
	run_box --gpus 1 --gpus-shared box ls /usr/local/nvidia/lib64
	expect_in "$out" libcuda.so.999.99.1
	[[ $out != *libcuda.so.999.88.77* ]] || fail "$out"
	touch "$T/v/go"
	wait $!
	[ "$(grep -c libcuda.so.999.88.77 "$T/log")" = 2 ] || fail "$(<"$T/log")"
}

# ---- devices ----

@test "--device gives a node as docker does, and nothing that is the host" {
	make_host none
	make_box box
	run_box --device /dev/fuse box sh -c 'look open /dev/fuse; ls /dev'
	[[ $out == "/dev/fuse ok"* ]] || fail "$out" "$err"
	run_box --device /dev/fuse:/dev/other:r box sh -c 'look open /dev/other; busybox dd if=/dev/other count=0 2>&1 >/dev/null && echo read'
	[[ $out == "/dev/other EPERM"*read* ]] || fail "$out" "$err"
	run_box --device /dev/fuse --cap-add MKNOD box look mknod /x 10 229
	[ "$out" = "/x EPERM" ] || fail "$out"
	mknod "$T/disk" b 7 7
	mknod "$T/mem" c 1 1
	mknod "$T/kmsg" c 1 11
	mknod "$T/msr" c 202 0
	mknod "$T/gpu" c 195 3
	ln -s /dev/null "$T/link"
	for pair in "disk|a disk is not given" "mem|the host's memory" "kmsg|the kernel's messages" "msr|registers" \
		"gpu|--gpus gives it" "link|is a link" "none|No such file"; do
		run_box --device "$T/${pair%|*}" box
		[ "$status" != 0 ]
		expect_in "$err" "--device $T/${pair%|*}" "${pair#*|}"
	done
	for word in "/dev/null:relative" "/dev/null:/x:rwx" "/dev/null:/x:" "nothing" "$T"; do
		run_box --device "$word" box
		expect_status 2
	done
}

@test "CDI devices are given by name, and a GPU among them is reserved" {
	make_host eight
	make_box box
	mkdir "$T/specs"
	jq -n --arg node "$T/host/dev/nvidia4" '{cdiVersion: "0.6.0", kind: "nvidia.com/gpu", devices: [
		{name: "four", containerEdits: {deviceNodes: [{path: "/dev/nvidia4", hostPath: $node}], env: ["CDI=yes"]}}]}' >"$T/specs/x.json"
	"$SVRUN" run --rm --cdi-spec-dir "$T/specs" --device nvidia.com/gpu=four box sh -c \
		'look open /dev/nvidia4; echo $N $CDI; busybox sleep 60' >"$T/log" &
	await_word "$T/log"
	sleep 0.1
	[ "$(tr '\n' ' ' <"$T/log")" = "/dev/nvidia4 ENXIO 1 yes " ] || fail "$(<"$T/log")"
	run_box --gpus device=4 box
	expect_status 125
	expect_in "$err" "taken: GPU 4 (NVIDIA H200) by instance"
	run_box --cdi-spec-dir "$T/specs" --device nvidia.com/gpu=five box
	expect_status 125
	expect_in "$err" "nvidia.com/gpu=five" "$T/specs"
}

# ---- how ----

@test "an ordinary start does not read the driver's library" {
	command -v strace >/dev/null || skip "needs strace"
	make_host one
	make_box box
	run_box --gpus 1 box
	strace -f -o "$T/trace" -e trace=open,openat,openat2,mmap,execve "$SVRUN" run --rm --gpus 1 box >/dev/null
	grep -q nvidia "$T/trace"
	! grep libcuda "$T/trace" | grep -v O_PATH | grep 'open' || fail "$(grep libcuda "$T/trace")"
}

@test "tests that need a GPU run with one" {
	make_host eight
	make_box tested '.gpu = {mode: "required", count: {min: 1, default: 2}} |
		.tests = [{id: "two", stage: "run", type: "exec", needs: "gpu", argv: ["/bin/sh", "-c", "echo $N ${runtime:gpus} $(echo /dev/nvidia[0-9])"],
			expect: {stdout: {equals: "2 2 /dev/nvidia0 /dev/nvidia1\n"}}}]'
	run_split "$SVRUN" image test "$APP"
	expect_status 0
	expect_in "$out" "1 passed"
}
