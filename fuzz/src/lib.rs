//! The part of pml that reads what others wrote, by itself.

#[path = "../../src/protocol/mod.rs"]
pub mod protocol;
