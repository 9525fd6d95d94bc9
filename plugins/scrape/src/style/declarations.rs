//! The declarations of a `style` attribute, read as browsers read them: comments and escapes are resolved, a declaration that is wrong is
//! skipped, and what is important comes last.

use cssparser::{Delimiter, ParseError, Parser, Token};

/// A piece of a value. Words, units and names are in small letters.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Word(String),
    /// A number and its unit: none, `%`, or as it is written.
    Number(f32, String),
    /// What stands behind `#`.
    Hash(String),
    Function(String, Vec<Part>),
    Sign(char),
    /// A string, or what stands in brackets.
    Other,
}

impl Part {
    /// Whether it is a function of one of the names.
    pub(super) fn calls(&self, names: &[&str]) -> bool {
        matches!(self, Self::Function(name, _) if names.contains(&name.as_str()))
    }
}

/// The declarations in the order in which they count: a later one replaces an earlier one of the same name.
pub(super) fn of(style: &str) -> Vec<(String, Vec<Part>)> {
    let mut input = Parser::new(style);
    let (mut usual, mut important) = (Vec::new(), Vec::new());
    while !input.is_exhausted() {
        let declaration = input.parse_until_after(Delimiter::Semicolon, declaration);
        let Ok((name, mut value)) = declaration else {
            continue;
        };
        match value.iter().position(|part| *part == Part::Sign('!')) {
            None => usual.push((name, value)),
            Some(at) if value[at + 1..] == [Part::Word("important".to_owned())] => {
                value.truncate(at);
                important.push((name, value));
            }
            Some(_) => {}
        }
    }
    usual.extend(important);
    usual
}

fn declaration<'i>(input: &mut Parser<'i>) -> Result<(String, Vec<Part>), ParseError<()>> {
    let name = input.expect_ident()?.to_ascii_lowercase();
    input.expect_colon()?;
    Ok((name, parts(input)?))
}

fn parts<'i>(input: &mut Parser<'i>) -> Result<Vec<Part>, ParseError<()>> {
    let mut parts = Vec::new();
    while let Ok(token) = input.next().cloned() {
        parts.push(match token {
            Token::Ident(word) => Part::Word(word.to_ascii_lowercase()),
            Token::Number { value, .. } => Part::Number(value, String::new()),
            Token::Percentage { unit_value, .. } => {
                Part::Number(unit_value * 100.0, "%".to_owned())
            }
            Token::Dimension { value, unit, .. } => Part::Number(value, unit.to_ascii_lowercase()),
            Token::Hash(digits) | Token::IDHash(digits) => Part::Hash(digits.to_string()),
            Token::UnquotedUrl(_) => Part::Function("url".to_owned(), Vec::new()),
            Token::Comma => Part::Sign(','),
            Token::Colon => Part::Sign(':'),
            Token::Delim(sign) => Part::Sign(sign),
            Token::Function(name) => {
                let inside = input.parse_nested_block(self::parts)?;
                function(name.to_ascii_lowercase(), inside)
            }
            _ => Part::Other,
        });
    }
    Ok(parts)
}

/// A function; a sum of one number is that number.
fn function(name: String, inside: Vec<Part>) -> Part {
    match (name.as_str(), &inside[..]) {
        ("calc", [number @ Part::Number(..)]) => number.clone(),
        _ => Part::Function(name, inside),
    }
}
