//! Which calls are refused, and why.

use seccompiler::{SeccompCondition, SeccompRule};

use super::condition::{all, equal, masked, none_of, one_of, with_bit};
use super::{Family, Reachable, Sockets, SyscallRules};

/// Calls that are answered "not there".
pub(super) fn absent(around: Reachable) -> SyscallRules {
    let shared = match around {
        Reachable::Nobody => &[],
        Reachable::Host => IPC,
    };
    whatever_the_arguments(ABSENT.iter().chain(shared))
}

/// Calls that are not permitted, always or with some arguments.
pub(super) fn forbidden(sockets: Sockets, around: Reachable) -> SyscallRules {
    let mut calls = whatever_the_arguments(FORBIDDEN.iter().chain(OF_THE_ARCHITECTURE));
    calls.extend(special_files());
    calls.extend([
        (libc::SYS_clone, namespaces()),
        (libc::SYS_ioctl, terminals()),
        (libc::SYS_personality, personalities()),
        (libc::SYS_socket, families(sockets)),
        (libc::SYS_socketpair, pairs()),
    ]);
    if around == Reachable::Host {
        calls.extend(other_processes());
    }
    calls
}

fn whatever_the_arguments<'a>(numbers: impl Iterator<Item = &'a i64>) -> SyscallRules {
    numbers.map(|number| (*number, Vec::new())).collect()
}

/// The personalities of ordinary programs pass; others switch off protections. The last only asks.
fn personalities() -> Vec<SeccompRule> {
    let ordinary = [0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];
    vec![all(none_of(0, ordinary))]
}

/// What namespaces would keep apart: what may be done to a process whose number is known.
fn other_processes() -> impl Iterator<Item = (i64, Vec<SeccompRule>)> {
    const EVERYBODY: u32 = u32::MAX;
    let signal = (libc::SYS_kill, vec![all([equal(0, EVERYBODY)])]);
    // Zero is the caller.
    let of_another = |(number, process)| (number, vec![all(none_of(process, [0]))]);
    [
        (libc::SYS_prlimit64, 0),
        (libc::SYS_setpriority, 1),
        (libc::SYS_ioprio_set, 1),
        (libc::SYS_sched_setscheduler, 0),
        (libc::SYS_sched_setparam, 0),
        (libc::SYS_sched_setattr, 0),
    ]
    .into_iter()
    .map(of_another)
    .chain([signal])
}

/// Shared memory, semaphores and queues of System V, and queues of POSIX.
pub(super) const IPC: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_notify,
    libc::SYS_mq_getsetattr,
];

/// A new namespace would give capabilities back, within it, and with them the kernel's surface for those who have them.
fn namespaces() -> Vec<SeccompRule> {
    const NEW_NAMESPACES: i32 = libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET;
    let rules = with_bit(0, NEW_NAMESPACES.cast_unsigned()).map(|bit| all([bit]));
    rules.collect()
}

/// Putting words into the input of a terminal, taking over the console, and line disciplines: drivers that the kernel loads for
/// every process that has a terminal, and every command can make one.
fn terminals() -> Vec<SeccompRule> {
    const TIOCSTI: u32 = 0x5412;
    const TIOCLINUX: u32 = 0x541c;
    const TIOCCONS: u32 = 0x541d;
    const TIOCSETD: u32 = 0x5423;
    one_of(1, [TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD]).collect()
}

/// Files that act for their owner (set-user-ID, set-group-ID) would carry the host's identity, root's perhaps, out of the
/// jail. Devices need a capability, but for the harmless kinds.
fn special_files() -> Vec<(i64, Vec<SeccompRule>)> {
    let everywhere = [
        (libc::SYS_fchmod, mode(1)),
        (libc::SYS_fchmodat, mode(2)),
        (FCHMODAT2, mode(2)),
        (libc::SYS_openat, open(2)),
        (libc::SYS_mknodat, node(2)),
    ];
    everywhere
        .into_iter()
        .chain(special_files_of_old())
        .collect()
}

