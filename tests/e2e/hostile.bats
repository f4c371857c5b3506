#!/usr/bin/env bats
# Damaged and hostile input, full disks, and kill -9: clear errors, nothing half-made, and the next
# command heals or says what to do.

load helpers

flip_byte() { # FILE [OFFSET]; the default is the middle
	python3 - "$@" <<'PY'
import os, sys
path = sys.argv[1]
at = int(sys.argv[2]) if len(sys.argv) > 2 else os.path.getsize(path) // 2
with open(path, "r+b") as f:
    f.seek(at)
    byte = f.read(1)[0]
    f.seek(at)
    f.write(bytes([byte ^ 0x55]))
PY
}

# A file of the cache, which may have links into other tests' stores, as a file of its own.
own() { # FILE
	cp "$1" "$1.own" && mv "$1.own" "$1"
}

deb_in_cache() { # NAME, of ocr's lock; prints its path in this store
	echo "$SVRUN_ROOT/cache/sha256/$(jq -er --arg n "$1" \
		'.apt.packages[] | select(.name == $n) | .sha256' "$WORK/apps/ocr/lock.json")"
}

nothing_visible() {
	[ "$("$SVRUN" image ls --format json)" = "[]" ] || fail "an image is visible: $("$SVRUN" image ls)"
}

# ---- inputs ----

# Break a cached .deb; the error must tell what was expected and found: a size, else a digest.
broken_deb() { # FUNCTION-THAT-BREAKS-IT
	need_image ocr
	new_store cache
	local file hex size
	file=$(deb_in_cache tesseract-ocr)
	hex=${file##*/}
	own "$file"
	size=$(stat -c %s "$file")
	"$1" "$file"
	cp "$file" "$T/broken"
	run_split "$SVRUN" image build -q "$WORK/apps/ocr"
	expect_status 125
	expect_in "$err" "tesseract-ocr" "$hex" "hint: "
	if [ "$(stat -c %s "$T/broken")" = "$size" ]; then
		expect_in "$err" "$(sha256sum <"$T/broken" | cut -d' ' -f1)"
	else
		expect_in "$err" "expected $size bytes, found $(stat -c %s "$T/broken")"
	fi
	nothing_visible
	# The damaged file is gone, and the next run fetches it again.
	[ ! -e "$file" ]
	run_split "$SVRUN" image build -q "$WORK/apps/ocr"
	expect_status 0
	[ "$(sha256sum <"$file" | cut -d' ' -f1)" = "$hex" ]
}

@test "an altered .deb is named with the expected and the found digest, and fetched again" {
	broken_deb flip_byte
}

@test "a truncated .deb is named with the expected and the found size, and fetched again" {
	cut_short() { truncate -s -1000 "$1"; }
	broken_deb cut_short
}

# An app of one npm package, whose tarball is put into the cache.
npm_app() { # KIND
	local hex
	new_store
	APP=$T/app
	mkdir -p "$APP" "$SVRUN_ROOT/cache/sha512"
	hex=$("$BATS_TEST_DIRNAME/hostile-tar" "$1" "$T/bad.tgz")
	cp "$T/bad.tgz" "$SVRUN_ROOT/cache/sha512/$hex"
	jq -n --arg i "sha512-$(xxd_r "$hex")" '{
		name: "app", version: "1.0.0", lockfileVersion: 3, requires: true,
		packages: {
			"": {name: "app", version: "1.0.0", dependencies: {bad: "1.0.0"}},
			"node_modules/bad": {version: "1.0.0", integrity: $i}
		}
	}' >"$APP/package-lock.json"
	jq -n '{
		schema: "svrun.image/1", name: "npm-app", version: "1", base: {type: "scratch"},
		node: {lock: "package-lock.json", prefix: "/opt/app"}, build: {epoch: 1767225600}
	}' >"$APP/manifest.json"
	"$SVRUN" image lock "$APP" >/dev/null
}

xxd_r() { # HEX: as base64
	python3 -c 'import base64, sys; print(base64.b64encode(bytes.fromhex(sys.argv[1])).decode())' "$1"
}

