#!/usr/bin/env bats
# Signatures without a key of one's own, checked offline: certificate, authority, transparency log. openssl is
# all three (keyless-by-hand).

load helpers
load registry

setup_keyless() {
	need_root
	[ -d "$T/store" ] || new_store
	make_app app
	lock_and_build "$T/app" >"$T/app.log" 2>&1 || fail "$(<"$T/app.log")"
	APP_DIGEST=$(image_digest app)
	mkdir "$T/pki"
	"$E2E/keyless-by-hand" "$T/pki" setup
	WHO='{issuer: "https://issuer.example", subject: "a@b.example"}'
	site "$WHO"
}

# The site's policy wants this identity; roots are ours.
site() { # JQ of the identity [JQ-FILTER of the policy [of the configuration]]
	export SVRUN_CONFIG=$T/config.json
	jq -n "{schema: \"svrun.policy/1\", identities: {ci: $1}, default: {action: \"signed\", identities: [\"ci\"]}} | ${2:-.}" \
		>"$T/policy.json"
	jq -n --arg t "$T" --arg h "${REGISTRY:-none.example}" "{policy: (\$t + \"/policy.json\"), registries: {(\$h): {\"plain-http\": true}},
		roots: {ours: {certificates: (\$t + \"/pki/root.pem\"), log: (\$t + \"/pki/log.pub\")}}} | ${3:-.}" >"$SVRUN_CONFIG"
}

# A signature of the app's image, made with these options, as if it had been pulled.
signed() { # [OPTION=VALUE]...
	local form=tag o
	for o in "$@"; do
		[[ $o != form=* ]] || form=${o#form=}
	done
	rm -rf "$T/hand"
	"$E2E/keyless-by-hand" "$T/pki" sign "$T/hand" "$APP_DIGEST" "$@"
	cp "$T"/hand/blobs/sha256/* "$SVRUN_ROOT/blobs/sha256/"
	mkdir -p "$SVRUN_ROOT/attached"
	jq --arg tag "sha256-${APP_DIGEST#sha256:}.sig" --arg form "$form" '.mediaType = "application/vnd.oci.image.index.v1+json" |
		.manifests[0] |= if $form == "tag" then .annotations = {"org.opencontainers.image.ref.name": $tag}
		else .artifactType = "application/vnd.dev.sigstore.bundle.v0.3+json" | del(.annotations) end' \
		"$T/hand/index.json" >"$SVRUN_ROOT/attached/${APP_DIGEST#sha256:}"
}

check() {
	run_split "$SVRUN" image verify-signature --policy app
}

taken() { # [OPTION=VALUE]...
	signed "$@"
	check
	expect_status 0
}

refused() { # TEXT [OPTION=VALUE]...
	local text=$1
	shift
	signed "$@"
	check
	expect_status 125
	expect_in "$err" "$text" "wants it signed by 'ci'"
}

@test "a signature by a certificate that an authority made, and that a log saw in time" {
	setup_keyless
	taken
	expect_in "$out" "the policy lets it run"
	taken form=bundle
	taken fault=old-issuer # both extensions, and they agree
	site '{issuer: "https://issuer.example", subject: "https://forge.example/team/**", root: "ours"}'
	taken subject=URI:https://forge.example/team/app/build.yml@refs/tags/v1
	refused "its certificate is for 'https://forge.example/other', expected 'https://forge.example/team/**'" \
		subject=URI:https://forge.example/other
	# an authority in between may stand among the site's own certificates
	cat "$T/pki/between.pem" "$T/pki/root.pem" >"$T/both.pem"
	site "$WHO" . '.roots.ours.certificates = $t + "/both.pem"'
	taken chain=no
	run_split "$SVRUN" run --rm --pull never app
	expect_status 0
}

@test "each thing that may be wrong with it is refused by name" {
	setup_keyless
	refused "its certificate is not by root 'ours'" ca=other
	refused "its certificate is not by root 'ours'" chain=no
	refused "its certificate is for 'x@b.example', expected 'a@b.example'" subject=email:x@b.example
	refused "but not by the word of issuer 'https://issuer.example'" issuer=https://evil.example
	refused "but not by the word of issuer 'https://issuer.example'" fault=two-issuers
	refused "not for exactly one e-mail address or URI" fault=twice
	refused "no signed entry of a transparency log" fault=nolog
	refused "was not valid when the log saw it" at=200000
	refused "was not valid when the log saw it" at=-200000
	refused "its log entry is over another digest" fault=body
	refused "its log entry is of another certificate" fault=cert
	refused "its log entry is of another certificate" fault=entry-cert
	refused "its log entry is not signed by the log's key" fault=time
	refused "its log entry is not signed by the log's key" fault=set
	refused "its log entry is of another log" log=otherlog
	refused "it is not by its certificate's key over these bytes" fault=signature
	refused "is not for signing code" fault=use
	refused "is that of an authority" fault=authority
	refused "its log entry is over another digest" form=bundle fault=body
	refused "no signed entry of a transparency log" form=bundle fault=nolog
	refused "its certificate is not by root 'ours'" form=bundle ca=other
	# of another image
	"$E2E/keyless-by-hand" "$T/pki" sign "$T/other" "sha256:$(printf '1%.0s' {1..64})"
	cp "$T"/other/blobs/sha256/* "$SVRUN_ROOT/blobs/sha256/"
	signed
	jq --slurpfile o "$T/other/index.json" '.manifests[0] |= (. + ($o[0].manifests[0] | {digest, size}))' \
		"$SVRUN_ROOT/attached/${APP_DIGEST#sha256:}" >"$T/list"
	cp "$T/list" "$SVRUN_ROOT/attached/${APP_DIGEST#sha256:}"
	check
	expect_status 125
	expect_in "$err" "is over sha256:1111"
}

@test "what the site says of roots and identities is checked" {
	setup_keyless
	signed
	wrong() { # TEXT IDENTITY POLICY CONFIG
		site "${@:2}"
		check
		expect_status 2
		expect_in "$err" "$1"
	}
	wrong "has no root 'theirs'" '{issuer: "i", subject: "s", root: "theirs"}' . .
	wrong "has no roots" "$WHO" . 'del(.roots)'
	wrong "has 2 roots: which?" "$WHO" . '.roots.more = .roots.ours'
	wrong "nowhere.pem" "$WHO" . '.roots.ours.certificates = "/nowhere.pem"'
	wrong "key 'log': expected an absolute path" "$WHO" . '.roots.ours.log = "log.pub"'
	wrong "expected certificates in PEM" "$WHO" . '.roots.ours.certificates = $t + "/pki/log.pub"'
	wrong "missing key 'issuer' or 'subject'" '{issuer: "i"}' . .
	wrong "'gone' is not one of /identities" "$WHO" '.default.identities = ["gone"]' .
	wrong "the same one twice" "$WHO" '.default.identities = ["ci", "ci"]' .
	wrong "subjects are no patterns" '{issuer: "i", subject: "*@b.example"}' \
		'.identities.b = {issuer: "i", subject: "c"} | .default.identities = ["ci", "b"] | .default.threshold = 2' .
}

@test "keys and identities count together" {
	setup_keyless
	SVRUN_KEY_PASSWORD="" "$SVRUN" image key "$T/k" >/dev/null
	site "$WHO" '.keys.k = {file: "k.pub"} | .default += {keys: ["k"], threshold: 2}'
	signed
	check
	expect_status 125
	expect_in "$err" "wants it signed by all of 'k', 'ci'" "one by 'ci'"
	"$SVRUN" image sign --key "$T/k.key" app >/dev/null # as bundle beside; the tag form is replaced
	signed form=bundle
	SVRUN_KEY_PASSWORD="" "$SVRUN" image sign --key "$T/k.key" app >/dev/null
	check
	expect_status 0
}

@test "pull, and a base image that must be signed so" {
	setup_keyless
	registry_plain
	site "$WHO"
	signed
	env -u SVRUN_CONFIG "$SVRUN" image push --plain-http --progress none app "$REGISTRY/team/app:v1"
	rm -rf "${SVRUN_ROOT:?}"/*
	echo '{"imageLayoutVersion": "1.0.0"}' >"$SVRUN_ROOT/oci-layout"
	run_split "$SVRUN" image pull "$REGISTRY/team/app:v1"
	expect_status 0
	site '{issuer: "https://issuer.example", subject: "c@d.example"}'
	run_split "$SVRUN" image verify-signature --policy "$REGISTRY/team/app:v1"
	expect_status 125

	site "$WHO" '.default = {action: "accept"}'
	mkdir "$T/child"
	child() { # IDENTITY
		jq -n --arg r "$REGISTRY/team/app:v1" --arg d "$APP_DIGEST" "{schema: \"svrun.image/1\", name: \"child\", version: \"1\",
			base: {type: \"oci\", ref: \$r, digest: \$d, verify: {identity: $1}}}" >"$T/child/manifest.json"
		run_split "$SVRUN" image lock "$T/child"
	}
	child '{issuer: "https://issuer.example", subject: "c@d.example"}'
	expect_status 125
	expect_in "$err" "/base/verify/identity" "is not signed by 'c@d.example'" "expected 'c@d.example'"
	child "$WHO"
	expect_status 0
	"$SVRUN" image build -q "$T/child"
	run_split "$SVRUN" image build --format json "$T/child"
	jq -e .cached "$T/out"

	# what is there already is asked again: the authority is no longer trusted
	site "$WHO" '.default = {action: "accept"}' '.roots.ours.certificates = $t + "/pki/other.pem"'
	run_split "$SVRUN" image build --format json "$T/child"
	expect_status 125
	expect_in "$err" "/base/verify/identity" "its certificate is not by root 'ours'"
	# nor the policy's word
	site "$WHO" '.default = {action: "reject", reason: "over"}'
	run_split "$SVRUN" image build --format json "$T/child"
	expect_status 125
	expect_in "$err" "the policy rejects it" "over"
}
