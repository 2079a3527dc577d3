// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/saved_nodes.h"

#include <cerrno>
#include <sys/stat.h>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/base/log.h"

namespace sk8::core {

static constexpr std::size_t max_file = 64u << 20, max_nodes = 65536, max_node = 255;
static constexpr Millis between_writes{1'000};

// ---- text ----

std::string saved_nodes_text(const SavedNodes &nodes)
{
	std::string text = Json::object().set("v", Json::integer(1)).dump() + '\n';
	for (const auto &[name, node] : nodes) {
		Json line = Json::object();
		line.set("node", name);
		if (!node.missing.empty())
			line.set("missing", gres_to_json(node.missing));
		text += line.dump() + '\n';
	}
	return text;
}

static bool read_node(const Json &line, SavedNodes &out)
{
	const std::string name(line["node"].str());
	auto missing = gres_from_json(line["missing"]);
	if (name.empty() || name.size() > max_node || !missing || out.size() >= max_nodes)
		return false;
	out[name].missing = std::move(*missing);
	return true;
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

void NodesFile::set_missing(const std::string &node, const GresList &gres)
{
	set(node, &SavedNode::missing, gres);
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
