// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/saved_nodes.h"

#include <algorithm>
#include <cerrno>
#include <sys/stat.h>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/core/names.h"
#include "lib/core/node_features.h"

namespace sk8::core {

static constexpr std::size_t max_file = 64u << 20, max_nodes = 65536, max_node = 255;
static constexpr Millis between_writes{1'000};

// ---- text ----

static Json list_of(const std::vector<std::string> &words)
{
	Json out = Json::array();
	for (const auto &word : words)
		out.append(Json::string(word));
	return out;
}

std::string saved_nodes_text(const SavedNodes &nodes)
{
	std::string text = Json::object().set("v", Json::integer(1)).dump() + '\n';
	for (const auto &[name, node] : nodes) {
		Json line = Json::object();
		line.set("node", name);
		if (!node.missing.empty())
			line.set("missing", gres_to_json(node.missing));
		if (!node.features.empty())
			line.set("features", list_of(node.features));
		text += line.dump() + '\n';
	}
	return text;
}

// Nothing but what is made of a label or of settings becomes a feature.
static bool is_feature(std::string_view feature)
{
	return feature == names::exclusive_feature || feature == names::shared_feature || label_of(feature).has_value();
}

static bool read_features(const Json &list, std::vector<std::string> &out)
{
	if (list.is_null())
		return true;
	if (!list.is_array() || list.size() > max_features + 2) // and the two of pools
		return false;
	for (std::size_t i = 0; i < list.size(); i++)
		out.emplace_back(list.at(i).str());
	return std::ranges::is_sorted(out) && std::ranges::all_of(out, is_feature);
}

static bool read_node(const Json &line, SavedNodes &out)
{
	const std::string name(line["node"].str());
	auto missing = gres_from_json(line["missing"]);
	if (name.empty() || name.size() > max_node || !missing || out.size() >= max_nodes)
		return false;
	SavedNode &node = out[name];
	node.missing = std::move(*missing);
	return read_features(line["features"], node.features);
}

Result<SavedNodes> parse_saved_nodes(std::string_view text)
{
	SavedNodes out;
	for (std::size_t number = 1; !text.empty(); number++) {
		const std::size_t end = text.find('\n'); // written as a whole: each line has its end
		auto line = Json::parse(text.substr(0, end));
		text.remove_prefix(end == text.npos ? text.size() : end + 1);
		if (!line || end == text.npos || !(number == 1 ? (*line)["v"].integer_or(0) == 1 : read_node(*line, out)))
			return Error{"line " + std::to_string(number) + " is damaged or of a newer version"};
	}
	return out;
}

// ---- file ----

std::string saved_nodes_path(const std::string &state_dir, const std::string &cluster)
{
	return state_dir + "/slurm-k8s." + cluster + ".nodes";
}

Result<SavedNodes> load_saved_nodes(const std::string &path, std::uint32_t slurm_uid)
{
	struct stat status;
	if (lstat(path.c_str(), &status) != 0 && errno == ENOENT)
		return SavedNodes{};
	const auto text = read_file(path, max_file, Trust::state, slurm_uid);
	if (!text)
		return text.error();
	auto nodes = parse_saved_nodes(*text);
	return nodes ? std::move(nodes) : Error{path + ": " + nodes.error().message};
}

template <class T>
void NodesFile::set(const std::string &node, T SavedNode::*what, const T &value)
{
	const auto at = nodes_.find(node);
	if (at == nodes_.end() ? value.empty() || nodes_.size() >= max_nodes : at->second.*what == value)
		return;
	changed_ = true;
	SavedNode &now = nodes_[node];
	now.*what = value;
	if (now == SavedNode{})
		nodes_.erase(node);
}

GresList NodesFile::missing(const std::string &node) const
{
	const auto known = nodes_.find(node);
	return known == nodes_.end() ? GresList{} : known->second.missing;
}

void NodesFile::set_missing(const std::string &node, const GresList &gres)
{
	set(node, &SavedNode::missing, gres);
}

void NodesFile::set_features(const std::string &node, const std::vector<std::string> &features)
{
	set(node, &SavedNode::features, features);
}

// A device that comes and goes fills no disk, and a broken one no log.
void NodesFile::flush()
{
	const Millis now = timer_.now();
	if (!changed_ || now < next_)
		return;
	next_ = now + between_writes;
	const auto written = write_file_atomic(path_, saved_nodes_text(nodes_));
	changed_ = !written;
	if (!written && !failed_)
		log_warning("what is known of nodes cannot be saved: %s; tried again, a start of slurmctld knows what was saved before",
			    written.error().message.c_str());
	failed_ = !written;
}

} // namespace sk8::core
