#!/usr/bin/env bats
# In and out without registries: load, save, import, export, with other tools on the other side.

load helpers
load registry
load podman

more_teardown() {
	servers_stop
	podman_teardown
}

podman_load() { # from standard input
	podman_do load -q --signature-policy "$T/policy.json"
}

copy() {
	skopeo --policy "$T/policy.json" copy -q "$@"
}

# A root file system with one of everything that tar holds; $ROOTFS is its tar.
make_rootfs() {
	local root=$T/rootfs
	hello_program
	mkdir -p "$root"/{bin,etc,dev,var/lib/dpkg}
	cp "$WORK/hello" "$root/bin/hello"
	head -c 3000000 /dev/urandom >"$root/etc/big"
	ln "$root/etc/big" "$root/etc/hard"
	ln -s ../etc/big "$root/bin/soft"
	mkfifo "$root/etc/fifo"
	mknod "$root/dev/null" c 1 3
	chmod 4755 "$root/bin/hello"
	chown 12:34 "$root/etc"
	printf 'Package: base\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.0\n' \
		>"$root/var/lib/dpkg/status"
	ROOTFS=$T/rootfs.tar
	tar -C "$root" -cf "$ROOTFS" .
}

# Two images that share a layer's data: one and two:2.
two_images() {
	make_rootfs
	new_store
	"$SVRUN" image import "$ROOTFS" one --entrypoint /bin/hello -e A=1 >"$T/one"
	"$SVRUN" image import "$ROOTFS" two:2 --entrypoint /bin/hello --compression gzip >"$T/two"
}

# Image one as a docker archive; prints its path.
docker_form() {
	SVRUN_ROOT=$T/store "$SVRUN" image save -q one --format docker-archive -o "$T/docker.tar"
	echo "$T/docker.tar"
}

# An empty store beside new_store's, and back.
other_store() {
	export SVRUN_ROOT=$T/other
	rm -rf --one-file-system "$SVRUN_ROOT"
}

first_store() {
	export SVRUN_ROOT=$T/store
}

blobs() { # [FOLDER]: how many there are
	find "${1:-$SVRUN_ROOT}/blobs/sha256" -mindepth 1 | wc -l
}

runs() { # NAME
	[ "$("$SVRUN" run --rm "$1" word)" = word ]
}

same_files() { # NAME: exported, it is what $T/one.tar is
	"$SVRUN" image export "$1" | cmp - "$T/export.tar"
}

@test "save and load bring images back as they were, through files, pipes and folders" {
	need_root
	two_images
	"$SVRUN" image save -q one two:2 -o "$T/a.tar"
	"$SVRUN" image save -q one two:2 | cmp - "$T/a.tar"
	"$SVRUN" image save -q one two:2 --format oci-dir -o "$T/dir"
	for how in "cat $T/a.tar" "gzip -c $T/a.tar" "zstd -qc $T/a.tar" "xz -0c $T/a.tar"; do
		other_store
		$how | "$SVRUN" image load -q >"$T/loaded"
		[ "$(sort "$T/loaded")" = "$(printf 'one %s\ntwo:2 %s' "$(<"$T/one")" "$(<"$T/two")")" ]
		"$SVRUN" image verify --all >/dev/null
	done
	runs one
	other_store
	"$SVRUN" image load -q "$T/dir" >"$T/again"
	diff "$T/loaded" "$T/again"
	# Again, and from a file: nothing changes.
	"$SVRUN" image load -q -i "$T/a.tar" | diff "$T/loaded" -
	[ "$(blobs)" = "$(blobs "$T/dir")" ]
}

@test "a docker archive keeps the image ID, files and names, and shares what is shared" {
	need_root
	two_images
	"$SVRUN" image export one >"$T/export.tar"
	"$SVRUN" image save -q one two:2 --format docker-archive -o "$T/d.tar"
	"$SVRUN" image save -q one two:2 --format docker-archive | cmp - "$T/d.tar"
	[ "$(tar tf "$T/d.tar" | grep -c 'tar$')" = 2 ] # the layer and the index's, for both
	id=$("$SVRUN" image inspect one | jq -r .imageId)
	other_store
	"$SVRUN" image load -q <"$T/d.tar" >/dev/null
	[ "$("$SVRUN" image inspect one | jq -r .imageId)" = "$id" ]
	same_files one
	same_files two:2
	runs one
}

