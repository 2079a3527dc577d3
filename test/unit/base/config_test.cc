// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/config.h"
#include "lib/base/duration.h"

#include <chrono>

#include "test/unit/catch.h"

using namespace std::chrono_literals;
using namespace sk8;

namespace {

enum class Sharing { mixed, dedicated };

struct NodeSettings {
	std::string selector;
	Sharing sharing = Sharing::mixed;
	Millis grace = 40s;
	std::optional<std::int32_t> port;
	std::optional<std::string> note;
};

struct Settings {
	std::string name;
	NodeSettings nodes;
	std::vector<NodeSettings> groups;
	std::vector<std::string> schedulers{"slurm"};
	std::map<std::string, std::string> labels;
	bool enabled = true;
	std::int64_t cpu = 500, memory = 4096;
	std::uint16_t slots = 110;
	std::uint64_t large = 0;
};

const Schema<NodeSettings> &node_schema()
{
	static const auto *schema = new Schema<NodeSettings>{
		field("selector", &NodeSettings::selector, "Label selector.").not_empty(),
		one_of("sharing", &NodeSettings::sharing,
		       {{"mixed", Sharing::mixed}, {"dedicated", Sharing::dedicated}}, "Who may."),
		field("readyGrace", &NodeSettings::grace, "How long.").range(1s, 1h),
		field("port", &NodeSettings::port, "Where.").range(1, 65535).fixed(),
		field("note", &NodeSettings::note, "Anything."),
	};
	return *schema;
}

const Schema<Settings> &schema()
{
	static const auto *schema = [] {
		auto *s = new Schema<Settings>{
			field("name", &Settings::name, "Its name.").required().fixed(),
			object("nodes", &Settings::nodes, node_schema(), "The nodes."),
			list("groups", &Settings::groups, node_schema(), "More nodes.", 3).fixed(),
			field("schedulerNames", &Settings::schedulers, "Names.").not_empty(),
			field("labels", &Settings::labels, "Labels."),
			field("enabled", &Settings::enabled, "Whether."),
			milli_cpu("cpu", &Settings::cpu, "CPUs.").range(0, 2000),
			bytes("memory", &Settings::memory, "Memory."),
			field("slots", &Settings::slots, "Slots.").default_text("as the kubelet says"),
			field("large", &Settings::large, "Large."),
		};
		s->check([](const Settings &v, const Place &place) {
			if (v.name == v.nodes.selector)
				place.error("nodes", "selects itself, name other nodes");
		});
		return s;
	}();
	return *schema;
}

std::vector<std::string> errors_of(std::string_view text)
{
	Settings settings;
	settings.name = "untouched";
	Problems problems("f.yaml");
	const bool ok = parse_config(text, schema(), settings, problems);
	CHECK(ok == problems.empty());
	if (!ok)
		CHECK(settings.name == "untouched");
	return problems.lines();
}

using Lines = std::vector<std::string>;

} // namespace

TEST_CASE("config: every type is read into its member")
{
	Settings s;
	Problems problems("f.yaml");
	REQUIRE(parse_config("name: prod\n"
			     "nodes: {selector: a=b, sharing: dedicated, readyGrace: 1m30s, port: 80}\n"
			     "groups:\n"
			     "  - selector: x\n"
			     "  - {selector: y, note: ''}\n"
			     "schedulerNames: [slurm, 5]\n"
			     "labels: {k: v, n: '1'}\n"
			     "enabled: false\n"
			     "cpu: 1.5\n"
			     "memory: 2Gi\n"
			     "slots: 65535\n"
			     "large: 9223372036854775807\n",
			     schema(), s, problems));
	CHECK(s.name == "prod");
	CHECK(s.nodes.selector == "a=b");
	CHECK(s.nodes.sharing == Sharing::dedicated);
	CHECK(s.nodes.grace == 90s);
	CHECK(s.nodes.port == 80);
	CHECK_FALSE(s.nodes.note.has_value());
	REQUIRE(s.groups.size() == 2);
	CHECK(s.groups[0].selector == "x");
	CHECK(s.groups[0].sharing == Sharing::mixed);
	CHECK(s.groups[1].note == "");
	CHECK(s.schedulers == Lines{"slurm", "5"});
	CHECK(s.labels == std::map<std::string, std::string>{{"k", "v"}, {"n", "1"}});
	CHECK_FALSE(s.enabled);
	CHECK(s.cpu == 1500);
	CHECK(s.memory == INT64_C(2) << 30);
	CHECK(s.slots == 65535);
	CHECK(s.large == static_cast<std::uint64_t>(INT64_MAX));
}

