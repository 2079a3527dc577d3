// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The part of a case about devices that are claimed: what had GPUs has them by claims, several pods have one claim, and drivers
// come and go. Chance of its own: cases without claims are what they were.
#include <algorithm>
#include <map>
#include <string>

#include "test/sim/case.h"
#include "test/sim/dice.h"
#include "test/sim/make_more.h"

namespace sk8::sim {

namespace {

class ClaimsMaker {
public:
	ClaimsMaker(Case &c, Micros length) : dice_(c.seed * 0xbf58476d1ce4e5b9 + 13), case_(c), length_(length) {}

	void make()
	{
		case_.claims = true;
		// Of what these do to claims the model says nothing.
		std::erase_if(case_.actions, [](const Action &a) {
			return a.verb == "backup" || a.verb == "restore" || a.verb == "second" ||
			       (a.verb == "config" && (a.has("selector") || a.has("schedulers")));
		});
		if (case_.gpus == 0)
			give_gpus();
		share();
		for (int n = number(0, 5); n > 0; n--)
			job("g" + std::to_string(n));
		for (int n = chance(500) ? number(1, 4) : 0; n > 0; n--)
			foreign("d" + std::to_string(n));
		for (int n = chance(250) ? number(1, 3) : 0; n > 0; n--)
			trouble("driver", 40);
		for (int n = chance(250) ? number(1, 3) : 0; n > 0; n--)
			set(trouble("taint", 40), "device", number(0, case_.gpus - 1));
		for (int n = chance(500) ? number(1, 3) : 0; n > 0; n--)
			watch();
	}

private:
	int number(int low, int high) { return static_cast<int>(dice_.between("claims", low, high)); }
	bool chance(int permille) { return dice_.chance("claims", permille); }
	Micros some_time() { return dice_.between("claims", 0, length_); }
	std::string some_node() { return "n" + std::to_string(number(1, case_.nodes)); }
	static void set(Action &a, const std::string &key, int value) { a.with[key] = std::to_string(value); }
	Action &add(const std::string &verb, Micros at)
	{
		case_.actions.push_back({at, verb, {}});
		return case_.actions.back();
	}

	// The same if it is made again.
	void give_gpus()
	{
		case_.gpus = number(1, 4);
		std::map<std::string, int> of;
		for (Action &a : case_.actions) {
			if (a.verb != "create" && a.verb != "foreign" && a.verb != "batch")
				continue;
			const auto [it, fresh] = of.try_emplace(a.verb + a.text(a.has("job") ? "job" : "pod"));
			if (fresh)
				it->second = chance(500) ? number(1, case_.gpus) : 0;
			if (it->second)
				set(a, "gpu", it->second);
		}
	}
	// Some of the pods that there are, and some that come one after the other.
	void share()
	{
		const int claims = number(0, 2);
		std::map<std::string, int> of;
		for (Action &a : case_.actions) {
			if (a.verb != "create" || claims == 0 || a.has("ns"))
				continue;
			const auto [it, fresh] = of.try_emplace(a.text("pod"));
			if (fresh)
				it->second = chance(400) ? number(1, claims) : 0;
			if (it->second)
				a.with["claim"] = "c" + std::to_string(it->second);
		}
		for (int c = 1; c <= claims; c++) {
			const int shares = number(1, std::min(2, case_.gpus));
			shares_ = c == 1 ? shares : shares_;
			const Micros begin = some_time();
			for (int n = number(0, 4); n > 0; n--)
				sharing("s" + std::to_string(c) + std::to_string(n), "c" + std::to_string(c), begin);
			for (Action &a : case_.actions)
				if (a.text("claim") == "c" + std::to_string(c))
					set(a, "shares", shares);
		}
	}
	void sharing(const std::string &name, const std::string &claim, Micros begin)
	{
		Action &a = add("create", begin + number(0, 15'000) * ms);
		const Micros at = a.at;
		a.with["pod"] = name;
		a.with["claim"] = claim;
		set(a, "cpu", 1);
		set(a, "mem", number(1, 8) * 100);
		if (!chance(150))
			set(a, "life", number(0, 40));
		if (chance(200))
			set(a, "stubborn", 1);
		if (chance(200))
			set(a, "pull", number(0, 5000));
		if (chance(150))
			set(a, "gpu", 1);
		if (chance(150))
			set(a, "bare", 1);
		if (!chance(300))
			return;
		static const char *const ends[] = {"delete", "delete", "cancel", "preempt", "nodefail-job"};
		Action &end = add(ends[number(0, 4)], at + number(0, 40'000) * ms);
		end.with["pod"] = name;
		if (end.verb == "delete" && chance(300))
			set(end, "force", 1);
	}
	// Who waits for devices.
	void job(const std::string &name)
	{
		Action &a = add("batch", some_time());
		a.with["job"] = name;
		set(a, "cpu", 1);
		set(a, "mem", 100);
		set(a, "gpu", number(1, case_.gpus));
		set(a, "life", number(0, 20));
	}
	// One in five has a part of what pods for Slurm have, where they are or before them.
	void foreign(const std::string &name)
	{
		Action &a = add("foreign", some_time());
		a.with["pod"] = name;
		a.with["node"] = some_node();
		a.with["kind"] = chance(700) ? "daemon" : "pod";
		set(a, "mcpu", number(0, 5) * 100);
		if (shares_ > 0 && chance(200)) { // until somebody deletes it: its node may never be there again
			a.with["ns"] = "team-a";
			a.with["claim"] = "c1";
			set(a, "shares", shares_);
		} else {
			set(a, "gpu", number(1, case_.gpus));
			if (chance(700))
				set(a, "life", number(0, 40));
		}
		if (chance(250))
			set(a, "stubborn", 1);
		const Micros at = a.at;
		if (!chance(400))
			return;
		Action &end = add("delete", at + number(0, 40'000) * ms);
		end.with["pod"] = name;
		if (chance(300))
			set(end, "force", 1);
	}
	Action &trouble(const char *verb, int most)
	{
		Action &a = add(verb, some_time());
		a.with["node"] = some_node();
		set(a, "for", number(1, most));
		return a;
	}
	void watch()
	{
		Action &a = add("watch", some_time());
		a.with["of"] = "claims";
		set(a, "for", number(1, 30));
		if (chance(500))
			set(a, "break", 1);
		if (chance(300))
			set(a, "lost", 1);
		if (chance(600))
			set(a, "late", number(100, 10'000));
	}

	Dice dice_;
	Case &case_;
	const Micros length_;
	int shares_ = 0; // devices of the claim c1; 0: there is none
};

} // namespace

void make_claims(Case &c, Micros length)
{
	ClaimsMaker(c, length).make();
}

} // namespace sk8::sim
