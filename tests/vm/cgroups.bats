#!/usr/bin/env bats
# svrun-oci's cgroups where the host has version 2 and systemd: limits as the kernel has them, systemd's
# units, delegation without root, and what is left afterwards (nothing). Those of systemd's older layouts
# are skipped here: scripts/vm test --cgroups v1|hybrid cgroups.

load ../e2e/helpers
load ../e2e/oci

setup() {
	WORK=/var/tmp/svrun-e2e
	mkdir -p "$WORK"
	oci_setup
	change_config "$B" '.process.args = ["sleep", "100"] | del(.linux.resources.memory, .linux.resources.cpu, .linux.resources.pids)'
	CG=/sys/fs/cgroup/cgroups-t/$ID
	change_config "$B" '.linux.cgroupsPath = $p' --arg p "/cgroups-t/$ID"
}

teardown() {
	oci_teardown
	rmdir /sys/fs/cgroup/cgroups-t 2>/dev/null || true
}

layout() { # v2|old
	local found=old
	[ "$(stat -fc %T /sys/fs/cgroup)" != cgroup2fs ] || found=v2
	[ $found = "$1" ] || skip "this machine's cgroups are of another layout"
}

resources() { # JQ-OBJECT
	change_config "$B" ".linux.resources += $1"
}

start() {
	oci "$@" run -d -b "$B" "$ID" </dev/null >/dev/null
}

# The words of a cgroup's file are these.
expect_file() { # FILE TEXT
	local text
	text=$(cat "$CG/$1" | tr '\n' ' ') || return 1
	[ "${text% }" = "$2" ] || fail "$1: expected '$2', found '${text% }'"
}

@test "version 2: limits of memory, CPU, processes and cpusets are in the kernel's files" {
	layout v2
	resources '{"memory": {"limit": 67108864, "swap": 100663296, "reservation": 33554432},
		"cpu": {"shares": 1024, "quota": 20000, "period": 50000, "burst": 1000, "cpus": "0-1", "mems": "0"},
		"pids": {"limit": 40}}'
	start
	expect_file memory.max 67108864
	expect_file memory.swap.max 33554432
	expect_file memory.low 33554432
	expect_file cpu.weight 100
	expect_file cpu.max "20000 50000"
	expect_file cpu.max.burst 1000
	expect_file cpuset.cpus 0-1
	expect_file cpuset.mems 0
	expect_file pids.max 40
	oci delete --force "$ID"
	[ ! -e "$CG" ]
}

@test "version 2: -1 and 0 are no limit" {
	layout v2
	resources '{"memory": {"limit": -1, "swap": -1}, "cpu": {"quota": -1, "shares": 0}, "pids": {"limit": -1}}'
	start
	expect_file memory.max max
	expect_file memory.swap.max max
	expect_file cpu.max "max 100000"
	expect_file cpu.weight 100
	expect_file pids.max max
}

@test "version 2: limits of disks, huge pages and RDMA" {
	layout v2
	local disk
	disk=$(cat /sys/block/vda/dev)
	resources "{\"blockIO\": {\"weight\": 500,
		\"throttleReadBpsDevice\": [{\"major\": ${disk%:*}, \"minor\": ${disk#*:}, \"rate\": 1048576}],
		\"throttleWriteIOPSDevice\": [{\"major\": ${disk%:*}, \"minor\": ${disk#*:}, \"rate\": 77}]},
		\"hugepageLimits\": [{\"pageSize\": \"2MB\", \"limit\": 4194304}]}"
	start
	expect_file io.max "$disk rbps=1048576 wbps=max riops=max wiops=77"
	expect_file hugetlb.2MB.max 4194304
	expect_file hugetlb.2MB.rsvd.max 4194304
	if [ -e "$CG/io.bfq.weight" ]; then
		expect_file io.bfq.weight "default 500"
	else
		expect_file io.weight "default 4950"
	fi
}

@test "version 2: unified is written as it is, last, and a file that is not there is an error" {
	layout v2
	resources '{"memory": {"limit": 67108864}, "unified": {"memory.max": "71303168", "memory.high": "41943040"}}'
	start
	expect_file memory.max 71303168
	expect_file memory.high 41943040
	oci delete --force "$ID"
	resources '{"unified": {"memory.nonsense": "1"}}'
	run_split oci run -d -b "$B" "$ID"
	expect_status 1
	expect_in "$err" "unified/memory.nonsense"
	[ ! -e "$CG" ]
	expect_oci_clean
}

