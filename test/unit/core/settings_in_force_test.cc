// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/settings_in_force.h"

#include <csignal>
#include <filesystem>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "test/unit/catch.h"
#include "test/unit/kube/temp_folder.h"

using namespace sk8;
using namespace sk8::core;
namespace fs = std::filesystem;

namespace {

const char *const one = "clusters:\n  - {name: one, kubeconfig: /k}\n";
const char *const two = "clusters:\n  - {name: two, kubeconfig: /k}\n";
const char *const mistaken = "clusters:\n  - {nam: two, kubeconfig: /k}\n";

// A slurmctld that starts again and again: nothing of it is in memory.
struct Starts {
	TempFolder folder;
	std::string config = folder.path + "/slurm-k8s.yaml", state = folder.path + "/state", copy = kept_settings_path(state);

	Starts() { fs::create_directory(state); }
	void configure(const std::string &text) const { folder.write("slurm-k8s.yaml", text); }
	SettingsInForce find() const { return find_settings(config, state, ::geteuid()); }
	// The name of the cluster that is configured; empty: nothing is in force.
	std::string start() const
	{
		const auto found = find();
		if (found.trouble.empty())
			CHECK(keep_settings(found.text, state, ::geteuid()));
		return found.settings ? found.settings->clusters.at(0).name : "";
	}
};

} // namespace

TEST_CASE("settings: the last ones without a mistake stay in force over starts, until the file is mended")
{
	const Starts s;
	s.configure(one);
	CHECK(s.start() == "one");
	s.configure(mistaken);
	for (int start = 0; start < 2; start++) {
		CHECK(s.start() == "one");
		CHECK(s.find().trouble.find(":2: clusters[0].nam") != std::string::npos);
	}
	s.configure(two);
	CHECK(s.start() == "two");
	CHECK(s.find().trouble.empty());
	s.configure(mistaken);
	CHECK(s.start() == "two");
}

TEST_CASE("settings: a file that is gone or that others can write is one with a mistake")
{
	const Starts s;
	s.configure(one);
	CHECK(s.start() == "one");
	SECTION("gone") { fs::remove(s.config); }
	SECTION("of others")
	{
		s.configure(two);
		fs::permissions(s.config, fs::perms(0666));
	}
	CHECK(s.start() == "one");
	CHECK_FALSE(s.find().trouble.empty());
}

TEST_CASE("settings: where none have ever been in force a mistake leaves none")
{
	const Starts s;
	s.configure(mistaken);
	CHECK(s.start().empty());
	CHECK_FALSE(fs::exists(s.copy));
	CHECK(s.find().settings.error().message == s.find().trouble);
}

TEST_CASE("settings: a copy that is not ours alone, or not to be read, is not believed and said")
{
	struct Row {
		const char *what, *said;
		void (*spoil)(const std::string &path);
	};
	const Row row = GENERATE(Row{"open to others", "chmod 600", [](const std::string &p) { fs::permissions(p, fs::perms(0644)); }},
				 Row{"a link", "link",
				     [](const std::string &p) {
					     fs::rename(p, p + ".1");
					     fs::create_symlink(p + ".1", p);
				     }},
				 Row{"of another version", "clusters", [](const std::string &p) { std::ofstream(p) << "cluster: 1\n"; }});
	CAPTURE(row.what);
	const Starts s;
	s.configure(one);
	CHECK(s.start() == "one");
	row.spoil(s.copy);
	s.configure(mistaken);
	CHECK(s.start().empty());
	const std::string said = s.find().trouble;
	CAPTURE(said);
	CHECK(said.find(s.config + ":2: ") != said.npos);
	CHECK(said.find(s.copy) != said.npos);
	CHECK(said.find(row.said, said.find('\n')) != said.npos);
	s.configure(two); // which replaces it
	CHECK(s.start() == "two");
	CHECK(fs::status(s.copy).permissions() == fs::perms(0600));
	s.configure(mistaken);
	CHECK(s.start() == "two");
}

TEST_CASE("settings: a copy that cannot be written is none, rather than an older one")
{
	const Starts s;
	s.configure(one);
	CHECK(s.start() == "one");
	const auto before = std::signal(SIGXFSZ, SIG_IGN);
	rlimit limit;
	REQUIRE(::getrlimit(RLIMIT_FSIZE, &limit) == 0);
	const rlimit full{1, limit.rlim_max}; // bytes
	REQUIRE(::setrlimit(RLIMIT_FSIZE, &full) == 0);
	const auto kept = keep_settings(two, s.state, ::geteuid());
	::setrlimit(RLIMIT_FSIZE, &limit);
	std::signal(SIGXFSZ, before);
	CHECK_FALSE(kept);
	s.configure(mistaken);
	CHECK(s.start().empty());
	CHECK(fs::is_empty(s.state));
}
