#!/usr/bin/env bats
# The verbs of svrun-oci: flags, states and the ways between them, errors, what kills leave.

load helpers
load oci

setup() {
	oci_setup
}

teardown() {
	local pid
	for pid in ${PIDS-}; do kill -KILL "$pid" 2>/dev/null || true; done
	oci_teardown
}

# svrun-oci must fail with status 1 and say TEXT.
refuse() { # TEXT COMMAND...
	local text=$1
	shift
	run_split oci "$@"
	[ "$status" = 1 ] || fail "$*: status $status, expected 1" "$out" "$err" || return 1
	expect_in "$err" "$text"
}

status_of() { # [ID]
	oci state "${1-$ID}" | jq -r .status
}

expect_state() { # STATUS
	local is
	is=$(status_of)
	[ "$is" = "$1" ] || fail "it is $is, expected $1"
}

create() { # [OPTION...]; descriptor 3 is what bats waits for
	oci create --bundle "$B" "$@" "$ID" 3>&- </dev/null >"$T/out" 2>"$T/err" || fail "$(<"$T/err")"
}

# A container that waits to be killed.
start_sleeper() {
	change_config "$B" '.process.args = ["sleep", "1000"]'
	create
	oci start "$ID"
}

file_is() { # PATH TEXT
	[ "$(cat "$1")" = "$2" ] || fail "$1 has: $(cat "$1")"
}

await_file() { # PATH
	local i
	for ((i = 0; i < 500; i++)); do
		[ ! -s "$1" ] || return 0
		sleep 0.01
	done
	fail "no $1"
}

# ---- the program itself ----

@test "help, version and usage" {
	run_split oci --help
	expect_status 0
	expect_in "$out" "usage: svrun-oci [options] VERB" "create " "delete " "--log-format"
	run_split oci help
	expect_status 0
	expect_in "$out" "usage: svrun-oci [options] VERB"
	for verb in create start run exec state list ps kill delete pause resume update events spec features \
		checkpoint restore; do
		run_split oci "$verb" --help
		expect_status 0
		expect_in "$out" "usage: svrun-oci $verb"
		run_split oci help "$verb"
		expect_in "$out" "usage: svrun-oci $verb"
	done
	for words in --version -v version; do
		run_split oci "$words"
		expect_status 0
		[[ $out =~ ^"svrun-oci version "[0-9]+\.[0-9]+.*$'\n'"spec: 1."[0-9]+\.[0-9]+$ ]] || fail "$out"
	done
	refuse "no verb given"
	refuse "unknown command 'crate'" crate
	expect_in "$err" "did you mean 'create'?"
	refuse "unknown option '--bundel'" create --bundel x "$ID"
	refuse "missing arguments" state
	refuse "too many arguments" state a b
	refuse "missing arguments" create
	refuse "--log-format: unknown value 'xml'" --log-format xml list
	refuse "--cgroup-manager: unknown value 'mine'" --cgroup-manager mine list
	refuse "--rootless: unknown value 'maybe'" --rootless maybe list
	oci --rootless auto --cgroup-manager=cgroupfs --log-format=json --criu /bin/criu list >"$T/out"
}

@test "all forms of options are understood" {
	create --pid-file="$T/pid1"
	oci delete --force "$ID"
	oci create -b"$B" --pid-file "$T/pid2" --no-pivot --no-new-keyring --no-subreaper "$ID" 3>&- >"$T/out" 2>&1 </dev/null
	oci delete -f "$ID"
	oci create "$ID" -b "$B" 3>&- >"$T/out" 2>&1 </dev/null
	oci delete "$ID"
	[ -s "$T/pid1" ] && [ -s "$T/pid2" ]
	expect_oci_clean
}

# ---- a life ----

@test "create, start, end, delete" {
	set_script "$B" 'read -r word <&0; echo "$word"; exit 3'
	mkfifo "$T/in"
	oci create --bundle "$B" --pid-file "$T/pid" "$ID" 3>&- <>"$T/in" >"$T/out" 2>"$T/err"
	expect_state created
	[ "$(tail -c 1 "$T/pid" | wc -l)" = 0 ] || fail "the pid file ends with a newline"
	[ "$(<"$T/pid")" = "$(oci state "$ID" | jq .pid)" ]
	[ "$(readlink "/proc/$(<"$T/pid")/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ]
	[ ! -s "$T/out" ] || fail "the program has run"
	oci start "$ID"
	expect_state running
	echo word >"$T/in"
	await_status stopped
	file_is "$T/out" word
	[ "$(oci state "$ID" | jq .pid)" = 0 ]
	oci delete "$ID"
	refuse "container does not exist" state "$ID"
	expect_oci_clean
}

