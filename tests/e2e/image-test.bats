#!/usr/bin/env bats
# svrun image test: the tests of a manifest, in all stages.

load helpers

# An app whose program, tests/data/serve.c, is a service and does what tests ask for; $APP is its folder.
# TESTS is what jq makes an array of, the rest a filter over the manifest.
make_service() { # TESTS [JQ-FILTER]
	need_root
	new_store
	APP=$T/app
	mkdir -p "$APP"
	[ "$WORK/serve" -nt "$DATA/serve.c" ] || {
		gcc -O2 -static -o "$WORK/serve.new" "$DATA/serve.c"
		mv "$WORK/serve.new" "$WORK/serve"
	}
	cp "$WORK/serve" "$APP/serve"
	jq -n '{
		schema: "svrun.image/1", name: "served", version: "1",
		base: {type: "scratch"},
		files: [
			{dest: "/bin/serve", from: "serve", mode: "0755"},
			{dest: "/etc/text", inline: "some text\n"}
		],
		links: [{path: "/bin/again", target: "serve"}],
		env: {THREADS: "${runtime:cpus}"},
		entrypoint: ["/bin/serve"], cmd: ["serve", "8000"],
		ports: [{port: 8000, name: "api", protocol: "http"}],
		health: {readiness: {http: {port: 8000, path: "/ready"}, periodMs: 200}},
		build: {epoch: 1767225600}
	}' | jq ".tests = $1 | ${2:-.}" >"$APP/manifest.json"
	lock_and_build "$APP" >/dev/null
}

# One run of all tests; $report is the JSON report.
run_tests() { # [OPTION...]
	run_split "$SVRUN" image test --format json --junit "$T/junit.xml" "$@" "$APP"
	report=$out
	python3 - "$T/junit.xml" <<-'E'
		import sys, xml.etree.ElementTree as E
		root = E.parse(sys.argv[1]).getroot()
		suite = root[0]
		cases = suite.findall("testcase")
		assert root.tag == "testsuites" and len(root) == 1 and suite.tag == "testsuite"
		assert int(suite.get("tests")) == len(cases)
		assert int(suite.get("failures")) == len([c for c in cases if c.find("failure") is not None])
		assert int(suite.get("skipped")) == len([c for c in cases if c.find("skipped") is not None])
	E
	expect_nothing_left "$SVRUN_ROOT"
}

verdict_of() { # ID
	jq -r --arg id "$1" '.tests[] | select(.id == $id) | .verdict + ": " + (.text // "")' <<<"$report"
}

log_of() { # ID
	jq -r --arg id "$1" '.tests[] | select(.id == $id) | .log // ""' <<<"$report"
}

expect_verdict() { # ID VERDICT [PART]
	local found
	found=$(verdict_of "$1")
	[[ $found == "$2: "*"${3-}"* ]] || fail "$1: expected $2: ${3-}" "got $found" "$report"
}

@test "the stage plan sees the manifest and the lock, and needs neither store nor image" {
	make_service '[
		{id: "config", stage: "plan", type: "metadata", expect: {entrypoint: ["/bin/serve"], ports: ["8000/tcp"], env: {THREADS: "${runtime:cpus}"}}},
		{id: "wrong", stage: "plan", type: "metadata", expect: {cmd: ["other"]}},
		{id: "big", stage: "plan", type: "size", expect: {maxBytes: 100}},
		{id: "later", stage: "image", type: "file", path: "/etc/text", expect: {type: "file"}}
	]'
	rm -rf "$SVRUN_ROOT"
	run_tests --stage plan
	expect_status 1
	expect_verdict config passed
	expect_verdict wrong failed 'cmd is ["serve","8000"], expected ["other"]'
	expect_verdict big failed "expected at most 100"
	[ -z "$(verdict_of later)" ]
	[ ! -e "$SVRUN_ROOT" ]
}

