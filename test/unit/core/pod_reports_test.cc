// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <set>

#include "lib/base/log.h"
#include "lib/core/pod_reports.h"
#include "test/unit/catch.h"
#include "test/unit/core/world.h"

using namespace sk8;
using namespace sk8::core;

namespace {

// An API server that answers each condition and each event with a status.
struct Reports final : KubePort {
	test::VirtualTimer timer;
	PodReports reports{"c", *this, timer, [](const std::string &) { return 0u; }};
	std::function<int(const PodEvent &)> event_status = [](const PodEvent &) { return 201; };
	int condition_status = 200;
	std::optional<Millis> retry_after;
	std::vector<std::string> events, conditions; // that were asked for
	std::set<std::int64_t> times;

	Reports() { set_log_sink([](LogLevel, const char *) {}, LogLevel::error); }
	~Reports() override { set_log_sink(nullptr, LogLevel::info); }

	static PodKey key(const std::string &name) { return {"c", "ns", name, "uid-" + name}; }
	void tell(const std::string &name, const std::string &text)
	{
		reports.event(key(name), {true, "Reason", text});
	}
	void wish(const std::string &name, const std::string &text)
	{
		auto pod = std::make_shared<kube::Pod>();
		pod->meta.ns = "ns";
		pod->meta.name = name;
		pod->meta.uid = "uid-" + name;
		pod->meta.resource_version = "1";
		reports.condition(pod, {"SlurmPending", text});
	}
	KubeReply reply(int status) const
	{
		KubeReply r;
		r.status = status;
		r.error = status >= 200 && status < 300 ? "" : "no";
		r.retry_after = retry_after;
		return r;
	}

	void create_event(const PodKey &, const PodEvent &event, Done done) override
	{
		events.push_back(event.message);
		times.insert(event.time_us);
		const int status = event_status(event);
		timer.after(Millis(1), [this, done, status] { done(reply(status)); });
	}
	void set_condition(const PodKey &key, const std::string &, const PodCondition &c, Done done) override
	{
		conditions.push_back(key.name + ":" + c.message);
		timer.after(Millis(1), [this, done, status = condition_status] { done(reply(status)); });
	}
	void get_pod(const PodKey &, Done) override {}
	void set_finalizer(const PodKey &, bool, Done) override {}
	void bind(const PodKey &, const std::string &, const std::map<std::string, std::string> &, Done) override {}
	void annotate_pod(const PodKey &, const AnnotationChanges &, Done) override {}
	void delete_pod(const PodKey &, const Deletion &, Done) override {}
	void get_manifest(const PodKey &, Manifest) override {}
	void create_pod(const std::string &, const Json &, Done) override {}
	void patch_claim(const kube::ResourceClaim &, bool, const Json &, Done) override {}
	void get_volumes(const PodKey &, const std::vector<std::string> &,
			 std::function<void(const Volumes &)>) override
	{
	}
};

} // namespace

