// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <string>

#include "lib/kube/request_queue.h"
#include "lib/kube/resource_version.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::kube;

namespace {

// The priorities of all that may be sent at now, as "unl".
std::string sent(RequestQueue &queue, Millis now)
{
	std::string out;
	while (auto next = queue.next(now))
		out += "unl"[static_cast<int>(next->first)];
	return out;
}

void push(RequestQueue &queue, Priority priority, int count)
{
	for (int i = 0; i < count; i++)
		queue.push(priority, 1);
}

} // namespace

TEST_CASE("budget: Bindings and deletes go before reads, and these before conditions and events")
{
	RequestQueue queue({.in_flight = 6, .per_second = 1000});
	push(queue, Priority::low, 10);
	CHECK(sent(queue, Millis(0)) == "ll"); // a third
	push(queue, Priority::normal, 10);
	CHECK(sent(queue, Millis(0)) == "nnn"); // the sixth place is kept
	push(queue, Priority::urgent, 3);
	CHECK(sent(queue, Millis(0)) == "u");
	CHECK_FALSE(queue.due(Millis(0)).has_value()); // only an end can help
	queue.ended(Priority::low);
	CHECK(sent(queue, Millis(0)) == "u");
	queue.ended(Priority::normal);
	CHECK(sent(queue, Millis(0)) == "u");
	for (int i = 0; i < 3; i++)
		queue.ended(Priority::urgent);
	CHECK(sent(queue, Millis(0)) == "nn");
}

TEST_CASE("budget: in the long run not more than so many per second, and the rest waits for its time")
{
	RequestQueue queue({.in_flight = 1000, .per_second = 10});
	push(queue, Priority::urgent, 100);
	CHECK(sent(queue, Millis(0)).size() == 20); // two seconds' worth
	CHECK(queue.due(Millis(0)) == Millis(101));
	CHECK(sent(queue, Millis(99)).empty());
	std::size_t all = 0;
	for (Millis now(100); now <= Millis(2'010); now += Millis(10))
		all += sent(queue, now).size();
	CHECK(all == 20);
	// A quiet hour is not saved up.
	CHECK(sent(queue, Millis(3'600'000)).size() == 20);
}

TEST_CASE("budget: when it runs short what people read waits first")
{
	RequestQueue queue({.in_flight = 1000, .per_second = 10});
	for (Priority p : {Priority::low, Priority::normal, Priority::urgent})
		push(queue, p, 8);
	// 20 tokens: urgent takes 8, normal until 5 are left, low would need 10
	CHECK(sent(queue, Millis(0)) == "uuuuuuuunnnnnnnn");
	auto due = queue.due(Millis(0));
	REQUIRE(due.has_value());
	CHECK(sent(queue, *due - Millis(2)).empty());
	CHECK(sent(queue, *due) == "l");
}

TEST_CASE("budget: an overloaded server gets urgent requests only until it wants more")
{
	RequestQueue queue;
	queue.hold_back(Millis(5'000));
	for (Priority p : {Priority::low, Priority::normal, Priority::urgent})
		push(queue, p, 1);
	CHECK(sent(queue, Millis(1'000)) == "u");
	CHECK(queue.due(Millis(1'000)) == Millis(5'000));
	CHECK(sent(queue, Millis(4'999)).empty());
	CHECK(sent(queue, Millis(5'000)) == "nl");
}

TEST_CASE("budget: limits that make no sense still let something through")
{
	RequestQueue queue({.in_flight = 0, .per_second = -5});
	for (Priority p : {Priority::low, Priority::normal, Priority::urgent})
		push(queue, p, 1);
	CHECK(sent(queue, Millis(0)) == "u");
	queue.ended(Priority::urgent);
	CHECK(sent(queue, Millis(1'000)) == "n");
	queue.ended(Priority::normal);
	CHECK(sent(queue, Millis(2'000)) == "l");
}

TEST_CASE("resourceVersions are compared as numbers of any length, and others not at all")
{
	CHECK(is_older("9", "10"));
	CHECK(is_older("99999999999999999999999999", "100000000000000000000000000"));
	CHECK(is_older("0009", "10"));
	CHECK_FALSE(is_older("10", "10"));
	CHECK_FALSE(is_older("10", "010"));
	CHECK_FALSE(is_older("10", "9"));
	for (const char *odd : {"", "abc", "-1", "1e5", " 1", "1x"}) {
		CHECK_FALSE(is_older(odd, "5"));
		CHECK_FALSE(is_older("5", odd));
	}
}
