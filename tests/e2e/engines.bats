#!/usr/bin/env bats
# Second opinions: containerd, podman and docker pull what svrun pushes, and svrun pulls what they push. The
# trees are equal, and programs run.

load helpers
load registry
load podman

more_teardown() {
	podman_teardown
	servers_stop
	# What docker's containers were in; it leaves the folder.
	[ -z "${DOCKER_GROUP-}" ] || rmdir /sys/fs/cgroup/{,*/}"$DOCKER_GROUP" 2>/dev/null || true
}

# ---- trees ----

# All that a tree says, a line a path: type, mode, owner, time, which path it is a hard link of, what it holds, xattrs.
# But for: folder-times (of folders that a layer changes or makes without naming them), user-xattrs.
describe_tree() { # FOLDER [BUT-FOR...]
	python3 - "$@" <<-'PY'
		import hashlib, os, stat, sys
		top, but, first = sys.argv[1], sys.argv[2:], {}
		skip = ("trusted.", "user.") if "user-xattrs" in but else ("trusted.",)
		for path in sorted(os.path.join(d, n) for d, dirs, files in os.walk(top) for n in dirs + files):
		    name, s = os.path.relpath(path, top), os.lstat(path)
		    line = [name, oct(s.st_mode), s.st_uid, s.st_gid]
		    if not stat.S_ISDIR(s.st_mode):
		        like = first.setdefault((s.st_dev, s.st_ino), name)
		        line.append("like " + like if like != name else "-")
		    if not stat.S_ISDIR(s.st_mode) or "folder-times" not in but:
		        line.append(int(s.st_mtime))
		    if stat.S_ISLNK(s.st_mode):
		        line.append(os.readlink(path))
		    elif stat.S_ISREG(s.st_mode):
		        line.append(hashlib.sha256(open(path, "rb").read()).hexdigest())
		    else:
		        line.append(s.st_rdev)
		    line += [(x, os.getxattr(path, x, follow_symlinks=False))
		             for x in sorted(os.listxattr(path, follow_symlinks=False)) if not x.startswith(skip)]
		    print(*line)
	PY
}

# The image NAME of the store has the tree that an engine shows.
expect_tree_of() { # NAME FOLDER [BUT-FOR...]
	local name=$1
	shift
	rm -rf "$T/mine"
	mkdir "$T/mine"
	"$SVRUN" image export --progress none "$name" | tar -x -p --xattrs --xattrs-include='*' --numeric-owner -C "$T/mine"
	describe_tree "$T/mine" "${@:2}" >"$T/mine.tree"
	describe_tree "$@" >"$T/theirs.tree"
	[ "$(wc -l <"$T/mine.tree")" -gt 25 ] || fail "only $(wc -l <"$T/mine.tree") paths" || return 1
	diff "$T/theirs.tree" "$T/mine.tree" >"$T/diff" || fail "$(head -n 20 "$T/diff" | cut -c 1-300)"
}

# ---- images ----

# Three layers of others, with a program, in $T/foreign.
make_foreign() { # [OPTION...]
	make_foreign_image "$T/foreign" it --files 20 --big 300000 --program "$WORK/hello" "$@"
}

# An image of ours as `own`, in a store of the test's own.
build_own() {
	empty_store
	make_app own '.files += [{dest: "/big", from: "big"}, {dest: "/sticky", from: "text", mode: "1755"}]
		+ [range(40) | {dest: "/small/\(.)", inline: "file \(.)\n"}]'
	python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(7).randbytes(3000000))' >"$T/own/big"
	lock_and_build "$T/own" >"$T/own.log"
}

push() { # [OPTION...] IMAGE REF
	"$SVRUN" image push -q --plain-http "$@" >"$T/push.out"
}

# own:zstd, own:gzip, own:none, and mine:zstd, mine:gzip: what `convert` makes of an image with whiteouts, hard links and
# xattrs. The store has them as own and mine.
push_ours() { # [OPTION of make_foreign...]
	local codec
	registry_plain
	make_foreign "$@"
	build_own
	push_with_skopeo "$T/foreign" it foreign:1
	pull "$REGISTRY/foreign:1"
	expect_status 0
	SVRUN_CONFIG=$T/plain.json
	jq -n --arg h "$REGISTRY" '{registries: {($h): {"plain-http": true}}}' >"$SVRUN_CONFIG"
	export SVRUN_CONFIG
	"$SVRUN" image convert -q foreign:1 mine >"$T/convert.out"
	for codec in zstd gzip none; do
		push --compression "$codec" own "$REGISTRY/own:$codec"
	done
	for codec in zstd gzip; do
		push --compression "$codec" mine "$REGISTRY/mine:$codec"
	done
}

