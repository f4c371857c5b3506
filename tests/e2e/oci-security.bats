#!/usr/bin/env bats
# What has broken other container systems, tried on svrun-oci: each row of the design's table of cases by its name.
# Races and mounts in depth are in oci-mounts.bats, users and ids in oci-exec.bats and oci-hooks.bats, bad documents in
# oci-spec.bats; what `svrun run` makes of the same cases is in security.bats.

load helpers
load oci
load runtime

setup() {
	oci_setup
	OUTSIDE=$T/outside
	mkdir "$OUTSIDE"
}

teardown() {
	local pid
	for pid in ${BACKGROUND-}; do
		kill -9 "$pid" 2>/dev/null || true
	done
	oci_teardown
}

# Run SCRIPT in the bundle's container: $status, $out, $err.
inside() { # SCRIPT
	set_script "$B" "$1"
	run_split oci run --bundle "$B" "$ID"
}

# Have the container run SCRIPT in the background.
start_container() { # SCRIPT
	set_script "$B" "$1"
	oci run --detach --bundle "$B" "$ID" >"$T/log" 2>&1 </dev/null || fail "$(<"$T/log")"
}

delete_container() {
	run_split oci delete --force "$ID"
	expect_status 0
	expect_oci_clean
}

# /probe and /oci-probe in the bundle.
need_probes() {
	need_program gcc
	need_probe
	[ "$WORK/oci-probe" -nt "$DATA/oci-probe.c" ] || {
		gcc -O2 -Wall -static -o "$WORK/oci-probe.new" "$DATA/oci-probe.c"
		mv "$WORK/oci-probe.new" "$WORK/oci-probe"
	}
	cp "$PROBE" "$B/rootfs/probe"
	cp "$WORK/oci-probe" "$B/rootfs/oci-probe"
}

# What a privileged container has: all that this machine's root may have.
all_capabilities() {
	change_config "$B" '(["CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID",
		"SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER", "SYS_CHROOT",
		"SYS_PTRACE", "SYS_ADMIN", "SYS_NICE", "MKNOD", "SETFCAP"] | map("CAP_" + .)) as $all |
		.process.capabilities = {bounding: $all, effective: $all, permitted: $all}'
}

# The configuration that `svrun-oci spec` writes, for the bundle's root and SCRIPT.
own_config() { # SCRIPT
	rm "$B/config.json"
	(cd "$B" && oci spec)
	change_config "$B" '.process.terminal = false | .root.readonly = false'
	set_script "$B" "$1"
}

no_dev_mount() {
	change_config "$B" '.mounts |= map(select(.destination | startswith("/dev") | not))'
}

# ---- the runtime's own program ----

@test "CVE-2019-5736: the program file, held while it runs, cannot be opened for writing afterwards" {
	local pid
	need_program python3
	cp "$OCI" "$T/svrun-oci"
	set_script "$B" 'sleep 1000'
	"$T/svrun-oci" --root "$T/state" run --bundle "$B" "$ID" >"$T/log" 2>&1 3>&- </dev/null &
	pid=$!
	BACKGROUND=$pid
	for _ in $(seq 200); do
		[ "$(oci state "$ID" 2>/dev/null | jq -r .status)" != running ] || break
		sleep 0.02
	done
	# By root of the host, who may do more than any container.
	run python3 -c '
import errno, os, signal, select, sys
pid = int(sys.argv[1])
fd = os.open(f"/proc/{pid}/exe", os.O_PATH)
end = os.pidfd_open(pid)
os.kill(pid, signal.SIGKILL)
select.select([end], [], [])
try:
    os.open(f"/proc/self/fd/{fd}", os.O_WRONLY)
    print("opened")
except OSError as e:
    print(errno.errorcode[e.errno])
' "$pid"
	[ "$output" = EROFS ] || fail "$output"
	cmp "$OCI" "$T/svrun-oci"
	delete_container
}

@test "CVE-2019-5736: run and exec of #!/proc/self/exe give nothing to write to" {
	local hash
	hash=$(sha256sum <"$OCI")
	printf '#!/proc/self/exe\n' >"$B/rootfs/evil"
	chmod 755 "$B/rootfs/evil"
	change_config "$B" '.process.args = ["/evil"]'
	run_split oci run --bundle "$B" "$ID"
	[ "$status" != 0 ] # svrun-oci, inside, knows no such verb
	expect_oci_clean
	start_container 'sleep 1000'
	run_split oci exec "$ID" /evil
	[ "$status" != 0 ]
	# What a link at the program's name says is the container's own.
	ln -s /proc/self/exe "$B/rootfs/link"
	run_split oci exec "$ID" /link
	[ "$status" != 0 ]
	[ "$(sha256sum <"$OCI")" = "$hash" ]
	delete_container
}

