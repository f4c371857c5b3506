#!/usr/bin/env bats
# svrun-oci killed at its system calls, and used by many at once: a sample; `make soak` does them all.

load helpers
load oci

soak() { # VERB...
	need_root
	need_program strace
	[ -x /bin/busybox ] || skip "needs busybox-static"
	run timeout -k 5 300 env OCI="$OCI" SAMPLE="${SAMPLE:-12}" "$TOP/scripts/soak-oci" short "$@"
	[ "$status" = 0 ] || fail "$output"
	expect_in "$output" " passed, 0 failed"
}

@test "killed at any moment of create and run, delete --force leaves nothing" {
	soak create run
}

@test "killed at any moment of start, exec, kill, pause and delete, delete --force leaves nothing" {
	soak start exec kill pause delete
}

@test "six at once on four containers: nothing crashes, hangs or stays" {
	soak random
}
