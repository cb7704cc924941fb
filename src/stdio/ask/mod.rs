//! How a person is asked through the client: the ladder, its dialogs and forms, and the words of both.

pub(crate) mod dialog;
pub(crate) mod form;
pub(crate) mod ladder;
pub(crate) mod open_forms;
pub(crate) mod question_forms;
pub(crate) mod wording;
