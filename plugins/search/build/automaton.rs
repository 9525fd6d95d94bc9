//! The functions `ts_lex` and `ts_lex_keywords` of a `parser.c`, as tables.

use std::collections::{BTreeSet, HashMap};

use crate::format::{NONE, PLAIN, SKIPS};

/// Both tables; that of keywords is empty when there is no such function.
pub(crate) struct Lexers {
    pub(crate) main: Vec<u8>,
    pub(crate) keywords: Vec<u8>,
}

pub(crate) fn of(text: &str) -> Lexers {
    let facts = Facts {
        symbols: symbols(text),
        sets: sets(text),
    };
    Lexers {
        main: table(&states(body(text, "ts_lex"), &facts)),
        keywords: match text.contains("static bool ts_lex_keywords(") {
            true => table(&states(body(text, "ts_lex_keywords"), &facts)),
            false => Vec::new(),
        },
    }
}

/// What the functions refer to.
struct Facts {
    symbols: HashMap<String, u16>,
    sets: HashMap<String, Vec<(u32, u32)>>,
}

fn symbols(text: &str) -> HashMap<String, u16> {
    let from = text.find("enum ts_symbol_identifiers {").unwrap();
    let list = &text[from..from + text[from..].find("};").unwrap()];
    let mut symbols: HashMap<String, u16> = list
        .lines()
        .filter_map(|line| line.trim().trim_end_matches(',').split_once(" = "))
        .map(|(name, number)| (name.to_owned(), number.parse().unwrap()))
        .collect();
    symbols.insert("ts_builtin_sym_end".to_owned(), 0);
    symbols
}

/// `static [const] TSCharacterRange NAME[] = { {'a', 'z'}, … };`
fn sets(text: &str) -> HashMap<String, Vec<(u32, u32)>> {
    let mut sets = HashMap::new();
    for part in text.split(" TSCharacterRange ").skip(1) {
        let (name, rest) = part.split_once("[] = {").unwrap();
        let (list, _) = rest.split_once("};").unwrap();
        let numbers: Vec<u32> = Tokens(list).filter_map(|token| token.number()).collect();
        let ranges = numbers.chunks_exact(2).map(|pair| (pair[0], pair[1]));
        sets.insert(name.to_owned(), ranges.collect());
    }
    sets
}

fn body<'a>(text: &'a str, function: &str) -> &'a str {
    let head = format!("static bool {function}(TSLexer *lexer, TSStateId state) {{");
    let from = text.find(&head).unwrap();
    let rest = &text[from..];
    &rest[..rest.find("\n}\n").unwrap()]
}

#[derive(Debug, Clone, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Number(u32),
    Sign(&'a str),
}

impl Token<'_> {
    fn number(&self) -> Option<u32> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }
}

/// The tokens of C, as far as these functions use them.
struct Tokens<'a>(&'a str);

impl<'a> Tokens<'a> {
    fn cut(&mut self, length: usize) -> &'a str {
        let (token, rest) = self.0.split_at(length);
        self.0 = rest;
        token
    }

    fn character(&mut self) -> u32 {
        let end = match self.0.as_bytes()[1] {
            b'\\' => 2 + self.0[3..].find('\'').unwrap() + 2,
            _ => 1 + self.0[1..].find('\'').unwrap() + 1,
        };
        let end = match &self.0[1..2] {
            "'" => 3,
            _ => end,
        };
        let literal = &self.cut(end)[1..end - 1];
        match literal.strip_prefix('\\') {
            None => u32::from(literal.chars().next().unwrap()),
            Some("n") => 10,
            Some("t") => 9,
            Some("r") => 13,
            Some("f") => 12,
            Some("v") => 11,
            Some("0") => 0,
            Some(escaped) => u32::from(escaped.chars().next().unwrap()),
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.0 = self.0.trim_start();
        let first = *self.0.as_bytes().first()?;
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if first == b'\'' {
            return Some(Token::Number(self.character()));
        }
        if is_word(first) {
            let length = self.0.bytes().take_while(|byte| is_word(*byte)).count();
            let word = self.cut(length);
            let number = match word.strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16).ok(),
                None => word.parse().ok(),
            };
            return Some(number.map_or(Token::Word(word), Token::Number));
        }
        let two = ["&&", "||", "==", "!=", "<=", ">="];
        let length = match two.iter().any(|sign| self.0.starts_with(sign)) {
            true => 2,
            false => 1,
        };
        Some(Token::Sign(self.cut(length)))
    }
}

