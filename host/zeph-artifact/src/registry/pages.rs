//! Lists that a registry answers in parts: each says where the next is.

use http::header::LINK;
use url::Url;
use zeph_egress::OwnAnswer;

use super::request::Asked;
use super::session::Session;
use super::{RegistryError, error};

/// Most parts of a list.
pub(super) const PAGES_MAX: usize = 32;

/// A list that is being read.
pub(super) struct Pages<'a> {
    session: &'a Session<'a>,
    /// What the list is of, in words.
    what: &'static str,
    asked: Asked,
    n_pages: usize,
}

impl<'a> Pages<'a> {
    /// Shape: `asked` is the request for the first part.
    pub(super) fn new(session: &'a Session<'a>, what: &'static str, asked: Asked) -> Self {
        Self {
            session,
            what,
            asked,
            n_pages: 1,
        }
    }

    /// Where the list goes on after `page`, the part that was asked for last.
    ///
    /// Errors: a `Link` that is no URL, or one of another server: what is on the parts that are not read could be what counts.
    pub(super) fn after(&self, page: &OwnAnswer) -> Result<Option<Url>, RegistryError> {
        let next = next_page(page, &self.asked.url)?;
        match next {
            Some(next) if !self.session.is_own(&next) => {
                let origin = next.origin().ascii_serialization();
                let what = self.what;
                let why = format!("the list of {what} goes on at `{origin}`");
                Err(RegistryError::Protocol(why))
            }
            next => Ok(next),
        }
    }

    /// The part at `next`; none when the list is over.
    ///
    /// Errors: a list of more than [`PAGES_MAX`] parts, and those of the request.
    pub(super) async fn get(
        &mut self,
        next: Option<Url>,
    ) -> Result<Option<OwnAnswer>, RegistryError> {
        let Some(next) = next else {
            return Ok(None);
        };
        self.n_pages += 1;
        if self.n_pages > PAGES_MAX {
            let what = self.what;
            let why = format!("the list of {what} has more than {PAGES_MAX} pages");
            return Err(RegistryError::Protocol(why));
        }
        self.asked.url = next;
        let answer = self.session.send(&self.asked).await?;
        error::success(answer, &self.asked.told()).await.map(Some)
    }
}

/// Where a list goes on: `Link: <URL>; rel="next"`.
///
/// Source: the distribution specification of OCI, "Listing Tags" and "Listing Referrers", and RFC 8288.
fn next_page(answer: &OwnAnswer, here: &Url) -> Result<Option<Url>, RegistryError> {
    let links = answer.headers.get_all(LINK).iter();
    let links = links.filter_map(|value| value.to_str().ok());
    let mut each = links.flat_map(|value| value.split(','));
    let next = each.find_map(|link| {
        let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        let mut parameters = parameters.split(';').map(str::trim);
        let is_next = |one: &str| matches!(one, "rel=next" | "rel=\"next\"");
        parameters.any(is_next).then_some(target)
    });
    let joined = next.map(|next| here.join(next));
    let bad = |_| RegistryError::Protocol("the `Link` of a list is not a URL".to_owned());
    joined.transpose().map_err(bad)
}
