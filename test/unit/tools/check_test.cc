// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// slurm-k8s check, as far as it needs no Kubernetes: slurm.conf, files, mapping.
#include "tools/check.h"
#include "lib/base/file.h"
#include "lib/core/identity.h"
#include "tools/as_user.h"

#include <algorithm>
#include <filesystem>
#include <unistd.h>

#include "lib/sk8_abi.h"
#include "test/unit/catch.h"
#include "test/unit/kube/temp_folder.h"

using namespace sk8;
using namespace sk8::tools;
using core::NamespaceSettings;

namespace {

// A controller as it should be; each test spoils one thing.
struct Host {
	TempFolder folder;
	std::string ours = folder.path + "/ours", stock = folder.path + "/stock", state = folder.path + "/state";
	std::map<std::string, std::string> conf;
	std::string more = "PartitionName=batch Nodes=ALL Default=YES\n"
			   "NodeName=DEFAULT Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=1000\n"
			   "NodeName=n[1-2]\n";
	std::map<std::string, std::string> answers = {
		{"slurmctld -V", "slurm-wlm 22.05.8\n"},
		{"scontrol show hostnames n[1-2]", "n1\nn2\n"},
		{"sacctmgr -nP show assoc where cluster=prod user=root format=account", "ml\nother\n"},
		{"sacctmgr -nP show qos format=name", "normal\nhigh\n"},
	};
	SlurmSide side;
	Findings found;

	Host()
	{
		for (const auto &dir : {ours, stock, state})
			std::filesystem::create_directory(dir);
		std::filesystem::permissions(state, std::filesystem::perms::owner_all);
		folder.write("ours/select_cons_tres.so", select_for("22.05.8"));
		folder.write("sk8_slurmctld.so", built_for("22.05.8"));
		folder.write("libsk8core.so.0", std::string("\177ELF\0") + SK8_STAMP + '\0' + "more");
		folder.write("ours/job_submit_k8s.so", built_for("22.05.8"));
		folder.write("stock/select_cons_tres.so", "x");
		conf = {{"ClusterName", "prod"},	       {"SlurmUser", "root"},
			{"SelectType", "select/cons_tres"}, {"PluginDir", ours + ":" + stock},
			{"JobSubmitPlugins", "lua,k8s"},    {"StateSaveLocation", state}};
	}

	// Our select plugin, for this Slurm.
	static std::string select_for(const std::string &slurm)
	{
		return std::string("\177ELF\0sk8_slurmctld.so\0", 22) + SK8_STAMP " " + slurm + '\0';
	}

	// Another file of ours.
	static std::string built_for(const std::string &slurm)
	{
		return std::string("\177ELF\0") + SK8_STAMP " " + slurm + '\0';
	}

	// What a file of ours has in it that is of another version of slurm-k8s.
	static std::string of_another_version() { return std::string(SK8_STAMP "0 22.05.8") + '\0'; }

	Runner runner() const
	{
		return [this](const std::vector<std::string> &argv) -> Result<std::string> {
			auto it = answers.find(join(argv));
			return it == answers.end() ? Result<std::string>(Error{argv[0] + ": no answer"}) : it->second;
		};
	}

	SlurmConf read() const
	{
		std::string text;
		for (const auto &[key, value] : conf)
			text += key + "=" + value + "\n";
		auto c = SlurmConf::read(folder.write("slurm.conf", text + more));
		REQUIRE(c);
		return *c;
	}

	std::string check_on_node()
	{
		found = {};
		check_compute_node(read(), runner(), found);
		return bad();
	}

	// The problems and warnings, one a line.
	std::string check()
	{
		found = {};
		side = {};
		check_slurm(read(), runner(), side, found);
		return bad();
	}

	std::string check_namespace(const NamespaceSettings &ns)
	{
		found = {};
		core::Settings settings;
		settings.clusters.emplace_back().name = "c";
		settings.clusters[0].namespaces.push_back(ns);
		check_mapping(settings, read(), runner(), found);
		return bad();
	}

	core::ReservationSettings of_jobs; // reservations of shared()

	std::string shared(core::Sharing sharing, std::vector<core::NodeGroupSettings> groups = {}, bool with_devices = false, bool held = true)
	{
		core::Settings settings;
		settings.clusters.emplace_back().name = "c";
		if (with_devices)
			settings.clusters[0].resources = {{"nvidia.com/gpu", "gpu", ""}};
		settings.clusters[0].reservations = of_jobs;
		settings.clusters[0].reservations.devices = held;
		settings.clusters[0].nodes.sharing = sharing;
		settings.clusters[0].nodes.groups = std::move(groups);
		found = {};
		check_sharing(settings, read(), found);
		return bad();
	}

	std::string allowed(const core::ReservationSettings &reservations)
	{
		core::Settings settings;
		settings.clusters.emplace_back().name = "c";
		settings.clusters[0].reservations = reservations;
		found = {};
		check_accounts(settings, read(), found);
		return bad();
	}

	std::string tokens(std::vector<std::string> partitions)
	{
		core::Settings settings;
		settings.tokens.partitions = std::move(partitions);
		found = {};
		check_tokens(settings, read(), found);
		return bad();
	}

	// gres_conf: its text; what slurm-k8s.yaml has of one class of GPUs
	std::string gres(const std::string &gres_conf, const std::string &index = "")
	{
		core::Settings settings;
		core::ResourceSettings gpus{.gres = "gpu", .device_class = "gpu.example.com", .index = index};
		settings.clusters.emplace_back().resources = {{"nvidia.com/gpu", "gpu", ""}, gpus};
		REQUIRE(write_file_atomic(folder.path + "/gres.conf", gres_conf, 0644));
		found = {};
		check_gres_conf(settings, read(), found);
		return bad();
	}

	std::string bad() const
	{
		std::string out;
		for (const Finding &f : found.all())
			if (f.level != Finding::Level::ok)
				out += f.about + ": " + f.text + "\n";
		return out;
	}

	static std::string join(const std::vector<std::string> &words)
	{
		std::string out;
		for (const auto &w : words)
			out += (out.empty() ? "" : " ") + w;
		return out;
	}
};

bool contains(const std::string &text, const std::string &part)
{
	return text.find(part) != text.npos;
}

NamespaceSettings mapped(const std::string &user, const std::string &account = "", const std::string &partition = "",
			 const std::string &qos = "")
{
	NamespaceSettings ns;
	ns.match = "a-*";
	ns.user = user;
	ns.account = account;
	ns.partition = partition;
	ns.qos = qos;
	return ns;
}

} // namespace

TEST_CASE("check: GPUs that Slurm finds itself are counted otherwise than by their driver, perhaps")
{
	Host h;
	for (const char *by_pci : {"AutoDetect=nvml", "Name=gpu Type=a100\nautodetect=NVML # all", "NodeName=n[1-2] AutoDetect=rsmi Name=gpu"})
		CHECK(contains(h.gres(by_pci), "has Slurm count GPUs by PCI address, and the driver of deviceClass gpu.example.com may count them by minor number"));
	CHECK(contains(h.gres("\nNodeName=n1 AutoDetect=off\nNodeName=n2 AutoDetect=nvml"), "gres.conf:3)"));
	for (const char *by_file : {"", "AutoDetect=off\n", "NodeName=n1 Name=gpu File=/dev/nvidia[0-3]\n", "# AutoDetect=nvml"})
		CHECK(h.gres(by_file).empty());
	CHECK(h.gres("AutoDetect=nvml", "index").empty());
	CHECK(contains(h.gres("what is this"), "whether Slurm counts GPUs as their driver does is not known"));
}

