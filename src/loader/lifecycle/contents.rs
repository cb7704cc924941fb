//! Finds out what would be installed with a package before a person is asked about it: once for all callers, in a task
//! that goes on after a question has stopped waiting.
//!
//! Nothing of the package is fetched and no code of it runs; what is found is kept, and an installation uses it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::error::LoadError;
use super::loader::{Common, Loader};
use super::mutex::lock;
use super::searches::SearchProgress;
use super::start::Steps;
use crate::loader::install::{InstallError, InstallStep};
use crate::loader::plan::Plan;
use crate::protocol::Digest;

/// How long a question waits for what is installed with a package: a lock of a hundred packages takes up to eight seconds,
/// and without it the person is asked twice.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many packages are looked into at a time: each keeps an installer busy, and an agent can declare any number.
const AT_A_TIME: usize = 4;

/// A search in its task; what is asked for after it has ended begins anew.
struct RunningSearch {
    common: Arc<Common>,
    digest: Digest,
}

impl Drop for RunningSearch {
    fn drop(&mut self) {
        lock(&self.common.searches.0).remove(&self.digest);
    }
}

impl Loader {
    /// Finds out everything that would be installed with a package, as far as a question can wait for it.
    ///
    /// Then it goes on by itself. An error means that something is too young, so that no answer could have it installed;
    /// any other is for the installation to meet.
    pub async fn find_contents_soon(
        &self,
        plan: &Arc<Plan>,
        steps: Option<Steps>,
    ) -> Result<(), InstallError> {
        if plan.package().is_none() {
            return Ok(());
        }
        let Some(search) = self.search(plan) else {
            return self.resolve_soon(plan).await;
        };
        match tokio::time::timeout(PATIENCE, found(search, plan, steps)).await {
            Ok(Some(Err(error))) if error.is_about_age() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Does the same to its end, for a person who wants to go on.
    pub async fn find_contents(&self, plan: &Arc<Plan>, steps: Option<Steps>) -> Result<(), LoadError> {
        if plan.package().is_none() {
            return Ok(());
        }
        match self.search(plan) {
            Some(search) => {
                let found = found(search, plan, steps).await;
                Ok(found.ok_or(LoadError::Closing)??)
            }
            // No place is free, and this caller does wait.
            None => Ok(self.common.packages.find_out(plan, &|_| {}).await?),
        }
    }

    /// Joins the search for a plan, or begins it; `None` where too many are under way.
    fn search(&self, plan: &Arc<Plan>) -> Option<watch::Receiver<SearchProgress>> {
        let mut running = lock(&self.common.searches.0);
        if let Some(search) = running.get(plan.digest()) {
            return Some(search.clone());
        }
        if running.len() >= AT_A_TIME {
            return None;
        }
        let (tell, search) = watch::channel(SearchProgress::Step(InstallStep::Resolving));
        running.insert(plan.digest().clone(), search.clone());
        drop(running);
        let own = RunningSearch {
            common: Arc::clone(&self.common),
            digest: plan.digest().clone(),
        };
        let (closing, plan) = (self.own.closing.clone(), Arc::clone(plan));
        self.common.tasks.spawn(async move {
            let step = |step| drop(tell.send_replace(SearchProgress::Step(step)));
            let searching = own.common.packages.find_out(&plan, &step);
            let found = closing.run_until_cancelled(searching).await;
            if let Some(Err(error)) = &found {
                tracing::info!(dependency = %plan.dependency(), %error, "what is installed with it could not be found out");
            }
            drop(own);
            if let Some(found) = found {
                tell.send_replace(SearchProgress::Done(found));
            }
        });
        Some(search)
    }
}

/// Waits for the end of a search; `None` where it broke off because its pml is going.
async fn found(
    mut search: watch::Receiver<SearchProgress>,
    plan: &Plan,
    steps: Option<Steps>,
) -> Option<Result<(), InstallError>> {
    loop {
        match search.borrow_and_update().clone() {
            SearchProgress::Done(found) => return Some(found),
            SearchProgress::Step(step) => {
                if let Some(steps) = &steps {
                    steps(format!(
                        "finding out what is installed with {}: {step}",
                        plan.dependency()
                    ));
                }
            }
        }
        search.changed().await.ok()?;
    }
}