refuse_tar() { # KIND WORD...
	need_root
	npm_app "$1"
	shift
	local start
	start=$(now_ms)
	run_split timeout 60 "$SVRUN" image build -q "$APP"
	expect_status 125
	expect_in "$err" "bad" "$@"
	[ $(($(now_ms) - start)) -lt 30000 ]
	nothing_visible
	[ ! -e /etc/owned ]
	# Nothing was kept of it.
	[ ! -e "$SVRUN_ROOT/pool/data" ] || [ "$(du -k "$SVRUN_ROOT/pool/data" | cut -f1)" -lt 1024 ]
}

@test "a good tarball made the same way builds" {
	need_root
	npm_app good
	"$SVRUN" image build -q "$APP"
}

@test "a tarball member with .. is refused by name" { refuse_tar dotdot "etc/owned"; }
@test "an absolute tarball member is refused by name" { refuse_tar absolute "/etc/owned"; }
@test "a symbolic link in an npm tarball is refused by name" { refuse_tar symlink "package/link"; }
@test "a hard link out of a tarball is refused by name" { refuse_tar hardlink "package/link"; }
@test "a device in a tarball is refused by name" { refuse_tar device "package/mem"; }
@test "a fifo in a tarball is refused by name" { refuse_tar fifo "package/pipe"; }
@test "two members of one name are refused by name" { refuse_tar duplicate "bad/a" "twice"; }
@test "a member that claims 5 GiB is refused by name and limit" { refuse_tar claimed "package/huge" limit; }
@test "a bomb of 5 GiB of zeros is refused by name and limit" { refuse_tar bomb "package/zeros" limit; }
@test "a path of 100,000 folders is refused by limit" { refuse_tar deep "longer than 4095 bytes"; }
@test "a truncated tarball is refused by name" { refuse_tar truncated; }
@test "a tarball that is none is refused by name" { refuse_tar garbage; }

@test "an altered tarball in the cache is found before it is unpacked" {
	need_root
	npm_app good
	flip_byte "$SVRUN_ROOT"/cache/sha512/* 20
	local path
	path=$(echo "$SVRUN_ROOT"/cache/sha512/*)
	run_split "$SVRUN" image build -q "$APP"
	expect_status 125
	expect_in "$err" "bad" "expected" "${path##*/}"
	[ ! -e "$path" ]
	nothing_visible
}

@test "an altered model is named with the expected and the found digest" {
	need_root
	new_store
	cp -r "$TOP/manifests/tiny-llama-chat" "$T/app"
	jq 'del(.apt, .node)' "$T/app/manifest.json" >"$T/m" && mv "$T/m" "$T/app/manifest.json"
	"$SVRUN" image lock "$T/app"
	flip_byte "$T/app/tiny-llama.gguf"
	run_split "$SVRUN" image build -q "$T/app"
	expect_status 125
	expect_in "$err" "tiny-llama.gguf" \
		fb84a365f973bed5b77d27c5c2487cb251ccde1899dd31d9197bb06b0d3347df \
		"$(sha256sum <"$T/app/tiny-llama.gguf" | cut -d' ' -f1)"
	nothing_visible
	cp "$TOP/manifests/tiny-llama-chat/tiny-llama.gguf" "$T/app/"
	"$SVRUN" image build -q "$T/app"
}

@test "a damaged lock is named with line and column" {
	need_root
	new_store
	make_app plain
	"$SVRUN" image lock "$APP"
	cp "$APP/lock.json" "$T/lock"
	head -c 100 "$T/lock" >"$APP/lock.json"
	run_split "$SVRUN" image build -q "$APP"
	[ "$status" != 0 ]
	grep -qE 'lock.json:[0-9]+:[0-9]+: ' <<<"$err" || fail "$err"
	jq '.files[0].sha256 = "xyz"' "$T/lock" >"$APP/lock.json"
	run_split "$SVRUN" image build -q "$APP"
	[ "$status" != 0 ]
	expect_in "$err" "lock.json" "/files/0/sha256"
	jq '.surprise = 1' "$T/lock" >"$APP/lock.json"
	run_split "$SVRUN" image build -q "$APP"
	[ "$status" != 0 ]
	expect_in "$err" "surprise"
	: >"$APP/lock.json"
	run_split "$SVRUN" image build -q "$APP"
	[ "$status" != 0 ]
	nothing_visible
}

