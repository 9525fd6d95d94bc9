//! Variables that are set: for a command, for all that follow, by a builtin.

use super::super::brace;
use super::super::numbers::{LocalKind, NameSet, NumberOrigin, Scan, is_name, scans};
use super::super::reader::list::split_assignment;
use super::super::syntax::{Dialect, VariableAssignment, Word, WordPart};
use super::super::value::Value;
use super::super::variables::{self, For};
use super::super::wrapper::{self, Look, WrappedCommand};
use super::{ScriptWalk, WalkPosition};

/// Words among which a builtin that declares stands: `builtin command declare`.
const COMMANDS_BEFORE: usize = 3;

const COMPOUND: &str = "the elements of an array are made of text that is read once more";

/// Builtins whose arguments set variables.
pub(super) const DECLARE: [&str; 5] = ["export", "declare", "typeset", "local", "readonly"];

/// Programs whose arguments set variables for another one.
const ENVIRONMENT: [&str; 4] = ["cross-env", "doas", "env", "sudo"];

impl ScriptWalk {
    /// Looks at what stands before a command, or alone.
    pub(super) fn assignments(
        &mut self,
        at: WalkPosition<'_>,
        assignments: &[VariableAssignment],
        whom: For<'_>,
    ) {
        let is_own = !matches!(whom, For::Program(_));
        for assignment in assignments {
            let name = &assignment.name;
            if assignment.is_array {
                self.numbers.array(name);
            }
            for value in &assignment.values {
                self.assigned(at, assignment, value, whom);
            }
            if is_own {
                self.set_known(assignment, matches!(whom, For::All));
            }
            self.words(at, &assignment.values);
            if is_own && is_whole(assignment) {
                self.numbers.set(name);
            }
        }
    }

    /// Looks at a value that a variable gets, or an element.
    fn assigned(
        &mut self,
        at: WalkPosition<'_>,
        assignment: &VariableAssignment,
        value: &Word,
        whom: For<'_>,
    ) {
        let name = &assignment.name;
        let fixed = value.fixed_text();
        if fixed.contains("$(") || fixed.contains('`') {
            self.unknown(
                "a variable holds a substitution, which arithmetic would run",
                &fixed,
            );
        }
        let is_joined = assignment.is_added && !assignment.is_array || fixed.contains("]+=");
        let value = self.element(name, value);
        if Value::of(&value).is_stream {
            self.unknown("a process substitution runs beside it", name);
        }
        self.variable(at, name, &Value::of(&value), whom);
        // Before a program it changes nothing for the commands that follow: `IFS= read line`.
        let is_own = !matches!(whom, For::Program(_));
        if is_own || name != "IFS" {
            self.given(name, &value, is_joined);
        }
    }

    /// Notes a value, which is added to what is there if it is `is_joined`.
    fn given(&mut self, name: &str, value: &Word, is_joined: bool) {
        let mut origin = NumberOrigin::of(value);
        if is_joined {
            origin.add(NumberOrigin::of_name(name));
            origin.is_joined = true;
        }
        self.numbers.may_assign(name, origin);
    }

    /// The value of an element; its subscript is read as a number.
    fn element(&mut self, array: &str, value: &Word) -> Word {
        let text = Value::of(value).text;
        let is_text =
            matches!(value.parts.first(), Some(WordPart::Text(first)) if first.starts_with('['));
        let inside = text.strip_prefix('[').filter(|_| is_text);
        let Some((subscript, rest)) = inside.and_then(split_subscript) else {
            return value.clone();
        };
        let mut scan = Scan::default();
        scan.subscript(array, subscript);
        self.numbers.take_inside(scan, &text);
        // What is made inside of a subscript may be anything; so may what follows it.
        match value.plain() {
            Some(_) => Word::quoted(rest),
            None => value.clone(),
        }
    }

