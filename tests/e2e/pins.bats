#!/usr/bin/env bats
# What a lock that somebody edited, an image that was there before, and a repository beside the manifest
# cannot get around.

load helpers
load registry

# An app of some keys; $APP is its folder.
app() { # NAME JQ-FILTER
	APP=$T/$1
	mkdir -p "$APP"
	jq -n --arg name "$1" '{schema: "svrun.image/1", name: $name, version: "1", cmd: ["/bin/true"]}' |
		jq "$2" >"$APP/manifest.json"
}

# What a lock says otherwise: the app's lock.json through jq.
edit_lock() { # JQ-OPTION... FILTER
	jq "$@" "$APP/lock.json" >"$T/edited" && cp "$T/edited" "$APP/lock.json"
}

lock() {
	run_split "$SVRUN" image lock --progress none "$APP"
}

# Neither kind of build takes it.
refused() { # PART...
	local option
	for option in --no-cache --locked; do
		run_split "$SVRUN" image build --progress none -q $option "$APP"
		[ "$status" = 2 ] || expect_status 125
		expect_in "$err" "$@"
	done
}

built() {
	run_split "$SVRUN" image build --progress none -q "$APP"
	expect_status 0
}

git_here() {
	GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null git -c user.name=n -c user.email=e@x -c init.defaultBranch=main \
		-c protocol.file.allow=always "$@"
}

# ---- an edited lock ----

@test "a lock does not change what base the manifest names and its key signed" {
	need_root
	new_store
	export SVRUN_KEY_PASSWORD=
	(cd "$T" && "$SVRUN" image key good) >/dev/null
	local name
	for name in basea baseb; do
		make_app $name ".files += [{dest: \"/etc/who\", inline: \"$name\"}]"
		lock_and_build "$T/$name" >/dev/null
	done
	"$SVRUN" image sign --key "$T/good.key" basea >/dev/null
	on() { # NAME BASE MORE
		app "$1" ".base = {type: \"oci\", ref: \"store:$2\", digest: \"$(image_digest "$2")\"$3} | .files = [{dest: \"/x\", inline: \"x\"}]"
	}
	on other baseb ""
	lock
	expect_status 0
	jq .base "$APP/lock.json" >"$T/other.base"
	on up basea ", verify: {key: \"key.pub\"}"
	cp "$T/good.pub" "$APP/key.pub"
	lock
	expect_status 0
	built
	cp "$APP/lock.json" "$T/good.lock"
	edit_lock --slurpfile b "$T/other.base" '.base = $b[0]'
	refused "does not pin the base image as /base/ref has it" "svrun image lock $APP"
	edit_lock --slurpfile b "$T/other.base" '.base = ($b[0] | .ref = "store:basea")'
	refused "lock: /base/manifest: expected $(image_digest basea)" "found $(image_digest baseb)"
	# the signature counts at each build, not only when it was locked
	cp "$T/good.lock" "$APP/lock.json"
	rm -rf "$SVRUN_ROOT/attached"
	run_split "$SVRUN" image build --progress none -q --no-cache "$APP"
	expect_status 125
	expect_in "$err" "/base/verify/key"
}

