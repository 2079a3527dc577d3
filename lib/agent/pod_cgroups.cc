// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/pod_cgroups.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "lib/base/file.h"

namespace sk8::agent {

static constexpr int max_depth = 8;               // of folders below the kubelet's root, and below a pod's
static constexpr std::size_t max_folders = 100'000; // looked at in one find()
static constexpr std::size_t max_text = 65'536;
static constexpr std::size_t max_uid = 64;

std::string pod_uid_of_folder(std::string_view name)
{
	static constexpr std::string_view slice = ".slice", pod = "pod";
	const bool systemd = name.ends_with(slice);
	if (systemd) {
		name.remove_suffix(slice.size());
		name.remove_prefix(name.rfind('-') == name.npos ? 0 : name.rfind('-') + 1);
	}
	if (!name.starts_with(pod))
		return "";
	std::string uid(name.substr(pod.size()));
	if (systemd)
		std::ranges::replace(uid, '_', '-');
	const auto good = [](unsigned char c) { return std::isalnum(c) || c == '-'; };
	return uid.size() > max_uid || !std::ranges::all_of(uid, good) ? "" : uid;
}

static std::vector<std::string> folders_in(const std::string &path)
{
	std::vector<std::string> out;
	DIR *dir = opendir(path.c_str());
	while (const dirent *entry = dir ? readdir(dir) : nullptr)
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			out.emplace_back(entry->d_name);
	if (dir)
		closedir(dir);
	return out;
}

static Result<void> write_text(const std::string &path, const std::string &text)
{
	const Fd fd(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW));
	if (!fd || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
		return Error{path + ": " + std::strerror(errno)};
	return {};
}

static void look_for_pods(const std::string &path, int depth, std::size_t &left, std::map<std::string, std::string> &found)
{
	for (const auto &name : folders_in(path)) {
		if (left == 0)
			return;
		left--;
		const std::string uid = pod_uid_of_folder(name), inner = path + '/' + name;
		if (!uid.empty())
			found.emplace(uid, inner);
		else if (depth > 0)
			look_for_pods(inner, depth - 1, left, found);
	}
}

bool PodCgroups::is_v2() const
{
	return access((mount_ + "/cgroup.controllers").c_str(), F_OK) == 0;
}

Result<std::map<std::string, std::string>> PodCgroups::find() const
{
	const std::string top = is_v2() ? mount_ : mount_ + "/cpuset";
	struct stat status;
	if (stat(top.c_str(), &status) != 0)
		return Error{top + ": " + std::strerror(errno) + "; no cpuset controller is mounted there"};
	std::map<std::string, std::string> found;
	std::size_t left = max_folders;
	const std::string root = root_ == "/" ? top : top + root_;
	for (const auto &name : folders_in(root)) // the systemd driver writes its own root into the name
		if (name == "kubepods" || name.ends_with("kubepods.slice"))
			look_for_pods(root + '/' + name, max_depth, left, found);
	return found;
}

std::string PodCgroups::folder_of_container(const std::string &pod_folder, const std::string &id) const
{
	for (const auto &name : folders_in(pod_folder))
		if (name == id || name.ends_with("-" + id + ".scope"))
			return pod_folder + '/' + name;
	return "";
}

Result<CpuSet> PodCgroups::cpus(const std::string &folder) const
{
	const auto text = read_file(folder + (is_v2() ? "/cpuset.cpus.effective" : "/cpuset.cpus"), max_text);
	if (!text)
		return text.error();
	return parse_cpu_list(*text);
}

Result<CpuSet> PodCgroups::cpus_of_parent(const std::string &folder) const
{
	return cpus(folder.substr(0, folder.rfind('/')));
}

// Version 1: first as much as both have, so that those within may change, then them, then itself.
Result<bool> PodCgroups::set_tree(const std::string &folder, const CpuSet &wanted, int depth) const
{
	const auto now = cpus(folder);
	if (!now)
		return now.error();
	bool changed = *now != wanted;
	if (!covers(*now, wanted))
		if (auto r = write_text(folder + "/cpuset.cpus", cpu_list(united(*now, wanted))); !r)
			return r.error();
	for (const auto &name : folders_in(folder)) {
		if (depth == 0)
			break;
		auto inner = set_tree(folder + '/' + name, wanted, depth - 1);
		struct stat status;
		if (!inner && stat((folder + '/' + name).c_str(), &status) != 0)
			continue; // it has ended meanwhile
		if (!inner)
			return inner;
		changed |= *inner;
	}
	if (*now != wanted)
		if (auto r = write_text(folder + "/cpuset.cpus", cpu_list(wanted)); !r)
			return r.error();
	return changed;
}

Result<bool> PodCgroups::set_cpus(const std::string &folder, const CpuSet &wanted) const
{
	if (!is_v2())
		return set_tree(folder, wanted, max_depth);
	const auto now = cpus(folder);
	if (!now)
		return now.error();
	if (*now == wanted)
		return false;
	if (auto r = write_text(folder + "/cpuset.cpus", cpu_list(wanted)); !r)
		return r.error();
	return true;
}

} // namespace sk8::agent
