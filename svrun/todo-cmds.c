/* Commands on their way. */
#include "svrun/command.h"

#define TODO(name)                                                                                 \
	int name(const struct command *self, int argc, char **argv, struct err *e)                 \
	{                                                                                          \
		(void)argc;                                                                        \
		(void)argv;                                                                        \
		return err_set(e, ERR_UNSUPPORTED, "%s is not built yet", self->full);             \
	}

TODO(cmd_image_prune)
TODO(cmd_image_gc)
TODO(cmd_image_du)
TODO(cmd_image_fsck)
