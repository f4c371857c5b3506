#include "gpu/nvidia-proc.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

enum { MODEL_MAX = 128 };

/* ---- PCI addresses ---- */

/* least to most hex digits, then end (which is passed over). */
static int hex(const char **s, size_t least, size_t most, char end, uint32_t *v)
{
	size_t n = 0;
	uint32_t got = 0;

	for (; n < most && isxdigit((unsigned char)(*s)[n]); n++) {
		int c = tolower((unsigned char)(*s)[n]);

		got = got * 16 + (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	if (n < least || (*s)[n] != end)
		return -1;
	*s += n + (end != '\0');
	*v = got;
	return 0;
}

int pci_bus_parse(struct pci_bus *b, const char *text, bool short_domain)
{
	uint32_t domain = 0, bus, slot, function;
	const char *colon = strchr(text, ':');
	bool has_domain = colon && strchr(colon + 1, ':');

	if (!has_domain && !short_domain)
		return -1;
	if ((has_domain && hex(&text, 4, 8, ':', &domain) < 0) || hex(&text, 2, 2, ':', &bus) < 0 ||
		hex(&text, 2, 2, '.', &slot) < 0 || hex(&text, 1, 1, '\0', &function) < 0 ||
		slot > 31 || function > 7)
		return -1;
	*b = (struct pci_bus){domain, (uint8_t)bus, (uint8_t)slot, (uint8_t)function};
	return 0;
}

const char *pci_bus_text(const struct pci_bus *b, char out[PCI_BUS_TEXT])
{
	snprintf(out, PCI_BUS_TEXT, "%04x:%02x:%02x.%x", b->domain, b->bus, b->slot & 31u,
		b->function & 7u);
	return out;
}

int pci_bus_compare(const struct pci_bus *a, const struct pci_bus *b)
{
	if (a->domain != b->domain)
		return a->domain < b->domain ? -1 : 1;
	if (a->bus != b->bus)
		return a->bus < b->bus ? -1 : 1;
	if (a->slot != b->slot)
		return a->slot < b->slot ? -1 : 1;
	return (a->function > b->function) - (a->function < b->function);
}

/* ---- lines of "Key: \t value" ---- */

/* The next line, with blanks at both ends left out: *s moves behind it, and is NULL behind the
 * last.
 */
static bool next_line(const char **s, const char **line, size_t *n)
{
	const char *end;

	if (!*s || !**s)
		return false;
	end = strchrnul(*s, '\n');
	*line = *s;
	*n = (size_t)(end - *s);
	*s = *end ? end + 1 : NULL;
	while (*n && isspace((unsigned char)**line)) {
		++*line;
		--*n;
	}
	while (*n && isspace((unsigned char)(*line)[*n - 1]))
		--*n;
	return true;
}

/* The value of a line that begins with "key:"; false: it does not. */
static bool value_of(const char *line, size_t n, const char *key, const char **value, size_t *nv)
{
	size_t k = strlen(key);

	if (n < k + 1 || memcmp(line, key, k) != 0 || line[k] != ':')
		return false;
	*value = line + k + 1;
	*nv = n - k - 1;
	while (*nv && isspace((unsigned char)**value)) {
		++*value;
		--*nv;
	}
	return true;
}

static int number(const char *s, size_t n, uint64_t max, uint32_t *v)
{
	char text[24];
	uint64_t got;

	if (n >= sizeof(text))
		return -1;
	memcpy(text, s, n);
	text[n] = '\0';
	if (str_u64(text, max, &got) < 0)
		return -1;
	*v = (uint32_t)got;
	return 0;
}

/* ---- information ---- */

/* "GPU-5a000000-0123-4567-89ab-0123456789ab". A GPU that was never opened has question marks: none.
 */
static int check_uuid(const char *s, const char **uuid)
{
	static const char form[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	size_t i;

	if (strchr(s, '?')) {
		*uuid = NULL;
		return 0;
	}
	for (i = 0; form[i]; i++)
		if (form[i] == 'x' ? !isxdigit((unsigned char)s[i]) : s[i] != form[i])
			return -1;
	*uuid = s;
	return s[i] ? -1 : 0;
}

struct reading {
	struct nvidia_information *i;
	struct arena *mem;
	unsigned seen; /* bits of keys[] */
};

static int take_model(struct reading *r, const char *value)
{
	char *model = arena_strdup(r->mem, value);

	if (!str_utf8(model, strlen(model)) || strlen(model) > MODEL_MAX)
		return -1;
	str_plain(model, "");
	r->i->model = model;
	return 0;
}

static int take_uuid(struct reading *r, const char *value)
{
	return check_uuid(value, &r->i->uuid);
}

static int take_bus(struct reading *r, const char *value)
{
	return pci_bus_parse(&r->i->bus, value, false);
}

static int take_minor(struct reading *r, const char *value)
{
	return number(value, strlen(value), NVIDIA_MINOR_MAX, &r->i->minor);
}

static int take_firmware(struct reading *r, const char *value)
{
	for (const char *p = value; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-/ ", *p))
			return -1;
	r->i->firmware = *value && !str_eq(value, "N/A") ? value : NULL;
	return strlen(value) < 64 ? 0 : -1;
}

/* "Blacklisted" was the key before drivers of 460. */
static int take_excluded(struct reading *r, const char *value)
{
	r->i->excluded = str_eq(value, "Yes");
	return r->i->excluded || str_eq(value, "No") ? 0 : -1;
}

static const struct {
	const char *key;
	int (*take)(struct reading *r, const char *value);
	bool required;
} keys[] = {
	{"Model", take_model, true},
	{"GPU UUID", take_uuid, false},
	{"Bus Location", take_bus, true},
	{"Device Minor", take_minor, true},
	{"GPU Firmware", take_firmware, false},
	{"GPU Excluded", take_excluded, false},
	{"Blacklisted", take_excluded, false},
};
enum { NKEYS = sizeof(keys) / sizeof(keys[0]) };

static int take_line(struct reading *r, const char *name, const char *line, size_t n, struct err *e)
{
	for (unsigned k = 0; k < NKEYS; k++) {
		char shown[STR_SHOWN];
		const char *value;
		size_t nv;

		if (!value_of(line, n, keys[k].key, &value, &nv))
			continue;
		if (r->seen & 1u << k)
			return err_set(
				e, ERR_CORRUPT, "%s: \"%s\" stands there twice", name, keys[k].key);
		r->seen |= 1u << k;
		value = arena_strndup(r->mem, value, nv);
		if (keys[k].take(r, value) < 0)
			return err_set(e, ERR_CORRUPT, "%s: \"%s\" is no value of \"%s\"", name,
				str_shown(value, shown), keys[k].key);
		return 0;
	}
	return 0;
}

int nvidia_information_parse(struct nvidia_information *i, const char *name, const char *text,
	struct arena *mem, struct err *e)
{
	struct reading r = {.i = i, .mem = mem};
	const char *line;
	size_t n;

	*i = (struct nvidia_information){0};
	while (next_line(&text, &line, &n))
		if (take_line(&r, name, line, n, e) < 0)
			return -1;
	for (unsigned k = 0; k < NKEYS; k++)
		if (keys[k].required && !(r.seen & 1u << k))
			return err_set(e, ERR_CORRUPT, "%s: \"%s\" is missing", name, keys[k].key);
	return 0;
}

/* ---- version ---- */

static bool is_version(const char *s, size_t n)
{
	size_t dots = 0;

	for (size_t i = 0; i < n; i++) {
		bool dot = s[i] == '.';

		if ((!dot && !isdigit((unsigned char)s[i])) ||
			(dot && (i == 0 || i + 1 == n || s[i - 1] == '.')))
			return false;
		dots += dot;
	}
	return dots == 1 || dots == 2;
}

int nvidia_version_parse(
	const char *name, const char *text, char version[32], bool *open, struct err *e)
{
	const char *line, *value;
	size_t n, nv;

	while (next_line(&text, &line, &n)) {
		if (!value_of(line, n, "NVRM version", &value, &nv))
			continue;
		*open = memmem(value, nv, "Open Kernel Module", strlen("Open Kernel Module"));
		while (nv) {
			size_t word = 0;

			while (word < nv && !isspace((unsigned char)value[word]))
				word++;
			if (word && word < 32 && is_version(value, word)) {
				memcpy(version, value, word);
				version[word] = '\0';
				return 0;
			}
			word += word < nv;
			value += word;
			nv -= word;
		}
	}
	return err_set(e, ERR_CORRUPT, "%s: no driver version in it", name);
}

/* ---- numbers ---- */

int proc_devices_major(
	const char *name, const char *text, const char *device, uint32_t *major, struct err *e)
{
	const char *line;
	size_t n, k = strlen(device);

	while (next_line(&text, &line, &n)) {
		size_t digits = 0;

		if (n >= 5 && memcmp(line, "Block", 5) == 0) /* the other half: not ours */
			return 0;
		while (digits < n && isdigit((unsigned char)line[digits]))
			digits++;
		if (!digits || n != digits + 1 + k || line[digits] != ' ' ||
			memcmp(line + digits + 1, device, k) != 0)
			continue;
		if (number(line, digits, 4095, major) < 0 || *major == 0)
			return err_set(e, ERR_CORRUPT, "%s: the major of %s is none", name, device);
		return 1;
	}
	return 0;
}

int nvidia_key_number(const char *name, const char *text, const char *key, uint32_t max,
	uint32_t *v, struct err *e)
{
	const char *line, *value;
	size_t n, nv;

	while (next_line(&text, &line, &n)) {
		if (!value_of(line, n, key, &value, &nv))
			continue;
		if (number(value, nv, max, v) < 0)
			return err_set(
				e, ERR_CORRUPT, "%s: %s is not a number up to %u", name, key, max);
		return 1;
	}
	return 0;
}

int nvidia_cap_minor(
	const char *name, const char *text, const char *cap, uint32_t *minor, struct err *e)
{
	const char *line;
	size_t n, k = strlen(cap);

	while (next_line(&text, &line, &n)) {
		if (n < k + 2 || memcmp(line, cap, k) != 0 || line[k] != ' ')
			continue;
		if (number(line + k + 1, n - k - 1, NVIDIA_CAPS_MINORS - 1, minor) < 0)
			return err_set(e, ERR_CORRUPT, "%s: the minor of %s is none", name, cap);
		return 1;
	}
	return 0;
}

bool numbered_name(const char *text, const char *word, uint32_t max, uint32_t *n)
{
	uint64_t got;
	size_t k = strlen(word);

	if (!str_starts(text, word) || str_u64(text + k, max, &got) < 0 ||
		(text[k] == '0' && text[k + 1]))
		return false;
	*n = (uint32_t)got;
	return true;
}
