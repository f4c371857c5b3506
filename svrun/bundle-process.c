#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "images/image.h"
#include "runtime/caps.h"
#include "runtime/confine.h"
#include "runtime/spec.h"
#include "svrun/bundle.h"
#include "svrun/run-mode.h"
#include "svrun/tty.h"

enum { ENV_FILE_MAX = 1 << 20, WORDS_MAX = 4096 };

static const json_t *image_value(const struct bundle_request *r, const char *key)
{
	const json_t *v = json_object_get(json_object_get(r->image, "config"), key);

	return json_is_null(v) ? NULL : v;
}

/* A string of the image's config, "" when absent. */
static const char *image_string(const struct bundle_request *r, const char *key, struct err *e)
{
	const json_t *v = image_value(r, key);

	if (!v)
		return "";
	if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
		return err_set(e, ERR_CORRUPT, "image config: %s: expected a string", key), NULL;
	return json_string_value(v);
}

/* Call add for each string of an array of the image's config, expanded. */
static int image_strings(const struct bundle_request *r, const char *key, json_t *out,
	void (*add)(json_t *out, const char *s), struct err *e)
{
	const json_t *list = image_value(r, key), *v;
	size_t i;

	if (!list)
		return 0;
	if (!json_is_array(list) || json_array_size(list) > WORDS_MAX)
		return err_set(
			e, ERR_CORRUPT, "image config: %s: expected an array of strings", key);
	json_array_foreach (list, i, v) {
		const char *s = json_string_value(v);
		auto_free char *text = NULL;

		if (!s || strlen(s) != json_string_length(v))
			return err_set(
				e, ERR_CORRUPT, "image config: %s/%zu: expected a string", key, i);
		text = bundle_expand(r->o, r->gpus, s, e);
		if (!text)
			return -1;
		add(out, text);
	}
	return 0;
}

/* ---- args ---- */

static void add_word(json_t *out, const char *s)
{
	json_array_append_new(out, json_string_nocheck(s));
}

/* config.json can hold nothing but UTF-8. */
static int check_words(const struct run_options *o, struct err *e)
{
	if (o->entrypoint && !str_utf8(o->entrypoint, strlen(o->entrypoint)))
		return err_set(e, ERR_USAGE, "--entrypoint is not UTF-8");
	for (size_t i = 0; i < o->nwords; i++)
		if (!str_utf8(o->words[i], strlen(o->words[i])))
			return err_set(e, ERR_USAGE, "argument %zu is not UTF-8", i + 1);
	return 0;
}

/* Words behind the image replace cmd; --entrypoint replaces both. */
static int make_args(const struct bundle_request *r, json_t *args, struct err *e)
{
	const struct run_options *o = r->o;

	if (check_words(o, e) < 0)
		return -1;
	if (o->entrypoint && *o->entrypoint)
		add_word(args, o->entrypoint);
	else if (!o->entrypoint && image_strings(r, "Entrypoint", args, add_word, e) < 0)
		return -1;
	for (size_t i = 0; i < o->nwords; i++)
		add_word(args, o->words[i]);
	if (!o->nwords && !o->entrypoint && image_strings(r, "Cmd", args, add_word, e) < 0)
		return -1;
	if (json_array_size(args))
		return 0;
	err_set(e, ERR_USAGE, "the image names no command");
	return err_hint(e, "give one behind the image: svrun run %s COMMAND", o->image);
}

/* ---- environment ---- */

static size_t find_env(const json_t *env, const char *pair, size_t key)
{
	size_t i;
	json_t *v;

	json_array_foreach (env, i, v)
		if (strncmp(json_string_value(v), pair, key) == 0 &&
			json_string_value(v)[key] == '=')
			return i;
	return SIZE_MAX;
}

/* K=V: replaces an earlier K. */
static void set_env(json_t *env, const char *pair)
{
	size_t i = find_env(env, pair, strcspn(pair, "="));

	if (i == SIZE_MAX)
		json_array_append_new(env, json_string_nocheck(pair));
	else
		json_array_set_new(env, i, json_string_nocheck(pair));
}

