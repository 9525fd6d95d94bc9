//! The lists of a server, page by page.

use rmcp::model::{
    ClientRequest, Cursor, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    ListToolsRequest, MetaObject, PaginatedRequestParams, Prompt, RequestOptionalParam, Resource,
    ResourceTemplate, ServerCapabilities, ServerResult, Tool,
};

use super::CallControl;
use super::definition::{Collector, Definition, DefinitionLimits, Definitions};
use super::error::{McpError, McpErrorCode};
use super::message::{OMITTED_KEY, replaced};
use super::session::Session;

/// One page.
type Page<D> = (Vec<D>, Option<Cursor>, Option<MetaObject>);

/// A kind of definition that has a list.
pub(super) trait Paged: Definition {
    fn request(params: PaginatedRequestParams) -> ClientRequest;
    /// The page; `None` for another answer.
    fn page(answer: ServerResult) -> Option<Page<Self>>;
}

macro_rules! paged {
    ($item:ty, $request:ident, $result:ident, $items:ident) => {
        impl Paged for $item {
            fn request(params: PaginatedRequestParams) -> ClientRequest {
                let request: $request = RequestOptionalParam::with_param(params);
                ClientRequest::$request(request)
            }

            fn page(answer: ServerResult) -> Option<Page<Self>> {
                let ServerResult::$result(page) = answer else {
                    return None;
                };
                Some((page.$items, page.next_cursor, page.meta))
            }
        }
    };
}

paged!(Tool, ListToolsRequest, ListToolsResult, tools);
paged!(Prompt, ListPromptsRequest, ListPromptsResult, prompts);
paged!(
    Resource,
    ListResourcesRequest,
    ListResourcesResult,
    resources
);
paged!(
    ResourceTemplate,
    ListResourceTemplatesRequest,
    ListResourceTemplatesResult,
    resource_templates
);

/// Everything the server offers.
pub(super) async fn all(
    session: &Session,
    capabilities: &ServerCapabilities,
    limits: &DefinitionLimits,
) -> Result<Definitions, McpError> {
    let mut found = Definitions::default();
    let notes = &mut found.notes;
    if capabilities.tools.is_some() {
        found.tools = list::<Tool>(session, limits, notes).await?;
    }
    if capabilities.prompts.is_some() {
        found.prompts = list::<Prompt>(session, limits, notes).await?;
    }
    if capabilities.resources.is_some() {
        found.resources = list::<Resource>(session, limits, notes).await?;
        found.templates = list::<ResourceTemplate>(session, limits, notes).await?;
    }
    Ok(found)
}

/// One list.
pub(super) async fn list<D: Paged>(
    session: &Session,
    limits: &DefinitionLimits,
    notes: &mut Vec<String>,
) -> Result<Vec<D::Kept>, McpError> {
    let control = CallControl::default();
    let mut collector = Collector::<D>::new(limits, session.listener.redactor());
    let mut cursor: Option<Cursor> = None;
    for _page in 0..limits.n_pages {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let answer = match session.ask(D::request(params), &control).await {
            Err(error) if is_unknown(&error) => break,
            answer => answer?,
        };
        // What answers all that it does not know with `{}` has no such list: templates have no capability of their own.
        if cursor.is_none() && matches!(answer, ServerResult::EmptyResult(_)) {
            break;
        }
        let Some((items, next, meta)) = D::page(answer) else {
            return Err(McpError::bad_answer(format!(
                "it is not a list of {}s",
                D::NOUN
            )));
        };
        let n_malformed = meta
            .as_ref()
            .and_then(|meta| meta.get(OMITTED_KEY)?.as_u64());
        if let Some(n) = n_malformed {
            collector.note(format!("{n} malformed {}s are omitted", D::NOUN));
        }
        replaced(meta.as_ref())
            .into_iter()
            .for_each(|note| collector.note(note));
        items.into_iter().for_each(|item| collector.take(item));
        let is_last = next.is_none() || next == cursor || collector.is_full();
        cursor = next;
        if is_last {
            break;
        }
    }
    if cursor.is_some() && !collector.is_full() {
        let n = limits.n_pages;
        collector.note(format!(
            "the list of {}s has no end within {n} pages",
            D::NOUN
        ));
    }
    Ok(collector.finish(notes))
}

/// Servers declare a capability and do not know all of its methods.
fn is_unknown(error: &McpError) -> bool {
    matches!(
        error,
        McpError::ToolCall {
            code: McpErrorCode::NotFound,
            ..
        }
    )
}
