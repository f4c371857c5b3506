#!/usr/bin/env bats
# svrun run: options, streams, signals, statuses.

load helpers
load runtime

# ---- program and status ----

@test "the status of the program is the status of svrun" {
	need_test_image
	for code in 0 1 42 255; do
		inside -- "exit $code"
		expect_status "$code"
	done
	inside -- '(kill -9 $$) & sleep 100 & wait $!; exit 7'
	expect_status 7
	expect_clean
}

@test "a program that is not there is 127, one that cannot run 126" {
	need_test_image
	run_split "$SVRUN" run --rm "$IMAGE" no-such-program
	expect_status 127
	[ "$err" = "svrun: run $IMAGE: exec 'no-such-program': executable file not found in PATH (/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)" ] || fail "$err"
	run_split "$SVRUN" run --rm "$IMAGE" /usr/bin/no-interpreter
	expect_status 127
	expect_in "$err" "exec '/usr/bin/no-interpreter': No such file or directory" "its interpreter"
	run_split "$SVRUN" run --rm "$IMAGE" not-executable
	expect_status 126
	expect_in "$err" "Permission denied"
	expect_clean
}

@test "words behind the image replace its command; -- may stand before them" {
	need_test_image
	run_split "$SVRUN" run --rm "$IMAGE" -- sh -c 'echo "$0 $1"' a b
	[ "$out" = "a b" ]
	run_split "$SVRUN" run --rm "$IMAGE" sh -c 'echo --rm -t "$@"' x --env
	[ "$out" = "--rm -t --env" ] || fail "$out"
}

@test "an entrypoint stays before the words, and --entrypoint replaces it with the command" {
	need_root
	make_app entry '.cmd = ["from-cmd"]'
	lock_and_build "$APP" >/dev/null
	run_split "$SVRUN" run --rm entry
	[ "$out" = from-cmd ]
	run_split "$SVRUN" run --rm entry word
	[ "$out" = word ]
	run_split "$SVRUN" run --rm --entrypoint /bin/hello entry
	[ "$out" = hello ]
	run_split "$SVRUN" run --rm --entrypoint '' entry
	expect_status 2
	expect_in "$err" "the image names no command" "give one behind the image"
}

@test "an image that is not there is an error that names what there is" {
	need_test_image
	run_split "$SVRUN" run --rm "${IMAGE}x"
	expect_status 125
	expect_in "$err" "svrun: run ${IMAGE}x:" "hint:"
}

# ---- options ----

