// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What root reads for somebody else that one must be able to read himself.
#ifndef SK8_TOOLS_AS_USER_H
#define SK8_TOOLS_AS_USER_H

#include <sys/types.h>

#include <string>
#include <vector>

namespace sk8::tools {

// While it lives root has the effective user, group and groups of this user; anybody else, and root for root, stays as he is.
// All threads of the process. why_not() says why that could not be.
class AsUser {
public:
	explicit AsUser(uid_t uid);
	AsUser(const AsUser &) = delete;
	AsUser &operator=(const AsUser &) = delete;
	~AsUser();

	const std::string &why_not() const { return why_not_; }

private:
	bool become(uid_t uid);

	bool changed_ = false;
	gid_t gid_ = 0;
	std::vector<gid_t> groups_;
	std::string why_not_;
};

} // namespace sk8::tools

#endif
