// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/dra_inventory.h"

#include <algorithm>

#include "lib/base/text.h"
#include "lib/core/gres.h"

namespace sk8::core {

static constexpr std::size_t max_problems = 16; // of one class on one node

const ResourceSettings *find_device_class(const std::vector<ResourceSettings> &settings, std::string_view device_class)
{
	const auto of = std::ranges::find(settings, device_class, &ResourceSettings::device_class);
	return of == settings.end() || device_class.empty() ? nullptr : &*of;
}

DraInventory::DraInventory(std::vector<ResourceSettings> settings) : settings_(std::move(settings)), wanted_(has_device_class(settings_))
{
}

// ---- what the watches tell ----

static std::set<std::string> doubles_of(const std::vector<kube::ResourceSlicePtr> &slices)
{
	std::set<std::string> names, out;
	for (const auto &slice : slices)
		for (const kube::Device &d : slice->devices)
			if (!names.insert(d.name).second)
				out.insert(d.name);
	return out;
}

void DraInventory::complete_again(Pool &pool)
{
	std::int64_t newest = INT64_MIN, wanted = 0;
	for (const auto &[uid, slice] : pool.slices)
		newest = std::max(newest, slice->generation);
	std::vector<kube::ResourceSlicePtr> found;
	for (const auto &[uid, slice] : pool.slices)
		if (slice->generation == newest) {
			found.push_back(slice);
			wanted = std::max(wanted, slice->slices);
		}
	if (!std::cmp_equal(found.size(), wanted) || found == pool.complete)
		return;
	pool.complete.swap(found);
	pool.doubles = doubles_of(pool.complete);
	for (const auto *slices : {&found, &pool.complete})
		for (const auto &slice : *slices)
			node_changed(slice->node);
}

void DraInventory::node_changed(const std::string &node)
{
	version_++;
	known_.erase(node);
	if (!changed_.all)
		changed_.nodes.insert(node);
}

void DraInventory::all_changed()
{
	version_++;
	known_.clear();
	changed_ = {.all = true, .nodes = {}};
}

void DraInventory::keep(const kube::ResourceSlicePtr &slice)
{
	const PoolKey key{slice->driver, slice->pool};
	const auto before = pool_of_.find(slice->meta.uid);
	if (before != pool_of_.end() &&
	    (before->second != key || pools_.at(key).slices.at(slice->meta.uid)->node != slice->node))
		drop(slice);
	Pool &pool = pools_[key];
	pool.slices[slice->meta.uid] = slice;
	pool_of_[slice->meta.uid] = key;
	if (!slice->node.empty())
		pools_on_[slice->node].insert(key);
	node_changed(slice->node);
	complete_again(pool);
}

void DraInventory::drop(const kube::ResourceSlicePtr &slice)
{
	const auto at = pool_of_.find(slice->meta.uid);
	if (at == pool_of_.end())
		return;
	const PoolKey key = at->second;
	pool_of_.erase(at);
	Pool &pool = pools_.at(key);
	auto &slices = pool.slices;
	const std::string node = slices.at(slice->meta.uid)->node;
	slices.erase(slice->meta.uid);
	node_changed(node);
	complete_again(pool);
	const bool elsewhere = std::ranges::none_of(slices, [&](const auto &of) { return of.second->node == node; });
	if (slices.empty())
		pools_.erase(key);
	if (auto on = pools_on_.find(node); elsewhere && on != pools_on_.end()) {
		on->second.erase(key);
		if (on->second.empty())
			pools_on_.erase(on);
	}
}

void DraInventory::slices_replaced(const std::vector<kube::ResourceSlicePtr> &slices)
{
	pools_.clear();
	pool_of_.clear();
	pools_on_.clear();
	for (const auto &slice : slices)
		keep(slice);
	slices_synced_ = true;
	all_changed();
}

void DraInventory::slice_changed(const kube::ResourceSlicePtr &slice)
{
	keep(slice);
}

void DraInventory::slice_removed(const kube::ResourceSlicePtr &last)
{
	drop(last);
}

void DraInventory::keep(const kube::DeviceClassPtr &device_class)
{
	if (!find_device_class(settings_, device_class->meta.name))
		return;
	Class &c = classes_[device_class->meta.name] = {device_class, {}, device_class->problem};
	for (const auto &text : device_class->selectors) {
		auto selector = DeviceSelector::parse(text);
		if (selector)
			c.selectors.push_back(std::move(*selector));
		else if (c.problem.empty())
			c.problem = "its selector is not understood: " + selector.error().message;
	}
}

void DraInventory::classes_replaced(const std::vector<kube::DeviceClassPtr> &classes)
{
	classes_.clear();
	for (const auto &c : classes)
		keep(c);
	classes_synced_ = true;
	all_changed();
}

void DraInventory::class_changed(const kube::DeviceClassPtr &device_class)
{
	keep(device_class);
	all_changed();
}

void DraInventory::class_removed(const kube::DeviceClassPtr &last)
{
	classes_.erase(last->meta.name);
	all_changed();
}

// ---- what follows from it ----

kube::DeviceClassPtr DraInventory::device_class(const std::string &name) const
{
	const auto c = classes_.find(name);
	return c == classes_.end() ? nullptr : c->second.object;
}

std::string DraInventory::gres_of(const std::string &device_class) const
{
	const ResourceSettings *of = find_device_class(settings_, device_class);
	return of ? of->gres : "";
}

std::string DraInventory::class_problem(const std::string &name) const
{
	const auto c = classes_.find(name);
	if (c == classes_.end())
		return "Kubernetes has no device class " + one_line(name, 128);
	return c->second.problem.empty() ? "" : "device class " + one_line(name, 128) + ": " + c->second.problem;
}

// An expression that fails for a device says of it what it says of others': it is no such device.
bool DraInventory::is_of(const Class &c, const std::string &driver, const kube::Device &device) const
{
	return c.problem.empty() && std::ranges::all_of(c.selectors, [&](const DeviceSelector &s) { return s.matches(driver, device).value_or(false); });
}

static std::optional<std::uint16_t> as_index(std::int64_t n)
{
	return n >= 0 && std::cmp_less(n, max_gres_devices) ? std::optional(static_cast<std::uint16_t>(n)) : std::nullopt;
}

static std::optional<std::uint16_t> index_by_attribute(const std::string &driver, const kube::Device &device, const std::string &name)
{
	const auto at = device.attributes.find(kube::full_attribute_name(name, driver));
	const auto *n = at == device.attributes.end() ? nullptr : std::get_if<std::int64_t>(&at->second);
	return n ? as_index(*n) : std::nullopt;
}

static std::optional<std::uint16_t> index_by_name(const std::string &name)
{
	const auto last = name.find_last_not_of("0123456789");
	const auto n = parse_integer(std::string_view(name).substr(last == name.npos ? 0 : last + 1), 0);
	return n ? as_index(*n) : std::nullopt;
}

static std::optional<std::uint16_t> index_of(const std::string &driver, const kube::Device &device, const std::string &attribute)
{
	if (!attribute.empty())
		return index_by_attribute(driver, device, attribute);
	// NVIDIA's own index (until 25.3) is NVML's, by PCI address; minor is its file's number, by which it names the device, too.
	const bool by_address = driver == "gpu.nvidia.com";
	for (const char *known : {by_address ? "minor" : "index", "minor"})
		if (const auto n = index_by_attribute(driver, device, known))
			return n;
	return index_by_name(device.name);
}

static void complain(DraDevices &out, std::string what)
{
	if (out.problems.size() < max_problems)
		out.problems.push_back(std::move(what));
}

// One device may be of several classes.
static bool is_same(const DraDevice &a, const DraDevice &b)
{
	return a.driver == b.driver && a.pool == b.pool && a.device.name == b.device.name;
}

namespace {

struct Claimant {
	const DraDevice *device;
	const std::string *device_class;
};

} // namespace

static std::string text_of(const Claimant &c)
{
	return "device " + one_line(c.device->device.name, 128) + " of " + c.device->driver + " (deviceClass " + one_line(*c.device_class, 128) + ")";
}

static std::string twins_text(const std::string &gres, std::uint16_t index, const std::vector<Claimant> &all)
{
	return "index " + std::to_string(index) + " of " + gres + " is " + text_of(all[0]) + " and " + text_of(all[1]) +
	       (all.size() > 2 ? ", and " + std::to_string(all.size() - 2) + " more" : "") +
	       "; nobody gets them: name the attribute that is Slurm's index under resources in slurm-k8s.yaml";
}

// Which of these is Slurm's nobody knows. All of one GRES on a node, by class.
static void leave_out_twins(const std::string &gres, std::map<std::string, DraDevices> &by_class)
{
	std::map<std::uint16_t, std::vector<Claimant>> of; // by index
	for (const auto &[name, found] : by_class)
		for (const DraDevice &d : found.devices)
			if (auto &all = of[d.index]; std::ranges::none_of(all, [&](const Claimant &c) { return is_same(*c.device, d); }))
				all.push_back({&d, &name});
	std::set<std::uint16_t> twins;
	for (const auto &[index, all] : of)
		if (all.size() > 1) {
			twins.insert(index);
			by_class.at(*all[0].device_class).twins[index] = twins_text(gres, index, all);
		}
	for (auto &[name, found] : by_class)
		for (const DraDevice &d : std::exchange(found.devices, {}))
			if (twins.contains(d.index))
				found.twins.try_emplace(d.index);
			else
				found.devices.push_back(d);
}

DraDevices DraInventory::compute(const std::string &node, const std::string &device_class) const
{
	DraDevices out;
	const auto on = pools_on_.find(node);
	const auto c = classes_.find(device_class);
	const ResourceSettings *settings = find_device_class(settings_, device_class);
	if (on == pools_on_.end() || c == classes_.end() || !settings)
		return out;
	for (const PoolKey &key : on->second) {
		const Pool &pool = pools_.at(key);
		for (const auto &slice : pool.complete) {
			if (slice->node != node)
				continue;
			if (!slice->problem.empty()) {
				complain(out, "resource slice " + slice->meta.name + ": " + slice->problem);
				continue;
			}
			for (const kube::Device &d : slice->devices) {
				if (!is_of(c->second, slice->driver, d))
					continue;
				const auto index = index_of(slice->driver, d, settings->index);
				const std::string name = "device " + one_line(d.name, 128) + " of " + slice->driver;
				if (!d.odd.empty())
					complain(out, name + " is left out: " + d.odd);
				else if (pool.doubles.contains(d.name))
					complain(out, name + " is left out: more than one of pool " + one_line(slice->pool, 128) + " has that name");
				else if (!index)
					complain(out, name + " is left out: it has no index in Slurm; name the attribute under resources in slurm-k8s.yaml");
				else
					out.devices.push_back({slice->driver, slice->pool, d, *index});
			}
		}
	}
	std::ranges::sort(out.devices, {}, &DraDevice::index);
	return out;
}

const DraDevices &DraInventory::find(const std::string &node, const std::string &device_class) const
{
	auto &known = known_[node];
	if (const auto it = known.find(device_class); it != known.end())
		return it->second;
	const std::string gres = gres_of(device_class);
	std::map<std::string, DraDevices> by_class;
	by_class[device_class] = compute(node, device_class);
	for (const ResourceSettings &r : settings_)
		if (!r.device_class.empty() && r.gres == gres && !by_class.contains(r.device_class))
			by_class[r.device_class] = compute(node, r.device_class);
	leave_out_twins(gres, by_class);
	known.merge(by_class);
	return known.at(device_class);
}

DraInventory::Place DraInventory::place_of(const std::string &node, const std::string &driver, const std::string &pool,
					   const std::string &device) const
{
	for (const ResourceSettings &r : settings_)
		if (!r.device_class.empty())
			for (const DraDevice &d : find(node, r.device_class).devices)
				if (d.driver == driver && d.pool == pool && d.device.name == device)
					return {node, r.gres, r.type, d.index};
	return {node, "", "", 0};
}

std::optional<DraInventory::Place> DraInventory::place(const std::string &driver, const std::string &pool, const std::string &device) const
{
	const auto of = pools_.find({driver, pool});
	if (of == pools_.end())
		return std::nullopt;
	for (const auto &slice : of->second.complete)
		if (std::ranges::find(slice->devices, device, &kube::Device::name) != slice->devices.end())
			return place_of(slice->node, driver, pool, device);
	return std::nullopt;
}

} // namespace sk8::core
