// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/saved_nodes.h"

#include <filesystem>
#include <unistd.h>

#include "lib/base/file.h"
#include "test/unit/catch.h"
#include "test/unit/core/world.h"
#include "test/unit/kube/temp_folder.h"

using namespace sk8;
using namespace sk8::core;
namespace fs = std::filesystem;

namespace {

const GresList gpu1{{"gpu", "a100", 1, {1}}};

struct Saved {
	TempFolder folder;
	core::test::VirtualTimer timer;
	std::string path = saved_nodes_path(folder.path, "prod");

	NodesFile open() { return {path, load().value_or(SavedNodes{}), timer}; }
	Result<SavedNodes> load() const { return load_saved_nodes(path, ::geteuid()); }
};

} // namespace

TEST_CASE("saved nodes: what was missing when slurmctld ended is known again, and what is there again is not in the file")
{
	Saved s;
	CHECK(s.load().value_or(SavedNodes{{"no file is an error", {}}}).empty());
	auto file = s.open();
	file.flush();
	CHECK_FALSE(fs::exists(s.path)); // there is nothing to say
	file.set_missing("n1", gpu1);
	file.set_missing("n2", {{"gpu", "", 2, {}}});
	file.set_missing("n3", {});
	file.flush();
	CHECK(fs::status(s.path).permissions() == fs::perms(0600));
	CHECK(s.load().value_or(SavedNodes{}) == SavedNodes{{"n1", {gpu1, {}}}, {"n2", {{{"gpu", "", 2, {}}}, {}}}});
	CHECK(s.open().nodes().size() == 2);
	s.timer.advance(Millis(1'000));
	file.set_missing("n1", {});
	file.flush();
	CHECK(s.load().value_or(SavedNodes{}).size() == 1);
}

TEST_CASE("saved nodes: features of labels are known again")
{
	Saved s;
	auto file = s.open();
	const std::vector<std::string> features{"k8s.exclusive", "k8s.shared", "k8s.topology..kubernetes..io/zone.a", "k8s.x."};
	file.set_missing("n1", gpu1);
	file.set_features("n1", features);
	file.set_features("n2", features);
	file.flush();
	CHECK(s.load().value_or(SavedNodes{}) == SavedNodes{{"n1", {gpu1, features}}, {"n2", {{}, features}}});
	file.set_features("n2", {});
	s.timer.advance(Millis(1'000));
	file.flush();
	CHECK(s.load().value_or(SavedNodes{}).size() == 1);
}

TEST_CASE("saved nodes: they are written when something changes, and once a second at most")
{
	Saved s;
	auto file = s.open();
	const auto written = [&] { return fs::exists(s.path) && fs::remove(s.path); };
	file.set_missing("n1", gpu1);
	file.flush();
	CHECK(written());
	for (int i = 0; i < 10; i++) {
		file.set_missing("n1", i % 2 ? gpu1 : GresList{});
		file.flush();
	}
	CHECK_FALSE(written());
	s.timer.advance(Millis(1'000));
	file.flush();
	CHECK(written());
	for (int i = 0; i < 3; i++) { // lists that say nothing new
		s.timer.advance(Millis(2'000));
		file.set_missing("n1", gpu1);
		file.flush();
	}
	CHECK_FALSE(written());
}

TEST_CASE("saved nodes: what cannot be written is tried again")
{
	Saved s;
	s.path = s.folder.path + "/later/slurm-k8s.prod.nodes";
	auto file = s.open();
	file.set_missing("n1", gpu1);
	file.flush();
	CHECK_FALSE(fs::exists(s.path));
	fs::create_directory(s.folder.path + "/later");
	s.timer.advance(Millis(1'000));
	file.flush();
	CHECK(s.load().value_or(SavedNodes{}).size() == 1);
}

TEST_CASE("saved nodes: a file that others could have written, or that makes no sense, is not believed")
{
	Saved s;
	const std::string v1 = "{\"v\":1}\n";
	const std::string text = GENERATE_COPY(
		v1 + "{\"node\":\"n1\"", v1 + "{\"node\":\"n1\"}", v1 + "{\"node\":\"\"}\n", v1 + "{\"node\":7}\n", v1 + "[]\n",
		v1 + "{\"node\":\"" + std::string(300, 'n') + "\"}\n", v1 + "{\"node\":\"n1\",\"missing\":7}\n",
		v1 + "{\"node\":\"n1\",\"missing\":[{\"name\":\"gpu\",\"count\":-1}]}\n", std::string("{\"v\":2}\n"), std::string("garbage\n"),
		v1 + "{\"node\":\"n1\",\"features\":[\"administrators\"]}\n", v1 + "{\"node\":\"n1\",\"features\":[\"k8s.a.b&c\"]}\n",
		v1 + "{\"node\":\"n1\",\"features\":[7]}\n", v1 + "{\"node\":\"n1\",\"features\":[\"k8s.b.\",\"k8s.a.\"]}\n",
		v1 + "{\"node\":\"n1\",\"features\":{}}\n");
	CAPTURE(text);
	CHECK_FALSE(parse_saved_nodes(text));
	std::ofstream(s.path) << v1 << "{\"node\":\"n1\",\"later\":1}\n"; // what a newer version says beside is no matter
	fs::permissions(s.path, fs::perms(0622));
	CHECK_FALSE(s.load());
	fs::permissions(s.path, fs::perms(0600));
	CHECK(s.load());
	fs::create_symlink(s.path, s.folder.path + "/link");
	CHECK_FALSE(load_saved_nodes(s.folder.path + "/link", ::geteuid()));
}
