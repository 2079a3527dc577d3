// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lib/kube/work_queue.h"
#include "test/unit/catch.h"
#include "test/unit/kube/virtual_clock.h"

using namespace sk8;
using namespace sk8::kube;

TEST_CASE("keys come in order, each once")
{
	VirtualClock clock;
	WorkQueue<std::string> q(clock);
	q.add("a");
	q.add("b");
	q.add("a");
	CHECK(q.size() == 2);
	CHECK(q.get() == "a");
	CHECK(q.get() == "b");
	CHECK_FALSE(q.get().has_value());
}

TEST_CASE("a key that is added while it is worked on comes again when the work is done")
{
	VirtualClock clock;
	WorkQueue<std::string> q(clock);
	q.add("a");
	REQUIRE(q.get() == "a");
	q.add("a");
	q.add("a");
	CHECK_FALSE(q.get().has_value());
	q.done("a");
	CHECK(q.get() == "a");
	q.done("a");
	CHECK_FALSE(q.get().has_value());
}

TEST_CASE("a delayed key comes when it is due, and the shortest delay counts")
{
	VirtualClock clock;
	WorkQueue<std::string> q(clock);
	CHECK_FALSE(q.next_due().has_value());
	q.add_after("a", Millis(100));
	q.add_after("a", Millis(50));
	q.add_after("a", Millis(70));
	CHECK(q.next_due() == clock.monotonic() + Millis(50));
	clock.advance(Millis(49));
	CHECK_FALSE(q.get().has_value());
	clock.advance(Millis(1));
	CHECK(q.get() == "a");
	clock.advance(Millis(100));
	CHECK_FALSE(q.next_due().has_value()); // the longer ones are gone
	q.add_after("b", Millis(10));
	q.add("b");
	CHECK(q.next_due() == clock.monotonic());
	CHECK(q.get() == "b");
}

TEST_CASE("the back-off of a key doubles at each failure until it is forgotten")
{
	VirtualClock clock;
	WorkQueue<std::string> q(clock);
	Millis want(5);
	for (int i = 0; i < 30; i++) {
		q.add_backoff("a");
		CHECK(q.next_due() == clock.monotonic() + want);
		clock.advance(want);
		REQUIRE(q.get() == "a");
		q.done("a");
		want = std::min(want * 2, Millis(1'000'000));
	}
	CHECK(q.failures("a") == 30);
	q.forget("a");
	q.add_backoff("a");
	CHECK(q.next_due() == clock.monotonic() + Millis(5));
}

namespace {

// What a work queue promises, in the simplest form.
struct Model {
	std::vector<int> order; // due keys that are not being worked on
	std::set<int> again;    // to come once their work is done
	std::set<int> working;
	std::map<int, Millis> later;

	void add(int key)
	{
		if (working.count(key))
			again.insert(key);
		else if (std::find(order.begin(), order.end(), key) == order.end())
			order.push_back(key);
	}
	void add_after(int key, Millis due)
	{
		auto [at, fresh] = later.emplace(key, due);
		if (!fresh)
			at->second = std::min(at->second, due);
	}
	// The order among keys due at the same instant is open: the queue tells.
	std::set<int> due(Millis now)
	{
		std::set<int> out;
		for (const auto &[key, t] : later)
			if (t <= now)
				out.insert(key);
		return out;
	}
};

} // namespace

TEST_CASE("after any sequence of calls the queue holds what a simple model holds")
{
	for (unsigned seed = 1; seed <= 40; seed++) {
		INFO("seed " << seed);
		std::mt19937 random(seed);
		VirtualClock clock;
		WorkQueue<int> q(clock);
		Model m;
		for (int step = 0; step < 2000; step++) {
			int key = static_cast<int>(random() % 6);
			switch (random() % 5) {
			case 0:
				q.add(key);
				m.add(key);
				break;
			case 1: {
				// distinct due times: the order is then defined
				Millis delay(static_cast<int>(random() % 50) * 6 + key + 1);
				q.add_after(key, delay);
				m.add_after(key, clock.monotonic() + delay);
				break;
			}
			case 2:
				clock.advance(Millis(static_cast<int>(random() % 20) * 6));
				break;
			case 3: {
				std::vector<std::pair<Millis, int>> due;
				for (int k : m.due(clock.monotonic()))
					due.emplace_back(m.later[k], k);
				std::sort(due.begin(), due.end());
				for (auto &[t, k] : due) {
					m.later.erase(k);
					m.add(k);
				}
				auto got = q.get();
				REQUIRE(got.has_value() == !m.order.empty());
				if (got) {
					REQUIRE(*got == m.order.front());
					m.order.erase(m.order.begin());
					m.working.insert(*got);
				}
				break;
			}
			case 4:
				q.done(key);
				if (m.working.erase(key) && m.again.erase(key))
					m.order.push_back(key);
				break;
			}
		}
	}
}