@test "the lock of another manifest is refused with the way out" {
	need_root
	new_store
	make_app plain
	"$SVRUN" image lock "$APP"
	jq '.files += [{dest: "/etc/more", from: "text"}]' "$APP/manifest.json" >"$T/m"
	mv "$T/m" "$APP/manifest.json"
	run_split "$SVRUN" image build -q "$APP"
	expect_status 2
	expect_in "$err" "lock.json" "svrun image lock"
}

@test "manifests that are no JSON, too deep or too large are refused in time" {
	make_app plain
	for text in '{' '[]' '"x"' 'nul' '{"schema": "svrun.image/2"}' '{"name": "a", "name": "b"}'; do
		printf '%s' "$text" >"$APP/manifest.json"
		run_split "$SVRUN" image build "$APP"
		expect_status 2 || fail "$text"
		expect_in "$err" "manifest.json:1:"
	done
	python3 -c 'print("[" * 100000 + "]" * 100000)' >"$APP/manifest.json"
	run_split timeout 5 "$SVRUN" image build "$APP"
	expect_status 2
	head -c 20M /dev/zero | tr '\0' ' ' >"$APP/manifest.json"
	run_split timeout 5 "$SVRUN" image build "$APP"
	[ "$status" = 125 ] || [ "$status" = 2 ]
	expect_in "$err" "manifest.json" "limit"
}

# ---- the store ----

plain_image() {
	need_root
	new_store
	make_app plain
	head -c 5M /dev/urandom >"$APP/text"
	lock_and_build "$APP" >/dev/null
	HEX=$(image_digest plain | cut -d: -f2)
}

@test "an altered layer is found by verify, with the file and both digests" {
	plain_image
	local blob digest
	digest=$("$SVRUN" image inspect plain | jq -r '.layers[0].digest' | cut -d: -f2)
	blob=$SVRUN_ROOT/blobs/sha256/$digest
	flip_byte "$blob"
	run_split "$SVRUN" image verify plain
	expect_status 125
	expect_in "$err" "$digest" "$(sha256sum <"$blob" | cut -d' ' -f1)" "verify --repair" "image build"
	# What the hint says.
	run_split "$SVRUN" image verify --repair plain
	expect_status 125
	"$SVRUN" image build -q "$APP"
	"$SVRUN" image verify plain
}

@test "an altered manifest or config of an image is refused by run" {
	plain_image
	flip_byte "$SVRUN_ROOT/blobs/sha256/$HEX"
	run_split "$SVRUN" run --rm plain
	expect_status 125
	expect_in "$err" "$HEX"
	"$SVRUN" image build -q --no-cache "$APP"
	local config
	config=$("$SVRUN" image inspect plain | jq -r .imageId | cut -d: -f2)
	flip_byte "$SVRUN_ROOT/blobs/sha256/$config"
	run_split "$SVRUN" run --rm plain
	expect_status 125
	expect_in "$err" "$config"
}

@test "an altered index is refused with both digests when the mount needs it" {
	plain_image
	local layer
	layer=$("$SVRUN" image inspect plain | jq -r '.layers[-1].digest' | cut -d: -f2)
	rm "$SVRUN_ROOT/erofs/$HEX.img"
	flip_byte "$SVRUN_ROOT/blobs/sha256/$layer" "$("$SVRUN" image inspect plain | jq '.index.offset + 40')"
	run_split "$SVRUN" run --rm plain
	expect_status 125
	expect_in "$err" "$("$SVRUN" image inspect plain | jq -r .index.digest | cut -d: -f2)"
	expect_nothing_left "$SVRUN_ROOT"
}

@test "the metadata image is made again when it is gone" {
	plain_image
	rm "$SVRUN_ROOT/erofs/$HEX.img"
	[ "$("$SVRUN" run --rm plain)" = hello ]
	[ -e "$SVRUN_ROOT/erofs/$HEX.img" ]
}