@test "usage errors are status 2 and say what is expected" {
	need_root
	run_split "$SVRUN" run
	expect_status 2
	for args in "--memory lots x" "--memory 1k x" "--cpus 0 x" "--cpus inf x" "--cpus 0x2 x" \
		"--pids 0 x" "--pids -1 x" "--network bridge x" "--stop-timeout now x" \
		"--hostname -x x" "--hostname a_b x" "--no-such-option x"; do
		# shellcheck disable=SC2086
		run_split "$SVRUN" run $args
		expect_status 2
	done
	run_split "$SVRUN" run --memry 1g x
	expect_in "$err" "unknown option '--memry'" "did you mean --memory?"
	run_split "$SVRUN" run -p 80:80 x
	expect_status 2
	[ "$err" = "svrun: no option '-p' in this version
hint: with --network host the ports are the host's" ] || fail "$err"
	run_split "$SVRUN" run -itd x
	expect_status 2
	expect_in "$err" "no option '-itd' in this version" "stays with the container"
	run_split "$SVRUN" run --help
	[[ $out != *publish* ]]
	run_split "$SVRUN" build x
	expect_status 2
	expect_in "$err" "unknown command 'svrun build'" "did you mean 'svrun image build'?"
	for word in "images|image ls" "rmi|image rm" "image list|image ls" "image umount|image unmount"; do
		run_split "$SVRUN" ${word%|*} x
		expect_status 2
		expect_in "$err" "unknown command 'svrun ${word%|*}'" "did you mean 'svrun ${word#*|}'?"
	done
	run_split "$SVRUN" run --plain-http x
	expect_status 2
	expect_in "$err" "hint: svrun image pull has it"
}

@test "options that only the image shows to be wrong are errors too" {
	need_test_image
	for args in "-v /tmp" "-v /tmp:relative" "-v name:/x" "-v /tmp:/x:rw,z" "--tmpfs relative" \
		"--cap-add FLY" "--cap-drop 7" "--ulimit nofile" "--ulimit nothing=1" "--ulimit nofile=a" \
		"--ulimit nofile=2:1" "-w relative" "-e =x" "--name -x" "--name a/b"; do
		# shellcheck disable=SC2086
		run_split "$SVRUN" run --rm $args "$IMAGE" true
		expect_status 2
	done
	run_split "$SVRUN" run --rm -v "$T/nothing:/x" "$IMAGE" true
	expect_status 125
	expect_in "$err" "$T/nothing: No such file or directory"
	expect_clean
}

@test "environment: the image's, files', the command line's, and what every container has" {
	need_test_image
	printf '# comment\nA=file\nB=file\n\n  C=file\r\n' >"$T/env"
	PASSED=on inside --env-file "$T/env" -e A=line -e PASSED -e NOT_SET -e EMPTY= -- \
		'echo "$A $B $C $PASSED ${NOT_SET-unset} ${EMPTY-unset}. $FROM_IMAGE $HOME"'
	[ "$out" = "line file file on unset . yes /root" ] || fail "$out $err"
	inside -u tester --hostname box -- 'echo "$HOME $HOSTNAME"; hostname; cat /etc/hosts'
	expect_in "$out" "/home/tester box" "localhost box"
}

@test "the mask of whoever starts svrun does not reach into the container" {
	need_test_image
	new_store_with_image
	(umask 077 && run_split "$SVRUN" run --rm -u tester "$IMAGE" sh -c 'cat /etc/hosts && ls / >/dev/null && umask' &&
		expect_status 0 && expect_in "$out" localhost 0022)
}

@test "variables of the image follow the limits of the start" {
	need_test_image
	inside --cpus 0.5 --memory 300m -- 'echo $CORES $MEM'
	[ "$out" = "1 300" ] || fail "$out"
	inside -e 'CORES=${runtime:cpus}' -- 'echo "$CORES"'
	[ "$out" = '${runtime:cpus}' ] # the user's own words are not the image's
}

@test "working directory, also one that is not there yet" {
	need_test_image
	inside -w /data -- pwd
	[ "$out" = /data ]
	inside -w /new/deep/place -- pwd
	[ "$out" = /new/deep/place ]
	inside --tmpfs /t -w /t/in -- 'pwd; touch x && echo written'
	expect_in "$out" /t/in written
}

@test "volumes: folders and files, writable and not, also where the image has nothing" {
	need_test_image
	mkdir -p "$T/vol/sub"
	echo text >"$T/vol/file"
	inside -v "$T/vol:/data" -- 'cat /data/file && echo new >/data/sub/made'
	[ "$out" = text ]
	[ "$(<"$T/vol/sub/made")" = new ]
	inside -v "$T/vol:/nowhere/yet:ro" -- 'cat /nowhere/yet/file; echo x >/nowhere/yet/file'
	[ "$status" != 0 ]
	expect_in "$err" "Read-only file system"
	inside -v "$T/vol/file:/etc/new.conf:ro" -- 'cat /etc/new.conf'
	[ "$out" = text ]
	cd "$T"
	inside -v ./vol:/data -- 'cat /data/file'
	[ "$out" = text ]
	inside -v "$T/vol:/proc" -- true
	expect_status 2
	expect_in "$err" "nothing can be mounted on /proc"
	inside -v "$T/vol:/proc/sys/kernel" -- true
	expect_status 2
	inside -v "$T/vol:/" -- true
	expect_status 2
	inside -v "$T/vol" -- true
	expect_status 2
	expect_in "$err" "--volume '$T/vol': expected SOURCE:DESTINATION[:ro]"
	expect_clean
}

@test "a read-only volume is read-only with everything mounted in it" {
	need_test_image
	mkdir -p "$T/vol/in"
	mount -t tmpfs tmpfs "$T/vol/in"
	inside -v "$T/vol:/data:ro" -- 'touch /data/in/x'
	[ "$status" != 0 ]
	inside -v "$T/vol:/data" -- 'touch /data/in/x'
	expect_status 0
	umount "$T/vol/in"
}

@test "limits of the cgroup are those that were asked for" {
	need_test_image
	inside --memory 64m --cpus 1.5 --pids 99 -- 'cat /sys/fs/cgroup/memory/memory.limit_in_bytes \
		/sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/pids/pids.max 2>/dev/null ||
		cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max /sys/fs/cgroup/pids.max'
	case "$out" in
	$'67108864\n150000\n99' | $'67108864\n150000 100000\n99') ;;
	*) fail "$out" ;;
	esac
	inside --memory 32m -- 'tail -c 100000000 /dev/zero >/dev/null; echo $?'
	expect_in "$err" "warning: the container reached its memory limit"
	[ "$out" != 0 ]
}

