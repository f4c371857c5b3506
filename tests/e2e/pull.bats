#!/usr/bin/env bats
# svrun image pull against real registries, and what breaks them.

load helpers
load registry

# A small image of ours in the last registry, as own/app:1: a program, some small files, and `big`, which has
# several chunks. $APP stays for further versions.
push_own_image() { # [BIG-BYTES]
	(
		export SVRUN_ROOT=$T/builder
		make_own_app "${1:-6000000}"
		lock_and_build "$T/own" >"$T/own.log"
		skopeo_ok copy -q --dest-tls-verify=false ${CREDS:+--dest-creds "$CREDS"} ${CERTS:+--dest-cert-dir "$CERTS"} \
			"oci:$SVRUN_ROOT:own" "docker://$REGISTRY/own/app:${VERSION:-1}"
	)
	OWN=$(jq -r '[.manifests[] | select(.annotations["org.opencontainers.image.ref.name"] == "own")][0].digest' \
		"$T/builder/index.json")
}

make_own_app() { # BIG-BYTES
	[ -d "$T/own" ] || {
		make_app own '.files += [{dest: "/big", from: "big"}] + [range(40) | {dest: "/small/\(.)", inline: "file \(.)\n"}]'
		python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(7).randbytes(int(sys.argv[1])))' "$1" \
			>"$T/own/big"
	}
}

# The image NAME has the files of the folder that the test's own app was made of, and can be run.
expect_own_works() { # NAME
	[ "$("$SVRUN" run --rm "$1" cat /etc/text)" = "some text" ] || fail "run $1" || return 1
	"$SVRUN" image export "$1" | tar -xO big | cmp - "$T/own/big"
	"$SVRUN" image verify "$1" >"$T/verify.log"
}

blob_requests() {
	front_requests '^GET (200|206) [0-9]+ .*/blobs/'
}

# Bytes of blobs that the front has sent.
blob_bytes() {
	awk '/\/blobs\// { n += $3 } END { print n + 0 }' "$FRONT_LOG"
}

# ---- own images ----

@test "an image of ours is pulled through its index and runs" {
	need_root
	registry_plain
	push_own_image
	empty_store
	pull "$REGISTRY/own/app:1"
	expect_status 0
	expect_in "$out" "$REGISTRY/own/app:1 $OWN pulled"
	[ -z "$err" ]
	expect_own_works "$REGISTRY/own/app:1"
	# data are in the pool alone, and in few files
	[ "$(find "$SVRUN_ROOT" -type f | wc -l)" -lt 20 ]
	[ "$(find "$SVRUN_ROOT/blobs" -type f -size +100k | wc -l)" = 0 ]
	# the last part of its name is enough
	[ "$("$SVRUN" run --rm app:1 cat /small/7)" = "file 7" ]
}

@test "what is here already is not fetched" {
	need_root
	registry_plain
	push_own_image
	front_faults
	empty_store
	pull "$FRONT/own/app:1"
	expect_status 0
	: >"$FRONT_LOG"
	pull "$FRONT/own/app:1"
	expect_status 0
	expect_in "$out" "is up to date"
	[ "$(front_requests '/blobs/')" = 0 ]
	# the same image from another place: only its documents travel
	pull "$REGISTRY/own/app:1"
	expect_status 0
	expect_in "$out" "is up to date"
}

@test "of a second version only what changed travels" {
	need_root
	registry_plain
	push_own_image 20000000
	front_faults
	empty_store
	pull "$FRONT/own/app:1"
	expect_status 0
	printf 'other bytes' | dd of="$T/own/big" bs=1 seek=9000000 conv=notrunc status=none
	VERSION=2 push_own_image
	: >"$FRONT_LOG"
	pull "$FRONT/own/app:2"
	expect_status 0
	expect_own_works "$FRONT/own/app:2"
	# one chunk of 1 MiB, the index and the config
	[ "$(blob_bytes)" -lt 1200000 ] || fail "$(blob_bytes) bytes travelled"
}