@test "the state has the keys and values of runc's" {
	need_program runc
	change_config "$B" '.annotations = {"a": "b", "org.example/x": ""} | .process.rlimits = []
		| del(.process.capabilities.ambient) | .ociVersion = "1.0.2"'
	create
	runc --root "$T/runc" create --bundle "$B" "$ID.runc" 3>&- </dev/null >"$T/runc.out" 2>&1 ||
		skip "runc does not run here: $(<"$T/runc.out")"
	oci state "$ID" >"$T/ours"
	runc --root "$T/runc" state "$ID.runc" >"$T/theirs"
	runc --root "$T/runc" delete --force "$ID.runc"
	diff <(jq -r 'keys[]' "$T/ours") <(jq -r 'keys[]' "$T/theirs")
	diff <(jq -c '[.status, .bundle, .rootfs, .annotations]' "$T/ours") \
		<(jq -c '[.status, .bundle, .rootfs, .annotations]' "$T/theirs")
	jq -e '.id == $id and .owner == "root" and (.ociVersion | startswith("1.")) and .pid > 1
		and (.created | test("^20[0-9-]{8}T[0-9:]{8}\\.[0-9]{9}Z$"))' --arg id "$ID" "$T/ours" >"$T/out"
}

@test "a second create of the same name is refused, and the first stays" {
	create
	refuse "container with given ID already exists" create --bundle "$B" "$ID"
	refuse "container with given ID already exists" run --bundle "$B" "$ID"
	expect_state created
	oci delete "$ID"
	create
	oci delete "$ID"
	expect_oci_clean
}

@test "of ten that create the same name one wins" {
	local i pids=() ok=0
	for i in 1 2 3 4 5 6 7 8 9 10; do
		oci create --bundle "$B" "$ID" >"$T/out.$i" 2>&1 3>&- </dev/null &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		if wait "$i"; then ok=$((ok + 1)); fi
	done
	[ "$ok" = 1 ] || fail "$ok have made it"
	[ "$(cat "$T"/out.* | grep -c 'container with given ID already exists')" = 9 ]
	expect_state created
	oci delete "$ID"
	expect_oci_clean
}

@test "ids that would be more than a name are refused" {
	local id
	for id in .. . a/b ../x 'a b' "$(printf 'a\nb')" .seccomp 'x*' "$(printf '%02000d' 1)"; do
		refuse "invalid container ID format" create --bundle "$B" "$id"
		refuse "invalid container ID format" state "$id"
		refuse "invalid container ID format" delete --force "$id"
	done
	refuse "invalid container ID format" state ""
	expect_oci_clean
}

@test "what does not exist is told in the words that engines look for" {
	local verb
	for verb in state start kill delete ps pause resume; do
		refuse "container does not exist" "$verb" "$ID"
	done
	refuse "container does not exist" kill --all "$ID" KILL
	run_split oci delete --force "$ID"
	expect_status 0
	[ -z "$out$err" ] || fail "$out$err"
}

@test "start of what is not created is refused" {
	start_sleeper
	refuse "cannot start an already running container" start "$ID"
	expect_state running
	oci kill "$ID" KILL
	await_status stopped
	refuse "cannot start a container that has stopped" start "$ID"
}

@test "a config without a process can be created, and not started" {
	change_config "$B" 'del(.process)'
	create
	expect_state created
	refuse "config.json has no process" start "$ID"
	expect_state created
	oci delete "$ID"
	refuse "has no process to run" run --bundle "$B" "$ID"
	expect_oci_clean
}

@test "what changes in the bundle after create changes nothing" {
	set_script "$B" 'echo first'
	create
	set_script "$B" 'echo second'
	mv "$B/config.json" "$B/other.json"
	oci start "$ID"
	await_status stopped
	file_is "$T/out" first
	oci delete "$ID"
}

@test "a program that is not there is an error of create, and leaves nothing" {
	change_config "$B" '.process.args = ["no-such-program"]'
	refuse "executable file not found in PATH" create --bundle "$B" "$ID"
	expect_in "$err" "exec 'no-such-program'"
	change_config "$B" '.process.args = ["/no/such"]'
	refuse "No such file or directory" create --bundle "$B" "$ID"
	change_config "$B" '.process.args = ["/etc/passwd"]'
	refuse "Permission denied" create --bundle "$B" "$ID"
	change_config "$B" '.process.args = ["/etc"]'
	refuse "Permission denied" create --bundle "$B" "$ID"
	refuse "Permission denied" run --bundle "$B" "$ID"
	change_config "$B" '.process.args = ["no-such-program"]'
	refuse "executable file not found in PATH" run --bundle "$B" "$ID"
	expect_oci_clean
}

@test "a start that fails leaves a stopped container" {
	printf '#!/no/interpreter\n' >"$B/rootfs/bin/lost"
	chmod 755 "$B/rootfs/bin/lost"
	change_config "$B" '.process.args = ["lost"]'
	create
	refuse "No such file or directory" start "$ID"
	expect_in "$err" "its interpreter"
	await_status stopped
	oci delete "$ID"
	expect_oci_clean
}

# ---- bad bundles ----

