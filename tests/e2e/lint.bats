#!/usr/bin/env bats
# svrun image lint.

load helpers

manifest() { # NAME [JQ-FILTER]: manifests/NAME/manifest.json below $T
	mkdir -p "$T/manifests/$1"
	jq -n --arg name "$1" '{schema: "svrun.image/1", name: $name, version: "1", user: "1000:1000",
		cmd: ["/x"], tests: [{id: "t", stage: "run", type: "exec", argv: ["/x"]}]}' |
		jq "${2:-.}" >"$T/manifests/$1/manifest.json"
}

lint() {
	cd "$T" && run_split "$SVRUN" image lint "$@"
}

@test "a manifest with nothing to say is silent" {
	manifest good
	lint good
	expect_status 0
	[ -z "$out" ] || fail "$out"
	[ "$err" = "1 manifest: 0 errors, 0 warnings, 0 notes" ] || fail "$err"
}

@test "a finding is a line with its place, pointer, code, hint and level" {
	manifest root '.user = "root"'
	lint root
	expect_status 0
	[ "$out" = 'manifests/root/manifest.json:5:11: SV070 /user: the program runs as root; expected a user, like 1000:1000; set user, and give it its folders with dirs [warning]' ] ||
		fail "$out"
}

@test "errors give status 1, warnings do with --strict" {
	manifest warned '.user = "root"'
	manifest wrong '.gpu = {mode: "none"} | .python = {prefix: "/opt/v", guard: {torch: "==2.7.1", torchvision: "==0.21.0"}}'
	lint warned
	expect_status 0
	lint --strict warned
	expect_status 1
	lint wrong
	expect_status 1
	expect_in "$out" "SV050 /python/guard/torchvision: torchvision 0.21.0 was not built for torch 2.7.1; expected 0.22" "[error]"
}

@test "what the parser refuses in one manifest does not hide the others" {
	manifest a '.nam = 1'
	manifest b '.user = "root"'
	manifest c '.name = 5'
	lint --all
	expect_status 1
	expect_in "$out" "manifests/a/manifest.json" "SV001 /nam: unknown key 'nam'" "did you mean 'name'" \
		"manifests/b/manifest.json:5:11: SV070" "manifests/c/manifest.json:3:11: SV006 /name"
	[ "$(grep -c '\[error\]$' <<<"$out")" = 2 ] || fail "$out"
	expect_in "$err" "3 manifests: 2 errors, 1 warning, 0 notes"
}

@test "json has the parts of a finding, and of what the parser says" {
	manifest a '.nam = 1'
	manifest b '.user = "root"'
	lint --format json a b
	expect_status 1
	jq -e '.[0] | .code == "SV001" and .level == "error" and .file == "manifests/a/manifest.json"
		and .pointer == "/nam" and .line > 1 and .column > 0 and (.message | startswith("unknown key"))' <<<"$out"
	jq -e '.[1] | .code == "SV070" and .level == "warning" and .line == 5 and .column == 11
		and .pointer == "/user" and .expected == "a user, like 1000:1000" and (.hint | length > 10)' <<<"$out"
	[ -z "$err" ] || fail "$err"
	lint --format json b
	jq -e 'length == 1' <<<"$out"
}

@test "what is allowed with a reason is not said" {
	manifest a '.user = "root" | .["x-lint"] = {allow: [{id: "SV070", reason: "it needs devices"}]}'
	lint a
	expect_status 0
	[ -z "$out" ] || fail "$out"
	manifest b '.user = "root" | .["x-lint"] = {allow: [{id: "SV070"}]}'
	lint b
	expect_in "$out" "SV070 /user" "SV018 /x-lint/allow/0: this allows nothing: it has no reason"
}

@test "a finding in what is inherited names the parent's file and line" {
	manifest parent '.user = "root"'
	mkdir -p "$T/manifests/child"
	echo '{"schema": "svrun.image/1", "name": "child", "version": "1", "from": ["parent"]}' \
		>"$T/manifests/child/manifest.json"
	lint child
	expect_status 0
	expect_in "$out" "parent/manifest.json:5:11: SV070 /user"
	[ "$(wc -l <<<"$out")" = 1 ] || fail "$out"
}

@test "every mode and every entry of the matrix is looked at, and nothing is said twice" {
	# shellcheck disable=SC2016 # ${n} is the manifest's
	manifest modes '.user = "root" | .modes = {cpu: {cmd: ["/x", "--threads", "8"]}, fast: {env: {OMP_NUM_THREADS: "16"}}}
		| .vars = {n: {type: "string", default: "0"}} | .matrix = [{id: "a", vars: {n: "1"}}, {id: "b", vars: {n: "4"}}]
		| .env = {OMP_NUM_THREADS: "${n}"}'
	lint modes
	expect_status 0
	expect_in "$out" "OMP_NUM_THREADS is 4 whatever" "OMP_NUM_THREADS is 16 whatever" "--threads is 8 whatever"
	[ "$(grep -c SV070 <<<"$out")" = 1 ] || fail "$out"
	[ "$(sort <<<"$out" | uniq -d | wc -l)" = 0 ] || fail "$out"
}

@test "a lock of another version of the manifest is named, and a damaged one" {
	need_root
	manifest locked '.files = [{dest: "/x", from: "x"}]'
	echo x >"$T/manifests/locked/x"
	(cd "$T" && "$SVRUN" image lock locked)
	lint locked
	expect_status 0
	[ -z "$out" ] || fail "$out"
	manifest locked '.files = [{dest: "/x", from: "x"}, {dest: "/y", from: "x"}, {dest: "/z", from: "manifest.json"}]'
	lint locked
	expect_in "$out" "SV017 the lock is of another version of this manifest; run: svrun image lock [warning]"
	echo '{"schema": 5}' >"$T/manifests/locked/lock.json"
	lint locked
	expect_status 1
	expect_in "$out" "lock.json:1:12: SV006 /schema"
}

@test "the manifests of this repository have no errors" {
	cd "$TOP"
	run_split "$SVRUN" image lint --all
	expect_status 0
}

@test "--explain tells of one code, and of all as the documentation does" {
	lint --explain SV041
	expect_status 0
	expect_in "$out" "SV041 reference BLAS" "warning; found by" "Instead: add libopenblas0-pthread"
	local one=$out
	lint --explain sv041
	[ "$out" = "$one" ] || fail "$out"
	lint --explain all
	[ "$out" = "$(sed -n '/^### SV000/,$p' "$TOP/docs/lint.md")" ] || fail "docs/lint.md is another"
	lint --explain SV999
	expect_status 2
	expect_in "$err" "there is no code 'SV999'"
}

@test "wrong words give status 2" {
	manifest a
	local words
	for words in "" "--all a" "--format xml a" "--explain" "--explain SV041 a" "--strict"; do
		# shellcheck disable=SC2086 # words
		lint $words
		[ "$status" = 2 ] || fail "lint $words: $status $err"
		[ -z "$out" ] || fail "lint $words: $out"
	done
}

@test "a manifest that is not there gives status 125, after the others" {
	manifest a '.user = "root"'
	lint nowhere a
	expect_status 125
	expect_in "$out" "manifests/a/manifest.json:5:11: SV070"
	expect_in "$err" "no manifest 'nowhere'" "hint: manifests/ has a"
	rm -r "$T/manifests"
	lint --all
	expect_status 125
	expect_in "$err" "open manifests" "hint: run it where the folder manifests/ is"
}
