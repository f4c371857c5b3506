#!/usr/bin/env bats
# Steps that run code during a build: `run`, apt.configure "dpkg", byte code. In a sandbox over the composed
# tree, without a network, bounded, and cached by what they see.

load helpers

# An app whose programs are busybox's; $APP is its folder. RUN is a JSON array for "run".
step_app() { # NAME RUN [JQ-FILTER]
	need_root
	need_program busybox
	file -L "$(command -v busybox)" | grep -q 'statically linked' || skip "needs a static busybox"
	[ "$SVRUN_ROOT" != "$WORK/store" ] || new_store
	make_app "$1" '.files += [{dest: "/bin/busybox", from: "busybox", mode: "0755"},
			{id: "in", dest: "/data/in", inline: "v1\n"}]
		| .dirs = [{path: "/out"}, {path: "/tmp", mode: "1777"}]
		| .links = [["sh", "cat", "echo", "sleep", "yes", "dd", "wc", "base64", "rm", "env", "ls", "id", "mkdir"][]
			| {path: "/bin/\(.)", target: "busybox"}]
		| .entrypoint = ["/bin/sh"]'
	cp "$(command -v busybox)" "$APP/busybox"
	jq --argjson run "$2" ".run = \$run | ${3:-.}" "$APP/manifest.json" >"$T/m"
	mv "$T/m" "$APP/manifest.json"
	"$SVRUN" image lock "$APP" >/dev/null
}

script() { # TEXT [JQ-FILTER]: a step of that text that may write to /out
	jq -n --arg text "$1" "[{id: \"it\", script: \$text, writes: [\"/out/**\"]} | ${2:-.}]"
}

build_fails() { # [OPTION...]: and leaves nothing
	run_split "$SVRUN" image build "$@" "$APP"
	[ "$status" != 0 ] || fail "it was built: $out $err"
	expect_no_step
}

expect_no_step() {
	expect_nothing_left "$SVRUN_ROOT"
	[ -z "$(ls -A "$SVRUN_ROOT/steps" 2>/dev/null)" ] || fail "left steps: $(ls "$SVRUN_ROOT/steps")" || return 1
	local id
	id=$(stat -c '%d' "$SVRUN_ROOT/steps" 2>/dev/null) || return 0
	[ -z "$(find /sys/fs/cgroup -maxdepth 4 -path "*/svrun/build-*.$(printf %x "$id").$(stat -c %i \
		"$SVRUN_ROOT/steps" | xargs printf %x)" 2>/dev/null)" ] || fail "left a cgroup"
}

@test "a step's files are in the image, with its owner and mode, and two builds are the same" {
	step_app one "$(script 'echo made of $(cat /data/in) > /out/x; mkdir -p /out/d; umask 077; echo y > /out/d/y
		rm /etc/text; ln -s x /out/l' '.writes += ["/etc/text"]')"
	local first
	first=$("$SVRUN" image build -q "$APP")
	run_split "$SVRUN" run --rm one -c 'cat /out/l; ls -l /out/d; ls /etc; ls /bin'
	expect_status 0
	expect_in "$out" "made of v1" "-rw-------    1 0        0                2 Jan  1  2026 y"
	[[ $out != *text* ]] || fail "$out"
	[ "$first" = "$("$SVRUN" image build -q --no-cache "$APP")" ]
	expect_no_step
}

@test "argv is run without a shell; user, folder and variables are the step's; the rest is fixed" {
	step_app one '[{"id": "it", "argv": ["/bin/sh", "-c", "id; env; pwd; echo $0", "a b; exit 3"], "writes": [],
		"user": "1000:1000", "workdir": "/data", "env": {"A": "1", "LANG": "C"}}]'
	A=host HOME=/nonexistent FOO=bar "$SVRUN" image build -q "$APP"
	run_split "$SVRUN" image log "$APP" run:it
	expect_status 0
	expect_in "$out" "uid=1000 gid=1000" "A=1" "LANG=C" "TZ=UTC" "HOME=/root" "SOURCE_DATE_EPOCH=1767225600" \
		"HOSTNAME=svrun" "/data" "a b; exit 3"
	[[ $out != *FOO* && $out != *SVRUN* ]] || fail "$out"
}

@test "a step has no network, and sees no process, file or device of the host" {
	step_app one "$(script 'cat /proc/net/dev; ls /proc | busybox grep -c "^[0-9]"; ls /dev; ls /')"
	"$SVRUN" image build -q "$APP"
	run_split "$SVRUN" image log "$APP" run:it
	[[ $out != *eth0* && $out != *sda* && $out != *vda* && $out != *var* ]] || fail "$out"
	[ "$(grep -c : <<<"$out")" = 1 ] || fail "more than the loopback: $out"
}

@test "what was done is found again until something that the step sees changes" {
	step_app one "$(script 'cat /proc/sys/kernel/random/uuid > /out/uuid')"
	"$SVRUN" image build -q "$APP"
	local first
	first=$("$SVRUN" run --rm one -c 'cat /out/uuid')
	jq '.labels = {a: "b"} | .run[0].timeoutMs = 5000' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	"$SVRUN" image build -q "$APP"
	[ "$first" = "$("$SVRUN" run --rm one -c 'cat /out/uuid')" ]
	jq '(.files[] | select(.id == "in")).inline = "v2"' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	"$SVRUN" image lock --files "$APP" >/dev/null
	"$SVRUN" image build -q "$APP"
	[ "$first" != "$("$SVRUN" run --rm one -c 'cat /out/uuid')" ]
}