enum Condition {
    Or(Vec<Condition>),
    And(Vec<Condition>),
    Not(Box<Condition>),
    AtEnd,
    Compare(Operand, String, Operand),
    InSet(String),
}

#[derive(Clone, Copy)]
enum Operand {
    Next,
    Number(u32),
}

/// One statement of a state, in the order of the text.
struct Way {
    when: Condition,
    to: u16,
}

struct LexState {
    accepted: u16,
    ways: Vec<u16>,
    ranges: Vec<(u32, u32, u16)>,
    at_end: u16,
}

struct Reader<'a> {
    tokens: std::iter::Peekable<Tokens<'a>>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Token<'a> {
        self.tokens.next().unwrap()
    }

    fn takes(&mut self, sign: &str) -> bool {
        self.tokens
            .next_if(|token| *token == Token::Sign(sign))
            .is_some()
    }

    fn expect(&mut self, sign: &str) {
        let token = self.next();
        assert_eq!(token, Token::Sign(sign));
    }

    fn number(&mut self) -> u32 {
        self.next().number().unwrap()
    }

    fn or(&mut self) -> Condition {
        let mut all = vec![self.and()];
        while self.takes("||") {
            all.push(self.and());
        }
        Condition::Or(all)
    }

    fn and(&mut self) -> Condition {
        let mut all = vec![self.one()];
        while self.takes("&&") {
            all.push(self.one());
        }
        Condition::And(all)
    }

    fn one(&mut self) -> Condition {
        if self.takes("(") {
            let condition = self.or();
            self.expect(")");
            return condition;
        }
        if self.takes("!") {
            return Condition::Not(Box::new(self.one()));
        }
        let left = match self.next() {
            Token::Word("eof") => return Condition::AtEnd,
            Token::Word("set_contains") => return self.set(),
            Token::Word("lookahead") => Operand::Next,
            Token::Number(number) => Operand::Number(number),
            other => panic!("{other:?}"),
        };
        let Token::Sign(sign) = self.next() else {
            panic!("a comparison");
        };
        let right = match self.next() {
            Token::Word("lookahead") => Operand::Next,
            Token::Number(number) => Operand::Number(number),
            other => panic!("{other:?}"),
        };
        Condition::Compare(left, sign.to_owned(), right)
    }

    /// `(NAME, COUNT, lookahead)`
    fn set(&mut self) -> Condition {
        self.expect("(");
        let Token::Word(name) = self.next() else {
            panic!("a set");
        };
        while !self.takes(")") {
            self.next();
        }
        Condition::InSet(name.to_owned())
    }

    /// `ADVANCE(n)` or `SKIP(n)`
    fn to(&mut self) -> u16 {
        let Token::Word(word) = self.next() else {
            panic!("a way");
        };
        self.expect("(");
        let to = u16::try_from(self.number()).unwrap();
        self.expect(")");
        self.expect(";");
        match word {
            "ADVANCE" => to,
            "SKIP" => to | SKIPS,
            other => panic!("{other}"),
        }
    }

    /// `ADVANCE_MAP('a', 1, …);`
    fn map(&mut self) -> Vec<Way> {
        self.expect("(");
        let mut ways = Vec::new();
        while !self.takes(")") {
            let character = self.number();
            self.expect(",");
            let to = u16::try_from(self.number()).unwrap();
            self.takes(",");
            let when =
                Condition::Compare(Operand::Next, "==".to_owned(), Operand::Number(character));
            ways.push(Way { when, to });
        }
        self.expect(";");
        ways
    }

    /// One `case N: … END_STATE();`
    fn state(&mut self, facts: &Facts) -> LexState {
        let mut accepted = NONE;
        let mut ways = Vec::new();
        loop {
            match self.next() {
                Token::Word("END_STATE") => break,
                Token::Word("ACCEPT_TOKEN") => {
                    self.expect("(");
                    let Token::Word(name) = self.next() else {
                        panic!("a token");
                    };
                    accepted = facts.symbols[name];
                    self.expect(")");
                    self.expect(";");
                }
                Token::Word("ADVANCE_MAP") => ways.extend(self.map()),
                Token::Word("if") => {
                    self.expect("(");
                    let when = self.or();
                    self.expect(")");
                    let to = self.to();
                    ways.push(Way { when, to });
                }
                other => panic!("{other:?}"),
            }
        }
        LexState::new(accepted, &ways, facts)
    }
}

