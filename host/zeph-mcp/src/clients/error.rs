//! Why an entry is not put into a client's file.

/// Why an entry is not put into a client's file. The file is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// The text is not in the client's format. Lines and columns count from 1.
    #[error("line {line}, column {column}: {problem}")]
    Syntax {
        /// The line of the mistake.
        line: usize,
        /// The column of the mistake, in characters.
        column: usize,
        /// What the parser says.
        problem: String,
    },
    /// The file holds no object.
    #[error("the file has another type than the client expects: it is not an object")]
    NoObject,
    /// Something else stands where there has to be an object, table or array.
    #[error("`{0}` has another type than the client expects")]
    Shape(String),
    /// A key that is looked for is there twice: which one counts is the client's choice.
    #[error("`{0}` occurs twice")]
    Twice(String),
    /// An entry of this name exists and does not start the host.
    #[error("there is another server named `{0}`")]
    Foreign(String),
    /// The client cannot reach a server by an address.
    #[error("{0} starts its servers itself; its file has no place for an address")]
    NoHttp(&'static str),
    /// The client reads no variables.
    #[error("{0} cannot read a token from a variable")]
    NoToken(&'static str),
}
