#!/usr/bin/env bats
# svrun image lock, svrun image build.

load helpers

# Build an app's copy in a store of its own, with everything around it different.
build_elsewhere() { # NAME [COMMAND...]
	local copy=$T/some/other/folder/$1 name=$1
	shift
	mkdir -p "${copy%/*}"
	cp -r "$WORK/apps/$name" "$copy"
	find "$copy" -exec touch -d 2001-01-01 {} +
	chmod -R go-rwx "$copy"
	(umask 077 && cd / && TZ=Asia/Tokyo LANG=C HOME=/nonexistent "$@" "$SVRUN" image build -q "$copy")
}

same_elsewhere() { # NAME [COMMAND...]
	need_image "$1"
	local wanted found
	wanted=$(image_digest "$1")
	new_store cache
	found=$(build_elsewhere "$@")
	[ "$wanted" = "$found" ] || fail "$wanted here, $found elsewhere"
}

@test "tiny-llama-chat builds from its lock" {
	need_image tiny-llama-chat
}

@test "ocr builds from its lock" {
	need_image ocr
}

@test "pytorch-cpu builds from its lock" {
	need_image pytorch-cpu
}

@test "the locks in manifests/ belong to their manifests" {
	need_root
	new_store
	for app in tiny-llama-chat ocr pytorch-cpu; do
		cp -r "$TOP/manifests/$app" "$T/$app"
		"$SVRUN" image lock --files "$T/$app"
		diff "$TOP/manifests/$app/lock.json" "$T/$app/lock.json"
	done
}

@test "tiny-llama-chat is the same, bit for bit, from another store, path, time and umask" {
	same_elsewhere tiny-llama-chat
}

@test "ocr is the same when one CPU builds it" {
	same_elsewhere ocr taskset -c 0
}

@test "pytorch-cpu is the same, bit for bit, from another store, path, time and umask" {
	same_elsewhere pytorch-cpu
}

@test "a build with nothing changed takes under 100 ms and no network" {
	need_image pytorch-cpu
	local best=100000 start took
	for _ in 1 2 3 4 5; do
		start=$(now_ms)
		run_split unshare -n "$SVRUN" image build "$WORK/apps/pytorch-cpu"
		took=$(($(now_ms) - start))
		expect_status 0
		expect_in "$err" "is up to date"
		[ "$out" = "$(image_digest pytorch-cpu)" ]
		[ "$took" -ge "$best" ] || best=$took
	done
	echo "# best of 5: $best ms" >&2
	[ "$best" -lt 100 ] || fail "$best ms"
}

@test "a build with everything fetched needs no network" {
	need_image ocr
	local wanted
	wanted=$(image_digest ocr)
	new_store cache
	run_split unshare -n "$SVRUN" image build -q "$WORK/apps/ocr"
	expect_status 0
	[ "$out" = "$wanted" ]
}

@test "an app of local files is locked and built without any mirror" {
	need_root
	new_store
	make_app plain
	run_split unshare -n "$SVRUN" image lock "$APP"
	expect_status 0
	run_split unshare -n "$SVRUN" image build -q "$APP"
	expect_status 0
	[ "$out" = "$(image_digest plain:1)" ]
	[ "$out" = "$(image_digest plain)" ]
}

@test "a lock written twice is the same" {
	make_app plain
	"$SVRUN" image lock "$APP"
	cp "$APP/lock.json" "$T/first"
	"$SVRUN" image lock "$APP"
	cmp "$T/first" "$APP/lock.json"
}

@test "a changed file needs a new lock, a changed variable does not" {
	need_root
	new_store
	make_app plain
	local first second
	first=$(lock_and_build "$APP")
	jq '.env = {A: "1"}' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	second=$("$SVRUN" image build -q "$APP")
	[ "$first" != "$second" ]
	echo more >>"$APP/text"
	run_split "$SVRUN" image build -q "$APP"
	[ "$status" != 0 ]
	expect_in "$err" "text" "svrun image lock"
	"$SVRUN" image lock --files "$APP"
	"$SVRUN" image build -q "$APP"
}

@test "a model file of another size than the manifest says is refused" {
	need_root
	new_store
	make_app sized "$(jq -n --arg sum "$(printf 'some text\n' | sha256sum | cut -c1-64)" '
		[{id: "m", target: "/m", format: "other", license: {spdx: "CC0-1.0"},
		source: {type: "file", path: "text"},
		files: [{path: "text", sha256: $sum, size: 11}]}]' | sed '1s/^/.models = /')"
	"$SVRUN" image lock "$APP"
	run_split "$SVRUN" image build "$APP"
	expect_status 125
	expect_in "$err" "model m: text: expected 11 bytes, found 10"
}

@test "a build without a lock says how to make one" {
	need_root
	new_store
	make_app plain
	run_split "$SVRUN" image build "$APP"
	expect_status 125
	expect_in "$err" "lock.json" "svrun image lock"
}

@test "an unknown app is an error that names the file" {
	run_split "$SVRUN" image build no-such-app
	[ "$status" != 0 ]
	expect_in "$err" "manifests/no-such-app"
}

@test "every fault of a manifest is reported with its place" {
	make_app plain '.nmae = "x" | .env = {"1bad": "v"} | .files[0].dest = "relative"'
	run_split "$SVRUN" image build "$APP"
	expect_status 2
	expect_in "$err" "/nmae" "did you mean" "/env/1bad" "/files/0/dest" "3 errors"
	[ "$(grep -cE 'manifest.json:[0-9]+:[0-9]+: SV[0-9]{3} /' <<<"$err")" = 3 ]
}

@test "gzip and zstd builds hold the same files" {
	need_root
	new_store
	make_app plain
	"$SVRUN" image lock "$APP"
	local zstd gzip
	zstd=$("$SVRUN" image build -q "$APP")
	zstd=$("$SVRUN" image inspect plain | jq -c '[.layers[] | .diffId]')
	gzip=$("$SVRUN" image build -q --compression gzip "$APP")
	"$SVRUN" image inspect plain | jq -e '.layers[0].mediaType | endswith("tar+gzip")'
	# The last layer carries the index and is zstd always.
	[ "$zstd" = "$("$SVRUN" image inspect plain | jq -c '[.layers[] | .diffId]')" ]
}

@test "peak memory of building pytorch-cpu is under 256 MiB" {
	need_image pytorch-cpu
	need_program /usr/bin/time
	new_store cache
	/usr/bin/time -f %M -o "$T/kb" "$SVRUN" image build -q "$WORK/apps/pytorch-cpu"
	echo "# $(($(<"$T/kb") / 1024)) MiB" >&2
	[ "$(<"$T/kb")" -lt 262144 ]
}
