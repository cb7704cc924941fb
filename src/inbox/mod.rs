//! The surfaces on which a person sees what waits and answers it, outside any client.
//!
//! A surface draws [`Card`](crate::card::Card)s and hands what was said to [`Desk`](crate::proxy::Desk), with the road
//! and who came on it. It resumes no call and turns no click into an answer by itself.

pub mod terminal;
pub mod web;