TEST_CASE("config: absent keys keep the struct's defaults, lists and maps may be empty")
{
	Settings s;
	Problems problems("f.yaml");
	REQUIRE(parse_config("name: x\nnodes:\ngroups:\nlabels:\n", schema(), s, problems));
	CHECK(s.nodes.grace == 40s);
	CHECK(s.schedulers == Lines{"slurm"});
	CHECK(s.groups.empty());
	CHECK(s.cpu == 500);
}

TEST_CASE("config: each mistake is said with file, line, key, and what would be right")
{
	const struct {
		const char *text;
		const char *error;
	} cases[] = {
		{"", "f.yaml:1: the key name is missing"},
		{"- a\n", "f.yaml:1: is a list, write a map (key: value)"},
		{"name: x\nnodes: {sharing: mixd}\n",
		 "f.yaml:2: nodes.sharing: \"mixd\" is not known, use one of mixed, dedicated"},
		{"name: x\nnodes:\n  sharing: [mixed]\n",
		 "f.yaml:3: nodes.sharing: a list is not known, use one of mixed, dedicated"},
		{"name: x\nnodes:\n  selector: ''\n",
		 "f.yaml:3: nodes.selector: \"\" must not be empty"},
		{"name: x\nnodes:\n  readyGrace: 40\n",
		 "f.yaml:3: nodes.readyGrace: \"40\" has no unit, write ms, s, m, h or d after it"},
		{"name: x\nnodes:\n  readyGrace: 4 weeks\n",
		 "f.yaml:3: nodes.readyGrace: \"4 weeks\" is no duration, write numbers with ms, s, m, h "
		 "or d, for example 40s or 1h30m"},
		{"name: x\nnodes:\n  readyGrace: 2h\n",
		 "f.yaml:3: nodes.readyGrace: \"2h\" is out of range, use 1s to 1h"},
		{"name: x\nnodes:\n  readyGrace: 99999999999999999999d\n",
		 "f.yaml:3: nodes.readyGrace: \"99999999999999999999d\" is too long"},
		{"name: x\nnodes:\n  port: 0\n",
		 "f.yaml:3: nodes.port: \"0\" is out of range, use 1 to 65535"},
		{"name: x\nnodes:\n  port: eighty\n",
		 "f.yaml:3: nodes.port: \"eighty\" is no whole number from -2147483648 to 2147483647"},
		{"name: x\nslots: 65536\n",
		 "f.yaml:2: slots: \"65536\" is no whole number from 0 to 65535"},
		{"name: x\nenabled: yes\n", "f.yaml:2: enabled: \"yes\" is neither true nor false"},
		{"name: x\ncpu: 2001m\n", "f.yaml:2: cpu: \"2001m\" is out of range, use 0 to 2"},
		{"name: x\nmemory: -1\n",
		 "f.yaml:2: memory: \"-1\" is negative, write an amount of 0 or more"},
		{"name: x\nmemory: [1]\n",
		 "f.yaml:2: memory: is a list, write an amount of memory like 512Mi"},
		{"name:\n", "f.yaml:1: name: has no value, write one text or remove the key"},
		{"name: {a: b}\n", "f.yaml:1: name: is a map, write one text"},
		{"name: \"a\\nb\"\n",
		 "f.yaml:1: name: \"a\\x0ab\" contains a line break or control character, remove it"},
		{"name: x\nschedulerNames: slurm\n",
		 "f.yaml:2: schedulerNames: is text, write a list ([a, b] or lines that begin with -)"},
		{"name: x\nschedulerNames: []\n", "f.yaml:2: schedulerNames: must not be empty"},
		{"name: x\nschedulerNames:\n  - a\n  - [b]\n",
		 "f.yaml:4: schedulerNames[1]: is a list, write one text"},
		{"name: x\nlabels: [a]\n",
		 "f.yaml:2: labels: is a list, write a map of texts (name: text)"},
		{"name: x\nlabels:\n  a: b\n  c: [d]\n",
		 "f.yaml:4: labels.c: is a list, write one text"},
		{"name: x\ngroups: [{}, {}, {}, {}]\n",
		 "f.yaml:2: groups: has 4 entries, at most 3 are allowed"},
		{"name: x\ngroups:\n  - {}\n  - port: a\n",
		 "f.yaml:4: groups[1].port: \"a\" is no whole number from -2147483648 to 2147483647"},
		{"name: x\nscheduler_names: [a]\n",
		 "f.yaml:2: scheduler_names: is no known key, did you mean schedulerNames?"},
		{"name: x\nsltos: 1\n", "f.yaml:2: sltos: is no known key, did you mean slots?"},
		{"name: x\nnodes:\n  zzz: 1\n",
		 "f.yaml:3: nodes.zzz: is no known key, known are selector, sharing, readyGrace, port, "
		 "note"},
		{"name: x\nnodes:\n  selector: x\n",
		 "f.yaml:2: nodes: selects itself, name other nodes"},
		{"name: x\nname: y\n",
		 "f.yaml:2: the key \"name\" is already given in line 1, remove one of the two"},
	};
	for (const auto &c : cases) {
		INFO(c.text);
		CHECK(errors_of(c.text) == Lines{c.error});
	}
}