    /// Looks at a variable that is set.
    fn variable(&mut self, at: WalkPosition<'_>, name: &str, value: &Value, whom: For<'_>) {
        let reason = "a variable is set that may lead a program to what it runs or loads";
        if name == "ENV" && variables::is_start_up(whom) && !value.text.is_empty() {
            self.unknown(reason, name);
        } else if variables::is_command(name) {
            if !value.text.is_empty() {
                self.text(at, value, Dialect::Portable);
            }
        } else if variables::leads(name, value, whom) {
            self.unknown(reason, name);
        } else if name == "PATH" && !variables::leads_to_installed(&value.text) {
            self.unknown(
                "programs are searched for in a directory set by the command",
                &value.text,
            );
        }
    }

    /// Looks at the variables that a builtin, `env` or `sudo` sets by its arguments.
    pub(super) fn names(
        &mut self,
        at: WalkPosition<'_>,
        command: &str,
        arguments: &[Value],
        look: &Look,
    ) {
        match command {
            "env" | "sudo" | "doas" | "cmake" | "cross-env" | "cross-env-shell" | "strace"
            | "ltrace" | "xargs" => {
                let program = match look.inner.first() {
                    Some(WrappedCommand::Words(words)) => words.first(),
                    _ => None,
                };
                let whom = program.map_or(For::All, |program| For::Program(&program.text));
                let settings = wrapper::settings(command, arguments);
                self.exported(at, &settings, whom);
            }
            _ if DECLARE.contains(&command) => self.declared(at, command, arguments),
            "let" => {
                for argument in arguments {
                    self.number(at, argument);
                }
            }
            "set" | "shopt" => {
                let exports = |word: &Value| {
                    word.text == "allexport"
                        || command == "set" && word.text.starts_with('-') && word.text.contains('a')
                };
                self.exports_all |= arguments.iter().any(exports);
                if self.exports_all {
                    self.numbers.share_functions();
                }
            }
            "test" | "[" => self.tested(arguments),
            "." | "source" => {
                self.numbers.literals.forget_all();
                self.numbers.share_functions();
            }
            "exit" if at.is_own && exits(arguments) => self.numbers.set_all(NameSet::ALL),
            "eval" if !arguments.iter().all(|word| word.is_literal) => {
                self.numbers.literals.forget_all();
            }
            _ => {}
        }
        let names = variables::set_by_name(command, arguments);
        let makes_arrays = variables::makes_arrays(command, arguments);
        for name in &names {
            let whole = variables::whole_name(&name.text);
            if makes_arrays || name.text.contains('[') {
                self.numbers.array(whole);
            }
            self.numbers.may_assign(whole, NumberOrigin::outside());
        }
        let unset = arguments.iter().filter(|_| command == "unset");
        for name in unset.clone().filter(|name| !name.text.contains('[')) {
            self.numbers.unset(&name.text);
        }
        for name in names.iter().chain(unset) {
            self.name(name);
            match name.is_literal {
                true => self
                    .numbers
                    .literals
                    .forget(variables::whole_name(&name.text)),
                false => self.numbers.literals.forget_all(),
            }
        }
        if variables::sets_by_name(command, arguments) {
            self.unknown(
                "a variable that decides what is run is set by its name",
                command,
            );
        }
    }

