# What the tests of svrun-oci share: bundles with busybox, and a state folder of the test's own.

OCI=${OCI:-$TOP/out/svrun-oci}

# Call in setup(): $T is the test's scratch folder, $B a bundle that runs `sh -c true`, $ID a name.
oci_setup() {
	need_root
	[ -x /bin/busybox ] || skip "needs busybox-static"
	chmod go+x "$WORK" # who runs without root must get to his bundle, whatever ran before
	T=$(mktemp -d "$WORK/oci.XXXXXX")
	B=$T/bundle
	ID=t-${T##*.}
	make_bundle "$B"
}

# Call in teardown(): everything that a test left goes, also when it failed.
oci_teardown() {
	local id
	[ -n "${T-}" ] || return 0
	for id in $(ls -A "$T/state" 2>/dev/null); do
		[[ $id == .* ]] || "$OCI" --root "$T/state" delete --force "$id" 2>/dev/null || true
	done
	awk -v top="$T/" 'index($5 "/", top) == 1 { print $5 }' /proc/self/mountinfo | sort -r |
		while read -r id; do umount -l "$id"; done
	rm -rf --one-file-system "$T"
}

# A bundle whose config is tests/data/oci/config.json, changed by jq programs.
make_bundle() { # DIR [JQ...]
	local dir=$1 program
	shift
	mkdir -p "$dir/rootfs"/{bin,dev,etc,proc,sys,tmp,root}
	cp /bin/busybox "$dir/rootfs/bin/busybox"
	for program in sh cat ls id mount umount sleep env stat touch mkdir grep head ps kill true false \
		hostname readlink test dd wc tr sed mknod ln pwd tty printf; do
		ln -sf busybox "$dir/rootfs/bin/$program"
	done
	echo 'root:x:0:0::/root:/bin/sh' >"$dir/rootfs/etc/passwd"
	cp "$DATA/oci/config.json" "$dir/config.json"
	for program; do
		change_config "$dir" "$program"
	done
}

# Change a bundle's config: change_config "$B" '.hostname = "x"' [--arg n v ...]
change_config() { # DIR JQ [JQ-OPTION...]
	local dir=$1 program=$2
	shift 2
	jq "$@" "$program" "$dir/config.json" >"$dir/config.json.new" || return 1
	mv "$dir/config.json.new" "$dir/config.json"
}

# What the container runs: a shell script.
set_script() { # DIR SCRIPT
	change_config "$1" '.process.args = ["sh", "-c", $s]' --arg s "$2"
}

oci() {
	"$OCI" --root "$T/state" "$@"
}

# Nothing of the test is left: state folders, cgroups, mounts.
expect_oci_clean() {
	local left
	left=$(find "$T/state" -mindepth 1 -maxdepth 1 ! -name '.*' 2>/dev/null)
	[ -z "$left" ] || fail "state left: $left" || return 1
	left=$(find /sys/fs/cgroup -type d -name "*$ID*" 2>/dev/null) || true # others' come and go
	[ -z "$left" ] || fail "cgroup left: $left" || return 1
	left=$(grep -c " $T/" /proc/self/mountinfo) || true
	[ "$left" = 0 ] || fail "mounts left: $(grep " $T/" /proc/self/mountinfo)"
}

# Wait until the container has a status.
await_status() { # STATUS [ID]
	local i
	for i in $(seq 500); do
		[ "$(oci state "${2-$ID}" | jq -r .status)" != "$1" ] || return 0
		sleep 0.01
	done
	fail "after $i tries: $(oci state "${2-$ID}")"
}
