#!/usr/bin/env bats
# The container's file tree through svrun-oci: every mount option as it shows inside, devices, the root, and
# what links and races can and cannot do.

load helpers
load oci

setup() {
	oci_setup
	V=$T/vol
	mkdir -p "$V/sub"
	echo text >"$V/file"
}

teardown() {
	[ -z "${SWAPPER-}" ] || kill "$SWAPPER" 2>/dev/null || true
	oci_teardown
}

# Add a mount to the bundle's config.
add_mount() { # DESTINATION TYPE SOURCE OPTION...
	change_config "$B" '.mounts += [{destination: $d, type: $t, source: $s, options: ($o | split(" "))}]' \
		--arg d "$1" --arg t "$2" --arg s "$3" --arg o "${*:4}"
}

# Run SCRIPT inside: $status, $out, $err.
inside() { # SCRIPT
	set_script "$B" "$1"
	run_split oci run --bundle "$B" "$ID"
}

# A user namespace whose root is 100000 outside.
user_namespace() {
	change_config "$B" '.linux.namespaces += [{type: "user"}, {type: "cgroup"}] |
		.linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}] |
		.linux.gidMappings = .linux.uidMappings'
	chown -R 100000:100000 "$B/rootfs"
	chmod 755 "$T" "$B"
}

# ---- binds ----

@test "a bind's source may be a folder, a file, a socket or a device, also relative to the bundle" {
	mkdir "$B/own"
	echo relative >"$B/own/file"
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$V/sock"
	add_mount /a bind "$V" bind
	add_mount /b/c/file none "$V/file" bind
	add_mount /sock bind "$V/sock" bind
	add_mount /dev/other bind /dev/zero bind
	add_mount /d bind own bind
	inside 'cat /a/file /b/c/file /d/file; test -S /sock && test -c /dev/other && head -c 3 /dev/other | wc -c'
	expect_status 0
	[ "$out" = $'text\ntext\nrelative\n3' ] || fail "$out"
	expect_oci_clean
}

@test "bind takes one mount, rbind all that is mounted below it" {
	mount -t tmpfs tmpfs "$V/sub"
	echo nested >"$V/sub/file"
	add_mount /a bind "$V" bind
	add_mount /b bind "$V" rbind
	inside 'ls /a/sub; cat /b/sub/file'
	[ "$out" = nested ] || fail "$out"
}

@test "flags of a bind change where the options say so, and stay where they do not" {
	local flag
	mount -t tmpfs -o nosuid,noexec tmpfs "$V/sub"
	add_mount /kept bind "$V/sub" bind
	for flag in ro nosuid nodev noexec noatime nodiratime nosymfollow; do
		add_mount "/$flag" bind "$V" bind "$flag"
	done
	add_mount /cleared bind "$V/sub" bind suid exec strictatime
	add_mount /last bind "$V" bind ro rw
	inside 'grep -E " /(kept|cleared|last|ro|no[a-z]*) " /proc/self/mountinfo'
	expect_in "$out" ' /kept rw,nosuid,noexec,relatime ' ' /ro ro,relatime ' ' /nosuid rw,nosuid,relatime ' \
		' /nodev rw,nodev,relatime ' ' /noexec rw,noexec,relatime ' ' /noatime rw,noatime ' \
		' /nodiratime rw,nodiratime,relatime ' ' /nosymfollow rw,relatime,nosymfollow ' \
		' /cleared rw - ' ' /last rw,relatime ' || fail "$out"
}

@test "recursive flags reach what is mounted below, plain ones do not" {
	mount -t tmpfs tmpfs "$V/sub"
	add_mount /ro bind "$V" rbind ro
	add_mount /rro bind "$V" rbind rro
	add_mount /rno bind "$V" rbind rnosuid rnodev rnoexec rnoatime rnosymfollow
	add_mount /mixed bind "$V" rbind rro rw
	inside 'touch /ro/sub/x && ! touch /ro/x && ! touch /rro/x && ! touch /rro/sub/x && touch /mixed/x &&
		! touch /mixed/sub/x; grep " /rno" /proc/self/mountinfo'
	expect_status 0
	expect_in "$out" ' /rno rw,nosuid,nodev,noexec,noatime,nosymfollow ' \
		' /rno/sub rw,nosuid,nodev,noexec,noatime,nosymfollow ' || fail "$out"
}

