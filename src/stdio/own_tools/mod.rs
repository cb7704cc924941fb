//! The tools and prompts of pml itself.

pub(crate) mod ask_user;
pub(crate) mod permission_prompt;
pub(crate) mod prompts;
pub(crate) mod question_text;
mod status;
