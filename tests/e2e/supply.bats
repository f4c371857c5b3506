#!/usr/bin/env bats
# Keys, signatures, policies, SBOMs, provenance, and why a file is there. Signatures are compared with
# openssl's, documents with what their specifications require and with what dpkg, pip and npm say.

load helpers
load registry

# An app in a store of the test's own, as `app`; $APP_DIGEST is its digest.
build_app() { # [JQ-FILTER]
	[ -d "$T/store" ] || new_store
	make_app app "${1:-.}"
	lock_and_build "$T/app" >"$T/app.log" 2>&1 || fail "$(<"$T/app.log")"
	APP_DIGEST=$(image_digest app)
}

make_key() { # NAME
	SVRUN_KEY_PASSWORD=${2-} "$SVRUN" image key "$T/$1" >/dev/null
}

sign() { # KEY [OPTION...] IMAGE
	local key=$1
	shift
	"$SVRUN" image sign --key "$T/$key.key" "$@" >/dev/null
}

verify() { # KEY IMAGE
	run_split "$SVRUN" image verify-signature --plain-http --key "$T/$1.pub" "$2"
}

push() {
	run_split "$SVRUN" image push --plain-http --progress none "$@"
	expect_status 0
}

blob() { # DIGEST
	cat "$SVRUN_ROOT/blobs/sha256/${1#sha256:}"
}

