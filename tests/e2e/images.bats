#!/usr/bin/env bats
# svrun image ls, inspect, history, tag, rm, verify; the metadata image and the pool.

load helpers

@test "ls shows an image by name, version and digest" {
	need_image ocr
	run_split "$SVRUN" image ls
	expect_status 0
	local digest
	digest=$(image_digest ocr)
	grep -E "^ocr +latest +${digest:7:12} " <<<"$out"
	grep -E "^ocr +1\.0\.0 +${digest:7:12} " <<<"$out"
	"$SVRUN" image ls --format json | jq -e 'length >= 2'
}

@test "ls of a store that does not exist is empty" {
	export SVRUN_ROOT=$T/none
	[ "$("$SVRUN" image ls --format json)" = "[]" ]
	[[ $("$SVRUN" image ls) =~ ^NAME\ +TAG[^$'\n']*$ ]]
	[ -z "$("$SVRUN" image ls -q)" ]
	SVRUN_CONFIG=$T/none.json run_split "$SVRUN" image ls
	expect_status 2
	expect_in "$err" "$T/none.json" 'hint: $SVRUN_CONFIG names a file that does not exist'
}

@test "another user's store is an error that says what to do" {
	need_root
	local copy dir
	dir=$(mktemp -d /tmp/svrun-copy.XXXXXX) # a place that others can reach
	chmod 755 "$dir"
	copy=$dir/svrun
	cp "$SVRUN" "$copy"
	mkdir -m 700 "$dir/store"
	run_split setpriv --reuid 65534 --clear-groups env SVRUN_ROOT="$dir/store" "$copy" image ls
	rm -r "$dir"
	expect_status 125
	[ "$err" = "svrun: open the store $dir/store: Permission denied
hint: it is another user's: use sudo, or set SVRUN_ROOT" ] || fail "$err"
}

@test "a list that cannot be written is an error" {
	need_root
	new_store
	make_app plain
	lock_and_build "$APP"
	local verb
	for verb in "ls" "inspect plain" "history plain"; do
		status=0
		# shellcheck disable=SC2086 # two words
		"$SVRUN" image $verb >/dev/full 2>"$T/err" || status=$?
		expect_status 125
		expect_in "$(<"$T/err")" "write stdout"
	done
}

@test "inspect tells config, layers and index" {
	need_image ocr
	"$SVRUN" image inspect ocr | jq -e --arg d "$(image_digest ocr)" '
		.digest == $d and .architecture == "amd64" and .os == "linux" and
		.config.User == "1000:1000" and .config.Entrypoint == ["/usr/local/bin/ocr"] and
		(.layers | length) > 2 and .index.length > 0'
}

@test "history has a line for each layer" {
	need_image ocr
	local layers
	layers=$("$SVRUN" image inspect ocr | jq '.layers | length')
	run_split "$SVRUN" image history ocr
	expect_status 0
	[ "$(wc -l <<<"$out")" = $((layers + 1)) ]
}

@test "tag gives one more name, rm takes it away, the last rm deletes the image" {
	need_root
	new_store
	make_app plain
	lock_and_build "$APP"
	"$SVRUN" image tag plain other:2
	[ "$(image_digest other:2)" = "$(image_digest plain)" ]
	"$SVRUN" image rm plain plain:1
	"$SVRUN" image inspect other:2 >/dev/null
	"$SVRUN" image rm other:2
	[ "$("$SVRUN" image ls --format json)" = "[]" ]
	[ -z "$(ls "$SVRUN_ROOT/blobs/sha256")" ] || fail "left: $(ls "$SVRUN_ROOT/blobs/sha256")"
	[ -z "$(ls "$SVRUN_ROOT/erofs")" ]
	# and it can be built again
	"$SVRUN" image build -q "$APP"
	[ "$("$SVRUN" run --rm plain)" = hello ]
}

@test "names that are none are refused" {
	need_image ocr
	for name in 'UPPER' 'a/../b' '-x' 'a:' 'a::b' "$(printf 'a%.0s' $(seq 300))"; do
		run_split "$SVRUN" image tag ocr -- "$name"
		expect_status 2 || fail "$name"
	done
	run_split "$SVRUN" image inspect nosuch
	expect_status 125
	expect_in "$err" "nosuch"
}

@test "verify finds nothing wrong with what build made" {
	need_image ocr
	need_image tiny-llama-chat
	run_split "$SVRUN" image verify ocr tiny-llama-chat
	expect_status 0
	expect_in "$out" "are what they should be"
}

# Path of the mounted tree, while $HOLDER keeps the image mounted.
hold_mount() { # NAME
	"$SVRUN" run --rm --entrypoint sleep "$1" 600 >/dev/null 2>&1 3>&- &
	HOLDER=$!
	MOUNTED=$SVRUN_ROOT/mnt/$(image_digest "$1" | cut -d: -f2)
	for _ in $(seq 100); do
		mountpoint -q "$MOUNTED" && return
		sleep 0.05
	done
	fail "$1 was not mounted at $MOUNTED"
}

release_mount() {
	kill -TERM "$HOLDER" 2>/dev/null || true
	wait "$HOLDER" || true
}

more_teardown() {
	[ -z "${HOLDER-}" ] || release_mount
}

# A listing of a tree with everything that a tar carries and a digest of each file.
list_tree() { # DIR
	python3 - "$1" <<'PY'
import hashlib, os, stat, sys
top = os.fsencode(sys.argv[1])
def show(path, name):
    st = os.lstat(path)
    kind, extra = stat.S_IFMT(st.st_mode), ""
    if stat.S_ISREG(st.st_mode):
        h = hashlib.sha256()
        with open(path, "rb") as f:
            while block := f.read(1 << 20):
                h.update(block)
        extra = "%d %s" % (st.st_size, h.hexdigest())
    elif stat.S_ISLNK(st.st_mode):
        extra = os.fsdecode(os.readlink(path))
    caps = {k: os.getxattr(path, k, follow_symlinks=False).hex() for k in os.listxattr(path, follow_symlinks=False)}
    links = st.st_nlink if not stat.S_ISDIR(st.st_mode) else 0
    print(name, oct(st.st_mode), st.st_uid, st.st_gid, int(st.st_mtime), links, extra, caps or "",
          file=out)
out = open(sys.stdout.fileno(), "w", errors="surrogateescape", closefd=False)
show(top, ".")
for folder, dirs, files in os.walk(top):
    dirs.sort()
    for name in sorted(dirs + files):
        path = os.path.join(folder, name)
        show(path, os.fsdecode(os.path.relpath(path, top)))
PY
}

# The tree that any other engine would make of the layers: one tar after another.
extract_layers() { # NAME DIR
	local media digest
	mkdir -p "$2"
	while read -r media digest; do
		case "$media" in
		*+zstd) zstd -dcq "$SVRUN_ROOT/blobs/sha256/${digest#*:}" ;;
		*+gzip) gzip -dc "$SVRUN_ROOT/blobs/sha256/${digest#*:}" ;;
		*) cat "$SVRUN_ROOT/blobs/sha256/${digest#*:}" ;;
		esac | tar -x -C "$2" --same-owner --numeric-owner -p --xattrs --xattrs-include='*' --keep-directory-symlink
	done < <("$SVRUN" image inspect "$1" | jq -r '.layers[] | .mediaType + " " + .digest')
}