@test "a step that writes elsewhere is refused with the place in the manifest, and every path" {
	step_app one "$(script 'for i in 1 2 3 4 5 6 7 8 9 a b; do echo x > /data/$i; done')"
	build_fails
	expect_status 2
	expect_in "$err" "$APP/manifest.json:" "SV061 /run/0/writes: step run:it wrote outside: /data/1, /data/2" "and 3 more"
	run_split "$SVRUN" image log "$APP" run:it
	expect_in "$out" "/data/a" "/data/b" "/data/9"
	# What ran need not run again when only the list was wrong.
	jq '.run[0].writes = ["/data/?"]' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	run_split "$SVRUN" image build --format json "$APP"
	expect_status 0
	[ "$(jq .count.stepsReused <<<"$out")" = 1 ]
}

@test "a step that fails shows its last 40 lines, its log and the command that runs it again" {
	step_app one "$(script 'for i in $(busybox seq 1 100); do echo line $i; done; exit 9')"
	build_fails
	expect_in "$err" "  | line 100" "  | line 61" "step run:it failed with exit status 9; its log: $SVRUN_ROOT/logs/" \
		"run it again: svrun image build $APP"
	[[ $err != *"line 60"$'\n'* ]] || fail "$err"
	local log
	log=$(sed -n 's/.*its log: //p' <<<"$err" | head -n 1)
	[ "$(wc -l <"$log")" = 100 ]
	run_split "$SVRUN" image log "$APP" run:it
	expect_in "$out" "line 1" "line 100"
}

@test "a program that is not there, or not in the image's /etc/passwd, is an error that names it" {
	step_app one '[{"id": "it", "argv": ["/bin/none"], "writes": []}]'
	build_fails
	expect_in "$err" "run:it" "/bin/none"
	step_app two '[{"id": "it", "argv": ["/bin/sh"], "user": "nobody", "writes": []}]'
	build_fails
	expect_in "$err" "run:it" "nobody"
}

@test "a build goes on behind the last step that was done" {
	step_app one "$(jq -n '[{id: "a", script: "cat /proc/sys/kernel/random/uuid > /out/a", writes: ["/out/a"]},
		{id: "b", script: "exit 1", writes: []}]')"
	build_fails
	jq '.run[1].script = "exit 0"' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	run_split "$SVRUN" image build --format json "$APP"
	expect_status 0
	[ "$(jq -c '[.count.stepsRun, .count.stepsReused]' <<<"$out")" = "[1,1]" ] || fail "$out"
}

