// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/as_user.h"

#include <cerrno>
#include <cstdlib>
#include <grp.h>
#include <pwd.h>
#include <system_error>
#include <unistd.h>

namespace sk8::tools {

AsUser::AsUser(uid_t uid)
{
	if (::geteuid() != 0 || uid == 0)
		return;
	gid_ = ::getegid();
	const int count = ::getgroups(0, nullptr);
	groups_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
	if (count < 0 || ::getgroups(count, groups_.data()) != count)
		why_not_ = "the groups of root cannot be told";
	else
		changed_ = become(uid);
}

bool AsUser::become(uid_t uid)
{
	const passwd *user = ::getpwuid(uid);
	if (!user) {
		why_not_ = "there is no user " + std::to_string(uid);
		return false;
	}
	if (::initgroups(user->pw_name, user->pw_gid) == 0 && ::setegid(user->pw_gid) == 0 && ::seteuid(uid) == 0)
		return true;
	why_not_ = std::generic_category().message(errno);
	if (::setegid(gid_) != 0 || ::setgroups(groups_.size(), groups_.data()) != 0)
		std::abort();
	return false;
}

AsUser::~AsUser()
{
	if (changed_ && (::seteuid(0) != 0 || ::setegid(gid_) != 0 || ::setgroups(groups_.size(), groups_.data()) != 0))
		std::abort(); // never half of one and half of the other
}

} // namespace sk8::tools
