#include "builder/services.h"

#include <string.h>

#include "base/str.h"

enum { PROGRAM_MAX = 16 << 20 };

static const char head[] = "#!/usr/bin/perl\n"
			   "# Made by svrun from the manifest's services.\n"
			   "use strict;\n"
			   "use warnings;\n"
			   "use POSIX qw(:sys_wait_h :signal_h);\n"
			   "\n"
			   "my @services = (\n";

static const char body[] =
	");\n"
	"@services = ({id => $ARGV[1] // '', argv => [@ARGV[1 .. $#ARGV]], env => {}, user => '',\n"
	"	dir => '', restart => 'no'}) if @ARGV && $ARGV[0] eq '--';\n"
	"\n"
	"sub expand {\n"
	"	my ($s) = @_;\n"
	"	my %of = (cpus => 'SVRUN_CPUS', gpus => 'SVRUN_GPUS', memMiB => 'SVRUN_MEM_MIB');\n"
	"	$s =~ s/\\$\\{runtime:(cpus|gpus|memMiB)\\}/$ENV{$of{$1}} \\/\\/ '1'/ge;\n"
	"	return $s;\n"
	"}\n"
	"\n"
	"sub fail {\n"
	"	print STDERR \"init: @_\\n\";\n"
	"	POSIX::_exit(127);\n"
	"}\n"
	"\n"
	"sub become {\n"
	"	my ($s) = @_;\n"
	"	my ($name, $group) = split /:/, $s->{user};\n"
	"	my @account = $name =~ /^\\d+$/ ? getpwuid($name) : getpwnam($name);\n"
	"	my $uid = $name =~ /^\\d+$/ ? $name : $account[2];\n"
	"	my $gid = !defined $group ? $account[3] // 0 : $group =~ /^\\d+$/ ? $group : "
	"getgrnam($group);\n"
	"	fail(\"$s->{id}: no user or group $s->{user}\") unless defined $uid && defined "
	"$gid;\n"
	"	return if $> == $uid && $> != 0;\n"
	"	my @groups = ($gid);\n"
	"	while (@account && (my @g = getgrent)) {\n"
	"		push @groups, $g[2] if grep { $_ eq $account[0] } split / /, $g[3];\n"
	"	}\n"
	"	$! = 0;\n"
	"	$) = join ' ', $gid, @groups;\n"
	"	fail(\"$s->{id}: groups of $s->{user}: $!\") if $!;\n"
	"	POSIX::setgid($gid) // fail(\"$s->{id}: group of $s->{user}: $!\");\n"
	"	POSIX::setuid($uid) // fail(\"$s->{id}: user $s->{user}: $!\");\n"
	"	$ENV{HOME} = $account[7] if @account;\n"
	"}\n"
	"\n"
	"my (%running, %due, $stopping);\n"
	"my $status = 0;\n"
	"my $none = POSIX::SigSet->new;\n"
	"my $all = POSIX::SigSet->new;\n"
	"$all->fillset;\n"
	"sigprocmask(SIG_BLOCK, $all);\n"
	"for my $name (keys %SIG) {\n"
	"	next if $name =~ "
	"/^(KILL|STOP|SEGV|BUS|ILL|FPE|TRAP|SYS|TSTP|TTIN|TTOU|CONT|__.*)$/;\n"
	"	if ($name =~ /^(CHLD|CLD|ALRM|PIPE)$/) {\n"
	"		$SIG{$name} = sub { };\n"
	"		next;\n"
	"	}\n"
	"	$SIG{$name} = sub {\n"
	"		$stopping = 1 if $name =~ /^(TERM|INT|QUIT)$/ || $name eq STOP;\n"
	"		kill $name, keys %running;\n"
	"	};\n"
	"}\n"
	"\n"
	"sub start {\n"
	"	my ($s) = @_;\n"
	"	my $pid = fork // fail(\"$s->{id}: $!\");\n"
	"	if ($pid) {\n"
	"		$running{$pid} = $s;\n"
	"		return;\n"
	"	}\n"
	"	$SIG{$_} = 'DEFAULT' for grep { defined $SIG{$_} } keys %SIG;\n"
	"	sigprocmask(SIG_SETMASK, $none);\n"
	"	my %env = map { $_ => expand($s->{env}{$_}) } keys %{$s->{env}};\n"
	"	become($s) if $s->{user} ne '';\n"
	"	@ENV{keys %env} = values %env;\n"
	"	chdir $s->{dir} or fail(\"$s->{id}: $s->{dir}: $!\") if $s->{dir} ne '';\n"
	"	my @argv = map { expand($_) } @{$s->{argv}};\n"
	"	fail('no program') unless @argv;\n"
	"	{ no warnings; exec { $argv[0] } @argv; }\n"
	"	fail(\"$s->{id}: $argv[0]: $!\");\n"
	"}\n"
	"\n"
	"start($_) for @services;\n"
	"for (;;) {\n"
	"	while ((my $pid = waitpid(-1, WNOHANG)) > 0) {\n"
	"		my $code = WIFSIGNALED($?) ? 128 + WTERMSIG($?) : WEXITSTATUS($?);\n"
	"		my $s = delete $running{$pid} or next;\n"
	"		print STDERR \"init: $s->{id} ended with status $code\\n\" if @services > "
	"1;\n"
	"		if (!$stopping && ($s->{restart} eq 'always' || $code && $s->{restart} eq "
	"'on-failure')) {\n"
	"			$due{$s->{id}} = [time + 1, $s];\n"
	"		} elsif (!$status) {\n"
	"			$status = $code;\n"
	"		}\n"
	"	}\n"
	"	%due = () if $stopping;\n"
	"	for my $id (sort keys %due) {\n"
	"		start((delete $due{$id})->[1]) if $due{$id}[0] <= time;\n"
	"	}\n"
	"	last unless %running || %due;\n"
	"	alarm 1 if %due;\n"
	"	sigsuspend($none);\n"
	"}\n"
	"exit $status;\n";

