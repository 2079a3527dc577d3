// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Label and field selectors of list, watch and deletecollection.
#ifndef KUBESIM_SELECTOR_H
#define KUBESIM_SELECTOR_H

#include <string>
#include <utility>
#include <vector>

#include "test/kubesim/failure.h"
#include "test/kubesim/kinds.h"

namespace kubesim {

struct Object;

struct Requirement {
	enum Op { in, not_in, exists, missing } op = in;
	std::string key;
	std::vector<std::string> values;
};

struct Selector {
	std::string ns; // empty: all namespaces
	std::vector<Requirement> labels;
	std::vector<Requirement> fields;
	bool empty() const { return labels.empty() && fields.empty(); }
	bool matches(const Object &object) const;
};

// Fields that fieldSelector may name for this kind, with the object's values.
std::vector<std::pair<std::string, std::string>> selectable_fields(const Kind &kind, const J &object);

Outcome<std::vector<Requirement>> parse_label_selector(const std::string &text);
Outcome<std::vector<Requirement>> parse_field_selector(const Kind &kind, const std::string &text);

} // namespace kubesim

#endif
