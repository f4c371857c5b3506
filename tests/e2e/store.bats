#!/usr/bin/env bats
# House-keeping: gc, prune, du, fsck, and what a crash of the machine leaves.

load helpers
load registry

# An image NAME with the file /big of so many bytes, different for each seed.
build_big() { # NAME SEED [BYTES]
	make_app "$1" '.files += [{dest: "/big", from: "big"}]'
	python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(int(sys.argv[1])).randbytes(int(sys.argv[2])))' \
		"$2" "${3:-3000000}" >"$T/$1/big"
	lock_and_build "$T/$1" >"$T/$1.log"
}

pool_bytes() {
	echo $(($(stat -c %b "$SVRUN_ROOT/pool/data") * 512))
}

gc() { # [OPTION...]
	run_split "$SVRUN" image gc "$@"
	expect_status 0
}

# Where a file of an image lies in the pool: its first chunk is found by its bytes.
spoil_pool() { # FILE: 16 bytes of its data are overwritten wherever they stand
	python3 - "$SVRUN_ROOT/pool/data" "$1" <<-'PY'
		import mmap, sys
		needle = open(sys.argv[2], "rb").read(4096)
		with open(sys.argv[1], "r+b") as f:
		    m = mmap.mmap(f.fileno(), 0)
		    at = m.find(needle)
		    assert at > 0
		    m[at + 100:at + 116] = b"x" * 16
	PY
}

# The machine crashed: what the mark speaks of is from another boot.
crash() {
	[ -e "$SVRUN_ROOT/pool/unsynced" ] || fail "nothing is unsynced" || return 1
	echo 00000000-0000-4000-8000-000000000000 >"$SVRUN_ROOT/pool/unsynced"
}

# An image of ours in the last registry, and pulled into a new store.
pull_own() { # NAME
	(
		export SVRUN_ROOT=$T/builder
		build_big "$1" 5
		skopeo_ok copy -q --dest-tls-verify=false "oci:$SVRUN_ROOT:$1" "docker://$REGISTRY/own/$1:1"
	)
	export SVRUN_ROOT=$T/store
	"$SVRUN" image pull --plain-http --progress none "$REGISTRY/own/$1:1" >/dev/null
}

# A pull syncs behind its back.
await_settled() {
	for _ in $(seq 200); do
		[ -e "$SVRUN_ROOT/pool/unsynced" ] || return 0
		sleep 0.05
	done
	fail "still unsynced"
}

@test "rm and gc give the space of an image back, and no other" {
	need_root
	new_store
	build_big one 1
	build_big two 2
	local before
	before=$(pool_bytes)
	gc
	expect_in "$out" "removed 0 blobs (0 B), 0 chunks (0 B), 0 other files (0 B)" "2 images kept"
	"$SVRUN" image rm one one:1 >/dev/null
	gc --dry-run
	expect_in "$out" "would remove" "3 chunks (2.9 MiB)" "1 images kept"
	[ "$(pool_bytes)" = "$before" ]
	gc
	expect_in "$out" "3 chunks (2.9 MiB)" "gave back"
	[ $((before - $(pool_bytes))) -ge 2900000 ]
	"$SVRUN" image verify two >/dev/null
	[ "$("$SVRUN" run --rm two cat /etc/text)" = "some text" ]
	cmp <("$SVRUN" image export two | tar -xO big) "$T/two/big"
}

@test "what a rebuild has replaced is garbage" {
	need_root
	new_store
	build_big one 1
	build_big one 2
	gc
	expect_in "$out" "3 chunks (2.9 MiB)" "1 images kept"
	"$SVRUN" image verify one >/dev/null
	cmp <("$SVRUN" image export one | tar -xO big) "$T/one/big"
}

