//! Known vulnerabilities of packages: asked for over HTTP, kept for later, and the verdict on those that are malicious.
//!
//! Only `pml audit` asks. A start and an installation read the verdicts, one small file in the state directory, and
//! nothing where there is none. What is read of advisories and what follows from them is pure: [`crate::pins`].

mod cache;
mod error;
mod osv;
mod verdicts;

pub use cache::{AdvisoryCache, KeptAnswers};
pub use error::AdvisoryError;
pub use osv::{FoundId, Osv};
pub use verdicts::Verdicts;
