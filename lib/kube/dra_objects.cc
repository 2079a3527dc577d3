// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/kube/dra_objects.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "lib/base/quantity.h"
#include "lib/kube/decode.h"

namespace sk8::kube {

namespace {

constexpr std::size_t max_driver = 63;
constexpr std::size_t max_qualified = 63 + 1 + 32; // domain/name
constexpr std::size_t max_value = 64;

// ---- what drivers have ----

std::optional<AttributeValue> decode_attribute(const Json &from)
{
	if (from["int"].is_integer())
		return from["int"].integer_or(0);
	if (from["bool"].is_boolean())
		return from["bool"].boolean_or(false);
	const bool version = from["version"].is_string();
	const Json text = version ? from["version"] : from["string"];
	if (!text.is_string() || text.str().size() > max_value)
		return std::nullopt;
	if (version)
		return Version{std::string(text.str())};
	return std::string(text.str());
}

void decode_properties(const Json &from, const std::string &driver, Device &out, std::string &problem)
{
	if (!countable(from["attributes"], max_device_attributes, "attributes of a device", problem) ||
	    !countable(from["capacity"], max_device_attributes, "capacities of a device", problem))
		return;
	from["attributes"].each_member([&](std::string_view name, const Json &value) {
		if (auto decoded = decode_attribute(value); decoded && name.size() <= max_qualified)
			out.attributes.emplace(full_attribute_name(name, driver), std::move(*decoded));
	});
	from["capacity"].each_member([&](std::string_view name, const Json &value) {
		if (auto milli = parse_milli(value["value"].str()); milli && name.size() <= max_qualified)
			out.capacity.emplace(full_attribute_name(name, driver), *milli);
	});
}

// Slurm counts whole devices that are always there.
std::string oddity(const Json &device)
{
	if (device["consumesCounters"].size() > 0)
		return "it is a part of a device";
	if (device["allowMultipleAllocations"].boolean_or(false))
		return "several claims may have it at once";
	if (device["bindingConditions"].size() > 0)
		return "it is only there some time after it was allocated (bindingConditions)";
	if (!device["nodeName"].str().empty() || device["nodeSelector"].is_object() || device["allNodes"].boolean_or(false))
		return "it says itself which nodes have it";
	return "";
}

bool is_tainted(const Json &device)
{
	bool out = false;
	device["taints"].each_item([&](const Json &t) { out |= t["effect"].str() != "None"; });
	return out;
}

// ---- what pods want ----

void decode_selectors(const Json &list, std::vector<std::string> &out, std::string &problem)
{
	if (!countable(list, max_selectors, "selectors of devices", problem))
		return;
	list.each_item([&](const Json &s) {
		if (!s["cel"]["expression"].is_string())
			complain(problem, "a selector of devices is no CEL expression, and others are not known");
		out.push_back(word(s["cel"]["expression"], max_selector_bytes, "a selector of devices", problem));
	});
}

DeviceRequest decode_request(const Json &from, std::string &problem)
{
	DeviceRequest out;
	const Json exactly = from["exactly"];
	out.name = word(from["name"], max_name, "the name of a request for devices", problem);
	out.device_class = word(exactly["deviceClassName"], max_name, "a device class", problem);
	decode_selectors(exactly["selectors"], out.selectors, problem);
	out.count = exactly["count"].is_integer() ? exactly["count"].integer_or(0) : 1;
	const std::string_view mode = exactly["allocationMode"].str();
	if (!exactly.is_object())
		out.odd = "it leaves a choice (firstAvailable)";
	else if (exactly["adminAccess"].boolean_or(false))
		out.odd = "it wants devices that others have (adminAccess)";
	else if (exactly["capacity"].is_object())
		out.odd = "it wants a part of a device (capacity)";
	else if (!mode.empty() && mode != "ExactCount")
		out.odd = "it wants no exact number of devices (allocationMode)";
	else if (out.count < 1 || out.count > static_cast<std::int64_t>(max_claim_requests))
		out.odd = "its count is no number from 1 to " + std::to_string(max_claim_requests);
	return out;
}

void decode_constraints(const Json &list, ResourceClaim &out)
{
	if (!countable(list, max_listed, "constraints of devices", out.problem))
		return;
	list.each_item([&](const Json &c) {
		if (!c["matchAttribute"].is_string())
			return complain(out.problem, "it has a constraint other than matchAttribute, which is not supported");
		out.matching.push_back(word(c["matchAttribute"], max_qualified, "an attribute to match", out.problem));
	});
}

void decode_allocation(const Json &status, ResourceClaim &out)
{
	out.allocated = status["allocation"].is_object();
	const Json results = status["allocation"]["devices"]["results"];
	if (countable(results, max_claim_requests, "allocated devices", out.problem))
		results.each_item([&](const Json &r) {
			out.devices.push_back({word(r["request"], max_name, "a request", out.problem),
					       word(r["driver"], max_driver, "a driver", out.problem),
					       word(r["pool"], max_name, "a pool", out.problem),
					       word(r["device"], max_name, "a device", out.problem),
					       r["adminAccess"].boolean_or(false) || r["shareID"].is_string()});
		});
	if (countable(status["reservedFor"], max_claim_consumers, "consumers", out.problem))
		status["reservedFor"].each_item([&](const Json &c) {
			if (c["resource"].str() == "pods" && c["apiGroup"].str().empty())
				out.reserved_for.push_back(word(c["uid"], max_name, "a consumer's uid", out.problem));
			else
				out.reserved_for_other = true;
		});
	out.consumers = status["reservedFor"];
}

} // namespace

std::string full_attribute_name(std::string_view name, const std::string &driver)
{
	return name.find('/') == name.npos ? driver + "/" + std::string(name) : std::string(name);
}

bool has_claim(const std::vector<PodResourceClaim> &claims, const std::string &claim)
{
	return std::ranges::find(claims, claim, &PodResourceClaim::claim) != claims.end();
}

// Of an object of which only the name could be read nothing else is known: not that there is nothing.
static Json spec_of(const Json &object, std::string &problem)
{
	Json spec = object["spec"];
	if (!spec.is_object())
		complain(problem, "it has no spec");
	return spec;
}

Result<ResourceSlicePtr> decode_resource_slice(const Json &object)
{
	auto out = std::make_shared<ResourceSlice>();
	Result<Meta> meta = decode_meta(object, "ResourceSlice", out->problem);
	if (!meta)
		return meta.error();
	out->meta = std::move(*meta);
	const Json spec = spec_of(object, out->problem);
	out->driver = word(spec["driver"], max_driver, "its driver", out->problem);
	out->pool = word(spec["pool"]["name"], max_name, "its pool", out->problem);
	out->generation = spec["pool"]["generation"].integer_or(0);
	out->slices = spec["pool"]["resourceSliceCount"].integer_or(0);
	out->node = word(spec["nodeName"], max_name, "its node", out->problem);
	if (out->driver.empty() || out->pool.empty())
		complain(out->problem, "it names no driver or no pool");
	if (!countable(spec["devices"], max_slice_devices, "devices", out->problem))
		return ResourceSlicePtr(std::move(out));
	spec["devices"].each_item([&](const Json &d) {
		Device &device = out->devices.emplace_back();
		device.name = word(d["name"], max_name, "a device's name", out->problem);
		if (device.name.empty())
			complain(out->problem, "one of its devices has no name");
		decode_properties(d, out->driver, device, out->problem);
		device.tainted = is_tainted(d);
		device.odd = oddity(d);
	});
	return ResourceSlicePtr(std::move(out));
}

Result<ResourceClaimPtr> decode_resource_claim(const Json &object)
{
	auto out = std::make_shared<ResourceClaim>();
	Result<Meta> meta = decode_meta(object, "ResourceClaim", out->problem);
	if (!meta)
		return meta.error();
	out->meta = std::move(*meta);
	const Json devices = spec_of(object, out->problem)["devices"];
	if (countable(devices["requests"], max_claim_requests, "requests for devices", out->problem))
		devices["requests"].each_item(
			[&](const Json &r) { out->requests.push_back(decode_request(r, out->problem)); });
	decode_constraints(devices["constraints"], *out);
	out->config = devices["config"];
	decode_allocation(object["status"], *out);
	return ResourceClaimPtr(std::move(out));
}

Result<DeviceClassPtr> decode_device_class(const Json &object)
{
	auto out = std::make_shared<DeviceClass>();
	Result<Meta> meta = decode_meta(object, "DeviceClass", out->problem);
	if (!meta)
		return meta.error();
	out->meta = std::move(*meta);
	const Json spec = spec_of(object, out->problem);
	decode_selectors(spec["selectors"], out->selectors, out->problem);
	out->config = spec["config"];
	return DeviceClassPtr(std::move(out));
}

} // namespace sk8::kube
