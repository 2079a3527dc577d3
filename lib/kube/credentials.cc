// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/kube/credentials.h"

#include <algorithm>

#include "lib/base/log.h"
#include "lib/base/text.h"

namespace sk8::kube {

namespace {

constexpr std::size_t max_file = 1u << 20;

Result<void> check_pem(const std::string &text, const std::string &what)
{
	if (text.empty() || text.find("-----BEGIN ") != text.npos)
		return {};
	return Error{what + " is not in PEM form"};
}

// A token goes into a header line: nothing that could end the line.
Result<void> check_token(const std::string &token)
{
	auto odd = [](char c) { return c <= ' ' || c >= 0x7f; };
	if (std::any_of(token.begin(), token.end(), odd))
		return Error{"the token has characters that no token has"};
	return {};
}

} // namespace

Credentials::Credentials(ClusterAccess access, const Clock &clock, Millis cache)
	: access_(std::move(access)), clock_(clock), cache_(cache)
{
}

Result<Credentials::Current> Credentials::get()
{
	Millis now = clock_.monotonic();
	if (have_ && now < stale_after_)
		return current_;
	Result<void> r = read_all();
	read_at_ = now;
	stale_after_ = now + cache_;
	if (r.ok()) {
		complained_ = false;
		have_ = true;
	} else if (have_ && !complained_) {
		complained_ = true; // once, until it works again
		log_warning("kube: %s; the old credentials stay in use", r.error().message.c_str());
	}
	if (!have_)
		return r.error();
	return current_;
}

void Credentials::doubt()
{
	if (clock_.monotonic() - read_at_ >= Millis(1000))
		stale_after_ = read_at_;
}

// Inline credentials rotate by a new kubeconfig.
Result<void> Credentials::read_all()
{
	if (access_.file.empty())
		return use(access_);
	Result<ClusterAccess> fresh = load_kubeconfig(access_.file, access_.context, access_.owner);
	if (!fresh.ok())
		return fresh.error();
	return use(*fresh);
}

Result<void> Credentials::use(const ClusterAccess &access)
{
	TlsMaterial tls;
	tls.server_name = access.tls_server_name;
	std::string token;
	struct Row {
		const Material &from;
		const char *what;
		std::string &to;
	};
	const Row rows[] = {{access.ca, "the certificate authority", tls.ca},
			    {access.client_certificate, "the client certificate", tls.certificate},
			    {access.client_key, "the client key", tls.key},
			    {access.token, "the token", token}};
	for (const Row &row : rows) {
		Result<std::string> text = read(row.from, row.what);
		if (!text.ok())
			return text.error();
		row.to = std::move(*text);
		if (&row.to == &token)
			continue;
		if (Result<void> pem = check_pem(row.to, row.what); !pem.ok())
			return Error{access_.source + ": " + pem.error().message};
	}
	token = trim(token);
	if (Result<void> fine = check_token(token); !fine.ok())
		return Error{access_.source + ": " + fine.error().message};

	const TlsMaterial *old = current_.tls.get();
	if (!old || old->ca != tls.ca || old->certificate != tls.certificate || old->key != tls.key ||
	    old->server_name != tls.server_name)
		current_.tls = std::make_shared<const TlsMaterial>(std::move(tls));
	current_.token = std::move(token);
	current_.server = access.server;
	current_.proxy_url = access.proxy_url;
	return {};
}

Result<std::string> Credentials::read(const Material &from, const char *what) const
{
	if (from.file.empty())
		return from.data;
	Result<std::string> text = read_file(from.file, max_file, from.trust, access_.owner);
	if (text.ok() && trim(*text).empty())
		return Error{from.file + ": " + what + " is empty"};
	return text;
}

} // namespace sk8::kube