@test "an altered pool is found by verify and written again with --repair" {
	plain_image
	flip_byte "$SVRUN_ROOT/pool/data" $((3 << 20))
	run_split "$SVRUN" image verify plain
	expect_status 125
	expect_in "$err" "pool" "expected" "--repair"
	run_split "$SVRUN" image verify --repair plain
	expect_status 0
	expect_in "$out" "written again"
	run_split "$SVRUN" image verify plain
	expect_status 0
	"$SVRUN" run --rm plain cat /etc/text | cmp - "$APP/text"
}

@test "a truncated pool is an error with the way out, and repaired" {
	plain_image
	truncate -s 1M "$SVRUN_ROOT/pool/data"
	run_split "$SVRUN" image verify plain
	expect_status 125
	expect_in "$err" "pool" "expected at least" "found 1048576" "image fsck --repair"
	# What the hint says.
	mv "$SVRUN_ROOT/pool" "$T/pool.aside"
	"$SVRUN" image fsck --repair --progress none
	[ "$("$SVRUN" run --rm plain)" = hello ]
}

@test "a damaged LMDB is an error that says what to do, and that works" {
	plain_image
	for damage in garbage truncate; do
		case $damage in
		garbage) head -c 65536 /dev/urandom | dd of="$SVRUN_ROOT/pool/db/data.mdb" conv=notrunc status=none ;;
		truncate) truncate -s 5000 "$SVRUN_ROOT/pool/db/data.mdb" ;;
		esac
		run_split "$SVRUN" image build -q --no-cache "$APP"
		expect_status 125
		expect_in "$err" "pool" "hint: "
		# What the hint says.
		rm -rf "$SVRUN_ROOT/pool"
		run_split "$SVRUN" image build -q --no-cache "$APP"
		expect_status 0
		[ "$("$SVRUN" run --rm plain)" = hello ]
	done
}

@test "a damaged index.json is named" {
	plain_image
	echo '{"schemaVersion": 2, "manifests": [' >"$SVRUN_ROOT/index.json"
	run_split "$SVRUN" image ls
	expect_status 125
	expect_in "$err" "index.json"
	run_split "$SVRUN" run --rm plain
	expect_status 125
	expect_in "$err" "index.json"
}

@test "a damaged or lost oci-layout is named, and the hint says how to make it again" {
	plain_image
	for damage in ': >' 'echo {} >' 'head -c 5000 /dev/zero >' 'rm '; do
		eval "$damage$SVRUN_ROOT/oci-layout"
		run_split "$SVRUN" run --rm plain
		expect_status 125
		expect_in "$err" "$SVRUN_ROOT" "oci-layout" "hint: write it again: "
		# What the hint says.
		bash -c "${err##*write it again: }"
		[ "$("$SVRUN" run --rm plain)" = hello ]
	done
}

# ---- a full disk ----

@test "a full disk is an error with the file system and what is missing; the store stays usable" {
	need_root
	need_program mkfs.ext4
	new_disk 64M
	export SVRUN_ROOT=$MOUNT/store
	make_app plain
	lock_and_build "$APP"
	make_app big
	head -c 200M /dev/urandom >"$APP/text"
	"$SVRUN" image lock "$APP"
	run_split "$SVRUN" image build -q "$APP"
	expect_status 125
	expect_in "$err" "No space left" "$MOUNT"
	grep -qE '[0-9.]+ [KMG]iB' <<<"$err" || fail "no amount in: $err"
	# The image that was there runs, and another can be built in the space that is free again.
	[ "$("$SVRUN" run --rm plain)" = hello ]
	"$SVRUN" image verify plain
	# A start writes a little too.
	for i in 1 2 3 4; do # what is set aside for metadata comes back with each sync
		dd if=/dev/zero of="$MOUNT/fill$i" bs=4k status=none 2>/dev/null || true
		sync -f "$MOUNT"
	done
	run_split "$SVRUN" run --rm plain
	expect_status 125
	expect_in "$err" "No space left" "file system $MOUNT is full"
	rm "$MOUNT"/fill*
	[ "$("$SVRUN" run --rm plain)" = hello ]
	make_app small
	head -c 1M /dev/urandom >"$APP/text"
	lock_and_build "$APP"
	[ "$("$SVRUN" run --rm small)" = hello ]
}

