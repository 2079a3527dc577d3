// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Which of Slurm's devices those are that DRA drivers tell of: by ResourceSlices, DeviceClasses and clusters[].resources with a
// deviceClass. One thread, no I/O.
//
// A device has the index in Slurm that its driver says in an attribute (resources[].index, else index or minor; NVIDIA's: minor),
// or that its name ends with (gpu-3). Two of a GRES on a node with one index, whatever their classes, those without any, and those that Slurm cannot count (parts of devices,
// shared ones) are left out, and said.
#ifndef SK8_CORE_DRA_INVENTORY_H
#define SK8_CORE_DRA_INVENTORY_H

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/dra_selector.h"
#include "lib/core/settings.h"
#include "lib/kube/dra_objects.h"

namespace sk8::core {

struct DraDevice {
	std::string driver, pool;
	kube::Device device;
	std::uint16_t index = 0; // Slurm's, among all of the GRES on the node
};

struct DraDevices {
	std::vector<DraDevice> devices;    // by index
	// Indices of others, which more than one device has, of this class or of another one; and a sentence, if no other class's has it.
	std::map<std::uint16_t, std::string> twins;
	std::vector<std::string> problems; // one sentence each, fit for a terminal
};

// The entry of clusters[].resources for this class; null: there is none.
const ResourceSettings *find_device_class(const std::vector<ResourceSettings> &settings, std::string_view device_class);

class DraInventory {
public:
	explicit DraInventory(std::vector<ResourceSettings> settings); // ClusterSettings::resources

	// Is there anything to know?
	bool wanted() const { return wanted_; }
	bool synced() const { return slices_synced_ && classes_synced_; }

	void slices_replaced(const std::vector<kube::ResourceSlicePtr> &slices);
	void slice_changed(const kube::ResourceSlicePtr &slice);
	void slice_removed(const kube::ResourceSlicePtr &last);
	void classes_replaced(const std::vector<kube::DeviceClassPtr> &classes);
	void class_changed(const kube::DeviceClassPtr &device_class);
	void class_removed(const kube::DeviceClassPtr &last);

	// Those of this class on the node that Slurm can know. Until the next change.
	const DraDevices &find(const std::string &node, const std::string &device_class) const;
	// Slurm's name of the GRES that this class is; empty: the settings do not say.
	std::string gres_of(const std::string &device_class) const;
	// null: Kubernetes has no such class.
	kube::DeviceClassPtr device_class(const std::string &name) const;
	// Empty, or why nothing can be said of this class: one sentence.
	std::string class_problem(const std::string &name) const;
	// Slurm's GRES that this device is. nullopt: no driver tells of it (any more).
	struct Place {
		std::string node;
		std::string gres, type; // gres empty: it is none of Slurm's
		std::uint16_t index = 0;
	};
	std::optional<Place> place(const std::string &driver, const std::string &pool, const std::string &device) const;
	// Counts changes.
	std::uint64_t version() const { return version_; }

	// Nodes whose devices may be others than before.
	struct Changed {
		bool all = false; // of a class, or everything was listed
		std::set<std::string> nodes;
		bool any() const { return all || !nodes.empty(); }
	};
	// Since the last call. A driver tells of its own node: a thousand that start make a thousand nodes be looked at, not a million.
	Changed take_changed() { return std::exchange(changed_, {}); }

private:
	struct Class {
		kube::DeviceClassPtr object;
		std::vector<DeviceSelector> selectors;
		std::string problem;
	};
	struct Pool {
		std::map<std::string, kube::ResourceSlicePtr> slices; // by uid
		// All of its newest generation. While that is being written what it had before.
		std::vector<kube::ResourceSlicePtr> complete;
		// Names that more than one of these devices has. An allocation is by name: nobody knows of which. kube-scheduler gives
		// nobody any device of such a pool (k8s.io/dynamic-resource-allocation, 1.35, structured/internal: gatherPools).
		std::set<std::string> doubles;
	};
	using PoolKey = std::pair<std::string, std::string>; // driver, pool

	void all_changed();
	void node_changed(const std::string &node);
	void complete_again(Pool &pool);
	void keep(const kube::DeviceClassPtr &device_class);
	void keep(const kube::ResourceSlicePtr &slice);
	void drop(const kube::ResourceSlicePtr &slice);
	DraDevices compute(const std::string &node, const std::string &device_class) const;
	Place place_of(const std::string &node, const std::string &driver, const std::string &pool, const std::string &device) const;
	bool is_of(const Class &c, const std::string &driver, const kube::Device &device) const;

	const std::vector<ResourceSettings> settings_;
	const bool wanted_;
	bool slices_synced_ = false, classes_synced_ = false;
	std::map<PoolKey, Pool> pools_;
	std::map<std::string, PoolKey> pool_of_;                // by uid of a slice
	std::map<std::string, std::set<PoolKey>> pools_on_;     // by node
	std::map<std::string, Class> classes_;                  // those that the settings name
	std::uint64_t version_ = 0;
	Changed changed_;
	mutable std::map<std::string, std::map<std::string, DraDevices>> known_; // by node and class; until that node changes
};

} // namespace sk8::core

#endif
