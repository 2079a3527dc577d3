// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The form in which a client wants objects: plain, as rows of a Table (kubectl
// get) or as metadata only; and events of either API group.
#ifndef KUBESIM_VIEW_H
#define KUBESIM_VIEW_H

#include <string>
#include <vector>

#include "test/kubesim/request.h"
#include "test/kubesim/store.h"

namespace kubesim {

class View {
public:
	explicit View(const Request &request);
	std::string object(const Object &object) const; // one object on its own
	std::string list(const std::vector<ObjectPtr> &objects, const J &list_meta) const;
	std::string bookmark(std::uint64_t rv, bool initial_events_end) const;
	// In a watch only the first Table names its columns.
	std::string watch_object(const Object &object, bool first) const;

private:
	enum Form { plain, table, partial } form_ = plain;
	std::string include_ = "Metadata";
	const Kind &kind_;
	J convert(const J &stored) const; // to the API group that was asked for
	J table_of(const std::vector<ObjectPtr> &objects, const J &list_meta, bool columns) const;
};

// events.k8s.io/v1 <-> core/v1: the same object with other names.
J event_to_core(const J &event);
J event_from_core(const J &event);

} // namespace kubesim

#endif