attached() { # DIGEST JQ...
	local file=$SVRUN_ROOT/attached/${1#sha256:}
	shift
	jq -r "$@" "$file"
}

# The manifest that has the signatures of the tag form.
tag_manifest() { # DIGEST
	blob "$(attached "$1" '.manifests[] | select(.annotations["org.opencontainers.image.ref.name"]) | .digest')"
}

# The site has a policy, and a registry without TLS.
site_policy() { # JSON
	export SVRUN_CONFIG=$T/config.json
	printf '%s\n' "$1" >"$T/policy.json.svrun"
	jq -n --arg h "${FRONT:-${REGISTRY:-none.example}}" --arg p "$T/policy.json.svrun" \
		'{policy: $p, registries: {($h): {"plain-http": true}}}' >"$SVRUN_CONFIG"
}

no_policy() {
	export SVRUN_CONFIG=$T/config.json
	jq -n --arg h "${FRONT:-$REGISTRY}" '{registries: {($h): {"plain-http": true}}}' >"$SVRUN_CONFIG"
}

raw() { # NAME:TAG-OR-DIGEST: a manifest as the registry has it
	curl -sS -H 'Accept: application/vnd.oci.image.manifest.v1+json' -H 'Accept: application/vnd.oci.image.index.v1+json' \
		"http://$REGISTRY/v2/${1%%:*}/manifests/${1#*:}"
}

tags() { # NAME
	curl -sS "http://$REGISTRY/v2/$1/tags/list" | jq -r '.tags[]' | sort
}

# ---- keys ----

@test "a pair of keys: PKCS#8 by password, SubjectPublicKeyInfo, never over what is there" {
	cd "$T"
	SVRUN_KEY_PASSWORD=secret run_split "$SVRUN" image key pair
	expect_status 0
	expect_in "$out" "pair.key (encrypted)" "pair.pub"
	[ "$(stat -c %a pair.key pair.pub | tr '\n' ' ')" = "600 644 " ]
	grep -q 'BEGIN ENCRYPTED PRIVATE KEY' pair.key
	openssl pkey -in pair.key -passin pass:secret -pubout | cmp - pair.pub
	openssl pkey -pubin -in pair.pub -noout -text | grep -q 'NIST CURVE: P-256'
	openssl asn1parse -in pair.key | grep -q scrypt
	[ "$(openssl pkey -pubin -in pair.pub -outform DER | sha256sum | cut -c-64)" = "${out##* }" ]

	SVRUN_KEY_PASSWORD=other run_split "$SVRUN" image key pair
	expect_status 125
	expect_in "$err" "is there already"
	openssl pkey -in pair.key -passin pass:secret -noout

	SVRUN_KEY_PASSWORD="" run_split "$SVRUN" image key plain
	expect_status 0
	expect_in "$out" "not encrypted"
	grep -q 'BEGIN PRIVATE KEY' plain.key
}

@test "keys that will not do say why" {
	need_root
	cd "$T"
	build_app
	SVRUN_KEY_PASSWORD=secret "$SVRUN" image key pair >/dev/null
	sign_with() { # PASSWORD FILE
		SVRUN_KEY_PASSWORD=$1 run_split "$SVRUN" image sign --key "$2" app
		[ "$status" != 0 ]
	}
	sign_with wrong pair.key
	expect_in "$err" "the password is wrong"
	sign_with secret pair.pub
	expect_in "$err" "is a public key"
	sign_with secret nowhere.key
	expect_in "$err" "nowhere.key"
	openssl genpkey -algorithm ec -pkeyopt ec_paramgen_curve:P-384 -out p384.key 2>/dev/null
	sign_with "" p384.key
	expect_in "$err" "expected an ECDSA key on P-256" "secp384r1"
	openssl genpkey -algorithm ed25519 -out ed.key
	sign_with "" ed.key
	expect_in "$err" "expected an ECDSA key on P-256"
	printf -- '-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nZm9v\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n' >cosign.key
	sign_with "" cosign.key
	expect_in "$err" "cosign's own format" "svrun image key"
	head -c 200 pair.key >cut.key
	sign_with secret cut.key
	run_split "$SVRUN" image verify-signature --key pair.key app
	expect_in "$err" "is a private key"
	run_split "$SVRUN" image verify-signature app
	expect_status 2
	[ ! -e "$SVRUN_ROOT/attached" ]
}

@test "a key of openssl signs" {
	need_root
	build_app
	openssl ecparam -name prime256v1 -genkey -noout -out "$T/sec1.key"
	openssl pkey -in "$T/sec1.key" -pubout -out "$T/sec1.pub"
	sign sec1 app
	verify sec1 app
	expect_status 0
	openssl pkcs8 -topk8 -in "$T/sec1.key" -v2 aes-256-cbc -passout pass:pw -out "$T/pbkdf2.key"
	SVRUN_KEY_PASSWORD=pw sign pbkdf2 app
}

# ---- signatures ----

@test "ours, checked by openssl: the payload under cosign's tag, and the DSSE envelope of the bundle" {
	need_root
	local layer dsse
	build_app
	make_key k
	sign k --as registry.example/team/app:v1 app
	tag_manifest "$APP_DIGEST" >"$T/sig.json"
	layer=$(jq -c '.layers[0]' "$T/sig.json")
	[ "$(jq -r .mediaType <<<"$layer")" = application/vnd.dev.cosign.simplesigning.v1+json ]
	blob "$(jq -r .digest <<<"$layer")" >"$T/payload"
	jq -e --arg d "$APP_DIGEST" '.critical == {identity: {"docker-reference": "registry.example/team/app"},
		image: {"docker-manifest-digest": $d}, type: "cosign container image signature"}' "$T/payload"
	jq -r '.annotations["dev.cosignproject.cosign/signature"]' <<<"$layer" | base64 -d >"$T/der"
	openssl dgst -sha256 -verify "$T/k.pub" -signature "$T/der" "$T/payload"
	# go-containerregistry wants as many DiffIDs as layers
	blob "$(jq -r .config.digest "$T/sig.json")" | jq -e --argjson l "$layer" '.rootfs.diff_ids == [$l.digest]'

	attached "$APP_DIGEST" '.manifests[] | select(.artifactType == "application/vnd.dev.sigstore.bundle.v0.3+json") | .digest' >"$T/bundles"
	[ "$(wc -l <"$T/bundles")" = 1 ]
	blob "$(<"$T/bundles")" >"$T/referrer.json"
	jq -e --arg d "$APP_DIGEST" '.subject.digest == $d and .config.mediaType == "application/vnd.oci.empty.v1+json" and
		.annotations["dev.sigstore.bundle.predicateType"] == "https://sigstore.dev/cosign/sign/v1"' "$T/referrer.json"
	dsse=$(blob "$(jq -r '.layers[0].digest' "$T/referrer.json")" | jq -c .dsseEnvelope)
	jq -r .payload <<<"$dsse" | base64 -d >"$T/statement"
	jq -e --arg h "${APP_DIGEST#sha256:}" '._type == "https://in-toto.io/Statement/v1" and .subject[0].digest.sha256 == $h' "$T/statement"
	printf 'DSSEv1 28 application/vnd.in-toto+json %d %s' "$(stat -c %s "$T/statement")" "$(<"$T/statement")" >"$T/pae"
	jq -r '.signatures[0].sig' <<<"$dsse" | base64 -d >"$T/der"
	openssl dgst -sha256 -verify "$T/k.pub" -signature "$T/der" "$T/pae"
}

@test "signing again replaces, another key adds, and each is found" {
	need_root
	build_app
	make_key a
	make_key b
	make_key c
	sign a app
	sign a app
	sign b app
	[ "$(tag_manifest "$APP_DIGEST" | jq '.layers | length')" = 2 ]
	[ "$(attached "$APP_DIGEST" '.manifests | length')" = 3 ]
	verify a app
	expect_status 0
	expect_in "$out" "tag form" "bundle form"
	verify b app
	expect_status 0
	verify c app
	expect_status 125
	expect_in "$err" "is not signed by the key" "4 signatures" "by another key"
	run_split "$SVRUN" image verify-signature --key "$T/c.pub" --key "$T/b.pub" app
	expect_status 0
	run_split "$SVRUN" image verify --progress none --key "$T/a.pub" app
	expect_status 0
	run_split "$SVRUN" image verify --progress none --key "$T/c.pub" app
	expect_status 125
}