TEST_CASE("check: on a node a device of gres.conf without a file is named, for slurmd does not start there")
{
	Host h;
	const auto check = [&](const std::string &gres_conf, const std::string &host) {
		REQUIRE(write_file_atomic(h.folder.path + "/gres-k8s.conf", gres_conf, 0644));
		REQUIRE(write_file_atomic(h.folder.path + "/gres.conf", "Include gres-k8s.conf\n", 0644));
		h.found = {};
		check_gres_files(h.read(), host, h.found);
		return h.bad();
	};
	const std::string gpu = h.folder.path + "/gpu";
	for (const char *number : {"0", "1", "2"})
		h.folder.write(std::string("gpu") + number, "");
	const std::string lines = "NodeName=n1 Name=gpu Type=a100 Count=4 File=" + gpu + "[0-3]\nNodeName=n2 Name=gpu File=" + gpu + "[1-2]," + gpu + "0\n";
	const std::string told = check(lines, "n1");
	CHECK(contains(told, "gres.conf: " + gpu + "3 (File=, " + h.folder.path + "/gres-k8s.conf:1) is not there: a slurmd that starts"));
	CHECK(check(lines, "n2").empty());
	CHECK(check(lines, "login").empty());
	CHECK(contains(check("Name=gpu File=" + gpu + "[7-9]", "login"), gpu + "7 and 2 more (File=, "));
	CHECK(contains(check("what is this", "n1"), "; slurmd does not start with such a file"));
	h.more += "NodeName=n[5-6] NodeHostname=big Port=[7001-7002]\n";
	CHECK(contains(check("NodeName=n6 Name=gpu File=" + gpu + "4", "big"), gpu + "4 ("));
	CHECK(check("NodeName=n7 Name=gpu File=" + gpu + "4\nNodeName=n6 Name=page Count=4 Flags=CountOnly", "big").empty());
	std::filesystem::remove(h.folder.path + "/gres.conf");
	check_gres_files(h.read(), "n1", h.found);
	CHECK(h.bad().empty());
}

TEST_CASE("check: what each kind of sharing means, and that mixed needs the prep plugin")
{
	Host h;
	CHECK(contains(h.shared(core::Sharing::none), "nothing keeps kube-scheduler from placing pods"));
	CHECK(h.shared(core::Sharing::dedicated).empty());
	CHECK(contains(h.shared(core::Sharing::mixed), "add PrEpPlugins=prep/script,prep/k8s to slurm.conf"));
	const std::string one_group = h.shared(core::Sharing::dedicated, {{"pool=cpu", core::Sharing::dedicated}, {"pool=gpu", core::Sharing::mixed}});
	CHECK(contains(one_group, "nodes.groups[1].sharing is mixed, but no job waits"));
	CHECK_FALSE(contains(one_group, "nodes.sharing is"));
	CHECK(contains(h.shared(core::Sharing::dedicated, {{"pool=cpu", core::Sharing::none}}),
		       "Slurm's jobs on nodes with pool=cpu; sharing: dedicated"));
	h.conf["PrEpPlugins"] = "prep/script,k8s";
	CHECK(h.shared(core::Sharing::mixed).empty());
}

TEST_CASE("check: whether jobs have containers on dedicated nodes is told, and no harm")
{
	Host h;
	CHECK(h.shared(core::Sharing::dedicated).empty());
	CHECK(contains(h.found.text(), "have no containers there (--k8s-image), which PrEpPlugins=prep/script,prep/k8s in slurm.conf makes"));
	h.conf["PrEpPlugins"] = "prep/script,k8s";
	CHECK(h.shared(core::Sharing::dedicated).empty());
	CHECK(contains(h.found.text(), "hold pods there for their containers"));
}

TEST_CASE("check: where nodes are mixed no job is to be suspended")
{
	Host h;
	h.conf["PrEpPlugins"] = "prep/script,k8s";
	for (const char *fine : {"CANCEL", "REQUEUE", "OFF"}) {
		h.conf["PreemptMode"] = fine;
		CHECK(h.shared(core::Sharing::mixed).empty());
	}
	h.conf["PreemptMode"] = "suspend,gang";
	CHECK(contains(h.shared(core::Sharing::mixed), "PreemptMode=suspend,gang suspends jobs, and on mixed nodes the pod of a suspended job"));
	CHECK(contains(h.shared(core::Sharing::dedicated, {{"pool=gpu", core::Sharing::mixed}}), "PreemptMode=suspend,gang suspends jobs"));
	CHECK(h.shared(core::Sharing::dedicated).empty());
	h.conf["PreemptMode"] = "CANCEL";
	h.more += "PartitionName=low Nodes=ALL PreemptMode=SUSPEND\n";
	CHECK(contains(h.shared(core::Sharing::mixed), "PreemptMode=SUSPEND of partition low suspends jobs"));
}

TEST_CASE("check: where nodes are mixed no job is to absorb another one")
{
	Host h;
	h.conf["PrEpPlugins"] = "prep/script,k8s";
	h.conf["SchedulerParameters"] = "bf_continue";
	CHECK(h.shared(core::Sharing::mixed).empty());
	h.conf["SchedulerParameters"] = "bf_continue,Permit_Job_Expansion";
	CHECK(contains(h.shared(core::Sharing::mixed), "permit_job_expansion lets a job absorb another one"));
	CHECK(contains(h.shared(core::Sharing::dedicated, {{"pool=gpu", core::Sharing::mixed}}), "its pods do not grow"));
	CHECK(h.shared(core::Sharing::dedicated).empty());
}

TEST_CASE("check: whether kube-scheduler may take the room of jobs on mixed nodes is told, and no harm")
{
	Host h;
	h.conf["PrEpPlugins"] = "prep/script,k8s";
	CHECK(h.shared(core::Sharing::mixed).empty());
	CHECK(contains(h.found.text(), "and the job goes on beside that pod: reservations.priorityClass keeps it from that"));
	h.of_jobs.eviction = core::ReservationSettings::OnEviction::requeue;
	CHECK(h.shared(core::Sharing::mixed).empty());
	CHECK(contains(h.found.text(), "and the job ends: reservations.priorityClass"));
	h.of_jobs.priority_class = "jobs";
	CHECK(h.shared(core::Sharing::mixed).empty());
	CHECK(contains(h.found.text(), "whose priority is not above that of PriorityClass jobs"));
	CHECK(h.shared(core::Sharing::dedicated).empty());
	CHECK_FALSE(contains(h.found.text(), "kube-scheduler takes"));
}

