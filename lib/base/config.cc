// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/config.h"

#include "lib/base/file.h"

namespace sk8::config_detail {

bool parse_root(std::string_view text, Problems &problems,
		const std::function<void(const Place &)> &read)
{
	const std::size_t before = problems.size();
	std::vector<YamlProblem> found;
	const std::optional<YamlNode> root = parse_yaml(text, found);
	for (const YamlProblem &problem : found)
		problems.add(problem.line, {}, problem.what);
	if (root)
		read(Place(*root, root->line, {}, problems));
	return root && problems.size() == before;
}

} // namespace sk8::config_detail

namespace sk8 {

Result<std::string> load_config_text(const std::string &path, uid_t owner)
{
	Result<std::string> text = read_file(path, max_yaml_bytes, Trust::owned, owner);
	if (text)
		return text;
	Problems problems(path);
	problems.add(0, {}, text.error().message);
	return Error{problems.text()};
}

} // namespace sk8
