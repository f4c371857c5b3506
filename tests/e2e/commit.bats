#!/usr/bin/env bats
# svrun image commit: a container's changes as an image.

load helpers

# An image "box" of busybox and some files, in a store of its own.
make_box() {
	need_root
	need_program busybox
	new_store
	local root=$T/root name
	mkdir -p "$root"/{bin,etc,tmp,old/sub,gone}
	cp "$(command -v busybox)" "$root/bin/busybox"
	for name in sh ls cat rm mkdir mv ln chmod chown echo touch sleep mkfifo mknod stat find sync; do
		ln -s busybox "$root/bin/$name"
	done
	echo one >"$root/etc/one"
	ln "$root/etc/one" "$root/etc/also"
	echo two >"$root/etc/two"
	echo a >"$root/old/a"
	echo b >"$root/old/sub/b"
	echo c >"$root/gone/c"
	find "$root" -exec touch -h -d 2001-01-01 {} +
	tar -C "$root" --sort=name -c . |
		"$SVRUN" image import - box --progress none --cmd /bin/sh -e A=1 -e B=2 "$@" >/dev/null
}

# Run a script in a container that stays.
change() { # NAME SCRIPT [OPTION...]
	local name=$1 script=$2
	shift 2
	"$SVRUN" run --name "$name" "$@" box sh -c "$script"
}

