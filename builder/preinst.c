#include "builder/preinst.h"

/* Words: file (without ".preinst"), package, architecture. The names in tmp.ci are what debconf and
 * scripts look for. */
static const char runner[] =
	"preinst() {\n"
	"	ci=/var/lib/dpkg/tmp.ci\n"
	"	rm -rf $ci; mkdir $ci\n"
	"	for x in preinst postinst prerm postrm config templates conffiles md5sums "
	"triggers; do\n"
	"		f=/var/lib/dpkg/info/$1.$x\n"
	"		[ ! -e \"$f\" ] || cp -p \"$f\" $ci/$x\n"
	"	done\n"
	"	printf 'Package: %s\\nArchitecture: %s\\n' \"$2\" \"$3\" >$ci/control\n"
	"	echo \"preinst of $2\"\n"
	"	(cd / && env DPKG_MAINTSCRIPT_PACKAGE=\"$2\" DPKG_MAINTSCRIPT_PACKAGE_REFCOUNT=1 "
	"\\\n"
	"		DPKG_MAINTSCRIPT_ARCH=\"$3\" DPKG_MAINTSCRIPT_NAME=preinst "
	"DPKG_MAINTSCRIPT_DEBUG=0 \\\n"
	"		DPKG_ADMINDIR=/var/lib/dpkg DPKG_ROOT= DPKG_RUNNING_VERSION=\"$dpkg\" "
	"PERL_DL_NONLAZY=1 \\\n"
	"		$ci/preinst install </dev/null) || {\n"
	"		echo \"svrun: the preinst script of the package $2 failed with exit status "
	"$?\"\n"
	"		exit 1\n"
	"	}\n"
	"	rm -rf $ci\n"
	"}\n"
	"dpkg=$(dpkg-query -W -f '${Version}' dpkg)\n";

/* Both packages ship the file, and only one is there: what the script diverts had to be out of the
 * way before the other was unpacked. */
static const char check[] =
	"ships() {\n"
	"	for l in /var/lib/dpkg/info/$1.list /var/lib/dpkg/info/$1:*.list; do\n"
	"		if [ -e \"$l\" ] && grep -qxF -- \"$2\" \"$l\"; then return 0; fi\n"
	"	done\n"
	"	return 1\n"
	"}\n"
	"there() { [ -e \"$1\" ] || [ -L \"$1\" ]; }\n"
	"while read -r from && read -r to && read -r by; do\n"
	"	there \"$from\" && ! there \"$to\" && ships \"$by\" \"$from\" || continue\n"
	"	for l in $(grep -lxF -- \"$from\" /var/lib/dpkg/info/*.list || :); do\n"
	"		other=${l##*/}; other=${other%.list}; other=${other%%:*}\n"
	"		[ \"$other\" != \"$by\" ] || continue\n"
	"		echo \"svrun: the preinst script of the package $by diverts $from of "
	"$other to $to, \"\\\n"
	"\"in words that are not known before it runs: both were unpacked at the same place\"\n"
	"		exit 1\n"
	"	done\n"
	"done </var/lib/dpkg/diversions\n";

void preinst_text(const struct dpkg_order *o, struct buf *out)
{
	bool any = false;

	for (size_t i = 0; i < o->n; i++) {
		const struct dpkg_package *p = &o->v[i];

		if (!p->preinst)
			continue;
		buf_printf(
			out, "%spreinst %s %s %s\n", any ? "" : runner, p->file, p->name, p->arch);
		any = true;
	}
	if (any)
		buf_printf(out, "%s", check);
}
