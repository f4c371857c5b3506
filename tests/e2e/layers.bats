#!/usr/bin/env bats
# Foreign layers laid over each other: what umoci makes of them is the second opinion.

load helpers

# Type, mode, owner, size, names of one object, link target; then the contents.
list_tree() { # FOLDER
	(cd "$1" && find . -printf '%P %y %m %U %G %n %l\n' | LC_ALL=C sort
		find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum)
}

same_as_umoci() { # SEED
	local dir=$T/layers-$1
	"$BATS_TEST_DIRNAME/random-layers" "$dir" "$1"
	if ! umoci --log error raw unpack --image "$dir:ref" "$dir/theirs" 2>/dev/null; then
		run "$SVRUN" image load -q --name "random:$1" "$dir"
		[ "$status" = 125 ] || fail "seed $1: umoci refuses it"
		return
	fi
	"$SVRUN" image load -q --name "random:$1" "$dir" >/dev/null
	mkdir "$dir/mine"
	"$SVRUN" image export "random:$1" 2>/dev/null | tar -x -C "$dir/mine"
	list_tree "$dir/theirs" >"$dir/theirs.list"
	list_tree "$dir/mine" >"$dir/mine.list"
	diff -u "$dir/theirs.list" "$dir/mine.list" || fail "seed $1"
	rm -rf "$dir"
}

@test "layers at random are what umoci makes of them" {
	need_root
	need_program umoci
	export SVRUN_ROOT=$T/store
	for seed in $(seq "${LAYERS_SEEDS:-30}"); do
		same_as_umoci "$seed"
	done
}
