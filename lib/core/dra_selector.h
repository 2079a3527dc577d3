// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What a CEL expression of a DeviceClass or a ResourceClaim says of a device. No library for CEL in C++ is packaged where
// Slurm is, so this is the part of the language that selectors are written in:
//
//	device.driver, device.attributes["domain"].name, device.capacity["domain"].name
//	== != < <= > >= in && || ! ?: ( ) [ , ] "text" 'text' r"text" 12 true false
//	has(), size(), cel.bind(), quantity(), semver(), and of texts startsWith(), endsWith(), contains(), lowerAscii(),
//	upperAscii(), size(), of quantities and versions compareTo(), isGreaterThan(), isLessThan(), of versions major(),
//	minor(), patch()
//
// Whatever else CEL has (arithmetic, matches(), macros over lists) is refused by name. What is understood means the same as in
// Kubernetes, errors included: an attribute that a device has not is an error, unless && or || need not look at it.
// Source: https://kubernetes.io/docs/reference/using-api/cel/, k8s.io/dynamic-resource-allocation/cel v0.35.
#ifndef SK8_CORE_DRA_SELECTOR_H
#define SK8_CORE_DRA_SELECTOR_H

#include <memory>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/kube/dra_objects.h"

namespace sk8::core {

struct SelectorNode;

// Immutable; copies share. What it costs for one device is bounded, more is an error.
class DeviceSelector {
public:
	// Error: it is none, or says more than we understand.
	static Result<DeviceSelector> parse(std::string_view text);
	// Error: the expression fails for this device; in Kubernetes, too. allowance: what this costs is taken from it, in steps and
	// bytes; where it is used up the expression fails.
	Result<bool> matches(const std::string &driver, const kube::Device &device, std::size_t &allowance) const;
	Result<bool> matches(const std::string &driver, const kube::Device &device) const;

private:
	explicit DeviceSelector(std::shared_ptr<const SelectorNode> root) : root_(std::move(root)) {}
	std::shared_ptr<const SelectorNode> root_;
};

} // namespace sk8::core

#endif
