# shellcheck shell=bash disable=SC2034 # STORAGE is used by .bats files
# Podman as a second opinion, for .bats files: `load podman` after `load helpers`.

# A storage of its own, below $T, and limits and a runtime that work here: its crun refuses hybrid cgroups, and a root
# without CAP_SYS_RESOURCE may not raise limits. So runc, cgroupfs, and the limits that are. Sets STORAGE.
podman_setup() {
	need_program podman
	mkdir -p "$T/podman"
	echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$T/policy.json"
	STORAGE=(--storage-driver vfs --root "$T/podman/root" --runroot "$T/podman/run")
	cat >"$T/containers.conf" <<-CONF
		[containers]
		default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
		[engine]
		cgroup_manager = "cgroupfs"
		events_logger = "file"
		runtime = "runc"
	CONF
	export CONTAINERS_CONF=$T/containers.conf
}

podman_do() {
	podman "${STORAGE[@]}" "$@"
}

# The same without the empty cgroup2 of a hybrid hierarchy, for what starts containers.
podman_ok() {
	unshare -m sh -c 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"' sh \
		podman "${STORAGE[@]}" "$@"
}

podman_run() {
	podman_ok run --rm --network none "$@"
}

podman_teardown() {
	[ ! -d "$T/podman" ] || podman "${STORAGE[@]}" system reset -f >/dev/null 2>&1 || true
}
