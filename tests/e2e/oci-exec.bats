#!/usr/bin/env bats
# svrun-oci exec, and everything that is applied to a process.

load helpers
load oci

setup() {
	oci_setup
}

teardown() {
	[ -z "${SERVER-}" ] || kill "$SERVER" 2>/dev/null || true
	oci_teardown
}

# A container that stays, from a bundle changed by jq programs.
start_container() { # [JQ...]
	local program
	for program; do
		change_config "$B" "$program"
	done
	set_script "$B" 'trap "exit 0" TERM; while :; do sleep 1000 & wait; done'
	oci run --detach --bundle "$B" "$ID" </dev/null >"$T/log" 2>&1 || fail "$(cat "$T/log")"
}

# The 16 hex digits of each set of this process: Inh Prm Eff Bnd Amb.
CAPS='sed -n "s/^Cap\(...\):\t*/\1 /p" /proc/self/status'
caps() { # BOUNDING EFFECTIVE PERMITTED INHERITABLE AMBIENT
	printf 'Inh %016x\nPrm %016x\nEff %016x\nBnd %016x\nAmb %016x' "$4" "$3" "$2" "$1" "$5"
}

# ---- what it runs, and its end ----

@test "a process is of the container, and its status is ours" {
	start_container
	run_split oci exec "$ID" sh -c 'hostname; test $$ -gt 1 && kill -0 1; echo err >&2; exit 7'
	expect_status 7
	[ "$out" = inside ] || fail "$out"
	[ "$err" = err ] || fail "$err"
	run_split oci exec "$ID" sh -c 'kill -9 $$'
	expect_status 137
	run_split oci exec "$ID" sh -c 'kill -TERM $$'
	expect_status 143
	run_split oci exec "$ID" true
	expect_status 0
	[ -z "$out$err" ] || fail "$out$err"
	oci delete --force "$ID"
	expect_oci_clean
}

@test "a process joins the time namespace, too" {
	start_container '.linux.namespaces += [{type: "time"}] | .linux.timeOffsets = {monotonic: {secs: 7}}'
	run_split oci exec "$ID" cat /proc/self/timens_offsets
	expect_status 0
	expect_in "$(tr -s ' ' <<<"$out")" "monotonic 7 0"
	oci delete --force "$ID"
	expect_oci_clean
}

@test "why a program could not be started is told by text and status" {
	start_container
	run_split oci exec "$ID" nope
	expect_status 127
	expect_in "$err" "svrun-oci: exec 'nope': executable file not found in PATH (/usr/local/sbin:"
	run_split oci exec "$ID" /nope/x
	expect_status 127
	expect_in "$err" "exec '/nope/x': No such file or directory"
	run_split oci exec "$ID" /etc/passwd
	expect_status 126
	expect_in "$err" "exec '/etc/passwd': Permission denied"
	run_split oci exec "$ID" /etc
	expect_status 126
	run_split oci exec --cwd /no/such "$ID" true
	expect_status 255
	expect_in "$err" "working directory /no/such: No such file or directory"
	run_split oci --log "$T/errors" --log-format json exec "$ID" nope
	expect_status 127
	jq -e 'select(.level == "error") | .msg | contains("executable file not found")' "$T/errors"
}

@test "stdin is the process's, and output is whole" {
	start_container
	run oci exec "$ID" cat < <(seq 20000)
	[ "$output" = "$(seq 20000)" ] || fail "${#output} bytes"
	[ "$(echo hello | oci exec "$ID" sh -c 'wc -c; wc -c')" = "$(printf '6\n0')" ]
	# As engines do it: the streams are passed on as they are.
	oci exec "$ID" readlink /proc/self/fd/1 >"$T/file"
	[ "$(cat "$T/file")" = "$T/file" ] || fail "$(cat "$T/file")"
}

@test "signals are passed on" {
	start_container
	mkfifo "$T/ready"
	"$OCI" --root "$T/state" exec "$ID" sh -c \
		'trap "echo got; exit 9" USR1; echo ready; while :; do sleep 0.05; done' >"$T/ready" &
	exec 7<"$T/ready"
	read -r line <&7
	[ "$line" = ready ]
	kill -USR1 $!
	status=0
	wait $! || status=$?
	expect_status 9
	read -r line <&7
	[ "$line" = got ]
	exec 7<&-
}

