// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/store.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <unistd.h>

#include "test/kubesim/selector.h"

namespace kubesim {

std::string Object::text(const Kind &kind) const
{
	std::string out = "{\"kind\":\"" + std::string(kind.kind) + "\",\"apiVersion\":\"" +
			  kind.api_version() + "\"";
	if (body.size() > 2)
		out += ',';
	return out.append(body, 1, std::string::npos);
}

static ObjectPtr make_object(std::size_t storage, J object, std::uint64_t rv)
{
	object.del("kind");
	object.del("apiVersion");
	J meta = object.child("metadata");
	meta.set("resourceVersion", std::to_string(rv));
	auto o = std::make_shared<Object>();
	o->ns = meta["namespace"].str();
	o->name = meta["name"].str();
	o->uid = meta["uid"].str();
	o->rv = rv;
	o->body = object.dump();
	meta["labels"].each_member(
		[&](const std::string &k, const J &v) { o->labels.emplace_back(k, v.str()); });
	o->fields = selectable_fields(stored_kind(storage), object);
	return o;
}

Store::Store(std::size_t window) : collections_(storage_count()), window_(window)
{
	for (auto &c : collections_)
		c.ring.forgotten_rv = rv_;
}

Store::~Store()
{
	if (journal_fd_ >= 0)
		close(journal_fd_);
}

ObjectPtr Store::find(std::size_t storage, const std::string &ns, const std::string &name) const
{
	const auto &objects = collections_[storage].objects;
	auto it = objects.find(ns.empty() ? name : ns + "/" + name);
	return it == objects.end() ? nullptr : it->second;
}

ObjectPtr Store::put(std::size_t storage, J object)
{
	ObjectPtr now = make_object(storage, std::move(object), ++rv_);
	ObjectPtr &slot = collections_[storage].objects[now->key()];
	Event event{rv_, slot, now, nullptr};
	slot = now;
	journal("{\"s\":" + std::to_string(storage) + ",\"o\":" + now->body + "}\n");
	publish(storage, std::move(event));
	return now;
}

ObjectPtr Store::erase(std::size_t storage, const std::string &key)
{
	auto &objects = collections_[storage].objects;
	auto it = objects.find(key);
	if (it == objects.end())
		return nullptr;
	ObjectPtr before = it->second;
	objects.erase(it);
	ObjectPtr gone = make_object(storage, before->json(), ++rv_);
	journal("{\"s\":" + std::to_string(storage) + ",\"rv\":" + std::to_string(rv_) +
		",\"d\":" + J::of(key).dump() + "}\n");
	publish(storage, {rv_, before, nullptr, gone});
	return gone;
}

void Store::publish(std::size_t storage, Event event)
{
	Ring &ring = collections_[storage].ring;
	ring.events.push_back(event);
	while (ring.events.size() > window_) {
		ring.forgotten_rv = ring.events.front().rv;
		ring.events.pop_front();
		ring.first_seq++;
	}
	for (const auto &listener : listeners_)
		listener(storage, event);
}

void Store::subscribe(std::function<void(std::size_t, const Event &)> listener)
{
	listeners_.push_back(std::move(listener));
}

void Store::forget_changes()
{
	++rv_; // so that even the newest resourceVersion given out is too old
	for (auto &c : collections_) {
		c.ring.first_seq = c.ring.next_seq() + 1; // a watch that waits has missed something
		c.ring.events.clear();
		c.ring.forgotten_rv = rv_;
	}
}

std::optional<std::vector<ObjectPtr>> Store::list(std::size_t storage, const std::string &ns,
						  const std::string &after, std::uint64_t at) const
{
	const Collection &c = collections_[storage];
	if (at && at < c.ring.forgotten_rv)
		return std::nullopt;
	const std::string prefix = ns.empty() ? "" : ns + "/";
	auto inside = [&](const std::string &key) {
		return key > after && key.compare(0, prefix.size(), prefix) == 0;
	};
	auto it = after < prefix ? c.objects.lower_bound(prefix) : c.objects.upper_bound(after);
	std::vector<ObjectPtr> out;
	if (!at || c.ring.events.empty() || c.ring.events.back().rv <= at) {
		for (; it != c.objects.end() && inside(it->first); ++it)
			out.push_back(it->second);
		return out;
	}
	// Undo what happened since, newest first.
	std::map<std::string, ObjectPtr> then;
	for (; it != c.objects.end() && inside(it->first); ++it)
		then.emplace(it->first, it->second);
	for (auto e = c.ring.events.rbegin(); e != c.ring.events.rend() && e->rv > at; ++e) {
		const std::string key = (e->after ? e->after : e->before)->key();
		if (!inside(key))
			continue;
		if (e->before)
			then[key] = e->before;
		else
			then.erase(key);
	}
	for (auto &entry : then)
		out.push_back(entry.second);
	return out;
}

void Store::journal(const std::string &line)
{
	if (journal_fd_ < 0)
		return;
	std::size_t done = 0;
	while (done < line.size()) {
		ssize_t n = write(journal_fd_, line.data() + done, line.size() - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			dprintf(2, "kubesim: cannot write the data file: %s\n", strerror(errno));
			_exit(1);
		}
		done += n;
	}
}

std::string Store::open_journal(const std::string &path)
{
	std::ifstream in(path);
	for (std::string line; std::getline(in, line);) {
		J entry = J::parse(line);
		std::size_t storage = entry["s"].num(-1);
		// The last line may be cut by a kill: it was never answered.
		if (!entry || storage >= collections_.size())
			continue;
		auto &objects = collections_[storage].objects;
		if (J o = entry["o"]) {
			std::uint64_t rv = std::strtoull(o.path("metadata.resourceVersion").str().c_str(), nullptr, 10);
			ObjectPtr object = make_object(storage, o, rv);
			rv_ = std::max(rv_, rv);
			objects[object->key()] = object;
		} else {
			rv_ = std::max(rv_, static_cast<std::uint64_t>(entry["rv"].num()));
			objects.erase(entry["d"].str());
		}
	}
	for (auto &c : collections_)
		c.ring.forgotten_rv = rv_;

	const std::string fresh = path + ".new";
	journal_fd_ = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (journal_fd_ < 0)
		return "cannot write " + fresh + ": " + strerror(errno);
	journal("{\"s\":0,\"rv\":" + std::to_string(rv_) + ",\"d\":\"\"}\n");
	for (std::size_t s = 0; s < collections_.size(); s++)
		for (const auto &[key, object] : collections_[s].objects)
			journal("{\"s\":" + std::to_string(s) + ",\"o\":" + object->body + "}\n");
	if (rename(fresh.c_str(), path.c_str()))
		return "cannot replace " + path + ": " + strerror(errno);
	return {};
}

} // namespace kubesim