@test "an image pulled by digest has its digest as a name" {
	need_root
	registry_plain
	push_own_image
	empty_store
	pull "$REGISTRY/own/app@$OWN"
	expect_status 0
	expect_own_works "$REGISTRY/own/app@$OWN"
	pull "$REGISTRY/own/app@sha256:$(printf 0%.0s {1..64})"
	[ "$status" != 0 ]
	expect_in "$err" "svrun: pull $REGISTRY/own/app@sha256:0000"
}

@test "strict pulls whole layers and proves the index" {
	need_root
	registry_plain
	push_own_image
	empty_store
	pull --strict "$REGISTRY/own/app:1"
	expect_status 0
	expect_own_works "$REGISTRY/own/app:1"
}

@test "run pulls an image that is missing" {
	need_root
	registry_plain
	push_own_image
	empty_store
	site "\"registries\": {\"$REGISTRY\": {\"plain-http\": true}}"
	run_split "$SVRUN" run --rm "$REGISTRY/own/app:1" cat /etc/text
	expect_status 0
	[ "$out" = "some text" ]
	run_split "$SVRUN" run --rm --pull never "$REGISTRY/own/none:1" true
	[ "$status" != 0 ]
	expect_in "$err" "no image"
	site "\"registries\": {\"$REGISTRY\": {\"plain-http\": true}}, \"short-names\": {\"aliases\": {\"mine\": \"$REGISTRY/own/app\"}}"
	empty_store
	run_split "$SVRUN" run --rm --pull never mine:1 true
	expect_in "$err" "no image 'mine:1'"
	for pull in missing never always; do
		run_split "$SVRUN" run --rm --pull "$pull" mine:1 cat /etc/text
		expect_status 0
		[ "$out" = "some text" ]
	done
}

# A site configuration of these members.
site() { # MEMBERS
	echo "{$1}" >"$T/site.json"
	export SVRUN_CONFIG=$T/site.json
}

# ---- images of others ----

foreign_round() { # REF-SUFFIX [SKOPEO-OPTION...]
	local name=$1
	shift
	push_with_skopeo "$T/image" ref "some/image:$name" "$@"
	empty_store
	pull "$REGISTRY/some/image:$name"
	expect_status 0
	expect_same_tree "$REGISTRY/some/image:$name" "$ROOTFS"
	"$SVRUN" image verify "$REGISTRY/some/image:$name"
}

@test "foreign images are what umoci unpacks: gzip, zstd, plain, schema 2, zstd:chunked" {
	need_root
	registry_plain
	make_foreign_image "$T/image" ref --files 50 --big 5000000
	unpack_with_umoci "$T/image" ref
	foreign_round gzip
	foreign_round v2s2 --format v2s2
	foreign_round zstd --dest-compress-format zstd
	foreign_round chunked --dest-compress-format zstd:chunked
	skopeo_ok copy -q --dest-decompress "oci:$T/image:ref" "dir:$T/plain"
	skopeo_ok copy -q --dest-tls-verify=false "dir:$T/plain" "docker://$REGISTRY/some/image:plain"
	empty_store
	pull "$REGISTRY/some/image:plain"
	expect_status 0
	expect_same_tree "$REGISTRY/some/image:plain" "$ROOTFS"
	[ "$(find "$SVRUN_ROOT" -type f | wc -l)" -lt 20 ]
}

@test "a foreign image is proven with strict" {
	need_root
	registry_plain
	make_foreign_image "$T/image" ref --files 5 --big 3000000
	push_with_skopeo "$T/image" ref some/image:1
	empty_store
	pull --strict "$REGISTRY/some/image:1"
	expect_status 0
}

