// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/ledger_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
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
	CHECK(saved->ledger.holds.size() == 1);
	auto none = load_ledger(ledger_path(state.folder, "other"), ::geteuid());
	REQUIRE(none);
	CHECK_FALSE(none->found);
}

TEST_CASE("ledger: few long lines do not make it larger than the next start reads")
{
	State state;
	LedgerFile file(state.path, load_ledger(state.path, ::geteuid())->ledger);
	Resubmit r;
	r.key = {"c", "ns", "p", "u"};
	r.step = Resubmit::Step::kept;
	r.manifest = R"({"x":")" + std::string(500 << 10, 'x') + R"("})";
	std::uintmax_t largest = 0;
	for (int i = 0; i < 300; i++) {
		file.resubmit(r);
		REQUIRE(file.flush());
		largest = std::max(largest, fs::file_size(state.path));
		file.forget_resubmit(r.key);
	}
	CHECK(largest < 20 << 20);
	const auto saved = load_ledger(state.path, ::geteuid());
	CHECK((saved ? "" : saved.error().message) == "");
}

TEST_CASE("ledger: one that was begun without the former one says so until all is known that there is")
{
	State state;
	auto partial = [&] { return load_ledger(state.path, ::geteuid())->ledger.partial; };
	CHECK_FALSE(partial());
	Ledger lost;
	lost.partial = true;
	lost.first = GENERATE(false, true);
	auto first = [&] { return load_ledger(state.path, ::geteuid())->ledger.first; };
	LedgerFile file(state.path, lost);
	file.hold({{"c", "ns", "p", "u"}, "n1", {0}, 0, 100});
	REQUIRE(file.flush());
	CHECK(partial());
	CHECK(first() == lost.first);
	file.hold({{"c", "ns", "q", "v"}, "n1", {1}, 0, 100}); // is appended
	REQUIRE(file.flush());
	CHECK(partial());
	file.complete();
	CHECK(partial()); // not before it is on disk
	REQUIRE(file.flush());
	CHECK_FALSE(partial());
	CHECK_FALSE(first());
	CHECK(load_ledger(state.path, ::geteuid())->ledger.holds.size() == 2);
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

TEST_CASE("ledger: a file that is empty, cut in its first line, damaged or newer is never taken for one without holds")
{
	for (const char *text : {"", "{\"v\"", "{\"v\":1}", "\n", "{\"v\":2}\n", "{\"v\":1}\ngarbage\n"}) {
		State state;
		CAPTURE(text);
		std::ofstream(state.path) << text; // the mode stays
		const auto saved = load_ledger(state.path, ::geteuid());
		REQUIRE_FALSE(saved.ok());
		CHECK(saved.error().message.starts_with(state.path));
		LedgerFile file(state.path, {});
		REQUIRE(file.flush()); // made anew when it is written
		CHECK(load_ledger(state.path, ::geteuid()).ok());
	}
}

TEST_CASE("ledger: what a full or read-only disk did not take is all there as soon as it does")
{
	State state;
	const auto hold = [](const char *uid) { return Hold{{"c", "ns", "p", uid}, "n1", {0}, 0, 100}; };
	const std::string folder = state.folder + "/away";
	LedgerFile file(ledger_path(folder, "c"), {.holds = {hold("u1")}, .released = {}});
	file.hold(hold("u2"));
	REQUIRE_FALSE(file.flush().ok());
	file.hold(hold("u3"));
	file.free(hold("u2").key);
	REQUIRE_FALSE(file.flush().ok());
	fs::create_directory(folder);
	fs::permissions(folder, fs::perms(0700));
	REQUIRE(file.flush());
	const auto saved = load_ledger(ledger_path(folder, "c"), ::geteuid());
	REQUIRE(saved);
	std::set<std::string> uids;
	for (const Hold &h : saved->ledger.holds)
		uids.insert(h.key.uid);
	CHECK(uids == std::set<std::string>{"u1", "u3"});
}

TEST_CASE("ledger: what is held after another process has put its own file in the place is in the file of that name")
{
	const bool has_other_name = GENERATE(false, true);
	State state;
	LedgerFile file(state.path, load_ledger(state.path, ::geteuid())->ledger);
	REQUIRE(file.flush()); // is open from now on
	if (has_other_name)
		fs::create_hard_link(state.path, state.path + ".kept");
	LedgerFile other(state.path, {});
	other.hold({{"c", "ns", "old", "o"}, "n1", {3}, 0, 100});
	REQUIRE(other.flush());
	file.hold({{"c", "ns", "q", "v"}, "n1", {1}, 0, 100});
	REQUIRE(file.flush());
	const auto saved = load_ledger(state.path, ::geteuid());
	REQUIRE(saved);
	std::set<std::string> names;
	for (const Hold &h : saved->ledger.holds)
		names.insert(h.key.name);
	CHECK(names == std::set<std::string>{"p", "q"});
}

TEST_CASE("ledger: what its last line about a pod says already is not written again, and what was freed meanwhile is")
{
	State state;
	const Hold hold{{"c", "ns", "p", "u"}, "n1", {0}, 0, 100};
	LedgerFile file(state.path, load_ledger(state.path, ::geteuid())->ledger);
	REQUIRE(file.flush());
	const auto size = fs::file_size(state.path);
	file.hold(hold);
	REQUIRE(file.flush());
	CHECK(fs::file_size(state.path) == size);
	file.free(hold.key);
	file.hold(hold);
	REQUIRE(file.flush());
	CHECK(fs::file_size(state.path) > size);
	const auto saved = load_ledger(state.path, ::geteuid());
	REQUIRE(saved);
	CHECK(saved->ledger.holds == std::vector<Hold>{hold});
}
