/* A file of data about vulnerabilities, whole (the first byte says as what): what is taken makes an
 * index that holds together, in which every record can be asked about. */
#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "builder/vuln-debian.h"
#include "builder/vuln-osv.h"
#include "builder/vuln.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int look(void *ctx, const json_t *record, struct err *e)
{
	const char *fixed;
	enum vuln_level l;

	(void)osv_affects(record, VERSION_DEB, ctx, &fixed);
	(void)osv_affects(record, VERSION_PYPI, ctx, &fixed);
	(void)osv_affects(record, VERSION_NPM, ctx, &fixed);
	(void)tracker_affects(record, "bookworm", ctx, &fixed, &l);
	return e ? 0 : 0;
}

static void ask(const struct buf *index)
{
	static char version[] = "1.2.3";
	const char *end = index->data + index->len;

	for (const char *line = strchr(index->data, '\n') + 1; line < end;
		line = strchr(line, '\n') + 1) {
		auto_free char *space = mem_printf("%.*s", (int)strcspn(line, "\t"), line);
		const char *name = strchr(line, '\t') + 1;
		auto_free char *text = mem_printf("%.*s", (int)strcspn(name, "\t"), name);

		if (str_eq(space, "level") || str_eq(space, "have"))
			continue;
		assert(vuln_index_has(index, space));
		assert(vuln_index_each(index, space, text, look, version, NULL) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"x.json", "x.zip", "x.tar", "x.tar.gz"};
	auto_fd int fd = memfd_create("data", MFD_CLOEXEC);
	auto_buf struct buf index = BUF_INIT(VULN_INDEX_MAX);
	struct vuln_index_maker m;
	uint64_t left = 64 << 20;

	if (size == 0 || sys_write_all(fd, data + 1, size - 1) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return 0;
	vuln_index_begin(&m);
	if (vuln_read(&m, names[data[0] % 4], fd, &left, NULL) < 0) {
		vuln_index_abort(&m);
		return 0;
	}
	assert(vuln_index_end(&m, &index, NULL) == 0);
	assert(vuln_index_check(&index));
	ask(&index);
	return 0;
}
