// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Where an API server is and how to prove who we are: from a kubeconfig file or
// from the service account of the pod we run in.
#ifndef SK8_KUBE_KUBECONFIG_H
#define SK8_KUBE_KUBECONFIG_H

#include <string>
#include <sys/types.h>

#include "lib/base/file.h"
#include "lib/base/result.h"

namespace sk8::kube {

// Either inline data or a file (absolute path), never both; both empty: not given.
struct Material {
	std::string data; // PEM, or the token
	std::string file; // read again when it changes: credentials rotate
	Trust trust = Trust::owned;

	bool given() const { return !data.empty() || !file.empty(); }
};

struct ClusterAccess {
	std::string source;          // for messages: "/etc/slurm/k8s.kubeconfig, context prod"
	std::string file, context;   // of load_kubeconfig(), to read it again; file may be empty
	std::string server;          // https://host[:port][/prefix], no slash at the end
	std::string tls_server_name; // name in the server's certificate; empty: the host
	std::string proxy_url;       // http://, https:// or socks5://; empty: none
	std::string ns;              // the context's namespace, may be empty
	Material ca;                 // not given: the system's certificates
	Material client_certificate;
	Material client_key;
	Material token;
	uid_t owner = 0; // who besides root may own the files
};

// path: YAML or JSON. context: empty means the file's current-context. owner: the
// user besides root who may own the file and those it names (SlurmUser). The file,
// client keys and token files must not be readable by others. Refused with a
// sentence that says what to use instead: plain http, unverified TLS, passwords,
// exec and auth-provider plugins. Reads files, blocks on the disk.
Result<ClusterAccess> load_kubeconfig(const std::string &path, const std::string &context,
				      uid_t owner);

// The service account that Kubernetes mounts into every pod. folder and the two
// variables KUBERNETES_SERVICE_HOST and _PORT: Kubernetes' convention. The token
// file is watched, as the kubelet replaces it.
Result<ClusterAccess> in_cluster_access(
	const std::string &folder = "/var/run/secrets/kubernetes.io/serviceaccount");

} // namespace sk8::kube

#endif