@test "CVE-2019-5736: a privileged container that hunts for the runtime during exec gets no program file to write" {
	local i hash
	need_probes
	all_capabilities
	cp "$OCI" "$T/svrun-oci"
	hash=$(sha256sum <"$T/svrun-oci")
	start_container '/oci-probe hunt 4 >/hunt 2>&1; sleep 1000'
	for i in $(seq 100); do
		! grep -q hunting "$B/rootfs/hunt" 2>/dev/null || break
		sleep 0.02
	done
	for ((i = 0; i < 60; i++)); do
		"$T/svrun-oci" --root "$T/state" exec "$ID" true </dev/null || fail "exec failed"
	done
	for i in $(seq 400); do
		! grep -q seen "$B/rootfs/hunt" || break
		sleep 0.02
	done
	expect_in "$(<"$B/rootfs/hunt")" ", opened for writing 0"
	[ "$(sha256sum <"$T/svrun-oci")" = "$hash" ]
	delete_container
}

# ---- links where mounts go ----

@test "CVE-2019-16884, CVE-2019-19921, CVE-2023-27561, CVE-2023-28642: /proc and /sys may not be links" {
	local place
	for place in proc sys; do
		rmdir "$B/rootfs/$place"
		ln -s "../../outside" "$B/rootfs/$place"
		inside true
		[ "$status" != 0 ]
		expect_in "$err" "$place"
		[ -z "$(ls -A "$OUTSIDE")" ]
		rm "$B/rootfs/$place"
		mkdir "$B/rootfs/$place"
	done
	expect_oci_clean
}

@test "CVE-2019-16884, CVE-2025-52881: no volume lies on /proc or below it, where settings and labels are written" {
	local place
	mkdir -p "$OUTSIDE/sys/kernel" "$OUTSIDE/self/attr"
	echo host >"$OUTSIDE/sys/kernel/shmmax"
	for place in /proc /proc/sys /proc/self /proc/sys/kernel /proc/../proc/sys; do
		cp "$DATA/oci/config.json" "$B/config.json"
		change_config "$B" '.mounts += [{destination: $d, type: "bind", source: $s, options: ["bind"]}] |
			.linux.sysctl = {"kernel.shmmax": "4096"}' --arg d "$place" --arg s "$OUTSIDE"
		inside true
		[ "$status" != 0 ] || fail "$place: mounted"
		[ "$(<"$OUTSIDE/sys/kernel/shmmax")" = host ]
	done
	expect_oci_clean
}

@test "CVE-2025-52881: names of settings lead nowhere but to settings" {
	local name
	echo host >"$OUTSIDE/file"
	for name in "kernel/../../../$OUTSIDE/file" "../../$OUTSIDE/file" "net..core" "/etc/passwd" "kernel.core_pattern" "vm.swappiness" ""; do
		cp "$DATA/oci/config.json" "$B/config.json"
		change_config "$B" '.linux.sysctl = {($n): "x"}' --arg n "$name"
		inside true
		[ "$status" != 0 ] || fail "$name: written"
	done
	[ "$(<"$OUTSIDE/file")" = host ]
	cp "$DATA/oci/config.json" "$B/config.json"
	change_config "$B" '.linux.sysctl = {"kernel.shmmax": "8192", "net.ipv4.ip_forward": "1"}'
	inside 'cat /proc/sys/kernel/shmmax /proc/sys/net/ipv4/ip_forward'
	[ "$out" = $'8192\n1' ] || fail "$out $err"
	[ "$(cat /proc/sys/kernel/shmmax)" != 8192 ]
}

# CVE-2021-30465, CVE-2021-25741: the race is in oci-mounts.bats. Here: links that lie still.
@test "CVE-2021-30465, CVE-2021-25741: a destination that is a link is one inside the root" {
	mkdir -p "$B/rootfs$OUTSIDE" "$T/vol"
	echo inside >"$T/vol/file"
	ln -s "../../../../../../../../..$OUTSIDE" "$B/rootfs/link"
	change_config "$B" '.mounts += [{destination: "/link", type: "bind", source: $s, options: ["bind"]}]' --arg s "$T/vol"
	inside "cat $OUTSIDE/file"
	[ "$out" = inside ] || fail "$err"
	[ -z "$(ls -A "$OUTSIDE")" ]
}

@test "CVE-2024-45310, CVE-2024-0133: mount points of a config make no file or folder on the host" {
	local place
	mkdir "$T/vol"
	ln -s "$OUTSIDE" "$T/vol/link"
	ln -s ../outside "$T/vol/up"
	for place in /vol/link/new /vol/up/new /vol/link/a/b; do
		cp "$DATA/oci/config.json" "$B/config.json"
		change_config "$B" '.mounts += [{destination: "/vol", type: "bind", source: $v, options: ["bind"]},
			{destination: $d, type: "tmpfs", source: "tmpfs"}]' --arg v "$T/vol" --arg d "$place"
		inside true
		[ -z "$(ls -A "$OUTSIDE")" ] || fail "$place: made $(ls "$OUTSIDE") on the host"
	done
	expect_oci_clean
}

