//! Calls to the kernel that no ordinary program makes, and doors beside the usual one. Numbers are those of x86-64.

use super::cases::Case;

pub(super) const CASES: &[Case] = &[
    ("calls that nothing here needs", CALLS),
    ("calls of 32-bit programs", LEGACY_DOOR),
    (
        "numbers with the bit of x32",
        "perl -e 'my $pid = syscall(0x40000000 + 39); print \"ESCAPED\" if $pid > 0'",
    ),
    ("watching and changing another process", TRACE),
    (
        "page faults answered by the program",
        "perl -e 'print \"ESCAPED\" if syscall(323, 1) >= 0'",
    ),
];

/// Each must be refused as a call, not for its arguments: those would differ in a real attack.
const CALLS: &str = r#"
cat > calls.txt <<'E'
101 ptrace
134 uselib
153 vhangup
155 pivot_root
161 chroot
163 acct
164 settimeofday
165 mount
166 umount2
167 swapon
168 swapoff
169 reboot
170 sethostname
171 setdomainname
172 iopl
173 ioperm
175 init_module
176 delete_module
179 quotactl
227 clock_settime
246 kexec_load
248 add_key
249 request_key
250 keyctl
272 unshare
298 perf_event_open
303 name_to_handle_at
304 open_by_handle_at
305 clock_adjtime
308 setns
310 process_vm_readv
311 process_vm_writev
312 kcmp
313 finit_module
320 kexec_file_load
321 bpf
323 userfaultfd
425 io_uring_setup
426 io_uring_enter
427 io_uring_register
428 open_tree
429 move_mount
430 fsopen
431 fsconfig
432 fsmount
433 fspick
438 pidfd_getfd
442 mount_setattr
E
perl -e '
use Errno;
while (<STDIN>) {
    my ($number, $name) = split;
    $! = 0;
    # 272 and 308 take flags: those of a user namespace.
    my $flags = $number == 272 ? 0x10000000 : 0;
    my $done = syscall($number, $flags, 0, 0, 0, 0);
    my $refused = $!{EPERM} || $!{ENOSYS} || $!{EACCES};
    print "ESCAPED $name: $done, $!\n" if $done != -1 || !$refused;
}' < calls.txt
rm -f calls.txt
perl -e 'my $pid = syscall(56, 0x10000000 | 17, 0, 0, 0, 0); if ($pid == 0) { exit } print "ESCAPED clone\n" if $pid > 0'
perl -e 'my $p = syscall(435, pack("Q11", 0x10000000, 0,0,0,17,0,0,0,0,0,0), 88); exit if $p == 0; print "ESCAPED clone3\n" if $p > 0'
"#;

/// `int 0x80` takes numbers of another table, which a filter that looks at numbers alone lets through.
const LEGACY_DOOR: &str = r#"
cat > door.c <<'E'
#include <stdio.h>
int main(void) {
    long pid;
    __asm__ volatile("int $0x80" : "=a"(pid) : "a"(20L) : "memory");
    if (pid > 0) printf("ESCAPED %ld\n", pid);
    return 0;
}
E
cc -o door door.c && ./door
rm -f door door.c
"#;

const TRACE: &str = r#"
sleep 5 & target=$!
perl -e '
my $pid = shift;
for my $request (16, 0x4206) { print "ESCAPED ptrace\n" if syscall(101, $request, $pid, 0, 0) == 0 }
my $fd = syscall(434, $pid, 0);
print "ESCAPED pidfd_getfd\n" if $fd >= 0 && syscall(438, $fd, 0, 0) >= 0;
' $target
kill $target
"#;
