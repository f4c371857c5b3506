#!/usr/bin/env bats
# What has broken other container systems, tried on ours. The names are those of the design's table of
# cases; what a unit test shows better is there (tests/unit/test_mount-point.c, test_sync.c, ...).

load helpers
load runtime

# An app whose image has links in unusual places: LINKS is a JQ array of {path, target}.
app_with_links() { # NAME LINKS
	need_root
	make_app "$1" ".links = $2"
	SVRUN_ROOT=$WORK/store lock_and_build "$APP" >/dev/null
	rm -rf "$APP"
}

@test "CVE-2019-5736: the runtime's program file cannot be opened for writing through /proc" {
	local pid
	need_test_image
	need_program python3
	cp "$SVRUN" "$T/svrun" # others may be running the original
	"$T/svrun" run --rm "$IMAGE" sleep 1000 3>&- &
	pid=$!
	await_start "$pid"
	# The attack: hold the file while it runs, open it for writing when it does not any more. Here by root
	# of the host, who may do more than any container.
	run python3 -c '
import errno, os, signal, sys
pid = int(sys.argv[1])
fd = os.open(f"/proc/{pid}/exe", os.O_PATH)
os.kill(pid, signal.SIGTERM)
end = os.pidfd_open(pid)
import select
select.select([end], [], [])
try:
    os.open(f"/proc/self/fd/{fd}", os.O_WRONLY)
    print("opened")
except OSError as e:
    print(errno.errorcode[e.errno])
' "$pid"
	wait "$pid" || true
	[ "$output" = EROFS ] || fail "$output"
	cmp "$SVRUN" "$T/svrun"
}

@test "CVE-2019-5736: a script with the interpreter /proc/self/exe gets nothing to write to" {
	local hash
	need_test_image
	hash=$(sha256sum <"$SVRUN")
	printf '#!/proc/self/exe\n' >"$T/evil"
	chmod 755 "$T/evil"
	# It runs svrun, which knows no such command.
	run_split "$SVRUN" run --rm -v "$T/evil:/evil" "$IMAGE" /evil
	[ "$status" != 0 ]
	[ "$(sha256sum <"$SVRUN")" = "$hash" ]
	expect_clean
}

@test "CVE-2019-16884, CVE-2023-28642: /proc and /sys may not be links of the image" {
	app_with_links proclink '[{path: "/proc", target: "/etc"}]'
	run_split "$SVRUN" run --rm proclink
	expect_status 125
	[ "$err" = "svrun: run proclink: mount /proc: /proc in the root is a link, not a directory" ] || fail "$err"
	app_with_links syslink '[{path: "/sys", target: "/etc"}]'
	run_split "$SVRUN" run --rm syslink
	expect_status 125
	expect_in "$err" "/sys in the root is a link"
	expect_clean
}

@test "CVE-2026-41579: /dev may not be a link of the image" {
	mkdir "$T/host"
	app_with_links devlink "[{path: \"/dev\", target: \"$T/host\"}]"
	run_split "$SVRUN" run --rm devlink
	expect_status 125
	expect_in "$err" "/dev in the root is a link"
	[ -z "$(ls -A "$T/host")" ]
}