@test "an image that runs survives rm and gc" {
	need_root
	new_store
	build_big one 1
	build_big other 2
	"$SVRUN" run --rm one sleep 1000 >"$T/got" 2>"$T/err" 3>&- &
	local pid=$! child first
	for _ in $(seq 200); do
		[ -s "$T/got" ] && break
		sleep 0.05
	done
	child=$(pgrep -f '^/bin/hello sleep 1000' -P "$pid" || pgrep -P "$pid" | head -n 1)
	run_split "$SVRUN" image rm one one:1
	expect_status 125
	expect_in "$err" "in use by a running instance"
	build_big one 3 # its names go to another image
	"$SVRUN" image rm other other:1 >/dev/null
	gc
	expect_in "$out" "3 chunks (2.9 MiB)" "2 images kept"
	first=$(python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(1).randbytes(3000000))' | sha256sum)
	[ "$(sha256sum <"/proc/$child/root/big")" = "$first" ]
	kill "$pid"
	wait "$pid" || true
	gc
	expect_in "$out" "3 chunks (2.9 MiB)" "1 images kept"
}

@test "rm leaves the documents alone while somebody works who may count on them" {
	need_root
	new_store
	build_big one 1
	local layers
	layers=$(find "$SVRUN_ROOT/blobs/sha256" -type f | wc -l)
	exec 8<"$SVRUN_ROOT/pool/users"
	flock -s 8 # as a pull, a load or a build does
	"$SVRUN" image rm one one:1 >/dev/null
	[ "$(find "$SVRUN_ROOT/blobs/sha256" -type f | wc -l)" = "$layers" ]
	exec 8<&-
	gc
	expect_in "$out" "removed $layers blobs" "0 images kept"
}

@test "gc keeps what builds have fetched, unless it is asked" {
	need_root
	new_store
	build_big one 1
	mkdir -p "$SVRUN_ROOT/cache/sha256"
	echo x >"$SVRUN_ROOT/cache/sha256/$(printf '%064d' 1)"
	gc
	[ -e "$SVRUN_ROOT/cache/sha256/$(printf '%064d' 1)" ]
	gc --cache
	[ ! -e "$SVRUN_ROOT/cache/sha256/$(printf '%064d' 1)" ]
}

@test "prune removes what has no name, and asks before" {
	need_root
	new_store
	build_big one 1
	build_big two 2
	# as other tools leave one
	jq '.manifests |= map(if .annotations["org.opencontainers.image.ref.name"] | startswith("one")
		then del(.annotations) else . end)' "$SVRUN_ROOT/index.json" >"$T/index.json"
	cp "$T/index.json" "$SVRUN_ROOT/index.json"
	gc
	expect_in "$out" "0 chunks" "2 images kept"
	run_split setsid "$SVRUN" image prune
	expect_status 2
	expect_in "$err" "hint: --force does not ask"
	run_split "$SVRUN" image prune -f
	expect_status 0
	expect_in "$out" "deleted sha256:" "3 chunks (2.9 MiB)" "1 images kept"
	jq -e '.manifests | length == 2' "$SVRUN_ROOT/index.json"
	run_split "$SVRUN" image prune -f --all
	expect_status 0
	expect_in "$out" "untagged two" "untagged two:1" "0 images kept"
	jq -e '.manifests == []' "$SVRUN_ROOT/index.json"
	[ "$(pool_bytes)" -lt 100000 ]
}

@test "du adds up, and unique is what rm and gc give back" {
	need_root
	new_store
	build_big one 1
	build_big two 2
	"$SVRUN" image du --format json >"$T/du.json"
	jq -e '
		(.images | length) == 2 and
		(([.images[].unique] | add) + .shared + .unused) == .pool + .blobs + .others and
		(.images | all(.unique > 2900000 and .total == .shared + .unique)) and
		.shared > 0 and .unused == 0' "$T/du.json"
	run_split "$SVRUN" image du
	expect_status 0
	expect_in "$out" "IMAGE" "one" "two" "shared" "unused"
	[ "$("$SVRUN" image du two --format json | jq -r '.images | length')" = 1 ]
	run_split "$SVRUN" image du nothing
	expect_status 125
	"$SVRUN" image rm two two:1 >/dev/null
	gc
	"$SVRUN" image du --format json >"$T/after.json"
	jq -en --slurpfile a "$T/du.json" --slurpfile b "$T/after.json" '
		def all: .pool + .blobs + .others;
		($a[0] | all) - ($b[0] | all) == ($a[0].images[] | select(.name | startswith("two")) | .unique)'
}