@test "files, links, metadata and sizes of the image" {
	make_service '[
		{id: "text", stage: "image", type: "file", path: "/etc/text", expect: {type: "file", mode: "0644", owner: "0:0", sha256: "a23e5fdcd7b276bdd81aa1a0b7b963101863dd3f61ff57935f8c5ba462681ea6"}},
		{id: "link", stage: "image", type: "file", path: "/bin/again", expect: {type: "symlink", target: "serve"}},
		{id: "none", stage: "image", type: "file", paths: ["/nowhere", "/lib/**"], expect: {absent: true}},
		{id: "mode", stage: "image", type: "file", path: "/bin/*", expect: {mode: "0700"}},
		{id: "meta", stage: "image", type: "metadata", expect: {cmd: ["serve", "8000"]}},
		{id: "small", stage: "image", type: "size", expect: {maxBytes: 100, maxLayers: 20}},
		{id: "layers", stage: "image", type: "size", expect: {maxLayers: 1}},
		{id: "files", stage: "image", type: "size", paths: ["/etc/*"], expect: {maxBytes: 10}}
	]'
	run_tests
	expect_status 1
	for id in text link none meta files; do expect_verdict $id passed; done
	expect_verdict mode failed "/bin/serve: has mode 0755, expected 0700"
	expect_verdict small failed "expected at most 100"
	expect_verdict layers failed "the index included, expected at most 1"
}

@test "programs instead of the entrypoint: status, output, user, variables, one thread" {
	make_service '[
		{id: "says", stage: "run", type: "exec", argv: ["/bin/serve", "say", "n ${runtime:cpus}"], expect: {stdout: {equals: "n 1"}}},
		{id: "exits", stage: "run", type: "exec", argv: ["/bin/serve", "exit", "7"], expect: {exit: 7}},
		{id: "threads", stage: "run", type: "exec", argv: ["/bin/serve", "env", "THREADS"], expect: {stdout: {numberAtLeast: 1, matches: "^1$"}}},
		{id: "env", stage: "run", type: "exec", argv: ["/bin/serve", "env", "X"], env: {X: "y"}, expect: {stdout: {contains: "y"}}},
		{id: "user", stage: "run", type: "exec", argv: ["/bin/serve", "ids"], user: "12:34", expect: {stdout: {equals: "12:34"}}},
		{id: "missing", stage: "run", type: "exec", argv: ["/bin/none"]},
		{id: "loud", stage: "run", type: "exec", argv: ["/bin/serve", "lines", "100"]},
		{id: "bytes", stage: "run", type: "exec", argv: ["/bin/serve", "bytes"], expect: {stdout: {equals: "x"}}}
	]'
	run_tests
	expect_status 1
	for id in says exits threads env user; do expect_verdict $id passed; done
	expect_verdict missing failed "exit status 127, expected 0"
	expect_in "$(log_of missing)" "exec '/bin/none'"
	expect_verdict loud failed "exit status 9, expected 0"
	[ "$(log_of loud | wc -l)" = 40 ]
	[ "$(log_of loud | head -n 1)" = "line 61" ]
	expect_verdict bytes failed "expected 'x'"
	[ "$(wc -l <"$SVRUN_ROOT/logs/served/tests/loud.log")" = 100 ]
}

@test "programs that do not end, or never stop talking, end at their time" {
	make_service '[
		{id: "hangs", stage: "run", type: "exec", argv: ["/bin/serve", "hang"], timeoutMs: 300},
		{id: "floods", stage: "run", type: "exec", argv: ["/bin/serve", "flood"], timeoutMs: 300},
		{id: "inside", stage: "run", type: "exec", argv: ["/bin/serve", "hang"], after: "readiness", timeoutMs: 300},
		{id: "then", stage: "run", type: "exec", argv: ["/bin/serve", "say", "x"], after: "readiness"}
	]'
	run_tests
	expect_status 1
	for id in hangs floods inside; do expect_verdict $id failed "it did not end within 300 ms"; done
	expect_verdict then passed
}

