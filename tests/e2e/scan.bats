#!/usr/bin/env bats
# Known vulnerabilities of an image's packages: by OSV records and Debian's security tracker, from a folder,
# offline. The data are made up here.

load helpers

# A record: ID ECOSYSTEM NAME INTRODUCED FIXED [JQ-FILTER]
osv() {
	jq -n --arg id "$1" --arg eco "$2" --arg name "$3" --arg from "$4" --arg to "$5" '{
		schema_version: "1.6.0", id: $id, modified: "2026-01-01T00:00:00Z", summary: "what \($id) is about",
		affected: [{package: {ecosystem: $eco, name: $name}, ranges: [{
			type: (if $eco == "npm" then "SEMVER" else "ECOSYSTEM" end),
			events: ([{introduced: $from}] + if $to == "" then [] else [{fixed: $to}] end)}]}]}' |
		jq "${6:-.}" >"$DB/$1.json"
}

tracker() {
	jq -n '{
		openssl: {
			"CVE-2026-0001": {description: "a hole", releases: {
				bookworm: {status: "resolved", fixed_version: "3.0.15-1~deb12u2", urgency: "not yet assigned"},
				sid: {status: "open", urgency: "high"}}},
			"CVE-2026-0002": {description: "old", releases: {
				bookworm: {status: "resolved", fixed_version: "3.0.1-1", urgency: "high"}}},
			"CVE-2026-0003": {releases: {bookworm: {status: "resolved", fixed_version: "0", urgency: "high"}}},
			"CVE-2026-0004": {releases: {bookworm: {status: "open", urgency: "unimportant"}}},
			"CVE-2026-0005": {releases: {sid: {status: "open", urgency: "high"}}}
		},
		glibc: {"CVE-2026-0006": {description: "no fix", releases: {bookworm: {status: "open", urgency: "medium**"}}}},
		other: {"CVE-2026-0007": {releases: {bookworm: {status: "open", urgency: "high"}}}}
	}' >"$DB/tracker.json"
}

