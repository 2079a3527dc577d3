// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Static pods, whose files come, change and go, and whose mirrors people delete.
#include <algorithm>

#include "test/sim/make_more.h"

namespace sk8::sim {

namespace {

class StaticMaker {
public:
	StaticMaker(Case &c, Dice &dice, Micros length) : case_(c), dice_(dice), length_(length) {}

	void make()
	{
		for (int n = number(1, 3); n > 0; n--)
			pod("s" + std::to_string(n), "n" + std::to_string(number(1, case_.nodes)));
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
	Action &on(const std::string &verb, const std::string &pod, Micros at)
	{
		Action &a = add(verb, at);
		a.with["pod"] = pod;
		return a;
	}

	void file(const std::string &name, const std::string &node, Micros at)
	{
		Action &a = on("static", name, at);
		a.with["node"] = node;
		set(a, "mcpu", number(0, 25) * 100);
		set(a, "mem", number(0, 12) * 100);
		if (chance(200))
			set(a, "life", number(0, 40));
		if (chance(300))
			set(a, "stubborn", 1);
		if (chance(300))
			set(a, "pull", number(0, 5000));
		if (chance(500))
			set(a, "grace", number(1, 120));
		if (dice_.chance("critical", 300))
			set(a, "critical", 1);
	}
	void pod(const std::string &name, const std::string &node)
	{
		const Micros at = dice_.between("case", 0, length_ / 2);
		file(name, node, at);
		for (int n = number(0, 3); n > 0; n--)
			mirror_goes(name, node, at + dice_.between("case", second, length_));
		if (chance(50))
			on("gc", name, at + dice_.between("case", second, length_));
		const Micros then = at + dice_.between("case", second, length_);
		if (chance(300))
			file(name, node, then);
		else if (chance(500))
			on("unstatic", name, then);
	}
	// Perhaps while its kubelet cannot make it again, or nobody looks, or just when its file goes.
	void mirror_goes(const std::string &name, const std::string &node, Micros at)
	{
		Action &a = on("delete", name, at);
		if (chance(500))
			set(a, "force", 1);
		else if (chance(500))
			set(a, "grace", number(1, 10));
		if (chance(500)) {
			Action &cut = add("netcut", at - number(0, 2000) * ms);
			cut.with["node"] = node;
			set(cut, "for", number(5, 90));
			jobs(at + number(0, 5000) * ms);
		} else if (chance(300)) {
			Action &down = add("crash", at - number(0, 2000) * ms);
			set(down, "after", 0);
			set(down, "down", number(1000, 8000));
		} else if (chance(300)) {
			on("unstatic", name, at + number(-3000, 3000) * ms);
			jobs(at + number(60, 150) * second);
		}
	}
	// ... and who would take all there is.
	void jobs(Micros at)
	{
		for (int n = number(1, 2); n > 0; n--) {
			Action &a = add("batch", at);
			a.with["job"] = "all" + std::to_string(case_.actions.size());
			set(a, "cpu", case_.cores);
			set(a, "life", number(1, 20));
		}
	}

	Case &case_;
	Dice &dice_;
	const Micros length_;
};

} // namespace

void add_static_pods(Case &c, Dice &dice, Micros length)
{
	StaticMaker(c, dice, length).make();
}

} // namespace sk8::sim