TEST_CASE("config: all mistakes are collected, by line")
{
	CHECK(errors_of("slots: x\n"
			"groups:\n"
			"  - port: 0\n"
			"    foo: 1\n"
			"cpu: lots\n")
		      .size() == 5);
	const Lines lines = errors_of("enabled: 1\nslots: x\n");
	REQUIRE(lines.size() == 3);
	CHECK(lines[0] == "f.yaml:1: enabled: \"1\" is neither true nor false");
	CHECK(lines[1] == "f.yaml:1: the key name is missing");
	CHECK(lines[2].substr(0, 9) == "f.yaml:2:");
}

TEST_CASE("config: a flood of mistakes is cut at 100")
{
	std::string text = "name: x\nlabels:\n";
	for (int i = 0; i < 150; i++)
		text += "  k" + std::to_string(i) + ": []\n";
	const Lines lines = errors_of(text);
	CHECK(lines.size() == 101);
	CHECK(lines.back() == "f.yaml: and 50 more problems");
}

TEST_CASE("config: a hostile key cannot forge a line")
{
	CHECK(errors_of("name: x\n\"evil\\nf.yaml:1: all is well\": 1\n")[0].find('\n') ==
	      std::string::npos);
}

TEST_CASE("config: the schema describes itself in order")
{
	const std::vector<FieldDoc> docs = describe(schema());
	Lines text;
	for (const FieldDoc &d : docs)
		text.push_back(d.path + " | " + d.type + " | " + d.default_text +
			       (d.required ? " | required" : "") + (d.reloadable ? "" : " | fixed"));
	CHECK(text == Lines{
			      "name | text |  | required | fixed",
			      "nodes | map | ",
			      "nodes.selector | text | ",
			      "nodes.sharing | one of mixed, dedicated | mixed",
			      "nodes.readyGrace | duration, 1s to 1h | 40s",
			      "nodes.port | integer, 1 to 65535 |  | fixed",
			      "nodes.note | text | ",
			      "groups | list of maps |  | fixed",
			      "groups[].selector | text | ",
			      "groups[].sharing | one of mixed, dedicated | mixed",
			      "groups[].readyGrace | duration, 1s to 1h | 40s",
			      "groups[].port | integer, 1 to 65535 |  | fixed",
			      "groups[].note | text | ",
			      "schedulerNames | list of texts | [slurm]",
			      "labels | map of texts | ",
			      "enabled | true or false | true",
			      "cpu | CPUs, 0 to 2 | 500m",
			      "memory | bytes | 4Ki",
			      "slots | integer | as the kubelet says",
			      "large | integer | 0",
		      });
	CHECK(docs[0].help == "Its name.");
	CHECK(docs[1].section);
	CHECK_FALSE(docs[2].section);
}

TEST_CASE("config: changes that need a restart are named")
{
	Settings a, b;
	a.groups.resize(2);
	b.groups.resize(2);
	b.enabled = false; // reloadable
	CHECK(needs_restart(schema(), a, b).empty());
	b.name = "other";
	b.nodes.port = 1;
	b.groups[1].port = 2;
	CHECK(needs_restart(schema(), a, b) == Lines{"name", "nodes.port", "groups[1].port"});
	b.groups.resize(1);
	CHECK(needs_restart(schema(), a, b) == Lines{"name", "nodes.port", "groups"});
}

TEST_CASE("config: durations are read and written the same")
{
	for (const char *text : {"0s", "1ms", "40s", "5m", "1h30m", "7d", "1d1h1m1s1ms"})
		CHECK(format_duration(*parse_duration(text)) == text);
	CHECK(*parse_duration("0") == 0ms);
	CHECK(*parse_duration("90s") == 90s);
	CHECK(format_duration(90s) == "1m30s");
	for (const char *text : {"", "s", "-1s", "1", "1.5s", "1 s", "1sm", "s1", "1h-1m", "9999999999999999d"})
		CHECK(!parse_duration(text).ok());
}
