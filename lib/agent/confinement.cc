// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/confinement.h"

#include <filesystem>
#include <sstream>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/log.h"

namespace sk8::agent {

static constexpr Millis soon{1'000};
static constexpr Millis looks_again{10'000};
static constexpr std::size_t max_state = 1 << 20; // bytes

static std::set<std::string> read_state(const std::string &path)
{
	std::set<std::string> out;
	const auto text = read_file(path, max_state, Trust::state);
	if (!text && access(path.c_str(), F_OK) == 0)
		log_warning("foreign pods that were confined to some CPUs stay there: %s", text.error().message.c_str());
	std::istringstream lines(text.value_or(""));
	for (std::string uid; std::getline(lines, uid);)
		out.insert(uid);
	return out;
}

Confinement::Confinement(std::optional<ExclusiveCpus> exclusive, PodCgroups cgroups, std::string state_file)
	: exclusive_(std::move(exclusive)), cgroups_(std::move(cgroups)), state_file_(std::move(state_file)),
	  confined_(read_state(state_file_))
{
}

// Nothing that could not be undone after a crash is done.
Result<void> Confinement::save(std::set<std::string> confined)
{
	if (confined == confined_)
		return {};
	std::string text;
	for (const auto &uid : confined)
		text += uid + '\n';
	std::error_code failed; // write_file_atomic() tells
	std::filesystem::create_directories(std::filesystem::path(state_file_).parent_path(), failed);
	if (auto r = write_file_atomic(state_file_, text); !r)
		return r;
	confined_ = std::move(confined);
	return {};
}

bool Confinement::put(const std::string &uid, const Place &where) const
{
	const auto set = cgroups_.set_cpus(where.folder, where.cpus);
	if (!set)
		log_verbose("foreign pod uid %s: cannot be put on CPUs %s: %s", uid.c_str(), cpu_list(where.cpus).c_str(),
			    set.error().message.c_str());
	else if (*set)
		log_info("foreign pod uid %s: runs on CPUs %s", uid.c_str(), cpu_list(where.cpus).c_str());
	return set.ok();
}

void Confinement::tell(const std::string &trouble)
{
	if (std::exchange(trouble_, trouble) != trouble && !trouble.empty())
		log_error("foreign pods may run on the cores of exclusive jobs: %s", trouble.c_str());
}

Millis Confinement::round(const std::map<std::string, std::string> &folders, const std::map<std::string, CpuSet> &pinned)
{
	if (idle())
		return looks_again;
	const CpuSet taken = exclusive_ ? exclusive_->look() : CpuSet();
	std::set<std::string> confined;
	std::map<std::string, Place> places;
	std::string trouble;
	for (const auto &[uid, folder] : folders) {
		const auto all = pinned.contains(uid) ? Result<CpuSet>(CpuSet()) : cgroups_.cpus_of_parent(folder);
		if (!all || all->empty())
			continue; // it is pinned, or has ended meanwhile
		const CpuSet left = without(*all, taken);
		if (!left.empty() && left != *all) {
			places[uid] = {folder, left};
			confined.insert(uid);
		} else if (confined_.contains(uid) && !put(uid, {folder, *all})) {
			confined.insert(uid); // tried again
		}
		if (left.empty())
			trouble = "these have all of them; set CoreSpecCount on the node, as many as its pods need";
	}
	if (const auto saved = save(std::move(confined)); !saved)
		trouble = saved.error().message;
	else
		for (const auto &[uid, where] : places)
			put(uid, where);
	tell(trouble);
	return soon;
}

} // namespace sk8::agent
