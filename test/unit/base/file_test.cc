// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/file.h"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/config.h"
#include "test/unit/catch.h"

using namespace sk8;
namespace fs = std::filesystem;

namespace {

// A folder that goes with the test.
struct Folder {
	fs::path path;
	Folder()
	{
		std::string name = (fs::temp_directory_path() / "sk8-unit-XXXXXX").string();
		REQUIRE(::mkdtemp(name.data()) != nullptr);
		path = name;
	}
	Folder(const Folder &) = delete;
	Folder &operator=(const Folder &) = delete;
	~Folder() { fs::remove_all(path); }
	std::string file(const char *name) const { return (path / name).string(); }
};

std::size_t entries(const Folder &folder)
{
	return static_cast<std::size_t>(
		std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()));
}

std::string trust_error(uid_t uid, mode_t mode, Trust trust, uid_t owner)
{
	struct stat status{};
	status.st_uid = uid;
	status.st_mode = S_IFREG | mode;
	Result<void> r = check_trust(status, "/f", trust, owner);
	return r ? "" : r.error().message;
}

} // namespace

TEST_CASE("file: owner and mode are judged, the reason says what to do")
{
	CHECK(trust_error(1000, 0777, Trust::any, 0).empty());
	CHECK(trust_error(0, 0644, Trust::owned, 64030).empty());
	CHECK(trust_error(64030, 0644, Trust::owned, 64030).empty());
	CHECK(trust_error(64030, 0640, Trust::secret, 64030).empty());
	CHECK(trust_error(0, 0400, Trust::secret, 0).empty());
	CHECK(trust_error(1000, 0600, Trust::owned, 64030) ==
	      "/f belongs to uid 1000 and could be changed by that user, it must belong to root or uid "
	      "64030");
	CHECK(trust_error(1000, 0600, Trust::secret, 0) ==
	      "/f belongs to uid 1000 and could be changed by that user, it must belong to root");
	CHECK(trust_error(0, 0664, Trust::owned, 0) ==
	      "/f can be changed by others (mode 0664), run: chmod go-w /f");
	CHECK(trust_error(0, 0602, Trust::secret, 0) ==
	      "/f can be changed by others (mode 0602), run: chmod go-w /f");
	CHECK(trust_error(0, 0644, Trust::secret, 0) ==
	      "/f holds a secret and can be read by everybody (mode 0644), run: chmod o-rwx /f");
	CHECK(trust_error(64030, 0600, Trust::state, 64030).empty());
	CHECK(trust_error(64030, 0640, Trust::state, 64030) ==
	      "/f is for its owner only and can be opened by others (mode 0640), run: chmod 600 /f");
}

TEST_CASE("file: what we alone write is refused as a link, for another owner, or if others can open it")
{
	const Folder folder;
	const std::string path = folder.file("ledger"), link = folder.file("link"), fifo = folder.file("fifo");
	REQUIRE(write_file_atomic(path, "x", 0600).ok());
	REQUIRE(::symlink(path.c_str(), link.c_str()) == 0);
	REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
	struct Row {
		std::string path, reason;
		mode_t mode;
	};
	const Row rows[] = {
		{path, "", 0600},
		{path, " is for its owner only and can be opened by others (mode 0640), run: chmod 600 " + path, 0640},
		{path, " can be changed by others (mode 0666), run: chmod go-w " + path, 0666},
		{link, " is a symbolic link, it must be the file itself", 0600},
		{fifo, " is not a regular file", 0600},
		{folder.path.string(), " is not a regular file", 0600},
		{"/dev/null", " is not a regular file", 0600},
	};
	for (const Row &row : rows) {
		REQUIRE(::chmod(path.c_str(), row.mode) == 0);
		CAPTURE(row.path, row.mode);
		const auto read = read_file(row.path, 10, Trust::state, ::geteuid());
		CHECK((read ? "" : read.error().message) == (row.reason.empty() ? "" : row.path + row.reason));
		if (row.path == folder.path.string())
			continue; // cannot be opened for writing in the first place
		const auto opened = AppendFile::open(row.path);
		CHECK(opened.ok() == row.reason.empty());
		if (!opened && row.path != fifo) // nobody reads it
			CHECK(opened.error().message == row.path + row.reason);
	}
	REQUIRE(::chmod(path.c_str(), 0600) == 0);
	if (::geteuid() != 0 || ::chown(path.c_str(), 1000, 0) != 0)
		return; // only root can give a file away
	CHECK(read_file(path, 10, Trust::state, 64030).error().message.find("belongs to uid 1000") != std::string::npos);
	CHECK(read_file(path, 10, Trust::secret, 64030).error().message.find("belongs to uid 1000") != std::string::npos);
	CHECK(read_file(path, 10, Trust::owned, 1000).ok());
	CHECK(!AppendFile::open(path).ok());
}

