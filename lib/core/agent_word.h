// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the agent of a node says in an annotation of it, from one look at the Node to the next. Pure.
#ifndef SK8_CORE_AGENT_WORD_H
#define SK8_CORE_AGENT_WORD_H

#include <string>

#include "lib/kube/objects.h"

namespace sk8::core {

struct AgentWord {
	std::string uid; // of the Node object that said so
	std::string text;
};

enum class AgentNews { none, gone, text };

// known: what was said before; nullptr: nothing. A Node object that takes the place of another one says nothing until the agent
// has told it: until then the other's word counts.
inline AgentNews agent_news(AgentWord *known, const kube::Node &node, const std::string &text)
{
	if (known && text == known->text)
		known->uid = node.meta.uid;
	if (text == (known ? known->text : ""))
		return AgentNews::none;
	if (text.empty())
		return known->uid == node.meta.uid ? AgentNews::gone : AgentNews::none;
	return AgentNews::text;
}

} // namespace sk8::core

#endif
