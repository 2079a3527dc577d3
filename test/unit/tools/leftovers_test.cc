// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// slurm-k8s check: what former settings have left in Kubernetes.
#include "lib/core/reservation.h"
#include "lib/core/shared_reservation.h"
#include "test/unit/catch.h"
#include "tools/check.h"

using namespace sk8;
using namespace sk8::tools;

namespace {

struct Checked {
	Checked()
	{
		settings.name = "c";
		settings.reservations.ns = "now";
		side.nodes["n1"] = {};
	}
	void node(const std::string &name, bool unschedulable, const std::string &owner = "slurm")
	{
		kube::Node n;
		n.meta.name = name;
		n.unschedulable = unschedulable;
		n.meta.annotations["slurm-k8s.io/drain-owner"] = owner;
		left.see(n, side);
	}
	void pod(const std::string &ns, const std::string &name, const std::string &node = "n1", const std::string &phase = "Running")
	{
		core::ForeignPod p;
		p.meta.ns = ns;
		p.meta.name = name;
		p.node_name = node;
		p.phase = phase;
		left.see(p, settings.reservations.ns, side);
	}
	std::string told() const
	{
		Findings out;
		check_leftovers(left, settings, out);
		std::string text;
		for (const Finding &f : out.all())
			text += f.text + "\n";
		return text;
	}

	core::ClusterSettings settings;
	SlurmSide side;
	Leftovers left;
};

const core::JobRef job{7, 1007};

} // namespace

TEST_CASE("leftovers: a node that was drained, and then taken out of slurm.conf, is told with what to type")
{
	Checked c;
	c.node("n1", true);               // Slurm has it
	c.node("n2", false);              // somebody has uncordoned it
	c.node("n3", true, "kubernetes"); // ... and cordoned it again
	CHECK(c.told().empty());
	c.node("n4", true);
	CHECK(c.told() == "cordoned for Slurm, which has no node of these names: n4; if no other Slurm has them: kubectl uncordon NODE; "
			  "kubectl annotate node NODE slurm-k8s.io/drain-owner- slurm-k8s.io/drain-reason- slurm-k8s.io/drain-by-\n");
}

TEST_CASE("leftovers: reservation pods outside of the namespace that is set are told with what to type")
{
	Checked c;
	const std::string name = core::reservation_name(job, "n1"), shared = core::shared_reservation_name("n1");
	c.pod("now", name);
	c.pod("former", "web");
	c.pod("former", name, "n2");               // another Slurm's
	c.pod("former", name, "n1", "Succeeded"); // it holds nothing
	CHECK(c.told().empty());
	c.pod("former", name);
	CHECK(c.told() == "namespace former has some, and reservations.namespace is now: " + name +
				  "; nobody deletes them, and what they hold is masked beside their jobs: kubectl -n former delete pods -l "
				  "slurm-k8s.io/job, those in which tasks run when their jobs have ended\n");
	c.pod("former", shared);
	CHECK(c.told().find(name + ", " + shared) != std::string::npos);
}
