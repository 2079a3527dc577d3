// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Jobs and pods of higher tiers come when lower ones have all there is, and something breaks in
// the midst of it.
#include <algorithm>

#include "test/sim/make_more.h"

namespace sk8::sim {

namespace {

class PreemptionMaker {
public:
	PreemptionMaker(Case &c, Dice &dice, Micros length) : case_(c), dice_(dice), length_(length) {}

	void make()
	{
		case_.grace = chance(300) ? 0 : number(1, chance(500) ? 10 : 60);
		for (Action &a : case_.actions)
			if (a.verb == "create")
				victim(a);
			else if (a.verb == "batch" && chance(200))
				a.with["qos"] = "patient";
		for (int n = number(1, 5); n > 0; n--)
			preemptor("h" + std::to_string(n));
		for (int n = chance(300) ? number(1, 3) : 0; n > 0; n--)
			by_hand();
	}

private:
	int number(int low, int high) { return static_cast<int>(dice_.between("case", low, high)); }
	bool chance(int permille) { return dice_.chance("case", permille); }
	static void set(Action &a, const std::string &key, int value) { a.with[key] = std::to_string(value); }
	Action &add(const std::string &verb, Micros at)
	{
		case_.actions.push_back({std::max<Micros>(at, 0), verb, {}});
		return case_.actions.back();
	}

	// Often it runs long enough for one to come, and does not go at a word.
	void victim(Action &a)
	{
		if (chance(200))
			a.with["qos"] = "patient";
		if (chance(150))
			set(a, "high", number(1, 2));
		if (chance(500))
			set(a, "life", number(20, 120));
		if (chance(300))
			set(a, "stubborn", 1);
		if (chance(300))
			set(a, "grace", number(1, 60));
	}
	void preemptor(const std::string &name)
	{
		const Micros at = dice_.between("case", 0, length_);
		const bool pod = chance(400);
		Action &a = add(pod ? "create" : "batch", at);
		a.with[pod ? "pod" : "job"] = name;
		set(a, "cpu", number(1, case_.cores));
		set(a, "mem", number(1, 20) * 100);
		set(a, "life", number(1, 30));
		set(a, "high", chance(250) ? 2 : 1);
		if (!pod && chance(200))
			set(a, "requeues", 1);
		if (chance(500))
			breaks(at);
	}
	// Something between its arrival and some time after the end of the grace.
	void breaks(Micros arrival)
	{
		const Micros at = arrival + dice_.between("case", 0, (case_.grace + 10) * second);
		const std::string node = "n" + std::to_string(number(1, case_.nodes));
		switch (number(0, 5)) {
		case 0:
		case 1: {
			Action &a = add("crash", at);
			set(a, "after", number(0, 6));
			set(a, "down", number(10, 20'000));
			break;
		}
		case 2:
			set(add("apidown", at - number(0, 3000) * ms), "for", number(1, case_.grace + 10));
			break;
		case 3: {
			Action &a = add("netcut", at);
			a.with["node"] = node;
			set(a, "for", number(1, 60));
			break;
		}
		case 4: {
			Action &a = add("kubelate", at);
			set(a, "late", number(500, 10'000));
			set(a, "for", number(1, 30));
			break;
		}
		default: {
			Action &a = add("nodefail", at);
			a.with["node"] = node;
			set(a, "for", number(1, 60));
			break;
		}
		}
	}
	// scontrol has no word for it; a QOS that preempts all others comes near.
	void by_hand()
	{
		std::vector<std::string> pods;
		for (const Action &a : case_.actions)
			if (a.verb == "create")
				pods.push_back(a.text("pod"));
		if (pods.empty())
			return;
		Action &a = add("preempt", dice_.between("case", 0, length_));
		a.with["pod"] = pods[static_cast<std::size_t>(number(0, static_cast<int>(pods.size()) - 1))];
		set(a, "grace", number(0, 30));
	}

	Case &case_;
	Dice &dice_;
	const Micros length_;
};

} // namespace

void add_preemption(Case &c, Dice &dice, Micros length)
{
	PreemptionMaker(c, dice, length).make();
}

} // namespace sk8::sim