@test "requests after readiness: JSON, bodies, statuses; programs and ports inside" {
	make_service '[
		{id: "json", stage: "run", type: "http", request: {port: 8000, path: "/json"}, after: "readiness", expect: {json: [{pointer: "/items/2", minimum: 3}, {pointer: "/name", equals: "serve", minLength: 5}, {pointer: "/threads", equals: "1"}]}},
		{id: "wrong", stage: "run", type: "http", request: {port: 8000, path: "/json"}, after: "readiness", expect: {json: [{pointer: "/n", minimum: 8}]}},
		{id: "echo", stage: "run", type: "http", request: {method: "POST", port: 8000, path: "/echo", json: {a: [1, "ä"]}}, after: "readiness", expect: {status: [201], json: [{pointer: "/a/1", equals: "ä"}]}},
		{id: "head", stage: "run", type: "http", request: {port: 8000, path: "/head", headers: {"X-Y": "z"}}, after: "readiness", expect: {stdout: {contains: ["X-Y: z", "Host: localhost:8000"]}}},
		{id: "status", stage: "run", type: "http", request: {port: 8000, path: "/status/500"}, expect: {status: [200, 204]}},
		{id: "port", stage: "run", type: "port", port: 8000, after: "readiness"},
		{id: "noport", stage: "run", type: "port", port: 8001, after: "readiness", timeoutMs: 200},
		{id: "inside", stage: "run", type: "exec", argv: ["/bin/serve", "ids"], user: "5", after: "readiness", expect: {stdout: {matches: "^5:"}}},
		{id: "nowhere", stage: "run", type: "exec", argv: ["/bin/none"], after: "readiness"}
	]'
	run_tests
	expect_status 1
	for id in json echo head port inside; do expect_verdict $id passed; done
	expect_verdict wrong failed "/n is 7.5, expected at least 8"
	expect_verdict status failed "status 500, expected 200 or 204; the body begins: a status"
	expect_verdict noport failed "nobody listens on the port"
	expect_verdict nowhere failed "exec '/bin/none'"
	# one service for all of them
	[ "$(grep -c listening "$SVRUN_ROOT/logs/served/tests/service.log")" = 1 ]
}

@test "readiness is what the probes say, and ends with the service" {
	make_service '[
		{id: "waits", stage: "run", type: "http", request: {port: 8000, path: "/json"}, env: {READY_AFTER: "3"}, after: "readiness"},
		{id: "never", stage: "run", type: "http", request: {port: 8000, path: "/json"}, env: {READY_AFTER: "9999"}, after: "readiness", timeoutMs: 500},
		{id: "hurry", stage: "run", type: "http", request: {port: 8000, path: "/ready"}, env: {READY_AFTER: "9999"}, expect: {status: [503]}}
	]'
	run_tests
	expect_status 1
	expect_verdict waits passed
	expect_verdict hurry passed
	expect_verdict never failed "the service did not become ready: GET /ready: status 503, expected 200 to 399"
	expect_in "$(log_of never)" "GET /ready"
}

@test "a service that ends before it is ready says so, to each test that needs it" {
	make_service '[
		{id: "one", stage: "run", type: "http", request: {port: 8000}, after: "readiness"},
		{id: "two", stage: "run", type: "port", port: 8000, after: "readiness"},
		{id: "other", stage: "run", type: "exec", argv: ["/bin/serve", "say", "x"]}
	]' '.cmd = ["exit", "3"]'
	run_tests
	expect_status 1
	expect_verdict one failed "the service did not become ready: the container has ended with status 3"
	expect_verdict two failed "the container has ended with status 3"
	expect_verdict other passed
}

@test "startup and exec probes" {
	make_service '[{id: "one", stage: "run", type: "http", request: {port: 8000}, after: "readiness"}]' \
		'.health = {startup: {tcp: {port: 8000}, periodMs: 100, failureThreshold: 50}, readiness: {exec: {argv: ["/bin/serve", "exit", "0"]}}}'
	run_tests
	expect_status 0
	jq '.health.readiness.exec.argv = ["/bin/serve", "exit", "4"] | .tests[0].timeoutMs = 300' "$APP/manifest.json" >"$T/new"
	cp "$T/new" "$APP/manifest.json"
	lock_and_build "$APP" >/dev/null
	run_tests
	expect_status 1
	expect_verdict one failed "/bin/serve: exit status 4"
	jq '.health.startup = {tcp: {port: 1}, periodMs: 100, failureThreshold: 3}' "$APP/manifest.json" >"$T/new"
	cp "$T/new" "$APP/manifest.json"
	lock_and_build "$APP" >/dev/null
	run_tests
	expect_verdict one failed "nobody listens on port 1"
}

