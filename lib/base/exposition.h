// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Prometheus' text format, version 0.0.4. Pure.
// https://prometheus.io/docs/instrumenting/exposition_formats/
#ifndef SK8_BASE_EXPOSITION_H
#define SK8_BASE_EXPOSITION_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/metrics.h"

namespace sk8 {

enum class MetricType { counter, gauge, histogram };
const char *metric_type_name(MetricType type); // "counter"

// What a family of samples is called and means; names are taken as they are.
struct MetricInfo {
	std::string_view name; // "slurm_k8s_pods_bound_total"
	MetricType type;
	std::vector<std::string_view> labels;
	std::string_view help; // one or two sentences
};

class Exposition {
public:
	using Values = std::vector<std::string>; // of the labels, in their order

	static constexpr const char *content_type = "text/plain; version=0.0.4; charset=utf-8";

	// What follows is of this family. Once for each; info must live until the next.
	void family(const MetricInfo &info);
	// Of a counter or gauge.
	void sample(const Values &values, double value);
	// unit: how much of the base unit (seconds, bytes) one of the recorded whole
	// numbers is.
	void histogram(const Values &values, const Histogram &from, double unit);

	const std::string &text() const { return text_; }

private:
	void line(std::string_view suffix, const Values &values, std::string_view le, double value);

	const MetricInfo *info_ = nullptr;
	std::string text_;
};

} // namespace sk8

#endif