TEST_CASE("file: a folder in which everybody may replace files makes the file worth nothing")
{
	const Folder folder;
	const fs::path open = folder.path / "open", inner = open / "inner", safe = folder.path / "safe";
	fs::create_directories(inner);
	fs::create_directory(safe);
	const std::string file = inner / "f", link = safe / "link";
	REQUIRE(write_file_atomic(file, "x", 0600).ok());
	REQUIRE(::symlink(file.c_str(), link.c_str()) == 0);
	struct Row {
		mode_t mode;
		bool trusted;
	};
	for (const Row row : {Row{0755, true}, Row{0777, false}, Row{01777, true}, Row{0703, false}, Row{0775, true}}) {
		REQUIRE(::chmod(open.c_str(), row.mode) == 0);
		CAPTURE(row.mode);
		for (const std::string &path : {file, link}) { // by its name, and by a link from elsewhere
			const auto read = read_file(path, 10, Trust::owned, ::geteuid());
			CHECK(read.ok() == row.trusted);
			if (!read)
				CHECK(read.error().message.find("run: chmod o-w " + open.string()) != std::string::npos);
			CHECK(read_file(path, 10).ok());
		}
		CHECK(AppendFile::open(file).ok() == row.trusted);
	}
}

TEST_CASE("file: a token in a projected volume is read through Kubernetes' links")
{
	const Folder folder;
	REQUIRE(::chmod(folder.path.c_str(), 01777) == 0); // as the kubelet mounts it
	fs::create_directory(folder.path / "..2026_11_21");
	REQUIRE(write_file_atomic(folder.file("..2026_11_21/token"), "t", 0600).ok());
	REQUIRE(::symlink("..2026_11_21", folder.file("..data").c_str()) == 0);
	REQUIRE(::symlink("..data/token", folder.file("token").c_str()) == 0);
	CHECK(read_file(folder.file("token"), 10, Trust::secret, ::geteuid()).value_or("?") == "t");
}

TEST_CASE("file: only regular files up to the limit are read, the opened file is judged")
{
	const Folder folder;
	const std::string path = folder.file("f"), link = folder.file("link"), fifo = folder.file("fifo");
	const std::string content = std::string(40000, 'x') + std::string("\0end", 4);
	REQUIRE(write_file_atomic(path, content, 0644).ok());
	CHECK(*read_file(path, content.size()) == content);
	CHECK(read_file(path, content.size() - 1).error().message ==
	      path + " is larger than 40003 bytes");
	CHECK(*read_beginning(path, 40002) == content.substr(0, 40002));
	CHECK(*read_beginning(path, 50000) == content);
	CHECK(read_file(folder.file("none"), 10).error().message ==
	      "cannot open " + folder.file("none") + ": No such file or directory");
	CHECK(read_file(folder.path.string(), 10).error().message ==
	      folder.path.string() + " is not a regular file");
	REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
	CHECK(read_file(fifo, 10).error().message == fifo + " is not a regular file");

	REQUIRE(::symlink(path.c_str(), link.c_str()) == 0);
	CHECK(read_file(link, 50000, Trust::owned, ::geteuid()).ok());
	CHECK(!read_file(link, 50000, Trust::secret, ::geteuid()).ok());
	REQUIRE(::chmod(path.c_str(), 0664) == 0);
	CHECK(!read_file(link, 50000, Trust::owned, ::geteuid()).ok());
}