@test "bundles that are none are refused, and leave nothing" {
	refuse "No such file or directory" create --bundle "$T/none" "$ID"
	mkdir "$T/empty"
	refuse "config.json: No such file or directory" create --bundle "$T/empty" "$ID"
	refuse "No such file or directory" create --bundle "$B" --config other.json "$ID"
	: >"$T/empty/config.json"
	refuse "config.json" create --bundle "$T/empty" "$ID"
	for text in '{' '[]' 'null' '{"ociVersion": 1}' '{"ociVersion": "9.9"}' '{"a": 1, "a": 2}' "$(printf '\377')"; do
		printf '%s' "$text" >"$T/empty/config.json"
		refuse "config.json" create --bundle "$T/empty" "$ID"
		refuse "config.json" run --bundle "$T/empty" "$ID"
	done
	head -c 9000000 /dev/zero | tr '\0' ' ' >"$T/empty/config.json"
	refuse "longer than the limit" create --bundle "$T/empty" "$ID"
	change_config "$B" '.root.path = "none"'
	refuse "No such file or directory" create --bundle "$B" "$ID"
	change_config "$B" '.root.path = "config.json"'
	refuse "config.json" create --bundle "$B" "$ID"
	change_config "$B" '.root.path = "rootfs" | .process.args = []'
	refuse "args: empty" create --bundle "$B" "$ID"
	expect_oci_clean
}

@test "a hundred limits are one too many only when they are not limits" {
	change_config "$B" '.process.rlimits = [range(100) | {type: "RLIMIT_NOFILE", soft: 64, hard: 64}]'
	run_split oci run --bundle "$B" "$ID"
	[[ $status = 0 || $err == */process/rlimits* ]] || fail "$err"
	change_config "$B" '.process.rlimits = [{type: "RLIMIT_NONE", soft: 1, hard: 1}]'
	refuse "RLIMIT_NONE" create --bundle "$B" "$ID"
	expect_oci_clean
}

@test "unknown capabilities are warned of" {
	change_config "$B" '.process.capabilities.bounding += ["CAP_NONE"]'
	run_split oci run --bundle "$B" "$ID"
	expect_status 0
	expect_in "$err" "CAP_NONE"
}

@test "the config may have another name" {
	set_script "$B" 'echo other'
	mv "$B/config.json" "$B/other.json"
	[ "$(oci run --bundle "$B" --config other.json "$ID")" = other ]
	[ "$(cd "$B" && oci run -f other.json "$ID")" = other ]
	expect_oci_clean
}

# ---- run ----

@test "run passes on the status, and deletes" {
	local n
	for n in 0 1 77 255; do
		set_script "$B" "exit $n"
		run_split oci run --bundle "$B" "$ID"
		expect_status "$n"
	done
	change_config "$B" '.linux.namespaces |= map(select(.type != "pid"))'
	set_script "$B" 'kill -KILL $$'
	run_split oci run --bundle "$B" "$ID"
	expect_status 137
	expect_oci_clean
}

@test "run passes on the standard streams as they are" {
	set_script "$B" 'cat; echo problem >&2'
	[ "$(printf 'a\nb' | oci run --bundle "$B" "$ID" 2>"$T/err")" = "$(printf 'a\nb')" ]
	file_is "$T/err" problem
	set_script "$B" 'stat -L -c %i /proc/self/fd/0 /proc/self/fd/1'
	: >"$T/file"
	oci run --bundle "$B" "$ID" <"$B/config.json" >"$T/file"
	file_is "$T/file" "$(stat -c %i "$B/config.json" "$T/file")"
	set_script "$B" 'x=$(readlink /proc/1/fd/1); echo unseen; echo "$x" >&2'
	oci run --bundle "$B" "$ID" 2>"$T/err" >&-
	expect_in "$(<"$T/err")" "/dev/null"
}

@test "run passes on signals" {
	set_script "$B" 'trap "echo got; exit 5" USR1; echo ready; while :; do sleep 0.05; done'
	"$OCI" --root "$T/state" run --bundle "$B" "$ID" >"$T/out" 2>&1 3>&- </dev/null &
	PIDS=$!
	await_file "$T/out"
	kill -USR1 "$PIDS"
	status=0
	wait "$PIDS" || status=$?
	expect_status 5
	expect_in "$(<"$T/out")" got
	expect_oci_clean
}

@test "a container in the foreground can be looked at, killed and deleted by others" {
	change_config "$B" '.process.args = ["sleep", "1000"]'
	"$OCI" --root "$T/state" run --bundle "$B" "$ID" >"$T/out" 2>&1 3>&- </dev/null &
	PIDS=$!
	await_status running
	refuse "that is not stopped: running" delete "$ID"
	oci kill "$ID" KILL
	status=0
	wait "$PIDS" || status=$?
	expect_status 137
	"$OCI" --root "$T/state" run --bundle "$B" "$ID" >"$T/out" 2>&1 3>&- </dev/null &
	PIDS=$!
	await_status running
	oci delete --force "$ID"
	wait "$PIDS" || status=$?
	expect_status 137
	[ ! -s "$T/out" ] || fail "$(<"$T/out")"
	expect_oci_clean
}

@test "run --keep keeps it, for delete" {
	set_script "$B" 'exit 4'
	run_split oci run --bundle "$B" --keep "$ID"
	expect_status 4
	expect_state stopped
	oci delete "$ID"
	expect_oci_clean
}

@test "run --detach leaves it running" {
	set_script "$B" 'echo in the back; exec sleep 1000'
	oci run --detach --pid-file "$T/pid" --bundle "$B" "$ID" >"$T/out" 2>&1 3>&- </dev/null
	expect_state running
	[ "$(<"$T/pid")" = "$(oci state "$ID" | jq .pid)" ]
	await_file "$T/out"
	file_is "$T/out" "in the back"
	oci kill "$ID" 9
	await_status stopped
	oci delete "$ID"
	change_config "$B" '.process.args = ["no-such-program"]'
	refuse "executable file not found" run -d --bundle "$B" "$ID"
	expect_oci_clean
}

