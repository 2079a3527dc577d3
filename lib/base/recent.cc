// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/recent.h"

#include <array>
#include <cstring>
#include <ctime>
#include <mutex>

#include "lib/base/text.h"

namespace sk8 {

namespace {

constexpr std::size_t kept = 20, longest = 500;

struct Slot {
	std::int64_t at;
	std::uint64_t times; // 0: empty
	LogLevel level;
	char text[longest + 1];
};

// Constant initialised and trivially destroyed: usable at any time of the process.
std::mutex mutex_;
std::array<Slot, kept> ring_{};
std::size_t last_ = kept - 1;

} // namespace

void remember_trouble(LogLevel level, const char *text)
{
	char line[longest + 1];
	escape_line(text, false, line, sizeof(line)); // cuts between two characters
	std::lock_guard lock(mutex_);
	Slot *slot = &ring_[last_];
	if (!slot->times || std::strcmp(slot->text, line)) {
		last_ = (last_ + 1) % kept;
		slot = &ring_[last_];
		slot->times = 0;
		slot->level = level;
		std::memcpy(slot->text, line, sizeof(line));
	}
	slot->times++;
	slot->at = std::time(nullptr);
}

std::vector<Trouble> recent_trouble()
{
	std::lock_guard lock(mutex_);
	std::vector<Trouble> out;
	for (std::size_t i = 1; i <= kept; i++) {
		const Slot &s = ring_[(last_ + i) % kept];
		if (s.times)
			out.push_back({s.at, s.times, s.level, s.text});
	}
	return out;
}

} // namespace sk8