@test "CVE-2025-31133: what lies at /dev/null in the image masks nothing and is not bound" {
	local bad
	echo host >"$OUTSIDE/file"
	for bad in "ln -s ../../../../../../..$OUTSIDE/file null" 'ln -s /proc/keys null' 'echo image >null' 'mkdir null' 'mkfifo null'; do
		(cd "$B/rootfs/dev" && eval "$bad")
		# Covered by the config's own /dev.
		inside 'cat /proc/keys; ls -l /dev/null | grep -c "1,  *3"; echo x >/proc/keys 2>/dev/null; true'
		[ "$out" = 1 ] || fail "$bad: $out $err"
		rm -rf "$B/rootfs/dev/null"
	done
	# And where there is no /dev mount: refused, or the real one.
	no_dev_mount
	for bad in "ln -s ../../../../../../..$OUTSIDE/file null" 'echo image >null' 'mkfifo null'; do
		(cd "$B/rootfs/dev" && eval "$bad")
		inside 'cat /proc/keys'
		[[ $status != 0 && -n $err || -z $out ]] || fail "$bad: $out"
		rm -rf "$B/rootfs/dev"
		mkdir "$B/rootfs/dev"
	done
	[ "$(<"$OUTSIDE/file")" = host ]
}

@test "CVE-2025-52565, CVE-2026-88264: the terminal is our own, whatever lies at /dev/console" {
	local dev
	need_program script
	echo host >"$OUTSIDE/file"
	set_script "$B" 'tty; stat -c %t /dev/console; echo typed >/dev/console; ls -l /proc/self/fd/0'
	change_config "$B" '.process.terminal = true'
	for dev in with without; do
		[ "$dev" = with ] || no_dev_mount
		ln -sf "../../../../../../../..$OUTSIDE/file" "$B/rootfs/dev/console"
		script -qec "'$OCI' --root '$T/state' run --bundle '$B' '$ID'" "$T/log" >/dev/null </dev/null || true
		if [ "$dev" = with ]; then expect_in "$(<"$T/log")" /dev/pts/0 88 typed; fi
		[ "$(<"$OUTSIDE/file")" = host ] || fail "$dev a mount on /dev: the host's file was written to"
		rm -f "$B/rootfs/dev/console"
		mkdir -p "$B/rootfs/dev/pts"
	done
	expect_oci_clean
}

@test "CVE-2026-41579, CVE-2026-47766: /dev may not be a link" {
	local mount
	for mount in with without; do
		[ "$mount" = with ] || no_dev_mount
		rm -rf "$B/rootfs/dev"
		ln -s "../../../../../../..$OUTSIDE" "$B/rootfs/dev"
		inside true
		[ "$status" != 0 ]
		expect_in "$err" dev
		[ -z "$(ls -A "$OUTSIDE")" ] || fail "$mount a mount: made $(ls "$OUTSIDE")"
	done
	expect_oci_clean
}

@test "CVE-2026-88264, CVE-2026-88265: standard streams are not opened again through the image's /dev" {
	local before
	no_dev_mount
	echo host >"$OUTSIDE/file"
	chmod 600 "$OUTSIDE/file"
	before=$(stat -c '%a %u:%g %Y' "$OUTSIDE/file")
	for link in console null tty stdin stdout; do
		ln -s "../../../../../../..$OUTSIDE/file" "$B/rootfs/dev/$link"
		change_config "$B" '.process.user = {uid: 1000, gid: 1000}'
		set_script "$B" 'echo text; echo text >&2'
		run_split oci run --bundle "$B" "$ID"
		"$OCI" --root "$T/state" run --bundle "$B" "$ID" >/dev/null 2>&1 </dev/null || true
		[ "$(<"$OUTSIDE/file")" = host ]
		[ "$(stat -c '%a %u:%g %Y' "$OUTSIDE/file")" = "$before" ] || fail "$link: $(stat "$OUTSIDE/file")"
		rm -rf "$B/rootfs/dev"
		mkdir "$B/rootfs/dev"
	done
	expect_oci_clean
}

@test "CVE-2019-18837: the root's path is resolved once" {
	mkdir "$OUTSIDE/etc"
	echo host >"$OUTSIDE/etc/passwd"
	mv "$B/rootfs" "$B/real"
	ln -s real "$B/rootfs"
	# Whatever comes of a link: it is the tree that it named, or an error.
	inside 'echo written >/written; cat /etc/passwd'
	[[ $status != 0 || $out = root:* ]] || fail "$out"
	[ ! -e "$OUTSIDE/written" ]
	rm "$B/rootfs"
	ln -s "$OUTSIDE" "$B/rootfs"
	change_config "$B" '.root.path = "real"'
	inside 'cat /etc/passwd'
	expect_in "$out" root:
}

@test "CVE-2025-24965: nothing is written into an image's tree" {
	local before
	for file in etc/hostname etc/hosts etc/resolv.conf etc/mtab run .dockerenv krun_config.json .krun_config.json; do
		ln -s "../../../../../../../..$OUTSIDE/${file##*/}" "$B/rootfs/$file"
	done
	before=$(cd "$B/rootfs" && find . -printf '%p %m %l %T@\n' | sort)
	change_config "$B" '.annotations = {"run.oci.handler": "krun", "run.oci.systemd.force_cgroup_v1": "/sys/fs/cgroup"}'
	inside true
	expect_status 0
	[ "$(cd "$B/rootfs" && find . -printf '%p %m %l %T@\n' | sort)" = "$before" ]
	[ -z "$(ls -A "$OUTSIDE")" ]
}

