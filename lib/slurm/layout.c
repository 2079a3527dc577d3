/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * layout.c - do our headers describe the slurmctld we run in?
 *
 * The plugin's version was compared with slurmctld's already, but distributions
 * patch, and micro releases change internal structs: Debian's 26.05.5 has a
 * job_record_t with 8 bytes more before job_id than the source of 26.05.3. What we
 * would read there is garbage, and what we would write is damage.
 *
 * So each struct is measured (sizes.h) before its first use; then its magic number
 * and, of a job, slurmctld's own hash table must agree.
 */
#include <stddef.h>
#include <string.h>
#include "lib/slurm/sizes.h"
#include "lib/slurm/slurmctld.h"

static bool broken;	/* once true it stays */
static bool in_table;	/* job_id was seen to be where slurmctld's table of jobs has it */

/* what has been seen to fit: it is not looked at again */
struct piece {
	const char *name;
	size_t size;
	uint32_t magic;		/* 0: it has none */
	size_t magic_at;
	bool seen;
};

enum { NODE, PARTITION, RESERVATION, JOB, DETAILS, RESOURCES, GRES, GRES_NODE, GRES_JOB };

#define PLAIN(type) { .name = #type, .size = sizeof(type) }
#define WITH_MAGIC(type, number) \
	{ .name = #type, .size = sizeof(type), .magic = number, .magic_at = offsetof(type, magic) }

static struct piece pieces[] = {
	[NODE] = WITH_MAGIC(node_record_t, NODE_MAGIC),
	[PARTITION] = WITH_MAGIC(part_record_t, PART_MAGIC),
	[RESERVATION] = PLAIN(slurmctld_resv_t),
	[JOB] = WITH_MAGIC(job_record_t, JOB_MAGIC),
	[DETAILS] = WITH_MAGIC(job_details_t, DETAILS_MAGIC),
	[RESOURCES] = PLAIN(job_resources_t),
	[GRES] = PLAIN(gres_state_t),
	[GRES_NODE] = PLAIN(gres_node_state_t),
	[GRES_JOB] = PLAIN(gres_job_state_t),
};

static bool refuse(const char *what)
{
	if (!__atomic_exchange_n(&broken, true, __ATOMIC_RELAXED))
		error("slurm-k8s: %s of this slurmctld is not that of the Slurm %s which slurm-k8s was built with: jobs are scheduled as if slurm-k8s were not there; build it with the source of the installed Slurm",
		      what, SK8_SLURM_VERSION);
	return false;
}

static uint32_t magic_of(const struct piece *piece, const void *p)
{
	uint32_t magic;

	memcpy(&magic, (const char *) p + piece->magic_at, sizeof(magic));
	return magic;
}

/* p may be NULL: there is none yet */
static bool fits(struct piece *piece, const void *p)
{
	if (!p || __atomic_load_n(&piece->seen, __ATOMIC_RELAXED))
		return true;
	if (!sk8_is_sized(p, piece->size) || (piece->magic && (magic_of(piece, p) != piece->magic)))
		return refuse(piece->name);
	__atomic_store_n(&piece->seen, true, __ATOMIC_RELAXED);
	return true;
}

static const void *first_of(sk8_list_t list)
{
	return list ? list_peek(list) : NULL;
}

extern bool sk8_layout_fits(void)
{
	return !__atomic_load_n(&broken, __ATOMIC_RELAXED);
}

extern bool sk8_layout_fits_daemon(void)
{
	if (!sk8_conf_fits())
		return refuse("slurm_conf_t");
	if (!sk8_symbol_is_sized(&slurmctld_config, sizeof(slurmctld_config)))
		return refuse("slurmctld_config_t");
	if (!sk8_node_update_fits())
		return refuse("update_node_msg_t");
	return sk8_desc_fits() || refuse("job_desc_msg_t");
}

extern bool sk8_layout_fits_reservations(void)
{
	return sk8_layout_fits() && fits(&pieces[RESERVATION], first_of(resv_list));
}

extern bool sk8_layout_fits_record(job_record_t *job_ptr)
{
	return sk8_layout_fits() && fits(&pieces[JOB], job_ptr) && fits(&pieces[DETAILS], job_ptr->details) &&
		fits(&pieces[RESOURCES], job_ptr->job_resrcs);
}

/* Of 24.11 our headers have only the beginning */
static bool fits_shown(const node_record_t *node_ptr)
{
	size_t size;
	const void *shown = node_ptr ? sk8_shown(node_ptr, &size) : NULL;

	return !shown || (xsize((void *) shown) >= size) ||
		refuse("what select/cons_tres shows of a node");
}

extern bool sk8_layout_fits_tables(void)
{
	int i = 0;
	const node_record_t *node_ptr = next_node(&i);

	return sk8_layout_fits() && fits(&pieces[NODE], node_ptr) && fits_shown(node_ptr) &&
		fits(&pieces[PARTITION], first_of(part_list)) &&
		sk8_layout_fits_reservations() && sk8_with_new_job(sk8_layout_fits_record) &&
		(sk8_masks_fit() || refuse("what select/cons_tres keeps"));
}

extern bool sk8_layout_fits_job(job_record_t *job_ptr)
{
	if (!sk8_layout_fits_record(job_ptr))
		return false;
	if (__atomic_load_n(&in_table, __ATOMIC_RELAXED))
		return true;
	if (find_job_record(job_ptr->job_id) != job_ptr)
		return refuse(pieces[JOB].name);
	__atomic_store_n(&in_table, true, __ATOMIC_RELAXED);
	return true;
}

extern bool sk8_layout_fits_gres(const gres_state_t *state)
{
	return sk8_layout_fits() && fits(&pieces[GRES], state);
}

extern bool sk8_layout_fits_gres_node(const gres_node_state_t *ns)
{
	return sk8_layout_fits() && fits(&pieces[GRES_NODE], ns);
}

extern bool sk8_layout_fits_gres_job(const gres_job_state_t *js)
{
	return sk8_layout_fits() && fits(&pieces[GRES_JOB], js);
}
