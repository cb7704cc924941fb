//! The inbox: where a person sees and answers the asks of every agent, outside any client.
//!
//! A surface draws cards and records what was said through [`Desk::say`](crate::proxy::Desk::say); it runs nothing and
//! resumes nothing.

pub mod terminal;