@test "skopeo and podman read what we save" {
	need_root
	need_program skopeo
	podman_setup
	two_images
	"$SVRUN" image save -q one two:2 -o "$T/a.tar"
	"$SVRUN" image save -q one -o "$T/one.tar"
	"$SVRUN" image save -q one --format docker-archive -o "$T/d.tar"
	[ "$(skopeo inspect "oci-archive:$T/a.tar:one" | jq -r .Digest)" = "$(<"$T/one")" ]
	[ "$(skopeo inspect "oci-archive:$T/a.tar:two:2" | jq -r .Digest)" = "$(<"$T/two")" ]
	[ "$(skopeo inspect --config "docker-archive:$T/d.tar:one:latest" | jq -c .config.Env)" = '["A=1"]' ]
	copy "oci-archive:$T/one.tar" "oci:$T/copy:one"
	[ "$(jq -r '.manifests[0].digest' "$T/copy/index.json")" = "$(<"$T/one")" ]
	"$SVRUN" image save -q one | podman_load
	run podman_run localhost/one:latest x
	expect_status 0
	[ "$output" = x ]
	podman_do rmi -f localhost/one:latest
	"$SVRUN" image save -q one --format docker-archive | podman_load
	run podman_run localhost/one:latest y
	expect_status 0
	[ "$output" = y ]
}

# Image one with something of every kind attached to it.
attach_all() {
	SVRUN_KEY_PASSWORD="" "$SVRUN" image key "$T/k" >/dev/null
	SVRUN_KEY_PASSWORD="" "$SVRUN" image sign --key "$T/k.key" one >/dev/null
}

attached() { # of image one, as names of types and tags
	jq -r '.manifests[] | .artifactType // .annotations["org.opencontainers.image.ref.name"]' \
		"$SVRUN_ROOT/attached/$(cut -d: -f2 "$T/one")" | sort
}

@test "what is attached to an image goes along, and other tools do not mind" {
	need_root
	need_program skopeo
	podman_setup
	two_images
	attach_all
	[ "$(attached | wc -l)" = 2 ]
	attached >"$T/attached"
	"$SVRUN" image save -q one -o "$T/one.tar"
	"$SVRUN" image save -q one two:2 -o "$T/both.tar"
	"$SVRUN" image save -q one --format oci-dir -o "$T/dir"
	"$SVRUN" image save -q one --referrers --format oci-dir -o "$T/tags"
	for archive in one.tar both.tar dir tags; do
		other_store
		"$SVRUN" image load -q "$T/$archive" | grep -qxF "one $(<"$T/one")"
		attached | diff "$T/attached" -
		"$SVRUN" image verify-signature --key "$T/k.pub" one
		"$SVRUN" image gc >/dev/null
		"$SVRUN" image verify-signature --key "$T/k.pub" one
		[ "$("$SVRUN" image ls -q | sort -u | wc -l)" = $([ "$archive" = both.tar ] && echo 2 || echo 1) ]
	done
	# the same again, out of what was loaded
	"$SVRUN" image save -q one | cmp - "$T/one.tar"

	# one entry, so that nobody has to be told which image is meant
	[ "$(jq '.manifests | length' "$T/dir/index.json")" = 1 ]
	copy "oci-archive:$T/one.tar" "oci:$T/copy:one"
	[ "$(jq -r '.manifests[0].digest' "$T/copy/index.json")" = "$(<"$T/one")" ]
	podman_load <"$T/one.tar"
	run podman_run localhost/one:latest x
	expect_status 0

	# with tags, as in a registry without the referrers API
	hex=$(cut -d: -f2 "$T/one")
	[ "$(skopeo inspect --raw "oci:$T/tags:sha256-$hex" | jq -r '.manifests[].artifactType | values')" = application/vnd.dev.sigstore.bundle.v0.3+json ]
	[ "$(skopeo inspect --raw "oci:$T/tags:sha256-$hex.sig" | jq -r '.layers[0].mediaType')" = application/vnd.dev.cosign.simplesigning.v1+json ]

	first_store
	run_split "$SVRUN" image save -q one --format docker-archive -o "$T/d.tar"
	expect_status 0
	expect_in "$err" "no place for the 2 things attached to one: left out"
}