static void set_env_default(json_t *env, const char *key, const char *value)
{
	auto_free char *pair = mem_printf("%s=%s", key, value);

	if (find_env(env, pair, strlen(key)) == SIZE_MAX)
		set_env(env, pair);
}

/* What the image says may lack "=", which no environment can hold: left out, as other engines do.
 */
static void set_image_env(json_t *env, const char *pair)
{
	if (*pair != '=' && strchr(pair, '='))
		set_env(env, pair);
}

/* Variables that are only known at start travel in a label, as a JSON object (ARCHITECTURE.md).
 * They are the image's environment like any other: names and text, nothing that grants anything. */
static int set_late_env(const struct bundle_request *r, json_t *env, struct err *e)
{
	const char *text = json_string_value(json_object_get(
			   json_object_get(json_object_get(r->image, "config"), "Labels"),
			   RUNTIME_ENV_LABEL)),
		   *name;
	auto_json json_t *late = text ? json_parse(text, strlen(text), e) : json_object();
	json_t *v;

	if (!late)
		return err_ctx(e, "label " RUNTIME_ENV_LABEL);
	json_object_foreach (late, name, v) {
		auto_free char *value = NULL, *pair = NULL;

		if (!*name || strchr(name, '=') || !json_is_string(v))
			return err_set(e, ERR_CORRUPT,
				"label " RUNTIME_ENV_LABEL ": expected names and strings");
		value = bundle_expand(r->o, r->gpus, json_string_value(v), e);
		if (!value)
			return err_ctx(e, "label " RUNTIME_ENV_LABEL ": %s", name);
		pair = mem_printf("%s=%s", name, value);
		set_env(env, pair);
	}
	return 0;
}

/* "K=V", or "K", which passes our own value on and is nothing when there is none. */
static int add_env(json_t *env, const char *what, const char *where, struct err *e)
{
	const char *value;

	if (!*what || *what == '=' || !str_utf8(what, strlen(what)))
		return err_set(
			e, ERR_USAGE, "%s: expected NAME=VALUE in UTF-8, got '%.80s'", where, what);
	if (strchr(what, '=')) {
		set_env(env, what);
		return 0;
	}
	value = getenv(what);
	if (value) {
		auto_free char *pair = mem_printf("%s=%s", what, value);

		return add_env(env, pair, where, e);
	}
	return 0;
}

static int add_env_file(json_t *env, const char *path, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(ENV_FILE_MAX);
	char *line, *rest;

	if (file_read(AT_FDCWD, path, &b, e) < 0)
		return err_ctx(e, "--env-file");
	for (line = b.data; line && *line; line = rest) {
		char *end = strchr(line, '\n');

		rest = end ? end + 1 : line + strlen(line);
		if (end)
			*end = '\0';
		line += strspn(line, " \t");
		line[strcspn(line, "\r")] = '\0';
		if (*line && *line != '#' && add_env(env, line, path, e) < 0)
			return -1;
	}
	return 0;
}

json_t *bundle_env(const struct run_options *o, struct err *e)
{
	json_t *env = json_array();
	int rc = 0;

	for (size_t i = 0; i < o->env_files.n && rc == 0; i++)
		rc = add_env_file(env, o->env_files.v[i], e);
	for (size_t i = 0; i < o->env.n && rc == 0; i++)
		rc = add_env(env, o->env.v[i], "-e", e);
	if (rc == 0)
		return env;
	json_decref(env);
	return NULL;
}

/* Libraries that start a thread for each core of the host, where few may be used, make all of them
 * wait for one another. */
static void set_threads(const struct run_options *o, json_t *env)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRIu64, bundle_cpus(o));
	for (const char *const *name = run_mode_thread_variables; *name; name++)
		set_env_default(env, *name, number);
}

/* What GPUs there are is not the image's to say: its "all" is a wish, and who reads it inside would
 * take it for an answer. With "void" NVIDIA's toolkit does nothing, as with GPUs that are there. */
