// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/auth.h"

#include <fstream>

#include <gnutls/x509.h>

namespace kubesim {

static std::string dn_part(gnutls_x509_crt_t cert, const char *oid, unsigned index)
{
	char text[512];
	std::size_t size = sizeof text;
	if (gnutls_x509_crt_get_dn_by_oid(cert, oid, index, 0, text, &size) != GNUTLS_E_SUCCESS)
		return {};
	return std::string(text, size);
}

std::optional<User> user_of_certificate(gnutls_session_t session)
{
	unsigned count = 0, status = 0;
	const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &count);
	if (!chain || !count || gnutls_certificate_verify_peers2(session, &status) || status)
		return std::nullopt;
	gnutls_x509_crt_t cert;
	if (gnutls_x509_crt_init(&cert))
		return std::nullopt;
	User user;
	if (gnutls_x509_crt_import(cert, &chain[0], GNUTLS_X509_FMT_DER) == 0) {
		user.name = dn_part(cert, GNUTLS_OID_X520_COMMON_NAME, 0);
		for (unsigned i = 0; i < 100; i++) {
			std::string group = dn_part(cert, GNUTLS_OID_X520_ORGANIZATION_NAME, i);
			if (group.empty())
				break;
			user.groups.push_back(group);
		}
	}
	gnutls_x509_crt_deinit(cert);
	if (user.name.empty())
		return std::nullopt;
	user.groups.push_back("system:authenticated");
	return user;
}

static std::vector<std::string> split_csv(const std::string &line)
{
	std::vector<std::string> out(1);
	bool quoted = false;
	for (char c : line) {
		if (c == '"')
			quoted = !quoted;
		else if (c == ',' && !quoted)
			out.emplace_back();
		else if (c != '\r')
			out.back() += c;
	}
	return out;
}

std::string Tokens::load(const std::string &path)
{
	std::ifstream in(path);
	if (!in)
		return "cannot read the token file " + path;
	for (std::string line; std::getline(in, line);) {
		auto row = split_csv(line);
		if (row.size() < 3)
			continue;
		User user{row[1], row[2], {}};
		if (row.size() > 3)
			for (const auto &g : split_csv(row[3]))
				user.groups.push_back(g);
		user.groups.push_back("system:authenticated");
		users_[row[0]] = user;
	}
	return {};
}

std::optional<User> Tokens::user_of(const std::string &header) const
{
	const std::string scheme = "Bearer ";
	if (header.compare(0, scheme.size(), scheme) != 0)
		return std::nullopt;
	auto it = users_.find(header.substr(scheme.size()));
	return it == users_.end() ? std::nullopt : std::optional(it->second);
}

Outcome<User> impersonate(Rbac &rbac, const User &user, const std::string &name,
			  const std::vector<std::string> &groups)
{
	std::vector<std::pair<const char *, std::string>> wanted = {{"users", name}};
	for (const auto &g : groups)
		wanted.emplace_back("groups", g);
	for (const auto &[resource, what] : wanted) {
		Action action{"impersonate", "", resource, "", "", what, ""};
		if (!rbac.allowed(user, action))
			return Rbac::forbidden(user, action);
	}
	User other{name, "", groups};
	other.groups.push_back("system:authenticated");
	return other;
}

} // namespace kubesim
