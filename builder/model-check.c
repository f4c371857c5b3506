/* What a file of weights is, by its bytes. A pickle is a program: loading it runs it, whatever it
 * is called. Source: Python's pickletools (opcodes PROTO, STOP); torch.save (a zip with data.pkl);
 * safetensors' and GGUF's formats. */
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/model.h"
#include "builder/zip.h"

enum {
	OP_PROTO = 0x80,
	PROTO_MIN = 2, /* before, there was no mark at the beginning */
	PROTO_MAX = 5,
	ZIP_MEMBERS = 1 << 20,
	HEAD = 64,
};

static bool is_zip(const unsigned char *head, size_t n)
{
	return n >= 4 && memcmp(head, "PK\3\4", 4) == 0;
}

/* torch.save(): ARCHIVE/data.pkl. One that cannot be read as a zip is told by its first member. */
static bool zip_has_pickle(int fd, const unsigned char *head, size_t n)
{
	struct zip_limits limits = {.members = ZIP_MEMBERS, .file = 1ull << 46, .all = 1ull << 47};
	auto_zip struct zip z = {0};

	if (zip_open(&z, fd, "model", &limits, NULL) < 0)
		return memmem(head, n, ".pkl", 4) != NULL;
	for (size_t i = 0; i < z.n; i++)
		if (str_ends(z.v[i].name, ".pkl") || str_ends(z.v[i].name, ".pickle"))
			return true;
	return false;
}

/* "(lp0", "(dp1", "(ctorch" and the like: the text protocols, which begin without a mark. */
static bool is_text_pickle(const unsigned char *head, size_t n)
{
	static const char *const begins[] = {"(lp", "(dp", "(tp", "(lq", "(dq", "ccopy_reg\n",
		"cposix\n", "cos\n", "c__builtin__\n", "cbuiltins\n", "ctorch", "cnumpy",
		"ccollections\n", "(i", "}q", "]q"};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (n >= strlen(begins[i]) && memcmp(head, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

static bool has_pickle_name(const char *path)
{
	static const char *const ends[] = {
		".ckpt", ".pt", ".pth", ".pkl", ".pickle", ".bin", ".joblib"};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (str_ends(path, ends[i]))
			return true;
	return false;
}

/* A mark and a protocol; of files without a name that pickles have, the stop at the end, too. */
static bool is_pickle(const unsigned char *head, size_t n, unsigned char last, const char *path)
{
	if (n < 2)
		return false;
	if (head[0] == OP_PROTO && head[1] >= PROTO_MIN && head[1] <= PROTO_MAX)
		return last == '.' || has_pickle_name(path);
	return has_pickle_name(path) && is_text_pickle(head, n);
}

static int refuse_format(const char *path, const char *what, struct err *e)
{
	return err_set(e, ERR_CORRUPT, "'%.500s' is no %s file", path, what);
}

/* By its name, what it must be. */
static int check_format(const unsigned char *head, size_t n, const char *path, struct err *e)
{
	if (str_ends(path, ".gguf") && (n < 4 || memcmp(head, "GGUF", 4) != 0))
		return refuse_format(path, "GGUF", e);
	if (str_ends(path, ".safetensors") && (n < 9 || head[8] != '{'))
		return refuse_format(path, "safetensors", e);
	return 0;
}

int model_check(int fd, const char *id, const char *path, bool allow_pickle, struct err *e)
{
	unsigned char head[HEAD] = {0}, last = 0;
	struct stat st;
	ssize_t n = sys_pread(fd, head, sizeof(head), 0);

	if (n < 0 || sys_fstat(fd, &st) < 0 ||
		(st.st_size > 0 && sys_pread(fd, &last, 1, st.st_size - 1) < 0))
		return err_sys(e, "%s: read %s", id, path);
	if (check_format(head, (size_t)n, path, e) < 0)
		return -1;
	if (allow_pickle || !(is_zip(head, (size_t)n) ? zip_has_pickle(fd, head, (size_t)n)
						      : is_pickle(head, (size_t)n, last, path)))
		return 0;
	err_set(e, ERR_DENIED, "SV141: '%.500s' is a pickle: loading it runs code", path);
	return err_hint(e, "use safetensors or GGUF, or set \"allowPickle\": true");
}
