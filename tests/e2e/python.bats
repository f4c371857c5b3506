#!/usr/bin/env bats
# Python packages from wheels: locked, unpacked without running code, as pip would have installed them.

# shellcheck disable=SC2154 # run_split sets out, err and status
load helpers

WHEELS=/usr/share/python-wheels
LIB=/opt/venv/lib/python3.11/site-packages

need_wheels() {
	need_root
	for name in pip setuptools wheel; do
		compgen -G "$WHEELS/$name-*.whl" >/dev/null || skip "needs python3-$name-whl"
	done
}

wheel_file() { # NAME
	local v=("$WHEELS/$1"-*.whl)
	echo "${v[-1]}"
}

wheel_version() { # NAME
	basename "$(wheel_file "$1")" | cut -d- -f2
}

# The wheel demo 1.0 with whatever files stand behind (PATH=TEXT), all in RECORD, at $1.
make_wheel() { # FILE PATH=TEXT...
	local file=$1
	shift
	/usr/bin/python3 - "$file" "$@" <<'EOF'
import base64, hashlib, os, sys, zipfile
name, version = os.path.basename(sys.argv[1]).split("-")[:2]
info = f"{name}-{version}.dist-info/"
files = {info + "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
         info + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
for arg in sys.argv[2:]:
    path, text = arg.split("=", 1)
    files[path.replace("INFO/", info)] = text.replace("\\n", "\n")
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as z:
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        record += f"{path},sha256={digest},{len(text.encode())}\n"
        z.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), text)
    z.writestr(info + "RECORD", record + info + "RECORD,,\n")
EOF
}

# An app with Debian's interpreter; $APP is its folder.
python_app() { # NAME [JQ-FILTER]
	APP=$T/$1
	mkdir -p "$APP/wheels"
	jq -n --arg name "$1" '{
		schema: "svrun.image/1", name: $name, version: "1",
		base: {type: "scratch"},
		apt: {
			sources: [{uri: "mirror:debian", suites: ["bookworm"], components: ["main"],
				signedBy: "keyring:debian-archive"}],
			packages: ["?essential", "python3"], prune: ["doc", "man", "info", "locale:!en"]
		},
		python: {prefix: "/opt/venv", lock: "requirements.txt"},
		cmd: ["/opt/venv/bin/python"],
		build: {epoch: 1767225600}
	}' | jq "${2:-.}" >"$APP/manifest.json"
}

# A line of requirements.txt for a wheel in wheels/.
pin() { # FILE
	local name version
	IFS=- read -r name version _ <<<"$(basename "$1")"
	echo "$name==$version --hash=sha256:$(sha256sum "$1" | cut -d' ' -f1)"
}

