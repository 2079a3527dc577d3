// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/metrics_table.h"

#include "lib/base/log_limit.h"
#include "sk8_config.h"

namespace sk8::core {

static constexpr double ns = 1e-9, us = 1e-6, ms = 1e-3, mib = 1024 * 1024;

static double real(std::uint64_t n)
{
	return static_cast<double>(n);
}

// One sample for each cluster whose engine answered.
template <class F>
static void each_cluster(const Scrape &from, Exposition &to, F value)
{
	for (const ClusterNumbers &c : from.clusters)
		if (c.answered)
			to.sample({c.cluster}, static_cast<double>(value(c)));
}

static void family(const CounterFamily &from, Exposition &to)
{
	from.each([&](const CounterFamily::Values &values, std::uint64_t n) { to.sample(values, real(n)); });
}

static void pods(const Scrape &from, Exposition &to)
{
	for (const ClusterNumbers &c : from.clusters)
		for (std::size_t i = 0; c.answered && i < c.pods.pods.size(); i++)
			to.sample({c.cluster, name(static_cast<PodState>(i))}, real(c.pods.pods[i]));
}

static void jobs(const Scrape &from, Exposition &to)
{
	for (const ClusterNumbers &c : from.clusters)
		for (std::size_t i = 1; c.answered && i < c.pods.jobs.size(); i++) // not JobState::none
			to.sample({c.cluster, name(static_cast<JobState>(i))}, real(c.pods.jobs[i]));
}

static void holds(const Scrape &from, Exposition &to)
{
	for (const ClusterNumbers &c : from.clusters) {
		if (!c.answered)
			continue;
		to.sample({c.cluster, "placed"}, real(c.pods.placed));
		to.sample({c.cluster, "leaving"}, real(c.pods.leaving));
		to.sample({c.cluster, "lost"}, real(c.pods.lost));
	}
}

static void foreign_pods(const Scrape &from, Exposition &to)
{
	for (const ClusterNumbers &c : from.clusters) {
		if (!c.answered)
			continue;
		to.sample({c.cluster, "there"}, real(c.foreign.held - c.foreign.unproved - c.foreign.lost));
		to.sample({c.cluster, "unproved"}, real(c.foreign.unproved));
		to.sample({c.cluster, "lost"}, real(c.foreign.lost));
	}
}

static void masked_gres(const Scrape &from, Exposition &to)
{
	for (const ClusterNumbers &c : from.clusters)
		for (const auto &[gres, count] : c.masks.gres)
			to.sample({c.cluster, gres.first, gres.second}, real(count));
}

static void last_events(const Scrape &from, Exposition &to)
{
	for (const ClusterNumbers &c : from.clusters)
		for (const WatchNumbers &w : c.watches)
			to.sample({c.cluster, w.resource}, static_cast<double>(w.last_event));
}

static void hooks(const Scrape &from, Exposition &to)
{
	for (std::size_t i = 0; i < hook_names.size(); i++)
		to.histogram({hook_names[i]}, *from.metrics.hook_ns[i], ns);
}

static void api_durations(const Scrape &from, Exposition &to)
{
	for (std::size_t i = 0; i < timed_verbs.size(); i++)
		to.histogram({timed_verbs[i]}, *from.metrics.api_ms[i], ms);
}

const std::vector<MetricRow> &metric_table()
{
	using enum MetricType;
	using From = const Scrape &;
	using To = Exposition &;
	// Leaked: no static destructors.
	static const auto *const table = new std::vector<MetricRow>{
		{{"slurm_k8s_api_request_duration_seconds", histogram, {"verb"},
		  "Time from sending a request to the Kubernetes API until its whole answer is there, by verb; watches are not among them."},
		 api_durations},
		{{"slurm_k8s_api_requests_in_flight", gauge, {"cluster"},
		  "Requests to the Kubernetes API that wait to be sent or for their answer, watches included."},
		 [](From f, To t) { each_cluster(f, t, [](auto &c) { return c.requests_in_flight; }); }},
		{{"slurm_k8s_api_requests_total", counter, {"cluster", "verb", "resource", "code"},
		  "Answered requests to the Kubernetes API; code is the HTTP status, or none if no answer came."},
		 [](From f, To t) { family(f.metrics.api_requests, t); }},
		{{"slurm_k8s_build_info", gauge, {"version", "slurm_version"},
		  "1; the labels say which slurm-k8s runs in which Slurm."},
		 [](From f, To t) { t.sample({PACKAGE_VERSION, f.slurm_version}, 1); }},
		{{"slurm_k8s_connected", gauge, {"cluster"},
		  "1 while all lists and watches of the cluster are up to date, else 0."},
		 [](From f, To t) {
			 for (const auto &c : f.clusters) // a busy engine is not connected either
				 t.sample({c.cluster}, c.connected);
		 }},
		{{"slurm_k8s_engine_events_waiting", gauge, {"cluster"},
		  "News from Slurm that the cluster's engine has not looked at yet."},
		 [](From f, To t) {
			 for (const auto &c : f.clusters)
				 t.sample({c.cluster}, real(c.events_waiting));
		 }},
		{{"slurm_k8s_engine_responsive", gauge, {"cluster"},
		  "1 if the cluster's engine answered this scrape within a second, else 0, and its other gauges are missing."},
		 [](From f, To t) {
			 for (const auto &c : f.clusters)
				 t.sample({c.cluster}, c.answered);
		 }},
		{{"slurm_k8s_foreign_pods", gauge, {"cluster", "state"},
		  "Pods of others that are masked on shared nodes: there, unproved (gone, their kubelet has not reported since) or lost (deleted by force: the agent of its node or a person must say that it is gone)."},
		 foreign_pods},
		{{"slurm_k8s_holds", gauge, {"cluster", "state"},
		  "Pods that hold cores and memory of nodes: placed (their job runs), leaving (the job has ended, the kubelet has not reported the end of the containers yet) or lost (no kubelet will report: the agent of its node or a person must say that it is gone)."},
		 holds},
		{{"slurm_k8s_hook_duration_seconds", histogram, {"hook"},
		  "Time that slurmctld waited in a hook of slurm-k8s, under its locks."},
		 hooks},
		{{"slurm_k8s_job_end_to_delete_seconds", histogram, {},
		  "Time from the end of a job in Slurm until the request that deletes its pod is sent."},
		 [](From f, To t) { t.histogram({}, f.metrics.fini_to_delete_ms, ms); }},
		{{"slurm_k8s_job_start_to_binding_seconds", histogram, {},
		  "Time from the start of a job in Slurm until the Binding of its pod is sent, at the first try."},
		 [](From f, To t) { t.histogram({}, f.metrics.start_to_binding_ms, ms); }},
		{{"slurm_k8s_jobs", gauge, {"cluster", "state"},
		  "Jobs of pods, by their state: submitting, queued, running (suspended included), ended (and their pod still known)."},
		 jobs},
		{{"slurm_k8s_jobs_submitted_total", counter, {}, "Jobs that Slurm made for pods."},
		 [](From f, To t) { t.sample({}, real(f.metrics.jobs_submitted.get())); }},
		{{"slurm_k8s_ledger_write_errors_total", counter, {},
		  "Attempts to write the saved ledger that failed; nothing is bound meanwhile."},
		 [](From f, To t) { t.sample({}, real(f.metrics.ledger_write_errors.get())); }},
		{{"slurm_k8s_ledger_writes_total", counter, {}, "Successful writes of the saved ledger to disk."},
		 [](From f, To t) { t.sample({}, real(f.metrics.ledger_writes.get())); }},
		{{"slurm_k8s_log_lines_suppressed_total", counter, {},
		  "Log lines left out because too many were alike."},
		 [](From, To t) { t.sample({}, real(log_lines_suppressed())); }},
		{{"slurm_k8s_masked_cores", gauge, {"cluster"},
		  "Cores that masks keep away from Slurm's jobs, without those of foreign pods and of wholly masked nodes."},
		 [](From f, To t) { each_cluster(f, t, [](auto &c) { return c.masks.cores; }); }},
		{{"slurm_k8s_masked_foreign_cpus", gauge, {"cluster"},
		  "CPUs (hardware threads) that foreign pods request on shared nodes; each node hides whole cores for its own."},
		 [](From f, To t) { each_cluster(f, t, [](auto &c) { return real(c.masks.foreign_milli_cpu) / 1000; }); }},
		{{"slurm_k8s_masked_gres", gauge, {"cluster", "gres", "type"},
		  "GRES (GPUs and the like) that masks keep away from Slurm's jobs, by name and type, without those of wholly masked nodes; those that foreign pods have included."},
		 masked_gres},
		{{"slurm_k8s_masked_memory_bytes", gauge, {"cluster"},
		  "Memory that masks keep away from Slurm's jobs, without that of wholly masked nodes."},
		 [](From f, To t) { each_cluster(f, t, [](auto &c) { return real(c.masks.memory_mb) * mib; }); }},
		{{"slurm_k8s_masked_nodes", gauge, {"cluster"}, "Nodes with a mask, wholly masked ones included."},
		 [](From f, To t) { each_cluster(f, t, [](auto &c) { return c.masks.nodes; }); }},
		{{"slurm_k8s_masked_whole_nodes", gauge, {"cluster"},
		  "Nodes that take no job because their pods are not known yet."},
		 [](From f, To t) { each_cluster(f, t, [](auto &c) { return c.masks.whole_nodes; }); }},
		{{"slurm_k8s_overcommitted_nodes", gauge, {"cluster"},
		  "Nodes of which pods and Slurm's jobs together have more than there is: a pod that asks no scheduler came second."},
		 [](From f, To t) { each_cluster(f, t, [](auto &c) { return c.overcommitted_nodes; }); }},
		{{"slurm_k8s_pod_seen_to_bound_seconds", histogram, {},
		  "Time from the first sight of a pod until it is bound; most of it is Slurm's queue."},
		 [](From f, To t) { t.histogram({}, f.metrics.created_to_bound_ms, ms); }},
		{{"slurm_k8s_pods", gauge, {"cluster", "state"},
		  "Pods for Slurm, by what is known of them: unknown, gated, refused, waiting, bound, stray, leaving, over, gone, lost."},
		 pods},
		{{"slurm_k8s_pods_bound_total", counter, {}, "Pods that were bound to a node."},
		 [](From f, To t) { t.sample({}, real(f.metrics.pods_bound.get())); }},
		{{"slurm_k8s_pods_resubmitted_total", counter, {}, "Bare pods that were made again after Slurm took their node."},
		 [](From f, To t) { t.sample({}, real(f.metrics.pods_resubmitted.get())); }},
		{{"slurm_k8s_relists_total", counter, {"cluster", "resource"},
		  "Complete lists after the first one: the place in the watch was lost."},
		 [](From f, To t) { family(f.metrics.relists, t); }},
		{{"slurm_k8s_reports_waiting", gauge, {"cluster"},
		  "Events and conditions that wait to be written to Kubernetes."},
		 [](From f, To t) { each_cluster(f, t, [](auto &c) { return c.pods.reports_waiting; }); }},
		{{"slurm_k8s_slurm_commands_waiting", gauge, {},
		  "Commands (submit, end, exclude) that wait for slurmctld's locks."},
		 [](From f, To t) { t.sample({}, real(f.slurm_commands_waiting)); }},
		{{"slurm_k8s_slurmctld_lock_held_seconds", histogram, {"mode"},
		  "How long slurm-k8s kept slurmctld's locks, by mode: write or read."},
		 [](From f, To t) {
			 t.histogram({"write"}, f.metrics.write_lock_held_us, us);
			 t.histogram({"read"}, f.metrics.read_lock_held_us, us);
		 }},
		{{"slurm_k8s_watch_last_event_timestamp_seconds", gauge, {"cluster", "resource"},
		  "When the last list, event or bookmark of a watch came, in seconds since 1970; 0: never. Bookmarks come about every minute."},
		 last_events},
	};
	return *table;
}

std::string expose(const Scrape &scrape)
{
	Exposition out;
	for (const MetricRow &row : metric_table()) {
		out.family(row.info);
		row.collect(scrape, out);
	}
	return out.text();
}

} // namespace sk8::core
