#!/usr/bin/env bats
# Sources that are no packages, bases, and rebase: from repositories, archives and registries made here.

load helpers
load registry

# The manifest's "sources" of an app without anything else; $APP is its folder.
source_app() { # NAME SOURCES-AS-JSON
	APP=$T/$1
	mkdir -p "$APP"
	jq -n --arg name "$1" --argjson s "$2" \
		'{schema: "svrun.image/1", name: $name, version: "1", sources: $s, cmd: ["/bin/true"]}' \
		>"$APP/manifest.json"
}

# The key of a file beside the manifest, as JSON: "url", "sha256", "size".
pin() { # FILE
	jq -nc --arg u "file:${1##*/}" --arg s "$(sha256sum <"$1" | cut -c1-64)" --argjson n "$(stat -c %s "$1")" \
		'{url: $u, sha256: $s, size: $n}'
}

lock() {
	run_split "$SVRUN" image lock "$@"
}

build() {
	run_split "$SVRUN" image build --progress none -q "$@"
}

# "TYPE MODE OWNER PATH" of all that an image has.
listing() { # NAME
	"$SVRUN" image export "$1" 2>/dev/null | tar tvf - --numeric-owner |
		awk '{ $3 = ""; $4 = ""; $5 = ""; print }' | tr -s ' '
}

content() { # NAME PATH
	"$SVRUN" image export "$1" 2>/dev/null | tar xOf - "$2"
}

git_here() {
	GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null git -c user.name=n -c user.email=e@x -c init.defaultBranch=main \
		-c protocol.file.allow=always "$@"
}

# A repository with files of all kinds; $REPO, $COMMIT.
make_repo() { # DIR
	REPO=$1
	git_here init -q "$REPO"
	mkdir -p "$REPO/src/deep" "$REPO/docs"
	echo hello >"$REPO/src/deep/hello.txt"
	printf '#!/bin/sh\necho hi\n' >"$REPO/run.sh"
	chmod 755 "$REPO/run.sh"
	ln -s src/deep/hello.txt "$REPO/link"
	echo text >"$REPO/docs/a.md"
	python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(3).randbytes(2500000))' >"$REPO/big"
	commit_repo
}

commit_repo() {
	git_here -C "$REPO" add -A
	GIT_AUTHOR_DATE="@1500000000 +0000" GIT_COMMITTER_DATE="@1500000000 +0000" \
		git_here -C "$REPO" commit -qm one
	COMMIT=$(git_here -C "$REPO" rev-parse HEAD)
}

# Another implementation of the canonical listing.
tree_sha256() { # REPO COMMIT
	python3 - "$1" "$2" <<-'PY'
		import hashlib, subprocess, sys
		git = ["git", "-C", sys.argv[1]]
		lines = []
		for e in subprocess.check_output(git + ["ls-tree", "-rz", sys.argv[2]]).split(b"\0"):
		    if not e:
		        continue
		    head, path = e.split(b"\t")
		    mode, kind, oid = head.split()
		    data = subprocess.check_output(git + ["cat-file", "blob", oid.decode()])
		    lines.append(mode + b" " + hashlib.sha256(data).hexdigest().encode() + b" " + path + b"\n")
		print(hashlib.sha256(b"".join(sorted(lines))).hexdigest())
	PY
}

# ---- git ----

