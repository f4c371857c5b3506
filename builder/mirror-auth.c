#include "builder/mirror-auth.h"

#include <string.h>

#include "base/str.h"
#include "images/credentials.h"
#include "images/request.h"
#include "images/url.h"

/* Helpers are programs, and may ask people: once for each host. */
static int look(struct mirrors *m, const char *host, struct err *e)
{
	struct credential c = {0};
	auto_free char *value = NULL;
	int rc = credential_find(host, "", &c, e);

	if (rc < 0)
		return -1;
	if (rc > 0 && c.user && c.secret)
		value = request_basic(c.user, c.secret);
	else if (rc > 0 && c.registry)
		value = mem_printf("Bearer %s", c.registry);
	credential_fini(&c);
	json_object_set_new(m->credentials, host, value ? json_string(value) : json_null());
	if (value)
		explicit_bzero(value, strlen(value));
	return 0;
}

int mirror_authorization(
	struct mirrors *m, const char *uri, const char *url, const char **value, struct err *e)
{
	auto_free char *host = str_starts(uri, "mirror:") ? url_host(url) : NULL;
	char shown[256];

	*value = NULL;
	if (!host)
		return 0;
	if (!json_object_get(m->credentials, host) && look(m, host, e) < 0)
		return err_ctx(e, "credentials for the mirror at %s", host);
	*value = json_string_value(json_object_get(m->credentials, host));
	if (!*value || url_is_private(url))
		return 0;
	*value = NULL;
	err_set(e, ERR_DENIED, "the credentials for %s would travel in the clear",
		url_show(url, shown, sizeof(shown)));
	return err_hint(e,
		"use an https:// address for the mirror, or forget them: svrun image "
		"logout %s",
		host);
}