@test "a link as source is followed, bound itself, or copied" {
	ln -s file "$V/link"
	ln -s elsewhere "$B/rootfs/there"
	ln -s missing "$V/dangling"
	add_mount /followed bind "$V/link" bind
	add_mount /copied bind "$V/dangling" bind copy-symlink
	add_mount /copied-file bind "$V/file" bind copy-symlink
	add_mount /there bind "$V/link" bind src-nofollow dest-nofollow
	inside 'cat /followed; readlink /copied; cat /copied-file; readlink /there'
	expect_status 0
	[ "$out" = $'text\nmissing\ntext\nfile' ] || fail "$out"
	# The same link may be there already; another may not.
	inside true
	expect_status 0
	ln -sfn other "$B/rootfs/copied"
	inside true
	[ "$status" != 0 ]
	expect_in "$err" "mount /copied: there is another link"
}

@test "remount changes what is mounted already" {
	add_mount /a bind "$V" bind
	add_mount /a bind "" bind remount ro nosuid
	add_mount /dev/shm tmpfs tmpfs remount size=1m nodev
	inside 'grep -E " /(a|dev/shm) " /proc/self/mountinfo'
	expect_status 0
	expect_in "$out" ' /a ro,nosuid,relatime ' 'size=1024k'
	add_mount /etc bind "" bind remount ro
	inside true
	[ "$status" != 0 ]
	expect_in "$err" "mount /etc:"
}

# ---- propagation ----

@test "a bind receives the host's mounts and gives none, unless its options say otherwise" {
	mount -t tmpfs tmpfs "$V/sub"
	mount --make-shared "$V/sub"
	add_mount /default bind "$V/sub" bind
	add_mount /slave bind "$V/sub" bind slave
	add_mount /private bind "$V/sub" rbind rprivate
	add_mount /shared bind "$V/sub" bind rshared
	add_mount /unbindable bind "$V/sub" bind unbindable
	inside 'grep -E " /(default|slave|private|shared|unbindable) " /proc/self/mountinfo | tr -d 0-9'
	expect_status 0
	expect_in "$out" ' /default rw,relatime master: - ' ' /slave rw,relatime master: - ' \
		' /private rw,relatime - ' ' /shared rw,relatime shared: master: - ' \
		' /unbindable rw,relatime unbindable - ' || fail "$out"
}

@test "what the host mounts shows in a slave, and in no private mount" {
	mount -t tmpfs tmpfs "$V/sub"
	mount --make-shared "$V/sub"
	mkdir "$V/sub/later"
	add_mount /slave bind "$V/sub" bind
	add_mount /private bind "$V/sub" bind private
	set_script "$B" 'until test -e /slave/later/x; do sleep 0.05; done; test ! -e /private/later/x'
	oci create --bundle "$B" "$ID"
	mount -t tmpfs tmpfs "$V/sub/later"
	touch "$V/sub/later/x"
	oci start "$ID"
	await_status stopped
	oci delete "$ID"
	umount "$V/sub/later" # nothing in there keeps it
}

@test "with a shared root a shared bind shows on the host what the container mounts" {
	mount -t tmpfs tmpfs "$V/sub"
	mount --make-shared "$V/sub"
	mkdir "$V/sub/in"
	change_config "$B" '.linux.rootfsPropagation = "rshared" |
		.process.capabilities[] += ["CAP_SYS_ADMIN"]'
	add_mount /shared bind "$V/sub" bind rshared
	add_mount /slave bind "$V/sub" bind rslave
	inside 'mount -t tmpfs tmpfs /shared/in && touch /shared/in/x &&
		grep -E " /(shared|slave)? " /proc/self/mountinfo'
	expect_status 0
	[ -e "$V/sub/in/x" ]
	expect_in "$(tr -d 0-9 <<<"$out")" ' / rw,relatime shared: '
	umount "$V/sub/in"
}