@test "what is attached goes with the image, and not before" {
	need_root
	local n
	build_app '.build.provenance = "slsa-v1" | .build.sbom = ["spdx-2.3"]'
	make_key k
	sign k app
	n=$(find "$SVRUN_ROOT/blobs/sha256" -type f | wc -l)
	"$SVRUN" image gc >/dev/null
	[ "$(find "$SVRUN_ROOT/blobs/sha256" -type f | wc -l)" = "$n" ]
	verify k app
	expect_status 0
	"$SVRUN" image fsck >/dev/null
	[ "$("$SVRUN" image ls -q)" = "$(printf 'app\napp:1')" ]
	"$SVRUN" image rm app app:1
	[ -z "$(find "$SVRUN_ROOT/attached" "$SVRUN_ROOT/bills" "$SVRUN_ROOT/blobs/sha256" -type f)" ] ||
		fail "$(find "$SVRUN_ROOT/attached" "$SVRUN_ROOT/bills" "$SVRUN_ROOT/blobs/sha256" -type f)"
}

# ---- registries ----

@test "a registry without the referrers API: cosign's tag and the tag with the index; others' stay" {
	need_root
	need_program docker-registry
	local hex
	registry_plain
	build_app '.build.provenance = "slsa-v1" | .build.sbom = ["spdx-2.3", "cyclonedx-1.5", "cyclonedx-1.6"]'
	hex=${APP_DIGEST#sha256:}
	make_key a
	make_key b
	sign a app
	push app "$REGISTRY/team/app:v1"
	[ "$(tags team/app)" = "$(printf 'sha256-%s\nsha256-%s.sig\nv1' "$hex" "$hex")" ]
	raw "team/app:sha256-$hex" | jq -r '.manifests[].artifactType' | sort >"$T/types"
	printf '%s\n' application/spdx+json application/vnd.cyclonedx+json application/vnd.cyclonedx+json application/vnd.dev.sigstore.bundle.v0.3+json \
		application/vnd.dev.sigstore.bundle.v0.3+json application/vnd.in-toto+json | diff - "$T/types"
	# never as an entry of the image's own index
	raw "team/app:v1" | jq -e '.layers and (.manifests | not)'
	push --progress plain app "$REGISTRY/team/app:v1"
	expect_in "$err" "up to date"

	# somebody else, who has the image only, adds a signature
	rm -rf "$SVRUN_ROOT/attached"
	sign b app
	push app "$REGISTRY/team/app:v1"
	raw "team/app:sha256-$hex.sig" | jq -e '.layers | length == 2'
	raw "team/app:sha256-$hex" | jq -e '.manifests | length == 7'

	empty_store
	pull "$REGISTRY/team/app:v1"
	expect_status 0
	[ ! -e "$SVRUN_ROOT/attached" ]
	for key in a b; do
		verify "$key" "$REGISTRY/team/app:v1"
		expect_status 0
		expect_in "$out" "tag form" "bundle form"
	done
}

@test "a registry with the referrers API: no tag with an index, and lists in pages" {
	need_root
	need_program docker-registry
	local hex
	registry_plain
	FRONT_LOG=$T/front.log
	front_make() { # PORT
		COMMAND=("$E2E/referrers-front" "$1" "$REGISTRY_PORT" "$FRONT_LOG" 2)
	}
	server_try front front_make
	FRONT=127.0.0.1:$PORT
	build_app '.build.provenance = "slsa-v1" | .build.sbom = ["spdx-2.3", "cyclonedx-1.5"]'
	hex=${APP_DIGEST#sha256:}
	make_key k
	sign k app
	push app "$FRONT/team/app:v1"
	[ "$(tags team/app)" = "$(printf 'sha256-%s.sig\nv1' "$hex")" ]
	push --progress plain app "$FRONT/team/app:v1"
	expect_in "$err" "up to date"
	curl -sS -X DELETE "http://$REGISTRY/v2/team/app/manifests/$(curl -sSI -H 'Accept: application/vnd.oci.image.manifest.v1+json' \
		"http://$REGISTRY/v2/team/app/manifests/sha256-$hex.sig" | tr -d '\r' | sed -n 's/^Docker-Content-Digest: //ip')"

	empty_store
	pull "$FRONT/team/app:v1"
	verify k "$FRONT/team/app:v1"
	expect_status 0
	expect_in "$out" "bundle form"
	[[ $out != *"tag form"* ]]
	grep -q '^GET 200 /v2/team/app/referrers/.*at=4$' "$FRONT_LOG"
}

@test "openssl's, read by us, and what is not a signature of this image" {
	need_root
	need_program docker-registry
	need_program skopeo
	local fault hex
	registry_plain
	build_app
	hex=${APP_DIGEST#sha256:}
	push app "$REGISTRY/team/app:v1"
	openssl ecparam -name prime256v1 -genkey -noout -out "$T/o.key"
	openssl pkey -in "$T/o.key" -pubout -out "$T/o.pub"
	openssl ecparam -name prime256v1 -genkey -noout -out "$T/p.key"
	openssl pkey -in "$T/p.key" -pubout -out "$T/p.pub"
	by_hand() { # [FAULT]
		rm -rf "$T/hand"
		"$E2E/sign-by-hand" "$T/hand" "$APP_DIGEST" "$T/o.key" "$@"
		push_with_skopeo "$T/hand" sig "team/app:sha256-$hex.sig"
		empty_store
		pull "$REGISTRY/team/app:v1"
		verify o "$REGISTRY/team/app:v1"
	}
	by_hand
	expect_status 0
	expect_in "$out" "signed by $T/o.pub (tag form, as by.hand/app)"
	verify p "$REGISTRY/team/app:v1"
	expect_status 125
	expect_in "$err" "found 1 signature: one (tag form) by another key"

	for fault in other swapped type der long empty twice; do
		by_hand "$fault"
		expect_status 125 || fail "$fault"
		expect_in "$err" "is not signed by the key: found 1 signature"
		case $fault in
			other) expect_in "$err" "is over sha256:1111111111111111" ;;
			type) expect_in "$err" "another type" ;;
			empty) expect_in "$err" "no signature in base64" ;;
			twice) expect_in "$err" "not simple signing" ;;
		esac
	done
}

