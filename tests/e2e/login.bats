#!/usr/bin/env bats
# svrun image login, logout: real registries, docker's and podman's files, helpers, a terminal.

load helpers
load registry

# Nothing of the host's own: HOME, files and helpers are the test's.
own_home() {
	export HOME=$T/home PATH=$T/bin:$PATH
	mkdir -p "$HOME" "$T/bin"
	unset REGISTRY_AUTH_FILE DOCKER_CONFIG XDG_RUNTIME_DIR XDG_CONFIG_HOME
	export XDG_RUNTIME_DIR=$T/run SVRUN_CONFIG=$T/config.json
	echo '{}' >"$SVRUN_CONFIG"
	CONFIG=$HOME/.docker/config.json
}

login() { # PASSWORD [OPTION...]
	printf '%s\n' "$1" >"$T/password"
	shift
	status=0
	"$SVRUN" image login "$@" --password-stdin <"$T/password" >"$T/out" 2>"$T/err" || status=$?
	out=$(<"$T/out")
	err=$(<"$T/err")
}

# At a terminal: the answers are typed when the questions have come. $out is what the screen showed.
login_at_terminal() { # ANSWERS OPTION...
	local answers=$1
	shift
	status=0
	python3 - "$answers" "$SVRUN" image login "$@" >"$T/out" <<'PYTHON' || status=$?
import os, pty, re, select, sys
answers, argv = sys.argv[1].encode().decode("unicode_escape").encode("latin1").split(b"|"), sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    os.execv(argv[0], argv)
seen = b""
while True:
    try:
        part = os.read(fd, 4096)
    except OSError:
        part = b""
    if not part:
        break
    seen += part
    if answers and re.search(rb"(user|password): $", seen):
        os.write(fd, answers.pop(0))
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON
	out=$(tr -d '\r' <"$T/out")
}

@test "login tries the password and keeps it where docker and skopeo find it" {
	need_program skopeo
	own_home
	registry_htpasswd
	login "$REGISTRY_PASSWORD" "$REGISTRY" -u "$REGISTRY_USER" --plain-http
	expect_status 0
	[ "$out" = "$REGISTRY: logged in as anna, kept in $CONFIG" ] || fail "$out"
	[ "$(stat -c %a "$CONFIG")" = 600 ]
	[ "$(jq -r --arg h "$REGISTRY" '.auths[$h].auth' "$CONFIG" | base64 -d)" = "$REGISTRY_USER:$REGISTRY_PASSWORD" ]
	make_foreign_image "$T/image" ref --files 3
	REGISTRY_AUTH_FILE=$CONFIG push_with_skopeo "$T/image" ref app:1
	run_split "$SVRUN" image logout "$REGISTRY"
	expect_status 0
	[ "$out" = "$REGISTRY: forgotten in $CONFIG" ] || fail "$out"
	[ "$(jq -c . "$CONFIG")" = '{"auths":{}}' ]
	run_split "$SVRUN" image logout "$REGISTRY"
	expect_status 125
	[ "$err" = "svrun: no credentials for $REGISTRY" ] || fail "$err"
}

@test "a wrong password is not kept" {
	own_home
	registry_htpasswd
	login wrong "$REGISTRY" -u "$REGISTRY_USER" --plain-http
	expect_status 125
	expect_in "$err" "login to $REGISTRY" "hint: check the user's name and password"
	[ ! -e "$CONFIG" ]
	[[ $out$err != *wrong* ]]
}

@test "what skopeo logged in with is found, and forgotten" {
	need_program skopeo
	own_home
	registry_htpasswd
	mkdir -p "$XDG_RUNTIME_DIR"
	skopeo login --tls-verify=false -u "$REGISTRY_USER" --password-stdin "$REGISTRY" <<<"$REGISTRY_PASSWORD"
	[ -e "$XDG_RUNTIME_DIR/containers/auth.json" ]
	run_split "$SVRUN" image logout "$REGISTRY"
	expect_status 0
	[ "$out" = "$REGISTRY: forgotten in $XDG_RUNTIME_DIR/containers/auth.json" ] || fail "$out"
	run skopeo login --get-login "$REGISTRY"
	[ "$status" != 0 ]
}

@test "login through a token server" {
	own_home
	registry_token
	login "$REGISTRY_PASSWORD" "$REGISTRY" -u "$REGISTRY_USER" --plain-http
	expect_status 0
	login wrong "$REGISTRY" -u "$REGISTRY_USER" --plain-http
	expect_status 125
	expect_in "$err" "check the user's name and password"
	[ "$(jq -r --arg h "$REGISTRY" '.auths[$h].auth' "$CONFIG" | base64 -d)" = "$REGISTRY_USER:$REGISTRY_PASSWORD" ]
}

@test "login over TLS wants the CA, or --insecure" {
	own_home
	registry_tls
	login any "$REGISTRY" -u anna
	expect_status 125
	expect_in "$err" "certificate" "hint: put the certificate authority into"
	[ ! -e "$CONFIG" ]
	jq -n --arg h "$REGISTRY" --arg ca "$PKI/ca.crt" '{registries: {($h): {ca: $ca}}}' >"$SVRUN_CONFIG"
	login any "$REGISTRY" -u anna
	expect_status 0
	echo '{}' >"$SVRUN_CONFIG"
	login any "$REGISTRY" -u anna --insecure
	expect_status 0
}

