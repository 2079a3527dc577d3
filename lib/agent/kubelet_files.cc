// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/kubelet_files.h"

#include <sys/stat.h>

#include "lib/base/file.h"
#include "lib/base/log_limit.h"

namespace sk8::agent {

static constexpr std::size_t max_file = 8 << 20; // bytes; the checkpoint names each container with what its plugin answered

ReplacedFile::Stamp ReplacedFile::look() const
{
	struct stat s;
	if (stat(path_.c_str(), &s) != 0)
		return {};
	return {s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec};
}

std::optional<std::string> ReplacedFile::news()
{
	// Before it is read: what is written meanwhile has another stamp the next time.
	const Stamp now = look();
	if (std::exchange(seen_, now) == now)
		return std::nullopt;
	reads_++;
	auto text = read_file(path_, max_file);
	if (text)
		return std::move(*text);
	if (now == Stamp{}) // what is not there says that nothing is given
		return "";
	seen_.reset(); // it will be the same file when it can be read
	log_limited(LogLevel::warning, path_, "agent: %s; what it said before counts", text.error().message.c_str());
	return std::nullopt;
}

KubeletFiles::KubeletFiles(const std::string &root_dir, const std::string &device_plugin_dir)
	: cpu_file_(root_dir + "/cpu_manager_state"), device_file_(device_plugin_dir + "/kubelet_internal_checkpoint")
{
}

void KubeletFiles::look()
{
	if (const auto text = cpu_file_.news())
		cpus_ = parse_cpu_manager(*text);
	if (const auto text = device_file_.news())
		devices_ = parse_device_manager(*text);
}

} // namespace sk8::agent
