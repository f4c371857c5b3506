/* Swaps two names of a folder until it is killed: swap FOLDER A B */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int dir = argc == 4 ? open(argv[1], O_PATH | O_DIRECTORY) : -1;

	if (dir < 0)
		return 2;
	while (syscall(SYS_renameat2, dir, argv[2], dir, argv[3], RENAME_EXCHANGE) == 0)
		usleep(50); /* two cores, and the runtime needs one */
	perror("renameat2");
	return 1;
}
