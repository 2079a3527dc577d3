// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the API server does with a pod beyond storing it: defaults, validation and
// which fields may change.
#ifndef KUBESIM_POD_H
#define KUBESIM_POD_H

#include <map>
#include <string>
#include <vector>

#include "test/kubesim/failure.h"
#include "test/kubesim/jv.h"

namespace kubesim {

// Fills in defaults and writes quantities canonically. Returns false if a quantity
// cannot be read (the request is then refused with 400, before validation).
bool default_pod(J pod);
// Status of a new pod: Pending, qosClass, and SchedulingGated if it is gated.
J initial_pod_status(const J &pod);
std::vector<FieldError> validate_pod(const J &pod);
std::vector<FieldError> validate_pod_update(const J &now, const J &before);
// pod_resize.cc: through the subresource pods/resize nothing but resources of containers changes.
void keep_all_but_resources(J &now, const J &before);
std::vector<FieldError> validate_pod_resize(const J &now, const J &before);
std::string qos_class(const J &pod);

// Condition of that type replaced or added; lastTransitionTime is kept if the
// status did not change. reason and message may be empty.
void set_condition(J status, const std::string &type, const std::string &value,
		   const std::string &reason = {}, const std::string &message = {});

// What the pod asks for: max(sum of containers, largest init container) + overhead.
// Keys are resource names; cpu is in milli-CPU, all else in whole units.
std::map<std::string, std::int64_t> pod_requests(const J &pod);

} // namespace kubesim

#endif
