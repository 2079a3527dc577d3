// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/slurm_conf.h"

#include <cstdlib>
#include <optional>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/text.h"

namespace sk8::tools {

static constexpr std::size_t max_file = 16u << 20;
static constexpr int max_includes = 100; // files in all: a circle ends here

std::string conf_key(std::string_view text)
{
	std::string out(text);
	for (char &c : out)
		c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
	return out;
}

// Source: src/common/parse_config.c: a comment begins at # unless it is escaped, a
// line goes on after a backslash at its end.
static std::string without_comment(std::string_view line)
{
	std::string out;
	for (std::size_t i = 0; i < line.size(); i++) {
		if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '#')
			i++;
		else if (line[i] == '#')
			break;
		out += line[i];
	}
	return out;
}

// The next Key=Value of text, which gets shorter; nothing at its end or if it is no pair.
static std::optional<std::pair<std::string, std::string>> next_pair(std::string_view &text)
{
	text = trim(text);
	const auto equals = text.find('=');
	if (equals == text.npos)
		return std::nullopt;
	std::string_view key = text.substr(0, equals);
	if (!key.empty() && std::string_view("+-*/").find(key.back()) != std::string_view::npos)
		key.remove_suffix(1); // slurm.conf(5): Key+=Value
	text.remove_prefix(equals + 1);
	while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
		text.remove_prefix(1);
	std::string value;
	bool quoted = false;
	std::size_t i = 0;
	for (; i < text.size() && (quoted || (text[i] != ' ' && text[i] != '\t')); i++) {
		if (text[i] == '"')
			quoted = !quoted;
		else
			value += text[i];
	}
	text.remove_prefix(i);
	return std::pair(conf_key(trim(key)), value);
}

struct SlurmConf::Reader {
	SlurmConf &conf;
	int files = 0;
	ConfLine node_default{}, partition_default{};

	Result<void> file(const std::string &path)
	{
		if (++files > max_includes)
			return Error{path + ": more than " + std::to_string(max_includes) + " files are included"};
		auto text = read_file(path, max_file);
		if (!text)
			return text.error();
		std::string whole;
		int number = 0, began = 0;
		for (auto raw : split(*text, '\n')) {
			number++;
			if (whole.empty())
				began = number;
			std::string part = without_comment(raw);
			while (!part.empty() && (part.back() == '\r' || part.back() == ' ' || part.back() == '\t'))
				part.pop_back();
			if (!part.empty() && part.back() == '\\') {
				part.pop_back();
				whole += part;
				continue;
			}
			whole += part;
			if (auto r = line(whole, path, began); !r)
				return r;
			whole.clear();
		}
		return line(whole, path, began);
	}

	Result<void> line(std::string_view text, const std::string &path, int number)
	{
		text = trim(text);
		if (text.empty())
			return {};
		if (conf_key(text.substr(0, 8)) == "include " || conf_key(text.substr(0, 8)) == "include\t")
			return include(std::string(trim(text.substr(8))), path, number);
		ConfLine row;
		while (auto pair = next_pair(text))
			row[pair->first] = {pair->second, path, number};
		if (!text.empty())
			return Error{path + ":" + std::to_string(number) + ": \"" + one_line(text, 64) + "\" is no Key=Value"};
		if (row.contains("nodename"))
			add(std::move(row), "nodename", node_default, conf.nodes_);
		else if (row.contains("partitionname"))
			add(std::move(row), "partitionname", partition_default, conf.partitions_);
		else
			for (auto &[key, value] : row)
				conf.values_[key] = std::move(value);
		return {};
	}

	Result<void> include(std::string name, const std::string &path, int number)
	{
		// %c: the cluster's name, slurm.conf(5)
		if (const auto at = name.find("%c"); at != name.npos)
			name.replace(at, 2, conf.get("ClusterName", ""));
		if (!name.starts_with('/'))
			name = conf.path_.substr(0, conf.path_.rfind('/') + 1) + name;
		auto r = file(name);
		return r ? r : Error{path + ":" + std::to_string(number) + ": Include: " + r.error().message};
	}

	static void add(ConfLine row, const std::string &key, ConfLine &defaults, std::vector<ConfLine> &to)
	{
		const bool is_default = conf_key(row[key].value) == "default";
		ConfLine all = defaults;
		for (auto &[k, v] : row)
			all[k] = std::move(v);
		if (is_default)
			defaults = std::move(all);
		else
			to.push_back(std::move(all));
	}
};

Result<SlurmConf> SlurmConf::read(const std::string &path)
{
	SlurmConf conf;
	conf.path_ = path;
	if (auto r = Reader{conf}.file(path); !r)
		return r.error();
	return conf;
}

std::string SlurmConf::default_path()
{
	if (const char *named = std::getenv("SLURM_CONF"); named && *named)
		return named;
	// The last: of a node that got it from slurmctld.
	static constexpr const char *usual[] = {"/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf",
						"/usr/local/etc/slurm.conf", "/run/slurm/conf/slurm.conf"};
	for (const char *path : usual)
		if (::access(path, F_OK) == 0)
			return path;
	return usual[0];
}

const ConfValue *SlurmConf::find(std::string_view key) const
{
	auto it = values_.find(conf_key(key));
	return it == values_.end() ? nullptr : &it->second;
}

std::string SlurmConf::get(std::string_view key, const std::string &otherwise) const
{
	const ConfValue *v = find(key);
	return v ? v->value : otherwise;
}

} // namespace sk8::tools