@test "CVE-2025-31133: links at /dev/null and /dev/console in the image change nothing" {
	mkdir "$T/host"
	echo host >"$T/host/file"
	app_with_links nulllink "[{path: \"/dev/null\", target: \"$T/host/file\"},
		{path: \"/dev/console\", target: \"$T/host/file\"}]"
	run_split "$SVRUN" run --rm nulllink cat /proc/keys
	expect_status 0
	[ -z "$out" ]
	[ "$(<"$T/host/file")" = host ]
}

@test "links of the image at mount points lead nowhere but into the image" {
	mkdir "$T/host"
	app_with_links hostslink "[{path: \"/etc/hosts\", target: \"/../../..$T/host/hosts\"}]"
	run_split "$SVRUN" run --rm hostslink cat /etc/hosts
	expect_status 0
	expect_in "$out" localhost
	[ -z "$(ls -A "$T/host")" ]
}

@test "CVE-2024-0133, CVE-2024-45310: no mount point is made in a volume over a link" {
	need_test_image
	mkdir "$T/vol" "$T/host"
	ln -s "$T/host" "$T/vol/link"
	ln -s ../host "$T/vol/up"
	for place in link/x up/x; do
		run_split "$SVRUN" run --rm -v "$T/vol:/vol" -v "$T/host:/vol/$place" "$IMAGE" true
		[ "$status" != 0 ]
		expect_in "$err" "does not exist, and a link leads to it into a volume"
		[ -z "$(ls -A "$T/host")" ] || fail "made $(ls "$T/host") on the host"
	done
	# What the command line names itself is made.
	run_split "$SVRUN" run --rm -v "$T/vol:/vol" -v "$T/host:/vol/new/x" "$IMAGE" true
	expect_status 0
	[ -d "$T/vol/new/x" ]
	expect_clean
}

@test "no device is made in a volume that lies on /dev, however that is written" {
	need_test_image
	mkdir "$T/vol"
	for place in /dev /dev/ /dev/. //dev /./dev; do
		run_split "$SVRUN" run --rm -v "$T/vol:$place" "$IMAGE" true
		expect_status 0
		[ -z "$(ls -A "$T/vol")" ] || fail "$place: made $(ls "$T/vol") on the host"
	done
	expect_clean
}

@test "CVE-2022-29162, CVE-2022-24769: capability sets are Docker's, inheritable and ambient are empty" {
	need_test_image
	inside -- 'grep ^Cap /proc/self/status'
	[ "$(tr -d '\t\n' <<<"$out")" = "CapInh:0000000000000000CapPrm:00000000a80425fbCapEff:00000000a80425fbCapBnd:00000000a80425fbCapAmb:0000000000000000" ] || fail "$out"
	inside -u tester -- 'grep ^Cap /proc/self/status'
	[ "$(tr -d '\t\n' <<<"$out")" = "CapInh:0000000000000000CapPrm:0000000000000000CapEff:0000000000000000CapBnd:00000000a80425fbCapAmb:0000000000000000" ] || fail "$out"
}

@test "CVE-2023-25809, CVE-2022-0492: cgroups are read-only inside" {
	need_test_image
	inside -- 'grep cgroup /proc/self/mountinfo | grep -v " ro," | grep -v "^#"; true'
	[ -z "$out" ] || fail "writable: $out"
	inside -- 'for f in $(find /sys/fs/cgroup -name release_agent -o -name cgroup.procs -o -name notify_on_release); do
		(echo 1 >$f) 2>/dev/null && echo "wrote $f"; done; mkdir /sys/fs/cgroup/x 2>/dev/null && echo made; true'
	[ -z "$out" ] || fail "$out"
}

@test "CVE-2024-21626: no descriptor but 0 to 2 gets inside, and none is a working directory" {
	need_test_image
	exec 8</ 9<"$T"
	inside -- 'for f in /proc/self/fd/*; do case ${f##*/} in 0|1|2) ;; *) [ ! -e "$f" ] || readlink "$f";; esac; done'
	[ -z "$out" ] || fail "open: $out"
	for fd in 3 4 5 6 7 8 9 10 11 12; do
		run_split "$SVRUN" run --rm -w "/proc/self/fd/$fd" "$IMAGE" pwd
		expect_status 125
		run_split "$SVRUN" run --rm "$IMAGE" "/proc/self/fd/$fd/bin/true"
		expect_status 127
	done
	exec 8<&- 9<&-
	expect_clean
}

@test "CVE-2025-52881: kernel settings are read-only inside" {
	need_test_image
	inside -- 'for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/kernel/hostname \
		/proc/sys/vm/overcommit_memory /proc/sysrq-trigger /proc/irq/default_smp_affinity; do
		(echo x >$f) 2>/dev/null && echo "wrote $f"; done; true'
	[ -z "$out" ] || fail "$out"
}

@test "CVE-2026-30892, CVE-2024-40635: user ids are strict numbers that fit" {
	need_test_image
	for user in 4294967295 4294967296 2147483648 18446744073709551616 -1 +0; do
		run_split "$SVRUN" run --rm -u "$user" "$IMAGE" true
		expect_status 2
		expect_in "$err" "expected 0 to 2147483647"
	done
	for user in "0 " 0x0 0a "1000 x" outside; do
		run_split "$SVRUN" run --rm -u "$user" "$IMAGE" true
		expect_status 125
		expect_in "$err" "is not in the image's /etc/passwd"
	done
	run_split "$SVRUN" run --rm -u 0:4294967296 "$IMAGE" true
	expect_status 2
}

@test "CVE-2026-53488: labels of an image grant nothing" {
	need_root
	make_app labels '.labels = {"org.svrun.rm": "false", "org.svrun.privileged": "true", "devices": "/dev/mem", "io.podman.annotations.privileged": "TRUE"}'
	lock_and_build "$APP" >/dev/null
	run_split "$SVRUN" run --rm labels cat /proc/self/status
	expect_in "$out" "CapBnd:	00000000a80425fb" "NoNewPrivs:	1" "Seccomp:	2"
	expect_clean
}

@test "CVE-2021-41091: the store is for root alone" {
	need_test_image
	[ "$(stat -c %a "$SVRUN_ROOT")" = 700 ]
	[ "$(stat -c %a "$SVRUN_ROOT/instances")" = 700 ]
}

@test "CVE-2022-2989, CVE-2023-25173: supplementary groups are those of the image" {
	need_test_image
	inside -u tester -- 'id -G; id -u; id -g'
	[ "$(tr '\n' ' ' <<<"$out")" = "1000 2000 2001 1000 1000 " ] || fail "$out"
	inside -- 'id -G'
	[ "$out" = 0 ]
	# svrun's own do not come along.
	run_split setpriv --groups 4,20,24 "$SVRUN" run --rm "$IMAGE" id -G
	[ "$out" = 0 ] || fail "$out $err"
}

@test "CVE-2021-21334: the environment is built from nothing" {
	need_test_image
	SECRET_TOKEN=abc run_split "$SVRUN" run --rm "$IMAGE" env
	[ "$(cut -d= -f1 <<<"$out" | sort | tr '\n' ' ')" = "CORES FROM_IMAGE HOME HOSTNAME MEM PATH " ] || fail "$out"
}

@test "every dangerous system call is refused" {
	need_test_image
	need_probe
	run_split "$SVRUN" run --rm -v "$PROBE:/probe:ro" "$IMAGE" /probe calls
	expect_status 0
	[ -z "$out" ] || fail "$out"
}

@test "TIOCSTI: nothing can be typed into a terminal" {
	need_test_image
	need_program script
	need_probe
	script -qec "'$SVRUN' run --rm -it -v '$PROBE:/probe:ro' $IMAGE /probe terminal" "$T/log" >/dev/null </dev/null
	run_split "$SVRUN" run --rm -v "$PROBE:/probe:ro" "$IMAGE" /probe terminal
	expect_status 0
}

@test "a terminal of the host is never handed over" {
	need_test_image
	need_program script
	script -qec "'$SVRUN' run --rm -i $IMAGE sh -c 'ls -l /proc/self/fd; tty'" "$T/log" >/dev/null </dev/null || true
	expect_in "$(<"$T/log")" "pipe:" "not a tty"
	[[ $(<"$T/log") != */dev/pts* ]]
}

@test "a file given as a stream cannot be opened again with more rights" {
	need_test_image
	need_probe
	echo input >"$T/in"
	echo earlier >"$T/log"
	chmod 666 "$T/in" "$T/log"
	"$SVRUN" run --rm -i -v "$PROBE:/probe:ro" "$IMAGE" sh -c '/probe reopen 0 w; echo changed >/proc/self/fd/0' <"$T/in" >"$T/out" 2>&1 || true
	[ "$(<"$T/in")" = input ]
	"$SVRUN" run --rm -v "$PROBE:/probe:ro" "$IMAGE" sh -c 'timeout 1 cat /proc/self/fd/1 >&2; true' >>"$T/log" 2>"$T/leak" || true
	[[ $(<"$T/leak") != *earlier* ]]
}

@test "devices of the host cannot be opened, whatever node is made" {
	need_test_image
	need_probe
	run_split "$SVRUN" run --rm -v "$PROBE:/probe:ro" "$IMAGE" /probe devices
	expect_status 0 || fail "$out"
}

@test "set-id programs gain nothing" {
	need_test_image
	need_probe
	cp "$PROBE" "$T/suid"
	chown 0:0 "$T/suid"
	chmod 6755 "$T/suid"
	run_split "$SVRUN" run --rm -u tester -v "$T/suid:/suid" "$IMAGE" /suid ids
	[ "$out" = "1000 1000 1000 1000" ] || fail "$out"
}

@test "what tells about the host or controls it is masked" {
	need_test_image
	inside -- 'for f in /proc/kcore /proc/keys /proc/timer_list /proc/kallsyms /proc/interrupts /proc/sched_debug /proc/latency_stats; do
		[ ! -e $f ] || [ -z "$(head -c 1 $f 2>/dev/null)" ] || echo "$f"; done
		for d in /proc/acpi /proc/scsi /proc/asound /sys/firmware /sys/devices/virtual/powercap; do
		[ ! -e $d ] || [ -z "$(ls -A $d)" ] || echo "$d"; done
		chmod 0777 /proc/keys 2>/dev/null && echo "chmod reached the mask"
		(echo x >/sys/kernel/uevent_helper) 2>/dev/null && echo uevent_helper; true'
	[ -z "$out" ] || fail "not masked: $out"
}

@test "no process, network or host name of the host is seen" {
	need_test_image
	inside --hostname inside -- 'ls -d /proc/[0-9]* | wc -l; hostname; ls /sys/class/net'
	expect_status 0
	[ "$(sed -n 2p <<<"$out")" = inside ]
	[ "$(sed -n '3,$p' <<<"$out")" = lo ]
	[ "$(head -n 1 <<<"$out")" -lt 6 ]
}

@test "a fork bomb ends at the limit of processes" {
	need_test_image
	inside --pids 20 -- 'i=0; while [ $i -lt 60 ]; do sleep 5 & i=$((i + 1)); done 2>/dev/null; ls -d /proc/[0-9]* | wc -l; exit 0'
	[ "$status" != 125 ]
	if [ -n "$out" ]; then [ "$out" -le 21 ]; fi
	expect_clean
}

@test "memory beyond the limit kills, and only inside" {
	need_test_image
	inside --memory 24m -- 'tail -c 200000000 /dev/zero >/dev/null'
	[ "$status" != 0 ]
	expect_clean
}

@test "writes into the image's read-only tree stay in the instance" {
	need_test_image
	inside -- 'echo changed >/etc/passwd; rm /usr/bin/no-interpreter; cat /etc/passwd'
	[ "$out" = changed ]
	inside -- 'grep -c tester /etc/passwd; ls /usr/bin/no-interpreter'
	expect_status 0
}

@test "a program that will not die with svrun is killed by the next command" {
	local pid
	need_test_image
	need_probe
	"$SVRUN" run --rm -v "$PROBE:/probe:ro" "$IMAGE" /probe survive >"$T/log" 2>&1 3>&- &
	pid=$!
	for _ in $(seq 300); do
		! grep -q ready "$T/log" || break
		sleep 0.01
	done
	kill -9 "$pid"
	wait "$pid" || true
	pgrep -f '^/probe survive' >/dev/null
	inside -- true
	expect_status 0
	! pgrep -f '^/probe survive'
	expect_clean
}

@test "svrun killed at any moment leaves nothing after the next command" {
	local delay nap=$((100000 + $$)) # nobody else sleeps that long
	need_test_image
	for delay in 0 0.001 0.002 0.003 0.004 0.005 0.007 0.01 0.02 0.05; do
		"$SVRUN" run --rm "$IMAGE" sleep "$nap" >/dev/null 2>&1 3>&- &
		sleep "$delay"
		kill -9 $! 2>/dev/null
		wait $! 2>/dev/null || true
	done
	inside -- true
	expect_status 0
	expect_clean
	[ -z "$(pgrep -f "^sleep $nap\$")" ]
}
