#!/usr/bin/env bats
# svrun image push and convert against a real registry, with other tools as second opinions.

load helpers
load registry
load podman

more_teardown() {
	servers_stop
	podman_teardown
}

# An image of ours in a store of the test's own, as `own`; $OWN is its digest. A program, small files, and `big`,
# which has several chunks and does not compress.
build_own() { # [BIG-BYTES [BUILD-OPTION...]]
	local bytes=${1:-6000000}
	[ $# = 0 ] || shift
	[ -d "$T/store" ] || new_store
	make_app own '.files += [{dest: "/big", from: "big"}] + [range(40) | {dest: "/small/\(.)", inline: "file \(.)\n"}]'
	python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(7).randbytes(int(sys.argv[1])))' "$bytes" \
		>"$T/own/big"
	lock_and_build "$T/own" "$@" >"$T/own.log"
	OWN=$(image_digest own)
}

push() { # [OPTION...] IMAGE [REF]
	run_split "$SVRUN" image push --plain-http --progress none "$@"
}

pull() {
	run_split "$SVRUN" image pull --plain-http --progress none "$@"
}

convert() {
	run_split "$SVRUN" image convert --progress none "$@"
}

# The site says that a registry has no TLS: --plain-http is for the host that is pushed to or pulled from.
site_has() { # HOST:PORT
	export SVRUN_CONFIG=$T/config.json
	jq -n --arg h "$1" '{registries: {($h): {"plain-http": true}}}' >"$SVRUN_CONFIG"
}

blobs() { # STORE
	(cd "$1/blobs/sha256" && find . -type f | LC_ALL=C sort)
}

# Blobs of a manifest, as HEX.
blobs_of() { # STORE DIGEST
	jq -r '.config.digest, .layers[].digest' "$1/blobs/sha256/${2#sha256:}" | sed 's/^sha256://'
}

diff_ids() { # NAME
	"$SVRUN" image inspect "$1" | jq -c '[.layers[].diffId]'
}

# Another tool copies REF out of the registry: the manifest is DIGEST, and every byte is the store's.
expect_in_registry() { # NAME:TAG DIGEST
	local blob
	rm -rf "$T/copy"
	pull_with_skopeo "$1" "$T/copy" it --preserve-digests
	[ "$(jq -r '.manifests[0].digest' "$T/copy/index.json")" = "$2" ] || fail "the manifest changed" || return 1
	for blob in "$T"/copy/blobs/sha256/*; do
		cmp "$blob" "$SVRUN_ROOT/blobs/sha256/${blob##*/}"
	done
}

# ---- as it is ----

@test "what is pushed is what is in the store, byte for byte, in every codec" {
	need_root
	need_program skopeo
	registry_plain
	local codec
	for codec in zstd gzip none; do
		build_own 3000000 --compression "$codec"
		push own "$REGISTRY/team/own:$codec"
		expect_status 0
		[ "$out" = "$OWN" ]
		expect_in_registry "team/own:$codec" "$OWN"
	done
}

@test "without a tag it is latest, and a digest is one, too" {
	need_root
	registry_plain
	build_own 1000
	push own "$REGISTRY/own"
	expect_status 0
	push own "$REGISTRY/other@$OWN"
	expect_status 0
	[ "$out" = "$OWN" ]
	pull_with_skopeo own:latest "$T/a" it
	pull_with_skopeo "other@$OWN" "$T/b" it
	push own "$REGISTRY/other@sha256:$(printf '%064d' 1)"
	expect_status 2
	expect_in "$err" "the image's digest is $OWN"
}

@test "the image's own name says where to, when it has a host" {
	need_root
	registry_plain
	build_own 1000
	push own
	expect_status 2
	expect_in "$err" "no registry is named" "hint: say where to: svrun image push IMAGE HOST[:PORT]/NAME[:TAG]"
	"$SVRUN" image tag own "$REGISTRY/team/own:1"
	push "$REGISTRY/team/own:1"
	expect_status 0
	expect_in_registry team/own:1 "$OWN"
}

