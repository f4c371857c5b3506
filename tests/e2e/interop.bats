#!/usr/bin/env bats
# Other tools accept the store as it stands.

load helpers
load podman

need_tool() { # PROGRAM NAME
	need_program "$1"
	need_image "$2"
}

@test "skopeo inspects the store as an OCI layout" {
	need_tool skopeo ocr
	skopeo inspect "oci:$SVRUN_ROOT:ocr" | jq -e --arg d "$(image_digest ocr)" '
		.Digest == $d and .Architecture == "amd64" and (.Layers | length) > 2'
	skopeo inspect --config "oci:$SVRUN_ROOT:ocr" | jq -e '.config.Entrypoint == ["/usr/local/bin/ocr"]'
}

copy_to_podman() { # NAME
	skopeo --policy "$T/policy.json" copy -q "oci:$SVRUN_ROOT:$1" \
		"containers-storage:[vfs@$T/podman/root+$T/podman/run]localhost/$1:latest"
}

more_teardown() {
	podman_teardown
}

@test "skopeo copies ocr to containers-storage and podman runs it" {
	need_tool skopeo ocr
	need_program podman
	podman_setup
	copy_to_podman ocr
	[ "$(podman "${STORAGE[@]}" image inspect localhost/ocr:latest | jq -r '.[0].Config.User')" = 1000:1000 ]
	run podman_ok run --rm --network none -i localhost/ocr:latest <"$DATA/ocr.png"
	expect_status 0
	expect_in "$output" "Chunks are verified once"
}

@test "podman runs tiny-llama-chat" {
	need_tool skopeo tiny-llama-chat
	need_program podman
	podman_setup
	copy_to_podman tiny-llama-chat
	run podman_ok run --rm --network none localhost/tiny-llama-chat:latest "This software is"
	expect_status 0
	expect_in "$output" "This software is "
}

@test "skopeo copies an image into another OCI layout without changing a byte" {
	need_tool skopeo ocr
	podman_setup
	skopeo --policy "$T/policy.json" copy -q "oci:$SVRUN_ROOT:ocr" "oci:$T/copy:ocr"
	[ "$(jq -r '.manifests[0].digest' "$T/copy/index.json")" = "$(image_digest ocr)" ]
	for blob in "$T"/copy/blobs/sha256/*; do
		cmp "$blob" "$SVRUN_ROOT/blobs/sha256/${blob##*/}"
	done
}

@test "umoci lists, checks and unpacks an image" {
	need_tool umoci ocr
	# umoci 0.4.7 knows no zstd layers: a gzip build then.
	new_store cache
	"$SVRUN" image build -q --compression gzip "$WORK/apps/ocr"
	umoci ls --layout "$SVRUN_ROOT" | grep -x ocr
	umoci stat --image "$SVRUN_ROOT:ocr" --json | jq -e '.history | length > 2'
	umoci --log error unpack --image "$SVRUN_ROOT:ocr" "$T/bundle"
	chroot "$T/bundle/rootfs" /usr/bin/tesseract --version
	# Its garbage collector finds every blob in use.
	find "$SVRUN_ROOT/blobs" -type f | sort >"$T/before"
	umoci gc --layout "$SVRUN_ROOT"
	find "$SVRUN_ROOT/blobs" -type f | sort | diff "$T/before" -
	[ "$("$SVRUN" run --rm ocr --help)" = "usage: ocr [FILE|-] [TESSERACT OPTION...]" ]
}
