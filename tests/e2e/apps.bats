#!/usr/bin/env bats
# The three images do what they are for.

load helpers

@test "tiny-llama-chat completes a prompt on the command line" {
	need_image tiny-llama-chat
	run_split "$SVRUN" run --rm tiny-llama-chat "This software is"
	expect_status 0
	[[ $out == "This software is "* ]]
	[ ${#out} -gt 40 ]
	[ -z "$err" ] || fail "stderr: $err"
	# Greedy decoding: the same answer each time.
	[ "$out" = "$("$SVRUN" run --rm tiny-llama-chat "This software is")" ]
}

@test "tiny-llama-chat answers quickly when the CPUs are limited: one thread per CPU of the cgroup" {
	need_image tiny-llama-chat
	run_split "$SVRUN" run --rm --cpus 1 -e SVRUN_TIMINGS=1 tiny-llama-chat --max-tokens 256 "You may"
	expect_status 0
	expect_in "$err" "timing first-token"
	run_split "$SVRUN" run --rm --cpus 1 --entrypoint sh tiny-llama-chat -c 'echo $LLAMA_THREADS'
	[ "$out" = 1 ]
}

@test "tiny-llama-chat refuses an empty prompt and unknown options" {
	need_image tiny-llama-chat
	run_split "$SVRUN" run --rm tiny-llama-chat --nonsense
	expect_status 2
	expect_in "$err" "usage:"
}

# A server on loopback with a port of its own; $URL is its address, $SERVER svrun's process.
start_server() {
	local port
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	URL=http://127.0.0.1:$port
	"$SVRUN" run --rm --network host -e HOST=127.0.0.1 -e PORT="$port" tiny-llama-chat \
		>"$T/server.log" 2>&1 3>&- &
	SERVER=$!
	for _ in $(seq 200); do
		curl -sf "$URL/health" >/dev/null && return
		sleep 0.05
	done
	fail "no server: $(<"$T/server.log")"
}

more_teardown() {
	[ -z "${SERVER-}" ] || { kill -TERM "$SERVER" 2>/dev/null && wait "$SERVER"; } || true
}

@test "tiny-llama-chat serves chat completions, models and health" {
	need_image tiny-llama-chat
	start_server
	[ "$(curl -s "$URL/health" | jq -r .status)" = ok ]
	[ "$(curl -s "$URL/v1/models" | jq -r '.data[0].id')" = tiny-llama ]
	curl -s "$URL/v1/chat/completions" -H 'content-type: application/json' -d '{
		"model": "tiny-llama", "max_tokens": 20, "messages": [
			{"role": "system", "content": "Go on."}, {"role": "user", "content": "The licence"}]
	}' | tee "$T/answer" | jq -e '
		.object == "chat.completion" and .choices[0].message.role == "assistant" and
		(.choices[0].message.content | length) > 0 and .choices[0].finish_reason == "length" and
		.usage.completion_tokens == 20 and .usage.total_tokens == .usage.prompt_tokens + 20'
}

@test "tiny-llama-chat streams an answer as server-sent events" {
	need_image tiny-llama-chat
	start_server
	local body='{"max_tokens": 12, "messages": [{"role": "user", "content": "The licence"}]'
	curl -s "$URL/v1/chat/completions" -d "$body}" | jq -r '.choices[0].message.content' >"$T/whole"
	curl -sN "$URL/v1/chat/completions" -d "$body, \"stream\": true}" >"$T/events"
	[ "$(tail -n 2 "$T/events" | head -n 1)" = "data: [DONE]" ]
	sed -n 's/^data: {/{/p' "$T/events" | jq -e 'select(.object != "chat.completion.chunk")' && fail "odd event"
	sed -n 's/^data: {/{/p' "$T/events" | jq -j '.choices[0].delta.content // ""' >"$T/streamed"
	echo >>"$T/streamed"
	cmp "$T/whole" "$T/streamed"
}

@test "tiny-llama-chat answers bad requests with errors in OpenAI's form" {
	need_image tiny-llama-chat
	start_server
	local chat=$URL/v1/chat/completions
	check() { # STATUS WORD CURL-ARGUMENT...
		local wanted=$1 word=$2 found
		shift 2
		found=$(curl -s -o "$T/body" -w '%{http_code}' "$@")
		[ "$found" = "$wanted" ] && jq -e .error.type "$T/body" >/dev/null && grep -q -- "$word" "$T/body" ||
			fail "$* gave $found $(<"$T/body")"
	}
	local user='[{"role": "user", "content": "a"}]'
	check 400 "not JSON" "$chat" -d '{'
	check 400 messages "$chat" -d '{}'
	check 400 messages "$chat" -d '{"messages": []}'
	check 400 max_tokens "$chat" -d "{\"messages\": $user, \"max_tokens\": 0}"
	check 400 temperature "$chat" -d "{\"messages\": $user, \"temperature\": 3}"
	check 400 stop "$chat" -d "{\"messages\": $user, \"stop\": [1]}"
	check 404 model "$chat" -d "{\"messages\": $user, \"model\": \"other\"}"
	check 404 unknown "$URL/v1/nothing"
	check 405 POST "$chat"
	head -c 2000000 /dev/zero >"$T/big"
	check 413 larger "$chat" --data-binary "@$T/big"
	[ "$(curl -s "$URL/health" | jq -r .status)" = ok ]
}

@test "tiny-llama-chat stops on SIGTERM with status 0, at once" {
	need_image tiny-llama-chat
	start_server
	local start status=0
	start=$(now_ms)
	kill -TERM "$SERVER"
	wait "$SERVER" || status=$?
	SERVER=
	[ "$status" = 0 ] || fail "status $status: $(<"$T/server.log")"
	[ $(($(now_ms) - start)) -lt 4000 ]
}

@test "ocr reads a picture on standard input" {
	need_image ocr
	run "$SVRUN" run --rm -i ocr <"$DATA/ocr.png"
	expect_status 0
	expect_in "$output" "Chunks are verified once" "and read 4096 bytes at a time"
}

@test "ocr reads a mounted file" {
	need_image ocr
	run_split "$SVRUN" run --rm -v "$DATA:/in:ro" ocr /in/ocr.png
	expect_status 0
	expect_in "$out" "Chunks are verified once"
	run_split "$SVRUN" run --rm -v "$DATA:/in:ro" ocr /in/none.png
	expect_status 1
	expect_in "$err" "cannot read /in/none.png"
}

@test "pytorch-cpu runs resnet18 on a random tensor" {
	need_image pytorch-cpu
	run_split "$SVRUN" run --rm pytorch-cpu
	expect_status 0
	expect_in "$out" "resnet18: 1x1000 in"
}

@test "pytorch-cpu multiplies with OpenBLAS, not with the reference BLAS" {
	need_image pytorch-cpu
	run_split "$SVRUN" run --rm pytorch-cpu python3 -c '
import torch, time
a = torch.rand(1024, 1024)
a @ a
best = min((lambda t: (a @ a, time.time() - t)[1])(time.time()) for _ in range(3))
print(2 * 1024**3 / 1e9 / best)
print(open("/proc/self/maps").read().count("openblas-pthread") > 0)'
	expect_status 0
	[ "${out##*$'\n'}" = True ]
	[ "${out%%.*}" -ge 5 ] || fail "$out GFLOP/s"
}

@test "pytorch-cpu has as many threads as its cgroup has CPUs" {
	need_image pytorch-cpu
	run_split "$SVRUN" run --rm --cpus 1 pytorch-cpu
	expect_status 0
	expect_in "$out" ", 1 threads"
}

dpkg_is_real() { # NAME
	need_image "$1"
	local locked listed
	locked=$(jq '.apt.packages | length' "$WORK/apps/$1/lock.json")
	run_split "$SVRUN" run --rm --entrypoint dpkg-query "$1" -W -f '${db:Status-Abbrev}\n'
	expect_status 0
	listed=$(grep -c '^ii' <<<"$out")
	[ "$listed" = "$locked" ] || fail "$listed installed, $locked locked"
	[ "$(grep -vc '^ii' <<<"$out")" = 0 ]
	run_split "$SVRUN" run --rm --entrypoint dpkg "$1" --audit
	expect_status 0
	[ -z "$out" ] || fail "dpkg --audit: $out"
	# Every file of every package that was not pruned is as the package had it.
	run_split "$SVRUN" run --rm -u 0 --entrypoint dpkg "$1" --verify
	[ -z "$(grep -v '^missing .* /usr/share/\(doc\|man\|info\|locale\|lintian\)' <<<"$out")" ] || fail "dpkg --verify: $out"
}

@test "dpkg knows every package of tiny-llama-chat" {
	dpkg_is_real tiny-llama-chat
}

@test "dpkg knows every package of ocr" {
	dpkg_is_real ocr
}

@test "dpkg knows every package of pytorch-cpu" {
	dpkg_is_real pytorch-cpu
}

# The host's way to Debian's mirror, when the host is a Debian of the image's release.
debian_sources() {
	grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release || skip "the host is no Debian 12"
	mkdir -p "$T/apt/sources.list.d"
	local file
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
		[ -f "$file" ] && grep -q bookworm "$file" && grep -q debian-archive-keyring "$file" &&
			cp "$file" "$T/apt/sources.list.d/"
	done
	[ -n "$(ls "$T/apt/sources.list.d")" ] || cp /etc/apt/sources.list "$T/apt/"
	APT_OPTIONS=(--network host -u 0 -v "$T/apt/sources.list.d:/etc/apt/sources.list.d:ro"
		-v /etc/resolv.conf:/etc/resolv.conf:ro)
	[ ! -f "$T/apt/sources.list" ] || APT_OPTIONS+=(-v "$T/apt/sources.list:/etc/apt/sources.list:ro")
	[ ! -d /etc/apt/apt.conf.d ] || APT_OPTIONS+=(-v /etc/apt/apt.conf.d:/etc/apt/apt.conf.d:ro)
}

@test "apt-get install works in a container of tiny-llama-chat" {
	need_image tiny-llama-chat
	debian_sources
	run_split "$SVRUN" run --rm "${APT_OPTIONS[@]}" -e DEBIAN_FRONTEND=noninteractive \
		--entrypoint sh tiny-llama-chat -c \
		'apt-get -q update && apt-get -qy install hello && hello && dpkg --audit && dpkg -L hello | grep /usr/bin/hello'
	expect_status 0
	expect_in "$out" "Hello, world!" "/usr/bin/hello"
}

# ---- each one's own tests, in its manifest ----

passes_its_tests() { # NAME
	need_image "$1"
	run "$SVRUN" image test "$(app_copy "$1")"
	expect_status 0
	expect_in "$output" " passed, 0 failed, 0 skipped"
}

@test "tiny-llama-chat passes its own tests" {
	passes_its_tests tiny-llama-chat
}

@test "ocr passes its own tests" {
	passes_its_tests ocr
}

@test "pytorch-cpu passes its own tests" {
	passes_its_tests pytorch-cpu
}

@test "image-classifier passes its own tests" {
	passes_its_tests image-classifier
}

@test "upscaler passes its own tests" {
	passes_its_tests upscaler
}

@test "ocr-onnx passes its own tests" {
	passes_its_tests ocr-onnx
}

@test "speech passes its own tests" {
	passes_its_tests speech
}

@test "jupyter passes its own tests" {
	passes_its_tests jupyter
}
