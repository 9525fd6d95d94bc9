//! The filter is run here by a small machine of the same instructions, so that every answer can be asked for without making
//! the call. That the kernel runs it the same way is seen by the tests of the jail.

use super::*;

const ALLOW: u32 = 0x7fff_0000;
const EPERM: u32 = 0x0005_0000 | libc::EPERM as u32;
const ENOSYS: u32 = 0x0005_0000 | libc::ENOSYS as u32;
const KILL: u32 = 0x8000_0000;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

fn word(bytes: &[u8]) -> u32 {
    u32::from_ne_bytes(bytes.try_into().unwrap())
}

fn answer(filter: &[u8], architecture: u32, number: u32, arguments: [u64; 6]) -> u32 {
    let mut data = [number.to_ne_bytes(), architecture.to_ne_bytes()].concat();
    data.extend([0; 8]);
    data.extend(arguments.iter().flat_map(|argument| argument.to_ne_bytes()));
    let (mut at, mut held) = (0, 0);
    loop {
        let one = &filter[at * 8..at * 8 + 8];
        let (code, k) = (u16::from_ne_bytes([one[0], one[1]]), word(&one[4..]));
        at += 1;
        let jump = |condition: bool| usize::from(if condition { one[2] } else { one[3] });
        match code {
            0x20 => held = word(&data[k as usize..k as usize + 4]),
            0x54 => held &= k,
            0x05 => at += k as usize,
            0x15 => at += jump(held == k),
            0x35 => at += jump(held >= k),
            0x45 => at += jump(held & k != 0),
            0x06 => return k,
            other => panic!("unknown instruction {other:#x}"),
        }
    }
}

fn check(sockets: Sockets, number: i64, arguments: &[u64], expect: u32) {
    check_in(Reachable::Nobody, sockets, number, arguments, expect);
}

fn check_in(around: Reachable, sockets: Sockets, number: i64, arguments: &[u64], expect: u32) {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let answer = answer(
        &build(sockets, around),
        ARCHITECTURE,
        u32::try_from(number).unwrap(),
        all,
    );
    assert_eq!(
        answer, expect,
        "call {number} with {arguments:?}: {answer:#x} instead of {expect:#x}"
    );
}

const OPEN: Sockets = Sockets {
    internet: Family::Allowed,
    unix: Family::Allowed,
};
const SHUT: Sockets = Sockets {
    internet: Family::Refused,
    unix: Family::Refused,
};

#[test]
fn ordinary_calls_pass() {
    for number in [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_execve,
        libc::SYS_mmap,
        libc::SYS_futex,
        libc::SYS_kill,
        libc::SYS_prlimit64,
        libc::SYS_connect,
        libc::SYS_renameat2,
        libc::SYS_rseq,
        libc::SYS_memfd_create,
        libc::SYS_pidfd_open,
    ] {
        check(SHUT, number, &[u64::MAX; 6], ALLOW);
    }
}

#[test]
fn foreign_architectures_die_and_unknown_numbers_are_not_there() {
    let filter = build(OPEN, Reachable::Nobody);
    assert_eq!(answer(&filter, 0x4000_0003, 1, [0; 6]), KILL);
    assert_eq!(answer(&filter, 0, 1, [0; 6]), KILL);
    for number in [467, 1000, 0x4000_0000, 0x4000_0000 + 56, u32::MAX] {
        assert_eq!(answer(&filter, ARCHITECTURE, number, [0; 6]), ENOSYS);
    }
}

#[test]
fn the_kernel_comes_to_an_answer_of_each_number_soon() {
    let filter = build(OPEN, Reachable::Nobody);
    let (instructions, _) = filter.as_chunks::<8>();
    let ends = |at: usize| instructions[at][0] == 0x06;
    let mut n_steps_max = 0;
    for number in 0..=NEWEST + 1 {
        let mut at = 4;
        let mut n_steps = 0;
        // A search is made of nothing but comparisons with the number.
        while instructions[at][0] == 0x35 {
            let k = word(&instructions[at][4..]);
            at += 1 + usize::from(instructions[at][if number >= k { 2 } else { 3 }]);
            n_steps += 1;
        }
        assert!(ends(at) || instructions[at][0] == 0x05, "call {number}");
        n_steps_max = n_steps_max.max(n_steps);
    }
    assert!(n_steps_max <= 10, "{n_steps_max} comparisons");
}

#[test]
fn dangerous_calls_are_refused() {
    for number in table::FORBIDDEN.iter().chain(table::OF_THE_ARCHITECTURE) {
        check(OPEN, *number, &[], EPERM);
    }
    for number in table::ABSENT {
        check(OPEN, *number, &[], ENOSYS);
    }
}

