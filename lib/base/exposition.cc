// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/exposition.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lib/base/text.h"

namespace sk8 {

const char *metric_type_name(MetricType type)
{
	switch (type) {
	case MetricType::counter:
		return "counter";
	case MetricType::gauge:
		return "gauge";
	case MetricType::histogram:
		return "histogram";
	}
	return "untyped";
}

// Values of labels have all three escapes, help texts know no quote.
static std::string escaped(std::string_view text, bool quote)
{
	std::string out;
	for (char c : valid_utf8(text)) {
		if (c == '\\' || (quote && c == '"'))
			out += '\\';
		if (c == '\n')
			out += "\\n";
		else
			out += c;
	}
	return out;
}

// The shortest text that is read back as the same number.
static std::string number(double value)
{
	if (std::isnan(value))
		return "NaN";
	if (std::isinf(value))
		return value > 0 ? "+Inf" : "-Inf";
	char text[32];
	const auto end = std::to_chars(text, text + sizeof(text), value);
	return {text, end.ptr};
}

void Exposition::family(const MetricInfo &info)
{
	info_ = &info;
	const std::string name(info.name);
	text_ += "# HELP " + name + ' ' + escaped(info.help, false) + '\n';
	text_ += "# TYPE " + name + ' ' + metric_type_name(info.type) + '\n';
}

void Exposition::line(std::string_view suffix, const Values &values, std::string_view le, double value)
{
	std::string labels;
	const auto add = [&](std::string_view name, std::string_view text) {
		labels += labels.empty() ? "{" : ",";
		labels += std::string(name) + "=\"" + escaped(text, true) + '"';
	};
	for (std::size_t i = 0; i < std::min(values.size(), info_->labels.size()); i++)
		add(info_->labels[i], values[i]);
	if (!le.empty())
		add("le", le);
	text_ += std::string(info_->name) + std::string(suffix);
	text_ += (labels.empty() ? "" : labels + '}') + ' ' + number(value) + '\n';
}

void Exposition::sample(const Values &values, double value)
{
	line("", values, "", value);
}

void Exposition::histogram(const Values &values, const Histogram &from, double unit)
{
	const HistogramSteps steps = from.steps();
	// 15 digits: 5000 * 1e-6 is 0.005, not 0.0050000000000000001.
	const auto in_base = [&](std::uint64_t n) {
		return std::strtod(strprintf("%.15g", static_cast<double>(n) * unit).c_str(), nullptr);
	};
	for (std::size_t i = 0; i < steps.cumulative.size(); i++)
		line("_bucket", values, number(in_base(from.bounds()[i])),
		     static_cast<double>(steps.cumulative[i]));
	line("_bucket", values, "+Inf", static_cast<double>(steps.count));
	line("_sum", values, "", in_base(steps.sum));
	line("_count", values, "", static_cast<double>(steps.count));
}

} // namespace sk8
