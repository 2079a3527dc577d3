// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Prints slurm-k8s-metrics(7) from the table of metrics (lib/core/metrics_table.cc),
// at build time: the page and the program cannot disagree.
//
//   print_metrics_man           the page
//   print_metrics_man --names   the name of each sample, one a line; for test/doc/check
#include <cstdio>
#include <cstring>
#include <string>

#include "doc/roff.h"
#include "lib/core/metrics_table.h"

using sk8::MetricInfo;
using sk8::MetricType;

static const char *const head =
	R"(.\" SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
.\" Printed by doc/print_metrics_man.cc from lib/core/metrics_table.cc.
.TH SLURM\-K8S\-METRICS 7 "" "slurm\-k8s" "Miscellanea"
.SH NAME
slurm\-k8s\-metrics \- numbers of slurm\-k8s for Prometheus
.SH SYNOPSIS
.nf
metrics:
  listen: 127.0.0.1:9410
.fi
.SH DESCRIPTION
With this in
.BR slurm\-k8s.yaml (5)
.BR slurmctld (8)
answers
.I http://127.0.0.1:9410/metrics
in Prometheus' text format.
It is off by default.
Only addresses of the machine itself are accepted, since nobody is asked who he is; for a
Prometheus elsewhere put a proxy with authentication in front.
.PP
.B "scontrol reconfigure"
moves or closes it.
If the port is taken, the log says so once, and it is tried again until it is free; nothing
else is affected.
Slurm never waits for who scrapes: a thread of its own answers, and takes none of slurmctld's
locks.
Pods are counted at most once a second.
.PP
Prometheus finds it with
.PP
.nf
scrape_configs:
  \- job_name: slurm\-k8s
    static_configs: [{targets: ["127.0.0.1:9410"]}]
rule_files: [slurm\-k8s.alerts.yaml]
.fi
.PP
.I slurm\-k8s.alerts.yaml
(alerts) and
.I slurm\-k8s.dashboard.json
(for Grafana) are installed with slurm\-k8s, in
.IR share/slurm\-k8s ,
as examples.
.SH METRICS
Counters and histograms count since the start of slurmctld.
No label has the name of a pod or of a node.
)";

static const char *const tail = R"(.SH SEE ALSO
.BR slurm\-k8s (7),
.BR slurm\-k8s.yaml (5)
)";

static void print(const MetricInfo &info)
{
	std::printf(".TP\n.B %s", roff(std::string(info.name)).c_str());
	const char *before = "{";
	for (auto label : info.labels) {
		std::printf("%s%s", before, roff(std::string(label)).c_str());
		before = ",";
	}
	std::printf("%s\n(%s)\n.br\n%s\n", info.labels.empty() ? "" : "}", metric_type_name(info.type),
		    roff(std::string(info.help)).c_str());
}

static void print_names(const MetricInfo &info)
{
	const std::string name(info.name);
	if (info.type != MetricType::histogram) {
		std::printf("%s\n", name.c_str());
		return;
	}
	for (const char *part : {"_bucket", "_sum", "_count"})
		std::printf("%s%s\n", name.c_str(), part);
}

int main(int argc, char **argv)
{
	const bool names = argc == 2 && !std::strcmp(argv[1], "--names");
	if (argc > 1 && !names) {
		std::fprintf(stderr, "usage: print_metrics_man [--names]\n");
		return 2;
	}
	if (!names)
		std::fputs(head, stdout);
	for (const auto &row : sk8::core::metric_table())
		names ? print_names(row.info) : print(row.info);
	if (!names)
		std::fputs(tail, stdout);
	return std::fflush(stdout) || std::ferror(stdout) ? 1 : 0;
}