    fn declared(&mut self, at: WalkPosition<'_>, command: &str, arguments: &[Value]) {
        let is_plain = |word: &&Value| word.text.starts_with('-') && word.is_literal;
        let has = |letter: char| {
            arguments
                .iter()
                .filter(is_plain)
                .any(|word| word.text.contains(letter))
        };
        let is_shown = has('p') || has('f') || has('F');
        if has('f') {
            self.numbers.share_functions();
        }
        if command == "export" && is_shown {
            return;
        }
        let is_exported = command == "export" || has('x');
        let whom = if is_exported { For::All } else { For::Shell };
        self.exported(at, arguments, whom);
        // In a function it has no value from then on, and programs are searched for in the directory the shell is in.
        let is_local = matches!(command, "local" | "declare" | "typeset") && !is_shown;
        if is_local && arguments.iter().any(|word| word.text == "PATH") {
            self.unknown("a variable that decides what is run is set anew", "PATH");
        }
        if command != "export" && variables::is_reference(arguments) {
            self.referred(arguments);
        }
        let is_understood = at.is_own && {
            let words = arguments.iter().map(|word| word.text.as_str());
            knows_options(command, words, self.numbers.is_in_function())
        };
        let is_option = |word: &&Value| word.text.starts_with(['-', '+']) && word.is_literal;
        for word in arguments.iter().filter(|word| !is_option(word)) {
            let whole = variables::whole_name(word.text.split('=').next().unwrap_or_default());
            if is_local && is_understood && !has('g') {
                let kind = LocalKind {
                    is_map: has('A'),
                    is_new: !has('n') && !has('I'),
                    is_bare: !word.text.contains('='),
                };
                self.numbers.localise(whole, kind);
            }
            if has('A') && is_understood {
                self.numbers.map(whole);
            } else if has('a') || has('A') || named(&word.text).contains('[') {
                self.numbers.array(whole);
            }
            if !word.text.contains('=') && !is_shown && (command == "readonly" || has('r')) {
                self.numbers.freeze(whole);
            }
            self.name(word);
            self.elements(word);
            self.compound(word, has('a') || has('A'));
            let name = word.text.split('=').next().unwrap_or_default();
            if !word.text.contains('=')
                && is_exported
                && variables::decides_what_runs(name)
                && name != "PATH"
            {
                self.unknown(
                    "a variable is exported that may lead a program to what it runs",
                    name,
                );
            }
            if has('i') {
                self.numbers.integer(whole);
            }
        }
    }

    /// The value of a variable that is an array, or may be one: bash reads it once more if it looks like `(…)`.
    fn compound(&mut self, word: &Value, is_array: bool) {
        let Some((name, value)) = word.text.split_once('=') else {
            return;
        };
        let is_open = word.holes.iter().any(|hole| hole.start == name.len() + 1);
        let is_quoted = value.starts_with('(') && word.quotes_command();
        if is_quoted || is_open && is_array {
            self.unknown(COMPOUND, &word.text);
        } else if is_open {
            let name = variables::whole_name(name);
            self.numbers.declares(name, &word.text);
        }
    }

    /// `declare -a NAME="(… $x …)"`, which is read once more with what the expansion becomes; only the words show the quotes.
    pub(super) fn quoted_compounds(&mut self, words: &[Word]) {
        let texts: Vec<String> = words.iter().map(|word| Value::of(word).text).collect();
        let declares = |text: &&String| DECLARE.contains(&text.as_str());
        if !texts
            .iter()
            .take(COMMANDS_BEFORE)
            .any(|text| declares(&text))
        {
            return;
        }
        let is_option = |text: &&String| text.starts_with('-') && text.contains(['a', 'A']);
        let is_array = texts.iter().any(|text| is_option(&text));
        for word in words {
            let Some((name, value)) = split_assignment(word) else {
                continue;
            };
            let is_empty = |part: &&WordPart| matches!(part, WordPart::Text(t) | WordPart::Quoted(t) if t.is_empty());
            let first = value.parts.iter().find(|part| !is_empty(part));
            if matches!(first, Some(WordPart::Text(text)) if text.starts_with('(')) {
                self.numbers.array(&name);
            }
            let is_quoted = matches!(first, Some(WordPart::Quoted(text)) if text.starts_with('('));
            let is_made = |part: &WordPart| matches!(part, WordPart::Expansion(_));
            if !is_quoted || !value.parts.iter().any(is_made) {
                continue;
            }
            match is_array {
                true => self.unknown(COMPOUND, &Value::of(word).text),
                false => self.numbers.declares(&name, &Value::of(word).text),
            }
        }
    }

    /// References to other variables: what is given to them, these get.
    fn referred(&mut self, arguments: &[Value]) {
        for word in arguments.iter().filter(|word| !word.text.starts_with('-')) {
            let (name, target) = word.text.split_once('=').unwrap_or((&word.text, ""));
            self.numbers
                .may_assign(target, NumberOrigin::of(&Word::quoted(name)));
            self.references.push(name.to_owned());
        }
    }