# An image with packages of dpkg, PyPI and npm, as far as a scan looks at them, and data about them.
scanned_app() { # [JQ-FILTER of the manifest]
	[ -d "$T/store" ] || new_store
	DB=$T/db
	mkdir -p "$DB" "$T/app"
	printf 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n' >"$T/app/os-release"
	cat >"$T/app/status" <<-'STATUS'
		Package: libssl3
		Status: install ok installed
		Architecture: amd64
		Source: openssl
		Version: 3.0.15-1~deb12u1

		Package: openssl
		Status: install ok installed
		Architecture: amd64
		Version: 3.0.15-1~deb12u1

		Package: libc6
		Status: install ok installed
		Architecture: amd64
		Source: glibc (2.36-9)
		Version: 2.36-9+b1

		Package: other
		Status: deinstall ok config-files
		Architecture: amd64
		Version: 1
	STATUS
	echo '{"name": "@s/left", "version": "1.2.3"}' >"$T/app/package.json"
	printf 'Metadata-Version: 2.1\nName: Foo_Bar\nVersion: 1.0rc1\n\ntext\n' >"$T/app/METADATA"
	make_app app '.files += [
		{dest: "/etc/os-release", from: "os-release"}, {dest: "/var/lib/dpkg/status", from: "status"},
		{dest: "/srv/node_modules/@s/left/package.json", from: "package.json"},
		{dest: "/usr/lib/python3/site-packages/Foo_Bar-1.0rc1.dist-info/METADATA", from: "METADATA"}] | '"${1:-.}"
	"$SVRUN" image lock "$T/app" >/dev/null
	tracker
	osv PYSEC-1 PyPI foo.bar 0 1.0 '.aliases = ["CVE-2026-1001"] |
		.severity = [{type: "CVSS_V3", score: "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}]'
	osv GHSA-1 npm @s/left 1.2.0 1.2.4 '.database_specific.severity = "MODERATE"'
	osv GHSA-2 npm @s/left 2.0.0 2.0.1
}

build_app() {
	run_split "$SVRUN" image build --progress plain "$T/app"
}

scan() {
	run_split "$SVRUN" image scan --db "$DB" "$@" app
}

found() { # the findings of the last --format json, as ID:LEVEL:FIXED
	jq -r '.findings[] | "\(.id):\(.level):\(.fixed)"' "$T/out" | sort | tr '\n' ' '
}

@test "packages of dpkg, PyPI and npm against records of OSV and Debian's tracker" {
	need_root
	scanned_app
	build_app
	expect_status 0
	scan
	expect_status 0
	[[ $out =~ critical.*CVE-2026-1001.*"foo-bar 1.0rc1"."(foo-bar)".*"fixed in 1.0" ]] || fail "$out"
	[[ $out =~ unknown.*CVE-2026-0001.*"openssl 3.0.15-1~deb12u1"."(libssl3, openssl)".*"fixed in 3.0.15-1~deb12u2" ]] || fail "$out"
	expect_in "$out" "5 packages, 5 vulnerabilities"
	scan --format json
	[ "$(found)" = "CVE-2026-0001:unknown:3.0.15-1~deb12u2 CVE-2026-0004:negligible:null CVE-2026-0006:medium:null \
CVE-2026-1001:critical:1.0 GHSA-1:medium:1.2.4 " ] || fail "$(found)"
	jq -e '.findings[] | select(.id == "CVE-2026-0006") | .version == "2.36-9" and .binaries == "libc6"' "$T/out"
	jq -e '.findings[] | select(.id == "CVE-2026-1001") | .aliases == ["PYSEC-1"]' "$T/out"
	scan --format sarif
	jq -e '.version == "2.1.0" and (.runs[0].results | length) == 5 and
		(.runs[0] | [.results[].ruleId] - [.tool.driver.rules[].id] == [])' "$T/out"
}

@test "a level to fail on, and what has no fix" {
	need_root
	scanned_app
	build_app
	scan --fail-on critical
	expect_status 1
	expect_in "$out" "fails: 1 critical"
	rm "$DB/PYSEC-1.json"
	osv PYSEC-2 PyPI else 0 1
	scan --fail-on high
	expect_status 0
	scan --fail-on medium
	expect_in "$out" "fails: 2 medium"
	scan --fail-on medium --ignore-unfixed
	expect_in "$out" "fails: 1 medium"
	scan --fail-on low # and what nobody has judged; nothing negligible
	expect_in "$out" "fails: 2 medium, 1 unknown"
	scan --fail-on bad
	expect_status 2
	expect_in "$err" "--fail-on: expected low, medium, high or critical"
}

@test "a record's severity counts for what Debian has not judged" {
	need_root
	scanned_app
	build_app
	osv CVE-2026-0001 Go x 0 1 '.severity = [{type: "CVSS_V3", score: "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H"}]'
	scan --format json
	expect_in "$(found)" "CVE-2026-0001:high:3.0.15-1~deb12u2"
}

@test "without the tracker, OSV's records of the release decide" {
	need_root
	scanned_app
	build_app
	rm "$DB/tracker.json"
	osv DSA-1-1 Debian:12 openssl 0 3.0.15-1~deb12u2 '.upstream = ["CVE-2026-0001"]'
	osv DSA-2-1 Debian:11 openssl 0 9
	osv DSA-3-1 Debian:12 openssl 0 3.0.1-1
	osv DSA-4-1 Debian:12 openssl 0 9 '.upstream = ["CVE-1", "CVE-2"] | .affected[0].ecosystem_specific.urgency = "low"'
	scan --format json
	expect_in "$(found)" "CVE-2026-0001:unknown:3.0.15-1~deb12u2" "DSA-4-1:low:9"
	[[ $(found) != *DSA-2* && $(found) != *DSA-3* ]]
	osv DSA-5-1 Debian:12 openssl 0 9 '.withdrawn = "2026-01-02T00:00:00Z"'
	scan --format json
	[[ $(found) != *DSA-5* ]]
}

@test "data are read once, whole dumps too, and again when they change" {
	need_root
	scanned_app
	build_app
	(cd "$DB" && python3 -c 'import sys, zipfile
z = zipfile.ZipFile("all.zip", "w", zipfile.ZIP_DEFLATED)
for n in sys.argv[1:]: z.write(n)' GHSA-1.json GHSA-2.json && tar -czf py.tar.gz PYSEC-1.json && rm GHSA-* PYSEC-*)
	mkdir "$DB/deep" && mv "$DB/py.tar.gz" "$DB/deep"
	scan --format json
	[[ $(found) == *CVE-2026-1001:critical* && $(found) == *GHSA-1* ]] || fail "$out$err"
	[ "$(find "$SVRUN_ROOT/cache/vuln" -type f | wc -l)" = 1 ]
	cp "$T/out" "$T/first"
	scan --format json
	cmp "$T/out" "$T/first"
	[ "$(find "$SVRUN_ROOT/cache/vuln" -type f | wc -l)" = 1 ]
	# an index that a crash tore is made again
	truncate -s -10 "$SVRUN_ROOT"/cache/vuln/*
	scan --format json
	cmp "$T/out" "$T/first"
	osv GHSA-3 npm @s/left 0 ''
	scan --format json
	[[ $(found) == *GHSA-3:unknown:null* ]] || fail "$(found)"
	"$SVRUN" image gc --cache >/dev/null 2>&1
	[ "$(find "$SVRUN_ROOT/cache/vuln" -type f | wc -l)" = 0 ]
}

@test "no data is an error that says what to do, also where they say nothing of a kind of package" {
	need_root
	scanned_app
	build_app
	run_split "$SVRUN" image scan app
	expect_status 2
	expect_in "$err" "there are no data about vulnerabilities" "vulnerabilities" "--db DIR"
	run_split "$SVRUN" image scan --db "$T/nowhere" app
	expect_status 2
	mkdir "$T/empty"
	run_split "$SVRUN" image scan --db "$T/empty" app
	expect_in "$err" "no data about vulnerabilities in it"
	rm "$DB"/GHSA-*
	scan
	expect_status 125
	expect_in "$err" "the data say nothing of npm, and the image has 1 packages of it"
	osv GHSA-1 npm x 0 1
	rm "$DB/tracker.json"
	scan
	expect_in "$err" "the data say nothing of Debian 12, and the image has 3 packages of it"
}

@test "of a source with an absurd number of packages, the first are named" {
	need_root
	scanned_app
	awk 'BEGIN { for (i = 0; i < 3000; i++)
		printf "Package: p%06d\nStatus: install ok installed\nSource: openssl\nVersion: 1\n\n", i }' >"$T/app/status"
	"$SVRUN" image lock "$T/app" >/dev/null
	build_app
	scan --format json
	expect_status 0
	jq -e '[.. | strings | select(startswith("p000000, p000001, "))] |
		length > 0 and all(endswith(", ...") and length < 17000)' <"$T/out"
}

@test "hostile data are refused by file and place" {
	need_root
	scanned_app
	build_app
	refused() { # FILE TEXT PART...
		printf '%s' "$2" >"$DB/$1"
		scan
		[ "$status" != 0 ] || fail "$1 was taken"
		expect_in "$err" "$DB/$1" "${@:3}"
		rm "$DB/$1"
	}
	refused x.json 'nothing' "byte 0" "neither a record of OSV nor Debian's tracker"
	refused x.json '{"a": {"CVE-1": {"releases": {"bookworm": {"status": "open"}}}}' "byte"
	refused x.json '{"a": {"CVE-1": 7}}' "a: CVE-1: expected a vulnerability"
	refused x.json '{"a": {}, "a": 7}' "expected a source package"
	refused x.json "{\"a\": $(printf '[%.0s' {1..5000})" "nesting at most 8 deep"
	refused x.json '{"id": "X\u0001", "modified": "m"}' "/id: expected an id"
	refused x.json '{"id": "X", "modified": "m", "affected": [{"package": {"ecosystem": "npm", "name": "a\nb"}}]}' "X: /affected/0" "is no name"
	refused x.json '{"id": "X", "modified": "m", "affected": [{"package": {"ecosystem": "npm", "name": "a"},
		"ranges": [{"type": "SEMVER", "events": [{"introduced": 7}]}]}]}' "X: /affected/0: /ranges/0/events/0: introduced"
	refused x.zip 'no zip' ""
	head -c 40000000 /dev/zero | tr '\0' ' ' >"$T/big.json"
	(cd "$T" && python3 -c 'import zipfile; zipfile.ZipFile("db/big.zip", "w", zipfile.ZIP_DEFLATED).write("big.json")')
	scan
	expect_in "$err" "big.zip" "big.json" "16 MiB"
}

site() {
	export SVRUN_CONFIG=$T/config.json
	jq -n --arg db "$DB" '{vulnerabilities: $db}' >"$SVRUN_CONFIG"
}

@test "a build with build.scan fails before its image has a name; what is allowed for a time passes" {
	need_root
	scanned_app '.build.scan = {failOn: "medium", ignoreUnfixed: true}'
	build_app
	expect_status 2
	expect_in "$err" "manifest.json:" "there are no data about vulnerabilities"
	site
	build_app
	expect_status 125
	expect_in "$err" "app has vulnerabilities: 1 critical, 1 medium; the worst is CVE-2026-1001 in foo-bar 1.0rc1" \
		"GHSA-1" "/build/scan/allow"
	[ -z "$(image_digest app 2>/dev/null || true)" ]
	# the same again, when nothing is to be built
	build_app
	expect_status 125

	scanned_app '.build.scan = {failOn: "medium", ignoreUnfixed: true, allow: [
		{id: "PYSEC-1", until: "9999-12-31", reason: "not reached"},
		{id: "GHSA-1", until: "9999-12-31", reason: "not reached"}]}'
	build_app
	expect_status 0
	expect_in "$err" "2 allowed"
	local digest
	digest=$(image_digest app)
	scan
	expect_in "$out" "[allowed until 9999-12-31]" "2 allowed"
	scan --fail-on medium --ignore-unfixed
	expect_status 0
	scan --fail-on medium --ignore-unfixed --no-allow
	expect_status 1

	# what was let through is so no longer, and one entry is of no use
	scanned_app '.build.scan = {failOn: "medium", ignoreUnfixed: true, allow: [
		{id: "CVE-2026-1001", until: "2020-01-01", reason: "not reached"},
		{id: "GHSA-1", until: "9999-12-31", reason: "not reached"},
		{id: "CVE-1999-1", until: "9999-12-31", reason: "gone"}]}'
	build_app
	expect_status 125
	[[ $err =~ manifest.json:[0-9]+:[0-9]+:\ /build/scan/allow/0:\ CVE-2026-1001\ was\ allowed\ until\ 2020-01-01 ]] || fail "$err"
	[[ $err =~ manifest.json:[0-9]+:[0-9]+:\ /build/scan/allow/2:\ CVE-1999-1\ is\ not\ in\ the\ image ]] || fail "$err"
	[ "$(image_digest app)" = "$digest" ]

	# a scan leaves no trace in the image, and its result is in the build's report
	scanned_app '.build.scan = {failOn: "critical", allow: [{id: "PYSEC-1", until: "9999-12-31", reason: "r"}]}'
	run_split "$SVRUN" image build -q --format json "$T/app"
	expect_status 0
	jq -e '.scan.findings | length == 5' "$T/out"
	[ "$(image_digest app)" = "$digest" ]
	scanned_app
	build_app
	[ "$(image_digest app)" = "$digest" ]
}

@test "new data make an image fail that was built before" {
	need_root
	scanned_app '.build.scan = {failOn: "high", allow: [{id: "PYSEC-1", until: "9999-12-31", reason: "r"}]}'
	site
	build_app
	expect_status 0
	osv GHSA-9 npm @s/left 0 '' '.database_specific.severity = "HIGH"'
	build_app
	expect_status 125
	expect_in "$err" "GHSA-9 in @s/left 1.2.3"
}

@test "an image from elsewhere: its dpkg database, its folders, and the SBOM that it brings, which can only add" {
	need_root
	scanned_app '.build.sbom = ["cyclonedx-1.5"]'
	build_app
	rm -r "$SVRUN_ROOT/bills"
	scan --format json
	[ "$(jq .packages "$T/out")" = 5 ]
	expect_in "$(found)" "CVE-2026-1001:critical:1.0" "CVE-2026-0001:unknown" "GHSA-1:medium"
	# another SBOM: it has one package, which the image lacks
	local list sbom artifact
	list=$SVRUN_ROOT/attached/$(image_digest app | cut -d: -f2)
	artifact=$SVRUN_ROOT/blobs/sha256/$(jq -r '.manifests[0].digest[7:]' "$list")
	echo '{"bomFormat": "CycloneDX", "components": [{"purl": "pkg:npm/extra@1.0.0"}]}' >"$T/sbom"
	sbom=$(sha256sum "$T/sbom" | cut -c-64)
	cp "$T/sbom" "$SVRUN_ROOT/blobs/sha256/$sbom"
	jq -c --arg d "sha256:$sbom" --argjson n "$(stat -c %s "$T/sbom")" '.layers[0] |= (.digest = $d | .size = $n)' "$artifact" >"$T/artifact"
	artifact=$(sha256sum "$T/artifact" | cut -c-64)
	cp "$T/artifact" "$SVRUN_ROOT/blobs/sha256/$artifact"
	jq --arg d "sha256:$artifact" --argjson n "$(stat -c %s "$T/artifact")" '.manifests[0] |= (.digest = $d | .size = $n)' "$list" >"$T/list"
	cp "$T/list" "$list"
	osv GHSA-5 npm extra 0 ''
	scan --format json
	[ "$(jq .packages "$T/out")" = 6 ]
	expect_in "$(found)" "GHSA-5:unknown:null" "CVE-2026-1001:critical:1.0" "CVE-2026-0001:unknown" "GHSA-1:medium"
}
