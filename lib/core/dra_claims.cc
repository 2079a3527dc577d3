// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/dra_claims.h"

#include <algorithm>
#include <optional>
#include <set>

#include "lib/base/text.h"

namespace sk8::core {

// k8s.io/api/resource/v1, Finalizer: kube-controller-manager takes it off when nobody has the devices any more.
static constexpr auto finalizer = "resource.kubernetes.io/delete-protection";

// ---- to Slurm ----

std::string claim_text(const std::string &name)
{
	return "resource claim " + one_line(name, 128);
}

Result<GresList> gres_of_claims(const Claims &claims, const std::vector<ResourceSettings> &settings)
{
	GresList out;
	for (const auto &claim : claims) {
		if (!claim->problem.empty())
			return Error{claim_text(claim->meta.name) + ": " + claim->problem};
		for (const kube::DeviceRequest &r : claim->requests) {
			const std::string request = claim_text(claim->meta.name) + ", request " + one_line(r.name, 64) + ": ";
			if (!r.odd.empty())
				return Error{request + r.odd + ", which is not supported"};
			const ResourceSettings *of = find_device_class(settings, r.device_class);
			if (!of)
				return Error{request + "which GRES of Slurm device class " + one_line(r.device_class, 128) +
					     " is clusters[].resources in slurm-k8s.yaml does not say"};
			out.push_back({of->gres, of->type, static_cast<std::uint64_t>(r.count), {}});
		}
	}
	return merged(std::move(out));
}

// ---- where ----

using Selectors = std::vector<DeviceSelector>;

static Result<Selectors> parse_selectors(const kube::DeviceRequest &r)
{
	Selectors out;
	for (const auto &text : r.selectors) {
		auto selector = DeviceSelector::parse(text);
		if (!selector)
			return Error{"its selector is not understood: " + selector.error().message};
		out.push_back(std::move(*selector));
	}
	return out;
}

// Together, of one pod: Kubernetes lets a pod have some thousands of 10 KiB.
static constexpr std::size_t most_selector_text = 256 << 10;
// What they cost together: at the beginning, and more for each device that is looked at.
static constexpr std::size_t first_allowance = 256 << 10, allowance_per_device = 1024;

// Empty, or what is wrong with this device for this request.
static std::string device_objection(const kube::DeviceRequest &r, const Selectors &selectors, const DraDevice &d, std::size_t &allowance)
{
	if (d.device.tainted)
		return "a device of class " + one_line(r.device_class, 64) + " there is tainted";
	allowance += allowance_per_device;
	for (const DeviceSelector &selector : selectors) {
		const auto matches = selector.matches(d.driver, d.device, allowance);
		if (!matches)
			return "its selector fails: " + matches.error().message;
		if (!*matches)
			return "not all devices of class " + one_line(r.device_class, 64) + " there are as its selector wants";
	}
	return "";
}

static const kube::AttributeValue *attribute(const DraDevice &d, const std::string &name)
{
	const auto at = d.device.attributes.find(name);
	return at == d.device.attributes.end() ? nullptr : &at->second;
}

static std::string matching_objection(const kube::ResourceClaim &claim, const std::vector<const DraDevice *> &devices)
{
	for (const auto &name : claim.matching)
		for (const DraDevice *d : devices) {
			const auto *first = attribute(*devices.front(), name), *value = attribute(*d, name);
			if (!first || !value || *first != *value)
				return "not all of its devices have the same " + one_line(name, 96);
		}
	return "";
}

ClaimPlaces::ClaimPlaces(const Claims &claims) : claims_(claims), allowance_(first_allowance)
{
	std::size_t text = 0;
	for (const auto &claim : claims)
		for (const kube::DeviceRequest &r : claim->requests)
			for (const auto &selector : r.selectors)
				text += selector.size();
	if (text > most_selector_text)
		problem_ = "its selectors are longer than " + std::to_string(most_selector_text >> 10) + " KiB together";
	for (const auto &claim : claims) {
		auto &of_claim = selectors_.emplace_back();
		for (const kube::DeviceRequest &r : claim->requests) {
			if (!problem_.empty())
				return;
			auto selectors = parse_selectors(r);
			if (!selectors)
				problem_ = selectors.error().message;
			else
				of_claim.push_back(std::move(*selectors));
		}
	}
}

std::string ClaimPlaces::objection(std::size_t claim, const std::string &node, const DraInventory &inventory)
{
	std::vector<const DraDevice *> of_claim;
	for (std::size_t i = 0; i < claims_[claim]->requests.size(); i++) {
		const kube::DeviceRequest &r = claims_[claim]->requests[i];
		const auto &devices = inventory.find(node, r.device_class).devices;
		if (std::cmp_less(devices.size(), r.count))
			return "too few devices of class " + one_line(r.device_class, 64);
		for (const DraDevice &d : devices) {
			if (std::string why = device_objection(r, selectors_[claim][i], d, allowance_); !why.empty())
				return why;
			of_claim.push_back(&d);
		}
	}
	return of_claim.empty() ? "" : matching_objection(*claims_[claim], of_claim);
}

std::string ClaimPlaces::objection(const std::string &node, const DraInventory &inventory)
{
	std::string why = problem_;
	for (std::size_t i = 0; why.empty() && i < claims_.size(); i++)
		why = objection(i, node, inventory);
	return why;
}

std::string wishes_text(const Claims &claims)
{
	std::string out;
	for (const auto &claim : claims) {
		for (const kube::DeviceRequest &r : claim->requests) {
			out += r.device_class + '\x01' + std::to_string(r.count);
			for (const auto &text : r.selectors)
				out += '\x02' + text;
			out += '\x03';
		}
		for (const auto &name : claim->matching)
			out += '\x04' + name;
		out += '\x05';
	}
	return out;
}

// ---- which ----

namespace {

// One device that a request wants.
struct Want {
	std::size_t claim;
	const kube::DeviceRequest *request;
	std::vector<const DraDevice *> can; // of the job's
};

// Pairs wants with devices: the way of Kuhn, for some dozens of each.
class Pairing {
public:
	explicit Pairing(const std::vector<Want> &wants) : wants_(wants), has_(wants.size()) {}

