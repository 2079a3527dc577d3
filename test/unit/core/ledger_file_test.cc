// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/ledger_file.h"

#include <cstdlib>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::core;
namespace fs = std::filesystem;

namespace {

// A StateSaveLocation with one saved hold.
struct State {
	std::string folder = (fs::temp_directory_path() / "sk8-unit-XXXXXX").string();
	std::string path;

	State()
	{
		REQUIRE(::mkdtemp(folder.data()));
		path = ledger_path(folder, "c");
		LedgerFile file(path, {});
		file.hold({{"c", "ns", "p", "u"}, "n1", {0}, 0, 100});
		REQUIRE(file.flush());
	}
	State(const State &) = delete;
	State &operator=(const State &) = delete;
	~State() { fs::remove_all(folder); }
};

} // namespace

TEST_CASE("ledger: what was saved is read back; only a file that is not there means that nothing is known")
{
	State state;
	auto saved = load_ledger(state.path, ::geteuid());
	REQUIRE(saved);
	CHECK(saved->found);
	CHECK(saved->holds.size() == 1);
	auto none = load_ledger(ledger_path(state.folder, "other"), ::geteuid());
	REQUIRE(none);
	CHECK_FALSE(none->found);
}

TEST_CASE("ledger: a file that is not surely ours is refused with the reason, never taken for no file")
{
	struct Row {
		void (*spoil)(const State &);
		const char *reason;
	};
	static const Row rows[] = {
		{[](const State &s) { fs::permissions(s.path, fs::perms(0640)); }, "can be opened by others (mode 0640)"},
		{[](const State &s) { fs::permissions(s.path, fs::perms(0622)); }, "can be changed by others (mode 0622)"},
		{[](const State &s) { fs::permissions(s.folder, fs::perms(0777)); }, "lets everybody replace what is in it"},
		{[](const State &s) {
			 fs::rename(s.path, s.folder + "/elsewhere");
			 fs::create_symlink(s.folder + "/elsewhere", s.path);
		 },
		 "is a symbolic link"},
		{[](const State &s) {
			 fs::remove(s.path);
			 fs::create_symlink(s.folder + "/nowhere", s.path);
		 },
		 "is a symbolic link"},
		{[](const State &s) {
			 fs::remove(s.path);
			 REQUIRE(::mkfifo(s.path.c_str(), 0600) == 0);
		 },
		 "is not a regular file"},
		{[](const State &s) {
			 fs::remove(s.path);
			 fs::create_directory(s.path);
		 },
		 "is not a regular file"},
		{[](const State &s) {
			 fs::remove(s.path);
			 fs::create_symlink("/dev/zero", s.path);
		 },
		 "is a symbolic link"},
	};
	for (const Row &row : rows) {
		State state;
		row.spoil(state);
		CAPTURE(row.reason);
		const auto saved = load_ledger(state.path, ::geteuid());
		REQUIRE_FALSE(saved.ok());
		CAPTURE(saved.error().message);
		CHECK(saved.error().message.find(row.reason) != std::string::npos);
	}
}

TEST_CASE("ledger: nothing is appended to a file that others could reach meanwhile")
{
	State state;
	fs::permissions(state.folder, fs::perms(0777));
	LedgerFile file(state.path, {});
	file.hold({{"c", "ns", "p", "u"}, "n1", {0}, 0, 100});
	const auto flushed = file.flush();
	REQUIRE_FALSE(flushed.ok());
	CHECK(flushed.error().message.find("lets everybody replace") != std::string::npos);
}
