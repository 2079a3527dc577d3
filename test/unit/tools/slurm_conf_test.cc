// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/slurm_conf.h"

#include "test/unit/catch.h"
#include "test/unit/kube/temp_folder.h"

using namespace sk8;
using namespace sk8::tools;

TEST_CASE("slurm.conf: keys of any case, comments, continued lines, includes")
{
	TempFolder folder;
	folder.write("more-prod.conf", "pluginDIR=/a:/b # ours first\n");
	const std::string path = folder.write("slurm.conf", "# a comment\n"
							    "ClusterName=prod\n"
							    "SLURMUSER = slurm\n"
							    "StateSaveLocation=\"/var/spool/slurm ctld\" MaxJobCount=5\r\n"
							    "SchedulerParameters=a,\\\n"
							    "b\n"
							    "Include more-%c.conf\n"
							    "Prolog=/bin/x\\#y\n");
	auto conf = SlurmConf::read(path);
	REQUIRE(conf);
	CHECK(conf->get("clustername", "") == "prod");
	CHECK(conf->slurm_user() == "slurm");
	CHECK(conf->state_dir() == "/var/spool/slurm ctld");
	CHECK(conf->get("MaxJobCount", "") == "5");
	CHECK(conf->get("PluginDir", "") == "/a:/b");
	CHECK(conf->find("plugindir")->place() == folder.path + "/more-prod.conf:1");
	CHECK(conf->get("Prolog", "") == "/bin/x#y");
	CHECK(conf->find("SelectType") == nullptr);
	CHECK(conf->find("MaxJobCount")->line == 4);
}

TEST_CASE("slurm.conf: nodes and partitions take what DEFAULT lines before them say")
{
	TempFolder folder;
	auto conf = SlurmConf::read(folder.write("slurm.conf", "NodeName=DEFAULT CPUs=8 RealMemory=100\n"
								"NodeName=n[1-2] RealMemory=200\n"
								"NodeName=default CPUs=4\n"
								"NodeName=n3\n"
								"PartitionName=DEFAULT Nodes=ALL\n"
								"PartitionName=batch Default=YES\n"));
	REQUIRE(conf);
	REQUIRE(conf->nodes().size() == 2);
	CHECK(conf->nodes()[0].at("nodename").value == "n[1-2]");
	CHECK(conf->nodes()[0].at("cpus").value == "8");
	CHECK(conf->nodes()[0].at("realmemory").value == "200");
	CHECK(conf->nodes()[1].at("cpus").value == "4");
	CHECK(conf->nodes()[1].at("realmemory").value == "100");
	REQUIRE(conf->partitions().size() == 1);
	CHECK(conf->partitions()[0].at("nodes").value == "ALL");
}

TEST_CASE("slurm.conf: what cannot be read is told with its place")
{
	TempFolder folder;
	CHECK_FALSE(SlurmConf::read(folder.path + "/none").ok());
	auto bad = SlurmConf::read(folder.write("bad", "ClusterName=x\nnonsense here\n"));
	REQUIRE_FALSE(bad.ok());
	CHECK(bad.error().message == folder.path + "/bad:2: \"nonsense here\" is no Key=Value");
	auto circle = SlurmConf::read(folder.write("circle", "Include circle\n"));
	REQUIRE_FALSE(circle.ok());
	CHECK(circle.error().message.find("more than 100 files") != std::string::npos);
	auto gone = SlurmConf::read(folder.write("gone", "Include no-such\n"));
	REQUIRE_FALSE(gone.ok());
	CHECK(gone.error().message.find("gone:1: Include: cannot open") != std::string::npos);
}
