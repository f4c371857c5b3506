# What all .bats files share. Tests run from scripts/check with one store for all of them; run by hand
# (bats tests/e2e/x.bats) they use, and keep, /var/tmp/svrun-e2e.

TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
WORK=${SVRUN_CHECK_WORK:-/var/tmp/svrun-e2e}
SVRUN=${SVRUN:-$TOP/out/svrun}
DATA=$TOP/tests/data
mkdir -p "$WORK/apps"
export SVRUN_ROOT=$WORK/store

need_root() {
	[ "$(id -u)" = 0 ] || skip "needs root"
}

need_program() {
	command -v "$1" >/dev/null || skip "needs $1"
}

# Names of lines that went to stdout and stderr apart: $out, $err, $status.
run_split() {
	status=0
	"$@" >"$T/out" 2>"$T/err" </dev/null || status=$?
	out=$(<"$T/out")
	err=$(<"$T/err")
}

fail() {
	printf '%s\n' "$@" >&2
	return 1
}

expect_status() { # WANTED; after run or run_split
	[ "$status" = "$1" ] || fail "exit status $status, expected $1" "${output-}${out-}" "${err-}"
}

expect_in() { # TEXT PART...
	local text=$1 part
	shift
	for part in "$@"; do
		[[ $text == *"$part"* ]] || fail "expected to find: $part" "in: $text" || return 1
	done
}

now_ms() {
	date +%s%3N
}

# ---- images of manifests/ ----

# A copy of an app's folder, where a lock may be made anew, beside those it inherits from. Prints its path.
app_copy() { # NAME
	local dir=$WORK/apps/$1 parent
	# A test's own app is in no catalogue: what it put there is it.
	if [ -d "$TOP/manifests/$1" ] && ! cmp -s "$TOP/manifests/$1/manifest.json" "$dir/manifest.json"; then
		rm -rf "$dir" "$dir.new" "$dir.built"
		cp -r "$TOP/manifests/$1" "$dir.new" && mv "$dir.new" "$dir"
	fi
	for parent in $(jq -r '.from[]?' "$dir/manifest.json"); do
		app_copy "$parent" >/dev/null
	done
	echo "$dir"
}

# Build an app into $SVRUN_ROOT. When the mirror has replaced a package that the lock names, lock the copy
# again: that is a fact of the mirror, not a fault of svrun.
app_build() { # NAME [OPTION...]
	local dir log name=$1
	shift
	dir=$(app_copy "$name")
	log=$WORK/apps/$name.log
	if ! "$SVRUN" image build -q "$@" "$dir" >"$log" 2>&1; then
		grep -q 'the mirror no longer has it' "$log" || fail "$(<"$log")" || return 1
		echo "# $name: the mirror has newer packages than lock.json: locked again" >&2
		"$SVRUN" image lock "$dir" >"$log" 2>&1 || fail "$(<"$log")" || return 1
		"$SVRUN" image build -q "$@" "$dir" >"$log" 2>&1 || fail "$(<"$log")" || return 1
	fi
	tail -n 1 "$log"
}

# Have the image of an app in the shared store; a build that failed once is not tried again.
need_image() { # NAME
	local mark=$WORK/apps/$1.built
	need_root
	app_copy "$1" >/dev/null
	[ ! -e "$mark.failed" ] || fail "the image $1 could not be built" || return 1
	[ -e "$mark" ] && return
	if app_build "$1" >"$mark.new"; then
		mv "$mark.new" "$mark"
	else
		touch "$mark.failed"
		return 1
	fi
}

image_digest() { # NAME: as sha256:HEX
	jq -er --arg name "$1" '.manifests[]
		| select(.annotations["org.opencontainers.image.ref.name"] == $name) | .digest' \
		"$SVRUN_ROOT/index.json"
}

# ---- apps made up by tests: no packages, so no network ----

# An app of one static program and some files; $APP is its folder. The program runs, as /bin/hello,
# what tests/data/hello.c says.
make_app() { # NAME [JQ-FILTER]
	APP=$T/$1
	mkdir -p "$APP"
	hello_program
	cp "$WORK/hello" "$APP/hello"
	printf 'some text\n' >"$APP/text"
	jq -n --arg name "$1" '{
		schema: "svrun.image/1", name: $name, version: "1",
		base: {type: "scratch"},
		files: [
			{dest: "/bin/hello", from: "hello", mode: "0755"},
			{dest: "/etc/text", from: "text"}
		],
		entrypoint: ["/bin/hello"],
		build: {epoch: 1767225600}
	}' | jq "${2:-.}" >"$APP/manifest.json"
}

hello_program() {
	[ -x "$WORK/hello" ] || {
		gcc -O2 -static -o "$WORK/hello.new" "$DATA/hello.c"
		mv "$WORK/hello.new" "$WORK/hello"
	}
}

lock_and_build() { # DIR [OPTION...]
	local dir=$1
	shift
	"$SVRUN" image lock "$dir" >/dev/null && "$SVRUN" image build -q "$@" "$dir"
}

# ---- stores ----

# Make $SVRUN_ROOT an empty store, with what the shared one has fetched when CACHE is given.
new_store() { # [cache]
	export SVRUN_ROOT=$T/store
	mkdir -m 700 "$SVRUN_ROOT"
	echo '{"imageLayoutVersion": "1.0.0"}' >"$SVRUN_ROOT/oci-layout"
	if [ "${1-}" = cache ] && [ -d "$WORK/store/cache" ]; then
		# Links: tests that alter a file replace it.
		cp -al "$WORK/store/cache" "$SVRUN_ROOT/cache"
	fi
}

# A file system of SIZE at $MOUNT.
new_disk() { # SIZE [MKFS-OPTION...]
	local size=$1
	shift
	MOUNT=$T/disk
	mkdir -p "$MOUNT"
	truncate -s "$size" "$MOUNT.img"
	mkfs.ext4 -q "$@" "$MOUNT.img"
	mount -o loop "$MOUNT.img" "$MOUNT"
}

# Nothing of svrun may be left mounted below a store, in cgroups, or running.
expect_nothing_left() { # STORE
	local mounts
	mounts=$(grep -F " $1/" /proc/self/mountinfo || true)
	[ -z "$mounts" ] || fail "left mounted: $mounts" || return 1
	[ -z "$(ls -A "$1/instances" 2>/dev/null)" ] || fail "left instances: $(ls "$1/instances")"
}

setup() {
	T=$(mktemp -d "$WORK/test.XXXXXX")
	export SVRUN_ROOT=$WORK/store
}

teardown() {
	local path
	if declare -F more_teardown >/dev/null; then more_teardown; fi
	# gpg leaves an agent behind, which would notice only later that its folder is gone.
	[ ! -d "$T/gpg" ] || gpgconf --homedir "$T/gpg" --kill all || true
	# Mounts of this test's own stores and disks, deepest first.
	while read -r path; do
		umount -l "$path" || true
	done < <(awk -v top="$T/" 'index($5, top) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
	rm -rf --one-file-system "$T"
}
