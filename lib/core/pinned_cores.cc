// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/pinned_cores.h"

#include <utility>

#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/core/indices.h"
#include "lib/core/names.h"
#include "lib/core/node_state.h"

namespace sk8::core {

// All annotations of an object together have 256 KiB (apimachinery, TotalAnnotationSizeLimitB).
static constexpr std::size_t max_text = 262'144, max_uid = 64;
static constexpr std::int64_t max_cpus = 8192; // CONFIG_NR_CPUS

std::string pinned_text(const PinnedPods &pods)
{
	if (pods.empty())
		return "";
	Json out = Json::object();
	for (const auto &[uid, pod] : pods) {
		out.set(uid, Json::object().set("cores", indices_to_json(pod.cores)).set("cpus", Json::integer(pod.cpus)));
	}
	return out.dump();
}

static bool read_pod(const Json &from, PinnedPod &out)
{
	auto cores = indices_from_json(from["cores"], max_cpus, max_cpus);
	const std::int64_t cpus = from["cpus"].integer_or(-1);
	if (!cores || cpus < 0 || cpus > max_cpus)
		return false;
	out.cpus = static_cast<std::uint32_t>(cpus);
	out.cores = std::move(*cores);
	sort_indices(out.cores);
	return true;
}

Result<PinnedPods> parse_pinned(std::string_view text)
{
	PinnedPods out;
	if (text.empty())
		return out;
	const auto json = parse_annotation_json(text, max_text);
	if (!json)
		return json.error();
	bool good = json->is_object();
	json->each_member([&](std::string_view uid, const Json &pod) {
		good = good && uid.size() <= max_uid && read_pod(pod, out[std::string(uid)]);
	});
	if (!good)
		return Error{"is no list of pods with their cores"};
	return out;
}

bool PinnedCores::read(const kube::Node &node)
{
	const std::string text = annotation(node, names::pinned_cores);
	const auto known = nodes_.find(node.meta.name);
	const AgentNews news = agent_news(known == nodes_.end() ? nullptr : &known->second.word, node, text);
	if (news == AgentNews::none)
		return false;
	if (news == AgentNews::gone) {
		nodes_.erase(known);
		return true;
	}
	auto pods = parse_pinned(text);
	if (!pods)
		log_warning("node %s: its annotation %s %s and does not count", node.meta.name.c_str(),
			    std::string(names::pinned_cores).c_str(), pods.error().message.c_str());
	nodes_[node.meta.name] = {{node.meta.uid, text}, pods ? std::move(*pods) : PinnedPods{}};
	return true;
}

const PinnedPod *PinnedCores::find(const std::string &node, const std::string &uid) const
{
	const auto of = nodes_.find(node);
	if (of == nodes_.end())
		return nullptr;
	const auto at = of->second.pods.find(uid);
	return at == of->second.pods.end() ? nullptr : &at->second;
}

} // namespace sk8::core