@test "no arguments, or two kinds of them, are refused" {
	start_container
	run_split oci exec
	expect_status 1
	run_split oci exec "$ID"
	expect_status 1
	expect_in "$err" "neither a command nor --process"
	echo '{}' >"$T/p.json"
	run_split oci exec --process "$T/p.json" "$ID" true
	expect_status 1
	expect_in "$err" "both --process and a command"
	run_split oci exec --no-such "$ID" true
	expect_status 1
	run_split oci exec no-such-container true
	expect_status 255
	expect_in "$err" "container does not exist"
}

# ---- states ----

@test "a created container takes processes, a stopped one does not" {
	set_script "$B" 'exit 0'
	oci create --bundle "$B" "$ID"
	run_split oci exec "$ID" hostname
	expect_status 0
	[ "$out" = inside ] || fail "$out"
	oci start "$ID"
	await_status stopped
	run_split oci exec "$ID" true
	expect_status 255
	expect_in "$err" "cannot exec in a stopped container"
	oci delete "$ID"
	expect_oci_clean
}

@test "a paused container takes none, or lets it wait" {
	start_container
	run oci pause "$ID"
	[ "$status" = 0 ] || skip "no freezer: $output"
	run_split oci exec "$ID" true
	expect_status 255
	expect_in "$err" "cannot exec in a paused container"
	oci exec --ignore-paused "$ID" sh -c 'echo thawed' >"$T/said" &
	sleep 0.2
	[ ! -s "$T/said" ]
	oci resume "$ID"
	wait $!
	[ "$(cat "$T/said")" = thawed ]
}

@test "a process in a container that is killed ends, and leaves nothing" {
	local i
	start_container
	for i in 1 2 3 4 5 6 7 8; do
		oci exec "$ID" sh -c 'sleep 1000' &
	done 2>/dev/null
	for i in 1 2 3 4 5 6 7 8; do
		oci exec "$ID" true 2>/dev/null || true
		[ "$i" != 4 ] || oci delete --force "$ID"
	done
	wait
	expect_oci_clean
}

@test "300 at once" {
	local i
	start_container
	for i in $(seq 300); do
		oci exec "$ID" sh -c "exit $((i % 5 ? 0 : 1))" >>"$T/err" 2>&1 || echo "$i" >>"$T/failed" &
		[ $((i % 25)) != 0 ] || wait
	done
	wait
	[ "$(sort -n "$T/failed")" = "$(seq 5 5 300)" ] || fail "$(cat "$T/failed" "$T/err")"
	[ ! -s "$T/err" ] || fail "$(cat "$T/err")"
	# Nobody is left but the first process, its sleep, and who looks.
	[ "$(oci exec "$ID" sh -c 'set -- /proc/[0-9]*; echo $#')" -le 4 ]
}

# ---- the process's properties ----

@test "working directory and environment are those asked for" {
	mkdir "$B/rootfs/work"
	start_container '.process.env += ["A=1", "B=2"] | .process.cwd = "/work"'
	[ "$(oci exec "$ID" pwd)" = /work ]
	[ "$(oci exec --cwd /etc "$ID" pwd)" = /etc ]
	[ "$(oci exec -e B=3 --env C=4=5 -e D= "$ID" sh -c 'echo $A $B $C $D.')" = "1 3 4=5 ." ]
	[ "$(SECRET=1 oci exec "$ID" env | grep -c SECRET)" = 0 ]
	[ "$(oci exec "$ID" env | sort)" = "$(printf '%s\n' A=1 B=2 HOME=/root TERM=xterm \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin | sort)" ]
	run_split oci exec -e NOVALUE "$ID" true
	expect_status 255
	expect_in "$err" "--env 'NOVALUE': expected NAME=VALUE"
	run_split oci exec --cwd work "$ID" true
	expect_status 255
	expect_in "$err" "--cwd 'work': expected an absolute path"
}

@test "a program without a home gets its user's" {
	echo 'app:x:1000:1000::/home/app:/bin/sh' >>"$B/rootfs/etc/passwd"
	start_container
	[ "$(oci exec "$ID" sh -c 'echo $HOME')" = /root ]
	[ "$(oci exec -u 1000 "$ID" sh -c 'echo $HOME')" = /home/app ]
	[ "$(oci exec -u 1001 "$ID" sh -c 'echo $HOME')" = / ]
	[ "$(oci exec -e HOME=/x "$ID" sh -c 'echo $HOME')" = /x ]
	mkfifo "$B/rootfs/etc/fifo"
	mv "$B/rootfs/etc/fifo" "$B/rootfs/etc/passwd"
	[ "$(timeout 10 "$OCI" --root "$T/state" exec "$ID" sh -c 'echo $HOME')" = / ]
}

