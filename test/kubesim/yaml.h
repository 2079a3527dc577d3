// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#ifndef KUBESIM_YAML_H
#define KUBESIM_YAML_H

#include <string>
#include <vector>

#include "test/kubesim/jv.h"

namespace kubesim {

// The first document. Absent on error, which is then said in *error.
J parse_yaml(const std::string &text, std::string *error);
std::vector<J> parse_yaml_documents(const std::string &text, std::string *error);

} // namespace kubesim

#endif