@test "resource limits, and a hard one that the host does not allow" {
	need_test_image
	inside --ulimit nofile=100:200 --ulimit core=0 -- 'ulimit -n; ulimit -Hn; ulimit -c'
	[ "$out" = $'100\n200\n0' ]
	# setpriv takes the capability away that some hosts do not have to begin with.
	run_split setpriv --bounding-set -sys_resource --inh-caps -sys_resource \
		bash -c "ulimit -n 500; exec '$SVRUN' run --rm --ulimit nofile=1000 $IMAGE true"
	expect_status 125
	expect_in "$err" "RLIMIT_NOFILE: cannot raise the hard limit to 1000" "this host allows at most 500"
	expect_clean
}

@test "a read-only root, with places to write" {
	need_test_image
	inside --read-only --tmpfs /tmp:size=1m -- 'touch /tmp/x && touch /dev/shm/x && ! touch /x 2>/dev/null &&
		! touch /etc/x 2>/dev/null && grep " /tmp " /proc/self/mountinfo'
	expect_status 0
	expect_in "$out" "size=1024k"
	inside --shm-size 8m -- 'grep " /dev/shm " /proc/self/mountinfo'
	expect_in "$out" "size=8192k"
}

@test "capabilities can be added and dropped" {
	need_test_image
	inside --cap-drop ALL --cap-add net_raw --cap-add CAP_KILL -- 'grep CapEff /proc/self/status'
	expect_in "$out" 0000000000002020
	inside --cap-drop MKNOD -- 'grep CapBnd /proc/self/status'
	expect_in "$out" 00000000a00425fb
}

@test "network: none has loopback only, host is the host's" {
	need_test_image
	inside -- 'ls /sys/class/net; grep -c : /proc/net/dev'
	[ "$out" = $'lo\n1' ] || fail "$out"
	inside --network host -- 'ls /proc/self/ns/net >/dev/null; readlink /proc/self/ns/net'
	[ "$out" = "$(readlink /proc/self/ns/net)" ]
}

@test "names: kept instances are kept, and a name is used once" {
	need_test_image
	new_store_with_image
	run_split "$SVRUN" run --name kept "$IMAGE" sh -c 'echo mine >/made; exit 9'
	expect_status 9
	[ "$(jq -r .exitCode "$SVRUN_ROOT/instances/kept/state.json")" = 9 ]
	# Just what the program wrote: no mount points, no copies.
	[ "$(ls -A "$SVRUN_ROOT/instances/kept/upper")" = made ]
	[ "$(<"$SVRUN_ROOT/instances/kept/upper/made")" = mine ]
	[ "$(jq -r .hostname "$SVRUN_ROOT/instances/kept/config.json")" = kept ]
	run_split "$SVRUN" run --name kept "$IMAGE" true
	expect_status 125
	expect_in "$err" "an instance named kept exists"
}

# A store of this test's own that has the image.
new_store_with_image() {
	local shared=$SVRUN_ROOT
	new_store cache
	SVRUN_ROOT=$T/store "$SVRUN" image build -q "$WORK/apps/$IMAGE" >/dev/null 2>&1 || {
		export SVRUN_ROOT=$shared
		skip "the image cannot be built again"
	}
}

