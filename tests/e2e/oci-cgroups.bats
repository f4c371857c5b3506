#!/usr/bin/env bats
# svrun-oci's cgroups on version 1: every limit as the kernel has it, update, pause, events, and what is
# left afterwards (nothing). Version 2 and systemd: tests/vm/cgroups.bats.

load helpers
load oci

setup() {
	oci_setup
	[ -d /sys/fs/cgroup/memory ] || skip "needs cgroups of version 1"
	change_config "$B" '.process.args = ["sleep", "100"] | del(.linux.resources.memory, .linux.resources.cpu, .linux.resources.pids)
		| .linux.cgroupsPath = $p' --arg p "/cgroups-t/$ID"
}

teardown() {
	oci_teardown
	rmdir /sys/fs/cgroup/*/cgroups-t/{pod/inner,pod,"$ID",} 2>/dev/null || true
}

resources() { # JQ-OBJECT
	change_config "$B" ".linux.resources += $1"
}

start() {
	oci run -d -b "$B" "$ID" </dev/null >/dev/null
}

expect_file() { # CONTROLLER/FILE TEXT
	local text
	text=$(tr '\n' ' ' <"/sys/fs/cgroup/${1%%/*}/cgroups-t/$ID/${1#*/}") || return 1
	[ "${text% }" = "$2" ] || fail "$1: expected '$2', found '${text% }'"
}

# Is the controller mounted, and does it have this file?
has() { # CONTROLLER/FILE
	[ -e "/sys/fs/cgroup/${1%%/*}/cgroups-t/$ID/${1#*/}" ]
}

expect_gone() {
	! ls -d /sys/fs/cgroup/*/{cgroups-t/,}"$ID" 2>/dev/null
}

# Not by looking through all of the host's cgroups, which others make and remove meanwhile.
expect_nothing_left() {
	expect_gone || return 1
	[ -z "$(ls "$T/state")" ] || fail "state left: $(ls "$T/state")"
}

@test "the process is in its cgroup in every hierarchy of the host" {
	local pid line path
	start
	pid=$(oci state "$ID" | jq .pid)
	while IFS=: read -r _ line path; do
		[ -n "$line" ] || continue
		[ "$path" = "/cgroups-t/$ID" ] || fail "$line: $path"
	done <"/proc/$pid/cgroup"
	oci delete --force "$ID"
	expect_gone
}

@test "limits of memory, CPU, processes and cpusets are in the kernel's files" {
	resources '{"memory": {"limit": 67108864, "swap": 100663296, "reservation": 33554432, "swappiness": 10},
		"cpu": {"shares": 512, "quota": 20000, "period": 50000, "burst": 1000, "cpus": "0", "mems": "0"},
		"pids": {"limit": 40}}'
	start
	expect_file memory/memory.limit_in_bytes 67108864
	expect_file memory/memory.memsw.limit_in_bytes 100663296
	expect_file memory/memory.soft_limit_in_bytes 33554432
	expect_file memory/memory.swappiness 10
	expect_file cpu/cpu.shares 512
	expect_file cpu/cpu.cfs_quota_us 20000
	expect_file cpu/cpu.cfs_period_us 50000
	expect_file cpu/cpu.cfs_burst_us 1000
	expect_file cpuset/cpuset.cpus 0
	expect_file cpuset/cpuset.mems 0
	expect_file pids/pids.max 40
}

@test "the kernel's OOM killer can be forbidden, and a group can be idle" {
	resources '{"memory": {"limit": 67108864, "disableOOMKiller": true}, "cpu": {"idle": 1}}'
	start
	expect_file cpu/cpu.idle 1
	[[ $(cat "/sys/fs/cgroup/memory/cgroups-t/$ID/memory.oom_control") == *"oom_kill_disable 1"* ]]
}

@test "-1 and 0 are no limit" {
	resources '{"memory": {"limit": -1, "swap": -1, "reservation": 0}, "cpu": {"quota": -1, "shares": 0, "period": 0},
		"pids": {"limit": 0}}'
	start
	expect_file cpu/cpu.cfs_quota_us -1
	expect_file cpu/cpu.shares 1024
	expect_file pids/pids.max max
	[ "$(cat "/sys/fs/cgroup/memory/cgroups-t/$ID/memory.limit_in_bytes")" -gt $((1 << 60)) ]
}

@test "throttles of disks are in the kernel's files" {
	local disk
	disk=$(cat /sys/block/*/dev | head -1)
	[ -n "$disk" ] || skip "no block device"
	resources "{\"blockIO\": {
		\"throttleReadBpsDevice\": [{\"major\": ${disk%:*}, \"minor\": ${disk#*:}, \"rate\": 1048576}],
		\"throttleWriteIOPSDevice\": [{\"major\": ${disk%:*}, \"minor\": ${disk#*:}, \"rate\": 77}]}}"
	start
	expect_file blkio/blkio.throttle.read_bps_device "$disk 1048576"
	expect_file blkio/blkio.throttle.write_iops_device "$disk 77"
}