# ---- policies ----

@test "a policy that pull obeys: signed, rejected, by key, by day, by name" {
	need_root
	need_program docker-registry
	registry_plain
	build_app
	make_key good
	make_key old
	push app "$REGISTRY/plain/app:v1"
	sign good --as "$REGISTRY/signed/app" app
	push app "$REGISTRY/signed/app:v1"
	push app "$REGISTRY/other/app:v1"
	rules='{schema: "svrun.policy/1", keys: {good: {file: "good.pub"}, old: {file: "old.pub"}}, default: {action: "reject", reason: "not from here"},
		rules: [{match: [$h + "/signed/*", $h + "/plain/*"], action: "signed", keys: ["good"]}]}'
	policy() { # JQ-FILTER
		site_policy "$(jq -n --arg h "$REGISTRY" "$rules | $1")"
	}
	pulls() { # REF
		empty_store
		pull "$1"
	}
	policy .
	pulls "$REGISTRY/signed/app:v1"
	expect_status 0
	pulls "$REGISTRY/plain/app:v1"
	expect_status 125
	expect_in "$err" "wants it signed by 'good'" "found: no signature" "/rules/0"
	[ -z "$("$SVRUN" image ls -q 2>/dev/null)" ]
	asked=$(registry_requests '/v2/other/app')
	pulls "$REGISTRY/other/app:v1"
	expect_status 125
	expect_in "$err" "the policy rejects it" "/default" "not from here"
	[ "$(registry_requests '/v2/other/app')" = "$asked" ]

	policy '.rules[0].keys = ["old"]'
	pulls "$REGISTRY/signed/app:v1"
	expect_status 125
	expect_in "$err" "wants it signed by 'old'" "by another key"
	policy '.rules[0].keys = ["old", "good"]'
	pulls "$REGISTRY/signed/app:v1"
	expect_status 0
	policy '.rules[0].keys = ["old", "good"] | .rules[0].threshold = 2'
	pulls "$REGISTRY/signed/app:v1"
	expect_status 125
	expect_in "$err" "all of 'old', 'good'" "one by 'good'"
	policy '.keys.good.until = "2020-02-29"'
	pulls "$REGISTRY/signed/app:v1"
	expect_status 125
	expect_in "$err" "one by 'good', which was good until 2020-02-29"
	policy '.keys.good.id = "'"$(printf '1%.0s' {1..64})"'"'
	pulls "$REGISTRY/signed/app:v1"
	expect_status 2
	expect_in "$err" "expected the key with id 1111"
	policy '.rules[0].identity = $h + "/signed/**"'
	pulls "$REGISTRY/signed/app:v1"
	expect_status 0
	policy '.rules[0].identity = $h + "/prod/**"'
	pulls "$REGISTRY/signed/app:v1"
	expect_status 125
	expect_in "$err" "of the image as '$REGISTRY/signed/app'" "expected $REGISTRY/prod/"
	policy '.keys.good.file = "nowhere.pub"'
	pulls "$REGISTRY/signed/app:v1"
	expect_status 2
	expect_in "$err" "nowhere.pub"

	# there before the policy was: it is asked again
	no_policy
	pulls "$REGISTRY/plain/app:v1"
	expect_status 0
	policy .
	pull "$REGISTRY/plain/app:v1"
	expect_status 125
	expect_in "$err" "found: no signature"
}

