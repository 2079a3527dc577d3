// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/options.h"

#include "lib/base/text.h"

namespace sk8::tools {

std::string Arguments::get(const std::string &option, const std::string &otherwise) const
{
	auto it = options.find(option);
	return it == options.end() ? otherwise : it->second;
}

static const Option *find_option(const Command &command, std::string_view name)
{
	for (const Option &o : command.options)
		if (name == o.name)
			return &o;
	return nullptr;
}

Result<Arguments> parse_arguments(const Command &command, const std::vector<std::string> &argv)
{
	Arguments out;
	bool only_words = false;
	for (std::size_t i = 0; i < argv.size(); i++) {
		const std::string &word = argv[i];
		if (only_words || word.size() < 2 || word[0] != '-') {
			out.words.push_back(word);
			continue;
		}
		if (word == "--") {
			only_words = true;
			continue;
		}
		const auto equals = word.find('=');
		const std::string name = word.substr(0, equals);
		const Option *option = find_option(command, name);
		if (!option)
			return Error{"unknown option " + one_line(name, 64)};
		if (!option->value && equals != word.npos)
			return Error{name + " takes no value"};
		if (out.has(name))
			return Error{name + " is given twice"};
		std::string value;
		if (option->value && equals != word.npos)
			value = word.substr(equals + 1);
		else if (option->value && i + 1 < argv.size())
			value = argv[++i];
		if (option->value && value.empty())
			return Error{name + " needs a value: " + option->value};
		out.options[name] = value;
	}
	if (out.words.size() < command.min_words)
		return Error{std::string(command.words) + " is missing"};
	if (out.words.size() > command.max_words)
		return Error{"what is \"" + one_line(out.words[command.max_words], 64) + "\" for?"};
	return out;
}

std::string help_of(const Command &command)
{
	std::string usage = std::string("usage: slurm-k8s ") + command.name;
	std::string rows;
	for (const Option &o : command.options) {
		const std::string option = std::string(o.name) + (o.value ? std::string(" ") + o.value : "");
		usage += " [" + option + "]";
		rows += strprintf("  %-18s %s\n", option.c_str(), o.help);
	}
	if (*command.words)
		usage += std::string(" ") + (command.min_words ? "" : "[") + command.words + (command.min_words ? "" : "]");
	return usage + "\n\n" + command.help + "\n" + (rows.empty() ? "" : "\n" + rows);
}

} // namespace sk8::tools
