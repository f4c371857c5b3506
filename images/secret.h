/* Memory that held a secret is overwritten before it is given back. What libraries copy on their
 * way (jansson's reader, curl) is out of reach. */
#ifndef IMAGES_SECRET_H
#define IMAGES_SECRET_H

#include <jansson.h>

#include "base/json.h"
#include "base/mem.h"

#define auto_secret __attribute__((cleanup(secret_free_ref)))
#define auto_secret_buf __attribute__((cleanup(secret_buf_fini)))
#define auto_secret_json __attribute__((cleanup(secret_json_free_ref)))

void secret_free(char *s); /* accepts NULL */
void secret_free_ref(char **s);
void secret_buf_fini(struct buf *b);
/* All strings of a document are overwritten; nobody else may hold it. NULL is fine. */
void secret_json_wipe(json_t *j);
void secret_json_free(json_t *j);
void secret_json_free_ref(json_t **j);
void secret_doc_fini(struct json_doc *d);

#endif