TEST_CASE("check: devices of Slurm's own jobs need the prep plugin, too, but where all nodes are mixed")
{
	Host h;
	CHECK(contains(h.shared(core::Sharing::dedicated, {}, true), "none of Slurm's own jobs waits until the kubelets keep theirs"));
	CHECK(contains(h.shared(core::Sharing::mixed, {{"pool=cpu", core::Sharing::none}}, true), "none of Slurm's own jobs waits"));
	CHECK_FALSE(contains(h.shared(core::Sharing::mixed, {}, true), "none of Slurm's own jobs waits"));
	CHECK(contains(h.shared(core::Sharing::dedicated, {}, true, false), "a kubelet may give a pod a device that a job of Slurm's own has"));
	h.conf["PrEpPlugins"] = "prep/script,k8s";
	CHECK(h.shared(core::Sharing::dedicated, {}, true).empty());
}

TEST_CASE("check: what changes jobs after our plugin is not seen by it")
{
	Host h;
	for (const char *good : {"k8s", "lua,k8s", "lua,job_submit/k8s"}) {
		h.conf["JobSubmitPlugins"] = good;
		CHECK(h.check().empty());
	}
	h.conf["JobSubmitPlugins"] = "k8s,lua,partition";
	CHECK(contains(h.check(), "JobSubmitPlugins: lua comes after k8s: what it changes of a job is not checked, and tokens (k8scpu, k8smemory) do "
				  "not follow it; put k8s at the end of the list"));
	h.conf["JobSubmitPlugins"] = "lua";
	CHECK(contains(h.check(), "k8s is missing"));
}

TEST_CASE("check: no pod holds what a job of Slurm's own has of a deviceClass")
{
	Host h;
	h.conf["PrEpPlugins"] = "prep/script,prep/k8s";
	core::Settings settings;
	core::ClusterSettings &c = settings.clusters.emplace_back();
	c.name = "c";
	c.resources.emplace_back().gres = "gpu";
	c.resources[0].device_class = "gpu.example.com";
	auto said = [&](core::Sharing sharing, std::vector<core::NodeGroupSettings> groups = {}) {
		c.nodes.sharing = sharing;
		c.nodes.groups = std::move(groups);
		h.found = {};
		check_sharing(settings, h.read(), h.found);
		return h.bad();
	};
	const std::string warning = "kube-scheduler may give any pod's claim a device of deviceClass gpu.example.com that a job of Slurm's own has";
	CHECK(contains(said(core::Sharing::none), warning));
	CHECK(contains(said(core::Sharing::dedicated, {{"pool=cpu", core::Sharing::none}}), warning));
	CHECK(said(core::Sharing::dedicated).empty());
	CHECK(contains(h.found.text(), "let no pod with claims tolerate it"));
	CHECK_FALSE(contains(h.found.text(), "are held by pods")); // which Kubernetes knows by number alone
	h.conf.erase("PrEpPlugins"); // nobody waits for such pods
	CHECK(said(core::Sharing::dedicated).empty());
	c.resources.emplace_back().kubernetes = "example.com/fpga";
	c.resources[1].gres = "fpga";
	CHECK(contains(said(core::Sharing::dedicated), "none of Slurm's own jobs waits until the kubelets keep theirs"));
}

TEST_CASE("check: partitions whose jobs get tokens need them in slurm.conf")
{
	Host h;
	CHECK(h.tokens({}).empty());
	CHECK(h.found.all().empty());
	CHECK(contains(h.tokens({"batch"}), "GresTypes in slurm.conf has no k8scpu"));
	h.conf["GresTypes"] = "gpu,k8scpu,k8smemory";
	CHECK(contains(h.tokens({"batch"}), "no node in slurm.conf has Gres=k8smemory"));
	h.more += "NodeName=n8 CPUs=8 Gres=gpu:1,k8scpu:8,k8smemory:16000\nPartitionName=tokens-a Nodes=n8\n";
	CHECK(h.tokens({"tokens-*"}).empty());
	CHECK(contains(h.tokens({"tokens-*", "nosuch"}), "no partition in slurm.conf is named nosuch"));
	h.more += "NodeName=n[9-10] CPUs=8\nPartitionName=tokens-b Nodes=n[7-9]\nPartitionName=tokens-all Nodes=ALL\n";
	CHECK(contains(h.tokens({"tokens-b"}), "nodes n[9-10] of partition tokens-b have no Gres=k8scpu"));
	CHECK(contains(h.tokens({"tokens-all"}), "of partition tokens-all have no Gres=k8scpu"));
	CHECK(h.tokens({"tokens-a"}).empty());
}

TEST_CASE("check: partitions whose jobs get tokens have shared nodes only")
{
	Host h;
	core::Settings settings;
	settings.tokens.partitions = {"tokens-*"};
	h.more += "NodeName=n[8-10] CPUs=8\nPartitionName=tokens-a Nodes=n[8-9]\nPartitionName=tokens-b Nodes=n[8-10]\nPartitionName=other Nodes=ALL\n";
	auto said = [&](const std::set<std::string> &shared) {
		h.found = {};
		check_token_nodes(settings, h.read(), shared, h.found);
		return h.bad();
	};
	CHECK(said({"n8", "n9", "n10"}).empty());
	CHECK(said({"n8", "n9"}) == "tokens.partitions: n10 of partition tokens-b is not shared with Kubernetes, so that tokens keep its jobs from nothing "
				    "there; name only partitions all of whose nodes are shared\n");
	CHECK(contains(said({}), "n8, n9 of partition tokens-a are not shared"));
	settings.tokens.partitions = {};
	CHECK(said({}).empty());
}

TEST_CASE("check: a controller as it should be has no finding but ok")
{
	Host h;
	CHECK(h.check().empty());
	CHECK_FALSE(h.found.any_problem());
	CHECK(h.side.nodes_known);
	CHECK(h.side.nodes.at("n2").cores == 8);
	CHECK(h.side.nodes.at("n2").threads_per_core == 2);
	CHECK(h.side.nodes.at("n2").memory_mb == 1000);
	h.answers["scontrol -o show nodes"] = "NodeName=n1 Arch=x86_64 CoresPerSocket=4 CPUAlloc=0 CPUEfctv=12 CPUTot=16 "
					      "RealMemory=500 Sockets=2 Boards=1 CoreSpecCount=2 CPUSpecList=12-15 MemSpecLimit=100 "
					      "ThreadsPerCore=2 Reason=RealMemory=1\n"
					      "NodeName=dyn1 CPUTot=4 RealMemory=200\n";
	CHECK(h.check().empty());
	CHECK(h.side.nodes.at("dyn1").cores == 4);
	const CheckedNode &n1 = h.side.nodes.at("n1");
	CHECK(n1.memory_mb == 500);
	CHECK(n1.spec_mb == 100);
	CHECK(n1.cores == 8);
	CHECK(n1.spec_cores == 2);
	CHECK(contains(h.found.text(), "0 warnings, 0 problems\n"));
	CHECK(h.found.json()["ok"].boolean_or(false));
}

