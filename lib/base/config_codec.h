// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// How a value of a configuration file becomes a member of a struct, and back. Beneath
// lib/base/config.h. Codecs are immutable and may be shared by threads; nothing blocks.
#ifndef SK8_BASE_CONFIG_CODEC_H
#define SK8_BASE_CONFIG_CODEC_H

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/config_place.h"

namespace sk8 {

// One row of the man page.
struct FieldDoc {
	std::string path;         // "clusters[].nodes.sharing"
	std::string type;         // "one of mixed, dedicated"
	std::string default_text; // empty: none
	std::string help;
	bool required = false;
	bool reloadable = true; // false: a change needs a restart of slurmctld
	bool section = false;   // a map or list of maps: its rows follow
};

// How values of type T are read, written and described.
template <class T>
struct Codec {
	std::string type;
	// Reports to the place and returns false if the value is not acceptable.
	std::function<bool(const Place &, T &)> read;
	std::function<std::string(const T &)> show; // as it would stand in the file
	// Only for maps and lists of maps: their rows, and changes that need a restart.
	std::function<void(const std::string &path, std::vector<FieldDoc> &)> describe;
	std::function<void(const T &a, const T &b, const std::string &path,
			   std::vector<std::string> &)> compare;
};

// Plain types. Others do not link.
template <class T>
Codec<T> codec();
template <> Codec<std::string> codec<std::string>();
template <> Codec<bool> codec<bool>();
template <> Codec<Millis> codec<Millis>();
template <> Codec<std::vector<std::string>> codec<std::vector<std::string>>();
template <> Codec<std::map<std::string, std::string>> codec<std::map<std::string, std::string>>();
Codec<std::int64_t> integer_codec(std::int64_t min, std::int64_t max);
Codec<std::int64_t> milli_cpu_codec(); // thousandths of a CPU
Codec<std::int64_t> bytes_codec();

namespace config_detail {

template <class T>
struct Unwrap {
	using type = T;
};
template <class T>
struct Unwrap<std::optional<T>> {
	using type = T;
};

template <class T>
Codec<T> codec_for()
{
	using V = typename Unwrap<T>::type;
	if constexpr (!std::is_same_v<V, T>) {
		Codec<V> inner = codec_for<V>();
		return {inner.type,
			[inner](const Place &place, T &to) {
				V value{};
				if (!inner.read(place, value))
					return false;
				to = std::move(value);
				return true;
			},
			[inner](const T &value) { return value ? inner.show(*value) : ""; },
			{},
			{}};
	} else if constexpr (std::integral<T> && !std::same_as<T, bool>) {
		using Limits = std::numeric_limits<T>;
		constexpr std::int64_t max = std::cmp_greater(Limits::max(), INT64_MAX)
						     ? INT64_MAX
						     : static_cast<std::int64_t>(Limits::max());
		Codec<std::int64_t> wide =
			integer_codec(static_cast<std::int64_t>(Limits::min()), max);
		return {wide.type,
			[wide](const Place &place, T &to) {
				std::int64_t value = 0;
				if (!wide.read(place, value))
					return false;
				to = static_cast<T>(value);
				return true;
			},
			[wide](const T &value) { return wide.show(static_cast<std::int64_t>(value)); },
			{},
			{}};
	} else {
		return codec<T>();
	}
}

} // namespace config_detail

} // namespace sk8

#endif
