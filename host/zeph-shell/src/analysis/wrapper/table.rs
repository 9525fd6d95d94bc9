//! The plain wrappers: options, operands, then the command.

use zeph_core::command::Wraps;

use super::super::value::Value;
use super::options::ProgramOptions;
use super::{Look, UNREADABLE, WrappedCommand};

struct Wrapper {
    names: &'static [&'static str],
    wraps: Wraps,
    options: ProgramOptions,
    /// Options with which it runs nothing.
    inert: &'static [&'static str],
    /// Words between the options and the command.
    operands: usize,
    /// Whether `NAME=value` may stand before the command.
    takes_assignments: bool,
    /// Whether it starts a shell when no command is given.
    starts_shell: bool,
    /// Options that name a file it writes to: with one it needs a rule of its own.
    writes: &'static [&'static str],
}

const NO_OPTIONS: ProgramOptions = ProgramOptions {
    flags: "",
    valued: "",
    long_flags: &["help", "version"],
    long_valued: &[],
};

const PLAIN: Wrapper = Wrapper {
    names: &[],
    wraps: Wraps::Transparently,
    options: NO_OPTIONS,
    inert: &["help", "version"],
    operands: 0,
    takes_assignments: false,
    starts_shell: false,
    writes: &[],
};

const WITH_EFFECT: Wrapper = Wrapper {
    wraps: Wraps::WithEffect,
    ..PLAIN
};

