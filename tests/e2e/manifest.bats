#!/usr/bin/env bats
# svrun image resolve, svrun image new, and what a manifest with a parent, variables, modes and services
# becomes.

load helpers

setup() {
	T=$(mktemp -d "$WORK/test.XXXXXX")
	cd "$T" || return 1
	mkdir manifests
}

teardown() {
	rm -rf "$T"
}

put() { # NAME TEXT
	mkdir -p "manifests/$1"
	printf '%s\n' "$2" >"manifests/$1/manifest.json"
}

APT='"apt": { "sources": [{ "uri": "mirror:debian", "suites": ["bookworm"], "components": ["main"],
	"signedBy": "keyring:debian-archive" }], "packages": ["?essential"] }'

family() {
	put base '{ "schema": "svrun.image/1", "name": "base", "version": "1",
	"vars": { "who": { "default": "world", "pattern": "^[a-z]+$" }, "n": { "type": "integer", "default": 3 } },
	"matrix": [{ "id": "small", "vars": { "n": 1 } }, { "id": "big", "vars": { "n": 9 } }],
	"files": [{ "id": "text", "dest": "/etc/text", "from": "text" }],
	"env": { "WHO": "${who}", "N": "${n}" },
	"modes": { "cpu": { "env": { "N": "cpu" }, "cmd": ["cpu"] } },
	'"$APT"' }'
	echo from the base >manifests/base/text
	put app '{ "schema": "svrun.image/1", "name": "app", "version": "1-${n}", "from": ["base"],
	"env": { "B": "2" },
	"cmd": ["/bin/cat", "/etc/text"] }'
}

@test "resolve prints what is inherited, and where each line is from" {
	family
	run_split "$SVRUN" image resolve app
	expect_status 0
	expect_in "$out" '"version": "1-1",  # manifests/app/manifest.json:1' \
		'"WHO": "world",  # manifests/base/manifest.json:5' \
		'"from": "../base/text"  # manifests/base/manifest.json:4' \
		'"B": "2"  # manifests/app/manifest.json:2'
	[[ $out != *'"modes"'* && $out != *'"vars"'* && $out != *'"matrix"'* ]]

	run_split "$SVRUN" image resolve app --format json
	expect_status 0
	[ "$(jq -r .document.env.N <<<"$out")" = 1 ]
	[ "$(jq -r '.origins["/env/WHO"]' <<<"$out")" = manifests/base/manifest.json:5:18 ]
}

@test "resolve takes a mode, an entry of the matrix and variables" {
	family
	run_split "$SVRUN" image resolve app --mode cpu --matrix big --var who=you --format json
	expect_status 0
	[ "$(jq -c .document.env <<<"$out")" = '{"B":"2","N":"cpu","WHO":"you"}' ]
	[ "$(jq -c .document.cmd <<<"$out")" = '["cpu"]' ]
	[ "$(jq -r .document.version <<<"$out")" = 1-9 ]

	run_split "$SVRUN" image resolve app --var who=YOU
	expect_status 2
	[ "$err" = "svrun: --var who: not a value of the variable; expected a text that matches ^[a-z]+$, got 'YOU'" ]
	run_split "$SVRUN" image resolve app --mode gpu
	expect_status 2
	expect_in "$err" "--mode gpu: the manifest has no such mode" "hint: it has cpu"
	run_split "$SVRUN" image resolve app --platform linux/riscv64
	expect_status 2
	expect_in "$err" "--platform linux/riscv64: manifests/app/manifest.json is for linux/"
}

@test "errors of a manifest and of its parents come at once, each with its file, line and column" {
	family
	put base '{ "schema": "svrun.image/1", "name": "base", "version": "1",
	"usr": "x",
	"env": { "A": "${nobody}" } }'
	put app '{ "schema": "svrun.image/1", "name": "app", "version": "1", "from": ["base"],
	"workdir": "x",
	"cmd": { "$remove": ["y"] } }'
	run_split "$SVRUN" image resolve app
	expect_status 2
	[ "$(cut -d ' ' -f 1-3 <<<"$err")" = "manifests/app/manifest.json:2:13: SV008 /workdir:
manifests/app/manifest.json:3:11: SV009 /cmd/\$remove:
manifests/base/manifest.json:2:2: SV001 /usr:
manifests/base/manifest.json:3:16: SV015 /env/A:
svrun: 4 errors" ]

	put a '{ "schema": "svrun.image/1", "name": "a", "version": "1", "from": ["b"] }'
	put b '{ "schema": "svrun.image/1", "name": "b", "version": "1", "from": ["a"] }'
	run_split "$SVRUN" image resolve a
	expect_status 2
	expect_in "$err" "manifests/b/manifest.json:1:68: SV016 /from/0: a circle: a -> b -> a"
}

