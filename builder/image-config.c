#include "builder/image-config.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "builder/image-gpu.h"
#include "builder/image-health.h"
#include "builder/image-modes.h"
#include "images/image.h"

#define OCI "org.opencontainers.image."

static json_t *array_of(const struct strings *s)
{
	json_t *a = json_array();

	for (size_t i = 0; i < s->n; i++)
		json_array_append_new(a, json_string(s->v[i]));
	return a;
}

void image_created(const struct manifest *m, char out[32])
{
	time_t t = (time_t)m->build.epoch;
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void set_text(json_t *o, const char *key, const char *value)
{
	if (value && *value)
		json_object_set_new(o, key, json_string(value));
}

static void set_standard(const struct manifest *m, json_t *a)
{
	char created[32];
	auto_buf struct buf licenses = BUF_INIT(64 * 1024);

	for (size_t i = 0; i < m->licenses.n; i++)
		buf_printf(&licenses, "%s%s", i ? " AND " : "", m->licenses.v[i]);
	image_created(m, created);
	set_text(a, OCI "created", created);
	set_text(a, OCI "title", m->title ? m->title : m->name);
	set_text(a, OCI "version", m->version);
	set_text(a, OCI "description", m->description);
	set_text(a, OCI "licenses", licenses.data);
}

json_t *image_annotations(const struct manifest *m)
{
	json_t *a = json_object();

	set_standard(m, a);
	for (size_t i = 0; i < m->annotations.n; i++)
		set_text(a, m->annotations.v[i].name, m->annotations.v[i].value);
	return a;
}

static void add_env(const struct manifest *m, json_t *env, json_t *late)
{
	bool path = false;

	for (size_t i = 0; i < m->env.n; i++) {
		const struct pair *p = &m->env.v[i];
		char *line;

		path = path || str_eq(p->name, "PATH");
		if (strstr(p->value, "${runtime:")) {
			set_text(late, p->name, p->value);
			continue;
		}
		line = mem_printf("%s=%s", p->name, p->value);
		json_array_append_new(env, json_string(line));
		free(line);
	}
	if (!path)
		json_array_insert_new(env, 0,
			json_string("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/"
				    "bin"));
}

/* What the machines that offer and start images want to know, as canonical JSON in labels: the
 * values of the merged manifest as they are. */
static void set_facts(const struct manifest *m, json_t *labels)
{
	static const char *const keys[] = {"category", "gpu", "health", "init", "inputs", "models",
		"ports", "presets", "resources", "services", "volumes"};

	for (size_t i = 0; m->doc.root && i < sizeof(keys) / sizeof(keys[0]); i++) {
		auto_buf struct buf text = BUF_INIT(64 << 20);
		const json_t *v = json_object_get(m->doc.root, keys[i]);
		char name[64];

		snprintf(name, sizeof(name), "run.svrun.%s", keys[i]);
		if (json_is_string(v))
			set_text(labels, name, json_string_value(v));
		else if (v) {
			json_text(v, true, &text);
			set_text(labels, name, text.data);
		}
	}
	set_text(labels, "run.svrun.mode", m->mode);
	set_text(labels, "run.svrun.matrix", m->matrix);
}

static json_t *labels_of(const struct manifest *m, const json_t *late)
{
	json_t *labels = json_object();

	set_standard(m, labels);
	for (size_t i = 0; i < m->labels.n; i++)
		set_text(labels, m->labels.v[i].name, m->labels.v[i].value);
	set_facts(m, labels);
	if (json_object_size(late)) {
		auto_buf struct buf text = BUF_INIT(64 << 20);

		json_text(late, true, &text);
		set_text(labels, RUNTIME_ENV_LABEL, text.data);
	}
	return labels;
}

static json_t *volumes_of(const struct manifest *m)
{
	json_t *volumes = json_object();

	for (size_t i = 0; i < m->nvolumes; i++)
		json_object_set_new(volumes, m->volumes[i].path, json_object());
	return volumes;
}

static json_t *ports_of(const struct manifest *m)
{
	json_t *ports = json_object();

	for (size_t i = 0; i < m->nports; i++) {
		bool udp = m->ports[i].protocol && str_eq(m->ports[i].protocol, "udp");
		char key[32];

		snprintf(key, sizeof(key), "%u/%s", m->ports[i].port, udp ? "udp" : "tcp");
		json_object_set_new(ports, key, json_object());
	}
	return ports;
}

/* "os/arch/variant" */
static void set_platform(const struct manifest *m, json_t *doc)
{
	const char *platform = m->platform ? m->platform : manifest_platform();
	size_t os = strcspn(platform, "/"), arch;

	json_object_set_new(doc, "os", json_stringn(platform, os));
	platform += os + (platform[os] == '/');
	arch = strcspn(platform, "/");
	json_object_set_new(doc, "architecture", json_stringn(platform, arch));
	if (platform[arch])
		set_text(doc, "variant", platform + arch + 1);
}

json_t *image_config(const struct manifest *m)
{
	json_t *doc = json_object(), *c = json_object(), *env = json_array();
	json_t *health = image_healthcheck(m);
	auto_json json_t *late = json_object();
	char created[32];

	add_env(m, env, late);
	image_gpu_env(m, env);
	json_object_set_new(c, "Env", env);
	set_text(c, "User", m->user);
	set_text(c, "WorkingDir", m->workdir);
	set_text(c, "StopSignal", m->stop_signal);
	if (m->has_entrypoint)
		json_object_set_new(c, "Entrypoint", array_of(&m->entrypoint));
	if (m->has_cmd)
		json_object_set_new(c, "Cmd", array_of(&m->cmd));
	if (m->nports)
		json_object_set_new(c, "ExposedPorts", ports_of(m));
	if (m->nvolumes)
		json_object_set_new(c, "Volumes", volumes_of(m));
	if (m->stop_timeout_ms) /* Docker counts seconds */
		json_object_set_new(
			c, "StopTimeout", json_integer((m->stop_timeout_ms + 999) / 1000));
	if (health)
		json_object_set_new(c, "Healthcheck", health);
	json_object_set_new(c, "Labels", labels_of(m, late));
	image_created(m, created);
	set_platform(m, doc);
	json_object_set_new(doc, "created", json_string(created));
	json_object_set_new(doc, "config", c);
	image_modes_label(m, c);
	return doc;
}
