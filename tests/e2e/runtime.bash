# What run.bats and security.bats share: an image with busybox, and a program that tries things.

IMAGE=${SVRUN_TEST_IMAGE:-svrun-test}

# The image of tests/e2e/fixture, in the shared store.
need_test_image() {
	local dir=$WORK/apps/$IMAGE
	need_root
	[ "$IMAGE" = svrun-test ] || return 0
	[ ! -e "$dir.built" ] || return 0
	rm -rf "$dir"
	cp -r "$BATS_TEST_DIRNAME/fixture" "$dir"
	app_build "$IMAGE" >"$dir.new"
	mv "$dir.new" "$dir.built"
}

# $PROBE: tests/data/probe.c, static; run it with: -v "$PROBE:/probe:ro" ... /probe WHAT
need_probe() {
	PROBE=$WORK/probe
	[ "$PROBE" -nt "$DATA/probe.c" ] || {
		gcc -O2 -Wall -static -o "$PROBE.new" "$DATA/probe.c"
		mv "$PROBE.new" "$PROBE"
	}
}

# Run a shell script in a new container. OPTION... -- SCRIPT
inside() {
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	run_split "$SVRUN" run --rm "${options[@]}" "$IMAGE" sh -c "$2"
}

# Cgroups of svrun without a process in them. Those of other stores' containers have some, but for a moment.
dead_cgroups() {
	local dir
	for dir in /sys/fs/cgroup/{,*/}svrun/*/; do
		[[ -d $dir && ${dir##*/svrun/} != test-* && -z $(cat "$dir/cgroup.procs" 2>&1) ]] &&
			echo "$dir"
	done
	return 0
}

expect_clean() {
	local first
	expect_nothing_left "$SVRUN_ROOT" || return 1
	first=$(dead_cgroups)
	[ -n "$first" ] || return 0
	sleep 3
	[ -z "$(comm -12 <(sort <<<"$first") <(dead_cgroups | sort))" ] || fail "left cgroups: $first"
}

# Wait until a container of svrun process PID runs its program.
await_start() { # PID
	local child
	for _ in $(seq 300); do
		child=$(cat "/proc/$1/task/$1/children" 2>/dev/null) || true
		if [ -n "$child" ] && [[ $(cat "/proc/${child%% *}/comm" 2>/dev/null) != svrun ]]; then
			return 0
		fi
		sleep 0.01
	done
	fail "the container of $1 did not start"
}