static void clear_wish(json_t *env)
{
	static const char pair[] = "NVIDIA_VISIBLE_DEVICES=void";

	if (find_env(env, pair, strcspn(pair, "=")) != SIZE_MAX)
		set_env(env, pair);
}

/* From nothing: the image's variables, then the user's (CVE-2021-21334). */
static int make_env(const struct bundle_request *r, json_t *env, const char *home,
	const char *hostname, struct err *e)
{
	const struct run_options *o = r->o;
	const json_t *v;
	size_t i;

	if (image_strings(r, "Env", env, set_image_env, e) < 0 || set_late_env(r, env, e) < 0)
		return -1;
	clear_wish(env);
	json_array_foreach (r->env, i, v)
		set_env(env, json_string_value(v));
	if (run_mode_is_cpu(o))
		set_threads(o, env);
	set_env_default(
		env, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	set_env_default(env, "HOME", home);
	set_env_default(env, "HOSTNAME", hostname);
	if (o->terminal)
		set_env_default(env, "TERM", "xterm");
	return 0;
}

/* ---- capabilities ---- */

static int one_cap(const char *option, const char *name, uint64_t *set, struct err *e)
{
	char full[40] = "CAP_";
	size_t n = 0;
	int cap;

	*set = 0;
	for (const char *p = str_starts(name, "CAP_") || str_starts(name, "cap_") ? name + 4 : name;
		*p && n + 5 < sizeof(full); p++)
		full[4 + n++] = (char)toupper((unsigned char)*p);
	full[4 + n] = '\0';
	if (str_eq(full, "CAP_ALL")) {
		for (cap = 0; caps_name(cap); cap++)
			*set |= UINT64_C(1) << cap;
		return 0;
	}
	cap = caps_number(full);
	if (cap < 0)
		return err_set(e, ERR_USAGE, "%s: unknown capability '%.60s'", option, name);
	*set = UINT64_C(1) << cap;
	return 0;
}

/* "--cap-drop ALL --cap-add X" is X, "--cap-add ALL --cap-drop X" all but X: dropping ALL comes
 * first. */
int bundle_caps(const struct run_options *o, uint64_t *caps, struct err *e)
{
	uint64_t set, all;

	*caps = confine_caps_default();
	if (one_cap("", "ALL", &all, e) < 0)
		return -1;
	for (size_t i = 0; i < o->cap_drop.n; i++) {
		if (one_cap("--cap-drop", o->cap_drop.v[i], &set, e) < 0)
			return -1;
		if (set == all)
			*caps = 0;
	}
	for (size_t i = 0; i < o->cap_add.n; i++) {
		if (one_cap("--cap-add", o->cap_add.v[i], &set, e) < 0)
			return -1;
		*caps |= set;
	}
	for (size_t i = 0; i < o->cap_drop.n; i++) {
		if (one_cap("--cap-drop", o->cap_drop.v[i], &set, e) < 0)
			return -1;
		if (set != all)
			*caps &= ~set;
	}
	return 0;
}

/* ---- limits ---- */

static int one_limit(const char *s, uint64_t *v)
{
	*v = SPEC_RLIM_INFINITY;
	return str_eq(s, "-1") || str_eq(s, "unlimited") ? 0
							 : str_u64(s, SPEC_RLIM_INFINITY - 1, v);
}

/* "nofile=1024:2048": soft and hard; one number is both. */
static json_t *make_limit(const char *text, struct err *e)
{
	char copy[80], name[48] = "RLIMIT_", *value, *hard;
	uint64_t soft_v, hard_v;
	size_t n = strlen(name);

	if (str_copy(copy, sizeof(copy), text) < 0 || !(value = strchr(copy, '='))) {
		err_set(e, ERR_USAGE, "--ulimit '%.80s'", text);
		return err_hint(e, "expected NAME=SOFT[:HARD], like nofile=1024:2048"), NULL;
	}
	*value++ = '\0';
	hard = strchr(value, ':');
	if (hard)
		*hard++ = '\0';
	for (const char *p = copy; *p && n + 1 < sizeof(name); p++)
		name[n++] = (char)toupper((unsigned char)*p);
	name[n] = '\0';
	if (spec_rlimit_resource(name) < 0)
		return err_set(e, ERR_USAGE, "--ulimit: unknown limit '%.40s'", copy), NULL;
	if (one_limit(value, &soft_v) < 0 || one_limit(hard ? hard : value, &hard_v) < 0)
		return err_set(e, ERR_USAGE, "--ulimit '%.80s': expected numbers or unlimited",
			       text),
		       NULL;
	if (soft_v > hard_v)
		return err_set(e, ERR_USAGE, "--ulimit '%.80s': the soft limit is above the hard",
			       text),
		       NULL;
	return json_pack("{s:s, s:I, s:I}", "type", name, "soft", (json_int_t)soft_v, "hard",
		(json_int_t)hard_v);
}

static int make_limits(const struct run_options *o, json_t *limits, struct err *e)
{
	for (size_t i = 0; i < o->ulimits.n; i++) {
		json_t *l = make_limit(o->ulimits.v[i], e);

		if (!l)
			return -1;
		json_array_append_new(limits, l);
	}
	return 0;
}

/* ---- together ---- */

static json_t *make_user(const struct passwd_ids *ids)
{
	json_t *groups = json_array();

	for (uint32_t i = 0; i < ids->ngroups; i++)
		json_array_append_new(groups, json_integer(ids->groups[i]));
	return json_pack("{s:I, s:I, s:o}", "uid", (json_int_t)ids->uid, "gid",
		(json_int_t)ids->gid, "additionalGids", groups);
}

static const char *choose_cwd(const struct bundle_request *r, struct err *e)
{
	const char *cwd = r->o->workdir ? r->o->workdir : image_string(r, "WorkingDir", e);

	if (!cwd)
		return NULL;
	if (!*cwd)
		return "/";
	if (*cwd != '/' || !str_utf8(cwd, strlen(cwd)))
		return err_set(e, ERR_USAGE, "working directory '%.200s' is not an absolute path",
			       cwd),
		       NULL;
	return cwd;
}

static void set_terminal(json_t *process)
{
	uint32_t rows, columns;

	json_object_set_new(process, "terminal", json_true());
	if (tty_size(&rows, &columns))
		json_object_set_new(process, "consoleSize",
			json_pack("{s:i, s:i}", "height", (int)rows, "width", (int)columns));
}

static int fill(const struct bundle_request *r, json_t *process, struct err *e)
{
	const char *hostname = r->o->hostname ? r->o->hostname : r->instance->id;
	const char *user = r->o->user, *cwd = choose_cwd(r, e);
	json_t *args = json_array(), *env = json_array(), *limits = json_array();
	auto_free struct passwd_ids *ids = mem_alloc(sizeof(*ids));
	uint64_t caps;

	json_object_set_new(process, "args", args);
	json_object_set_new(process, "env", env);
	json_object_set_new(process, "rlimits", limits);
	if (!cwd || (!user && !(user = image_string(r, "User", e))))
		return -1;
	if (passwd_resolve(r->rootfd, user, ids, e) < 0 || bundle_caps(r->o, &caps, e) < 0 ||
		make_args(r, args, e) < 0 || make_env(r, env, ids->home, hostname, e) < 0 ||
		make_limits(r->o, limits, e) < 0)
		return -1;
	json_object_set_new(process, "cwd", json_string_nocheck(cwd));
	json_object_set_new(process, "user", make_user(ids));
	json_object_set_new(process, "capabilities", confine_caps(caps, ids->uid == 0));
	json_object_set_new(process, "noNewPrivileges", json_true());
	if (r->o->terminal)
		set_terminal(process);
	return 0;
}

json_t *bundle_process(const struct bundle_request *r, struct err *e)
{
	json_t *process = json_object();

	if (fill(r, process, e) == 0)
		return process;
	json_decref(process);
	return NULL;
}
