//! What the rules say of the client's own tools, and of commands of its shell.

use super::{Proxy, Refusal, View};
use crate::permissions::Ruling;
use crate::protocol::{DependencyName, Digest, Pattern, ToolName, own_tool};

/// What clients put before the names of the tools that pml lists.
const LISTED: &str = "mcp__pml__";

/// What the rules say of one of the client's own tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientToolRuling {
    /// It may be used.
    Allow,
    /// A person must decide.
    Ask,
}

impl Proxy {
    /// Returns what the rules say about a tool now, what a person granted for the session included.
    pub fn ruling_for(&self, tool: &ToolName) -> Result<Ruling, Refusal> {
        let view = self.view().map_err(Refusal::Config)?;
        let ruling = self.ruled(&view, tool)?;
        Ok(if self.0.grants.allows_tool(tool, &client_launch()) {
            Ruling::Allow
        } else {
            ruling
        })
    }

    fn ruling_for_command(&self, tool: &ToolName, command: &str) -> Result<Ruling, Refusal> {
        let view = self.view().map_err(Refusal::Config)?;
        let ruling = self.noted(tool, View::judged(tool, view.policy.check_command(tool, command)))?;
        Ok(if self.0.grants.allows_tool(tool, &client_launch()) {
            Ruling::Allow
        } else {
            ruling
        })
    }

    /// Returns what the rules say about one use of a client's tool; `command` is what its shell would run.
    pub(super) fn ruling_for_use(&self, tool: &ToolName, command: Option<&str>) -> Result<Ruling, Refusal> {
        match command.filter(|_command| Pattern::is_shell(tool)) {
            Some(command) => self.ruling_for_command(tool, command),
            None => self.ruling_for(tool),
        }
    }

    /// Decides about one of the client's own tools, by the name that the client gives it. A tool that the client reaches through
    /// pml is decided when it is called.
    ///
    /// Fails if a rule denies it, or the tool behind it.
    ///
    /// `command` is what its shell would run, where the tool is that.
    pub fn client_tool_ruling(&self, name: &str, command: Option<&str>) -> Result<ClientToolRuling, Refusal> {
        let tool = ToolName::new(DependencyName::client(), name);
        let ruling = self.ruling_for_use(&tool, command)?;
        let allowed = ruling == Ruling::Allow || self.goes_through_pml(name)?;
        Ok(if allowed {
            ClientToolRuling::Allow
        } else {
            ClientToolRuling::Ask
        })
    }

    /// Tells whether a tool of the client is one of pml's own, or one that pml gates when it is called.
    fn goes_through_pml(&self, name: &str) -> Result<bool, Refusal> {
        let Some(listed) = name.strip_prefix(LISTED) else {
            return Ok(false);
        };
        if own_tool::ALL.contains(&listed) {
            return Ok(true);
        }
        match self.listed_as(listed)? {
            Some(tool) => self.ruling_for(&tool).map(|_ruled| true),
            None => Ok(false),
        }
    }

    /// Lets a tool of the client run without a further question while this pml runs.
    pub fn allow_for_session(&self, tool: ToolName) {
        self.0.grants.allow_tool(tool, client_launch());
    }
}

/// What the client's own tools are launched as, for grants: not by pml.
fn client_launch() -> Digest {
    Digest::of(["client"])
}
