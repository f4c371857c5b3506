# shellcheck shell=bash disable=SC2317,SC2034 # called through server_try; used by .bats files
# Registries and what breaks them, for .bats files: `load registry` after `load helpers`. All on loopback,
# on free ports, as children of the test, with their files below $T; servers_stop ends them.
#
#   registry_plain | registry_tls | registry_mtls | registry_htpasswd | registry_token [OPTION...]
#       sets REGISTRY (HOST:PORT), REGISTRY_PORT, REGISTRY_ROOT (its storage), REGISTRY_LOG
#       (requests), REGISTRY_PID
#   front_faults | front_no_range | front_busy | front_expiring
#       servers before the last registry; set FRONT (HOST:PORT), FRONT_PORT, FRONT_LOG
#   make_foreign_image, push_with_skopeo, pull_with_skopeo
#
# The functions set variables and an array of pids: call them directly, not in $(...) or `run`.

SERVERS=()
E2E=$BATS_TEST_DIRNAME

# Files with a more_teardown of their own call servers_stop in it.
more_teardown() {
	servers_stop
}

servers_stop() {
	local pid
	for pid in "${SERVERS[@]}"; do
		kill "$pid" 2>/dev/null || true
	done
	for pid in "${SERVERS[@]}"; do
		wait "$pid" 2>/dev/null || true
	done
	SERVERS=()
}

