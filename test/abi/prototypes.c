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
#define stamp job_submit_stamp
#include "plugins/job_submit/job_submit_k8s.c"
#undef plugin_name
#undef plugin_type
#undef plugin_version
#undef init
#undef fini
#undef stamp
#define plugin_name prep_plugin_name
#define plugin_type prep_plugin_type
#define plugin_version prep_plugin_version
#define init prep_init
#define fini prep_fini
#define stamp prep_stamp
#define hooks prep_hooks
#include "plugins/prep/prep_k8s.c"
#include "test/abi/select_ops.h"
#include "test/abi/submit_ops.h"
#include "test/abi/prep_ops.h"

extern const slurm_select_ops_t sk8_test_select_ops;
extern const slurm_submit_ops_t sk8_test_submit_ops;
extern const prep_ops_t sk8_test_prep_ops;

const slurm_select_ops_t sk8_test_select_ops = {
#include "test/abi/select.inc"
};

const slurm_submit_ops_t sk8_test_submit_ops = {
#include "test/abi/job_submit.inc"
};

const prep_ops_t sk8_test_prep_ops = {
#include "test/abi/prep.inc"
};
