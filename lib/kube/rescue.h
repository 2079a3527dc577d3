// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The little that can be saved of an object that a parser refused, or of which only
// the begin is there: who it is. Pure, any thread.
#ifndef SK8_KUBE_RESCUE_H
#define SK8_KUBE_RESCUE_H

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/json.h"

namespace sk8::kube {

// text: a JSON object, perhaps cut short or malformed further on. Returns
// {"metadata":{"name","namespace","uid","resourceVersion"}} with what was found;
// nothing without a name and a uid.
std::optional<Json> rescue_object(std::string_view text);

// text: an event of a watch, {"type":"MODIFIED","object":{...}}, in the same state.
struct RescuedEvent {
	std::string type;
	Json object;
};
std::optional<RescuedEvent> rescue_event(std::string_view text);

} // namespace sk8::kube

#endif