@test "ps lists containers, rm removes those that ended" {
	need_root
	new_store
	make_app lister
	lock_and_build "$APP"
	"$SVRUN" run --name ended lister >/dev/null
	run_split "$SVRUN" ps
	expect_status 0
	expect_in "$out" "ID" "ended" "exited (0)" "lister"
	[ "$("$SVRUN" ps -q)" = ended ]
	run_split "$SVRUN" rm nobody
	expect_status 125
	expect_in "$err" "no container 'nobody'"
	run_split "$SVRUN" rm ../ended
	expect_status 125
	run_split "$SVRUN" rm
	expect_status 2
	run_split "$SVRUN" rm ended
	expect_status 0
	[ -z "$("$SVRUN" ps -q)" ]
	[ -z "$(ls -A "$SVRUN_ROOT/instances")" ]
}

@test "a container that runs is not removed" {
	local pid i
	need_test_image
	"$SVRUN" run --name "busy$$" "$IMAGE" sleep 60 </dev/null >/dev/null 2>&1 3>&- &
	pid=$!
	for ((i = 0; i < 100; i++)); do
		! "$SVRUN" ps | grep -q "^busy$$ *running" || break
		sleep 0.05
	done
	run_split "$SVRUN" rm "busy$$"
	kill "$pid"
	wait "$pid" || true
	expect_status 125
	expect_in "$err" "container busy$$ is running"
	"$SVRUN" rm "busy$$"
}

@test "config.json is a runtime-spec document that names what ran" {
	need_test_image
	new_store_with_image
	"$SVRUN" run --name doc -u tester -v "$T:/data:ro" "$IMAGE" true
	jq -e '.ociVersion == "1.2.0" and .process.user.uid == 1000 and .process.noNewPrivileges
		and (.mounts | map(.destination) | index("/data"))
		and (.linux.namespaces | map(.type) | sort == ["cgroup", "ipc", "mount", "network", "pid", "uts"])
		and .linux.seccomp.defaultAction == "SCMP_ACT_ERRNO"
		and .annotations["org.svrun.image"] == "'"$IMAGE"'"' "$SVRUN_ROOT/instances/doc/config.json" >/dev/null
}

# ---- streams ----

@test "standard input is the null device without -i, and passed on with it" {
	need_test_image
	[ "$(echo text | "$SVRUN" run --rm "$IMAGE" cat)" = "" ]
	[ "$(echo text | "$SVRUN" run --rm -i "$IMAGE" cat)" = text ]
	echo file >"$T/in"
	[ "$("$SVRUN" run --rm -i "$IMAGE" cat <"$T/in")" = file ]
}

@test "output is passed on whole, to pipes and to files, apart from errors" {
	need_test_image
	head -c 3000000 /dev/urandom >"$T/in"
	"$SVRUN" run --rm -i "$IMAGE" cat <"$T/in" >"$T/file"
	cmp "$T/in" "$T/file"
	"$SVRUN" run --rm -i "$IMAGE" cat <"$T/in" | cmp - "$T/in"
	# shellcheck disable=SC2002
	cat "$T/in" | "$SVRUN" run --rm -i "$IMAGE" cat | cmp - "$T/in"
	inside -- 'echo one; echo two >&2'
	[ "$out" = one ] && [ "$err" = two ]
}

@test "a reader that goes away ends the program, and svrun" {
	need_test_image
	run timeout 20 bash -c "'$SVRUN' run --rm $IMAGE yes 2>/dev/null | head -n 1"
	[ "$output" = y ]
	expect_clean
}

@test "closed standard streams do no harm" {
	need_test_image
	"$SVRUN" run --rm "$IMAGE" true <&- >&- 2>&-
	"$SVRUN" run --rm -i "$IMAGE" cat <&- >"$T/out"
	[ ! -s "$T/out" ]
}

@test "a terminal has a size, job control and /dev/console" {
	need_test_image
	need_program script
	script -qec "stty rows 33 cols 77; '$SVRUN' run --rm -it $IMAGE sh -c 'tty; busybox stty size; ls -l /dev/console; exit 5'" "$T/log" </dev/null >/dev/null || [ $? = 5 ]
	expect_in "$(<"$T/log")" /dev/pts/0 "33 77" "136,   0"
}

# ---- signals ----

start_background() { # OPTION... -- SCRIPT
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	"$SVRUN" run --rm "${options[@]}" "$IMAGE" sh -c "$2" >"$T/log" 2>&1 3>&- &
	PID=$!
	for _ in $(seq 300); do
		! grep -q ready "$T/log" || return 0
		sleep 0.01
	done
	fail "it did not start: $(<"$T/log")"
}

