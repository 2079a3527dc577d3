// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/pod_cgroups.h"

#include "test/unit/agent/machine.h"
#include "test/unit/catch.h"

using namespace sk8::agent;

TEST_CASE("pod cgroups: names that kubelets give them")
{
	const struct {
		const char *name, *uid;
	} rows[] = {
		{"pod1234-ab", "1234-ab"},
		{"kubepods-burstable-pod1234_ab.slice", "1234-ab"},
		{"kubepods-pod1234_ab.slice", "1234-ab"},
		{"kubepods-besteffort.slice", ""},
		{"burstable", ""},
		{"pod", ""},
		{"pod..", ""},
		{"cri-containerd-1234.scope", ""},
		{"podx/y", ""},
	};
	for (const auto &row : rows) {
		INFO(row.name);
		CHECK(pod_uid_of_folder(row.name) == row.uid);
	}
	CHECK(pod_uid_of_folder("pod" + std::string(65, 'a')).empty());
}

TEST_CASE("pod cgroups: are found whatever the driver and the version")
{
	const Machine m;
	SECTION("version 1, driver cgroupfs, with a root")
	{
		m.v1("kube/kubepods/poda-1", "0-3");
		m.v1("kube/kubepods/burstable/podb-2/container", "0-3");
		m.v1("other/podc-3", "0-3");
		const auto found = PodCgroups(m.folder.path, "/kube").find();
		REQUIRE(found);
		CHECK(*found == std::map<std::string, std::string>{
					{"a-1", m.folder.path + "/cpuset/kube/kubepods/poda-1"},
					{"b-2", m.folder.path + "/cpuset/kube/kubepods/burstable/podb-2"}});
	}
	SECTION("version 2, driver systemd")
	{
		m.v2("kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podb_2.slice", "0-3");
		const auto found = PodCgroups(m.folder.path, "/").find();
		REQUIRE(found);
		CHECK(found->begin()->first == "b-2");
	}
	SECTION("no kubelet has been here")
	{
		m.file("cgroup.controllers", "cpuset");
		CHECK(PodCgroups(m.folder.path, "/").find()->empty());
	}
	SECTION("no cpusets at all")
	{
		CHECK(PodCgroups(m.folder.path, "/").find().error().message.find("no cpuset controller") != std::string::npos);
	}
}

TEST_CASE("pod cgroups: with version 1 the pod and all within it get the CPUs")
{
	const Machine m;
	const PodCgroups cgroups(m.folder.path, "/");
	m.v1("kubepods/poda", "0-3");
	m.v1("kubepods/poda/sandbox", "0-3");
	m.v1("kubepods/poda/main/init", "0-3");
	m.v1("kubepods/poda/main", "0-3");
	const std::string folder = m.folder.path + "/cpuset/kubepods/poda";
	CHECK(*cgroups.set_cpus(folder, {2, 3}));
	for (const char *name : {"poda", "poda/sandbox", "poda/main", "poda/main/init"})
		CHECK(m.cpus_v1(std::string("kubepods/") + name) == "2-3");
	CHECK_FALSE(*cgroups.set_cpus(folder, {2, 3})); // nothing to do
	m.v1("kubepods/poda/main", "0-3");              // somebody's tool
	CHECK(*cgroups.set_cpus(folder, {2, 3}));
	CHECK_FALSE(cgroups.set_cpus(folder + "-gone", {2, 3}));
}

TEST_CASE("pod cgroups: with version 2 the pod alone names them")
{
	const Machine m;
	const PodCgroups cgroups(m.folder.path, "/");
	m.v2("kubepods", "0-3");
	m.v2("kubepods/poda", "0-3");
	m.v2("kubepods/poda/main", "0-3");
	const std::string folder = m.folder.path + "/kubepods/poda";
	CHECK(*cgroups.set_cpus(folder, {1}));
	CHECK(m.text("kubepods/poda/cpuset.cpus") == "1");
	CHECK(m.text("kubepods/poda/main/cpuset.cpus").empty());
	CHECK(*cgroups.cpus_of_parent(folder) == CpuSet{0, 1, 2, 3});
}

