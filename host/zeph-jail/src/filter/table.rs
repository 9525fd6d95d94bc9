//! Which calls are refused, and why.

use super::assemble::{Otherwise, Program, Step};
use super::{Family, Sockets};

/// Calls that libraries try first and do without: refusing them as "not there" makes programs take the old way, whose
/// arguments the filter can see.
pub(super) fn absent() -> impl Iterator<Item = i64> {
    [
        // Its flags stand in memory, where no filter sees them.
        libc::SYS_clone3,
        // The mode of a new file stands in memory; see `conditional`.
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
    ]
    .into_iter()
}

/// Calls that a command has no business making. They act on the machine, on other processes, on what outlives the run, or
/// are a large surface of the kernel.
pub(super) fn forbidden() -> impl Iterator<Item = i64> {
    COMMON.iter().chain(OF_THE_ARCHITECTURE).copied()
}

/// Calls that are fine with some arguments.
pub(super) fn conditional(program: &mut Program, sockets: Sockets) {
    namespaces(program);
    terminals(program);
    special_files(program);
    families(program, sockets);
    // The personalities of ordinary programs; others switch off protections. The last only asks.
    program.judge(
        libc::SYS_personality,
        &[
            Step::Argument(0),
            Step::AllowEqual(0),
            Step::AllowEqual(0x8),
            Step::AllowEqual(0x2_0000),
            Step::AllowEqual(0x2_0008),
            Step::AllowEqual(0xffff_ffff),
        ],
        Otherwise::Refuse,
    );
}

/// What namespaces would keep apart: objects of the kernel that all processes of a user share, and what may be done to a process
/// whose number is known.
pub(super) fn shared(program: &mut Program) {
    for number in IPC {
        program.refuse(*number, libc::ENOSYS);
    }
    const EVERYBODY: u32 = u32::MAX;
    program.judge(
        libc::SYS_kill,
        &[Step::Argument(0), Step::RefuseEqual(EVERYBODY)],
        Otherwise::Allow,
    );
    // Zero is the caller.
    for (number, process) in [
        (libc::SYS_prlimit64, 0),
        (libc::SYS_setpriority, 1),
        (libc::SYS_ioprio_set, 1),
        (libc::SYS_sched_setscheduler, 0),
        (libc::SYS_sched_setparam, 0),
        (libc::SYS_sched_setattr, 0),
    ] {
        let of_itself = [Step::Argument(process), Step::AllowEqual(0)];
        program.judge(number, &of_itself, Otherwise::Refuse);
    }
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
fn namespaces(program: &mut Program) {
    const NEW_NAMESPACES: i32 = libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET;
    program.judge(
        libc::SYS_clone,
        &[
            Step::Argument(0),
            Step::RefuseWith(NEW_NAMESPACES.cast_unsigned()),
        ],
        Otherwise::Allow,
    );
}

/// Putting words into the input of a terminal, taking over the console, and line disciplines: drivers that the kernel loads for whoever
/// has a terminal, and every command can make one.
fn terminals(program: &mut Program) {
    const TIOCSTI: u32 = 0x5412;
    const TIOCLINUX: u32 = 0x541c;
    const TIOCCONS: u32 = 0x541d;
    const TIOCSETD: u32 = 0x5423;
    program.judge(
        libc::SYS_ioctl,
        &[
            Step::Argument(1),
            Step::RefuseEqual(TIOCSTI),
            Step::RefuseEqual(TIOCLINUX),
            Step::RefuseEqual(TIOCCONS),
            Step::RefuseEqual(TIOCSETD),
        ],
        Otherwise::Allow,
    );
}

/// Files that act for their owner (set-user-ID, set-group-ID) would carry the host's identity, root's perhaps, out of the
/// jail. Devices need a capability, but for the harmless kinds.
fn special_files(program: &mut Program) {
    const ACTS_FOR_OWNER: u32 = libc::S_ISUID | libc::S_ISGID;
    const MAKES: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)).cast_unsigned();
    let mode = |argument| [Step::Argument(argument), Step::RefuseWith(ACTS_FOR_OWNER)];
    let open = |flags| {
        [
            Step::Argument(flags),
            // Without making a file the mode is whatever stood in the register.
            Step::AllowWithout(MAKES),
            Step::Argument(flags + 1),
            Step::RefuseWith(ACTS_FOR_OWNER),
        ]
    };
    let node = |argument| {
        [
            Step::Argument(argument),
            Step::RefuseWith(ACTS_FOR_OWNER),
            Step::Keep(libc::S_IFMT),
            Step::AllowEqual(0),
            Step::AllowEqual(libc::S_IFREG),
            Step::AllowEqual(libc::S_IFIFO),
        ]
    };
    program.judge(libc::SYS_fchmod, &mode(1), Otherwise::Allow);
    program.judge(libc::SYS_fchmodat, &mode(2), Otherwise::Allow);
    program.judge(FCHMODAT2, &mode(2), Otherwise::Allow);
    program.judge(libc::SYS_openat, &open(2), Otherwise::Allow);
    program.judge(libc::SYS_mknodat, &node(2), Otherwise::Refuse);
    #[cfg(target_arch = "x86_64")]
    {
        program.judge(libc::SYS_chmod, &mode(1), Otherwise::Allow);
        program.judge(libc::SYS_creat, &mode(1), Otherwise::Allow);
        program.judge(libc::SYS_open, &open(1), Otherwise::Allow);
        program.judge(libc::SYS_mknod, &node(1), Otherwise::Refuse);
    }
}

/// Sockets of the families that lead somewhere known. Netlink only asks about the network the command is in.
fn families(program: &mut Program, sockets: Sockets) {
    let family = |value: i32| Step::AllowEqual(value.cast_unsigned());
    let mut steps = vec![Step::Argument(0)];
    if sockets.unix == Family::Allowed {
        steps.push(family(libc::AF_UNIX));
    }
    if sockets.internet == Family::Allowed {
        steps.extend([family(libc::AF_INET), family(libc::AF_INET6)]);
    }
    steps.extend([
        Step::RefuseUnless(libc::AF_NETLINK.cast_unsigned()),
        Step::Argument(2),
        Step::AllowEqual(0),
    ]);
    program.judge(libc::SYS_socket, &steps, Otherwise::Refuse);
    program.judge(
        libc::SYS_socketpair,
        &[Step::Argument(0), family(libc::AF_UNIX)],
        Otherwise::Refuse,
    );
}

const FCHMODAT2: i64 = 452;
const STATMOUNT: i64 = 457;
const LISTMOUNT: i64 = 458;
const SET_MEMPOLICY_HOME_NODE: i64 = 450;

const COMMON: &[i64] = &[
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
const OF_THE_ARCHITECTURE: &[i64] = &[
    libc::SYS_uselib,
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_ustat,
    libc::SYS_sysfs,
];

#[cfg(target_arch = "aarch64")]
const OF_THE_ARCHITECTURE: &[i64] = &[];