/// Sources: the manual pages of coreutils 9, util-linux 2.40, sudo 1.9, strace 6, busybox 1.36.
const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        names: &["command"],
        options: ProgramOptions {
            flags: "pvV",
            ..NO_OPTIONS
        },
        inert: &["v", "V", "help"],
        ..PLAIN
    },
    Wrapper {
        names: &["builtin", "nohup"],
        ..PLAIN
    },
    Wrapper {
        names: &["exec"],
        options: ProgramOptions {
            flags: "cl",
            valued: "a",
            ..NO_OPTIONS
        },
        ..PLAIN
    },
    Wrapper {
        names: &["nice"],
        options: ProgramOptions {
            flags: "0123456789",
            valued: "n",
            long_valued: &["adjustment"],
            ..NO_OPTIONS
        },
        ..PLAIN
    },
    Wrapper {
        names: &["ionice"],
        options: ProgramOptions {
            flags: "t",
            valued: "cnpPu",
            long_flags: &["ignore", "help", "version"],
            long_valued: &["class", "classdata", "pid", "pgid", "uid"],
        },
        inert: &["p", "P", "u", "pid", "pgid", "uid", "help", "version"],
        ..PLAIN
    },
    Wrapper {
        names: &["time", "gtime"],
        options: ProgramOptions {
            flags: "pvaqlhV",
            valued: "fo",
            long_flags: &[
                "portability",
                "verbose",
                "append",
                "quiet",
                "help",
                "version",
            ],
            long_valued: &["format", "output"],
        },
        writes: &["o", "output"],
        ..PLAIN
    },
    Wrapper {
        names: &["timeout", "gtimeout"],
        options: ProgramOptions {
            flags: "fpv",
            valued: "ks",
            long_flags: &[
                "foreground",
                "preserve-status",
                "verbose",
                "help",
                "version",
            ],
            long_valued: &["kill-after", "signal"],
        },
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["stdbuf"],
        options: ProgramOptions {
            valued: "ioe",
            long_valued: &["input", "output", "error"],
            ..NO_OPTIONS
        },
        ..PLAIN
    },
    Wrapper {
        names: &["setsid"],
        options: ProgramOptions {
            flags: "cfwhV",
            long_flags: &["ctty", "fork", "wait", "help", "version"],
            ..NO_OPTIONS
        },
        ..PLAIN
    },
    Wrapper {
        names: &["chrt"],
        options: ProgramOptions {
            flags: "abdfiorRmv",
            valued: "TPD",
            long_flags: &[
                "all-tasks",
                "batch",
                "deadline",
                "fifo",
                "idle",
                "other",
                "rr",
                "reset-on-fork",
                "max",
                "verbose",
                "help",
                "version",
            ],
            long_valued: &["sched-runtime", "sched-period", "sched-deadline"],
        },
        inert: &["m", "max", "help", "version"],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["taskset"],
        options: ProgramOptions {
            flags: "ac",
            long_flags: &["all-tasks", "cpu-list", "help", "version"],
            ..NO_OPTIONS
        },
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["ccache", "sccache", "distcc", "icecc"],
        options: ProgramOptions {
            flags: "cCsVhz",
            long_flags: &[
                "clear",
                "cleanup",
                "show-stats",
                "version",
                "help",
                "zero-stats",
                "start-server",
                "stop-server",
            ],
            ..NO_OPTIONS
        },
        inert: &[
            "c",
            "C",
            "s",
            "V",
            "h",
            "z",
            "clear",
            "cleanup",
            "show-stats",
            "version",
            "help",
            "zero-stats",
            "start-server",
            "stop-server",
        ],
        ..PLAIN
    },
    Wrapper {
        names: &["busybox", "toybox", "coreutils"],
        inert: &["help", "version", "list", "install"],
        ..PLAIN
    },
    Wrapper {
        names: &["sudo"],
        options: ProgramOptions {
            flags: "ABbEeHiKklNnPSsVv",
            valued: "CcDghpRrTtUua",
            long_flags: &[
                "askpass",
                "background",
                "bell",
                "edit",
                "set-home",
                "login",
                "remove-timestamp",
                "reset-timestamp",
                "list",
                "no-update",
                "non-interactive",
                "preserve-env",
                "preserve-groups",
                "stdin",
                "shell",
                "version",
                "validate",
                "help",
            ],
            long_valued: &[
                "close-from",
                "chdir",
                "group",
                "host",
                "prompt",
                "chroot",
                "role",
                "command-timeout",
                "type",
                "other-user",
                "user",
                "auth-type",
                "login-class",
            ],
        },
        inert: &["e", "edit", "l", "list", "V", "version", "help"],
        takes_assignments: true,
        ..WITH_EFFECT
    },
    Wrapper {
        names: &["doas"],
        options: ProgramOptions {
            flags: "Lns",
            valued: "aCu",
            ..NO_OPTIONS
        },
        inert: &["L", "C"],
        ..WITH_EFFECT
    },
    Wrapper {
        names: &["pkexec"],
        options: ProgramOptions {
            long_flags: &["disable-internal-agent", "keep-cwd", "help", "version"],
            long_valued: &["user"],
            ..NO_OPTIONS
        },
        starts_shell: true,
        ..WITH_EFFECT
    },
    Wrapper {
        names: &["chroot"],
        options: ProgramOptions {
            long_flags: &["skip-chdir", "help", "version"],
            long_valued: &["groups", "userspec"],
            ..NO_OPTIONS
        },
        operands: 1,
        starts_shell: true,
        ..WITH_EFFECT
    },
    Wrapper {
        names: &["unshare"],
        options: ProgramOptions {
            flags: "mniuUpCTfrcH",
            valued: "RwSGl",
            long_flags: &[
                "mount",
                "uts",
                "ipc",
                "net",
                "pid",
                "user",
                "cgroup",
                "time",
                "fork",
                "map-root-user",
                "map-current-user",
                "map-auto",
                "mount-proc",
                "kill-child",
                "keep-caps",
                "help",
                "version",
            ],
            long_valued: &[
                "map-user",
                "map-group",
                "map-users",
                "map-groups",
                "propagation",
                "setgroups",
                "root",
                "wd",
                "setuid",
                "setgid",
                "monotonic",
                "boottime",
            ],
        },
        starts_shell: true,
        ..WITH_EFFECT
    },
    Wrapper {
        names: &["nsenter"],
        options: ProgramOptions {
            flags: "amuinpUCTFZerw",
            valued: "tSG",
            long_flags: &[
                "all",
                "mount",
                "uts",
                "ipc",
                "net",
                "pid",
                "user",
                "cgroup",
                "time",
                "root",
                "wd",
                "preserve-credentials",
                "no-fork",
                "follow-context",
                "env",
                "help",
                "version",
            ],
            long_valued: &["target", "setuid", "setgid", "wdns"],
        },
        starts_shell: true,
        ..WITH_EFFECT
    },
    Wrapper {
        names: &["strace", "ltrace"],
        options: ProgramOptions {
            flags: "cCdfFhikqrtTvVwxyYzZnDA1",
            valued: "abeEIoOpPsSuUX",
            long_flags: &[
                "follow-forks",
                "summary-only",
                "summary",
                "quiet",
                "help",
                "version",
                "seccomp-bpf",
                "relative-timestamps",
                "absolute-timestamps",
                "successful-only",
                "failed-only",
            ],
            long_valued: &["output", "trace", "string-limit", "attach", "env", "user"],
        },
        ..WITH_EFFECT
    },
    Wrapper {
        names: &[
            "i386",
            "i486",
            "i586",
            "i686",
            "linux32",
            "linux64",
            "uname26",
            "x86_64",
            "fakeroot",
            "torsocks",
            "torify",
            "proxychains4",
            "catchsegv",
            "eatmydata",
            "nocache",
            "chronic",
            "bear",
            "heaptrack",
            "intercept-build",
            "scan-build",
            "trickle",
        ],
        ..WITH_EFFECT
    },
    Wrapper {
        names: &["sshpass"],
        options: ProgramOptions {
            flags: "ehvV",
            valued: "dfpP",
            ..NO_OPTIONS
        },
        ..WITH_EFFECT
    },
    Wrapper {
        names: &["ifne"],
        options: ProgramOptions {
            flags: "n",
            ..NO_OPTIONS
        },
        ..WITH_EFFECT
    },
    Wrapper {
        names: &["cross-env", "cross-env-shell", "dotenv"],
        takes_assignments: true,
        ..WITH_EFFECT
    },
    Wrapper {
        names: &["ssh-agent"],
        options: ProgramOptions {
            flags: "cDdks",
            valued: "aEOPt",
            ..NO_OPTIONS
        },
        inert: &["k"],
        ..WITH_EFFECT
    },
];