@test "nothing of a container shows on the host, whatever the propagation of its root" {
	local how before
	mount --bind "$B" "$B"
	mount --make-shared "$B"
	change_config "$B" '.process.capabilities[] += ["CAP_SYS_ADMIN"]'
	before=$(grep -c "$T/" /proc/self/mountinfo)
	for how in shared rshared slave rslave private rprivate unbindable; do
		change_config "$B" '.linux.rootfsPropagation = $h' --arg h "$how"
		inside 'mount -t tmpfs tmpfs /tmp && grep " / " /proc/self/mountinfo'
		expect_status 0
		case $how in
		*shared) expect_in "$out" " shared:" ;;
		unbindable) expect_in "$out" " unbindable" ;;
		*) [[ $out != *" shared:"* ]] || fail "$how: $out" ;;
		esac
		[ "$before" = "$(grep -c "$T/" /proc/self/mountinfo)" ] ||
			fail "$how: $(grep "$T/" /proc/self/mountinfo)"
	done
	umount "$B"
}

# ---- file systems ----

@test "file systems take their own options, and an unknown one is named" {
	add_mount /t tmpfs tmpfs size=1m mode=1750 uid=3 gid=4 nr_inodes=50 noexec
	change_config "$B" '.mounts |= map(if .type == "proc" then .options = ["hidepid=2", "nosuid"] else . end)'
	inside 'stat -c "%a %u %g" /t; grep -E " /(t|proc|dev/mqueue|sys) " /proc/self/mountinfo'
	expect_in "$out" '1750 3 4' ' /t rw,noexec,relatime ' 'size=1024k' 'nr_inodes=50' \
		' /proc rw,nosuid,relatime ' 'hidepid=invisible' ' - mqueue mqueue ' ' - sysfs sysfs '
	add_mount /t tmpfs tmpfs sizes=1m
	inside true
	[ "$status" != 0 ]
	expect_in "$err" "mount /t: option 'sizes=1m' of tmpfs: Invalid argument"
}

@test "an overlay, its options in one word" {
	mkdir -p "$T/"{lower,upper,work,big}
	echo below >"$T/lower/file"
	mount -t tmpfs tmpfs "$T/big"
	mkdir "$T/big/"{upper,work}
	add_mount /over overlay overlay "lowerdir=$T/lower,upperdir=$T/big/upper,workdir=$T/big/work"
	inside 'cat /over/file && echo above >/over/file'
	expect_status 0
	[ "$out$(cat "$T/big/upper/file")" = belowabove ] || fail "$out"
	add_mount /long overlay overlay "upperdir=$T/lower$(printf '/%0260d' 0)"
	inside true
	expect_in "$err" "mount /long: option 'upperdir=" "its value is longer than 255 bytes"
}

