// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What jobs may have by the name of their account, and what that needs of Slurm.
#include "tools/check.h"

#include <algorithm>

#include "lib/core/pod_template.h"
#include "tools/accounting.h"

namespace sk8::tools {

static bool has_account(const std::vector<std::string> &patterns)
{
	return std::ranges::any_of(patterns, [](const std::string &p) { return p.find(core::account_mark) != p.npos; });
}

void check_accounts(const core::Settings &settings, const SlurmConf &conf, Findings &out)
{
	const bool enforced = enforces_associations(conf);
	for (const auto &cluster : settings.clusters) {
		const std::string about = "accounts of " + cluster.name;
		const core::ReservationSettings &r = cluster.reservations;
		const core::TemplateSettings templates = r.templates.allow ? r.templates : core::TemplateSettings{};
		const std::pair<const char *, const std::vector<std::string> &> lists[] = {
			{"templates.configMaps", templates.config_maps},
			{"templates.secrets", templates.secrets},
			{"templates.claims", templates.claims},
			{"serviceAccounts", r.service_accounts},
		};
		bool any = false;
		for (const auto &[key, patterns] : lists) {
			if (!has_account(patterns))
				continue;
			any = true;
			if (!enforced)
				out.problem(about, "reservations." + std::string(key) + " has {account}, but Slurm lets everybody name any account for "
						   "his jobs; set AccountingStorageEnforce=associations in slurm.conf, or name users by {user}");
		}
		if (any && enforced)
			out.ok(about, "{account} is one of the job's user, by AccountingStorageEnforce");
	}
}

} // namespace sk8::tools
