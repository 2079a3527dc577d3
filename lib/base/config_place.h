// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Where the reader of a configuration file stands, and what is wrong there. Beneath
// lib/base/config.h. For one thread at a time; nothing blocks.
#ifndef SK8_BASE_CONFIG_PLACE_H
#define SK8_BASE_CONFIG_PLACE_H

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/yaml.h"

namespace sk8 {

// What is wrong with one file, collected; never more than 100 lines.
class Problems {
public:
	explicit Problems(std::string file) : file_(std::move(file)) {}

	// line 0: the file as a whole. path may be empty.
	void add(int line, std::string_view path, std::string_view what);
	bool empty() const { return found_.empty(); }
	std::size_t size() const { return found_.size() + dropped_; }
	// "file:line: path: what", by line.
	std::vector<std::string> lines() const;
	std::string text() const;
	const std::string &file() const { return file_; }

private:
	struct Found {
		int line;
		std::string text;
	};
	std::string file_;
	std::vector<Found> found_;
	std::size_t dropped_ = 0; // beyond the limit
};

// A value in the file while it is read: where it stands and how it is called.
class Place {
public:
	Place(const YamlNode &node, int line, std::string path, Problems &problems)
		: node_(&node), line_(line), path_(std::move(path)), problems_(&problems)
	{
	}
	const YamlNode &node() const { return *node_; }
	const std::string &path() const { return path_; } // "clusters[0].nodes"
	void error(std::string_view what) const { problems_->add(line_, path_, what); }
	// About a member of this map; of the map itself if it has no such key.
	void error(std::string_view key, std::string_view what) const;
	Problems &problems() const { return *problems_; }
	Place member(const YamlMember &member) const;
	Place item(std::size_t index) const;

private:
	const YamlNode *node_;
	int line_;
	std::string path_;
	Problems *problems_;
};

// "nothing", "text", "a list" or "a map", for an error message.
const char *kind_name(const YamlNode &node);
// The key of keys that was probably meant by text, or empty.
std::string nearest_name(std::string_view text, const std::vector<std::string> &keys);
// The text of a scalar, quoted and bounded, for an error message.
std::string quoted_value(const YamlNode &node);

namespace config_detail {

// The rows' reader behind the templates: calls read(index, place) for each known
// key and reports unknown and missing ones. Null is an empty map (all its keys are
// commented out). False if place is no map.
bool read_members(const Place &place, const std::vector<std::string> &keys,
		  const std::vector<bool> &required,
		  const std::function<void(std::size_t, const Place &)> &read);
bool read_items(const Place &place, std::size_t max_items,
		const std::function<void(const Place &)> &read);
std::size_t problem_count(const Place &place);

} // namespace config_detail

} // namespace sk8

#endif