@test "answers that are none: endless, no HTTP, elsewhere, too late" {
	make_service '[
		{id: "body", stage: "run", type: "http", request: {port: 8000, path: "/flood"}, env: {X: "1"}},
		{id: "head", stage: "run", type: "http", request: {port: 8000, path: "/headers"}, env: {X: "1"}},
		{id: "noise", stage: "run", type: "http", request: {port: 8000, path: "/noise"}, env: {X: "1"}},
		{id: "redirect", stage: "run", type: "http", request: {port: 8000, path: "/redirect"}, env: {X: "1"}},
		{id: "slow", stage: "run", type: "http", request: {port: 8000, path: "/slow"}, env: {X: "1"}, timeoutMs: 300},
		{id: "dies", stage: "run", type: "http", request: {port: 8000, path: "/exit"}, env: {X: "1"}},
		{id: "nobody", stage: "run", type: "http", request: {port: 8001}, timeoutMs: 300}
	]'
	run_tests
	expect_status 1
	expect_verdict body failed "longer than 16 MiB"
	expect_verdict head failed "longer than 16 MiB"
	expect_verdict noise failed "HTTP/0.9"
	expect_verdict redirect failed "status 302, expected 200 to 299"
	expect_verdict slow failed "timed out"
	expect_verdict dies failed "the container has ended with status 3"
	expect_verdict nobody failed "connect"
}

@test "a port that is open on the loopback only is not open" {
	make_service '[{id: "port", stage: "run", type: "port", port: 8000, after: "readiness"}]' \
		'.cmd += ["127.0.0.1"]'
	run_tests
	expect_status 1
	expect_verdict port failed "the port is open on 127.0.0.1 only"
}

@test "nothing of the host can be reached" {
	make_service '[{id: "host", stage: "run", type: "http", request: {port: 8000}, timeoutMs: 1500, expect: {json: [{pointer: "/host"}]}}]' \
		'.cmd = ["hang"] | del(.health)'
	mkdir "$T/www"
	echo '{"host": true}' >"$T/www/index.html"
	python3 -m http.server --bind 127.0.0.1 -d "$T/www" 8000 >/dev/null 2>&1 3>&- &
	local server=$!
	for _ in $(seq 100); do
		curl -fs http://127.0.0.1:8000/ >/dev/null && break
		sleep 0.1
	done
	run_tests
	kill "$server"
	wait "$server" || true
	expect_status 1
	expect_verdict host failed "onnect"
}

# Where no GPU is seen, whatever this host has.
no_gpus() {
	"$TOP/tests/gpu/make-root" none "$T/none"
	export SVRUN_GPU_ROOT=$T/none
}

@test "a test that needs a GPU is skipped, which is a failure unless that is allowed" {
	no_gpus
	make_service '[
		{id: "gpu", stage: "run", type: "exec", needs: "gpu", argv: ["/bin/serve", "say"]},
		{id: "nice", stage: "run", type: "exec", needs: "gpu", required: false, argv: ["/bin/serve", "say"]},
		{id: "off", stage: "run", type: "exec", disabled: true, argv: ["/bin/serve", "say"]}
	]'
	run_tests
	expect_status 1
	expect_verdict gpu failed "required, but skipped: it needs a GPU, and this host has none"
	expect_verdict nice skipped "it needs a GPU"
	expect_verdict off skipped disabled
	run_split "$SVRUN" image test "$APP"
	expect_in "$out" "0 passed, 1 failed, 3 skipped (1 of them required: failed)" "--allow-skip"
	run_tests --allow-skip
	expect_status 0
	expect_verdict gpu skipped
}