/// Programs that run a command among options that no table here knows.
const UNREADABLE_NAMES: &[&str] = &[
    "run0",
    "sg",
    "autossh",
    "flatpak-spawn",
    "sotruss",
    "gosu",
    "su-exec",
    "tini",
    "dumb-init",
    "entr",
    "tmux",
    "abduco",
    "dtach",
    "zellij",
    "screen",
    "hyperfine",
    "faketime",
    "aa-exec",
    "runcon",
    "bwrap",
    "firejail",
    "setarch",
    "systemd-run",
    "setpriv",
    "proot",
    "proxychains",
    "start-stop-daemon",
    "prlimit",
    "numactl",
    "xvfb-run",
    "dbus-run-session",
    "capsh",
    "cgexec",
    "daemonize",
    "rlwrap",
    "unbuffer",
    "expect",
    "gdb",
    "lldb",
    "valgrind",
    "perf",
    "at",
    "batch",
    "run-parts",
    "socat",
    "ld.so",
    "chpst",
    "setuidgid",
    "envuidgid",
    "envdir",
    "softlimit",
    "setlock",
    "cpulimit",
    "choom",
    "uclampset",
    "coresched",
    "dbus-launch",
    "openvt",
    "sem",
    "watchexec",
    "lckdo",
    "minijail0",
    "mispipe",
    "newgrp",
    "nsjail",
    "rootlesskit",
    "pee",
    "rr",
    "timelimit",
    "systemd-inhibit",
    "caffeinate",
    "crontab",
    "xterm",
    "gnome-terminal",
    "konsole",
    "alacritty",
    "kitty",
    "foot",
    "wezterm",
    "urxvt",
];

pub(super) fn look(name: &str, arguments: &[Value]) -> Option<Look> {
    // The dynamic linker runs any program named to it.
    let is_linker = ["ld-linux", "ld-musl", "ld64.so", "ld.so."]
        .iter()
        .any(|linker| name.starts_with(linker))
        || name.starts_with("ld-") && name.ends_with(".so");
    if is_linker || UNREADABLE_NAMES.contains(&name) {
        return is_plain_question(arguments)
            .then(Look::nothing)
            .or_else(|| {
                Some(Look {
                    inner: guesses(arguments),
                    ..Look::unknown(Wraps::WithEffect, UNREADABLE)
                })
            });
    }
    let wrapper = WRAPPERS
        .iter()
        .find(|wrapper| wrapper.names.contains(&name))?;
    Some(through(wrapper, arguments))
}

fn through(wrapper: &Wrapper, arguments: &[Value]) -> Look {
    let Some(read) = wrapper.options.read(arguments) else {
        return Look {
            inner: guesses(arguments),
            ..Look::unknown(wrapper.wraps, UNREADABLE)
        };
    };
    if read.has(wrapper.inert) {
        return Look::nothing();
    }
    let rest = arguments.get(read.next..).unwrap_or_default();
    let operands = rest.iter().take(wrapper.operands);
    if operands.clone().any(|operand| !operand.is_operand()) {
        return Look {
            inner: guesses(rest),
            ..Look::unknown(wrapper.wraps, UNREADABLE)
        };
    }
    let mut command = rest.get(wrapper.operands..).unwrap_or_default();
    while wrapper.takes_assignments && command.first().is_some_and(is_assignment) {
        command = command.get(1..).unwrap_or_default();
    }
    // `sudo -i`, and `chroot` and its like without a command, start a shell, which runs what it reads.
    let starts_shell = read.has(&["i", "s", "login", "shell"]) || wrapper.starts_shell;
    let wraps = match read.has(wrapper.writes) {
        true => Wraps::WithEffect,
        false => wrapper.wraps,
    };
    match command.is_empty() && wraps == Wraps::WithEffect && starts_shell {
        true => Look::one(wraps, WrappedCommand::Input),
        false => Look::words(wraps, command),
    }
}

/// Whether `value` sets a variable for a command after it. `env` asks for a `=` only, so `=1` and `a-b=1` do too.
pub(super) fn is_assignment(value: &Value) -> bool {
    let Some((name, _)) = value.text.split_once('=') else {
        return false;
    };
    let is_fixed = || value.holes.iter().all(|hole| hole.start > name.len());
    value.is_literal || (value.is_one_word && is_fixed())
}

/// Every word that could begin the command, for rules that deny; the answer is unknown all the same.
pub(super) fn guesses(arguments: &[Value]) -> Vec<WrappedCommand> {
    const GUESSES_MAX: usize = 8;
    (0..arguments.len())
        .filter_map(|at| arguments.get(at..))
        .filter(|rest| {
            rest.first()
                .is_some_and(|first| first.is_name && !first.text.starts_with('-'))
        })
        .take(GUESSES_MAX)
        .map(|rest| WrappedCommand::Words(rest.to_vec()))
        .collect()
}

fn is_plain_question(arguments: &[Value]) -> bool {
    matches!(arguments, [only] if matches!(only.text.as_str(), "--version" | "--help" | "-h" | "-V"))
}