@test "layers that another image brought are not fetched" {
	need_root
	registry_plain
	make_foreign_image "$T/image" ref --files 5 --big 3000000
	push_with_skopeo "$T/image" ref some/image:1
	push_with_skopeo "$T/image" ref other/image:1
	front_faults
	empty_store
	pull "$FRONT/some/image:1"
	expect_status 0
	: >"$FRONT_LOG"
	"$SVRUN" image rm "$FRONT/some/image:1"
	pull "$FRONT/other/image:1"
	expect_status 0
	[ "$(blob_bytes)" -lt 5000 ] || fail "$(<"$FRONT_LOG")"
}

# ---- several platforms ----

# An index of two images, own/app:1 as linux/amd64 and some/image:1 as linux/arm64, with an attestation.
push_index() {
	local a b
	push_own_image
	make_foreign_image "$T/image" ref --files 3 --big 10000
	push_with_skopeo "$T/image" ref own/app:foreign
	for name in 1 foreign; do
		curl -sf -H 'Accept: application/vnd.oci.image.manifest.v1+json' \
			"http://$REGISTRY/v2/own/app/manifests/$name" >"$T/manifest.$name"
	done
	a=$(sha256sum <"$T/manifest.1" | cut -d' ' -f1) b=$(sha256sum <"$T/manifest.foreign" | cut -d' ' -f1)
	jq -n --arg a "sha256:$a" --arg b "sha256:$b" --argjson an "$(stat -c %s "$T/manifest.1")" \
		--argjson bn "$(stat -c %s "$T/manifest.foreign")" '
		def entry($d; $n; $p): {mediaType: "application/vnd.oci.image.manifest.v1+json", digest: $d, size: $n,
			platform: $p};
		{schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json", manifests: [
			entry($a; $an; {os: "unknown", architecture: "unknown"}),
			entry($b; $bn; {os: "linux", architecture: "arm64", variant: "v8"}),
			entry($a; $an; {os: "linux", architecture: "amd64"})]}' >"$T/index"
	curl -sf -X PUT -H 'Content-Type: application/vnd.oci.image.index.v1+json' --data-binary "@$T/index" \
		"http://$REGISTRY/v2/own/app/manifests/multi"
	INDEX=sha256:$(sha256sum <"$T/index" | cut -d' ' -f1)
}

@test "of an index this machine's platform is pulled, or the one that is asked for, or all" {
	need_root
	[ "$(uname -m)" = x86_64 ] || skip "the index is made for x86-64"
	registry_plain
	push_index
	empty_store
	pull "$REGISTRY/own/app:multi"
	expect_status 0
	expect_in "$out" "$OWN pulled"
	empty_store
	pull --platform linux/arm64 "$REGISTRY/own/app:multi"
	expect_status 0
	expect_in "$out" "sha256:$(sha256sum <"$T/manifest.foreign" | cut -d' ' -f1)"
	pull --platform linux/riscv64 "$REGISTRY/own/app:multi"
	[ "$status" != 0 ]
	expect_in "$err" "no image for the platform linux/riscv64" "linux/arm64/v8, linux/amd64"
	pull --platform linux/arm64 "$REGISTRY/own/app:1"
	[ "$status" != 0 ]
	expect_in "$err" "the image is for linux/amd64, not for linux/arm64"
	empty_store
	pull --all-platforms "$REGISTRY/own/app:multi"
	expect_status 0
	expect_in "$out" "$INDEX pulled"
	[ "$("$SVRUN" run --rm "$REGISTRY/own/app:multi" cat /etc/text)" = "some text" ]
}

# ---- transport ----

