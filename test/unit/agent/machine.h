// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What a kernel tells of a machine, as files in a folder.
#ifndef SK8_TEST_UNIT_AGENT_MACHINE_H
#define SK8_TEST_UNIT_AGENT_MACHINE_H

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "test/unit/kube/temp_folder.h"

struct Machine {
	TempFolder folder;

	void file(const std::string &name, const std::string &text) const
	{
		const std::filesystem::path path = folder.path + "/" + name;
		std::filesystem::create_directories(path.parent_path());
		std::ofstream(path) << text << "\n";
	}
	std::string text(const std::string &name) const
	{
		std::ifstream in(folder.path + "/" + name);
		std::string line;
		std::getline(in, line);
		return line;
	}
	void cpu(int number, int socket, int core) const
	{
		const std::string at = "cpu" + std::to_string(number) + "/topology/";
		file(at + "physical_package_id", std::to_string(socket));
		file(at + "core_id", std::to_string(core));
	}
	// A folder of cgroups of version 1 that runs on these CPUs.
	void v1(const std::string &name, const std::string &cpus) const { file("cpuset/" + name + "/cpuset.cpus", cpus); }
	std::string cpus_v1(const std::string &name) const { return text("cpuset/" + name + "/cpuset.cpus"); }
	// ... of version 2; own: what it names itself.
	void v2(const std::string &name, const std::string &effective, const std::string &own = "") const
	{
		file("cgroup.controllers", "cpuset cpu");
		file(name + "/cpuset.cpus.effective", effective);
		file(name + "/cpuset.cpus", own);
	}
};

#endif