@test "user and groups are exactly those asked for" {
	start_container '.process.user = {uid: 5, gid: 6, additionalGids: [7, 8], umask: 63}'
	[ "$(oci exec "$ID" sh -c 'id -u; id -g; id -G; umask')" = "$(printf '5\n6\n6 7 8\n0077')" ]
	[ "$(oci exec -u 1000 "$ID" sh -c 'id -u; id -g; id -G')" = "$(printf '1000\n6\n6')" ]
	[ "$(oci exec -u 1000:1001 "$ID" sh -c 'id -u; id -g; id -G')" = "$(printf '1000\n1001\n1001')" ]
	[ "$(oci exec -u 0:0 -g 10 --additional-gids 11 "$ID" id -G)" = "0 10 11" ]
	[ "$(oci exec -g 10 "$ID" id -G)" = "6 7 8 10" ]
}

@test "a user that is no number is nobody (CVE-2026-30892)" {
	local user
	start_container
	for user in root 1000x x1000 ' 1000' '1000 ' +5 -1 0x10 1e3 4294967295 4294967296 2147483648 \
		18446744073709551616 99999999999999999999999 1000: :1000 1000:x 1000:1: 1:2:3 '' ; do
		[ -n "$user" ] || continue
		run_split oci exec -u "$user" "$ID" id
		expect_status 255
		[ -z "$out" ] || fail "$user: $out"
		expect_in "$err" "expected a number from 0 to 2147483647"
	done
	run_split oci exec -g root "$ID" id
	expect_status 255
	[ "$(oci exec -u 2147483647:2147483647 "$ID" id -u)" = 2147483647 ]
}

@test "capability sets are exact, in run and exec" {
	local both='.process.capabilities = {bounding: ["CAP_CHOWN", "CAP_KILL"],
		effective: ["CAP_KILL"], permitted: ["CAP_CHOWN", "CAP_KILL"]}'
	# A program of root gets the bounding set at exec, unless no_new_privs or ids say otherwise.
	change_config "$B" "$both"' | .process.user = {uid: 7, gid: 7}'
	set_script "$B" "$CAPS"
	[ "$(oci run --bundle "$B" "$ID")" = "$(caps 0x21 0 0 0 0)" ]
	change_config "$B" '.process.capabilities += {inheritable: ["CAP_KILL"], ambient: ["CAP_KILL"]}'
	[ "$(oci run --bundle "$B" "$ID")" = "$(caps 0x21 0x20 0x20 0x20 0x20)" ]
	start_container
	[ "$(oci exec "$ID" sh -c "$CAPS")" = "$(caps 0x21 0x20 0x20 0x20 0x20)" ]
	[ "$(oci exec -u 0 "$ID" sh -c "$CAPS")" = "$(caps 0x21 0x21 0x21 0x20 0x20)" ]
	# More of them, never inheritable (CVE-2022-29162).
	[ "$(oci exec -u 0 --cap CAP_FOWNER -c CAP_SETUID "$ID" sh -c "$CAPS")" = \
		"$(caps 0xa9 0xa9 0xa9 0x20 0x20)" ]
	run_split oci exec --cap CAP_NOTHING "$ID" true
	expect_status 0
	expect_in "$err" "--cap: unknown capability 'CAP_NOTHING'"
}

@test "no capability at all" {
	start_container 'del(.process.capabilities)'
	[ "$(oci exec "$ID" sh -c "$CAPS")" = "$(caps 0 0 0 0 0)" ]
}

@test "who is granted a device makes no nodes" {
	local mknod='.process.capabilities |= map_values(["CAP_KILL", "CAP_MKNOD"])'
	start_container "$mknod"
	expect_in "$(oci exec "$ID" sh -c "$CAPS")" "Bnd $(printf %016x 0x8000020)"
	oci delete --force "$ID"
	start_container '.linux.devices = [{path: "/dev/fuse", type: "c", major: 10, minor: 229}]'
	[ "$(oci exec "$ID" sh -c "$CAPS" | grep -c 0000000008000020)" = 0 ]
	expect_in "$(oci exec "$ID" sh -c "$CAPS")" "Bnd $(printf %016x 0x20)"
	expect_in "$(oci exec --cap CAP_MKNOD "$ID" sh -c "$CAPS")" "Bnd $(printf %016x 0x20)"
}