@test "a commit is unpacked by include, exclude and strip; its listing is in the lock" {
	need_program git
	new_store
	source_app g '[]'
	make_repo "$T/g/repo"
	source_app g "[{\"id\": \"all\", \"type\": \"git\", \"url\": \"file:repo\", \"commit\": \"$COMMIT\", \"dest\": \"/all\"},
		{\"id\": \"part\", \"type\": \"git\", \"url\": \"file:repo\", \"commit\": \"$COMMIT\", \"dest\": \"/part\", \"strip\": 1,
		 \"include\": [\"deep\", \"*.md\"], \"exclude\": [\"**/nothing\"], \"uid\": 5, \"gid\": 6}]"
	lock "$APP"
	expect_status 0
	[ "$(jq -r '.sources[0].treeSha256' "$APP/lock.json")" = "$(tree_sha256 "$REPO" "$COMMIT")" ]
	[ "$(jq -r '.sources[0].commit' "$APP/lock.json")" = "$COMMIT" ]
	build "$APP"
	expect_status 0
	expect_in "$(listing g)" "-rwxr-xr-x 0/0 all/run.sh" "lrwxrwxrwx 0/0 all/link -> src/deep/hello.txt" \
		"-rw-r--r-- 5/6 part/deep/hello.txt" "-rw-r--r-- 5/6 part/a.md"
	[[ $(listing g) != *part/run.sh* ]]
	content g all/big | cmp - "$REPO/big"
}

@test "no hook, filter or setting of a repository is obeyed" {
	need_program git
	new_store
	source_app g '[]'
	make_repo "$T/g/repo"
	printf '*.txt filter=evil text eol=crlf ident\nrun.sh export-ignore\n' >"$REPO/.gitattributes"
	commit_repo
	mkdir -p "$REPO/.git/hooks"
	for hook in post-checkout pre-commit reference-transaction post-upload-pack; do
		printf '#!/bin/sh\ntouch %s/pwned\n' "$T" >"$REPO/.git/hooks/$hook"
		chmod 755 "$REPO/.git/hooks/$hook"
	done
	git -C "$REPO" config filter.evil.smudge "touch $T/pwned; cat"
	git -C "$REPO" config uploadpack.packObjectsHook "$REPO/.git/hooks/pre-commit"
	git -C "$REPO" config core.fsmonitor "$REPO/.git/hooks/pre-commit"
	source_app g "[{\"id\": \"g\", \"type\": \"git\", \"url\": \"file:repo\", \"commit\": \"$COMMIT\", \"dest\": \"/g\"}]"
	printf '[core]\n\thooksPath = %s\n' "$REPO/.git/hooks" >"$T/gitconfig"
	GIT_CONFIG_GLOBAL=$T/gitconfig HOME=$T lock "$APP"
	expect_status 0
	build "$APP"
	expect_status 0
	[ ! -e "$T/pwned" ]
	[ "$(content g g/src/deep/hello.txt)" = hello ]
	expect_in "$(listing g)" "g/run.sh"
}

@test "commits come from smart and from dumb servers" {
	need_program git
	new_store
	make_repo "$T/repo"
	git_here clone -q --bare "$REPO" "$T/www/repo.git"
	git -C "$T/www/repo.git" update-server-info
	dumb_make() { COMMAND=(python3 -m http.server --bind 127.0.0.1 -d "$T/www" "$1"); }
	server_try dumb dumb_make
	source_app d "[{\"id\": \"g\", \"type\": \"git\", \"url\": \"http://127.0.0.1:$PORT/repo.git\", \"commit\": \"$COMMIT\", \"dest\": \"/g\"}]"
	sed -i "s,http://127.0.0.1:$PORT,mirror:git," "$APP/manifest.json"
	export SVRUN_CONFIG=$T/config.json
	echo "{\"mirrors\": {\"git\": \"http://127.0.0.1:$PORT\"}}" >"$SVRUN_CONFIG"
	lock "$APP"
	expect_status 0
	[ "$(jq -r '.sources[0].treeSha256' "$APP/lock.json")" = "$(tree_sha256 "$REPO" "$COMMIT")" ]
	# the same from git's own server, into another store
	rm -rf "$T/store"
	new_store
	smart_make() { COMMAND=(python3 "$E2E/git-server" "$1" "$T/www"); }
	server_try smart smart_make
	echo "{\"mirrors\": {\"git\": \"http://127.0.0.1:$PORT\"}}" >"$SVRUN_CONFIG"
	cp "$APP/lock.json" "$T/before"
	lock "$APP"
	expect_status 0
	cmp "$APP/lock.json" "$T/before"
	# only that commit came
	[ "$(git --git-dir "$T/store/cache/git/$COMMIT" rev-list --count "$COMMIT")" = 1 ]
}

@test "submodules and Git LFS pointers are named, and may be left out" {
	need_program git
	new_store
	source_app g '[]'
	make_repo "$T/sub"
	make_repo "$T/g/repo"
	git_here -C "$REPO" submodule --quiet add "$T/sub" third/party
	printf 'version https://lfs.example/v1\noid sha256:%064d\nsize 12345\n' 7 >"$REPO/weights.bin"
	commit_repo
	local s="{\"id\": \"g\", \"type\": \"git\", \"url\": \"file:repo\", \"commit\": \"$COMMIT\", \"dest\": \"/g\"}"
	source_app g "[$s]"
	lock "$APP"
	expect_status 125
	expect_in "$err" "source g: 'third/party' is a submodule" "hint: add a source of type git"
	source_app g "[$(jq -c '.exclude = ["third"]' <<<"$s")]"
	lock "$APP"
	expect_status 125
	expect_in "$err" "'weights.bin' is a pointer of Git LFS" '"size": 12345'
	source_app g "[$(jq -c '.exclude = ["third", "*.bin"]' <<<"$s")]"
	lock "$APP"
	expect_status 0
	build "$APP"
	expect_status 0
	[[ $(listing g) != *weights* ]]
}

@test "a commit that is not there, a tree that is another, and a way out of the folder are refused" {
	need_program git
	new_store
	source_app g '[]'
	make_repo "$T/g/repo"
	make_repo "$T/outside"
	local s="{\"id\": \"g\", \"type\": \"git\", \"url\": \"file:repo\", \"commit\": \"$COMMIT\", \"dest\": \"/g\"}"
	source_app g "[$(jq -c '.commit = "0123456789012345678901234567890123456789"' <<<"$s")]"
	lock "$APP"
	expect_status 125
	expect_in "$err" "source g: /sources/0/url: file:repo" "0123456789012345678901234567890123456789"
	expect_in "$err" "$APP/manifest.json:6:5: source g: "
	source_app g "[$(jq -c --arg d "$(printf '%064d' 5)" '.treeSha256 = $d' <<<"$s")]"
	lock "$APP"
	expect_status 125
	expect_in "$err" "/sources/0/treeSha256: commit $COMMIT: expected sha256:0000" \
		"found sha256:$(tree_sha256 "$REPO" "$COMMIT")"
	ln -s ../outside "$APP/way"
	source_app g "[$(jq -c '.url = "file:way"' <<<"$s")]"
	rm -rf "$T/store/cache/git"
	lock "$APP"
	expect_status 125
	expect_in "$err" "leads out of the manifest's folder"
}

@test "lock asks the address, even of a commit that is here from another one" {
	need_program git
	new_store
	source_app g '[]'
	make_repo "$T/g/repo"
	local s="{\"id\": \"g\", \"type\": \"git\", \"url\": \"file:repo\", \"commit\": \"$COMMIT\", \"dest\": \"/g\"}"
	source_app g "[$s]"
	lock "$APP"
	expect_status 0
	cp "$APP/lock.json" "$T/before"
	git_here init -q "$T/g/empty"
	source_app g "[$(jq -c '.url = "file:empty"' <<<"$s")]"
	lock "$APP"
	expect_status 125
	expect_in "$err" "/sources/0/url: file:empty" "$COMMIT"
	cmp "$APP/lock.json" "$T/before"
	source_app g "[$s]"
	lock "$APP"
	expect_status 0
	[ -z "$(ls "$SVRUN_ROOT/cache/partial")" ]
	# a build asks nobody
	rm -rf "$T/g/repo"
	build "$APP"
	expect_status 0
}

@test "a source of which strip, include or exclude leave nothing is an error" {
	new_store
	source_app a '[]'
	mkdir -p "$T/d/e"
	echo x >"$T/d/e/file"
	tar cf "$APP/a.tar" -C "$T" d
	source_app a "[$(pin "$APP/a.tar" | jq -c '. + {id: "a", type: "archive", dest: "/a", strip: 9}')]"
	lock "$APP"
	expect_status 0
	build "$APP"
	expect_status 2
	expect_in "$err" "source a: nothing of it is left" "strip takes 9 folders off each path"
}

# ---- archives, files, text ----

@test "archives in every compression, zip, files and text" {
	new_store
	local d=$T/a c
	mkdir -p "$d" "$T/t/pkg-1/sub"
	echo one >"$T/t/pkg-1/one"
	chmod 4755 "$T/t/pkg-1/one"
	echo two >"$T/t/pkg-1/sub/two"
	ln -s one "$T/t/pkg-1/ln"
	ln "$T/t/pkg-1/one" "$T/t/pkg-1/hard"
	local list='[]'
	for c in tar tgz tbz2 txz tzst; do
		tar -C "$T/t" --auto-compress --sort=name -cf "$d/p.$c" pkg-1
		list=$(jq -c --arg id "$c" --argjson p "$(pin "$d/p.$c")" \
			'. + [$p + {id: $id, type: "archive", dest: "/\($id)", strip: 1, exclude: ["sub"]}]' <<<"$list")
	done
	(cd "$T/t" && python3 -c 'import shutil, sys; shutil.make_archive(sys.argv[1], "zip", ".", "pkg-1")' "$d/p")
	echo afile >"$d/file"
	list=$(jq -c --argjson z "$(pin "$d/p.zip")" --argjson f "$(pin "$d/file")" '. + [
		$z + {id: "zip", type: "archive", dest: "/zip", strip: 1, include: ["one", "sub"]},
		$f + {id: "f", type: "file", dest: "/bin/file", mode: "0755", uid: 3},
		{id: "i", type: "inline", inline: "some text\n", dest: "/etc/text"}]' <<<"$list")
	source_app a "$list"
	lock "$APP"
	expect_status 0
	build "$APP"
	expect_status 0
	local all
	all=$(listing a)
	for c in tar tgz tbz2 txz tzst; do
		# set-user-ID is not a source's to give
		expect_in "$all" "-rwxr-xr-x 0/0 $c/hard" "0/0 $c/ln -> one"
		[ "$(content a "$c/hard")" = one ] || [ "$(content a "$c/one")" = one ]
		[[ $all != *"$c/sub"* ]]
	done
	expect_in "$all" "-rwxr-xr-x 3/0 bin/file" "zip/sub/two"
	[ "$(content a zip/sub/two)" = two ]
	[ "$(content a etc/text)" = "some text" ]
	# the same again, to the byte
	local first=$out
	build --no-cache "$APP"
	[ "$out" = "$first" ]
}

@test "hostile archives are refused by member and reason" {
	new_store
	local d=$T/h
	mkdir -p "$d"
	python3 - "$d" <<-'PY'
		import io, os, sys, tarfile, zipfile
		d = sys.argv[1]
		def tar(name, *members):
		    with tarfile.open(os.path.join(d, name), "w") as t:
		        for n, kind, data in members:
		            i = tarfile.TarInfo(n)
		            i.type = kind
		            if kind == tarfile.REGTYPE:
		                i.size = len(data)
		                t.addfile(i, io.BytesIO(data))
		            else:
		                i.linkname = data.decode()
		                i.devmajor = i.devminor = 1
		                t.addfile(i)
		f, s, h, c = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE
		tar("up.tar", ("../up", f, b"x"))
		tar("abs.tar", ("/abs", f, b"x"))
		tar("dev.tar", ("dev", c, b""))
		tar("through.tar", ("etc", s, b"/etc"), ("etc/passwd", f, b"root::0:0::/:/bin/sh\n"))
		tar("twice.tar", ("a", f, b"1"), ("a", f, b"2"))
		tar("hard.tar", ("a", h, b"../../etc/passwd"))
		with zipfile.ZipFile(os.path.join(d, "up.zip"), "w") as z:
		    z.writestr("../up", "x")
		with open(os.path.join(d, "text.bin"), "w") as o:
		    o.write("no archive at all\n")
	PY
	local name why
	while IFS='|' read -r name why; do
		source_app h "[$(jq -c '. + {id: "x", type: "archive", dest: "/opt/x"}' <<<"$(pin "$d/$name")")]"
		lock "$APP"
		expect_status 0
		build "$APP"
		expect_status 125
		expect_in "$err" "source x" "$why"
	done <<-'LIST'
		up.tar|..
		abs.tar|member '/abs' has an absolute name
		dev.tar|member 'dev' is a device node
		through.tar|'opt/x/etc/passwd' is below 'opt/x/etc', which is no folder
		twice.tar|'a' is there twice
		hard.tar|..
		up.zip|member '../up'
		text.bin|neither a tar nor a zip
	LIST
}

@test "a file that changed under its lock is refused; one of a mirror is fetched and verified" {
	new_store
	source_app f '[]'
	echo good >"$T/f/file"
	local p
	p=$(pin "$T/f/file")
	source_app f "[$(jq -c '. + {id: "x", type: "file", dest: "/x"}' <<<"$p")]"
	lock "$APP"
	expect_status 0
	echo evil >"$T/f/file"
	build "$APP"
	expect_status 125
	expect_in "$err" "source x" "expected sha256:" "found sha256:"
	# by a mirror
	mkdir -p "$T/www"
	echo good >"$T/www/file"
	www_make() { COMMAND=(python3 -m http.server --bind 127.0.0.1 -d "$T/www" "$1"); }
	server_try www www_make
	export SVRUN_CONFIG=$T/config.json
	echo "{\"mirrors\": {\"here\": \"http://127.0.0.1:$PORT\"}}" >"$SVRUN_CONFIG"
	source_app f "[$(jq -c '. + {id: "x", type: "file", dest: "/x", url: "mirror:here/file"}' <<<"$p")]"
	lock "$APP"
	expect_status 0
	build "$APP"
	expect_status 0
	[ "$(content f x)" = good ]
	rm -rf "$T/store"
	new_store
	echo evil >"$T/www/file"
	build "$APP"
	expect_status 125
	expect_in "$err" "expected sha256:" "found sha256:"
}

# ---- other images ----

@test "files of another image: no byte is copied, and the digest is what counts" {
	need_root
	new_store
	make_app donor '.files += [{dest: "/opt/tool/a", inline: "A", mode: "0755"}, {dest: "/opt/tool/sub/b", inline: "B"}]'
	lock_and_build "$T/donor" >/dev/null
	local d before
	d=$(image_digest donor)
	before=$(stat -c %b "$T/store/pool/data")
	source_app o "[{\"id\": \"t\", \"type\": \"oci\", \"url\": \"store:donor\", \"sha256\": \"${d#sha256:}\", \"strip\": 1,
		\"include\": [\"tool\"], \"exclude\": [\"tool/sub\"], \"dest\": \"/usr/lib\", \"uid\": 9}]"
	lock "$APP"
	expect_status 0
	build "$APP"
	expect_status 0
	expect_in "$(listing o)" "-rwxr-xr-x 9/0 usr/lib/tool/a"
	[[ $(listing o) != *sub* ]]
	[ "$(content o usr/lib/tool/a)" = A ]
	[ "$(stat -c %b "$T/store/pool/data")" = "$before" ]
	source_app o "[{\"id\": \"t\", \"type\": \"oci\", \"url\": \"store:donor\", \"sha256\": \"$(printf '%064d' 3)\", \"dest\": \"/x\"}]"
	lock "$APP"
	expect_status 125
	expect_in "$err" "/sources/0/url" "store:donor is not in the store as sha256:000"
}

# ---- bases ----

# base-a and base-b, and `up` on base-a; $A, $B.
make_bases() {
	make_app base-a '.env = {ONE: "1", TWO: "x"} | .files += [{dest: "/etc/one", inline: "one"}, {dest: "/lib/x", inline: "v1"}, {dest: "/etc/shared", inline: "same"}]'
	lock_and_build "$T/base-a" >/dev/null
	make_app base-b '.env = {ONE: "2", TWO: "x", NEW: "n"} | .files += [{dest: "/etc/one", inline: "one"}, {dest: "/lib/x", inline: "v2"}, {dest: "/lib/y", inline: "y"}, {dest: "/etc/shared", inline: "same"}]'
	lock_and_build "$T/base-b" >/dev/null
	A=$(image_digest base-a)
	B=$(image_digest base-b)
}

on_base() { # NAME REF DIGEST [FILTER]
	APP=$T/$1
	mkdir -p "$APP"
	jq -n --arg n "$1" --arg r "$2" --arg d "$3" '{schema: "svrun.image/1", name: $n, version: "1",
		base: {type: "oci", ref: $r, digest: $d}, env: {MINE: "1"},
		files: [{dest: "/app/main", inline: "main"}, {dest: "/zz/copy", inline: "v1"}]}' |
		jq "${4:-.}" >"$APP/manifest.json"
}

