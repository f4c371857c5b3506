#!/usr/bin/env bats
# svrun image lock, svrun image build.

load helpers
load registry

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

# ---- nothing is done twice ----

# An app with two steps and a shell to run them; its last step reads /in.
make_step_app() { # NAME [JQ-FILTER]
	need_program busybox
	! ldd "$(command -v busybox)" >/dev/null 2>&1 || skip "needs a static busybox"
	make_app "$1" '
		.files += [{id: "sh", dest: "/bin/busybox", from: "busybox", mode: "0755"}, {id: "in", dest: "/in", inline: "v1\n"}]
		| .entrypoint = ["/bin/busybox"] | .run = [
			{id: "one", argv: ["/bin/busybox", "sh", "-c", "echo step one; busybox mkdir /out; busybox seq 200000 >/out/many"],
				inputs: ["sh"], writes: ["/out", "/out/**"]},
			{id: "two", argv: ["/bin/busybox", "sh", "-c", "echo step two; busybox cat /in >/out/two"],
				writes: ["/out/**"]}
		]'
	cp "$(command -v busybox)" "$APP/busybox"
	jq "${2:-.}" "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
}

count() { # NAME JSON
	jq -r ".count.$1" <<<"$2"
}

@test "one file changed: only its layer, the last step's, index, config and manifest are written" {
	need_root
	new_store
	make_step_app one
	# Something big that does not change.
	head -c 30000000 /dev/urandom >"$APP/big"
	jq '.files += [{id: "big", dest: "/big", from: "big"}]
		| .build.layers.groups = [{id: "big", match: ["path:/big", "path:/bin/**"]}]' "$APP/manifest.json" >"$T/m"
	mv "$T/m" "$APP/manifest.json"
	"$SVRUN" image lock "$APP" >/dev/null
	"$SVRUN" image build -q "$APP"
	jq '(.files[] | select(.id == "in")).inline = "v2\n"' "$APP/manifest.json" >"$T/m"
	mv "$T/m" "$APP/manifest.json"
	touch "$T/mark"
	sleep 0.02
	run_split "$SVRUN" image build --format json "$APP"
	expect_status 0
	[ "$(count inputsUnpacked "$out")" = 0 ] || fail "$out"
	[ "$(count stepsReused "$out")" = 1 ] || fail "$out"
	[ "$(count stepsRun "$out")" = 1 ] || fail "$out"
	# /in's layer and the layer of step two; those of big and of step one are as they were.
	[ "$(count layersWritten "$out")" = 2 ] || fail "$out"
	local new bytes
	new=$(find "$SVRUN_ROOT/blobs/sha256" -type f -newer "$T/mark" | wc -l)
	bytes=$(find "$SVRUN_ROOT/blobs/sha256" -type f -newer "$T/mark" -printf '%s\n' | awk '{ n += $1 } END { print n }')
	# Two layers, index, config, manifest.
	[ "$new" = 5 ] || fail "$new new blobs"
	[ "$bytes" -lt 20000 ] || fail "$bytes bytes in new blobs"
	[ "$(count bytesWritten "$out")" -ge "$bytes" ]
	run_split "$SVRUN" run one cat /out/two
	[ "$out" = v2 ]
}

