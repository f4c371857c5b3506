#include "images/download-buffers.h"

#include <assert.h>
#include <sys/mman.h>

#include "base/mem.h"

enum { UNIT = 64 << 10, HUGE_PAGE = 2 << 20 };

/* mmap and not malloc: what is given back really goes back, and nothing is lost to fragments. */
static void unmap(struct buffer *f)
{
	munmap(f->data, f->size);
	*f = (struct buffer){0};
}

void buffers_init(struct buffers *b, size_t limit)
{
	*b = (struct buffers){.limit = limit};
}

void buffers_fini(struct buffers *b)
{
	assert(b->used == 0);
	while (b->nidle > 0)
		unmap(&b->idle[--b->nidle]);
	free(b->idle);
	*b = (struct buffers){0};
}

size_t buffers_round(size_t n)
{
	return (n + UNIT - 1) / UNIT * UNIT;
}

static struct buffer remove_idle(struct buffers *b, size_t i)
{
	struct buffer f = b->idle[i];

	b->idle[i] = b->idle[--b->nidle];
	b->kept -= f.size;
	return f;
}

/* A kept buffer counts in full, so one that is far too big is not used for little. */
static bool suits(const struct buffer *f, size_t size)
{
	return f->size >= size && f->size - size <= size / 4;
}

struct buffer buffers_take(struct buffers *b, size_t n)
{
	size_t size = buffers_round(n);
	struct buffer f = {.size = size};
	void *p;

	for (size_t i = b->nidle; i-- > 0;)
		if (suits(&b->idle[i], size) && b->used + b->idle[i].size <= b->limit) {
			f = remove_idle(b, i);
			b->used += f.size;
			return f;
		}
	while (b->nidle > 0 && b->used + b->kept + size > b->limit) {
		f = remove_idle(b, b->nidle - 1);
		unmap(&f);
	}
	assert(b->used + size <= b->limit);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return (struct buffer){0};
	/* two page faults instead of a thousand; where the kernel has none to give, nothing is lost
	 */
	if (size >= HUGE_PAGE)
		(void)madvise(p, size, MADV_HUGEPAGE);
	b->used += size;
	return (struct buffer){.data = p, .size = size};
}

void buffers_give(struct buffers *b, struct buffer *own)
{
	if (!own->data)
		return;
	b->used -= own->size;
	b->kept += own->size;
	mem_grow(&b->idle, &b->cap, b->nidle);
	b->idle[b->nidle++] = *own;
	*own = (struct buffer){0};
}