@test "version 2: fields that only version 1 had are refused by name" {
	layout v2
	local field
	for field in '"memory": {"swappiness": 10}' '"memory": {"disableOOMKiller": true}' \
		'"memory": {"kernel": 1048576}' '"network": {"classID": 7}' '"cpu": {"realtimeRuntime": 1000}' \
		'"blockIO": {"leafWeight": 100}'; do
		make_bundle "$B.$RANDOM" ".linux.cgroupsPath = \"/cgroups-t/$ID\" | .linux.resources += {$field}"
		run_split oci run -b "$(ls -d "$B".* | tail -1)" "$ID"
		expect_status 1
		expect_in "$err" /linux/resources/
		rm -rf "$B".*
	done
	[ ! -e "$CG" ]
}

@test "version 2: the device filter lets through what is granted, and nothing else" {
	layout v2
	change_config "$B" '.linux.resources.devices = [{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 10, "minor": 229, "access": "rw"}]
		| .process.capabilities.bounding += ["CAP_MKNOD"] | .process.capabilities.effective += ["CAP_MKNOD"] | .process.capabilities.permitted += ["CAP_MKNOD"]'
	set_script "$B" 'mknod /fuse c 10 229; mknod /kmsg c 1 11; mknod /null c 1 3
		cat </null && echo null; head -c 0 </kmsg 2>&1 && echo kmsg; true <>/fuse && echo fuse'
	modprobe fuse || true
	run oci run -b "$B" "$ID"
	expect_in "$output" null fuse
	[[ $output != *kmsg$'\n'* && $output == *"not permitted"* ]]
}

