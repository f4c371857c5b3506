#!/usr/bin/env bats
# Foreign layers that bring a table of contents: zstd:chunked of skopeo and podman, eStargz.

load helpers
load registry

need_servers() {
	need_root
	need_program umoci
	registry_plain
}

# The image of REF in $T/image, with a table in each layer, as some/image:NAME; $ROOTFS is what umoci makes of it.
push_chunked() { # NAME [OPTION of foreign-image...]
	local name=$1
	shift
	make_foreign_image "$T/image.$name" "$name" "$@"
	push_with_skopeo "$T/image.$name" "$name" "some/image:$name" --dest-compress-format zstd:chunked
	unpack_with_umoci "$T/image.$name" "$name"
}

manifest() { # NAME
	skopeo_ok inspect --raw --tls-verify=false "docker://$REGISTRY/some/image:$1"
}

# A manifest from stdin as some/image:NAME.
put_manifest() { # NAME
	curl -sSf -X PUT -H "Content-Type: application/vnd.oci.image.manifest.v1+json" --data-binary @- \
		"http://$REGISTRY/v2/some/image/manifests/$1"
}

blob_bytes() {
	awk '/\/blobs\// { n += $3 } END { print n + 0 }' "$FRONT_LOG"
}

# Where the table of layer N begins.
table_at() { # NAME N
	manifest "$1" | jq -er ".layers[$2].annotations[\"io.containers.zstd-chunked.manifest-position\"]" | cut -d: -f1
}

@test "zstd:chunked of skopeo: the table is used, and the tree is what umoci unpacks" {
	need_servers
	push_chunked a --files 50 --big 5000000
	front_faults
	empty_store
	pull "$FRONT/some/image:a"
	expect_status 0
	expect_same_tree "$FRONT/some/image:a" "$ROOTFS"
	"$SVRUN" image verify "$FRONT/some/image:a"
	for layer in 0 1 2; do
		[ "$(front_requests "^GET 206 [0-9]+ bytes=$(table_at a "$layer")-")" = 1 ]
	done
}

@test "zstd:chunked of podman" {
	need_servers
	need_program podman
	make_foreign_image "$T/image" ref --files 20 --big 3000000
	unpack_with_umoci "$T/image" ref
	local storage=(--storage-driver vfs --root "$T/podman/root" --runroot "$T/podman/run")
	skopeo_ok copy -q "oci:$T/image:ref" "containers-storage:[vfs@$T/podman/root+$T/podman/run]localhost/x:1"
	podman "${storage[@]}" push -q --tls-verify=false --compression-format zstd:chunked localhost/x:1 \
		"docker://$REGISTRY/some/image:podman"
	podman "${storage[@]}" system reset -f >"$T/reset.log" 2>&1
	manifest podman | jq -e '[.layers[].annotations["io.containers.zstd-chunked.manifest-checksum"]] | all'
	empty_store
	pull "$REGISTRY/some/image:podman"
	expect_status 0
	expect_same_tree "$REGISTRY/some/image:podman" "$ROOTFS"
}

@test "eStargz: the table is used, and is a file of the image as in any other engine" {
	need_servers
	make_foreign_image "$T/image" ref --files 50 --big 9000000 --compression estargz
	push_with_skopeo "$T/image" ref some/image:stargz
	manifest stargz | jq -e '[.layers[].annotations["containerd.io/snapshot/stargz/toc.digest"]] | all'
	unpack_with_umoci "$T/image" ref
	front_faults
	empty_store
	pull "$FRONT/some/image:stargz"
	expect_status 0
	expect_same_tree "$FRONT/some/image:stargz" "$ROOTFS"
	[ -s "$ROOTFS/stargz.index.json" ]
	# the footers
	[ "$(front_requests '^GET 206 51 ')" = 3 ]
}

@test "proven whole with strict, and from servers that ignore ranges" {
	need_servers
	make_foreign_image "$T/image" ref --files 10 --big 3000000 --compression estargz
	unpack_with_umoci "$T/image" ref
	push_with_skopeo "$T/image" ref some/image:stargz
	empty_store
	pull --strict "$REGISTRY/some/image:stargz"
	expect_status 0
	expect_same_tree "$REGISTRY/some/image:stargz" "$ROOTFS"
	front_no_range
	empty_store
	pull "$FRONT/some/image:stargz"
	expect_status 0
	expect_same_tree "$FRONT/some/image:stargz" "$ROOTFS"
}