@test "a pull that is refused leaves no process" {
	need_root
	site_policy '{"schema": "svrun.policy/1", "default": {"action": "reject"}}'
	cat >"$T/pull.py" <<-'PY'
		import ctypes, os, subprocess, sys
		ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # what loses its parent becomes ours
		status = subprocess.run([sys.argv[1], "image", "pull", "none.example/a/b:1"]).returncode
		try:
		    print("left", os.waitpid(-1, 0))
		except ChildProcessError:
		    print("nothing left")
		sys.exit(status)
	PY
	run_split python3 "$T/pull.py" "$SVRUN"
	expect_status 125
	[ "$out" = "nothing left" ] || fail "$out" "$err"
}

@test "a policy that cannot be read lets nothing through, and says where" {
	need_root
	registry_plain
	build_app
	push app "$REGISTRY/team/app:v1"
	refused() { # JSON PART...
		site_policy "$1"
		shift
		run_split "$SVRUN" image pull --progress none "$REGISTRY/team/app:v1"
		expect_status 2
		expect_in "$err" "$@"
		run_split "$SVRUN" run --rm app
		[ "$status" != 0 ]
		expect_in "$err" "$@"
	}
	refused '{' "policy.json.svrun:"
	refused '{"schema": "svrun.policy/1"}' "missing key 'default'"
	refused '{"schema": "svrun.policy/2", "default": {"action": "accept"}}' ":1:12:" "/schema"
	refused '{"schema": "svrun.policy/1", "default": {"action": "acept"}}' "/default/action" "accept, reject or signed"
	refused '{"schema": "svrun.policy/1", "defalt": {}, "default": {"action": "accept"}}' "unknown key; did you mean 'default'?"
	refused '{"schema": "svrun.policy/1", "default": {"action": "signed", "keys": ["x"]}}' "'x' is not one of /keys"
	refused '{"schema": "svrun.policy/1", "default": {"action": "accept", "keys": ["x"]}}' "goes with action signed"
	refused '{"schema": "svrun.policy/1", "keys": {"x": {"file": "x", "until": "tomorrow"}}, "default": {"action": "accept"}}' "/keys/x/until"
	rm "$T/policy.json.svrun"
	run_split "$SVRUN" run --rm app
	expect_status 2
	expect_in "$err" "policy.json.svrun"
}

@test "a policy that run obeys" {
	need_root
	registry_plain
	build_app
	make_key good
	make_key bad
	site_policy '{"schema": "svrun.policy/1", "default": {"action": "accept"}}'
	run_split "$SVRUN" run --rm app
	expect_status 0
	site_policy '{"schema": "svrun.policy/1", "keys": {"good": {"file": "good.pub"}}, "default": {"action": "signed", "keys": ["good"]}}'
	run_split "$SVRUN" run --rm app
	expect_status 125
	expect_in "$err" "wants it signed by 'good'" "found: no signature" "the site's policy does not let it run"
	sign bad app
	run_split "$SVRUN" run --rm app
	expect_status 125
	expect_in "$err" "by another key"
	sign good app
	run_split "$SVRUN" run --rm app
	expect_status 0
	[ -z "$err" ] || expect_in "$err" "the policy lets it run"
	run_split "$SVRUN" run --rm "$APP_DIGEST"
	expect_status 0
	run_split "$SVRUN" image verify-signature --policy app
	expect_status 0

	# what came from a registry is known by that, whatever it is called here
	no_policy
	push app "$REGISTRY/team/app:v1"
	empty_store
	pull "$REGISTRY/team/app:v1"
	"$SVRUN" image tag "$REGISTRY/team/app:v1" mine
	site_policy "$(jq -n --arg h "$REGISTRY" '{schema: "svrun.policy/1", default: {action: "accept"},
		rules: [{match: [$h + "/**"], action: "reject", reason: "for a test"}]}')"
	for name in mine "$REGISTRY/team/app:v1"; do
		run_split "$SVRUN" run --rm --pull never "$name"
		expect_status 125
		expect_in "$err" "the policy rejects it" "for a test"
	done
}