@test "without a GPU, what wants one is tested in its mode cpu; modes have images of their own" {
	no_gpus
	make_service '[
		{id: "which", stage: "run", type: "exec", argv: ["/bin/serve", "env", "MODE"], expect: {stdout: {equals: "cpu"}}},
		{id: "plain", stage: "image", type: "metadata", expect: {env: {MODE: "gpu"}}},
		{id: "fast", stage: "image", type: "metadata", mode: "fast", expect: {env: {MODE: "fast"}}}
	]' '.env.MODE = "gpu" | .gpu = {mode: "required", count: {min: 1}} | .modes = {cpu: {gpu: {mode: "none"}, env: {MODE: "cpu"}}, fast: {env: {MODE: "fast"}}}'
	run_tests
	expect_status 1
	expect_verdict plain passed
	expect_verdict which failed "required, but skipped: the image in mode cpu was not built"
	expect_verdict fast failed "the image in mode fast was not built"
	for mode in cpu fast; do
		"$SVRUN" image lock --mode $mode "$APP" >/dev/null
		"$SVRUN" image build -q --mode $mode "$APP" >/dev/null
	done
	run_tests
	expect_status 0
	run_tests --mode fast --only fast
	expect_status 0
	expect_verdict fast passed
	# the same by the image's name
	APP=served:1 run_tests --only plain --only fast
	expect_status 0
	# what is not built is said before what that leaves undone
	"$SVRUN" image rm served served:1 >/dev/null
	cd "${APP%/*}"
	run_split "$SVRUN" image test "${APP##*/}"
	expect_status 125
	expect_in "$err" "the image served:1 was not built" "'${APP##*/}' means the folder here"
	[[ $out != *FAILED* && $out != *ok* ]] || fail "$out"
}

@test "an image that was built here has its tests with it; others have none" {
	make_service '[{id: "says", stage: "run", type: "exec", argv: ["/bin/serve", "say"], expect: {stdout: {equals: "hello"}}}]'
	rm -r "$APP"
	run_split "$SVRUN" image test served
	expect_status 0
	expect_in "$out" "ok       says" "1 passed, 0 failed, 0 skipped"
	mkdir "$T/root"
	tar -C "$T/root" -c . | "$SVRUN" image import - other --progress none >/dev/null
	run_split "$SVRUN" image test other
	expect_status 125
	expect_in "$err" "there is no bill of materials of image"
	run_split "$SVRUN" image test --mode cpu served
	expect_status 2
	expect_in "$err" "'served' is no app"
}

@test "a manifest that has changed since the build is built first" {
	make_service '[{id: "says", stage: "run", type: "exec", argv: ["/bin/serve", "say"]}]'
	jq '.cmd = ["x"]' "$APP/manifest.json" >"$T/new"
	cp "$T/new" "$APP/manifest.json"
	run_split "$SVRUN" image test "$APP"
	expect_status 2
	expect_in "$err" "the image served:1 was not built from $APP/manifest.json as it is now" \
		"build it again: svrun image build"
	"$SVRUN" image rm served served:1 >/dev/null
	run_split "$SVRUN" image test "$APP"
	expect_status 125
	expect_in "$err" "the image served:1 was not built"
}

@test "what cannot be asked for is a usage error" {
	make_service '[{id: "says", stage: "run", type: "exec", argv: ["/bin/serve", "say"]}]'
	run_split "$SVRUN" image test --only say "$APP"
	expect_status 2
	expect_in "$err" "no test is called 'say'" "did you mean says?"
	run_split "$SVRUN" image test --stage boot "$APP"
	expect_status 2
	run_split "$SVRUN" image test --format xml "$APP"
	expect_status 2
	run_split "$SVRUN" image test --junit "$T/no/such" "$APP"
	expect_status 125
}