@test "an overlay of more folders than fit into one option" {
	local i layers=
	for i in $(seq 20); do
		mkdir "$V/layer$i"
		echo "$i" >"$V/layer$i/file$i"
		layers+=:$V/layer$i
	done
	[ ${#layers} -gt 300 ]
	add_mount /over overlay overlay "lowerdir=${layers#:}" ro
	inside 'cat /over/file1 /over/file20'
	[ "$status" = 0 ] || [[ $err != *"option 'lowerdir="*"Invalid argument"* ]] || skip "needs Linux 6.8"
	[ "$out" = $'1\n20' ] || fail "$out$err"
}

@test "a tmpfs has the mode of what it covers" {
	mkdir -m 1777 "$B/rootfs/wide"
	add_mount /wide tmpfs tmpfs
	add_mount /new tmpfs tmpfs
	inside 'stat -c %a /wide /new'
	[ "$out" = $'1777\n755' ] || fail "$out"
}

@test "a read-only tmpfs has what belongs in it: mount points, devices, the working directory" {
	change_config "$B" '(.mounts[] | select(.destination == "/dev") | .options) += ["ro"] |
		.linux.devices = [{path: "/dev/more/zero", type: "c", major: 1, minor: 5}] |
		.process.cwd = "/sealed/work" | .process.terminal = true'
	add_mount /sealed tmpfs tmpfs ro
	add_mount /sealed/vol bind "$V" bind
	add_mount /sealed/copy tmpfs tmpfs rro tmpcopyup
	set_script "$B" 'pwd; cat /sealed/vol/file; head -c 3 /dev/more/zero | wc -c
		test -c /dev/console && echo x >/dev/null && test -d /dev/pts && echo devices
		for d in /dev /sealed /sealed/copy; do touch $d/new; done; touch /sealed/vol/new /dev/shm/new && echo writable'
	run_split script -qec "$OCI --root $T/state run --bundle $B $ID" /dev/null
	out=$(tr -d '\r' <<<"${out//^@/}") # script's end of input
	expect_in "$out" /sealed/work text $'3\ndevices' '/dev/new: Read-only' '/sealed/new: Read-only' \
		'/sealed/copy/new: Read-only' writable
	expect_oci_clean
}

@test "tmpcopyup: a tmpfs starts with what it covers" {
	local d=$B/rootfs/data
	mkdir -p "$d/sub/deep"
	echo one >"$d/file"
	chown 7:8 "$d/file"
	chmod 4755 "$d/file"
	touch -d @1000000000 "$d/file"
	echo two >"$d/sub/deep/file"
	ln -s ../elsewhere "$d/sub/link"
	mkfifo -m 620 "$d/pipe"
	mknod -m 640 "$d/zero" c 1 5
	chmod 3751 "$d/sub"
	chmod 1775 "$d"
	chown 5:6 "$d"
	setfattr -n trusted.x -v y "$d/file" 2>/dev/null || true
	add_mount /data tmpfs tmpfs tmpcopyup size=1m ro
	inside 'cd /data && stat -c "%n %a %u:%g %F" . file sub pipe zero && stat -c %Y file && cat file sub/deep/file &&
		readlink sub/link && ! touch x && grep " /data " /proc/self/mountinfo'
	expect_status 0
	expect_in "$out" '. 1775 5:6 directory' 'file 4755 7:8 regular file' 'sub 3751 0:0 directory' \
		'pipe 620 0:0 fifo' 'zero 640 0:0 character special file' 1000000000 $'one\ntwo\n../elsewhere' \
		' /data ro,relatime ' || fail "$out"
	# What does not fit is an error, and nothing is left.
	head -c 3000000 /dev/zero >"$d/big"
	inside true
	[ "$status" != 0 ]
	expect_in "$err" "mount /data: big: No space left on device"
	expect_oci_clean
	add_mount /dev/mqueue mqueue mqueue tmpcopyup
	inside true
	[ "$status" != 0 ]
	expect_in "$err" "tmpcopyup of anything but a tmpfs"
}

# ---- owners ----

@test "an id-mapped bind shows other owners inside, and keeps those outside" {
	chown 1000:1000 "$V/file"
	add_mount /data bind "$V" bind
	change_config "$B" '.mounts[-1] += {
		uidMappings: [{containerID: 1000, hostID: 2000, size: 5}, {containerID: 0, hostID: 70, size: 1}],
		gidMappings: [{containerID: 1000, hostID: 3000, size: 5}, {containerID: 0, hostID: 80, size: 1}]}'
	inside 'stat -c "%u:%g" /data/file /data/sub'
	expect_status 0
	[ "$out" = $'2000:3000\n70:80' ] || fail "$out"
	[ "$(stat -c %u:%g "$V/file")" = 1000:1000 ]
	expect_oci_clean
}

@test "idmap without maps means those of the user namespace, ridmap also for what is below" {
	user_namespace
	mount -t tmpfs tmpfs "$V/sub"
	echo x >"$V/sub/file"
	chown 5:5 "$V/sub/file"
	add_mount /plain bind "$V" rbind
	add_mount /mapped bind "$V" rbind idmap
	add_mount /all bind "$V" rbind ridmap
	inside 'stat -c "%n %u:%g" /plain/file /mapped/file /mapped/sub/file /all/file /all/sub/file && echo >/all/made'
	expect_status 0
	expect_in "$out" "/plain/file 65534:65534" "/mapped/file 0:0" "/mapped/sub/file 65534:65534" \
		"/all/file 0:0" "/all/sub/file 5:5" || fail "$out"
	[ "$(stat -c %u "$V/made")" = 0 ]
}

@test "id maps that cannot be are refused by name" {
	add_mount /data bind "$V" bind idmap
	inside true
	expect_in "$err" "mount /data: 'idmap' without uidMappings, and without a user namespace"
	change_config "$B" '.mounts[-1] += {uidMappings: [{containerID: 0, hostID: 5, size: 10},
		{containerID: 9, hostID: 100, size: 2}], gidMappings: [{containerID: 0, hostID: 5, size: 1}]}'
	inside true
	expect_in "$err" "/mounts/7/uidMappings: 0 and 1 overlap"
	change_config "$B" '.mounts[-1].uidMappings = .mounts[-1].gidMappings | .mounts[-1].type = "tmpfs" |
		.mounts[-1].options = []'
	inside true
	expect_in "$err" "mount /data: id maps of anything but a bind"
	expect_oci_clean
}