@test "a registry with a private CA, with a client certificate, and neither" {
	need_root
	registry_tls
	mkdir "$T/certs"
	cp "$PKI/ca.crt" "$T/certs"
	CERTS=$T/certs push_own_image
	empty_store
	run_split "$SVRUN" image pull --progress none "$REGISTRY/own/app:1"
	[ "$status" != 0 ]
	expect_in "$err" "certificate"
	site "\"registries\": {\"$REGISTRY\": {\"ca\": \"$PKI/ca.crt\"}}"
	run_split "$SVRUN" image pull --progress none "$REGISTRY/own/app:1"
	expect_status 0
	unset SVRUN_CONFIG
	empty_store
	run_split "$SVRUN" image pull --progress none --insecure "$REGISTRY/own/app:1"
	expect_status 0
	registry_mtls second
	cp "$PKI/client.crt" "$T/certs/client.cert"
	cp "$PKI/client.key" "$T/certs"
	CERTS=$T/certs push_own_image
	empty_store
	site "\"registries\": {\"$REGISTRY\": {\"ca\": \"$PKI/ca.crt\", \"cert\": \"$PKI/client.crt\", \"key\": \"$PKI/client.key\"}}"
	run_split "$SVRUN" image pull --progress none "$REGISTRY/own/app:1"
	expect_status 0
}

auth_file() { # HOST USER PASSWORD
	jq -n --arg host "$1" --arg auth "$(printf '%s:%s' "$2" "$3" | base64 -w0)" \
		'{auths: {($host): {auth: $auth}}}' >"$T/auth.json"
	export REGISTRY_AUTH_FILE=$T/auth.json
}

@test "a registry that wants a password" {
	need_root
	registry_htpasswd
	CREDS=$REGISTRY_USER:$REGISTRY_PASSWORD push_own_image
	empty_store
	export REGISTRY_AUTH_FILE=$T/none.json
	pull "$REGISTRY/own/app:1"
	[ "$status" != 0 ]
	expect_in "$err" "svrun image login"
	auth_file "$REGISTRY" "$REGISTRY_USER" wrong
	pull "$REGISTRY/own/app:1"
	[ "$status" != 0 ]
	auth_file "$REGISTRY" "$REGISTRY_USER" "$REGISTRY_PASSWORD"
	pull "$REGISTRY/own/app:1"
	expect_status 0
	expect_own_works "$REGISTRY/own/app:1"
}

@test "tokens are renewed in the middle of a transfer" {
	need_root
	registry_token --expires 2
	CREDS=$REGISTRY_USER:$REGISTRY_PASSWORD push_own_image 12000000
	front_faults "always GET /blobs/ slow 400000"
	auth_file "$FRONT" "$REGISTRY_USER" "$REGISTRY_PASSWORD"
	empty_store
	pull "$FRONT/own/app:1"
	expect_status 0
	expect_own_works "$FRONT/own/app:1"
	[ "$(token_requests 'own/app:pull')" -ge 2 ]
}

@test "mirrors come first, and what they do not have comes from the registry" {
	need_root
	registry_plain
	push_own_image
	local origin=$REGISTRY
	registry_plain mirror
	local mirror=$REGISTRY
	site "\"registries\": {\"$origin\": {\"plain-http\": true, \"mirrors\": [\"$mirror\"]}, \"$mirror\": {\"plain-http\": true}}"
	empty_store
	run_split "$SVRUN" image pull --progress none "$origin/own/app:1"
	expect_status 0
	[ "$(registry_requests 'GET /v2/own/app/manifests/1')" -ge 1 ]
	push_own_image
	REGISTRY_LOG=$T/registry.out
	local before
	before=$(registry_requests 'GET /v2/own/app/blobs')
	empty_store
	run_split "$SVRUN" image pull --progress none "$origin/own/app:1"
	expect_status 0
	[ "$(registry_requests 'GET /v2/own/app/blobs')" = "$before" ]
	# one that does not answer at all is passed over
	site "\"registries\": {\"$origin\": {\"plain-http\": true, \"mirrors\": [\"127.0.0.1:1\"]}, \"127.0.0.1:1\": {\"plain-http\": true}}"
	empty_store
	run_split "$SVRUN" image pull --progress none "$origin/own/app:1"
	expect_status 0
}

@test "a server that ignores ranges" {
	need_root
	registry_plain
	push_own_image
	make_foreign_image "$T/image" ref --files 5 --big 6000000
	push_with_skopeo "$T/image" ref some/image:1
	front_no_range
	empty_store
	pull "$FRONT/own/app:1"
	expect_status 0
	expect_own_works "$FRONT/own/app:1"
	pull "$FRONT/some/image:1"
	expect_status 0
}