@test "whoever interrupts the tests leaves nothing" {
	make_service '[
		{id: "hangs", stage: "run", type: "exec", argv: ["/bin/serve", "hang"], timeoutMs: 60000},
		{id: "slow", stage: "run", type: "http", request: {port: 8000, path: "/slow"}, timeoutMs: 60000}
	]'
	for id in hangs slow; do
		for signal in INT TERM KILL; do
			"$SVRUN" image test --only $id "$APP" >"$T/out" 2>"$T/err" 3>&- &
			local pid=$! log=$SVRUN_ROOT/logs/served/tests/service.log
			for _ in $(seq 200); do
				compgen -G "$SVRUN_ROOT/instances/*/pid" >/dev/null &&
					{ [ $id = hangs ] || grep -q "GET /slow" "$log"; } && break
				sleep 0.05
			done
			kill -$signal $pid
			status=0
			wait $pid || status=$?
			[ $signal != INT ] || [ $status = 130 ] || fail "$id: status $status"
			[ $signal != TERM ] || [ $status = 143 ] || fail "$id: status $status"
			rm -f "$log"
			[ $signal != KILL ] || sleep 1
			"$SVRUN" ps >/dev/null # takes back what a killed one left
			expect_nothing_left "$SVRUN_ROOT"
		done
	done
}

@test "libraries that the loader would not find, and findings of lint" {
	make_service '[
		{id: "found", stage: "image", type: "elf", paths: ["/usr/lib/libmain.so"], expect: {allowUnresolved: ["libc.so.*"]}},
		{id: "lost", stage: "image", type: "elf", paths: ["/opt/**"], expect: {allowUnresolved: ["libc.so.*"]}},
		{id: "known", stage: "image", type: "elf", expect: {unresolved: ["libgone.so"], allowUnresolved: ["libc.so.*"]}},
		{id: "whole", stage: "image", type: "elf", expect: {unresolved: ["libother.so", "libgone.so", "libc.so.6"]}},
		{id: "loose", stage: "image", type: "lint", rules: ["SV072"]},
		{id: "links", stage: "image", type: "lint", rules: ["SV101"]},
		{id: "planned", stage: "plan", type: "lint", rules: ["SV070"]}
	]'
	cd "$T"
	echo 'int f(void) { return 1; }' >f.c
	gcc -shared -fPIC -o libused.so -Wl,-soname,libused.so f.c
	gcc -shared -fPIC -o libgone.so -Wl,-soname,libgone.so f.c
	echo 'int f(void); int g(void) { return f(); }' >g.c
	gcc -shared -fPIC -o "$APP/libmain.so" g.c -L. -lused
	gcc -shared -fPIC -o "$APP/libbad.so" g.c -L. -lgone
	cp libused.so "$APP/"
	jq '.files += [{dest: "/usr/lib/libmain.so", from: "libmain.so"}, {dest: "/usr/lib/libused.so", from: "libused.so"},
		{dest: "/opt/libbad.so", from: "libbad.so"}, {dest: "/etc/open", inline: "x", mode: "0666"}]' \
		"$APP/manifest.json" >new.json
	cp new.json "$APP/manifest.json"
	lock_and_build "$APP" >/dev/null
	run_tests
	expect_status 1
	for id in found known; do expect_verdict $id passed; done
	expect_verdict lost failed "/opt/libbad.so needs libgone.so"
	expect_verdict whole failed "libother.so was expected to be unresolved, and nothing lacks it"
	expect_verdict loose failed "SV072: "
	expect_in "$(verdict_of loose)" "/etc/open"
	expect_verdict planned failed "SV070: "
}

@test "an image that is tested before it has a name is no garbage" {
	need_program busybox
	make_service '[]'
	cp "$(command -v busybox)" "$APP/busybox"
	jq '.files += [{dest: "/bin/busybox", from: "busybox", mode: "0755"}]
		| .entrypoint = ["/bin/busybox", "sleep", "30"] | del(.cmd, .health, .ports)
		| .tests = [range(8) | {id: "t\(.)", stage: "run", type: "exec", argv: ["/bin/busybox", "true"]}]' \
		"$APP/manifest.json" >"$T/new"
	mv "$T/new" "$APP/manifest.json"
	"$SVRUN" image lock "$APP" >/dev/null
	"$SVRUN" image build --test -q "$APP" >"$T/built" 2>&1 &
	local pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		"$SVRUN" image gc >/dev/null
	done
	wait "$pid" || fail "$(<"$T/built")"
	image_digest served
}

