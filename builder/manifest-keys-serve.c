/* What runs in a container, and what it needs. */
#include "builder/manifest-keys.h"

#include <stddef.h>

#include "builder/rules.h"

enum { MS_MAX = 86400000 }; /* a day */

/* ---- services, ports, volumes ---- */

static const struct choice restarts[] = {
	{"no", RESTART_NO}, {"on-failure", RESTART_ON_FAILURE}, {"always", RESTART_ALWAYS}, {0}};

static const struct key service_keys[] = {
	{"id", V_STRING, .required = true, .rule = &rule_id,
		SCHEMA_FIELD(struct manifest_service, id)},
	{"argv", V_STRINGS, .required = true, .rule = &rule_arg, .min = 1,
		SCHEMA_FIELD(struct manifest_service, argv)},
	{"env", V_PAIRS, .rule = &rule_env_value, .name_rule = &rule_env_name,
		SCHEMA_FIELD(struct manifest_service, env)},
	{"user", V_STRING, .rule = &rule_user, SCHEMA_FIELD(struct manifest_service, user)},
	{"workdir", V_STRING, .rule = &rule_abs_or_root,
		SCHEMA_FIELD(struct manifest_service, workdir)},
	{"restart", V_ENUM, .choices = restarts, SCHEMA_FIELD(struct manifest_service, restart)},
	{"after", V_STRINGS, .set = true, .rule = &rule_id,
		SCHEMA_FIELD(struct manifest_service, after)},
	{"ports", V_INTEGERS, .min = 1, .max = 65535,
		.count = offsetof(struct manifest_service, nports),
		SCHEMA_FIELD(struct manifest_service, ports)},
	{0},
};
const struct schema service_schema = {
	.keys = service_keys, .size = sizeof(struct manifest_service)};

static const struct choice protocols[] = {{"tcp", 0}, {"udp", 0}, {"http", 0}, {"https", 0}, {0}};
static const struct choice auths[] = {{"none", AUTH_NONE}, {"token", AUTH_TOKEN}, {0}};

static const struct key port_keys[] = {
	{"port", V_INTEGER, .required = true, .min = 1, .max = 65535,
		SCHEMA_FIELD(struct manifest_port, port)},
	{"name", V_STRING, .rule = &rule_id, SCHEMA_FIELD(struct manifest_port, name)},
	{"protocol", V_WORD, .choices = protocols, SCHEMA_FIELD(struct manifest_port, protocol)},
	{"path", V_STRING, .rule = &rule_http_path, SCHEMA_FIELD(struct manifest_port, path)},
	{"label", V_STRING, .rule = &rule_line, SCHEMA_FIELD(struct manifest_port, label)},
	{"primary", V_BOOL, SCHEMA_FIELD(struct manifest_port, primary)},
	{"auth", V_ENUM, .choices = auths, SCHEMA_FIELD(struct manifest_port, auth)},
	{0},
};
static const struct manifest_port port_defaults = {.protocol = "tcp"};
const struct schema port_schema = {
	.keys = port_keys, .size = sizeof(struct manifest_port), .defaults = &port_defaults};

static const struct choice purposes[] = {{"workspace", VOLUME_WORKSPACE}, {"models", VOLUME_MODELS},
	{"cache", VOLUME_CACHE}, {"secrets", VOLUME_SECRETS}, {0}};

static const struct key volume_keys[] = {
	{"path", V_STRING, .required = true, .rule = &rule_abs,
		SCHEMA_FIELD(struct manifest_volume, path)},
	{"purpose", V_ENUM, .choices = purposes, SCHEMA_FIELD(struct manifest_volume, purpose)},
	{"sizeGiB", V_INTEGER, .min = 1, .max = 1 << 20,
		SCHEMA_FIELD(struct manifest_volume, size_gib)},
	{"readOnly", V_BOOL, SCHEMA_FIELD(struct manifest_volume, read_only)},
	{"bind", V_STRING, .rule = &rule_abs, SCHEMA_FIELD(struct manifest_volume, bind)},
	{0},
};
const struct schema volume_schema = {.keys = volume_keys, .size = sizeof(struct manifest_volume)};

/* ---- GPUs ---- */

static const struct choice gpu_modes[] = {
	{"none", GPU_NONE}, {"optional", GPU_OPTIONAL}, {"required", GPU_REQUIRED}, {0}};
static const struct choice vendors[] = {
	{"any", GPU_ANY}, {"nvidia", GPU_NVIDIA}, {"amd", GPU_AMD}, {"intel", GPU_INTEL}, {0}};