	bool complete()
	{
		for (std::size_t i = 0; i < wants_.size(); i++) {
			asked_.clear();
			if (!give(i))
				return false;
		}
		return true;
	}
	const DraDevice *of(std::size_t want) const { return has_[want]; }

private:
	// The first that nobody has, or one whose owner can have another.
	bool give(std::size_t want)
	{
		for (const bool taken : {false, true})
			for (const DraDevice *d : wants_[want].can) {
				const auto other = std::ranges::find_if(has_, [&](const DraDevice *x) { return x && x->index == d->index; });
				if ((other != has_.end()) != taken || !asked_.insert(d->index).second)
					continue;
				if (taken && !give(static_cast<std::size_t>(other - has_.begin())))
					continue;
				has_[want] = d;
				return true;
			}
		return false;
	}

	const std::vector<Want> &wants_;
	std::vector<const DraDevice *> has_;
	std::set<std::uint16_t> asked_;
};

} // namespace

static std::optional<std::string> add_wants(std::vector<Want> &wants, const Claims &claims, const GresList &job, const std::string &node,
					    const DraInventory &inventory, const std::string &gres)
{
	const auto has = devices_named(job, gres);
	std::size_t allowance = first_allowance;
	for (std::size_t i = 0; i < claims.size(); i++)
		for (const kube::DeviceRequest &r : claims[i]->requests) {
			if (inventory.gres_of(r.device_class) != gres)
				continue;
			Want want{i, &r, {}};
			const auto selectors = parse_selectors(r);
			if (!selectors)
				return selectors.error().message;
			for (const DraDevice &d : inventory.find(node, r.device_class).devices)
				if (std::ranges::binary_search(has, d.index) && device_objection(r, *selectors, d, allowance).empty())
					want.can.push_back(&d);
			wants.insert(wants.end(), static_cast<std::size_t>(r.count), want);
		}
	return std::cmp_equal(wants.size(), has.size())
		       ? std::nullopt
		       : std::optional(strprintf("the claims want %zu devices, and the job has %s(%s)", wants.size(), gres.c_str(),
						 index_list(has).c_str()));
}

Result<std::vector<ClaimDevices>> share_out(const Claims &claims, const GresList &job, const std::string &node, const DraInventory &inventory)
{
	std::vector<ClaimDevices> out;
	std::set<std::string> names;
	std::map<std::size_t, std::vector<const DraDevice *>> given; // by claim
	for (const auto &claim : claims) {
		out.push_back({claim, {}});
		for (const kube::DeviceRequest &r : claim->requests)
			names.insert(inventory.gres_of(r.device_class));
	}
	for (const auto &gres : names) {
		std::vector<Want> wants;
		if (auto why = add_wants(wants, claims, job, node, inventory, gres))
			return Error{*why};
		Pairing pairing(wants);
		if (!pairing.complete())
			return Error{"the drivers of node " + node + " have other devices than Slurm's " + gres + "(" +
				     index_list(devices_named(job, gres)) + ")"};
		for (std::size_t i = 0; i < wants.size(); i++) {
			const DraDevice *d = pairing.of(i);
			given[wants[i].claim].push_back(d);
			out[wants[i].claim].devices.push_back({wants[i].request->name, d->driver, d->pool, d->device.name});
		}
	}
	for (const auto &[claim, devices] : given)
		if (std::string why = matching_objection(*claims[claim], devices); !why.empty())
			return Error{claim_text(claims[claim]->meta.name) + ": " + why};
	return out;
}

// ---- into Kubernetes ----

static Json versioned(const kube::ResourceClaim &claim)
{
	return Json::object().set("uid", claim.meta.uid).set("resourceVersion", claim.meta.resource_version);
}

bool is_protected(const kube::ResourceClaim &claim)
{
	return std::ranges::find(claim.meta.finalizers, finalizer) != claim.meta.finalizers.end();
}

Json protecting_patch(const kube::ResourceClaim &claim)
{
	Json all = Json::array();
	for (const auto &f : claim.meta.finalizers)
		all.append(Json::string(f));
	all.append(Json::string(finalizer));
	return Json::object().set("metadata", versioned(claim).set("finalizers", all));
}

// What drivers have written of its devices (status.devices) the API server drops with these; to write there is a right of drivers.
Json freeing_patch(const kube::ResourceClaim &claim)
{
	return Json::object()
		.set("metadata", versioned(claim))
		.set("status", Json::object().set("allocation", Json::null()).set("reservedFor", Json::null()));
}

static Json consumer(const std::string &pod, const std::string &uid)
{
	return Json::object().set("resource", "pods").set("name", pod).set("uid", uid);
}

Json reserving_patch(const kube::ResourceClaim &claim, const std::string &pod, const std::string &uid)
{
	Json all = Json::array();
	claim.consumers.each_item([&](const Json &known) { all.append(known); });
	all.append(consumer(pod, uid));
	return Json::object().set("metadata", versioned(claim)).set("status", Json::object().set("reservedFor", all));
}

// config of the class or the claim, as far as it is for these drivers and requests; as kube-scheduler's allocator writes it.
static void add_config(Json &out, const Json &config, const char *source, const std::set<std::string> &requests, const std::set<std::string> &drivers)
{
	config.each_item([&](const Json &c) {
		if (!drivers.contains(std::string(c["opaque"]["driver"].str())))
			return;
		Json one = Json::object(), named = Json::array();
		const Json wanted = c["requests"];
		for (const auto &r : requests) {
			bool meant = wanted.size() == 0;
			wanted.each_item([&](const Json &w) { meant |= w.str() == r; });
			if (meant)
				named.append(Json::string(r));
		}
		if (named.size() > 0)
			out.append(one.set("source", source).set("requests", named).set("opaque", c["opaque"]));
	});
}

static Json config_of(const ClaimDevices &wanted, const DraInventory &inventory)
{
	Json out = Json::array();
	std::set<std::string> all, drivers;
	for (const auto &d : wanted.devices) {
		all.insert(d.request);
		drivers.insert(d.driver);
	}
	for (const kube::DeviceRequest &r : wanted.claim->requests) // a class's first: the claim's own wins
		if (const auto c = inventory.device_class(r.device_class))
			add_config(out, c->config, "FromClass", {r.name}, drivers);
	add_config(out, wanted.claim->config, "FromClaim", all, drivers);
	return out;
}

static Json node_selector(const std::string &node)
{
	Json values = Json::array(), fields = Json::array(), terms = Json::array();
	values.append(Json::string(node));
	fields.append(Json::object().set("key", "metadata.name").set("operator", "In").set("values", values));
	terms.append(Json::object().set("matchFields", fields));
	return Json::object().set("nodeSelectorTerms", terms);
}

Json allocating_patch(const ClaimDevices &wanted, const std::string &node, const std::string &pod, const std::string &uid,
		      const DraInventory &inventory)
{
	Json results = Json::array(), consumers = Json::array();
	for (const auto &d : wanted.devices)
		results.append(Json::object().set("request", d.request).set("driver", d.driver).set("pool", d.pool).set("device", d.device));
	consumers.append(consumer(pod, uid));
	const Json devices = Json::object().set("results", results).set("config", config_of(wanted, inventory));
	const Json allocation = Json::object().set("devices", devices).set("nodeSelector", node_selector(node));
	return Json::object()
		.set("metadata", versioned(*wanted.claim))
		.set("status", Json::object().set("allocation", allocation).set("reservedFor", consumers));
}

} // namespace sk8::core
