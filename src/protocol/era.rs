//! The two kinds of MCP that are spoken today.

use serde::{Deserialize, Serialize};

/// Which MCP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// 2024-11-05 to 2025-11-25: `initialize` once.
    #[default]
    Legacy,
    /// 2026-07-28: an envelope in every request, `resultType` in every result.
    Modern,
}

impl Era {
    /// The member of `_meta` by which a Modern request names its version.
    pub const VERSION: &'static str = "io.modelcontextprotocol/protocolVersion";
    /// The member of `_meta` by which a Modern request says what its client can do.
    pub const CAPABILITIES: &'static str = "io.modelcontextprotocol/clientCapabilities";
    /// The member of `_meta` by which a Modern request says who asks.
    pub const CLIENT: &'static str = "io.modelcontextprotocol/clientInfo";
    /// The member of `_meta` by which a Modern request says which log messages it wants.
    pub const LOG_LEVEL: &'static str = "io.modelcontextprotocol/logLevel";
    /// The member of `_meta` by which a Modern notification names the subscription it belongs to.
    pub const SUBSCRIPTION: &'static str = "io.modelcontextprotocol/subscriptionId";
    /// What all members of the Modern envelope begin with.
    pub const ENVELOPE: &'static str = "io.modelcontextprotocol/";
}
