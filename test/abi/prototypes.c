/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * prototypes.c - fails to compile if one of our plugin functions has not the type
 * that Slurm's loader calls it with. The .inc files are made from the lists of
 * symbols beside this file, the _ops.h files from the source tree's own tables.
 */
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#include "plugins/select/select_cons_tres.c"
#define plugin_name job_submit_plugin_name
#define plugin_type job_submit_plugin_type
#define plugin_version job_submit_plugin_version
#define init job_submit_init
#define fini job_submit_fini
#include "plugins/job_submit/job_submit_k8s.c"
#include "test/abi/select_ops.h"
#include "test/abi/submit_ops.h"

extern const slurm_select_ops_t sk8_test_select_ops;
extern const slurm_submit_ops_t sk8_test_submit_ops;

const slurm_select_ops_t sk8_test_select_ops = {
#include "test/abi/select.inc"
};

const slurm_submit_ops_t sk8_test_submit_ops = {
#include "test/abi/job_submit.inc"
};