# ---- what a process gets ----

@test "CVE-2022-29162, CVE-2022-27650, CVE-2022-24769: capability sets are exactly those asked for, in run and exec" {
	local none=0000000000000000 kill=0000000000000020
	change_config "$B" '.process.capabilities = {bounding: ["CAP_KILL"], effective: ["CAP_KILL"], permitted: ["CAP_KILL"]}'
	inside 'grep ^Cap /proc/self/status'
	[ "$(awk '{ print $2 }' <<<"$out" | paste -sd' ')" = "$none $kill $kill $kill $none" ] || fail "$out"
	start_container 'sleep 1000'
	run_split oci exec "$ID" grep ^Cap /proc/self/status
	[ "$(awk '{ print $2 }' <<<"$out" | paste -sd' ')" = "$none $kill $kill $kill $none" ] || fail "exec: $out"
	# --cap adds to what is bounded, permitted and effective, never to what is inherited.
	run_split oci exec --cap CAP_CHOWN "$ID" grep ^Cap /proc/self/status
	[ "$(awk '{ print $2 }' <<<"$out" | sed -n '1p')" = "$none" ] || fail "exec --cap: $out"
	[ "$(awk '{ print $2 }' <<<"$out" | sed -n '3p')" = 0000000000000021 ] || fail "exec --cap: $out"
	# Another user has none, unless they are ambient.
	run_split oci exec --user 1000 "$ID" grep ^Cap /proc/self/status
	[ "$(awk '{ print $2 }' <<<"$out" | paste -sd' ')" = "$none $none $none $kill $none" ] ||
		[ "$(awk '{ print $2 }' <<<"$out" | paste -sd' ')" = "$none $kill $kill $kill $none" ] || fail "exec --user: $out"
	delete_container
	change_config "$B" '.process.capabilities = {}'
	inside 'grep ^Cap /proc/self/status'
	[ "$(awk '{ print $2 }' <<<"$out" | sort -u)" = "$none" ] || fail "$out"
}

@test "CVE-2024-21626: no descriptor but 0 to 2 gets inside, in run and exec" {
	local list='for f in /proc/self/fd/*; do case ${f##*/} in 0|1|2) ;; *) [ ! -e "$f" ] || readlink "$f";; esac; done'
	exec 7</ 8<"$T" 9</etc/passwd
	inside "$list"
	expect_status 0
	[ -z "$out" ] || fail "open: $out"
	start_container 'sleep 1000'
	run_split oci exec "$ID" sh -c "$list"
	expect_status 0
	[ -z "$out" ] || fail "open in exec: $out"
	# The container's first process, too, which has not looked at itself.
	[ "$(ls "/proc/$(oci state "$ID" | jq .pid)/fd" | sort | paste -sd' ')" = "0 1 2" ]
	exec 7<&- 8<&- 9<&-
	delete_container
}

@test "CVE-2024-21626: no working directory or program is reached through a descriptor" {
	local fd
	exec 7</ 8<"$T"
	for fd in 3 4 5 6 7 8 9 10 11 12 13 14; do
		change_config "$B" '.process.cwd = $d' --arg d "/proc/self/fd/$fd"
		inside 'cat etc/hostname; pwd -P'
		[ "$status" != 0 ] || fail "run, $fd: $out"
	done
	change_config "$B" '.process.cwd = "/"'
	start_container 'ln -s /proc/self/fd/7 /link; sleep 1000'
	for fd in 3 4 5 6 7 8 9 10 11 12 13 14; do
		run_split oci exec --cwd "/proc/self/fd/$fd" "$ID" pwd
		[ "$status" != 0 ] || fail "exec, $fd: $out"
		run_split oci exec "$ID" "/proc/self/fd/$fd/bin/true"
		[ "$status" != 0 ] || fail "exec of a program, $fd"
		run_split oci exec --cwd "/proc/1/fd/$fd" "$ID" pwd
		[ "$status" != 0 ] || fail "exec, 1's $fd: $out"
	done
	run_split oci exec --cwd /link "$ID" pwd
	[ "$status" != 0 ] || fail "exec, a link: $out"
	exec 7<&- 8<&-
	delete_container
}

@test "CVE-2026-30892: exec -u is strict" {
	local user
	start_container 'sleep 1000'
	for user in 0x0 '0 ' ' 0' '0a' 1000x '1000 0' '-1' +0 4294967295 4294967296 18446744073709551616 0:0:0 0: :0 '' 1000:-1 1000:4294967296 1e3; do
		run_split oci exec --user "$user" "$ID" id -u
		[ "$status" != 0 ] || fail "'$user' ran as $out"
	done
	run_split oci exec --user 1000:2000 "$ID" sh -c 'id -u; id -g'
	[ "$out" = $'1000\n2000' ] || fail "$out $err"
	delete_container
}

