/* svrun: what must start fast. The verbs that need curl, libarchive, isa-l or zstd are
 * svrun-image's. */
#include <stdio.h>

#include "svrun/command.h"
#include "svrun/options.h"

static int cmd_version(const struct command *self, int argc, char **argv, struct err *e)
{
	const struct option_spec options[] = {{0}};

	if (options_parse(self, options, argc, argv, false, e) < 0)
		return -1;
	puts("svrun " SVRUN_VERSION);
	return 0;
}

static const struct command image_commands[] = {
	{"ls", "", "list images", 0, 0, cmd_image_ls, .full = "svrun image ls"},
	{"new", "NAME", "a manifest to begin with", .program = "svrun-image"},
	{"resolve", "APP", "a manifest with all it inherits", .program = "svrun-image"},
	{"lint", "[APP...]", "what a manifest should say better, and why",
		.program = "svrun-image"},
	{"lock", "APP", "resolve a manifest's inputs and pin them", .program = "svrun-image"},
	{"plan", "APP", "what a build would fetch, run and write", .program = "svrun-image"},
	{"build", "APP...", "build the images of locked manifests", .program = "svrun-image"},
	{"log", "APP [STEP]", "what a step of the last build printed", .program = "svrun-image"},
	{"test", "APP|IMAGE", "run the tests of a manifest", .program = "svrun-image"},
	{"commit", "INSTANCE NAME", "make an image of what a container changed",
		.program = "svrun-image"},
	{"inspect", "NAME", "digests, config, layers and index of an image", 1, 1,
		cmd_image_inspect, .full = "svrun image inspect"},
	{"history", "NAME", "the layers of an image and what brought them", 1, 1, cmd_image_history,
		.full = "svrun image history"},
	{"tag", "NAME NEW", "give an image one more name", 2, 2, cmd_image_tag,
		.full = "svrun image tag"},
	{"rm", "NAME...", "remove names, and images that lose their last one", 1, -1, cmd_image_rm,
		.full = "svrun image rm"},
	{"verify", "NAME...", "hash all of an image again, repair the pool",
		.program = "svrun-image"},
	{"key", "NAME", "make a pair of keys to sign images with", .program = "svrun-image"},
	{"sign", "IMAGE", "sign an image", .program = "svrun-image"},
	{"verify-signature", "IMAGE...",
		"is an image signed by a key, or as the site's policy wants?",
		.program = "svrun-image"},
	{"sbom", "IMAGE", "what is in an image: SPDX or CycloneDX", .program = "svrun-image"},
	{"provenance", "IMAGE", "what an image was built from: SLSA", .program = "svrun-image"},
	{"scan", "IMAGE", "which known vulnerabilities an image has", .program = "svrun-image"},
	{"why", "IMAGE PATH", "which input brought a file, and why that is there",
		.program = "svrun-image"},
	{"login", "HOST", "keep a user and password for a registry", .program = "svrun-image"},
	{"logout", "HOST", "forget them", .program = "svrun-image"},
	{"pull", "REF...", "fetch images from registries", .program = "svrun-image"},
	{"push", "IMAGE [REF]", "send an image to a registry", .program = "svrun-image"},
	{"convert", "IMAGE NEW", "write the layers anew: other compression, with an index",
		.program = "svrun-image"},
	{"models", "IMAGE", "make the models ready that an image brings beside its layers",
		.program = "svrun-image"},
	{"rebase", "IMAGE [NAME]", "put an image's own layers on another base",
		.program = "svrun-image"},
	{"load", "[FILE]", "read images out of an archive or a folder", .program = "svrun-image"},
	{"save", "IMAGE...", "write images as an archive or a folder", .program = "svrun-image"},
	{"import", "FILE NAME", "make an image of a root file system in a tar",
		.program = "svrun-image"},
	{"export", "IMAGE", "write an image's files as one tar", .program = "svrun-image"},
	{"mount", "[IMAGE...]",
		"mount images read-only to look inside; without one: list what is mounted",
		.program = "svrun-image"},
	{"unmount", "IMAGE...", "undo mount", .program = "svrun-image"},
	{"diff", "A B", "what differs: files, packages, configuration", .program = "svrun-image"},
	{"prune", "", "remove images that have no name", .program = "svrun-image"},
	{"gc", "", "give back space that no image uses", .program = "svrun-image"},
	{"du", "[IMAGE...]", "space that images use: shared and their own",
		.program = "svrun-image"},
	{"fsck", "", "hash the whole store again, repair it", .program = "svrun-image"},
	{0},
};

static const struct command commands[] = {
	{"run", "IMAGE [COMMAND ARG...]", "run a command in a new container", 1, -1, cmd_run,
		.full = "svrun run"},
	{"stop", "ID...", "stop containers, and wait until they have ended", 1, -1, cmd_stop,
		.full = "svrun stop"},
	{"start", "ID", "start a container that ended again, with all it wrote", 1, 1, cmd_start,
		.full = "svrun start"},
	{"restart", "ID", "stop a container and start it again, also with other GPUs", 1, 1,
		cmd_restart, .full = "svrun restart"},
	{"ps", "", "list containers, also those that ended and were kept", 0, 0, cmd_ps,
		.full = "svrun ps"},
	{"rm", "ID...", "remove containers that ended, with all they wrote", 0, -1, cmd_rm,
		.full = "svrun rm"},
	{"image", "COMMAND", "build, list, inspect, verify and remove images",
		.sub = image_commands, .full = "svrun image"},
	{"gpu", "COMMAND", "list and check the host's GPUs", .sub = gpu_commands,
		.full = "svrun gpu"},
	{"doctor", "", "is this host fit to run containers, and its GPUs?", 0, 0, cmd_doctor,
		.full = "svrun doctor"},
	{"version", "", "print the version", .run = cmd_version, .full = "svrun version"},
	{0},
};

int main(int argc, char **argv)
{
	return command_main(commands, argc, argv);
}