@test "a signature over the index counts for the image in it" {
	need_root
	need_program docker-registry
	registry_plain
	build_app
	make_key k
	# an index of our image, as other tools make them
	jq -cn --arg d "$APP_DIGEST" --argjson n "$(blob "$APP_DIGEST" | wc -c)" '{schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json",
		manifests: [{mediaType: "application/vnd.oci.image.manifest.v1+json", digest: $d, size: $n, platform: {os: "linux", architecture: "amd64"}}]}' |
		tr -d '\n' >"$T/index"
	push app "$REGISTRY/team/app:single"
	curl -sSf -X PUT -H 'Content-Type: application/vnd.oci.image.index.v1+json' --data-binary "@$T/index" "http://$REGISTRY/v2/team/app/manifests/v1"
	"$E2E/sign-by-hand" "$T/hand" "sha256:$(sha256sum "$T/index" | cut -c-64)" "$T/k.key"
	push_with_skopeo "$T/hand" sig "team/app:sha256-$(sha256sum "$T/index" | cut -c-64).sig"
	site_policy '{"schema": "svrun.policy/1", "keys": {"k": {"file": "k.pub"}}, "default": {"action": "signed", "keys": ["k"]}}'
	empty_store
	pull "$REGISTRY/team/app:v1"
	expect_status 0
	"$SVRUN" image gc >/dev/null
	run_split "$SVRUN" run --rm --pull never "$REGISTRY/team/app:v1"
	expect_status 0
	pull "$REGISTRY/team/app:single"
	expect_status 0 # the image is the same
	empty_store
	pull "$REGISTRY/team/app:single"
	expect_status 125
	expect_in "$err" "found: no signature"
	no_policy
	empty_store
	pull "$REGISTRY/team/app:v1"
	verify k "$REGISTRY/team/app:v1"
	expect_status 0
}

# ---- SBOM, provenance, why ----

# An image with packages of Debian, a wheel, packages of npm, a model; needs what the shared store has fetched.
build_full() {
	[ -d "$T/store" ] || new_store cache
	"$E2E/supply-app" "$T/full"
	"$SVRUN" image lock "$T/full" >"$T/full.log" 2>&1 || fail "$(<"$T/full.log")"
	"$SVRUN" image build -q "$T/full" >"$T/full.log" 2>&1 || fail "$(<"$T/full.log")"
}

purls() { # FILE TYPE: NAME VERSION of an SPDX document's packages of that type
	jq -r --arg t "pkg:$2/" '.packages[] | select(any(.externalRefs[]?; .referenceLocator | startswith($t))) | "\(.name) \(.versionInfo)"' "$1" | sort
}

@test "SBOMs name what dpkg, pip and npm in the image report, and nothing else" {
	need_root
	need_program npm
	build_full
	"$SVRUN" image sbom full -o "$T/spdx.json"
	"$SVRUN" image sbom full --format cyclonedx -o "$T/cdx.json"
	"$E2E/check-sbom" "$T/spdx.json" "$T/cdx.json"
	"$SVRUN" image sbom full --format cyclonedx-1.6 -o "$T/cdx6.json"
	"$E2E/check-sbom" "$T/spdx.json" "$T/cdx6.json"
	[ "$(jq .specVersion "$T/cdx6.json")" = '"1.6"' ]

	"$SVRUN" run --rm full dpkg-query -W -f '${Package} ${Version}\n' | sort >"$T/dpkg"
	[ -s "$T/dpkg" ]
	purls "$T/spdx.json" deb | diff "$T/dpkg" -
	# where this python looks; what runs pip from its own wheel would count that one, too
	"$SVRUN" run --rm full python3 -c 'import os, subprocess, sys
paths = [x for p in sys.path if os.path.isdir(p) for x in ("--path", p)]
subprocess.run([sys.executable, "/opt/pip.whl/pip", "list", "--format=json", "--disable-pip-version-check", *paths])' 2>/dev/null |
		jq -r '.[] | "\(.name | ascii_downcase | gsub("[-_.]+"; "-")) \(.version)"' | sort >"$T/pip"
	[ -s "$T/pip" ]
	purls "$T/spdx.json" pypi | diff "$T/pip" -
	mkdir "$T/rootfs"
	"$SVRUN" image export full | tar -x -C "$T/rootfs" --exclude='./dev/*'
	(cd "$T/rootfs/srv/app" && npm ls --all --json 2>/dev/null) |
		jq -r '[.. | .dependencies? // empty | to_entries[] | select(.value.version) | "\(.key) \(.value.version)"] | unique[]' | sort >"$T/npm"
	[ -s "$T/npm" ]
	purls "$T/spdx.json" npm | sort -u | diff "$T/npm" -
	# the two formats agree
	jq -r '.packages[].externalRefs[]?.referenceLocator' "$T/spdx.json" | sort >"$T/purls"
	jq -r '.components[].purl // empty' "$T/cdx.json" | sort | diff "$T/purls" -
	grep -q '^pkg:generic/weights?checksum=sha256:' "$T/purls"
}

