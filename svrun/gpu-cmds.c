/* svrun gpu: the table of its verbs. */
#include "svrun/command.h"

const struct command gpu_commands[] = {
	{"ls", "", "list the host's GPUs and who has them", 0, 0, cmd_gpu_ls,
		.full = "svrun gpu ls"},
	{"topology", "", "how the GPUs are connected, and the CPUs near them", 0, 0,
		cmd_gpu_topology, .full = "svrun gpu topology"},
	{"fits", "APP|IMAGE", "can an app run on this host's GPUs?", .program = "svrun-image"},
	{"hold", "[GPU...]", "keep GPUs awake, so that the first to open one does not wait", 0, -1,
		cmd_gpu_hold, .full = "svrun gpu hold"},
	{"allocate", "[GPUS -- COMMAND...]", "GPUs for a program and all it starts; who has which",
		0, -1, cmd_gpu_allocate, .full = "svrun gpu allocate"},
	{"cdi", "", "CDI specs: made for other engines, listed, checked", .sub = gpu_cdi_commands,
		.full = "svrun gpu cdi"},
	{0},
};