@test "a limit without its controller or file names the field, and nothing is left" {
	local field n=0
	for field in '"rdma": {"mlx5_1": {"hcaHandles": 3}}' '"blockIO": {"leafWeight": 100}' \
		'"unified": {"memory.high": "100"}' '"hugepageLimits": [{"pageSize": "3MB", "limit": 4194304}]'; do
		n=$((n + 1))
		make_bundle "$T/b$n" ".linux.cgroupsPath = \"/cgroups-t/$ID\" | .linux.resources += {$field}"
		run_split oci run -b "$T/b$n" "$ID"
		expect_status 1
		field=${field#\"}
		expect_in "$err" "/linux/resources/${field%%\"*}"
		expect_gone
	done
	expect_nothing_left
}

# The kernel keeps a hierarchy that was unmounted while cgroups of it were still going: again, then.
forget_hierarchies() { # MOUNT-OPTIONS...
	local options
	for _ in {1..50}; do
		grep -qE '^(hugetlb|net_cls)\s+[1-9]' /proc/cgroups || return 0
		sleep 0.1
		for options; do
			unshare -m sh -c 'mount -t cgroup -o "$1" cgroup /mnt && umount /mnt' - "$options"
		done
	done
	fail "a hierarchy stays: $(grep -E 'hugetlb|net_cls' /proc/cgroups)"
}

@test "limits of huge pages and marks of network traffic, where controllers share a hierarchy" {
	local both=/sys/fs/cgroup/net_cls,net_prio
	grep -qE '^hugetlb\s+0\s' /proc/cgroups && grep -qE '^net_cls\s+0\s' /proc/cgroups ||
		skip "the host uses these controllers itself, or has none"
	resources '{"hugepageLimits": [{"pageSize": "2MB", "limit": 4194304}],
		"network": {"classID": 1048577, "priorities": [{"name": "lo", "priority": 3}]}}'
	change_config "$B" '.process.args = ["ls", "-l", "/sys/fs/cgroup"]' # the container's view of both
	cat >"$T/script" <<-SCRIPT
		set -e
		mkdir -p /sys/fs/cgroup/hugetlb $both
		mount -t cgroup -o hugetlb cgroup /sys/fs/cgroup/hugetlb || exit 77
		mount -t cgroup -o net_cls,net_prio cgroup $both || exit 77
		$OCI --root $T/state create -b $B $ID >$T/log </dev/null
		cat /sys/fs/cgroup/hugetlb/cgroups-t/$ID/hugetlb.2MB{,.rsvd}.limit_in_bytes >$T/found
		cat $both/cgroups-t/$ID/net_cls.classid >>$T/found
		grep '^lo ' $both/cgroups-t/$ID/net_prio.ifpriomap >>$T/found
		grep -c cgroups-t/$ID "/proc/\$($OCI --root $T/state state $ID | jq .pid)/cgroup" >>$T/found
		$OCI --root $T/state events --stats $ID | jq -e '.data.hugetlb."2MB".failcnt == 0'
		$OCI --root $T/state start $ID
		sleep 0.3
		$OCI --root $T/state delete --force $ID
		rmdir /sys/fs/cgroup/hugetlb/cgroups-t $both/cgroups-t
	SCRIPT
	run unshare -m bash "$T/script"
	forget_hierarchies hugetlb net_cls,net_prio
	rmdir /sys/fs/cgroup/hugetlb "$both" 2>/dev/null || true
	[ "$status" != 77 ] || skip "another uses these controllers just now: $output"
	[ "$status" = 0 ] || fail "$output"
	[ "$(tr '\n' ' ' <"$T/found")" = "4194304 4194304 1048577 lo 3 $(($(grep -c ':[^:]\+:' /proc/self/cgroup) + 2)) " ] ||
		fail "found: $(<"$T/found")"
	grep -q 'net_cls -> net_cls,net_prio' "$T/log"
	expect_nothing_left
}

