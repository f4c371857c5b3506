#include "gpu/compat.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/elf.h"
#include "base/json.h"
#include "base/sys.h"
#include "gpu/root-file.h"

#define FOLDER "/usr/local/cuda/compat"
#define LIBRARY "libcuda.so."

enum { NAMES_MAX = 4096, NOTE_MAX = 1 << 16, PATH_BYTES = 512, DRIVERS_MAX = 1024 };

/* "libcuda.so.560.35.05", not "libcuda.so.1". */
static bool is_library(const char *name)
{
	const char *version = name + strlen(LIBRARY);

	return str_starts(name, LIBRARY) && strchr(version, '.') &&
	       version[strspn(version, "0123456789.")] == '\0' && strlen(name) < PATH_BYTES / 2;
}

/* How many there are, and the name of one. */
static size_t find_library(int root, char name[PATH_BYTES])
{
	int fd = sys_open_in_root(root, FOLDER, O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	size_t n = 0;

	if (!d) {
		sys_close_ref(&fd);
		return 0;
	}
	for (size_t seen = 0; seen < NAMES_MAX && (entry = readdir(d)); seen++)
		if (is_library(entry->d_name)) {
			snprintf(name, PATH_BYTES, "%s", entry->d_name);
			n++;
		}
	closedir(d);
	return n;
}

/* ---- the note ---- */

struct note {
	json_t *doc;
	const char *cuda; /* "13.1", or NULL */
	const json_t *drivers;
};

/* {"Format": 1, "CUDA Version": "13.1", "Driver": [535, 550], "Device": [...]}. 1, 0: there is
 * none. */
static int read_note(struct note *n, int *fd, const char *name, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(NOTE_MAX);
	struct elf_input in;
	int rc;

	*n = (struct note){0};
	if (elf_input_fd(&in, fd, e) < 0)
		return -1;
	rc = elf_note(&in, ".note.cuda.fwd_compatibility", "NVIDIA Corporation", &text, e);
	if (rc <= 0)
		return rc < 0 ? err_ctx(e, "%s/%s of the image", FOLDER, name) : 0;
	n->doc = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(n->doc)) {
		json_decref(n->doc);
		n->doc = NULL;
		return err_set(e, ERR_CORRUPT, "%s/%s of the image: its note is no JSON object",
			FOLDER, name);
	}
	n->cuda = json_string_value(json_object_get(n->doc, "CUDA Version"));
	n->drivers = json_object_get(n->doc, "Driver");
	return 1;
}

static bool lists(const json_t *drivers, uint64_t major)
{
	size_t n = json_array_size(drivers);

	for (size_t i = 0; i < n && i < DRIVERS_MAX; i++)
		if (json_integer_value(json_array_get(drivers, i)) == (json_int_t)major)
			return true;
	return false;
}

/* What the note allows for this driver: 1, 0. A note without drivers (those of Orin) has its CUDA
 * alone. */
static int by_note(const struct note *n, uint64_t major, const char *host_cuda, const char **why)
{
	if (json_array_size(n->drivers)) {
		if (!lists(n->drivers, major)) {
			*why = "the compat libraries' note does not list the host's driver";
			return 0;
		}
	} else if (!n->cuda || !host_cuda) {
		*why = "the compat libraries' note says nothing about the host's driver";
		return 0;
	}
	if (n->cuda && host_cuda && str_version_compare(n->cuda, host_cuda) <= 0) {
		*why = "the host's CUDA is not older than that of the compat libraries";
		return 0;
	}
	*why = "the compat libraries' note lists the host's driver";
	return 1;
}

static uint64_t major_of(const char *version)
{
	return strtoull(version, NULL, 10);
}

static int decide(int *fd, const char *name, const char *host_driver, const char *host_cuda,
	const char **why, struct err *e)
{
	struct note note;
	int rc = read_note(&note, fd, name, e);

	if (rc > 0)
		rc = by_note(&note, major_of(host_driver), host_cuda, why);
	else if (rc == 0) {
		rc = major_of(name + strlen(LIBRARY)) > major_of(host_driver);
		*why = rc ? "the compat libraries are of a newer driver than the host's"
			  : "the host's driver is not older than that of the compat libraries";
	}
	json_decref(note.doc);
	return rc;
}

int compat_decide(int root, const char *host_driver, const char *host_cuda, int choice,
	const char **dir, const char **why, struct err *e)
{
	char name[PATH_BYTES] = "", path[PATH_BYTES];
	auto_fd int fd = -1;
	size_t n;

	*dir = FOLDER;
	*why = "forward compatibility was turned off";
	if (choice < 0)
		return 0;
	n = find_library(root, name);
	*why = n ? "the image has compat libraries of more than one version"
		 : "the image has no compat libraries";
	if (n != 1)
		return 0;
	snprintf(path, sizeof(path), "%s/%.*s", FOLDER, PATH_BYTES / 2, name);
	fd = root_file_open(root, path, 0);
	*why = "the image's compat library is no regular file";
	if (fd < 0)
		return 0;
	*why = "it was asked for";
	return choice > 0 ? 1 : decide(&fd, name, host_driver, host_cuda, why, e);
}
