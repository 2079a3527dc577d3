// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// How the engine of a cluster watches a kind of objects that it has one watch of.
#ifndef SK8_CORE_CLUSTER_WATCH_H
#define SK8_CORE_CLUSTER_WATCH_H

#include <memory>
#include <string>
#include <utility>

#include "lib/core/cluster_engine.h"

namespace sk8::core {

template <class T>
void ClusterEngine::start_watch(std::unique_ptr<kube::Reflector<T>> &reflector, const std::string &what, kube::ReflectorOptions options,
				Result<std::shared_ptr<const T>> (*decode)(const Json &), typename kube::Reflector<T>::Callbacks call)
{
	options.name = what + " of cluster " + settings_.name;
	options.backoff.most = longest_pause;
	call.on_lost = [this, what](std::string why) { link_.lost(what, why); };
	call.on_regained = [this, what] { back(what); };
	reflector = std::make_unique<kube::Reflector<T>>(*client_, options, decode, call, [this] { return random(); });
	reflector->start();
}

} // namespace sk8::core

#endif
