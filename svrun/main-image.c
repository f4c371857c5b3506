/* svrun-image: the verbs of `svrun image` that fetch, unpack and compress. svrun execs it. */
#include "svrun/command.h"

static const struct command image_commands[] = {
	{"lock", "APP", "resolve a manifest's inputs and pin them by digest in lock.json", 1, 1,
		cmd_image_lock, .full = "svrun image lock"},
	{"build", "APP", "build the image of a locked manifest", 1, 1, cmd_image_build,
		.full = "svrun image build"},
	{"verify", "NAME...", "hash all of an image again, repair the pool", 0, -1,
		cmd_image_verify, .full = "svrun image verify"},
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