@test "CVE-2024-40635: ids beyond what fits are errors" {
	local id
	for id in 4294967295 4294967296 -1 18446744073709551616 1.5 '"0"'; do
		cp "$DATA/oci/config.json" "$B/config.json"
		sed -i "0,/\"uid\": 0/s//\"uid\": $id/" "$B/config.json"
		run_split oci run --bundle "$B" "$ID"
		[ "$status" != 0 ] || fail "$id: ran"
		expect_in "$err" config.json
	done
	expect_oci_clean
}

@test "CVE-2023-25173, CVE-2022-2989, CVE-2022-2990, CVE-2022-2995: supplementary groups are those of the config" {
	need_program setpriv
	set_script "$B" 'id -G'
	run_split setpriv --groups 4,20,24 "$OCI" --root "$T/state" run --bundle "$B" "$ID"
	[ "$out" = 0 ] || fail "$out"
	change_config "$B" '.process.user = {uid: 1000, gid: 1000, additionalGids: [5, 6]}'
	run_split oci run --bundle "$B" "$ID"
	[ "$out" = "1000 5 6" ] || fail "$out"
	start_container 'sleep 1000'
	run_split setpriv --groups 4,20,24 "$OCI" --root "$T/state" exec --user 7:8 --additional-gids 9 "$ID" id -G
	[ "$out" = "8 9" ] || fail "exec: $out"
	delete_container
}

@test "CVE-2021-21334: the environment is the config's, in run and exec" {
	SECRET_TOKEN=abc inside env
	[[ $out != *SECRET* ]] || fail "$out"
	[ "$(cut -d= -f1 <<<"$out" | sort | paste -sd' ')" = "HOME PATH PWD SHLVL TERM" ] || fail "$out"
	start_container 'sleep 1000'
	SECRET_TOKEN=abc run_split oci exec --env A=1 "$ID" env
	[[ $out != *SECRET* ]] || fail "exec: $out"
	expect_in "$out" A=1
	run_split oci exec "$ID" env
	[[ $out != *A=1* ]] || fail "one exec's environment in another: $out"
	delete_container
}

@test "CVE-2026-53488, CVE-2026-53489, CVE-2026-53492: annotations and labels grant nothing" {
	change_config "$B" '.annotations = {"io.podman.annotations.privileged": "TRUE", "run.oci.keep_original_groups": "1",
		"run.oci.hooks.stdout": $o, "org.systemd.property.DeviceAllow": "[(\"char-*\", \"rwm\")]", "devices": "/dev/mem",
		"run.oci.mount_context_type": "context", "run.oci.seccomp_fail_unknown_syscall": "0", "run.oci.criu": "/bin/sh",
		"org.criu.config": $o, "io.kubernetes.cri-o.userns-mode": "host", "run.oci.delegate-cgroup": "/"}' --arg o "$OUTSIDE/x"
	run_split setpriv --groups 4,20 "$OCI" --root "$T/state" run --bundle "$B" "$ID"
	expect_status 0
	inside 'id -G; grep -E "^(CapBnd|NoNewPrivs)" /proc/self/status; ls /dev/mem 2>/dev/null'
	[ "$(head -n 1 <<<"$out")" = 0 ]
	expect_in "$out" "CapBnd:	0000000020000420" "NoNewPrivs:	1"
	[[ $out != */dev/mem* ]]
	[ -z "$(ls -A "$OUTSIDE")" ]
}

@test "set-id programs gain nothing" {
	need_probes
	cp "$PROBE" "$B/rootfs/suid"
	chown 0:0 "$B/rootfs/suid"
	chmod 6755 "$B/rootfs/suid"
	change_config "$B" '.process.user = {uid: 1000, gid: 1000}'
	inside '/suid ids'
	[ "$out" = "1000 1000 1000 1000" ] || fail "$out"
	start_container 'sleep 1000'
	run_split oci exec "$ID" /suid ids
	[ "$out" = "1000 1000 1000 1000" ] || fail "exec: $out"
	delete_container
}

@test "a startContainer hook, a program of the image, is confined as the container's process is" {
	change_config "$B" '.process.user = {uid: 1000, gid: 1000} | .hooks = {startContainer: [
		{path: "/bin/sh", args: ["sh", "-c", "grep -E \"^(Uid|CapEff|CapBnd|NoNewPrivs)\" /proc/self/status >&2; exit 1"]}]}'
	chmod 755 "$T" "$B"
	inside true
	[ "$status" != 0 ]
	expect_in "$err" "Uid:	1000" "CapBnd:	0000000020000420" "NoNewPrivs:	1"
	grep -qE '^CapEff:	0000000020000420|^CapEff:	0000000000000000' <<<"$err" || fail "$err"
	# The filter is there, too.
	cp "$DATA/oci/config.json" "$B/config.json"
	change_config "$B" '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["mkdir", "mkdirat"],
		action: "SCMP_ACT_ERRNO"}]} | .hooks = {startContainer: [{path: "/bin/mkdir", args: ["mkdir", "/made"]}]}'
	inside true
	[ "$status" != 0 ]
	[ ! -e "$B/rootfs/made" ]
}

