// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The table: (what Kubernetes says, what Slurm says, whose marks) -> what is done.
#include "lib/core/node_state.h"

#include "lib/core/names.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::core;

static constexpr std::uint32_t slurm_uid = 64030, admin = 0;
static const std::string cordoned = "k8s: cordoned";

namespace {

struct Node {
	kube::Node kube;
	SlurmNode slurm;
	StateSettings settings;
	bool shared = true, exists = true, not_ready = false, taken_over = false;
	std::set<std::string> resumed;

	Node &cordon(bool ours = false, const std::string &why = "bad disk")
	{
		kube.unschedulable = true;
		return ours ? mark(why) : *this;
	}
	Node &mark(const std::string &why, const std::string &owner = "slurm")
	{
		kube.meta.annotations[std::string(names::drain_owner)] = owner;
		kube.meta.annotations[std::string(names::drain_reason)] = why;
		return *this;
	}
	Node &drained(const std::string &reason, std::uint32_t uid = admin)
	{
		slurm.drain = true;
		slurm.reason = reason;
		slurm.reason_uid = uid;
		return *this;
	}
	Node &by_us(const std::string &reason = cordoned) { return drained(reason, slurm_uid); }
	Node &condition(const std::string &type, const std::string &status, const std::string &message = "")
	{
		kube.conditions.push_back({type, status, "Why", message});
		return *this;
	}

	NodePlan plan() const
	{
		NodeFacts f;
		if (exists) {
			look_at(kube, taken_over, f);
			f.causes = causes_of(kube, settings, not_ready, f.ours_cordon);
		} else {
			f.causes = {deleted_cause()};
		}
		f.shared = shared;
		look_at(slurm, slurm_uid, f);
		f.resumed = resumed;
		return decide(f, settings);
	}
	std::string to_slurm() const
	{
		const auto p = plan().slurm;
		if (!p)
			return "nothing";
		const char *action = p->action == SK8_NODE_RESUME ? "resume" : p->action == SK8_NODE_DOWN ? "down" : "drain";
		return std::string(action) + " " + (p->action == SK8_NODE_RESUME ? p->expected : p->reason);
	}
	Node &seen_uncordoned()
	{
		taken_over = true;
		return *this;
	}
	// "cordon", "uncordon", "unmark", "owner x", "note x", "nothing"
	std::string to_kube() const
	{
		const NodePatch p = plan().kube;
		if (p.unschedulable)
			return *p.unschedulable ? "cordon" : "uncordon";
		if (auto it = p.annotations.find(std::string(names::resumed_in_slurm)); it != p.annotations.end())
			return "note " + it->second.value_or("nothing");
		if (auto it = p.annotations.find(std::string(names::drain_owner)); it != p.annotations.end() && it->second)
			return "owner " + *it->second;
		return p.empty() ? "nothing" : "unmark";
	}
};

} // namespace

TEST_CASE("node state: what is done for each state of both sides")
{
	struct Row {
		const char *what;
		Node node;
		std::string to_slurm, to_kube;
	};
	const std::vector<Row> rows = {
		{"both in use", Node(), "nothing", "nothing"},
		{"cordoned", Node().cordon(), "drain k8s: cordoned", "nothing"},
		{"cordoned, drained by us", Node().cordon().by_us(), "nothing", "nothing"},
		{"uncordoned, drained by us", Node().by_us(), "resume k8s: cordoned", "nothing"},
		{"drained by an administrator", Node().drained("bad disk"), "nothing", "cordon"},
		{"... and cordoned by us for it", Node().drained("bad disk").cordon(true), "nothing", "nothing"},
		{"... and cordoned by somebody", Node().drained("bad disk").cordon(), "nothing", "nothing"},
		{"... and uncordoned by somebody", Node().drained("bad disk").mark("bad disk"), "nothing", "owner kubernetes"},
		{"... which is known", Node().drained("bad disk").mark("bad disk", "kubernetes"), "nothing", "nothing"},
		{"... who has cordoned it again", Node().drained("bad disk").cordon(true).seen_uncordoned(), "nothing",
		 "owner kubernetes"},
		{"... and Slurm uses it again", Node().cordon().mark("bad disk", "kubernetes"), "drain k8s: cordoned",
		 "unmark"},
		{"... who did so for another reason", Node().drained("fire").mark("bad disk"), "nothing", "cordon"},
		{"... who sees another reason now", Node().drained("fire").cordon(true), "nothing", "cordon"},
		{"resumed, cordoned by us", Node().cordon(true), "nothing", "uncordon"},
		{"resumed, was cordoned by us", Node().mark("bad disk"), "nothing", "unmark"},
		{"our cordon is no reason to drain", Node().cordon(true).drained("bad disk"), "nothing", "nothing"},
		{"an administrator with our words", Node().drained("k8s: cordoned"), "nothing", "cordon"},
		{"ours, and Slurm has added to it", Node().cordon().by_us("k8s: cordoned : Low RealMemory"), "nothing",
		 "nothing"},
	};
	for (const Row &row : rows) {
		CAPTURE(row.what);
		CHECK(row.node.to_slurm() == row.to_slurm);
		CHECK(row.node.to_kube() == row.to_kube);
	}
}

