//! The processes of servers: started under a supervisor, followed and stopped; and where their programs are found.

mod child;
mod programs;
mod stderr;
pub mod supervisor;

pub use child::{Exit, LaunchLine, Pipes, Process, SpawnError, Stdin, Urgency, spawn};
pub(in crate::loader) use programs::{find_in_project, is_in_project};
pub use programs::{find_program, search_path};
pub use stderr::Stderr;
