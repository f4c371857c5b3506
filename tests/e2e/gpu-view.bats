#!/usr/bin/env bats
# The driver's files in a container: on hosts that tests/gpu/make-root makes up, in images with this system's own
# dynamic loader, and in hostile ones.

load helpers

V=999.88.77

make_host() { # KIND [LAYOUT]
	need_root
	HOST=$T/host.${2:-$1}
	"$TOP/tests/gpu/make-root" "$1" "$HOST" "${@:2}"
	export SVRUN_GPU_ROOT=$HOST
}

more_teardown() {
	local pid
	for pid in $(jobs -p); do
		kill -9 "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
}

# The image NAME: glibc with its loader and ldconfig as this system has them, and a shell.
make_glibc() { # NAME [JQ-FILTER]
	[ -x /bin/busybox ] || skip "needs busybox-static"
	[ -d "$T/store" ] || new_store
	APP=$T/$1
	mkdir -p "$APP"
	cp /bin/busybox /sbin/ldconfig /bin/true "$APP/"
	cp -L /lib64/ld-linux-x86-64.so.2 /lib/x86_64-linux-gnu/libc.so.6 "$APP/"
	echo 'int own(void) { return 1; }' >"$T/own.c"
	gcc -shared -nostdlib -Wl,-soname,libcuda.so.1 -o "$APP/libcuda.so.1" "$T/own.c"
	printf 'include /etc/ld.so.conf.d/*.conf\n' >"$APP/ld.so.conf"
	printf '/opt/own\n' >"$APP/own.conf"
	jq -n --arg name "$1" '{
		schema: "svrun.image/1", name: $name, version: "1", base: {type: "scratch"},
		files: [
			{dest: "/bin/busybox", from: "busybox", mode: "0755"},
			{dest: "/bin/true", from: "true", mode: "0755"},
			{dest: "/sbin/ldconfig", from: "ldconfig", mode: "0755"},
			{dest: "/lib64/ld-linux-x86-64.so.2", from: "ld-linux-x86-64.so.2", mode: "0755"},
			{dest: "/lib/x86_64-linux-gnu/libc.so.6", from: "libc.so.6", mode: "0755"},
			{dest: "/opt/own/libcuda.so.1", from: "libcuda.so.1", mode: "0755"},
			{dest: "/etc/ld.so.conf", from: "ld.so.conf"},
			{dest: "/etc/ld.so.conf.d/own.conf", from: "own.conf"}
		],
		links: [{path: "/bin/sh", target: "busybox"}],
		env: {PATH: "/bin:/usr/bin:/sbin"},
		cmd: ["/bin/sh"],
		build: {epoch: 1767225600}
	}' | jq "${2:-.}" >"$APP/manifest.json"
	lock_and_build "$APP" >/dev/null
}

# What the loader of a container makes of a library's name: for sh -c.
finds() { # NAME
	echo "/lib64/ld-linux-x86-64.so.2 --preload $1 --list /bin/true | busybox grep $1"
}

run_it() { # OPTION... IMAGE SCRIPT
	run_split "$SVRUN" run --rm "${@:1:$#-1}" sh -c "${!#}"
}

@test "the loader finds the driver without any variable, and an ldconfig inside keeps it" {
	make_host eight
	make_glibc box
	run_it --gpus 1 box "$(finds libcuda.so.1); $(finds libnvidia-ml.so.1); ldconfig; $(finds libnvidia-ml.so.1)"
	expect_status 0
	expect_in "$out" "libcuda.so.1 => /usr/local/nvidia/lib64/libcuda.so.1 ("
	[ "$(grep -c 'libnvidia-ml.so.1 => /usr/local/nvidia/lib64/libnvidia-ml.so.1 (' <<<"$out")" = 2 ] || fail "$out"
	# before the image's own library of that name, which is what it has without a GPU
	run_it box "ldconfig; $(finds libcuda.so.1)"
	expect_in "$out" "libcuda.so.1 => /opt/own/libcuda.so.1 ("
}