layers_of() { # NAME
	"$SVRUN" image inspect "$1" | jq -c '[.layers[].digest]'
}

@test "a base's layers stay as they are, its config is inherited" {
	need_root
	new_store
	make_bases
	on_base up store:base-a "$A"
	lock "$APP"
	expect_status 0
	[ "$(jq -r .base.manifest "$APP/lock.json")" = "$A" ]
	build "$APP"
	expect_status 0
	# all but the layer of its index are the first of ours
	jq -en --argjson a "$(layers_of base-a)" --argjson u "$(layers_of up)" '$u[:($a | length) - 1] == $a[:-1]'
	expect_in "$("$SVRUN" image inspect up)" '"ONE=1"' '"MINE=1"' "org.opencontainers.image.base.digest\": \"$A\""
	run_split "$SVRUN" run up
	expect_status 0
	# one with packages takes no others: said before apt is asked
	jq '.files = [{dest: "/var/lib/dpkg/status", inline: ""}] | .name = "base-p"' "$T/base-a/manifest.json" >"$T/p"
	mkdir "$T/base-p" && mv "$T/p" "$T/base-p/manifest.json"
	"$SVRUN" image lock "$T/base-p" >/dev/null && "$SVRUN" image build -q "$T/base-p" >/dev/null
	on_base more store:base-p "$(image_digest base-p)"
	jq '.apt = {sources: [{uri: "mirror:nowhere", suites: ["x"], components: ["main"], signedBy: "keyring:x"}], packages: ["hello"]}' \
		"$APP/manifest.json" >"$T/m" && mv "$T/m" "$APP/manifest.json"
	lock "$APP"
	expect_status 125
	expect_in "$err" "$APP/manifest.json:" "/apt: the base image has packages of its own"
	# a base that is not there, by name
	on_base lost store:base-a "sha256:$(printf '%064d' 4)"
	lock "$APP"
	expect_status 125
	expect_in "$err" "base store:base-a: store:base-a is not in the store as sha256:0000"
}