# All that a program sees of the files: types, modes, owners, sizes, targets, contents.
look='cd /; find bin etc tmp old gone new very -exec stat -c "%n %F %a %u:%g %s %N" {} + 2>/dev/null;
	cat /etc/* /old/* /new/* /very/deep/* 2>/dev/null | /bin/busybox md5sum'

commit() { # OPTION... INSTANCE NAME
	"$SVRUN" image commit --progress none "$@"
}

@test "what a container changed is in the image, and nothing else" {
	make_box
	change c 'echo changed >/etc/one; rm /etc/two; rm -r /gone; rm -r /old; mkdir /old; echo n >/old/n;
		mkdir -p /very/deep; echo d >/very/deep/d; ln -s /x /tmp/l; mkfifo -m 640 /tmp/f;
		ln /etc/one /etc/more; chmod 4751 /bin/busybox; chown 7:8 /very; chmod 1770 /tmp;
		touch /etc/also; mkdir /new; echo -n >/new/empty'
	"$SVRUN" run --rm box sh -c "$look" >"$T/before"
	commit c made >/dev/null
	"$SVRUN" run --rm made sh -c "$look" >"$T/after"
	cmp -s "$T/before" "$T/after" && fail "nothing changed"
	expect_in "$(<"$T/after")" "bin/busybox regular file 4751 0:0" "very directory 755 7:8" \
		"tmp directory 1770" "tmp/f fifo 640" "etc/one regular file 644 0:0 8" "etc/more regular file" \
		"etc/also regular file 644 0:0 4" "'tmp/l' -> '/x'" "old/n" "new/empty regular empty file"
	for name in etc/two gone old/a old/sub; do
		if grep "^$name " "$T/after"; then fail "$name is still there"; fi
	done
	# the layer has no more than that
	"$SVRUN" image save -q -o "$T/made.tar" made
	mkdir "$T/saved"
	tar -C "$T/saved" -xf "$T/made.tar"
	layer=$("$SVRUN" image inspect --format json made | jq -r '.layers[1].digest')
	zstd -dcq "$T/saved/blobs/sha256/${layer#sha256:}" | tar -t | LC_ALL=C sort >"$T/names"
	LC_ALL=C sort <<-'EOF' | diff "$T/names" -
		bin/
		bin/busybox
		etc/
		etc/.wh.two
		etc/more
		etc/one
		.wh.gone
		new/
		new/empty
		old/
		old/n
		old/.wh.a
		old/.wh.sub
		tmp/
		tmp/f
		tmp/l
		very/
		very/deep/
		very/deep/d
	EOF
}

@test "the layers below stay as they are; the history says who made the new one" {
	make_box
	change c 'echo x >/etc/x'
	commit -m "my message" c made >/dev/null
	"$SVRUN" image inspect --format json box >"$T/box.json"
	"$SVRUN" image inspect --format json made >"$T/made.json"
	jq -e --slurpfile box "$T/box.json" '.layers[0] == $box[0].layers[0] and (.layers | length) == 3' "$T/made.json"
	jq -e --slurpfile box "$T/box.json" '.annotations["org.opencontainers.image.base.digest"] == $box[0].digest
		and .annotations["org.opencontainers.image.base.name"] == "box"' "$T/made.json"
	config=$(jq -r .imageId "$T/made.json")
	jq -e '[.history[] | .created_by] == ["svrun layer import", "svrun image commit", "svrun layer index"]
		and .history[1].comment == "my message" and (.rootfs.diff_ids | length) == 3' \
		"$SVRUN_ROOT/blobs/sha256/${config#sha256:}"
	"$SVRUN" image verify made box
}

@test "the same changes are the same bytes, wherever and whenever" {
	make_box
	change c 'echo x >/etc/x; rm /etc/two; mkdir /new; echo y >/new/y; ln /new/y /new/z'
	first=$(commit -m m -c "ENV A=2" c made)
	sleep 1
	[ "$(commit -m m -c "ENV A=2" c again)" = "$first" ]
	"$SVRUN" image rm made again >/dev/null
	"$SVRUN" image gc >/dev/null 2>&1
	[ "$(taskset -c 0 "$SVRUN" image commit --progress none -m m -c "ENV A=2" c made)" = "$first" ]
	# another store, the same upper folder
	local upper=$SVRUN_ROOT/instances/c/upper
	mv "$SVRUN_ROOT" "$T/first"
	SVRUN_ROOT=$T/second
	tar -C "$T/root" --sort=name -c . |
		"$SVRUN" image import - box --progress none --cmd /bin/sh -e A=1 -e B=2 >/dev/null
	change c true
	rm -r "$SVRUN_ROOT/instances/c/upper"
	cp -a "${upper/"$T/store"/"$T/first"}" "$SVRUN_ROOT/instances/c/upper"
	[ "$(commit -m m -c "ENV A=2" c made)" = "$first" ]
}

@test "changes to the configuration" {
	make_box
	change c 'echo x >/etc/x'
	commit -c 'ENV A=x y' -c 'ENV C="3"' -c 'CMD ["sh", "-c", "echo $A $B $C $0; cd; pwd", "word"]' \
		-c 'WORKDIR /etc' -c 'LABEL l=v' -c 'EXPOSE 80 53/udp' -c 'USER 5:6' c made >/dev/null
	run_split "$SVRUN" run --rm made
	expect_status 0
	expect_in "$out" "x y 2 3 word"
	"$SVRUN" image inspect --format json made | jq -e '.config | .User == "5:6" and .WorkingDir == "/etc"
		and .Labels.l == "v" and (.ExposedPorts | keys) == ["53/udp", "80/tcp"]'
	for bad in 'ENV A' 'VOLUME /x' 'CMD [' 'WORKDIR etc' 'EXPOSE x' 'RUN ls'; do
		run_split "$SVRUN" image commit --progress none -c "$bad" c other
		expect_status 2
		expect_in "$err" "--change '$bad'"
	done
	run "$SVRUN" image inspect other
	[ "$status" != 0 ]
}

@test "no change makes no layer; one on top of another makes one more" {
	make_box
	change c true
	commit c same >/dev/null
	[ "$("$SVRUN" image inspect --format json same | jq '.layers | length')" = 2 ]
	change d 'echo 1 >/etc/1'
	commit d one >/dev/null
	"$SVRUN" run --name e one sh -c 'echo 2 >/etc/2; rm /etc/1'
	commit e two >/dev/null
	[ "$("$SVRUN" image inspect --format json two | jq '.layers | length')" = 4 ]
	run_split "$SVRUN" run --rm two sh -c 'cat /etc/2; ls /etc/1'
	expect_status 1
	[ "$out" = 2 ]
	"$SVRUN" image verify two
}

@test "devices and sockets are left out, aloud" {
	make_box
	change c 'mknod /tmp/null c 1 3; rm /etc/two; mknod /etc/two b 7 0; echo x >/tmp/x' --cap-add MKNOD
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' \
		"$SVRUN_ROOT/instances/c/upper/tmp/socket"
	run_split "$SVRUN" image commit --progress none c made
	expect_status 0
	expect_in "$err" "/tmp/null is a device node, which no image holds: left out" \
		"/tmp/socket is a socket" "/etc/two is a device node"
	run_split "$SVRUN" run --rm made sh -c 'cd /tmp; ls; ls /etc/two'
	[ "$out" = x ] || fail "$out"
}

@test "a container that runs stands still meanwhile, and goes on" {
	make_box
	"$SVRUN" run --name c box sh -c 'i=0; while :; do i=$((i + 1)); echo $i >/new; mv /new /count; done' 3>&- &
	local pid=$! before after
	for _ in $(seq 100); do
		[ -s "$SVRUN_ROOT/instances/c/upper/count" ] && break
		sleep 0.05
	done
	commit c made >/dev/null
	run_split "$SVRUN" run --rm made cat /count
	expect_status 0
	[[ $out =~ ^[0-9]+$ ]]
	before=$(<"$SVRUN_ROOT/instances/c/upper/count")
	sleep 0.3
	after=$(<"$SVRUN_ROOT/instances/c/upper/count")
	[ "$before" != "$after" ]
	# whatever becomes of the commit
	for delay in 0.001 0.005 0.01 0.02 0.03; do
		"$SVRUN" image commit --progress none c other >/dev/null 2>&1 3>&- &
		sleep $delay
		kill -KILL $! 2>/dev/null || true
		wait $! || true
	done
	sleep 0.3
	before=$(<"$SVRUN_ROOT/instances/c/upper/count")
	sleep 0.3
	after=$(<"$SVRUN_ROOT/instances/c/upper/count")
	[ "$before" != "$after" ]
	kill -TERM $pid
	wait $pid || true
	commit c last >/dev/null
	[ "$("$SVRUN" run --rm last cat /count)" -ge "$after" ]
}

@test "there must be a container, its image and a name" {
	make_box
	run_split "$SVRUN" image commit none made
	expect_status 125
	expect_in "$err" "no container 'none'" "svrun ps lists them"
	run_split "$SVRUN" image commit ../x made
	expect_status 125
	change c true
	run_split "$SVRUN" image commit c 'Bad Name'
	expect_status 2
	"$SVRUN" image rm box >/dev/null
	run_split "$SVRUN" image commit c made
	expect_status 125
	expect_in "$err" "the container's image box"
}

@test "gzip stays gzip, so that whoever reads the lower layers can read this one" {
	make_box --compression gzip
	change c 'echo x >/etc/x'
	commit c made >/dev/null
	"$SVRUN" image inspect --format json made | jq -e '[.layers[].mediaType | endswith("tar+gzip")] | all'
	[ "$("$SVRUN" run --rm made cat /etc/x)" = x ]
}

@test "a committed image is like any other: other tools read it" {
	need_program skopeo
	make_box
	change c 'echo x >/etc/x; rm /etc/two'
	commit c made >/dev/null
	skopeo copy -q "oci:$SVRUN_ROOT:made" "dir:$T/copy"
	skopeo inspect "dir:$T/copy" | jq -e '.Layers | length == 3'
}