# The image "pip" with Debian's three wheels and demo, built once for all tests.
need_pip_image() {
	need_wheels
	local mark=$WORK/apps/python.built
	[ ! -e "$mark.failed" ] || fail "the image could not be built" || return 1
	[ -e "$mark" ] && return
	python_app e2e-python '.python.guard = {pip: ">=20", "setuptools": "compatible"}'
	cp "$WHEELS"/*.whl "$APP/wheels"
	make_wheel "$APP/wheels/demo-1.0-py3-none-any.whl" demo.py='def main():\n    print("hello from", __name__)\n' \
		INFO/entry_points.txt='[console_scripts]\ndemo = demo:main\n' \
		demo-1.0.data/scripts/old='#!python\nimport demo\ndemo.main()\n'
	{
		printf -- '--no-index\n--find-links wheels\n'
		for file in "$APP"/wheels/*.whl; do pin "$file"; done
	} >"$APP/requirements.txt"
	rm -rf "$WORK/apps/e2e-python"
	cp -r "$APP" "$WORK/apps/e2e-python"
	if "$SVRUN" image lock "$WORK/apps/e2e-python" && "$SVRUN" image build "$WORK/apps/e2e-python"; then
		touch "$mark"
	else
		touch "$mark.failed"
		return 1
	fi
}

in_image() { # COMMAND...
	"$SVRUN" run --rm e2e-python "$@"
}

@test "an image with wheels is built and its programs run" {
	need_pip_image
	run_split in_image /opt/venv/bin/demo
	expect_status 0
	[ "$out" = "hello from demo" ]
	run_split in_image /opt/venv/bin/old
	[ "$out" = "hello from demo" ]
}

@test "pip finds what was installed, and nothing is broken" {
	need_pip_image
	run_split in_image /opt/venv/bin/pip list --format=freeze --disable-pip-version-check
	expect_status 0
	[ "$out" = "demo==1.0
pip==$(wheel_version pip)
setuptools==$(wheel_version setuptools)
wheel==$(wheel_version wheel)" ] || fail "$out" "$err"
	run_split in_image /opt/venv/bin/pip check
	expect_status 0
	expect_in "$out" "No broken requirements found"
	run_split in_image /opt/venv/bin/python -c 'import importlib.metadata as m
for d in m.distributions():
	assert all(f.locate().exists() for f in d.files), d.name
	print(d.name, d.read_text("INSTALLER").strip())'
	expect_status 0
	expect_in "$out" "demo svrun"
}

@test "pip uninstalls what we installed and leaves nothing of it" {
	need_pip_image
	run_split in_image /bin/sh -ec '
		/opt/venv/bin/pip uninstall -q -y demo wheel setuptools
		find /opt/venv | grep -E "demo|wheel|setuptools|/old$|pkg_resources" |
			grep -v -E "/pip/|/bin/pip" || true'
	expect_status 0
	[ -z "$out" ] || fail "$out" "$err"
}

@test "byte code is used, and says so for whatever time its source has" {
	need_pip_image
	run_split in_image /opt/venv/bin/python -c 'import importlib.util, sys, demo
pyc = open(importlib.util.cache_from_source(demo.__file__), "rb").read(8)
print(int.from_bytes(pyc[4:8], "little"), demo.__cached__)'
	expect_status 0
	[ "$out" = "1 $LIB/__pycache__/demo.cpython-311.pyc" ] || fail "$out" "$err"
}

@test "the image is the same, bit for bit, from another store, path, time and umask" {
	need_pip_image
	local wanted found copy=$T/else/where
	wanted=$(image_digest e2e-python)
	new_store cache
	mkdir -p "$T/else"
	cp -r "$WORK/apps/e2e-python" "$copy"
	find "$copy" -exec touch -d 2001-01-01 {} +
	found=$(umask 077 && cd / && TZ=Asia/Tokyo HOME=/nonexistent taskset -c 0 "$SVRUN" image build -q "$copy")
	[ "$wanted" = "$found" ] || fail "$wanted here, $found elsewhere"
}

@test "the lock says where each wheel is and who asked for it" {
	need_pip_image
	run_split jq -r '.python.wheels[] | "\(.name) \(.version) \(.url) \(.why[0])"' "$WORK/apps/e2e-python/lock.json"
	expect_status 0
	expect_in "$out" "demo 1.0 file:wheels/demo-1.0-py3-none-any.whl requirements.txt"
	[ "$(wc -l <<<"$out")" = 4 ]
}

@test "wheels go on a base image, and fit its C library" {
	need_pip_image
	local digest glibc file
	digest=$(image_digest e2e-python)
	glibc=$(in_image /usr/bin/python3 -c 'import os; print(os.confstr("CS_GNU_LIBC_VERSION").split()[1])')
	lock_only on-base ".name = \"on-base\" | .python.prefix = \"/opt/second\" |
		.base = {type: \"oci\", ref: \"store:e2e-python\", digest: \"$digest\"}"
	make_wheel "$APP/wheels/demo-2.0-cp311-cp311-manylinux_${glibc/./_}_x86_64.whl" demo.py='x = "newest"\n'
	make_wheel "$APP/wheels/demo-2.0-cp311-cp311-manylinux2014_x86_64.whl" demo.py='x = "older"\n'
	make_wheel "$APP/wheels/demo-2.0-cp311-cp311-manylinux_2_99_x86_64.whl" demo.py='x = "not yet"\n'
	printf -- '--no-index\n--find-links wheels\ndemo==2.0 ' >"$APP/requirements.txt"
	for file in "$APP"/wheels/*.whl; do
		printf -- ' --hash=sha256:%s' "$(sha256sum "$file" | cut -d' ' -f1)" >>"$APP/requirements.txt"
	done
	lock_and_build "$APP"
	run_split "$SVRUN" run --rm on-base /opt/second/bin/python -c 'import demo; print(demo.x)'
	[ "$out" = newest ] || fail "$out" "$err"
	run_split "$SVRUN" run --rm on-base /opt/venv/bin/demo
	[ "$out" = "hello from demo" ] || fail "$out" "$err"
}

@test "a wheel replaces no file of the system" {
	need_pip_image
	lock_only evil ".python.prefix = \"/usr\" |
		.base = {type: \"oci\", ref: \"store:e2e-python\", digest: \"$(image_digest e2e-python)\"}"
	make_wheel "$APP/wheels/demo-2.0-py3-none-any.whl" demo-2.0.data/data/bin/env='#!/bin/sh\n'
	printf -- '--no-index\n--find-links wheels\n%s\n' "$(pin "$APP"/wheels/*.whl)" >"$APP/requirements.txt"
	"$SVRUN" image lock "$APP"
	run_split "$SVRUN" image build -q "$APP"
	[ "$status" -ne 0 ]
	expect_in "$err" "wheel demo: SV102: /usr/bin/env is in"
}

# ---- locking without building ----

# An app whose interpreter is named and whose base has none of our packages would need a base image; here
# only the lock is made.
lock_only() { # NAME [JQ-FILTER]
	python_app "$1" "del(.apt) | .python.interpreter = \"/usr/bin/python3.11\" | ${2:-.}"
}

@test "what cannot be installed is refused by code and line when it is locked" {
	need_wheels
	lock_only refused
	printf 'demo>=1 --hash=sha256:%064d\n' 1 >"$APP/requirements.txt"
	run_split "$SVRUN" image lock "$APP"
	expect_in "$err" "SV053: requirements.txt:1: not pinned to one version"
	[ "$status" -ne 0 ]
	printf '\n./demo-1.0.tar.gz --hash=sha256:%064d\n' 1 >"$APP/requirements.txt"
	run_split "$SVRUN" image lock "$APP"
	expect_in "$err" "SV051: requirements.txt:2: no wheel, it would have to be built"
	make_wheel "$APP/wheels/demo-1.0-cp39-cp39-win32.whl"
	printf -- '--no-index\n--find-links wheels\n%s\n' "$(pin "$APP/wheels/demo-1.0-cp39-cp39-win32.whl")" \
		>"$APP/requirements.txt"
	run_split "$SVRUN" image lock "$APP"
	expect_in "$err" "SV052: demo: no wheel fits Python 3.11" "demo-1.0-cp39-cp39-win32.whl"
	[ ! -e "$APP/lock.json" ]
}

@test "a guard is checked before anything is fetched" {
	need_wheels
	lock_only guarded '.python.guard = {demo: ">=2"}'
	make_wheel "$APP/wheels/demo-1.0-py3-none-any.whl"
	printf -- '--no-index\n--find-links wheels\n%s\n' "$(pin "$APP/wheels/demo-1.0-py3-none-any.whl")" \
		>"$APP/requirements.txt"
	run_split "$SVRUN" image lock "$APP"
	expect_in "$err" "SV050: /python/guard: demo would be 1.0, not >=2" \
		"$APP/manifest.json:$(grep -n '"demo": ' "$APP/manifest.json" | cut -d: -f1):"
	[ "$status" -ne 0 ]
}

# ---- building without an interpreter ----

# Wheels alone, in an image of nothing else. Locks and builds what is in wheels/.
build_wheels() {
	lock_only wheels ".python.prefix = \"/usr/local\" | .python.bytecode = \"none\""
	printf -- '--no-index\n--find-links wheels\n' >"$APP/requirements.txt"
	cp "$T"/*.whl "$APP/wheels"
	for file in "$APP"/wheels/*.whl; do pin "$file" >>"$APP/requirements.txt"; done
	run_split "$SVRUN" image lock "$APP"
	expect_status 0 || return 1
	run_split "$SVRUN" image build -q "$APP"
}

@test "two wheels may bring one file only when it is the same" {
	need_wheels
	make_wheel "$T/demo-1.0-py3-none-any.whl" shared.py='x = 1\n'
	make_wheel "$T/other-1.0-py3-none-any.whl" shared.py='x = 1\n'
	build_wheels
	expect_status 0
	echo '# changed' >>"$APP/requirements.txt"
	run_split "$SVRUN" image build -q "$APP"
	expect_in "$err" "requirements.txt"
	[ "$status" -ne 0 ]
	make_wheel "$T/other-1.0-py3-none-any.whl" shared.py='x = 2\n'
	build_wheels
	expect_in "$err" "SV102: /usr/local/lib/python3.11/dist-packages/shared.py is in the wheel demo, too"
	[ "$status" -ne 0 ]
}

@test "hostile wheels are refused by code, wheel and member" {
	need_wheels
	local case
	for case in "../evil.py=x SV171" "/etc/cron.d/x=x SV171" "demo-1.0.data/evil/x=x SV176" \
		"INFO/entry_points.txt=[console_scripts]\\n../x=a:b SV175" \
		"INFO/entry_points.txt=[console_scripts]\\nx=a:b;c SV175" "INFO/WHEEL=Wheel-Version:9.0\\n SV174" \
		"INFO/METADATA=Name:other\\nVersion:1.0\\n SV174"; do
		make_wheel "$T/demo-1.0-py3-none-any.whl" "${case% *}"
		build_wheels
		[ "$status" -ne 0 ] || fail "$case was taken"
		expect_in "$err" "wheel demo" "${case##* }"
	done
	make_wheel "$T/demo-1.0-py3-none-any.whl" demo.py=1
	/usr/bin/python3 -c 'import sys, zipfile
zipfile.ZipFile(sys.argv[1], "a").writestr("extra.py", "1")' "$T/demo-1.0-py3-none-any.whl"
	build_wheels
	expect_in "$err" "SV173: RECORD lacks 'extra.py'"
}

# ---- a package index on loopback ----

more_teardown() {
	[ -z "${SERVER-}" ] || kill "$SERVER" 2>/dev/null || true
}

# Serve $T/index; $PORT is where.
serve_index() {
	: >"$T/server" # the loop below may be faster
	/usr/bin/python3 -u -m http.server --bind 127.0.0.1 --directory "$T/index" 0 >"$T/server" 2>&1 &
	SERVER=$!
	for _ in {1..100}; do
		PORT=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$T/server")
		[ -z "$PORT" ] || break
		sleep 0.05
	done
	[ -n "$PORT" ] || fail "no server"
	printf '{"mirrors": {"pypi": "http://127.0.0.1:%s"}}' "$PORT" >"$T/config.json"
	export SVRUN_CONFIG=$T/config.json
}

@test "wheels are found in the site's index by their hashes" {
	need_wheels
	local file hash
	mkdir -p "$T/index/simple/demo" "$T/index/packages"
	file=$T/index/packages/demo-1.0-py3-none-any.whl
	make_wheel "$file"
	hash=$(sha256sum "$file" | cut -d' ' -f1)
	cat >"$T/index/simple/demo/index.html" <<EOF
<!DOCTYPE html><html><body>
<a href="../../packages/demo-0.9-py3-none-any.whl#sha256=$(printf %064d 2)">demo-0.9-py3-none-any.whl</a>
<a href="../../packages/demo-1.0-py3-none-any.whl#sha256=$hash">demo-1.0-py3-none-any.whl</a>
<a href="../../packages/demo-1.0.tar.gz#sha256=$(printf %064d 3)">demo-1.0.tar.gz</a>
</body></html>
EOF
	serve_index
	lock_only indexed
	printf 'Demo==1.0 --hash=sha256:%s --hash=sha256:%064d\n' "$hash" 3 >"$APP/requirements.txt"
	run_split "$SVRUN" image lock "$APP"
	expect_status 0
	run_split jq -c '.python.wheels[0] | [.url, .size]' "$APP/lock.json"
	[ "$out" = "[\"mirror:pypi/packages/demo-1.0-py3-none-any.whl\",$(stat -c %s "$file")]" ] || fail "$out"
	printf 'Demo==1.0 --hash=sha256:%064d\n' 3 >"$APP/requirements.txt"
	run_split "$SVRUN" image lock "$APP"
	expect_in "$err" "SV051: demo 1.0 has no wheel, only demo-1.0.tar.gz"
	printf 'other==1.0 --hash=sha256:%064d\n' 3 >"$APP/requirements.txt"
	run_split "$SVRUN" image lock "$APP"
	expect_in "$err" "/simple/other/: HTTP status 404"
	# what was locked is fetched from there, and verified
	printf 'Demo==1.0 --hash=sha256:%s\n' "$hash" >"$APP/requirements.txt"
	jq '.python |= (.prefix = "/usr/local" | .bytecode = "none")' "$APP/manifest.json" >"$APP/new"
	mv "$APP/new" "$APP/manifest.json"
	"$SVRUN" image lock "$APP"
	"$SVRUN" image build -q "$APP"
	echo >>"$file"
	new_store
	run_split "$SVRUN" image build -q "$APP"
	expect_in "$err" "demo 1.0"
	[ "$status" -ne 0 ]
}

@test "an index that wants a password is asked with what is kept for its host, and nobody else is" {
	need_wheels
	local file hash port
	mkdir -p "$T/index/simple/demo" "$T/index/packages"
	file=$T/index/packages/demo-1.0-py3-none-any.whl
	make_wheel "$file"
	hash=$(sha256sum "$file" | cut -d' ' -f1)
	jq -n --arg h "$hash" --argjson n "$(stat -c %s "$file")" '[{files: [{filename: "demo-1.0-py3-none-any.whl",
		url: "../../packages/demo-1.0-py3-none-any.whl", size: $n, hashes: {sha256: $h}}]}]' >"$T/index/simple/demo/.pages"
	echo "Basic $(printf 'anna:pass word' | base64)" >"$T/index/.authorization"
	port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	/usr/bin/python3 "$BATS_TEST_DIRNAME/file-server" "$port" "$T/index" "$T/requests" 2>/dev/null &
	SERVER=$!
	for _ in {1..100}; do curl -s "http://127.0.0.1:$port/" >/dev/null && break || sleep 0.05; done
	jq -n --arg u "http://127.0.0.1:$port" '{mirrors: {pypi: $u}}' >"$T/config.json"
	export SVRUN_CONFIG=$T/config.json REGISTRY_AUTH_FILE=$T/auth.json
	echo '{}' >"$T/auth.json"
	lock_only private
	printf 'Demo==1.0 --hash=sha256:%s\n' "$hash" >"$APP/requirements.txt"
	run_split "$SVRUN" image lock "$APP"
	expect_status 125
	expect_in "$err" "HTTP status 401" "docs/credentials.md"
	jq -n --arg k "127.0.0.1:$port" --arg a "$(printf 'anna:pass word' | base64)" '{auths: {($k): {auth: $a}}}' >"$T/auth.json"
	jq '.python |= (.prefix = "/usr/local" | .bytecode = "none")' "$APP/manifest.json" >"$APP/new"
	mv "$APP/new" "$APP/manifest.json"
	"$SVRUN" image lock "$APP"
	new_store cache
	"$SVRUN" image build -q "$APP"
	[ -z "$(grep -r 'pass word\|cGFzcyB3b3Jk' "$APP")" ]
	# an address without TLS that is not this machine's gets no password
	jq -n '{mirrors: {pypi: "http://index.invalid"}}' >"$T/config.json"
	jq '.auths["index.invalid"] = .auths[]' "$T/auth.json" >"$T/new" && mv "$T/new" "$T/auth.json"
	run_split "$SVRUN" image lock "$APP"
	expect_status 125
	expect_in "$err" "the credentials for http://index.invalid/simple/demo/ would travel in the clear" "logout index.invalid"
}

@test "the interpreter of a base image need not say its version; requirements include others" {
	need_pip_image
	APP=$T/on-base
	mkdir -p "$APP/wheels"
	make_wheel "$APP/wheels/demo-2.0-py3-none-any.whl" demo.py='import sys; print(*sys.version_info[:2], sep=".")\n' \
		INFO/METADATA='Metadata-Version: 2.1\nName: demo\nVersion: 2.0\nRequires-Dist: more; extra == "x"\n'
	printf -- '--no-index\n-f .\ndemo[x]==2.0 --hash=sha256:%s\n' \
		"$(sha256sum <"$APP/wheels/demo-2.0-py3-none-any.whl" | cut -c1-64)" >"$APP/wheels/base.txt"
	printf -- '-r wheels/base.txt\n-c wheels/limits.txt\n' >"$APP/requirements.txt"
	echo 'demo>=3' >"$APP/wheels/limits.txt"
	jq -n --arg d "$(image_digest e2e-python)" '{schema: "svrun.image/1", name: "on-base", version: "1",
		base: {type: "oci", ref: "store:e2e-python", digest: $d},
		python: {prefix: "/opt/other", lock: "requirements.txt", interpreter: "/usr/bin/python3"},
		entrypoint: ["/opt/other/bin/python", "-m", "demo"], build: {epoch: 1767225600}}' >"$APP/manifest.json"
	run_split "$SVRUN" image lock "$APP"
	expect_status 2
	expect_in "$err" "wheels/base.txt:3: SV053: demo 2.0 is not what wheels/limits.txt:1 allows: >=3"
	echo 'demo<3' >"$APP/wheels/limits.txt"
	"$SVRUN" image lock "$APP"
	[ "$(jq -c '[.python.version, .python.wheels[0].extras, [.files[].path]]' "$APP/lock.json")" = \
		'["3.11",["x"],["requirements.txt","wheels/base.txt","wheels/limits.txt"]]' ]
	run_split "$SVRUN" image build -q "$APP"
	expect_status 2
	expect_in "$err" "manifest.json:" "SV053: demo 2.0 [x] needs more, and nothing is installed"
	sed -i 's/\[x\]//' "$APP/wheels/base.txt"
	run_split "$SVRUN" image build -q "$APP"
	expect_in "$err" "wheels/base.txt: expected sha256:"
	"$SVRUN" image lock "$APP"
	"$SVRUN" image build -q "$APP"
	[ "$("$SVRUN" run --rm on-base)" = 3.11 ]
	"$SVRUN" image rm on-base on-base:1
}
