//! Ordinary work goes on in the jail.

use super::super::{RunWalls, explain};
use super::harness::{Room, run};
use crate::left_out::leave_out;

#[test]
fn commands_run_where_they_should() {
    let room = Room::new();
    room.check(
        "echo hello; pwd",
        &format!("hello\n{}\n", room.work.display()),
    );
    room.check("echo x > file && cat file && rm file && ls -A", "x\n");
    room.check(
        "cd /tmp && echo y > f && cat f; echo $HOME > ~/f && cat ~/f | wc -l",
        "y\n1\n",
    );
    room.check("true & wait; echo $?; (exit 3); echo $?", "0\n3\n");
    room.check(
        "echo a > /dev/null; echo b > /dev/stderr; head -c 4 /dev/urandom | wc -c",
        "4\n",
    );
    room.check("seq 3 | sort -r | head -1; cat <(echo p)", "3\np\n");
}

#[test]
fn toolchains_work() {
    let room = Room::new();
    room.check(
        "python3 -c 'print(1+1)'; node -e 'console.log(3)'; make --version | head -1 | cut -c1-8",
        "2\n3\nGNU Make\n",
    );
    room.check(
        "printf 'all:\\n\\t@echo made > out\\n' > Makefile && make -j4 && cat out",
        "made\n",
    );
    room.check(
        "cat > p.py <<'E'\nimport multiprocessing as m\ndef f(x): return x*x\nif __name__ == '__main__':\n  \
         with m.Pool(2) as p: print(sum(p.map(f, range(10))))\n  l = m.Manager().list([1]); print(l[0])\nE\npython3 p.py",
        "285\n1\n",
    );
}

/// Halves of packages lie in `/etc` and `/var/lib`: where such a program is installed, it works.
#[test]
fn programs_find_what_their_packages_keep_outside_of_usr() {
    let room = Room::new();
    for (program, script, expect) in [
        (
            "ghc",
            "echo 'main = print (1 + 1)' > M.hs && ghc -v0 M.hs && ./M",
            "2\n",
        ),
        (
            "gem",
            "test -d \"$(gem env gemdir)\" && echo gems",
            "gems\n",
        ),
        ("R", "Rscript -e 'cat(sd(c(1, 2, 3)))'", "1"),
        (
            "pdflatex",
            "printf '%s' '\\documentclass{article}\\begin{document}x\\end{document}' > t.tex && \
             pdflatex -interaction=batchmode t.tex > /dev/null && head -c 4 t.pdf",
            "%PDF",
        ),
    ] {
        let usual = std::path::Path::new("/usr/bin").join(program);
        match usual.exists() {
            true => room.check(script, expect),
            false => leave_out(&format!("{program} is not installed in /usr/bin")),
        }
    }
}

#[test]
fn a_crate_builds_and_tests_offline() {
    let room = Room::new();
    let end = room.run(
        "mkdir -p src && printf '[package]\\nname=\"a\"\\nversion=\"0.1.0\"\\nedition=\"2021\"\\n[workspace]\\n' > Cargo.toml && \
         printf 'fn main(){println!(\"built\")}\\n#[test] fn t(){}\\n' > src/main.rs && cargo run -q && cargo test -q && echo ok",
    );
    assert_eq!(end.code, Some(0), "{end:#?}");
    assert!(
        end.stdout.starts_with("built\n") && end.stdout.ends_with("ok\n"),
        "{end:#?}"
    );
}

#[test]
fn a_local_server_answers() {
    let room = Room::new();
    room.check(
        "echo served > page; python3 - <<'E'\nimport http.server,threading,urllib.request\n\
         s=http.server.ThreadingHTTPServer(('127.0.0.1',0),http.server.SimpleHTTPRequestHandler)\n\
         threading.Thread(target=s.serve_forever,daemon=True).start()\n\
         print(urllib.request.urlopen(f'http://localhost:{s.server_port}/page').read().decode().strip())\nE",
        "served\n",
    );
}