@test "the same image, the same SBOM and provenance; every file with its sums and layer" {
	need_root
	build_app '.build.sbom = ["spdx-2.3"]'
	"$SVRUN" image sbom app >"$T/1"
	"$SVRUN" image provenance app >"$T/p1"
	blob "$(blob "$(attached "$APP_DIGEST" '.manifests[] | select(.artifactType == "application/spdx+json") | .digest')" |
		jq -r '.layers[0].digest')" | cmp - "$T/1"
	rm -rf "$SVRUN_ROOT"
	new_store
	cp -r "$T/app" "$T/elsewhere"
	"$SVRUN" image build -q "$T/elsewhere" >/dev/null
	[ "$(image_digest app)" = "$APP_DIGEST" ]
	"$SVRUN" image sbom app | cmp - "$T/1"
	"$SVRUN" image provenance app | cmp - "$T/p1"
	"$SVRUN" image sbom --files app >"$T/files.json"
	"$SVRUN" image sbom --files --format cyclonedx app >"$T/files-cdx.json"
	"$E2E/check-sbom" "$T/files.json" "$T/files-cdx.json"
	jq -e --arg s "$(sha1sum <"$T/app/text" | cut -c-40)" '.files[] | select(.fileName == "./etc/text") | .checksums[0].checksumValue == $s' "$T/files.json"
	jq -e '. as $d | .files[] | select(.fileName == "./etc/text") | .SPDXID as $id | $d.relationships |
		any(.relatedSpdxElement == $id and .relationshipType == "CONTAINS" and (.spdxElementId | startswith("SPDXRef-layer-")))' "$T/files.json"
}

@test "provenance: the manifest, every entry of the lock, signed when the image is" {
	need_root
	local key
	build_app '.build.provenance = "slsa-v1"'
	"$SVRUN" image provenance app >"$T/statement"
	jq -e --arg h "${APP_DIGEST#sha256:}" --slurpfile m "$T/app/manifest.json" --slurpfile l "$T/app/lock.json" '
		._type == "https://in-toto.io/Statement/v1" and .predicateType == "https://slsa.dev/provenance/v1" and
		.subject == [{name: "app:1", digest: {sha256: $h}}] and
		.predicate.buildDefinition.externalParameters.manifest.files == $m[0].files and
		([.predicate.buildDefinition.resolvedDependencies[].digest.sha256] | sort) == ([$l[0].files[].sha256] | sort) and
		.predicate.runDetails.builder.id' "$T/statement"
	make_key k
	sign k app
	"$SVRUN" image provenance app >"$T/dsse"
	[ "$(jq -r .payloadType "$T/dsse")" = application/vnd.in-toto+json ]
	jq -r .payload "$T/dsse" | base64 -d >"$T/payload"
	jq -S . "$T/payload" | diff - <(jq -S . "$T/statement")
	printf 'DSSEv1 28 application/vnd.in-toto+json %d %s' "$(stat -c %s "$T/payload")" "$(<"$T/payload")" >"$T/pae"
	jq -r '.signatures[0].sig' "$T/dsse" | base64 -d >"$T/der"
	openssl dgst -sha256 -verify "$T/k.pub" -signature "$T/der" "$T/pae"
	"$SVRUN" image provenance --statement app | cmp - "$T/statement"
}

@test "provenance and SBOM of everything: all of the lock, in both" {
	need_root
	build_full
	"$SVRUN" image provenance full >"$T/statement"
	jq -r '.predicate.buildDefinition.resolvedDependencies[].digest | .sha256 // .sha512' "$T/statement" | sort -u >"$T/named"
	jq -r '.apt.packages[].sha256, .python.wheels[]?.sha256, .files[]?.sha256, (.models[]?.files[]?.sha256)' "$T/full/lock.json" | sort -u >"$T/locked"
	[ "$(wc -l <"$T/locked")" -gt 90 ]
	[ -z "$(comm -13 "$T/named" "$T/locked")" ] || fail "$(comm -13 "$T/named" "$T/locked")"
}

@test "why: from a file through its layer to the manifest's line" {
	need_root
	local line
	build_full
	why() {
		run_split "$SVRUN" image why full "$@"
		expect_status 0
	}
	line=$(grep -n '"python3-minimal"' "$T/full/manifest.json" | cut -d: -f1)
	why /usr/bin/python3
	expect_in "$out" "brought by  deb python3-minimal" "from        mirror:debian" "in layer" "asked for   full/manifest.json:$line:"
	local same=$out
	run_split "$SVRUN" image why "$T/full" /usr/bin/python3
	[ "$out" = "$same" ] || fail "$out$err"
	why /usr/lib/python3.11/abc.py
	expect_in "$out" "deb libpython3.11-minimal" "needed by   deb " "asked for   full/manifest.json:"
	why /bin/sh
	expect_in "$out" "/usr/bin/dash" "deb dash"
	why /etc/motto
	expect_in "$out" "brought by  the manifest" "/files/"
	why srv/app/node_modules/ms/package.json
	expect_in "$out" "npm ms" "needed by   npm debug" "/node"
	why /var/lib/dpkg/status
	expect_in "$out" "svrun, from what is installed"
	why --format json /srv/weights/w.bin
	jq -e '.input.kind == "model" and .manifest.pointer == "/models/0" and (.layer.digest | startswith("sha256:"))' <<<"$out"
	run_split "$SVRUN" image why full /no/such
	expect_status 125
	expect_in "$err" "there is no /no/such in the image"
}

