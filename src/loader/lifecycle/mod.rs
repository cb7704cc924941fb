//! The life of servers: started once for all calls that wait, found while they run, retired, restarted, ended with pml.

mod contents;
mod error;
mod failure_log;
mod history_record;
mod known_lists;
mod last_use;
mod launch;
mod loader;
mod mutex;
mod native_module;
pub mod restart;
mod retirement;
mod running_server;
mod searches;
mod server_variables;
mod slot;
mod start;
#[cfg(test)]
mod tests;
mod transport;

pub use error::LoadError;
pub use failure_log::LastFailure;
pub use loader::{Gate, GateAnswer, Loader};
pub use retirement::Occupied;
pub use running_server::Started;
pub use server_variables::ServerVariables;
pub use slot::Lease;
pub use start::Steps;