/// The calls of that kind which newer architectures never had.
#[cfg(target_arch = "x86_64")]
fn special_files_of_old() -> Vec<(i64, Vec<SeccompRule>)> {
    vec![
        (libc::SYS_chmod, mode(1)),
        (libc::SYS_creat, mode(1)),
        (libc::SYS_open, open(1)),
        (libc::SYS_mknod, node(1)),
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn special_files_of_old() -> Vec<(i64, Vec<SeccompRule>)> {
    Vec::new()
}

const ACTS_FOR_OWNER: u32 = libc::S_ISUID | libc::S_ISGID;

/// The mode at `argument` makes the file act for its owner.
fn mode(argument: u8) -> Vec<SeccompRule> {
    with_bit(argument, ACTS_FOR_OWNER)
        .map(|bit| all([bit]))
        .collect()
}

/// The flags at `flags` make a file, and the mode after them makes it act for its owner. Without making a file the mode is
/// whatever stood in the register.
fn open(flags: u8) -> Vec<SeccompRule> {
    const MAKES: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)).cast_unsigned();
    let with = |makes: SeccompCondition| {
        with_bit(flags + 1, ACTS_FOR_OWNER).map(move |acts| all([makes.clone(), acts]))
    };
    with_bit(flags, MAKES).flat_map(with).collect()
}

/// The mode at `argument` is that of a file which acts for its owner, or of neither a plain file nor a FIFO.
fn node(argument: u8) -> Vec<SeccompRule> {
    let harmless = [0, libc::S_IFREG, libc::S_IFIFO];
    let kinds = (0..=libc::S_IFMT).step_by(0o10_000);
    let refused = kinds.filter(|kind| !harmless.contains(kind));
    let of_a_kind = refused.map(|kind| all([masked(argument, libc::S_IFMT, kind)]));
    mode(argument).into_iter().chain(of_a_kind).collect()
}

/// Sockets of the families that lead somewhere known pass. Netlink only asks about the network the command is in.
fn families(sockets: Sockets) -> Vec<SeccompRule> {
    const NETLINK: u32 = libc::AF_NETLINK.cast_unsigned();
    let mut known = vec![NETLINK];
    if sockets.unix == Family::Allowed {
        known.push(libc::AF_UNIX.cast_unsigned());
    }
    if sockets.internet == Family::Allowed {
        known.extend([libc::AF_INET, libc::AF_INET6].map(i32::cast_unsigned));
    }
    let not_routes = none_of(2, [0]);
    vec![
        all(none_of(0, known)),
        all(not_routes.chain([equal(0, NETLINK)])),
    ]
}

/// Pairs of any family but that of named sockets.
fn pairs() -> Vec<SeccompRule> {
    vec![all(none_of(0, [libc::AF_UNIX.cast_unsigned()]))]
}

/// Calls that libraries try first and do without: refusing them as "not there" makes programs take the old way, whose
/// arguments the filter can see.
pub(super) const ABSENT: &[i64] = &[
    // Its flags stand in memory, where no filter sees them.
    libc::SYS_clone3,
    // The mode of a new file stands in memory; see `special_files`.
    libc::SYS_openat2,
    // Mounting by descriptors.
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    STATMOUNT,
    LISTMOUNT,
];

const FCHMODAT2: i64 = 452;
const STATMOUNT: i64 = 457;
const LISTMOUNT: i64 = 458;
const SET_MEMPOLICY_HOME_NODE: i64 = 450;

/// Calls that a command has no business making. They act on the machine, on other processes, on what outlives the run, or
/// are a large surface of the kernel.
pub(super) const FORBIDDEN: &[i64] = &[
    // The machine.
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    // The key rings, which belong to the user and not to the namespace.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_mbind,
    libc::SYS_get_mempolicy,
    libc::SYS_set_mempolicy,
    SET_MEMPOLICY_HOME_NODE,
    // Files by number, past every path.
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    // Large surfaces. io_uring also makes calls that no filter sees.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
];

#[cfg(target_arch = "x86_64")]
pub(super) const OF_THE_ARCHITECTURE: &[i64] = &[
    libc::SYS_uselib,
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_ustat,
    libc::SYS_sysfs,
];

#[cfg(target_arch = "aarch64")]
pub(super) const OF_THE_ARCHITECTURE: &[i64] = &[];
