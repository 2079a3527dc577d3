// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The objects of one kind that a reflector knows, by uid, with two indexes:
// namespace/name and node. One thread (the engine's); the objects themselves are
// immutable and may be passed on.
#ifndef SK8_KUBE_STORE_H
#define SK8_KUBE_STORE_H

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lib/kube/objects.h"

namespace sk8::kube {

// Which node an object belongs to in the index; empty: none.
inline const std::string &node_of(const Pod &pod)
{
	return pod.node_name;
}
inline const std::string &node_of(const Node &node)
{
	return node.meta.name;
}

template <class T>
class Store {
public:
	using Ptr = std::shared_ptr<const T>;

	// What replace() changed, in no order. In changed: {before, after}; objects
	// whose resourceVersion is the same are left out.
	struct Difference {
		std::vector<Ptr> added;
		std::vector<std::pair<Ptr, Ptr>> changed;
		std::vector<Ptr> gone;
	};

	// Returns what was there before, or nullptr.
	Ptr upsert(Ptr object)
	{
		Ptr before = erase(object->meta.uid);
		by_name_.emplace(NameRef{object->meta.ns, object->meta.name}, Seen{object.get(), ++last_seen_});
		if (!node_of(*object).empty())
			by_node_.emplace(node_of(*object), object.get());
		const std::string_view uid = object->meta.uid;
		objects_.emplace(uid, std::move(object));
		return before;
	}

	// Returns what was there, or nullptr.
	Ptr erase(std::string_view uid)
	{
		auto at = objects_.find(uid);
		if (at == objects_.end())
			return nullptr;
		Ptr before = at->second; // the keys below are views into it
		objects_.erase(at);
		unlink(by_name_, NameRef{before->meta.ns, before->meta.name},
		       [&](const Seen &s) { return s.object == before.get(); });
		if (!node_of(*before).empty())
			unlink(by_node_, std::string_view(node_of(*before)),
			       [&](const T *object) { return object == before.get(); });
		return before;
	}

	// Makes the store hold exactly these objects (a complete list).
	Difference replace(std::vector<Ptr> objects)
	{
		Difference out;
		std::unordered_set<std::string_view> listed;
		for (const Ptr &o : objects)
			listed.insert(o->meta.uid);
		for (const auto &[uid, o] : objects_)
			if (!listed.contains(uid))
				out.gone.push_back(o);
		for (const Ptr &o : out.gone)
			erase(o->meta.uid);
		for (Ptr &o : objects) {
			Ptr before = upsert(o);
			if (!before)
				out.added.push_back(std::move(o));
			else if (before->meta.resource_version != o->meta.resource_version)
				out.changed.emplace_back(std::move(before), std::move(o));
		}
		return out;
	}

	// nullptr if there is none.
	Ptr find(std::string_view uid) const
	{
		auto at = objects_.find(uid);
		return at == objects_.end() ? nullptr : at->second;
	}

	// The one seen last, if two generations of a name are known for a moment.
	Ptr find_by_name(std::string_view ns, std::string_view name) const
	{
		auto [from, to] = by_name_.equal_range(NameRef{ns, name});
		auto last = std::max_element(from, to, [](const auto &a, const auto &b) {
			return a.second.when < b.second.when;
		});
		return last == to ? nullptr : find(last->second.object->meta.uid);
	}

	// f(const Ptr &) for each object of that node. f must not change the store.
	template <class F>
	void each_on_node(std::string_view node, F &&f) const
	{
		for (auto [at, to] = by_node_.equal_range(node); at != to; ++at)
			f(objects_.at(at->second->meta.uid));
	}

	// f(const Ptr &) for each object. f must not change the store.
	template <class F>
	void each(F &&f) const
	{
		for (const auto &[uid, object] : objects_)
			f(object);
	}

	std::size_t size() const { return objects_.size(); }
	void clear()
	{
		by_name_.clear();
		by_node_.clear();
		objects_.clear();
	}

private:
	// Tens of thousands of objects: keys are views into the objects, which are
	// immutable and live as long as they are in objects_.
	struct NameRef {
		std::string_view ns, name;
		bool operator==(const NameRef &) const = default;
	};
	struct NameHash {
		std::size_t operator()(const NameRef &n) const
		{
			const std::hash<std::string_view> hash;
			return hash(n.ns) * 31 + hash(n.name);
		}
	};
	struct Seen {
		const T *object;
		std::uint64_t when;
	};

	template <class Index, class Key, class F>
	static void unlink(Index &index, const Key &key, F &&is_it)
	{
		auto [from, to] = index.equal_range(key);
		index.erase(std::find_if(from, to, [&](const auto &entry) { return is_it(entry.second); }));
	}

	std::unordered_map<std::string_view, Ptr> objects_; // by uid
	std::unordered_multimap<NameRef, Seen, NameHash> by_name_;
	std::unordered_multimap<std::string_view, const T *> by_node_;
	std::uint64_t last_seen_ = 0;
};

} // namespace sk8::kube

#endif