@test "fsck names the file of a damaged chunk and repairs it from its layer" {
	need_root
	new_store
	build_big one 1
	run_split "$SVRUN" image fsck --progress none
	expect_status 0
	expect_in "$out" "1 images" "all as they should be"
	spoil_pool "$T/one/big"
	run_split "$SVRUN" image fsck --progress none
	expect_status 125
	expect_in "$out" "pool/data: a chunk of 1048576 bytes" "one: 'big' is damaged" "1 faults, 0 of them repaired"
	expect_in "$err" "1 faults are left" "hint: svrun image fsck --repair"
	run_split "$SVRUN" image fsck --repair --progress none
	expect_status 0
	expect_in "$out" "1 faults, 1 of them repaired"
	cmp <("$SVRUN" image export one | tar -xO big) "$T/one/big"
}

@test "fsck fetches the chunks of a pulled image again" {
	need_root
	registry_plain
	pull_own own
	await_settled
	"$SVRUN" image verify "$REGISTRY/own/own:1" >/dev/null
	spoil_pool "$T/own/big"
	run_split "$SVRUN" image verify "$REGISTRY/own/own:1"
	expect_status 125
	export SVRUN_CONFIG=$T/config.json
	echo "{\"registries\": {\"$REGISTRY\": {\"plain-http\": true}}}" >"$SVRUN_CONFIG"
	run_split "$SVRUN" image fsck --repair --progress none
	expect_status 0
	expect_in "$out" "'big' is damaged" "1 faults, 1 of them repaired"
	cmp <("$SVRUN" image export "$REGISTRY/own/own:1" | tar -xO big) "$T/own/big"
}

@test "after a crash nothing wrong is shown, and fsck fetches what was lost" {
	need_root
	registry_plain
	pull_own own
	local i
	# The process that syncs behind a pull ends with the pull's pid namespace, in most tries before it has synced.
	for i in 1 2 3 4 5 6 7 8; do
		export SVRUN_ROOT=$T/crashed$i
		unshare --pid --fork "$SVRUN" image pull --plain-http --progress none "$REGISTRY/own/own:1" >/dev/null
		if crash 2>/dev/null; then break; fi
	done
	[ -e "$SVRUN_ROOT/pool/unsynced" ] || skip "the disk was always faster"
	spoil_pool "$T/own/big"
	run_split "$SVRUN" run --rm "$REGISTRY/own/own:1" cat /etc/text
	expect_status 125 # refused, not run with wrong data
	expect_in "$err" "the pool lacks its chunk" "hint: svrun image fsck --repair"
	[ ! -e "$SVRUN_ROOT/pool/unsynced" ]
	export SVRUN_CONFIG=$T/config.json
	echo "{\"registries\": {\"$REGISTRY\": {\"plain-http\": true}}}" >"$SVRUN_CONFIG"
	run_split "$SVRUN" image fsck --repair --progress none
	expect_status 0
	expect_in "$out" "'big' is not whole"
	cmp <("$SVRUN" run --rm "$REGISTRY/own/own:1" cat /big) "$T/own/big"
}

@test "after a crash, who holds the pool before it opens it does not wait for itself" {
	need_root
	new_store
	build_big one 1
	local verb
	for verb in fsck "convert one two" "save one -o $T/one.tar"; do
		touch "$SVRUN_ROOT/pool/unsynced"
		crash
		# shellcheck disable=SC2086 # words
		run_split timeout 60 "$SVRUN" image $verb --progress none
		expect_status 0
		[ ! -e "$SVRUN_ROOT/pool/unsynced" ] || "$SVRUN" image fsck --progress none >/dev/null
	done
}

