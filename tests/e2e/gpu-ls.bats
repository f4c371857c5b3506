#!/usr/bin/env bats
# svrun gpu ls, topology, fits. The hosts are tests/gpu/make-root's: proc and sys as the drivers print them,
# real nodes behind which nobody answers.
load helpers

setup_file() {
	local kind
	[ "$(id -u)" = 0 ] || return 0
	for kind in none one eight mig minors longdomain old excluded twice amd wsl; do
		"$BATS_TEST_DIRNAME/../gpu/make-root" $kind "$BATS_FILE_TMPDIR/$kind" nodriver
	done
}

setup() {
	need_root
	T=$BATS_TEST_TMPDIR
	export SVRUN_ROOT=$T/store
}

host() { # KIND: a copy to change
	HOST=$T/host
	rm -rf "$HOST"
	cp -a "$BATS_FILE_TMPDIR/$1" "$HOST"
	export SVRUN_GPU_ROOT=$HOST
}

list() { # JQ-FILTER
	run_split "$SVRUN" gpu ls --format json
	expect_status 0 && jq -r "$1" <<<"$out"
}

@test "a host without GPUs has none, and that is no error" {
	host none
	run_split "$SVRUN" gpu ls
	expect_status 0
	[ "$out" = "no GPU" ]
	[ "$(list '.gpus | length')" = 0 ]
	run_split "$SVRUN" gpu topology
	[ "$out" = "no GPU" ]
	rm -rf "${HOST:?}"/*
	[ "$(list '.gpus | length')" = 0 ]
}

@test "another root that is not there is an error" {
	SVRUN_GPU_ROOT=$T/gone run_split "$SVRUN" gpu ls
	expect_status 125
	expect_in "$err" "SVRUN_GPU_ROOT: $T/gone: No such file"
}

@test "one GPU: model, memory, place, and the CUDA that the driver serves at least" {
	host one
	run_split "$SVRUN" gpu ls
	expect_status 0
	expect_in "$out" "NVIDIA driver 999.88.77 (open modules), CUDA 13.2 or newer" "NVIDIA A10G" "22.4 GiB" \
		"0000:00:1e.0" "GPU-5a000000-0123-4567-89ab-0123456789ab" "free"
	[ "$(list '.gpus[0] | "\(.index) \(.minor) \(.computeCapability) \(.knownFrom) \(.nodes[]) \(.dri|join(","))"')" = \
		"0 0 8.6 model /dev/nvidia0 /dev/dri/card1,/dev/dri/renderD128" ]
	[ "$(list '"\(.driver) \(.openModules) \(.cuda) \(.cudaOrNewer)"')" = "999.88.77 true 13.2 true" ]
}

@test "indexes follow the bus, nodes the minor" {
	host minors
	[ "$(list '.gpus[] | "\(.index) \(.bus) \(.minor) \(.nodes[0])"')" = "0 0000:01:00.0 2 /dev/nvidia2
1 0000:02:00.0 3 /dev/nvidia3
2 0000:c3:00.0 0 /dev/nvidia0
3 0000:c4:00.0 1 /dev/nvidia1" ]
	host longdomain
	[ "$(list '.gpus[] | "\(.index) \(.bus) \(.minor) \(.numa)"')" = "0 0002:00:00.0 1 1
1 10001:00:00.0 0 0" ]
}

@test "an excluded GPU is listed, has no index, and is given to nobody" {
	host excluded
	[ "$(list '.gpus[] | "\(.index) \(.state)"')" = "0 free
null excluded
1 free" ]
	run_split "$SVRUN" gpu allocate 0000:02:00.0 -- true
	expect_status 125
	expect_in "$err" "the GPU at 0000:02:00.0 is excluded by the configuration of the driver"
	run_split "$SVRUN" gpu allocate 3 -- true
	expect_status 125
}

@test "an old driver's names are understood" {
	host old
	[ "$(list '.gpus[0] | "\(.model) \(.firmware) \(.numa) \(.brand)"')" = "Tesla T4 null null tesla" ]
	[ "$(list .openModules)" = false ]
}

@test "MIG devices have the nodes of their two capabilities, and no others" {
	host mig
	[ "$(list '.gpus[0].mig[] | "\(.name) \(.gpuInstance) \(.computeInstance) \(.nodes|map(sub("/dev/nvidia-caps/nvidia-cap"; ""))|join(" "))"')" = \
		"0:0 1 0 12 13
0:1 1 1 12 14
0:2 5 0 48 49" ]
	[ "$(list '.gpus[] | "\(.state) \(.mig|length)"')" = "split 3
free 0" ]
	run_split "$SVRUN" gpu ls
	expect_in "$out" "0:1      MIG, instances 1 and 1"
	# the driver makes another instance: the next look sees it
	mkdir -p "$HOST/proc/driver/nvidia/capabilities/gpu1/mig/gi0/ci0"
	echo 'DeviceFileMinor: 138' >"$HOST/proc/driver/nvidia/capabilities/gpu1/mig/gi0/access"
	echo 'DeviceFileMinor: 139' >"$HOST/proc/driver/nvidia/capabilities/gpu1/mig/gi0/ci0/access"
	[ "$(list '.gpus[1].mig[].nodes | join(" ")')" = "/dev/nvidia-caps/nvidia-cap138 /dev/nvidia-caps/nvidia-cap139" ]
}

@test "AMD's GPUs are those of KFD, and WSL is told" {
	host amd
	[ "$(list '.gpus[] | "\(.maker) \(.index) \(.arch) \(.vramMiB) \(.knownFrom) \(.nodes[0]) \(.uuid)"')" = \
		"amd 0 gfx942 196592 sysfs /dev/dri/renderD128 GPU-c0ffee0000000001
amd 1 gfx942 196592 sysfs /dev/dri/renderD129 GPU-c0ffee0000000002" ]
	host wsl
	[ "$(list '"\(.wsl) \(.gpus|length)"')" = "true 0" ]
}

@test "who has a GPU is told" {
	host minors
	run_split "$SVRUN" gpu allocate device=1,3 -- "$SVRUN" gpu ls --format json
	expect_status 0
	[ "$(jq -r '.gpus[] | .state' <<<"$out" | tr '\n' ' ')" = "free taken free taken " ]
	[[ $(jq -r '.gpus[1].by' <<<"$out") == *[0-9]* ]]
	[ "$(list '[.gpus[].state] | unique[]')" = free ]
	host mig
	run_split "$SVRUN" gpu allocate 0:1 -- "$SVRUN" gpu ls --format json
	expect_status 0
	[ "$(jq -r '.gpus[0] | [.state, .mig[].state] | join(" ")' <<<"$out")" = "split free taken free" ]
}

@test "a program that got a MIG device finds it by the name that CUDA has for it" {
	host mig
	run_split "$SVRUN" gpu allocate 0:1,1 -- printenv CUDA_VISIBLE_DEVICES
	expect_status 0
	[ "$out" = "MIG-GPU-5a000000-0123-4567-89ab-0123456789ab/1/1,GPU-5a000001-0123-4567-89ab-0123456789ab" ] || fail "$out"
}

@test "a program that is not there, or is none, ends an allocation with 127 and 126" {
	host one
	run_split "$SVRUN" gpu allocate 1 -- /no/such
	expect_status 127
	expect_in "$err" "start /no/such: No such file or directory"
	run_split "$SVRUN" gpu allocate 1 -- /
	expect_status 126
}

@test "topology: the words of nvidia-smi, from places in sysfs" {
	host minors
	run_split "$SVRUN" gpu topology --format json
	expect_status 0
	[ "$(jq -r '.places[0] | "\(.paths.GPU1) \(.paths.GPU2) \(.numa) \(.cpus)"' <<<"$out")" = "PHB SYS 0 0-31" ]
	[ "$(jq -r '.places[2].paths.GPU3' <<<"$out")" = PIX ]
	host amd
	run_split "$SVRUN" gpu topology
	expect_in "$out" "AMD0     X       XGMI" "XGMI  AMD's links between GPUs"
	host eight
	run_split "$SVRUN" gpu topology --format json
	[ "$(jq -r '.places | length' <<<"$out")" = 12 ]
	[ "$(jq -r '.schema, (.places[7] | .index, .uuid[:4])' <<<"$out" | tr '\n' ' ')" = "svrun.gpu-topology/1 7 GPU- " ]
	[ "$(jq -r '.places[0].paths | "\(.GPU7) \(.mlx5_0) \(.mlx5_1)"' <<<"$out")" = "NVL PIX NODE" ]
	[ "$(jq -r '.places[7].paths.mlx5_0' <<<"$out")" = SYS ]
	# without the switches nothing tells of links
	rm "$HOST"/dev/nvidia-nvswitch*
	sed -i '/nvidia-nvswitch/d' "$HOST/proc/devices"
	run_split "$SVRUN" gpu topology --format json
	[ "$(jq -r '.places[0].paths | "\(.GPU1) \(.GPU7)"' <<<"$out")" = "NODE SYS" ]
}

# ---- what is broken ----

@test "a GPU that is there twice is refused: it would be given away twice" {
	host twice
	run_split "$SVRUN" gpu ls
	expect_status 125
	expect_in "$err" "the GPUs at 0000:01:00.0 and 0000:02:00.0 have the same UUID" "load its module anew, or boot again"
}

@test "files of proc that are cut off, endless or no files are refused by name, at once" {
	local f=proc/driver/nvidia/gpus/0000:00:1e.0/information
	host one
	head -c 150 "$HOST/$f" >"$HOST/cut" && mv "$HOST/cut" "$HOST/$f"
	run_split "$SVRUN" gpu ls
	expect_status 125
	expect_in "$err" "$f: \"Bus Location\" is missing"
	host one
	truncate -s 1G "$HOST/$f"
	run_split timeout 10 "$SVRUN" gpu ls
	expect_status 125
	expect_in "$err" "$f"
	host one
	rm "$HOST/$f" && mkfifo "$HOST/$f"
	run_split timeout 10 "$SVRUN" gpu ls
	expect_status 125
	expect_in "$err" "$f is not a regular file"
	host one
	rm "$HOST/$f" && ln -s /etc/passwd "$HOST/$f"
	run_split "$SVRUN" gpu ls
	expect_status 125
	expect_in "$err" "$f"
	host one
	sed -i 's/Device Minor: \t 0/Device Minor: \t 255/' "$HOST/$f"
	run_split "$SVRUN" gpu ls
	expect_status 125
	expect_in "$err" "\"255\" is no value of \"Device Minor\""
	host one
	sed -i 's/A10G/\x1b[2J/' "$HOST/$f"
	run_split "$SVRUN" gpu ls
	expect_status 0
	expect_in "$out" "?[2J"
}

@test "a name that fits two GPUs, or none, is told with what there is" {
	host minors
	run_split "$SVRUN" gpu allocate GPU-5a -- true
	expect_status 2
	expect_in "$err" "'GPU-5a' fits 4 of the host's GPUs"
	run_split "$SVRUN" gpu allocate device=9 -- true
	expect_status 125
	expect_in "$err" "no GPU 9: the host has 0 (NVIDIA GeForce RTX 4090, GPU-5a000000-"
}

as_nobody() {
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

@test "it needs no rights, and a program that has some by its file takes no other root" {
	local bin
	need_program setpriv
	host one
	bin=$(mktemp -d /tmp/svrun-gpu-ls.XXXXXX)
	cp "$SVRUN" "$bin/svrun"
	mv "$HOST" "$bin/host"
	chmod -R go+rX "$bin"
	SVRUN_GPU_ROOT=$bin/host run_split as_nobody "$bin/svrun" gpu ls
	if [ "$status" = 0 ] && command -v setcap >/dev/null; then
		setcap cap_net_raw+ep "$bin/svrun"
		SVRUN_GPU_ROOT=$bin/host run as_nobody "$bin/svrun" gpu ls
	fi
	rm -rf "$bin"
	expect_in "$out" "NVIDIA A10G"
	command -v setcap >/dev/null || skip "needs setcap"
	[ "$status" = 125 ]
	expect_in "$output" "SVRUN_GPU_ROOT is not for a program that gained rights by its file"
}

# ---- fits ----

app() { # GPU-BLOCK [ENV]
	mkdir -p "$T/app"
	jq -n --argjson gpu "$1" --argjson env "${2:-{\}}" '{schema: "svrun.image/1", name: "fitted", version: "1.0.0",
		title: "Fitted", description: "Needs GPUs.", category: "base", licenses: ["MIT"], base: {type: "scratch"},
		files: [{id: "f", dest: "/f", inline: "x"}], entrypoint: ["/f"], env: $env}
		+ (if $gpu then {gpu: $gpu} else {} end)' >"$T/app/manifest.json"
}

verdict() { # APP-OR-IMAGE: exit status, and what is not met
	run_split "$SVRUN" gpu fits --format json "$1"
	[ "$status" -lt 2 ] || fail "$err" || return 1
	echo "$status $(jq -r '(if .withoutGpu then "without: " else "" end) + ([.needs[] | select(.met | not) | .what] | join(","))' \
		<<<"$out")"
}

@test "an app and its image are judged the same, with exit status 0 or 1" {
	app '{"mode": "required", "count": {"min": 2}, "vramGiB": {"min": 24, "per": "gpu"},
		"computeCapability": {"min": "8.0"}, "driver": {"min": "525"}, "cuda": {"min": "12.0"}}'
	"$SVRUN" image lock "$T/app"
	"$SVRUN" image build "$T/app"
	host minors
	[ "$(verdict "$T/app")" = "0 " ]
	[ "$(verdict fitted:1.0.0)" = "0 " ]
	host one
	[ "$(verdict "$T/app")" = "1 count.min" ]
	[ "$(verdict fitted:1.0.0)" = "1 count.min" ]
	host old
	[ "$(verdict "$T/app")" = "1 vramGiB.min,computeCapability.min,NVIDIA_REQUIRE_CUDA,count.min" ]
	[ "$(verdict fitted:1.0.0)" = "1 vramGiB.min,computeCapability.min,NVIDIA_REQUIRE_CUDA,count.min" ]
	run_split "$SVRUN" gpu fits "$T/app"
	expect_status 1
	expect_in "$out" "no   vramGiB.min" "24 GiB on each GPU" "15.0 GiB (GPU 0, Tesla T4)" "does not fit"
	host none
	[ "$(verdict "$T/app")" = "1 vramGiB.min,computeCapability.min,driver.min,cuda.min,NVIDIA_REQUIRE_CUDA,count.min" ]
}

@test "an optional GPU fits everywhere; links and RDMA where there are some" {
	app '{"mode": "optional", "vramGiB": {"min": 24}}'
	host none
	[ "$(verdict "$T/app")" = "0 without: vramGiB.min" ]
	app '{"mode": "optional", "brands": ["geforce"]}'
	host eight
	[ "$(verdict "$T/app")" = "0 without: brands,NVIDIA_REQUIRE_CUDA" ]
	run_split "$SVRUN" gpu fits "$T/app"
	expect_status 0
	expect_in "$out" "--   brands" "geforce" "nvidia (GPU 0, NVIDIA H200)" "$T/app fits, without a GPU"
	app '{"mode": "optional", "brands": ["nvidia"]}'
	[ "$(verdict "$T/app")" = "0 " ]
	app '{"mode": "required", "count": {"min": 8}, "interconnect": "nvlink"}'
	host eight
	[ "$(verdict "$T/app")" = "0 " ]
	app '{"mode": "required", "count": {"min": 2}, "interconnect": "nvlink"}'
	host minors
	[ "$(verdict "$T/app")" = "1 interconnect" ]
	app '{"mode": "required", "interconnect": "rdma"}'
	[ "$(verdict "$T/app")" = "1 interconnect" ]
	host eight
	[ "$(verdict "$T/app")" = "0 " ]
	app '{"mode": "required", "mig": "denied", "count": {"min": 2}}'
	host mig
	[ "$(verdict "$T/app")" = "1 mig,count.min" ]
	app '{"mode": "required", "vendor": "amd"}'
	host amd
	[ "$(verdict "$T/app")" = "0 " ]
}

@test "images of others: NVIDIA_REQUIRE_CUDA, and those from before it" {
	app null '{"CUDA_VERSION": "10.2.89"}'
	"$SVRUN" image lock "$T/app"
	"$SVRUN" image build "$T/app"
	host one
	[ "$(verdict fitted:1.0.0)" = "0 " ]
	host none
	[ "$(verdict fitted:1.0.0)" = "1 CUDA_VERSION" ]
	app null '{"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_REQUIRE_CUDA": "cuda>=12.0 brand=tesla,driver>=450"}'
	[ "$(verdict "$T/app")" = "1 NVIDIA_REQUIRE_CUDA" ]
	host one
	[ "$(verdict "$T/app")" = "0 " ]
	app null '{"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_REQUIRE_CUDA": "cuda=>12.0"}'
	run_split "$SVRUN" gpu fits "$T/app"
	expect_status 125
	expect_in "$err" "NVIDIA_REQUIRE_CUDA: 'cuda=>12.0' is no requirement like cuda>=12.8"
	app null
	run_split "$SVRUN" gpu fits "$T/app"
	expect_status 0
	expect_in "$out" "has no requirements of GPUs"
	run_split "$SVRUN" gpu fits nobody:1
	expect_status 125
}
