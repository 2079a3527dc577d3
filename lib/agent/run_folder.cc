// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/run_folder.h"

#include <unistd.h>

#include <filesystem>

namespace sk8::agent {

std::string made_empty(std::string folder)
{
	std::error_code failed; // write_file_atomic() tells; what cannot be removed is replaced when its job comes again
	std::filesystem::create_directories(folder, failed);
	std::filesystem::permissions(folder, std::filesystem::perms::owner_all, failed);
	for (const auto &left : std::filesystem::directory_iterator(folder, failed))
		std::filesystem::remove(left, failed);
	return folder;
}

bool is_still_there(const std::string &file)
{
	return access(file.c_str(), F_OK) == 0;
}

} // namespace sk8::agent