@test "hostile lists of what is attached are refused, and signatures that are here stay" {
	need_root
	two_images
	attach_all
	"$SVRUN" image save -q one --format oci-dir -o "$T/dir"
	list=$(jq -r '.manifests[0].annotations["run.svrun.attached"]' "$T/dir/index.json")
	with_list() { # JQ-FILTER: the list with other content
		rm -rf "$T/bad"
		cp -r "$T/dir" "$T/bad"
		jq -c "$1" "$T/dir/blobs/sha256/${list#sha256:}" | tr -d '\n' >"$T/list"
		cp "$T/list" "$T/bad/blobs/sha256/$(sha256sum "$T/list" | cut -c-64)"
		jq --arg d "sha256:$(sha256sum "$T/list" | cut -c-64)" '.manifests[0].annotations["run.svrun.attached"] = $d' \
			"$T/dir/index.json" >"$T/bad/index.json"
		other_store
		run_split "$SVRUN" image load -q "$T/bad"
	}
	refused() { # JQ-FILTER TEXT
		with_list "$1"
		expect_status 125
		expect_in "$err" "$2"
		[ -z "$("$SVRUN" image ls -q 2>/dev/null)" ]
	}
	refused '.manifests[0].digest = "sha256:" + ("1" * 64)' "1111"
	refused '.manifests[0].size += 1' "bytes, found"
	refused '.manifests = 7' "expected a list"
	refused '.manifests = [range(200) as $i | .manifests[0]]' "at most 128"
	refused '.manifests |= map(del(.annotations["org.opencontainers.image.ref.name"]))' "it does not belong to"
	refused '.manifests[0] = {mediaType: "application/vnd.oci.image.index.v1+json", digest: "'"$list"'", size: '"$(stat -c %s "$T/dir/blobs/sha256/${list#sha256:}")"'}' \
		"it is no index that names the image"
	refused '.manifests[0].annotations.x = "A" * 4500000' "more than the limit of"
	with_list '.manifests = []'
	expect_status 0

	# a push goes to the tags that are listed: what a stranger calls his is none of them
	with_list '.manifests |= map(.annotations["org.opencontainers.image.ref.name"] //= "latest")'
	expect_status 0
	[ "$(grep -c latest "$SVRUN_ROOT/attached/$(cut -d: -f2 "$T/one")")" = 0 ]
	# what is listed is not said to be something else
	with_list '.manifests |= map(if .artifactType then .artifactType = "application/x" else . end)'
	other_store
	"$SVRUN" image load -q "$T/dir" >/dev/null
	attached >"$T/attached"
	"$SVRUN" image load -q "$T/bad" >/dev/null
	attached | diff "$T/attached" -

	# another image's signature
	SVRUN_ROOT=$T/store SVRUN_KEY_PASSWORD="" "$SVRUN" image sign --key "$T/k.key" two:2 >/dev/null
	first_store
	"$SVRUN" image save -q two:2 --format oci-dir -o "$T/two.dir"
	theirs=$(jq -r '.manifests[0].annotations["run.svrun.attached"]' "$T/two.dir/index.json")
	cp "$T"/two.dir/blobs/sha256/* "$T/dir/blobs/sha256/"
	jq --arg d "$theirs" '.manifests[0].annotations["run.svrun.attached"] = $d' "$T/dir/index.json" >"$T/index"
	mv "$T/index" "$T/dir/index.json"
	other_store
	run_split "$SVRUN" image load -q "$T/dir"
	expect_status 125
	expect_in "$err" "it does not belong to $(<"$T/one")"
}

@test "we load what skopeo and podman save" {
	need_root
	need_program skopeo
	podman_setup
	two_images
	"$SVRUN" image export one >"$T/export.tar"
	podman_do import -q --signature-policy "$T/policy.json" --change 'ENTRYPOINT ["/bin/hello"]' \
		"$ROOTFS" registry.example:5000/team/app:1.0
	for format in oci-archive docker-archive oci-dir; do
		rm -rf "$T/saved"
		podman_do save -q --format "$format" -o "$T/saved" registry.example:5000/team/app:1.0
		other_store
		"$SVRUN" image load -q "$T/saved" >"$T/loaded"
		expect_in "$(<"$T/loaded")" "registry.example:5000/team/app:1.0 sha256:"
		runs registry.example:5000/team/app:1.0
		"$SVRUN" image verify --all >/dev/null
		"$SVRUN" image export registry.example:5000/team/app:1.0 | cmp - "$T/export.tar"
	done
	other_store
	podman_do save -q registry.example:5000/team/app:1.0 | "$SVRUN" image load -q
	runs registry.example:5000/team/app:1.0
	# skopeo, with gzip and zstd
	first_store
	"$SVRUN" image save -q one -o "$T/one.tar"
	for format in gzip zstd; do
		rm -f "$T/saved.tar"
		copy --dest-compress-format "$format" "oci-archive:$T/one.tar" "oci:$T/saved.$format:app:$format"
		copy "oci:$T/saved.$format:app:$format" "oci-archive:$T/saved.tar:app:$format"
		other_store
		"$SVRUN" image load -q <"$T/saved.tar"
		same_files "app:$format"
		other_store
		"$SVRUN" image load -q "$T/saved.$format"
		runs "app:$format"
	done
	copy "oci:$T/saved.gzip:app:gzip" "docker-archive:$T/skopeo.tar:some/app:3"
	other_store
	"$SVRUN" image load -q "$T/skopeo.tar" >"$T/loaded"
	same_files "$(cut -d' ' -f1 "$T/loaded")"
}

@test "umoci's layouts are loaded, and it reads ours" {
	need_root
	need_program umoci
	two_images
	"$SVRUN" image save -q two:2 --format oci-dir -o "$T/dir"
	umoci ls --layout "$T/dir" | grep -x two:2
	umoci --log error unpack --image "$T/dir:two:2" "$T/bundle"
	cmp "$T/bundle/rootfs/etc/big" "$T/rootfs/etc/big"
	echo changed >"$T/bundle/rootfs/etc/new"
	rm "$T/bundle/rootfs/etc/hard"
	umoci --log error repack --image "$T/dir:changed" "$T/bundle"
	other_store
	"$SVRUN" image load -q "$T/dir" >/dev/null
	run "$SVRUN" image diff two:2 changed
	expect_status 1
	expect_in "$output" "D /etc/hard" "A /etc/new"
	runs changed
}

@test "one image of an archive for several platforms is loaded" {
	need_root
	two_images
	"$SVRUN" image import "$ROOTFS" arm --arch arm64 >"$T/arm"
	"$SVRUN" image save -q one arm --format oci-dir -o "$T/dir"
	# One name, two platforms: as an index, and as two entries.
	jq -c '.manifests[].annotations."org.opencontainers.image.ref.name" = "app"' "$T/dir/index.json" >"$T/flat"
	jq -c 'del(.manifests[].annotations)' "$T/dir/index.json" >"$T/index"
	cp "$T/flat" "$T/dir/index.json"
	other_store
	[ "$("$SVRUN" image load -q "$T/dir")" = "app $(<"$T/one")" ]
	[ "$("$SVRUN" image load -q "$T/dir" --platform linux/arm64)" = "app $(<"$T/arm")" ]
	d=$(sha256sum <"$T/index" | cut -d' ' -f1)
	cp "$T/index" "$T/dir/blobs/sha256/$d"
	jq -n --arg d "sha256:$d" --argjson n "$(stat -c %s "$T/index")" '{schemaVersion: 2, manifests: [{
		mediaType: "application/vnd.oci.image.index.v1+json", digest: $d, size: $n,
		annotations: {"org.opencontainers.image.ref.name": "app"}}]}' >"$T/dir/index.json"
	other_store
	[ "$("$SVRUN" image load -q "$T/dir")" = "app $(<"$T/one")" ]
	run "$SVRUN" image load -q "$T/dir" --platform linux/riscv64
	expect_status 125
	expect_in "$output" "no image for the platform linux/riscv64"
}

@test "an image without a name needs one" {
	need_root
	two_images
	"$SVRUN" image save -q "$(<"$T/one")" -o "$T/a.tar"
	other_store
	run "$SVRUN" image load -q "$T/a.tar"
	expect_status 2
	expect_in "$output" "its image has no name" "--name"
	[ "$(blobs)" = 0 ]
	[ "$("$SVRUN" image load -q "$T/a.tar" --name mine)" = "mine $(<"$T/one")" ]
	first_store
	"$SVRUN" image save -q one two:2 -o "$T/a.tar"
	run "$SVRUN" image load -q "$T/a.tar" --name mine
	expect_status 2
	expect_in "$output" "holds 2 images"
}

@test "an archive that is cut off, damaged or none leaves nothing" {
	need_root
	two_images
	"$SVRUN" image save -q one -o "$T/a.tar"
	other_store
	size=$(stat -c %s "$T/a.tar")
	for n in 0 100 600 3000 $((size / 2)) $((size - 4000)); do
		head -c "$n" "$T/a.tar" >"$T/cut.tar"
		run "$SVRUN" image load -q "$T/cut.tar"
		expect_status 125
		[ -z "$("$SVRUN" image ls -q)" ]
		[ "$(blobs)" = 0 ]
	done
	cp "$T/a.tar" "$T/bad.tar"
	printf X | dd of="$T/bad.tar" bs=1 seek=$((size / 2)) conv=notrunc status=none
	run "$SVRUN" image load -q - <"$T/bad.tar"
	expect_status 125
	expect_in "$output" "standard input: blobs/sha256/" "expected sha256:" "found sha256:"
	[ "$(blobs)" = 0 ]
	tar -C "$T/rootfs" -cf "$T/none" bin
	run "$SVRUN" image load -q "$T/none"
	expect_status 125
	expect_in "$output" "no index.json and no manifest.json" "svrun image import"
	run "$SVRUN" image load -q "$T/none.tar"
	expect_status 125
	expect_in "$output" "none.tar: No such file or directory"
}

@test "what cannot be written whole gets no name" {
	need_root
	two_images
	new_disk 2M
	for command in "save -q one" "save -q one --format docker-archive" "export one --progress none"; do
		# shellcheck disable=SC2086
		run "$SVRUN" image $command -o "$MOUNT/x.tar"
		expect_status 125
		expect_in "$output" "No space left on device"
		[ ! -e "$MOUNT/x.tar" ]
	done
	run "$SVRUN" image save -q one --format oci-dir -o "$MOUNT/dir"
	expect_status 125
	[ "$(ls -A "$MOUNT")" = lost+found ]
	# A reader that goes away.
	run bash -c "set -o pipefail; '$SVRUN' image save -q one 2>'$T/err' | head -c 10 >/dev/null"
	expect_status 125
	expect_in "$(<"$T/err")" "write standard output: Broken pipe"
	run bash -c "set -o pipefail; '$SVRUN' image export one --progress none 2>'$T/err' | head -c 10 >/dev/null"
	expect_status 125
	expect_in "$(<"$T/err")" "write standard output: Broken pipe"
}

@test "a pulled image is saved whole: its layers come from the registry, or out of the pool" {
	need_root
	need_program skopeo
	podman_setup
	two_images
	"$SVRUN" image export one >"$T/export.tar"
	"$SVRUN" image save -q one -o "$T/one.tar"
	registry_plain
	copy --dest-tls-verify=false "oci-archive:$T/one.tar" "docker://$REGISTRY/one:own"
	copy --dest-tls-verify=false "docker-archive:$(docker_form)" "docker://$REGISTRY/one:foreign"
	other_store
	jq -n --arg r "$REGISTRY" '{registries: {($r): {"plain-http": true}}}' >"$T/config.json"
	export SVRUN_CONFIG=$T/config.json
	"$SVRUN" image pull -q "$REGISTRY/one:own" "$REGISTRY/one:foreign"
	[ "$(blobs)" -lt 8 ] # no layers
	"$SVRUN" image save -q "$REGISTRY/one:own" "$REGISTRY/one:foreign" -o "$T/both.tar"
	"$SVRUN" image save -q "$REGISTRY/one:foreign" --format docker-archive -o "$T/foreign.tar"
	own=$("$SVRUN" image inspect "$REGISTRY/one:own" | jq -r .digest)
	[ "$own" = "$(<"$T/one")" ]
	rm -rf --one-file-system "$SVRUN_ROOT"
	"$SVRUN" image load -q "$T/both.tar" | sort >"$T/loaded"
	expect_in "$(<"$T/loaded")" "$REGISTRY/one:own $own" "$REGISTRY/one:foreign sha256:"
	same_files "$REGISTRY/one:own"
	same_files "$REGISTRY/one:foreign"
	"$SVRUN" image verify --all >/dev/null
	rm -rf --one-file-system "$SVRUN_ROOT"
	"$SVRUN" image load -q "$T/foreign.tar"
	same_files "$REGISTRY/one:foreign"
}

@test "a store that gets full while an archive is loaded keeps nothing of it" {
	need_root
	two_images
	"$SVRUN" image save -q one -o "$T/a.tar"
	new_disk 6M
	export SVRUN_ROOT=$MOUNT/store
	run "$SVRUN" image load -q "$T/a.tar"
	expect_status 125
	expect_in "$output" "No space left on device"
	[ -z "$("$SVRUN" image ls -q)" ]
	[ "$(blobs)" = 0 ]
}

@test "a terminal is no place for an archive" {
	need_root
	need_program script
	two_images
	for command in "save one" "export one"; do
		run script -qec "'$SVRUN' image $command" /dev/null
		expect_in "$output" "standard output is a terminal"
	done
	run script -qec "'$SVRUN' image load" /dev/null
	expect_in "$output" "standard input is a terminal"
}

@test "a root file system is imported, however it is compressed, and its config is what was asked" {
	need_root
	make_rootfs
	new_store
	options=(--entrypoint /bin/hello --cmd '["a b"]' -e A=1 -e B= -w /etc
		-c User=0:0 -c 'Labels={"x": "y"}' -c 'ExposedPorts={"80/tcp": {}}')
	plain=$("$SVRUN" image import "$ROOTFS" plain "${options[@]}")
	for program in gzip zstd xz bzip2; do
		[ "$($program -qc <"$ROOTFS" | "$SVRUN" image import - "by-$program" "${options[@]}")" = "$plain" ]
	done
	"$SVRUN" image inspect plain | jq -e '.config == {Entrypoint: ["/bin/hello"], Cmd: ["a b"],
		Env: ["A=1", "B="], WorkingDir: "/etc", User: "0:0", Labels: {x: "y"}, ExposedPorts: {"80/tcp": {}}}'
	"$SVRUN" image inspect plain | jq -e '.index and .architecture'
	[ "$("$SVRUN" run --rm plain)" = "a b" ]
	"$SVRUN" image export plain -o "$T/export.tar"
	"$SVRUN" image export plain | cmp - "$T/export.tar"
	"$SVRUN" image import "$T/export.tar" again "${options[@]}"
	run "$SVRUN" image diff --times plain again
	expect_status 0
	mkdir "$T/out"
	tar -C "$T/out" -xpf "$T/export.tar" --same-owner
	diff -r --no-dereference "$T/out/etc/big" "$T/rootfs/etc/big"
	[ "$(stat -c %i "$T/out/etc/big")" = "$(stat -c %i "$T/out/etc/hard")" ]
	[ "$(stat -c '%a %F' "$T/out/bin/hello")" = "4755 regular file" ]
	[ "$(stat -c '%u:%g' "$T/out/etc")" = 12:34 ]
	[ "$(stat -c '%F %t,%T' "$T/out/dev/null")" = "character special file 1,3" ]
}

@test "import refuses configurations and tars that are none" {
	need_root
	make_rootfs
	new_store
	local cases=(
		'-c Usr=1|no member '\''Usr'\''|did you mean User?'
		'-c User|expected KEY=VALUE'
		'-c Env=x|expected a JSON array of strings'
		'-c Labels=[]|expected a JSON object of strings'
		'-c Volumes={"/a":1}|whose values are {}'
		'-e =1|expected NAME=VALUE'
		'-w etc|expected an absolute path'
		'--cmd [1]|expected a JSON array of strings'
		'--compression lz4|expected zstd, gzip or none'
	)
	for line in "${cases[@]}"; do
		IFS='|' read -r options text more <<<"$line"
		# shellcheck disable=SC2086
		run "$SVRUN" image import "$ROOTFS" x $options
		expect_status 2
		expect_in "$output" "$text" "$more"
	done
	run "$SVRUN" image import "$ROOTFS" 'No Name'
	expect_status 2
	head -c 5000 /dev/urandom >"$T/noise"
	run "$SVRUN" image import "$T/noise" x --progress none
	expect_status 125
	head -c 1000000 "$ROOTFS" >"$T/cut"
	run "$SVRUN" image import "$T/cut" x --progress none
	expect_status 125
	[ -z "$("$SVRUN" image ls -q)" ]
}
