#include "tests/unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "gpu/reserve.h"

/* ---- a host of eight GPUs on two NUMA nodes; the last may be in MIG mode ---- */

struct fixture {
	char run[40];
	struct gpu_host host;
	struct gpu_device v[8];
	struct gpu_mig migs[2];
	struct gpu_inventory i;
	char bus[8][16];
};

static int make(void **state)
{
	struct fixture *f = mem_alloc(sizeof(*f));

	snprintf(f->run, sizeof(f->run), "/tmp/svrun-reserve.XXXXXX");
	assert_non_null(mkdtemp(f->run));
	f->host = (struct gpu_host){-1, -1, -1, -1, "", f->run};
	for (uint32_t k = 0; k < 8; k++) {
		snprintf(f->bus[k], sizeof(f->bus[k]), "0000:%02x:00.0", k + 1);
		f->v[k] = (struct gpu_device){.index = k,
			.minor = 7 - k,
			.bus = f->bus[k],
			.model = "NVIDIA H200",
			.numa = k < 4 ? 0 : 1};
	}
	f->i = (struct gpu_inventory){.v = f->v, .n = 8};
	f->migs[0] = (struct gpu_mig){.gi = 1, .ci = 0, .index = 0};
	f->migs[1] = (struct gpu_mig){.gi = 2, .ci = 0, .index = 1};
	*state = f;
	return 0;
}

static int drop(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(sys_remove_tree(AT_FDCWD, f->run), 0);
	free(f);
	return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make, drop)

struct taken {
	struct gpu_reservation held;
	struct gpu_grants g;
};

static int take_in(struct fixture *f, struct taken *t, const struct gpu_request *r, const char *who,
	const char *within, struct err *e)
{
	struct gpu_reserve_terms terms = {.who = who, .within = within};

	return gpu_reserve(&t->held, &f->host, &f->i, r, &terms, &t->g, e);
}

static int take(struct fixture *f, struct taken *t, uint32_t count, bool shared, struct err *e)
{
	struct gpu_request r = {.given = true, .count = count, .shared = shared};

	return take_in(f, t, &r, "instance a", NULL, e);
}

static int take_name(
	struct fixture *f, struct taken *t, const char *name, bool shared, struct err *e)
{
	const char *names[] = {name};
	struct gpu_request r = {.given = true, .names = {names, 1}, .shared = shared};

	return take_in(f, t, &r, "instance b", NULL, e);
}

static void release(struct taken *t)
{
	gpu_release(&t->held);
	free(t->g.v);
	*t = (struct taken){0};
}

/* ---- a number ---- */

TEST(a_gpu_is_had_by_one_until_it_is_released)
{
	struct fixture *f = *state;
	struct taken all, one;
	struct err e = {0};

	assert_int_equal(take(f, &all, 8, false, &e), 0);
	assert_int_equal(all.g.n, 8);
	assert_int_equal(take(f, &one, 1, false, &e), -1);
	assert_int_equal(e.kind, ERR_EXISTS);
	assert_non_null(strstr(e.text, "1 GPU asked for, 0 free; taken: GPU 0 (NVIDIA H200) by "
				       "instance a, GPU 1"));
	assert_int_equal(one.g.n, 0);
	release(&all);
	assert_int_equal(take(f, &one, 1, false, &e), 0);
	release(&one);
}

TEST(those_of_one_numa_node_are_taken_together)
{
	struct fixture *f = *state;
	struct taken one, three, four, rest;
	struct err e = {0};

	assert_int_equal(take(f, &one, 1, false, &e), 0);
	assert_int_equal(take(f, &three, 3, false, &e), 0); /* beside the one: 4 stay whole */
	assert_int_equal(three.g.v[0].device->numa, one.g.v[0].device->numa);
	assert_int_equal(three.g.v[2].device->numa, one.g.v[0].device->numa);
	assert_int_equal(take(f, &four, 4, false, &e), 0);
	for (size_t k = 0; k < 4; k++)
		assert_int_not_equal(four.g.v[k].device->numa, one.g.v[0].device->numa);
	release(&one);
	release(&four);
	assert_int_equal(take(f, &rest, 5, false, &e), 0); /* of both nodes */
	assert_ptr_equal(rest.g.v[0].device, &f->v[0]);
	assert_ptr_equal(rest.g.v[4].device, &f->v[7]);
	release(&three);
	release(&rest);
}