# Layers that svrun builds name all folders. Sets BUT_FOR.
but_for() { # NAME:TAG
	BUT_FOR=()
	[[ $1 == own:* ]] || BUT_FOR=(folder-times)
}

# Pull REF anew, compare it with the engine's FOLDER, and run its program.
expect_pulled() { # REF FOLDER [BUT-FOR...]
	empty_store
	pull "$1"
	expect_status 0
	expect_tree_of "$@"
	[ "$("$SVRUN" run --rm --entrypoint /usr/bin/hello "$1" cat /etc/passwd)" = "root:x:0:0:root:/root:/bin/sh" ]
	"$SVRUN" image verify "$1" >"$T/verify.out"
}

layer_types() { # NAME:TAG
	skopeo_ok inspect --raw --tls-verify=false "docker://$REGISTRY/$1" | jq -r '.layers[].mediaType' | sort -u
}

# ---- podman ----

podman_pull() { # REF
	podman_do pull -q --tls-verify=false --signature-policy "$T/policy.json" "$1" >"$T/pulled"
}

# ---- containerd ----

containerd_start() {
	local i
	need_program containerd
	need_program ctr
	need_program runc
	cat >"$T/containerd.toml" <<-TOML
		version = 2
		root = "$T/containerd/root"
		state = "$T/containerd/state"
		disabled_plugins = ["io.containerd.grpc.v1.cri"]
		[grpc]
		  address = "$T/containerd.sock"
	TOML
	# Descriptor 3 is what bats waits for.
	containerd -c "$T/containerd.toml" >"$T/containerd.out" 2>&1 3>&- </dev/null &
	SERVERS+=($!)
	for ((i = 0; i < 200; i++)); do
		ctr_ok version >"$T/ctr.out" 2>&1 && break
		sleep 0.05
	done
	ctr_ok version >"$T/ctr.out" || fail "$(<"$T/containerd.out")" || return 1
	# Overlayfs where it works on $T's file system, else copies.
	if ctr_ok plugins ls | grep -Eq 'snapshotter.* overlayfs .* ok'; then
		export CONTAINERD_SNAPSHOTTER=overlayfs
	else
		export CONTAINERD_SNAPSHOTTER=native
	fi
}

ctr_ok() {
	ctr --address "$T/containerd.sock" -n svrun-test "$@" 3>&-
}

# containerd's view of an image, in $TREE.
ctr_tree() { # REF
	TREE=$T/tree.$((RANDOM))
	mkdir "$TREE"
	ctr_ok image mount "$1" "$TREE" >"$T/ctr.out"
}

# ---- docker: no network, no firewall rules ----

