#!/usr/bin/env bats
# Models: in layers, as artifacts, fetched at the start, brought by the user; licences, secrets, pickles.

load helpers
load registry

# An app whose program is tests/data/hello.c and whose models are given as JSON; $APP.
model_app() { # NAME MODELS
	make_app "$1" ".models = $2"
	mkdir -p "$APP/w"
	python3 - "$APP/w" <<-'PY'
		import json, os, random, struct, sys
		d = sys.argv[1]
		rnd = random.Random(5)
		def put(name, data):
		    path = os.path.join(d, name)
		    if not os.path.exists(path):
		        os.makedirs(os.path.dirname(path), exist_ok=True)
		        open(path, "wb").write(data)
		head = json.dumps({"__metadata__": {}}).encode()
		put("model.safetensors", struct.pack("<Q", len(head)) + head + rnd.randbytes(3000000))
		put("config.json", b"{}\n")
		put("sub/vocab.txt", b"a\nb\n")
	PY
}

lock() {
	run_split "$SVRUN" image lock --progress none "$@"
}

build() {
	run_split "$SVRUN" image build --progress none -q "$@"
}

run_() {
	run_split "$SVRUN" run "$@"
}

# What is at a path in the running container, by the image's program: tests/data/hello.c prints files.
in_container() { # IMAGE PATH [OPTION...]
	local image=$1 path=$2
	shift 2
	"$SVRUN" run --rm "$@" "$image" cat "$path"
}

local_model() { # DELIVERY [FILTER]
	jq -nc --arg d "$1" '[{id: "m", target: "/models/m", format: "safetensors", delivery: $d,
		source: {type: "file", path: "w"}, license: {spdx: "MIT"}}]' | jq -c "${2:-.}"
}

annotation() { # NAME
	"$SVRUN" image inspect "$1" | jq -r '.annotations["run.svrun.models"]'
}

www() { # sets $URL
	mkdir -p "$T/www"
	www_make() { COMMAND=(python3 "$E2E/file-server" "$1" "$T/www" "$T/requests"); }
	server_try www www_make
	URL=http://127.0.0.1:$PORT
	export SVRUN_CONFIG=$T/config.json
	jq -n --arg u "$URL" '{mirrors: {huggingface: $u, files: $u}}' >"$SVRUN_CONFIG"
}

sums() { # DIR FILE...
	local dir=$1 f
	shift
	for f in "$@"; do
		jq -nc --arg p "$f" --arg s "$(sha256sum <"$dir/$f" | cut -c1-64)" --argjson n "$(stat -c %s "$dir/$f")" \
			'{path: $p, sha256: $s, size: $n}'
	done | jq -sc .
}

# ---- listing ----