@test "a user namespace reaches sources that only root could, and mounts what it may" {
	user_namespace
	mkdir -m 700 "$V/secret"
	chmod 700 "$V"
	echo seen >"$V/secret/file"
	add_mount /data bind "$V/secret/file" bind ro
	change_config "$B" '.linux.namespaces -= [{type: "network"}]'
	inside 'cat /data; ! touch /sys/x; ls -d /sys/class/net/lo; grep " /sys " /proc/self/mountinfo'
	expect_status 0
	expect_in "$out" seen /sys/class/net/lo ' /sys ro,' ' - sysfs sysfs'
}

# ---- places ----

@test "missing mount points are made, in a volume too" {
	add_mount /x/y/z bind "$V" bind
	add_mount /vol bind "$V" bind
	add_mount /vol/new/deep tmpfs tmpfs
	add_mount /vol/newfile bind "$V/file" bind
	add_mount //vol/./sub/../dots/ tmpfs tmpfs
	add_mount relative bind "$V/file" bind
	inside 'cat /x/y/z/file /vol/newfile /relative && grep -c -E " /vol/(new/deep|dots) " /proc/self/mountinfo'
	expect_status 0
	[ "$out" = $'text\ntext\ntext\n2' ] || fail "$out"
	[ -d "$V/new/deep" ] && [ -f "$V/newfile" ] && [ -d "$V/dots" ]
}

@test "CVE-2024-45310: over a link nothing is made in a volume, and nothing on the host" {
	mkdir "$T/outside"
	ln -s "$T/outside" "$V/abs"
	ln -s ../outside "$V/up"
	ln -s sub "$V/inner"
	ln -s /vol/sub "$B/rootfs/image"
	for place in /vol/abs/x /vol/up /vol/inner/x /image/x; do
		make_bundle "$B"
		add_mount /vol bind "$V" bind
		add_mount "$place" bind "$V/file" bind
		inside true
		[ "$status" != 0 ] || fail "$place"
		expect_in "$err" "mount $place:" "a link leads to it into a volume"
	done
	[ -z "$(ls -A "$T/outside")$(ls -A "$V/sub")" ]
	expect_oci_clean
}

@test "mounts over links stay inside the root" {
	mkdir "$T/outside"
	ln -s /real "$B/rootfs/abs"
	ln -s "../../../../../../..$T/outside" "$B/rootfs/up"
	ln -s "$T/outside" "$B/rootfs/out"
	ln -s "$T/new/made" "$B/rootfs/dangling"
	add_mount /out/in tmpfs tmpfs
	add_mount /abs tmpfs tmpfs
	add_mount /up bind "$V" bind
	add_mount /dangling bind "$V/file" bind
	inside "cat $T/outside/file $T/new/made; grep -c ' /real ' /proc/self/mountinfo"
	expect_status 0
	[ "$out" = $'text\ntext\n1' ] || fail "$out"
	[ -z "$(ls -A "$T/outside")" ] && [ ! -e "$T/new" ]
}

@test "CVE-2019-19921, CVE-2026-41579: kernel file systems and /dev are not mounted over links" {
	local dir
	for dir in proc sys dev; do
		make_bundle "$B"
		rmdir "$B/rootfs/$dir"
		mkdir -p "$B/rootfs/elsewhere"
		ln -s elsewhere "$B/rootfs/$dir"
		inside true
		[ "$status" != 0 ]
		expect_in "$err" "mount /$dir: /$dir in the root is a link, not a directory"
		rm "$B/rootfs/$dir"
	done
}