@test "programs, links and configuration are where they are looked for" {
	make_host eight
	make_glibc box
	run_it --gpus 1 -e NVIDIA_DRIVER_CAPABILITIES=all box 'nvidia-smi && echo runs
		for f in /etc/OpenCL/vendors/nvidia.icd /usr/share/vulkan/icd.d/nvidia_icd.json /usr/local/nvidia/lib64/libcuda.so; do
			busybox test -s $f && echo $f
		done; (: >/usr/local/nvidia/x); (: >>/usr/bin/nvidia-smi)'
	expect_in "$out" runs /etc/OpenCL/vendors/nvidia.icd /usr/share/vulkan/icd.d/nvidia_icd.json lib64/libcuda.so
	expect_in "$err" "/usr/local/nvidia/x: Read-only file system" "/usr/bin/nvidia-smi: Read-only file system"
}

@test "nothing of the driver is in what an instance keeps" {
	make_host one
	make_glibc box
	local wanted="libcuda.so.1 => /usr/local/nvidia/lib64/libcuda.so.1 ("
	run_split "$SVRUN" run --name kept --gpus 1 box sh -c "$(finds libcuda.so.1)"
	expect_in "$out" "$wanted"
	[ -z "$(find "$SVRUN_ROOT/instances/kept/upper" -mindepth 1)" ] ||
		fail "$(find "$SVRUN_ROOT/instances/kept/upper")"
	# what it has changed lies over that, and is put right at the next start
	run_split "$SVRUN" run --name own --gpus 1 box sh -c "$(finds libcuda.so.1); : >/etc/ld.so.cache"
	expect_in "$out" "$wanted"
	run_split "$SVRUN" start own
	expect_status 0
	expect_in "$out" "$wanted"
	# as is a volume in the way, which itself stays as it is
	mkdir "$T/volume"
	: >"$T/volume/ld.so.cache"
	run_it --gpus 1 -v "$T/volume:/etc" box "$(finds libcuda.so.1)"
	expect_in "$out" "$wanted"
	[ "$(find "$T/volume" -size 0 -type f)" = "$T/volume/ld.so.cache" ]
}

@test "every layout of a host gives the same container" {
	make_glibc box
	for layout in nixos cos operator split; do # others: tests/unit/test_view.c
		make_host one "$layout"
		run_it --gpus all box "$(finds libcuda.so.1); busybox readlink -f /usr/local/nvidia/lib64/libcuda.so.1; nvidia-smi && echo runs"
		expect_status 0
		expect_in "$out" "libcuda.so.1 => /usr/local/nvidia/lib64/libcuda.so.1 (" "/lib64/libcuda.so.$V" runs
	done
}

@test "a read-only root has the driver, too" {
	make_host eight
	make_glibc box
	run_it --gpus 1 --read-only box "$(finds libcuda.so.1); nvidia-smi && echo runs; : >/x"
	expect_in "$out" "libcuda.so.1 => /usr/local/nvidia/lib64/libcuda.so.1 (" runs
	expect_in "$err" "/x: Read-only file system"
}

@test "an image of musl gets its path file, and no cache" {
	make_host eight
	make_glibc box 'del(.files[] | select(.dest | test("ld.so|lib64|libc.so"))) |
		.files += [{dest: "/lib/ld-musl-x86_64.so.1", from: "true", mode: "0755"}]'
	run_it --gpus 1 box 'busybox cat /etc/ld-musl-x86_64.path; busybox ls /etc/ld.so.cache'
	expect_in "$out" "/usr/local/nvidia/lib64
/lib
/usr/local/lib
/usr/lib"
	expect_in "$err" "No such file"
}

