#!/usr/bin/env bats
# A family of manifests that has every key of the language (tests/data/every): built twice, in two places and in
# two ways, it gives the same images, bit by bit; and these pass their tests.

# shellcheck disable=SC2154 # run_split sets out, err and status
load helpers

EVERY=$DATA/every
APPS=(brick parent every top)

# ---- what the manifests ask for ----

make_wheel() { # FOLDER NAME: version 1.0, a module of its name
	python3 - "$1/$2-1.0-py3-none-any.whl" "$2" <<-'PY'
		import base64, hashlib, sys, zipfile
		file, name = sys.argv[1:]
		info = f"{name}-1.0.dist-info/"
		files = {f"{name}.py": "def main():\n    print('hello')\n",
		         info + "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
		         info + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		         info + "entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n"}
		with zipfile.ZipFile(file, "w") as z:
		    record = ""
		    for path, text in files.items():
		        d = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
		        record += f"{path},sha256={d},{len(text)}\n"
		        z.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), text)
		    z.writestr(zipfile.ZipInfo(info + "RECORD", (1980, 1, 1, 0, 0, 0)), record + info + "RECORD,,\n")
	PY
}

make_deb() { # NAME VERSION
	local deb=$T/deb
	rm -rf "$deb"
	mkdir -p "$deb/DEBIAN" "$deb/usr/share/$1"
	echo "$2" >"$deb/usr/share/$1/version"
	printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: t <t@localhost>\nDescription: t\n' "$1" "$2" \
		>"$deb/DEBIAN/control"
	(cd "$deb" && md5sum "usr/share/$1/version" >DEBIAN/md5sums)
	dpkg-deb --root-owner-group -b "$deb" "$REPO/pool/${1}_$2_all.deb" >/dev/null
}

# As the mirror "local" was on New Year's Day.
make_debs() {
	REPO=$T/mirrors/snapshot/20260101T000000Z
	mkdir -p "$REPO/pool" "$REPO/dists/x/main/binary-amd64"
	make_deb liba 1
	make_deb libb 1.5
	make_deb libb 2.0
	export GNUPGHOME=$T/gpg
	mkdir -m 700 "$GNUPGHOME"
	gpg --batch --quiet --passphrase '' --quick-generate-key test ed25519 sign never 2>/dev/null
	gpg --batch --export >"$T/a/parent/key.gpg"
	(cd "$REPO" && apt-ftparchive packages pool >dists/x/main/binary-amd64/Packages &&
		apt-ftparchive -o APT::FTPArchive::Release::Suite=x release dists/x >"$T/Release" &&
		gpg --batch --quiet --clearsign -o dists/x/InRelease "$T/Release")
}

# "pad", which has an install script, and two that stay out.
make_npm() {
	mkdir -p "$T/mirrors/npm/pad/-" "$T/package"
	jq -n '{name: "pad", version: "1.0.0", scripts: {install: "echo by a script > installed"}}' >"$T/package/package.json"
	tar czf "$T/mirrors/npm/pad/-/pad-1.0.0.tgz" -C "$T" package
	jq -n --arg i "sha512-$(openssl dgst -sha512 -binary "$T/mirrors/npm/pad/-/pad-1.0.0.tgz" | base64 -w 0)" '{
		name: "app", version: "1.0.0", lockfileVersion: 3, requires: true, packages: {
			"": {name: "app", version: "1.0.0", dependencies: {pad: "1.0.0"}, devDependencies: {tool: "1.0.0"},
				optionalDependencies: {"skipped-x": "1.0.0"}},
			"node_modules/pad": {version: "1.0.0", integrity: $i, hasInstallScript: true},
			"node_modules/tool": {version: "1.0.0", integrity: $i, dev: true},
			"node_modules/skipped-x": {version: "1.0.0", integrity: $i, optional: true}}}' >"$T/a/every/package-lock.json"
}

git_here() {
	GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null git -c user.name=n -c user.email=e@x -c init.defaultBranch=main "$@"
}

make_repo() { # FOLDER
	git_here init -q "$1"
	mkdir -p "$1/src/deep"
	echo hello >"$1/src/deep/hello.txt"
	echo no >"$1/src/deep/no.tmp"
	echo text >"$1/src/a.md"
	echo other >"$1/other"
	git_here -C "$1" add -A
	git_here -C "$1" commit -qm one
}

