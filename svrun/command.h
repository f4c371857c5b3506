/* The table of commands: it dispatches, checks the number of words and prints the help. */
#ifndef SVRUN_COMMAND_H
#define SVRUN_COMMAND_H

#include <stdbool.h>

#include "base/err.h"

struct command {
	const char *name;
	const char *words;   /* what follows the options, for the usage line: "NAME NEW" */
	const char *summary; /* one line */
	int min, max;        /* number of words; max -1: any */
	/* argv[0] is the command's name. Returns the exit status, or -1 with e set. */
	int (*run)(const struct command *self, int argc, char **argv, struct err *e);
	const struct command *sub; /* instead of run: a table of commands; ends with a NULL name */
	const char *program;       /* another program that has it: "svrun-image" */
	const char *full;          /* "svrun image ls", for the usage line; NULL: "svrun NAME" */
};

/* Run the command that argv names out of table. Prints the error or the help ("COMMAND --help", or
 * "help COMMAND"). Returns the exit status: 0, 2 for a usage error, 125 for another, or what the
 * command says. */
int command_main(const struct command *table, int argc, char **argv);

/* "svrun image rm [options] NAME..."; to free(). */
char *command_usage(const struct command *c, bool options);

/* Become another program of ours: the one beside us, or in ../libexec/svrun where it is installed.
 */
int command_exec(const char *program, char *const *argv, struct err *e);
/* Its path; to free(). NOT_FOUND. */
char *command_find(const char *program, struct err *e) must_check;

/* svrun/run-cmds.c */
int cmd_run(const struct command *self, int argc, char **argv, struct err *e);
int cmd_restart(const struct command *self, int argc, char **argv, struct err *e);
int cmd_start(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/gpu-allocate-cmd.c */
int cmd_gpu_allocate(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/instance-stop.c */
int cmd_stop(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/gpu-hold-cmd.c */
int cmd_gpu_hold(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/doctor-cmd.c */
int cmd_doctor(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/instance-cmds.c */
int cmd_ps(const struct command *self, int argc, char **argv, struct err *e);
int cmd_rm(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/image-cmds.c */
int cmd_image_ls(const struct command *self, int argc, char **argv, struct err *e);
int cmd_image_inspect(const struct command *self, int argc, char **argv, struct err *e);
int cmd_image_history(const struct command *self, int argc, char **argv, struct err *e);
int cmd_image_rm(const struct command *self, int argc, char **argv, struct err *e);
int cmd_image_tag(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/verify-cmd.c */
int cmd_image_verify(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/lock-cmd.c */
int cmd_image_lock(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/plan-cmds.c */
int cmd_image_plan(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/log-cmd.c */
int cmd_image_log(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/manifest-cmds.c */
int cmd_image_resolve(const struct command *self, int argc, char **argv, struct err *e);
int cmd_image_new(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/build-cmds.c */
int cmd_image_build(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/lint-cmd.c */
int cmd_image_lint(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/login-cmds.c */
int cmd_image_login(const struct command *self, int argc, char **argv, struct err *e);
int cmd_image_logout(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/pull-cmd.c */
int cmd_image_pull(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/push-cmds.c */
int cmd_image_push(const struct command *self, int argc, char **argv, struct err *e);
int cmd_image_convert(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/archive-cmds.c */
int cmd_image_load(const struct command *self, int argc, char **argv, struct err *e);
int cmd_image_save(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/rootfs-cmds.c */
int cmd_image_import(const struct command *self, int argc, char **argv, struct err *e);
int cmd_image_export(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/look-cmds.c */
int cmd_image_mount(const struct command *self, int argc, char **argv, struct err *e);
int cmd_image_unmount(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/model-cmds.c */
int cmd_image_models(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/rebase-cmd.c */
int cmd_image_rebase(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/test-cmds.c */
int cmd_image_test(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/commit-cmd.c */
int cmd_image_commit(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/diff-cmd.c */
int cmd_image_diff(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/store-cmds.c */
int cmd_image_prune(const struct command *self, int argc, char **argv, struct err *e);
int cmd_image_gc(const struct command *self, int argc, char **argv, struct err *e);
int cmd_image_du(const struct command *self, int argc, char **argv, struct err *e);
int cmd_image_fsck(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/sign-cmds.c */
int cmd_image_key(const struct command *self, int argc, char **argv, struct err *e);
int cmd_image_sign(const struct command *self, int argc, char **argv, struct err *e);
int cmd_image_verify_signature(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/sbom-cmds.c */
int cmd_image_sbom(const struct command *self, int argc, char **argv, struct err *e);
int cmd_image_provenance(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/scan-cmd.c */
int cmd_image_scan(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/why-cmd.c */
int cmd_image_why(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/gpu-cmds.c: the verbs of `svrun gpu` */
extern const struct command gpu_commands[];
/* svrun/gpu-cdi-cmds.c: the verbs of `svrun gpu cdi` */
extern const struct command gpu_cdi_commands[];
/* svrun/gpu-ls-cmd.c */
int cmd_gpu_ls(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/gpu-topology-cmd.c */
int cmd_gpu_topology(const struct command *self, int argc, char **argv, struct err *e);
/* svrun/fits-cmd.c */
int cmd_gpu_fits(const struct command *self, int argc, char **argv, struct err *e);

#endif