@test "a killed run takes its container with it" {
	change_config "$B" '.process.args = ["sleep", "1000"]'
	"$OCI" --root "$T/state" run --bundle "$B" "$ID" >"$T/out" 2>&1 3>&- </dev/null &
	PIDS=$!
	await_status running
	kill -KILL "$PIDS"
	await_status stopped
	oci delete "$ID"
	expect_oci_clean
}

# ---- terminals ----

# Listen at $T/console, and show in $T/screen what comes out of the terminal that is sent there.
console_listener() { # [SCRIPT]
	rm -f "$T/console"
	python3 - "$T/console" "$T/screen" 3>&- >"$T/listener" 2>&1 <<-'PY' &
		import array, os, socket, sys
		server = socket.socket(socket.AF_UNIX)
		server.bind(sys.argv[1])
		server.listen(1)
		s, _ = server.accept()
		text, control, _, _ = s.recvmsg(4096, socket.CMSG_SPACE(16))
		fds = array.array("i")
		fds.frombytes(control[0][2][:4])
		assert os.isatty(fds[0]), text
		out = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT, 0o600)
		try:
		    while data := os.read(fds[0], 4096):
		        os.write(out, data)
		except OSError:
		    pass
	PY
	PIDS="${PIDS-} $!"
	for _ in $(seq 500); do
		[ ! -S "$T/console" ] || return 0
		sleep 0.01
	done
	fail "no listener: $(<"$T/listener")"
}

@test "a terminal's master goes to the console socket" {
	change_config "$B" '.process.terminal = true | .process.consoleSize = {height: 33, width: 77}'
	set_script "$B" 'tty; test -t 0 -a -t 1 -a -t 2 && echo three; echo done'
	console_listener
	oci create --bundle "$B" --console-socket "$T/console" "$ID" 3>&- >"$T/out" 2>&1 </dev/null
	oci start "$ID"
	await_status stopped
	for _ in $(seq 300); do grep -q done "$T/screen" && break; sleep 0.01; done
	[ "$(tr -d '\r' <"$T/screen")" = "$(printf '/dev/pts/0\nthree\ndone')" ] || fail "$(<"$T/screen")"
	oci delete "$ID"
	console_listener
	oci run --detach --bundle "$B" --console-socket "$T/console" "$ID" 3>&- >"$T/out" 2>&1 </dev/null
	await_status stopped
	oci delete "$ID"
	expect_oci_clean
}

@test "a terminal without anybody who shows it is refused, and a console without a terminal" {
	change_config "$B" '.process.terminal = true'
	refuse "needs --console-socket" create --bundle "$B" "$ID"
	refuse "needs --console-socket" run --detach --bundle "$B" "$ID"
	console_listener
	refuse "--console-socket needs" run --console-socket "$T/console" --bundle "$B" "$ID"
	change_config "$B" '.process.terminal = false'
	refuse "--console-socket needs" create --console-socket "$T/console" --bundle "$B" "$ID"
	expect_oci_clean
}

@test "a console socket that is none, or that nobody listens at, is refused" {
	change_config "$B" '.process.terminal = true'
	refuse "$T/none" create --console-socket "$T/none" --bundle "$B" "$ID"
	: >"$T/file"
	refuse "$T/file" create --console-socket "$T/file" --bundle "$B" "$ID"
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$T/dead"
	refuse "Connection refused" create --console-socket "$T/dead" --bundle "$B" "$ID"
	expect_oci_clean
}

@test "run in the foreground relays a terminal" {
	need_program script
	change_config "$B" '.process.terminal = true'
	set_script "$B" 'tty; read -r word; echo "read $word"; exit 9'
	echo typed | script -qec "$OCI --root $T/state run --bundle $B $ID" "$T/typescript" >"$T/out" 2>&1 3>&- ||
		status=$?
	expect_in "$(<"$T/out")" /dev/pts/0 "read typed"
	expect_status 9
	expect_oci_clean
}

# ---- descriptors ----

@test "descriptors that are to be preserved arrive, and no others" {
	set_script "$B" 'cat <&3; cat <&4; ls /proc/self/fd'
	echo three >"$T/3"
	echo four >"$T/4"
	echo five >"$T/5"
	oci run --preserve-fds 2 --bundle "$B" "$ID" 3<"$T/3" 4<"$T/4" 5<"$T/5" >"$T/out"
	# ls has a descriptor of its own.
	[ "$(tr '\n' ' ' <"$T/out")" = "three four 0 1 2 3 4 5 " ] || fail "$(<"$T/out")"
	set_script "$B" 'ls /proc/self/fd'
	oci run --bundle "$B" "$ID" 3<"$T/3" 9<"$T/5" >"$T/out"
	[ "$(tr '\n' ' ' <"$T/out")" = "0 1 2 3 " ] || fail "$(<"$T/out")"
	run_split oci run --preserve-fds 2 --bundle "$B" "$ID" 3<"$T/3" 4<&-
	expect_status 1
	expect_in "$err" "descriptor 4 is to be passed on, and is not open"
	refuse "--preserve-fds: expected a number" run --preserve-fds -1 --bundle "$B" "$ID"
	refuse "--preserve-fds: expected a number" run --preserve-fds 99999999999 --bundle "$B" "$ID"
	expect_oci_clean
}