static const struct choice vram_pers[] = {{"gpu", PER_GPU}, {"total", PER_TOTAL}, {0}};
static const struct choice migs[] = {{"allowed", 1}, {"denied", 0}, {0}};
static const struct choice interconnects[] = {
	{"none", LINK_NONE}, {"nvlink", LINK_NVLINK}, {"rdma", LINK_RDMA}, {0}};

static const struct key gpu_count_keys[] = {
	{"min", V_INTEGER, .max = 64, SCHEMA_FIELD(struct manifest_gpu, count_min)},
	{"max", V_INTEGER, .min = 1, .max = 64, SCHEMA_FIELD(struct manifest_gpu, count_max)},
	{"default", V_INTEGER, .max = 64, SCHEMA_FIELD(struct manifest_gpu, count_default)},
	{0},
};
static const struct schema gpu_count_schema = {.keys = gpu_count_keys};

static const struct key vram_keys[] = {
	{"min", V_INTEGER, .max = 65536, SCHEMA_FIELD(struct manifest_gpu, vram_min)},
	{"recommended", V_INTEGER, .max = 65536,
		SCHEMA_FIELD(struct manifest_gpu, vram_recommended)},
	{"per", V_ENUM, .choices = vram_pers, SCHEMA_FIELD(struct manifest_gpu, vram_per)},
	{0},
};
static const struct schema vram_schema = {.keys = vram_keys};

static const struct key compute_keys[] = {
	{"min", V_STRING, .rule = &rule_compute, SCHEMA_FIELD(struct manifest_gpu, cc_min)},
	{"max", V_STRING, .rule = &rule_compute, SCHEMA_FIELD(struct manifest_gpu, cc_max)},
	{0},
};
static const struct schema compute_schema = {.keys = compute_keys};

static const struct key cuda_keys[] = {
	{"min", V_STRING, .rule = &rule_cuda, SCHEMA_FIELD(struct manifest_gpu, cuda_min)},
	{"max", V_STRING, .rule = &rule_cuda, SCHEMA_FIELD(struct manifest_gpu, cuda_max)},
	{0},
};
static const struct schema cuda_schema = {.keys = cuda_keys};

static const struct key driver_keys[] = {
	{"min", V_STRING, .rule = &rule_driver, SCHEMA_FIELD(struct manifest_gpu, driver_min)},
	{0},
};
static const struct schema driver_schema = {.keys = driver_keys};

static const struct key gpu_keys[] = {
	{"mode", V_ENUM, .required = true, .choices = gpu_modes,
		SCHEMA_FIELD(struct manifest_gpu, mode)},
	{"vendor", V_ENUM, .choices = vendors, SCHEMA_FIELD(struct manifest_gpu, vendor)},
	{"count", V_OBJECT, .of = &gpu_count_schema},
	{"vramGiB", V_OBJECT, .of = &vram_schema},
	{"computeCapability", V_OBJECT, .of = &compute_schema},
	{"cuda", V_OBJECT, .of = &cuda_schema},
	{"driver", V_OBJECT, .of = &driver_schema},
	{"capabilities", V_STRINGS, .set = true, .rule = &rule_capability,
		SCHEMA_FIELD(struct manifest_gpu, capabilities)},
	{"archs", V_STRINGS, .set = true, .rule = &rule_gpu_arch,
		SCHEMA_FIELD(struct manifest_gpu, archs)},
	{"brands", V_STRINGS, .set = true, .rule = &rule_id,
		SCHEMA_FIELD(struct manifest_gpu, brands)},
	{"forwardCompat", V_BOOL, SCHEMA_FIELD(struct manifest_gpu, forward_compat)},
	{"mig", V_ENUM, .choices = migs, SCHEMA_FIELD(struct manifest_gpu, mig)},
	{"interconnect", V_ENUM, .choices = interconnects,
		SCHEMA_FIELD(struct manifest_gpu, interconnect)},
	{0},
};
const struct schema gpu_schema = {.keys = gpu_keys};

/* ---- resources ---- */

static const struct key cpu_keys[] = {
	{"min", V_INTEGER, .max = 1024, SCHEMA_FIELD(struct manifest_resources, cpu_min)},
	{"recommended", V_INTEGER, .max = 1024,
		SCHEMA_FIELD(struct manifest_resources, cpu_recommended)},
	{0},
};
static const struct schema cpu_schema = {.keys = cpu_keys};

static const struct key memory_keys[] = {
	{"min", V_INTEGER, .max = 1 << 24, SCHEMA_FIELD(struct manifest_resources, memory_min)},
	{"recommended", V_INTEGER, .max = 1 << 24,
		SCHEMA_FIELD(struct manifest_resources, memory_recommended)},
	{0},
};
static const struct schema memory_schema = {.keys = memory_keys};