weights() { # FILE BYTES
	mkdir -p "${1%/*}"
	python3 -c 'import random, struct, sys
head = b"{\"__metadata__\": {}}"
open(sys.argv[1], "wb").write(struct.pack("<Q", len(head)) + head + random.Random(5).randbytes(int(sys.argv[2])))' "$1" "$2"
}

make_inputs() {
	local every=$T/a/every
	mkdir -p "$T/mirrors/files" "$every/wheels"
	[ "$WORK/serve" -nt "$DATA/serve.c" ] || {
		gcc -O2 -static -o "$WORK/serve.new" "$DATA/serve.c"
		mv "$WORK/serve.new" "$WORK/serve"
	}
	cp "$WORK/serve" "$T/a/brick/serve"
	echo "of the parent" >"$T/a/parent/text"
	echo "# Every" >"$T/a/parent/README.md"
	printf '\x89PNG\r\n' >"$T/a/parent/icon.png"
	make_debs
	make_npm
	make_wheel "$every/wheels" demo
	make_wheel "$every/wheels" extra
	printf -- '--no-index\n--find-links wheels\nextra==1.0 --hash=sha256:%s\n' \
		"$(sha256sum <"$every/wheels/extra-1.0-py3-none-any.whl" | cut -c1-64)" >"$every/requirements.txt"
	make_repo "$every/repo"
	mkdir "$T/pack"
	echo packed >"$T/pack/file"
	tar czf "$every/pack.tar.gz" -C "$T" pack
	echo "one file" >"$T/mirrors/files/one"
	weights "$every/weights/model.safetensors" 3000
	mkdir "$every/weights/sub"
	echo words >"$every/weights/sub/words"
	echo no >"$every/weights/no.tmp"
	weights "$every/big/model.safetensors" 2000000
	jq -n --arg t "$T/mirrors" '{mirrors: {"local-snapshot": "file://\($t)/snapshot", npm: "file://\($t)/npm",
		files: "file://\($t)/files", wheels: "file:///usr/share/python-wheels"}}' >"$T/config.json"
	export SVRUN_CONFIG=$T/config.json
	echo "a secret word" >"$T/token"
}

# ---- the manifests themselves ----

value() { # NAME JSON-OF-VALUE
	jq --arg n "$1" --argjson v "$2" '.[$n] = $v' "$T/values" >"$T/values.new"
	mv "$T/values.new" "$T/values"
}

text_value() { # NAME TEXT
	value "$1" "$(jq -n --arg t "$2" '$t')"
}

file_value() { # NAME FILE
	text_value "$1.sha256" "$(sha256sum <"$2" | cut -c1-64)"
	value "$1.size" "$(stat -c %s "$2")"
}

# Put a manifest in its place; "@NAME" is what value() said.
fill() { # NAME
	jq --slurpfile v "$T/values" 'walk(if type == "string" and startswith("@")
		then $v[0][.[1:]] // error("nobody said what \(.) is") else . end)' "$EVERY/$1.json" >"$T/a/$1/manifest.json"
}

collect_values() {
	local wheel
	wheel=$(cd /usr/share/python-wheels && echo wheel-*.whl)
	echo '{}' >"$T/values"
	text_value wheel.file "$wheel"
	text_value wheel.version "$(cut -d- -f2 <<<"$wheel")"
	text_value wheel.url "mirror:wheels/$wheel"
	file_value wheel "/usr/share/python-wheels/$wheel"
	file_value demo "$T/a/every/wheels/demo-1.0-py3-none-any.whl"
	file_value pack "$T/a/every/pack.tar.gz"
	file_value one "$T/mirrors/files/one"
	text_value commit "$(git_here -C "$T/a/every/repo" rev-parse HEAD)"
	text_value tree "$(git_here -C "$T/a/every/repo" ls-files | while read -r f; do
		echo "100644 $(sha256sum <"$T/a/every/repo/$f" | cut -c1-64) $f"
	done | LC_ALL=C sort | sha256sum | cut -c1-64)"
}

# ---- two builds ----

VARIANTS=("--matrix first" "--matrix second" "--matrix second --mode cpu")

build() { # APP [OPTION...]: by $WITH, in $PLACE; its digest goes to $DIGESTS
	local app=$1
	shift
	"${WITH[@]}" "$SVRUN" image build -q --secret token="$T/token" --accept-license MIT "$@" "$PLACE/$app" >"$T/built" ||
		fail "$app $*" || return 1
	echo "$app ${*/#[0-9]/N} $(tail -n 1 "$T/built")" >>"$DIGESTS"
}

