#!/usr/bin/env bats
# Looking inside: mount, unmount, diff.

load helpers

imported() { # NAME [OPTION...]: an image of $T/NAME
	local name=$1
	shift
	tar -C "$T/$name" -c . | "$SVRUN" image import - "$name" --progress none "$@" >/dev/null
}

two_versions() {
	new_store
	hello_program
	mkdir -p "$T"/v1/{bin,etc,var/lib/dpkg,app/node_modules/pad,lib/foo-1.2.dist-info}
	cp "$WORK/hello" "$T/v1/bin/hello"
	head -c 3000000 /dev/urandom >"$T/v1/etc/big"
	echo '{"name": "pad", "version": "1.0.0"}' >"$T/v1/app/node_modules/pad/package.json"
	printf 'Package: base\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.0\n' \
		>"$T/v1/var/lib/dpkg/status"
	touch "$T/v1/etc/gone"
	ln -s a "$T/v1/etc/link"
	cp -a "$T/v1" "$T/v2"
	rm "$T/v2/etc/gone"
	echo new >"$T/v2/etc/new"
	ln -sfn b "$T/v2/etc/link"
	chmod 700 "$T/v2/bin/hello"
	chown 5:6 "$T/v2/etc/big"
	sed -i s/1.0.0/1.0.1/ "$T/v2/app/node_modules/pad/package.json"
	sed -i s/1.0/1.1/ "$T/v2/var/lib/dpkg/status"
	mv "$T/v2/lib/foo-1.2.dist-info" "$T/v2/lib/foo-1.3.dist-info"
	imported v1 --entrypoint /bin/hello -e A=1
	imported v2 --entrypoint /bin/hello -e A=2 -c User=0
}

mounted() { # PATH
	grep -qF " $1 " /proc/self/mountinfo
}

not_mounted() { # PATH; a negated command would not end a test
	if mounted "$1"; then fail "$1 is mounted"; fi
}

@test "a mount stays until it is undone, and belongs to root" {
	need_root
	two_versions
	path=$("$SVRUN" image mount v1)
	[[ $path == "$SVRUN_ROOT"/mnt/* ]]
	cmp "$path/etc/big" "$T/v1/etc/big"
	run touch "$path/etc/x"
	[ "$status" != 0 ]
	# Other commands sweep what nobody uses.
	"$SVRUN" image ls >/dev/null
	"$SVRUN" run --rm v1 x >/dev/null
	mounted "$path"
	run setpriv --reuid 1000 --clear-groups cat "$path/etc/link"
	[ "$status" != 0 ]
	expect_in "$("$SVRUN" image mount)" "v1 " "$path"
	"$SVRUN" image mount --format json | jq -e --arg p "$path" 'length == 1 and .[0].path == $p and .[0].names == ["v1"]'
	run "$SVRUN" image rm v1
	expect_status 125
	expect_in "$output" "is mounted" "svrun image unmount"
	"$SVRUN" image unmount v1
	not_mounted "$path"
	run "$SVRUN" image unmount v1
	expect_status 125
	expect_in "$output" "is not mounted"
	[ "$("$SVRUN" image mount --format json)" = "[]" ]
	"$SVRUN" image rm v1
	expect_nothing_left "$SVRUN_ROOT"
}

@test "several are mounted, and unmounted by path, by digest, or all at once" {
	need_root
	two_versions
	"$SVRUN" image mount v1 v2 >"$T/paths"
	[ "$(wc -l <"$T/paths")" = 2 ]
	"$SVRUN" image unmount "$(head -n1 "$T/paths")"
	not_mounted "$(head -n1 "$T/paths")"
	mounted "$(tail -n1 "$T/paths")"
	"$SVRUN" image mount v1 >/dev/null
	"$SVRUN" image unmount "$(basename "$(head -n1 "$T/paths")" | head -c 12)"
	"$SVRUN" image unmount --all
	expect_nothing_left "$SVRUN_ROOT"
	run "$SVRUN" image unmount
	expect_status 2
}

@test "a mount that somebody stands in goes when it is left" {
	need_root
	two_versions
	path=$("$SVRUN" image mount v1)
	(
		cd "$path"
		"$SVRUN" image unmount v1
		mounted "$path"
	)
	"$SVRUN" image ls >/dev/null
	not_mounted "$path"
}

@test "a mark of an earlier boot keeps nothing" {
	need_root
	two_versions
	path=$("$SVRUN" image mount v1)
	echo 00000000-0000-0000-0000-000000000000 >"$path.keep"
	"$SVRUN" image ls >/dev/null
	not_mounted "$path"
	[ "$("$SVRUN" image mount --format json)" = "[]" ]
	[ ! -e "$path.keep" ]
}

@test "diff tells files, packages, configuration and what an update brings" {
	need_root
	two_versions
	run "$SVRUN" image diff v1 v2
	expect_status 1
	cat >"$T/want" <<-TEXT
		M /app/node_modules/pad/package.json content
		M /bin/hello mode 0755>0700
		M /etc/big owner 0:0>5:6
		D /etc/gone
		M /etc/link target
		A /etc/new
		D /lib/foo-1.2.dist-info
		A /lib/foo-1.3.dist-info
		M /var/lib/dpkg/status content
		M deb base 1.0 > 1.1
		M npm pad in /app/node_modules/pad 1.0.0 > 1.0.1
		M python foo in /lib 1.2 > 1.3
		M config Env.A: 1 > 2
		A config User: 0
		2 added, 2 removed, 5 changed; 3 packages; 2 of the configuration
	TEXT
	diff "$T/want" <(head -n -1 <<<"$output")
	expect_in "$output" "an update brings 0.0 MiB of " "in 3 chunks"
	run "$SVRUN" image diff --stat v1 v2
	expect_status 1
	[[ $output != *"/etc/new"* ]]
	"$SVRUN" image diff --format json v1 v2 | jq -e '
		(.files | length) == 9 and (.files[] | select(.path == "/bin/hello") | .what == ["mode"]) and
		.counts == {added: 2, removed: 2, changed: 5} and .update.chunks == 3 and
		(.packages[] | select(.kind == "deb") | .old == "1.0" and .new == "1.1") and
		(.config[] | select(.key == "User") | has("old") | not)'
}

@test "diff's exit status is 0 for equal images, 1 for different ones, more for errors" {
	need_root
	two_versions
	"$SVRUN" image diff v1 v1
	touch -d 2001-01-01 "$T/v1/etc/gone"
	tar -C "$T/v1" -c . | "$SVRUN" image import - v1:later --entrypoint /bin/hello -e A=1 --progress none
	"$SVRUN" image diff v1 v1:later
	run "$SVRUN" image diff --times v1 v1:later
	expect_status 1
	expect_in "$output" "M /etc/gone mtime"
	run "$SVRUN" image diff v1 none
	expect_status 125
	expect_in "$output" "no image 'none'"
	run "$SVRUN" image diff v1
	expect_status 2
}