@test "nothing covers procfs but what imitates single files of it" {
	local place
	for place in /proc /proc/sys /proc/1/fd /proc/../proc/sys/kernel; do
		make_bundle "$B"
		add_mount "$place" bind "$V" bind
		inside true
		[ "$status" != 0 ]
		expect_in "$err" "nothing can be mounted on /proc or inside it"
	done
	make_bundle "$B"
	ln -s /proc/sys/kernel "$B/rootfs/link"
	add_mount /link bind "$V" bind
	inside true
	expect_in "$err" "mount /link: nothing can be mounted on /proc or inside it"
	rm "$B/rootfs/link"
	make_bundle "$B"
	add_mount /proc/meminfo bind "$V/file" bind
	inside 'cat /proc/meminfo'
	[ "$out" = text ]
}

@test "mounts that make no sense are refused by name" {
	local bad
	while IFS='|' read -r bad want; do
		make_bundle "$B"
		change_config "$B" ".mounts += [$bad]"
		inside true
		[ "$status" != 0 ] || fail "$bad"
		expect_in "$err" "$want" || return 1
		expect_oci_clean
	done <<-'END'
		{destination: "/", type: "tmpfs", source: "x"}|nothing can be mounted over the root
		{destination: "/a/..", type: "tmpfs", source: "x"}|nothing can be mounted over the root
		{destination: "/a", source: "/"}|mount /a: no type
		{destination: "/a", type: "bind"}|mount /a: no source
		{destination: "/a", type: "bind", source: "", options: ["bind"]}|mount /a: no source
		{destination: "/a", type: "bind", source: "/does/not/exist", options: ["bind"]}|mount /a: /does/not/exist: bind: No such file
		{destination: "/a", type: "bind", source: "/etc", options: ["bind", "size=3"]}|mount /a: unknown option 'size=3'
		{destination: "/a", type: "nosuchfs", source: "x"}|mount /a: file system nosuchfs
		{destination: "/bin/busybox", type: "bind", source: "/etc", options: ["bind"]}|mount /bin/busybox: /bin/busybox in the root is not a directory
		{destination: "/bin", type: "bind", source: "/etc/passwd", options: ["bind"]}|mount /bin: /bin in the root is a directory, not a file
		{destination: "/bin/sh/x", type: "tmpfs", source: "x"}|mount /bin/sh/x: /bin/sh/x: part of it is not a directory
	END
}

# ---- masks and the root ----

@test "masked paths are empty, read-only ones read-only with all below" {
	mkdir "$B/rootfs/dir" "$B/rootfs/ro" "$B/rootfs/ro/sub"
	echo secret | tee "$B/rootfs/dir/file" >"$B/rootfs/file"
	ln -s /dir "$B/rootfs/link"
	add_mount /ro/sub tmpfs tmpfs
	change_config "$B" '.linux.maskedPaths += ["/dir", "/file", "/link", "/not/there", "/file/x"] |
		.linux.readonlyPaths += ["/ro", "/not/there"]'
	inside 'ls /dir; cat /file; ! touch /dir/x && ! touch /ro/x && ! touch /ro/sub/x && ! chmod 600 /file'
	expect_status 0
	[ -z "$out" ] || fail "$out"
}

@test "the root: read-only, missing, no folder, on a shared mount" {
	change_config "$B" '.root.readonly = true'
	inside '! touch /x && touch /dev/shm/x && grep " / " /proc/self/mountinfo'
	expect_status 0
	expect_in "$out" " / ro,"
	change_config "$B" '.root.path = "missing"'
	inside true
	expect_in "$err" "root missing: No such file or directory"
	touch "$B/missing"
	inside true
	expect_in "$err" "root missing: Not a directory"
	expect_oci_clean
}

