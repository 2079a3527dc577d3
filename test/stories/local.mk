# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# Pods through Slurm and back, on kubesim and on a real Kubernetes; see conftest.py.
#   make races [RACES=1000] [RACES_API=sim|real] [RACES_SLURM=24.11]     who gets the last core
# RACES_SLURM: another Slurm than that of this build, as script/test --slurm has it, and builds it.
RACES = 1000
RACES_API = sim
RACES_SLURM =
RACES_PYTEST = SK8_BUILD=$(abs_top_builddir) /usr/bin/python3 -m pytest -s -p no:cacheprovider \
	$(top_srcdir)/test/stories/reservations/test_races.py --api $(RACES_API)
RACES_RELEASE = SK8_RACES_API=$(RACES_API) $(top_srcdir)/script/test --slurm $(RACES_SLURM) races
.PHONY: races
races: $(if $(RACES_SLURM),,all)
	SK8_RACES=$(RACES) $(if $(RACES_SLURM),$(RACES_RELEASE),$(RACES_PYTEST))

#   make gate-time [GATE_JOBS=40]                    what the gate adds to the kubelet's own time
GATE_JOBS = 40
.PHONY: gate-time
gate-time: all
	SK8_BUILD=$(abs_top_builddir) SK8_GATE_JOBS=$(GATE_JOBS) /usr/bin/python3 -m pytest -s -p no:cacheprovider \
		$(top_srcdir)/test/stories/reservations/test_gate_time.py --api real

#   make stories                                     all of them, with each release of Slurm; script/test builds what it needs
STORIES = stories sharing reservations containers faults slurm-faults
.PHONY: stories
stories:
	SK8_STORIES=all $(top_srcdir)/script/test $$($(top_srcdir)/script/test --list | \
		awk -v of='$(STORIES)' 'BEGIN { gsub(/ /, "|", of) } $$1 ~ "^(" of ")-(real|sim)(-|$$)" { print $$1 }')

EXTRA_DIST += \
	test/stories/claims.py \
	test/stories/clock.py \
	test/stories/command.py \
	test/stories/conftest.py \
	test/stories/device_plugin.py \
	test/stories/exclusive.py \
	test/stories/hook_clock.c \
	test/stories/faults/test_absent.py \
	test/stories/faults/test_etcd_backup.py \
	test/stories/faults/test_restarts.py \
	test/stories/faults/test_rights.py \
	test/stories/faults/test_slurm_clock.py \
	test/stories/faults/test_slurm_faults.py \
	test/stories/faults/test_standby.py \
	test/stories/faults/test_state_save.py \
	test/stories/foreign.py \
	test/stories/had.py \
	test/stories/mixed.py \
	test/stories/node.py \
	test/stories/resubmit.py \
	test/stories/outage.py \
	test/stories/pam_login.py \
	test/stories/containers/pmi2_client.c \
	test/stories/containers/private_tmp.c \
	test/stories/containers/test_cgroups.py \
	test/stories/containers/test_commands.py \
	test/stories/containers/test_components.py \
	test/stories/containers/test_container.py \
	test/stories/containers/test_dedicated.py \
	test/stories/containers/test_device_claims.py \
	test/stories/containers/test_container_steps.py \
	test/stories/containers/test_container_ends.py \
	test/stories/containers/test_gpus.py \
	test/stories/containers/test_groups.py \
	test/stories/containers/test_service_account.py \
	test/stories/containers/test_task_prolog.py \
	test/stories/containers/test_volumes.py \
	test/stories/containers/test_x11.py \
	test/stories/containers/unchecked_template.c \
	test/stories/containers/x11_client.c \
	test/stories/sharing/test_backfill.py \
	test/stories/sharing/test_claims.py \
	test/stories/sharing/test_device_plugin.py \
	test/stories/sharing/test_exclusive.py \
	test/stories/sharing/test_foreign.py \
	test/stories/reservations/test_gate_time.py \
	test/stories/sharing/test_gres.py \
	test/stories/reservations/test_mixed.py \
	test/stories/sharing/test_pinned.py \
	test/stories/reservations/test_races.py \
	test/stories/reservations/test_scheduler.py \
	test/stories/reservations/test_shared_reservation.py \
	test/stories/sharing/test_sharing.py \
	test/stories/sharing/test_tokens.py \
	test/stories/containers/test_template.py \
	test/stories/slurm_clock.py \
	test/stories/slurm_conf.py \
	test/stories/test_accounting.py \
	test/stories/test_administrator.py \
	test/stories/test_agent.py \
	test/stories/test_cancel.py \
	test/stories/test_check.py \
	test/stories/test_crowd.py \
	test/stories/test_ends.py \
	test/stories/test_hostile.py \
	test/stories/test_identity.py \
	test/stories/test_many_nodes.py \
	test/stories/test_node_features.py \
	test/stories/test_node_state.py \
	test/stories/test_nodes.py \
	test/stories/test_numbers.py \
	test/stories/test_preemption.py \
	test/stories/test_removal.py \
	test/stories/test_resubmit.py \
	test/stories/test_time.py \
	test/stories/test_tool.py \
	test/stories/turns.py \
	test/stories/world.py
