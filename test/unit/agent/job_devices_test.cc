// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/job_devices.h"

#include <sys/stat.h>

#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/core/names.h"
#include "lib/sk8_container.h"
#include "test/unit/agent/answers.h"
#include "test/unit/catch.h"
#include "test/unit/kube/temp_folder.h"

using namespace sk8;
using namespace sk8::agent;
using namespace sk8::agent::test;

namespace {

constexpr auto hca = "rdma/hca", fpga = "example.com/fpga";

// As its kubelet tells of it.
kube::Pod pod(const std::string &name, const std::string &resources = hca)
{
	kube::Pod p;
	p.meta.ns = "jobs";
	p.meta.name = name;
	if (!resources.empty())
		p.meta.annotations[std::string(core::names::step_devices)] = resources;
	p.phase = "Pending";
	p.admitted = true;
	return p;
}

std::unordered_map<std::string, kube::PodPtr> one(kube::Pod p)
{
	return {{"u1", std::make_shared<kube::Pod>(std::move(p))}};
}

DeviceManager manager()
{
	DeviceManager out;
	out.answers["u1"] = {{hca, {{{"RDMA", "mlx5_0"}, {"SAME", "hca"}}, {"/dev/b", "/dev/a"}}}, {fpga, {{{"FPGA", "1"}, {"SAME", "fpga"}}, {}}}};
	out.answers["u2"] = {{hca, {{{"RDMA", "mlx5_1"}}, {}}}};
	return out;
}

std::string zeroes(std::string text)
{
	for (char &c : text)
		c = c == '|' ? '\0' : c;
	return text;
}

DevicesByJob told(kube::Pod p)
{
	return job_devices(one(std::move(p)), manager(), "jobs", "n1");
}

} // namespace

TEST_CASE("job devices: what its plugins answered for the resources that its pod names, and no others")
{
	CHECK(told(pod("slurm-7-3ef-n1")) == DevicesByJob{{7, zeroes("SLURM_K8S_DEVICES=/dev/a,/dev/b|RDMA=mlx5_0|SAME=hca|")}});
	CHECK(told(pod("slurm-7-3ef-n1", "example.com/fpga,rdma/hca")) ==
	      DevicesByJob{{7, zeroes("SLURM_K8S_DEVICES=/dev/a,/dev/b|FPGA=1|RDMA=mlx5_0|SAME=fpga|")}});
	CHECK(told(pod("slurm-7-3ef-n1", "other.io/x,,")) == DevicesByJob{{7, ""}}); // the step need not wait for more
}

TEST_CASE("job devices: other pods, and those that their kubelet has not admitted yet, say nothing")
{
	CHECK(told(pod("slurm-7-3ef-n2")).empty());
	CHECK(told(pod("mine")).empty());
	CHECK(told(pod("slurm-7-3ef-n1", "")).empty());
	kube::Pod p = pod("slurm-7-3ef-n1");
	p.meta.ns = "default";
	CHECK(told(p).empty());
	p = pod("slurm-7-3ef-n1");
	p.admitted = false;
	CHECK(told(p).empty());
}

TEST_CASE("job devices: of two runs with one id the later one counts")
{
	auto pods = one(pod("slurm-7-3ef-n1"));
	pods["u2"] = std::make_shared<kube::Pod>(pod("slurm-7-4ef-n1"));
	CHECK(job_devices(pods, manager(), "jobs", "n1") == DevicesByJob{{7, zeroes("RDMA=mlx5_1|")}});
}

TEST_CASE("job devices: no file is longer than a step reads")
{
	DeviceManager many;
	for (int i = 0; i < 60; i++)
		many.answers["u1"][hca].variables["V" + std::to_string(i)] = std::string(4096, 'x');
	const auto all = job_devices(one(pod("slurm-7-3ef-n1")), many, "jobs", "n1");
	CHECK(all.at(7).size() > 60'000);
	CHECK(all.at(7).size() <= SK8_LONGEST_DEVICES);
	CHECK(all.at(7).back() == '\0');
}

TEST_CASE("job devices: a job's file is there for root alone, and goes with the job; those of a former agent are gone")
{
	TempFolder folder;
	const std::string at = folder.path + "/n1.devices";
	{
		JobDevices former(at);
		former.set({{6, "A=b"}});
	}
	JobDevices devices(at);
	CHECK_FALSE(read_file(at + "/6", 100));
	devices.set({{7, "A=b"}, {8, ""}});
	CHECK(*read_file(at + "/7", 100) == "A=b");
	CHECK(read_file(at + "/8", 100)->empty());
	struct stat status;
	REQUIRE(stat((at + "/7").c_str(), &status) == 0);
	CHECK((status.st_mode & 0777) == 0600);
	REQUIRE(stat(at.c_str(), &status) == 0);
	CHECK((status.st_mode & 0777) == 0700);
	devices.set({{7, "A=c"}});
	CHECK(*read_file(at + "/7", 100) == "A=c");
	CHECK_FALSE(read_file(at + "/8", 100));
}
