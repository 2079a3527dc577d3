// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The objects of one kind that a reflector knows, by uid, with two indexes:
// namespace/name and node. One thread (the engine's); the objects themselves are
// immutable and may be passed on.
#ifndef SK8_KUBE_STORE_H
#define SK8_KUBE_STORE_H

#include <algorithm>
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
		by_name_[name_key(object->meta.ns, object->meta.name)].push_back(object->meta.uid);
		if (!node_of(*object).empty())
			by_node_[node_of(*object)].push_back(object->meta.uid);
		objects_.emplace(object->meta.uid, std::move(object));
		return before;
	}

	// Returns what was there, or nullptr.
	Ptr erase(const std::string &uid)
	{
		auto at = objects_.find(uid);
		if (at == objects_.end())
			return nullptr;
		Ptr before = std::move(at->second);
		objects_.erase(at);
		unlink(by_name_, name_key(before->meta.ns, before->meta.name), before->meta.uid);
		if (!node_of(*before).empty())
			unlink(by_node_, node_of(*before), before->meta.uid);
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
	Ptr find(const std::string &uid) const
	{
		auto at = objects_.find(uid);
		return at == objects_.end() ? nullptr : at->second;
	}

	// The one seen last, if two generations of a name are known for a moment.
	Ptr find_by_name(const std::string &ns, const std::string &name) const
	{
		auto at = by_name_.find(name_key(ns, name));
		return at == by_name_.end() ? nullptr : find(at->second.back());
	}

	// f(const Ptr &) for each object of that node. f must not change the store.
	template <class F>
	void each_on_node(const std::string &node, F &&f) const
	{
		auto at = by_node_.find(node);
		if (at == by_node_.end())
			return;
		for (const std::string &uid : at->second)
			f(objects_.at(uid));
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
		objects_.clear();
		by_name_.clear();
		by_node_.clear();
	}

private:
	using Index = std::unordered_map<std::string, std::vector<std::string>>;

	// A name never contains a slash (objects.cc sees to that).
	static std::string name_key(const std::string &ns, const std::string &name)
	{
		return ns + "/" + name;
	}

	static void unlink(Index &index, const std::string &key, const std::string &uid)
	{
		auto at = index.find(key);
		std::erase(at->second, uid);
		if (at->second.empty())
			index.erase(at);
	}

	std::unordered_map<std::string, Ptr> objects_;
	Index by_name_, by_node_; // -> uids
};

} // namespace sk8::kube

#endif