store() { # NAME
	export SVRUN_ROOT=$T/$1
	mkdir -m 700 "$SVRUN_ROOT"
	echo '{"imageLayoutVersion": "1.0.0"}' >"$SVRUN_ROOT/oci-layout"
	# Only packages as they come: nothing that a build made of them.
	[ ! -d "$WORK/store/cache/sha256" ] || {
		mkdir "$SVRUN_ROOT/cache"
		cp -al "$WORK/store/cache/sha256" "$SVRUN_ROOT/cache/"
	}
}

lock() { # APP [OPTION...]
	local app=$1
	shift
	"$SVRUN" image lock "$@" "$T/a/$app"
}

build_all() { # [OPTION...]
	local i
	build brick "$@" || return 1
	for i in 0 1 2; do
		# shellcheck disable=SC2086 # words
		build every ${VARIANTS[i]} "$@" || return 1
	done
	"$SVRUN" image sign --key "$T/good.key" every >/dev/null
	build top "$@" && build top --mode other "$@"
}

# Locks are made as the builds before them tell what they are of.
first_build() {
	local i
	store one
	PLACE=$T/a DIGESTS=/dev/null WITH=(env)
	fill brick && fill parent && lock brick && build brick
	text_value brick "$(image_digest every-brick | cut -c8-)"
	fill every
	for i in 0 1 2; do
		# shellcheck disable=SC2086 # words
		lock every ${VARIANTS[i]} && build every ${VARIANTS[i]} --jobs 2 || return 1
	done
	"$SVRUN" image sign --key "$T/good.key" every >/dev/null
	text_value every "$(image_digest every)"
	cp "$T/good.pub" "$T/a/top/key.pub"
	fill top && lock top && lock top --mode other
	DIGESTS=$T/one.digests
	build_all --jobs 2
}

# Another folder, time zone, mask, locale, store and number of CPUs; nothing side by side.
second_build() {
	store two
	mkdir -p "$T/other/place"
	cp -r "$T/a" "$T/other/place/b"
	find "$T/other/place/b" -exec touch -h -d 2001-02-03 {} +
	PLACE=$T/other/place/b DIGESTS=$T/two.digests WITH=(env TZ=Asia/Kathmandu LC_ALL=C.UTF-8 HOME=/nonexistent
		SOURCE_DATE_EPOCH=1 GNUPGHOME=/nonexistent taskset -c 0)
	umask 077
	cd /
	build_all --jobs 1
}

what_is_said_of() { # STORE IMAGE
	local f
	for f in "sbom --format spdx" "sbom --format cyclonedx" "provenance --statement"; do
		# shellcheck disable=SC2086 # words
		SVRUN_ROOT=$T/$1 "$SVRUN" image $f "$2" | sha256sum
	done
}

@test "every key of the language stands in the family, and two builds of it are the same" {
	need_root
	for p in gpg apt-ftparchive git openssl python3; do need_program "$p"; done
	compgen -G "/usr/share/python-wheels/wheel-*.whl" >/dev/null || skip "needs python3-wheel-whl"
	local app
	for app in "${APPS[@]}"; do mkdir -p "$T/a/$app"; done
	make_inputs
	collect_values
	SVRUN_KEY_PASSWORD='' "$SVRUN" image key "$T/good" >/dev/null
	export SVRUN_KEY_PASSWORD=
	first_build
	"$BATS_TEST_DIRNAME/schema-keys" "$TOP/manifests/schema.json" "$EVERY/left-out" "$T"/a/*/manifest.json
	second_build
	diff "$T/one.digests" "$T/two.digests"
	[ "$(wc -l <"$T/one.digests")" = 6 ]
	for app in every "every:1.0_two-second-cpu" every-top; do
		[ "$(what_is_said_of one "$app")" = "$(what_is_said_of two "$app")" ] || fail "SBOM or provenance of $app"
	done

	export SVRUN_ROOT=$T/two
	"$SVRUN" image test --stage image --matrix first "$T/a/every"
	"$SVRUN" image test --matrix second --accept-license MIT "$T/a/every"
	[ "$("$SVRUN" run --rm every-top)" = "on top" ]
	[ "$("$SVRUN" run --rm every-top:1-other)" = changed ]
	expect_nothing_left "$T/two"
}
