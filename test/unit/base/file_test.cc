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
	S s;
	Problems good(path);
	CHECK(load_config(::geteuid(), schema, s, good));
	CHECK(s.a == "x");
	REQUIRE(::chmod(path.c_str(), 0666) == 0);
	Problems bad(path);
	CHECK_FALSE(load_config(::geteuid(), schema, s, bad));
	CHECK(bad.lines() == std::vector<std::string>{
				     path + ": " + path +
				     " can be changed by others (mode 0666), run: chmod go-w " + path});
}
