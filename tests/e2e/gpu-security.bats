#!/usr/bin/env bats
# What has broken other GPU toolkits, tried here: hostile images and instances, CDI specs, races, kills. Rows that are
# elsewhere: minors and mknod (CVE-2021-1056), LD_PRELOAD and images that ask for all GPUs in gpu-run.bats and
# gpu-view.bats; hooks of svrun-oci (CVE-2025-23266) in cdi.bats; swaps at the moment of a write in test_edits-fill.c.

# shellcheck disable=SC2016 # what stands in single quotes is for a shell inside

load helpers

make_host() {
	need_root
	"$TOP/tests/gpu/make-root" eight "$T/host"
	export SVRUN_GPU_ROOT=$T/host
}

# The image NAME: busybox, and glibc's loader, which tells where it finds the driver.
make_box() { # NAME [JQ-FILTER]
	[ -x /bin/busybox ] || skip "needs busybox-static"
	[ -d "$T/store" ] || new_store
	APP=$T/$1
	mkdir -p "$APP"
	cp /bin/busybox /bin/true /sbin/ldconfig "$APP/"
	cp -L /lib64/ld-linux-x86-64.so.2 /lib/x86_64-linux-gnu/libc.so.6 "$APP/"
	jq -n --arg name "$1" '{
		schema: "svrun.image/1", name: $name, version: "1", base: {type: "scratch"},
		files: [{dest: "/bin/busybox", from: "busybox", mode: "0755"}, {dest: "/bin/true", from: "true", mode: "0755"},
			{dest: "/sbin/ldconfig", from: "ldconfig", mode: "0755"},
			{dest: "/lib64/ld-linux-x86-64.so.2", from: "ld-linux-x86-64.so.2", mode: "0755"},
			{dest: "/lib/x86_64-linux-gnu/libc.so.6", from: "libc.so.6", mode: "0755"}],
		links: [{path: "/bin/sh", target: "busybox"}, {path: "/bin/ls", target: "busybox"}],
		env: {PATH: "/bin:/sbin"}, cmd: ["/bin/sh"], build: {epoch: 1767225600}
	}' | jq "${2:-.}" >"$APP/manifest.json"
	lock_and_build "$APP" >/dev/null
}

FINDS='/lib64/ld-linux-x86-64.so.2 --preload libcuda.so.1 --list /bin/true | busybox grep libcuda'
FOUND="libcuda.so.1 => /usr/local/nvidia/lib64/libcuda.so.1 ("

more_teardown() {
	local pid
	for pid in $(jobs -p); do
		kill -9 "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	[ -z "${SVRUN_ROOT-}" ] || "$SVRUN" ps >/dev/null 2>&1 || true
}

# ---- what stands in the way ----

@test "an instance that left pipes, folders, links and endless files in the loader's place starts with GPUs in its time" {
	make_host
	make_box box
	local way
	local -a ways=(
		'mkfifo /etc/ld.so.cache'
		'mkfifo /etc/ld.so.conf; busybox mkdir /etc/ld.so.conf.d; busybox mkfifo /etc/ld.so.conf.d/00-svrun-gpu.conf'
		'truncate -s 2G /etc/ld.so.cache'
		'mkdir /etc/ld.so.conf.d; busybox truncate -s 2G /etc/ld.so.conf.d/00-svrun-gpu.conf /etc/ld.so.conf'
		'ln -s /proc/self/mem /etc/ld.so.conf; busybox ln -s /proc/kmsg /etc/ld.so.cache'
		'ln -s ld.so.cache /etc/ld.so.cache'
		'ln /lib/x86_64-linux-gnu/libc.so.6 /etc/ld.so.cache'
		'mkdir -p /usr/local; busybox ln -s /../../../../../tmp /usr/local/nvidia; busybox mkdir /tmp'
		'mkdir -p /etc/ld.so.conf.d; echo "include /etc/ld.so.conf" >/etc/ld.so.conf'
		'mkdir -p /etc/ld.so.conf.d; busybox printf "# link\t/../../etc/passwd\tx\n# file\t/bin/true\n" >/etc/ld.so.conf.d/00-svrun-gpu.conf'
	)
	for way in "${ways[@]}"; do
		"$SVRUN" run --name i box sh -c "if [ -e /done ]; then $FINDS; else busybox $way; >/done; fi"
		run_split timeout -k 1 20 "$SVRUN" start --gpus 1 i
		expect_status 0 || fail "$way"
		expect_in "$out" "$FOUND" || fail "$way"
		"$SVRUN" rm i >/dev/null
	done
	# what is in the mount point's place is told
	"$SVRUN" run --name i box sh -c 'busybox mkdir -p /usr/local; >/usr/local/nvidia'
	run_split "$SVRUN" start --gpus 1 i
	expect_status 125
	expect_in "$err" "/usr/local/nvidia in the root is not a directory"
}