@test "gc that is killed anywhere harms nothing" {
	need_root
	new_store
	build_big keep 1
	local i
	for i in 1 2 3 4 5 6; do
		build_big lost $((100 + i))
		"$SVRUN" image gc >/dev/null 2>&1 3>&- &
		sleep 0.00$i
		kill -9 $! 2>/dev/null || true
		wait $! 2>/dev/null || true
	done
	gc
	expect_in "$out" "2 images kept"
	run_split "$SVRUN" image fsck --progress none
	expect_status 0
	expect_in "$out" "all as they should be"
}

@test "builds, runs and two collections at once" {
	need_root
	new_store
	build_big keep 1
	local pids=() i
	for i in 1 2; do
		for _ in 1 2 3 4 5 6; do "$SVRUN" image gc >/dev/null || exit 1; done 3>&- &
		pids+=($!)
	done
	for _ in 1 2 3 4 5 6; do
		cmp <("$SVRUN" run --rm keep cat /big) "$T/keep/big" || exit 1
	done 3>&- &
	pids+=($!)
	for i in 1 2 3; do build_big new $((200 + i)) 2000000; done
	for i in "${pids[@]}"; do wait "$i"; done
	run_split "$SVRUN" image fsck --progress none
	expect_status 0
	expect_in "$out" "2 images" "all as they should be"
	cmp <("$SVRUN" image export new | tar -xO big) "$T/new/big"
}

@test "fsck fetches damaged chunks of a foreign image again" {
	need_root
	registry_plain
	make_foreign_image "$T/image" ref --files 5 --big 5000000
	push_with_skopeo "$T/image" ref some/image:1
	empty_store
	pull "$REGISTRY/some/image:1"
	expect_status 0
	await_settled
	"$SVRUN" image export "$REGISTRY/some/image:1" | sha256sum >"$T/before"
	# some bytes of every MiB of the pool
	for ((i = 0; i < 5; i++)); do
		printf '\xa5\x5a' | dd of="$SVRUN_ROOT/pool/data" bs=1 seek=$((i * 1048576 + 70000)) conv=notrunc status=none
	done
	export SVRUN_CONFIG=$T/config.json
	echo "{\"registries\": {\"$REGISTRY\": {\"plain-http\": true}}}" >"$SVRUN_CONFIG"
	run_split "$SVRUN" image fsck --progress none
	[ "$status" != 0 ]
	expect_in "$out$err" "$REGISTRY/some/image:1"
	run_split "$SVRUN" image fsck --repair --progress none
	[ "$status" = 0 ] || fail "$out$err" || return 1
	run_split "$SVRUN" image fsck --progress none
	[ "$status" = 0 ] || fail "$out$err" || return 1
	"$SVRUN" image export "$REGISTRY/some/image:1" | sha256sum | diff "$T/before" -
}

@test "fsck repairs a foreign image that was loaded from its layers" {
	need_root
	new_store
	make_foreign_image "$T/image" ref --files 5 --big 5000000
	"$SVRUN" image load -q "$T/image" --name it:1 >/dev/null
	"$SVRUN" image export it:1 | sha256sum >"$T/before"
	local i
	for ((i = 0; i < 5; i++)); do
		printf '\xa5\x5a' | dd of="$SVRUN_ROOT/pool/data" bs=1 seek=$((i * 1048576 + 70000)) conv=notrunc status=none
	done
	run_split "$SVRUN" image fsck --repair --progress none
	[ "$status" = 0 ] || fail "$out$err" || return 1
	expect_in "$out" "faults, "
	run_split "$SVRUN" image fsck --progress none
	[ "$status" = 0 ] || fail "$out$err" || return 1
	"$SVRUN" image export it:1 | sha256sum | diff "$T/before" -
}
