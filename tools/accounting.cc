// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/accounting.h"

#include <algorithm>

#include "lib/base/text.h"

namespace sk8::tools {

// Any of these words; without slurmdbd nothing counts.
static bool enforces_any(const SlurmConf &conf, const std::vector<std::string_view> &those)
{
	const std::string words = conf_key(conf.get("AccountingStorageEnforce", ""));
	const auto is_one = [&](std::string_view word) { return std::ranges::find(those, trim(word)) != those.end(); };
	return conf.get("AccountingStorageType", "").find("slurmdbd") != std::string::npos && std::ranges::any_of(split(words, ','), is_one);
}

// _validate_accounting_storage_enforce() in read_config.c: these stand for associations, too.
bool enforces_associations(const SlurmConf &conf)
{
	return enforces_any(conf, {"1", "2", "associations", "limits", "safe", "wckeys", "qos", "all"});
}

bool enforces_qos(const SlurmConf &conf)
{
	return enforces_any(conf, {"qos", "all"});
}

Accounting::Accounting(const SlurmConf &conf, const Runner &run)
	: run_(run), cluster_(conf.get("ClusterName", "")), used_(enforces_associations(conf))
{
}

const Names &Accounting::accounts_of(const std::string &user)
{
	return ask_associations("user=" + user, "account");
}

const Names &Accounting::qos()
{
	return ask({"sacctmgr", "-nP", "show", "qos", "format=name"});
}

const Names &Accounting::qos_of(const std::string &user)
{
	return ask_associations("user=" + user, "account,partition,qos,defaultqos");
}

Names Accounting::with_those_above(std::string account)
{
	Names out;
	while (!account.empty() && out.insert(account).second) {
		const Names &rows = ask_associations("account=" + account, "user,parentname");
		const auto own = std::ranges::find_if(rows, [](const std::string &row) { return row.starts_with('|'); }); // no user's
		account = own == rows.end() ? "" : own->substr(1);
	}
	return out;
}

const Names &Accounting::ask_associations(const std::string &of, const std::string &format)
{
	return ask({"sacctmgr", "-nP", "show", "assoc", "where", "cluster=" + cluster_, of, "format=" + format});
}

const Names &Accounting::ask(const std::vector<std::string> &argv)
{
	const auto [at, fresh] = answers_.try_emplace(argv);
	if (!fresh || !error_.empty())
		return at->second;
	const auto text = run_(argv);
	if (!text)
		error_ = text.error().message;
	else
		for (auto line : split(*text, '\n'))
			if (!trim(line).empty())
				at->second.emplace(trim(line));
	return at->second;
}

} // namespace sk8::tools