docker_start() {
	local i
	need_program dockerd
	need_program docker
	need_program runc
	DOCKER_GROUP=${T##*/}.docker
	# else it makes a key of its own in /etc
	jq -n --arg key "$T/docker.key" '{"deprecated-key-path": $key}' >"$T/docker.json"
	dockerd --config-file "$T/docker.json" --data-root "$T/docker" --exec-root "$T/docker-exec" \
		--pidfile "$T/docker.pid" -H "unix://$T/docker.sock" --iptables=false --ip6tables=false \
		--ip-forward=false --bridge=none --storage-driver vfs --cgroup-parent "/$DOCKER_GROUP" \
		>"$T/docker.out" 2>&1 3>&- </dev/null &
	SERVERS+=($!)
	for ((i = 0; i < 200; i++)); do
		docker_ok version >"$T/docker.version" 2>&1 && return
		sleep 0.05
	done
	fail "$(<"$T/docker.out")"
}

docker_ok() {
	docker --config "$T/docker-client" -H "unix://$T/docker.sock" "$@" 3>&-
}

# The folder of the image that a new container is made of, as the vfs driver keeps it, in $TREE.
docker_tree() { # REF
	local id chain db=$T/docker/image/vfs/layerdb
	id=$(docker_ok create "$1" none)
	chain=$(<"$db/mounts/$id/parent")
	TREE=$T/docker/vfs/dir/$(<"$db/sha256/${chain#sha256:}/cache-id")
}

# ---- what svrun pushes ----

@test "podman pulls and runs what svrun pushes" {
	need_root
	need_program runc
	need_program skopeo
	podman_setup
	hello_program
	push_ours
	local name
	for name in own:zstd own:gzip own:none mine:zstd mine:gzip; do
		podman_pull "$REGISTRY/$name"
		but_for "$name"
		expect_tree_of "${name%:*}" "$(podman_do image mount "$REGISTRY/$name")" "${BUT_FOR[@]}"
		podman_do image umount "$REGISTRY/$name" >"$T/umount.out"
	done
	run podman_run "$REGISTRY/own:zstd" cat /small/7
	expect_status 0
	expect_in "$output" "file 7"
	run podman_run --entrypoint /usr/bin/hello "$REGISTRY/mine:zstd" cat /etc/passwd
	expect_status 0
	expect_in "$output" "root:x:0:0"
}

@test "containerd pulls and runs what svrun pushes" {
	need_root
	need_program skopeo
	containerd_start
	hello_program
	push_ours
	local name
	for name in own:zstd own:gzip own:none mine:zstd mine:gzip; do
		ctr_ok image pull --plain-http "$REGISTRY/$name" >"$T/ctr.out"
		ctr_tree "$REGISTRY/$name"
		but_for "$name"
		expect_tree_of "${name%:*}" "$TREE" "${BUT_FOR[@]}"
		umount "$TREE"
	done
	[ "$(ctr_ok run --rm --cgroup "" "$REGISTRY/own:zstd" one /bin/hello cat /small/7)" = "file 7" ]
	[ "$(ctr_ok run --rm --cgroup "" "$REGISTRY/mine:gzip" two /usr/bin/hello cat /etc/passwd)" = \
		"root:x:0:0:root:/root:/bin/sh" ]
}

@test "docker pulls and runs what svrun pushes" {
	need_root
	need_program skopeo
	docker_start
	hello_program
	push_ours --all-folders
	local name codecs="gzip none"
	# zstd since 23
	[ "$(docker_ok version -f '{{.Server.Version}}' | cut -d. -f1)" -lt 23 ] || codecs="zstd $codecs"
	for codec in $codecs; do
		docker_ok pull -q "$REGISTRY/own:$codec" >"$T/docker.log"
		docker_tree "$REGISTRY/own:$codec"
		expect_tree_of own "$TREE"
	done
	docker_ok pull -q "$REGISTRY/mine:gzip" >"$T/docker.log"
	docker_tree "$REGISTRY/mine:gzip"
	# its vfs driver copies no other xattrs
	expect_tree_of mine "$TREE" folder-times user-xattrs
	run docker_ok run --rm --network none "$REGISTRY/own:gzip" cat /small/7
	expect_status 0
	expect_in "$output" "file 7"
}

# ---- what svrun pulls ----

# A layer of podman's own on top of a foreign image, as localhost/new:1, and its folder in $TREE: hides,
# changes, and links. The layers are not too small: podman 4.3 fails to write some such as zstd:chunked ("short write").
podman_commit() {
	local container root
	make_foreign --big 3000000
	skopeo_ok copy -q "oci:$T/foreign:it" "containers-storage:[vfs@$T/podman/root+$T/podman/run]localhost/foreign:1"
	container=$(podman_do create localhost/foreign:1)
	root=$(podman_do mount "$container")
	rm -r "$root/usr/share/deep/deep/deep" "$root/app" "$root/var/cache"
	ln -s /tmp "$root/var/cache"
	mkdir "$root/new"
	chmod 2775 "$root/new"
	chown -h 1000:50 "$root/new"
	head -c 2000000 /dev/urandom >"$root/new/random"
	truncate -s 5000000 "$root/new/hole"
	ln "$root/new/random" "$root/new/same"
	chmod 4711 "$root/usr/bin/ping"
	python3 -c 'import os, sys
os.setxattr(sys.argv[1], "user.new", b"\0\xff=\n")
os.setxattr(sys.argv[1], "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))' \
		"$root/new/random"
	podman_do umount "$container" >"$T/umount.out"
	podman_do commit -q --change 'ENTRYPOINT ["/usr/bin/hello"]' "$container" localhost/new:1 >"$T/commit.out"
	TREE=$(podman_do image mount localhost/new:1)
}

podman_push() { # TAG [OPTION...]
	local name=$1
	shift
	# a registry of its own, else podman mounts what it has pushed in another format
	registry_plain "registry-$name"
	podman_do push -q --tls-verify=false "$@" localhost/new:1 "docker://$REGISTRY/new:$name"
}

@test "svrun pulls and runs what podman pushes: gzip, zstd, zstd:chunked, schema 2" {
	need_root
	need_program runc
	need_program skopeo
	podman_setup
	hello_program
	podman_commit
	podman_push gzip --compression-format gzip
	[ "$(layer_types new:gzip)" = application/vnd.oci.image.layer.v1.tar+gzip ]
	expect_pulled "$REGISTRY/new:gzip" "$TREE" folder-times
	[ "$("$SVRUN" run --rm new:gzip one)" = one ]
	podman_push zstd --compression-format zstd
	[ "$(layer_types new:zstd)" = application/vnd.oci.image.layer.v1.tar+zstd ]
	expect_pulled "$REGISTRY/new:zstd" "$TREE" folder-times
	podman_push chunked --compression-format zstd:chunked
	skopeo_ok inspect --raw --tls-verify=false "docker://$REGISTRY/new:chunked" | jq -e '[.layers[].annotations
		| has("io.containers.zstd-chunked.manifest-checksum")] | all'
	expect_pulled "$REGISTRY/new:chunked" "$TREE" folder-times
	podman_push v2s2 --format v2s2
	[ "$(layer_types new:v2s2)" = application/vnd.docker.image.rootfs.diff.tar.gzip ]
	expect_pulled "$REGISTRY/new:v2s2" "$TREE" folder-times
}

@test "svrun pulls and runs what containerd pushes: an index, and layers that it wrote" {
	need_root
	need_program skopeo
	containerd_start
	hello_program
	registry_plain
	make_foreign
	tar -cf "$T/foreign.tar" -C "$T/foreign" .
	ctr_ok image import --index-name "$REGISTRY/foreign:1" "$T/foreign.tar" >"$T/ctr.out"
	ctr_tree "$REGISTRY/foreign:1"
	ctr_ok image push --plain-http "$REGISTRY/foreign:1" >"$T/ctr.out"
	skopeo_ok inspect --raw --tls-verify=false "docker://$REGISTRY/foreign:1" | jq -e '.manifests | length == 1'
	expect_pulled "$REGISTRY/foreign:1" "$TREE" folder-times
	ctr_ok image convert --uncompress "$REGISTRY/foreign:1" "$REGISTRY/plain:1" >"$T/ctr.out"
	ctr_ok image push --plain-http "$REGISTRY/plain:1" >"$T/ctr.out"
	expect_pulled "$REGISTRY/plain:1" "$TREE" folder-times
	[ "$("$SVRUN" image inspect plain:1 | jq -r '.layers[0].mediaType')" = application/vnd.oci.image.layer.v1.tar ]
	umount "$TREE"
}

@test "svrun pulls and runs what docker pushes" {
	need_root
	need_program skopeo
	docker_start
	hello_program
	registry_plain
	make_foreign --all-folders
	push_with_skopeo "$T/foreign" it foreign:1
	docker_ok pull -q "$REGISTRY/foreign:1" >"$T/docker.log"
	docker_ok create --name change "$REGISTRY/foreign:1" >"$T/docker.log"
	docker_ok cp "$T/foreign" change:/new
	docker_ok cp "$WORK/hello" change:/app
	docker_ok commit change "$REGISTRY/new:1" >"$T/docker.log"
	docker_ok push -q "$REGISTRY/new:1" >"$T/docker.log"
	[ "$(layer_types new:1)" = application/vnd.docker.image.rootfs.diff.tar.gzip ]
	docker_tree "$REGISTRY/new:1"
	expect_pulled "$REGISTRY/new:1" "$TREE" folder-times user-xattrs
	[ "$("$SVRUN" run --rm new:1 two)" = two ]
}