@test "the lock lists a folder through include and exclude, with the set's digest" {
	need_root
	new_store
	model_app a "$(local_model layer '.[0].source += {include: ["*.safetensors", "sub/*"], exclude: ["*.tmp"]}')"
	lock "$APP"
	expect_status 0
	[ "$(jq -c '[.models[0].files[].path]' "$APP/lock.json")" = '["model.safetensors","sub/vocab.txt"]' ]
	[ "$(jq -r '.models[0].setSha256' "$APP/lock.json")" = "$( (cd "$APP/w" && sha256sum model.safetensors sub/vocab.txt) | LC_ALL=C sort | sha256sum | cut -c1-64)" ]
	build "$APP"
	expect_status 0
	"$SVRUN" image export a 2>/dev/null | tar xOf - models/m/model.safetensors | cmp - "$APP/w/model.safetensors"
	echo changed >>"$APP/w/sub/vocab.txt"
	build --no-cache "$APP"
	expect_status 125
	expect_in "$err" "sub/vocab.txt" "expected sha256:"
}

@test "a model hub is listed by pages; what it tells no digest of is fetched; a token goes along" {
	need_root
	new_store
	www
	local rev=0123456789012345678901234567890123456789
	model_app a "[{\"id\": \"m\", \"target\": \"/m\", \"format\": \"safetensors\", \"delivery\": \"layer\", \"license\": {\"spdx\": \"MIT\"},
		\"source\": {\"type\": \"hf\", \"repo\": \"team/tiny\", \"revision\": \"$rev\", \"secret\": \"hub\", \"exclude\": [\"*.md\"]}}]"
	mkdir -p "$T/www/team/tiny/resolve" "$T/www/api/models/team/tiny/tree"
	cp -r "$APP/w" "$T/www/team/tiny/resolve/$rev"
	echo readme >"$T/www/team/tiny/resolve/$rev/README.md"
	# the server answers with two pages, and wants "Bearer token-of-the-hub"
	jq -n --argjson f "$(sums "$APP/w" model.safetensors)" '[[
		{type: "directory", path: "sub"}, {type: "file", path: "README.md", size: 7},
		{type: "file", path: "model.safetensors", size: 134, lfs: {oid: $f[0].sha256, size: $f[0].size}}],
		[{type: "file", path: "config.json", size: 3}, {type: "file", path: "sub/vocab.txt", size: 4}]]' \
		>"$T/www/api/models/team/tiny/tree/$rev.pages"
	echo "Bearer token-of-the-hub" >"$T/www/.authorization"
	lock "$APP"
	expect_status 2
	expect_in "$err" "/models/0 (m): the source wants the secret 'hub'" "hint: --secret hub=FILE"
	echo wrong-token >"$T/token"
	lock --secret "hub=$T/token" "$APP"
	expect_status 125
	expect_in "$err" "HTTP status 401"
	echo token-of-the-hub >"$T/token"
	lock --secret "hub=$T/token" "$APP"
	expect_status 0
	[ "$(jq -c '[.models[0].files[].path]' "$APP/lock.json")" = '["config.json","model.safetensors","sub/vocab.txt"]' ]
	[ "$(jq -c '.models[0].files' "$APP/lock.json")" = "$(sums "$APP/w" config.json model.safetensors sub/vocab.txt | jq -cS .)" ]
	build --secret "hub=$T/token" "$APP"
	expect_status 0
	"$SVRUN" image export a 2>/dev/null | tar xOf - m/model.safetensors | cmp - "$APP/w/model.safetensors"
	# the token is nowhere in the store
	[ -z "$(grep -rlF token-of-the-hub "$T/store" "$APP")" ]
}

@test "what cannot be listed says which field to write; a secret does not travel in the clear" {
	need_root
	new_store
	www
	local m='{"id": "m", "target": "/m", "format": "other", "delivery": "layer", "license": {"spdx": "MIT"}}'
	model_app a "[$(jq -c '. + {source: {type: "https", url: "mirror:files/folder", include: ["*.bin"]}}' <<<"$m")]"
	lock "$APP"
	expect_status 2
	expect_in "$err" "/models/0/files: missing key 'files'"
	model_app a "[$(jq -c '. + {source: {type: "s3", url: "mirror:files/folder", include: ["*.bin"]}}' <<<"$m")]"
	lock "$APP"
	expect_status 2
	expect_in "$err" "/models/0/files: missing key 'files'"
	# one file by its address
	echo data >"$T/www/one.dat"
	model_app a "[$(jq -c '. + {source: {type: "https", url: "mirror:files/one.dat"}}' <<<"$m")]"
	lock "$APP"
	expect_status 0
	[ "$(jq -c '.models[0].files' "$APP/lock.json")" = "$(sums "$T/www" one.dat | jq -cS .)" ]
	build "$APP"
	expect_status 0
	echo a-secret-token >"$T/token"
	model_app a "[$(jq -c '. + {source: {type: "https", url: "mirror:files/one.dat", secret: "t"}}' <<<"$m")]"
	local host
	for host in files.example localhost.example 127.0.0.1.example; do
		jq -n --arg u "http://$host" '{mirrors: {files: $u}}' >"$SVRUN_CONFIG"
		lock --secret "t=$T/token" "$APP"
		expect_status 125
		expect_in "$err" "the secret 't' would travel in the clear"
	done
}

@test "an S3 source signs its requests with the secret" {
	need_root
	new_store
	www
	echo data >"$T/www/one.dat"
	printf 'AKIDEXAMPLE:very-secret-key\n' >"$T/key"
	model_app a '[{"id": "m", "target": "/m", "format": "other", "delivery": "layer", "license": {"spdx": "MIT"},
		"source": {"type": "s3", "url": "mirror:files/one.dat", "secret": "aws"}}]'
	lock --secret "aws=$T/key" "$APP"
	expect_in "$(<"$T/requests")" "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"
	[[ $(<"$T/requests") != *very-secret-key* ]]
}

# ---- artifacts ----

@test "an artifact: small files in one tar, big ones as they are, mounted read-only" {
	need_root
	new_store
	model_app a "$(local_model artifact '.[0].links = {"/models/m/latest": "model.safetensors"}')"
	lock "$APP"
	expect_status 0
	build "$APP"
	expect_status 0
	local first=$out artifact doc
	artifact=$(annotation a | jq -r '.[0].artifact')
	doc=$T/store/blobs/sha256/${artifact#sha256:}
	[ "$(jq -c '[.layers[].mediaType]' "$doc")" = '["application/vnd.svrun.model.bundle.v1.tar","application/vnd.svrun.model.file.v1"]' ]
	[ "$(jq -r '.layers[1].digest' "$doc")" = "sha256:$(sha256sum <"$APP/w/model.safetensors" | cut -c1-64)" ]
	tar tf "$T/store/blobs/sha256/$(jq -r '.layers[0].digest[7:]' "$doc")" | grep -qx sub/vocab.txt
	[ "$(jq -r '.annotations["run.svrun.model.set"]' "$doc")" = "sha256:$( (cd "$APP/w" && sha256sum config.json model.safetensors sub/vocab.txt) | LC_ALL=C sort | sha256sum | cut -c1-64)" ]
	# not in a layer
	[[ $("$SVRUN" image export a 2>/dev/null | tar tf -) != *safetensors* ]]
	in_container a /models/m/model.safetensors | cmp - "$APP/w/model.safetensors"
	in_container a /models/m/latest | cmp - "$APP/w/model.safetensors"
	[ "$(in_container a /models/m/sub/vocab.txt)" = "$(<"$APP/w/sub/vocab.txt")" ]
	in_container a /proc/mounts | grep -E ' /models/m [^ ]+ ro,nosuid,nodev'
	# the same again, to the byte; garbage collection leaves it alone
	build --no-cache "$APP"
	[ "$out" = "$first" ]
	"$SVRUN" image gc >/dev/null
	in_container a /models/m/model.safetensors | cmp - "$APP/w/model.safetensors"
	# and takes it with its image
	"$SVRUN" image rm a a:1 >/dev/null
	"$SVRUN" image gc >/dev/null
	[ ! -e "$doc" ]
	[ -z "$(ls -A "$T/store/models")" ]
}

@test "push and pull take artifacts along" {
	need_root
	new_store
	registry_plain
	export SVRUN_CONFIG=$T/config.json
	jq -n --arg h "$REGISTRY" '{registries: {($h): {"plain-http": true}}}' >"$SVRUN_CONFIG"
	model_app a "$(local_model artifact)"
	lock_and_build "$APP" >/dev/null
	"$SVRUN" image tag a "$REGISTRY/team/a:1" >/dev/null
	"$SVRUN" image push --progress none "$REGISTRY/team/a:1" >/dev/null
	export SVRUN_ROOT=$T/second
	run_split "$SVRUN" image pull --progress none "$REGISTRY/team/a:1"
	expect_status 0
	in_container "$REGISTRY/team/a:1" /models/m/model.safetensors | cmp - "$APP/w/model.safetensors"
	"$SVRUN" image gc >/dev/null
	in_container "$REGISTRY/team/a:1" /models/m/config.json >/dev/null
	# svrun run pulls both
	export SVRUN_ROOT=$T/third
	in_container "$REGISTRY/team/a:1" /models/m/model.safetensors | cmp - "$APP/w/model.safetensors"
	run_split "$SVRUN" image pull "$REGISTRY/team/a:1"
	expect_in "$out" "is up to date"
	# a damaged blob of it is refused
	rm -rf "$T/fourth"
	export SVRUN_ROOT=$T/fourth
	local hex
	hex=$(sha256sum <"$APP/w/model.safetensors" | cut -c1-64)
	printf 'X' | dd of="$REGISTRY_ROOT/docker/registry/v2/blobs/sha256/${hex:0:2}/$hex/data" bs=1 seek=100 conv=notrunc status=none
	run_split "$SVRUN" image pull "$REGISTRY/team/a:1"
	expect_status 125
	expect_in "$err" "model m" "expected sha256:$hex"
}

@test "an artifact's blob that was interrupted goes on where it was" {
	need_root
	new_store
	registry_plain
	export SVRUN_CONFIG=$T/config.json
	jq -n --arg h "$REGISTRY" '{registries: {($h): {"plain-http": true}}}' >"$SVRUN_CONFIG"
	model_app a "$(local_model artifact)"
	# a file of weights that is worth keeping half of
	python3 - "$APP/w/model.safetensors" <<-'PY'
		import json, os, sys
		n = 40 << 20
		head = json.dumps({"t": {"dtype": "U8", "shape": [n], "data_offsets": [0, n]}}).encode()
		open(sys.argv[1], "wb").write(len(head).to_bytes(8, "little") + head + os.urandom(n))
	PY
	lock_and_build "$APP" >/dev/null
	"$SVRUN" image tag a "$REGISTRY/team/a:1" >/dev/null
	"$SVRUN" image push --progress none "$REGISTRY/team/a:1" >/dev/null
	local hex partial size sent i pid
	hex=$(sha256sum <"$APP/w/model.safetensors" | cut -c1-64)
	size=$(stat -c %s "$APP/w/model.safetensors")
	export SVRUN_ROOT=$T/second
	partial=$SVRUN_ROOT/cache/partial/sha256-$hex
	front_faults "always GET /blobs/sha256:$hex slow 4000000" # of each piece
	jq -n --arg h "$FRONT" '{registries: {($h): {"plain-http": true}}}' >"$SVRUN_CONFIG"
	"$SVRUN" image pull --progress none "$FRONT/team/a:1" >/dev/null 2>&1 &
	pid=$!
	for ((i = 0; i < 400; i++)); do
		[ ! -s "$partial" ] || break
		sleep 0.05
	done
	[ -s "$partial" ]
	kill -9 "$pid"
	wait "$pid" || true
	sent=$(stat -c %s "$partial")
	[ "$sent" -gt 0 ] && [ "$sent" -lt "$size" ]
	cmp -n "$sent" "$partial" "$APP/w/model.safetensors"
	[ ! -e "$SVRUN_ROOT/blobs/sha256/$hex" ]
	faults
	: >"$FRONT_LOG"
	run_split "$SVRUN" image pull --progress none "$FRONT/team/a:1"
	expect_status 0
	[ ! -e "$partial" ]
	cmp "$SVRUN_ROOT/blobs/sha256/$hex" "$APP/w/model.safetensors"
	# only what was missing travelled
	local travelled
	travelled=$(awk -v hex="$hex" '$1 == "GET" && index($6, hex) { n += $3 } END { print n + 0 }' "$FRONT_LOG")
	[ "$travelled" -le $((size - sent)) ] || fail "$travelled bytes of $size, $sent were here" "$(<"$FRONT_LOG")"

	# what is there is wrong: from the beginning, and right in the end
	rm -rf "$SVRUN_ROOT"
	mkdir -p "$(dirname "$partial")"
	echo '{"imageLayoutVersion": "1.0.0"}' >"$SVRUN_ROOT/oci-layout"
	head -c 5000000 /dev/zero >"$partial"
	run_split "$SVRUN" image pull --progress none "$FRONT/team/a:1"
	expect_status 0
	cmp "$SVRUN_ROOT/blobs/sha256/$hex" "$APP/w/model.safetensors"
}

@test "save and load take artifacts along" {
	need_root
	new_store
	model_app a "$(local_model artifact)"
	lock_and_build "$APP" >/dev/null
	"$SVRUN" image save -q a -o "$T/a.tar"
	export SVRUN_ROOT=$T/second
	"$SVRUN" image load -q "$T/a.tar" >/dev/null
	"$SVRUN" image gc >/dev/null
	in_container a /models/m/model.safetensors | cmp - "$APP/w/model.safetensors"
}

@test "an artifact in a registry is a source: what comes out has the same digest" {
	need_root
	new_store
	registry_plain
	export SVRUN_CONFIG=$T/config.json
	jq -n --arg h "$REGISTRY" '{registries: {($h): {"plain-http": true}}}' >"$SVRUN_CONFIG"
	model_app a "$(local_model artifact)"
	lock_and_build "$APP" >/dev/null
	local from=$APP artifact
	artifact=$(annotation a | jq -r '.[0].artifact')
	"$SVRUN" image push --progress none a "$REGISTRY/team/a:1" >/dev/null
	export SVRUN_ROOT=$T/second
	model_app b "[{\"id\": \"m\", \"target\": \"/m\", \"format\": \"safetensors\", \"delivery\": \"artifact\", \"license\": {\"spdx\": \"MIT\"},
		\"source\": {\"type\": \"oci\", \"url\": \"$REGISTRY/team/a@$artifact\"}}]"
	lock "$APP"
	expect_status 0
	[ "$(jq -c '.models[0].files' "$APP/lock.json")" = "$(sums "$from/w" config.json model.safetensors sub/vocab.txt | jq -cS .)" ]
	build "$APP"
	expect_status 0
	[ "$(annotation b | jq -r '.[0].artifact')" = "$artifact" ]
	in_container b /m/model.safetensors | cmp - "$from/w/model.safetensors"
	# what is here already is asked of the policy, too: the image as it stands, and the files
	jq -n --arg h "$REGISTRY" '{schema: "svrun.policy/1", default: {action: "accept"},
		rules: [{match: [$h + "/team/*"], action: "reject", reason: "over"}]}' >"$T/policy.json"
	cp "$SVRUN_CONFIG" "$T/no-policy.json"
	jq --arg p "$T/policy.json" '.policy = $p' "$T/no-policy.json" >"$SVRUN_CONFIG"
	for option in --quiet --no-cache; do
		run_split "$SVRUN" image build $option "$APP"
		expect_status 125
		expect_in "$err" "/models/0 (m)" "the policy rejects it" "over"
	done
	cp "$T/no-policy.json" "$SVRUN_CONFIG"
	run_split "$SVRUN" image build --format json "$APP"
	expect_status 0
	jq -e .cached "$T/out"
	# a part of it, in a layer
	export SVRUN_ROOT=$T/third
	jq '.models[0] += {delivery: "layer"} | .models[0].source.include = ["sub/*"]' "$APP/manifest.json" >"$T/m"
	cp "$T/m" "$APP/manifest.json"
	lock "$APP"
	expect_status 0
	build "$APP"
	expect_status 0
	[ "$(in_container b /m/sub/vocab.txt)" = "$(<"$from/w/sub/vocab.txt")" ]
	# without a digest, and what is no model
	jq --arg u "$REGISTRY/team/a:1" '.models[0].source.url = $u' "$T/m" >"$APP/manifest.json"
	lock "$APP"
	expect_status 2
	expect_in "$err" "/models/0 (m): source/url: $REGISTRY/team/a:1" "no digest"
	jq --arg u "$REGISTRY/team/a@$(SVRUN_ROOT=$T/store image_digest a)" '.models[0].source.url = $u' "$T/m" >"$APP/manifest.json"
	lock "$APP"
	expect_status 125
	expect_in "$err" "it is no model"
}

# ---- at run time ----

runtime_model() { # [FILTER]
	jq -nc --argjson f "$(sums "$T/www/root" big.gguf sub/small)" '[{id: "m", target: "/models/m", format: "gguf", delivery: "runtime",
		source: {type: "https", url: "mirror:files/root"}, files: $f, license: {spdx: "MIT"}}]' | jq -c "${1:-.}"
}

make_www_model() {
	mkdir -p "$T/www/root/sub"
	{
		printf GGUF
		head -c 2000000 /dev/zero
	} >"$T/www/root/big.gguf"
	echo small >"$T/www/root/sub/small"
}

@test "a runtime model is fetched at the first start, once, into the store or the volume" {
	need_root
	new_store
	www
	make_www_model
	model_app a "$(runtime_model)"
	lock_and_build "$APP" >/dev/null
	[ ! -s "$T/requests" ]
	in_container a /models/m/big.gguf | cmp - "$T/www/root/big.gguf"
	[ "$(grep -c GET "$T/requests")" = 2 ]
	in_container a /models/m/sub/small >/dev/null
	[ "$(grep -c GET "$T/requests")" = 2 ]
	# into a volume
	rm -rf "$T/store/cache/sha256"
	mkdir "$T/vol"
	[ "$(in_container a /models/m/sub/small -v "$T/vol:/models")" = small ]
	cmp "$T/vol/m/big.gguf" "$T/www/root/big.gguf"
	[ "$(grep -c GET "$T/requests")" = 4 ]
	# one that is whole already is not fetched
	rm -rf "$T/store/cache/sha256" "$T"/vol/m/.svrun-*
	echo broken >"$T/vol/m/sub/small"
	[ "$(in_container a /models/m/sub/small -v "$T/vol:/models")" = small ]
	[ "$(grep -c GET "$T/requests")" = 5 ]
	# a link that a container left in its volume leads nowhere
	mkdir "$T/vol2" "$T/elsewhere"
	ln -s "$T/elsewhere" "$T/vol2/m"
	run_ -v "$T/vol2:/models" a
	expect_status 125
	[ -z "$(ls -A "$T/elsewhere")" ]
	# another file than the lock says
	echo other >"$T/www/root/sub/small"
	rm -rf "$T/store/cache/sha256" "$T/store/models"
	run_ a
	expect_status 125
	expect_in "$err" "m" "expected sha256:" "its models could not be made ready"
}

@test "a runtime model's secret is an option of the start" {
	need_root
	new_store
	www
	make_www_model
	echo "Bearer run-time-token" >"$T/www/.authorization"
	echo run-time-token >"$T/token"
	model_app a "$(runtime_model '.[0].source.secret = "hub"')"
	lock_and_build "$APP" >/dev/null
	run_ a
	expect_status 125
	expect_in "$err" "the source wants the secret 'hub'" "--secret hub=FILE"
	in_container a /models/m/sub/small --secret "hub=$T/token" >/dev/null
	[ -z "$(grep -rlF run-time-token "$T/store")" ]
}

@test "what the user brings must be there: the start says which file" {
	need_root
	new_store
	www
	make_www_model
	model_app a "$(runtime_model '.[0] += {delivery: "volume", source: {type: "https", url: "mirror:files/root"}}')"
	lock_and_build "$APP" >/dev/null
	run_ a
	expect_status 125
	expect_in "$err" "the model m: /models/m is brought by the user" "--volume DIR:/models/m"
	mkdir -p "$T/vol/sub"
	run_ -v "$T/vol:/models/m" a
	expect_status 125
	expect_in "$err" "the model m: /models/m/big.gguf is not there"
	cp "$T/www/root/big.gguf" "$T/vol"
	echo longer-than-it-was >"$T/vol/sub/small"
	run_ -v "$T/vol:/models/m" a
	expect_in "$err" "/models/m/sub/small has another size"
	cp "$T/www/root/sub/small" "$T/vol/sub"
	run_ -v "$T/vol:/models/m" a
	expect_status 0
}

# ---- gates ----

@test "a licence that somebody must accept, at build, push and run" {
	need_root
	new_store
	registry_plain
	export SVRUN_CONFIG=$T/config.json
	jq -n --arg h "$REGISTRY" '{registries: {($h): {"plain-http": true}}}' >"$SVRUN_CONFIG"
	model_app a "$(local_model artifact '.[0].license = {name: "tiny-community", acceptance: "user"}')"
	lock "$APP"
	expect_status 0
	build "$APP"
	expect_status 125
	expect_in "$err" "/models/0/license: the licence 'tiny-community' of m must be accepted" "--accept-license 'tiny-community'" \
		"$APP/manifest.json:$(grep -n '"license"' "$APP/manifest.json" | cut -d: -f1):"
	build --accept-license other "$APP"
	expect_status 125
	build --accept-license tiny-community "$APP"
	expect_status 0
	run_ a
	expect_status 125
	expect_in "$err" "the licence 'tiny-community' of the model m must be accepted"
	run_ --accept-license tiny-community a
	expect_status 0
	run_split "$SVRUN" image push a "$REGISTRY/a:1"
	expect_status 125
	expect_in "$err" "must be accepted"
	run_split "$SVRUN" image push --accept-license tiny-community a "$REGISTRY/a:1"
	expect_status 0
}

@test "gated weights go only to a registry that the site calls private (SV143)" {
	need_root
	new_store
	registry_plain
	export SVRUN_CONFIG=$T/config.json
	jq -n --arg h "$REGISTRY" '{registries: {($h): {"plain-http": true}}}' >"$SVRUN_CONFIG"
	model_app a "$(local_model layer '.[0].license.gated = true')"
	lock_and_build "$APP" >/dev/null
	run_split "$SVRUN" image push a "$REGISTRY/a:1"
	expect_status 125
	expect_in "$err" "SV143: the model m is gated, and $REGISTRY is not known to be private" '"private": true'
	[ -z "$(find "$REGISTRY_ROOT" -name data)" ]
	jq -n --arg h "$REGISTRY" '{registries: {($h): {"plain-http": true, private: true}}}' >"$SVRUN_CONFIG"
	run_split "$SVRUN" image push a "$REGISTRY/a:1"
	expect_status 0
}

@test "pickles are known by their bytes, whatever they are called" {
	need_root
	new_store
	model_app a "$(local_model layer)"
	local name
	for name in pytorch_model.bin weights.dat old.pt; do
		python3 - "$APP/w/$name" <<-'PY'
			import pickle, sys, zipfile
			data = pickle.dumps({"a": [1, 2, 3]}, protocol=2 if sys.argv[1].endswith("dat") else 4)
			if sys.argv[1].endswith("pt"):
			    with zipfile.ZipFile(sys.argv[1], "w") as z:
			        z.writestr("archive/data.pkl", data)
			        z.writestr("archive/data/0", b"1234")
			else:
			    open(sys.argv[1], "wb").write(data)
		PY
		lock "$APP"
		expect_status 0
		build "$APP"
		expect_status 125
		expect_in "$err" "/models/0 (m): SV141: '$name' is a pickle" "allowPickle"
		rm "$APP/w/$name"
	done
	python3 -c 'import pickle, sys; pickle.dump([1], open(sys.argv[1], "wb"))' "$APP/w/a.bin"
	jq '.models[0].allowPickle = true' "$APP/manifest.json" >"$T/m" && cp "$T/m" "$APP/manifest.json"
	lock "$APP"
	build "$APP"
	expect_status 0
	echo "not what it says" >"$APP/w/fake.safetensors"
	lock "$APP"
	build "$APP"
	expect_status 125
	expect_in "$err" "'fake.safetensors' is no safetensors file"
}