# This writer drops what follows the two blocks that end a tar, so the DiffID is another one.
@test "strict tells that skopeo 1.9 does not keep the whole tar" {
	need_servers
	[[ $(skopeo --version) == *" 1.9."* ]] || skip "another skopeo"
	push_chunked a --files 10 --big 300000
	empty_store
	pull --strict "$REGISTRY/some/image:a"
	expect_status 125
	expect_in "$err" "DiffID: expected sha256:"
	front_no_range
	empty_store
	pull "$FRONT/some/image:a"
	expect_status 0
	expect_same_tree "$FRONT/some/image:a" "$ROOTFS"
}

@test "of another version only files travel that the pool lacks" {
	need_servers
	push_chunked a --files 400 --big 100000
	front_faults
	empty_store
	pull "$FRONT/some/image:a"
	expect_status 0
	# one more small file in the first layer
	mkdir "$T/more"
	zcat "$T/image.a/blobs/sha256/$(jq -r '.layers[0].digest[7:]' <(skopeo_ok inspect --raw "oci:$T/image.a:a"))" >"$T/more.tar"
	echo new >"$T/more/new-file"
	tar -rf "$T/more.tar" -C "$T/more" new-file
	umoci init --layout "$T/next"
	umoci new --image "$T/next:b"
	umoci raw add-layer --image "$T/next:b" "$T/more.tar"
	push_with_skopeo "$T/next" b some/image:b --dest-compress-format zstd:chunked
	: >"$FRONT_LOG"
	pull "$FRONT/some/image:b"
	expect_status 0
	"$SVRUN" image export "$FRONT/some/image:b" | tar -xO new-file | grep -x new
	size=$(manifest b | jq '.layers[0].size')
	[ "$(blob_bytes)" -lt $((size / 4)) ] || fail "$(blob_bytes) of $size bytes"
}

@test "a flipped byte in a table or in data is found, and nothing of it is kept" {
	need_servers
	push_chunked a --files 10 --big 3000000
	front_faults
	digest=$(manifest a | jq -r '.layers[0].digest')
	for n in 20 70; do
		faults "always GET $digest flip $n"
		empty_store
		pull "$FRONT/some/image:a"
		[ "$status" != 0 ]
		expect_in "$err" "layer 0"
		[ -z "$("$SVRUN" image ls -q 2>/dev/null)" ]
	done
}

@test "an image cannot decide by a table of its own what another one's layer holds" {
	need_servers
	push_chunked good --files 5 --big 300000 --seed 1
	good_root=$ROOTFS
	push_chunked evil --files 5 --big 300000 --seed 2
	# the digest of the good layer with the annotations of the evil one, from a registry that lies
	good=$(manifest good | jq -r '.layers[0].digest')
	evil=$(manifest evil | jq -r '.layers[0].digest')
	manifest evil | jq --arg d "$good" '.layers[0].digest = $d' | put_manifest mixed
	file=$REGISTRY_ROOT/docker/registry/v2/blobs/sha256/${evil:7:2}/${evil:7}/data
	front_faults "always GET $good body-range $file"
	empty_store
	pull "$FRONT/some/image:mixed"
	expect_status 0
	faults
	pull "$FRONT/some/image:good"
	expect_status 0
	expect_same_tree "$FRONT/some/image:good" "$good_root"
}

@test "garbage collection keeps what is known of the layers of images that stay" {
	need_servers
	push_chunked a --files 20 --big 3000000
	push_with_skopeo "$T/image.a" a some/image:plain
	front_faults
	empty_store
	pull "$FRONT/some/image:a"
	expect_status 0
	pull "$FRONT/some/image:plain"
	expect_status 0
	"$SVRUN" image gc
	expect_same_tree "$FRONT/some/image:a" "$ROOTFS"
	expect_same_tree "$FRONT/some/image:plain" "$ROOTFS"
	: >"$FRONT_LOG"
	for name in a plain; do
		"$SVRUN" image tag "$FRONT/some/image:$name" "keep:$name"
		# the same layers in an image that was never here
		manifest "$name" | jq -c --arg name "$name" '.annotations.note = $name' | put_manifest "other$name"
		pull "$FRONT/some/image:other$name"
		expect_status 0
		expect_same_tree "$FRONT/some/image:other$name" "$ROOTFS"
	done
	[ "$(blob_bytes)" = 0 ] || fail "$(<"$FRONT_LOG")" || return 1
	# and drops it with the last of them
	"$SVRUN" image ls -q | xargs "$SVRUN" image rm
	"$SVRUN" image gc
	[ -z "$(ls "$SVRUN_ROOT/layers")" ]
	[ "$(du -k "$SVRUN_ROOT/pool/data" | cut -f1)" -lt 64 ]
}