# ---- what a container sees and can reach ----

@test "CVE-2023-25809, CVE-2022-0492: without a cgroup namespace cgroups are read-only, even when the config says rw" {
	all_capabilities
	change_config "$B" '(.mounts[] | select(.type == "cgroup")).options = ["rw", "nosuid"]'
	inside 'for f in $(find /sys/fs/cgroup -name release_agent -o -name cgroup.procs -o -name notify_on_release -o -name tasks); do
		(echo 1 >$f) 2>/dev/null && echo "wrote $f"; done; mkdir /sys/fs/cgroup/x /sys/fs/cgroup/*/x 2>/dev/null && echo made; true'
	expect_status 0
	[ -z "$out" ] || fail "$out"
	[ -z "$(find /sys/fs/cgroup -maxdepth 4 -name x -path "*$ID*")" ]
}

@test "CVE-2022-0492: with a cgroup namespace no release agent is in reach, and none can be mounted by default" {
	change_config "$B" '.linux.namespaces += [{type: "cgroup"}]'
	inside 'find /sys/fs/cgroup -name release_agent; mount -t cgroup -o memory x /tmp 2>/dev/null && echo mounted; true'
	expect_status 0
	[ -z "$out" ] || fail "$out"
}

@test "CVE-2020-15257: no abstract socket of ours is there to be reached, in any phase" {
	local before
	need_probes
	change_config "$B" '.linux.namespaces |= map(select(.type != "network"))'
	before=$(grep -c @ /proc/net/unix) || true
	set_script "$B" 'sleep 1000'
	oci create --bundle "$B" "$ID" >"$T/log" 2>&1 </dev/null
	[ "$(grep -c @ /proc/net/unix)" = "$before" ] || fail "created: $(grep @ /proc/net/unix)"
	oci start "$ID"
	[ "$(grep -c @ /proc/net/unix)" = "$before" ] || fail "running: $(grep @ /proc/net/unix)"
	delete_container
}

@test "CVE-2021-41091, CVE-2021-41103, CVE-2024-25621: the state is for root alone" {
	start_container 'sleep 1000'
	[ "$(stat -c %a "$T/state")" = 700 ]
	[ "$(find "$T/state" -mindepth 1 -perm /077 ! -type s)" = "" ] || fail "$(find "$T/state" -ls)"
	delete_container
	# A folder that others could write to is none to keep state in.
	mkdir "$T/open"
	chmod 777 "$T/open"
	run_split "$OCI" --root "$T/open" run --bundle "$B" "$ID"
	[ "$status" != 0 ]
	[ -z "$(ls -A "$T/open")" ]
	ln -s "$OUTSIDE" "$T/linked"
	run_split "$OCI" --root "$T/linked" run --bundle "$B" "$ID"
	[ -z "$(ls -A "$OUTSIDE")" ]
}

@test "clone3, io_uring, keyctl, ptrace, bpf, userfaultfd, mount API: our profile refuses every dangerous call" {
	need_probes
	own_config '/probe calls'
	run_split oci run --bundle "$B" "$ID"
	expect_status 0 || fail "$out $err"
	[ -z "$out" ] || fail "$out"
	set_script "$B" 'sleep 1000'
	oci run --detach --bundle "$B" "$ID" >"$T/log" 2>&1 </dev/null
	run_split oci exec "$ID" /probe calls
	[ -z "$out" ] || fail "exec: $out"
	delete_container
}

@test "TIOCSTI, TIOCLINUX: nothing can be typed into a terminal" {
	need_program script
	need_probes
	own_config '/probe terminal'
	run_split oci run --bundle "$B" "$ID"
	expect_status 0 || fail "$out $err"
	change_config "$B" '.process.terminal = true'
	script -qec "'$OCI' --root '$T/state' run --bundle '$B' '$ID'" "$T/log" >/dev/null </dev/null
	[[ $(<"$T/log") != *returned* ]] || fail "$(<"$T/log")"
	# Without any filter it is a session and a terminal of its own, not ours.
	cp "$DATA/oci/config.json" "$B/config.json"
	change_config "$B" '.process.terminal = true'
	set_script "$B" 'ls -l /proc/self/fd/0; ps -o pid,sid,tty'
	script -qec "tty; '$OCI' --root '$T/state' run --bundle '$B' '$ID'" "$T/log" >/dev/null </dev/null
	expect_in "$(<"$T/log")" "/dev/pts/0"
}

@test "a terminal of the host is never handed over" {
	need_program script
	set_script "$B" 'ls -l /proc/self/fd; exec 2>&1; echo x >/dev/tty'
	script -qec "'$OCI' --root '$T/state' run --bundle '$B' '$ID' </dev/null 2>&1 | cat" "$T/log" >/dev/null </dev/null || true
	[[ $(<"$T/log") != */dev/pts* ]] || fail "$(<"$T/log")"
	expect_in "$(<"$T/log")" "can't create /dev/tty"
}

