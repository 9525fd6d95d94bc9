//! XHTML as HTML: in XML any element can end in its own tag, and text can stand in a section of its own, which HTML does not know.

/// Elements that never hold anything. HTML knows that they end.
const VOID: [&str; 19] = [
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input",
    "keygen", "link", "meta", "param", "source", "track", "wbr", "image",
];

/// The page that the parser of HTML takes for what `text` is in XML.
pub fn to_html(text: &str) -> String {
    let mut html = String::with_capacity(text.len() + text.len() / 16);
    let mut rest = text;
    while let Some(start) = memchr::memchr(b'<', rest.as_bytes()) {
        let (before, tag) = rest.split_at(start);
        html.push_str(before);
        rest = if let Some(inside) = tag.strip_prefix("<![CDATA[") {
            let (inside, rest) = inside.split_once("]]>").unwrap_or((inside, ""));
            push_escaped(&mut html, inside);
            rest
        } else if tag.starts_with("<!--") {
            copy(&mut html, tag, "-->")
        } else if tag.starts_with("<?") {
            let (_, rest) = tag.split_once("?>").unwrap_or((tag, ""));
            rest
        } else {
            let (tag, rest) = tag.split_at(end_of(tag));
            push_tag(&mut html, tag);
            rest
        };
    }
    html.push_str(rest);
    html
}

/// Copies up to `end`, and returns what comes behind.
fn copy<'a>(html: &mut String, text: &'a str, end: &str) -> &'a str {
    let len = text.find(end).map_or(text.len(), |at| at + end.len());
    let (text, rest) = text.split_at(len);
    html.push_str(text);
    rest
}

fn push_escaped(html: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            letter => html.push(letter),
        }
    }
}

/// Where a tag ends: behind the first `>` that stands in no value.
fn end_of(tag: &str) -> usize {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at + 1,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    tag.len()
}

fn push_tag(html: &mut String, tag: &str) {
    let name = |tag: &str| {
        let end =
            tag.find(|letter: char| letter.is_ascii_whitespace() || matches!(letter, '/' | '>'));
        tag[..end.unwrap_or(tag.len())].to_owned()
    };
    if let Some(end) = tag.strip_prefix("</") {
        // It would be one more.
        if !VOID.contains(&name(end).as_str()) {
            html.push_str(tag);
        }
        return;
    }
    let name = name(&tag[1..]);
    match tag.strip_suffix("/>") {
        Some(open) if !name.is_empty() && !VOID.contains(&name.as_str()) => {
            html.push_str(open);
            html.push_str("></");
            html.push_str(&name);
            html.push('>');
        }
        _ => html.push_str(tag),
    }
}

#[cfg(test)]
mod tests {
    use super::to_html;

    #[test]
    fn elements_end_where_xml_ends_them() {
        for (xhtml, expected) in [
            (
                "<script src=\"a.js\"/>text",
                "<script src=\"a.js\"></script>text",
            ),
            (
                "<title/><p>a<br/>b<br></br>c</p>",
                "<title></title><p>a<br/>b<br>c</p>",
            ),
            (
                "<a title='x/>' id=\"1\" />z",
                "<a title='x/>' id=\"1\" ></a>z",
            ),
            ("<p>a<![CDATA[<b> & c]]>d</p>", "<p>a&lt;b> &amp; cd</p>"),
            (
                "<?xml version=\"1.0\"?><!-- <i/> --><i/>",
                "<!-- <i/> --><i></i>",
            ),
            ("a < b <c", "a < b <c"),
            ("<![CDATA[a", "a"),
            ("<p", "<p"),
            ("<é/>", "<é></é>"),
        ] {
            assert_eq!(to_html(xhtml), expected, "{xhtml}");
        }
    }
}
