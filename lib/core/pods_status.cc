// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/pods_status.h"

#include <algorithm>
#include <array>

#include "lib/core/pods_controller.h"

namespace sk8::core {

bool StatusQuery::wants_pod(const PodKey &key) const
{
	return pod.empty() || pod == key.uid || pod == key.ns + "/" + key.name;
}

// ---- values ----

static std::string why_masked(PodState state, NodeView::Kubelet kubelet, const std::string &node)
{
	if (state == PodState::lost)
		return "its object vanished before the kubelet had reported its containers gone";
	std::string text = state == PodState::leaving
				   ? "the kubelet has not reported the last of its containers gone"
				   : state == PodState::bound || state == PodState::stray
					     ? "it may run, and has no running job there"
					     : "it is not known yet whether it still runs";
	if (kubelet == NodeView::Kubelet::silent)
		text += "; Kubernetes hears nothing of node " + node;
	if (kubelet == NodeView::Kubelet::no_node)
		text += "; Kubernetes has no node " + node;
	return text;
}

PodReport PodsController::report(const Entry &e) const
{
	static constexpr std::array doing = {"",       "looking",  "reading volumes", "freeing a claim", "submitting", "binding",
					     "ending", "deleting", "reading its manifest", "releasing"};
	static_assert(doing.size() == static_cast<std::size_t>(Op::releasing) + 1, "each Op has its word");
	PodReport r;
	r.key = e.key;
	r.pod = classify(facts(e));
	r.job = classify(relevant_job(e), e.op == Op::submitting);
	r.next = next_effect(r.pod, r.job);
	if (e.job) {
		r.job_ref = e.job->ref;
		r.job_reason = r.job == JobState::queued ? e.job->reason : "";
		r.node = e.job->running() ? e.job->node : "";
	}
	if (e.pod) {
		r.phase = e.pod->phase;
		r.deleting = e.pod->meta.deleting;
	}
	r.held = ports_.holds.held_by(e.key);
	if (!e.bound_node.empty() || r.held)
		r.node = r.held ? r.held->hold.node : e.bound_node;
	r.doing = doing[static_cast<std::size_t>(e.op)];
	r.refusal = e.refusal;
	r.trouble = e.trouble;
	r.failures = e.failures;
	if (const Millis now = ports_.timer.now(); e.retry_at > now)
		r.retry_in = e.retry_at - now;
	if (r.held && r.held->masked)
		r.why = started_ ? why_masked(r.pod, nodes_.kubelet(r.node), r.node)
				 : "Kubernetes has not told yet which pods there are";
	return r;
}

std::vector<PodReport> PodsController::reports(const StatusQuery &query, std::size_t max,
					       std::size_t &more) const
{
	std::vector<PodReport> out;
	more = 0;
	for (const auto &[uid, e] : entries_) {
		if (!query.wants_pod(e.key))
			continue;
		PodReport r = report(e);
		if ((!query.node.empty() && r.node != query.node) || (query.held && !(r.held && r.held->masked)))
			continue;
		if (out.size() < max)
			out.push_back(std::move(r));
		else
			more++;
	}
	std::sort(out.begin(), out.end(), [](const PodReport &a, const PodReport &b) {
		return std::tie(a.node, a.key.ns, a.key.name, a.key.uid) <
		       std::tie(b.node, b.key.ns, b.key.name, b.key.uid);
	});
	return out;
}

// ---- JSON ----

template <std::size_t N, class State>
static Json counts(const std::array<std::size_t, N> &numbers, State)
{
	Json out = Json::object();
	for (std::size_t i = 0; i < N; i++)
		if (numbers[i])
			out.set(name(static_cast<State>(i)), Json::integer(static_cast<std::int64_t>(numbers[i])));
	return out;
}

Json to_json(const PodNumbers &n)
{
	Json out = Json::object();
	out.set("pods", counts(n.pods, PodState{})).set("jobs", counts(n.jobs, JobState{}));
	out.set("held", Json::integer(static_cast<std::int64_t>(n.held())));
	out.set("masked", Json::integer(static_cast<std::int64_t>(n.masked())));
	return out;
}

static Json amounts(const std::vector<std::uint16_t> &cores, std::uint32_t more, std::uint64_t memory_mb,
		    const GresList &gres)
{
	Json list = Json::array();
	for (auto c : cores)
		list.append(Json::integer(c));
	Json out = Json::object();
	out.set("cores", list).set("more_cores", Json::integer(more)).set("gres", gres_text(gres));
	return out.set("memory_mb", Json::integer(static_cast<std::int64_t>(memory_mb)));
}

Json to_json(const Hold &h, bool masked)
{
	GresList gres = h.gres;
	gres.insert(gres.end(), h.shared.begin(), h.shared.end());
	Json out = amounts(h.cores, h.more_cores, h.memory_mb, gres);
	return out.set("node", h.node).set("masked", Json::boolean(masked));
}

Json to_json(const NodeMask &m)
{
	Json out = amounts(m.cores, m.more_cores, m.memory_mb, m.gres);
	out.set("foreign_milli_cpu", Json::integer(m.milli_cpu));
	out.set("overhead_milli_cpu", Json::integer(m.overhead_milli_cpu));
	out.set("overhead_mb", Json::integer(static_cast<std::int64_t>(m.overhead_mb)));
	out.set("full_for_pods", Json::boolean(m.full.for_pods)).set("full_for_jobs", Json::boolean(m.full.for_jobs));
	return out.set("node", m.node).set("whole", Json::boolean(m.whole)).set("for_a_while", Json::boolean(m.for_a_while)).set("for_a_moment", Json::boolean(m.for_a_moment));
}

Json to_json(const ForeignNumbers &n)
{
	Json out = Json::object();
	out.set("held", Json::integer(static_cast<std::int64_t>(n.held)));
	out.set("unproved", Json::integer(static_cast<std::int64_t>(n.unproved)));
	return out.set("lost", Json::integer(static_cast<std::int64_t>(n.lost)));
}

Json to_json(const ForeignReport &r)
{
	Json out = amounts(r.hold.cores, 0, r.hold.memory_mb, r.hold.gres);
	out.set("namespace", r.hold.key.ns).set("name", r.hold.key.name).set("uid", r.hold.key.uid);
	out.set("node", r.hold.node).set("milli_cpu", Json::integer(r.hold.milli_cpu));
	if (!r.phase.empty())
		out.set("phase", r.phase);
	if (!r.why.empty())
		out.set("why", r.why);
	return out;
}

Json to_json(const PodReport &r)
{
	Json out = Json::object();
	out.set("namespace", r.key.ns).set("name", r.key.name).set("uid", r.key.uid);
	out.set("pod", name(r.pod)).set("job", name(r.job)).set("next", name(r.next));
	const std::pair<const char *, const std::string &> texts[] = {
		{"node", r.node},   {"phase", r.phase},     {"job_reason", r.job_reason},
		{"doing", r.doing}, {"refusal", r.refusal}, {"trouble", r.trouble},
		{"why", r.why},
	};
	for (const auto &[key, text] : texts)
		if (!text.empty())
			out.set(key, text);
	if (r.job_ref)
		out.set("job_id", Json::integer(r.job_ref.id));
	if (r.deleting)
		out.set("deleting", Json::boolean(true));
	if (r.failures)
		out.set("failures", Json::integer(r.failures));
	if (r.retry_in)
		out.set("retry_in_ms", Json::integer(r.retry_in->count()));
	if (r.held)
		out.set("holds", to_json(r.held->hold, r.held->masked));
	return out;
}

} // namespace sk8::core