#[test]
fn a_workspace_may_lie_in_private_places() {
    let room = Room::new();
    let in_tmp = tempfile::tempdir_in("/tmp").unwrap();
    let home = room.work.join("home");
    let in_home = home.join("project");
    std::fs::create_dir_all(&in_home).unwrap();
    std::fs::write(home.join(".netrc"), "hush").unwrap();
    for work in [in_tmp.path().canonicalize().unwrap(), in_home] {
        let mut policy = room.policy.clone();
        policy.roots = vec![work.clone()];
        policy.home = Some(home.clone());
        let end = run(
            &super::super::Jail::new(policy),
            &work,
            "echo x > f; ls -A ~ /tmp | grep -c netrc; pwd",
        );
        assert_eq!(end.stdout, format!("0\n{}\n", work.display()), "{end:#?}");
        assert_eq!(std::fs::read_to_string(work.join("f")).unwrap(), "x\n");
    }
}

#[test]
fn caches_last_where_there_is_a_place_for_them() {
    let mut room = Room::new();
    room.check("echo x > ~/.cache-file; echo c > $XDG_CACHE_HOME/f 2>/dev/null || mkdir -p $XDG_CACHE_HOME; echo ok", "ok\n");
    room.policy.cache = Some(room.outside.join("cache"));
    room.check(
        "mkdir -p $npm_config_cache && echo kept > $npm_config_cache/f",
        "",
    );
    room.check("cat $npm_config_cache/f", "kept\n");
    assert_eq!(room.host("cat ../outside/cache/npm/f"), "kept\n");
}

#[test]
fn local_packages_are_installed() {
    let room = Room::new();
    room.check(
        "mkdir -p dep app && echo '{\"name\":\"dep\",\"version\":\"1.0.0\",\"main\":\"i.js\"}' > dep/package.json && \
         echo 'module.exports=4' > dep/i.js && cd app && \
         echo '{\"name\":\"app\",\"version\":\"1.0.0\",\"dependencies\":{\"dep\":\"file:../dep\"}}' > package.json && \
         npm install --offline --no-audit --no-fund >/dev/null && node -p 'require(\"dep\")'",
        "4\n",
    );
}

/// Packages bring settings of editors, which must not keep them from being replaced.
#[test]
fn packages_that_bring_settings_are_replaced_and_removed() {
    let room = Room::new();
    room.host(
        "mkdir -p node_modules/a/.vscode node_modules/@s/b/.idea .venv/lib/p/.husky && echo x > node_modules/a/.vscode/s && \
         ln ../outside/secret node_modules/a/linked",
    );
    room.check(
        "mv node_modules/a node_modules/.a-1 && rm -rf node_modules .venv && ls -A",
        "",
    );
}

/// What cannot be moved away from a protected place in one step is explained.
#[test]
fn a_move_across_a_held_directory_is_explained() {
    let room = Room::new();
    room.host("mkdir -p lib/.vscode other && echo x > lib/f");
    let end = room.run("python3 -c 'import os; os.rename(\"lib/f\", \"other/f\")'; mv lib/f other/f && cat other/f");
    assert_eq!(end.stdout, "x\n", "{end:#?}");
    let told = explain(&end.stderr, &room.policy, &RunWalls::default());
    assert!(
        told.is_some_and(|text| text.contains("in one step")),
        "{end:#?}"
    );
}

/// Build tools link what they made, and a large project is not looked through to its end.
#[test]
fn a_build_in_a_large_project_is_not_in_the_way() {
    let room = Room::new();
    room.host(
        "mkdir -p target/debug/deps lib && echo x > target/debug/deps/app-1 && ln target/debug/deps/app-1 target/debug/app && \
         cd lib && seq 19990 | xargs touch && cd ../target/debug/deps && seq 30 | xargs touch",
    );
    let end = room.run("rm target/debug/app && echo y >> target/debug/deps/app-1 && ln target/debug/deps/app-1 target/debug/app && mv target/debug target/release && echo built");
    assert_eq!(end.stdout, "built\n", "{end:#?}");
    let told = end
        .findings
        .iter()
        .any(|one| one.text.contains("hard link"));
    assert!(!told, "{end:#?}");
}