@test "a second push only asks" {
	need_root
	registry_plain
	build_own
	push own "$REGISTRY/own:1"
	expect_status 0
	front_faults
	run_split "$SVRUN" image push --plain-http own "$FRONT/own:1"
	expect_status 0
	expect_in "$err" "$FRONT/own:1 is up to date"
	[ "$(front_requests '^(POST|PATCH|PUT|DELETE) ')" = 0 ]
	# another tag: one manifest
	push own "$FRONT/own:2"
	expect_status 0
	[ "$(front_requests '^(POST|PATCH|DELETE) ')" = 0 ]
	[ "$(front_requests '^PUT 201 ')" = 1 ]
}

@test "blobs of another repository on the same registry are mounted" {
	need_root
	registry_plain
	build_own
	"$SVRUN" image tag own "$REGISTRY/first/own:1"
	push "$REGISTRY/first/own:1"
	expect_status 0
	local uploads
	uploads=$(registry_requests '"PATCH |"PUT /v2/[^ ]*/uploads/')
	run_split "$SVRUN" image push --plain-http first/own:1 "$REGISTRY/second/own:1"
	expect_status 0
	expect_in "$err" "0 blobs sent" "3 mounted"
	[ "$(registry_requests '"PATCH |"PUT /v2/[^ ]*/uploads/')" = "$uploads" ]
	expect_in_registry second/own:1 "$OWN"
}

@test "podman pulls and runs what is pushed" {
	need_root
	need_program podman
	registry_plain
	build_own 1000 --compression gzip
	push own "$REGISTRY/own:gzip"
	expect_status 0
	build_own 1000
	push own "$REGISTRY/own:zstd"
	expect_status 0
	podman_setup
	local codec
	for codec in gzip zstd; do
		podman_do pull -q --tls-verify=false --signature-policy "$T/policy.json" \
			"$REGISTRY/own:$codec" >"$T/pulled"
		run podman_run "$REGISTRY/own:$codec" cat /small/7
		expect_status 0
		expect_in "$output" "file 7"
	done
}

@test "a push that was killed is done by the next one" {
	need_root
	registry_plain
	build_own 30000000
	front_faults 'always PATCH . slow 2000000'
	"$SVRUN" image push --plain-http --progress none own "$FRONT/own:1" 3>&- &
	local pid=$! i
	for ((i = 0; i < 200; i++)); do
		[ "$(front_requests '^POST 202')" -ge 1 ] && break
		sleep 0.05
	done
	kill -9 "$pid"
	wait "$pid" || true
	run pull_with_skopeo own:1 "$T/none" it
	[ "$status" != 0 ]
	push own "$REGISTRY/own:1"
	expect_status 0
	expect_in_registry own:1 "$OWN"
}

@test "broken uploads go on where they were" {
	need_root
	registry_plain
	build_own 40000000
	front_faults '1 PATCH . reset' '1 PUT /uploads/ reset'
	push own "$FRONT/own:1"
	expect_status 0
	expect_in_registry own:1 "$OWN"
}

@test "a registry that needs a login says so, and takes the push after it" {
	need_root
	export HOME=$T/home
	mkdir "$HOME"
	unset REGISTRY_AUTH_FILE DOCKER_CONFIG XDG_RUNTIME_DIR
	registry_htpasswd
	build_own 1000
	push own "$REGISTRY/own:1"
	expect_status 125
	expect_in "$err" "svrun image login $REGISTRY"
	"$SVRUN" image login --plain-http -u "$REGISTRY_USER" --password-stdin "$REGISTRY" <<<"$REGISTRY_PASSWORD"
	push own "$REGISTRY/own:1"
	expect_status 0
	skopeo_ok inspect --tls-verify=false --creds "$REGISTRY_USER:$REGISTRY_PASSWORD" "docker://$REGISTRY/own:1" |
		jq -e --arg d "$OWN" '.Digest == $d'
}

