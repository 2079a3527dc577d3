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
#include <vector>

#include "lib/base/text.h"
#include "lib/base/yaml.h"
#include "lib/kube/kubeconfig.h"
#include "test/fuzz/fuzz.h"

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

// "https://user:password@host" -> "password", or nothing.
std::string_view password_of(std::string_view url)
{
	const std::size_t scheme = url.find("://"), at = url.find('@');
	if (scheme == url.npos || at == url.npos || at < scheme)
		return {};
	const std::string_view user = url.substr(scheme + 3, at - scheme - 3);
	const std::size_t colon = user.find(':');
	return colon == user.npos ? std::string_view() : user.substr(colon + 1);
}

// What a URL may have: all else is no URL, but what a missing quote made part of it.
bool is_plain_url(std::string_view text)
{
	const std::string_view usual = "-._~:/?#[]@%&=+";
	return std::all_of(text.begin(), text.end(), [usual](char c) {
		return std::isalnum(static_cast<unsigned char>(c)) || usual.find(c) != usual.npos;
	});
}

// Another secret that looks alike.
std::string other_secret(std::string secret)
{
	for (char &c : secret)
		if (c >= 'b' && c <= 'z')
			c--;
		else if (c == 'a')
			c = 'z';
	return secret;
}

// Sorts every scalar: secrets, and what stands in a place that may be shown, as names do.
void collect(const YamlNode &node, std::string_view key, bool secret, std::vector<std::string> &secrets, std::string &open)
{
	const bool url = key == "server" || key == "proxy-url";
	if (key == "server" && !secret && is_plain_url(node.text) && password_of(node.text).empty())
		open.append(node.text).append("\n");
	if (node.is_scalar() && (secret || url))
		secrets.emplace_back(secret ? std::string_view(node.text) : password_of(node.text));
	else if (node.is_scalar())
		open.append(node.text).append("\n");
	for (const YamlNode &item : node.items)
		collect(item, key, secret, secrets, open);
	for (const YamlMember &member : node.members) {
		open += member.key + "\n";
		collect(member.value, member.key, secret || holds_secret(member.key), secrets, open);
	}
}

// A file may have our own words as secrets: is another secret in their place told, too?
bool is_repeated(std::string text, const std::string &secret, const Loaded &refusal_of)
{
	const std::string other = other_secret(secret);
	for (std::size_t at = 0; (at = text.find(secret, at)) != text.npos; at += other.size())
		text.replace(at, secret.size(), other);
	return refusal_of(text).find(other) != std::string::npos;
}

void check_refusal(std::string_view text, const std::string &sentence, const Loaded &refusal_of)
{
	for (std::string_view line : split(sentence, '\n'))
		expect_sentence(line, 64 * 1024);
	const Result<YamlNode> doc = parse_yaml(text, "f");
	if (!doc)
		return;
	std::vector<std::string> secrets;
	std::string open;
	collect(*doc, "", false, secrets, open);
	const auto told_anyway = [&](const std::string &part) { return open.find(part) != open.npos; };
	for (const std::string &secret : secrets)
		if (secret.size() >= 8 && sentence.find(secret) != sentence.npos && !told_anyway(secret) &&
		    !told_anyway(other_secret(secret)))
			expect(!is_repeated(std::string(text), secret, refusal_of), "no secret is repeated", sentence);
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
