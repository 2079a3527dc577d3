// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A seed as a case. Each seed has its own mixture: a random half of the kinds of
// faults, so that rare combinations come up in few steps.
#include <algorithm>
#include <map>

#include "test/sim/case.h"
#include "test/sim/dice.h"
#include "test/sim/make_more.h"

namespace sk8::sim {

namespace {

class Maker {
public:
	Maker(std::uint64_t seed, bool mixed) : dice_(seed * 0x2545f4914f6cdd1d + 7), mixed_(mixed) { case_.seed = seed; }

	Case make()
	{
		case_.nodes = number(1, 3);
		case_.cores = number(2, 6);
		case_.job_ids = chance(300) ? number(8, 40) : 10'000;
		case_.faults = chance(400) ? number(10, 150) : 0;
		length_ = number(20, 90) * second;
		const int pods = number(2, 12);
		for (int i = 0; i < pods; i++)
			pod("p" + std::to_string(i));
		const int batch = chance(700) ? number(1, 10) : 0;
		for (int i = 0; i < batch; i++)
			this->batch("b" + std::to_string(i));
		for (const Kind &kind : kinds)
			if (chance(kind.permille))
				for (int n = number(1, kind.most); n > 0; n--)
					(this->*kind.make)();
		if (chance(500))
			foreign_pods();
		if (chance(400))
			add_preemption(case_, dice_, length_);
		if (chance(250))
			add_static_pods(case_, dice_, length_);
		if (chance(400))
			node_states();
		if (case_.node_state && dice_.chance("cut", 150))
			cut_for_long();
		if (dice_.chance("resize", 250))
			add_resizes(case_, dice_, length_);
		if (mixed_)
			make_mixed(case_, length_);
		if (chance(400))
			gpus();
		if (case_.mixed)
			devices();
		else if (case_.gpus && dice_.chance("device pods", 400))
			device_pods();
		if (dice_.chance("slots", 200))
			case_.slots = static_cast<int>(dice_.between("slots", 1, 6));
		if (chance(400))
			bare_pods();
		if (!case_.mixed && !case_.device_pods && dice_.chance("claims", 200))
			make_claims(case_, length_);
		case_.unnamed = dice_.chance("unnamed", 400);
		std::stable_sort(case_.actions.begin(), case_.actions.end(),
				 [](const Action &a, const Action &b) { return a.at < b.at; });
		return std::move(case_);
	}

private:
	struct Kind {
		int permille, most;
		void (Maker::*make)();
	};
	static const std::vector<Kind> kinds;

	int number(int low, int high) { return static_cast<int>(dice_.between("case", low, high)); }
	bool chance(int permille) { return dice_.chance("case", permille); }
	std::string some_pod() { return pods_.at(static_cast<std::size_t>(number(0, static_cast<int>(pods_.size()) - 1))); }
	std::string some_node() { return "n" + std::to_string(number(1, case_.nodes)); }
	Micros some_time() { return dice_.between("case", 0, length_); }
	Action &add(const std::string &verb, Micros at)
	{
		case_.actions.push_back({at, verb, {}});
		return case_.actions.back();
	}
	static void set(Action &a, const std::string &key, int value) { a.with[key] = std::to_string(value); }