@test "a registry with tokens gets a scope for either repository of a mount" {
	need_root
	export HOME=$T/home
	mkdir "$HOME"
	unset REGISTRY_AUTH_FILE DOCKER_CONFIG XDG_RUNTIME_DIR
	registry_token
	build_own 1000
	"$SVRUN" image login --plain-http -u "$REGISTRY_USER" --password-stdin "$REGISTRY" <<<"$REGISTRY_PASSWORD"
	"$SVRUN" image tag own "$REGISTRY/first/own:1"
	push first/own:1
	expect_status 0
	run_split "$SVRUN" image push --plain-http first/own:1 "$REGISTRY/second/own:1"
	expect_status 0
	expect_in "$err" "0 blobs sent"
	[ "$(token_requests 'second/own:[^ ]*push')" -ge 1 ]
}

# ---- pulled images ----

@test "a pulled image is pushed on, and its layers are not kept" {
	need_root
	registry_plain origin
	build_own
	push own "$REGISTRY/own:1"
	expect_status 0
	local origin=$REGISTRY
	mv "$T/store" "$T/builder"
	pull "$origin/own:1"
	expect_status 0
	blobs "$T/store" >"$T/before"
	registry_plain other
	push own:1 "$REGISTRY/copy:1"
	expect_status 0
	[ "$out" = "$OWN" ]
	blobs "$T/store" | diff "$T/before" -
	SVRUN_ROOT=$T/builder expect_in_registry copy:1 "$OWN"
}

@test "where a pulled image came from is gone: its layers are made again, the same bytes" {
	need_root
	local codec
	for codec in zstd gzip none; do
		registry_plain "origin-$codec"
		rm -rf "$T/store" "$T/builder"
		build_own 3000000 --compression "$codec"
		push own "$REGISTRY/own:1"
		expect_status 0
		mv "$T/store" "$T/builder"
		pull "$REGISTRY/own:1"
		expect_status 0
		server_kill "$REGISTRY_PID"
		registry_plain "other-$codec"
		push own:1 "$REGISTRY/copy:1"
		expect_status 0
		SVRUN_ROOT=$T/builder expect_in_registry copy:1 "$OWN"
	done
}

@test "a foreign image is pushed on; when its source is gone that is an error" {
	need_root
	make_foreign_image "$T/foreign" it
	registry_plain origin
	push_with_skopeo "$T/foreign" it foreign:1
	new_store
	pull "$REGISTRY/foreign:1"
	expect_status 0
	local origin=$REGISTRY pid=$REGISTRY_PID
	registry_plain other
	push foreign:1 "$REGISTRY/copy:1"
	expect_status 125
	expect_in "$err" "wrong version number" "plain-http"
	site_has "$origin"
	push foreign:1 "$REGISTRY/copy:1"
	expect_status 0
	pull_with_skopeo copy:1 "$T/copy" it
	diff <(blobs "$T/foreign") <(blobs "$T/copy")
	server_kill "$pid"
	push foreign:1 "$REGISTRY/third:1"
	expect_status 125
	expect_in "$err" "layer 0, " "$origin" "nor can it be made again: the image has no index of its own"
}

# ---- in another compression ----

@test "another compression on the way keeps all DiffIDs and leaves the store as it was" {
	need_root
	registry_plain
	build_own
	blobs "$T/store" >"$T/before"
	local codec type
	for codec in gzip none; do
		push --compression "$codec" own "$REGISTRY/own:$codec"
		expect_status 0
		blobs "$T/store" | diff "$T/before" -
		type=$([ "$codec" = none ] && echo tar || echo tar+gzip)
		skopeo_ok inspect --tls-verify=false --raw "docker://$REGISTRY/own:$codec" | jq -e --arg t "$type" \
			'[.layers[:-1][].mediaType] | all(endswith("v1." + $t))'
		[ "sha256:$(skopeo_ok inspect --tls-verify=false --raw "docker://$REGISTRY/own:$codec" |
			sha256sum | cut -d' ' -f1)" = "$out" ]
		# the config, byte for byte, and so the image's id
		[ "$(skopeo_ok inspect --tls-verify=false --raw --config "docker://$REGISTRY/own:$codec" | sha256sum)" = \
			"$(skopeo_ok inspect --raw --config "oci:$T/store:own" | sha256sum)" ]
		pull_with_skopeo "own:$codec" "$T/$codec" it
	done
	# what arrived is an image of ours: it is pulled by chunks
	mv "$T/store" "$T/builder"
	pull "$REGISTRY/own:gzip"
	expect_status 0
	[ "$("$SVRUN" run --rm own:gzip cat /small/7)" = "file 7" ]
	"$SVRUN" image verify own:gzip
}