@test "no_new_privs, umask and limits" {
	start_container '.process.noNewPrivileges = false'
	NNP='grep NoNewPrivs /proc/self/status'
	[ "$(oci exec "$ID" sh -c "$NNP")" = "$(printf 'NoNewPrivs:\t0')" ]
	[ "$(oci exec --no-new-privs "$ID" sh -c "$NNP")" = "$(printf 'NoNewPrivs:\t1')" ]
	[ "$(oci exec "$ID" sh -c umask)" = 0022 ]
	[ "$(oci exec "$ID" sh -c 'ulimit -n; ulimit -Hn')" = "$(printf '1024\n1024')" ]
}

@test "100 limits" {
	local names='["CPU","FSIZE","DATA","STACK","CORE","RSS","NPROC","NOFILE","MEMLOCK","AS","LOCKS"]'
	change_config "$B" '.process.rlimits = [range(100) as $i |
		{type: ("RLIMIT_" + ('"$names"')[$i % 11]), soft: 1000, hard: 1000}]'
	run_split oci run --bundle "$B" "$ID"
	[ "$status" != 0 ] || fail "the same limit twice was taken"
	change_config "$B" '.process.rlimits = ['"$names"'[] | {type: ("RLIMIT_" + .),
		soft: (if . == "AS" or . == "STACK" or . == "DATA" then 268435456 else 1000 end),
		hard: (if . == "AS" or . == "STACK" or . == "DATA" then 268435456 else 1000 end)}]'
	set_script "$B" 'ulimit -t; ulimit -f; ulimit -n; ulimit -Hn'
	oci run --bundle "$B" "$ID" >"$T/limits" || [ -s "$T/limits" ] || skip "limits are lower here"
	[ "$(sed -n '1p;3p;4p' "$T/limits" | tr '\n' ' ')" = "1000 1000 1000 " ] || fail "$(cat "$T/limits")"
}

@test "a limit above the host's says so" {
	change_config "$B" '.process.rlimits = [{type: "RLIMIT_NOFILE", soft: 2147483647, hard: 2147483647}]'
	run_split oci run --bundle "$B" "$ID"
	[ "$status" != 0 ]
	expect_in "$err" "RLIMIT_NOFILE: "
	expect_oci_clean
}

@test "oom score, scheduler, io priority, personality, affinity" {
	start_container '.process.oomScoreAdj = 321
		| .process.scheduler = {policy: "SCHED_BATCH", nice: 3}
		| .process.ioPriority = {class: "IOPRIO_CLASS_BE", priority: 6}
		| .linux.personality = {domain: "LINUX32"}
		| .process.execCPUAffinity = {initial: "0", final: "0"}'
	[ "$(oci exec "$ID" cat /proc/self/oom_score_adj)" = 321 ]
	[ "$(cut -d' ' -f19 "/proc/$(oci state "$ID" | jq .pid)/stat")" = 3 ]
	[ "$(oci exec "$ID" sh -c 'cut -d" " -f41 /proc/self/stat 2>/dev/null || sed "s/.*) //" /proc/self/stat |
		{ set -- $(cat); echo ${39}; }' | tail -1)" = 3 ] # SCHED_BATCH
	[ "$(oci exec "$ID" sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)" = 0 ]
	[ "$(oci exec "$ID" cat /proc/self/personality 2>/dev/null || echo 00000008)" = 00000008 ]
	jq '.process | .oomScoreAdj = 5 | .execCPUAffinity = {final: "4000"} | .args = ["true"]' \
		"$B/config.json" >"$T/p.json"
	run_split oci exec --process "$T/p.json" "$ID"
	expect_status 255
	expect_in "$err" "CPU affinity 4000: Invalid argument"
}

@test "labels that the host cannot give are errors" {
	start_container
	if [ "$(cat /sys/module/apparmor/parameters/enabled 2>/dev/null)" != Y ]; then
		run_split oci exec --apparmor some-profile "$ID" true
		expect_status 255
		expect_in "$err" "process.apparmorProfile: this host does not run AppArmor"
		oci exec --apparmor unconfined "$ID" true
	fi
	if [ ! -e /sys/fs/selinux/enforce ]; then
		run_split oci exec --process-label a:b:c:d "$ID" true
		expect_status 255
		expect_in "$err" "process.selinuxLabel: this host does not run SELinux"
		change_config "$B" '.process.selinuxLabel = "a:b:c:d"'
		run_split oci create --bundle "$B" "$ID-2"
		[ "$status" != 0 ]
		expect_in "$err" "process.selinuxLabel: this host does not run SELinux"
	fi
}

