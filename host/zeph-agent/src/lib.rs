//! The agent: models of several providers, their wire formats, the loop of turns, the transcript.