TEST_CASE("check: PluginDir must have ours before Slurm's own, and both")
{
	Host h;
	h.conf["PluginDir"] = h.stock + ":" + h.ours;
	CHECK(contains(h.check(), h.ours + " must stand before " + h.stock));
	h.conf["PluginDir"] = h.stock;
	CHECK(contains(h.check(), "no folder of it has slurm-k8s's select_cons_tres.so"));
	h.conf["PluginDir"] = h.ours;
	CHECK(contains(h.check(), "no folder of it has Slurm's own select_cons_tres.so"));
	h.conf["PluginDir"] = h.ours + ":" + h.stock + ":/no/such/folder";
	CHECK(contains(h.check(), "there is no folder /no/such/folder"));
	h.conf.erase("PluginDir");
	CHECK(contains(h.check(), "slurm.conf has no PluginDir"));
	CHECK(h.found.any_problem());
}

TEST_CASE("check: another host needs all folders of PluginDir, Slurm's own plugins, and ours only of its version")
{
	Host h;
	h.answers["scontrol -V"] = h.answers["slurmctld -V"];
	CHECK(h.check_on_node().empty()); // slurm-k8s is installed there, too
	CHECK(contains(h.found.text(), h.ours + " before " + h.stock));
	h.answers["scontrol -V"] = "slurm-wlm 0.1\n";
	CHECK(contains(h.check_on_node(), "scontrol is version 0.1, the plugins in " + h.ours + " were built for 22.05.8; "));
	std::filesystem::remove(h.ours + "/select_cons_tres.so"); // the folder may stay empty, then any version will do
	CHECK(h.check_on_node().empty());
	CHECK(contains(h.found.text(), "Slurm's own plugins are in " + h.stock));
	std::filesystem::remove_all(h.ours);
	CHECK(contains(h.check_on_node(), "there is no folder " + h.ours + ", and Slurm refuses such a slurm.conf on this host; "
					  "run: mkdir -p " + h.ours));
	CHECK(h.found.any_problem());
	h.conf["PluginDir"] = h.state;
	CHECK(contains(h.check_on_node(), "no folder of it has Slurm's own select_cons_tres.so; add that folder at the end"));
	h.conf.erase("PluginDir");
	CHECK(contains(h.check_on_node(), "slurm.conf has no PluginDir"));
}

TEST_CASE("check: on another host ours must stand first as well")
{
	Host h;
	h.conf["PluginDir"] = h.stock + ":" + h.ours;
	CHECK(contains(h.check_on_node(), h.ours + " must stand before " + h.stock));
}

TEST_CASE("check: memory must be counted, in each partition")
{
	Host h;
	for (const char *good : {"CR_Core_Memory", "CR_CPU_Memory,CR_ONE_TASK_PER_CORE", "CR_Socket_Memory"}) {
		h.conf["SelectTypeParameters"] = good;
		CHECK(h.check().empty());
	}
	h.conf["SelectTypeParameters"] = "CR_Core";
	CHECK(contains(h.check(), "CR_Core counts no memory, so that jobs and pods are given the same; add memory, for example CR_Core_Memory"));
	h.conf.erase("SelectTypeParameters");
	CHECK(h.check().empty());
	h.more += "PartitionName=small Nodes=ALL SelectTypeParameters=CR_CPU\n";
	CHECK(contains(h.check(), "CR_CPU of a partition counts no memory"));
}

TEST_CASE("check: cores must be counted, without which slurmctld does not start")
{
	Host h;
	for (const char *none : {"CR_Memory", "CR_Memory,CR_CORE_DEFAULT_DIST_BLOCK"}) {
		h.conf["SelectTypeParameters"] = none;
		CHECK(contains(h.check(), std::string(none) + " counts no cores, with which slurmctld does not start"));
		CHECK(h.found.any_problem());
	}
	for (const char *some : {"CR_Core", "cr_cpu_memory", "CR_LLN,CR_Socket"}) {
		h.conf["SelectTypeParameters"] = some;
		CHECK_FALSE(contains(h.check(), "counts no cores"));
	}
}

TEST_CASE("check: a partition that gives its cores to several jobs gives those of pods, too")
{
	const struct {
		const char *key, *value;
		int jobs; // 1: nothing is said
	} rows[] = {
		{"OverSubscribe", "FORCE:2", 2},   {"OverSubscribe", "force:3", 3}, {"OverSubscribe", "FORCE", 4}, {"Shared", "FORCE:5", 5},
		{"OverSubscribe", "FORCE:1", 1},   {"OverSubscribe", "NO", 1},      {"OverSubscribe", "YES", 1},   {"OverSubscribe", "YES:8", 1},
		{"OverSubscribe", "EXCLUSIVE", 1}, {"OverSubscribe", "FORCE:x", 1}, {"OverSubscribe", "FORCE:", 1}, {"OverSubscribe", "FORCE:0", 1},
		{"Default", "YES", 1},
	};
	for (const auto &row : rows) {
		CAPTURE(row.key, row.value);
		Host h;
		h.more += std::string("PartitionName=others Nodes=ALL ") + row.key + "=" + row.value + "\n";
		const std::string said = h.check();
		CHECK(said.empty() == (row.jobs == 1));
		CHECK((row.jobs == 1 || contains(said, std::string(row.value) + " of partition others gives the cores of a pod to up to " +
						       std::to_string(row.jobs) + " jobs at the same time; set OverSubscribe=NO if")));
		CHECK_FALSE(h.found.any_problem());
	}
	Host h;
	h.more += "PartitionName=DEFAULT OverSubscribe=FORCE\nPartitionName=a Nodes=ALL\nPartitionName=b Nodes=ALL OverSubscribe=NO\n";
	CHECK(contains(h.check(), "of partition a gives"));
	CHECK_FALSE(contains(h.check(), "of partition b gives"));
}

