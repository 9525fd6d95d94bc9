//! The addresses of links and images: complete ones, so that they can be followed.

use ego_tree::NodeId;
use html5ever::local_name;
use html5ever::tendril::StrTendril;
use scraper::node::Node;
use scraper::{ElementRef, Html};
use url::Url;

/// Bytes of the addresses that are completed in a page. One that begins with a long address could come to many times its size.
const COMPLETED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of an address that a page sends its readers to.
const SENT_BYTES_MAX: usize = 2_000;

/// What the addresses in a page are relative to: what it says itself, or where it stands.
pub(super) fn base(html: &Html, url: &Url) -> Url {
    let mut elements = html.tree.nodes().filter_map(ElementRef::wrap);
    let base = elements.find_map(|element| match element.value().name() {
        "base" => element.attr("href"),
        _ => None,
    });
    base.and_then(|base| url.join(base.trim()).ok())
        .filter(|base| matches!(base.scheme(), "https" | "http"))
        .unwrap_or_else(|| url.clone())
}

/// Where a page sends its readers on without their doing: `<meta http-equiv="refresh" content="0; url=…">`. Browsers go there.
pub(super) fn sends_on(html: &Html, base: &Url) -> Option<Url> {
    let mut elements = html.tree.nodes().filter_map(ElementRef::wrap);
    let wish = elements.find_map(|element| {
        let is_refresh = |kind: &str| kind.trim().eq_ignore_ascii_case("refresh");
        let is_meta = element.value().name() == "meta";
        let is_it = is_meta && element.attr("http-equiv").is_some_and(is_refresh);
        element.attr("content").filter(|_| is_it)
    })?;
    let (_seconds, address) = wish.split_once([';', ','])?;
    let address = address.trim();
    let address = match address.split_once('=') {
        Some((name, rest)) if name.trim().eq_ignore_ascii_case("url") => rest.trim(),
        _ => address,
    };
    let url = base.join(address.trim_matches(['"', '\''])).ok()?;
    let is_page = matches!(url.scheme(), "https" | "http");
    let is_other = url != *base;
    (is_page && is_other && url.as_str().len() <= SENT_BYTES_MAX).then_some(url)
}

/// Completes the addresses of links and images. What only leads to another place of the page stays.
pub(super) fn complete(html: &mut Html, base: &Url) {
    let mut n_left = COMPLETED_BYTES_MAX;
    for node in html.tree.values_mut() {
        let Node::Element(element) = node else {
            continue;
        };
        let kind = match element.name() {
            "a" => local_name!("href"),
            "img" => local_name!("src"),
            _ => continue,
        };
        let Some((_, value)) = element
            .attrs
            .iter_mut()
            .find(|(name, _)| name.local == kind)
        else {
            continue;
        };
        let Some(url) = completed(value, base) else {
            continue;
        };
        let Some(left) = n_left.checked_sub(url.as_str().len()) else {
            return;
        };
        n_left = left;
        *value = StrTendril::from(url.as_str());
    }
}

fn completed(address: &str, base: &Url) -> Option<Url> {
    let url = match address.starts_with('#') {
        true => return None,
        false => base.join(address).ok()?,
    };
    is_followed(&url).then_some(url)
}

fn is_followed(url: &Url) -> bool {
    matches!(url.scheme(), "https" | "http" | "mailto")
}

/// Puts the address of each link behind its text.
pub(super) fn write(html: &mut Html) {
    let links: Vec<(NodeId, String)> = html
        .tree
        .nodes()
        .filter_map(ElementRef::wrap)
        .filter(|link| link.value().name() == "a")
        .filter_map(|link| {
            let url = Url::parse(link.attr("href")?).ok()?;
            is_followed(&url).then(|| (link.id(), url.into()))
        })
        .collect();
    for (id, address) in links {
        if let Some(mut link) = html.tree.get_mut(id) {
            let text = scraper::node::Text {
                text: StrTendril::from(format!(" <{address}>")),
            };
            link.append(Node::Text(text));
        }
    }
}
