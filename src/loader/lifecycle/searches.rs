//! The searches for what is installed with packages, as those who wait for one see them.

use std::collections::HashMap;
use std::sync::Mutex;

use tokio::sync::watch;

use crate::loader::install::{InstallError, InstallStep};
use crate::protocol::Digest;

/// The searches that are under way, by what would be launched.
#[derive(Default)]
pub(super) struct ContentsSearches(pub(super) Mutex<HashMap<Digest, watch::Receiver<SearchProgress>>>);

/// What is told of a search to all who wait for it.
#[derive(Clone)]
pub(super) enum SearchProgress {
    Step(InstallStep),
    Done(Result<(), InstallError>),
}