@test "a value that the kernel refuses names the field and the value" {
	resources '{"cpu": {"cpus": "0-4000"}}'
	run_split oci run -b "$B" "$ID"
	expect_status 1
	expect_in "$err" /linux/resources/cpu/cpus 0-4000 cpuset.cpus
	expect_gone
	expect_nothing_left
}

@test "cgroupsPath: relative ones are below the root; / and .. are refused" {
	change_config "$B" '.linux.cgroupsPath = $p' --arg p "cgroups-t/.//$ID"
	start
	grep -q "memory:/cgroups-t/$ID\$" "/proc/$(oci state "$ID" | jq .pid)/cgroup"
	oci delete --force "$ID"
	change_config "$B" 'del(.linux.cgroupsPath)'
	start
	grep -q "memory:/$ID\$" "/proc/$(oci state "$ID" | jq .pid)/cgroup"
	oci delete --force "$ID"
	for path in / // /./ /a/.. ../x; do
		change_config "$B" '.linux.cgroupsPath = $p' --arg p "$path"
		run_split oci run -b "$B" "$ID"
		expect_status 1
		expect_in "$err" cgroupsPath
	done
	expect_nothing_left
}

@test "a cgroup that is in use is not taken, one that was left behind is" {
	mkdir -p "/sys/fs/cgroup/pids/cgroups-t/$ID" "/sys/fs/cgroup/freezer/cgroups-t/$ID"
	start
	[ "$(oci state "$ID" | jq -r .status)" = running ]
	run_split oci run -b "$B" "$ID-2"
	expect_status 1
	expect_in "$err" "has processes in it"
	[ "$(oci state "$ID" | jq -r .status)" = running ]
	oci delete --force "$ID"
	expect_gone
}

@test "a cgroup that is there and frozen is refused, and left as it is" {
	mkdir -p "/sys/fs/cgroup/freezer/cgroups-t/$ID"
	echo FROZEN >"/sys/fs/cgroup/freezer/cgroups-t/$ID/freezer.state"
	for verb in run create; do
		run_split oci $verb -b "$B" "$ID"
		expect_status 1
		expect_in "$err" "container's cgroup unexpectedly frozen"
	done
	expect_file freezer/freezer.state FROZEN
	rmdir "/sys/fs/cgroup/freezer/cgroups-t/$ID"
	expect_nothing_left
}

