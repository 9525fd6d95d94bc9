//! What a hostile command tries. Each case prints `ESCAPED` when it got something it must not have; whether anything outside changed is
//! looked at besides, from outside.

mod cases;
mod syscalls;

use super::bench::{Bench, Network, Setting};
use super::world::Sight;
use super::{each_user, everyone};
use crate::left_out::leave_out;
use cases::{Case, DEVICES, FILES, IPC, MOUNTS, NETWORK, PROC, PROTECTED};

/// Tries the cases one after another in one program, all of them, and then says which got through.
fn check(setting: Setting, cases: &[Case]) {
    let mut bench = Bench::new(setting);
    bench.is_jailed();
    let mut before = bench.world.look();
    let mut problems = Vec::new();
    for (name, attack) in cases {
        let answer = bench.bash_for(&format!("{attack}\necho tr''ied"), 20);
        let text = &answer.text;
        if !text.contains("tried") {
            problems.push(format!("{name}: it was never made: {answer:?}"));
        }
        if text.contains("ESCAPED") {
            problems.push(format!("{name}: {text}"));
        }
        if let Some(difference) = bench.world.difference(&before) {
            problems.push(format!(
                "{name}: something changed outside: {difference}\n{text}"
            ));
            before = bench.world.look();
        }
        let hits = bench.world.hits();
        if bench.setting.network == Network::Off && hits > 0 {
            problems.push(format!("{name}: a socket of the host was reached"));
        }
        bench.lives(name);
    }
    let setting = &bench.setting;
    assert!(problems.is_empty(), "{setting:?}\n{}", problems.join("\n"));
}

#[test]
fn files() {
    everyone()
        .into_iter()
        .for_each(|setting| check(setting, FILES));
}

#[test]
fn protected_paths() {
    each_user()
        .into_iter()
        .for_each(|setting| check(setting, PROTECTED));
}

#[test]
fn proc_and_environment() {
    everyone()
        .into_iter()
        .for_each(|setting| check(setting, PROC));
}

#[test]
fn mounts_and_namespaces() {
    everyone()
        .into_iter()
        .for_each(|setting| check(setting, MOUNTS));
}

#[test]
fn devices_and_terminals() {
    each_user()
        .into_iter()
        .for_each(|setting| check(setting, DEVICES));
}

#[test]
fn ipc_and_signals() {
    everyone()
        .into_iter()
        .for_each(|setting| check(setting, IPC));
}

#[test]
fn network() {
    each_user()
        .into_iter()
        .for_each(|setting| check(setting, NETWORK));
}

#[test]
fn a_way_out_to_hosts_leads_nowhere_else() {
    let hosts = "tools.sandbox.allow_hosts=[\"example.org\"]";
    for setting in each_user() {
        check(setting.with(hosts), NETWORK);
    }
}