TEST_CASE("node state: Slurm's reason for a cordon says who, and why if that is known")
{
	Node n;
	n.cordon();
	n.kube.cordoned_by = "kubectl-cordon";
	CHECK(n.to_slurm() == "drain k8s: cordoned by kubectl-cordon");
	n.kube.meta.annotations[std::string(names::cordon_reason)] = "fan : broken";
	CHECK(n.to_slurm() == "drain k8s: cordoned by kubectl-cordon: fan: broken");
	CHECK(Node(n).by_us("k8s: cordoned by kubectl-cordon: fan: broken").to_slurm() == "nothing");
	n.kube.cordoned_by = std::string(5000, 'x');
	CHECK(n.to_slurm().size() < 300);
}

TEST_CASE("node state: DOWN, FAIL and maintenance in Slurm cordon as DRAIN does")
{
	for (auto member : {&SlurmNode::down, &SlurmNode::fail, &SlurmNode::maint}) {
		Node n;
		n.slurm.*member = true;
		CHECK(n.to_kube() == "cordon");
		CHECK(n.to_slurm() == "nothing");
	}
	// a reservation for maintenance is no drain: a cordon drains it all the same
	Node n;
	n.slurm.maint = true;
	CHECK(n.cordon().to_slurm() == "drain k8s: cordoned");
}

TEST_CASE("node state: NotReady for long enough drains, or sets down, and Ready gives the node back")
{
	Node n;
	n.not_ready = true;
	n.condition("Ready", "Unknown", "Kubelet stopped posting node status.");
	CHECK(n.to_slurm() == "drain k8s: NotReady: Kubelet stopped posting node status. (what its pods hold stays masked)");
	n.settings.not_ready.action = NotReadySettings::Action::down;
	CHECK(n.to_slurm() == "down k8s: NotReady: Kubelet stopped posting node status. (what its pods hold stays masked)");
	CHECK(Node(n).by_us().to_slurm() == "down k8s: NotReady: Kubelet stopped posting node status. (what its pods hold stays masked)");
	n.by_us("k8s: NotReady: Kubelet stopped");
	CHECK(n.to_slurm() == "nothing"); // slurmd has registered since
	n.slurm.down = true;
	CHECK(n.to_slurm() == "nothing");
	CHECK(n.to_kube() == "nothing");
	n.not_ready = false;
	CHECK(n.to_slurm() == "resume k8s: NotReady: Kubelet stopped");
	n.settings.not_ready.action = NotReadySettings::Action::ignore;
	n.not_ready = true;
	n.slurm = {};
	CHECK(n.to_slurm() == "nothing");
}

TEST_CASE("node state: the reason follows what holds, and not each change of its words")
{
	Node n;
	n.settings.conditions = {"DiskPressure"};
	n.condition("DiskPressure", "True", "97% full");
	CHECK(n.to_slurm() == "drain k8s: DiskPressure: 97% full");
	CHECK(Node(n).by_us("k8s: DiskPressure: 96% full").to_slurm() == "nothing");
	CHECK(Node(n).by_us().to_slurm() == "drain k8s: DiskPressure: 97% full"); // uncordoned meanwhile
	Node other = n;
	other.settings.conditions.clear();
	CHECK(other.to_slurm() == "nothing");
	n.kube.conditions[0].status = "False";
	CHECK(n.by_us("k8s: DiskPressure: 96% full").to_slurm() == "resume k8s: DiskPressure: 96% full");
}