@test "steps that leave each other out run side by side, and give the same image one after the other" {
	step_app one "$(jq -n '[{id: "first", script: "echo 1 > /out/first", writes: ["/out/**"]},
		{id: "a", script: "cat /out/first /data/in > /out/a; mkdir /out/d; echo a > /out/d/a; sleep 0.3", inputs: ["first", "in"], writes: ["/out/**"]},
		{id: "b", script: "ls /out /data > /out/b; mkdir /out/d; echo b > /out/d/b", inputs: ["first"], writes: ["/out/**"]},
		{id: "c", script: "ls /out /data > /out/c", inputs: [], writes: ["/out/**"]},
		{id: "last", script: "ls /out/d > /out/last; rm /out/c", writes: ["/out/**"]}]')"
	local first json
	first=$("$SVRUN" image build -q --jobs 4 "$APP")
	[ "$first" = "$("$SVRUN" image build -q --no-cache --jobs 1 "$APP")" ]
	[ "$first" = "$("$SVRUN" image build -q --no-cache "$APP")" ]
	run_split "$SVRUN" run --rm one -c 'cat /out/a /out/b /out/last; ls /out'
	expect_in "$(echo $out)" "1 v1 /data: /out: b first a b a b d first last"
	run_split "$SVRUN" image log "$APP" run:b
	# Another file is nothing that b sees.
	jq '(.files[] | select(.id == "in")).inline = "v2"' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	"$SVRUN" image lock --files "$APP" >/dev/null
	run_split "$SVRUN" image build --format json "$APP"
	[ "$(jq -c '[.count.stepsRun, .count.stepsReused]' <<<"$out")" = "[3,2]" ] || fail "$out $err"
	expect_no_step
}

running_steps() { # how many
	ls "$SVRUN_ROOT/steps" 2>/dev/null | wc -l
}

@test "--jobs says how many steps run at a time" {
	local pid i
	step_app two "$(jq -n '[["a", "b"][] | {id: ., inputs: [], writes: [], timeoutMs: 30000, script: "sleep 1000"}]')"
	"$SVRUN" image build -q --jobs 2 "$APP" >/dev/null 2>&1 &
	pid=$!
	for ((i = 0; i < 200; i++)); do
		[ "$(running_steps)" != 2 ] || break
		sleep 0.1
	done
	[ "$i" -lt 200 ] || fail "one at a time"
	kill -TERM "$pid"
	wait "$pid" || true
	step_app one "$(jq -n '[["a", "b"][] | {id: ., inputs: [], writes: [], script: "sleep 0.5"}]')"
	"$SVRUN" image build -q --jobs 1 "$APP" >/dev/null &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		[ "$(running_steps)" -lt 2 ] || fail "two at a time"
		sleep 0.05
	done
	wait "$pid"
}

@test "two steps that do not see each other and write the same are refused by their names" {
	step_app one "$(jq -n '[{id: "a", script: "echo x > /out/x", inputs: [], writes: ["/out/**"]},
		{id: "b", script: "echo x > /out/x", inputs: [], writes: ["/out/**"]}]')"
	build_fails
	expect_status 2
	expect_in "$err" "$APP/manifest.json:" "SV068 /run/1/inputs: the steps run:a and run:b both write /out/x" 'add "a" to these inputs'
	step_app two "$(jq -n '[{id: "a", script: "echo x > /data/y", inputs: [], writes: ["/data/**"]},
		{id: "b", script: "rm -r /data", inputs: [], writes: ["/data/**"]}]')"
	build_fails
	expect_in "$err" "SV068 /run/1/inputs: the steps run:a and run:b both write /data"
	# One that sees the other may.
	jq '.run[1].inputs = ["a"]' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	"$SVRUN" image build -q "$APP"
	jq '.run[0].inputs = ["b"]' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	build_fails
	expect_in "$err" "/run/0/inputs/0: no source, file or step before it has the id 'b'"
}

@test "a step that fails stops those beside it, and the log of each is whole" {
	step_app one "$(jq -n '[{id: "a", script: "echo begun; sleep 1000", timeoutMs: 30000, inputs: [], writes: []},
		{id: "b", script: "echo also; sleep 0.5; exit 9", inputs: [], writes: []}]')"
	build_fails --jobs 2
	expect_in "$err" "step run:b failed with exit status 9"
	[[ $err != *"step run:a"* ]] || fail "$err"
	run_split "$SVRUN" image log "$APP" run:a
	[ "$out" = $'begun\nsvrun: stopped, as another step failed' ] || fail "$out"
	run_split "$SVRUN" image log "$APP" run:b
	[ "$out" = also ] || fail "$out"
}

@test "steps side by side that want the same cache folder take turns, and a build that is told to end leaves none" {
	local pid i status=0
	step_app one "$(jq -n '[["a", "b"][] | {id: ., inputs: [], writes: [], cache: [{id: "c", target: "/c"}], script: "
		mkdir /c/mine || exit 5; sleep 0.3; busybox rmdir /c/mine"}]')"
	"$SVRUN" image build -q --jobs 2 "$APP"
	step_app two "$(jq -n '[{id: "a", script: "echo > /c/ready; sleep 1000", timeoutMs: 30000, inputs: [], writes: [], cache: [{id: "c", target: "/c"}]},
		{id: "b", script: "sleep 1000", timeoutMs: 30000, inputs: [], writes: []}]')"
	start_build --jobs 2
	kill -TERM "$pid"
	wait "$pid" || status=$?
	[ "$status" = 143 ] || fail "status $status"
	expect_no_step
}

@test "a step that forks for ever is stopped" {
	step_app one "$(script 'f() { f & f & }; f; while :; do f; done' '.timeoutMs = 60000')"
	build_fails
	expect_in "$err" "$APP/manifest.json:" "SV067 /run/0: step run:it was stopped: it reached the limit of 4096 processes"
}

@test "a step that fills the disk is stopped, and the disk is as free as before" {
	need_root
	new_disk 200M
	export SVRUN_ROOT=$MOUNT/store # or the disk that is filled is the host's
	mkdir -m 700 "$SVRUN_ROOT"
	echo '{"imageLayoutVersion": "1.0.0"}' >"$SVRUN_ROOT/oci-layout"
	step_app one "$(script 'while :; do dd if=/dev/zero of=/out/$((i = i + 1)) bs=1M count=1; done')"
	local before after
	before=$(df --output=avail -k "$MOUNT" | tail -n 1)
	build_fails
	expect_in "$err" "$APP/manifest.json:" "SV067 /run/0: step run:it was stopped: it filled the disk" \
		"free space on the file system of $SVRUN_ROOT, or set SVRUN_ROOT"
	after=$(df --output=avail -k "$MOUNT" | tail -n 1)
	[ "$((before - after))" -lt 8192 ] || fail "$before KiB were free, $after are"
	# The log is bounded, and cache folders do not keep the disk full.
	step_app two "$(script 'yes')"
	build_fails
	expect_in "$err" "step run:it was stopped: it printed more than 64 MiB"
	[ "$(stat -c %s "$SVRUN_ROOT/logs/two/run:it.log")" = $((64 << 20)) ]
	rm "$SVRUN_ROOT/logs/two/run:it.log"
	step_app full "$(script 'cat /dev/zero > /c/x' '.cache = [{id: "c", target: "/c"}]')"
	build_fails
	expect_in "$err" "filled the disk"
	[ ! -e "$SVRUN_ROOT/cache/mounts/c/x" ] || fail "the cache folder is left"
	step_app three "$(script 'cat /dev/zero > /tmp/x')"
	build_fails
	expect_in "$err" "filled the disk"
	# Two at a time do not fill it either: a tenth stays free, but for what is written between two looks.
	local pid least=$before now
	step_app four "$(jq -n '[["a", "b"][] | {id: ., inputs: [], writes: ["/out/**"],
		script: "while :; do dd if=/dev/zero of=/out/$((i = i + 1)) bs=64k count=4; done"}]')"
	"$SVRUN" image build --jobs 2 "$APP" >"$T/out" 2>&1 &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		now=$(stat -fc %a "$MOUNT")
		[ "$now" -ge "$least" ] || least=$now
	done
	! wait "$pid"
	expect_in "$(<"$T/out")" "filled the disk"
	[ "$((least * $(stat -fc %S "$MOUNT")))" -gt 4194304 ] || fail "$least blocks were free"
	expect_no_step
	# Who filled it is named, not who runs beside it.
	step_app beside "$(jq -n '[range(7) | {id: "i\(.)", script: "echo > /out/\(.); sleep 1000"}] +
		[{id: "it", script: "while :; do dd if=/dev/zero of=/c/$((i = i + 1)) bs=1M count=1; done", cache: [{id: "c", target: "/c"}]}] |
		map(.inputs = [] | .writes = ["/out/**"])')"
	build_fails --jobs 8
	expect_in "$err" "step run:it was stopped: it filled the disk"
	# A disk that is full already is no limit of a step's own.
	step_app five "$(jq -n '[["a", "b"][] | {id: ., inputs: [], writes: ["/out/**"],
		script: "dd if=/dev/zero of=/out/\(.) bs=1M count=200"}]')"
	fallocate -l "$(($(stat -fc %a "$MOUNT") * $(stat -fc %S "$MOUNT") - 2097152))" "$MOUNT/fill"
	build_fails --jobs 2
	expect_in "$err" "was stopped: it filled the disk"
}

@test "a step that runs for too long, or wants too much memory, is stopped" {
	step_app one "$(script 'sleep 1000' '.timeoutMs = 500')"
	build_fails
	expect_in "$err" "$APP/manifest.json:" "SV067 /run/0/timeoutMs: step run:it was stopped after its time of 500 ms"
	[[ $err != *"last lines"* ]] || fail "of an empty log: $err"
	step_app two "$(script 'x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done' '.memoryMiB = 24')"
	build_fails
	expect_in "$err" "SV067 /run/0/memoryMiB: step run:it reached its memory limit of 24 MiB"
}

@test "a step that writes more than its diskMiB is stopped with the place, whatever it writes to" {
	local text n=0
	for text in 'while :; do dd if=/dev/zero of=/out/$((i = i + 1)) bs=1M count=1; done' 'cat /dev/zero > /tmp/x' \
		'dd if=/dev/zero of=/out/x bs=1M count=9 2>/dev/null' 'yes' \
		'for i in 1 2 3; do dd if=/dev/zero of=/out/$i bs=1M count=3 2>/dev/null; done'; do
		step_app "app$((++n))" "$(script "$text" '.diskMiB = 8')"
		build_fails
		expect_in "$err" "$APP/manifest.json:" "SV067 /run/0/diskMiB: step run:it was stopped: it wrote more than 8 MiB"
	done
	step_app sparse "$(script 'for i in 1 2 3; do busybox truncate -s 3M /out/$i; done' '.diskMiB = 8')"
	build_fails
	expect_in "$err" "SV067 /run/0/diskMiB: step run:it"
	step_app good "$(script 'dd if=/dev/zero of=/out/x bs=1M count=7' '.diskMiB = 8')"
	"$SVRUN" image build -q "$APP"
}

@test "a secret is a file for the step that names it, and neither in the image, a log nor a key" {
	step_app one "$(script 'wc -c < /run/secrets/token > /out/n; env > /out/env' \
		'.secrets = [{id: "token"}, {id: "maybe", required: false}]')"
	printf 'pass-%s-word\n' phrase >"$T/token"
	build_fails
	expect_in "$err" "needs the secret 'token'" "--secret token=FILE"
	"$SVRUN" image build -q --secret token="$T/token" "$APP"
	run_split "$SVRUN" run --rm one -c 'cat /out/n; ls /run/secrets'
	expect_in "$out" 16
	# In nothing that was written (but the user's own file).
	! grep -rqF pass-phrase-word "$SVRUN_ROOT" || fail "it is in $(grep -rlF pass-phrase-word "$SVRUN_ROOT")"
	# Another value, or none, changes no key.
	echo another-value >"$T/token"
	run_split "$SVRUN" image build --format json --secret token="$T/token" "$APP"
	[ "$status" = 0 ]
}

@test "a secret that is missing is said before anything is fetched" {
	export SVRUN_CONFIG=$T/config.json
	echo '{"mirrors": {"files": "http://127.0.0.1:1"}}' >"$SVRUN_CONFIG"
	step_app one "$(script 'true' '.secrets = [{id: "token"}]')" '.models = [{id: "m", target: "/m", format: "other", delivery: "layer",
		source: {type: "https", url: "mirror:files/w.bin"}, license: {spdx: "MIT"},
		files: [{path: "w.bin", sha256: ("1" * 64), size: 5}]}]'
	build_fails
	expect_in "$err" "SV131 /run/0/secrets/0: step run:it needs the secret 'token'" "--secret token=FILE"
}

@test "a step that writes or prints a secret is refused, in whatever spelling, and nothing of it stays" {
	local text
	printf 'pass-%s-word' phrase >"$T/token"
	for text in 'cat /run/secrets/token > /out/x' 'cat /run/secrets/token | base64 > /out/x' \
		'mkdir /out/$(cat /run/secrets/token)' 'mkdir -p /out/pass-/phrase/-word' \
		'cat /run/secrets/token /run/secrets/token | base64 -w 9 > /out/x' \
		'busybox hexdump -C /run/secrets/token' 'busybox xxd /run/secrets/token' 'busybox xxd -p /run/secrets/token > /out/x' \
		'busybox ln -s $(cat /run/secrets/token) /out/x' 'cat /run/secrets/token' 'cat /run/secrets/token; exit 1' \
		'echo "x$(cat /run/secrets/token)y" > /cache/x'; do
		step_app one "$(script "$text" '.secrets = [{id: "token"}] | .cache = [{id: "c", target: "/cache"}]')"
		build_fails --secret token="$T/token"
		expect_in "$err" "SV131 /run/0/secrets: step run:it: the secret 'token' is in"
		[[ $err != *pass-phrase* ]] || fail "$err"
		rm -r "$APP"
	done
	! grep -rqF pass-phrase-word "$SVRUN_ROOT" || fail "it is in $(grep -rlF pass-phrase-word "$SVRUN_ROOT")"
}

no_secret() { # in the whole store
	! grep -rqF pass-phrase-word "$SVRUN_ROOT" || fail "it is in $(grep -rlF pass-phrase-word "$SVRUN_ROOT")"
}

secret_app() { # NAME TEXT
	step_app "$1" "$(script "$2" '.secrets = [{id: "token"}] | .cache = [{id: "c", target: "/c"}]')"
	printf 'pass-%s-word\n' phrase >"$T/token"
}

@test "a secret that is found in one place is kept in no other, and so it is when the search fails" {
	local text n=0 deep='i=0; while [ $i -lt 300 ]; do mkdir d && cd d; i=$((i + 1)); done'
	for text in "cat /run/secrets/token > /c/x; cat /run/secrets/token" \
		"cat /run/secrets/token > /c/x; cat /run/secrets/token > /out/x" \
		"cat /run/secrets/token; cat /run/secrets/token > /c/x; cd /out; $deep" \
		"cat /run/secrets/token > /c/x; cd /c; $deep" \
		"cat /run/secrets/token > /c/x; exit 1"; do
		secret_app "app$((++n))" "$text"
		build_fails --secret token="$T/token"
		no_secret
		[ ! -e "$SVRUN_ROOT/cache/mounts/c" ] || fail "left the cache folder of: $text"
	done
	# One that found its folder clean keeps it.
	secret_app good "echo > /c/kept"
	"$SVRUN" image build -q --secret token="$T/token" "$APP"
	[ -e "$SVRUN_ROOT/cache/mounts/c/kept" ]
	step_app next "$(script 'cat /c/kept' '.cache = [{id: "c", target: "/c"}]')"
	"$SVRUN" image build -q "$APP"
	[ -e "$SVRUN_ROOT/cache/mounts/c/kept" ]
}

start_build() { # [OPTION...]: until the step writes; $pid
	"$SVRUN" image build "$@" "$APP" >"$T/out" 2>&1 &
	pid=$!
	for ((i = 0; i < 100; i++)); do
		[ -e "$SVRUN_ROOT/cache/mounts/c/ready" ] && return
		sleep 0.1
	done
	fail "$(<"$T/out")"
}

@test "a build that is killed over a step with a secret leaves none that another step would find" {
	local pid i
	secret_app killed 'cat /run/secrets/token; cat /run/secrets/token > /c/x; cat /run/secrets/token > /out/x
		echo > /c/ready; sleep 1000'
	start_build --secret token="$T/token"
	kill -9 "$pid"
	wait "$pid" || true
	! grep -rqF pass-phrase-word "$SVRUN_ROOT/logs" || fail "it is in the log"
	step_app next "$(script 'ls /c' '.cache = [{id: "c", target: "/c"}]')"
	"$SVRUN" image build -q "$APP"
	run_split "$SVRUN" image log "$APP" run:it
	[ -z "$out" ] || fail "$out"
	no_secret
	# svrun image gc does it, too.
	secret_app killed 'cat /run/secrets/token > /c/x; echo > /c/ready; sleep 1000'
	start_build --secret token="$T/token"
	kill -9 "$pid"
	wait "$pid" || true
	"$SVRUN" image gc >/dev/null
	no_secret
}

@test "a build that is told to end leaves nothing of its step" {
	local pid i
	secret_app told 'cat /run/secrets/token; cat /run/secrets/token > /c/x; cat /run/secrets/token > /out/x
		echo > /c/ready; sleep 1000'
	start_build --secret token="$T/token"
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	[ "$status" = 143 ] || fail "status $status"
	expect_no_step
	no_secret
}

@test "a build that waits for a cache folder ends when it is told to" {
	local pid first status=0 i
	secret_app first 'echo > /c/ready; sleep 1000'
	start_build --secret token="$T/token"
	first=$pid
	secret_app second 'echo second > /out/x'
	"$SVRUN" image build --secret token="$T/token" "$APP" >"$T/out" 2>&1 &
	pid=$!
	for ((i = 0; i < 100; i++)); do
		grep -q -- "-> FLOCK.*:$(stat -c %i "$SVRUN_ROOT/cache/mount-locks/c") " /proc/locks && break
		sleep 0.1
	done
	[ "$i" -lt 100 ] || fail "it does not wait: $(<"$T/out")"
	kill -TERM "$pid"
	wait "$pid" || status=$?
	[ "$status" = 143 ] || fail "status $status"
	kill -TERM "$first"
	wait "$first" || true
	expect_no_step
}

@test "a name of a step cannot forge a line of an error or a log" {
	step_app one "$(script 'echo > "/data/x$(printf "\nsvrun: \033[1mall is well")"' '.writes = []')"
	build_fails
	expect_in "$err" '/data/x\x0asvrun: \x1b[1mall is well'
	run_split "$SVRUN" image log "$APP" run:it
	expect_in "$out" '/data/x\x0asvrun: \x1b[1mall is well'
	[[ $out != *$'\033'* ]] || fail "$out"
}

@test "cache folders of any names do not meet the locks of others" {
	step_app one "$(script 'echo > /c/x; echo > /d/x' '.cache = [{id: "c", target: "/c"}, {id: "c.lock", target: "/d"}]')"
	"$SVRUN" image build -q "$APP"
}

@test "a cache folder is kept from build to build, one step at a time, and is no part of the image" {
	step_app one "$(script 'read n < /c/n || n=0; echo $((n + 1)) > /c/n; cat /c/n > /out/n' \
		'.cache = [{id: "c", target: "/c"}]')"
	"$SVRUN" image build -q "$APP"
	"$SVRUN" image build -q --no-cache "$APP"
	run_split "$SVRUN" run --rm one -c 'cat /out/n; ls /'
	expect_in "$out" 2
	[[ $out != *$'\nc\n'* ]] || fail "$out"
}

@test "hostile names and depths are refused by name" {
	step_app one "$(script 'cd /out; for i in $(busybox seq 300); do mkdir d; cd d; done')"
	build_fails
	expect_in "$err" "$APP/manifest.json:" "SV069 /run/0: step run:it: what it wrote" "256"
	step_app two "$(script 'echo > /out/.wh.x')"
	build_fails
	expect_in "$err" "SV069 /run/0: step run:it: what it wrote" ".wh.x"
	step_app three "$(script 'busybox mknod /out/sda b 8 0')"
	build_fails
	expect_in "$err" "run:it failed"
}

@test "a hostile step gets nowhere, and what it may leave is what the image says" {
	mkdir "$T/one"
	gcc -O2 -static -o "$T/one/hostile" "$DATA/hostile-step.c"
	step_app one "$(jq -n '[{id: "it", argv: ["/bin/hostile"], writes: ["/out/**", "/data/in"]}]')" \
		'.files += [{dest: "/bin/hostile", from: "hostile", mode: "0755"}]'
	"$SVRUN" image build -q "$APP" || fail "$(<"$SVRUN_ROOT/logs/one/run:it.log")"
	run_split "$SVRUN" run --rm one -c 'cd /out; ls -A; busybox stat -c "%n %a %F %h" fifo setuid hard; busybox readlink link; cat hard'
	expect_in "$(echo $out)" "a?b fifo folder hard link setuid" "fifo 644 fifo 1 setuid 6755 regular file 1 hard 644 regular file 2" "/../../../etc/shadow v1"
	[[ $out != *socket* && $out != *whiteout* ]] || fail "$out"
	# Until it is collected, nobody else gets at what it wrote.
	[ "$(stat -c %a "$SVRUN_ROOT")" = 700 ]
	expect_no_step
	# A path that no name reaches any more.
	jq '.run[0].argv += ["dig"]' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	build_fails
	expect_in "$err" "$APP/manifest.json:" "SV069 /run/0: step run:it: what it wrote, /out/" "a path longer than"
}

@test "a killed build leaves no process, and the next one takes the rest away" {
	step_app one "$(script 'echo here; sleep 1234' '.timeoutMs = 0')" 'del(.run[0].timeoutMs)'
	"$SVRUN" image build "$APP" >/dev/null 2>&1 &
	local pid=$! i
	for ((i = 0; i < 100; i++)); do
		pgrep -f '^sleep 1234$' >/dev/null && break
		sleep 0.1
	done
	pgrep -f '^sleep 1234$' >/dev/null
	kill -9 "$pid"
	wait "$pid" || true
	for ((i = 0; i < 100; i++)); do
		pgrep -f '^sleep 1234$' >/dev/null || break
		sleep 0.1
	done
	! pgrep -f '^sleep 1234$' >/dev/null || fail "its process lives"
	step_app two "$(script 'echo')"
	"$SVRUN" image build -q "$APP"
	expect_no_step
}

@test "garbage collection takes logs of images that are gone, and no others" {
	step_app kept "$(script 'echo')"
	"$SVRUN" image build -q "$APP"
	step_app gone "$(script 'echo')"
	"$SVRUN" image build -q "$APP"
	step_app failed "$(script 'exit 1')"
	build_fails
	"$SVRUN" image rm gone gone:1 >/dev/null
	find "$SVRUN_ROOT/logs/kept" "$SVRUN_ROOT/logs/gone" -exec touch -d '2 days ago' {} +
	"$SVRUN" image gc --dry-run >/dev/null
	[ "$(ls "$SVRUN_ROOT/logs")" = $'failed\ngone\nkept' ]
	"$SVRUN" image gc >/dev/null
	[ "$(ls "$SVRUN_ROOT/logs")" = $'failed\nkept' ] || fail "$(ls "$SVRUN_ROOT/logs")"
}

# ---- dpkg ----

# Debian's essential packages and python3-minimal, configured by dpkg.
dpkg_app() { # NAME [JQ-FILTER]
	need_root
	mkdir -p "$T/$1"
	APP=$T/$1
	jq -n --arg name "$1" '{
		schema: "svrun.image/1", name: $name, version: "1", base: {type: "scratch"},
		apt: {
			sources: [{uri: "mirror:debian", suites: ["bookworm"], components: ["main"],
				signedBy: "keyring:debian-archive"}],
			packages: ["?essential", "apt", "python3"], configure: "dpkg",
			prune: ["apt-lists", "doc", "man", "info", "locale:!en"]
		},
		files: [{dest: "/etc/motd", inline: "ours\n"}],
		cmd: ["/bin/bash"], build: {epoch: 1767225600}
	}' | jq "${2:-.}" >"$APP/manifest.json"
	"$SVRUN" image lock "$APP" >/dev/null
}

@test "dpkg mode: all is configured, the audit is empty, two builds are the same, apt-get install works" {
	need_root
	new_store cache
	dpkg_app one '.apt.alternatives = {"pager": "/bin/more"}'
	local first deb=$T/deb
	first=$("$SVRUN" image build -q "$APP")
	mkdir -p "$deb/DEBIAN" "$deb/opt" "$T/volume"
	printf 'Package: later\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: x\n' >"$deb/DEBIAN/control"
	printf '#!/bin/sh\necho configured > /opt/done\n' >"$deb/DEBIAN/postinst"
	chmod 755 "$deb/DEBIAN/postinst"
	dpkg-deb --root-owner-group -b "$deb" "$T/volume/later.deb" >/dev/null
	run_split "$SVRUN" run --rm -v "$T/volume:/v" one sh -c '
		ls /usr/sbin/policy-rc.d /var/log/dpkg.log /var/log/alternatives.log /var/cache/ldconfig/aux-cache \
			/var/lib/dpkg/status-old 2>/dev/null
		dpkg --audit
		dpkg -l | tail -n +6 | grep -v ^ii
		apt-get check -qq
		apt-get install -y -qq /v/later.deb >/dev/null 2>&1; cat /opt/done
		cat /etc/motd
		readlink -f /usr/bin/pager; update-alternatives --query pager | grep Status
		readlink -f /usr/bin/awk; getent passwd root; grep -c . /etc/shadow
		python3 -c "import json.tool; print(json.tool.__cached__)"
		ls -ld /run/lock'
	expect_in "$out" configured ours /usr/bin/more "Status: manual" /usr/bin/mawk root:x:0:0 /usr/lib/python3.11/json/__pycache__ drwxrwxrwt
	[ "$(head -n 1 <<<"$out")" = configured ] || fail "$out"
	[ "$first" = "$("$SVRUN" image build -q --no-cache "$APP")" ]
	expect_no_step
	# A file of the manifest is nothing that dpkg sees.
	jq '.files[0].inline = "other\n"' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	run_split "$SVRUN" image build --format json "$APP"
	[ "$(jq .count.stepsReused <<<"$out")" = 1 ] || fail "$out $err"
}

# Packages made up, in the mirror "local", beside Debian's: make_NAME fills $deb.
local_repository() { # PACKAGE...
	local p deb=$T/deb
	need_program gpg
	need_program apt-ftparchive
	export GNUPGHOME=$T/gpg SVRUN_CONFIG=$T/config.json
	mkdir -m 700 "$GNUPGHOME"
	gpg --batch --quiet --passphrase '' --quick-generate-key test ed25519 sign never 2>/dev/null
	gpg --batch --export >"$T/key.gpg"
	mkdir -p "$T/repo/pool" "$T/repo/dists/x/main/binary-amd64"
	for p in "$@"; do
		rm -rf "$deb"
		mkdir -p "$deb/DEBIAN" "$deb/usr/bin"
		printf 'Package: %s\nVersion: 1\nArchitecture: all\nMaintainer: t <t@localhost>\nDescription: t\n' "$p" >"$deb/DEBIAN/control"
		"make_$p"
		chmod -f 755 "$deb/DEBIAN/"p* || true
		dpkg-deb --root-owner-group -b "$deb" "$T/repo/pool/${p}_1_all.deb" >/dev/null
	done
	(cd "$T/repo" && apt-ftparchive packages pool >dists/x/main/binary-amd64/Packages &&
		apt-ftparchive -o APT::FTPArchive::Release::Suite=x release dists/x >"$T/Release" &&
		gpg --batch --quiet --clearsign -o dists/x/InRelease "$T/Release")
	jq -n --arg r "file://$T/repo" '{mirrors: {local: $r}}' >"$SVRUN_CONFIG"
}

local_app() { # NAME PACKAGES(JSON): and the essential ones
	mkdir -p "$T/$1"
	cp "$T/key.gpg" "$T/$1"
	dpkg_app "$1" ".apt.packages = [\"?essential\"] + $2
		| .apt.sources += [{uri: \"mirror:local\", suites: [\"x\"], components: [\"main\"], signedBy: \"key.gpg\"}]"
}

make_alast() {
	echo 'Depends: zfirst' >>"$deb/DEBIAN/control"
	printf '#!/bin/sh\necho alast >>/srv/made/order\n' >"$deb/DEBIAN/preinst"
	printf '#!/bin/sh\ncp -p /srv/made/order /srv/made/configured\n' >"$deb/DEBIAN/postinst"
}

make_zfirst() {
	cat >"$deb/DEBIAN/preinst" <<-'END'
		#!/bin/sh
		set -e
		echo made:x:777:777::/:/bin/false >>/etc/passwd
		install -d -o made -m 750 /srv/made
		{ echo "$0 $*"; env | grep ^DPKG_M | sort; pwd; ls "${0%/*}"; } >/srv/made/args
		echo zfirst >>/srv/made/order
	END
}

make_diverter() {
	echo diverter >"$deb/usr/bin/tool"
	printf '#!/bin/sh\nfor f in tool tac; do dpkg-divert --package diverter --quiet --add --rename --divert /usr/bin/$f.real /usr/bin/$f; done\n' \
		>"$deb/DEBIAN/preinst"
}

make_diverted() {
	echo diverted >"$deb/usr/bin/tool"
	ln "$deb/usr/bin/tool" "$deb/usr/bin/tool-too"
}

make_failing() {
	printf '#!/bin/sh\necho no luck; exit 3\n' >"$deb/DEBIAN/preinst"
}

make_sly() {
	echo diverted >"$deb/usr/bin/tool"
	printf '#!/bin/sh\nf=$(echo /usr/bin/tool); dpkg-divert --package sly --add --rename --divert $f.real $f\n' >"$deb/DEBIAN/preinst"
}

@test "dpkg mode: preinst scripts run in the order of what packages need, and divert files of others" {
	need_root
	new_store cache
	local_repository alast zfirst diverter diverted failing sly
	local_app one '["alast", "diverter", "diverted", "zutils"]'
	local first
	first=$("$SVRUN" image build -q "$APP") || fail "$(tail -n 20 "$SVRUN_ROOT/logs/one/dpkg.log")"
	run_split "$SVRUN" run --rm one sh -c '
		cat /srv/made/configured; stat -c "%U %a" /srv/made; cat /srv/made/args
		cat /usr/bin/tool /usr/bin/tool.real /usr/bin/tool-too; stat -c %h /usr/bin/tool.real
		dpkg-divert --list "*tool"; dpkg-divert --truename /usr/bin/tac; ls /usr/bin/tac*
		dpkg -S /usr/bin/tool.real /bin/zcat.gzip; echo text | gzip | zcat; head -n 1 /bin/zcat.gzip; ls /var/lib/dpkg/tmp.ci'
	expect_in "$(echo $out)" "zfirst alast made 750 /var/lib/dpkg/tmp.ci/preinst install DPKG_MAINTSCRIPT_ARCH=all DPKG_MAINTSCRIPT_DEBUG=0" \
		"DPKG_MAINTSCRIPT_NAME=preinst DPKG_MAINTSCRIPT_PACKAGE=zfirst DPKG_MAINTSCRIPT_PACKAGE_REFCOUNT=1 / control preinst diverter diverted diverted 2" \
		"diversion of /usr/bin/tool to /usr/bin/tool.real by diverter /usr/bin/tac.real /usr/bin/tac.real" \
		"diversion by diverter to: /usr/bin/tool.real diversion by zutils from: /bin/zcat" "text #!/bin/sh"
	[[ $err == *"tmp.ci': No such file"* ]] || fail "$err"
	[ "$first" = "$("$SVRUN" image build -q --no-cache "$APP")" ]
	# What cannot be is said with the package.
	local_app two '["failing"]'
	build_fails
	expect_in "$err" "no luck" "svrun: the preinst script of the package failing failed with exit status 3" "step dpkg failed"
	local_app three '["sly", "diverted"]'
	build_fails
	expect_in "$err" "svrun: the preinst script of the package sly diverts /usr/bin/tool of diverted to /usr/bin/tool.real"
}

@test "dpkg mode: an alternative that nobody offers fails the step" {
	need_root
	new_store cache
	dpkg_app one '.apt.alternatives = {"pager": "/bin/none"}'
	build_fails
	expect_in "$err" "step dpkg failed" "/bin/none for pager not registered"
}

@test "dpkg mode without dpkg says what to add" {
	need_root
	new_store cache
	dpkg_app one '.apt.packages = ["tzdata"]'
	build_fails
	expect_in "$err" "/apt/configure: the image has no dpkg" '"?essential"'
}

# ---- byte code ----

@test "byte code is made for all that the interpreter finds, unchecked by hash, and the same each time" {
	need_root
	local wheel=(/usr/share/python-wheels/wheel-*.whl)
	[ -e "${wheel[0]}" ] || skip "needs python3-wheel-whl"
	new_store cache
	mkdir -p "$T/one/wheels"
	cp "${wheel[0]}" "$T/one/wheels"
	printf -- '--no-index\n--find-links wheels\nwheel==%s --hash=sha256:%s\n' "$(basename "${wheel[0]}" | cut -d- -f2)" \
		"$(sha256sum "${wheel[0]}" | cut -d' ' -f1)" >"$T/one/requirements.txt"
	dpkg_app one '.apt.configure = "builtin" | .python = {prefix: "/opt/venv", lock: "requirements.txt"}'
	local first
	first=$("$SVRUN" image build -q "$APP")
	run_split "$SVRUN" run --rm one /opt/venv/bin/python3 -c 'if True:
		import importlib.util, json, wheel
		for m in json, wheel:
			with open(importlib.util.cache_from_source(m.__file__), "rb") as f:
				print(m.__name__, f.read(16)[4])'
	[ "$out" = $'json 1\nwheel 1' ] || fail "$out $err"
	[ "$first" = "$("$SVRUN" image build -q --no-cache "$APP")" ]
	jq '.python.bytecode = "none"' "$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	"$SVRUN" image lock "$APP" >/dev/null
	"$SVRUN" image build -q "$APP"
	run_split "$SVRUN" run --rm one sh -c 'ls /opt/venv/lib/python3.11/site-packages/wheel'
	[[ $out != *__pycache__* ]] || fail "$out"
}