#[test]
fn arguments_decide() {
    let high = 1 << 32;
    for (number, arguments, expect) in [
        // A thread, a child, and every kind of new namespace.
        (libc::SYS_clone, vec![0x3d_0f00], ALLOW),
        (libc::SYS_clone, vec![0x120_0011], ALLOW),
        (libc::SYS_clone, vec![0x1000_0011], EPERM),
        (libc::SYS_clone, vec![0x2_0000], EPERM),
        (libc::SYS_clone, vec![0x0200_0000 | high], EPERM),
        (libc::SYS_clone, vec![0x4000_0000], EPERM),
        (libc::SYS_ioctl, vec![0, 0x5401], ALLOW),
        (libc::SYS_ioctl, vec![0, 0x5412], EPERM),
        (libc::SYS_ioctl, vec![0, 0x5412 | high], EPERM),
        (libc::SYS_ioctl, vec![0, 0x541c | (high << 3)], EPERM),
        (libc::SYS_ioctl, vec![0, 0x5423], EPERM),
        (libc::SYS_personality, vec![0xffff_ffff], ALLOW),
        (libc::SYS_personality, vec![0x40_0000], EPERM),
        (libc::SYS_fchmodat, vec![0, 0, 0o755], ALLOW),
        (libc::SYS_fchmodat, vec![0, 0, 0o4755], EPERM),
        (libc::SYS_fchmodat, vec![0, 0, 0o2755], EPERM),
        (libc::SYS_fchmodat, vec![0, 0, 0o1777], ALLOW),
        (libc::SYS_fchmod, vec![0, 0o6755], EPERM),
        (452, vec![0, 0, 0o4755, 0], EPERM),
        (libc::SYS_openat, vec![0, 0, 0o2, 0o4755], ALLOW),
        (libc::SYS_openat, vec![0, 0, 0o102, 0o644], ALLOW),
        (libc::SYS_openat, vec![0, 0, 0o102, 0o4755], EPERM),
        (libc::SYS_openat, vec![0, 0, 0o20_200_002, 0o4755], EPERM),
        (libc::SYS_openat, vec![0, 0, 0o200_000, 0o4755], ALLOW),
        (libc::SYS_mknodat, vec![0, 0, 0o10_644], ALLOW),
        (libc::SYS_mknodat, vec![0, 0, 0o100_644], ALLOW),
        (libc::SYS_mknodat, vec![0, 0, 0o104_644], EPERM),
        (libc::SYS_mknodat, vec![0, 0, 0o20_644], EPERM),
        (libc::SYS_mknodat, vec![0, 0, 0o60_644], EPERM),
    ] {
        check(OPEN, number, &arguments, expect);
    }
}

#[test]
fn sockets_are_of_known_families() {
    for family in 0..64 {
        let expect = match family {
            1 | 2 | 10 | 16 => ALLOW,
            _ => EPERM,
        };
        check(OPEN, libc::SYS_socket, &[family, 1, 0], expect);
        let expect = if family == 16 { ALLOW } else { EPERM };
        check(SHUT, libc::SYS_socket, &[family, 1, 0], expect);
        let expect = if family == 1 { ALLOW } else { EPERM };
        check(SHUT, libc::SYS_socketpair, &[family, 1, 0], expect);
    }
    check(OPEN, libc::SYS_socket, &[16, 3, 9], EPERM);
    check(OPEN, libc::SYS_socket, &[40 | (1 << 32), 1, 0], EPERM);
}

#[test]
fn what_the_host_shares_is_not_there_without_namespaces() {
    for number in table::IPC {
        check_in(Reachable::Host, OPEN, *number, &[1, 1, 1], ENOSYS);
        check(OPEN, *number, &[1, 1, 1], ALLOW);
    }
}

#[test]
fn a_command_acts_on_itself_only_without_namespaces() {
    let other = 4711;
    for (number, mine, others) in [
        (libc::SYS_prlimit64, vec![0, 7], vec![other, 7]),
        (libc::SYS_setpriority, vec![0, 0, 5], vec![0, other, 5]),
        (libc::SYS_ioprio_set, vec![1, 0, 5], vec![1, other, 5]),
        (libc::SYS_sched_setattr, vec![0], vec![other]),
        (libc::SYS_kill, vec![other, 9], vec![u64::MAX, 9]),
    ] {
        check_in(Reachable::Host, OPEN, number, &mine, ALLOW);
        check_in(Reachable::Host, OPEN, number, &others, EPERM);
        check(OPEN, number, &others, ALLOW);
    }
}

#[test]
fn calls_that_take_paths_are_told_and_all_others_pass() {
    let watching = watching();
    let told = |architecture, number| answer(&watching, architecture, number, [0; 6]);
    for number in 0..=NEWEST {
        let expect = match watch::call(number.into()) {
            Some(_) => libc::SECCOMP_RET_USER_NOTIF,
            None => ALLOW,
        };
        assert_eq!(told(ARCHITECTURE, number), expect, "call {number}");
        assert_eq!(told(ARCHITECTURE + 1, number), ALLOW, "call {number}");
    }
    // One that is refused is not told.
    assert!(watch::calls().all(|call| !table::ABSENT.contains(&call.number)));
}
