#!/usr/bin/env bats
# The servers of registry.bash are real: skopeo and curl go through each of them.

load helpers
load registry

need_servers() {
	need_program docker-registry
	need_program skopeo
	make_foreign_image "$T/image" ref --files 20 --big 300000
}

# Out and in again, every byte the same.
round_trip() { # [OPTION for both, of skopeo...]
	local options=("$@")
	push_with_skopeo "$T/image" ref some/image:v1 --dest-creds "${CREDS-}" "${options[@]/#/--dest-}"
	pull_with_skopeo some/image:v1 "$T/back" ref --src-creds "${CREDS-}" "${options[@]/#/--src-}"
	diff -r "$T/image/blobs" "$T/back/blobs"
}

largest_blob() {
	local file
	file=$(find "$T/image/blobs/sha256" -type f -printf '%s %f\n' | sort -n | tail -n 1)
	BLOB=${file#* } BLOB_SIZE=${file% *}
	BLOB_FILE=$T/image/blobs/sha256/$BLOB
}

blob_url() {
	echo "http://$1/v2/some/image/blobs/sha256:$BLOB"
}

@test "a plain registry takes and gives" {
	need_servers
	registry_plain
	push_with_skopeo "$T/image" ref some/image:v1
	pull_with_skopeo some/image:v1 "$T/back" ref
	diff -r "$T/image/blobs" "$T/back/blobs"
	[ "$(registry_requests 'PUT /v2/some/image/manifests/v1')" = 1 ]
}

@test "two registries, and a cache of one" {
	need_servers
	registry_plain
	push_with_skopeo "$T/image" ref some/image:v1
	registry_cache
	pull_with_skopeo some/image:v1 "$T/back" ref
	diff -r "$T/image/blobs" "$T/back/blobs"
}

@test "skopeo makes zstd and schema 2 of it" {
	need_servers
	registry_plain
	push_with_skopeo "$T/image" ref some/image:zstd --dest-compress-format zstd
	push_with_skopeo "$T/image" ref some/image:v2s2 --format v2s2
	skopeo_ok inspect --raw --tls-verify=false "docker://$REGISTRY/some/image:v2s2" |
		jq -e '.mediaType == "application/vnd.docker.distribution.manifest.v2+json"'
	skopeo_ok inspect --raw --tls-verify=false "docker://$REGISTRY/some/image:zstd" |
		jq -e '[.layers[].mediaType] | all(endswith("+zstd"))'
}

@test "TLS of a private CA" {
	need_servers
	registry_tls
	mkdir "$T/certs"
	cp "$PKI/ca.crt" "$T/certs"
	skopeo_ok copy -q --dest-cert-dir "$T/certs" "oci:$T/image:ref" "docker://$REGISTRY/some/image:v1"
	run curl -sS "https://$REGISTRY/v2/"
	expect_status 60
	[ "$(curl -sS --cacert "$PKI/ca.crt" "https://localhost:$REGISTRY_PORT/v2/")" = "{}" ]
}

@test "TLS for clients with a certificate" {
	need_servers
	registry_mtls
	mkdir "$T/certs"
	cp "$PKI/ca.crt" "$T/certs"
	run skopeo_ok copy -q --dest-cert-dir "$T/certs" "oci:$T/image:ref" "docker://$REGISTRY/some/image:v1"
	[ "$status" != 0 ]
	cp "$PKI/client.crt" "$T/certs/client.cert"
	cp "$PKI/client.key" "$T/certs"
	skopeo_ok copy -q --dest-cert-dir "$T/certs" "oci:$T/image:ref" "docker://$REGISTRY/some/image:v1"
}

@test "Basic with htpasswd" {
	need_servers
	registry_htpasswd
	run push_with_skopeo "$T/image" ref some/image:v1
	[ "$status" != 0 ]
	for CREDS in "$REGISTRY_USER:wrong" "$REGISTRY_USER:$REGISTRY_PASSWORD"; do
		run push_with_skopeo "$T/image" ref some/image:v1 --dest-creds "$CREDS"
	done
	expect_status 0
	[ "$(curl -s -o /dev/null -w '%{http_code}' "http://$REGISTRY/v2/")" = 401 ]
}

@test "Bearer: names and passwords, less than asked, refresh tokens, tokens that end" {
	need_servers
	registry_token --anonymous-pull --expires 300 --refresh known:anna
	run push_with_skopeo "$T/image" ref some/image:v1
	[ "$status" != 0 ]
	push_with_skopeo "$T/image" ref some/image:v1 --dest-creds "$REGISTRY_USER:$REGISTRY_PASSWORD"
	pull_with_skopeo some/image:v1 "$T/back" ref
	diff -r "$T/image/blobs" "$T/back/blobs"
	[ "$(token_requests 'anna repository:some/image:pull,push')" -gt 0 ]

	token=$(curl -sS -d grant_type=refresh_token -d refresh_token=known -d service=registry \
		-d scope=repository:some/image:pull "http://$TOKENS/token" | jq -er .access_token)
	curl -sSf -H "Authorization: Bearer $token" "http://$REGISTRY/v2/some/image/tags/list"
	run curl -sSf -d grant_type=refresh_token -d refresh_token=unknown "http://$TOKENS/token"
	expect_status 22
	[ "$(token_requests '^POST')" = 2 ]
}

@test "Bearer: the registry refuses a token when it has ended" {
	need_servers
	status_of() { # a request with a new token
		local token
		token=$(curl -sS "http://$TOKENS/token?service=registry&scope=repository:some/image:pull" | jq -er .token)
		curl -s -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $token" \
			"http://$REGISTRY/v2/some/image/tags/list"
	}
	registry_token --anonymous-pull --life 60
	[ "$(status_of)" = 404 ]
	registry_token --anonymous-pull --life -1
	[ "$(status_of)" = 401 ]
}

@test "nginx: ranges ignored, too many requests, signed redirects to another host that end" {
	need_servers
	registry_plain
	push_with_skopeo "$T/image" ref some/image:v1
	largest_blob

	[ "$(curl -sS -r 5-9 "$(blob_url "$REGISTRY")" | wc -c)" = 5 ]
	front_no_range
	[ "$(curl -sS -r 5-9 -w '%{http_code}' -o "$T/got" "$(blob_url "$FRONT")")" = 200 ]
	cmp "$T/got" "$BLOB_FILE"

	front_busy 429 1r/m 1
	for _ in 1 2 3 4; do curl -sS -o /dev/null -D - "$(blob_url "$FRONT")"; done >"$T/heads"
	grep -q '^HTTP/1.1 200' "$T/heads"
	grep -q '^HTTP/1.1 429' "$T/heads"
	grep -qi '^Retry-After: 1' "$T/heads"

	front_expiring 60
	curl -sSfL -r 5-9 -o "$T/got" "$(blob_url "$FRONT")"
	cmp "$T/got" <(tail -c +6 "$BLOB_FILE" | head -c 5)
	run curl -sS -L -o /dev/null -w '%{http_code}' -H "Authorization: Basic x" --location-trusted "$(blob_url "$FRONT")"
	[ "$output" = 400 ]
	expect_in "$(curl -sS -o /dev/null -w '%{redirect_url}' "$(blob_url "$FRONT")")" "http://$BLOBS/"
	front_expiring -1
	[ "$(curl -sSL -o /dev/null -w '%{http_code}' "$(blob_url "$FRONT")")" = 403 ]
}

# One request through the proxy: curl's exit status, and its body in $T/got.
through() { # FAULT [OPTION...]
	faults "$1"
	shift
	run curl -sS --max-time 3 -o "$T/got" "$@" "$(blob_url "$FRONT")"
}

@test "the proxy breaks each thing as it says, and only so often" {
	need_servers
	registry_plain
	push_with_skopeo "$T/image" ref some/image:v1
	largest_blob
	front_faults "# nothing"
	through "# nothing"
	expect_status 0
	cmp "$T/got" "$BLOB_FILE"
	through "always GET blobs drop 1000"
	expect_status 56
	through "always GET blobs cut 1000"
	expect_status 18
	[ "$(stat -c %s "$T/got")" = 1000 ]
	through "always GET blobs longer 7"
	expect_status 18
	through "always GET blobs shorter 7"
	expect_status 0
	[ "$(stat -c %s "$T/got")" = $((BLOB_SIZE - 7)) ]
	through "always GET blobs flip 1000"
	expect_status 0
	[ "$(cmp -l "$T/got" "$BLOB_FILE" | wc -l)" = 1 ]
	through "always GET blobs chunked"
	expect_status 0
	cmp "$T/got" "$BLOB_FILE"
	for fault in mute "hang 1000" "slow 1"; do
		through "always GET blobs $fault" --max-time 1
		expect_status 28
	done
	faults "always GET blobs endless"
	[ "$(curl -sS "$(blob_url "$FRONT")" 2>/dev/null | head -c 1000000 | wc -c)" = 1000000 ]
	through "always GET blobs reset"
	expect_status 56
	through "always GET blobs no-range" -r 5-9
	cmp "$T/got" "$BLOB_FILE"
	through "always GET blobs range 1" -r 5-9 -D "$T/head"
	grep -q "^Content-Range: bytes 6-10/$BLOB_SIZE" "$T/head"
	through "always GET blobs header Content-Type what/ever" -D "$T/head"
	grep -q "^Content-Type: what/ever" "$T/head"
	echo other >"$T/other"
	through "always GET blobs body $T/other"
	cmp "$T/got" "$T/other"
	through "always GET blobs status 503 9" -D "$T/head"
	grep -q "^Retry-After: 9" "$T/head"
	through "2 GET blobs status 500" --fail --retry 3 --retry-delay 1 --max-time 10
	expect_status 0
	[ "$(front_requests '^GET status')" = 3 ]
}

@test "no server outlives its test" {
	need_servers
	registry_token
	front_faults
	front_no_range
	pids=("${SERVERS[@]}")
	[ ${#pids[@]} = 4 ]
	servers_stop
	for pid in "${pids[@]}"; do
		[ ! -d "/proc/$pid" ]
	done
}
