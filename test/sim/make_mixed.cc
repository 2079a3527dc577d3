// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The part of a case about nodes that are shared as mixed: Slurm's own jobs, others' pods
// that come for the same cores, and those who take jobs' pods.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "test/sim/case.h"
#include "test/sim/dice.h"

namespace sk8::sim {

namespace {

class MixedMaker {
public:
	MixedMaker(Case &c, Micros length) : dice_(c.seed * 0x9e3779b97f4a7c15 + 11), case_(c), length_(length) {}

	void make()
	{
		if (!chance(400))
			return;
		case_.mixed = number(1, case_.nodes);
		if (dice_.chance("shared", 400))
			case_.shared = static_cast<int>(dice_.between("shared", 1, case_.cores));
		populate(10, "mixed");
	}

	void make_device_pods()
	{
		case_.device_pods = true;
		populate(8, "devices");
	}

private:
	static constexpr const char *evictions[] = {"ignore", "requeue", "cancel"};

	// What becomes of taken pods, jobs, and foreign pods that come for their room. word: of "config", what is off for a while.
	void populate(int most_jobs, const char *word)
	{
		case_.eviction = evictions[number(0, 2)];
		case_.gate_timeout = number(5, 60);
		for (int n = number(2, most_jobs); n > 0; n--)
			job("m" + std::to_string(n));
		for (int n = number(0, 6); n > 0; n--)
			foreign("r" + std::to_string(n));
		if (chance(200))
			return quiet();
		if (chance(150))
			for_a_while(word);
	}

	// Nobody has such pods.
	void for_a_while(const char *word)
	{
		Action off{some_time(), "config", {{word, "0"}}};
		Action on{off.at + number(1, 30'000) * ms, "config", {}};
		case_.actions.insert(case_.actions.end(), {off, on});
	}
	int number(int low, int high) { return static_cast<int>(dice_.between("mixed", low, high)); }
	bool chance(int permille) { return dice_.chance("mixed", permille); }
	Micros some_time() { return dice_.between("mixed", 0, length_); }
	std::string some_node() { return "n" + std::to_string(number(1, case_.mixed ? case_.mixed : case_.nodes)); }
	static void set(Action &a, const std::string &key, int value) { a.with[key] = std::to_string(value); }

	void job(const std::string &name)
	{
		Action a{some_time(), "batch", {{"job", name}}};
		set(a, "cpu", number(1, case_.cores));
		set(a, "mem", number(1, 20) * 100);
		set(a, "life", chance(300) ? number(30, 90) : number(0, 20));
		if (chance(300))
			set(a, "srun", 1);
		else if (chance(700))
			set(a, "requeues", 1);
		if (chance(150))
			set(a, "high", 1);
		some_gpus(a, 800);
		const Micros at = a.at;
		case_.actions.push_back(std::move(a));
		for (int n = chance(500) ? number(1, 2) : 0; n > 0; n--)
			something(name, at + number(0, chance(500) ? 3000 : 40'000) * ms);
	}
	void some_gpus(Action &a, int permille)
	{
		if (case_.device_pods && chance(permille))
			set(a, "gpu", number(1, case_.gpus));
	}
	// ... that befalls it, perhaps in the gate.
	void something(const std::string &name, Micros at)
	{
		static const char *const verbs[] = {"cancel", "requeue", "preempt", "nodefail-job", "take", "take", "take", "take"};
		static const char *const hows[] = {"evicted", "preempting", "drain", "preempted", "taint",
						   "delete",  "force",	    "gc",    "refused"};
		Action a{at, verbs[number(0, 7)], {{"job", name}}};
		if (a.verb == "take")
			a.with["how"] = hows[number(0, 8)];
		if (chance(100)) {
			a.verb = "impostor";
			a.with["node"] = some_node();
			if (case_.shared && dice_.chance("shared", 500)) {
				set(a, "shared", 1);
				set(a, "again", number(0, 60));
			}
		}
		case_.actions.push_back(std::move(a));
	}
	// Nothing breaks: what the settings say of a job whose pod is taken must come about.
	void quiet()
	{
		static constexpr std::string_view people[] = {"create", "foreign", "batch", "delete", "cancel", "preempt", "requeue", "take"};
		case_.faults = 0;
		std::erase_if(case_.actions, [](const Action &a) { return std::ranges::find(people, a.verb) == std::end(people); });
	}
	// Of whom one comes first.
	void foreign(const std::string &name)
	{
		static const char *const kinds[] = {"named", "pod", "daemon"};
		Action a{some_time(), "foreign", {{"pod", name}, {"node", some_node()}, {"kind", kinds[number(0, 2)]}}};
		set(a, "mcpu", number(1, 10 * case_.cores) * 100);
		set(a, "mem", number(0, 12) * 100);
		set(a, "life", number(0, 40));
		set(a, "grace", number(1, 10));
		if (dice_.chance("critical", 150))
			set(a, "critical", 1);
		some_gpus(a, 500);
		case_.actions.push_back(std::move(a));
	}

	Dice dice_;
	Case &case_;
	const Micros length_;
};

} // namespace

void make_mixed(Case &c, Micros length)
{
	MixedMaker(c, length).make();
}

void make_device_pods(Case &c, Micros length)
{
	MixedMaker(c, length).make_device_pods();
}

} // namespace sk8::sim