@test "build --test delivers what passes" {
	make_service '[{id: "says", stage: "run", type: "exec", argv: ["/bin/serve", "say"], expect: {stdout: {equals: "hello"}}}]'
	run_split "$SVRUN" image build --test --progress none "$APP"
	expect_status 0
	expect_in "$err" "ok       says" "1 passed, 0 failed"
	[[ $out == sha256:* ]]
	jq '.tests[0].expect.stdout.equals = "other"' "$APP/manifest.json" >"$T/new"
	cp "$T/new" "$APP/manifest.json"
	local before
	before=$(image_digest served)
	run_split "$SVRUN" image build --test -q "$APP"
	expect_status 1
	expect_in "$err" "FAILED   says" "it is 'hello\\n', expected 'other'" "served:1 does not pass its tests"
	[ -z "$out" ]
	expect_nothing_left "$SVRUN_ROOT"
	[ "$(image_digest served) $(image_digest served:1)" = "$before $before" ]
	jq '.env.OTHER = "1"' "$APP/manifest.json" >"$T/new"
	cp "$T/new" "$APP/manifest.json"
	run_split "$SVRUN" image build --test -q "$APP"
	expect_status 1
	[ "$(image_digest served) $(image_digest served:1)" = "$before $before" ]
	jq '.version = "2"' "$APP/manifest.json" >"$T/new"
	cp "$T/new" "$APP/manifest.json"
	run_split "$SVRUN" image build --test -q "$APP"
	expect_status 1
	[ "$("$SVRUN" image ls | grep -c served:2)" = 0 ]
}

@test "build --test: an image has no name while it is tested, and none when the build is killed then" {
	make_service '[{id: "says", stage: "run", type: "exec", argv: ["/bin/serve", "say"], timeoutMs: 60000}]'
	local before pid i
	before=$("$SVRUN" image ls)
	jq '.version = "2" | .tests[0].argv = ["/bin/serve", "serve", "9000"]' "$APP/manifest.json" >"$T/new"
	cp "$T/new" "$APP/manifest.json"
	"$SVRUN" image build --test -q "$APP" >"$T/out" 2>&1 &
	pid=$!
	for ((i = 0; i < 100; i++)); do
		[ -z "$(ls "$SVRUN_ROOT/instances" 2>/dev/null)" ] || break
		sleep 0.1
	done
	[ "$i" -lt 100 ] || fail "nothing is tested: $(<"$T/out")"
	[ "$("$SVRUN" image ls)" = "$before" ] || fail "it has a name: $("$SVRUN" image ls)"
	kill -9 "$pid"
	wait "$pid" || true
	[ "$("$SVRUN" image ls)" = "$before" ] || fail "it has a name: $("$SVRUN" image ls)"
	for ((i = 0; i < 100; i++)); do
		"$SVRUN" ps >/dev/null
		[ -n "$(ls "$SVRUN_ROOT/instances" 2>/dev/null)" ] || break
		sleep 0.1
	done
	jq '.tests[0].argv = ["/bin/serve", "say"]' "$APP/manifest.json" >"$T/new"
	cp "$T/new" "$APP/manifest.json"
	"$SVRUN" image build --test -q "$APP"
	[ -n "$(image_digest served:2)" ]
}

@test "a policy that wants signatures does not stand in the way: images are signed after their tests" {
	make_service '[{id: "says", stage: "run", type: "exec", argv: ["/bin/serve", "say"]}]'
	SVRUN_KEY_PASSWORD='' "$SVRUN" image key "$T/good" >/dev/null
	jq -n '{schema: "svrun.policy/1", keys: {good: {file: "good.pub"}}, default: {action: "signed", keys: ["good"]}, rules: []}' >"$T/policy"
	jq -n --arg p "$T/policy" '{policy: $p}' >"$T/config"
	export SVRUN_CONFIG=$T/config
	run_split "$SVRUN" run --rm served say
	expect_status 125
	run_tests
	expect_status 0
	jq -n '{schema: "svrun.policy/1", default: {action: "reject"}, rules: []}' >"$T/policy"
	run_split "$SVRUN" run --rm served say
	expect_status 125
	run_tests
	expect_status 0
	jq -n '{schema: "svrun.policy/1", default: {action: "accept"}, rules: [{match: ["served"], action: "reject"}]}' >"$T/policy"
	run_tests
	expect_status 1
}
