#!/usr/bin/env bats
# svrun image plan.

load helpers

# STEP ID -> hit or miss
cache_of() {
	jq -er --arg s "$1" --arg i "$2" '.steps[] | select(.step == $s and .id == $i) | .cache' <<<"$out"
}

plan() {
	run_split "$SVRUN" image plan --format json "$@"
	expect_status 0
}

@test "a plan before anything was built is all misses, and makes no store" {
	export SVRUN_ROOT=$T/none
	make_app plain
	"$SVRUN" image lock --files "$APP" 2>/dev/null || SVRUN_ROOT=$T/other "$SVRUN" image lock "$APP" >/dev/null
	plan "$APP"
	[ "$(jq -r '[.steps[].cache] | unique | join(",")' <<<"$out")" = miss ] || fail "$out"
	[ "$(jq -r .upToDate <<<"$out")" = false ]
	[ ! -e "$SVRUN_ROOT" ]
}

@test "after a build all is hit; after a change only what it changes is missing" {
	need_root
	new_store
	make_app plain '.build.layers.groups = [{id: "program", match: ["npm:*"]}]'
	lock_and_build "$APP" >/dev/null
	plan "$APP"
	[ "$(jq -r '[.steps[] | select(.step != "test") | .cache] | unique | join(",")' <<<"$out")" = hit ] || fail "$out"
	[ "$(jq -r .manifest <<<"$out")" = "$(image_digest plain)" ]
	[ "$(jq '.fetchBytes + .writeBytes' <<<"$out")" = 0 ]
	jq '.entrypoint = ["/bin/hello", "x"]' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	plan "$APP"
	[ "$(cache_of config "manifest, config and index")" = miss ]
	[ "$(cache_of layer files)" = hit ]
	[ "$(cache_of unpack /bin/hello)" = hit ]
	echo more >>"$APP/text"
	"$SVRUN" image lock --files "$APP"
	plan "$APP"
	[ "$(cache_of unpack /bin/hello)" = hit ]
	[ "$(cache_of unpack /etc/text)" = miss ]
	[ "$(cache_of layer files)" = miss ]
}

@test "a step is missing when it, or what comes before it, changed" {
	need_root
	need_program busybox
	new_store
	make_app steps '.files += [{dest: "/bin/busybox", from: "busybox", mode: "0755"}]
		| .run = [{id: "one", argv: ["/bin/busybox", "touch", "/one"], writes: ["/one"]},
			{id: "two", argv: ["/bin/busybox", "touch", "/two"], writes: ["/two"]}]'
	cp "$(command -v busybox)" "$APP/busybox"
	lock_and_build "$APP" >/dev/null
	plan "$APP"
	[ "$(cache_of run one) $(cache_of run two)" = "hit hit" ]
	[ "$(cache_of layer one) $(cache_of layer two)" = "hit hit" ]
	jq '.run[1].env = {A: "1"}' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	plan "$APP"
	[ "$(cache_of run one) $(cache_of run two)" = "hit miss" ]
	[ "$(cache_of layer one) $(cache_of layer two)" = "hit miss" ]
	jq '.run[0].env = {A: "1"} | del(.run[1].env)' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	plan "$APP"
	[ "$(cache_of run one) $(cache_of run two)" = "miss miss" ]
	# As in the build: what it does not see is none of its business, and its limits decide nothing.
	jq '.run[].inputs = []' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	"$SVRUN" image build -q "$APP"
	jq '.run[0].env = {A: "2"} | .run[1].timeoutMs = 70000' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	plan "$APP"
	[ "$(cache_of run one) $(cache_of run two)" = "miss hit" ] || fail "$out"
	[ "$(cache_of layer one) $(cache_of layer two)" = "miss hit" ] || fail "$out"
	run_split "$SVRUN" image build --progress json "$APP"
	expect_in "$err" "step run:two: done before" '"step":"run:two","after":["unpack"]' '"step":"compose","after":["run:one","run:two"]'
}

@test "another codec makes other layers, and the size of those that were built is known" {
	need_root
	new_store
	make_app packed
	lock_and_build "$APP" >/dev/null
	plan --compression gzip "$APP"
	[ "$(cache_of layer files)" = miss ]
	"$SVRUN" image build -q --compression gzip "$APP"
	plan --compression gzip "$APP"
	[ "$(cache_of layer files)" = hit ]
	plan "$APP"
	[ "$(cache_of layer files)" = hit ]
	"$SVRUN" image rm packed packed:1
	"$SVRUN" image gc
	plan "$APP"
	[ "$(cache_of layer files)" = miss ]
	[ "$(jq '.writeBytes' <<<"$out")" -gt 100 ]
}