@test "--no-pivot: the host's tree is out of reach" {
	change_config "$B" '.process.capabilities[] += ["CAP_SYS_ADMIN", "CAP_SYS_CHROOT"]'
	add_mount /data bind "$V" bind
	set_script "$B" 'cat /data/file; ls /; cd /; cd ..; test -e bin/busybox; cat /proc/self/mountinfo'
	run_split oci run --no-pivot --bundle "$B" "$ID"
	expect_status 0
	expect_in "$out" text rootfs
	[ "$(grep -c ' / /proc .* - proc ' <<<"$out")" = 1 ] || fail "$out"
	# Who enters the mount namespace by another way gets there, too.
	set_script "$B" 'sleep 60'
	oci create --no-pivot --bundle "$B" "$ID"
	[ "$(nsenter -t "$(oci state "$ID" | jq .pid)" -m /bin/busybox cat /data/file)" = text ]
	[ "$(nsenter -t "$(oci state "$ID" | jq .pid)" -m /bin/busybox ls /)" = "$(ls "$B/rootfs")" ]
	oci delete --force "$ID"
	expect_oci_clean
}

# ---- devices ----

@test "default devices and links are there, whatever the umask" {
	umask 077
	inside 'cd /dev && stat -c "%n %a %t,%T" null zero full random urandom tty && for i in fd stdin stdout stderr ptmx; do readlink $i; done;
		echo x >/dev/null && ! echo x >/dev/full && test "$(head -c 2 /dev/zero | wc -c)" = 2'
	expect_status 0
	expect_in "$out" 'null 666 1,3' 'zero 666 1,5' 'full 666 1,7' 'random 666 1,8' 'urandom 666 1,9' 'tty 666 5,0' \
		$'/proc/self/fd\n/proc/self/fd/0\n/proc/self/fd/1\n/proc/self/fd/2\npts/ptmx' || fail "$out"
}

@test "devices of the config, anywhere in the tree" {
	umask 077
	change_config "$B" '.linux.devices = [
		{path: "/dev/fuse", type: "c", major: 10, minor: 229, fileMode: 432, uid: 5, gid: 6},
		{path: "/opt/deep/disk", type: "b", major: 7, minor: 200},
		{path: "/opt/pipe", type: "p", fileMode: 420},
		{path: "/dev/null", type: "c", major: 1, minor: 3, fileMode: 438}]'
	inside 'stat -c "%n %a %u:%g %F %t,%T" /dev/fuse /opt/deep/disk /opt/pipe /dev/null'
	expect_status 0
	expect_in "$out" '/dev/fuse 660 5:6 character special file a,e5' '/opt/deep/disk 666 0:0 block special file 7,c8' \
		'/opt/pipe 644 0:0 fifo' '/dev/null 666 0:0' || fail "$out"
	# Again, with those outside of /dev there already.
	inside 'stat -c %a /opt/deep/disk'
	expect_status 0
	change_config "$B" '.linux.devices[1].minor = 201'
	inside true
	[ "$status" != 0 ]
	expect_in "$err" "device disk in the root is something else"
}

@test "CVE-2026-47766, CVE-2026-88264: without a /dev mount nothing is followed out of the root" {
	local bad
	mkdir "$T/outside"
	change_config "$B" '.mounts |= map(select(.destination | startswith("/dev") | not))'
	inside 'echo x >/dev/null && stat -c %t,%T /dev/zero'
	expect_status 0
	[ "$out" = 1,5 ]
	for bad in 'rm -r dev; ln -s ../../outside dev' 'rm -f dev/null; ln -s ../../../outside/null dev/null' \
		'rm -f dev/zero; mkfifo dev/zero' 'rm -f dev/full; echo text >dev/full'; do
		(cd "$B/rootfs" && eval "$bad")
		inside true
		[ "$status" != 0 ] || fail "$bad"
		rm -rf "$B/rootfs/dev"
		mkdir "$B/rootfs/dev"
	done
	[ -z "$(ls -A "$T/outside")" ]
	expect_oci_clean
}

@test "a volume on /dev is left as it is" {
	change_config "$B" '.mounts |= map(select(.destination | startswith("/dev") | not)) |
		.linux.devices = [{path: "/dev/fuse", type: "c", major: 10, minor: 229}]'
	add_mount /dev bind "$V" bind
	inside true
	expect_status 0
	[ "$(ls "$V")" = $'file\nsub' ]
}