fn states(body: &str, facts: &Facts) -> Vec<LexState> {
    let from = body.find("switch (state) {").unwrap() + "switch (state) {".len();
    let mut reader = Reader {
        tokens: Tokens(&body[from..]).peekable(),
    };
    let mut states = Vec::new();
    while let Token::Word("case") = reader.next() {
        assert_eq!(reader.number() as usize, states.len());
        reader.expect(":");
        states.push(reader.state(facts));
        reader.expect("(");
        reader.expect(")");
        reader.expect(";");
    }
    states
}

impl Condition {
    fn holds(&self, next: i64, at_end: bool, facts: &Facts) -> bool {
        let value = |operand: &Operand| match operand {
            Operand::Next => next,
            Operand::Number(number) => i64::from(*number),
        };
        match self {
            Self::Or(all) => all.iter().any(|one| one.holds(next, at_end, facts)),
            Self::And(all) => all.iter().all(|one| one.holds(next, at_end, facts)),
            Self::Not(one) => !one.holds(next, at_end, facts),
            Self::AtEnd => at_end,
            Self::InSet(name) => facts.sets[name]
                .iter()
                .any(|(first, last)| (i64::from(*first)..=i64::from(*last)).contains(&next)),
            Self::Compare(left, sign, right) => {
                let (left, right) = (value(left), value(right));
                match sign.as_str() {
                    "==" => left == right,
                    "!=" => left != right,
                    "<=" => left <= right,
                    "<" => left < right,
                    ">=" => left >= right,
                    ">" => left > right,
                    other => panic!("{other}"),
                }
            }
        }
    }

    /// The characters at which the answer may change.
    fn borders(&self, facts: &Facts, into: &mut BTreeSet<u32>) {
        match self {
            Self::Or(all) | Self::And(all) => {
                all.iter().for_each(|one| one.borders(facts, into));
            }
            Self::Not(one) => one.borders(facts, into),
            Self::AtEnd => {}
            Self::InSet(name) => into.extend(
                facts.sets[name]
                    .iter()
                    .flat_map(|(first, last)| [*first, last + 1]),
            ),
            Self::Compare(left, _, right) => {
                for operand in [left, right] {
                    if let Operand::Number(number) = operand {
                        into.extend([*number, number + 1]);
                    }
                }
            }
        }
    }
}

/// No character is larger.
const END: u32 = i32::MAX.cast_unsigned();
/// What the parser says of broken encodings, as -1.
const BROKEN: u32 = u32::MAX;

impl LexState {
    fn new(accepted: u16, ways: &[Way], facts: &Facts) -> Self {
        let to = |next: i64, at_end: bool| {
            let way = ways.iter().find(|way| way.when.holds(next, at_end, facts));
            way.map_or(NONE, |way| way.to)
        };
        let plain = u32::try_from(PLAIN).unwrap();
        let mut borders = BTreeSet::from([plain]);
        ways.iter()
            .for_each(|way| way.when.borders(facts, &mut borders));
        let borders: Vec<u32> = borders.into_iter().filter(|at| *at >= plain).collect();
        let mut ranges: Vec<(u32, u32, u16)> = Vec::new();
        for (index, first) in borders.iter().enumerate() {
            let last = borders.get(index + 1).map_or(END, |next| next - 1);
            match (ranges.last_mut(), to(i64::from(*first), false)) {
                (_, NONE) => {}
                (Some((_, end, way)), same) if *way == same && *end + 1 == *first => *end = last,
                (_, way) => ranges.push((*first, last, way)),
            }
        }
        let broken = to(-1, false);
        if broken != NONE {
            ranges.push((BROKEN, BROKEN, broken));
        }
        Self {
            accepted,
            ways: (0..i64::from(plain)).map(|next| to(next, false)).collect(),
            ranges,
            at_end: to(0, true),
        }
    }
}

/// As `src/grammar/automaton.rs` reads it.
fn table(states: &[LexState]) -> Vec<u8> {
    let mut bytes = u32::try_from(states.len()).unwrap().to_le_bytes().to_vec();
    bytes.extend(states.iter().flat_map(|state| state.accepted.to_le_bytes()));
    bytes.extend(states.iter().flat_map(|state| state.at_end.to_le_bytes()));
    let ways = states.iter().flat_map(|state| &state.ways);
    bytes.extend(ways.flat_map(|way| way.to_le_bytes()));
    let mut start: u32 = 0;
    for state in states {
        bytes.extend(start.to_le_bytes());
        start += u32::try_from(state.ranges.len()).unwrap();
    }
    bytes.extend(start.to_le_bytes());
    for (first, last, way) in states.iter().flat_map(|state| &state.ranges) {
        let numbers = [*first, *last, u32::from(*way)];
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    }
    bytes
}