    /// The subscripts in `NAME=([…]=… …)`.
    fn elements(&mut self, word: &Value) {
        let Some((name, elements)) = word.text.split_once("=(") else {
            return;
        };
        for element in elements.split('[').skip(1) {
            let mut scan = Scan::default();
            let subscript = split_subscript(element).map_or(element, |(subscript, _)| subscript);
            scan.subscript(name, subscript);
            self.numbers.take_inside(scan, &word.text);
        }
    }

    /// A word that names a variable: one that is not known may have a subscript, which is run.
    pub(super) fn name(&mut self, word: &Value) {
        let before = word.text.split(['=', '[', '+']).next().unwrap_or_default();
        if !word.holes.is_empty() && !is_name(before) {
            self.unknown(
                "which variable is set is known only when it runs",
                &word.text,
            );
        }
        let name = named(&word.text);
        if let Some((array, subscript)) = name.split_once('[') {
            self.substitution(word, name.len());
            let inside = array.len()..name.len();
            let is_expanded = word.holes.iter().any(|hole| inside.contains(&hole.start));
            let mut scan = Scan::default();
            // What has been expanded is expanded once more, in a map too.
            let array = if is_expanded { "" } else { array };
            scan.subscript(array, subscript.trim_end_matches(['+', ']']));
            self.numbers.take_inside(scan, &word.text);
        }
    }

    /// A quoted substitution in the first `end` bytes of what is expanded once more.
    fn substitution(&mut self, word: &Value, end: usize) {
        if word.quotes_substitution(end) {
            self.unknown(
                "a subscript may be run wherever its text is a number",
                &word.text,
            );
        }
    }

    /// `-v NAME`, whose subscript is run.
    fn tested(&mut self, arguments: &[Value]) {
        for pair in arguments.windows(2) {
            if let [option, name] = pair
                && option.text == "-v"
            {
                self.name(name);
            }
        }
    }

    /// A word that is read as arithmetic.
    fn number(&mut self, at: WalkPosition<'_>, word: &Value) {
        self.substitution(word, word.text.len());
        let is_outside = word.holes.iter().any(|hole| {
            let hole = word.text.get(hole.start..hole.end).unwrap_or_default();
            !hole.starts_with('$')
        });
        for mut scan in scans(&word.text) {
            scan.origin.is_outside |= is_outside;
            scan.is_conditional |= !at.is_own;
            // What has been expanded is expanded once more, in a map too.
            if !word.holes.is_empty() {
                for (array, _) in &mut scan.subscripts {
                    array.clear();
                }
            }
            self.numbers.take(scan, &word.text);
        }
    }

    /// Looks at the variables that arguments of the form `NAME=value` set.
    fn exported(&mut self, at: WalkPosition<'_>, arguments: &[Value], whom: For<'_>) {
        for argument in arguments {
            if let Some((name, text)) = argument.text.split_once('=') {
                let value = argument.part(text);
                self.variable(at, variables::whole_name(name), &value, whom);
            }
        }
    }

    /// Notes where the values come from that words of a builtin or of `env` set.
    pub(super) fn origins(&mut self, at: WalkPosition<'_>, words: &[Word]) {
        let is_own = at.is_own && declares(words, self.numbers.is_in_function());
        let takes_quoted = words.iter().any(takes_assignments);
        let quoted = |word: &Word| quoted_assignment(word).filter(|_| takes_quoted);
        for word in words.iter().flat_map(brace::expand) {
            let Some((name, value)) = split_assignment(&word).or_else(|| quoted(&word)) else {
                continue;
            };
            let text = Value::of(&word).text;
            let operator = text.get(name.len()..).unwrap_or_default();
            let is_joined = operator.starts_with('+') || operator.contains("]+=");
            let value = self.element(&name, &value);
            self.given(&name, &value, is_joined);
            if is_own && (operator.starts_with('=') || operator.starts_with("[0]=")) {
                self.numbers.set(&name);
            }
        }
    }
}

