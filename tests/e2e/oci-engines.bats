#!/usr/bin/env bats
# svrun-oci under engines: podman, containerd through its own shim, docker.

load helpers
load podman
load oci

teardown() {
	local pid id
	[ ! -d "$T/podman" ] || podman "${STORAGE[@]}" --runtime "$OCI" rm -af -t 0 >/dev/null 2>&1 || true
	podman_teardown
	for pid in ${PIDS-}; do
		kill "$pid" 2>/dev/null || continue
		for _ in $(seq 300); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.02
		done
	done
	for id in ${PODS-}; do
		rm -rf --one-file-system "/sys/fs/cgroup/hugetlb/libpod_parent/$id"
	done
	find /sys/fs/cgroup -depth -type d -path "*/${T##*/}.group*" -exec rmdir {} + 2>/dev/null || true
	while read -r id; do
		umount -l "$id" 2>/dev/null || true
	done < <(awk -v top="$T/" 'index($5, top) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
	rm -rf --one-file-system "$T"
}

# An image with busybox, made without a network and kept: $ARCHIVE, as docker has it, named $NAME.
need_archive() {
	NAME=localhost/svrun-engines:1 ARCHIVE=$WORK/engines.tar
	need_root
	[ -x /bin/busybox ] || skip "needs busybox-static"
	[ ! -s "$ARCHIVE" ] || return 0
	local app=$T/app store=$SVRUN_ROOT
	mkdir "$app"
	cp /bin/busybox "$app/busybox"
	printf 'root:x:0:0:root:/root:/bin/sh\nwww:x:33:33::/:/bin/sh\n' >"$app/passwd"
	printf 'root:x:0:\nwww:x:33:\nextra:x:44:www\n' >"$app/group"
	jq -n --arg applets "$(/bin/busybox --list)" '{
		schema: "svrun.image/1", name: "svrun-engines", version: "1", base: {type: "scratch"},
		files: [
			{dest: "/bin/busybox", from: "busybox", mode: "0755"},
			{dest: "/etc/passwd", from: "passwd"},
			{dest: "/etc/group", from: "group"}
		],
		dirs: [{path: "/tmp", mode: "1777"}, {path: "/root", mode: "0700"}],
		links: [$applets | split("\n")[] | select(. != "busybox" and . != "")
			| {path: "/bin/\(.)", target: "busybox"}],
		cmd: ["sleep", "1000"],
		build: {epoch: 1767225600}
	}' >"$app/manifest.json"
	new_store
	lock_and_build "$app" >"$T/build.log" 2>&1 || fail "$(<"$T/build.log")" || return 1
	"$SVRUN" image tag svrun-engines "$NAME"
	"$SVRUN" image save -q "$NAME" --format docker-archive -o "$ARCHIVE.new"
	mv "$ARCHIVE.new" "$ARCHIVE"
	export SVRUN_ROOT=$store
}

