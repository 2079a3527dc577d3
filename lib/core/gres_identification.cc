// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/gres_identification.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "lib/base/quantity.h"
#include "lib/base/text.h"

namespace sk8::core {

static constexpr std::size_t max_identified = max_gres;
static constexpr std::size_t max_problems = 16;

// ---- what one resource is ----

using Missing = ResourceSettings::Missing;

namespace {

struct Known {
	std::string name, type;
	std::int64_t unit = 1; // of the quantity: one of the GRES
	Missing missing = Missing::mask;
};

} // namespace

// A product's name as a type: "NVIDIA A100" and "NVIDIA-A100" are words for people. What Slurm would take for a
// separator becomes '_'.
static std::string type_of(const std::string &product)
{
	std::string out;
	for (char c : product.substr(0, 64)) {
		const bool upper = c >= 'A' && c <= 'Z';
		const std::string small(1, upper ? static_cast<char>(c - 'A' + 'a') : c);
		out += bad_gres_word(small).empty() ? small : "_";
	}
	return out;
}

static std::string type_of_label(const std::map<std::string, std::string> &labels, const std::string &key)
{
	const auto label = labels.find(key);
	return label == labels.end() ? std::string() : type_of(label->second);
}

static Known known_by(const ResourceSettings &r, const std::map<std::string, std::string> &labels)
{
	const std::string type = r.type_label.empty() ? "" : type_of_label(labels, r.type_label);
	return {r.gres, type.empty() ? r.type : type, 1, r.missing};
}

static std::optional<Known> known_by_settings(const std::string &resource, const std::map<std::string, std::string> &labels,
					      const std::vector<ResourceSettings> &settings)
{
	const auto of = std::ranges::find(settings, resource, &ResourceSettings::kubernetes);
	return of == settings.end() ? std::nullopt : std::optional(known_by(*of, labels));
}

static std::optional<Known> known_by_itself(std::string_view resource, const std::map<std::string, std::string> &labels)
{
	const auto after = [&](std::string_view prefix) {
		return resource.starts_with(prefix) && resource.size() > prefix.size()
			       ? std::optional(std::string(resource.substr(prefix.size())))
			       : std::nullopt;
	};
	if (resource == "nvidia.com/gpu")
		return Known{"gpu", type_of_label(labels, "nvidia.com/gpu.product")};
	if (resource == "amd.com/gpu")
		return Known{"gpu", type_of_label(labels, "amd.com/gpu.product-name")};
	if (resource == "gpu.intel.com/i915" || resource == "gpu.intel.com/xe")
		return Known{"gpu", *after("gpu.intel.com/")};
	if (auto profile = after("nvidia.com/mig-"))
		return Known{"gpu", *profile};
	if (auto device = after("rdma/"))
		return Known{"rdma", *device};
	if (auto size = after("hugepages-")) {
		const auto bytes = parse_whole(*size);
		return Known{"hugepages", *size, bytes && *bytes > 0 ? *bytes : 0};
	}
	return std::nullopt;
}

// ---- a node ----

std::map<std::string, std::int64_t> node_devices(const kube::Node &node)
{
	auto out = node.allocatable.extended;
	for (const auto &[resource, count] : node.capacity)
		out.emplace(resource, 0);
	return out;
}

static void complain(NodeGres &out, const std::string &resource, const std::string &what)
{
	if (out.problems.size() < max_problems)
		out.problems.push_back(one_line(resource, 320) + " " + what);
}

static std::string words(const std::string &name, const std::string &type)
{
	return name + (type.empty() ? "" : ":" + type);
}

static void sort_by_name(NodeGres &out)
{
	std::ranges::sort(out.gres, [](const auto &a, const auto &b) { return std::tie(a.name, a.type) < std::tie(b.name, b.type); });
}

// A job's pod requests one of two resources that settings call the same, if the node has both (extended_of()).
static void compare(NodeGres &out, const std::map<std::string, std::int64_t> &allocatable, const std::map<std::string, std::string> &labels,
		    const std::vector<ResourceSettings> &settings)
{
	const auto all = with_own(settings);
	const auto own = all.begin() + std::ssize(settings); // what settings do not name
	const auto is_there = [&](const ResourceSettings &r) {
		const auto has = allocatable.find(r.kubernetes);
		return has != allocatable.end() && has->second > 0;
	};
	const auto is_said = [&](const ResourceSettings &a, const ResourceSettings &b) { // by add()
		const auto first = known_by_itself(a.kubernetes, labels), second = known_by_itself(b.kubernetes, labels);
		return first && second && first->type == second->type;
	};
	for (auto b = all.begin(); b != all.end(); ++b)
		for (auto a = all.begin(); a != b && is_there(*b); ++a)
			if (a->gres == b->gres && a->type == b->type && is_there(*a) && (a < own || !is_said(*a, *b)))
				complain(out, b->kubernetes, "is " + words(b->gres, b->type) + (b < own ? " by resources in slurm-k8s.yaml" : "") + " as " +
					 a->kubernetes + ", and pods of Slurm's own jobs request that one alone; give it a GRES or a type of its own" +
					 (b < own ? "" : " under resources in slurm-k8s.yaml"));
}

static void add(NodeGres &out, const std::string &resource, const Known &known, std::uint64_t count, bool said)
{
	const auto same = std::ranges::find_if(out.gres, [&](const auto &g) { return g.name == known.name && g.type == known.type; });
	if (same == out.gres.end()) {
		if (out.gres.size() < max_identified)
			out.gres.push_back({resource, known.name, known.type, count, known.missing});
		else
			complain(out, resource, "is left out: a node has at most " + std::to_string(max_identified) + " GRES");
		return;
	}
	if (!said)
		complain(out, resource, "is counted together with " + same->kubernetes + ", both are " + words(known.name, known.type) +
						"; give it a GRES or a type of its own under resources in slurm-k8s.yaml");
	same->count += count;
	same->missing = std::max(same->missing, known.missing);
	same->kubernetes += ", " + resource;
}

NodeGres identify_gres(const std::map<std::string, std::int64_t> &allocatable, const std::map<std::string, std::string> &labels,
		       const std::vector<ResourceSettings> &settings)
{
	NodeGres out;
	for (const auto &[resource, quantity] : allocatable) {
		const auto said = known_by_settings(resource, labels, settings);
		const auto known = said ? said : known_by_itself(resource, labels);
		if (!known || (known->name == "hugepages" && !said && quantity == 0)) // every node says 0 of each size
			continue;
		if (!bad_gres_word(known->name).empty() || !bad_gres_word(known->type).empty() || known->unit <= 0)
			complain(out, resource, "is left out: it makes no name of a GRES; give it one under resources in slurm-k8s.yaml");
		else if (quantity < 0 || quantity / known->unit > max_gres_count)
			complain(out, resource, "is left out: " + std::to_string(quantity / known->unit) + " is no number of devices, there are 0 to " +
							std::to_string(max_gres_count));
		else
			add(out, resource, *known, static_cast<std::uint64_t>(quantity / known->unit), said.has_value());
	}
	for (const ResourceSettings &r : settings)
		if (r.missing == Missing::all && !r.kubernetes.empty() && !allocatable.contains(r.kubernetes))
			add(out, r.kubernetes, known_by(r, labels), 0, true);
	compare(out, allocatable, labels, settings);
	sort_by_name(out);
	return out;
}

// ---- of drivers ----

static std::string text_of(const kube::AttributeValue &value)
{
	if (const auto *n = std::get_if<std::int64_t>(&value))
		return std::to_string(*n);
	const auto *text = std::get_if<std::string>(&value);
	return text ? one_line(*text, 64) : "";
}

// The first of these that the driver says; names without a domain are its own, and those of Kubernetes.
static std::string find_attribute(const DraDevice &d, std::initializer_list<std::string_view> names)
{
	for (const auto name : names)
		for (const std::string &domain : {d.driver + "/", std::string("resource.kubernetes.io/"), std::string()})
			if (const auto at = d.device.attributes.find(domain + std::string(name)); at != d.device.attributes.end())
				return text_of(at->second);
	return {};
}

static std::string type_of_device(const DraDevice &d, const ResourceSettings &r)
{
	const std::string type = r.type_attribute.empty() ? "" : type_of(find_attribute(d, {r.type_attribute}));
	return type.empty() ? r.type : type;
}

static IdentifiedDevice identify_device(const DraDevice &d)
{
	return {d.index, one_line(d.device.name, 128), find_attribute(d, {"uuid", "UUID"}),
		find_attribute(d, {"pciBusID", "pcieBusID", "pciAddress", "pciBusId", "pciAddr"}),
		find_attribute(d, {"numaNode", "numaNodeID", "numa"}), !d.device.tainted, find_attribute(d, {"pcieRoot"})};
}

// Where a device's index (dra_inventory.h) is the number of its file.
static constexpr struct {
	const char *device_class, *file;
} known_files[] = {
	{"gpu.nvidia.com", "/dev/nvidia%d"}, // gpu-3 is the one with minor number 3
};

std::string device_file_of(const ResourceSettings &device_class)
{
	if (!device_class.file.empty())
		return device_class.file == no_device_file ? "" : device_class.file;
	for (const auto &known : known_files)
		if (device_class.device_class == known.device_class && device_class.index.empty())
			return known.file;
	return "";
}

static std::string class_words(const ResourceSettings &r)
{
	return "deviceClass " + one_line(r.device_class, 128);
}

void add_odd_indices(NodeGres &out, const std::vector<std::string> &sentences)
{
	for (const auto &text : sentences)
		if (out.odd_indices.size() < max_problems) {
			out.odd_indices.push_back(text);
			out.problems.push_back(text);
		}
}

void add_driver_gres(NodeGres &out, const std::string &node, const DraInventory &inventory, const std::vector<ResourceSettings> &settings)
{
	for (const ResourceSettings &r : settings) {
		if (r.device_class.empty())
			continue;
		const DraDevices &found = inventory.find(node, r.device_class);
		for (const auto &p : found.problems)
			complain(out, "deviceClass " + r.device_class + ":", p);
		for (const auto &[index, text] : found.twins) {
			out.twins[r.gres].insert(index);
			if (!text.empty())
				add_odd_indices(out, {text});
		}
		std::map<std::string, IdentifiedGres> by_type;
		for (const DraDevice &d : found.devices) {
			const std::string type = type_of_device(d, r);
			IdentifiedGres &g = by_type.try_emplace(type, IdentifiedGres{class_words(r), r.gres, type, 0, r.missing, true}).first->second;
			g.devices.push_back(identify_device(d));
			g.count += g.devices.back().well;
		}
		if (by_type.empty() && !found.twins.empty()) // it is there
			by_type.try_emplace(r.type, IdentifiedGres{class_words(r), r.gres, r.type, 0, r.missing, true});
		const bool others = std::ranges::any_of(out.gres, [&](const auto &g) { return g.name == r.gres; });
		if (by_type.empty() && !others && r.missing == Missing::all && inventory.synced())
			by_type.try_emplace(r.type, IdentifiedGres{class_words(r), r.gres, r.type, 0, r.missing, true});
		for (auto &[type, g] : by_type)
			if (out.gres.size() < max_identified) {
				g.file = device_file_of(r);
				out.gres.push_back(std::move(g));
			}
	}
	sort_by_name(out);
}

// ---- the cores that they are near ----

// What its driver says of it, else what the agent says of its root.
static std::optional<std::uint16_t> numa_node_of(const IdentifiedDevice &d, const NumaCores &numa)
{
	if (const auto said = parse_integer(d.numa, 0, max_numa_nodes - 1))
		return static_cast<std::uint16_t>(*said);
	const auto root = numa.roots.find(d.root);
	return root == numa.roots.end() ? std::nullopt : std::optional(root->second);
}

static void add_cores(IdentifiedDevice &d, const NumaCores &numa, std::uint32_t cores_per_socket)
{
	const auto node = numa_node_of(d, numa);
	const auto near = node ? numa.cores.find(*node) : numa.cores.end();
	if (near == numa.cores.end())
		return;
	d.numa = std::to_string(*node);
	d.cores = near->second;
	// CPUs= alone in slurm.conf makes each CPU a socket, and slurmd, whose sockets are the machine's, will have whole ones.
	if (cores_per_socket > 1)
		d.socket_cores = whole_sockets(d.cores, cores_per_socket);
}

void add_cores(NodeGres &out, const NumaCores &numa, std::uint32_t sockets, std::uint32_t cores_per_socket)
{
	if (numa.core_count() != std::uint64_t{sockets} * cores_per_socket) // which of Slurm's are which nobody knows then
		return;
	for (IdentifiedGres &g : out.gres)
		for (IdentifiedDevice &d : g.devices)
			add_cores(d, numa, cores_per_socket);
}

// ---- both sides ----

static bool has_type(const GresList &slurm, const std::string &name, const std::string &type)
{
	return !type.empty() && std::ranges::any_of(slurm, [&](const Gres &g) { return g.name == name && g.type == type; });
}

std::vector<GresDifference> gres_differences(const NodeGres &node, const GresList &slurm)
{
	std::vector<GresDifference> out;
	std::set<std::pair<std::string, std::string>> typed;
	auto compare = [&](GresDifference d) {
		if (d.wanted != d.has)
			out.push_back(std::move(d));
	};
	for (const auto &g : node.gres)
		if (has_type(slurm, g.name, g.type)) {
			typed.emplace(g.name, g.type);
			compare({g.kubernetes, g.name, g.type, g.count, count_of(slurm, g.name, g.type), g.missing});
		}
	std::map<std::string, GresDifference> rest; // by name
	for (const auto &g : node.gres)
		if (!typed.contains({g.name, g.type})) {
			GresDifference &d = rest[g.name];
			d.kubernetes += (d.kubernetes.empty() ? "" : ", ") + g.kubernetes;
			d.wanted += g.count;
			d.missing = std::max(d.missing, g.missing);
			d.name = g.name;
		}
	for (auto &[name, d] : rest) {
		for (const Gres &g : slurm)
			if (g.name == name && !typed.contains({g.name, g.type}))
				d.has += g.count;
		compare(std::move(d));
	}
	return out;
}

// Those of this name that Slurm has, and no driver, or none that is well.
static std::vector<std::uint16_t> absent_devices(const NodeGres &node, const GresList &slurm, const std::string &name)
{
	std::uint64_t has = 0;
	for (const Gres &g : slurm)
		has += g.name == name ? g.count : 0;
	std::set<std::uint16_t> well;
	for (const auto &g : node.gres)
		for (const IdentifiedDevice &d : g.devices)
			if (g.name == name && d.well)
				well.insert(d.index);
	std::vector<std::uint16_t> out;
	for (std::uint64_t i = 0; i < std::min<std::uint64_t>(has, max_gres_devices); i++)
		if (const auto index = static_cast<std::uint16_t>(i); !well.contains(index))
			out.push_back(index);
	return out;
}

static std::vector<std::uint16_t> among_slurms(const GresList &slurm, const std::string &name, const std::set<std::uint16_t> &indices)
{
	std::uint64_t has = 0;
	for (const Gres &g : slurm)
		has += g.name == name ? g.count : 0;
	std::vector<std::uint16_t> out;
	std::ranges::copy_if(indices, std::back_inserter(out), [has](std::uint16_t i) { return i < has; });
	return out;
}

GresList missing_gres(const NodeGres &node, const GresList &slurm)
{
	GresList out;
	std::set<std::string> by_index;
	for (const auto &g : node.gres)
		if (g.by_driver && g.missing != Missing::ignore && by_index.insert(g.name).second)
			if (auto absent = absent_devices(node, slurm, g.name); !absent.empty())
				out.push_back({g.name, "", absent.size(), std::move(absent)});
	for (const auto &[name, indices] : node.twins)
		if (auto absent = among_slurms(slurm, name, indices); !absent.empty() && !by_index.contains(name))
			out.push_back({name, "", absent.size(), std::move(absent)});
	for (const auto &d : gres_differences(node, slurm))
		if (d.has > d.wanted && d.missing != Missing::ignore && !by_index.contains(d.name))
			out.push_back({d.name, d.type, d.has - d.wanted, {}});
	return merged(std::move(out));
}

GresList missing_as_before(GresList missing, const GresList &before, const std::vector<ResourceSettings> &settings)
{
	const auto of_driver = [&](const Gres &g) {
		return std::ranges::any_of(settings, [&](const auto &r) { return !r.device_class.empty() && r.gres == g.name; });
	};
	std::erase_if(missing, of_driver);
	std::ranges::copy_if(before, std::back_inserter(missing), of_driver);
	return missing;
}

} // namespace sk8::core