/// The subscript at the start of `subscript]=value` or `subscript]+=value`, and the value.
fn split_subscript(text: &str) -> Option<(&str, &str)> {
    let ends = ["]=", "]+="].into_iter();
    let splits = ends.filter_map(|end| text.split_once(end));
    splits.min_by_key(|(subscript, _)| subscript.len())
}

/// Whether a command is a builtin that sets the variables among its words in the shell itself.
fn declares(words: &[Word], is_in_function: bool) -> bool {
    let is_before = |word: &&Word| matches!(word.plain(), Some("builtin" | "command"));
    let words: Vec<&Word> = words.iter().skip_while(is_before).collect();
    let Some((name, rest)) = words.split_first() else {
        return false;
    };
    let texts: Vec<String> = rest.iter().map(|word| Value::of(word).text).collect();
    let texts = texts.iter().map(String::as_str);
    name.plain()
        .is_some_and(|name| knows_options(name, texts, is_in_function))
}

/// Whether a builtin sets the variables among its words. With an option that it does not know, it sets nothing.
fn knows_options<'t>(
    builtin: &str,
    mut words: impl Iterator<Item = &'t str>,
    is_in_function: bool,
) -> bool {
    let letters = match builtin {
        "export" => "-n",
        "readonly" => "-aA",
        "local" if !is_in_function => return false,
        "declare" | "typeset" | "local" => "-+aAgiIlnrtux",
        _ => return false,
    };
    words.all(|word| !word.starts_with(['-', '+']) || word.chars().all(|c| letters.contains(c)))
}

/// Whether `exit` ends the shell with these arguments: with two it does not, nor with an option.
fn exits(arguments: &[Value]) -> bool {
    let is_number = |word: &Value| word.is_literal && word.text.bytes().all(|b| b.is_ascii_digit());
    arguments.len() <= 1 && arguments.iter().all(is_number)
}

/// Whether all of a variable is set, and not another element of an array, or what is added.
fn is_whole(assignment: &VariableAssignment) -> bool {
    let first = assignment.values.first().map(Word::fixed_text);
    let first = first.unwrap_or_default();
    let is_other = |value: &Word| matches!(value.parts.first(), Some(WordPart::Text(text)) if text.starts_with('['));
    let is_element = assignment.values.first().is_some_and(is_other);
    !assignment.is_added && (!is_element || first.starts_with("[0]="))
}

/// Whether a word is a command that takes words for assignments even if they are quoted.
fn takes_assignments(word: &Word) -> bool {
    let is_setter = |name: &str| DECLARE.contains(&name) || ENVIRONMENT.contains(&name);
    word.plain().is_some_and(is_setter)
}

/// `"name=value"` with quotes, which only a command takes for an assignment.
fn quoted_assignment(word: &Word) -> Option<(String, Word)> {
    let mut name = String::new();
    let mut parts = word.parts.iter();
    for part in parts.by_ref() {
        let (WordPart::Text(text) | WordPart::Quoted(text)) = part else {
            return None;
        };
        let Some((before, value)) = text.split_once('=') else {
            name.push_str(text);
            continue;
        };
        name.push_str(before);
        let whole = variables::whole_name(&name).to_owned();
        let mut value = vec![WordPart::Quoted(value.to_owned())];
        value.extend(parts.cloned());
        return is_name(&whole).then_some((whole, Word { parts: value }));
    }
    None
}

/// What `NAME=value` or `NAME[subscript]=value` sets, or all of the text; an `=` in the subscript is a part of it.
fn named(text: &str) -> &str {
    let before = text.split('=').next().unwrap_or_default();
    if !before.contains('[') {
        return before;
    }
    let ends = ["]=", "]+="].into_iter().filter_map(|end| text.rfind(end));
    ends.max().map_or(text, |end| &text[..=end])
}
