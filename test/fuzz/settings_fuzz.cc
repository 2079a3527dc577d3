// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// slurm-k8s.yaml is understood or refused with lines that name the file; what is
// understood keeps what the rest of the engine relies on.
#include <set>

#include "lib/base/text.h"
#include "lib/core/placement.h"
#include "lib/core/settings.h"
#include "test/fuzz/fuzz.h"

using namespace sk8;
using namespace sk8::fuzz;
using namespace sk8::core;

static void check_refusal(const std::string &message)
{
	const auto lines = split(message, '\n');
	expect(!lines.empty() && lines.size() <= 200, "problems are counted", std::to_string(lines.size()));
	for (std::string_view line : lines) {
		expect_sentence(line, 2000); // of a log line
		expect(line.starts_with("f.yaml:"), "every problem names the file", line);
	}
}

static void check_cluster(const ClusterSettings &c)
{
	// part of a file's name, of a mark and of log lines
	expect(!c.name.empty() && c.name.size() <= 63, "a cluster has a short name", c.name);
	expect(c.name.find_first_of("/ \n%") == c.name.npos, "a cluster's name is a word", c.name);
	expect(c.nodes.selector.empty() || parse_selector(c.nodes.selector).ok(), "the selector is one", c.nodes.selector);
	expect(!c.scheduler_names.empty(), "there is a scheduler name");
	expect(c.pods.bind_timeout >= Millis(1000) && c.pods.kill_grace >= Millis(1000), "times are in their range");
	expect(c.pods.default_milli_cpu >= 0 && c.pods.default_memory_bytes >= 0, "defaults are amounts");
	for (const auto &n : c.namespaces)
		expect(!n.match.empty() && !n.user.empty(), "a mapping has a pattern and a user");
}

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	const std::string text(reinterpret_cast<const char *>(data), size);
	const Result<Settings> settings = parse_settings(text, "f.yaml");
	if (!settings) {
		check_refusal(settings.error().message);
		return 0;
	}
	expect(!settings->clusters.empty() && settings->clusters.size() <= 16, "there are 1 to 16 clusters");
	std::set<std::string> names;
	for (const ClusterSettings &c : settings->clusters) {
		check_cluster(c);
		expect(names.insert(c.name).second, "names of clusters differ", c.name);
	}
	const Result<Settings> again = parse_settings(text, "f.yaml");
	expect(again.ok() && *again == *settings, "a file means the same each time");
	return 0;
}
