// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What drivers, pods that claim devices, and agents of nodes may write: an input is a ResourceSlice, a ResourceClaim, a DeviceClass,
// a CEL selector, or a node's cores by NUMA node.
#include "lib/core/dra.h"
#include "lib/core/dra_claims.h"
#include "lib/core/numa_cores.h"
#include "test/fuzz/fuzz.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::fuzz;

static std::vector<ResourceSettings> settings()
{
	ResourceSettings gpus{"", "gpu", ""};
	gpus.device_class = "gpu.example.com";
	return {gpus};
}

static kube::Device device()
{
	return {"gpu-1", {{"gpu.example.com/index", std::int64_t{1}}, {"gpu.example.com/model", std::string("a100")},
			  {"gpu.example.com/version", kube::Version{"1.2.3-rc.1"}}, {"gpu.example.com/ecc", true}},
		{{"gpu.example.com/memory", 40000}}, false, ""};
}

static void check_selector(std::string_view text)
{
	const auto selector = DeviceSelector::parse(text);
	if (!selector)
		return expect_sentence(selector.error().message, 1024);
	const auto matches = selector->matches("gpu.example.com", device());
	if (!matches)
		expect_sentence(matches.error().message, 1024);
	const auto again = DeviceSelector::parse(text)->matches("gpu.example.com", device());
	expect(again.ok() == matches.ok() && again.value_or(false) == matches.value_or(false), "a selector says one thing");
}

static kube::DeviceClassPtr any_device()
{
	auto out = std::make_shared<kube::DeviceClass>();
	out->meta.name = "gpu.example.com";
	return out;
}

static void check_slice(const kube::ResourceSlicePtr &slice)
{
	expect(slice->devices.size() <= kube::max_slice_devices, "devices keep their limit");
	Dra dra(settings());
	dra.inventory.classes_replaced({any_device()});
	dra.inventory.slices_replaced({slice});
	const DraDevices &found = dra.inventory.find(slice->node, "gpu.example.com");
	for (std::size_t i = 1; i < found.devices.size(); i++)
		expect(found.devices[i - 1].index < found.devices[i].index, "no two devices are one of Slurm's");
	for (const auto &problem : found.problems)
		expect_sentence(problem, 2048);
	dra.inventory.slice_removed(slice);
	expect(dra.inventory.find(slice->node, "gpu.example.com").devices.empty(), "what is removed is gone");
}

static void check_claim(const kube::ResourceClaimPtr &claim)
{
	expect(claim->requests.size() <= kube::max_claim_requests && claim->devices.size() <= kube::max_claim_requests, "a claim keeps its limits");
	const auto gres = gres_of_claims({claim}, settings());
	if (!gres)
		expect_sentence(gres.error().message, 2048);
	Dra dra(settings());
	dra.claims_replaced({claim});
	for (const auto &d : claim->devices)
		expect(dra.holder(d, *claim).empty(), "a claim is not in its own way");
	dra.claim_removed(claim);
	expect(!dra.find(claim->meta.ns, claim->meta.name), "what is removed is gone");
	for (const Json &patch : {protecting_patch(*claim), freeing_patch(*claim), allocating_patch({claim, claim->devices}, "n1", "p", "u", dra.inventory)})
		expect(Json::parse(patch.dump()).ok(), "a patch is JSON");
}

static void check_numa(std::string_view text)
{
	const auto numa = parse_numa(text);
	if (!numa)
		return expect_sentence(numa.error().message, 1024);
	expect(numa->cores.size() <= max_numa_nodes && numa->core_count() <= 8192 && numa->roots.size() <= max_pci_roots, "cores keep their limits");
	const auto again = parse_numa(numa_text(*numa));
	expect(again.ok() && *again == *numa, "what is told is what was read");
}

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	const std::string_view text(reinterpret_cast<const char *>(data), size);
	check_selector(text);
	check_numa(text);
	const auto object = Json::parse(text);
	if (!object)
		return 0;
	if (const auto slice = kube::decode_resource_slice(*object); slice)
		check_slice(*slice);
	if (const auto claim = kube::decode_resource_claim(*object); claim)
		check_claim(*claim);
	if (const auto c = kube::decode_device_class(*object); c) {
		expect((*c)->selectors.size() <= kube::max_selectors, "selectors keep their limit");
		DraInventory inventory(settings());
		inventory.classes_replaced({*c});
	}
	return 0;
}
