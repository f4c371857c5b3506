/* Any WWW-Authenticate: what is read fits, can be written down, and reads the same again. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "images/challenge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_param(struct buf *b, const char *name, const char *value)
{
	if (!value[0])
		return;
	buf_printf(b, "%s%s=\"", b->data[b->len - 1] == '"' ? "," : " ", name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			buf_put(b, "\\", 1);
		buf_put(b, value, 1);
	}
	buf_put(b, "\"", 1);
}

static void write_down(const struct challenges *c, struct buf *b)
{
	for (size_t i = 0; i < c->n; i++) {
		buf_printf(b, "%s%s", i ? ", " : "", c->v[i].scheme);
		add_param(b, "realm", c->v[i].realm);
		add_param(b, "service", c->v[i].service);
		add_param(b, "scope", c->v[i].scope);
		add_param(b, "error", c->v[i].error);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct challenges one, two;
	auto_buf struct buf b = BUF_INIT(1 << 20);
	auto_free char *text = mem_alloc(size + 1);

	memcpy(text, data, size);
	memset(&one, 0, sizeof(one));
	memset(&two, 0, sizeof(two));
	challenges_add(&one, text);
	assert(one.n <= CHALLENGES_MAX);
	write_down(&one, &b);
	challenges_add(&two, b.data ? b.data : "");
	assert(one.n == two.n);
	for (size_t i = 0; i < one.n; i++) {
		assert(strcmp(one.v[i].scheme, two.v[i].scheme) == 0);
		assert(strcmp(one.v[i].realm, two.v[i].realm) == 0);
		assert(strcmp(one.v[i].service, two.v[i].service) == 0);
		assert(strcmp(one.v[i].scope, two.v[i].scope) == 0);
		assert(strcmp(one.v[i].error, two.v[i].error) == 0);
	}
	return 0;
}
