// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A kubeconfig is accepted with an https server and complete credentials, or refused
// with one sentence that repeats no secret of it.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/text.h"
#include "lib/base/yaml.h"
#include "lib/kube/kubeconfig.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/yaml_text.h"

using namespace sk8;
using namespace sk8::fuzz;
using namespace sk8::kube;

namespace {

// A file in memory only, one for the whole run.
class MemoryFile {
public:
	MemoryFile() : fd_(memfd_create("kubeconfig", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_))
	{
		if (fd_ < 0 || fchmod(fd_, 0600) != 0) {
			std::perror("memfd");
			std::exit(1);
		}
	}
	const std::string &with(std::string_view content)
	{
		if (ftruncate(fd_, 0) != 0 ||
		    pwrite(fd_, content.data(), content.size(), 0) != static_cast<ssize_t>(content.size())) {
			std::perror("memfd");
			std::exit(1);
		}
		return path_;
	}

private:
	int fd_;
	std::string path_;
};

// The sentence with which this text is refused; empty: it is not.
using Loaded = std::function<std::string(const std::string &text)>;

bool holds_secret(std::string_view key)
{
	return key == "token" || key == "password" || key == "client-key-data" || key == "client-certificate-data" ||
	       key == "certificate-authority-data" || key == "id-token" || key == "refresh-token";
}

// Where in "https://user:password@host" the password begins; npos: it has none.
std::size_t password_in(std::string_view url)
{
	const std::size_t scheme = url.find("://"), at = url.find('@');
	if (scheme == url.npos || at == url.npos || at < scheme)
		return url.npos;
	const std::size_t colon = url.find(':', scheme + 3);
	return colon < at && colon + 1 < at ? colon + 1 : url.npos;
}

// Where what no URL may have begins: a missing quote made part of it what follows.
std::size_t swallowed_by(std::string_view url)
{
	const auto odd = [](char c) {
		return !std::isalnum(static_cast<unsigned char>(c)) &&
		       std::string_view("-._~:/?#[]@%&=+").find(c) == std::string_view::npos;
	};
	return static_cast<std::size_t>(std::find_if(url.begin(), url.end(), odd) - url.begin());
}

// Puts the mark before each secret. secret: all of node is one.
void mark_secrets(YamlNode &node, std::string_view key, bool secret, std::string_view mark)
{
	const bool url = key == "server" || key == "proxy-url";
	if (node.is_scalar() && !node.is_null() && (secret || url)) {
		const std::size_t at = secret ? 0 : std::min(password_in(node.text), swallowed_by(node.text));
		if (at < node.text.size())
			node.text.insert(at, mark);
	}
	for (YamlNode &item : node.items)
		mark_secrets(item, key, secret, mark);
	for (YamlMember &member : node.members)
		mark_secrets(member.value, member.key, secret || holds_secret(member.key), mark);
}

std::string written(const YamlNode &node)
{
	std::string out;
	write(node, out);
	return out;
}

// Valid in base64, without changing how the rest is read; not in text.
std::string mark_for(const std::string &text)
{
	for (int i = 0;; i++)
		if (std::string mark = strprintf("hush%04d", i); text.find(mark) == text.npos)
			return mark;
}

// A file may have our own words as secrets, or the same text as a name that is shown. So it
// is not asked whether the sentence has a secret's text, but whether a mark before each
// secret, which is nowhere else, gets into the sentence.
void check_refusal(std::string_view text, const std::string &sentence, const Loaded &refusal_of)
{
	for (std::string_view line : split(sentence, '\n'))
		expect_sentence(line, 64 * 1024);
	Result<YamlNode> doc = parse_yaml(text, "f");
	if (!doc)
		return;
	const std::string mark = mark_for(written(*doc));
	mark_secrets(*doc, "", false, mark);
	const std::string marked = refusal_of(written(*doc));
	expect(marked.find(mark) == marked.npos, "no secret is repeated", marked);
}

void check_material(const Material &m)
{
	expect(m.data.empty() || m.file.empty(), "material is inline or a file");
	expect(m.file.empty() || m.file.starts_with('/'), "a file has an absolute path", m.file);
}

void check_access(const ClusterAccess &a)
{
	expect(a.server.starts_with("https://") && a.server.size() > 8, "only https", a.server);
	expect(a.server.find_first_of(" \r\n\t@?#") == a.server.npos, "a server is scheme, host and path", a.server);
	expect(one_line(a.source, 8192) == a.source, "the source can be logged", a.source);
	expect(a.client_certificate.given() == a.client_key.given(), "certificate and key come together");
	expect(a.token.given() || a.client_key.given(), "there are credentials");
	expect(a.client_key.trust == Trust::secret && a.token.trust == Trust::secret, "secrets are read as such");
	for (const Material *m : {&a.ca, &a.client_certificate, &a.client_key, &a.token})
		check_material(*m);
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	static MemoryFile &file = *new MemoryFile;
	const std::string_view text(reinterpret_cast<const char *>(data), size);
	for (const char *context : {"", "prod"}) {
		const Result<ClusterAccess> access = load_kubeconfig(file.with(text), context, geteuid());
		if (access) {
			check_access(*access);
			continue;
		}
		check_refusal(text, access.error().message, [context](const std::string &other) {
			const Result<ClusterAccess> again = load_kubeconfig(file.with(other), context, geteuid());
			return again ? std::string() : again.error().message;
		});
	}
	return 0;
}
