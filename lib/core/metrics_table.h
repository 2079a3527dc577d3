// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Every metric that Prometheus gets, in one table: the page and slurm-k8s-metrics(7)
// are made from it, alerts and dashboard are checked against it. No label has a pod or
// a node as value: however large a site is, the page stays small.
#ifndef SK8_CORE_METRICS_TABLE_H
#define SK8_CORE_METRICS_TABLE_H

#include <string>
#include <vector>

#include "lib/base/exposition.h"
#include "lib/core/cluster_numbers.h"
#include "lib/core/metrics.h"

namespace sk8::core {

// All that is known at the moment of a scrape.
struct Scrape {
	const Metrics &metrics;
	std::vector<ClusterNumbers> clusters;
	std::size_t slurm_commands_waiting = 0;
	std::string slurm_version;
};

struct MetricRow {
	MetricInfo info;
	void (*collect)(const Scrape &from, Exposition &to);
};

const std::vector<MetricRow> &metric_table(); // by name

// The page. Pure but for reading the counters.
std::string expose(const Scrape &scrape);

} // namespace sk8::core

#endif
