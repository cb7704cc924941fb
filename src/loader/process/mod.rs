//! The processes of servers: started under a supervisor, followed and stopped; and where their programs are found.

mod child;
mod errand;
mod launch_line;
mod programs;
mod stderr;
pub mod supervisor;
mod supervisor_process;

pub use child::{Exit, Pipes, Process, SpawnError, Stdin, Urgency, spawn};
pub use errand::{ErrandEnd, run_errand};
pub use launch_line::LaunchLine;
pub(in crate::loader) use programs::{find_in_project, is_in_project};
pub use programs::{find_program, find_users_program, search_path};
pub use stderr::Stderr;
