// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// All chance of a simulation. Each name has a stream of its own, so that a case from
// which an action was dropped leaves the luck of all others as it was: that is what
// makes shrinking work.
#ifndef SK8_SIM_DICE_H
#define SK8_SIM_DICE_H

#include <cstdint>
#include <string>
#include <unordered_map>

namespace sk8::sim {

class Dice {
public:
	explicit Dice(std::uint64_t seed) : seed_(seed) {}

	// The next number of that stream.
	std::uint64_t next(const std::string &stream)
	{
		auto [it, fresh] = state_.try_emplace(stream, 0);
		if (fresh)
			it->second = seed_ ^ std::uint64_t(0x9e3779b97f4a7c15) * hash(stream);
		return mix(it->second += 0x9e3779b97f4a7c15);
	}
	// From low to high, both included.
	std::int64_t between(const std::string &stream, std::int64_t low, std::int64_t high)
	{
		return low + static_cast<std::int64_t>(next(stream) % static_cast<std::uint64_t>(high - low + 1));
	}
	bool chance(const std::string &stream, int permille) { return between(stream, 0, 999) < permille; }

private:
	// splitmix64
	static std::uint64_t mix(std::uint64_t z)
	{
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
		z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
		return z ^ (z >> 31);
	}
	// FNV-1a: the same on every machine, unlike std::hash
	static std::uint64_t hash(const std::string &text)
	{
		std::uint64_t h = 0xcbf29ce484222325;
		for (unsigned char c : text)
			h = (h ^ c) * 0x100000001b3;
		return mix(h);
	}
	std::uint64_t seed_;
	std::unordered_map<std::string, std::uint64_t> state_;
};

} // namespace sk8::sim

#endif
