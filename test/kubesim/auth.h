// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Who a request comes from: client certificate (CN is the user, each O a group) or
// bearer token, and whom it impersonates.
#ifndef KUBESIM_AUTH_H
#define KUBESIM_AUTH_H

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gnutls/gnutls.h>

#include "test/kubesim/rbac.h"
#include "test/kubesim/request.h"

namespace kubesim {

// Of a finished handshake; nullopt without a certificate that our CA signed.
std::optional<User> user_of_certificate(gnutls_session_t session);

class Tokens {
public:
	// Lines `token,user,uid,"group,group"`. Returns an error sentence, or "".
	std::string load(const std::string &path);
	std::optional<User> user_of(const std::string &authorization_header) const;

private:
	std::map<std::string, User> users_;
};

// Becomes the user of the Impersonate-* headers if the real one may do that.
Outcome<User> impersonate(Rbac &rbac, const User &user, const std::string &name,
			  const std::vector<std::string> &groups);

} // namespace kubesim

#endif