#[test]
fn an_open_network_is_open() {
    for setting in everyone()
        .into_iter()
        .filter(|setting| setting.network == Network::On)
    {
        let mut bench = Bench::new(setting);
        let answer = bench.bash("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
        assert!(answer.text.contains("connected"), "{answer:?}");
        assert_eq!(bench.world.hits(), 1);
    }
}

#[test]
fn system_calls() {
    if !cfg!(target_arch = "x86_64") {
        return leave_out("the numbers of the system calls are those of x86-64");
    }
    everyone()
        .into_iter()
        .for_each(|setting| check(setting, syscalls::CASES));
}

#[test]
fn who_kills_everybody_kills_himself() {
    for setting in each_user() {
        let mut bench = Bench::new(setting);
        bench.is_jailed();
        let before = bench.world.look();
        for attack in [
            "kill -9 -1",
            "perl -e 'kill 9, -1'; kill -9 1",
            "kill -STOP -1; kill -9 0",
        ] {
            bench.bash_for(attack, 5);
            assert_eq!(bench.world.difference(&before), None, "{attack}");
            bench.lives(attack);
        }
    }
}

/// A name in the workspace of a file outside it, made before by another user: no wall of the kernel sees the other name. What cannot be
/// stopped has to be told.
#[test]
fn a_hard_link_made_before_is_refused_or_told() {
    for setting in each_user() {
        let mut bench = Bench::new(setting);
        bench.is_jailed();
        bench.outside_jail("ln {out}/deep/er/canary {work}/linked");
        let before = bench.world.look();
        let answer = bench.bash("echo changed >> linked; echo tr''ied");
        assert!(answer.text.contains("tried"), "{answer:?}");
        let is_untouched = bench.world.look() == before;
        let is_told = answer.whole.to_string().contains("hard link");
        assert!(
            is_untouched || is_told,
            "it was neither stopped nor told: {answer:?}"
        );
    }
}

/// What a command leaves in its home is not found by the next one, which may work in another place with other rights.
#[test]
fn a_home_is_another_one_each_time() {
    let places = "~/.bashrc ~/.profile ~/.gitconfig ~/.config/git/config ~/.npmrc ~/.config/pip/pip.conf ~/.pip/pip.conf ~/.pydistutils.cfg \
        ~/.local/bin/git ~/.cargo/config.toml ~/.cargo/bin/evil ~/.ssh/config $CARGO_HOME/config.toml $CARGO_HOME/bin/evil \
        $XDG_CONFIG_HOME/git/config $PYTHONUSERBASE/lib/evil.py ~/.local/lib/python3.11/site-packages/evil.pth ~/.node_modules/evil.js";
    for setting in each_user() {
        let mut bench = Bench::new(setting);
        let write =
            format!("for f in {places}; do mkdir -p ${{f%/*}}; echo evil > $f; done; echo tr''ied");
        assert!(bench.bash(&write).text.contains("tried"));
        let find = format!(
            "for f in {places}; do grep -qs evil $f && echo \"ESCAPED $f\"; done; echo tr''ied"
        );
        let answer = bench.bash(&find);
        let is_clean = answer.text.contains("tried") && !answer.text.contains("ESCAPED");
        assert!(is_clean, "{:?}: {}", bench.setting, answer.text);
    }
}

/// Repositories that a command makes are its own to begin with, and act on those who use them later. What stays has to be told.
#[test]
fn what_later_programs_act_on_is_refused_or_told() {
    let cases = [
        (
            "git init -q .; echo evil > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
            ".git/hooks/post-commit",
        ),
        (
            "git init -q .; git config core.fsmonitor 'touch {out}/new'",
            ".git/config",
        ),
        (
            "git init -q repo/deeper; echo evil > repo/deeper/.git/hooks/pre-commit",
            "repo/deeper/.git/hooks/pre-commit",
        ),
        (
            "git init -q evil; git -C evil config core.fsmonitor 'touch {out}/new'; echo 'gitdir: evil/.git' > .git",
            "evil/.git/config",
        ),
    ];
    for setting in each_user() {
        for (attack, path) in &cases {
            let mut bench = Bench::new(setting.clone());
            let path = bench.product.work.join(path);
            let answer = bench.bash(&format!("{attack}; echo tr''ied"));
            assert!(answer.text.contains("tried"), "{answer:?}");
            let is_told = answer.text.contains(".git");
            assert!(
                !path.exists() || is_told,
                "{attack}: it was neither stopped nor told: {answer:?}"
            );
        }
    }
}

/// While the workspace changes under it, a command reaches nothing else.
#[test]
fn links_swapped_while_they_are_followed() {
    let race = r#"
mkdir -p a/deep; ln -sfn {out} b
python3 - <<'EOF'
import os, threading, ctypes, time
libc = ctypes.CDLL(None, use_errno=True)
stop = False
def swap():
    while not stop:
        libc.renameat2(-100, b"a", -100, b"b", 2)
threading.Thread(target=swap).start()
end = time.time() + 3
while time.time() < end:
    for name in ("a/deep/canary", "b/deep/canary"):
        try:
            with open(name) as f:
                if f.read() != "mine": print("ESCAPED read")
        except OSError: pass
        try:
            with open(name, "w") as f: f.write("mine")
        except OSError: pass
stop = True
EOF"#;
    each_user()
        .into_iter()
        .for_each(|setting| check(setting, &[("a race of links", race)]));
}

/// The project's own file names directories, a command leads them out of the workspace, and the next commands look: of this program, and of
/// one that is started afterwards, unless that one refuses the file.
#[test]
fn a_directory_that_the_projects_file_names_is_led_outside() {
    let keys = [
        ("allow_read", "\".\", "),
        ("allow_write", "\".\", "),
        ("hide", ""),
        ("protect", ""),
    ];
    let each = |setting: Setting| keys.map(|key| (setting.clone(), key));
    for (setting, (key, first)) in each_user().into_iter().flat_map(each) {
        let mut bench = Bench::new(setting);
        bench.outside_jail(&format!(
            "mkdir -p .zeph led/below; echo '[tools.sandbox]\n{key} = [{first}\"led\", \"led/below\"]' > .zeph/config.toml"
        ));
        bench.is_jailed();
        let before = bench.world.look();
        bench.bash("mv led away; rm -rf led; ln -s {out} led; ln -sfn {out} away/below");
        nothing_is_reached(&mut bench, &before, key);
        bench.end();
        // What may be reached is not taken from such a file any more; what may not be still is.
        match first.is_empty() {
            true => nothing_is_reached(&mut bench, &before, key),
            false => {
                let started = bench.product.run(&["call", "bash", "command=true"]);
                assert_eq!(started.code, Some(3), "{key}: {}", started.stderr);
            }
        }
    }
}

#[track_caller]
fn nothing_is_reached(bench: &mut Bench, before: &Sight, key: &str) {
    for place in ["led", "away/below", "led/below", "{out}"] {
        let answer = bench.bash(&format!(
            "cat {place}/canary && echo ESC''APED; echo x > {place}/new && test -e {{out}}/new && echo ESC''APED; echo tr''ied"
        ));
        let text = &answer.text;
        let is_held = text.contains("tried") && !text.contains("ESCAPED");
        assert!(is_held, "{key}, {place}: {answer:?}");
        assert_eq!(bench.world.difference(before), None, "{key}, {place}");
    }
}
