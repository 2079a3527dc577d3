// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What happened, one line each, for people. Costs nothing while nobody listens: a
// run that failed is simply run again with the story on.
#ifndef SK8_SIM_STORY_H
#define SK8_SIM_STORY_H

#include <cstdio>
#include <deque>
#include <string>

#include "test/sim/schedule.h"

namespace sk8::sim {

class Story {
public:
	explicit Story(const Schedule &time) : time_(time) {}

	bool on = false;     // lines are kept,
	bool print = false;  // and printed at once
	std::deque<std::string> last;

	// Call through tell(), which does not even make the text if nobody listens.
	void line(const std::string &text)
	{
		char stamp[64];
		std::snprintf(stamp, sizeof(stamp), "%6llu %10.6f  ", static_cast<unsigned long long>(time_.steps()),
			      static_cast<double>(time_.now()) / second);
		last.push_back(stamp + text);
		if (print)
			std::printf("%s\n", last.back().c_str());
		if (last.size() > kept)
			last.pop_front();
	}

private:
	static constexpr std::size_t kept = 400;
	const Schedule &time_;
};

template <class... Part>
void tell(Story &story, const Part &...part)
{
	if (!story.on)
		return;
	std::string text;
	((text += part), ...);
	story.line(text);
}

} // namespace sk8::sim

#endif
