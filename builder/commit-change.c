/* --change: instructions as Dockerfiles have them, applied to an image's config. Source: image-spec
 * config.md; the Dockerfile reference. */
#include "builder/commit.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "images/image.h"

static int bad(const char *change, const char *expected, struct err *e)
{
	err_set(e, ERR_USAGE, "--change '%.200s': expected %s", change, expected);
	err_hint(e, "--change 'ENV A=B', LABEL A=B, USER NAME, WORKDIR /PATH, EXPOSE 80, CMD "
		    "[\"a\"], ENTRYPOINT [\"a\"]");
	return -1;
}

/* "NAME=VALUE", the value possibly in double quotes, into the two; both malloc'ed. */
static int split(const char *text, const char *change, char **name, char **value, struct err *e)
{
	const char *eq = strchr(text, '=');
	size_t n;

	if (!eq || eq == text || memchr(text, ' ', (size_t)(eq - text)) ||
		memchr(text, '"', (size_t)(eq - text)))
		return bad(change, "NAME=VALUE", e);
	n = strlen(eq + 1);
	*name = mem_printf("%.*s", (int)(eq - text), text);
	*value = n >= 2 && eq[1] == '"' && eq[n] == '"' ? mem_printf("%.*s", (int)n - 2, eq + 2)
							: mem_strdup(eq + 1);
	return 0;
}

/* The member, made when it is missing or of another type. */
static json_t *member(json_t *config, const char *key, json_t *own_fresh)
{
	json_t *v = json_object_get(config, key);

	if (v && json_typeof(v) == json_typeof(own_fresh)) {
		json_decref(own_fresh);
		return v;
	}
	json_object_set_new(config, key, own_fresh);
	return own_fresh;
}

/* A variable that was only known at start has a value of its own now. */
static void forget_late(json_t *config, const char *name)
{
	json_t *labels = json_object_get(config, "Labels");
	const char *text = json_string_value(json_object_get(labels, RUNTIME_ENV_LABEL));
	auto_json json_t *late = text ? json_parse(text, strlen(text), NULL) : NULL;
	auto_buf struct buf b = BUF_INIT(1 << 20);

	if (!json_object_get(late, name))
		return;
	json_object_del(late, name);
	json_text(late, true, &b);
	if (json_object_size(late))
		json_object_set_new(labels, RUNTIME_ENV_LABEL, json_string(b.data));
	else
		json_object_del(labels, RUNTIME_ENV_LABEL);
}

static int change_env(json_t *config, const char *text, const char *change, struct err *e)
{
	json_t *env = member(config, "Env", json_array()), *v;
	auto_free char *name = NULL, *value = NULL, *pair = NULL;
	size_t i, n;

	if (split(text, change, &name, &value, e) < 0)
		return -1;
	pair = mem_printf("%s=%s", name, value);
	n = strlen(name) + 1;
	forget_late(config, name);
	json_array_foreach (env, i, v)
		if (json_is_string(v) && strncmp(json_string_value(v), pair, n) == 0) {
			json_array_set_new(env, i, json_string(pair));
			return 0;
		}
	json_array_append_new(env, json_string(pair));
	return 0;
}

static int change_label(json_t *config, const char *text, const char *change, struct err *e)
{
	auto_free char *name = NULL, *value = NULL;

	if (split(text, change, &name, &value, e) < 0)
		return -1;
	if (str_eq(name, RUNTIME_ENV_LABEL))
		return bad(change, "a label that is not svrun's own", e);
	json_object_set_new(member(config, "Labels", json_object()), name, json_string(value));
	return 0;
}

/* What a line of words is: a shell's, as everywhere. */
static int change_words(
	json_t *config, const char *key, const char *text, const char *change, struct err *e)
{
	json_t *words = text[0] == '[' ? json_parse(text, strlen(text), NULL)
				       : json_pack("[s, s, s]", "/bin/sh", "-c", text);
	const json_t *v;
	size_t i;

	json_array_foreach (words, i, v)
		if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v)) {
			json_decref(words);
			words = NULL;
			break;
		}
	if (!words)
		return bad(change, "a JSON array of strings", e);
	json_object_set_new(config, key, words);
	return 0;
}

static int change_cmd(json_t *config, const char *text, const char *change, struct err *e)
{
	return change_words(config, "Cmd", text, change, e);
}

static int change_entrypoint(json_t *config, const char *text, const char *change, struct err *e)
{
	return change_words(config, "Entrypoint", text, change, e);
}

static int change_workdir(json_t *config, const char *text, const char *change, struct err *e)
{
	if (text[0] != '/')
		return bad(change, "an absolute path", e);
	json_object_set_new(config, "WorkingDir", json_string(text));
	return 0;
}

static int change_user(json_t *config, const char *text, const char *change, struct err *e)
{
	if (strpbrk(text, " \t"))
		return bad(change, "USER or USER:GROUP", e);
	json_object_set_new(config, "User", json_string(text));
	return 0;
}

static int expose(json_t *ports, const char *word, const char *change, struct err *e)
{
	char number[8], key[16];
	size_t n = strcspn(word, "/");
	uint64_t port;

	snprintf(number, sizeof(number), "%.*s", (int)(n < 7 ? n : 7), word);
	if (str_u64(number, 65535, &port) < 0 || !port ||
		(word[n] && !str_eq(word + n, "/tcp") && !str_eq(word + n, "/udp")))
		return bad(change, "PORT, PORT/tcp or PORT/udp", e);
	snprintf(key, sizeof(key), "%u%s", (unsigned)port, word[n] ? word + n : "/tcp");
	json_object_set_new(ports, key, json_object());
	return 0;
}

static int change_expose(json_t *config, const char *text, const char *change, struct err *e)
{
	json_t *ports = member(config, "ExposedPorts", json_object());
	auto_free char *words = mem_strdup(text);
	char *save = NULL;

	for (char *w = strtok_r(words, " \t", &save); w; w = strtok_r(NULL, " \t", &save))
		if (expose(ports, w, change, e) < 0)
			return -1;
	return 0;
}

int commit_change(json_t *document, const char *change, struct err *e)
{
	static const struct {
		const char *word;
		int (*apply)(json_t *config, const char *text, const char *change, struct err *e);
	} known[] = {{"CMD", change_cmd}, {"ENTRYPOINT", change_entrypoint}, {"ENV", change_env},
		{"EXPOSE", change_expose}, {"LABEL", change_label}, {"USER", change_user},
		{"WORKDIR", change_workdir}};
	size_t n = strcspn(change, " \t");
	const char *text = change + n + strspn(change + n, " \t");

	if (!str_utf8(change, strlen(change)) || strpbrk(change, "\n\r"))
		return bad(change, "one line of UTF-8", e);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strlen(known[i].word) == n && strncasecmp(known[i].word, change, n) == 0)
			return *text ? known[i].apply(member(document, "config", json_object()),
					       text, change, e)
				     : bad(change, "something behind the word", e);
	return bad(change, "an instruction", e);
}
