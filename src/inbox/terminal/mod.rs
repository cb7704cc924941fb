//! The screen of the inbox, drawn in a terminal.
//!
//! The core is pure: [`keys`] turns a key into a message, [`update`] turns state, message and moment into the next state
//! and into effects as data, [`view`] draws the state. Only [`run`] reads keys, asks the desk and writes to the terminal.

pub mod keys;
pub mod messages;
pub mod state;
pub mod update;
pub mod view;

mod arrivals;
mod body;
mod draft;
mod layout;
mod queue;
mod run;
mod session;
mod text;
mod theme;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod tests;

pub use run::{ScreenError, run};
pub use theme::Palette;