@test "a base comes from a registry by digest, signed by the key that the manifest names" {
	need_root
	new_store
	registry_plain
	export SVRUN_CONFIG=$T/config.json
	echo "{\"registries\": {\"$REGISTRY\": {\"plain-http\": true}}}" >"$SVRUN_CONFIG"
	make_bases
	export SVRUN_KEY_PASSWORD=
	(cd "$T" && "$SVRUN" image key good && "$SVRUN" image key other) >/dev/null
	"$SVRUN" image tag base-a "$REGISTRY/team/base:1" >/dev/null
	"$SVRUN" image push --progress none "$REGISTRY/team/base:1" >/dev/null
	on_base signed "$REGISTRY/team/base:1" "$A" '.base.verify = {key: "key.pub"}'
	cp "$T/good.pub" "$APP/key.pub"
	# into a store that has nothing
	export SVRUN_ROOT=$T/second
	lock "$APP"
	expect_status 125
	expect_in "$err" "/base/verify/key"
	SVRUN_ROOT=$T/store "$SVRUN" image sign --key "$T/good.key" "$REGISTRY/team/base:1" >/dev/null
	SVRUN_ROOT=$T/store "$SVRUN" image push --progress none "$REGISTRY/team/base:1" >/dev/null
	lock "$APP"
	expect_status 0
	build "$APP"
	expect_status 0
	jq -en --argjson u "$(layers_of signed)" --argjson a "$(SVRUN_ROOT=$T/store layers_of base-a)" '$u[0] == $a[0]'
	run_split "$SVRUN" run signed
	expect_status 0
	cp "$T/other.pub" "$APP/key.pub"
	lock "$APP"
	expect_status 125
	expect_in "$err" "/base/verify/key"
}