@test "the layers of the strategy origin are known once they were built" {
	need_root
	need_program busybox
	new_store
	make_app cut '.build.layers.strategy = "origin" | .files += [{dest: "/bin/busybox", from: "busybox", mode: "0755"}]
		| .run = [{id: "one", argv: ["/bin/busybox", "touch", "/one"], writes: ["/one"]}]'
	cp "$(command -v busybox)" "$APP/busybox"
	"$SVRUN" image lock "$APP" >/dev/null
	plan "$APP"
	[ "$(jq -c '[.layers, .writeKnown]' <<<"$out")" = "[null,false]" ] || fail "$out"
	run_split "$SVRUN" image plan "$APP"
	expect_in "$out" "not known before it was built"
	"$SVRUN" image build -q "$APP"
	plan "$APP"
	[ "$(cache_of layer files) $(cache_of layer one)" = "hit hit" ]
	[ "$(jq .layers <<<"$out")" = "$("$SVRUN" image inspect cut | jq '.layers | length')" ] || fail "$out"
	[ "$(jq .writeKnown <<<"$out")" = true ]
}

@test "what is to be fetched is counted in bytes" {
	need_root
	new_store
	plan "$TOP/manifests/ocr"
	local bytes
	bytes=$(jq '.fetchBytes' <<<"$out")
	[ "$bytes" = "$(jq '[.apt.packages[].size] | add' "$TOP/manifests/ocr/lock.json")" ]
	[ "$(jq '[.steps[] | select(.step == "fetch")] | length' <<<"$out")" = "$(jq '.apt.packages | length' "$TOP/manifests/ocr/lock.json")" ]
	run_split "$SVRUN" image plan "$TOP/manifests/ocr"
	expect_in "$out" "fetch" "0 of" "to fetch" "MiB" "gpu        none"
}

@test "a plan fetches nothing and writes nothing" {
	need_root
	need_program strace
	new_store
	make_app quiet
	lock_and_build "$APP" >/dev/null
	find "$SVRUN_ROOT" -type f ! -name lock.mdb -exec sha256sum {} + | sort >"$T/before"
	strace -f -o "$T/trace" -e trace=network unshare -n "$SVRUN" image plan "$APP" >/dev/null
	run grep -E 'connect\(|sendto\(' "$T/trace"
	[ "$status" = 1 ] || fail "$output"
	find "$SVRUN_ROOT" -type f ! -name lock.mdb -exec sha256sum {} + | sort | diff "$T/before" -
}

@test "licences and gates of models, and the GPU floor, are in the plan" {
	export SVRUN_ROOT=$T/none
	make_app gated "$(jq -rn --arg sum "$(printf 'some text\n' | sha256sum | cut -c1-64)" '"\"\($sum)\" as $sum | "')"'.gpu = {mode: "required", vendor: "nvidia", vramGiB: {min: 16, per: "gpu"}, computeCapability: {min: "8.0"}}
		| .models = [{id: "w", target: "/models/w", format: "other", 
			source: {type: "file", path: "text"}, files: [{path: "text", sha256: $sum, size: 10}],
			license: {name: "Some Licence", url: "https://localhost/licence", gated: true, acceptance: "user", redistribute: "no",
				nonCommercial: true, excludedTerritories: ["KR"], maxMonthlyUsers: 1000}}]'
	SVRUN_ROOT=$T/other "$SVRUN" image lock "$APP" >/dev/null
	run_split "$SVRUN" image plan "$APP"
	expect_status 0
	expect_in "$out" "Some Licence" "gated" "to be accepted by user" "non-commercial" "redistribution: no" "not in KR" \
		"1000 users" "gpu        required, nvidia, 16 GiB each, compute capability 8.0"
	plan "$APP"
	[ "$(jq -c '.models[0] | [.gated, .acceptance, .nonCommercial]' <<<"$out")" = '[true,"user",true]' ]
	[ "$(jq -r '.gpu.mode' <<<"$out")" = required ]
}

@test "a plan without a lock says how to make one" {
	make_app plain
	run_split "$SVRUN" image plan "$APP"
	expect_status 125
	expect_in "$err" "svrun image lock"
}