@test "gzip to zstd and back keeps all DiffIDs" {
	need_root
	build_own 3000000 --compression gzip
	convert own z
	expect_status 0
	convert --compression gzip --level 9 z g
	expect_status 0
	convert --compression none g n
	expect_status 0
	convert n z2
	expect_status 0
	local name
	for name in z g n z2; do
		[ "$(diff_ids "$name")" = "$(diff_ids own)" ]
		"$SVRUN" image verify "$name"
		[ "$("$SVRUN" run --rm "$name" cat /small/7)" = "file 7" ]
	done
	[ "$(image_digest z)" = "$(image_digest z2)" ]
	# in frames of that codec already: nothing to do
	convert z z3
	[ "$(image_digest z)" = "$(image_digest z3)" ]
}

@test "an image of others gets an index" {
	need_root
	make_foreign_image "$T/foreign" it
	registry_plain
	push_with_skopeo "$T/foreign" it foreign:1 --format v2s2
	new_store
	pull "$REGISTRY/foreign:1"
	expect_status 0
	site_has "$REGISTRY"
	convert foreign:1 mine
	expect_status 0
	"$SVRUN" image verify mine
	# its layers' tars are what they were; the index has an empty one
	[ "$(diff_ids mine | jq -c '.[:-1]')" = "$(diff_ids foreign:1)" ]
	"$SVRUN" image export foreign:1 | sha256sum >"$T/a"
	"$SVRUN" image export mine | sha256sum | diff "$T/a" -
	push mine "$REGISTRY/mine:1"
	expect_status 0
	rm -rf "$T/store"
	pull "$REGISTRY/mine:1"
	expect_status 0
	"$SVRUN" image export mine:1 | sha256sum | diff "$T/a" -
}

@test "an image that another tool put into the store is converted, too" {
	need_root
	make_foreign_image "$T/foreign" it
	new_store
	skopeo_ok copy -q "oci:$T/foreign:it" "oci:$T/store:theirs"
	convert theirs mine
	expect_status 0
	"$SVRUN" image verify mine
}

@test "a push in another compression leaves an image alone that is the same, and is mounted" {
	need_root
	registry_plain
	build_own 1000
	convert --compression gzip own kept
	expect_status 0
	"$SVRUN" image mount kept >/dev/null
	push --compression gzip own "$REGISTRY/own:gzip"
	expect_status 0
	[ "$out" = "$(image_digest kept)" ]
	"$SVRUN" image unmount kept >/dev/null
	"$SVRUN" image verify kept >/dev/null
}

@test "compressions and levels that do not exist are refused" {
	need_root
	build_own 1000
	push --compression lz4 own 127.0.0.1:1/own
	expect_status 2
	expect_in "$err" "--compression: expected zstd, gzip or none, got 'lz4'"
	convert --level 20 own x
	expect_status 2
	expect_in "$err" "zstd has no level 20: 1 to 19"
	convert --compression none --level 3 own x
	expect_status 2
	convert --level x own x
	expect_status 2
	convert own 'Not/A/Name'
	expect_status 2
	run image_digest x
	[ "$status" != 0 ]
}

# ---- several platforms ----