TEST_CASE("node state: a deleted node is drained until it is back")
{
	Node n;
	n.exists = false;
	CHECK(n.to_slurm() == "drain k8s: deleted: Kubernetes has no such node");
	CHECK(n.to_kube() == "nothing");
	n.by_us("k8s: deleted: Kubernetes has no such node");
	CHECK(n.to_slurm() == "nothing");
	n.exists = true;
	CHECK(n.to_slurm() == "resume k8s: deleted: Kubernetes has no such node");
}

TEST_CASE("node state: an administrator of Slurm who resumes a cordoned node has decided")
{
	Node n;
	n.cordon();
	n.resumed = {"cordoned"};
	CHECK(n.to_slurm() == "nothing");
	CHECK(n.to_kube() == "note cordoned");
	n.kube.meta.annotations[std::string(names::resumed_in_slurm)] = "cordoned";
	CHECK(n.to_kube() == "nothing");
	// another cause is another matter
	n.not_ready = true;
	CHECK(n.to_slurm() == "drain k8s: NotReady: (what its pods hold stays masked)");
	n.not_ready = false;
	n.kube.unschedulable = false;
	n.resumed.clear(); // the controller forgets it with its cause
	CHECK(n.to_kube() == "note nothing");
}

TEST_CASE("node state: a node that is not shared is left alone, but for what is ours")
{
	Node n;
	n.shared = false;
	CHECK(Node(n).cordon().to_slurm() == "nothing");
	CHECK(Node(n).drained("bad disk").to_kube() == "nothing");
	CHECK_FALSE(Node(n).drained("bad disk").plan().condition);
	CHECK(Node(n).by_us().to_slurm() == "resume k8s: cordoned");
	CHECK(Node(n).drained("bad disk").cordon(true).to_kube() == "uncordon");
}

TEST_CASE("node state: each direction can be turned off, and then takes back what it did")
{
	Node n;
	n.settings.cordon = StateSettings::OnCordon::ignore;
	CHECK(Node(n).cordon().to_slurm() == "nothing");
	CHECK(Node(n).cordon().by_us().to_slurm() == "resume k8s: cordoned");
	n.settings.slurm = StateSettings::OnSlurm::ignore;
	CHECK(Node(n).drained("bad disk").to_kube() == "nothing");
	CHECK_FALSE(Node(n).drained("bad disk").plan().condition);
	CHECK(Node(n).drained("bad disk").cordon(true).to_kube() == "uncordon");
}

TEST_CASE("node state: the condition says draining, drained, and in service again")
{
	auto text = [](const Node &n) {
		auto c = n.plan().condition;
		return c ? c->type + " " + c->status + " " + c->reason + ": " + c->message : "none";
	};
	Node n;
	CHECK(text(n) == "none");
	n.drained("bad disk");
	n.slurm.jobs = 2;
	CHECK(text(n) == "SlurmDrained False Draining: 2 jobs of Slurm left: bad disk");
	n.slurm.jobs = 0;
	CHECK(text(n) == "SlurmDrained True Drained: no job of Slurm left: bad disk");
	n.slurm = {};
	n.condition("SlurmDrained", "True");
	CHECK(text(n) == "SlurmDrained False InService: Slurm gives this node jobs");
	CHECK(text(Node().cordon().by_us()) == "SlurmDrained True Drained: no job of Slurm left: k8s: cordoned");
}

TEST_CASE("node state: what others write becomes one line, of which Slurm's own additions can be told")
{
	Node n;
	n.cordon();
	n.kube.meta.annotations[std::string(names::cordon_reason)] = "a\n b : : c " + std::string(500, 'x');
	const std::string reason = n.plan().slurm->reason;
	CHECK(reason.starts_with("k8s: cordoned: a"));
	CHECK(reason.find(" : ") == reason.npos);
	CHECK(reason.find('\n') == reason.npos);
	CHECK(reason.size() < 220);
	CHECK(cause_word(reason) == "cordoned");
	CHECK(n.by_us(reason).to_slurm() == "nothing");
	CHECK(cause_word("bad disk").empty());
	CHECK(cause_word("k8s: DiskPressure full").substr(0) == "DiskPressure");
}