@test "a device is made in no volume" {
	add_mount /vol bind "$V" bind
	change_config "$B" '.linux.devices = [{path: "/vol/x", type: "c", major: 1, minor: 3}]'
	inside true
	[ "$status" != 0 ]
	expect_in "$err" "device /vol/x: its folder is a volume"
	[ ! -e "$V/x" ]
}

@test "in a user namespace the default devices, and one whose owner has no id, are the host's, verified" {
	user_namespace
	change_config "$B" '.linux.devices = [{path: "/opt/pipe", type: "p"},
		{path: "/dev/net/tun", type: "c", major: 10, minor: 200, uid: 70000}]' # nobody outside
	[ -c /dev/net/tun ] || skip "needs /dev/net/tun"
	inside 'stat -c "%n %t,%T" /dev/null /dev/full /dev/net/tun; test -p /opt/pipe && echo x >/dev/null'
	expect_status 0
	expect_in "$out" '/dev/null 1,3' '/dev/full 1,7' '/dev/net/tun a,c8' || fail "$out"
	change_config "$B" '.linux.devices[1].minor = 201'
	inside true
	[ "$status" != 0 ]
	expect_in "$err" "device /dev/net/tun is another one on the host"
	change_config "$B" '.linux.devices[1].path = "/dev/nothing"'
	inside true
	expect_in "$err" "the host's device /dev/nothing: No such file or directory"
	expect_oci_clean
}

@test "in a user namespace devices have the owner and the mode of the config, without the host's node" {
	user_namespace
	change_config "$B" '.linux.devices = [
		{path: "/dev/sub/own", type: "c", major: 1, minor: 5, uid: 10, gid: 11, fileMode: 420},
		{path: "/dev/block", type: "b", major: 1, minor: 5, uid: 0, gid: 12}]'
	inside 'stat -c "%n %t,%T %u:%g %a" /dev/sub/own /dev/block; head -c 3 /dev/sub/own | wc -c; ls /'
	expect_status 0
	[[ $out == *'/dev/sub/own 1,5 10:11 644'*'/dev/block 1,5 0:12 666'*$'\n3\n'*proc* ]] || fail "$out"
	change_config "$B" '.linux.uidMappings = [{containerID: 0, hostID: 0, size: 4294967295}] |
		.linux.gidMappings = .linux.uidMappings'
	chown -R 0:0 "$B/rootfs"
	inside 'stat -c "%u:%g" /dev/sub/own /dev/block'
	[ "$out" = $'10:11\n0:12' ] || fail "$out $err"
	expect_oci_clean
}

# ---- races ----

@test "CVE-2021-30465: links swapped in a shared volume never lead a mount, or a made file, to the host" {
	local tries=${SOAK:+10000} i ok=0
	need_program gcc
	gcc -O2 -o "$T/swap" "$DATA/swap.c"
	mkdir -p "$T/outside/sub" "$V/a/sub"
	echo secret >"$T/outside/secret"
	ln -s "$T/outside" "$V/b"
	add_mount /vol bind "$V" bind
	add_mount /vol/a/sub tmpfs tmpfs
	add_mount /vol/a/file bind "$V/file" bind
	set_script "$B" "! cat /vol/*/secret $T/outside/secret 2>/dev/null &&
		test \"\$(grep -c -E ' (/vol/[ab]|$T/outside)/(sub|file) ' /proc/self/mountinfo)\" -ge 2"
	"$T/swap" "$V" a b &
	SWAPPER=$!
	for ((i = 0; i < ${tries:-300}; i++)); do
		run_split oci run --bundle "$B" "$ID"
		# It may lose the race, and says so; what starts has its mounts in its own tree.
		[ "$status" != 0 ] || ok=$((ok + 1))
		[[ $status = 0 || -n $err ]] || fail "mounts went elsewhere: $out"
		[ "$(ls -A "$T/outside")$(ls -A "$T/outside/sub")" = $'secret\nsub' ] ||
			fail "made on the host: $(ls -A "$T/outside" "$T/outside/sub")"
	done
	kill "$SWAPPER"
	[ "$ok" -gt 0 ]
	expect_oci_clean
}