# A layout with an index of two images; $INDEX is its digest, $HERE this machine's image.
make_index() {
	make_foreign_image "$T/one" it
	make_foreign_image "$T/two" it --seed 9
	mkdir -p "$T/both/blobs/sha256"
	cp "$T"/one/blobs/sha256/* "$T"/two/blobs/sha256/* "$T/both/blobs/sha256/"
	cp "$T/one/oci-layout" "$T/both/"
	HERE=$(jq -r '.manifests[0].digest' "$T/one/index.json")
	jq -n --argjson a "$(jq '.manifests[0] | del(.annotations)' "$T/one/index.json")" \
		--argjson b "$(jq '.manifests[0] | del(.annotations)' "$T/two/index.json")" '{
		schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json",
		manifests: [$a + {platform: {os: "linux", architecture: "amd64"}},
			$b + {platform: {os: "linux", architecture: "s390x"}}]}' >"$T/index"
	INDEX=sha256:$(sha256sum <"$T/index" | cut -d' ' -f1)
	cp "$T/index" "$T/both/blobs/sha256/${INDEX#sha256:}"
	jq -n --arg d "$INDEX" --argjson n "$(stat -c %s "$T/index")" '{schemaVersion: 2, manifests: [{
		mediaType: "application/vnd.oci.image.index.v1+json", digest: $d, size: $n,
		annotations: {"org.opencontainers.image.ref.name": "both"}}]}' >"$T/both/index.json"
}

@test "an image index goes with all its images, or one image alone" {
	need_root
	[ "$(uname -m)" = x86_64 ] || skip "the test's index has amd64"
	make_index
	registry_plain
	skopeo_ok copy -q --all --dest-tls-verify=false "oci:$T/both:both" "docker://$REGISTRY/both:1"
	new_store
	pull --all-platforms "$REGISTRY/both:1"
	expect_status 0
	site_has "$REGISTRY"
	registry_plain other
	push both:1 "$REGISTRY/one:1"
	expect_status 0
	[ "$out" = "$HERE" ]
	push --all-platforms both:1 "$REGISTRY/all:1"
	expect_status 0
	[ "$out" = "$INDEX" ]
	skopeo_ok copy -q --all --src-tls-verify=false "docker://$REGISTRY/all:1" "oci:$T/copy:it"
	diff <(blobs "$T/both") <(blobs "$T/copy")
}

@test "an index whose images are not here is refused before it is sent" {
	need_root
	[ "$(uname -m)" = x86_64 ] || skip "the test's index has amd64"
	make_index
	registry_plain
	new_store
	cp -r "$T/both/blobs" "$T/both/index.json" "$T/store/"
	rm "$T/store/blobs/sha256/$(jq -r '.manifests[1].digest' "$T/index" | sed 's/sha256://')"
	push --all-platforms both "$REGISTRY/all:1"
	expect_status 125
	expect_in "$err" "/manifests/1: its manifest sha256:" "hint: svrun image pull --all-platforms"
	[ "$(registry_requests 'PUT /v2/all/manifests/1')" = 0 ]
}

@test "layers that may not be distributed are not sent" {
	need_root
	make_foreign_image "$T/foreign" it
	registry_plain
	new_store
	cp -r "$T/foreign/blobs" "$T/store/"
	local old new layer
	old=$(jq -r '.manifests[0].digest' "$T/foreign/index.json")
	layer=$(jq -r '.layers[0].digest' "$T/foreign/blobs/sha256/${old#sha256:}")
	jq -c '.layers[0].mediaType = "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"
		| .layers[0].urls = ["http://registry.example/layer"]' \
		"$T/foreign/blobs/sha256/${old#sha256:}" >"$T/manifest"
	new=$(sha256sum <"$T/manifest" | cut -d' ' -f1)
	cp "$T/manifest" "$T/store/blobs/sha256/$new"
	jq -c --arg d "sha256:$new" --argjson n "$(stat -c %s "$T/manifest")" \
		'.manifests[0].digest = $d | .manifests[0].size = $n' "$T/foreign/index.json" >"$T/store/index.json"
	run_split "$SVRUN" image push --plain-http it "$REGISTRY/it:1"
	# whether a registry takes such a manifest is its own business
	[ "$(registry_requests "blobs/$layer|digest=${layer/:/%3A}|digest=$layer")" = 0 ]
	[ "$status" = 0 ] || expect_in "$err" "manifest"
}
