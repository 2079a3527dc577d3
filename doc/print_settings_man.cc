// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Prints slurm-k8s.yaml(5) from the table of settings (lib/core/settings.cc), and
// slurm-k8s-node.yaml(5) from the agent's (lib/agent/settings.cc), at build time: the pages and the
// programs cannot disagree.
//
//   print_settings_man [--node]           the page
//   print_settings_man [--node] --paths   the path of each setting, one a line; for test/doc/check
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "doc/roff.h"
#include "lib/agent/settings.h"
#include "lib/core/settings.h"

using sk8::FieldDoc;

static const char *const head =
	R"(.\" SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
.\" Printed by doc/print_settings_man.cc from lib/core/settings.cc.
.TH SLURM\-K8S.YAML 5 "" "slurm\-k8s" "File formats"
.SH NAME
slurm\-k8s.yaml \- configuration of slurm\-k8s
.SH SYNOPSIS
.I /etc/slurm/slurm\-k8s.yaml
.SH DESCRIPTION
Says which Kubernetes clusters share nodes with this Slurm, and who their pods are
in Slurm.
.BR slurmctld (8)
reads it when it starts and on
.BR "scontrol reconfigure" .
.PP
The file stands beside
.IR slurm.conf ,
or where the environment variable
.B SLURM_K8S_CONF
of slurmctld says.
Its owner must be root or SlurmUser, and others must not be able to write it.
.PP
A file with a mistake is not used as a whole, nor one that is gone: the settings before it stay in force, also when slurmctld
starts, by a copy in
.IR StateSaveLocation /slurm\-k8s.yaml .
Only if there have never been any no pod is placed, and Slurm's own jobs start without reservation pods until the file is mended;
.B "slurm\-k8s check"
tells before that.
To be without settings take the plugins out of slurm.conf (REMOVAL in
.BR slurm\-k8s (7)).
Slurm itself runs on.
The log of slurmctld has one line for each mistake:
.IR "file:line: key: what is wrong, what would be right" .
.PP
Times are written as in
.BR 40s ,
.B 1m30s
or
.BR 2h ;
CPUs and bytes as in pods
.RB ( 500m ,
.BR 256Mi ).
In patterns
.B *
stands for any text and
.B ?
for one character.
.SH SETTINGS
A path with
.B []
is a list; its settings follow.
)";

static const char *const tail =
	R"(.SH EXAMPLE
.nf
clusters:
  \- name: prod
    kubeconfig: /etc/slurm/k8s.kubeconfig
    nodes: {selector: slurm\-k8s.io/shared=true}
    namespaces:
      \- {match: "ml\-*", user: mlsvc, account: ml, partition: gpu, allow: {qos: [high]}}
      \- {match: team\-a, user: alice}
.fi
.PP
A longer one with comments is
.I etc/slurm\-k8s.yaml
of the source.
.SH SEE ALSO
.BR slurm\-k8s (7),
.BR slurm.conf (5)
)";

static const char *const node_head =
	R"(.\" SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
.\" Printed by doc/print_settings_man.cc from lib/agent/settings.cc.
.TH SLURM\-K8S\-NODE.YAML 5 "" "slurm\-k8s" "File formats"
.SH NAME
slurm\-k8s\-node.yaml \- configuration of slurm\-k8s on a compute node
.SH SYNOPSIS
.I /etc/slurm/slurm\-k8s\-node.yaml
.SH DESCRIPTION
Is read when
.BR slurmd (8)
starts whose
.I plugstack.conf
names
.BR spank_k8s.so (8).
Without this file no agent runs, and that is no error; with an empty one
.RB ( {} )
all settings have their defaults.
.PP
The file stands beside
.IR slurm.conf ,
or where the environment variable
.B SLURM_K8S_NODE_CONF
of slurmd says.
A slurmd that has its
.I slurm.conf
from slurmctld
.RB ( \-\-conf\-server ,
configless) reads the one in
.IR /etc/slurm ,
as this file is none of those that Slurm hands out.
Its owner must be root, and others must not be able to write it.
A file with a mistake is not used; slurmd runs on without the agent, and its log has one line for each mistake:
.IR "file:line: key: what is wrong, what would be right" .
.SH SETTINGS
)";

static const char *const node_tail =
	R"(.SH EXAMPLE
.nf
kubeconfig: /var/lib/kubelet/kubeconfig
.fi
.SH SEE ALSO
.BR spank_k8s.so (8),
.BR slurm\-k8s (7),
.BR plugstack.conf (5)
)";

struct Page {
	const char *head, *tail, *daemon;
	std::vector<FieldDoc> (*settings)();
};

static const Page settings_page{head, tail, "slurmctld", sk8::core::describe_settings};
static const Page node_page{node_head, node_tail, "slurmd", sk8::agent::describe_agent_settings};

static void print(const FieldDoc &row, const char *daemon)
{
	std::printf(".TP\n.B %s\n", roff(row.path).c_str());
	std::printf("(%s%s", roff(row.type).c_str(), row.required ? ", required" : "");
	if (!row.default_text.empty())
		std::printf("; default: %s", roff(row.default_text).c_str());
	std::printf(")\n.br\n%s\n", roff(row.help).c_str());
	if (!row.reloadable)
		std::printf("A change takes effect when %s is restarted.\n", daemon);
}

int main(int argc, char **argv)
{
	const auto has = [&](int at, const char *word) { return argc > at && !std::strcmp(argv[at], word); };
	const bool node = has(1, "--node"), paths = has(node ? 2 : 1, "--paths");
	if (argc > 1 + node + paths) {
		std::fprintf(stderr, "usage: print_settings_man [--node] [--paths]\n");
		return 2;
	}
	const Page &page = node ? node_page : settings_page;
	if (!paths)
		std::fputs(page.head, stdout);
	for (const FieldDoc &row : page.settings()) {
		if (paths)
			std::printf("%s\n", row.path.c_str());
		else
			print(row, page.daemon);
	}
	if (!paths)
		std::fputs(page.tail, stdout);
	return std::fflush(stdout) || std::ferror(stdout) ? 1 : 0;
}