@test "new makes manifests that lint has nothing to say about" {
	for kind in apt node python gpu; do
		run_split "$SVRUN" image new "my-$kind" --template "$kind"
		expect_status 0
		[ "$out" = "manifests/my-$kind/manifest.json" ]
		"$SVRUN" image resolve "my-$kind" >/dev/null
		run "$SVRUN" image lint "my-$kind"
		expect_status 0
		expect_in "$output" "0 errors, 0 warnings"
	done
	run_split "$SVRUN" image new my-apt
	expect_status 125
	[ "$err" = "svrun: manifests/my-apt exists already" ]
	run_split "$SVRUN" image new ../x
	expect_status 2
	[ ! -e x ] && [ ! -e ../x ]
	run_split "$SVRUN" image new y --template cobol
	expect_status 2
	[ ! -e manifests/y ]
}

@test "an image of a manifest with a parent has the parent's files" {
	need_root
	family
	"$SVRUN" image lock app --matrix big
	[ -f manifests/app/lock.big.json ] && [ ! -f manifests/app/lock.json ]
	"$SVRUN" image build app --matrix big --quiet
	run "$SVRUN" run --rm app:1-9-big
	expect_status 0
	[ "$output" = "from the base" ]
	"$SVRUN" image rm app:1-9-big || true
}

@test "services start in order, with their users, and end with the first failure" {
	need_root
	put svc '{ "schema": "svrun.image/1", "name": "svc", "version": "1",
	"users": [{ "name": "app", "uid": 1000, "gid": 1000 }], "groups": [{ "name": "app", "gid": 1000 }],
	"services": [
		{ "id": "one", "argv": ["/bin/sh", "-c", "id -un; echo $N"], "user": "app", "env": { "N": "n${runtime:cpus}" } },
		{ "id": "two", "argv": ["/bin/sh", "-c", "sleep 0.5; exit 4"], "after": ["one"] }
	],
	'"$APT"' }'
	"$SVRUN" image lock svc
	"$SVRUN" image build svc --quiet
	run_split "$SVRUN" run --rm --cpus 1 svc
	expect_status 4
	[ "$out" = "app
n1" ]
	expect_in "$err" "init: one ended with status 0" "init: two ended with status 4"

	put init '{ "schema": "svrun.image/1", "name": "init", "version": "1", "init": true, "stopSignal": "SIGINT",
	"entrypoint": ["/bin/sh", "-c", "trap \"exit 7\" INT; echo up; sleep 60 & wait"],
	'"$APT"' }'
	"$SVRUN" image lock init
	"$SVRUN" image build init --quiet
	"$SVRUN" run --rm init >"$T/up" &
	pid=$!
	for _ in $(seq 300); do
		[ -s "$T/up" ] && break
		sleep 0.1
	done
	kill -INT "$pid"
	status=0
	wait "$pid" || status=$?
	[ "$status" = 7 ]
	"$SVRUN" image rm svc svc:1 init init:1 || true
}

@test "without dpkg's database the image has none, and its SBOM still names the packages" {
	need_root
	local database
	for database in none status.d; do
		put bare '{ "schema": "svrun.image/1", "name": "bare", "version": "1", "apt": { "sources": [{ "uri": "mirror:debian",
		"suites": ["bookworm"], "components": ["main"], "signedBy": "keyring:debian-archive" }],
		"packages": ["base-files", "netbase", "mawk"], "database": "'"$database"'", "prune": ["doc"] } }'
		"$SVRUN" image lock bare
		"$SVRUN" image build bare --quiet
		"$SVRUN" image sbom bare >"$T/sbom.json"
		[ "$(jq -r '.packages[] | select(.SPDXID | contains("deb-")) | .name' "$T/sbom.json" | sort)" = \
			"$(jq -r '.apt.packages[].name' manifests/bare/lock.json | sort)" ] || fail "SBOM: $(<"$T/sbom.json")"
		"$SVRUN" image export bare | tar t >"$T/files.$database"
		grep -q etc/services "$T/files.$database"
		grep -q etc/alternatives/awk "$T/files.$database" # what a postinst makes is there all the same
		[ -z "$(grep 'var/lib/dpkg/\(status$\|info/.\)' "$T/files.$database")" ]
	done
	[ -z "$(grep var/lib/dpkg "$T/files.none")" ]
	grep -q var/lib/dpkg/status.d/netbase "$T/files.status.d"
	"$SVRUN" image rm bare bare:1 || true
}

@test "what is asked of a name is told of the folder that was built last" {
	need_root
	make_app one '.name = "same" | .tests = [{id: "one", stage: "image", type: "file", paths: ["/etc/text"]}]'
	make_app two '.name = "same" | .tests = [{id: "two", stage: "image", type: "file", paths: ["/etc/text"]}]'
	for app in one two one two; do
		"$SVRUN" image lock "$T/$app"
		"$SVRUN" image build -q "$T/$app" | tail -n 1 >"$T/digest.$app"
		"$SVRUN" image provenance --statement same:1 >"$T/statement"
		[ "$(jq -r '.. | .tests? // empty | .[0].id' "$T/statement")" = "$app" ]
	done
	cmp "$T/digest.one" "$T/digest.two"
	"$SVRUN" image rm same same:1 || true
}
