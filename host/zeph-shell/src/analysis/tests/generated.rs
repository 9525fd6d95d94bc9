//! A grammar of command lines: what people write, and what hides a command.

use super::shapes::SHAPES;

/// Ways in which a variable gets a value; `w` is from outside, and does harm as a number.
const SETS: &[&str] = &[
    "v=1",
    "v=$(wc -l < a.txt)",
    "v=$(date +%s)",
    "v=$(tool)",
    "v=$w",
    "v=w",
    "v=\"$w\"",
    "read -r v < a.txt",
    "for v in 1 2; do :; done",
    "for v in *; do :; done",
    "for v in $(seq 1 2); do :; done",
    "printf -v v %s \"$w\"",
    "mapfile -t v < a.txt",
    ": \"${v:=$w}\"",
    ": ${v:=1}",
    "export v=\"$w\"",
    "declare -i v",
    "v=1; v+=1",
    "v=$((1 + 1))",
    "v=${#w}",
    "v=${w:0:30}",
    "v=(1 2)",
    "v[0]=$w",
    "set -- 1",
    "declare v=1",
    "k=w; v=k",
    "v=${w}",
    "v=1; declare -n n=v",
    "let v=1",
    "((v = 1))",
    "v=1 true",
    "(v=1)",
    "v=$q",
    "v=1; read -r \"v[0]\" < a.txt",
    "v=1; declare -n n=v; read -r n < a.txt",
    "v='u=1'",
    "exec {v}>/dev/null",
    "v=$c",
    "v='A[w]'",
    "declare -A A",
    "v=(); read -r v < a.txt",
    "",
    "no && v=1",
    "tool || v=1",
    "no && v=1 || tool",
    "tool && v=1 || v=2",
    "! v=1 && tool",
    "if no; then v=1; fi",
    "if no; then v=1; else v=2; fi",
    "if no; then v=1; elif tool; then :; fi",
    "while no; do v=1; done",
    "while tool; v=1; do break; done",
    "while break; v=1; do :; done",
    "case x in y) v=1;; esac",
    "case x in y) v=1;; *) v=2;; esac",
    "for v in; do :; done",
    "for i in $(no); do v=1; done",
    "for i in 1; do break; v=1; done",
    "for i in 1; do v=1; done",
    "for ((v = 0; v < 0; v++)); do :; done",
    "for ((i = 0; i < 0; i++)); do v=1; done",
    "v=1 | cat",
    "cat < a.txt | v=1",
    "v=1 &",
    "echo \"$(v=1)\"",
    "coproc v=1; wait",
    "f() { v=1; }",
    "f() { v=1; }; f",
    "f() { local v=1; }; f",
    "f() { return; v=1; }; f",
    "f() { v=1; }; f < nothing",
    "f() { v=1; }; f | cat",
    "f() { tool; }; tool; v=1; f",
    "{ v=1; } < nothing",
    "declare v=1 < nothing",
    "v=1 < nothing",
    "exec {v}> nothing/f",
    "readonly v; declare v=1",
    "((0 && (v = 1)))",
    "((1, v = 1))",
    "let 'u = 1, v = u'",
    "env let v=1",
    "bash -c 'v=1'",
    "trap 'v=1' EXIT",
    "echo declare v=1",
    "declare \"v=1\"",
    "v=1; declare \"v=$w\"",
    "v[1]=1",
    "v+=1",
    "v=$((v + 1))",
    "unset v",
    "cat <<< $((v = 1))",
    "echo $((v = 1))",
    "echo ${A[v = 1]}",
    "echo ${e:-$((v = 1))}",
    "tool {v}> out",
    "declare -A v",
    "declare -A v; v[a]=1",
];

