# The first process of an image that has `services` or `init`: what services.h says it does. In the
# image, what the manifest says stands before this text: %stop, the signal that asks the container to
# end (its name => its number), and @services. It needs perl-base and no more.
use strict;
use warnings;
use POSIX qw(:sys_wait_h :signal_h);
use Socket qw(:DEFAULT SOCK_NONBLOCK IN6ADDR_LOOPBACK pack_sockaddr_in6);

our (%stop, @services);
my $patience = 60;                      # seconds that the ports of a service have to open
my ($first_pause, $pause_max) = (1, 30); # seconds before a service starts again; doubled each time
my $well = 60;                          # seconds of running after which it is the first pause again

my $alone = @ARGV && $ARGV[0] eq '--';
@services = ({id => $ARGV[1] // '', argv => [@ARGV[1 .. $#ARGV]], env => {}, user => '',
	dir => '', restart => 'no', after => [], ports => []}) if $alone;

my %named = map { $_->{id} => $_ } @services;
my @waiting = @services; # not started yet, in their order
my %running;             # process => service
my @due;                 # those that start again at their {due}
my ($stopping, %passed); # numbers of the signals that ask to end and came
my $status = 0;

# Seconds of a clock that nobody sets.
my $ticks = POSIX::sysconf(POSIX::_SC_CLK_TCK);
sub now {
	return (POSIX::times())[0] / $ticks;
}

sub say_it {
	print STDERR "init: @_\n";
}

# In the process of a service: what keeps it from running is its end.
sub fail {
	say_it(@_);
	POSIX::_exit(127);
}

# ---- signals: they come only in rest() ----

my $none = POSIX::SigSet->new;
my $all = POSIX::SigSet->new;
$all->fillset;
sigprocmask(SIG_BLOCK, $all);
%stop = (INT => SIGINT, QUIT => SIGQUIT, TERM => SIGTERM, %stop);
for my $name (keys %SIG) {
	next if $name =~ /^(KILL|STOP|SEGV|BUS|ILL|FPE|TRAP|SYS|TSTP|TTIN|TTOU|CONT|__.*)$/;
	if ($name =~ /^(CHLD|CLD|PIPE)$/) {
		$SIG{$name} = sub { };
		next;
	}
	$SIG{$name} = sub {
		$stopping = $passed{$stop{$name}} = 1 if $stop{$name};
		kill $name, keys %running;
	};
}

# Until a signal comes, or a tenth of a second when there is something to look after.
sub rest {
	if (!@waiting && !@due) {
		sigsuspend($none);
		return;
	}
	sigprocmask(SIG_SETMASK, $none);
	select undef, undef, undef, 0.1;
	sigprocmask(SIG_BLOCK, $all);
}

# ---- a service's process ----

sub expand {
	my ($s) = @_;
	my %of = (cpus => 'SVRUN_CPUS', gpus => 'SVRUN_GPUS', memMiB => 'SVRUN_MEM_MIB');
	$s =~ s/\$\{runtime:(cpus|gpus|memMiB)\}/$ENV{$of{$1}} \/\/ '1'/ge;
	return $s;
}

sub become {
	my ($s) = @_;
	my ($name, $group) = split /:/, $s->{user};
	my @account = $name =~ /^\d+$/ ? getpwuid($name) : getpwnam($name);
	my $uid = $name =~ /^\d+$/ ? $name : $account[2];
	my $gid = !defined $group ? $account[3] // 0 : $group =~ /^\d+$/ ? $group : getgrnam($group);
	fail("$s->{id}: no user or group $s->{user}") unless defined $uid && defined $gid;
	return if $> == $uid && $> != 0;
	my @groups = ($gid);
	while (@account && (my @g = getgrent)) {
		push @groups, $g[2] if grep { $_ eq $account[0] } split / /, $g[3];
	}
	$! = 0;
	$) = join ' ', $gid, @groups;
	fail("$s->{id}: groups of $s->{user}: $!") if $!;
	POSIX::setgid($gid) // fail("$s->{id}: group of $s->{user}: $!");
	POSIX::setuid($uid) // fail("$s->{id}: user $s->{user}: $!");
	$ENV{HOME} = $account[7] if @account;
}

