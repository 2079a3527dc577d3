// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The settings that count: those of slurm-k8s.yaml, and while it has a mistake or cannot be read the last ones that had none.
// slurmctld may start anew meanwhile (a crash, a failover, and from Slurm 23.11 on each reconfigure), and jobs must not run
// beside pods without their reservation pods for a slip of the pen: so a copy of these is kept in StateSaveLocation.
#ifndef SK8_CORE_SETTINGS_IN_FORCE_H
#define SK8_CORE_SETTINGS_IN_FORCE_H

#include <cstdint>
#include <string>

#include "lib/core/settings.h"

namespace sk8::core {

// "<state_dir>/slurm-k8s.yaml"
std::string kept_settings_path(const std::string &state_dir);

struct SettingsInForce {
	Result<Settings> settings; // Error: there are none
	std::string text;          // of slurm-k8s.yaml, if it is fine: for keep_settings()
	std::string trouble;       // of it, a line for each mistake; empty: it is fine
};
// Reads from the disk. slurm_uid: whose files are believed, beside root's.
SettingsInForce find_settings(const std::string &config_path, const std::string &state_dir, std::uint32_t slurm_uid);

// Writes to the disk, if the copy is another one; one thread at a time. After an error there is no copy: an older one would be
// worse than none.
Result<void> keep_settings(const std::string &text, const std::string &state_dir, std::uint32_t slurm_uid);

} // namespace sk8::core

#endif