@test "the container's filter is the process's" {
	start_container '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW",
		syscalls: [{names: ["mkdir", "mkdirat"], action: "SCMP_ACT_ERRNO", errnoRet: 5}]}'
	run_split oci exec "$ID" mkdir /tmp/x
	expect_status 1
	expect_in "$err" "Input/output error"
	[ "$(oci exec "$ID" sh -c 'grep Seccomp: /proc/self/status')" = "$(printf 'Seccomp:\t2')" ]
	# Also without no_new_privs: then it is put on before the capabilities go.
	jq '.process | .noNewPrivileges = false | .args = ["mkdir", "/tmp/x"]' "$B/config.json" >"$T/p.json"
	run_split oci exec --process "$T/p.json" "$ID"
	expect_status 1
	expect_in "$err" "Input/output error"
}

@test "sysctls of the container's namespaces" {
	change_config "$B" '.linux.sysctl = {"net.ipv4.ip_forward": "1", "kernel/shmmax": "12345678",
		"kernel.domainname": "there"}'
	set_script "$B" 'cat /proc/sys/net/ipv4/ip_forward /proc/sys/kernel/shmmax /proc/sys/kernel/domainname'
	[ "$(oci run --bundle "$B" "$ID")" = "$(printf '1\n12345678\nthere')" ]
	change_config "$B" '.linux.sysctl = {"kernel.hostname": "x"}'
	run_split oci run --bundle "$B" "$ID"
	[ "$status" != 0 ]
	expect_in "$err" "sysctl kernel.hostname: that is what hostname is for"
	change_config "$B" '.linux.sysctl = {"vm.swappiness": "1"}'
	run_split oci run --bundle "$B" "$ID"
	[ "$status" != 0 ]
	expect_in "$err" "sysctl vm.swappiness would change the host"
	change_config "$B" '.linux.sysctl = {"net.ipv4.ip_forward": "1"}
		| .linux.namespaces |= map(if .type == "network" then .path = "/proc/self/ns/net" else . end)'
	run_split oci run --bundle "$B" "$ID"
	[ "$status" != 0 ]
	expect_in "$err" "sysctl net.ipv4.ip_forward would change the host"
	expect_oci_clean
}

@test "network interfaces move in" {
	need_program ip
	local name=vx${ID##*[!a-zA-Z0-9]}
	name=${name:0:12}
	ip link add "$name"a type veth peer name "$name"b || skip "no veth"
	ip addr add 10.77.66.55/24 dev "$name"a
	change_config "$B" '.linux.netDevices = {($n): {name: "data0"}}' --arg n "$name"a
	cp /sbin/ip "$B/rootfs/bin/" 2>/dev/null || true
	set_script "$B" 'cat /proc/net/dev; cat /proc/net/fib_trie'
	run_split oci run --bundle "$B" "$ID"
	ip link del "$name"b 2>/dev/null || true
	expect_status 0
	expect_in "$out" data0: 10.77.66.55
	change_config "$B" '.linux.netDevices = {"no-such-dev": {}}'
	run_split oci run --bundle "$B" "$ID"
	[ "$status" != 0 ]
	expect_in "$err" "linux.netDevices: there is no interface 'no-such-dev'"
	expect_oci_clean
}

# ---- --process, --detach ----

@test "a process of its own, as engines give it" {
	start_container
	jq '{terminal: false, user: {uid: 9, gid: 9}, args: ["sh", "-c", "id -u; echo $X; pwd"],
		env: ["X=y", "PATH=/bin"], cwd: "/tmp"}' -n >"$T/p.json"
	[ "$(oci exec --process "$T/p.json" "$ID")" = "$(printf '9\ny\n/tmp')" ]
	[ "$(oci exec -p "$T/p.json" -e X=z -u 8 "$ID")" = "$(printf '8\nz\n/tmp')" ]
	local bad
	for bad in '' '{' '[]' '{"args":["x"],"cwd":"tmp"}' '{"args":[],"cwd":"/"}' '{"args":"x","cwd":"/"}' \
		'{"args":["x"],"cwd":"/","user":{"uid":-1}}'; do
		printf %s "$bad" >"$T/p.json"
		run_split oci exec --process "$T/p.json" "$ID"
		expect_status 255
		expect_in "$err" "$T/p.json"
	done
	run_split oci exec --process "$T/missing" "$ID"
	expect_status 255
}

@test "detached, with its pid" {
	start_container
	oci exec --detach --pid-file "$T/pid" "$ID" sleep 1000 </dev/null
	local pid
	pid=$(cat "$T/pid")
	[ "$(tr '\0' ' ' <"/proc/$pid/cmdline")" = "sleep 1000 " ]
	[ "$(readlink "/proc/$pid/ns/pid")" = "$(readlink "/proc/$(oci state "$ID" | jq .pid)/ns/pid")" ]
	expect_in "$(oci ps "$ID")" "sleep 1000"
	oci delete --force "$ID"
	expect_oci_clean
}