@test "sysrq, kcore, kallsyms, keys, timer_list, firmware, thermal: our configuration masks what Docker's does" {
	local path
	own_config 'for f in /proc/kcore /proc/keys /proc/timer_list /proc/kallsyms /proc/interrupts /proc/sched_debug \
		/proc/latency_stats /proc/timer_stats; do [ ! -e $f ] || [ -z "$(head -c 1 $f 2>/dev/null)" ] || echo "$f"; done
		for d in /proc/acpi /proc/scsi /proc/asound /sys/firmware /sys/devices/virtual/powercap; do
		[ ! -e $d ] || [ -z "$(ls -A $d)" ] || echo "$d"; done
		for f in /proc/sysrq-trigger /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/irq/default_smp_affinity \
		/sys/kernel/uevent_helper /proc/bus/pci/devices /proc/sys/vm/drop_caches; do
		[ ! -e $f ] || ! (echo x >$f) 2>/dev/null || echo "wrote $f"; done; true'
	run_split oci run --bundle "$B" "$ID"
	expect_status 0
	[ -z "$out" ] || fail "$out"
	for path in /proc/asound /proc/acpi /proc/interrupts /proc/kcore /proc/keys /proc/latency_stats /proc/timer_list \
		/proc/timer_stats /proc/sched_debug /proc/scsi /sys/firmware /sys/devices/virtual/powercap; do
		jq -e --arg p "$path" '.linux.maskedPaths | index($p)' "$B/config.json" >/dev/null || fail "$path is not masked"
	done
	for path in /proc/bus /proc/fs /proc/irq /proc/sys /proc/sysrq-trigger; do
		jq -e --arg p "$path" '.linux.readonlyPaths | index($p)' "$B/config.json" >/dev/null || fail "$path is not read-only"
	done
}

@test "devices of the host cannot be opened, whatever node is made" {
	need_probes
	all_capabilities
	inside '/probe devices'
	expect_status 0 || fail "$out"
}

# ---- documents and messages ----

@test "CVE-2021-43784: members longer than any message holds change nothing but themselves" {
	local long
	long=$(head -c 70000 /dev/zero | tr '\0' a)
	jq --rawfile long <(printf %s "$long") '.process.env += ["LONG=" + $long, "LAST=1"] |
		.process.args = ["sh", "-c", "echo ${#LONG} $LAST; id -u; grep CapBnd /proc/self/status"]' "$B/config.json" >"$B/new"
	mv "$B/new" "$B/config.json"
	run_split oci run --bundle "$B" "$ID"
	expect_in "$out" "70000 1" "CapBnd:	0000000020000420" || fail "$out $err"
	for member in .hostname .linux.cgroupsPath .root.path '.linux.namespaces[0].path' .process.cwd; do
		cp "$DATA/oci/config.json" "$B/config.json"
		jq --rawfile long <(printf /%s "$long") "$member = \$long" "$B/config.json" >"$B/new"
		mv "$B/new" "$B/config.json"
		run_split oci run --bundle "$B" "$ID"
		[ "$status" != 0 ] || fail "$member: ran"
	done
	cp "$DATA/oci/config.json" "$B/config.json"
	change_config "$B" '.linux.namespaces += [{type: "user"}] |
		.linux.uidMappings = [range(6000) | {containerID: ., hostID: (. + 100000), size: 1}] | .linux.gidMappings = .linux.uidMappings'
	run_split oci run --bundle "$B" "$ID"
	[ "$status" != 0 ]
	expect_in "$err" Mappings
	expect_oci_clean
}

@test "CVE-2022-31030, CVE-2025-64329: endless output with nobody to read it takes no memory and ends with the reader" {
	local pid peak
	need_program script
	set_script "$B" 'while echo 0123456789012345678901234567890123456789012345678901234567890123456789; do :; done'
	# The reader goes away. (The first process of a container gets no SIGPIPE, but an error.)
	run timeout 20 bash -c "'$OCI' --root '$T/state' run --bundle '$B' '$ID' </dev/null 3>&- | head -c 1000 >/dev/null"
	[ "$status" = 0 ] || fail "$output"
	expect_oci_clean
	# A terminal that nobody reads: the container waits, and we keep nothing.
	change_config "$B" '.process.terminal = true'
	mkfifo "$T/pipe"
	script -qfc "'$OCI' --root '$T/state' run --bundle '$B' '$ID'" "$T/pipe" >/dev/null 2>&1 3>&- </dev/null &
	BACKGROUND=$!
	exec 6<>"$T/pipe"
	for _ in $(seq 200); do
		[ "$(oci state "$ID" 2>/dev/null | jq -r .status)" != running ] || break
		sleep 0.02
	done
	sleep 0.5
	pid=$(awk '{ print $4 }' "/proc/$(oci state "$ID" | jq .pid)/stat")
	peak=$(awk '/VmHWM/ { print $2 }' "/proc/$pid/status")
	[ "$peak" -lt 8000 ] || fail "$peak KiB"
	exec 6<&-
	delete_container
}

# ---- containers that behave badly ----

