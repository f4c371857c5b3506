#!/usr/bin/env bats
# svrun stop, start and restart: the same instance again. docs/run.md.

# shellcheck disable=SC2016,SC2154 # single quotes: a shell inside; run_split sets out, err and status
load helpers

# The image "box", of a shell that says in which mode it runs, in a store of its own.
make_box() {
	need_root
	[ -x /bin/busybox ] || skip "needs busybox-static"
	new_store
	APP=$T/box
	mkdir -p "$APP"
	cp /bin/busybox "$APP/busybox"
	jq -n '{
		schema: "svrun.image/1", name: "box", version: "1",
		base: {type: "scratch"},
		files: [{dest: "/bin/busybox", from: "busybox", mode: "0755"}],
		links: [{path: "/bin/sh", target: "busybox"}],
		env: {KIND: "usual", GPUS: "${runtime:gpus}"},
		cmd: ["/bin/sh", "-c", "echo $KIND $GPUS $X; echo $KIND >> /log"],
		modes: {
			cpu: {gpu: {mode: "none"}, env: {KIND: "cpu", GPUS: null}},
			debug: {cmd: ["/bin/sh", "-c", "echo debug"]},
			other: {python: {interpreter: "/usr/bin/python3.12"}}
		},
		build: {epoch: 1767225600}
	}' >"$APP/manifest.json"
	lock_and_build "$APP" >/dev/null
}

more_teardown() {
	local pid
	for pid in $(jobs -p); do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
}

# Wait until an instance's program runs, and has said what it says first.
await_up() { # ID FILE
	for _ in $(seq 500); do
		[ ! -s "$2" ] || [ ! -e "$SVRUN_ROOT/instances/$1/pid" ] || return 0
		sleep 0.02
	done
	fail "$1 does not start: $(<"$2")"
}

state_of() { # ID
	jq -r .exitCode "$SVRUN_ROOT/instances/$1/state.json"
}

# ---- start ----

