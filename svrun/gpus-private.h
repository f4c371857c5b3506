/* Shared by svrun/gpus*.c only. */
#ifndef SVRUN_GPUS_PRIVATE_H
#define SVRUN_GPUS_PRIVATE_H

#include "gpu/cdi.h"
#include "gpu/facts.h"
#include "gpu/nvidia.h"
#include "gpu/require.h"
#include "gpu/reserve.h"
#include "svrun/gpus.h"

struct gpus {
	struct gpu_host host;
	struct gpu_inventory inventory;
	struct gpu_probe probe;
	struct gpu_request request;
	struct gpu_extras extras;
	struct gpu_grants grants; /* of --gpus */
	struct cdi cdi;
	struct strings cdi_names; /* of --device */
	struct gpu_reservation held, held_cdi;
	struct gpu_wishes wishes;
	struct gpu_edits edits;
	struct strings env; /* the image's, then the caller's */
	json_t *label;      /* run.svrun.gpu */
	bool has_host, has_inventory, has_probe, has_cdi, has_wishes, has_extras;
	bool has_layer, untouched;
	char *who; /* "instance NAME" */
	struct arena mem;
};

/* gpus-check.c: reserve what g->request asks for, and check what the image requires of it. */
int gpus_take(struct gpus *g, struct err *e) must_check;
/* All GPUs of WSL2 are one device, without a list of them: how many there are, and whether they are
 * good enough, nobody here knows. */
bool gpus_of_windows(const struct gpus *g);
/* Does the image's label say that it needs GPUs? How many. */
uint32_t gpus_required(const json_t *label);

#endif
