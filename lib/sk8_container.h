/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * sk8_container.h - what spank_k8s.so shares with slurmctld (which image a job wants) and with the agent in slurmd
 * (in which cgroup the container of a job is, and of which devices its steps are told).
 */
#ifndef SK8_CONTAINER_H
#define SK8_CONTAINER_H

/*
 * Names in the job's SPANK environment (spank_job_control_setenv(); job_record_t.spank_job_env has "NAME=value"): of an
 * image, the text of a template, the name of a ServiceAccount.
 */
#define SK8_SPANK_IMAGE "K8S_IMAGE"
#define SK8_SPANK_TEMPLATE "K8S_TEMPLATE"
#define SK8_SPANK_SERVICE_ACCOUNT "K8S_SERVICE_ACCOUNT"
/* "[host[:port]/]path[:tag][@digest]" (distribution/reference, reference.go); longer ones are refused there. */
#define SK8_LONGEST_IMAGE 512
/* Bytes. slurmctld keeps it in memory with the job, and hands it to prologs as a variable. */
#define SK8_LONGEST_TEMPLATE 16384
/* Of Kubernetes' names (apimachinery, DNS1123SubdomainMaxLength). */
#define SK8_LONGEST_SERVICE_ACCOUNT 253

/*
 * The agent's folder, root's alone: for each job that has a container here a file with its id as name, for each other
 * container of its pod one called "<id>.<container>", of one line: the path of the container's cgroup.procs. It is there before the job is launched and goes with the pod.
 * printf(): the node's name in Slurm.
 */
#define SK8_CONTAINER_FOLDER "/run/slurm-k8s/%s.containers"
/*
 * In that folder, there before the files of jobs: a kubeconfig for the tasks of jobs that have a ServiceAccount. No secret is
 * in it, it names files of the folder below.
 */
#define SK8_KUBECONFIG "kubeconfig"
/* In the container of such a job, as in any pod of Kubernetes: token, ca.crt, namespace. */
#define SK8_TOKEN_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

/*
 * The same for devices that only Kubernetes knows: in this folder of the agent there is a file for each job whose steps are told of some
 * here, from when its kubelet has admitted its pod. "NAME=value", each with a zero byte behind it, of which the first may be
 * the list of devices; as many bytes at most. Empty: their plugins say nothing.
 */
#define SK8_DEVICE_FOLDER "/run/slurm-k8s/%s.devices"
#define SK8_LONGEST_DEVICES 65536
/* For tasks: "/dev/a,/dev/b" */
#define SK8_DEVICES_VARIABLE "SLURM_K8S_DEVICES"

#endif
