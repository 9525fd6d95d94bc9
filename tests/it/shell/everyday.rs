//! What people do all day, in the jail: none of it may be in its way.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::bench::{Bench, Setting};
use super::each_user;

/// A name, what is run, what must be in its output. Commands run in the workspace, in a subshell each, and must end with 0.
type Case = (&'static str, &'static str, &'static str);

const GIT: &str =
    "git -c user.name=t -c user.email=t@t -c protocol.file.allow=always -c init.defaultBranch=main";

const CASES: &[Case] = &[
    (
        "plain files",
        "echo a > a; mkdir -p d/e; cp a d/e/b; mv d/e/b d/c; ln a hard; ln -s a soft; cat d/c hard soft; rm -r d a hard soft",
        "a\na\na",
    ),
    (
        "rights and times",
        "touch -d 2001-02-03 f; chmod 640 f; stat -c '%a %y' f; rm f",
        "640 2001-02-03",
    ),
    (
        "renames between directories",
        "mkdir p q; echo x > p/x; mv p/x q/y; mv q p/; cat p/q/y; rm -r p",
        "x",
    ),
    (
        "temporary files",
        "t=$(mktemp); echo x > $t; d=$(mktemp -d); echo ${TMPDIR:-/tmp}; cat $t; rm -r $t $d",
        "/tmp\nx",
    ),
    (
        "a home to write to",
        "echo x > ~/f; mkdir -p ~/.config/a ~/.cache/b ~/.local/share/c; cat ~/f; cd ~ && pwd",
        "x",
    ),
    (
        "pipes and substitutions",
        "diff <(seq 3) <(seq 3) && cat <<< here && seq 1000 | sort -rn | head -2 | tr '\\n' ,",
        "here\n1000,999,",
    ),
    (
        "devices",
        "echo x > /dev/null; head -c 4 /dev/urandom | wc -c; echo err > /dev/stderr; echo out > /dev/stdout; : < /dev/fd/0",
        "4",
    ),
    (
        "jobs",
        "sleep 0.1 & wait $!; (exit 3) || echo $?; timeout 5 true; nohup true; kill -0 $$; jobs; trap 'echo bye' EXIT",
        "3\n",
    ),
    (
        "processes",
        "ps ax | grep -c bash; cat /proc/self/comm; cat /proc/cpuinfo | wc -l; nproc; free -m | head -1; uptime; id -un",
        "cat",
    ),
    (
        "archives",
        "mkdir t; seq 100 > t/n; tar czf t.tgz t; rm -r t; tar xzf t.tgz; tail -1 t/n; gzip -t t.tgz; rm -r t t.tgz",
        "100",
    ),
    (
        "editing",
        "printf 'a\\nb\\n' > s; sed -i s/a/A/ s; perl -pi -e 's/b/B/' s; awk '{print NR $0}' s; grep -n B s; find . -maxdepth 1 -name s | xargs cat; rm s",
        "1A\n2B\n2:B",
    ),
    (
        "pipes with names and locks",
        "mkfifo p; (echo through > p &); cat p; flock l echo locked; rm p l",
        "through\nlocked",
    ),
    (
        "sockets between own processes",
        "python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"pair\"); print(b.recv(9).decode())'",
        "pair",
    ),
    (
        "a database",
        "python3 -c 'import sqlite3; c = sqlite3.connect(\"x.db\"); c.execute(\"pragma journal_mode=wal\"); c.execute(\"create table t(a)\"); c.execute(\"insert into t values (42)\"); c.commit(); print(list(c.execute(\"select a from t\")))'; rm -f x.db*",
        "[(42,)]",
    ),
    (
        "names of users and places",
        "whoami; getent passwd $(id -u); date +%Z; locale >/dev/null; python3 -c 'import getpass, pathlib; print(pathlib.Path.home())'",
        "/",
    ),
    (
        "memory shared and mapped",
        "python3 -c 'import mmap; f = open(\"m\", \"w+b\"); f.truncate(4096); m = mmap.mmap(f.fileno(), 4096); m[:2] = b\"ok\"; m.flush(); print(open(\"m\").read(2))'; rm m",
        "ok",
    ),
    (
        "commit",
        "cd repo; echo 2 >> file; {git} commit -qam second; {git} log --oneline | wc -l; git status --short --untracked-files=no | wc -l",
        "3\n0",
    ),
    (
        "branches",
        "cd repo; {git} checkout -q -b topic; echo t > t; {git} add t; {git} commit -qm topic; {git} checkout -q main; {git} merge -q --no-ff -m m topic; {git} branch -d topic; {git} tag v1; git describe --tags",
        "v1",
    ),
    (
        "stash, rebase, clean",
        "cd repo; echo s >> file; {git} stash -q; {git} stash pop -q; git diff --stat | tail -1; {git} checkout -q file; {git} checkout -q -b r HEAD~1; echo r > r; {git} add r; {git} commit -qm r; {git} rebase -q main; {git} checkout -q main; {git} reset -q --hard; git clean -fdqn; {git} gc -q; echo done",
        "1 file changed",
    ),
    (
        "a submodule",
        "cd repo/sub; echo more >> l; {git} commit -qam more; cd ..; {git} add sub; {git} commit -qm 'move sub'; git submodule status",
        "sub",
    ),
    (
        "a nested repository",
        "cd repo/inner; echo more >> f; {git} commit -qam more; git log --oneline | wc -l",
        "2",
    ),
    (
        "a worktree made here",
        "cd repo; {git} worktree add -q ../tree -b tree; cd ../tree; echo w > w; {git} add w; {git} commit -qm w; git log -1 --format=%s; cd ../repo; git worktree remove ../tree; git worktree list | wc -l",
        "w\n1",
    ),
    (
        "a new repository and a clone",
        "{git} init -q fresh; cd fresh; {git} config user.name me; echo x > x; {git} add x; {git} commit -qm x; cd ..; {git} clone -q fresh copy; cd copy; git -C ../fresh config --local user.name; echo y > y; {git} add y; {git} commit -qm y; {git} push -q origin HEAD:refs/heads/up; rm -rf ../fresh ../copy",
        "me",
    ),
    (
        "patches",
        "cd repo; {git} format-patch -q -1 -o ../patches; ls ../patches | wc -l; {git} archive HEAD | tar t | head -1; {git} blame -s file | wc -l",
        "1",
    ),
    (
        "make",
        "mkdir -p c; cd c; printf 'all: hello\\n\\t./hello\\nhello: a.o b.o\\n\\t$(CC) -o $@ $^\\n' > Makefile; echo 'int b(void); int printf(const char*, ...); int main(void){ printf(\"made %d\\\\n\", b()); return 0; }' > a.c; echo 'int b(void){ return 7; }' > b.c; make -j2 2>&1 | tail -1; make -s --no-print-directory",
        "made 7",
    ),
    // Not `forkserver`: it needs sockets with names, and the jail cannot tell its own from the host's.
    (
        "python multiprocessing",
        r#"cat > mp.py <<'E'
import multiprocessing as mp
from multiprocessing import shared_memory, Manager
def f(x): return x * x
if __name__ == "__main__":
    for method in ("fork", "spawn"):
        with mp.get_context(method).Pool(3) as p: print(method, sum(p.map(f, range(10))))
    lock, value, queue = mp.Lock(), mp.Value("i", 0), mp.Queue()
    def g():
        with lock: value.value += 1
        queue.put(1)
    ps = [mp.get_context("fork").Process(target=g) for _ in range(4)]
    [p.start() for p in ps]; [queue.get() for _ in ps]; [p.join() for p in ps]
    m = shared_memory.SharedMemory(create=True, size=100000); m.buf[0] = 5; m.close(); m.unlink()
    print("value", value.value)
E
python3 mp.py"#,
        "spawn 285\nvalue 4",
    ),
    (
        "threads",
        "python3 -c 'from concurrent.futures import ThreadPoolExecutor as T\nprint(sum(T(8).map(int, range(100))))'",
        "4950",
    ),
    (
        "a server on loopback",
        r#"echo served > page.txt
python3 -m http.server 0 --bind 127.0.0.1 > log 2>&1 & 
python3 - <<'E'
import http.server, threading, urllib.request
for host in ("127.0.0.1", "localhost"):
    s = http.server.ThreadingHTTPServer((host, 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=s.serve_forever, daemon=True).start()
    print(host, urllib.request.urlopen("http://%s:%d/page.txt" % (host, s.server_port)).read().decode().strip())
E
kill %1; rm -f page.txt log"#,
        "localhost served",
    ),
    (
        "subprocesses of python",
        "python3 -c 'import subprocess; print(subprocess.run([\"sh\", \"-c\", \"echo sub; exit 0\"], capture_output=True, text=True).stdout)'",
        "sub",
    ),
    (
        "a terminal of one's own",
        "script -qec 'tty; echo in a terminal' /dev/null || python3 -c 'import pty; pty.spawn([\"echo\", \"in a terminal\"])'",
        "in a terminal",
    ),
    (
        "a debugger of one's own",
        "python3 -m trace --count -C cov -c 'x=1' 2>&1 | tail -1; rm -rf cov; echo ok",
        "ok",
    ),
    (
        "node",
        "node -e 'require(\"fs\").writeFileSync(\"n\", \"x\"); const s = require(\"http\").createServer((q, r) => r.end(\"node served\")).listen(0, \"127.0.0.1\", () => require(\"http\").get({port: s.address().port}, r => { r.on(\"data\", d => console.log(String(d))); r.on(\"end\", () => s.close()); }))'; rm n",
        "node served",
    ),
    (
        "npm",
        r#"mkdir -p npm/dep npm/app; cd npm
echo '{"name":"dep","version":"1.0.0","main":"i.js"}' > dep/package.json; echo 'module.exports = 41;' > dep/i.js
echo '{"name":"app","version":"1.0.0","scripts":{"test":"node t.js","postinstall":"echo installed"},"dependencies":{"dep":"file:../dep"}}' > app/package.json
echo 'console.log("answer", require("dep") + 1)' > app/t.js
cd app && npm install --offline --no-audit --no-fund && npm test && npm pack --silent"#,
        "answer 42",
    ),
    (
        "pip",
        r#"mkdir -p pip/pkg; cd pip
python3 - <<'E'
import zipfile
w = zipfile.ZipFile("tiny-1.0-py3-none-any.whl", "w")
w.writestr("tiny.py", "def answer(): return 42\n")
w.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
w.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
w.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\ntiny-1.0.dist-info/METADATA,,\ntiny-1.0.dist-info/WHEEL,,\ntiny-1.0.dist-info/RECORD,,\n")
w.close()
E
python3 -m venv .venv && .venv/bin/pip install -q --no-index --disable-pip-version-check ./tiny-1.0-py3-none-any.whl && .venv/bin/python -c 'import tiny; print("tiny", tiny.answer())'
python3 -m pip install -q --no-index --target lib ./tiny-1.0-py3-none-any.whl && PYTHONPATH=lib python3 -c 'import tiny; print("target", tiny.answer())'"#,
        "target 42",
    ),
    (
        "much output",
        "seq 200000 | tail -1; head -c 3000000 /dev/zero | tr '\\0' x | wc -c",
        "200000\n3000000",
    ),
    (
        "bytes that are no text",
        "printf 'caf\\xe9 \\xff\\n'; echo \"h\u{e9}llo\"",
        "h\u{e9}llo",
    ),
    (
        "many files",
        "mkdir many; cd many; for i in $(seq 2000); do : > $i; done; ls | wc -l; cd ..; rm -r many",
        "2000",
    ),
];

#[test]
fn ordinary_work_is_not_in_the_way_of_the_jail() {
    for setting in each_user() {
        let mut bench = Bench::new(setting);
        let before = bench.world.look();
        let problems: Vec<String> = CASES
            .iter()
            .filter_map(|(name, command, wanted)| {
                let failure = run(&mut bench, name, command, wanted).err();
                bench.world.is_untouched(&before, name);
                failure
            })
            .collect();
        let setting = &bench.setting;
        assert!(problems.is_empty(), "{setting:?}\n{}", problems.join("\n"));
    }
}

fn run(bench: &mut Bench, name: &str, command: &str, wanted: &str) -> Result<(), String> {
    let command = command.replace("{git}", GIT);
    // In a subshell, so that a change of directory ends with it.
    let answer = bench.bash_for(&format!("(\n{command}\n)"), 120);
    let is_done = answer.status == "ok" && !answer.text.contains("[exit code");
    match is_done && answer.text.contains(wanted) {
        true => Ok(()),
        false => Err(format!("{name}: {}: {}", answer.status, answer.text)),
    }
}

/// The workspace is a worktree whose repository lies beside it: commits reach that, hooks and settings do not.
#[test]
fn a_linked_worktree_commits() {
    for setting in each_user() {
        let mut bench = Bench::new(setting);
        bench.outside_jail(&format!(
            "cd ..; {GIT} init -q mainrepo; cd mainrepo; echo 1 > f; {GIT} add f; {GIT} commit -qm one
             {GIT} worktree add -q ../linked -b linked; mv {{work}} ../aside; git worktree move ../linked {{work}}"
        ));
        bench.product.file(".keep", "");
        bench.own_everything();
        let commit =
            format!("echo 2 >> f; {GIT} commit -qam two; git log --format=%s; git status --short");
        run(&mut bench, "commit", &commit, "two\none").unwrap();
        let hooks = bench
            .product
            .work
            .parent()
            .unwrap()
            .join("mainrepo/.git/hooks/post-commit");
        let config = hooks.with_file_name("../config");
        let before = fs::read(&config).unwrap();
        let evil = "d=$(git rev-parse --git-common-dir); echo evil > $d/hooks/post-commit; git config core.hooksPath x; \
                    echo evil >> $d/config; echo evil > $d/../f2; echo tried";
        let answer = bench.bash(evil);
        assert!(answer.text.contains("tried"), "{answer:?}");
        assert!(!hooks.exists(), "a hook was made in the repository beside");
        assert_eq!(fs::read(&config).unwrap(), before);
        assert!(
            !bench
                .product
                .work
                .parent()
                .unwrap()
                .join("mainrepo/f2")
                .exists()
        );
    }
}

#[test]
fn cargo_builds_and_tests_a_crate_with_a_vendored_one() {
    for setting in each_user() {
        cargo(setting, &Toolchain::find());
    }
}

fn cargo(setting: Setting, toolchain: &Toolchain) {
    let dir = tempfile::tempdir().unwrap();
    let copy = toolchain.copy_into(dir.path());
    let allow = format!(
        "tools.sandbox.allow_read=[{:?}]",
        copy.display().to_string()
    );
    let mut bench = Bench::new(setting.with(&allow).with("tools.shell.timeout_max=600"));
    bench.world.prefer(&copy.join("bin"));
    bench
        .product
        .file("crate/Cargo.toml", "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\ndep = \"1\"\n")
        .file("crate/src/lib.rs", "pub fn answer() -> u32 { dep::half() * 2 }\n#[test]\nfn is_42() { assert_eq!(answer(), 42); }\n")
        .file("crate/src/main.rs", "fn main() { println!(\"answer {}\", app::answer()); }\n")
        .file("crate/.cargo/config.toml", "[source.crates-io]\nreplace-with = \"vendored\"\n[source.vendored]\ndirectory = \"vendor\"\n")
        .file("crate/vendor/dep/Cargo.toml", "[package]\nname = \"dep\"\nversion = \"1.0.0\"\nedition = \"2021\"\n")
        .file("crate/vendor/dep/src/lib.rs", "pub fn half() -> u32 { 21 }\n")
        .file("crate/vendor/dep/.cargo-checksum.json", "{\"files\":{},\"package\":null}");
    bench.own_everything();
    let build = "cd crate && cargo build -q 2>&1 && cargo run -q && cargo test 2>&1 | grep 'test result' | head -1 && cargo clean -q";
    let answer = bench.bash_for(build, 300);
    let told = format!("{:?}: {}", bench.setting, answer.text);
    assert!(answer.text.contains("answer 42"), "{told}");
    assert!(answer.text.contains("test result: ok. 1 passed"), "{told}");
}

/// The compiler that built these tests, which may lie where the ordinary user cannot go.
struct Toolchain {
    root: PathBuf,
}

impl Toolchain {
    #[expect(clippy::disallowed_methods, reason = "the compiler says where it lies")]
    fn find() -> Self {
        let output = Command::new("rustc")
            .args(["--print", "sysroot"])
            .output()
            .unwrap();
        let root = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        assert!(root.join("bin/cargo").is_file(), "{}", root.display());
        Self { root }
    }

    /// What building needs of it, in a place that everybody may read. Hard links where they are possible: it is a gigabyte.
    fn copy_into(&self, place: &Path) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let copy = place.join("toolchain");
        fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
        for part in ["bin", "lib"] {
            mirror(&self.root.join(part), &copy.join(part));
        }
        copy
    }
}

fn mirror(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            mirror(&from, &to);
        } else if kind.is_symlink() {
            symlink(fs::read_link(&from).unwrap(), &to).unwrap();
        } else if fs::hard_link(&from, &to).is_err() {
            fs::copy(&from, &to).unwrap();
        }
    }
}