@test "an instance that ended starts again, with all it wrote, from the same image" {
	make_box
	run_split "$SVRUN" run --name one box
	[ "$out" = "usual 0" ] || fail "$out" "$err"
	run_split "$SVRUN" start one
	expect_status 0
	[ "$out" = "usual 0" ] || fail "$out" "$err"
	[ "$(<"$SVRUN_ROOT/instances/one/upper/log")" = "usual
usual" ]
	# a new image of the name does not slip in
	jq '.env.KIND = "new"' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	lock_and_build "$APP" >/dev/null
	[ "$("$SVRUN" run --rm box)" = "new 0" ]
	[ "$("$SVRUN" start one)" = "usual 0" ]
	"$SVRUN" rm one
	expect_nothing_left "$SVRUN_ROOT"
}

@test "its options are kept: words, limits, variables, volumes by their absolute paths" {
	make_box
	mkdir "$T/here"
	echo file >"$T/here/f"
	echo FROM_FILE=1 >"$T/here/vars"
	cd "$T/here"
	SECRET=s3cret run_split "$SVRUN" run --name kept -e X=1 -e SECRET --env-file vars -v .:/v:ro --memory 64m \
		--workdir /v box sh -c 'echo $X $FROM_FILE $SECRET; /bin/busybox cat f'
	[ "$out" = "1 1 s3cret
file" ] || fail "$out" "$err"
	[ "$(grep -c s3cret "$SVRUN_ROOT/instances/kept/options.json")" = 0 ]
	cd /
	echo FROM_FILE=2 >"$T/here/vars"
	SECRET=other run_split "$SVRUN" start kept
	[ "$out" = "1 2 other
file" ] || fail "$out" "$err"
	run_split "$SVRUN" start --memory 32m -e X=2 kept
	[ "$out" = "2 2
file" ] || fail "$out" "$err"
	[ "$(jq .linux.resources.memory.limit "$SVRUN_ROOT/instances/kept/config.json")" = 33554432 ]
	rm -r "$T/here"
	run_split "$SVRUN" start kept
	expect_status 125
	expect_in "$err" "start kept" "$T/here/vars"
	[ "$(state_of kept)" = 0 ]
	"$SVRUN" rm kept
}

@test "what cannot start again says why" {
	make_box
	run_split "$SVRUN" start none
	expect_status 125
	expect_in "$err" "svrun: start none: no container 'none'" "svrun ps lists them"
	for name in .. . a/b; do
		run_split "$SVRUN" start "$name"
		expect_in "$err" "no container '$name'"
	done
	"$SVRUN" run --rm --name gone box sh -c 'echo; /bin/busybox sleep 60' >"$T/log" &
	await_up gone "$T/log"
	run_split "$SVRUN" restart gone
	expect_status 125
	expect_in "$err" "gone cannot start again: its options were not kept" "one of --rm goes when it ends"
	"$SVRUN" stop gone
	[ ! -e "$SVRUN_ROOT/instances/gone" ]
	"$SVRUN" run --name lost box >/dev/null
	"$SVRUN" image rm box box:1 >/dev/null
	run_split "$SVRUN" start lost
	expect_status 125
	expect_in "$err" "the image that it was started from is no longer here"
	[ "$(state_of lost)" = 0 ]
	for text in '' '{' '[]' '{"image": "x"}' '{"image":"x","manifest":"y","options":{"env":3},"words":[]}'; do
		echo "$text" >"$SVRUN_ROOT/instances/lost/options.json"
		run_split "$SVRUN" start lost
		expect_status 125
		expect_in "$err" "instance lost"
	done
	"$SVRUN" rm lost
}

@test "an instance that could not start again is as it was before" {
	make_box
	"$SVRUN" run --name odd box sh -c 'exit 7' || true
	[ "$(state_of odd)" = 7 ]
	run_split "$SVRUN" start --gpus 1 --cdi-spec-dir "$T" --device vendor.com/class=x odd
	expect_status 125
	[ "$(state_of odd)" = 7 ]
	[ ! -e "$SVRUN_ROOT/instances/odd/state.last" ]
	run_split "$SVRUN" start odd
	expect_status 7
	"$SVRUN" rm odd
	expect_nothing_left "$SVRUN_ROOT"
}

# ---- stop ----

@test "stop lets it end in its own way, or kills it when its time is over" {
	make_box
	"$SVRUN" run --name kind box sh -c 'trap "echo bye; exit 3" TERM; echo up; while :; do /bin/busybox sleep 0.05; done' \
		>"$T/log" &
	await_up kind "$T/log"
	run_split "$SVRUN" stop kind
	expect_status 0
	[ "$out" = kind ]
	[ "$(state_of kind)" = 3 ]
	[ "$(tail -n 1 "$T/log")" = bye ]
	run_split "$SVRUN" stop kind
	expect_status 0
	# in the moment when it starts again, or is looked at: its folder is locked, and its last state still there
	flock "$SVRUN_ROOT/instances/kind" sh -c 'echo locked; sleep 0.3' >"$T/locked" &
	until [ -s "$T/locked" ]; do sleep 0.01; done
	run_split "$SVRUN" stop kind
	expect_status 0 || fail "$err"
	"$SVRUN" run --name deaf box sh -c 'trap "" TERM; echo up; while :; do /bin/busybox sleep 0.05; done' >"$T/log2" &
	await_up deaf "$T/log2"
	run_split "$SVRUN" stop --time 0 deaf
	expect_status 0
	[ "$(state_of deaf)" = 137 ]
	run_split "$SVRUN" stop nobody
	expect_status 125
	run_split "$SVRUN" stop --time soon kind
	expect_status 2
	"$SVRUN" rm kind deaf
	expect_nothing_left "$SVRUN_ROOT"
}

# ---- restart ----

@test "restart stops it and goes on with the same disk, and start does not while it runs" {
	make_box
	"$SVRUN" run --name r box sh -c 'echo run >> /log; /bin/busybox cat /log; echo $X; /bin/busybox sleep 60' >"$T/first" &
	await_up r "$T/first"
	run_split "$SVRUN" start r
	expect_status 125
	expect_in "$err" "container r runs" "svrun restart stops it first"
	"$SVRUN" restart -e X=again r >"$T/second" &
	await_up r "$T/second"
	wait %1 || [ $? = 143 ]
	for _ in $(seq 100); do
		[ "$(wc -l <"$T/second")" = 3 ] || sleep 0.05
	done
	[ "$(<"$T/second")" = "run
run
again" ] || fail "$(<"$T/second")"
	"$SVRUN" stop r
	"$SVRUN" rm r
	expect_nothing_left "$SVRUN_ROOT"
}

@test "one whose svrun is killed at its second start keeps its disk, and starts a third time" {
	make_box
	"$SVRUN" run --name k box >/dev/null
	"$SVRUN" start k >/dev/null
	jq '.words = ["sh", "-c", "echo up; /bin/busybox sleep 60"]' "$SVRUN_ROOT/instances/k/options.json" >"$T/o"
	cp "$T/o" "$SVRUN_ROOT/instances/k/options.json"
	"$SVRUN" start k >"$T/log" &
	await_up k "$T/log"
	kill -9 $!
	wait $! || true
	"$SVRUN" ps >"$T/ps"
	expect_in "$(<"$T/ps")" "exited (137)"
	[ ! -e "$SVRUN_ROOT/instances/k/state.last" ]
	jq '.words = []' "$T/o" >"$SVRUN_ROOT/instances/k/options.json"
	[ "$("$SVRUN" start k)" = "usual 0" ]
	[ "$(wc -l <"$SVRUN_ROOT/instances/k/upper/log")" = 3 ]
	"$SVRUN" rm k
	expect_nothing_left "$SVRUN_ROOT"
}

# ---- modes ----

@test "an image starts in each of its modes; cpu has as many threads as cores" {
	make_box
	[ "$("$SVRUN" run --rm box)" = "usual 0" ]
	[ "$("$SVRUN" run --rm --mode cpu box)" = "cpu" ]
	[ "$("$SVRUN" run --rm --mode debug box)" = debug ]
	run_split "$SVRUN" run --rm --mode cpu --cpus 1 -e MKL_NUM_THREADS=3 box sh -c /bin/busybox\ env
	expect_in "$out" OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMEXPR_NUM_THREADS=1 MKL_NUM_THREADS=3
	run_split "$SVRUN" run --rm --cpus 1 box sh -c /bin/busybox\ env
	[[ $out != *OMP_NUM_THREADS* ]]
	run_split "$SVRUN" run --rm --mode none box
	expect_status 125
	expect_in "$err" "the image has no mode 'none'" "it has: cpu, debug, other"
	run_split "$SVRUN" run --rm --mode other box
	expect_status 125
	expect_in "$err" "its mode other has other packages or models" "svrun image build --mode other APP"
	[ -z "$(ls "$SVRUN_ROOT/instances")" ]
}

@test "an instance changes its mode and back" {
	make_box
	[ "$("$SVRUN" run --name m --mode cpu box)" = "cpu" ]
	[ "$("$SVRUN" start m)" = "cpu" ]
	[ "$("$SVRUN" start --mode debug m)" = debug ]
	[ "$("$SVRUN" start --mode= m)" = "usual 0" ]
	[ "$(<"$SVRUN_ROOT/instances/m/upper/log")" = "cpu
cpu
usual" ]
	"$SVRUN" rm m
}
