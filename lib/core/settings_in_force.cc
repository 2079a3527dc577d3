// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/settings_in_force.h"

#include <cerrno>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/config.h"
#include "lib/base/file.h"

namespace sk8::core {

std::string kept_settings_path(const std::string &state_dir)
{
	return state_dir + "/slurm-k8s.yaml";
}

static bool exists(const std::string &path)
{
	struct stat status;
	return ::lstat(path.c_str(), &status) == 0 || errno != ENOENT;
}

static Result<std::string> kept_text(const std::string &path, std::uint32_t slurm_uid)
{
	return read_file(path, max_yaml_bytes, Trust::state, slurm_uid);
}

SettingsInForce find_settings(const std::string &config_path, const std::string &state_dir, std::uint32_t slurm_uid)
{
	Result<std::string> text = load_config_text(config_path, slurm_uid);
	Result<Settings> now = text ? parse_settings(*text, config_path) : Result<Settings>(text.error());
	if (now)
		return {std::move(now), std::move(*text), ""};
	std::string trouble = now.error().message;
	const std::string path = kept_settings_path(state_dir);
	if (!exists(path))
		return {std::move(now), "", std::move(trouble)};
	const Result<std::string> kept = kept_text(path, slurm_uid);
	Result<Settings> former = kept ? parse_settings(*kept, path) : Result<Settings>(kept.error());
	if (!former)
		trouble += "\n" + former.error().message;
	return {std::move(former), "", std::move(trouble)};
}

Result<void> keep_settings(const std::string &text, const std::string &state_dir, std::uint32_t slurm_uid)
{
	const std::string path = kept_settings_path(state_dir);
	if (const auto kept = kept_text(path, slurm_uid); kept && *kept == text)
		return {};
	auto written = write_file_atomic(path, text);
	if (!written)
		::unlink(path.c_str());
	return written;
}

} // namespace sk8::core