@test "version 2: a process is in its cgroup from its first moment on, in a namespace of its own" {
	layout v2
	change_config "$B" '.linux.namespaces += [{"type": "cgroup"}]
		| .mounts += [{"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]}, {"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup"}]'
	set_script "$B" 'cat /proc/self/cgroup; cat /sys/fs/cgroup/cgroup.procs; grep cgroup2 /proc/self/mountinfo; mkdir /sys/fs/cgroup/sub && echo made'
	run oci run -b "$B" "$ID"
	[ "$status" = 0 ]
	[ "${lines[0]}" = 0::/ ]
	expect_in "$output" " / /sys/fs/cgroup " made
	[[ $output != *cgroups-t* ]]
	[ ! -e "$CG" ]
}

@test "version 2: without a cgroup namespace only its own cgroup is shown, read-only" {
	layout v2
	change_config "$B" '.mounts += [{"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]}, {"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup"}]'
	set_script "$B" 'cat /sys/fs/cgroup/cgroup.procs; ls /sys/fs/cgroup; mkdir /sys/fs/cgroup/sub || echo refused'
	run oci run -b "$B" "$ID"
	expect_in "$output" refused
	[[ $output != *system.slice* ]]
}

@test "version 2: update changes what it names, and nothing else" {
	layout v2
	resources '{"memory": {"limit": 67108864, "swap": 100663296}, "cpu": {"quota": 20000, "period": 50000}}'
	start
	oci update --memory 134217728 --memory-swap 134217728 "$ID"
	expect_file memory.max 134217728
	expect_file memory.swap.max 0
	oci update --cpu-quota 30000 "$ID"
	expect_file cpu.max "30000 50000"
	oci update --cpu-period 60000 "$ID"
	expect_file cpu.max "30000 60000"
	oci update --cpu-quota -1 --cpu-share 2 --pids-limit 9 "$ID"
	expect_file cpu.max "max 60000"
	expect_file cpu.weight 1
	expect_file pids.max 9
	oci update --cpu-idle 1 "$ID"
	expect_file cpu.idle 1
	oci update --cpu-idle 0 --cpu-share 1024 "$ID"
	expect_file cpu.weight 100
	echo '{"memory": {"limit": 4096, "checkBeforeUpdate": true}, "unified": {"memory.high": "50000000"}}' >"$T/r"
	run oci update -r "$T/r" "$ID"
	[ "$status" = 1 ]
	expect_in "$output" "less than what is in use"
	run oci update --resources - "$ID" <<<'{"unified": {"memory.high": "50003968"}}'
	[ "$status" = 0 ]
	expect_file memory.high 50003968
	expect_file memory.max 134217728
}

@test "version 2: pause and resume; a paused container can be killed" {
	layout v2
	start
	oci pause "$ID"
	expect_file cgroup.freeze 1
	[ "$(oci state "$ID" | jq -r .status)" = paused ]
	run oci pause "$ID"
	[ "$status" = 1 ]
	oci resume "$ID"
	expect_file cgroup.freeze 0
	oci pause "$ID"
	oci delete --force "$ID"
	[ ! -e "$CG" ]
}

@test "version 2: statistics count, and running out of memory is an event" {
	layout v2
	resources '{"memory": {"limit": 16777216, "swap": 16777216}}'
	set_script "$B" 'sleep 1; sh -c "head -c 100m /dev/zero | tail -c 90m >/dev/null"; sleep 3'
	start
	oci events --stats "$ID" | jq -e '.type == "stats" and .data.memory.usage.limit == 16777216 and .data.pids.current >= 1 and .data.cpu.usage.total > 0'
	run timeout 20 "$OCI" --root "$T/state" events --interval 1s "$ID"
	[ "$status" = 0 ]
	grep -q '"type":"oom"' <<<"$output"
	grep -q '"type":"stats"' <<<"$output"
}

@test "version 2: cgroups made inside, with processes in them, go with the container" {
	layout v2
	change_config "$B" '.linux.namespaces = [.linux.namespaces[] | select(.type != "pid")]'
	start
	mkdir -p "$CG/a/b/c" "$CG/d"
	setsid sleep 300 &
	echo $! >"$CG/a/b/c/cgroup.procs"
	oci delete --force "$ID"
	[ ! -e "$CG" ]
	! kill -0 $! 2>/dev/null
}

@test "version 2: a cgroup whose parent has processes gets no controllers: the limit says so" {
	layout v2
	mkdir -p /sys/fs/cgroup/cgroups-t/busy
	setsid sleep 300 &
	local pid=$!
	echo $pid >/sys/fs/cgroup/cgroups-t/busy/cgroup.procs
	change_config "$B" '.linux.cgroupsPath = $p' --arg p "/cgroups-t/busy/$ID"
	resources '{"pids": {"limit": 40}}'
	run_split oci run -b "$B" "$ID"
	expect_status 1
	expect_in "$err" /linux/resources/pids/limit pids.max "none of which may have processes"
	change_config "$B" 'del(.linux.resources.pids)'
	set_script "$B" true
	run oci run -b "$B" "$ID" # without a limit it needs none
	kill $pid
	[ "$status" = 0 ]
	rmdir /sys/fs/cgroup/cgroups-t/busy || { sleep 1; rmdir /sys/fs/cgroup/cgroups-t/busy; }
}

# ---- systemd ----

systemd_path() { # UNIT
	systemctl show -P ControlGroup "$1"
}

@test "systemd: a scope in its slice, with limits that systemd knows" {
	layout v2
	change_config "$B" '.linux.cgroupsPath = $p' --arg p "cgroups-t.slice:pre:$ID"
	resources '{"memory": {"limit": 67108864, "swap": 100663296, "reservation": 33554432},
		"cpu": {"shares": 512, "quota": 20000, "period": 50000, "cpus": "0", "mems": "0"}, "pids": {"limit": 40}}'
	start --systemd-cgroup
	local unit="pre-$ID.scope" pid
	pid=$(oci state "$ID" | jq .pid)
	[ "$(systemd_path "$unit")" = "/cgroups.slice/cgroups-t.slice/$unit" ]
	grep -q "^0::/cgroups.slice/cgroups-t.slice/$unit\$" "/proc/$pid/cgroup"
	systemctl show "$unit" | tee "$T/show"
	for line in MemoryMax=67108864 MemorySwapMax=33554432 MemoryLow=33554432 CPUWeight=59 TasksMax=40 \
		CPUQuotaPerSecUSec=400ms AllowedCPUs=0 AllowedMemoryNodes=0 Delegate=yes; do
		grep -qx "$line" "$T/show" || fail "no $line"
	done
	CG=/sys/fs/cgroup/cgroups.slice/cgroups-t.slice/$unit
	systemctl daemon-reload
	expect_file memory.max 67108864
	expect_file cpu.max "20000 50000"
	expect_file cpu.weight 59
	expect_file pids.max 40
	expect_file cpuset.cpus 0
	oci update --memory 134217728 --memory-swap -1 --pids-limit 55 --cpu-quota 40000 "$ID"
	expect_file memory.max 134217728
	expect_file pids.max 55
	expect_file cpu.max "40000 50000"
	[ "$(systemctl show -P TasksMax "$unit")" = 55 ]
	oci pause "$ID"
	oci resume "$ID"
	oci delete --force "$ID"
	[ ! -e "$CG" ]
	[ "$(systemctl show -P LoadState "$unit")" = not-found ]
}

@test "systemd: no cgroupsPath, an empty slice, and names that need escaping" {
	layout v2
	change_config "$B" 'del(.linux.cgroupsPath)'
	start --systemd-cgroup
	grep -q "^0::/system.slice/svrun-$ID.scope\$" "/proc/$(oci state "$ID" | jq .pid)/cgroup"
	oci delete --force "$ID"
	change_config "$B" '.linux.cgroupsPath = ":a+b:c"'
	start --systemd-cgroup
	grep -qF '0::/system.slice/a\x2bb-c.scope' "/proc/$(oci state "$ID" | jq .pid)/cgroup"
	oci delete --force "$ID"
	[ -z "$(systemctl list-units --all --plain --no-legend '*a\\x2bb*')" ]
}

@test "systemd: the device filter holds, also after systemd reloads" {
	change_config "$B" '.linux.cgroupsPath = $p' --arg p "system.slice:t:$ID"
	change_config "$B" '.process.capabilities.bounding += ["CAP_MKNOD"] | .process.capabilities.effective += ["CAP_MKNOD"] | .process.capabilities.permitted += ["CAP_MKNOD"]'
	set_script "$B" 'mknod /kmsg c 1 11; sleep 3; head -c 0 </kmsg && echo leaked'
	oci --systemd-cgroup run -b "$B" "$ID" >"$T/log" 2>&1 &
	sleep 1
	systemctl daemon-reload
	wait $! || true
	! grep -q leaked "$T/log"
	grep -q "not permitted" "$T/log"
}

@test "systemd: a container that ends by itself leaves no unit, and its name can be used again" {
	change_config "$B" '.linux.cgroupsPath = $p' --arg p "system.slice:t:$ID"
	set_script "$B" 'exit 3'
	for _ in 1 2 3; do
		run oci --systemd-cgroup run -b "$B" "$ID"
		[ "$status" = 3 ]
	done
	[ "$(systemctl show -P LoadState "t-$ID.scope")" = not-found ]
	expect_oci_clean
}

@test "systemd: cgroupsPath that is no slice:prefix:name is refused" {
	local path
	for path in /a/b system.slice:x ../x.slice:p:n a--b.slice:p:n noslice:p:n "system.slice:p:"; do
		change_config "$B" '.linux.cgroupsPath = $p' --arg p "$path"
		run_split oci --systemd-cgroup run -b "$B" "$ID"
		expect_status 1
		expect_in "$err" cgroupsPath
	done
	expect_oci_clean
}

@test "systemd, older layouts: all hierarchies, limits and device rules that outlive a reload" {
	layout old
	change_config "$B" '.linux.cgroupsPath = $p' --arg p "cgroups-t.slice:pre:$ID"
	resources '{"memory": {"limit": 67108864}, "cpu": {"shares": 512, "quota": 20000, "period": 50000, "cpus": "0"}, "pids": {"limit": 40}}'
	start --systemd-cgroup
	local unit="pre-$ID.scope" pid line path controller
	pid=$(oci state "$ID" | jq .pid)
	while IFS=: read -r _ line path; do
		[ -z "$line" ] || [ "$path" = "/cgroups.slice/cgroups-t.slice/$unit" ] || fail "$line: $path"
	done <"/proc/$pid/cgroup"
	systemctl daemon-reload
	sleep 1
	path=cgroups.slice/cgroups-t.slice/$unit
	[ "$(cat "/sys/fs/cgroup/memory/$path/memory.limit_in_bytes")" = 67108864 ]
	[ "$(cat "/sys/fs/cgroup/cpu/$path/cpu.shares")" = 512 ]
	[ "$(cat "/sys/fs/cgroup/cpu/$path/cpu.cfs_quota_us")" = 20000 ]
	[ "$(cat "/sys/fs/cgroup/pids/$path/pids.max")" = 40 ]
	[ "$(cat "/sys/fs/cgroup/cpuset/$path/cpuset.cpus")" = 0 ]
	grep -q '^c 1:3 rwm$' "/sys/fs/cgroup/devices/$path/devices.list"
	! grep -q '^a' "/sys/fs/cgroup/devices/$path/devices.list"
	oci update --memory 134217728 --pids-limit 55 "$ID"
	[ "$(systemctl show -P TasksMax "$unit")" = 55 ]
	[ "$(cat "/sys/fs/cgroup/memory/$path/memory.limit_in_bytes")" = 134217728 ]
	oci delete --force "$ID"
	for controller in /sys/fs/cgroup/*/; do
		[ ! -e "$controller/$path" ] || fail "left: $controller/$path"
	done
	[ "$(systemctl show -P LoadState "$unit")" = not-found ]
}

# ---- without root ----

# A bundle for the unprivileged user, who is root inside.
rootless_bundle() {
	change_config "$B" 'del(.linux.cgroupsPath) | .linux.namespaces += [{"type": "user"}]
		| .linux.uidMappings = [{"containerID": 0, "hostID": 1000, "size": 1}]
		| .linux.gidMappings = [{"containerID": 0, "hostID": 1000, "size": 1}]
		| .linux.namespaces = [.linux.namespaces[] | select(.type != "network")]
		| .mounts = [.mounts[] | select(.type != "sysfs" and .type != "cgroup")]
		| (.mounts[] | select(.destination == "/dev/pts") | .options) = ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]'
	chown -R svrun: "$T"
	chmod 755 "$WORK" "$T"
}

# svrun-oci in the user's session, where cgroups are delegated.
delegated() {
	as-svrun "$OCI" --root "$T/user-state" "$@"
}

@test "without root: in a delegated tree a container has its own cgroup and limits" {
	layout v2
	rootless_bundle
	resources '{"memory": {"limit": 67108864}, "pids": {"limit": 40}}'
	chown svrun: "$B/config.json"
	delegated run -d -b "$B" "$ID" </dev/null >/dev/null
	local pid path
	pid=$(jq .pid "$T/user-state/$ID/state.json")
	path=$(cut -d: -f3 "/proc/$pid/cgroup")
	[[ $path == /user.slice/user-1000.slice/user@1000.service/*"/$ID" ]]
	CG=/sys/fs/cgroup$path
	expect_file memory.max 67108864
	expect_file pids.max 40
	delegated pause "$ID"
	expect_file cgroup.freeze 1
	delegated resume "$ID"
	delegated update --pids-limit 41 "$ID"
	expect_file pids.max 41
	delegated delete --force "$ID"
	[ ! -e "$CG" ]
}

@test "without root: in its own cgroup namespace a container may make cgroups" {
	layout v2
	rootless_bundle
	mkdir -p "$B/rootfs/sys/fs/cgroup"
	change_config "$B" '.linux.namespaces += [{"type": "cgroup"}]
		| .mounts += [{"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": ["nosuid", "noexec", "nodev"]}]'
	set_script "$B" 'cat /proc/self/cgroup; mkdir /sys/fs/cgroup/sub && echo made'
	chown -R svrun: "$T"
	run delegated run -b "$B" "$ID"
	[ "$status" = 0 ] || fail "$output"
	expect_in "$output" 0::/ made
}

@test "without root: systemd's user instance makes the scope" {
	layout v2
	rootless_bundle
	resources '{"memory": {"limit": 67108864}, "pids": {"limit": 40}}'
	chown svrun: "$B/config.json"
	delegated --systemd-cgroup run -d -b "$B" "$ID" </dev/null >/dev/null
	local pid path
	pid=$(jq .pid "$T/user-state/$ID/state.json")
	path=$(cut -d: -f3 "/proc/$pid/cgroup")
	[[ $path == "/user.slice/user-1000.slice/user@1000.service/user.slice/svrun-$ID.scope" ]] || fail "$path"
	CG=/sys/fs/cgroup$path
	expect_file memory.max 67108864
	expect_file pids.max 40
	delegated delete --force "$ID"
	[ ! -e "$CG" ]
}

@test "without root: where nothing is delegated it goes without, unless a limit is asked for" {
	rootless_bundle
	set_script "$B" 'echo ran'
	chown svrun: "$B/config.json"
	run runuser -u svrun -- "$OCI" --root "$T/user-state" run -b "$B" "$ID"
	[ "$status" = 0 ] || fail "$output"
	expect_in "$output" ran
	resources '{"pids": {"limit": 40}}'
	chown svrun: "$B/config.json"
	run runuser -u svrun -- "$OCI" --root "$T/user-state" run -b "$B" "$ID"
	[ "$status" = 1 ]
	expect_in "$output" "/linux/resources/pids/limit needs a cgroup" Delegate
	change_config "$B" '.linux.cgroupsPath = "/asked/for"'
	chown svrun: "$B/config.json"
	run runuser -u svrun -- "$OCI" --root "$T/user-state" run -b "$B" "$ID"
	[ "$status" = 1 ]
}
