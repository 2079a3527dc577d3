/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * forward.h - the symbols that each release of Slurm wants from a select plugin:
 * X(return type, symbol, (parameters), (arguments)).
 *
 * SEL_PLAIN is forwarded unchanged, SEL_USAGE too but then jobs hold other cores,
 * SEL_HOOKED is written out in select_cons_tres.c.
 */
#ifndef SK8_SELECT_FORWARD_H
#define SK8_SELECT_FORWARD_H

#include "lib/slurm/release.h"

#define SEL_HOOKED_ALL(X) \
X(int, select_p_node_init, (void), ()) \
X(int, select_p_job_test, (SK8_JOB_TEST_PARAMS), (SK8_JOB_TEST_ARGS)) \
X(int, select_p_job_fini, (job_record_t *j), (j)) \
X(int, select_p_job_suspend, (job_record_t *j, bool i), (j, i)) \
X(int, select_p_job_resume, (job_record_t *j, bool i), (j, i)) \
X(int, select_p_job_resized, (job_record_t *j, node_record_t *n), (j, n)) \
X(int, select_p_select_nodeinfo_set_all, (void), ()) \
X(int, select_p_select_nodeinfo_set, (job_record_t *j), (j)) \
X(int, select_p_reconfigure, (void), ())

#define SEL_USAGE(X) \
X(int, select_p_job_expand, (job_record_t *f, job_record_t *t), (f, t))

#define SEL_PLAIN_ALL(X) \
X(int, select_p_job_begin, (job_record_t *j), (j)) \
X(int, select_p_job_ready, (job_record_t *j), (j))

/* gone in 26.05 */
#define SEL_PLAIN_OLD(X) \
X(int, select_p_state_restore, (char *d), (d)) \
X(int, select_p_job_init, (sk8_list_t l), (l)) \
X(int, select_p_step_start, (step_record_t *s), (s)) \
X(int, select_p_step_finish, (step_record_t *s, bool k), (s, k)) \
X(bitstr_t *, select_p_step_pick_nodes, (job_record_t *j, select_jobinfo_t *i, uint32_t n, bitstr_t **a), (j, i, n, a)) \
X(int, select_p_select_nodeinfo_pack, (select_nodeinfo_t *n, buf_t *b, uint16_t v), (n, b, v)) \
X(int, select_p_select_nodeinfo_unpack, (select_nodeinfo_t **n, buf_t *b, uint16_t v), (n, b, v)) \
X(select_nodeinfo_t *, select_p_select_nodeinfo_alloc, (void), ()) \
X(int, select_p_select_nodeinfo_free, (select_nodeinfo_t *n), (n)) \
X(int, select_p_select_nodeinfo_get, (select_nodeinfo_t *n, enum select_nodedata_type d, enum node_states s, void *p), (n, d, s, p)) \
X(select_jobinfo_t *, select_p_select_jobinfo_alloc, (void), ()) \
X(int, select_p_select_jobinfo_free, (select_jobinfo_t *i), (i)) \
X(int, select_p_select_jobinfo_set, (select_jobinfo_t *i, enum select_jobdata_type d, void *p), (i, d, p)) \
X(int, select_p_select_jobinfo_get, (select_jobinfo_t *i, enum select_jobdata_type d, void *p), (i, d, p)) \
X(select_jobinfo_t *, select_p_select_jobinfo_copy, (select_jobinfo_t *i), (i)) \
X(int, select_p_select_jobinfo_pack, (select_jobinfo_t *i, buf_t *b, uint16_t v), (i, b, v)) \
X(int, select_p_select_jobinfo_unpack, (select_jobinfo_t **i, buf_t *b, uint16_t v), (i, b, v)) \
X(int, select_p_get_info_from_plugin, (enum select_plugindata_info d, job_record_t *j, void *p), (d, j, p))

#define SEL_HOOKED_OLD(X) \
X(int, select_p_state_save, (char *d), (d))

#if defined(SK8_SLURM_2205)
# define SEL_PLAIN(X) SEL_PLAIN_ALL(X) SEL_PLAIN_OLD(X) \
X(int, select_p_job_signal, (job_record_t *j, int s), (j, s)) \
X(char *, select_p_select_jobinfo_sprint, (select_jobinfo_t *i, char *b, size_t s, int m), (i, b, s, m)) \
X(char *, select_p_select_jobinfo_xstrdup, (select_jobinfo_t *i, int m), (i, m)) \
X(int, select_p_update_node_config, (int i), (i)) \
X(bitstr_t *, select_p_resv_test, (resv_desc_msg_t *r, uint32_t c, bitstr_t *a, bitstr_t **e), (r, c, a, e))
# define SEL_HOOKED(X) SEL_HOOKED_ALL(X) SEL_HOOKED_OLD(X)
# define SEL_HAS_STATE_SAVE 1
#elif defined(SK8_SLURM_2411)
# define SEL_PLAIN(X) SEL_PLAIN_ALL(X) SEL_PLAIN_OLD(X)
# define SEL_HOOKED(X) SEL_HOOKED_ALL(X) SEL_HOOKED_OLD(X)
# define SEL_HAS_STATE_SAVE 1
#else
# define SEL_PLAIN(X) SEL_PLAIN_ALL(X) \
X(void, select_p_job_mem_reduce, (job_record_t *j), (j))
# define SEL_HOOKED(X) SEL_HOOKED_ALL(X)
#endif

#define SEL_ALL(X) SEL_PLAIN(X) SEL_USAGE(X) SEL_HOOKED(X)

#endif
