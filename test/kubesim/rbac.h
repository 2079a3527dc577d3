// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Authorization by the Role, ClusterRole and binding objects in the store, deny by
// default. Without it every authenticated user may do all.
#ifndef KUBESIM_RBAC_H
#define KUBESIM_RBAC_H

#include <string>
#include <vector>

#include "test/kubesim/request.h"
#include "test/kubesim/store.h"

namespace kubesim {

struct Action {
	std::string verb, group, resource, subresource, ns, name; // a resource request
	std::string path;                                         // or else this
};

class Rbac {
public:
	Rbac(Store &store, bool enforced);
	bool allowed(const User &user, const Action &action);
	// The answer for who may not: the real server's words.
	static Failure forbidden(const User &user, const Action &action);

private:
	struct Rule {
		std::vector<std::string> verbs, groups, resources, names, paths;
	};
	struct Grant {
		std::vector<std::pair<std::string, std::string>> subjects; // kind, name
		std::string ns;                                            // empty: everywhere
		std::vector<Rule> rules;
	};
	void compile();
	std::vector<Rule> rules_of(const J &role_ref, const std::string &ns);

	Store &store_;
	bool enforced_, stale_ = true;
	std::vector<Grant> grants_;
};

} // namespace kubesim

#endif
