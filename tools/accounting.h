// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What Slurm's database knows of users, accounts and QOS, by sacctmgr(1), asked once per question.
#ifndef SK8_TOOLS_ACCOUNTING_H
#define SK8_TOOLS_ACCOUNTING_H

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tools/run.h"
#include "tools/slurm_conf.h"

namespace sk8::tools {

using Names = std::set<std::string>;

// Does Slurm refuse a job whose user has no association with its account?
bool enforces_associations(const SlurmConf &conf);
// ... whose association has not its QOS?
bool enforces_qos(const SlurmConf &conf);

class Accounting {
public:
	// run: must outlive this; blocks.
	Accounting(const SlurmConf &conf, const Runner &run);

	// Slurm refuses a job for what is missing there.
	bool used() const { return used_; }
	const std::string &error() const { return error_; } // of the first question that failed; the others have no answer

	const Names &accounts_of(const std::string &user);
	const Names &qos();
	// "account|partition|QOS,QOS|default QOS" of each of his associations, what they inherit included.
	const Names &qos_of(const std::string &user);
	// The account, and those above it.
	Names with_those_above(std::string account);

private:
	const Names &ask_associations(const std::string &of, const std::string &format);
	const Names &ask(const std::vector<std::string> &argv);

	const Runner &run_;
	const std::string cluster_;
	const bool used_;
	std::map<std::vector<std::string>, Names> answers_; // lines
	std::string error_;
};

} // namespace sk8::tools

#endif