@test "certificates in certs.d are used" {
	need_root
	[ -d /etc/containers ] || skip "needs /etc/containers"
	own_home
	registry_mtls
	local dir=$T/containers/certs.d/$REGISTRY
	mkdir -p "$dir"
	cp "$PKI/ca.crt" "$dir/ca.crt"
	cp "$PKI/client.crt" "$dir/client.cert"
	cp "$PKI/client.key" "$dir/client.key"
	echo any >"$T/password"
	# /etc/containers is another one for this command only
	run unshare -m sh -c 'mount --bind "$1" /etc/containers && shift && exec "$@" <"$0"' "$T/password" \
		"$T/containers" "$SVRUN" image login "$REGISTRY" -u anna --password-stdin
	expect_status 0
	rm "$dir/client.key"
	run unshare -m sh -c 'mount --bind "$1" /etc/containers && shift && exec "$@" <"$0"' "$T/password" \
		"$T/containers" "$SVRUN" image login "$REGISTRY" -u anna --password-stdin
	expect_status 2
	expect_in "$output" "certificates of $REGISTRY: /etc/containers/certs.d/$REGISTRY: client.cert without its"
}

@test "a registry that wants a client certificate gets it" {
	own_home
	registry_mtls
	jq -n --arg h "$REGISTRY" --arg d "$PKI" '{registries: {($h): {ca: "\($d)/ca.crt"}}}' >"$SVRUN_CONFIG"
	login any "$REGISTRY" -u anna
	expect_status 125
	jq -n --arg h "$REGISTRY" --arg d "$PKI" '{registries: {($h):
		{ca: "\($d)/ca.crt", cert: "\($d)/client.crt", key: "\($d)/client.key"}}}' >"$SVRUN_CONFIG"
	login any "$REGISTRY" -u anna
	expect_status 0
}

@test "plain HTTP of the configuration needs no option" {
	own_home
	registry_htpasswd
	login "$REGISTRY_PASSWORD" "$REGISTRY" -u "$REGISTRY_USER"
	expect_status 125
	jq -n --arg h "$REGISTRY" '{registries: {($h): {"plain-http": true}}}' >"$SVRUN_CONFIG"
	login "$REGISTRY_PASSWORD" "$REGISTRY" -u "$REGISTRY_USER"
	expect_status 0
}

@test "a helper keeps the secret instead of the file" {
	own_home
	registry_htpasswd
	cat >"$T/bin/docker-credential-test" <<-'SH'
		#!/bin/sh
		read -r in
		case $1 in
		store) printf %s "$in" >"$HOME/kept" ;;
		get) cat "$HOME/kept" 2>/dev/null || { echo credentials not found in native keychain; exit 1; } ;;
		erase) rm "$HOME/kept" ;;
		esac
	SH
	chmod +x "$T/bin/docker-credential-test"
	mkdir -p "$HOME/.docker"
	echo '{"credsStore": "test", "psFormat": "x"}' >"$CONFIG"
	login "$REGISTRY_PASSWORD" "$REGISTRY" -u "$REGISTRY_USER" --plain-http
	expect_status 0
	[ "$out" = "$REGISTRY: logged in as anna, kept in docker-credential-test" ] || fail "$out"
	jq -e --arg h "$REGISTRY" --arg p "$REGISTRY_PASSWORD" \
		'.ServerURL == $h and .Username == "anna" and .Secret == $p' "$HOME/kept"
	[ "$(jq -c . "$CONFIG")" = '{"credsStore":"test","psFormat":"x"}' ]
	run_split "$SVRUN" image logout "$REGISTRY"
	expect_status 0
	[ ! -e "$HOME/kept" ]
}

@test "at a terminal user and password are asked for, and the password is not shown" {
	own_home
	registry_htpasswd
	login_at_terminal "anna\n|pass:wosrd\x7f\x7f\x7f\x7frx\x15$REGISTRY_PASSWORD\n" "$REGISTRY" --plain-http
	expect_status 0
	expect_in "$out" "user: anna" "password: " "logged in as anna"
	[[ $out != *with* ]] || fail "$out"
	login_at_terminal "secret\x03" "$REGISTRY" --plain-http -u anna
	expect_status 125
	expect_in "$out" "svrun: interrupted"
	[[ $out != *secret* ]] || fail "$out"
}

@test "what login refuses" {
	own_home
	run_split setsid "$SVRUN" image login registry.example
	expect_status 2
	expect_in "$err" "no terminal to ask for user" "hint: use --user and --password-stdin"
	run_split "$SVRUN" image login registry.example -p secret
	expect_status 2
	expect_in "$err" "no option '-p'" "--password-stdin"
	run_split "$SVRUN" image login registry.example --password=secret -u a
	expect_status 2
	run_split "$SVRUN" image login registry.example --password-stdin
	expect_status 2
	expect_in "$err" "--password-stdin needs --user"
	run_split "$SVRUN" image login registry.example --password-stdin -u a
	expect_status 2
	expect_in "$err" "no password on stdin"
	run_split "$SVRUN" image login registry.example/team -u a --password-stdin
	expect_status 2
	expect_in "$err" "has a path" "hint: name only the host: registry.example"
	run_split "$SVRUN" image login http://127.0.0.1:1 -u a --password-stdin
	expect_status 2
	expect_in "$err" "has a scheme" "127.0.0.1:1, with plain-http"
}

@test "a registry that is not there is an error, and nothing is kept" {
	own_home
	free_port
	login any "127.0.0.1:$PORT" -u anna --plain-http
	expect_status 125
	expect_in "$err" "login to 127.0.0.1:$PORT"
	[ ! -e "$CONFIG" ]
}