# A string that is in the output of a command that must succeed. [-STATUS] TEXT COMMAND...
says() {
	local want=0 text
	[[ $1 != -[0-9]* ]] || { want=${1#-} && shift; }
	text=$1
	shift
	run_split "$@"
	[ "$status" = "$want" ] || fail "$*: status $status, expected $want" "$out" "$err" || return 1
	expect_in "$out$err" "$text"
}

# ---- podman ----

pod_setup() {
	need_archive
	podman_setup
	# for pods, and for the small machines that tests run on
	echo "infra_image = \"$NAME\"" >>"$T/containers.conf"
	podman_do load -q --signature-policy "$T/policy.json" -i "$ARCHIVE" >"$T/load" 2>&1 || fail "$(<"$T/load")"
}

p() {
	podman "${STORAGE[@]}" --runtime "$OCI" "$@" 3>&-
}

p_run() { # OPTION... IMAGE COMMAND...
	p run --rm --network none "$@"
}

# On a hybrid host podman makes folders in places where no cgroups are mounted, and cannot remove them.
p_pod_rm() { # POD
	p pod rm -f -t 0 "$1" >"$T/pod.rm" 2>&1 || grep -q "conmon cgroup" "$T/pod.rm" || fail "$(<"$T/pod.rm")"
}

@test "podman run: output, statuses, streams" {
	pod_setup
	says "hello" p_run "$NAME" echo hello
	says -7 "" p_run "$NAME" sh -c 'exit 7'
	says -137 "" p_run --pid host "$NAME" sh -c 'kill -9 $$'
	says -127 "executable file not found" p_run "$NAME" no-such-program
	says -126 "ermission denied" p_run "$NAME" /etc/passwd
	says -127 "o such file" p_run "$NAME" /no/such
	[ "$(echo typed | p_run -i "$NAME" cat)" = typed ]
	p_run "$NAME" sh -c 'echo 1; echo 2 >&2' >"$T/1" 2>"$T/2"
	[ "$(<"$T/1")$(<"$T/2")" = 12 ]
	[ -z "$(p ps -aq)" ]
}

@test "podman reads errors from the log too, and --sdnotify=conmon works" {
	pod_setup
	echo 'runtime_supports_json = ["svrun-oci", "runc"]' >>"$T/containers.conf"
	says -127 "executable file not found" p_run "$NAME" no-such-program
	says -126 "ermission denied" p_run "$NAME" /etc/passwd
	says "hello" p_run "$NAME" echo hello
	says "" env NOTIFY_SOCKET="$T/notify" podman "${STORAGE[@]}" --runtime "$OCI" run --rm --network none \
		--sdnotify conmon "$NAME" true
}

@test "podman run: what the container sees" {
	pod_setup
	says "uid=5(5) gid=6(6)" p_run --user 5:6 "$NAME" id
	says "uid=33(www) gid=33(www)" p_run --user www "$NAME" id
	says "44(extra)" p_run --user www "$NAME" id
	says -1 "Read-only file system" p_run --read-only "$NAME" touch /x
	says "tmpfs on /scratch type tmpfs" p_run --tmpfs /scratch "$NAME" mount
	mkdir "$T/volume"
	echo kept >"$T/volume/file"
	says "kept" p_run -v "$T/volume:/v:ro" "$NAME" cat /v/file
	says -1 "Read-only file system" p_run -v "$T/volume:/v:ro" "$NAME" touch /v/x
	p_run -v "$T/volume:/v" "$NAME" touch /v/made
	[ -e "$T/volume/made" ]
	says "52428800" p_run --memory 50m "$NAME" sh -c \
		'cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null; true'
	says "1, " p_run --device /dev/null:/dev/mine "$NAME" ls -l /dev/mine
	says "inner" p_run --hostname inner "$NAME" hostname
	says "NoNewPrivs:	1" p_run --security-opt no-new-privileges "$NAME" cat /proc/self/status
	says "Seccomp:	2" p_run "$NAME" cat /proc/self/status
	says "CapEff:	0000000000000000" p_run --cap-drop all "$NAME" cat /proc/self/status
	says "/tmp" p_run --workdir /tmp "$NAME" pwd
	says "7" p_run --sysctl net.ipv4.ip_default_ttl=7 "$NAME" cat /proc/sys/net/ipv4/ip_default_ttl
	says "only" p_run --env A=only "$NAME" sh -c 'echo $A'
}

@test "podman run: namespaces shared with the host, and user namespaces" {
	pod_setup
	[ "$(p run --rm --network host "$NAME" readlink /proc/self/ns/net)" = "$(readlink /proc/self/ns/net)" ]
	[ "$(p_run --pid host "$NAME" readlink /proc/self/ns/pid)" = "$(readlink /proc/self/ns/pid)" ]
	[ "$(p_run --ipc host "$NAME" readlink /proc/self/ns/ipc)" = "$(readlink /proc/self/ns/ipc)" ]
	[ "$(p_run --uts host "$NAME" readlink /proc/self/ns/uts)" = "$(readlink /proc/self/ns/uts)" ]
	says "uid=0(root)" p_run --uidmap 0:100000:1000 --gidmap 0:100000:1000 "$NAME" id
	says "100000" p_run --uidmap 0:100000:1000 --gidmap 0:100000:1000 "$NAME" cat /proc/self/uid_map
}

@test "podman run --userns=auto" {
	pod_setup
	grep -q '^containers:' /etc/subuid 2>/dev/null || skip "no ids for containers in /etc/subuid"
	says "uid=0(root)" p_run --userns auto "$NAME" id
}

@test "podman run --init" {
	pod_setup
	command -v catatonit >/dev/null || [ -x /usr/libexec/podman/catatonit ] || skip "needs catatonit"
	says "catatonit" p_run --init "$NAME" ps
}

@test "podman: a container's life" {
	local i
	pod_setup
	says "" p run -d --name c --network none "$NAME" sh -c 'trap "echo term; exit 3" TERM; echo up; while :; do sleep 0.1; done'
	says "running" p inspect --format '{{.State.Status}}' c
	[ "$(p inspect --format '{{.OCIRuntime}}' c)" = "$OCI" ]
	says "inside" p exec c echo inside
	says -3 "" p exec c sh -c 'exit 3'
	says -127 "executable file not found" p exec c no-such-program
	says "uid=33(www)" p exec --user www c id
	says "/tmp only" p exec --workdir /tmp --env A=only c sh -c 'echo $PWD $A'
	[ "$(echo typed | p exec -i c cat)" = typed ]
	says "sh -c trap" p top c
	says "c" p stats --no-stream --no-reset c
	says "c" p pause c
	says "paused" p inspect --format '{{.State.Status}}' c
	says -255 "can only" p exec c true
	says "c" p unpause c
	says "inside" p exec c echo inside
	says "" p exec -d c touch /tmp/detached
	for ((i = 0; i < 200; i++)); do p exec c test -e /tmp/detached && break; done
	says "" p stop -t 20 c
	says "3" p inspect --format '{{.State.ExitCode}}' c
	[ "$(p logs c)" = "$(printf 'up\nterm')" ] || fail "$(p logs c)"
	says "c" p start c
	says "c" p restart -t 0 c
	says "running" p inspect --format '{{.State.Status}}' c
	says "c" p kill --signal KILL c
	says "137" p wait c
	says "c" p rm c
	[ -z "$(p ps -aq)" ]
}

@test "podman: terminals" {
	need_program script
	pod_setup
	# Nothing is typed, but the input has not ended: at its end podman may leave before the output has come, with
	# runc more often than with ours.
	terminal() { script -qec "$(printf '%q ' podman "${STORAGE[@]}" --runtime "$OCI" "$@")" "$T/typescript" 3>&- < <(exec sleep 5 3>&-) | tr -d '\r'; }
	[[ $(terminal run -it --rm --network none "$NAME" sh -c 'tty; test -t 0 -a -t 1 && echo terminal') == *"/dev/pts/0"*terminal* ]]
	p run -d --name c --network none "$NAME" >"$T/id"
	[[ $(terminal exec -it c sh -c 'tty; test -t 0 && echo terminal') == *"/dev/pts/"*terminal* ]]
}

@test "podman: health checks" {
	pod_setup
	export DISABLE_HC_SYSTEMD=true
	p run -d --name c --network none --health-cmd 'test -e /ok' --health-interval disable "$NAME" >"$T/id"
	says -1 "unhealthy" p healthcheck run c
	p exec c touch /ok
	says "" p healthcheck run c
}

@test "podman: pods, and kube play" {
	local i
	pod_setup
	PODS=$(p pod create --name pod --network none)
	says "" p run -d --pod pod --name c "$NAME" sleep 1000
	[ "$(p exec c readlink /proc/self/ns/net)" = "$(p run --rm --pod pod "$NAME" readlink /proc/self/ns/net)" ]
	says "pod" p run --rm --pod pod "$NAME" hostname
	says "" p pod stop -t 0 pod
	p_pod_rm pod
	cat >"$T/pod.yaml" <<-YAML
		apiVersion: v1
		kind: Pod
		metadata: {name: kube}
		spec:
		  hostNetwork: true
		  volumes: [{name: data, emptyDir: {}}]
		  containers:
		  - name: one
		    image: $NAME
		    imagePullPolicy: Never
		    command: ["sleep", "1000"]
		    volumeMounts: [{name: data, mountPath: /data}]
		  - name: two
		    image: $NAME
		    imagePullPolicy: Never
		    command: ["sh", "-c", "echo two says; exec sleep 1000"]
		    securityContext: {readOnlyRootFilesystem: true, runAsUser: 33}
		    resources: {limits: {memory: 64Mi}}
	YAML
	p play kube "$T/pod.yaml" >"$T/play" 2>&1 || fail "$(<"$T/play")"
	PODS="$PODS $(p pod inspect --format '{{.ID}}' kube)"
	for ((i = 0; i < 100; i++)); do [ -z "$(p logs kube-two)" ] || break; sleep 0.02; done
	says "two says" p logs kube-two
	says "uid=33" p exec kube-two id
	says "" p exec kube-one touch /data/x
	says -1 "Read-only" p exec kube-two touch /x
	p_pod_rm kube
}

@test "podman: nothing is left of what it ran" {
	pod_setup
	p_run "$NAME" true
	p run -d --name c --network none "$NAME" >"$T/id"
	p rm -f -t 0 c >"$T/out"
	[ -z "$(find /sys/fs/cgroup -type d -name "libpod-$(<"$T/id")*" 2>/dev/null)" ]
	! "$OCI" state "$(<"$T/id")" 2>"$T/err" || fail "still there"
	expect_in "$(<"$T/err")" "does not exist"
}

# ---- containerd ----

containerd_setup() {
	local i
	need_program containerd
	need_program ctr
	need_archive
	cat >"$T/containerd.toml" <<-TOML
		version = 2
		root = "$T/containerd/root"
		state = "$T/containerd/state"
		disabled_plugins = ["io.containerd.grpc.v1.cri"]
		[grpc]
		  address = "$T/containerd.sock"
		[ttrpc]
		  address = "$T/containerd.sock.ttrpc"
	TOML
	containerd -c "$T/containerd.toml" >"$T/containerd.out" 2>&1 3>&- </dev/null &
	PIDS="${PIDS-} $!"
	for ((i = 0; i < 200; i++)); do
		c version >"$T/ctr.out" 2>&1 && break
		sleep 0.05
	done
	c version >"$T/ctr.out" 2>&1 || fail "$(<"$T/containerd.out")" || return 1
	# Overlayfs where it works on $T's file system, else copies.
	if c plugins ls | grep -Eq 'snapshotter.* overlayfs .* ok'; then
		export CONTAINERD_SNAPSHOTTER=overlayfs
	else
		export CONTAINERD_SNAPSHOTTER=native
	fi
	c image import "$ARCHIVE" >"$T/import" 2>&1 || fail "$(<"$T/import")"
}

c() {
	ctr --address "$T/containerd.sock" -n "${T##*/}.group" "$@" 3>&-
}

c_run() { # OPTION... IMAGE ID COMMAND...
	c run --runc-binary "$OCI" "$@"
}

c_status() { # ID
	c task ls | awk -v id="$1" '$1 == id { print $3 }'
}

c_await() { # STATUS ID
	local i
	for ((i = 0; i < 200; i++)); do
		[ "$(c_status "$2")" != "$1" ] || return 0
		sleep 0.02
	done
	fail "$2 is $(c_status "$2"), expected $1"
}

@test "containerd: run, with its own shim" {
	containerd_setup
	says "hello" c_run --rm "$NAME" one echo hello
	says -7 "" c_run --rm "$NAME" one sh -c 'exit 7'
	says -1 "executable file not found" c_run --rm "$NAME" one no-such-program
	expect_in "$err" "OCI runtime create failed: exec 'no-such-program'"
	says "/tmp only" c_run --rm --cwd /tmp --env A=only "$NAME" one sh -c 'echo $PWD $A'
	says "Seccomp:	2" c_run --rm --seccomp "$NAME" one cat /proc/self/status
	says -1 "Read-only file system" c_run --rm --read-only "$NAME" one touch /x
	[ "$(c_run --rm --net-host "$NAME" one readlink /proc/self/ns/net)" = "$(readlink /proc/self/ns/net)" ]
	says "kept" c_run --rm --mount "type=bind,src=$(dirname "$ARCHIVE"),dst=/v,options=rbind:ro" "$NAME" one \
		sh -c 'test -s /v/engines.tar && echo kept'
	[ -z "$(c task ls -q)$(c container ls -q)" ]
}

@test "containerd: a task's life" {
	containerd_setup
	c_run -d --memory-limit 50000000 "$NAME" one sh -c 'sleep 1000 & exec sleep 1001'
	c_await RUNNING one
	says "inside" c task exec --exec-id e1 one echo inside
	says -4 "" c task exec --exec-id e2 one sh -c 'exit 4'
	says -1 "executable file not found" c task exec --exec-id e3 one no-such-program
	[ "$(c task ps one | tail -n +2 | wc -l)" = 2 ] || fail "$(c task ps one)"
	says "memory" c task metrics one
	c task pause one
	c_await PAUSED one
	c task resume one
	c_await RUNNING one
	says "inside" c task exec --exec-id e4 one echo inside
	c task kill -s KILL one
	c_await STOPPED one
	c task delete one >"$T/out" 2>&1 || true
	c container delete one
	[ -z "$(c task ls -q)$(c container ls -q)" ]
}

@test "containerd: a terminal" {
	need_program script
	containerd_setup
	run script -qec "ctr --address $T/containerd.sock -n ${T##*/}.group run --runc-binary $OCI --rm -t $NAME one tty" "$T/typescript" </dev/null
	expect_in "$output" "/dev/pts/0"
}

# ---- docker ----

docker_setup() {
	local i
	need_program dockerd
	need_program docker
	need_archive
	# else it makes a key of its own in /etc
	jq -n --arg key "$T/docker.key" '{"deprecated-key-path": $key}' >"$T/docker.json"
	dockerd --config-file "$T/docker.json" --data-root "$T/docker" --exec-root "$T/docker-exec" \
		--pidfile "$T/docker.pid" -H "unix://$T/docker.sock" --iptables=false --ip6tables=false \
		--ip-forward=false --bridge=none --storage-driver vfs --cgroup-parent "/${T##*/}.group" \
		--add-runtime "svrun=$OCI" >"$T/docker.out" 2>&1 3>&- </dev/null &
	PIDS="${PIDS-} $!"
	for ((i = 0; i < 200; i++)); do
		d version >"$T/docker.version" 2>&1 && break
		sleep 0.05
	done
	d version >"$T/docker.version" 2>&1 || skip "dockerd does not start here: $(tail -n 1 "$T/docker.out")"
	d load -q -i "$ARCHIVE" >"$T/load" 2>&1 || fail "$(<"$T/load")"
}

d() {
	docker --config "$T/docker-client" -H "unix://$T/docker.sock" "$@" 3>&-
}

d_run() {
	d run --rm --runtime svrun --network none "$@"
}

@test "docker: run, exec, pause, stop" {
	docker_setup
	says "hello" d_run "$NAME" echo hello
	says -7 "" d_run "$NAME" sh -c 'exit 7'
	says -127 "executable file not found" d_run "$NAME" no-such-program
	says -126 "ermission denied" d_run "$NAME" /etc/passwd
	[ "$(echo typed | d_run -i "$NAME" cat)" = typed ]
	says "uid=33(www)" d_run --user www "$NAME" id
	says -1 "Read-only file system" d_run --read-only "$NAME" touch /x
	says "" d run -d --name one --runtime svrun --network none --memory 50m --pids-limit 50 "$NAME" sleep 1000
	says "svrun" d inspect --format '{{.HostConfig.Runtime}}' one
	says "inside" d exec one echo inside
	says -4 "" d exec one sh -c 'exit 4'
	run_split d exec one no-such-program
	[[ $status = 126 || $status = 127 ]] || fail "$status: $out$err" # versions differ
	expect_in "$out$err" "executable file not found"
	says "sleep 1000" d top one
	says "MiB" d stats --no-stream one
	says "one" d pause one
	says "true" d inspect --format '{{.State.Paused}}' one
	says "one" d unpause one
	says "one" d update --pids-limit 60 one
	says "one" d stop -t 0 one
	says "137" d inspect --format '{{.State.ExitCode}}' one
	says "one" d start one
	says "one" d rm -f one
	[ -z "$(d ps -aq)" ]
}

# Debian's containerd reads no CDI specs itself: what it is told goes to the runtime.
@test "containerd: a device of a CDI spec, asked for by an annotation" {
	containerd_setup
	mkdir "$T/cdi"
	jq -n '{cdiVersion: "0.5.0", kind: "v.com/dev", devices: [{name: "0", containerEdits: {
		deviceNodes: [{path: "/dev/v0", hostPath: "/dev/full"}], env: ["V=given"]}}]}' >"$T/cdi/v.json"
	printf '#!/bin/sh\nexec %s --cdi-spec-dir %s "$@"\n' "$OCI" "$T/cdi" >"$T/with-cdi"
	chmod +x "$T/with-cdi"
	run_split c run --runc-binary "$T/with-cdi" --rm --annotation cdi.k8s.io/plugin_dev=v.com/dev=0 "$NAME" one \
		sh -c 'echo $V; ls /dev/v0; echo x >/dev/v0'
	expect_in "$out" given /dev/v0
	expect_in "$err" "No space left on device"
	run_split c run --runc-binary "$T/with-cdi" --rm --annotation cdi.k8s.io/plugin_dev=v.com/dev=1 "$NAME" one true
	expect_in "$err" "v.com/dev=1"
}