TEST_CASE("file: an atomic write replaces all or nothing and leaves no other file")
{
	const Folder folder;
	const std::string path = folder.file("state");
	REQUIRE(write_file_atomic(path, "one", 0640).ok());
	REQUIRE(write_file_atomic(path, "two", 0600).ok());
	CHECK(*read_file(path, 10) == "two");
	struct stat status;
	REQUIRE(::stat(path.c_str(), &status) == 0);
	CHECK((status.st_mode & 07777) == 0600);
	CHECK(entries(folder) == 1);

	REQUIRE(fs::create_directory(folder.file("folder")));
	CHECK(!write_file_atomic(folder.file("folder"), "x").ok());
	CHECK(entries(folder) == 2);
	CHECK(!write_file_atomic(folder.file("none/x"), "x").ok());
}

TEST_CASE("file: an append file grows, survives reopening and can drop its end")
{
	const Folder folder;
	const std::string path = folder.file("journal");
	{
		Result<AppendFile> f = AppendFile::open(path);
		REQUIRE(f.ok());
		REQUIRE(f->append("one\n").ok());
		REQUIRE(f->append("two\n").ok());
		REQUIRE(f->sync().ok());
		CHECK(f->size() == 8);
	}
	Result<AppendFile> f = AppendFile::open(path);
	REQUIRE(f.ok());
	CHECK(f->size() == 8);
	REQUIRE(f->truncate(4).ok());
	REQUIRE(f->append("three\n").ok());
	CHECK(*read_file(path, 100) == "one\nthree\n");
	const std::string link = folder.file("link");
	REQUIRE(::symlink(path.c_str(), link.c_str()) == 0);
	CHECK(!AppendFile::open(link).ok());
	CHECK(!AppendFile::open(folder.path.string()).ok());
}

TEST_CASE("file: a full disk leaves no torn record")
{
	Result<AppendFile> full = AppendFile::open("/dev/full");
	CHECK(!full.ok()); // no regular file

	const Folder folder;
	Result<AppendFile> f = AppendFile::open(folder.file("journal"));
	REQUIRE(f.ok());
	REQUIRE(f->append("first\n").ok());
	rlimit before{};
	REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
	const rlimit small{10, before.rlim_max};
	const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
	REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
	Result<void> r = f->append("a record that does not fit\n");
	REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
	::signal(SIGXFSZ, old_handler);
	CHECK(r.error().message ==
	      "cannot append to " + folder.file("journal") + ": File too large");
	CHECK(f->size() == 6);
	CHECK(*read_file(folder.file("journal"), 100) == "first\n");
	CHECK(f->append("next\n").ok());
}

TEST_CASE("fd: closes once, and only what it owns")
{
	int raw = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
	{
		Fd a(raw);
		Fd b = std::move(a);
		CHECK_FALSE(a);
		CHECK(b.get() == raw);
		Fd &alias = b;
		b = std::move(alias);
		CHECK(b.get() == raw);
	}
	CHECK(::fcntl(raw, F_GETFD) == -1);
}

TEST_CASE("config: a file that others may change is not believed")
{
	struct S {
		std::string a;
	};
	const Schema<S> schema{field("a", &S::a, "A.")};
	const Folder folder;
	const std::string path = folder.file("c.yaml");
	REQUIRE(write_file_atomic(path, "a: x\n", 0644).ok());
	const auto good = load_config(path, ::geteuid(), schema);
	REQUIRE(good);
	CHECK(good->a == "x");
	REQUIRE(::chmod(path.c_str(), 0666) == 0);
	const auto bad = load_config(path, ::geteuid(), schema);
	REQUIRE_FALSE(bad);
	CHECK(bad.error().message == path + ": " + path + " can be changed by others (mode 0666), run: chmod go-w " + path);
}