@test "sockets of an activation arrive, with LISTEN_FDS and a LISTEN_PID of 1" {
	set_script "$B" 'cat <&3; cat <&4; echo "$LISTEN_FDS $LISTEN_PID $LISTEN_FDNAMES"'
	echo three >"$T/3"
	echo four >"$T/4"
	LISTEN_FDS=1 LISTEN_FDNAMES=name bash -c 'LISTEN_PID=$$ exec "$@"' bash \
		"$OCI" --root "$T/state" run --preserve-fds 1 --bundle "$B" "$ID" 3<"$T/3" 4<"$T/4" >"$T/out"
	[ "$(tr '\n' ' ' <"$T/out")" = "three four 1 1 name " ] || fail "$(<"$T/out")"
	# Of somebody else they are not ours.
	set_script "$B" 'echo "x$LISTEN_FDS$LISTEN_PID"; ls /proc/self/fd'
	LISTEN_FDS=1 LISTEN_PID=1 oci run --bundle "$B" "$ID" 3<"$T/3" >"$T/out"
	[ "$(tr '\n' ' ' <"$T/out")" = "x 0 1 2 3 " ] || fail "$(<"$T/out")"
}

# ---- kill ----

@test "kill knows signals by number and by name" {
	local pair
	set_script "$B" 'for s in HUP INT TERM USR1 USR2 WINCH 34 37 64; do trap "echo $s" $s; done
		echo ready; while :; do sleep 0.02; done'
	create
	oci start "$ID"
	await_file "$T/out"
	for pair in :TERM 1:HUP SIGINT:INT int:INT sigUsr1:USR1 12:USR2 WINCH:WINCH RTMIN:34 SIGRTMIN+3:37 RTMAX:64; do
		: >"$T/out"
		# shellcheck disable=SC2046 # no word for the default
		oci kill "$ID" $(printf %s "${pair%%:*}")
		await_file "$T/out"
		file_is "$T/out" "${pair#*:}"
	done
	for pair in FOO SIG 65 -1 999999999999 RTMIN+99 RTMAX+1 RTMIN-1 1x; do
		run_split oci kill -- "$ID" "$pair"
		expect_status 1
		expect_in "$err" "unknown signal \"$pair\""
	done
	oci kill "$ID" 0
	expect_state running
}

@test "kill of one that has stopped is refused in the words that engines look for" {
	start_sleeper
	oci kill "$ID" KILL
	await_status stopped
	refuse "container not running" kill "$ID" KILL
	refuse "container not running" kill "$ID" 0
	oci kill --all "$ID" KILL
	oci delete "$ID"
}

@test "a created container can be killed" {
	create
	oci kill "$ID" KILL
	await_status stopped
	refuse "cannot start a container that has stopped" start "$ID"
	oci delete "$ID"
	expect_oci_clean
}

@test "kill --all reaches every process" {
	change_config "$B" '.linux.namespaces |= map(select(.type != "pid"))'
	set_script "$B" 'sleep 1000 & sleep 1000 & trap : TERM; echo ready; wait; sleep 1000'
	create
	oci start "$ID"
	await_file "$T/out"
	[ "$(oci ps --format json "$ID" | jq length)" = 3 ]
	oci kill --all "$ID" KILL
	await_status stopped
	for _ in $(seq 200); do
		[ "$(oci ps --format json "$ID")" != "[]" ] || break
		sleep 0.01
	done
	[ "$(oci ps --format json "$ID")" = "[]" ]
	oci delete "$ID"
	expect_oci_clean
}

@test "kill and delete take patterns" {
	local id
	change_config "$B" '.process.args = ["sleep", "1000"]'
	for id in "$ID.a1" "$ID.a2" "$ID.b"; do
		oci run -d --bundle "$B" "$id" 3>&- >"$T/out" 2>&1 </dev/null
	done
	oci kill --regex "$ID\\.a[0-9]\$" KILL
	await_status stopped "$ID.a1"
	await_status stopped "$ID.a2"
	[ "$(status_of "$ID.b")" = running ]
	oci delete --regex "$ID\\.a."
	[ "$(oci list -q)" = "$ID.b" ]
	refuse "1 of 1 containers" delete --regex "^$ID\\.b"
	oci delete --regex "nothing"
	oci delete --force -r "^$ID"
	[ -z "$(oci list -q)" ]
	refuse "is no regular expression" kill --regex '('
	expect_oci_clean
}

# ---- delete ----

@test "delete of one that runs, or is paused, is refused without --force" {
	start_sleeper
	refuse "cannot delete container $ID that is not stopped: running" delete "$ID"
	expect_state running
	oci pause "$ID"
	expect_state paused
	refuse "cannot delete container $ID that is not stopped: paused" delete "$ID"
	oci delete --force "$ID"
	expect_oci_clean
	start_sleeper
	oci pause "$ID"
	oci kill "$ID" KILL
	await_status stopped
	oci delete "$ID"
	expect_oci_clean
}

