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

// all: set to false if there may be others. What is not there (any more) has none.
static std::vector<std::string> folders_in(const std::string &path, bool *all = nullptr)
{
	std::vector<std::string> out;
	DIR *dir = opendir(path.c_str());
	bool good = dir || errno == ENOENT;
	errno = 0;
	while (const dirent *entry = dir ? readdir(dir) : nullptr) {
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			out.emplace_back(entry->d_name);
		good &= entry->d_type != DT_UNKNOWN;
		errno = 0;
	}
	good &= !dir || errno == 0;
	if (dir)
		closedir(dir);
	if (all && !good)
		*all = false;
	return out;
}

static Result<void> write_text(const std::string &path, const std::string &text)
{
	const Fd fd(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW));
	if (!fd || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
		return Error{path + ": " + std::strerror(errno)};
	return {};
}

struct Search {
	std::size_t left = max_folders;
	bool kubelet = false, all = true; // it has a folder here; nothing was left out
	std::vector<std::pair<std::string, std::string>> pods; // uid, folder
};

static void look_for_pods(const std::string &path, int depth, Search &search)
{
	for (const auto &name : folders_in(path, &search.all)) {
		if (search.left == 0) {
			search.all = false;
			return;
		}
		search.left--;
		const std::string uid = pod_uid_of_folder(name), inner = path + '/' + name;
		if (!uid.empty())
			search.pods.emplace_back(uid, inner);
		else if (depth > 0)
			look_for_pods(inner, depth - 1, search);
	}
}

static Search search_in(const std::string &root)
{
	Search search;
	for (const auto &name : folders_in(root, &search.all)) // the systemd driver writes its own root into the name
		if (name == "kubepods" || name.ends_with("kubepods.slice")) {
			search.kubelet = true;
			look_for_pods(root + '/' + name, max_depth, search);
		}
	return search;
}

bool PodCgroups::is_v2() const
{
	return access((mount_ + "/cgroup.controllers").c_str(), F_OK) == 0;
}

std::string PodCgroups::root_folder() const
{
	return (is_v2() ? mount_ : mount_ + "/cpuset") + (root_ == "/" ? "" : root_);
}

Result<std::map<std::string, std::string>> PodCgroups::find() const
{
	const std::string top = is_v2() ? mount_ : mount_ + "/cpuset";
	struct stat status;
	if (stat(top.c_str(), &status) != 0)
		return Error{top + ": " + std::strerror(errno) + "; no cpuset controller is mounted there"};
	std::map<std::string, std::string> found;
	for (auto &[uid, folder] : search_in(root_folder()).pods)
		found.emplace(uid, folder);
	return found;
}

static bool is_there(const std::string &folder)
{
	struct stat status;
	return stat(folder.c_str(), &status) == 0 || errno != ENOENT;
}

// Version 2 says it of all within. What vanishes meanwhile has none: only what is empty can.
Result<bool> PodCgroups::has_process(const std::string &folder, int depth) const
{
	const std::string file = folder + (is_v2() ? "/cgroup.events" : "/cgroup.procs");
	const auto text = read_file(file, max_text);
	if (!text)
		return is_there(folder) ? Result<bool>(text.error()) : false;
	if (is_v2()) {
		const bool populated = text->starts_with("populated 1\n") || text->find("\npopulated 1\n") != text->npos;
		const bool says = populated || text->find("populated 0\n") != text->npos;
		return says ? Result<bool>(populated) : Error{file + " does not say whether it is populated"};
	}
	if (!text->empty())
		return true;
	bool all = true;
	for (const auto &name : folders_in(folder, &all)) {
		if (depth == 0)
			return Error{folder + ": too many folders within folders"};
		auto inner = has_process(folder + '/' + name, depth - 1);
		if (!inner || *inner)
			return inner;
	}
	return all ? Result<bool>(false) : Error{folder + " cannot be read"};
}

Result<std::map<std::string, bool>> PodCgroups::processes() const
{
	const Search search = search_in(root_folder());
	if (!search.kubelet)
		return Error{root_folder() + ": there are no folders of a kubelet"};
	if (!search.all)
		return Error{root_folder() + ": not all folders of pods can be read"};
	std::map<std::string, bool> out;
	for (const auto &[uid, folder] : search.pods) {
		const auto runs = has_process(folder, max_depth);
		if (!runs)
			return runs.error();
		if (*runs || is_there(folder))
			out[uid] |= *runs;
	}
	return out;
}

// ID, RUNTIME-ID or RUNTIME-ID.scope. cri-o's monitor of a container, which is a process of the node, may be in crio-conmon-ID.scope.
static bool is_of_container(std::string_view name, const std::string &id)
{
	static constexpr std::string_view scope = ".scope";
	if (name.ends_with(scope))
		name.remove_suffix(scope.size());
	if (name == id)
		return true;
	return name.ends_with("-" + id) && !name.substr(0, name.size() - id.size() - 1).ends_with("-conmon");
}

std::string PodCgroups::folder_of_container(const std::string &pod_folder, const std::string &id) const
{
	for (const auto &name : folders_in(pod_folder))
		if (is_of_container(name, id)) {
			const std::string folder = pod_folder + '/' + name, inner = folder + "/container"; // crun's, version 2
			return is_there(inner) ? inner : folder;
		}
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
	const std::string file = folder + "/cpuset.cpus";
	const auto own = read_file(file, max_text);
	if (const auto named = own ? parse_cpu_list(*own) : own.error(); named && *named == wanted)
		return Error{"only CPUs " + cpu_list(*now) + " are there: its parent, or the machine, has no others"};
	if (auto r = write_text(file, cpu_list(wanted)); !r)
		return r.error();
	return true;
}

} // namespace sk8::agent