/// Places where bash reads a number, or where it does not.
const USES: &[&str] = &[
    "echo $((v))",
    "(( v > 1 ))",
    "[[ $v -gt 1 ]]",
    "[[ v -eq 1 ]]",
    "let u=v",
    "let u=$v",
    "echo \"${A[v]}\"",
    "A[v]=1",
    "A[$v]=1",
    "echo \"${z:v}\"",
    "echo \"${z:$v:1}\"",
    "[[ -v $v ]]",
    "[[ -v A[v] ]]",
    "test -v \"A[$v]\"",
    "unset \"$v\"",
    "printf -v \"$v\" x",
    "echo ${!v}",
    "read \"$v\" < a.txt",
    "echo $(( $v + 1 ))",
    "declare -i k=v",
    "declare -i k=\"$v\"",
    "echo \"${u:-$((v))}\"",
    "for ((i = v; i < 1; i++)); do :; done",
    "echo $((u$v))",
    "[ 1 -eq \"$v\" ]",
    "tool $v",
    "echo $[v]",
    "echo $((A[v]))",
    "echo ${A[$((v))]}",
    "A=([v]=1)",
    "declare -a A=([v]=1)",
    "echo \"${v[0]}\"",
    "echo $((k)) $((v))",
    "bash -c 'echo $((v))'",
    "echo $((1 + $(echo $v)))",
    "echo \"${A[@]:v}\"",
    "((v++))",
    "echo ${v@P}",
    "while ((v > 1)); do break; done",
    "case $((v)) in 1) tool;; esac",
    "x=$v; echo $((x))",
    "declare \"A[$v]=1\"",
    "[ $v -eq 1 ]",
    "test 1 -eq $v",
    "((v += 1))",
    "[[ u=v -eq 1 ]]",
    "echo x {A[v]}>/dev/null",
    "exec {A[0]}>/dev/null",
    "unset \"A[$v]\"",
    "RANDOM=$v",
    "OPTIND=$v",
    "read -r OPTIND <<< \"$v\"",
    "declare RANDOM=\"$v\"",
    "declare -a B=\"$v\"",
    "declare -a B=\"($v)\"",
    "B=(); declare B=\"$v\"",
    "B=(); declare B=$v",
    "declare v=\"$c\"",
    "[ \"$v\" \"$w\" ]",
    "[ -n \"$v\" ]",
    "echo ${#:v}",
    "echo ${#v}",
    "echo ${!v#*}",
    "echo ${!v:-@}",
    "declare -n r=\"A[$v]\"; r=1",
    "declare -n r='A[v]'; echo $r",
    "let 'A[ $(deploy|wc -l)]=1'",
    "A[0]=1; [[ 'A[v]' -eq 1 ]]",
    "f() { echo $((v)); }; f",
    "f() { local v; echo $((v)); }; f",
    "f() { local v; bash -c 'echo $((v))'; }; f",
    "export v; f() { local v=1; bash -c 'echo $((v))'; }; f",
    "f() { local u=v; echo $((u)); }; f",
    "g() { f; }; f() { ((v)); }; g",
    "trap '((v))' EXIT",
    "tool && ((v)) || tool",
    "(echo $((v)))",
    "echo $((v)) | cat",
    "tool $((v)) &",
    "if tool; then ((v)); fi",
    "for i in 1 2; do ((v)); v=$u; done",
    "for i in 1 2; do echo $((v)); [ $v -eq 1 ]; read -r v < a.txt; done",
];

/// Every value in every place.
pub(super) fn numbers() -> Vec<String> {
    let mut lines = Vec::new();
    for set in SETS {
        lines.extend(USES.iter().map(|used| format!("{set}\n{used}")));
    }
    lines
}

/// A source of chance that is the same in every run.
pub(super) struct Dice {
    state: u64,
}

const NAMES: &[&str] = &[
    "rm", "git", "curl", "make", "ls", "tool", "deploy", "npm", "cargo", "grep", "no", "tar",
];

const WORDS: &[&str] = &[
    "-rf", "x", "a.txt", "--force", "push", "-C", ".", "--", "-", "s/a/b/", "build", "--opt=v",
    "1", "a=b", "@", "%", "+", "é",
];

