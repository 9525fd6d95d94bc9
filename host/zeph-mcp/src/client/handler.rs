//! The host's answers to requests of a server.

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorCode, ErrorData,
    FormElicitationCapability, Implementation, ListRootsResult, ProtocolVersion,
    UrlElicitationCapability,
};
use rmcp::service::RequestContext;
use rmcp::{ClientHandler, RoleClient};

use super::complaint::Complaints;
use super::desk::Desk;
use super::ending::Ending;
use super::listener::ServerListener;
use super::{QuestionKinds, question};

/// Answers what was given, and refuses the rest. Notifications never come this far (see `desk`).
pub(super) struct Handler {
    pub(super) listener: Arc<dyn ServerListener>,
    pub(super) complaints: Complaints,
    pub(super) desk: Desk,
    pub(super) ending: Ending,
    pub(super) questions: QuestionKinds,
    pub(super) version: String,
}

impl Handler {
    fn refused(&self, what: &str) -> ErrorData {
        self.complaints.add(format!(
            "the server asked for {what}, which it was not given"
        ));
        ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            format!("this client does not offer {what}"),
            None,
        )
    }
}

impl ClientHandler for Handler {
    async fn create_message(
        &self,
        _params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Err(self.refused("completions by the model (sampling)"))
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Err(self.refused("the list of directories (roots)"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if !self.questions.has(&request) {
            return Err(self.refused("answers of the user (elicitation)"));
        }
        let question = question::cleaned(request).map_err(|problem| {
            self.complaints
                .add(format!("a question of the server is not put: {problem}"));
            ErrorData::invalid_params(problem, None)
        })?;
        tokio::select! {
            answer = self.listener.elicit(question) => Ok(answer),
            () = context.ct.cancelled() => Err(gone()),
            () = self.desk.nobody_waits(&context.id) => Err(gone()),
            _reason = self.ending.wait() => Err(gone()),
        }
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let QuestionKinds { forms, addresses } = self.questions;
        capabilities.elicitation = self.questions.has_any().then(|| {
            let mut kinds = ElicitationCapability::new();
            kinds.form = forms.then(FormElicitationCapability::new);
            kinds.url = addresses.then(UrlElicitationCapability::new);
            kinds
        });
        let implementation = Implementation::new("zeph-host", &self.version);
        // What a handshake names; the revisions without one are negotiated apart.
        ClientConfig::new(capabilities, implementation)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

fn gone() -> ErrorData {
    ErrorData::internal_error("the question was withdrawn", None)
}
