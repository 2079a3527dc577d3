// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
extern "C" {
#include "lib/slurm/pod_wait.h"
}

#include "test/unit/catch.h"

static constexpr std::uint32_t job = 7, another = 8;
static constexpr time_t begin = 1'000'000;

TEST_CASE("held up by pods: a job is said to wait as long again as it has waited, and two minutes at least")
{
	sk8_not_held_up_by_pods(job);
	CHECK(sk8_held_up_by_pods(job, begin) == begin + 120);
	CHECK(sk8_held_up_by_pods(job, begin + 60) == begin + 60 + 120);
	time_t now = begin + 60;
	for (; now < begin + 3'600; now += 60)
		(void) sk8_held_up_by_pods(job, now);
	CHECK(sk8_held_up_by_pods(job, now) == now + (now - begin));
	CHECK(sk8_held_up_by_pods(another, now) == now + 120);
}

TEST_CASE("held up by pods: what held a job up before it could start, or long ago, does not count")
{
	sk8_not_held_up_by_pods(job);
	(void) sk8_held_up_by_pods(job, begin);
	SECTION("it could start meanwhile")
	{
		sk8_not_held_up_by_pods(job);
		CHECK(sk8_held_up_by_pods(job, begin + 800) == begin + 800 + 120);
	}
	SECTION("nobody has asked for a long time") { CHECK(sk8_held_up_by_pods(job, begin + 2'000) == begin + 2'000 + 120); }
	SECTION("the clock has been set back") { CHECK(sk8_held_up_by_pods(job, begin - 500) == begin - 500 + 120); }
}

TEST_CASE("held up by pods: of very many jobs those are forgotten that were not looked at for the longest time")
{
	for (std::uint32_t id = 1000; id < 2000; id++)
		(void) sk8_held_up_by_pods(id, begin + id);
	CHECK(sk8_held_up_by_pods(1999, begin + 2'400) == begin + 2'400 + 401);
	CHECK(sk8_held_up_by_pods(1000, begin + 2'400) == begin + 2'400 + 120);
}