@test "an instance that goes on without GPUs has the cache it had before" {
	make_host eight
	make_glibc box
	"$SVRUN" run --name i --gpus 1 box sh -c "$(finds libcuda.so.1)" | grep -q '/usr/local/nvidia/lib64/libcuda.so.1 ('
	run_split "$SVRUN" restart --gpus none i
	[[ $out != *nvidia* ]] || fail "$out"
	run_split "$SVRUN" restart --gpus 1 i
	expect_in "$out" "=> /usr/local/nvidia/lib64/libcuda.so.1 ("
	"$SVRUN" rm i
}

@test "a driver that needs a newer glibc than the image has is refused before the start" {
	make_host newglibc
	make_glibc box
	echo 'int f(void) { return 1; }' >"$T/t.c"
	echo 'GLIBC_2.2.5 { }; GLIBC_2.17 { f; } GLIBC_2.2.5;' >"$T/map"
	gcc -shared -nostdlib -Wl,-soname,libc.so.6,--version-script="$T/map" -o "$APP/libc.so.6" "$T/t.c"
	lock_and_build "$APP" >/dev/null
	run_it --gpus 1 box 'echo started'
	[ "$status" != 0 ]
	[ -z "$out" ] || fail "$out"
	expect_in "$err" "the GPU driver needs glibc 2.34, and the image has 2.17"
}

@test "files of a driver that are not fit to be given away stop the start, by name" {
	make_host hostile
	make_glibc box
	run_it --gpus 1 box 'echo started'
	[ "$status" != 0 ]
	[ -z "$out" ] || fail "$out"
	expect_in "$err" "driver file"
	[ -z "$(ls "$HOST/run/svrun/gpu/views")" ] || fail "a view is left"
}

@test "hostile images: links in the way of the driver's files lead nowhere but into the image" {
	make_host eight
	make_glibc box 'del(.files[] | select(.dest | test("/etc/"))) | .links += [
		{path: "/etc", target: "../../../../../../../../../../tmp/svrun-astray"},
		{path: "/usr/local", target: "/"},
		{path: "/usr/bin", target: "/proc/self/root/tmp"},
		{path: "/usr/share", target: "/tmp/svrun-astray"}]'
	run_it --gpus 1 -e NVIDIA_DRIVER_CAPABILITIES=all box 'busybox ls /nvidia/lib64/libcuda.so.1'
	expect_status 0
	expect_in "$out" /nvidia/lib64/libcuda.so.1
	[ ! -e /tmp/svrun-astray ] && [ ! -e /tmp/nvidia-smi ] && [ ! -e /nvidia ]
}

@test "hostile images: files that stand for the loader's are links to the host's" {
	make_host eight
	echo precious >"$T/precious"
	make_glibc box ".files |= map(select(.dest | test(\"/etc/\") | not)) | .links += [
		{path: \"/etc/ld.so.cache\", target: \"$T/precious\"},
		{path: \"/etc/ld.so.conf\", target: \"$T/precious\"},
		{path: \"/etc/ld.so.conf.d/00-svrun-gpu.conf\", target: \"$T/precious\"},
		{path: \"/usr/bin/nvidia-smi\", target: \"$T/precious\"}]"
	run_it --gpus 1 box "$(finds libcuda.so.1)"
	expect_in "$out" "=> /usr/local/nvidia/lib64/libcuda.so.1 ("
	[ "$(<"$T/precious")" = precious ]
}

@test "hostile images: what they preload is loaded by nobody but themselves" {
	make_host eight
	echo '__attribute__((constructor)) static void f(void) { __builtin_trap(); }' >"$T/t.c"
	mkdir "$T/box"
	gcc -shared -nostdlib -fPIC -o "$T/box/evil.so" "$T/t.c"
	make_glibc box '.env += {LD_PRELOAD: "/evil.so", LD_LIBRARY_PATH: "/"} |
		.files += [{dest: "/evil.so", from: "evil.so"}]'
	run_it --gpus 1 box 'echo reached' # busybox is static
	expect_status 0
	expect_in "$out" reached
}