@test "eight apps that share a base: each shared byte is unpacked, compressed and hashed once" {
	need_root
	new_store
	make_app base '.files += [{id: "shared", dest: "/shared/data", from: "shared"}]
		| .build.layers.groups = [{id: "shared", match: ["path:/shared/**", "path:/bin/**", "path:/etc/text"]}]'
	head -c 3000000 /dev/urandom >"$APP/shared"
	local i apps=() own=0
	for i in 1 2 3 4 5 6 7 8; do
		mkdir "$T/app$i"
		printf '%s' "own data of app $i" >"$T/app$i/own"
		own=$((own + $(stat -c %s "$T/app$i/own")))
		jq -n --arg n "app$i" '{schema: "svrun.image/1", name: $n, version: "1", from: ["base"],
			files: [{id: "own", dest: "/own", from: "own"}]}' >"$T/app$i/manifest.json"
		"$SVRUN" image lock "$T/app$i" >/dev/null
		apps+=("$T/app$i")
	done
	local shared=$((3000000 + $(stat -c %s "$T/base/hello") + $(stat -c %s "$T/base/text")))
	run_split "$SVRUN" image build --jobs 3 --format json "${apps[@]}"
	expect_status 0
	[ "$(jq -s length <<<"$out")" = 8 ]
	[ "$(jq -s 'map(.count.bytesUnpacked) | add' <<<"$out")" = $((shared + own)) ] || fail "$out"
	[ "$(jq -s 'map(.count.bytesCompressed) | add' <<<"$out")" = $((shared + own)) ] || fail "$out"
	[ "$(jq -s 'map(.count.layersReused) | add' <<<"$out")" -ge 7 ] || fail "$out"
	# The layer of the base is one blob in all of them.
	[ "$(for i in 1 2 3 4 5 6 7 8; do "$SVRUN" image inspect "app$i" | jq -r '.layers[0].digest'; done | sort -u | wc -l)" = 1 ]
}