static const struct key disk_keys[] = {
	{"image", V_INTEGER, .max = 1 << 20, SCHEMA_FIELD(struct manifest_resources, image_gib)},
	{"workspace", V_INTEGER, .max = 1 << 20,
		SCHEMA_FIELD(struct manifest_resources, workspace_gib)},
	{0},
};
static const struct schema disk_schema = {.keys = disk_keys};

static const struct key resources_keys[] = {
	{"cpu", V_OBJECT, .of = &cpu_schema},
	{"memoryMiB", V_OBJECT, .of = &memory_schema},
	{"diskGiB", V_OBJECT, .of = &disk_schema},
	{"shmMiB", V_INTEGER, .min = 1, .max = 1 << 24,
		SCHEMA_FIELD(struct manifest_resources, shm_mib)},
	{"pids", V_INTEGER, .min = 1, .max = 1 << 22,
		SCHEMA_FIELD(struct manifest_resources, pids)},
	{"ulimits", V_PAIRS, .scalars = true, .rule = &rule_ulimit, .name_rule = &rule_ulimit_name,
		SCHEMA_FIELD(struct manifest_resources, ulimits)},
	{0},
};
const struct schema resources_schema = {.keys = resources_keys};

/* ---- health ---- */

static const struct key http_keys[] = {
	{"port", V_INTEGER, .required = true, .min = 1, .max = 65535,
		SCHEMA_FIELD(struct manifest_probe, port)},
	{"path", V_STRING, .rule = &rule_http_path, SCHEMA_FIELD(struct manifest_probe, path)},
	{"status", V_INTEGERS, .min = 100, .max = 599,
		.count = offsetof(struct manifest_probe, nstatus),
		SCHEMA_FIELD(struct manifest_probe, status)},
	{"bodyMatches", V_STRING, .rule = &rule_regex,
		SCHEMA_FIELD(struct manifest_probe, body_matches)},
	{"headers", V_PAIRS, .rule = &rule_header_value, .name_rule = &rule_header_name, .max = 100,
		SCHEMA_FIELD(struct manifest_probe, headers)},
	{0},
};
static const struct schema http_schema = {.keys = http_keys};

static const struct key tcp_keys[] = {
	{"port", V_INTEGER, .required = true, .min = 1, .max = 65535,
		SCHEMA_FIELD(struct manifest_probe, port)},
	{0},
};
static const struct schema tcp_schema = {.keys = tcp_keys};

static const struct key exec_keys[] = {
	{"argv", V_STRINGS, .required = true, .rule = &rule_build_text, .min = 1,
		SCHEMA_FIELD(struct manifest_probe, argv)},
	{0},
};
static const struct schema exec_schema = {.keys = exec_keys};

static const struct key probe_keys[] = {
	{"http", V_OBJECT, .of = &http_schema, .present = offsetof(struct manifest_probe, kind),
		.present_as = PROBE_HTTP},
	{"tcp", V_OBJECT, .of = &tcp_schema, .present = offsetof(struct manifest_probe, kind),
		.present_as = PROBE_TCP},
	{"exec", V_OBJECT, .of = &exec_schema, .present = offsetof(struct manifest_probe, kind),
		.present_as = PROBE_EXEC},
	{"periodMs", V_INTEGER, .min = 100, .max = MS_MAX,
		SCHEMA_FIELD(struct manifest_probe, period_ms)},
	{"timeoutMs", V_INTEGER, .min = 1, .max = MS_MAX,
		SCHEMA_FIELD(struct manifest_probe, timeout_ms)},
	{"failureThreshold", V_INTEGER, .min = 1, .max = 100000,
		SCHEMA_FIELD(struct manifest_probe, failure_threshold)},
	{"initialDelayMs", V_INTEGER, .max = MS_MAX,
		SCHEMA_FIELD(struct manifest_probe, initial_delay_ms)},
	{0},
};
static const struct schema probe_schema = {.keys = probe_keys};

static const struct key health_keys[] = {
	{"startup", V_OBJECT, .of = &probe_schema, .at = offsetof(struct manifest_health, startup)},
	{"readiness", V_OBJECT, .of = &probe_schema,
		.at = offsetof(struct manifest_health, readiness)},
	{"liveness", V_OBJECT, .of = &probe_schema,
		.at = offsetof(struct manifest_health, liveness)},
	{0},
};
const struct schema health_schema = {.keys = health_keys};