@test "a base that others made stays as it is, also for a machine that has nothing of it" {
	need_root
	need_program skopeo
	new_store
	registry_plain
	export SVRUN_CONFIG=$T/config.json
	echo "{\"registries\": {\"$REGISTRY\": {\"plain-http\": true}}}" >"$SVRUN_CONFIG"
	make_foreign_image "$T/foreign" it
	push_with_skopeo "$T/foreign" it team/foreign:1
	local d
	d=$(skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://$REGISTRY/team/foreign:1")
	on_base on "$REGISTRY/team/foreign:1" "$d" '.files |= map(select(.dest | startswith("/zz/")))'
	lock "$APP"
	expect_status 0
	build "$APP"
	expect_status 0
	"$SVRUN" image export "$REGISTRY/team/foreign@$d" 2>/dev/null | tar tf - | grep -v '^./$' | sort >"$T/base.list"
	"$SVRUN" image export on 2>/dev/null | tar tf - | grep -vE '^(./|zz/.*)$' | sort | cmp - "$T/base.list"
	"$SVRUN" image push --progress none on "$REGISTRY/team/on:1" >/dev/null
	"$SVRUN" image export on 2>/dev/null | sha256sum >"$T/sum"
	export SVRUN_ROOT=$T/second
	run_split "$SVRUN" image pull --progress none "$REGISTRY/team/on:1"
	expect_status 0
	"$SVRUN" image export "$REGISTRY/team/on:1" 2>/dev/null | sha256sum | cmp - "$T/sum"
	# other tools see it, too
	pull_with_skopeo team/on:1 "$T/copy" it
	[ "$(jq '.layers | length' "$T/copy/blobs/sha256/$(jq -r '.manifests[0].digest[7:]' "$T/copy/index.json")")" -gt 2 ]
}

# ---- rebase ----

@test "rebase: what building on the new base would give, without writing a layer" {
	need_root
	new_store
	make_bases
	on_base up store:base-a "$A" '.files += [{dest: "/etc/late", inline: "late"}]'
	lock_and_build "$APP" >/dev/null
	local before
	before=$(cd "$T/store/blobs/sha256" && find . -size +3k | sort)
	run_split "$SVRUN" image rebase up --onto base-b up-b
	expect_status 0
	expect_in "$out" "up-b sha256:" "is on base-b"
	on_base up store:base-b "$B" '.files += [{dest: "/etc/late", inline: "late"}]'
	mkdir "$T/anew"
	cp "$APP/manifest.json" "$T/anew"
	lock_and_build "$T/anew" >/dev/null
	# `up` is now built on base-b: the same tree, config and DiffIDs
	run_split "$SVRUN" image diff up up-b
	expect_status 0
	jq -en --argjson a "$("$SVRUN" image inspect up | jq -c '[.layers[].diffId]')" \
		--argjson b "$("$SVRUN" image inspect up-b | jq -c '[.layers[].diffId]')" '$a == $b'
	expect_in "$("$SVRUN" image inspect up-b)" '"ONE=2"' '"NEW=n"' '"MINE=1"'
	[ "$("$SVRUN" image history up-b | wc -l)" = "$("$SVRUN" image history up | wc -l)" ]
	"$SVRUN" image verify up-b
	run_split "$SVRUN" run up-b
	expect_status 0
}

@test "rebase: the index says what the layers say, for a machine that has neither" {
	need_root
	new_store
	registry_plain
	export SVRUN_CONFIG=$T/config.json
	echo "{\"registries\": {\"$REGISTRY\": {\"plain-http\": true}}}" >"$SVRUN_CONFIG"
	make_bases
	on_base up store:base-a "$A"
	lock_and_build "$APP" >/dev/null
	# /zz/copy has the bytes of a file that only the old base has
	"$SVRUN" image rebase up --onto base-b up-b >/dev/null
	"$SVRUN" image tag up-b "$REGISTRY/team/up:1" >/dev/null
	"$SVRUN" image push --progress none "$REGISTRY/team/up:1" >/dev/null
	export SVRUN_ROOT=$T/second
	run_split "$SVRUN" image pull --progress none "$REGISTRY/team/up:1"
	expect_status 0
	[ "$(content "$REGISTRY/team/up:1" zz/copy)" = v1 ]
	[ "$(content "$REGISTRY/team/up:1" lib/x)" = v2 ]
	export SVRUN_ROOT=$T/third
	run_split "$SVRUN" image pull --strict --progress none "$REGISTRY/team/up:1"
	expect_status 0
}

@test "rebase: what would be wrong without looking so is refused by its path" {
	need_root
	new_store
	make_bases
	on_base up store:base-a "$A" '.files += [{dest: "/lib/x", inline: "mine"}]'
	lock_and_build "$APP" >/dev/null
	run_split "$SVRUN" image rebase up --onto base-b
	expect_status 125
	expect_in "$err" "/lib/x was changed by a layer above" "hint: build the image again on the new base"
	on_base up store:base-a "$A" '.files += [{dest: "/lib/y", inline: "mine"}]'
	lock_and_build "$APP" >/dev/null
	run_split "$SVRUN" image rebase up --onto base-b
	expect_status 125
	expect_in "$err" "/lib/y is in the new base, too, with other contents"
	run_split "$SVRUN" image rebase base-a --onto base-b
	expect_status 2
	expect_in "$err" "base-a does not say what its base is" "hint: --from names it"
	run_split "$SVRUN" image rebase up --onto base-b --from base-b
	expect_status 2
	expect_in "$err" "of the old base is not in the image"
}