TEST(more_than_there_are_is_another_error_than_taken)
{
	struct fixture *f = *state;
	struct taken t;
	struct err e = {0};

	f->v[0].excluded = true;
	assert_int_equal(take(f, &t, 8, false, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_string_equal(e.text, "8 GPUs asked for, and the host has 7");
}

static bool odd(void *ctx, const struct gpu_grant *g)
{
	(void)ctx;
	return g->device->index % 2 == 1;
}

TEST(gpus_that_do_not_fit_are_left_to_others)
{
	struct fixture *f = *state;
	struct gpu_request r = {.given = true, .count = 2};
	struct gpu_reserve_terms terms = {.who = "x", .fits = odd};
	struct taken t;
	struct err e = {0};

	assert_int_equal(gpu_reserve(&t.held, &f->host, &f->i, &r, &terms, &t.g, &e), 0);
	assert_ptr_equal(t.g.v[0].device, &f->v[1]);
	assert_ptr_equal(t.g.v[1].device, &f->v[3]);
	release(&t);
	r.count = 5;
	assert_int_equal(gpu_reserve(&t.held, &f->host, &f->i, &r, &terms, &t.g, &e), -1);
	assert_string_equal(e.text, "5 GPUs asked for, and the host has 4 that fit");
}

/* ---- shared, by name ---- */

TEST(a_gpu_is_shared_only_when_all_ask_for_it)
{
	struct fixture *f = *state;
	struct taken a, b, c;
	struct err e = {0};
	auto_free char *who = NULL;
	bool shared;

	assert_int_equal(take_name(f, &a, "3", true, &e), 0);
	assert_int_equal(take_name(f, &b, "3", true, &e), 0);
	assert_int_equal(gpu_reserved(&f->host, &a.g.v[0], &who, &shared, &e), 1);
	assert_string_equal(who, "instance b");
	assert_true(shared);
	assert_int_equal(take_name(f, &c, "3", false, &e), -1);
	assert_int_equal(e.kind, ERR_EXISTS);
	assert_string_equal(e.text, "GPUs that were asked for are taken: GPU 3 (NVIDIA H200) by "
				    "instance b");
	release(&a);
	e = (struct err){0};
	assert_int_equal(take_name(f, &c, "3", false, &e), -1);
	release(&b);
	assert_int_equal(take_name(f, &c, "3", false, &e), 0);
	e = (struct err){0};
	assert_int_equal(take_name(f, &b, "3", true, &e), -1);
	release(&c);
}

TEST(who_has_a_gpu_is_told_without_taking_it)
{
	struct fixture *f = *state;
	struct gpu_grant g = {.device = &f->v[0]};
	struct taken t;
	struct err e = {0};
	char *who = NULL;
	bool shared;

	assert_int_equal(gpu_reserved(&f->host, &g, &who, &shared, &e), 0);
	assert_null(who);
	assert_int_equal(take(f, &t, 1, false, &e), 0);
	assert_int_equal(gpu_reserved(&f->host, &g, &who, &shared, &e), 1);
	assert_string_equal(who, "instance a");
	assert_false(shared);
	free(who);
	release(&t);
	assert_int_equal(gpu_reserved(&f->host, &g, &who, &shared, &e), 0);
	assert_null(who);
}

/* ---- MIG ---- */

TEST(a_gpu_and_its_mig_devices_exclude_each_other)
{
	struct fixture *f = *state;
	struct taken mig, other, whole;
	struct err e = {0};

	f->v[7].migs = f->migs;
	f->v[7].nmigs = 2;
	assert_int_equal(take_name(f, &mig, "7:0", false, &e), 0);
	assert_ptr_equal(mig.g.v[0].mig, &f->migs[0]);
	assert_int_equal(take_name(f, &other, "7:1", false, &e), 0);
	assert_int_equal(take_name(f, &whole, "7", false, &e), -1);
	assert_int_equal(e.kind, ERR_EXISTS);
	e = (struct err){0};
	assert_int_equal(take_name(f, &whole, "7:0", false, &e), -1);
	release(&mig);
	release(&other);
	assert_int_equal(take_name(f, &whole, "7", true, &e), 0);
	assert_int_equal(take_name(f, &mig, "7:0", false, &e), -1);
	release(&whole);
}

TEST(a_number_of_mig_devices_is_given_where_no_gpu_is_whole)
{
	struct fixture *f = *state;
	struct taken t;
	struct err e = {0};

	f->v[7].migs = f->migs;
	f->v[7].nmigs = 2;
	f->i = (struct gpu_inventory){.v = f->v + 6, .n = 2};
	assert_int_equal(take(f, &t, 1, false, &e), 0);
	assert_ptr_equal(t.g.v[0].device, &f->v[6]);
	assert_null(t.g.v[0].mig);
	release(&t);
	assert_int_equal(take(f, &t, 2, false, &e), 0);
	assert_ptr_equal(t.g.v[0].mig, &f->migs[0]);
	assert_ptr_equal(t.g.v[1].mig, &f->migs[1]);
	release(&t);
}

/* ---- allocations ---- */

TEST(within_an_allocation_only_what_it_holds_can_be_had)
{
	struct fixture *f = *state;
	const char *names[] = {"5"};
	struct gpu_request one = {.given = true, .count = 1}, all = {.given = true, .all = true},
			   other = {.given = true, .names = {names, 1}};
	struct taken outer, a, b;
	auto_free char *name = NULL;
	struct err e = {0};

	assert_int_equal(take(f, &outer, 2, false, &e), 0);
	assert_int_equal(gpu_allocation_make(&outer.held, &f->host, &outer.g, &name, &e), 0);
	assert_int_equal(take_in(f, &a, &one, "a", name, &e), 0);
	assert_ptr_equal(a.g.v[0].device, outer.g.v[0].device);
	assert_int_equal(take_in(f, &b, &one, "b", name, &e), 0);
	assert_ptr_equal(b.g.v[0].device, outer.g.v[1].device);
	release(&b);
	assert_int_equal(take_in(f, &b, &all, "b", name, &e), -1);
	assert_int_equal(e.kind, ERR_EXISTS);
	release(&a);
	e = (struct err){0};
	assert_int_equal(take_in(f, &a, &all, "a", name, &e), 0);
	assert_int_equal(a.g.n, 2);
	release(&a);
	assert_int_equal(take_in(f, &a, &other, "a", name, &e), -1);
	assert_int_equal(e.kind, ERR_DENIED);
	release(&outer);
	e = (struct err){0};
	assert_int_equal(take_in(f, &a, &one, "a", name, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(e.text, "has ended"));
}

TEST(names_of_allocations_lead_nowhere_else)
{
	static const char *const names[] = {"", "..", ".", "../locks", "x"};
	struct gpu_request one = {.given = true, .count = 1};
	struct fixture *f = *state;
	struct taken t;

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		struct err e = {0};

		assert_int_equal(take_in(f, &t, &one, "a", names[k], &e), -1);
		assert_int_equal(e.kind, ERR_NOT_FOUND);
	}
}

/* ---- processes ---- */

static pid_t holder(struct fixture *f, int tell)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct taken t;
		char got = take(f, &t, 1, false, NULL) == 0 ? (char)('0' + t.g.v[0].device->index)
							    : '-';

		if (write(tell, &got, 1) == 1)
			pause();
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

TEST(of_twenty_who_ask_at_once_eight_get_one_each_and_sigkill_frees)
{
	struct fixture *f = *state;
	char said[20];
	pid_t pids[20];
	int p[2], seen[8] = {0}, refused = 0;
	struct taken t;
	struct err e = {0};

	assert_int_equal(sys_pipe(p), 0);
	for (size_t k = 0; k < 20; k++)
		pids[k] = holder(f, p[1]);
	assert_int_equal(sys_read_all(p[0], said, sizeof(said)), 0);
	for (size_t k = 0; k < 20; k++)
		if (said[k] == '-')
			refused++;
		else
			seen[said[k] - '0']++;
	for (size_t k = 0; k < 8; k++)
		assert_int_equal(seen[k], 1);
	assert_int_equal(refused, 12);
	for (size_t k = 0; k < 20; k++) {
		kill(pids[k], SIGKILL);
		assert_int_equal(waitpid(pids[k], NULL, 0), pids[k]);
	}
	assert_int_equal(take(f, &t, 8, false, &e), 0);
	release(&t);
	close(p[0]);
	close(p[1]);
}

TEST(parts_of_a_gpu_of_amd_are_of_one_place_and_had_one_by_one)
{
	struct fixture *f = *state;
	struct taken a, b, c;
	struct err e = {0};

	for (uint32_t k = 0; k < 2; k++) {
		f->v[k].maker = GPU_MAKER_AMD;
		f->v[k].bus = f->bus[0];
		f->v[k].minor = 128 + k;
	}
	f->i.n = 2;
	assert_int_equal(take(f, &a, 1, false, &e), 0);
	assert_int_equal(take(f, &b, 1, false, &e), 0);
	assert_ptr_not_equal(a.g.v[0].device, b.g.v[0].device);
	assert_int_equal(take(f, &c, 1, false, &e), -1);
	assert_int_equal(e.kind, ERR_EXISTS);
	release(&a);
	release(&b);
}

TEST(locks_are_left_to_programs_only_on_request)
{
	struct fixture *f = *state;
	struct taken t;
	struct err e = {0};

	assert_int_equal(take(f, &t, 2, false, &e), 0);
	for (size_t k = 0; k < t.held.n; k++)
		assert_true(fcntl(t.held.fds[k], F_GETFD) & FD_CLOEXEC);
	assert_int_equal(gpu_reservation_inherit(&t.held, &e), 0);
	for (size_t k = 0; k < t.held.n; k++)
		assert_false(fcntl(t.held.fds[k], F_GETFD) & FD_CLOEXEC);
	release(&t);
}

RUN_TESTS(CASE(a_gpu_is_had_by_one_until_it_is_released),
	CASE(those_of_one_numa_node_are_taken_together),
	CASE(more_than_there_are_is_another_error_than_taken),
	CASE(gpus_that_do_not_fit_are_left_to_others),
	CASE(a_gpu_is_shared_only_when_all_ask_for_it),
	CASE(who_has_a_gpu_is_told_without_taking_it),
	CASE(a_gpu_and_its_mig_devices_exclude_each_other),
	CASE(a_number_of_mig_devices_is_given_where_no_gpu_is_whole),
	CASE(within_an_allocation_only_what_it_holds_can_be_had),
	CASE(names_of_allocations_lead_nowhere_else),
	CASE(of_twenty_who_ask_at_once_eight_get_one_each_and_sigkill_frees),
	CASE(parts_of_a_gpu_of_amd_are_of_one_place_and_had_one_by_one),
	CASE(locks_are_left_to_programs_only_on_request))