@test "a killed runtime takes its process with it" {
	start_container
	"$OCI" --root "$T/state" exec --pid-file "$T/pid" "$ID" sleep 1000 </dev/null &
	local runtime=$! i
	for i in $(seq 200); do
		[ ! -s "$T/pid" ] || break
		sleep 0.02
	done
	kill -9 "$runtime"
	wait "$runtime" || true
	for i in $(seq 200); do
		[ -e "/proc/$(cat "$T/pid")" ] || return 0
		sleep 0.02
	done
	fail "it lives on"
}

@test "cgroups below the container's" {
	start_container
	local dir dirs
	# Others' cgroups may go while we look.
	dirs=$(find /sys/fs/cgroup -type d -name "*$ID*" 2>/dev/null) || true
	[ -n "$dirs" ] || skip "the container has no cgroup"
	for dir in $dirs; do
		mkdir "$dir/sub"
	done
	# A new cpuset has to be told what it may use.
	for dir in /sys/fs/cgroup/cpuset/*"$ID"*/; do
		[ -e "$dir/cpuset.cpus" ] || continue
		cat "$dir/cpuset.cpus" >"$dir/sub/cpuset.cpus"
		cat "$dir/cpuset.mems" >"$dir/sub/cpuset.mems"
	done
	oci exec "$ID" true
	oci exec --detach --cgroup /sub --pid-file "$T/pid" "$ID" sleep 1000 </dev/null
	[ "$(grep -vc '/sub$' "/proc/$(cat "$T/pid")/cgroup")" -le 1 ] || fail "$(cat "/proc/$(cat "$T/pid")/cgroup")"
	if [ ! -e /sys/fs/cgroup/cgroup.controllers ]; then
		oci exec --detach --cgroup pids:sub --pid-file "$T/pid" "$ID" sleep 1000 </dev/null
		[ "$(grep -c '/sub$' "/proc/$(cat "$T/pid")/cgroup")" = 1 ]
	fi
	run_split oci exec --cgroup nothing "$ID" true
	expect_status 255
	expect_in "$err" "cgroup nothing below the container's: No such file or directory"
	run_split oci exec --cgroup ../.. "$ID" true
	expect_status 255
	run_split oci exec --cgroup /sub/../../.. "$ID" true
	expect_status 255
	oci delete --force "$ID"
	expect_oci_clean
}

# ---- descriptors ----

@test "nothing but the streams and what was asked for is open (CVE-2024-21626)" {
	local list='cd /proc/self/fd; for i in 3 4 5 6 7 8 9 10 11 12 13 14 15 16 20 50 100; do
		[ ! -e $i ] || readlink $i; done'
	set_script "$B" "$list"
	echo one >"$T/one"
	echo two >"$T/two"
	# 3 is what bats itself writes to.
	open() {
		"$@" 3<"$T/one" 4<"$T/two" 9<"$T/two" 50</
	}
	[ -z "$(open oci run --bundle "$B" "$ID")" ]
	[ "$(open oci run --preserve-fds 1 --bundle "$B" "$ID")" = "$T/one" ]
	start_container
	[ -z "$(open oci exec "$ID" sh -c "$list")" ]
	[ "$(open oci exec --preserve-fds 2 "$ID" sh -c "$list")" = "$(printf '%s\n' "$T/one" "$T/two")" ]
	[ "$(open oci exec --preserve-fds 1 "$ID" cat /proc/self/fd/3)" = one ]
	run_split open oci exec --preserve-fds 3 "$ID" true
	[ "$status" != 0 ]
	expect_in "$err" "descriptor 5 is to be passed on, and is not open"
}

@test "a working directory that leads out is none (CVE-2024-21626)" {
	local n
	start_container
	exec 7</ 8</etc
	for n in 3 4 5 6 7 8 9 10 11 12; do
		run_split oci exec --cwd "/proc/self/fd/$n" "$ID" pwd
		expect_status 255
		run_split oci exec --cwd "/proc/self/fd/$n/../.." "$ID" ls
		expect_status 255
		change_config "$B" '.process.cwd = $d' --arg d "/proc/self/fd/$n"
		run_split oci run --bundle "$B" "$ID-2"
		[ "$status" != 0 ] || fail "run in $n: $out"
	done
	ln -s /proc/self/fd/7 "$B/rootfs/link"
	run_split oci exec --cwd /link "$ID" pwd
	expect_status 255
	ln -s / "$B/rootfs/home"
	[ "$(oci exec --cwd /home "$ID" sh -c '/bin/pwd -P')" = / ]
	[ "$(oci exec --cwd /etc/../../.. "$ID" sh -c '/bin/pwd -P')" = / ]
	exec 7<&- 8<&-
}