@test "connections that break, bodies that are cut, servers that are busy" {
	need_root
	registry_plain
	push_own_image
	make_foreign_image "$T/image" ref --files 5 --big 6000000
	push_with_skopeo "$T/image" ref some/image:1
	local fault name
	front_faults
	for fault in "3 GET /blobs/ drop 100000" "3 GET /blobs/ cut 100000" "2 GET /blobs/ shorter 1000" "2 GET /blobs/ reset" \
		"2 GET /blobs/ status 503 1" "2 GET /blobs/ status 429 1" "2 GET /manifests/ status 500" "1 GET /blobs/ range 7" \
		"always GET /blobs/ chunked" "1 GET /manifests/ reset"; do
		for name in own/app some/image; do
			faults "$fault"
			empty_store
			pull "$FRONT/$name:1"
			[ "$status" = 0 ] || fail "$fault: $err" || return 1
			"$SVRUN" image verify "$FRONT/$name:1"
		done
	done
}

@test "signed redirects that run out, and no password for the other host" {
	need_root
	registry_htpasswd
	CREDS=$REGISTRY_USER:$REGISTRY_PASSWORD push_own_image 12000000
	front_expiring 1
	auth_file "$FRONT" "$REGISTRY_USER" "$REGISTRY_PASSWORD"
	empty_store
	pull "$FRONT/own/app:1"
	expect_status 0
	expect_own_works "$FRONT/own/app:1"
	[ "$(grep -c '"-" /v2' "$BLOBS_LOG")" -ge 1 ]
	[ "$(grep -cE 'Basic|Bearer' "$BLOBS_LOG")" = 0 ]
}

@test "a registry that hangs or sends a byte a second is given up in the end" {
	need_root
	registry_plain
	push_own_image
	front_faults "always GET /manifests/ mute"
	empty_store
	run_split timeout 300 "$SVRUN" image pull --plain-http --progress none "$FRONT/own/app:1"
	[ "$status" != 0 ] && [ "$status" != 124 ]
	expect_in "$err" "$FRONT"
}

# ---- what dies in the middle ----

@test "a pull that is killed goes on where it was, and leaves nothing half-made" {
	need_root
	registry_plain
	push_own_image 40000000
	front_faults "always GET /blobs/ slow 8000000"
	empty_store
	"$SVRUN" image pull --plain-http --progress none "$FRONT/own/app:1" &
	local pid=$! i
	for ((i = 0; i < 200; i++)); do
		[ "$(blob_requests)" -lt 3 ] || break
		sleep 0.05
	done
	kill -9 "$pid"
	wait "$pid" || true
	run_split "$SVRUN" image ls
	[[ $out != *own/app* ]]
	faults
	pull "$FRONT/own/app:1"
	expect_status 0
	expect_own_works "$FRONT/own/app:1"
}

@test "two pulls of one image do the work once" {
	need_root
	registry_plain
	push_own_image 20000000
	front_faults "always GET /blobs/ slow 8000000"
	empty_store
	"$SVRUN" image pull --plain-http --progress none "$FRONT/own/app:1" >"$T/first" &
	local pid=$!
	pull "$FRONT/own/app:1"
	expect_status 0
	wait "$pid"
	# the size of the image, and what its documents need; not twice
	[ "$(blob_bytes)" -lt 30000000 ] || fail "$(blob_bytes) bytes"
	expect_own_works "$FRONT/own/app:1"
}

@test "a full disk is said, and the store is as it was" {
	need_root
	registry_plain
	push_own_image 60000000
	new_disk 40M
	export SVRUN_ROOT=$MOUNT/store
	pull "$REGISTRY/own/app:1"
	[ "$status" != 0 ]
	expect_in "$err" "No space left on device" "hint:"
	run_split "$SVRUN" image ls
	expect_status 0
	[[ $out != *own/app* ]]
}

