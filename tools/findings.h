// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What `slurm-k8s check` found: one sentence each, with what to do.
#ifndef SK8_TOOLS_FINDINGS_H
#define SK8_TOOLS_FINDINGS_H

#include <string>
#include <vector>

#include "lib/base/json.h"

namespace sk8::tools {

struct Finding {
	enum class Level { ok, warning, problem } level;
	std::string about; // a word that stays the same between releases: "PluginDir"
	std::string text;
};

class Findings {
public:
	void ok(std::string about, std::string text) { add(Finding::Level::ok, std::move(about), std::move(text)); }
	// Works, but surely not as it was meant, or could not be looked at.
	void warning(std::string about, std::string text)
	{
		add(Finding::Level::warning, std::move(about), std::move(text));
	}
	void problem(std::string about, std::string text)
	{
		add(Finding::Level::problem, std::move(about), std::move(text));
	}

	const std::vector<Finding> &all() const { return all_; }
	bool any_problem() const;
	std::string text() const; // a line each, problems last
	Json json() const;

private:
	void add(Finding::Level level, std::string about, std::string text);
	std::vector<Finding> all_;
};

} // namespace sk8::tools

#endif