@test "a program is not looked up through a descriptor of ours" {
	local n
	start_container
	for n in 3 4 5 6 7 8; do
		run_split oci exec "$ID" "/proc/self/fd/$n/bin/sh" -c 'echo out'
		[ "$status" = 126 ] || [ "$status" = 127 ] || fail "$n: $status $out"
	done
}

# ---- user namespaces ----

@test "root of a user namespace is its root, by a process and by the container" {
	chmod 755 "$T"
	chown -R 100000:100000 "$B/rootfs"
	start_container '.linux.namespaces += [{type: "user"}] | .process.oomScoreAdj = 100
		| .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}]
		| .linux.gidMappings = [{containerID: 0, hostID: 100000, size: 65536}]'
	[ "$(oci exec "$ID" sh -c 'id -u; id -g')" = "$(printf '0\n0')" ]
	[ "$(oci exec -u 5:6 -g 7 "$ID" sh -c 'id -u; id -g; id -G')" = "$(printf '5\n6\n6 7')" ]
	oci exec --detach --pid-file "$T/pid" -u 5 "$ID" sleep 1000 </dev/null
	[ "$(sed -n 's/^Uid:\t\([0-9]*\).*/\1/p' "/proc/$(cat "$T/pid")/status")" = 100005 ]
	[ "$(cat "/proc/$(cat "$T/pid")/oom_score_adj")" = 100 ]
	[ "$(oci exec -t "$ID" sh -c 'tty; stat -c %u /dev/pts/0' | tr -d '\r')" = "$(printf '/dev/pts/0\n0')" ]
	run_split oci exec -u 70000 "$ID" true
	expect_status 255
	expect_in "$err" "user 70000: Invalid argument"
}

@test "without root" {
	local user=nobody
	need_program setpriv
	chmod 755 "$T" "$B"
	mkdir -m 700 "$T/state-nobody" && chown "$user" "$T/state-nobody"
	change_config "$B" '.linux.namespaces |= map(select(.type != "network")) | .linux.namespaces += [{type: "user"}]
		| .linux.uidMappings = [{containerID: 0, hostID: ($id | tonumber), size: 1}]
		| .linux.gidMappings = [{containerID: 0, hostID: ($gid | tonumber), size: 1}]
		| del(.linux.resources) | .mounts |= map(select(.type != "sysfs" and .type != "cgroup"))' \
		--arg id "$(id -u $user)" --arg gid "$(id -g $user)"
	change_config "$B" '.mounts |= map(.options = (.options // [] | map(select(startswith("gid=") | not))))'
	set_script "$B" 'sleep 1000'
	cp "$OCI" "$T/svrun-oci" && chmod 755 "$T/svrun-oci"
	as_user() {
		# A sanitizer's leak checker waits for ever for a process that is not dumpable.
		ASAN_OPTIONS=detect_leaks=0 setpriv --reuid "$user" --regid "$(id -g $user)" --clear-groups --inh-caps=-all \
			--bounding-set=-all "$T/svrun-oci" --root "$T/state-nobody" "$@"
	}
	as_user run --detach --bundle "$B" "$ID" </dev/null >"$T/log" 2>&1 || fail "$(cat "$T/log")"
	run_split as_user exec "$ID" sh -c 'id -u; hostname; exit 6'
	as_user exec -t "$ID" tty </dev/null >"$T/tty" 2>&1 || true
	as_user delete --force "$ID"
	expect_status 6
	[ "$out" = "$(printf '0\ninside')" ] || fail "$out$err"
	[ "$(tr -d '\r' <"$T/tty")" = /dev/pts/0 ] || fail "$(cat "$T/tty")"
}

# ---- terminals ----

# Listen on $T/console; the master's bytes go to $T/master.
console_server() {
	cat >"$T/server.py" <<-'PY'
	import os, socket, sys
	path, out = sys.argv[1:3]
	s = socket.socket(socket.AF_UNIX); s.bind(path); s.listen(1)
	open(path + ".ready", "w").close()
	c, _ = s.accept()
	data, fds, _, _ = socket.recv_fds(c, 4096, 1)
	assert data and len(fds) == 1, (data, fds)
	with open(out, "wb", buffering=0) as f:
	    while True:
	        try: b = os.read(fds[0], 4096)
	        except OSError: break
	        if not b: break
	        f.write(b)
	open(out + ".done", "w").close()
	PY
	python3 "$T/server.py" "$T/console" "$T/master" &
	SERVER=$!
	local i
	for i in $(seq 200); do
		[ ! -e "$T/console.ready" ] || return 0
		sleep 0.02
	done
	fail "the server did not start"
}

