// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What a user of Slurm's wants the pod of his job to have besides the job's container (--k8s-template): volumes,
// sidecars, init containers. A file as kubectl would take it, of which only the few fields count that are named in
// pod_template.cc: what is not named there is refused, so nobody gets a field of Kubernetes that we do not know. Pure.
#ifndef SK8_CORE_POD_TEMPLATE_H
#define SK8_CORE_POD_TEMPLATE_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/result.h"
#include "lib/core/settings.h"
#include "lib/sk8_container.h"

namespace sk8::core {

inline constexpr std::size_t longest_template = SK8_LONGEST_TEMPLATE; // bytes

// Of the names that settings allow.
struct TemplateUser {
	std::string user, account; // as Slurm has them
};

// Parts of a pod's spec, as Kubernetes wants them.
struct PodTemplate {
	std::string image;   // of the job's container; empty: nothing is said of it
	Json pull_policy;    // ... a string, or null
	Json job_mounts = Json::array(); // ... its volumeMounts
	Json volumes = Json::array(), containers = Json::array(), init_containers = Json::array(), pull_secrets = Json::array();
	Json device_claims = Json::array(); // resourceClaims
	Json job_claims = Json::array();    // ... those of them that the job's container has, its resources.claims
	std::string one_claim;              // one of them that there is once, whatever the number of nodes; empty: none
	// What its other containers may use together as long as the job runs.
	std::int64_t milli_cpu = 0, memory_bytes = 0;
	std::int64_t volume_bytes = 0; // of its volumes in memory, all together; whoever writes there takes it
	std::int64_t first_memory_bytes = 0; // of those that end before the job starts, one after the other: the most, beside these
};

// Error: the first thing that is wrong, as a part of a sentence that begins with the line.
Result<PodTemplate> read_pod_template(std::string_view text, const TemplateSettings &allowed, const TemplateUser &who);

// Its pod has no node before its claims have devices.
inline bool claims_devices(const PodTemplate &more)
{
	return more.device_claims.size() > 0;
}
// A claim or a host path: there are files of others in it, too, and root makes them.
bool has_files_of_others(const Json &volume);
// Is this path somewhere in that folder? Both are plain and absolute.
bool is_below(std::string_view path, std::string_view folder);

// In a pattern of the settings, for the account that the job says it has: Slurm takes any, unless it enforces associations.
inline constexpr std::string_view account_mark = "{account}";
// Does a pattern of the settings take this name? {user} and {account} stand for those of the job, letter by letter; in a pattern
// without them * is any run and ? any one character. One with both takes nothing of whose user or account has in it what separates
// the two there, - or .: by {user}-{account} a-b-c would be user a's of account b-c, and user a-b's of account c.
bool takes_name(const std::string &pattern, std::string_view name, const TemplateUser &who);
// Why none of these takes it, as a part of a sentence that begins with the name; empty: one does. setting: whose patterns they are.
std::string not_taken(const std::vector<std::string> &patterns, std::string_view name, const TemplateUser &who, const std::string &setting);
// What is wrong with a pattern; empty: nothing.
std::string bad_pattern(const std::string &pattern);

} // namespace sk8::core

#endif