@test "cpusets above that an engine made and did not fill are filled from the top down" {
	local all pod=/sys/fs/cgroup/cpuset/cgroups-t/pod/inner
	all=$(</sys/fs/cgroup/cpuset/cpuset.cpus)
	mkdir -p "$pod"
	[ -z "$(<"$pod/cpuset.cpus")" ] || skip "new cpusets are filled by the kernel"
	change_config "$B" '.linux.cgroupsPath = $p' --arg p "/cgroups-t/pod/inner/$ID"
	start
	[ "$(cat "${pod%/*}/cpuset.cpus" "$pod/cpuset.cpus" "$pod/$ID/cpuset.cpus")" = "$all"$'\n'"$all"$'\n'"$all" ]
	oci delete --force "$ID"
	rmdir -p /sys/fs/cgroup/*/cgroups-t/pod/inner 2>/dev/null || true
	expect_nothing_left
}

@test "pause and resume, and their errors" {
	start
	oci pause "$ID"
	expect_file freezer/freezer.state FROZEN
	[ "$(oci state "$ID" | jq -r .status)" = paused ]
	run_split oci pause "$ID"
	expect_status 1
	expect_in "$err" "is paused, not running"
	oci resume "$ID"
	expect_file freezer/freezer.state THAWED
	[ "$(oci state "$ID" | jq -r .status)" = running ]
	run_split oci resume "$ID"
	expect_status 1
	expect_in "$err" "is running, not paused"
	oci kill "$ID" KILL
	for _ in {1..100}; do
		[ "$(oci state "$ID" | jq -r .status)" != stopped ] || break
		sleep 0.05
	done
	for verb in pause resume "update --memory 1g"; do
		# shellcheck disable=SC2086 # words
		run_split oci $verb "$ID"
		expect_status 1
		expect_in "$err" "is stopped"
	done
	run_split oci pause nobody
	expect_status 1
	oci delete "$ID"
}

@test "a paused container can be deleted by force" {
	start
	oci pause "$ID"
	oci delete --force "$ID"
	expect_gone
	expect_nothing_left
}

@test "update changes what it names, and nothing else" {
	resources '{"memory": {"limit": 67108864, "swap": 100663296}, "cpu": {"quota": 20000, "period": 50000, "shares": 512}}'
	start
	oci update --memory 256m --memory-swap 512m "$ID" # up: swap first
	expect_file memory/memory.limit_in_bytes 268435456
	expect_file memory/memory.memsw.limit_in_bytes 536870912
	oci update --memory 33554432 --memory-swap 67108864 "$ID" # down: memory first
	expect_file memory/memory.limit_in_bytes 33554432
	expect_file memory/memory.memsw.limit_in_bytes 67108864
	oci update --memory 50331648 "$ID"
	expect_file memory/memory.memsw.limit_in_bytes 67108864
	oci update --memory -1 "$ID"
	[ "$(cat "/sys/fs/cgroup/memory/cgroups-t/$ID/memory.memsw.limit_in_bytes")" -gt $((1 << 60)) ]
	oci update --cpu-quota 30000 "$ID"
	expect_file cpu/cpu.cfs_period_us 50000
	oci update --cpu-period 100000 --cpu-quota 5000 --cpu-burst 2000 "$ID"
	expect_file cpu/cpu.cfs_quota_us 5000
	expect_file cpu/cpu.cfs_period_us 100000
	expect_file cpu/cpu.cfs_burst_us 2000
	oci update --cpu-burst 0 --cpu-quota 1000 --cpu-share 300 --pids-limit 9 --cpuset-cpus 0 --cpuset-mems 0 "$ID"
	expect_file cpu/cpu.cfs_burst_us 0
	expect_file cpu/cpu.shares 300
	expect_file pids/pids.max 9
	expect_file cpuset/cpuset.cpus 0
	oci update --memory-reservation 16m --pids-limit -1 --cpu-quota -1 --cpu-idle 1 "$ID"
	expect_file memory/memory.soft_limit_in_bytes 16777216
	expect_file pids/pids.max max
	expect_file cpu/cpu.idle 1
	expect_file cpu/cpu.cfs_quota_us -1
}

@test "update --resources reads a document, from a file or from stdin; options win" {
	start
	echo '{"pids": {"limit": 12}, "cpu": {"shares": 100}, "devices": [{"allow": true, "access": "rwm"}]}' >"$T/r.json"
	oci update -r "$T/r.json" --cpu-share 200 "$ID"
	expect_file pids/pids.max 12
	expect_file cpu/cpu.shares 200
	[[ $(cat "/sys/fs/cgroup/devices/cgroups-t/$ID/devices.list") != *"a *:*"* ]] # never edited
	run oci update --resources - "$ID" <<<'{"pids": {"limit": 13}}'
	[ "$status" = 0 ]
	expect_file pids/pids.max 13
	run oci update --resources - "$ID" <<<'{"pids": {"limit": "many"}}'
	[ "$status" = 1 ]
	expect_in "$output" stdin /pids/limit
	run oci update --resources - "$ID" <<<'{"memory": {"limit": 65536, "checkBeforeUpdate": true}}'
	[ "$status" = 1 ]
	expect_in "$output" "less than what is in use"
	run oci update --memory lots "$ID"
	[ "$status" = 1 ]
	expect_in "$output" --memory lots
	run oci update --l3-cache-schema "L3:0=ff" "$ID"
	[ "$status" = 1 ]
	expect_in "$output" intelRdt
}

@test "events --stats has the keys that runc's has" {
	need_program runc
	resources '{"memory": {"limit": 67108864}, "pids": {"limit": 20}}'
	local keys='[paths(scalars or . == {}) | map(tostring) | join(".")] - ["data.memory.raw"] | map(select(test("throttl|percpu|[.]usage$|[.]max$|raw|id$|blkio|cpu.usage") | not)) | sort'
	start
	oci events --stats "$ID" >"$T/ours"
	oci delete --force "$ID"
	runc --root "$T/runc" run -d -b "$B" "$ID" </dev/null
	runc --root "$T/runc" events --stats "$ID" >"$T/theirs" || true
	runc --root "$T/runc" delete -f "$ID"
	[ "$(wc -l <"$T/ours")" = 1 ]
	diff <(jq "$keys" "$T/ours") <(jq "$keys" "$T/theirs")
	diff <(jq '.data | keys' "$T/ours") <(jq '.data | keys' "$T/theirs")
	diff <(jq '.data.memory.raw | keys' "$T/ours") <(jq '.data.memory.raw | keys' "$T/theirs")
	jq -e '.data.memory.usage.limit == 67108864 and .data.pids.limit == 20 and .data.pids.current == 1 and .data.memory.usage.usage > 0 and .data.cpu.usage.total > 0
		and (.data.cpu.usage.percpu | add) == .data.cpu.usage.total' "$T/ours"
}

@test "events tells of memory that ran out, and ends with the container" {
	resources '{"memory": {"limit": 16777216, "swap": 16777216}}'
	set_script "$B" 'sleep 1; sh -c "tail -c 90m </dev/zero" ; sleep 2'
	start
	run timeout 20 "$OCI" --root "$T/state" events --interval 700ms "$ID"
	[ "$status" = 0 ]
	[ "$(grep -c '"type":"oom"' <<<"$output")" -ge 1 ]
	[ "$(grep -c '"type":"stats"' <<<"$output")" -ge 2 ]
	jq -e --arg id "$ID" 'select(.id != $id) | halt_error' <<<"$output" || [ $? = 4 ]
	run_split oci events --stats "$ID"
	expect_status 1
	expect_in "$err" "not running"
	for bad in 5 x 0s -1s 5y; do
		run_split oci events --interval "$bad" "$ID"
		expect_status 1
	done
}

@test "cgroups made inside, with processes in them, go with the container" {
	# Without a pid namespace nothing but the cgroup holds its processes together.
	change_config "$B" '.linux.namespaces = [.linux.namespaces[] | select(.type != "pid")]'
	set_script "$B" 'sleep 100 & sleep 100 & sleep 100'
	start
	local deep pid
	deep=$(printf '/n%.0s' {1..60})
	mkdir -p "/sys/fs/cgroup/pids/cgroups-t/$ID$deep" "/sys/fs/cgroup/freezer/cgroups-t/$ID/a/b"
	sleep 300 &
	pid=$!
	echo $pid >"/sys/fs/cgroup/pids/cgroups-t/$ID$deep/cgroup.procs"
	echo $pid >"/sys/fs/cgroup/devices/cgroups-t/$ID/cgroup.procs"
	oci delete --force "$ID"
	expect_gone
	! kill -0 $pid 2>/dev/null
	expect_nothing_left
}

@test "a fork bomb is contained, paused and removed" {
	change_config "$B" '.linux.namespaces = [.linux.namespaces[] | select(.type != "pid")]'
	resources '{"pids": {"limit": 60}}'
	set_script "$B" 'f() { while :; do (sleep 0.01; f) & done 2>/dev/null; }; f & exec sleep 100'
	start
	sleep 0.5
	oci pause "$ID"
	expect_file freezer/freezer.state FROZEN
	oci resume "$ID"
	oci delete --force "$ID"
	expect_gone
	expect_nothing_left
}

@test "the container's view is its own cgroups, read-only without a namespace of its own" {
	change_config "$B" '(.mounts[] | select(.destination == "/sys/fs/cgroup") | .options) = ["nosuid", "noexec", "nodev", "noatime"]'
	set_script "$B" 'ls /sys/fs/cgroup; cat /sys/fs/cgroup/pids/cgroup.procs; mkdir /sys/fs/cgroup/pids/x 2>/dev/null || echo refused
		ls /sys/fs/cgroup/memory/release_agent 2>/dev/null; ls -d /sys/fs/cgroup/pids/*/ 2>/dev/null; true'
	run oci run -b "$B" "$ID"
	[ "$status" = 0 ]
	expect_in "$output" memory pids devices refused
	[[ $output != *release_agent* && $output != *cgroups-t* ]]
	change_config "$B" '.linux.namespaces += [{"type": "cgroup"}]'
	set_script "$B" 'grep -v :/$ /proc/self/cgroup; mkdir /sys/fs/cgroup/pids/x && echo made; rmdir /sys/fs/cgroup/pids/x
		grep " /sys/fs/cgroup/pids " /proc/self/mountinfo'
	run oci run -b "$B" "$ID"
	[ "$status" = 0 ]
	expect_in "$output" made " / /sys/fs/cgroup/pids "
	[[ $output != *cgroups-t* ]]
	expect_nothing_left
}
