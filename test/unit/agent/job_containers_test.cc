// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/job_containers.h"

#include <sys/stat.h>

#include "test/unit/agent/machine.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::agent;

namespace {

struct Node {
	Machine machine;
	JobContainers containers{PodCgroups(machine.folder.path, "/"), machine.folder.path + "/run/n1.containers"};
	std::unordered_map<std::string, kube::PodPtr> pods;

	// As a kubelet tells of it.
	void pod(const std::string &uid, const std::string &name, const std::string &id, const std::string &ns = "jobs",
		 kube::ContainerStatus::State state = kube::ContainerStatus::State::running)
	{
		auto p = std::make_shared<kube::Pod>();
		p->meta.ns = ns;
		p->meta.name = name;
		p->meta.uid = uid;
		kube::ContainerStatus sidecar, job;
		sidecar.name = "sidecar";
		job.name = "job";
		job.id = id;
		job.state = state;
		p->containers = {sidecar, job};
		pods[uid] = p;
	}
	void cgroup(const std::string &uid, const std::string &container)
	{
		machine.v1("kubepods/pod" + uid + "/" + container, "0");
	}
	Millis round()
	{
		containers.set(job_containers(pods, "jobs", "n1"));
		return containers.round();
	}
	std::string told(int job) const { return told(std::to_string(job)); }
	std::string told(const std::string &file) const { return machine.text("run/n1.containers/" + file); }
	std::string place(const std::string &rest) const { return machine.folder.path + "/cpuset/kubepods/" + rest + "/cgroup.procs"; }
};

} // namespace

