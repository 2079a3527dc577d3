// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Folders of files by which the agent tells spank_k8s.so of jobs (lib/sk8_container.h).
#ifndef SK8_AGENT_RUN_FOLDER_H
#define SK8_AGENT_RUN_FOLDER_H

#include <string>

namespace sk8::agent {

// Makes it, root's alone, and removes what a former agent has left in it. Who waits for a file in it watches it: it is there from
// the start on, and never goes. Returns its name. Blocks on the disk.
std::string made_empty(std::string folder);

// A file of it, which this agent has written. From 24.11 on a slurmd that is to take over, and cannot, has emptied the folder
// of the one that goes on. Blocks on the disk.
bool is_still_there(const std::string &file);

} // namespace sk8::agent

#endif
