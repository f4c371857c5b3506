#!/usr/bin/env bats
# Names of images that have a host: found by their last parts, listed, removed.

load helpers

two_images() {
	need_root
	new_store
	make_app one
	lock_and_build "$APP"
	make_app two '.files[1].dest = "/etc/other"'
	lock_and_build "$APP"
	"$SVRUN" image tag one 127.0.0.1:5000/team/app:1.0
	"$SVRUN" image tag one registry.example/only
	"$SVRUN" image tag two registry.example/team/app:1.0
}

@test "an image is found by the last parts of its name, if they are only its own" {
	two_images
	"$SVRUN" image inspect only | jq -e --arg d "$(image_digest one)" '.digest == $d'
	"$SVRUN" run only
	run_split "$SVRUN" image inspect app:1.0
	expect_status 2
	[ "$err" = "svrun: 'app:1.0' may mean 2 images
hint: write one of: 127.0.0.1:5000/team/app:1.0, registry.example/team/app:1.0" ] || fail "$err"
	"$SVRUN" image inspect registry.example/team/app:1.0 | jq -e --arg d "$(image_digest two)" '.digest == $d'
}

@test "ls tells a port from a tag" {
	two_images
	run_split "$SVRUN" image ls
	expect_status 0
	grep -E "^127\.0\.0\.1:5000/team/app +1\.0 " <<<"$out"
	grep -E "^registry\.example/only +latest " <<<"$out"
	"$SVRUN" image tag one 127.0.0.1:5000/app
	"$SVRUN" image tag one "registry.example/pinned@$(image_digest one)"
	run_split "$SVRUN" image ls
	grep -E "^127\.0\.0\.1:5000/app +latest " <<<"$out"
	grep -E "^registry\.example/pinned +- " <<<"$out"
}

@test "rm of a short name takes that name only" {
	two_images
	run_split "$SVRUN" image rm only
	expect_status 0
	[ "$out" = "untagged registry.example/only" ] || fail "$out"
	run_split "$SVRUN" image rm app:1.0
	expect_status 2
	"$SVRUN" image inspect one | jq -e '.names == ["127.0.0.1:5000/team/app:1.0", "one", "one:1"]'
	"$SVRUN" image rm 127.0.0.1:5000/team/app:1.0
	run_split "$SVRUN" image rm app:1.0 # there is one such name now
	expect_status 0
	[ "$out" = "untagged registry.example/team/app:1.0" ] || fail "$out"
	"$SVRUN" image rm two:1
	run_split "$SVRUN" image rm two
	expect_status 0
	expect_in "$out" "untagged two" "deleted sha256:"
}

@test "a malformed name is told by its part" {
	two_images
	run_split "$SVRUN" image tag one registry.example/Team
	expect_status 2
	[ "$err" = "svrun: 'registry.example/Team' is not an image name: the path 'Team' has upper case
hint: [HOST[:PORT]/]NAME[:TAG][@DIGEST], such as registry.example/team/app:1.0" ] || fail "$err"
}

@test "the name of an index means the image for this machine" {
	two_images
	local digest size index
	digest=$(image_digest one)
	size=$(stat -c %s "$SVRUN_ROOT/blobs/sha256/${digest#sha256:}")
	jq -cn --arg d "$digest" --argjson n "$size" '{schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json",
		manifests: (["s390x", "amd64", "arm64"] | map({mediaType: "application/vnd.oci.image.manifest.v1+json",
			digest: (if . == "s390x" then "sha256:" + "0" * 64 else $d end), size: $n,
			platform: {os: "linux", architecture: .}}))}' >"$T/index"
	index=$(sha256sum <"$T/index")
	index=${index%% *}
	cp "$T/index" "$SVRUN_ROOT/blobs/sha256/$index"
	jq --arg d "sha256:$index" --argjson n "$(stat -c %s "$T/index")" '.manifests += [{
		mediaType: "application/vnd.oci.image.index.v1+json", digest: $d, size: $n,
		annotations: {"org.opencontainers.image.ref.name": "registry.example/multi"}}]' \
		"$SVRUN_ROOT/index.json" >"$T/new"
	cp "$T/new" "$SVRUN_ROOT/index.json"
	"$SVRUN" run multi
	"$SVRUN" image inspect multi | jq -e --arg d "$digest" '.digest == $d'
	run_split "$SVRUN" image ls
	[ -z "$err" ] || fail "$err"
	grep -E "^registry\.example/multi +latest +${index:0:12} " <<<"$out"
	run_split "$SVRUN" image rm multi
	expect_status 0
	[ "$out" = "untagged registry.example/multi
deleted sha256:$index" ] || fail "$out"
	[ ! -e "$SVRUN_ROOT/blobs/sha256/$index" ]
	"$SVRUN" run one # it has names of its own
}