sub start {
	my ($s) = @_;
	my $pid = fork;
	if (!defined $pid || $pid) {
		$s->{began} = now();
		$s->{first} //= $s->{began};
		return $running{$pid} = $s if $pid;
		say_it("$s->{id}: $!");
		return ended($s, 127 << 8);
	}
	$SIG{$_} = 'DEFAULT' for grep { defined $SIG{$_} } keys %SIG;
	sigprocmask(SIG_SETMASK, $none);
	my %env = map { $_ => expand($s->{env}{$_}) } keys %{$s->{env}};
	become($s) if $s->{user} ne '';
	@ENV{keys %env} = values %env;
	chdir $s->{dir} or fail("$s->{id}: $s->{dir}: $!") if $s->{dir} ne '';
	my @argv = map { expand($_) } @{$s->{argv}};
	fail('no program') unless @argv;
	{ no warnings; exec { $argv[0] } @argv; }
	fail("$s->{id}: $argv[0]: $!");
}

# ---- who waits for whom ----

# Does anybody accept a connection to this port of the loopback?
sub accepts {
	my ($port) = @_;
	for my $to (pack_sockaddr_in($port, INADDR_LOOPBACK), pack_sockaddr_in6($port, IN6ADDR_LOOPBACK)) {
		socket(my $fd, sockaddr_family($to), SOCK_STREAM | SOCK_NONBLOCK, 0) or next;
		return 1 if connect $fd, $to;
		next unless $! == POSIX::EINPROGRESS;
		vec(my $set = '', fileno $fd, 1) = 1;
		return 1 if select(undef, $set, undef, 0.1) > 0 && getpeername $fd;
	}
	return 0;
}

# Has it started, and do its ports answer? What was ready once does not hold up anybody later.
sub is_ready {
	my ($s) = @_;
	return $s->{ready} if $s->{ready} || !defined $s->{first};
	my @closed = grep { !accepts($_) } @{$s->{ports}};
	if (@closed) {
		return 0 if !$s->{over} && now() - $s->{first} < $patience;
		say_it("$s->{id}: nothing listens on port @closed; what is after it starts");
	}
	return $s->{ready} = 1;
}

sub start_who_may {
	my @still;
	for my $s (@waiting) {
		if (grep { !is_ready($named{$_}) } @{$s->{after}}) {
			push @still, $s;
		} else {
			start($s);
		}
	}
	@waiting = @still;
	my $now = now();
	my @again = grep { $_->{due} <= $now } @due;
	@due = grep { $_->{due} > $now } @due;
	start($_) for @again;
}

# ---- the end of one, and of all ----

sub ended {
	my ($s, $wait) = @_;
	my $code = WIFSIGNALED($wait) ? 128 + WTERMSIG($wait) : WEXITSTATUS($wait);
	# Who ends by the signal that all were sent did as asked. Of one program it is the status that
	# it would have without us.
	$code = 0 if !$alone && WIFSIGNALED($wait) && $passed{WTERMSIG($wait)};
	my $again = !$stopping && ($s->{restart} eq 'always' || $code && $s->{restart} eq 'on-failure');
	if ($again) {
		my $doubled = 2 * ($s->{pause} // 0);
		$doubled = $pause_max if $doubled > $pause_max;
		$s->{pause} = $doubled && now() - $s->{began} < $well ? $doubled : $first_pause;
		$s->{due} = now() + $s->{pause};
		push @due, $s;
	} else {
		$s->{over} = 1;
		$status ||= $code;
	}
	say_it("$s->{id} ended with status $code" . ($again ? "; again in $s->{pause} s" : ''))
		if $again || @services > 1;
}

for (;;) {
	while ((my $pid = waitpid(-1, WNOHANG)) > 0) {
		my $s = delete $running{$pid} or next;
		ended($s, $?);
	}
	@waiting = @due = () if $stopping;
	start_who_may();
	last unless %running || @due || @waiting;
	rest();
}
exit $status;
