#include "images/secret.h"

#include <stdlib.h>
#include <string.h>

void secret_free(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}

void secret_free_ref(char **s)
{
	secret_free(*s);
}

void secret_buf_fini(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buf_fini(b);
}

void secret_json_wipe(json_t *j)
{
	const char *key;
	json_t *v;
	size_t i;

	if (json_is_string(j))
		explicit_bzero((char *)(uintptr_t)json_string_value(j), json_string_length(j));
	json_array_foreach (j, i, v)
		secret_json_wipe(v);
	json_object_foreach (j, key, v)
		secret_json_wipe(v);
}

void secret_json_free(json_t *j)
{
	secret_json_wipe(j);
	json_decref(j);
}

void secret_json_free_ref(json_t **j)
{
	secret_json_free(*j);
}

void secret_doc_fini(struct json_doc *d)
{
	secret_json_free(steal_ptr(&d->root));
	secret_buf_fini(&d->text);
	json_doc_fini(d);
}