TEST_CASE("reports: events of an outage arrive afterwards, each once, and nothing is hammered meanwhile")
{
	Reports r;
	const int status = GENERATE(0, 302, 401, 403, 429, 503);
	r.event_status = [&](const PodEvent &) { return status; };
	for (const char *text : {"a", "b", "c"})
		r.tell("p", text);
	r.timer.advance(Millis(120'000));
	CHECK(r.events.size() >= 5); // tried again
	CHECK(r.events.size() <= 14);
	CHECK(r.times.size() == 3); // by the same name: a second event cannot come of it
	r.events.clear();
	r.event_status = [](const PodEvent &) { return 201; };
	r.timer.advance(Millis(61'000));
	CHECK(std::multiset<std::string>(r.events.begin(), r.events.end()) ==
	      std::multiset<std::string>{"a", "b", "c"});
}

TEST_CASE("reports: an event that is refused for ever stands in nobody's way and is given up")
{
	Reports r;
	r.event_status = [](const PodEvent &e) { return e.message == "bad" ? 403 : 201; };
	r.tell("p", "bad");
	r.tell("p", "good");
	r.timer.advance(Millis(3'000));
	CHECK(std::count(r.events.begin(), r.events.end(), "good") == 1);
	r.timer.advance(Millis(3'600'000));
	const auto bad = std::count(r.events.begin(), r.events.end(), "bad");
	CHECK(bad > 1);
	CHECK(bad <= 20);
	r.event_status = [](const PodEvent &) { return 422; }; // about this event: not again
	r.tell("p", "wrong");
	r.timer.advance(Millis(3'600'000));
	CHECK(std::count(r.events.begin(), r.events.end(), "wrong") == 1);
}

TEST_CASE("reports: conditions without the right to write them cost a request a minute, and come when it is given")
{
	Reports r;
	r.condition_status = 403;
	for (int i = 0; i < 100; i++)
		r.wish("p" + std::to_string(i), "waits");
	r.timer.advance(Millis(600'000));
	CHECK(r.conditions.size() <= 30);
	r.conditions.clear();
	r.condition_status = 200;
	r.timer.advance(Millis(130'000));
	CHECK(std::set<std::string>(r.conditions.begin(), r.conditions.end()).size() == 100);
}

TEST_CASE("reports: after an outage all is told at once, unless the server asked to wait")
{
	Reports r;
	r.condition_status = 503;
	r.event_status = [](const PodEvent &) { return 503; };
	const bool asked_to_wait = GENERATE(false, true);
	r.tell("p", "event");
	r.wish("p", "waits");
	r.wish("q", "waits");
	r.timer.advance(Millis(300'000));
	if (asked_to_wait) {
		r.retry_after = Millis(120'000);
		r.timer.advance(Millis(61'000));
		r.retry_after.reset();
	}
	r.events.clear();
	r.conditions.clear();
	r.condition_status = 200;
	r.event_status = [](const PodEvent &) { return 201; };
	r.reports.hurry();
	r.timer.advance(Millis(1'000));
	CHECK(r.events.size() == (asked_to_wait ? 0 : 1));
	CHECK(r.conditions.size() == (asked_to_wait ? 0 : 2));
	r.timer.advance(Millis(300'000));
	CHECK(r.events.size() == 1); // and each once
	CHECK(r.conditions.size() == 2);
}

TEST_CASE("reports: Retry-After of a condition's or an event's refusal is obeyed")
{
	Reports r;
	r.condition_status = 429;
	r.event_status = [](const PodEvent &) { return 429; };
	r.retry_after = Millis(200'000);
	r.wish("p", "waits");
	r.tell("p", "event");
	r.timer.advance(Millis(199'000));
	CHECK(r.conditions.size() == 1);
	CHECK(r.events.size() == 1);
	r.timer.advance(Millis(3'000));
	CHECK(r.conditions.size() == 2);
	CHECK(r.events.size() == 2);
}

TEST_CASE("reports: a text that is refused for good is not sent again, and does not take the next one along")
{
	Reports r;
	r.condition_status = 422;
	r.wish("p", "refused"); // on its way
	r.condition_status = 200;
	r.wish("p", "next"); // waits for its turn
	r.timer.advance(Millis(60'000));
	CHECK(r.conditions == std::vector<std::string>{"p:refused", "p:next"});

	r.condition_status = 422;
	r.wish("q", "refused");
	r.timer.advance(Millis(60'000));
	r.wish("q", "refused");
	r.timer.advance(Millis(60'000));
	CHECK(r.conditions.size() == 3);
}

TEST_CASE("reports: a condition goes out within seconds though more events come than may be sent")
{
	Reports r;
	for (int tenth = 0; tenth < 600; tenth++) {
		for (int n = 0; n < 3; n++)
			r.tell("p", std::to_string(tenth));
		if (tenth == 300)
			r.wish("q", "waits");
		r.timer.advance(Millis(100));
		if (tenth == 340)
			CHECK(r.conditions.size() == 1);
	}
	CHECK(r.conditions == std::vector<std::string>{"q:waits"});
	CHECK(r.events.size() > 1400); // 25 a second, and the first 50
}

TEST_CASE("reports: of too many events those that are no Warnings are dropped, and of Warnings the oldest")
{
	Reports r;
	const auto flood = [&r](bool warning, int count, const std::string &text) {
		for (int n = 0; n < count; n++)
			r.reports.event(Reports::key("p"), {warning, "Reason", text});
	};
	flood(false, 10, "before");
	r.tell("p", "warning");
	flood(false, 3000, "after");
	r.timer.advance(Millis(200'000));
	CHECK(std::ranges::count(r.events, "warning") == 1);
	CHECK(r.events.size() <= 2002);

	r.events.clear();
	flood(true, 3000, "warnings");
	r.tell("p", "the last");
	flood(false, 3000, "normal");
	r.timer.advance(Millis(200'000));
	CHECK(std::ranges::count(r.events, "normal") == 0);
	CHECK(std::ranges::count(r.events, "the last") == 1);
}
