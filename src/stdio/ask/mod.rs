//! How a person is asked through the client: one ladder, its dialogs and forms, and the words of both.

pub(crate) mod approval;
mod dialog;
mod form;
pub(crate) mod ladder;
mod open_forms;
pub(crate) mod subject;
pub(crate) mod wording;