@test "delete takes what processes of a stopped container are left" {
	change_config "$B" '.linux.namespaces |= map(select(.type != "pid"))'
	set_script "$B" 'sleep 1000 & echo $!'
	oci run --keep --bundle "$B" "$ID" >"$T/out" 2>&1 3>&- </dev/null || true
	oci delete "$ID" || oci delete --force "$ID"
	expect_oci_clean
}

# ---- list and ps ----

@test "list shows all, as a table, as JSON, or ids" {
	[ "$(oci list --format json)" = "[]" ]
	[ "$(oci list)" = "ID          PID         STATUS      BUNDLE      CREATED     OWNER" ]
	[ -z "$(oci list --quiet)" ]
	start_sleeper
	oci create --bundle "$B" "$ID.2" 3>&- >"$T/out" 2>&1 </dev/null
	[ "$(oci list -q)" = "$(printf '%s\n%s' "$ID" "$ID.2")" ]
	run_split oci list
	[ "$(wc -l <<<"$out")" = 3 ]
	[[ $out =~ $'\n'"$ID"\ +[0-9]+\ +running\ +"$B"\ +20[0-9T:.-]+Z\ +root ]] || fail "$out"
	[[ $out =~ $'\n'"$ID.2"\ +[0-9]+\ +created\ +"$B" ]] || fail "$out"
	[ "$(oci list -f json | jq -c 'map([.id, .status])')" = "[[\"$ID\",\"running\"],[\"$ID.2\",\"created\"]]" ]
	diff <(oci list -f json | jq -S '.[0]') <(oci state "$ID" | jq -S .)
	refuse "--format: expected table or json" list --format xml
	# What is no container is not listed.
	mkdir "$T/state/.seccomp" 2>/dev/null || true
	: >"$T/state/file"
	[ "$(oci list -q | wc -l)" = 2 ]
	rm "$T/state/file"
}

@test "ps shows the container's processes, with the options of ps" {
	set_script "$B" 'sleep 1000 & exec sleep 1001'
	create
	oci start "$ID"
	for _ in $(seq 100); do [ "$(oci ps -f json "$ID" | jq length)" = 2 ] && break; sleep 0.01; done
	oci ps --format json "$ID" | jq -e --argjson pid "$(oci state "$ID" | jq .pid)" 'index($pid) != null'
	run_split oci ps "$ID"
	expect_in "$out" "UID " "sleep 1000" "sleep 1001"
	[ "$(wc -l <<<"$out")" = 3 ] || fail "$out"
	run_split oci ps "$ID" -o ppid,pid,args
	[[ $out == *PPID*PID*COMMAND* ]] || fail "$out"
	[ "$(wc -l <<<"$out")" = 3 ] || fail "$out"
	refuse "no column PID" ps "$ID" -o comm
	refuse "ps ended with status" ps "$ID" --no-such-option
}

# ---- logs ----

