/* The program of the apps that tests make up: prints what it is told, or what a test asks for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int print_file(const char *path)
{
	FILE *f = fopen(path, "r");
	int c;

	if (!f) {
		perror(path);
		return 1;
	}
	while ((c = getc(f)) != EOF)
		putchar(c);
	fclose(f);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "cat") == 0)
		return print_file(argv[2]);
	if (argc == 3 && strcmp(argv[1], "exit") == 0)
		return (int)strtol(argv[2], NULL, 10);
	if (argc == 3 && strcmp(argv[1], "sleep") == 0) {
		puts("sleeping");
		fflush(stdout);
		sleep((unsigned int)strtoul(argv[2], NULL, 10));
		return 0;
	}
	puts(argc > 1 ? argv[1] : "hello");
	return 0;
}
