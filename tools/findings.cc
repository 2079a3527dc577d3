// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/findings.h"

#include <algorithm>

#include "lib/base/text.h"

namespace sk8::tools {

static constexpr const char *level_names[] = {"ok", "warning", "problem"};

void Findings::add(Finding::Level level, std::string about, std::string text)
{
	all_.push_back({level, std::move(about), one_line(text, 1024)});
}

bool Findings::any_problem() const
{
	return std::any_of(all_.begin(), all_.end(),
			   [](const Finding &f) { return f.level == Finding::Level::problem; });
}

std::string Findings::text() const
{
	std::string out;
	std::size_t count[3] = {};
	for (auto level : {Finding::Level::ok, Finding::Level::warning, Finding::Level::problem})
		for (const Finding &f : all_) {
			if (f.level != level)
				continue;
			count[static_cast<int>(level)]++;
			out += strprintf("%-8s %s: %s\n", level_names[static_cast<int>(level)], f.about.c_str(), f.text.c_str());
		}
	return out + strprintf("%zu ok, %zu warnings, %zu problems\n", count[0], count[1], count[2]);
}

Json Findings::json() const
{
	Json list = Json::array();
	for (const Finding &f : all_)
		list.append(Json::object()
				    .set("level", level_names[static_cast<int>(f.level)])
				    .set("about", f.about)
				    .set("text", f.text));
	return Json::object().set("ok", Json::boolean(!any_problem())).set("findings", list);
}

} // namespace sk8::tools