# ---- registries that lie ----

# Replace a blob in the registry's storage.
spoil_blob() { # HEX OFFSET
	printf '\xff\xfe\xfd' | dd of="$REGISTRY_ROOT/docker/registry/v2/blobs/sha256/${1:0:2}/$1/data" bs=1 seek="$2" \
		conv=notrunc status=none
}

largest_layer() { # NAME REF
	curl -sf -H 'Accept: application/vnd.oci.image.manifest.v1+json' "http://$REGISTRY/v2/$1/manifests/$2" |
		jq -r '.layers | max_by(.size) | .digest' | cut -d: -f2
}

@test "bytes that are not what the manifest says are refused" {
	need_root
	registry_plain
	push_own_image
	make_foreign_image "$T/image" ref --files 5 --big 3000000
	push_with_skopeo "$T/image" ref some/image:1
	empty_store
	spoil_blob "$(largest_layer own/app 1)" 2000000
	pull "$REGISTRY/own/app:1"
	[ "$status" != 0 ]
	expect_in "$err" "layer" "expected"
	spoil_blob "$(largest_layer some/image 1)" 500000
	pull "$REGISTRY/some/image:1"
	[ "$status" != 0 ]
	expect_in "$err" "layer"
	run_split "$SVRUN" image ls -q
	[ -z "$out" ]
}

@test "manifests that are too large, of a wrong type, or no JSON are refused" {
	need_root
	registry_plain
	push_own_image
	head -c 100M /dev/zero | tr '\0' ' ' >"$T/large"
	echo 'no JSON' >"$T/text"
	jq -n '{schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json",
		config: {mediaType: "application/vnd.oci.image.config.v1+json", digest: ("sha256:" + "0" * 64), size: 2},
		layers: [range(10000) | {mediaType: "application/vnd.oci.image.layer.v1.tar", digest: ("sha256:" + "0" * 64), size: 1}]}' >"$T/layers"
	front_faults
	local kind
	for kind in large text layers; do
		faults "always GET /manifests/ body $T/$kind"
		empty_store
		run_split timeout 60 "$SVRUN" image pull --plain-http --progress none "$FRONT/own/app:1"
		[ "$status" != 0 ] && [ "$status" != 124 ] || fail "$kind: $status $err" || return 1
		expect_in "$err" "pull $FRONT/own/app:1"
	done
	faults "always GET /manifests/ endless"
	run_split timeout 60 "$SVRUN" image pull --plain-http --progress none "$FRONT/own/app:1"
	[ "$status" != 0 ] && [ "$status" != 124 ] || fail "endless: $status $err"
}

@test "a manifest that lies about the size of an index that is here is refused" {
	need_root
	registry_plain
	push_own_image
	empty_store
	pull "$REGISTRY/own/app:1"
	expect_status 0
	local type=application/vnd.oci.image.manifest.v1+json
	curl -sf -H "Accept: $type" "http://$REGISTRY/v2/own/app/manifests/1" | jq -c '.layers[-1].size += 1' >"$T/lie"
	curl -sf -X PUT -H "Content-Type: $type" --data-binary "@$T/lie" "http://$REGISTRY/v2/own/app/manifests/lie"
	pull "$REGISTRY/own/app:lie"
	[ "$status" != 0 ]
	expect_in "$err" "expected" "bytes, found"
	run_split "$SVRUN" image ls
	[[ $out != *lie* ]]
}

@test "progress as JSON lines, and as plain ones" {
	need_root
	registry_plain
	push_own_image
	empty_store
	run_split "$SVRUN" image pull --plain-http --progress json "$REGISTRY/own/app:1"
	expect_status 0
	jq -se 'length > 0 and all(has("stage"))' <<<"$err"
	empty_store
	run_split "$SVRUN" image pull --plain-http "$REGISTRY/own/app:1"
	expect_status 0
	expect_in "$err" "pull" "MiB/s"
}