@test "errors go to the log as engines read them" {
	run_split oci --log "$T/log" --log-format json state none
	expect_status 1
	expect_in "$err" "svrun-oci: none: container does not exist"
	jq -e '.level == "error" and .msg == "none: container does not exist" and (.time | fromdate > 0)' "$T/log"
	oci --log="$T/log" --log-format=json state "$(printf 'a\377"\\b')" 2>"$T/err" || true
	[ "$(jq -s length "$T/log")" = 2 ]
	oci --log "$T/text" state none 2>"$T/err" || true
	[[ $(<"$T/text") =~ ^time=\"20[0-9T:-]+Z\"\ level=error\ msg=\"none:\ container\ does\ not\ exist\"$ ]] ||
		fail "$(<"$T/text")"
	run_split oci --log-format json state none
	jq -e '.level == "error"' <<<"$err"
	oci --log "$T/quiet" list >"$T/out"
	[ ! -s "$T/quiet" ]
	oci --debug --log "$T/debug" --log-format json state none 2>"$T/err" || true
	jq -se 'map(.level) == ["debug", "debug", "error"] and (.[1].msg | test("^at .*:[0-9]+$"))' "$T/debug"
	change_config "$B" '.process.args = ["/etc/passwd"]'
	refuse "exec '/etc/passwd': Permission denied" --log "$T/exec" create --bundle "$B" "$ID"
	expect_in "$(<"$T/exec")" "exec '/etc/passwd': permission denied"
	run_split oci --log "$T/no/such/log" state none
	expect_status 1
	expect_in "$err" "cannot write to --log" "container does not exist"
}

# ---- the root ----

@test "the root is made for us alone, and refused when it is not" {
	oci list >"$T/out"
	[ "$(stat -c %a "$T/state")" = 700 ]
	chmod 777 "$T/state"
	refuse "can be written to by others" list
	chmod 700 "$T/state"
	chown 1 "$T/state"
	refuse "belongs to user 1" list
	chown 0 "$T/state"
	ln -s state "$T/link"
	run_split "$OCI" --root "$T/link" list
	expect_status 1
	ln -s /etc "$T/state/$ID"
	refuse "$ID" state "$ID"
	refuse "already exists" create --bundle "$B" "$ID"
	refuse "$ID" delete "$ID"
	rm "$T/state/$ID"
	[ -d /etc ]
	create
	[ "$(stat -c %a "$T/state/$ID")" = 700 ]
	[ "$(find "$T/state" -type f -perm /077)" = "" ]
}

# ---- what kills leave ----

@test "what a killed create leaves is no container, and delete --force removes it" {
	mkdir -m 700 -p "$T/state/$ID"
	expect_state stopped
	refuse "cannot start a container that has stopped" start "$ID"
	refuse "container not running" kill "$ID" KILL
	[ "$(oci list -f json | jq -c 'map([.id, .status, .pid])')" = "[[\"$ID\",\"stopped\",0]]" ]
	oci delete --force "$ID"
	mkdir -m 700 "$T/state/$ID"
	oci delete "$ID"
	for text in '' '{' '{"pid":' '{"pid": "1"}' '[]' "$(printf '\377')"; do
		mkdir -m 700 "$T/state/$ID"
		printf '%s' "$text" >"$T/state/$ID/state.json"
		oci list >"$T/out"
		expect_state stopped
		oci delete --force "$ID"
	done
	expect_oci_clean
}

@test "a pid that another process has got is not taken for the container's" {
	start_sleeper
	oci kill "$ID" KILL
	await_status stopped
	sleep 1000 3>&- &
	PIDS=$!
	jq --argjson pid "$PIDS" '.pid = $pid' "$T/state/$ID/state.json" >"$T/new"
	cat "$T/new" >"$T/state/$ID/state.json"
	expect_state stopped
	refuse "container not running" kill "$ID" KILL
	oci delete --force "$ID"
	kill -0 "$PIDS" || fail "the other process was killed"
}

@test "nobody waits for a create that takes its time, and delete takes what its kill leaves" {
	change_config "$B" '.hooks.createRuntime = [{path: "/bin/sh",
		args: ["sh", "-c", $s]}]' --arg s "echo here >$T/here; exec sleep 1000"
	"$OCI" --root "$T/state" create --bundle "$B" "$ID" >"$T/out" 2>&1 3>&- </dev/null &
	PIDS=$!
	await_file "$T/here"
	expect_state creating
	[ "$(oci list -f json | jq -r '.[0].status')" = creating ]
	refuse "container with given ID already exists" create --bundle "$B" "$ID"
	refuse "container not running" kill "$ID" KILL
	kill -KILL "$PIDS"
	wait "$PIDS" || true
	oci delete --force "$ID"
	expect_oci_clean
}

# All system calls of `create`, one per line, in their order.
trace_create() { # FILE
	strace -qq -o "$T/trace" "$OCI" --root "$T/state" create --bundle "$B" "$ID" 3>&- >"$T/out" 2>&1 </dev/null ||
		fail "$(<"$T/out")"
	sed -En 's/^([a-z_0-9]+)\(.*/\1/p' "$T/trace" >"$1"
	oci delete --force "$ID"
}

@test "kill -9 of create at every step leaves what delete --force removes" {
	need_program strace
	export ASAN_OPTIONS=detect_leaks=0 # it does not look under strace
	local call n step=0 killed=0
	declare -A seen
	change_config "$B" '.process.args = ["sleep", "1000"] | .linux.resources.pids = {limit: 100}'
	trace_create "$T/calls"
	[ "$(wc -l <"$T/calls")" -gt 50 ]
	while read -r call; do
		seen[$call]=$((${seen[$call]-0} + 1))
		n=${seen[$call]}
		step=$((step + 1))
		# exec makes its own trouble with strace; every third of the others is close enough
		[[ $call != exec* && $((step % 3)) = 0 ]] || continue
		strace -qq -o /dev/null -e inject="$call:signal=KILL:when=$n" "$OCI" --root "$T/state" \
			create --bundle "$B" "$ID" 3>&- >"$T/out" 2>&1 </dev/null && continue
		killed=$((killed + 1))
		oci delete --force "$ID" || fail "at $call $n" || return 1
		expect_oci_clean || fail "at $call $n" || return 1
	done <"$T/calls"
	[ "$killed" -gt 20 ] || fail "only $killed kills"
	oci delete --force "$ID"
	expect_oci_clean
}

@test "kill -9 of delete at every step leaves what delete --force removes" {
	need_program strace
	export ASAN_OPTIONS=detect_leaks=0 # it does not look under strace
	local call n step=0 killed=0
	declare -A seen
	change_config "$B" '.process.args = ["sleep", "1000"]'
	create
	strace -qq -o "$T/trace" "$OCI" --root "$T/state" delete --force "$ID" >"$T/out" 2>&1
	sed -En 's/^([a-z_0-9]+)\(.*/\1/p' "$T/trace" >"$T/calls"
	while read -r call; do
		seen[$call]=$((${seen[$call]-0} + 1))
		n=${seen[$call]}
		step=$((step + 1))
		[[ $call != exec* && $((step % 4)) = 0 ]] || continue
		create
		strace -qq -o /dev/null -e inject="$call:signal=KILL:when=$n" "$OCI" --root "$T/state" \
			delete --force "$ID" >"$T/out" 2>&1 || killed=$((killed + 1))
		oci delete --force "$ID" || fail "at $call $n" || return 1
		expect_oci_clean || fail "at $call $n" || return 1
	done <"$T/calls"
	[ "$killed" -gt 5 ] || fail "only $killed kills"
}