@test "two apps that are built to the same image have a bill each" {
	need_root
	build_app '.title = "the same" | .build.sbom = ["spdx-2.3"]'
	cp "$SVRUN_ROOT/attached/${APP_DIGEST#sha256:}" "$T/attached"
	mkdir "$T/twin"
	cp "$T/app/"* "$T/twin"
	jq --indent 7 '.name = "twin"' "$T/app/manifest.json" >"$T/twin/manifest.json"
	lock_and_build "$T/twin" >/dev/null
	[ "$(image_digest twin)" = "$APP_DIGEST" ]
	cmp "$T/attached" "$SVRUN_ROOT/attached/${APP_DIGEST#sha256:}"
	tells() { # IMAGE PART
		run_split "$SVRUN" image why "$1" /etc/text
		expect_status 0
		expect_in "$out" "$2" || return 1
	}
	tells app app/manifest.json
	tells app:1 app/manifest.json
	tells twin twin/manifest.json
	tells "$APP_DIGEST" app/manifest.json
	"$SVRUN" image build -q --no-cache "$T/app" >/dev/null
	"$SVRUN" image build -q --no-cache "$T/twin" >/dev/null
	tells "$APP_DIGEST" app/manifest.json
	tells app app/manifest.json
	[ "$("$SVRUN" image sbom twin | jq -r .name)" != "$("$SVRUN" image sbom app | jq -r .name)" ]
}

@test "an image that was built elsewhere has no bill, but may bring an SBOM" {
	need_root
	need_program docker-registry
	registry_plain
	build_app
	push app "$REGISTRY/team/app:v1"
	empty_store
	pull "$REGISTRY/team/app:v1"
	for verb in sbom provenance; do
		run_split "$SVRUN" image "$verb" "$REGISTRY/team/app:v1"
		expect_status 125
		expect_in "$err" "no bill of materials" "only a build knows"
	done
	run_split "$SVRUN" image sbom --format xml "$REGISTRY/team/app:v1"
	expect_status 2
	expect_in "$err" "expected spdx or cyclonedx"
}

@test "a bill that is not that of the image is refused by all who read it" {
	need_root
	build_app
	local bill=$SVRUN_ROOT/bills/${APP_DIGEST#sha256:}
	zstd -qdc "$bill" >"$T/plain"
	forged() { # OLD NEW TEXT: the last OLD is NEW, of as many bytes
		python3 - "$T/plain" "$T/forged" "$1" "$2" <<-'PY'
			import sys
			plain = open(sys.argv[1], "rb").read()
			old, new = (a.encode() for a in sys.argv[3:])
			head, tail = plain.rsplit(old, 1)
			assert len(old) == len(new)
			open(sys.argv[2], "wb").write(head + new + tail)
		PY
		zstd -qf "$T/forged" -o "$bill"
		for command in "sbom app" "provenance app" "why app /etc/text" "scan --db $T app"; do
			# shellcheck disable=SC2086
			run_split "$SVRUN" image $command
			expect_status 125
			expect_in "$err" "$3"
		done
	}
	forged etc/text etc/tixt "the bill is not that of the image: it lacks /etc/text"
	forged '"diffId":"sha256:' '"diffid":"sha256:' "missing key 'diffId'"
	forged '\"version\":\"1\"' '\"version\":\"2\"' "the manifest in it has another digest"
	diff_id=$(jq -r '.layers[0].diffId // empty' <<<"$(head -n 2 "$T/plain" | tail -n 1 | tr '\0' '\n' | head -n 1 | sed 's/}[0-9][^}]*$/}/')")
	forged "$diff_id" "sha256:$(printf '1%.0s' {1..64})" "the bill is not that of the image: other layers"
	zstd -qf "$T/plain" -o "$bill"
	"$SVRUN" image why app /etc/text >/dev/null

	# another image's
	make_app other '.version = "2" | .files += [{dest: "/etc/more", from: "text"}]'
	lock_and_build "$T/other" >/dev/null
	cp "$bill" "$SVRUN_ROOT/bills/$(image_digest other | cut -d: -f2)"
	run_split "$SVRUN" image sbom other
	expect_status 125
	expect_in "$err" "the bill is not that of the image" "svrun image build --no-cache"
	"$SVRUN" image build -q --no-cache "$T/other" >/dev/null
	"$SVRUN" image sbom other >/dev/null
}