same_tree() { # NAME
	need_image "$1"
	hold_mount "$1"
	extract_layers "$1" "$T/tree"
	list_tree "$T/tree" | sed 1d | sort >"$T/from-tar"
	list_tree "$MOUNTED" | sed 1d | sort >"$T/from-pool"
	[ "$(wc -l <"$T/from-tar")" -gt 100 ]
	diff "$T/from-tar" "$T/from-pool" | head -n 20
	cmp "$T/from-tar" "$T/from-pool"
}

@test "the mount of tiny-llama-chat equals its tars, byte for byte" {
	same_tree tiny-llama-chat
}

@test "the mount of ocr equals its tars, byte for byte" {
	same_tree ocr
}

@test "the mount of pytorch-cpu equals its tars, byte for byte" {
	same_tree pytorch-cpu
}

@test "fsck.erofs accepts the metadata images" {
	need_program fsck.erofs
	for app in tiny-llama-chat ocr pytorch-cpu; do
		need_image "$app"
		fsck.erofs --device="$SVRUN_ROOT/pool/data" \
			"$SVRUN_ROOT/erofs/$(image_digest "$app" | cut -d: -f2).img"
	done
}

@test "images share chunks: an image built twice under other names adds nothing to the pool" {
	need_root
	new_store
	make_app plain
	head -c 8M /dev/urandom >"$APP/text"
	lock_and_build "$APP"
	local before
	before=$(du -k "$SVRUN_ROOT/pool/data" | cut -f1)
	make_app again
	cp "$T/plain/text" "$APP/text"
	lock_and_build "$APP"
	[ "$(du -k "$SVRUN_ROOT/pool/data" | cut -f1)" -le $((before + 64)) ]
}

@test "the store is closed to other users" {
	need_image ocr
	[ "$(stat -c %a "$SVRUN_ROOT")" = 700 ]
}
