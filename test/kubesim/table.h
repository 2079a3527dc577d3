// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Columns of `kubectl get`, as the API server computes them.
#ifndef KUBESIM_TABLE_H
#define KUBESIM_TABLE_H

#include <string>
#include <vector>

#include "test/kubesim/jv.h"
#include "test/kubesim/kinds.h"

namespace kubesim {

struct Column {
	const char *name, *type, *format;
	int priority; // 1: only with -o wide
	const char *description;
};

struct TableFormat {
	std::vector<Column> column_list;
	J (*cells)(const J &object); // an array, one cell per column
	J columns() const;
};

// For the stored form of a kind; kinds without columns of their own get name and age.
const TableFormat &table_format(const Kind &kind);

// "5s", "3m20s", "2d", as kubectl prints ages.
std::string human_duration(std::int64_t seconds);

} // namespace kubesim

#endif
