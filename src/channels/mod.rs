//! Chat channels: the person is asked, and answers, in Slack, Telegram, WhatsApp or a notification.
//!
//! They live in `pml serve` alone: one process of the user holds the connection of each token. A channel only shows cards
//! and brings back what was said; who may say it, and what answer it is, is decided by the office and the desk.

pub(crate) mod channel;
#[cfg(test)]
mod fake;
mod inert;
pub(crate) mod notice;
pub(crate) mod ntfy;
pub(crate) mod opening;
pub(crate) mod press;
mod service;
pub(crate) mod telegram;
mod text;
mod typed;
pub(crate) mod whatsapp;