@test "several apps: one that fails takes no other with it, and is named" {
	need_root
	new_store
	make_app good
	"$SVRUN" image lock "$APP" >/dev/null
	make_app fine
	"$SVRUN" image lock "$APP" >/dev/null
	make_app bad
	run_split "$SVRUN" image build --jobs 2 "$T/good" "$T/bad" "$T/fine"
	expect_status 125
	expect_in "$err" "$T/bad: svrun:" "lock.json" "1 of 3 builds failed"
	[ "$out" = "$(image_digest good)
$(image_digest fine)" ]
}

@test "--all builds every app in manifests/" {
	need_root
	new_store
	mkdir "$T/manifests"
	make_app manifests/a '.name = "a"'
	"$SVRUN" image lock "$APP" >/dev/null
	make_app manifests/b '.name = "b"'
	"$SVRUN" image lock "$APP" >/dev/null
	cd "$T"
	run_split "$SVRUN" image build --all
	expect_status 0
	[ "$out" = "$(image_digest a)
$(image_digest b)" ]
	cd "$T/a" 2>/dev/null || cd /
	run_split "$SVRUN" image build --all
	[ "$status" != 0 ]
	expect_in "$err" "manifests"
}

# An app with entries a and b in its matrix, which are two images; locked.
make_matrix_app() { # NAME
	make_app "$1" '.name |= sub(".*/"; "") | .vars = {lvl: {type: "integer", default: 1}} | .matrix = [{id: "a", vars: {}}, {id: "b", vars: {lvl: 2}}]
		| .env = {LVL: "${lvl}"}'
	local entry
	for entry in a b; do
		"$SVRUN" image lock --matrix "$entry" "$APP" >/dev/null
	done
}

@test "every entry of a matrix: --matrix all, --all, and --all with names" {
	need_root
	new_store
	mkdir "$T/manifests"
	make_matrix_app manifests/big
	make_app manifests/flat '.name = "flat"'
	"$SVRUN" image lock "$APP" >/dev/null
	cd "$T"
	run_split "$SVRUN" image build --matrix all big
	expect_status 0
	[ "$out" = "$(image_digest big:1-a)
$(image_digest big:1-b)" ]
	[ "$(image_digest big)" = "$(image_digest big:1-a)" ]
	expect_in "$err" "big (a): big:1-a built" "big (b): big:1-b built"
	run_split "$SVRUN" image build --all big
	[ "$(wc -l <<<"$out")" = 2 ]
	run_split "$SVRUN" image build --all
	[ "$(wc -l <<<"$out")" = 3 ]
	run_split "$SVRUN" image build --matrix b big
	expect_in "$err" "big:1-b is up to date"
	run_split "$SVRUN" image build --matrix b --var lvl=7 big
	expect_in "$err" "big:1-b was another image: --var is in no name"
}

# ---- interrupted ----

@test "a build that is killed at every file it gives a name to goes on where it was, to the same image" {
	need_root
	need_program strace
	new_store
	make_step_app killed '.build.layers.groups = [{id: "a", match: ["path:/bin/**"]}, {id: "b", match: ["path:/etc/**"]}]'
	"$SVRUN" image lock "$APP" >/dev/null
	local wanted i status=1 kills=0
	wanted=$("$SVRUN" image build -q "$APP")
	rm -rf "$SVRUN_ROOT"
	new_store_again
	# The third name that a try gives is its end. Each try gets further, or the image is there.
	for ((i = 0; i < 60; i++)); do
		status=0
		strace -f -o /dev/null -e trace=rename,renameat,renameat2,linkat \
			-e inject=rename,renameat,renameat2,linkat:signal=KILL:when=3 \
			"$SVRUN" image build -q "$APP" >"$T/out" 2>"$T/err" </dev/null || status=$?
		[ "$status" != 0 ] || break
		kills=$((kills + 1))
		[ -z "$(jq -r '.manifests[]?' "$SVRUN_ROOT/index.json" 2>/dev/null)" ] || {
			# What has a name is whole.
			"$SVRUN" image verify killed
		}
	done
	[ "$status" = 0 ] || fail "never got to its end: $(<"$T/err")"
	[ "$kills" -gt 2 ] || fail "only $kills kills"
	[ "$(<"$T/out")" = "$wanted" ]
	"$SVRUN" image fsck
	expect_nothing_left "$SVRUN_ROOT"
}

new_store_again() {
	mkdir -m 700 "$SVRUN_ROOT"
	echo '{"imageLayoutVersion": "1.0.0"}' >"$SVRUN_ROOT/oci-layout"
}

@test "what was unpacked before a kill is not unpacked again" {
	need_root
	need_program strace
	new_store
	make_app kept
	"$SVRUN" image lock "$APP" >/dev/null
	# Killed when the layers come: at the first blob.
	run_split strace -f -o /dev/null -P "$SVRUN_ROOT/blobs/sha256" -e trace=linkat,renameat,rename \
		-e inject=linkat,renameat,rename:signal=KILL:when=1 "$SVRUN" image build -q "$APP"
	[ "$status" != 0 ] || skip "strace could not kill it"
	run_split "$SVRUN" image build --format json "$APP"
	expect_status 0
	[ "$(count inputsUnpacked "$out")" = 0 ] || fail "$out"
}

@test "after garbage collection took the chunks, what was kept of them is not believed" {
	need_root
	new_store
	make_step_app collected
	local wanted
	wanted=$(lock_and_build "$APP" 2>/dev/null)
	"$SVRUN" image rm collected collected:1
	"$SVRUN" image gc >/dev/null
	[ "$(find "$SVRUN_ROOT/cache/unpacked" -type f | wc -l)" -gt 0 ]
	run_split "$SVRUN" image build --format json "$APP"
	expect_status 0
	[ "$(jq -r .manifest <<<"$out")" = "$wanted" ]
	[ "$(count inputsReused "$out")" = 0 ] || fail "$out"
	"$SVRUN" image verify collected
	"$SVRUN" image gc --cache >/dev/null
	[ "$(find "$SVRUN_ROOT/cache/unpacked" "$SVRUN_ROOT/cache/layers" -type f | wc -l)" = 0 ]
	[ "$("$SVRUN" image build -q "$APP")" = "$wanted" ]
}

# ---- locks ----

@test "--locked refuses a lock that another packer made" {
	need_root
	new_store
	make_app locked
	"$SVRUN" image lock "$APP" >/dev/null
	"$SVRUN" image build -q --locked "$APP"
	jq '.envelope |= (if type == "string" then sub("[0-9a-f]{8}$"; "00000001") else . end)' "$APP/lock.json" >"$T/l"
	cmp -s "$T/l" "$APP/lock.json" && fail "the lock has no envelope"
	mv "$T/l" "$APP/lock.json"
	run_split "$SVRUN" image build -q --locked "$APP"
	expect_status 2
	expect_in "$err" "--locked" "another version" "svrun image lock"
	"$SVRUN" image build -q "$APP"
}

@test "lock --check prints what would change, and exits with 1" {
	need_root
	new_store
	make_app checked
	"$SVRUN" image lock "$APP" >/dev/null
	run_split "$SVRUN" image lock --check "$APP"
	expect_status 0
	[ -z "$out" ] || fail "$out"
	cp "$APP/lock.json" "$T/before"
	echo more >>"$APP/text"
	run_split "$SVRUN" image lock --check "$APP"
	expect_status 1
	expect_in "$out" "file text " " -> "
	[ "$(wc -l <<<"$out")" = 1 ]
	cmp "$T/before" "$APP/lock.json"
}

# A signed repository of two packages in $T/repo, as mirror "local".
make_repository() { # VERSION-OF-A VERSION-OF-B
	local p v deb=$T/deb
	need_program gpg
	need_program apt-ftparchive
	export GNUPGHOME=$T/gpg SVRUN_CONFIG=$T/config.json
	[ -d "$GNUPGHOME" ] || {
		mkdir -m 700 "$GNUPGHOME"
		gpg --batch --quiet --passphrase '' --quick-generate-key test ed25519 sign never 2>/dev/null
		gpg --batch --export >"$T/key.gpg"
	}
	rm -rf "$T/repo/dists"
	mkdir -p "$T/repo/pool" "$T/repo/dists/x/main/binary-amd64"
	for p in "liba $1" "libb $2"; do
		v=${p#* } p=${p% *}
		rm -rf "$deb"
		mkdir -p "$deb/DEBIAN" "$deb/usr/share/$p"
		echo "$v" >"$deb/usr/share/$p/version"
		printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: t <t@localhost>\nDescription: t\n' "$p" "$v" \
			>"$deb/DEBIAN/control"
		dpkg-deb --root-owner-group -b "$deb" "$T/repo/pool/${p}_${v}_all.deb" >/dev/null
	done
	(cd "$T/repo" && apt-ftparchive packages pool >dists/x/main/binary-amd64/Packages &&
		apt-ftparchive -o APT::FTPArchive::Release::Suite=x release dists/x >"$T/Release" &&
		gpg --batch --quiet --clearsign -o dists/x/InRelease "$T/Release")
	jq -n --arg r "file://$T/repo" '{mirrors: {local: $r}}' >"$SVRUN_CONFIG"
}

make_deb_app() {
	make_app debs '.apt = {sources: [{uri: "mirror:local", suites: ["x"], components: ["main"], signedBy: "key.gpg"}],
		packages: ["liba", "libb"], configure: "none"}'
	cp "$T/key.gpg" "$APP/key.gpg"
}

@test "lock --update moves only one package" {
	need_root
	new_store
	make_repository 1 1
	make_deb_app
	"$SVRUN" image lock "$APP"
	make_repository 2 2
	run_split "$SVRUN" image lock --check "$APP"
	expect_status 1
	expect_in "$out" "deb liba:all 1 (" " -> 2 (" "deb libb:all 1 ("
	"$SVRUN" image lock --update libb "$APP"
	[ "$(jq -r '.apt.packages[] | "\(.name) \(.version)"' "$APP/lock.json")" = "liba 1
libb 2" ]
	run_split "$SVRUN" image lock --update nosuch "$APP"
	expect_status 2
	expect_in "$err" "nosuch"
}

@test "a pinned version is what the lock gets" {
	need_root
	new_store
	make_repository 1 1
	make_repository 2 2
	make_deb_app
	jq '.apt.pins = {liba: "1*"}' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	"$SVRUN" image lock "$APP"
	[ "$(jq -r '.apt.packages[] | "\(.name) \(.version)"' "$APP/lock.json")" = "liba 1
libb 2" ]
}

# ---- users ----

@test "users and groups have lines in the files, and ids that clash are refused by name" {
	need_root
	new_store
	make_step_app users '.groups = [{name: "app", gid: 1000}, {name: "video", gid: 44}]
		| .users = [{name: "app", uid: 1000, gid: 1000, groups: ["video"]}] | del(.run)'
	lock_and_build "$APP"
	run_split "$SVRUN" run users cat /etc/passwd /etc/group
	[ "$out" = "root:*:0:0:root:/root:/bin/sh
app:*:1000:1000::/home/app:/bin/sh
root:x:0:
app:x:1000:
video:x:44:app" ] || fail "$out"
	run_split "$SVRUN" run users stat -c %u:%g:%a /home/app
	[ "$out" = 1000:1000:755 ]
	jq '.users += [{name: "other", uid: 0, gid: 0}]' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	run_split "$SVRUN" image build -q "$APP"
	[ "$status" != 0 ]
	expect_in "$err" "/users/1" "user 0 is root" "other"
}

# ---- places ----

@test "paths in build.volatile reach no layer" {
	need_root
	new_store
	make_step_app fleeting '.build.volatile = ["/out/many", "/etc/**"]'
	lock_and_build "$APP"
	run_split "$SVRUN" run fleeting find /out /etc
	expect_in "$out" "/out/two" "/etc"
	[[ $out != *many* && $out != *text* ]] || fail "$out"
}

@test "squash makes one layer of it all" {
	need_root
	new_store
	make_step_app flat '.build.squash = true'
	lock_and_build "$APP"
	[ "$("$SVRUN" image inspect flat | jq '.layers | length')" = 2 ] # and the index
	run_split "$SVRUN" run flat cat /out/two
	[ "$out" = v1 ]
}

@test "steps for another platform are an error that says so" {
	need_root
	new_store
	make_step_app foreign '.platforms = ["linux/amd64", "linux/arm64"]'
	"$SVRUN" image lock --platform linux/arm64 "$APP"
	run_split "$SVRUN" image build -q --platform linux/arm64 "$APP"
	[ "$status" != 0 ]
	expect_in "$err" "run:one" "linux/arm64"
	jq 'del(.run)' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	"$SVRUN" image lock --platform linux/arm64 "$APP"
	"$SVRUN" image build -q --platform linux/arm64 "$APP"
}

# ---- logs ----

@test "the whole log of a step of the last build, also when it was done before" {
	need_root
	new_store
	make_step_app logged
	lock_and_build "$APP"
	run_split "$SVRUN" image log "$APP" one
	expect_status 0
	[ "$out" = "step one" ]
	jq '.env = {A: "1"}' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	"$SVRUN" image build -q "$APP"
	run_split "$SVRUN" image log "$APP" run:two
	[ "$out" = "step two" ]
	run_split "$SVRUN" image log "$APP"
	[ "$out" = "run:one
run:two" ]
	run_split "$SVRUN" image log --mode cpu "$APP"
	[ "$status" != 0 ]
	run_split "$SVRUN" image log "$APP" three
	expect_status 125
	expect_in "$err" "no log of a step 'three'"
}

@test "of several apps, too, a step that fails shows its last lines" {
	need_root
	new_store
	make_app fine
	"$SVRUN" image lock "$APP" >/dev/null
	make_step_app failing '.run[1].argv[3] = "echo some words; exit 3"'
	"$SVRUN" image lock "$APP" >/dev/null
	run_split "$SVRUN" image build "$T/fine" "$T/failing"
	expect_status 125
	expect_in "$err" "$T/fine: fine:1 built" "$T/failing:   | some words" "exit status 3"
	[[ $err != *'{"steps"'* ]] || fail "$err"
}

# ---- a cache that is shared ----

@test "the shared cache without TLS, of an image with a licence to accept" {
	need_root
	registry_plain
	new_store
	local options=(-q --plain-http --accept-license some)
	make_app shared '.models = [{id: "m", target: "/m", format: "other", delivery: "layer", source: {type: "file", path: "w"},
		license: {name: "some", acceptance: "user"}}]'
	mkdir "$APP/w"
	echo weights >"$APP/w/w.bin"
	"$SVRUN" image lock "$APP" >/dev/null
	run_split "$SVRUN" image build "${options[@]}" --cache-to "$REGISTRY/cache" "$APP"
	expect_status 0
	rm -rf "$SVRUN_ROOT"
	new_store_again
	run_split "$SVRUN" image build "${options[@]}" --format json --cache-from "$REGISTRY/cache" "$APP"
	[ "$(jq -r .imported <<<"$out")" = true ] || fail "$out" "$err"
}

@test "a machine that has nothing takes the image out of the shared cache, and runs no step" {
	need_root
	registry_plain
	new_store
	export SVRUN_CONFIG=$T/config.json
	jq -n --arg h "$REGISTRY" '{registries: {($h): {"plain-http": true}}}' >"$SVRUN_CONFIG"
	make_step_app shared
	"$SVRUN" image lock "$APP" >/dev/null
	local wanted heads
	wanted=$("$SVRUN" image build -q --cache-to "$REGISTRY/cache/builds" "$APP")
	# One HEAD for each blob, and none twice.
	heads=$(grep -o '"HEAD /v2/cache/builds/blobs/sha256:[0-9a-f]*' "$REGISTRY_LOG" | sort | uniq -d)
	[ -z "$heads" ] || fail "asked twice: $heads"
	rm -rf "$SVRUN_ROOT"
	new_store_again
	run_split "$SVRUN" image build --format json --cache-from "$REGISTRY/cache/builds" "$APP"
	expect_status 0
	[ "$(jq -r .manifest <<<"$out")" = "$wanted" ]
	[ "$(jq -r .imported <<<"$out")" = true ]
	[ "$(count stepsRun "$out")" = 0 ]
	run_split "$SVRUN" run shared cat /out/two
	[ "$out" = v1 ]
	# It is a result like any other from now on, and has no name but its own.
	run_split "$SVRUN" image build "$APP"
	expect_in "$err" "is up to date"
	[ "$("$SVRUN" image ls --format json | jq -r '[.. | .name? // empty] | map(select(contains("cache/builds"))) | length')" = 0 ]
}

@test "steps come out of the shared cache where the image does not" {
	need_root
	registry_plain
	new_store
	export SVRUN_CONFIG=$T/config.json
	jq -n --arg h "$REGISTRY" '{registries: {($h): {"plain-http": true}}}' >"$SVRUN_CONFIG"
	make_step_app steps
	"$SVRUN" image lock "$APP" >/dev/null
	"$SVRUN" image build -q --cache-to "$REGISTRY/cache/builds" "$APP"
	rm -rf "$SVRUN_ROOT"
	new_store_again
	jq '.env = {OTHER: "image"}' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	run_split "$SVRUN" image build --format json --cache-from "$REGISTRY/cache/builds" "$APP"
	expect_status 0
	[ "$(jq -r .imported <<<"$out")" = false ]
	[ "$(count stepsRun "$out") $(count stepsReused "$out")" = "0 2" ] || fail "$out" "$err"
	local wanted
	wanted=$(jq -r .manifest <<<"$out")
	[ "$("$SVRUN" image build -q --no-cache "$APP")" = "$wanted" ]
	run_split "$SVRUN" run steps wc -l /out/many
	expect_in "$out" 200000
}

@test "a shared cache that cannot be reached is said, and the build goes on" {
	need_root
	new_store
	make_app alone
	"$SVRUN" image lock "$APP" >/dev/null
	free_port
	run_split "$SVRUN" image build --cache-from "localhost:$PORT/cache" "$APP"
	expect_status 0
	expect_in "$err" "the shared cache was no help"
	run_split "$SVRUN" image build --no-cache --cache-to "localhost:$PORT/cache:tag" "$APP"
	[ "$status" != 0 ]
	expect_in "$err" "--cache-to" "a repository is wanted"
}

@test "build --push sends the image" {
	need_root
	registry_plain
	new_store
	make_app sent
	"$SVRUN" image lock "$APP" >/dev/null
	local digest
	digest=$("$SVRUN" image build -q --plain-http --push "$REGISTRY/team/" "$APP")
	[ "$(skopeo inspect --tls-verify=false "docker://$REGISTRY/team/sent:1" | jq -r .Digest)" = "$digest" ]
}

# ---- on a base image ----

# The tar of a layer of an image: NUMBER from 0.
layer_tar() { # IMAGE NUMBER
	local digest
	digest=$("$SVRUN" image inspect "$1" | jq -r ".layers[$2].digest")
	zstd -dcq "$SVRUN_ROOT/blobs/sha256/${digest#sha256:}"
}

@test "on a base image: its layers stay, what a step removes of it is a whiteout" {
	need_root
	need_program zstd
	new_store
	make_step_app under '.env = {FROM: "base", BOTH: "base"} | .labels = {from: "base"}'
	local base child
	base=$(lock_and_build "$APP" 2>/dev/null)
	mkdir "$T/child"
	APP=$T/child
	jq -n --arg d "$base" '{schema: "svrun.image/1", name: "child", version: "1",
		base: {type: "oci", ref: "store:under:1", digest: $d},
		files: [{dest: "/mine", inline: "mine\n"}], env: {BOTH: "ours"},
		run: [{id: "change", argv: ["/bin/busybox", "sh", "-c", "busybox rm /out/many /etc/text; echo new >/in"],
			writes: ["/out/**", "/etc/**", "/in"]}],
		build: {epoch: 1767225600}}' >"$APP/manifest.json"
	child=$(lock_and_build "$APP" 2>/dev/null)
	# The base's layers without its index are the first ones, digest by digest.
	local n
	n=$(("$("$SVRUN" image inspect under | jq '.layers | length')" - 1))
	[ "$("$SVRUN" image inspect under | jq -c "[.layers[:$n][].digest]")" = "$("$SVRUN" image inspect child | jq -c "[.layers[:$n][].digest]")" ]
	# Ours: files, the step, the index.
	[ "$("$SVRUN" image inspect child | jq '.layers | length')" = $((n + 3)) ]
	[ "$(layer_tar child $n | tar t | grep -v '/$')" = mine ]
	[ "$(layer_tar child $((n + 1)) | tar t | grep -v '/$' | LC_ALL=C sort | tr '\n' ' ')" = "etc/.wh.text in out/.wh.many " ]
	run_split "$SVRUN" run child sh -c 'busybox cat /in /mine /out/two; busybox ls -a /etc /out'
	[ "$status" = 0 ] || fail "$err"
	expect_in "$out" "new" "mine" "v1"
	[[ $out != *many* && $out != *text* ]] || fail "$out"
	"$SVRUN" image inspect child | jq -e '.config | (.Entrypoint == ["/bin/busybox"])
		and (.Env | index("FROM=base") and index("BOTH=ours") and (index("BOTH=base") | not)) and (.Labels.from == "base")' >/dev/null
	"$SVRUN" image verify child
	# Nothing of the base is written again, and the same comes of it twice.
	[ "$("$SVRUN" image build -q --no-cache "$APP")" = "$child" ]
}
