//! Chat channels: the person is asked, and answers, in Slack, Telegram, WhatsApp or a notification.
//!
//! They live in `pml serve` alone: one process of the user holds the connection of each token. A channel only shows cards
//! and brings back what was said; who may say it, and what answer it is, is decided by the office and the desk.

mod backoff;
mod books;
pub(crate) mod channel;
mod chat_command;
mod connection;
#[cfg(test)]
mod fake;
mod inert;
mod interpretation;
mod line;
mod listener;
mod local_time;
pub(crate) mod notice;
mod ntfy;
mod office;
mod open_error;
mod opener;
mod outbox;
mod outcome;
pub mod pairing_codes;
mod pauses;
mod plan;
pub(crate) mod press;
mod routes;
#[cfg(test)]
mod samples;
mod service;
mod slack;
mod switchboard;
mod telegram;
mod text;
mod view;
mod webhook;
mod whatsapp;

pub use office::Office;
pub(crate) use slack::manifest as slack_manifest;
pub use switchboard::Switchboard;
