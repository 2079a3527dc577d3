// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// All objects, one global resourceVersion, and per resource a ring of the last
// changes, from which watches are served and older states rebuilt. Objects are
// immutable; a change puts a new one in place.
#ifndef KUBESIM_STORE_H
#define KUBESIM_STORE_H

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/kubesim/failure.h"
#include "test/kubesim/jv.h"
#include "test/kubesim/kinds.h"

namespace kubesim {

struct Object {
	std::string ns, name, uid;
	std::uint64_t rv = 0;
	// The JSON text without kind and apiVersion, as lists hold it. Parsed again when
	// needed: ten thousand trees would cost ten times the memory of their texts.
	std::string body;
	std::vector<std::pair<std::string, std::string>> labels;
	std::vector<std::pair<std::string, std::string>> fields; // what field selectors see

	std::string key() const { return ns.empty() ? name : ns + "/" + name; }
	J json() const { return J::parse(body); }
	// The text with kind and apiVersion in front.
	std::string text(const Kind &kind) const;
};
using ObjectPtr = std::shared_ptr<const Object>;

// before absent: created; after absent: deleted, and gone is the last state with
// the deletion's resourceVersion.
struct Event {
	std::uint64_t rv = 0;
	ObjectPtr before, after, gone;
};

struct Ring {
	std::deque<Event> events;
	std::uint64_t first_seq = 0;  // sequence number of events.front()
	std::uint64_t forgotten_rv = 0; // changes up to here are no longer known
	std::uint64_t next_seq() const { return first_seq + events.size(); }
};

class Store {
public:
	// window: events kept per resource.
	explicit Store(std::size_t window);
	~Store();

	// Loads the journal (if it exists) and writes every later change to it, so that
	// a killed server goes on where it was. What watches knew is lost, as in a real
	// restart. Returns an error sentence, or "".
	std::string open_journal(const std::string &path);

	std::uint64_t rv() const { return rv_; }
	ObjectPtr find(std::size_t storage, const std::string &ns, const std::string &name) const;
	const std::map<std::string, ObjectPtr> &all(std::size_t storage) const
	{
		return collections_[storage].objects;
	}
	const Ring &ring(std::size_t storage) const { return collections_[storage].ring; }

	// Creates or replaces; sets metadata.resourceVersion in object.
	ObjectPtr put(std::size_t storage, J object);
	ObjectPtr erase(std::size_t storage, const std::string &key); // returns Event::gone

	// Objects of a namespace (empty: all) with a key above `after`, as they were at
	// resourceVersion `at` (0: now), in key order; nullopt if that is forgotten.
	std::optional<std::vector<ObjectPtr>> list(std::size_t storage, const std::string &ns,
						   const std::string &after, std::uint64_t at) const;

	// Called after each change, in order. Listeners may not write to the store.
	void subscribe(std::function<void(std::size_t, const Event &)> listener);
	// Forgets all changes so far: running watches that lag and new old ones get 410.
	void forget_changes();

private:
	struct Collection {
		std::map<std::string, ObjectPtr> objects;
		Ring ring;
	};
	void publish(std::size_t storage, Event event);
	void journal(const std::string &line);

	std::vector<Collection> collections_;
	std::uint64_t rv_ = 1;
	std::size_t window_;
	int journal_fd_ = -1;
	std::vector<std::function<void(std::size_t, const Event &)>> listeners_;
};

} // namespace kubesim

#endif