/* ---- the program ---- */

static void put_quoted(struct buf *b, const char *s)
{
	buf_put(b, "'", 1);
	for (; s && *s; s++) {
		if (*s == '\'' || *s == '\\')
			buf_put(b, "\\", 1);
		buf_put(b, s, 1);
	}
	buf_put(b, "'", 1);
}

static void put_service(struct buf *b, const struct manifest_service *s)
{
	static const char *const restarts[] = {"no", "on-failure", "always"};

	buf_printf(b, "\t{id => ");
	put_quoted(b, s->id);
	buf_printf(b, ", argv => [");
	for (size_t i = 0; i < s->argv.n; i++) {
		buf_printf(b, i ? ", " : "");
		put_quoted(b, s->argv.v[i]);
	}
	buf_printf(b, "], env => {");
	for (size_t i = 0; i < s->env.n; i++) {
		buf_printf(b, "%s%s => ", i ? ", " : "", s->env.v[i].name);
		put_quoted(b, s->env.v[i].value);
	}
	buf_printf(b, "},\n\t\tuser => ");
	put_quoted(b, s->user);
	buf_printf(b, ", dir => ");
	put_quoted(b, s->workdir);
	buf_printf(b, ", restart => '%s'},\n", restarts[s->restart]);
}

/* Perl's name of the signal that asks the container to end. */
static const char *stop_name(const struct manifest *m)
{
	const char *name = m->stop_signal ? m->stop_signal + strlen("SIG") : "TERM";

	return strchr(name, '+') ? "TERM" : name;
}

void services_program(const struct manifest *m, struct buf *out)
{
	buf_printf(out, "%s", head);
	for (size_t i = 0; i < m->nservices; i++)
		put_service(out, &m->services[i]);
	for (const char *p = body; *p;) {
		const char *at = strstr(p, " STOP;");

		buf_put(out, p, at ? (size_t)(at - p) : strlen(p));
		if (at)
			buf_printf(out, " '%s';", stop_name(m));
		p = at ? at + strlen(" STOP;") : p + strlen(p);
	}
}

/* ---- what the manifest gets ---- */

bool services_can_run(const struct manifest *m)
{
	static const char *const names[] = {"?essential", "perl", "perl-base"};

	for (size_t i = 0; i < m->apt.packages.n; i++)
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			if (str_eq(m->apt.packages.v[i], names[k]))
				return true;
	return m->base.type == BASE_OCI;
}

static void add_file(struct manifest *m, struct manifest_file f)
{
	struct manifest_file *v = arena_alloc(&m->arena, (m->nfiles + 1) * sizeof(*v));

	if (m->nfiles)
		memcpy(v, m->files, m->nfiles * sizeof(*v));
	v[m->nfiles++] = f;
	m->files = v;
}

/* In its place among the sorted ones, unless the manifest has it. */
static void add_env(struct manifest *m, const char *name, const char *value)
{
	struct pair *v = arena_alloc(&m->arena, (m->env.n + 1) * sizeof(*v));
	size_t i = 0;

	while (i < m->env.n && strcmp(m->env.v[i].name, name) < 0)
		i++;
	if (i < m->env.n && str_eq(m->env.v[i].name, name))
		return;
	if (m->env.n)
		memcpy(v, m->env.v, i * sizeof(*v));
	v[i] = (struct pair){name, value};
	if (m->env.n > i)
		memcpy(v + i + 1, m->env.v + i, (m->env.n - i) * sizeof(*v));
	m->env = (struct pairs){v, m->env.n + 1};
}

static void set_entrypoint(struct manifest *m)
{
	const char **v = arena_alloc(&m->arena, (m->entrypoint.n + 3) * sizeof(*v));
	size_t n = 0;

	v[n++] = "/usr/bin/perl";
	v[n++] = SERVICES_INIT;
	if (!m->nservices)
		v[n++] = "--";
	for (size_t i = 0; !m->nservices && i < m->entrypoint.n; i++)
		v[n++] = m->entrypoint.v[i];
	m->entrypoint = (struct strings){v, n};
	m->has_entrypoint = true;
}

static void add_shared(struct manifest *m, const char *name, const char *from)
{
	const char *dot = from ? strrchr(from, '.') : NULL;

	if (dot && strchr(dot, '/'))
		dot = NULL;
	if (from)
		add_file(m, (struct manifest_file){
				    .dest = arena_printf(&m->arena, SERVICES_SHARE "/%s%s", name,
					    dot ? dot : ""),
				    .from = from,
				    .mode = 0644});
}

void services_apply(struct manifest *m)
{
	auto_buf struct buf program = BUF_INIT(PROGRAM_MAX);

	add_shared(m, "icon", m->icon);
	add_shared(m, "readme", m->readme);
	if (!m->nservices && !m->init)
		return;
	services_program(m, &program);
	add_file(m, (struct manifest_file){.dest = SERVICES_INIT,
			    .inline_text = arena_strdup(&m->arena, program.data),
			    .mode = 0755});
	set_entrypoint(m);
	if (strstr(program.data, "${runtime:") && m->nservices) {
		add_env(m, "SVRUN_CPUS", "${runtime:cpus}");
		add_env(m, "SVRUN_GPUS", "${runtime:gpus}");
		add_env(m, "SVRUN_MEM_MIB", "${runtime:memMiB}");
	}
}