@test "a fork bomb is held by its limit, and delete --force leaves nothing" {
	local pids
	need_probes
	change_config "$B" '.linux.resources.pids = {limit: 40}'
	start_container 'exec /oci-probe bomb'
	for _ in $(seq 100); do
		pids=$(oci ps --format json "$ID" | jq length)
		[ "$pids" -lt 40 ] || break
		sleep 0.02
	done
	[ "$pids" -le 40 ] && [ "$pids" -gt 20 ] || fail "$pids processes"
	# It can be looked at, and signalled, though nothing more fits in.
	run_split oci state "$ID"
	[ "$(jq -r .status <<<"$out")" = running ]
	delete_container
	[ -z "$(pgrep -f '^/oci-probe bomb' || true)" ] || fail "left"
}

@test "memory beyond the limit kills, and only inside" {
	need_probes
	change_config "$B" '.linux.resources.memory = {limit: 33554432}'
	inside '/oci-probe fill; echo $?'
	[ "$(tail -n 1 <<<"$out")" = 137 ] || [ "$status" = 137 ] || fail "$status: $out $err"
	expect_oci_clean
}

@test "a container that ignores every signal, and its detached processes, go with delete --force" {
	local before
	need_probes
	before=$(pgrep -c -f '^/oci-probe' || true)
	start_container 'exec /oci-probe detach'
	for _ in $(seq 200); do
		[ "$(pgrep -c -f '^/oci-probe detach' || true)" -lt 6 ] || break
		sleep 0.02
	done
	oci kill "$ID" TERM
	oci kill "$ID" HUP
	run_split oci delete "$ID"
	[ "$status" != 0 ] # it runs
	[ "$(oci state "$ID" | jq -r .status)" = running ]
	delete_container
	[ "$(pgrep -c -f '^/oci-probe' || true)" = "$before" ]
}

@test "without a namespace of its own, a container's processes are found in its cgroup" {
	local before
	need_probes
	before=$(pgrep -c -f '^/oci-probe' || true)
	change_config "$B" '.linux.namespaces |= map(select(.type != "pid"))'
	start_container 'exec /oci-probe detach'
	for _ in $(seq 200); do
		[ "$(pgrep -c -f '^/oci-probe detach' || true)" -lt 6 ] || break
		sleep 0.02
	done
	delete_container
	[ "$(pgrep -c -f '^/oci-probe' || true)" = "$before" ] || fail "left: $(pgrep -f '^/oci-probe')"
}

@test "a container that mounts over its own /proc, /sys and /dev fools nobody" {
	need_probes
	all_capabilities
	start_container '/oci-probe cover >/covered 2>&1'
	for _ in $(seq 200); do
		! grep -qs '^covered' "$B/rootfs/covered" || break
		sleep 0.02
	done
	expect_in "$(<"$B/rootfs/covered")" covered
	# exec writes below /proc only when that is procfs: here it needs nothing of it, or says so.
	run_split oci exec "$ID" sh -c 'echo inside; cat /etc/passwd'
	[ "$status" != 0 ] || expect_in "$out" inside root:
	run_split oci exec --cwd /proc/self "$ID" pwd
	run_split oci exec --tty "$ID" true
	run_split oci state "$ID"
	expect_status 0
	run_split oci ps "$ID"
	expect_status 0
	run_split oci kill "$ID" KILL
	expect_status 0
	delete_container
}

# A script that stops whatever process is to come, and looks from where it stands for $OUTSIDE/mark.
watcher() {
	touch "$OUTSIDE/mark"
	echo "n=2
		while :; do
			kill -STOP \$n 2>/dev/null && {
				[ ! -e /proc/\$n/root$OUTSIDE/mark ] || echo \$n >>/escaped
				: >>/caught; kill -CONT \$n; n=\$((n + 1)); }
			[ ! -e /proc/\$((n + 1)) ] || n=\$((n + 1))
		done"
}

@test "a process with CAP_SYS_PTRACE finds nothing of the host in one that exec starts" {
	all_capabilities
	start_container "$(watcher)"
	for _ in $(seq 60); do
		oci exec "$ID" true
	done
	[ -e "$B/rootfs/caught" ] || skip "none was stopped in time"
	[ ! -e "$B/rootfs/escaped" ] || fail "reached the host from: $(<"$B/rootfs/escaped")"
	delete_container
}

@test "a process sees nothing of the host in a container that is made in its pid namespace" {
	local pid
	start_container "$(watcher)"
	pid=$(oci state "$ID" | jq .pid)
	make_bundle "$T/second" '.linux.namespaces += [{type: "user"}]
		| .linux.uidMappings = [{containerID: 0, hostID: 200000, size: 65536}] | .linux.gidMappings = .linux.uidMappings'
	change_config "$T/second" '(.linux.namespaces[] | select(.type == "pid")).path = "/proc/\($p)/ns/pid"' --argjson p "$pid"
	for _ in $(seq 30); do
		run_split oci run --bundle "$T/second" "$ID-2" # it may fail: it is stopped, and others' children
	done
	[ -e "$B/rootfs/caught" ] || skip "none was stopped in time"
	[ ! -e "$B/rootfs/escaped" ] || fail "reached the host from: $(<"$B/rootfs/escaped")"
	delete_container
}