@test "a volume whose folders are swapped for links while containers start: nothing of the host is touched" {
	make_host
	make_box box
	cat >"$T/swap.c" <<-'END'
		#define _GNU_SOURCE
		#include <stdio.h>
		#include <fcntl.h>
		#include <sys/stat.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			if (argc != 4 || chdir(argv[1]) || symlink(argv[3], "other"))
				return 1;
			while (getppid() != 1) {
				mkdir(argv[2], 0755);
				renameat2(AT_FDCWD, argv[2], AT_FDCWD, "other", RENAME_EXCHANGE);
				renameat2(AT_FDCWD, argv[2], AT_FDCWD, "other", RENAME_EXCHANGE);
				rmdir(argv[2]);
			}
		}
	END
	gcc -O2 -o "$T/swap" "$T/swap.c"
	mkdir "$T/local" "$T/usr" "$T/target"
	"$T/swap" "$T/local" nvidia "/../../../../../../..$T/target" &
	"$T/swap" "$T/usr" local "/../../../../../../..$T/target" &
	for _ in $(seq 30); do
		"$SVRUN" run --rm --gpus 1 -v "$T/local:/usr/local" box true >>"$T/log" 2>&1 || true
		"$SVRUN" run --rm --gpus 1 -v "$T/usr:/usr" box true >>"$T/log" 2>&1 || true
	done
	[ -z "$(ls -A "$T/target")" ] || fail "$(ls -lR "$T/target")"
	! grep -F " $T/target" /proc/self/mountinfo
	! grep -vE 'warning: the container has no place|/usr/local|make it in the volume first' "$T/log"
}

@test "CVE-2024-0132, CVE-2025-23359: compat libraries behind links are not used, and nothing is mounted of them" {
	make_host
	mkdir "$T/evil"
	echo 'int f(void) { return 1; }' >"$T/t.c"
	gcc -shared -nostdlib -Wl,-soname,libcuda.so.1 -o "$T/evil/libcuda.so.1000.1.1" "$T/t.c"
	make_box linked ".links += [{path: \"/usr/local/cuda/compat\", target: \"../../../../../../../../..$T/evil\"}]"
	mkdir "$T/inside"
	cp "$T/evil/libcuda.so.1000.1.1" "$T/inside/"
	make_box file ".links += [{path: \"/usr/local/cuda/compat/libcuda.so.1000.1.1\", target: \"/proc/self/exe\"}]"
	for image in linked file; do
		run_split "$SVRUN" run --rm --gpus 1 $image sh -c "$FINDS; busybox cat /proc/mounts; ls -l /etc/ld.so.conf.d"
		expect_status 0
		expect_in "$out" "$FOUND"
		[[ $out != *"$T/evil"* && $out != *compat* ]] || fail "$out"
	done
}

@test "CVE-2024-0135, 0136, 0137, 2025-23267: no program of the host or of the image runs before the container's own" {
	need_program strace
	make_host
	make_box box
	"$SVRUN" run --rm --gpus 1 box true
	rm -rf "$T/host/run" 2>/dev/null || umount -l "$T/host/run/svrun/gpu/views"
	strace -f -qq -e trace=execve,execveat -o "$T/trace" "$SVRUN" run --rm --gpus 1 box true
	[ "$(grep -c '= 0$' "$T/trace")" -le 3 ] || fail "$(<"$T/trace")" # svrun, its copy, true
	! grep '= 0$' "$T/trace" | grep -E 'ldconfig|nvidia|/bin/sh' || fail "$(<"$T/trace")"
}