TEST_CASE("check: what root reads for SlurmUser that one must be able to read himself")
{
	const TempFolder folder;
	folder.write("conf", "x");
	std::filesystem::permissions(folder.path, std::filesystem::perms::others_exec | std::filesystem::perms::owner_all);
	std::filesystem::permissions(folder.path + "/conf", std::filesystem::perms::owner_read);
	const auto readable = [&] { return read_file(folder.path + "/conf", 10).ok(); };
	const uid_t me = ::geteuid(), nobody = 65534;
	CHECK(readable());
	{
		const AsUser user(nobody);
		CHECK(user.why_not().empty());
		CHECK(::geteuid() == (me == 0 ? nobody : me)); // another than root stays as he is
		CHECK(readable() == (me != 0));
	}
	CHECK(::geteuid() == me);
	CHECK(readable());
	{
		const AsUser user(4'000'000'000);
		CHECK(user.why_not().empty() == (me != 0));
		CHECK(::geteuid() == me);
	}
	CHECK(readable());
}

TEST_CASE("check: select plugin, job_submit plugin and Slurm's version")
{
	Host h;
	h.conf["SelectType"] = "select/linear";
	CHECK(contains(h.check(), "SelectType is select/linear; set SelectType=select/cons_tres"));
	h.conf.erase("SelectType");
	CHECK(contains(h.check(), "has no SelectType"));
	h.conf["SelectType"] = "select/cons_tres";
	h.conf["JobSubmitPlugins"] = "lua";
	CHECK(contains(h.check(), "JobSubmitPlugins: k8s is missing"));
	h.conf["JobSubmitPlugins"] = "k8s";
	h.answers["slurmctld -V"] = "slurm 22.05.9\n";
	CHECK(contains(h.check(), "slurmctld is version 22.05.9, the plugins in " + h.ours + " were built for 22.05.8; "));
	h.folder.write("ours/select_cons_tres.so", Host::select_for("22.05.9"));
	const std::string not_for_it = " was built for Slurm 22.05.8, " + h.ours +
				       "/select_cons_tres.so for 22.05.9; install slurm-k8s again, all of it for one Slurm\n";
	CHECK(h.check() == "PluginDir: " + h.ours + "/../sk8_slurmctld.so" + not_for_it + "PluginDir: " + h.ours +
				   "/job_submit_k8s.so" + not_for_it);
	h.folder.write("sk8_slurmctld.so", Host::built_for("22.05.9"));
	CHECK(h.check() == "PluginDir: " + h.ours + "/job_submit_k8s.so" + not_for_it);
	h.folder.write("ours/job_submit_k8s.so", Host::built_for("22.05.9"));
	CHECK(h.check().empty());
	h.folder.write("ours/prep_k8s.so", Host::built_for("22.05.8"));
	CHECK(h.check() == "PluginDir: " + h.ours + "/prep_k8s.so" + not_for_it);
	h.folder.write("ours/prep_k8s.so", Host::built_for("22.05.9"));
	CHECK(h.check().empty());
	h.folder.write("ours/select_cons_tres.so", std::string("sk8_slurmctld.so\0", 17)); // of before there were stamps
	CHECK(contains(h.check(), "were built for another; "));
	h.folder.write("ours/select_cons_tres.so", Host::select_for("22.05.9"));
	h.answers.erase("slurmctld -V");
	CHECK(contains(h.check(), "which version runs here is not known: slurmctld: no answer"));
	CHECK_FALSE(h.found.any_problem());
}

TEST_CASE("check: what slurmctld loads must be of one version of slurm-k8s")
{
	Host h;
	h.folder.write("libsk8core.so.0", Host::of_another_version());
	CHECK(contains(h.check(), "libsk8core.so.0 are of two versions of slurm-k8s, and slurmctld would load neither; install it again"));
	const std::string found = h.bad();
	CHECK(std::count(found.begin(), found.end(), '\n') == 1); // not once for each plugin
	h.folder.write("libsk8core.so.0", "cut off: " SK8_STAMP_BEGIN); // at the very end
	CHECK(contains(h.check(), "are of two versions"));
	std::filesystem::remove(h.folder.path + "/libsk8core.so.0");
	CHECK(contains(h.check(), "there is no " + h.ours + "/libsk8core.so.0; install slurm-k8s again"));
	h.folder.write("ours/libsk8core.so.0", SK8_STAMP); // all in one folder will do
	CHECK(h.check().empty());
	h.folder.write("ours/libsk8core.so.0", SK8_STAMP + std::string(70u << 20, '\0')); // with its debugging information
	CHECK(h.check().empty());
}

TEST_CASE("check: each plugin that slurmctld loads must be of libsk8core's version")
{
	Host h;
	h.folder.write("ours/prep_k8s.so", Host::built_for("22.05.8"));
	CHECK(h.check().empty());
	for (const std::string name : {"select_cons_tres", "job_submit_k8s", "prep_k8s"}) {
		const std::string path = "ours/" + name + ".so";
		const std::string good = name == "select_cons_tres" ? Host::select_for("22.05.8") : Host::built_for("22.05.8");
		h.folder.write(path, good.substr(0, good.find(SK8_STAMP_BEGIN)) + Host::of_another_version());
		CHECK(h.check() == "PluginDir: " + h.ours + "/" + name + ".so and " + h.ours +
					   "/../libsk8core.so.0 are of two versions of slurm-k8s; install it again, all of it in one version\n");
		h.folder.write(path, good.substr(0, good.find(SK8_STAMP_BEGIN))); // of before there were stamps
		CHECK(contains(h.check(), name + ".so and " + h.ours + "/../libsk8core.so.0 are of two versions"));
		h.folder.write(path, good);
	}
	CHECK(h.check().empty());
}

TEST_CASE("check: slurmd does not start with a prep plugin that is absent or for another Slurm")
{
	Host h;
	std::filesystem::remove(h.ours + "/select_cons_tres.so"); // slurm-k8s-node alone
	h.answers["scontrol -V"] = h.answers["slurmd -V"] = "slurm-wlm 22.05.8\n";
	h.conf["PrEpPlugins"] = "prep/script,prep/k8s";
	CHECK(contains(h.check_on_node(), "no folder of PluginDir has prep_k8s.so, and slurmd does not start without it"));
	h.folder.write("ours/prep_k8s.so", Host::built_for("22.05.8"));
	CHECK(h.check_on_node().empty());
	h.folder.write("ours/prep_k8s.so", Host::built_for("22.05.9"));
	CHECK(h.check_on_node() == "Slurm: slurmd is version 22.05.8, " + h.ours + "/prep_k8s.so was built for 22.05.9; slurmd would "
				   "refuse it and not start: install slurm-k8s for 22.05.8\n");
	h.answers.erase("slurmd -V"); // a login node: nobody loads it there
	CHECK(h.check_on_node().empty());
	h.answers["slurmd -V"] = "slurm-wlm 22.05.8\n";
	h.conf.erase("PrEpPlugins");
	CHECK(h.check_on_node().empty());
}

TEST_CASE("check: on a node the SPANK plugin must be for this release, and the agent that it opens of one version and for this slurmd")
{
	Host h;
	std::filesystem::remove(h.ours + "/select_cons_tres.so");
	h.answers["scontrol -V"] = h.answers["slurmd -V"] = "slurm-wlm 22.05.8\n";
	h.folder.write("ours/spank_k8s.so", Host::built_for("22.05.8"));
	CHECK(contains(h.check_on_node(), "SPANK: there is no " + h.ours + "/sk8_slurmd.so, so that no agent would run on this node"));
	h.folder.write("sk8_slurmd.so", Host::built_for("22.05.8"));
	CHECK(h.check_on_node().empty());

	h.folder.write("sk8_slurmd.so", Host::built_for("22.05.9"));
	CHECK(h.check_on_node() == "Slurm: slurmd is version 22.05.8, " + h.ours + "/../sk8_slurmd.so was built for 22.05.9; its agent "
				   "may not run: install slurm-k8s for 22.05.8\n");
	h.folder.write("ours/spank_k8s.so", Host::built_for("22.05.1")); // that will do
	h.folder.write("sk8_slurmd.so", Host::of_another_version());
	CHECK(contains(h.check_on_node(), "sk8_slurmd.so and " + h.ours + "/../libsk8core.so.0 are of two versions of slurm-k8s, and slurmd "
					  "would load neither; "));
	h.folder.write("libsk8core.so.0", Host::of_another_version());
	CHECK(contains(h.check_on_node(), "spank_k8s.so and " + h.ours + "/../sk8_slurmd.so are of two versions of slurm-k8s; "));
	std::filesystem::remove(h.folder.path + "/libsk8core.so.0");
	CHECK(contains(h.check_on_node(), "there is no " + h.ours + "/libsk8core.so.0, so that no agent would run"));

	h.answers.erase("slurmd -V"); // a login node needs no agent
	CHECK(h.check_on_node().empty());
	h.folder.write("ours/spank_k8s.so", Host::built_for("23.11.8"));
	CHECK(h.check_on_node() == "Slurm: scontrol is version 22.05.8, " + h.ours + "/spank_k8s.so was built for 23.11.8; slurmd, srun and "
				   "sbatch would refuse it: install slurm-k8s for 22.05.8\n");
}

namespace {

// A node with an agent, as it should be; each test spoils one thing.
struct AgentHost : Host {
	std::string kubelet = folder.path + "/kubelet", cgroups = folder.path + "/cgroup";
	std::string yaml;

	AgentHost()
	{
		for (const std::string &made : {kubelet + "/device-plugins", cgroups + "/kubepods"})
			std::filesystem::create_directories(made);
		folder.write("cgroup/cgroup.controllers", "cpuset\n");
		folder.write("kubelet/cpu_manager_state", "{}");
		folder.write("kubelet.conf", "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
					     "clusters: [{name: c, cluster: {server: 'https://api:6443'}}]\n"
					     "users: [{name: u, user: {tokenFile: token}}]\n");
		folder.write("token", "t");
		yaml = "kubeconfig: " + folder.path + "/kubelet.conf\nkubeletRootDir: " + kubelet + "\ndevicePluginDir: " + kubelet +
		       "/device-plugins\n";
		conf["SlurmdUser"] = core::user_name(::geteuid());
	}

	std::string check_node(const std::string &file = "")
	{
		found = {};
		check_agent(read(), file.empty() ? folder.write("node.yaml", yaml) : file, cgroups, found);
		return bad();
	}
};

} // namespace

TEST_CASE("check: on a node what the agent in slurmd reads must be there, and what is missing costs something")
{
	AgentHost h;
	const std::string as_kubelet = ", which is to be as the kubelet has it (" + h.folder.path + "/node.yaml)\n";
	if (::geteuid() == 0) // to whom the kubelet's files belong
		CHECK(h.check_node().empty());
	CHECK(h.check_node(h.folder.path + "/none.yaml").empty());
	CHECK(contains(h.found.text(), "there is no " + h.folder.path + "/none.yaml, so that slurmd has none on this host"));

	SECTION("settings that slurmd refuses")
	{
		h.yaml += "pining: true\n";
		CHECK(contains(h.check_node(), "/node.yaml:4: "));
		CHECK(contains(h.bad(), "; slurmd runs no agent with such a file"));
		CHECK(h.found.any_problem());
	}
	SECTION("no kubeconfig")
	{
		std::filesystem::remove(h.folder.path + "/kubelet.conf");
		CHECK(contains(h.check_node(), "agent: kubeconfig: cannot open " + h.folder.path + "/kubelet.conf"));
		CHECK(contains(h.bad(), "; without it the agent knows no pod: none is put on its cores, no step gets into a container, and what lost "
					"pods hold stays masked" + as_kubelet));
		CHECK(h.found.any_problem());
	}
	SECTION("no file that it names")
	{
		std::filesystem::remove(h.folder.path + "/token");
		CHECK(contains(h.check_node(), "agent: kubeconfig: "));
		CHECK(h.found.any_problem());
	}
	SECTION("another root of the kubelet's")
	{
		h.yaml += "cgroupRoot: /kube\n";
		CHECK(contains(h.check_node(), "agent: cgroupRoot: " + h.cgroups + "/kube: there are no folders of a kubelet; no pod is put on its cores"));
		CHECK(contains(h.bad(), as_kubelet));
	}
	SECTION("no folder of device plugins")
	{
		std::filesystem::remove(h.kubelet + "/device-plugins");
		CHECK(contains(h.check_node(), "agent: devicePluginDir: " + h.kubelet + "/device-plugins: No such file or directory (as user " +
						       h.conf["SlurmdUser"] + "); slurmctld is not told which pods have which "
						       "devices, and jobs may be given theirs" + as_kubelet));
	}
	SECTION("a kubelet that pins pods itself")
	{
		h.folder.write("kubelet/cpu_manager_state", R"({"policyName":"static","defaultCpuSet":"0-1"})");
		const std::string said = "agent: the kubelet's CPU manager has the policy static: it pins pods itself";
		CHECK(contains(h.check_node(), said) == (::geteuid() == 0)); // to whom that file is to belong
	}
	SECTION("a file in place of the kubelet's folder")
	{
		std::filesystem::remove_all(h.kubelet);
		h.folder.write("kubelet", "x");
		CHECK(contains(h.check_node(), "agent: kubeletRootDir: " + h.kubelet + " is no folder (as user "));
	}
}

TEST_CASE("check: on a node files are read as the user that slurmd runs as")
{
	AgentHost h;
	h.conf["SlurmdUser"] = "no-such-user-here";
	CHECK(contains(h.check_node(), "there is no user no-such-user-here on this host, as whom slurmd is to run"));
	h.conf["SlurmdUser"] = "nobody";
	std::filesystem::permissions(h.folder.path, std::filesystem::perms::owner_all | std::filesystem::perms::others_exec);
	h.folder.write("node.yaml", h.yaml, 0644);
	if (::geteuid() == 0) {
		CHECK(contains(h.check_node(h.folder.path + "/node.yaml"), "agent: kubeconfig: cannot open " + h.folder.path + "/kubelet.conf: Permission denied"));
		CHECK(contains(h.bad(), "kubeletRootDir: " + h.kubelet + "/cpu_manager_state: Permission denied (as user nobody); where"));
		CHECK(::geteuid() == 0);
	} else {
		CHECK(contains(h.check_node(h.folder.path + "/node.yaml"), "what slurmd can read is not known: run this as root or nobody"));
	}
}

TEST_CASE("check: StateSaveLocation and what is saved there must be usable")
{
	Host h;
	h.folder.write("state/slurm-k8s.prod.ledger", "{\"v\":1}\n");
	CHECK(h.check().empty());
	h.folder.write("state/slurm-k8s.prod.ledger", "nonsense\n");
	CHECK(contains(h.check(), "line 1 is damaged"));
	std::filesystem::permissions(h.state, std::filesystem::perms::all);
	CHECK(contains(h.check(), "can be written by everybody"));
	h.conf["StateSaveLocation"] = h.folder.path + "/none";
	CHECK(contains(h.check(), "cannot look at " + h.folder.path + "/none"));
	h.conf["SlurmUser"] = "no-such-user-here";
	CHECK(contains(h.check(), "there is no user no-such-user-here on this host"));
}

TEST_CASE("check: a StateSaveLocation that cannot be listed is told, not taken for one without ledgers")
{
	Host h;
	h.folder.write("state/slurm-k8s.prod.ledger", "nonsense\n");
	const auto may = [](const std::string &path, auto who) { std::filesystem::permissions(path, who); };
	using std::filesystem::perms;
	may(h.folder.path, perms::owner_all | perms::others_exec);
	may(h.state, perms::owner_write | perms::owner_exec);
	const SlurmConf conf = h.read();
	{
		const AsUser nobody(65534); // root may list everything
		check_slurm(conf, h.runner(), h.side, h.found);
	}
	may(h.state, perms::owner_all);
	CHECK(contains(h.bad(), "ledger: cannot list " + h.state + ": Permission denied; ledgers are not looked at"));
	CHECK(contains(h.check(), "line 1 is damaged"));
}

TEST_CASE("check: users and partitions of the mapping must exist")
{
	Host h;
	CHECK(h.check_namespace(mapped("root", "", "batch")).empty());
	CHECK(contains(h.check_namespace(mapped("no-such-user-here")), "match: a-*: there is no user no-such-user-here"));
	CHECK(contains(h.check_namespace(mapped("root", "", "gpu")), "slurm.conf has no partition gpu"));
	CHECK(h.check_namespace(mapped("root", "any")).empty()); // without accounting nobody knows accounts
	h.more = "PartitionName=batch Nodes=ALL\n";
	CHECK(contains(h.check_namespace(mapped("root")), "slurm.conf has none with Default=YES"));
	h.more = "PartitionName=batch Nodes=ALL Default=YES AllocNodes=login1,login2\n";
	CHECK(contains(h.check_namespace(mapped("root")), "AllocNodes of partition batch is without k8s, so it takes no pods"));
	for (const char *names : {"ALL", "login1,k8s"}) {
		h.more = std::string("PartitionName=batch Nodes=ALL Default=YES AllocNodes=") + names + "\n";
		CHECK(h.check_namespace(mapped("root")).empty());
	}
}

TEST_CASE("check: what Slurm does not enforce is nobody's mistake")
{
	Host h;
	h.conf["AccountingStorageType"] = "accounting_storage/slurmdbd";
	CHECK(h.check_namespace(mapped("root", "physics", "", "best")).empty());
	h.conf["AccountingStorageEnforce"] = "none";
	CHECK(h.check_namespace(mapped("root", "physics", "", "best")).empty());
}

TEST_CASE("check: what an account may have anybody has where Slurm lets anybody name any account")
{
	Host h;
	using R = core::ReservationSettings;
	const struct {
		const char *key;
		std::function<void(R &, std::vector<std::string>)> set;
	} lists[] = {
		{"templates.configMaps", [](R &r, auto names) { r.templates.config_maps = names; }},
		{"templates.secrets", [](R &r, auto names) { r.templates.secrets = names; }},
		{"templates.claims", [](R &r, auto names) { r.templates.claims = names; }},
		{"serviceAccounts", [](R &r, auto names) { r.service_accounts = names; }},
	};
	for (const auto &list : lists) {
		CAPTURE(list.key);
		R with, without;
		with.templates.allow = without.templates.allow = true;
		list.set(with, {"x", "{account}-ci"});
		list.set(without, {"*", "{user}"});
		h.conf.erase("AccountingStorageType");
		h.conf.erase("AccountingStorageEnforce");
		const std::string says = "accounts of c: reservations." + std::string(list.key) + " has {account}, but Slurm lets everybody name "
					 "any account for his jobs; set AccountingStorageEnforce=associations in slurm.conf, or name users by {user}\n";
		CHECK(h.allowed(with) == says);
		CHECK(h.allowed(without).empty());
		h.conf["AccountingStorageEnforce"] = "associations"; // of no use, Slurm says so in its log
		CHECK(h.allowed(with) == says);
		h.conf["AccountingStorageType"] = "accounting_storage/slurmdbd";
		for (const char *none : {"none", "nojobs,nosteps", "nosteps"}) {
			h.conf["AccountingStorageEnforce"] = none;
			CHECK(h.allowed(with) == says);
		}
		for (const char *some : {"associations", "limits", "nosteps,qos", "Safe", "wckeys", "all", "1", "2"}) {
			h.conf["AccountingStorageEnforce"] = some;
			CAPTURE(some);
			CHECK(h.allowed(with).empty());
		}
	}
	h.conf["AccountingStorageEnforce"] = "none";
	R off;
	off.templates.claims = {"{account}"}; // nobody may give a template
	CHECK(h.allowed(off).empty());
}

TEST_CASE("check: accounts and QOS of the mapping must exist in slurmdbd")
{
	Host h;
	h.conf["AccountingStorageType"] = "accounting_storage/slurmdbd";
	h.conf["AccountingStorageEnforce"] = GENERATE("associations", "limits,qos", "Safe");
	CHECK(h.check_namespace(mapped("root", "ml", "", "high")).empty());
	CHECK(contains(h.check_namespace(mapped("root", "physics")), "no association with account physics"));
	CHECK(contains(h.check_namespace(mapped("root", "ml", "", "best")), "slurmdbd has no QOS best"));
	h.answers["sacctmgr -nP show assoc where cluster=prod user=root format=account"] = "";
	CHECK(contains(h.check_namespace(mapped("root", "ml")), "sacctmgr add user root account=ml"));
	h.answers.clear();
	CHECK(contains(h.check_namespace(mapped("root", "ml")), "accounts and QOS are not looked at: sacctmgr: no answer"));
	CHECK_FALSE(h.found.any_problem());
}

TEST_CASE("check: whom a partition takes, by accounts, QOS and groups")
{
	const PodsJob job{.accounts = {{"ml", {"ml", "science"}}}, .qos = {{"high", {"high"}}}, .groups = {{"users", {"users"}}, {"gpu", {"gpu"}}}};
	const PodsJob any_account{.accounts = {{"ml", {"ml"}}, {"web", {"web"}}}};
	const struct {
		const PodsJob &job;
		ConfLine line;
		const char *why; // empty: it takes him
	} rows[] = {
		{job, {}, ""},
		{job, {{"allowaccounts", {"physics,ml", "f", 1}}}, ""},
		{job, {{"allowaccounts", {"All", "f", 1}}}, ""},
		{job, {{"allowaccounts", {"SCIENCE", "f", 1}}}, ""}, // from 24.11 on those below it, too
		{job, {{"allowaccounts", {"physics", "f", 1}}}, "AllowAccounts of partition p is without account ml, so that pods never start there; add one (f:1), or map another partition"},
		{any_account, {{"allowaccounts", {"web", "f", 1}}}, ""},
		{any_account, {{"allowaccounts", {"physics", "f", 1}}}, "AllowAccounts of partition p is without accounts ml, web, so that pods never start there; add one (f:1), or map another partition"},
		{job, {{"denyaccounts", {"physics, ml", "f", 2}}}, "DenyAccounts of partition p has account ml, so that pods never start there; take it off (f:2), or map another partition"},
		{job, {{"denyaccounts", {"science", "f", 2}}}, ""}, // not so with 22.05
		{any_account, {{"denyaccounts", {"ml", "f", 2}}}, ""},
		{job, {{"allowaccounts", {"ml", "f", 1}}, {"denyaccounts", {"ml", "f", 2}}}, ""}, // Slurm ignores the second
		{job, {{"allowqos", {"normal,high", "f", 3}}}, ""},
		{job, {{"allowqos", {"normal", "f", 3}}}, "AllowQos of partition p is without QOS high, so that pods never start there; add one (f:3), or map another partition"},
		{job, {{"denyqos", {"HIGH", "f", 4}}}, "DenyQos of partition p has QOS high, so that pods never start there; take it off (f:4), or map another partition"},
		{any_account, {{"allowqos", {"normal", "f", 3}}}, ""}, // his QOS is not known
		{job, {{"allowgroups", {"wheel,gpu", "f", 5}}}, ""},
		{job, {{"allowgroups", {"wheel", "f", 5}}}, "AllowGroups of partition p is without groups gpu, users, so that pods never start there; add one (f:5), or map another partition"},
		{any_account, {{"allowgroups", {"wheel", "f", 5}}}, ""}, // root's, or SlurmUser's
	};
	for (const auto &row : rows) {
		for (const auto &[key, value] : row.line)
			UNSCOPED_INFO(key << "=" << value.value);
		const auto why = kept_out_of("p", row.line, row.job);
		CHECK((why.empty() ? "" : why.front()) == std::string(row.why));
		CHECK(why.size() <= 1);
	}
}

TEST_CASE("check: pods whose account, QOS or group their partition never takes are told")
{
	Host h;
	const std::string user = "nobody", of = "sacctmgr -nP show assoc where cluster=prod ";
	const auto partition = [&](const std::string &words) { h.more = "PartitionName=batch Nodes=ALL Default=YES " + words + "\n"; };
	partition("AllowGroups=root");
	CHECK(contains(h.check_namespace(mapped(user)), "match: a-*: AllowGroups of partition batch is without group"));
	CHECK(h.check_namespace(mapped("root")).empty());
	CHECK_FALSE(h.found.any_problem());
	partition("AllowAccounts=physics AllowQos=high");
	CHECK(h.check_namespace(mapped(user, "ml", "", "normal")).empty()); // without slurmdbd the two releases do different things

	h.conf["AccountingStorageType"] = "accounting_storage/slurmdbd";
	h.conf["AccountingStorageEnforce"] = "associations";
	h.answers[of + "user=nobody format=account"] = "ml\n";
	h.answers[of + "user=nobody format=account,partition,qos,defaultqos"] = "ml|batch|normal|\nml|other|high|high\nweb||high|\n";
	h.answers[of + "account=ml format=user,parentname"] = "nobody|\n|science\n";
	h.answers[of + "account=science format=user,parentname"] = "|root\n";
	h.answers[of + "account=root format=user,parentname"] = "root|\n|\n";
	const std::string found = h.check_namespace(mapped(user, "", "batch"));
	CHECK(contains(found, "match: a-*: AllowAccounts of partition batch is without account ml, "));
	CHECK(contains(found, "match: a-*: AllowQos of partition batch is without QOS normal, "));
	partition("AllowAccounts=science");
	CHECK(h.check_namespace(mapped(user, "ml")).empty());
	partition("DenyQos=normal");
	CHECK(contains(h.check_namespace(mapped(user)), "DenyQos of partition batch has QOS normal, "));
	CHECK(h.check_namespace(mapped(user, "", "", "high")).empty());

	h.conf["AccountingStorageEnforce"] = GENERATE("all", "safe,qos");
	CHECK(contains(h.check_namespace(mapped(user, "ml", "", "high")),
		       "match: a-*: user nobody has no QOS high with account ml in slurmdbd, so that Slurm refuses these pods; run: sacctmgr modify "
		       "user where name=nobody account=ml set qos+=high\n"));
	CHECK_FALSE(h.found.any_problem());
	partition("");
	CHECK(h.check_namespace(mapped(user, "ml", "", "normal")).empty());
	CHECK(h.check_namespace(mapped("root", "ml", "", "high")).empty()); // he may have any
	h.answers.erase(of + "user=nobody format=account,partition,qos,defaultqos");
	CHECK(contains(h.check_namespace(mapped(user, "ml", "", "high")), "accounts and QOS are not looked at: sacctmgr: no answer"));
}

TEST_CASE("check: slurm-k8s.yaml is told with line and key, and with who may change it")
{
	Host h;
	Findings out;
	const std::string path = h.folder.write("k.yaml", "clusters:\n  - nam: x\n", 0600);
	CHECK_FALSE(check_settings(path, ::geteuid(), out));
	REQUIRE(out.any_problem());
	CHECK(contains(out.text(), "k.yaml:2: clusters[0]"));
	out = {};
	CHECK(check_settings(h.folder.write("k.yaml", "clusters: [{name: x}]\n", 0600), ::geteuid(), out));
	CHECK_FALSE(out.any_problem());
	out = {};
	CHECK_FALSE(check_settings(h.folder.write("k.yaml", "clusters: [{name: x}]\n", 0666), ::geteuid(), out));
	CHECK(contains(out.text(), "chmod go-w"));
}

TEST_CASE("check: a clock that differs by more than five seconds is a problem")
{
	Findings out;
	check_clock(1005, 1000, 1000, "clock", out);
	check_clock(995, 1000, 1002, "clock", out);
	CHECK_FALSE(out.any_problem());
	check_clock(1100, 1000, 1002, "clock", out);
	CHECK(contains(out.text(), "the API server's clock is 98 s ahead of this host's"));
	check_clock(900, 1000, 1002, "clock", out);
	CHECK(contains(out.text(), "100 s behind"));
	CHECK(out.any_problem());
}

TEST_CASE("check of labels: which make no feature, and why, is one sentence for all nodes that have the same")
{
	const auto said = [](const std::vector<NodeLabels> &nodes) {
		Findings out;
		check_labels(nodes, "nodes", out);
		std::string text;
		for (const Finding &f : out.all()) {
			CHECK(f.level == Finding::Level::warning);
			text += f.text + "\n";
		}
		return text;
	};
	const std::string begin = "not all labels of ", end = " that nodes.features names are features: ";
	const core::LabelFeatures all{{"k8s.a_b." + std::string(63, 'x')}, 0, ""};
	const core::LabelFeatures odd{{}, 1, "zone is no label of Kubernetes"}, many{{}, 7, "k164 comes after 64 others, and a node has no more"};
	CHECK(said({{"n1", all}, {"n2", {}}}).empty());
	CHECK(said({{"n1", odd}, {"n2", all}, {"n3", odd}}) == begin + "n1, n3" + end + odd.first_left_out + "\n");
	CHECK(said({{"n1", odd}, {"n2", many}}) == begin + "n2" + end + many.first_left_out + "\n" + begin + "n1" + end + odd.first_left_out + "\n");
	std::vector<NodeLabels> each;
	for (int i = 0; i < 25; i++)
		each.push_back({"n" + std::to_string(i), {{}, 1, "k" + std::to_string(i) + " is no label of Kubernetes"}});
	CHECK(std::ranges::count(said(each), '\n') == 20);
}