TEST_CASE("pod cgroups: whether a process is in a pod's, or anywhere within")
{
	const Machine m;
	const PodCgroups cgroups(m.folder.path, "/");
	SECTION("version 1")
	{
		m.v1("kubepods/poda", "0-3");
		m.file("cpuset/kubepods/poda/cgroup.procs", "");
		std::ofstream(m.folder.path + "/cpuset/kubepods/poda/cgroup.procs", std::ios::trunc);
		std::filesystem::create_directories(m.folder.path + "/cpuset/kubepods/poda/main/init");
		std::ofstream(m.folder.path + "/cpuset/kubepods/poda/main/cgroup.procs");
		m.file("cpuset/kubepods/poda/main/init/cgroup.procs", "17");
		std::filesystem::create_directories(m.folder.path + "/cpuset/kubepods/burstable/podb");
		std::ofstream(m.folder.path + "/cpuset/kubepods/burstable/podb/cgroup.procs");
		CHECK(*cgroups.processes() == std::map<std::string, bool>{{"a", true}, {"b", false}});
	}
	SECTION("version 2")
	{
		m.v2("kubepods.slice/kubepods-poda_1.slice", "0-3");
		m.file("kubepods.slice/kubepods-poda_1.slice/cgroup.events", "populated 1\nfrozen 0");
		m.file("kubepods.slice/kubepods-podb.slice/cgroup.events", "populated 0\nfrozen 0");
		CHECK(*cgroups.processes() == std::map<std::string, bool>{{"a-1", true}, {"b", false}});
	}
	SECTION("one of two cgroups of a pod, as a kubelet leaves with a driver that it had before")
	{
		m.v2("kubepods", "0-3");
		m.file("kubepods/poda/cgroup.events", "populated 0");
		m.file("kubepods.slice/kubepods-poda.slice/cgroup.events", "populated 1");
		CHECK(*cgroups.processes() == std::map<std::string, bool>{{"a", true}});
	}
}

TEST_CASE("pod cgroups: what cannot be read is no answer")
{
	const Machine m;
	const PodCgroups cgroups(m.folder.path, "/");
	m.file("cgroup.controllers", "cpuset");
	SECTION("no kubelet has been here") {}
	SECTION("nor where we look") { m.file("kube.slice/kube-kubepods.slice/kube-kubepods-poda.slice/cgroup.events", "populated 1"); }
	SECTION("a pod's cgroup does not say it") { m.file("kubepods/poda/other", ""); }
	SECTION("it says something else") { m.file("kubepods/poda/cgroup.events", "populated 7"); }
	CHECK_FALSE(cgroups.processes());
}

TEST_CASE("pod cgroups: with version 2 CPUs that the parent has not are an error, and are not written again and again")
{
	const Machine m;
	const PodCgroups cgroups(m.folder.path, "/");
	const std::string folder = m.folder.path + "/kubepods/poda";
	m.v2("kubepods", "0-1");
	m.v2("kubepods/poda", "0-1");
	REQUIRE(cgroups.set_cpus(folder, {1, 2}));
	CHECK(m.text("kubepods/poda/cpuset.cpus") == "1-2");
	m.v2("kubepods/poda", "1", "1-2"); // what the kernel makes of it
	const auto cut = cgroups.set_cpus(folder, {1, 2});
	REQUIRE_FALSE(cut.ok());
	CHECK(cut.error().message == "only CPUs 1 are there: its parent, or the machine, has no others");
	m.v2("kubepods", "0-3");
	m.v2("kubepods/poda", "1-2", "1-2"); // the kernel gives them as soon as they are there
	const auto set = cgroups.set_cpus(folder, {1, 2});
	REQUIRE(set);
	CHECK_FALSE(*set);
}