@test "peak memory stays under 2.5 MB" {
	need_program time
	! nm "$OCI" 2>/dev/null | grep -q __asan_init || skip "a build with sanitizers"
	local kb
	/usr/bin/time -o "$T/time" -f %M "$OCI" --root "$T/state" run --bundle "$B" "$ID"
	kb=$(<"$T/time")
	echo "# run: $kb KB" >&3
	[ "$kb" -lt 2500 ] || fail "$kb KB"
}

@test "the log is there from the start, and --debug says what was asked" {
	oci --log "$T/log" run --bundle "$B" "$ID"
	[ -e "$T/log" ] && [ ! -s "$T/log" ]
	oci --debug --log "$T/log" --log-format json run --bundle "$B" "$ID"
	[ "$(jq -r .level "$T/log")" = debug ] || fail "$(cat "$T/log")"
	expect_in "$(jq -r .msg "$T/log")" "run --bundle"
	run_split oci --debug run --bundle "$B" "$ID"
	expect_in "$err" level=debug
}

@test "run --keep leaves the container stopped, with its cgroup, for delete" {
	change_config "$B" '.linux.cgroupsPath = "/\($id)"' --arg id "$ID"
	oci run --keep --bundle "$B" "$ID"
	[ "$(oci state "$ID" | jq -r .status)" = stopped ]
	[ -n "$(find /sys/fs/cgroup -maxdepth 2 -name "$ID")" ]
	oci delete "$ID"
	expect_oci_clean
}

@test "a created container can be paused, is not started then, and goes on after resume" {
	oci create --bundle "$B" "$ID"
	oci pause "$ID"
	[ "$(oci state "$ID" | jq -r .status)" = paused ]
	run_split timeout 20 "$OCI" --root "$T/state" start "$ID"
	expect_status 1
	expect_in "$err" "paused"
	oci resume "$ID"
	[ "$(oci state "$ID" | jq -r .status)" = created ]
	oci start "$ID"
	await_status stopped
	oci delete "$ID"
	expect_oci_clean
}

@test "an error of the container's process reaches the log" {
	echo zzz >"$B/rootfs/bin/nox" && chmod 755 "$B/rootfs/bin/nox"
	change_config "$B" '.process.args = ["/bin/nox"]'
	oci create --bundle "$B" "$ID"
	run_split oci --debug --log "$T/log" --log-format json start "$ID"
	expect_status 1
	expect_in "$(jq -r 'select(.level == "error") | .msg' "$T/log")" "exec '/bin/nox'"
	oci delete "$ID"
}

@test "a start that is killed before it has removed the door leaves a running container" {
	need_program strace
	set_script "$B" 'sleep 1000'
	oci create --bundle "$B" "$ID"
	strace -qq -o /dev/null -e inject=unlinkat:signal=KILL:when=1 "$OCI" --root "$T/state" start "$ID" || true
	[ "$(oci state "$ID" | jq -r .status)" = running ] || fail "$(oci state "$ID")"
	run_split oci delete "$ID"
	expect_status 1
	run_split oci start "$ID"
	expect_in "$err" "already running"
	oci delete --force "$ID"
	expect_oci_clean
}

@test "who cannot have a container's lock in time gives up, and delete --force works afterwards" {
	local holder
	change_config "$B" '.hooks.createRuntime = [{path: "/bin/sleep", args: ["sleep", "1000"]}]'
	"$OCI" --root "$T/state" create --bundle "$B" "$ID" 3>&- &
	holder=$!
	for _ in $(seq 300); do
		[ ! -e "$T/state/$ID/state.json" ] || break
		sleep 0.01
	done
	run_split oci delete --force "$ID"
	expect_status 1
	expect_in "$err" "another svrun-oci works on the container"
	kill -9 "$holder"
	wait "$holder" || true
	oci delete --force "$ID"
	expect_oci_clean
}

@test "a pid file is ours, whatever somebody has put where it is made" {
	mkfifo "$T/pid.tmp"
	timeout 20 "$OCI" --root "$T/state" run --detach --pid-file "$T/pid" --bundle "$B" "$ID"
	[ -f "$T/pid" ]
	await_status stopped
	oci delete "$ID"
}

@test "a terminal in the foreground needs one to be shown on" {
	change_config "$B" '.process.terminal = true'
	run_split timeout 20 "$OCI" --root "$T/state" run --bundle "$B" "$ID"
	expect_status 1
	expect_in "$err" "our standard input is no terminal"
	expect_oci_clean
}

@test "a memory limit that is too low to start in is named" {
	change_config "$B" '.linux.resources.memory = {limit: 65536}'
	run_split oci run --bundle "$B" "$ID"
	[ "$status" != 0 ] || skip "the host does not enforce it"
	expect_in "$err" memory
	expect_oci_clean
}

@test "without a cgroup, when --cgroup-manager says so" {
	run_split oci --cgroup-manager disabled run --bundle "$B" "$ID"
	expect_status 0
	[ -z "$(find /sys/fs/cgroup -maxdepth 2 -name "$ID")" ]
}