# ---- kill -9 ----

# Kill a command at a moment, with all that it started.
kill_after() { # MILLISECONDS COMMAND...
	local after=$1 pid
	shift
	setsid "$@" >/dev/null 2>&1 3>&- </dev/null &
	pid=$!
	sleep "$(printf '%d.%03d' $((after / 1000)) $((after % 1000)))"
	kill -KILL "$pid" 2>/dev/null || true
	wait "$pid" 2>/dev/null || true
}

@test "kill -9 at any moment of a build leaves no image, and the next build is the same as ever" {
	need_image ocr
	local wanted start took clean i
	wanted=$(image_digest ocr)
	new_store cache
	start=$(now_ms)
	"$SVRUN" image build -q "$WORK/apps/ocr"
	took=$(($(now_ms) - start))
	clean=$(du -k "$SVRUN_ROOT/pool/data" | cut -f1)
	for i in $(seq 8); do
		rm -rf "$T/store"
		new_store cache
		kill_after $((took * i / 8)) "$SVRUN" image build -q "$WORK/apps/ocr"
		# Either it was done, or nothing is visible.
		"$SVRUN" image ls -q >"$T/names"
		if [ -s "$T/names" ]; then
			"$SVRUN" image verify ocr >/dev/null 2>&1 || [ "$(<"$T/names")" = ocr:1.0.0 ]
		fi
		[ "$("$SVRUN" image build -q "$WORK/apps/ocr")" = "$wanted" ]
		"$SVRUN" image verify ocr
		# What the killed build had put aside was taken back.
		[ -z "$(find "$SVRUN_ROOT" -name '*.tmp*' -o -name '.tmp*' | head -n 1)" ]
	done
	local size
	size=$(du -k "$SVRUN_ROOT/pool/data" | cut -f1)
	[ "$size" -le $((clean + clean / 2)) ] || fail "the pool has $size KiB, after a build that was not killed $clean"
}

cgroups_of_svrun() {
	find /sys/fs/cgroup -type d -path '*/svrun/*' 2>/dev/null | sort
}

@test "kill -9 at any moment of a run leaves nothing after the next command" {
	plain_image
	local before i late=0
	"$SVRUN" run --rm plain >/dev/null
	before=$(cgroups_of_svrun)
	for i in $(seq 0 2 60); do
		kill_after "$i" "$SVRUN" run --rm --memory 64m plain sleep 300
		[ "$("$SVRUN" run --rm plain)" = hello ]
		! pgrep -f "^/bin/hello sleep 300" >/dev/null || fail "the container runs on (killed after $i ms)"
		[ -z "$(ls "$SVRUN_ROOT/instances")" ] || late=$((late + 1))
	done
	# A dying container may hold its lock a moment longer; as a rule the very next command finds it free.
	[ "$late" -le 1 ] || fail "$late killed instances outlived the next command"
	"$SVRUN" run --rm plain >/dev/null
	expect_nothing_left "$SVRUN_ROOT"
	[ "$(cgroups_of_svrun)" = "$before" ] || fail "cgroups: $(cgroups_of_svrun)"
	[ -z "$(losetup -n -O BACK-FILE -l | grep -F "$SVRUN_ROOT/" || true)" ]
}

@test "cleaning up in one store leaves the instances of another alone, whatever they are called" {
	plain_image
	local first=$SVRUN_ROOT running status=0
	"$SVRUN" run --rm --name web plain sleep 300 >"$T/out" 3>&- &
	running=$!
	until grep -q sleeping "$T/out"; do sleep 0.02; done
	# What a killed svrun leaves, of the same name.
	export SVRUN_ROOT=$T/second
	lock_and_build "$APP" >/dev/null
	mkdir -p "$SVRUN_ROOT/instances/web"
	[ "$("$SVRUN" run --rm --name web plain)" = hello ]
	[ ! -e "$SVRUN_ROOT/instances/web" ]
	kill -0 "$running"
	kill -TERM "$running"
	wait "$running" || status=$?
	[ "$status" = $((128 + 15)) ] || fail "the other store's instance ended with $status"
	SVRUN_ROOT=$first
	expect_nothing_left "$first"
}