# End one server, the way a machine dies.
server_kill() { # PID
	kill -9 "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}

# A port of 127.0.0.1 that nobody has now, in $PORT. Someone else may take it before our server does:
# server_start then fails, and its callers try another.
free_port() {
	PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
}

# Start a program that listens on 127.0.0.1:PORT, and wait until it does. $SERVER is its pid, its
# output is in $T/NAME.out. Fails when it ends before (the port was taken, say).
server_start() { # NAME PORT COMMAND...
	local name=$1 port=$2 i
	shift 2
	# Descriptor 3 is what bats waits for.
	"$@" >"$T/$name.out" 2>&1 3>&- </dev/null &
	SERVER=$!
	for ((i = 0; i < 300; i++)); do
		kill -0 "$SERVER" 2>/dev/null || break
		if server_listens "$SERVER" "$port"; then
			SERVERS+=("$SERVER")
			return
		fi
		sleep 0.05
	done
	kill "$SERVER" 2>/dev/null || true
	wait "$SERVER" 2>/dev/null || true
	fail "$name does not listen on port $port:" "$(<"$T/$name.out")"
}

# Is it PID (or its child: nginx) that listens on PORT, and not someone who came before?
server_listens() { # PID PORT
	local pids
	pids=$(ss -Hltnp "sport = :$2" | grep -o 'pid=[0-9]*') || return 1
	grep -qx "pid=$1" <<<"$pids"
}

# Start with a free port, thrice. MAKE is a function that is called with the port and sets COMMAND.
server_try() { # NAME MAKE
	local i
	for i in 1 2 3; do
		free_port
		"$2" "$PORT"
		if server_start "$1" "$PORT" "${COMMAND[@]}" 2>"$T/$1.why"; then return; fi
	done
	fail "$(<"$T/$1.why")"
}

# ---- docker-registry ----

# A registry with further sections of its configuration; NAME tells several of one test apart.
registry_start() { # NAME HTTP-SECTION OTHER-SECTIONS
	local sections=$3 http=$2 name=$1
	need_program docker-registry
	REGISTRY_ROOT=$T/$name
	REGISTRY_LOG=$T/$name.out
	mkdir -p "$REGISTRY_ROOT"
	registry_make() { # PORT
		cat >"$T/$name.yml" <<-YAML
			version: 0.1
			log: {level: warn}
			storage:
			  filesystem: {rootdirectory: $REGISTRY_ROOT}
			  delete: {enabled: true}
			http:
			  addr: 127.0.0.1:$1
			  secret: of-this-test
			$http
			$sections
		YAML
		COMMAND=(docker-registry serve "$T/$name.yml")
	}
	# Proxies that the host is set up with are not meant for these.
	export NO_PROXY=127.0.0.1,127.0.0.2,localhost no_proxy=127.0.0.1,127.0.0.2,localhost
	server_try "$name" registry_make
	REGISTRY_PID=$SERVER
	REGISTRY_PORT=$PORT
	REGISTRY=127.0.0.1:$PORT
}

registry_plain() { # [NAME]
	registry_start "${1:-registry}" "" ""
}

# A pull-through cache of the last registry.
registry_cache() { # [NAME]
	registry_start "${1:-cache}" "" "proxy: {remoteurl: http://$REGISTRY}"
}

# TLS with the CA of make_pki: clients need $PKI/ca.crt.
registry_tls() { # [NAME]
	make_pki
	registry_start "${1:-registry}" "  tls: {certificate: $PKI/server.crt, key: $PKI/server.key}" ""
}

# The same, for clients with $PKI/client.crt and client.key only.
registry_mtls() { # [NAME]
	make_pki
	registry_start "${1:-registry}" "  tls:
    certificate: $PKI/server.crt
    key: $PKI/server.key
    clientcas: [$PKI/ca.crt]" ""
}

# User and password: $REGISTRY_USER, $REGISTRY_PASSWORD. Basic without TLS: for loopback only.
registry_htpasswd() { # [NAME]
	need_program htpasswd
	REGISTRY_USER=anna REGISTRY_PASSWORD='pass:word with "quotes"'
	htpasswd -Bbn -C 4 "$REGISTRY_USER" "$REGISTRY_PASSWORD" >"$T/htpasswd"
	registry_start "${1:-registry}" "" "auth: {htpasswd: {realm: of this test, path: $T/htpasswd}}"
}

# Bearer; OPTION: those of token-server. TOKENS is the token server's HOST:PORT, TOKEN_LOG has a line a
# request: METHOD USER SCOPES STATUS. User and password as above.
registry_token() { # [OPTION...]
	make_pki
	REGISTRY_USER=anna REGISTRY_PASSWORD='pass:word with "quotes"'
	TOKEN_LOG=$T/tokens.log
	: >"$TOKEN_LOG"
	local options=("$@")
	token_make() { # PORT
		COMMAND=("$E2E/token-server" --port "$1" --key "$PKI/token.key" --cert "$PKI/token.crt"
			--user "$REGISTRY_USER:$REGISTRY_PASSWORD" --log "$TOKEN_LOG" "${options[@]}")
	}
	server_try tokens token_make
	TOKENS=127.0.0.1:$PORT
	registry_start registry "" "auth:
  token:
    realm: http://$TOKENS/token
    service: registry
    issuer: tokens
    rootcertbundle: $PKI/token.crt"
}

# How many requests of the registry's own log match; it logs what it has answered.
registry_requests() { # REGEX
	grep -cE "$1" "$REGISTRY_LOG" || true
}

token_requests() { # [REGEX]
	grep -cE "${1:-.}" "$TOKEN_LOG" || true
}

# A private CA, and of it: server (127.0.0.1, localhost), client; and token, which signs for itself.
make_pki() {
	PKI=$T/pki
	[ ! -d "$PKI" ] || return 0
	mkdir "$PKI"
	cat >"$PKI/ext" <<-EXT
		[server]
		subjectAltName = IP:127.0.0.1, IP:127.0.0.2, DNS:localhost
		extendedKeyUsage = serverAuth
		[client]
		extendedKeyUsage = clientAuth
	EXT
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=CA of this test" \
		-keyout "$PKI/ca.key" -out "$PKI/ca.crt" 2>/dev/null
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=tokens" \
		-keyout "$PKI/token.key" -out "$PKI/token.crt" 2>/dev/null
	local name
	for name in server client; do
		openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$name" \
			-keyout "$PKI/$name.key" -out "$PKI/$name.csr" 2>/dev/null
		openssl x509 -req -in "$PKI/$name.csr" -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -days 2 \
			-extfile "$PKI/ext" -extensions "$name" -out "$PKI/$name.crt" 2>/dev/null
	done
}

# ---- servers in front of the last registry ----

# A proxy that breaks what $FAULTS says, a file that is read anew for each request; how: fault-proxy.
# FRONT_LOG has a line a request: METHOD STATUS BYTES RANGE AUTH PATH.
front_faults() { # [FAULT-LINE...]
	FAULTS=$T/faults
	FRONT_LOG=$T/front.log
	: >"$FRONT_LOG"
	faults "$@"
	front_make() { # PORT
		COMMAND=("$E2E/fault-proxy" "$1" "$REGISTRY_PORT" "$FAULTS" "$FRONT_LOG")
	}
	server_try front front_make
	FRONT_PORT=$PORT FRONT=127.0.0.1:$PORT
}

# From now on the proxy breaks this.
faults() { # [FAULT-LINE...]
	printf '%s\n' "$@" >"$FAULTS.new"
	mv "$FAULTS.new" "$FAULTS"
}

front_requests() { # [REGEX]
	grep -cE "${1:-.}" "$FRONT_LOG" || true
}

# nginx with one http section. It does not become a daemon, and writes only below $T.
nginx_start() { # NAME MAKE: a function that is called with the port and prints what http { } holds
	local name=$1 make=$2
	need_program nginx
	mkdir -p "$T/$name.d"
	FRONT_LOG=$T/$name.log
	: >"$FRONT_LOG"
	nginx_make() { # PORT
		cat >"$T/$name.conf" <<-CONF
			daemon off;
			worker_processes 1;
			pid $T/$name.pid;
			error_log stderr error;
			$([ "$(id -u)" != 0 ] || echo "user root;")
			events { worker_connections 512; }
			http {
				client_body_temp_path $T/$name.d/body;
				proxy_temp_path $T/$name.d/proxy;
				fastcgi_temp_path $T/$name.d/fastcgi;
				uwsgi_temp_path $T/$name.d/uwsgi;
				scgi_temp_path $T/$name.d/scgi;
				client_max_body_size 0;
				proxy_buffering off;
				proxy_request_buffering off;
				proxy_http_version 1.1;
				proxy_set_header Host \$http_host;
				log_format test '\$request_method \$status \$body_bytes_sent "\$http_range" "\$http_authorization" \$request_uri';
				access_log $T/$name.log test;
				$("$make" "$1")
			}
		CONF
		COMMAND=(nginx -p "$T/$name.d" -e stderr -c "$T/$name.conf")
	}
	server_try "$name" nginx_make
	FRONT_PORT=$PORT FRONT=127.0.0.1:$PORT
}

# A server that ignores Range: 200 and the whole blob.
front_no_range() {
	no_range_conf() { # PORT
		cat <<-CONF
			server {
				listen 127.0.0.1:$1;
				location / {
					proxy_pass http://$REGISTRY;
					proxy_set_header Range "";
					proxy_hide_header Accept-Ranges;
				}
			}
		CONF
	}
	nginx_start no-range no_range_conf
}

# A server that takes RATE requests (5r/s, 1r/m), and BURST more at once; to others it says STATUS (429, 503)
# with Retry-After: 1.
front_busy() { # STATUS RATE BURST
	local status=$1 rate=$2 burst=$3
	busy_conf() { # PORT
		cat <<-CONF
			limit_req_zone \$server_name zone=all:1m rate=$rate;
			limit_req_status $status;
			server {
				listen 127.0.0.1:$1;
				server_name registry;
				error_page $status @busy;
				location / {
					limit_req zone=all burst=$burst nodelay;
					proxy_pass http://$REGISTRY;
				}
				location @busy {
					add_header Retry-After 1 always;
					return $status;
				}
			}
		CONF
	}
	nginx_start busy busy_conf
}

# Blobs come from another host (127.0.0.2, nginx), to which the registry redirects with a signature that
# is good for so long; it refuses (400) requests that carry Authorization, as object stores do. BLOBS_LOG is
# that host's log, FRONT_LOG the proxy's that redirects; further fault lines come first.
front_expiring() { # SECONDS [FAULT-LINE...]
	local seconds=$1 root=$REGISTRY_ROOT/docker/registry/v2/blobs/sha256
	shift
	blobs_conf() { # PORT
		cat <<-CONF
			server {
				listen 127.0.0.2:$1;
				listen 127.0.0.1:$1; # so that server_start sees it
				if (\$http_authorization != "") { return 400; }
				location ~ ^/v2/.*/blobs/sha256:((..).*)\$ {
					secure_link \$arg_md5,\$arg_expires;
					secure_link_md5 "\$secure_link_expires\$uri of-this-test";
					if (\$secure_link = "") { return 403; }
					if (\$secure_link = "0") { return 403; }
					alias $root/\$2/\$1/data;
				}
			}
		CONF
	}
	nginx_start blobs blobs_conf
	BLOBS=127.0.0.2:$FRONT_PORT BLOBS_LOG=$FRONT_LOG
	front_faults "$@" "always GET /blobs/sha256: redirect http://$BLOBS of-this-test $seconds"
}

# ---- images, and the second opinion ----

# Skopeo with nothing of the host's configuration.
skopeo_ok() {
	[ -e "$T/policy.json" ] || echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$T/policy.json"
	skopeo --policy "$T/policy.json" --registries.d "$T" --tmpdir "$T" "$@"
}

# An OCI layout made by Python: three gzip layers with whiteouts, an opaque folder, hard links, symbolic links,
# xattrs, long names. OPTION: those of foreign-image.
make_foreign_image() { # DIR REF [OPTION...]
	"$E2E/foreign-image" "$@"
}

# OPTION: --dest-compress-format zstd, --format v2s2, --dest-creds ...
push_with_skopeo() { # DIR REF NAME[:TAG] [OPTION...]
	local dir=$1 ref=$2 name=$3
	shift 3
	skopeo_ok copy -q --dest-tls-verify=false "$@" "oci:$dir:$ref" "docker://$REGISTRY/$name"
}

pull_with_skopeo() { # NAME[:TAG] DIR REF [OPTION...]
	local name=$1 dir=$2 ref=$3
	shift 3
	skopeo_ok copy -q --src-tls-verify=false "$@" "docker://$REGISTRY/$name" "oci:$dir:$ref"
}

# ---- pulling ----

# A store that holds nothing.
empty_store() {
	# a new one: a process of the last pull may still be syncing the old one
	STORES=$((${STORES-0} + 1))
	export SVRUN_ROOT=$T/store$STORES
}

pull() { # [OPTION...] REF
	run_split "$SVRUN" image pull --plain-http --progress none "$@"
}

# What another tool makes of an image, as `path type mode uid gid size-or-target content-digest` lines.
list_tree() { # FOLDER
	(cd "$1" && find . -mindepth 1 -printf '%P %y %m %U %G ' \( -type l -printf '%l' -o -type f -printf '%s' -o -true \) \
		-printf '\n' | LC_ALL=C sort
		find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum)
}

expect_same_tree() { # NAME FOLDER
	mkdir "$T/mine"
	"$SVRUN" image export "$1" | tar -x -C "$T/mine"
	list_tree "$T/mine" >"$T/mine.list"
	list_tree "$2" >"$T/theirs.list"
	diff -u "$T/theirs.list" "$T/mine.list"
	rm -rf "$T/mine"
}

unpack_with_umoci() { # LAYOUT REF; sets ROOTFS
	need_program umoci
	umoci raw unpack --image "$1:$2" "$T/rootfs.$2" >"$T/umoci.log" 2>&1
	ROOTFS=$T/rootfs.$2
}
