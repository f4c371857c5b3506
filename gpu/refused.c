#include "gpu/refused.h"

#include <stddef.h>

static const struct {
	uint32_t major, first, last;
	bool disk;
	const char *what;
} refused[] = {
	{1, 1, 2, false, "the host's memory"},
	{1, 4, 4, false, "the host's I/O ports"},
	{1, 11, 11, false, "the kernel's messages"},
	{4, 0, 63, false, "a console of the host"},
	{5, 1, 1, false, "the host's console"},
	{10, 144, 144, false, "the firmware's memory"},
	{10, 231, 231, false, "the host's memory"}, /* snapshot */
	{10, 234, 234, false, "file systems of the host"},
	{10, 235, 235, false, "mounts of the host"},
	{10, 236, 237, false, "disks of the host"},
	{13, 0, UINT32_MAX, false, "what is typed on the host"},
	{21, 0, UINT32_MAX, true, "a disk of the host"},
	{202, 0, UINT32_MAX, false, "registers of the host's processors"},
};

const char *refused_device(char type, uint32_t major, uint32_t minor, bool disks)
{
	if (type == 'b')
		return disks ? NULL : "a disk of the host";
	for (size_t i = 0; type == 'c' && i < sizeof(refused) / sizeof(refused[0]); i++)
		if (major == refused[i].major && minor >= refused[i].first &&
			minor <= refused[i].last && !(disks && refused[i].disk))
			return refused[i].what;
	return NULL;
}
