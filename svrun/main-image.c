/* svrun-image: the verbs of `svrun image` that fetch, unpack and compress. svrun execs it. */
#include "svrun/command.h"

static const struct command image_commands[] = {
	{"lock", "APP", "resolve a manifest's inputs and pin them by digest in lock.json", 1, 1,
		cmd_image_lock, .full = "svrun image lock"},
	{"build", "APP", "build the image of a locked manifest", 1, 1, cmd_image_build,
		.full = "svrun image build"},
	{"verify", "NAME...", "hash all of an image again, repair the pool", 0, -1,
		cmd_image_verify, .full = "svrun image verify"},
	{"login", "HOST", "keep a user and password for a registry", 1, 1, cmd_image_login,
		.full = "svrun image login"},
	{"logout", "HOST", "forget them", 1, 1, cmd_image_logout, .full = "svrun image logout"},
	{"pull", "REF...", "fetch images from registries", 1, -1, cmd_image_pull,
		.full = "svrun image pull"},
	{"push", "IMAGE [REF]", "send an image to a registry", 1, 2, cmd_image_push,
		.full = "svrun image push"},
	{"convert", "IMAGE NEW", "write the layers anew: other compression, with an index", 2, 2,
		cmd_image_convert, .full = "svrun image convert"},
	{"load", "[FILE]", "read images out of an archive or a folder", 0, 1, cmd_image_load,
		.full = "svrun image load"},
	{"save", "IMAGE...", "write images as an archive or a folder", 1, -1, cmd_image_save,
		.full = "svrun image save"},
	{"import", "FILE NAME", "make an image of a root file system in a tar", 2, 2,
		cmd_image_import, .full = "svrun image import"},
	{"export", "IMAGE", "write an image's files as one tar", 1, 1, cmd_image_export,
		.full = "svrun image export"},
	{"mount", "[IMAGE...]",
		"mount images read-only to look inside; without one: list what is mounted", 0, -1,
		cmd_image_mount, .full = "svrun image mount"},
	{"unmount", "IMAGE...", "undo mount", 0, -1, cmd_image_unmount,
		.full = "svrun image unmount"},
	{"diff", "A B", "what differs: files, packages, configuration", 2, 2, cmd_image_diff,
		.full = "svrun image diff"},
	{"prune", "", "remove images that have no name", 0, 0, cmd_image_prune,
		.full = "svrun image prune"},
	{"gc", "", "give back space that no image uses", 0, 0, cmd_image_gc,
		.full = "svrun image gc"},
	{"du", "[IMAGE...]", "space that images use: shared and their own", 0, -1, cmd_image_du,
		.full = "svrun image du"},
	{"fsck", "", "hash the whole store again, repair it", 0, 0, cmd_image_fsck,
		.full = "svrun image fsck"},
	{0},
};

static const struct command commands[] = {
	{"image", "COMMAND", "build, lock and verify images", .sub = image_commands,
		.full = "svrun image"},
	{0},
};

int main(int argc, char **argv)
{
	return command_main(commands, argc, argv);
}
