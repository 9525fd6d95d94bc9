use zeph_core::category::ErrorCategory;

use super::*;

#[test]
fn codes_have_the_retry_of_the_specification_and_of_their_category() {
    for code in McpErrorCode::ALL {
        assert_eq!(
            code.is_retryable(),
            code.category().is_retryable(),
            "{code:?}"
        );
    }
}

#[test]
fn every_failure_has_a_code_but_a_cancelled_one() {
    let cases = [
        (
            McpError::Timeout {
                limit: Duration::from_secs(1),
            },
            Some(McpErrorCode::Transient),
            ErrorCategory::Timeout,
        ),
        (
            McpError::Ended(EndReason::Exited),
            Some(McpErrorCode::Transient),
            ErrorCategory::NetworkError,
        ),
        (McpError::Cancelled, None, ErrorCategory::Cancelled),
        (
            McpError::Http {
                status: 429,
                retry_after_ms: None,
            },
            Some(McpErrorCode::RateLimited),
            ErrorCategory::RateLimited,
        ),
        (
            McpError::Http {
                status: 503,
                retry_after_ms: None,
            },
            Some(McpErrorCode::Transient),
            ErrorCategory::ServerError,
        ),
        (
            McpError::Http {
                status: 404,
                retry_after_ms: None,
            },
            Some(McpErrorCode::NotFound),
            ErrorCategory::PermanentFailure,
        ),
        (
            McpError::Moved {
                status: 301,
                url: "https://example.org/".to_owned(),
            },
            Some(McpErrorCode::ServerError),
            ErrorCategory::PermanentFailure,
        ),
        (
            McpError::ToolCall {
                code: McpErrorCode::from_rpc(-32600),
                rpc_code: -32600,
                message: String::new(),
            },
            Some(McpErrorCode::InvalidInput),
            ErrorCategory::PermanentFailure,
        ),
        (
            McpError::Authorization { challenge: None },
            Some(McpErrorCode::AuthFailure),
            ErrorCategory::PolicyBlocked,
        ),
        (
            McpError::NotGiven("roots"),
            Some(McpErrorCode::PolicyBlocked),
            ErrorCategory::PolicyBlocked,
        ),
        (
            McpError::BadAnswer(String::new()),
            Some(McpErrorCode::ServerError),
            ErrorCategory::PermanentFailure,
        ),
    ];
    for (error, code, category) in cases {
        assert_eq!(
            (error.code(), error.category()),
            (code, category),
            "{error:?}"
        );
    }
}

#[test]
fn a_failure_of_a_call_names_the_server() {
    let failure = McpError::Timeout {
        limit: Duration::from_secs(30),
    }
    .failure("files", "zeph-host");
    assert_eq!(
        failure.message,
        "MCP server `files`: the server has not answered within 30 s"
    );
}

#[test]
fn a_server_that_wants_more_names_the_login() {
    let failure = |challenge: &str| {
        let challenge = Some(challenge.to_owned());
        let failure =
            McpError::Authorization { challenge }.failure("hub", "zeph-host --config x.toml");
        failure.message
    };
    let wanted = failure(r#"Bearer error="insufficient_scope", scope="mcp:read mcp:write""#);
    assert!(
        wanted.ends_with(
            "`zeph-host --config x.toml mcp login hub --scope mcp:read --scope mcp:write`"
        ),
        "{wanted}"
    );
    let hostile = failure(r#"Bearer scope="a;rm `b` c""#);
    assert!(
        hostile.ends_with("`zeph-host --config x.toml mcp login hub --scope c`"),
        "{hostile}"
    );
    assert!(failure("Bearer").ends_with("`zeph-host --config x.toml mcp login hub`"));
}
