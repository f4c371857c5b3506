#!/usr/bin/env bats
# The machine is what the other tests take it for.

@test "the kernel is Debian 12's own" {
	[[ $(uname -r) == 6.1.*-amd64 ]]
	[ "$(cat /sys/module/apparmor/parameters/enabled)" = Y ]
}

@test "cgroups are version 2 alone, with all controllers" {
	[ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]
	for controller in cpuset cpu io memory hugetlb pids; do
		grep -qw "$controller" /sys/fs/cgroup/cgroup.controllers
	done
}

@test "systemd is up and runs our unit" {
	[ "$(cat /proc/1/comm)" = systemd ]
	grep -q '^0::/system.slice/vm-inside.service$' "/proc/$PPID/cgroup" || grep -q vm-inside /proc/self/cgroup
}

@test "an unprivileged user has ids and a delegated cgroup" {
	run as-svrun bash -c 'id -u; cat /proc/self/cgroup; cat "/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/cgroup.controllers"'
	echo "$output"
	[ "${lines[0]}" = 1000 ]
	[[ ${lines[1]} == 0::/user.slice/user-1000.slice/user@1000.service/*.scope ]]
	[[ ${lines[2]} == *memory*pids* ]]
	grep -q '^svrun:' /etc/subuid
}

@test "the checkout is there, and writing to it changes nothing outside" {
	[ -x scripts/vm ]
	echo overwritten >out/vm-was-here
	[ -e out/vm-was-here ]
}