const VARIABLES: &[&str] = &["x", "y", "z", "e", "u", "HOME"];

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        // Seeds that follow one another must not begin alike.
        Self {
            state: (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    pub(super) fn roll(&mut self, n: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state >> 33).unwrap() % n
    }

    pub(super) fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.roll(from.len())]
    }

    /// One of the texts with something inserted, removed, or put in from another.
    pub(super) fn mutated(&mut self, texts: &[&str], tokens: &[&str]) -> String {
        let mut text = self.pick(texts).to_owned();
        for _ in 0..=self.roll(2) {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let Some(at) = places.get(self.roll(places.len().max(1))).copied() else {
                break;
            };
            match self.roll(4) {
                0 => {
                    text.remove(at);
                }
                1 => {
                    let other = self.pick(texts);
                    let from = other.char_indices().nth(self.roll(other.chars().count()));
                    text.insert_str(at, &other[from.map_or(0, |(from, _)| from)..]);
                }
                _ => text.insert_str(at, self.pick(tokens)),
            }
        }
        text
    }

    /// A whole text: some lists, and at times a here-document or a function.
    pub(super) fn script(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..=self.roll(2) {
            let line = match self.roll(12) {
                0 => {
                    let (inner, call) = (
                        self.list(2),
                        self.pick(&["f", "f a", "x=$(f)", "f | tool", "no && f", "env f", "f &"]),
                    );
                    let before = self.pick(&["", "no && ", "(", "if no; then "]);
                    let after = match before {
                        "(" => ")",
                        "if no; then " => "; fi",
                        _ => "",
                    };
                    format!("{before}f() {{ {inner}\n}}{after}; {call}")
                }
                1 => {
                    let delimiter = self.pick(&["E", "'E'", "\"E\"", "\\E"]);
                    let (program, inner) = (
                        self.pick(&["cat", "tool", "bash", "sh -s", "env bash"]),
                        self.list(2),
                    );
                    let body = match self.roll(2) {
                        0 => inner,
                        _ => format!("a $({inner}) ${{y}}"),
                    };
                    format!("{program} <<{delimiter}\n{body}\nE")
                }
                2 | 3 => self.shaped(),
                // Bash reads it, writes it anew and reads that.
                4 => format!("echo \"$({}\n)\"", self.shaped()),
                _ => self.list(3),
            };
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    /// One of the shapes, filled.
    fn shaped(&mut self) -> String {
        let mut parts = self.pick(SHAPES).split('@');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let filled = match part.chars().next() {
                Some('L') => self.list(1),
                Some('S') => self.simple(1),
                Some('N') => self.pick(NAMES).to_owned(),
                Some('W') => self.word(1),
                Some('T') => {
                    let list = self.list(1);
                    self.quoted_text(&list)
                }
                _ => {
                    text.push('@');
                    text.push_str(part);
                    continue;
                }
            };
            text.push_str(&filled);
            text.push_str(&part[1..]);
        }
        text
    }

    fn list(&mut self, depth: usize) -> String {
        let mut text = self.pipeline(depth);
        for _ in 0..self.roll(3) {
            let joint = self.pick(&["; ", " && ", " || ", "\n", " & ", ";"]);
            text.push_str(joint);
            text.push_str(&self.pipeline(depth));
        }
        text
    }

    fn pipeline(&mut self, depth: usize) -> String {
        let start = self.pick(&["", "", "", "", "! ", "time "]);
        let mut text = format!("{start}{}", self.command(depth));
        if self.roll(5) == 0 {
            let joint = self.pick(&[" | ", " |& ", "|"]);
            text.push_str(joint);
            text.push_str(&self.command(depth));
        }
        text
    }

    fn command(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.simple(0);
        }
        match self.roll(11) {
            10 => self.number(),
            0 => self.compound(depth - 1),
            1 | 2 => self.wrapped(depth - 1),
            _ => self.simple(depth),
        }
    }

    fn compound(&mut self, depth: usize) -> String {
        let a = self.list(depth);
        let b = self.list(depth);
        match self.roll(14) {
            0 => format!("if {a}; then {b}; fi"),
            1 => format!("if no; then {a}; else {b}; fi"),
            2 => format!("for i in {}; do {a}; tool $i; done", self.words(depth)),
            3 => format!("while no; do {a}; done; until tool; do {b}; done"),
            4 => format!("case {} in x|-rf) {a};; *) {b};; esac", self.word(depth)),
            5 => format!("{{ {a}; }}"),
            6 => format!("( {a} )"),
            7 => format!("[[ -n {} && 1 -lt 2 ]] && {a}", self.word(depth)),
            8 => format!("n=0; (( n = n + 1 )); {a}"),
            // Its own variable: what else sets it could make the loop endless.
            9 => format!("for ((j = 0; j < 2; j++)); do {a}; done"),
            10 => format!("echo $(( 1 + $({a}) ))"),
            11 => format!("trap {} EXIT", self.quoted_text(&a)),
            12 => format!("{{ {a}; }} > out 2>&1"),
            _ => format!("coproc {{ {a}; }} < /dev/null; wait"),
        }
    }

    /// A value, and a place where bash reads it as a number.
    fn number(&mut self) -> String {
        let (set, used) = (self.pick(SETS), self.pick(USES));
        let between = self.pick(&["; ", "\n", " && "]);
        match set {
            "" => used.to_owned(),
            _ => format!("{set}{between}{used}"),
        }
    }

    /// A command that another one runs.
    fn wrapped(&mut self, depth: usize) -> String {
        let simple = self.simple(depth);
        let list = self.list(depth);
        let text = self.quoted_text(&list);
        match self.roll(24) {
            0 => format!("env {simple}"),
            1 => format!("env A=1 -u B {simple}"),
            2 => format!("timeout 9 {simple}"),
            3 => format!("timeout -k 1 --sig=KILL 9 {simple}"),
            4 => format!("nice -n 1 {simple}"),
            5 => format!("nohup {simple}"),
            6 => format!("command {simple}"),
            7 => format!("exec {simple}"),
            8 => format!("builtin command {simple}"),
            9 => format!("bash -c {text}"),
            10 => format!("sh -c {text}"),
            11 => format!("bash -ec {text} a b"),
            12 => format!("eval {text}"),
            13 => format!("eval {simple}"),
            14 => format!("echo a b | xargs {simple}"),
            15 => format!("echo a | xargs -I% {simple}"),
            16 => format!("find . -maxdepth 1 -name a.txt -exec {simple} \\;"),
            17 => format!("find . -maxdepth 1 -exec {simple} {{}} +"),
            18 => format!("find a.txt -exec sh -c {text} _ {{}} \\;"),
            19 => format!("env -S {}", self.quoted_text(&simple)),
            20 => format!("stdbuf -oL {simple}"),
            21 => format!("bash <<< {text}"),
            22 => format!("timeout 9 env A=1 bash -c {text}"),
            _ => format!("setsid -w {simple}"),
        }
    }

    fn simple(&mut self, depth: usize) -> String {
        let mut text = String::new();
        if self.roll(8) == 0 {
            let name = self.pick(&["A", "B", "u", "A[0]", "A+"]);
            let value = self.word(depth);
            text.push_str(&format!("{name}={value} "));
        }
        let name = self.name(depth);
        text.push_str(&name);
        let words = self.words(depth);
        if !words.is_empty() {
            text.push(' ');
            text.push_str(&words);
        }
        if self.roll(6) == 0 {
            let redirect = match self.roll(8) {
                0 => " > out".to_owned(),
                1 => " 2>&1".to_owned(),
                2 => " >> out 2> err".to_owned(),
                3 => " < a.txt".to_owned(),
                4 => format!(" <<< {}", self.word(depth)),
                5 => " &> out".to_owned(),
                6 if depth > 0 => format!(" < <({})", self.list(depth - 1)),
                _ => " 2>/dev/null".to_owned(),
            };
            text.push_str(&redirect);
        }
        text
    }

    /// A name, plainly or hidden.
    fn name(&mut self, depth: usize) -> String {
        let name = self.pick(NAMES);
        match self.roll(30) {
            0 => format!("\\{name}"),
            1 => format!("'{name}'"),
            2 => format!("\"{name}\""),
            3 => format!("{}''{}", &name[..1], &name[1..]),
            4 => {
                name.bytes()
                    .fold("$'".to_owned(), |text, b| format!("{text}\\x{b:02x}"))
                    + "'"
            }
            5 => format!("{}\\\n{}", &name[..1], &name[1..]),
            6 => format!("{{{name},{}}}", self.pick(WORDS)),
            7 => format!("$u {name}"),
            8 if depth > 0 => format!("$(echo {name})"),
            9 => format!("{{,}}{name}"),
            _ => name.to_owned(),
        }
    }

    fn words(&mut self, depth: usize) -> String {
        let n = self.roll(4);
        let words: Vec<String> = (0..n).map(|_| self.word(depth)).collect();
        words.join(" ")
    }

    fn word(&mut self, depth: usize) -> String {
        let word = self.pick(WORDS);
        let other = self.pick(WORDS);
        let variable = self.pick(VARIABLES);
        match self.roll(34) {
            0 => format!("'{word} {other}'"),
            1 => format!("\"{word} ${variable}\""),
            2 => format!("${variable}"),
            3 => format!("\"${{{variable}}}\""),
            4 => format!("${{{variable}:-{word}}}"),
            5 => format!("\"${{{variable}:+{word} $z}}\""),
            6 => format!("{word}${variable}{other}"),
            7 => format!("-{{r,}}{}", self.pick(&["f", "", "x{1..2}"])),
            8 => format!("{{{word},{other}}}"),
            9 => format!("{{{word},$x}}y"),
            10 => "a{1..3}{b,'c d'}".to_owned(),
            11 => "*.txt".to_owned(),
            12 => "*".to_owned(),
            13 => "-[r]f".to_owned(),
            14 => "~/x".to_owned(),
            15 => "src/?.rs".to_owned(),
            16 => "$'a\\tb'".to_owned(),
            17 => format!("{word}\\ {other}"),
            18 => "\"$@\"".to_owned(),
            19 => format!("'it'\\''s' #{word}"),
            20 => "{}".to_owned(),
            21 => "{a}".to_owned(),
            22 => "[ab].txt".to_owned(),
            23 if depth > 0 => format!("$({})", self.list(depth - 1)),
            24 if depth > 0 => format!("\"$({})\"", self.list(depth - 1)),
            25 if depth > 0 => format!("`{}`", self.simple(0).replace(['`', '\\'], "")),
            26 if depth > 0 => format!("<({})", self.list(depth - 1)),
            27 if depth > 0 => format!("\"${{u:-$({})}}\"", self.simple(0)),
            28 => format!("$(( 1 + {} ))", self.pick(&["2", "${#y}", "$#"])),
            29 => format!("\"a\"'b'{word}"),
            30 => "{a,b}{".to_owned(),
            _ => word.to_owned(),
        }
    }

    /// A text as one word, whatever is in it.
    fn quoted_text(&mut self, text: &str) -> String {
        match self.roll(3) {
            0 if !text.contains(['$', '`', '"', '\\', '!']) => format!("\"{text}\""),
            _ => format!("'{}'", text.replace('\'', "'\\''")),
        }
    }
}
