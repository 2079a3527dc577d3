// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/eviction.h"

namespace sk8::core {

using kube::Disruption;

namespace {

struct Row {
	bool (*applies)(const EvictionFacts &);
	const char *how; // null: nobody has taken it
};

// By its kubelet, after it was admitted: we saw that, or the kubelet has said it (from 1.26 on).
bool ended_running(const EvictionFacts &f)
{
	return f.over && (f.admitted || f.disruption == Disruption::kubelet);
}

// The first that applies counts.
constexpr Row rows[] = {
	{[](const EvictionFacts &f) { return !f.runs || f.by_us; }, nullptr},
	// a kubelet's word; while it is short of memory or disk it refuses new pods with the same one
	{[](const EvictionFacts &f) { return ended_running(f) && f.reason == "Evicted"; }, "was evicted by its kubelet"},
	{[](const EvictionFacts &f) { return ended_running(f) && f.reason == "Preempting"; },
	 "was ended by its kubelet for a more important pod"},
	// a kubelet that started again and refuses it (OutOfcpu, UnexpectedAdmissionError ...), a machine
	// that is shut down (Terminated, NodeShutdown), the pod garbage collector
	{[](const EvictionFacts &f) { return f.over; }, nullptr},
	{[](const EvictionFacts &f) { return !f.deleting && !f.deleted; }, nullptr},
	// the node is gone, or goes
	{[](const EvictionFacts &f) { return f.disruption == Disruption::garbage || f.disruption == Disruption::kubelet; },
	 nullptr},
	{[](const EvictionFacts &f) { return !f.heard_of || !f.admitted; }, nullptr},
	{[](const EvictionFacts &f) { return f.disruption == Disruption::eviction; }, "was evicted through the Kubernetes API"},
	{[](const EvictionFacts &f) { return f.disruption == Disruption::preemption; }, "was preempted by kube-scheduler"},
	{[](const EvictionFacts &f) { return f.disruption == Disruption::taint; }, "was deleted because of a taint"},
	{[](const EvictionFacts &f) { return f.found_deleting; }, nullptr},
	{[](const EvictionFacts &) { return true; }, "was deleted"},
};

} // namespace

std::string eviction_of(const EvictionFacts &facts)
{
	for (const Row &row : rows)
		if (row.applies(facts))
			return row.how ? row.how : "";
	return "";
}

} // namespace sk8::core
