/* Makes a system call of 32-bit x86 from a program of 64 bits: int80 NUMBER [ARGUMENT...]. An
 * argument @1,2,3 is a pointer to these words, as socketcall takes its arguments. Prints the
 * result. Build it -static -no-pie: its data must lie below 4 GiB. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t words[6][16];

static uint64_t argument(const char *s, uint32_t *w)
{
	if (*s != '@')
		return strtoull(s, NULL, 0);
	for (int i = 0; *s && i < 16; i++) {
		char *end;

		w[i] = (uint32_t)strtoul(s + 1, &end, 0);
		s = end;
	}
	return (uintptr_t)w;
}

int main(int argc, char **argv)
{
	uint64_t a[6] = {0};
	int64_t rc;

	if (argc < 2)
		return 2;
	for (int i = 2; i < argc && i < 7; i++)
		a[i - 2] = argument(argv[i], words[i - 2]);
	__asm__ volatile("int $0x80"
			 : "=a"(rc)
			 : "a"(strtoull(argv[1], NULL, 0)), "b"(a[0]), "c"(a[1]), "d"(a[2]),
			 "S"(a[3]), "D"(a[4])
			 : "memory", "r8", "r9", "r10", "r11");
	printf("%d\n", (int)rc);
	return 0;
}
