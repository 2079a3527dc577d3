// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A folder for one test, removed with what is in it.
#ifndef SK8_TEST_UNIT_KUBE_TEMP_FOLDER_H
#define SK8_TEST_UNIT_KUBE_TEMP_FOLDER_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <sys/stat.h>

struct TempFolder {
	std::string path;

	TempFolder()
	{
		char name[] = "/tmp/sk8-test-XXXXXX";
		if (!::mkdtemp(name))
			throw std::runtime_error("cannot make a folder in /tmp");
		path = name;
	}
	~TempFolder() { std::filesystem::remove_all(path); }

	std::string write(const std::string &name, const std::string &content, int mode = 0600) const
	{
		std::string file = path + "/" + name;
		std::ofstream(file) << content;
		::chmod(file.c_str(), static_cast<mode_t>(mode));
		return file;
	}
};

#endif
