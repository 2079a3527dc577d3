// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Pods that people, or an autoscaler, resize in place: pods for Slurm, also while their jobs wait, and foreign ones.
#include <algorithm>
#include <string>
#include <vector>

#include "test/sim/make_more.h"

namespace sk8::sim {

void add_resizes(Case &c, Dice &dice, Micros length)
{
	const std::string of = "resize";
	std::vector<Action> created;
	std::ranges::copy_if(c.actions, std::back_inserter(created),
			     [](const Action &a) { return a.verb == "create" || a.verb == "foreign"; });
	for (auto n = dice.between(of, 1, 8); n > 0; n--) {
		const Action &pod = created[static_cast<std::size_t>(dice.between(of, 0, std::ssize(created) - 1))];
		Action a{pod.at + dice.between(of, 0, dice.chance(of, 500) ? 5 * second : length), "resize", {}};
		a.with["pod"] = pod.text("pod");
		if (pod.verb == "foreign")
			a.with["mcpu"] = std::to_string(100 * dice.between(of, 0, 10 * c.cores));
		else
			a.with["cpu"] = std::to_string(dice.between(of, 1, c.cores));
		a.with["mem"] = std::to_string(100 * dice.between(of, 0, 40));
		c.actions.push_back(std::move(a));
	}
}

} // namespace sk8::sim