@test "a base is what its digest names, through an index and whatever digest its ref has" {
	need_root
	need_program curl
	new_store
	registry_plain
	export SVRUN_CONFIG=$T/config.json
	jq -n --arg h "$REGISTRY" '{registries: {($h): {"plain-http": true}}}' >"$SVRUN_CONFIG"
	local name a b index d
	for name in basea baseb; do
		make_app $name ".files += [{dest: \"/etc/who\", inline: \"$name\"}]"
		lock_and_build "$T/$name" >/dev/null
		"$SVRUN" image tag $name "$REGISTRY/team/base:$name" >/dev/null
		"$SVRUN" image push --progress none "$REGISTRY/team/base:$name" >/dev/null
	done
	a=$(image_digest basea)
	b=$(image_digest baseb)
	jq -nc --arg d "$a" --argjson n "$(stat -c %s "$SVRUN_ROOT/blobs/sha256/${a#sha256:}")" '{schemaVersion: 2,
		mediaType: "application/vnd.oci.image.index.v1+json", manifests: [{mediaType: "application/vnd.oci.image.manifest.v1+json",
		digest: $d, size: $n, platform: {os: "linux", architecture: "amd64"}}]}' >"$T/index"
	curl -sf -X PUT -H 'Content-Type: application/vnd.oci.image.index.v1+json' --data-binary "@$T/index" \
		"http://$REGISTRY/v2/team/base/manifests/multi"
	index=sha256:$(sha256sum <"$T/index" | cut -c1-64)
	export SVRUN_ROOT=$T/second
	app up ".base = {type: \"oci\", ref: \"$REGISTRY/team/base\", digest: \"$index\"} | .files = [{dest: \"/x\", inline: \"x\"}]"
	lock
	expect_status 0
	[ "$(jq -r .base.manifest "$APP/lock.json")" = "$a" ]
	built
	cp "$APP/lock.json" "$T/good.lock"
	edit_lock --arg d "$b" '.base.manifest = $d'
	refused "lock: /base/manifest: expected $a" "found $b"
	for d in "$a" "$b"; do
		app at ".base = {type: \"oci\", ref: \"$REGISTRY/team/base@$d\", digest: \"$a\"} | .files = [{dest: \"/x\", inline: \"x\"}]"
		export SVRUN_ROOT=$T/third-${d#sha256:}
		lock
		expect_status 0
		[ "$(jq -r .base.manifest "$APP/lock.json")" = "$a" ]
	done
	# nobody is asked again
	servers_stop
	export SVRUN_ROOT=$T/second
	APP=$T/up
	cp "$T/good.lock" "$APP/lock.json"
	run_split "$SVRUN" image build --progress none -q --no-cache "$APP"
	expect_status 0
}

@test "a lock does not change what sources, packages and models the manifest pins" {
	need_root
	new_store
	local s e
	mkdir "$T/p"
	echo good >"$T/p/file"
	cp "$T/p/file" "$T/p/model"
	s=$(sha256sum <"$T/p/file" | cut -c1-64)
	app p ".sources = [{id: \"f\", type: \"file\", url: \"file:file\", sha256: \"$s\", size: 5, dest: \"/f\"}, {id: \"i\", type: \"inline\", inline: \"text\", dest: \"/i\"}]
		| .models = [{id: \"m\", target: \"/m\", format: \"other\", source: {type: \"file\", path: \"model\"}, files: [{path: \"model\", sha256: \"$s\", size: 5}]}]"
	lock
	expect_status 0
	built
	cp "$APP/lock.json" "$T/good.lock"
	echo evil >"$APP/file"
	e=$(sha256sum <"$APP/file" | cut -c1-64)
	edit_lock --arg e "$e" '.sources[0].sha256 = $e'
	refused "does not pin the source 'f' as /sources/0 has it"
	echo good >"$APP/file"
	local filter
	for filter in '.sources[0].size = 6' '.sources[0].url = "file:manifest.json"' '.sources[1].sha256 = $e'; do
		cp "$T/good.lock" "$APP/lock.json"
		edit_lock --arg e "$e" "$filter"
		refused "does not pin the source '"
	done
	cp "$T/good.lock" "$APP/lock.json"
	edit_lock --arg e "$e" '.models = [{id: "m", setSha256: $e, files: [{path: "model", sha256: $e, size: 5}]}]'
	refused "does not pin the files of the model 'm' as /models/0/files has them"
	# npm: all that the lock says of a package stands in package-lock.json
	app n '.node = {lock: "package-lock.json", prefix: "/opt"}'
	jq -n '{name: "n", version: "1.0.0", lockfileVersion: 3, packages: {"": {name: "n", version: "1.0.0", dependencies: {a: "1.0.0"}},
		"node_modules/a": {version: "1.0.0", resolved: "https://registry.example/a/-/a-1.0.0.tgz",
		integrity: "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="}}}' >"$APP/package-lock.json"
	lock
	expect_status 0
	edit_lock '.node.packages[0].version = "2.0.0"'
	refused "does not pin the packages of package-lock.json as that has them"
}

@test "a lock has no other wheels than python.lock names" {
	need_root
	new_store
	make_app py '.files += [{dest: "/usr/bin/python3.11", inline: "", mode: "0755"}]'
	lock_and_build "$T/py" >/dev/null
	mkdir "$T/w"
	python3 - "$T/w" <<-'PY'
		import base64, hashlib, sys, zipfile
		for evil in "", "evil":
		    with zipfile.ZipFile(f"{sys.argv[1]}/{evil}six-1.0-py3-none-any.whl", "w") as z:
		        files = {"six.py": evil, "six-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: six\nVersion: 1.0\n",
		            "six-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
		        record = ""
		        for n, t in files.items():
		            z.writestr(n, t)
		            d = base64.urlsafe_b64encode(hashlib.sha256(t.encode()).digest()).rstrip(b"=").decode()
		            record += f"{n},sha256={d},{len(t)}\n"
		        z.writestr("six-1.0.dist-info/RECORD", record + "six-1.0.dist-info/RECORD,,\n")
	PY
	app w '.python = {interpreter: "/usr/bin/python3.11", prefix: "/opt/v", bytecode: "none", lock: "requirements.txt"}
		| .base = {type: "oci", ref: "store:py", digest: "'"$(image_digest py)"'"}'
	local good evil
	good=$(sha256sum <"$APP/six-1.0-py3-none-any.whl" | cut -c1-64)
	evil=$(sha256sum <"$APP/evilsix-1.0-py3-none-any.whl" | cut -c1-64)
	printf -- './six-1.0-py3-none-any.whl --hash=sha256:%s\n' "$good" >"$APP/requirements.txt"
	lock
	expect_status 0
	[ "$(jq -r '.python.wheels[0].sha256' "$APP/lock.json")" = "$good" ]
	built
	mv "$APP/evilsix-1.0-py3-none-any.whl" "$APP/six-1.0-py3-none-any.whl"
	edit_lock --arg e "$evil" --argjson n "$(stat -c %s "$APP/six-1.0-py3-none-any.whl")" \
		'.python.wheels[0].sha256 = $e | .python.wheels[0].size = $n'
	refused "does not pin the wheels of requirements.txt: 'six' is none of them"
}

@test "the image that a source of type oci names is the one that is unpacked" {
	need_root
	new_store
	local name
	for name in one two; do
		make_app $name ".files += [{dest: \"/opt/$name\", inline: \"$name\"}]"
		lock_and_build "$T/$name" >/dev/null
	done
	app o ".sources = [{id: \"o\", type: \"oci\", url: \"store:one\", sha256: \"$(image_digest one | cut -c8-)\", include: [\"opt\"], dest: \"/o\"}]"
	lock
	expect_status 0
	edit_lock --arg d "$(image_digest two | cut -c8-)" '.sources[0].sha256 = $d'
	refused "source o: lock: the image of store:one: expected" "$(image_digest two)"
}

@test "what a package calls itself counts also when it was unpacked before" {
	need_root
	need_program gpg
	need_program apt-ftparchive
	new_store
	export GNUPGHOME=$T/gpg SVRUN_CONFIG=$T/config.json
	mkdir -m 700 "$GNUPGHOME"
	gpg --batch --quiet --passphrase '' --quick-generate-key test ed25519 sign never 2>/dev/null
	mkdir -p "$T/repo/pool" "$T/repo/dists/x/main/binary-amd64" "$T/deb/DEBIAN" "$T/deb/usr/share/liba" "$T/debs"
	gpg --batch --export >"$T/debs/key.gpg"
	echo 1 >"$T/deb/usr/share/liba/version"
	printf 'Package: liba\nVersion: 1\nArchitecture: all\nMaintainer: t <t@localhost>\nDescription: t\n' >"$T/deb/DEBIAN/control"
	dpkg-deb --root-owner-group -b "$T/deb" "$T/repo/pool/liba_1_all.deb" >/dev/null
	(cd "$T/repo" && apt-ftparchive packages pool >dists/x/main/binary-amd64/Packages &&
		apt-ftparchive -o APT::FTPArchive::Release::Suite=x release dists/x >"$T/Release" &&
		gpg --batch --quiet --clearsign -o dists/x/InRelease "$T/Release")
	jq -n --arg r "file://$T/repo" '{mirrors: {local: $r}}' >"$SVRUN_CONFIG"
	app debs '.apt = {sources: [{uri: "mirror:local", suites: ["x"], components: ["main"], signedBy: "key.gpg"}],
		packages: ["liba"], configure: "none"}'
	lock
	expect_status 0
	built
	edit_lock '.apt.packages[0].version = "9"'
	run_split "$SVRUN" image build --progress none -q "$APP"
	expect_status 125
	expect_in "$err" "the package calls itself liba 1 all, the lock liba 9 all"
	refused "the package calls itself liba 1 all, the lock liba 9 all"
}

@test "an artifact does not say another size of a file than it has" {
	need_root
	new_store
	local n size
	for n in 2000000 2000; do
		mkdir "$T/m$n"
		head -c $n /dev/zero >"$T/m$n/f"
		for size in $((n - 1)) $((n + 1)); do
			app m$n ".models = [{id: \"m\", target: \"/m\", format: \"other\", delivery: \"artifact\", source: {type: \"file\", path: \"f\"},
				files: [{path: \"f\", sha256: \"$(sha256sum <"$T/m$n/f" | cut -c1-64)\", size: $size}]}]"
			lock
			expect_status 0
			refused "f: expected $size bytes, found $n"
		done
	done
}

# ---- the policy ----

@test "the policy is asked of bases, sources and rebases that were in the store before" {
	need_root
	new_store
	registry_plain
	export SVRUN_CONFIG=$T/config.json
	jq -n --arg h "$REGISTRY" '{registries: {($h): {"plain-http": true}}}' >"$SVRUN_CONFIG"
	make_app local-a '.files += [{dest: "/opt/a", inline: "a"}]'
	lock_and_build "$T/local-a" >/dev/null
	"$SVRUN" image tag local-a "$REGISTRY/evil/app:1" >/dev/null
	"$SVRUN" image push --progress none "$REGISTRY/evil/app:1" >/dev/null
	make_app local-b '.files += [{dest: "/opt/b", inline: "b"}]'
	lock_and_build "$T/local-b" >/dev/null
	local evil b
	evil=$(image_digest local-a)
	b=$(image_digest local-b)
	"$SVRUN" image rm local-a local-a:1 "$REGISTRY/evil/app:1" >/dev/null
	"$SVRUN" image pull --progress none "$REGISTRY/evil/app:1" >/dev/null
	# on local-b, and rebased later
	app local-up ".base = {type: \"oci\", ref: \"store:local-b\", digest: \"$b\"} | .files = [{dest: \"/x\", inline: \"x\"}]"
	lock
	expect_status 0
	built
	jq --arg p "$T/policy.json.svrun" '.policy = $p' "$SVRUN_CONFIG" >"$T/c" && mv "$T/c" "$SVRUN_CONFIG"
	echo '{"schema": "svrun.policy/1", "default": {"action": "reject", "reason": "not from here"},
		"rules": [{"match": ["local-*"], "action": "accept"}]}' >"$T/policy.json.svrun"
	denied() { # COMMAND...
		run_split "$@"
		expect_status 125
		expect_in "$err" "the policy rejects it" "not from here"
	}
	local ref
	denied "$SVRUN" run "$REGISTRY/evil/app:1"
	denied "$SVRUN" run "local-b@$evil"
	for ref in "$REGISTRY/evil/app:1" store:local-b store:none; do
		app local-x ".base = {type: \"oci\", ref: \"$ref\", digest: \"$evil\"} | .files = [{dest: \"/x\", inline: \"x\"}]"
		denied "$SVRUN" image lock "$APP"
		app local-y ".sources = [{id: \"o\", type: \"oci\", url: \"$ref\", sha256: \"${evil#sha256:}\", include: [\"opt\"], dest: \"/o\"}]"
		denied "$SVRUN" image lock "$APP"
	done
	denied "$SVRUN" image rebase --onto "$REGISTRY/evil/app:1" local-up
	denied "$SVRUN" image rebase --onto local-b "$REGISTRY/evil/app:1" local-z
	run_split "$SVRUN" image rebase --onto local-b local-up
	expect_status 0
	# what was locked before there was a policy
	APP=$T/local-up
	run_split "$SVRUN" image build --progress none -q --no-cache "$APP"
	expect_status 0
	sed -i 's/local-\*/local-u*/' "$T/policy.json.svrun"
	denied "$SVRUN" image build --progress none -q --no-cache "$APP"
}

# ---- repositories ----

@test "a repository beside the manifest that leads out of its folder is refused" {
	need_program git
	new_store
	mkdir "$T/g"
	local commit outside=$T/outside name
	git_here init -q "$outside"
	echo secret >"$outside/file"
	git_here -C "$outside" add file
	git_here -C "$outside" commit -qm one
	commit=$(git_here -C "$outside" rev-parse HEAD)
	from() { # NAME
		app g ".sources = [{id: \"g\", type: \"git\", url: \"file:$1\", commit: \"$commit\", dest: \"/g\"}]"
		rm -rf "$SVRUN_ROOT/cache"
		lock
	}
	no() { # NAME PART...
		from "$1"
		[ "$status" = 2 ] || expect_status 125
		shift
		expect_in "$err" "source g" "$@"
	}
	mkdir "$T/g/r1" "$T/g/r2" "$T/g/r8"
	echo "gitdir: $outside/.git" >"$T/g/r1/.git"
	no r1 ".git leads to another folder"
	ln -s "$outside/.git" "$T/g/r2/.git"
	no r2 ".git leads to another folder"
	git_here init -q --bare "$T/g/r3"
	echo "$outside/.git/objects" >"$T/g/r3/objects/info/alternates"
	git_here -C "$T/g/r3" update-ref refs/heads/main "$commit"
	no r3 "objects/info/alternates leads to another repository"
	git_here clone -q --bare --no-local "$outside" "$T/g/good"
	for name in r4 r5 r6 r7; do
		cp -a "$T/g/good" "$T/g/$name"
	done
	rm -rf "$T/g/r4/objects" && ln -s "$outside/.git/objects" "$T/g/r4/objects"
	no r4 "objects is a link"
	rm -rf "$T/g/r5/objects/pack" && ln -s "$outside/.git/objects/pack" "$T/g/r5/objects/pack"
	no r5 "objects/pack is neither a file nor a folder"
	echo "$outside/.git" >"$T/g/r6/commondir"
	no r6 "commondir leads to another repository"
	# where git would look next
	echo none >"$T/g/r7/HEAD"
	mkdir "$T/g/r7.git" && ln -s "$outside/.git" "$T/g/r7.git/.git"
	no r7 "it has no HEAD"
	ln -s "$outside/.git" "$T/g/r8.git"
	no r8 "it has no HEAD"
	from good
	expect_status 0
	git_here clone -q --no-local "$outside" "$T/g/tree"
	from tree
	expect_status 0
}
