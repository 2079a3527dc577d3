// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/shrink.h"

#include <algorithm>

#include "test/sim/world.h"

namespace sk8::sim {

namespace {

class Shrinker {
public:
	Shrinker(Case c, const std::string &violation) : best_(std::move(c)), wanted_(without_numbers(violation)) {}

	Case run()
	{
		for (bool smaller = true; smaller;) {
			smaller = drop_actions();
			smaller |= drop_words();
			smaller |= make_smaller();
		}
		return best_;
	}

private:
	bool still_breaks(const Case &c)
	{
		return without_numbers(World(c, false, false).run().violation) == wanted_;
	}
	// Names, ids and amounts differ in a smaller case.
	static std::string without_numbers(std::string text)
	{
		std::erase_if(text, [](char ch) { return ch >= '0' && ch <= '9'; });
		return text;
	}
	bool take(Case c)
	{
		if (!still_breaks(c))
			return false;
		best_ = std::move(c);
		return true;
	}
	// Halves, quarters ... single ones.
	bool drop_actions()
	{
		bool any = false;
		for (std::size_t size = std::max<std::size_t>(best_.actions.size() / 2, 1);; size /= 2) {
			for (std::size_t from = 0; from < best_.actions.size();) {
				Case c = best_;
				const auto first = c.actions.begin() + static_cast<std::ptrdiff_t>(from);
				c.actions.erase(first, first + static_cast<std::ptrdiff_t>(
									std::min(size, c.actions.size() - from)));
				if (take(std::move(c)))
					any = true;
				else
					from += size;
			}
			if (size <= 1)
				return any;
		}
	}
	bool drop_words()
	{
		bool any = false;
		for (std::size_t i = 0; i < best_.actions.size(); i++) {
			for (const auto &[key, value] : std::map(best_.actions[i].with)) {
				if (key == "pod" || key == "job" || key == "node")
					continue;
				Case c = best_;
				c.actions[i].with.erase(key);
				any |= take(std::move(c));
			}
		}
		return any;
	}
	bool make_smaller()
	{
		bool any = false;
		auto try_with = [&](auto edit) {
			Case c = best_;
			edit(c);
			if (c.text() != best_.text())
				any |= take(std::move(c));
		};
		try_with([](Case &c) { c.faults = 0; });
		try_with([](Case &c) { c.job_ids = 10'000; });
		try_with([](Case &c) { c.gpus = 0; });
		try_with([](Case &c) { c.claims = false; });
		try_with([](Case &c) { c.device_plugin = false; });
		try_with([](Case &c) { c.slots = 0; });
		try_with([](Case &c) { c.nodes = 1; });
		try_with([](Case &c) { c.nodes = std::min(c.nodes, 2); });
		try_with([](Case &c) { c.cores = std::min(c.cores, 2); });
		return any;
	}

	Case best_;
	const std::string wanted_;
};

} // namespace

Case shrink(Case c, const std::string &violation)
{
	return Shrinker(std::move(c), violation).run();
}

} // namespace sk8::sim
