// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// slurm.conf as far as slurm-k8s(1) needs it: what the next start of slurmctld will
// read. Asking a running slurmctld would tell what it read last time, and before the
// first start there is none. Includes are followed; keys are not case sensitive.
#ifndef SK8_TOOLS_SLURM_CONF_H
#define SK8_TOOLS_SLURM_CONF_H

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace sk8::tools {

struct ConfValue {
	std::string value;
	std::string file;
	int line = 0;

	std::string place() const { return file + ":" + std::to_string(line); }
};

// A key as they are compared: in lower case.
std::string conf_key(std::string_view text);

// A line NodeName=... or PartitionName=..., DEFAULT lines before it included.
using ConfLine = std::map<std::string, ConfValue>; // by key in lower case

class SlurmConf {
public:
	// Reads the disk. The error names file and line.
	static Result<SlurmConf> read(const std::string &path);
	// SLURM_CONF, or where Slurm usually has it.
	static std::string default_path();

	const std::string &path() const { return path_; }
	// Of a plain key ("StateSaveLocation"); nullptr: it is not there.
	const ConfValue *find(std::string_view key) const;
	std::string get(std::string_view key, const std::string &otherwise) const;
	const std::vector<ConfLine> &nodes() const { return nodes_; }
	const std::vector<ConfLine> &partitions() const { return partitions_; }

	std::string state_dir() const { return get("StateSaveLocation", "/var/spool"); }
	std::string slurm_user() const { return get("SlurmUser", "root"); }

private:
	struct Reader;
	std::string path_;
	ConfLine values_;
	std::vector<ConfLine> nodes_, partitions_;
};

} // namespace sk8::tools

#endif