wait_for() {
	status=0
	wait "$PID" || status=$?
}

@test "signals reach the program" {
	need_test_image
	for sig in HUP INT QUIT USR1 USR2 TERM WINCH; do
		start_background -- "trap 'echo got $sig; exit 3' $sig; echo ready; while :; do sleep 0.02; done"
		kill -$sig "$PID"
		wait_for
		expect_status 3
		expect_in "$(<"$T/log")" "got $sig"
	done
	expect_clean
}

@test "a signal that the program does not handle ends it, as anywhere else" {
	need_test_image
	for sig in TERM:143 INT:130 HUP:129; do
		start_background -- 'echo ready; exec sleep 1000'
		sleep 0.05
		kill "-${sig%:*}" "$PID"
		wait_for
		expect_status "${sig#*:}"
	done
	expect_clean
}

@test "a program that ignores SIGTERM is killed after the stop time, or at the second one" {
	need_test_image
	start_background --stop-timeout 1 -- 'trap "" TERM; echo ready; while :; do sleep 0.05; done'
	kill -TERM "$PID"
	wait_for
	expect_status 137
	start_background --stop-timeout 100 -- 'trap "" TERM; echo ready; while :; do sleep 0.05; done'
	kill -TERM "$PID"
	sleep 0.1
	kill -TERM "$PID"
	wait_for
	expect_status 143
	expect_clean
}

@test "svrun killed takes the container along" {
	need_test_image
	start_background -- 'echo ready; exec sleep 12345'
	kill -KILL "$PID"
	wait_for
	for _ in $(seq 100); do
		pgrep -f '^sleep 12345$' >/dev/null || break
		sleep 0.02
	done
	! pgrep -f '^sleep 12345$'
	inside -- true
	expect_clean
}

# ---- limits of this version ----

@test "without root there is an error that says so" {
	need_root
	need_program setpriv
	local copy
	copy=$(mktemp /tmp/svrun-copy.XXXXXX) # a place that others can reach
	cp "$SVRUN" "$copy"
	chmod 755 "$copy"
	run_split setpriv --reuid 65534 --clear-groups env SVRUN_ROOT="$T/none" "$copy" run x
	rm "$copy"
	expect_status 125
	[ "$err" = "svrun: run x: svrun run needs root
hint: use sudo; running without root comes in a later version" ] || fail "$err"
}

@test "output that cannot be written is not a success" {
	need_test_image
	status=0
	"$SVRUN" run --rm "$IMAGE" sh -c 'echo lost' >/dev/full 2>"$T/err" </dev/null || status=$?
	err=$(<"$T/err")
	expect_status 125
	expect_in "$err" "write stdout: No space left on device"
	status=0
	"$SVRUN" run --rm "$IMAGE" sh -c 'echo lost; exit 3' >/dev/full 2>"$T/err" </dev/null ||
		status=$?
	expect_status 3
	expect_clean
}

@test "a pipe into a container with a terminal ends, with and without a last newline" {
	need_test_image
	[ "$(printf 'line\n' | timeout 20 "$SVRUN" run --rm -it "$IMAGE" cat | grep -c line)" = 2 ]
	[ "$(printf 'text' | timeout 20 "$SVRUN" run --rm -it "$IMAGE" cat)" = texttext ]
	timeout 20 "$SVRUN" run --rm -it "$IMAGE" cat </dev/null
	expect_clean
}

@test "timings are lines of their own on stderr" {
	need_test_image
	run_split "$SVRUN" run --rm --timings "$IMAGE" true
	[[ $err =~ ^timing\ mount\ [0-9.]+\ ms$'\n'timing\ start\ [0-9.]+\ ms$ ]] || fail "$err"
}

@test "fifty containers at a time, then nothing is left" {
	need_test_image
	for i in $(seq 50); do
		"$SVRUN" run --rm "$IMAGE" sh -c "exit $i" 3>&- &
		pids[i]=$!
	done
	for i in $(seq 50); do
		code=0
		wait "${pids[i]}" || code=$?
		[ "$code" = "$i" ] || fail "container $i ended with $code"
	done
	expect_clean
}