TEST_CASE("job containers: the file of a job is there as soon as its container's cgroup is, and goes with the pod")
{
	Node n;
	n.pod("u1", "slurm-7-3ef-n1", "abc");
	CHECK(n.round() < Millis(1'000));
	CHECK(n.told(7).empty());
	n.cgroup("u1", "sandbox");
	n.cgroup("u1", "abc");
	CHECK(n.round() >= Millis(1'000));
	CHECK(n.told(7) == n.place("podu1/abc"));
	struct stat status;
	REQUIRE(stat((n.machine.folder.path + "/run/n1.containers").c_str(), &status) == 0);
	CHECK((status.st_mode & 0777) == 0700);
	n.pods.clear();
	n.round();
	CHECK(n.told(7).empty());
}

TEST_CASE("job containers: a container's cgroup is found whatever its runtime calls it, and its monitor's is none")
{
	Node n;
	n.pod("u1", "slurm-7-3ef-n1", "abc");
	n.cgroup("u1", "crio-conmon-abc.scope");
	n.cgroup("u1", "crio-xabc.scope");
	CHECK(n.round() < Millis(1'000));
	const auto [name, place] = GENERATE(table<std::string, std::string>({
		{"abc", "abc"}, {"crio-abc", "crio-abc"}, {"crio-abc.scope", "crio-abc.scope"},
		{"cri-containerd-abc.scope", "cri-containerd-abc.scope"}, {"crio-abc.scope/container", "crio-abc.scope/container"}}));
	n.cgroup("u1", name);
	n.round();
	CHECK(n.told(7) == n.place("podu1/" + place));
}

TEST_CASE("job containers: what another agent has removed is told again")
{
	Node n;
	n.pod("u1", "slurm-7-3ef-n1", "abc");
	n.cgroup("u1", "abc");
	n.containers.set_kubeconfig("k");
	n.round();
	{
		JobContainers takes_over(PodCgroups(n.machine.folder.path, "/"), n.machine.folder.path + "/run/n1.containers");
	}
	REQUIRE(n.told(7).empty());
	n.containers.set_kubeconfig("k");
	n.round();
	CHECK(n.told(7) == n.place("podu1/abc"));
	CHECK(n.told("kubeconfig") == "k");
}

TEST_CASE("job containers: one that is made again is told anew")
{
	Node n;
	n.pod("u1", "slurm-7-3ef-n1", "abc");
	n.cgroup("u1", "abc");
	n.round();
	n.pods.clear();
	n.pod("u2", "slurm-7-3ef-n1", "def");
	n.cgroup("u2", "cri-containerd-def.scope");
	n.round();
	CHECK(n.told(7) == n.place("podu2/cri-containerd-def.scope"));
}

TEST_CASE("job containers: pods of other namespaces, nodes and names, and containers that do not run, are none")
{
	Node n;
	n.pod("u1", "slurm-7-3ef-n1", "abc", "default");
	n.pod("u2", "slurm-8-3ef-n2", "abc");
	n.pod("u3", "mine", "abc");
	n.pod("u4", "slurm-9-3ef-n1", "abc", "jobs", kube::ContainerStatus::State::waiting);
	n.pod("u5", "slurm-10-3ef-n1", "");
	CHECK(job_containers(n.pods, "jobs", "n1").empty());
}

TEST_CASE("job containers: of two runs with the same id the later one counts")
{
	Node n;
	n.pod("u1", "slurm-7-3ef-n1", "abc");
	n.pod("u2", "slurm-7-4ef-n1", "def");
	n.pod("u3", "slurm-7-2ef-n1", "ghi");
	const auto found = job_containers(n.pods, "jobs", "n1");
	REQUIRE(found.size() == 1); // the sidecars do not run
	CHECK(found.at({7, ""}).pod_uid == "u2");
}

TEST_CASE("job containers: what a former agent has left is removed")
{
	const Machine m;
	m.file("run/n1.containers/9", "/old");
	const JobContainers containers(PodCgroups(m.folder.path, "/"), m.folder.path + "/run/n1.containers");
	CHECK(m.text("run/n1.containers/9").empty());
}

TEST_CASE("job containers: the folder is there before any job is, for who waits for the first one")
{
	const Node n;
	CHECK(std::filesystem::is_directory(n.machine.folder.path + "/run/n1.containers"));
}

TEST_CASE("job containers: a cgroup that does not come is looked for more and more seldom, and told of once")
{
	Node n;
	n.pod("u1", "slurm-7-3ef-n1", "abc");
	int often = 0;
	for (int i = 0; i < 150; i++)
		often += n.round() < Millis(1'000);
	CHECK(often == 99);
	n.cgroup("u1", "abc");
	n.round();
	CHECK(n.told(7) == n.place("podu1/abc"));
}

TEST_CASE("job containers: the others of the pod are told, too, and before the job's own")
{
	Node n;
	n.pod("u1", "slurm-7-3ef-n1", "abc");
	auto with = std::make_shared<kube::Pod>(*n.pods["u1"]);
	with->containers[0].state = kube::ContainerStatus::State::running;
	with->containers[0].id = "side";
	n.pods["u1"] = with;
	n.cgroup("u1", "abc");
	CHECK(n.round() < Millis(1'000));
	CHECK(n.told(7).empty()); // who waits for it would not find the other one
	n.cgroup("u1", "side");
	CHECK(n.round() >= Millis(1'000));
	CHECK(n.told(7) == n.place("podu1/abc"));
	CHECK(n.told("7.sidecar") == n.place("podu1/side"));

	with = std::make_shared<kube::Pod>(*with);
	with->containers[0].state = kube::ContainerStatus::State::terminated;
	n.pods["u1"] = with;
	n.round();
	CHECK(n.told("7.sidecar").empty());
	CHECK(n.told(7) == n.place("podu1/abc"));
}

TEST_CASE("job containers: the kubeconfig for jobs is there before the first of them, and for root alone")
{
	Node n;
	n.containers.set_kubeconfig("one\n");
	n.pod("u1", "slurm-7-3ef-n1", "abc");
	n.cgroup("u1", "abc");
	n.round();
	CHECK(n.told("kubeconfig") == "one");
	struct stat status{};
	REQUIRE(stat((n.machine.folder.path + "/run/n1.containers/kubeconfig").c_str(), &status) == 0);
	CHECK((status.st_mode & 0777) == 0600);
	n.containers.set_kubeconfig("two\n");
	n.pods.clear();
	n.round();
	CHECK(n.told("kubeconfig") == "two");
}