	void create(const std::string &name, Micros at, bool again)
	{
		Action &a = add("create", at);
		a.with["pod"] = name;
		set(a, "cpu", number(1, std::min(3, case_.cores)));
		set(a, "mem", number(1, 15) * 100);
		if (!chance(150))
			set(a, "life", number(0, 30));
		if (chance(400))
			set(a, "exit", number(1, 9));
		if (chance(100))
			set(a, "oom", 1);
		if (chance(150))
			set(a, "stubborn", 1);
		if (chance(40))
			set(a, "refused", 1);
		if (chance(300))
			set(a, "pull", number(0, 5000));
		if (chance(300))
			set(a, "grace", number(1, 20));
		if (again)
			set(a, "again", 30);
		if (chance(30))
			a.with["ns"] = "others";
	}
	void pod(const std::string &name)
	{
		pods_.push_back(name);
		const Micros at = some_time();
		create(name, at, false);
		if (chance(250)) {
			Action &a = add("delete", std::min(length_, at + number(0, 30'000) * ms));
			a.with["pod"] = name;
			const Micros then = a.at;
			if (chance(200))
				set(a, "force", 1);
			if (chance(500))
				create(name, then + number(0, 3000) * ms, true);
		}
	}
	void batch(const std::string &name)
	{
		Action &a = add("batch", some_time());
		a.with["job"] = name;
		set(a, "cpu", number(1, case_.cores));
		set(a, "mem", number(1, 20) * 100);
		set(a, "life", number(0, 20));
		if (chance(200))
			set(a, "high", 1);
		if (chance(200))
			set(a, "requeues", 1);
	}
	void on_pod(const char *verb)
	{
		Action &a = add(verb, some_time());
		a.with["pod"] = some_pod();
	}
	Action &for_a_while(const char *verb, int most)
	{
		Action &a = add(verb, some_time());
		set(a, "for", number(1, most));
		return a;
	}

	void cancel() { on_pod("cancel"); }
	void timeout() { on_pod("timeout"); }
	void job_fails() { on_pod("nodefail-job"); }
	void preempt() { on_pod("preempt"); }
	void gc() { on_pod("gc"); }
	void annotate() { on_pod("annotate"); }
	void finalizer()
	{
		on_pod("finalizer");
		Action off = case_.actions.back();
		off.at += number(1, 20) * second;
		set(off, "on", 0);
		case_.actions.push_back(off);
	}
	void hold()
	{
		on_pod("priority");
		set(case_.actions.back(), "to", chance(500) ? 0 : 5000);
		Action off = case_.actions.back();
		off.at += number(1, 20) * second;
		set(off, "to", 1000);
		case_.actions.push_back(off);
	}
	void exclude()
	{
		on_pod("exclude");
		case_.actions.back().with["nodes"] = some_node();
	}
	void cordon()
	{
		Action &a = add("cordon", some_time());
		a.with["node"] = some_node();
		Action off = a;
		off.at += number(1, 20) * second;
		set(off, "on", 0);
		case_.actions.push_back(off);
	}
	void crash()
	{
		Action &a = add("crash", some_time());
		set(a, "after", number(0, 12));
		set(a, "down", number(10, 8000));
	}
	void forget()
	{
		crash();
		Action &a = case_.actions.back();
		set(a, "forget", 1);
		if (!chance(300))
			return;
		// ... and it dies again before it has heard of all that there is
		const Micros up = a.at + a.number("down") * ms;
		set(add("crash", up + number(1000, 9000) * ms), "after", 0);
		Action &slow = add("watch", up);
		set(slow, "list", number(1000, 10'000));
		set(slow, "for", 10);
	}
	void shutdown() { set(add("shutdown", some_time()), "down", number(10, 8000)); }
	void reconfigure() { add("reconfigure", some_time()); }
	void locks() { set(for_a_while("locks", 20), "delay", number(100, 5000)); }
	void busy() { for_a_while("busy", 20); }
	void diskfull() { for_a_while("diskfull", 20); }
	void clock() { set(add("clock", some_time()), "step", number(-30, 30)); }
	void apidown() { for_a_while("apidown", 30); }
	void apihang() { for_a_while("apihang", 50); }
	void forbid() { for_a_while("forbid", 90); }
	void faults() { set(for_a_while("faults", 30), "rate", number(100, 900)); }
	void watch()
	{
		Action &a = for_a_while("watch", 30);
		if (chance(500))
			set(a, "break", 1);
		if (chance(300))
			set(a, "lost", 1);
		if (chance(500))
			set(a, "late", number(100, 10'000));
		if (chance(500))
			set(a, "twice", number(100, 500));
		if (chance(300))
			set(a, "reorders", 1);
	}
	void nodefail() { for_a_while("nodefail", 60).with["node"] = some_node(); }
	void netcut() { for_a_while("netcut", 40).with["node"] = some_node(); }
	void restore()
	{
		// What ran is in none of the two then, and nobody can know of it.
		if (std::any_of(case_.actions.begin(), case_.actions.end(),
				[](const Action &a) { return a.has("forget"); }))
			return;
		const Micros taken = add("backup", some_time()).at;
		add("restore", taken + number(1, 60) * second);
	}
	void second_job()
	{
		on_pod("second");
		if (chance(400))
			set(case_.actions.back(), "held", 1);
	}
	// What stands in slurm-k8s.yaml is another thing for a while.
	void config()
	{
		static constexpr const char *words[][2] = {
			{"user", "bob"}, {"user", ""}, {"schedulers", "other"}, {"schedulers", "other,slurm"}, {"broken", "1"}};
		Action a{some_time(), "config", {}};
		const int what = number(0, 5);
		const bool forgets = std::any_of(case_.actions.begin(), case_.actions.end(),
						 [](const Action &other) { return other.has("forget"); });
		if (what == 4 && forgets)
			return; // neither says then which nodes are shared
		if (what == 5)
			a.with["selector"] = "name=" + some_node();
		else
			a.with[words[what][0]] = words[what][1];
		if (chance(300))
			set(a, "later", 1);
		case_.actions.push_back(a);
		if (chance(700))
			add("config", a.at + number(1, 30'000) * ms);
	}
	void kubelate() { set(for_a_while("kubelate", 30), "late", number(500, 10'000)); }

	void release()
	{
		Action &a = add("release", some_time());
		a.with["pod"] = some_pod();
		set(a, "for", number(1, 60));
		if (chance(500))
			set(a, "force", 1);
		if (chance(500))
			set(a, "then", number(0, 12));
	}
	// The others can do what it did.
	void nodegone()
	{
		if (case_.nodes > 1)
			add("nodegone", some_time()).with["node"] = "n" + std::to_string(case_.nodes);
	}

	void nodedelete()
	{
		case_.node_state = true; // who deletes a node is told to Slurm, which gives it no more jobs
		Action &a = add("nodedelete", some_time());
		a.with["node"] = some_node();
		set(a, "for", number(1, 120));
	}

	// Both administrators, in any order, in bursts.
	void node_states()
	{
		case_.node_state = true;
		for (int burst = number(1, 4); burst > 0; burst--) {
			const std::string node = some_node();
			Micros at = some_time();
			for (int n = number(1, 5); n > 0; n--) {
				static const char *const verbs[] = {"cordon", "cordon", "drain", "undrain"};
				static const char *const others[] = {"condition", "fail", "maint", "down"};
				const bool other = chance(150);
				Action &a = add(other ? others[number(0, 3)] : verbs[number(0, 3)], at);
				a.with["node"] = node;
				if (other && a.verb != "down") // somebody resumes it, or it stays
					set(a, "for", number(1, 40));
				if (a.verb == "cordon")
					set(a, "on", number(0, 1));
				if (a.verb == "drain" && chance(500))
					a.with["reason"] = "fan";
				at += chance(500) ? number(0, 500) * ms : number(0, 15'000) * ms;
			}
		}
	}
	// So long that the node counts as not ready, and for so long that Slurm is told; somebody looks at the end.
	void cut_for_long()
	{
		const std::string node = some_node();
		const Micros at = some_time();
		const int lasts = number(70, 150);
		Action &cut = add("netcut", at);
		cut.with["node"] = node;
		set(cut, "for", lasts);
		add("reconfigure", at + lasts * second);
	}
	// Some of all that runs has GPUs, the same if it is made again.
	void gpus()
	{
		case_.gpus = number(1, 4);
		std::map<std::string, int> of;
		for (Action &a : case_.actions) {
			if (a.verb != "create" && a.verb != "foreign" && a.verb != "batch")
				continue;
			const std::string name = a.verb + a.text(a.has("job") ? "job" : "pod");
			if (!of.contains(name))
				of[name] = chance(500) ? number(1, case_.gpus) : 0;
			if (of[name])
				set(a, "gpu", of[name]);
		}
	}
	// Of mixed nodes more have GPUs, most of them with a device plugin.
	void devices()
	{
		if (case_.gpus == 0 && dice_.chance("devices", 300))
			gpus();
		case_.device_plugin = case_.gpus && dice_.chance("devices", 700);
		if (!case_.device_plugin)
			return;
		for (auto n = dice_.chance("devices", 300) ? dice_.between("devices", 1, 2) : 0; n > 0; n--) {
			Action a{dice_.between("devices", 0, length_), "agentlate", {}};
			set(a, "late", static_cast<int>(dice_.between("devices", 500, 20'000)));
			set(a, "for", static_cast<int>(dice_.between("devices", 1, 30)));
			case_.actions.push_back(std::move(a));
		}
	}
	// Of others only what Slurm's own jobs have of GPUs is held.
	void device_pods()
	{
		devices();
		make_device_pods(case_, length_);
	}
	// Some pods are nobody's but their user's, the same if they are made again.
	void bare_pods()
	{
		std::map<std::string, bool> bare;
		for (Action &a : case_.actions) {
			if (a.verb != "create")
				continue;
			const auto [it, fresh] = bare.try_emplace(a.text("pod"));
			if (fresh)
				it->second = chance(600);
			if (it->second)
				set(a, "bare", 1);
		}
		for (int n = number(1, 4); n > 0; n--)
			on_pod(chance(700) ? "preempt" : "nodefail-job");
		if (!chance(500))
			return;
		// Its owner is faster, and we hear of it late.
		on_pod("delete");
		Action preempt = case_.actions.back(), late = preempt;
		preempt.verb = "preempt";
		preempt.at += number(0, 1000) * ms;
		late.verb = "watch";
		late.at = std::max<Micros>(0, late.at - 100 * ms);
		late.with = {{"late", "3000"}, {"for", "4"}};
		case_.actions.push_back(preempt);
		case_.actions.push_back(late);
	}
	void foreign_pods()
	{
		if (chance(400)) {
			case_.aside = number(0, 2);
			case_.aside_memory = number(0, 10) * 100;
		}
		for (int n = number(1, 8); n > 0; n--)
			foreign_pod("f" + std::to_string(n));
		for (int n = chance(400) ? number(1, 3) : 0; n > 0; n--) {
			watch();
			case_.actions.back().with["of"] = "foreign";
		}
	}
	void foreign_pod(const std::string &name)
	{
		const Micros at = some_time();
		const std::string node = create_foreign(name, at, false);
		auto on_it = [&](const char *verb, Micros when) -> Action & {
			Action &a = add(verb, when);
			a.with["pod"] = name;
			return a;
		};
		if (chance(50))
			on_it("gc", at + number(0, 30'000) * ms);
		if (chance(400))
			set(on_it("release", some_time()), "for", number(1, 60));
		if (chance(200))
			return vanish_unseen(name, node, at + number(3000, 20'000) * ms);
		if (!chance(500))
			return;
		Action &a = on_it("delete", at + number(0, 40'000) * ms);
		const Micros then = a.at;
		if (chance(400))
			set(a, "force", 1);
		if (chance(500))
			create_foreign(name, then + number(0, 3000) * ms, true);
	}
	// Deleted by force while slurmctld is down, and perhaps its node cut off; jobs that would take all of it.
	void vanish_unseen(const std::string &name, const std::string &node, Micros at)
	{
		Action &down = add("crash", at);
		set(down, "down", number(2000, 8000));
		Action &gone = add("delete", at + number(500, 3000) * ms);
		gone.with["pod"] = name;
		set(gone, "force", 1);
		if (chance(500)) {
			Action &cut = add("netcut", std::max<Micros>(at - number(0, 2000) * ms, 0));
			cut.with["node"] = node;
			set(cut, "for", number(20, 120));
		}
		for (int n = number(1, 3); n > 0; n--) {
			Action &all = add("batch", at + number(10, 150) * second);
			all.with["job"] = "all" + name + std::to_string(n);
			set(all, "cpu", case_.cores);
			set(all, "life", number(1, 20));
		}
	}
	// Returns its node.
	std::string create_foreign(const std::string &name, Micros at, bool again)
	{
		static const char *const kinds_of_foreign[] = {"daemon", "named", "pod"};
		Action &a = add("foreign", at);
		a.with["pod"] = name;
		a.with["node"] = some_node();
		a.with["kind"] = kinds_of_foreign[number(0, 2)];
		set(a, "mcpu", number(0, 25) * 100);
		set(a, "mem", number(0, 12) * 100);
		if (chance(500))
			set(a, "life", number(0, 40));
		if (chance(200))
			set(a, "exit", number(1, 9));
		if (chance(250))
			set(a, "stubborn", 1);
		if (chance(300))
			set(a, "pull", number(0, 5000));
		if (chance(500))
			set(a, "grace", number(1, 120));
		if (again)
			set(a, "again", 30);
		return a.text("node");
	}

	Dice dice_;
	const bool mixed_;
	Case case_;
	Micros length_ = 0;
	std::vector<std::string> pods_;
};

const std::vector<Maker::Kind> Maker::kinds = {
	{400, 4, &Maker::cancel},    {200, 2, &Maker::timeout},  {150, 2, &Maker::job_fails}, {200, 3, &Maker::preempt},
	{80, 1, &Maker::gc},	     {200, 5, &Maker::annotate}, {150, 3, &Maker::finalizer}, {200, 3, &Maker::hold},
	{200, 3, &Maker::exclude},   {200, 3, &Maker::cordon},	 {400, 4, &Maker::crash},     {60, 1, &Maker::forget},
	{150, 2, &Maker::shutdown},  {200, 3, &Maker::reconfigure}, {200, 2, &Maker::locks},  {100, 2, &Maker::busy},
	{100, 2, &Maker::diskfull},  {100, 3, &Maker::clock},	 {200, 2, &Maker::apidown},   {150, 2, &Maker::apihang},
	{80, 1, &Maker::forbid},     {250, 3, &Maker::faults},	 {300, 4, &Maker::watch},     {150, 2, &Maker::nodefail},
	{150, 2, &Maker::netcut},    {150, 2, &Maker::kubelate}, {60, 2, &Maker::restore},
	{250, 6, &Maker::release},   {100, 1, &Maker::nodegone}, {150, 2, &Maker::second_job},    {200, 3, &Maker::config},
	{120, 2, &Maker::nodedelete},
};

} // namespace

Case make_case(std::uint64_t seed, bool mixed)
{
	return Maker(seed, mixed).make();
}

} // namespace sk8::sim