@test "a terminal's master goes to the console socket" {
	need_program python3
	start_container
	console_server
	oci exec --tty --detach --console-socket "$T/console" --pid-file "$T/pid" "$ID" \
		sh -c 'tty; readlink /proc/self/fd/2; echo bye' </dev/null
	wait "$SERVER"
	[ "$(tr -d '\r' <"$T/master")" = "$(printf '/dev/pts/0\n/dev/pts/0\nbye')" ] || fail "$(cat "$T/master")"
	unset SERVER
}

@test "a console socket that is none, or that closes, fails the exec" {
	need_program python3
	start_container
	run_split oci exec -t -d --console-socket "$T/none" "$ID" sleep 1000
	expect_status 255
	touch "$T/file"
	run_split oci exec -t -d --console-socket "$T/file" "$ID" sleep 1000
	expect_status 255
	expect_in "$err" "not a socket"
	python3 - "$T/closes" <<-'PY' &
	import socket, sys, struct
	s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(1)
	c, _ = s.accept(); c.close(); s.close()
	PY
	SERVER=$!
	until [ -S "$T/closes" ]; do sleep 0.02; done
	sleep 0.1
	# It may close before or after the terminal was sent.
	run_split oci exec -t -d --console-socket "$T/closes" "$ID" sleep 1000
	if [ "$status" != 0 ]; then
		expect_status 255
		expect_in "$err" "send the terminal to the console socket"
		[ "$(oci ps "$ID" | grep -c 'sleep 1000$')" -le 1 ]
	fi
	wait "$SERVER"
	unset SERVER
}

@test "who shows the terminal must be known" {
	start_container
	run_split oci exec -t -d "$ID" true
	expect_status 255
	expect_in "$err" "a terminal and --detach need --console-socket"
	run_split oci exec --console-socket "$T/x" -t "$ID" true
	[ "$status" != 0 ]
	expect_in "$err" "--console-socket needs --detach"
	run_split oci exec -d --console-socket "$T/x" "$ID" true
	expect_status 255
	expect_in "$err" "--console-socket needs --tty, or process.terminal"
}

@test "a terminal in the foreground" {
	start_container
	run_split oci exec --tty "$ID" sh -c 'tty; test -t 0 && test -t 1 && test -t 2 && echo all; exit 5'
	expect_status 5
	[ "$(tr -d '\r' <<<"$out")" = "$(printf '/dev/pts/0\nall')" ] || fail "$out"
	[ "$(oci exec --tty -u 77 "$ID" stat -c %u /dev/pts/0 | tr -d '\r')" = 77 ]
	jq '.process | .terminal = true | .consoleSize = {height: 33, width: 77} | .args = ["stat", "-c", "%F", "/proc/self/fd/0"]' \
		"$B/config.json" >"$T/p.json"
	oci exec --process "$T/p.json" "$ID" </dev/null
}

@test "without a devpts there is no terminal" {
	start_container '.mounts |= map(select(.destination != "/dev/pts"))'
	run_split oci exec --tty "$ID" true
	expect_status 255
	expect_in "$err" "terminal: /dev/pts"
}

@test "exec that waits for a paused container can be stopped" {
	local waiting
	start_container
	oci pause "$ID"
	"$OCI" --root "$T/state" exec --ignore-paused "$ID" true 3>&- &
	waiting=$!
	sleep 0.3
	kill -TERM "$waiting"
	status=0
	wait "$waiting" || status=$?
	oci resume "$ID"
	[ "$status" = 143 ] || fail "$status"
}

@test "a process of --process is read as one of config.json: without a limit is 2^64 - 1" {
	start_container
	jq -n '{user: {uid: 0, gid: 0}, args: ["sh", "-c", "ulimit -t"], cwd: "/", env: ["PATH=/bin"],
		rlimits: [{type: "RLIMIT_CPU", soft: 111111111, hard: 111111111}]}' |
		sed 's/111111111/18446744073709551615/g' >"$T/process.json"
	run_split oci exec --process "$T/process.json" "$ID"
	expect_status 0
	[ "$out" = unlimited ] || fail "$out"
}