@test "a start whose files answer slowly ends when it is told to, and leaves nothing" {
	need_program strace
	make_host
	make_box box
	"$SVRUN" run --rm --gpus 1 box true
	mkdir "$T/volume"
	# the runtime's child, when it looks at the links that the driver wants; strace keeps it when it is killed, too
	strace -f -qq -e trace=readlinkat -e inject=readlinkat:delay_enter=2s -o "$T/trace" \
		"$SVRUN" run --name slow --gpus 1 -v "$T/volume:/v" box true >"$T/log" 2>&1 &
	local i pid=
	for i in $(seq 500); do
		pid=$(pgrep -P $! -x svrun) && pgrep -P "$pid" >/dev/null && break
		sleep 0.02
	done
	for i in $(seq 500); do
		grep -q readlinkat "$T/trace" && break
		sleep 0.02
	done
	kill -TERM "$pid"
	i=0
	wait $! || i=$?
	[ "$i" = 143 ] || fail "$i: $(<"$T/log")"
	expect_in "$(<"$T/log")" "ended by SIGTERM while the container was made"
	[ -z "$(ls "$SVRUN_ROOT/instances")" ]
	expect_nothing_left "$SVRUN_ROOT"
}

# ---- specs ----

@test "svrun run takes no CDI spec that leads to the host, and hooks know nothing of the image" {
	make_host
	make_box box '.env += {LD_PRELOAD: "./evil.so", EVIL: "1"}'
	mkdir "$T/specs"
	put() { # EDITS
		jq -n --argjson e "$1" '{cdiVersion: "1.1.0", kind: "v.com/dev", devices: [{name: "0", containerEdits: $e}]}' \
			>"$T/specs/v.json"
	}
	run_cdi() {
		run_split timeout -k 1 20 "$SVRUN" run --rm --cdi-spec-dir "$T/specs" --device v.com/dev=0 "$@"
	}
	for mount in '"/", "ro"' '"/proc", "ro"' '"/proc/1", "ro"' '"/run", "ro"' '"/sys/fs/cgroup", "rw"' '"/etc", "rw", "ro"' \
		'"/etc/shadow", "rbind"' '"/usr", "rbind"' '"/usr/bin/env", "rbind"' '"/run/docker.sock", "ro"' \
		'"/run/systemd", "ro"'; do
		put "$(jq -nc "[$mount] | {mounts: [{hostPath: .[0], containerPath: \"/x\", options: .[1:]}]}")"
		run_cdi box true
		expect_status 125 || fail "$mount"
		expect_in "$err" "CDI device v.com/dev=0 of $T/specs/v.json: /x: mount of the host's"
	done
	mknod "$T/disk" b 7 7
	for node in disk kmsg mem; do
		[ -e "$T/$node" ] || mknod "$T/$node" c 1 "$([ $node = mem ] && echo 1 || echo 11)"
		put "{\"deviceNodes\": [{\"path\": \"/dev/vda\", \"hostPath\": \"$T/$node\"}]}"
		run_cdi box true
		expect_status 125
		expect_in "$err" "device /dev/vda leads to" "no container gets it"
	done
	# read-only, with all that is mounted below: a container does not get out of its device filter
	put '{"mounts": [{"hostPath": "/sys", "containerPath": "/x", "options": ["ro"]}]}'
	run_cdi box sh -c 'busybox find /x/fs/cgroup -name cgroup.procs -maxdepth 2 | while read -r f; do
		(echo $$ >$f) && echo out; done; :'
	expect_status 0
	[ -z "$out" ] || fail "$out"
	expect_in "$err" "Read-only file system"

	printf '#!/bin/sh\n{ tr "\\0" "\\n" </proc/$$/environ; pwd; } >%s\n' "$T/said" >"/var/svrun-hook.$$"
	chmod 755 "/var/svrun-hook.$$"
	put "{\"hooks\": [{\"hookName\": \"createContainer\", \"path\": \"/var/svrun-hook.$$\", \"args\": [\"x\"]}]}"
	run_cdi box true
	local refused=$err
	SECRET=1 run_cdi --cdi-allow-hook "/var/svrun-hook.$$" -e LD_PRELOAD=./evil.so box busybox true
	rm "/var/svrun-hook.$$"
	expect_in "$refused" "a program of the host is not run" --cdi-allow-hook
	expect_status 0
	[ "$(tail -n 1 "$T/said")" = / ]
	! grep -E 'LD_PRELOAD|EVIL|SECRET' "$T/said" || fail "$(<"$T/said")"

	rm "$T/specs/v.json"
	mkfifo "$T/specs/a.json"
	ln -s /dev/zero "$T/specs/b.json"
	ln -s c.json "$T/specs/c.json"
	truncate -s 3G "$T/specs/d.json"
	{ printf 'v.com/dev: &a [1]\n'; for i in $(seq 60); do printf 'b%d: [*a, *a]\n' "$i"; done; } >"$T/specs/e.yaml"
	{ printf '"v.com/dev"'; head -c 200000 /dev/zero | tr '\0' '['; } >"$T/specs/f.json"
	run_cdi box true
	expect_status 125
	expect_in "$err" "a.json: a pipe, not a file" "b.json: a device" "c.json: Too many levels" "d.json: longer than the limit" \
		e.yaml f.json
}

# ---- what is left ----

@test "kill -9 at any moment leaves no mount, lock, process or half a view" {
	make_host
	make_box box
	local cuda before i
	cuda=$(find "$T/host/usr" -name 'libcuda.so.*.*.*' -type f | grep x86_64)
	"$SVRUN" run --rm --gpus 1 box true
	before=$(grep -cF " $T/host" /proc/self/mountinfo)
	for i in $(seq 20); do
		[ $((i % 2)) = 0 ] || touch "$cuda" # the view is made anew
		"$SVRUN" run --name "k$i" --gpus 2 box sh -c 'exec busybox sleep 4711' >/dev/null 2>&1 &
		sleep "0.0$((RANDOM % 30 + 10))"
		kill -9 $!
		wait $! 2>/dev/null || true
	done
	for i in $(seq 100); do
		run_split "$SVRUN" run --rm --gpus all box sh -c "$FINDS; ls -d /dev/nvidia[0-9]"
		[ "$status" != 0 ] || break
		sleep 0.05
	done
	expect_in "$out" "$FOUND"
	[ "$(grep -c '^/dev/nvidia[0-9]$' <<<"$out")" = 8 ] || fail "$out" "$err"
	! pgrep -f 'busybox sleep 4711' || fail "a container lives on"
	[ "$(grep -cF " $T/host" /proc/self/mountinfo)" = "$before" ] || fail "$(grep -F " $T/host" /proc/self/mountinfo)"
	! grep -F " $T/store/instances" /proc/self/mountinfo
	[ "$(ls "$T/host/run/svrun/gpu/views")" = 999.88.77-03 ]
}

@test "an image that is made of a container with GPUs has nothing of them" {
	make_host
	make_box box
	"$SVRUN" run --name i --gpus 1 box sh -c 'echo mine >/mine'
	"$SVRUN" run --name inside --gpus 1 box ldconfig
	"$SVRUN" image commit --progress none inside inside >/dev/null
	[[ $("$SVRUN" run --rm inside ldconfig -p) != *nvidia* ]]
	"$SVRUN" image commit --progress none i one >/dev/null
	run_split "$SVRUN" run --rm one sh -c 'busybox find /etc /usr -type f -o -type l; busybox cat /mine'
	[ "$(grep -vE '/etc/(hosts|resolv.conf)$' <<<"$out")" = mine ] || fail "$out"
	# with a cache of its own, that is what it keeps
	"$SVRUN" run --name own box sh -c 'echo /lib/x86_64-linux-gnu >/etc/ld.so.conf; ldconfig'
	"$SVRUN" image commit --progress none own two >/dev/null
	"$SVRUN" run --name three --gpus 1 two sh -c "$FINDS; echo x >/x" | grep -qF "$FOUND"
	"$SVRUN" image commit --progress none three three >/dev/null
	run_split "$SVRUN" run --rm three sh -c 'ldconfig -p; busybox cat /etc/ld.so.conf; ls /etc/ld.so.conf.d'
	expect_in "$out" "1 libs found" libc.so.6 "/lib/x86_64-linux-gnu"
	[[ $out != *nvidia* && $out != *svrun-gpu* ]] || fail "$out"
}

@test "what is done at once to one instance is done once, and told to the others" {
	make_host
	make_box box
	"$SVRUN" run --name r --gpus 1 box true
	for i in $(seq 8); do
		"$SVRUN" start --gpus 2 r >"$T/out.$i" 2>"$T/err.$i" &
	done
	wait
	! cat "$T"/err.* | grep -vE 'container r (runs|is just starting)|svrun restart stops it|try again$' || fail "$(cat "$T"/err.*)"
	"$SVRUN" start --gpus all r
	"$SVRUN" rm r
}
