//! What is listed to the client, and what a list promises it.

pub(crate) mod items;
pub(crate) mod output_schemas;
pub(crate) mod resource_lookup;
pub(crate) mod tool_list;
mod tools;
