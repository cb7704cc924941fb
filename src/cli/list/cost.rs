//! `pml list --cost`: what the definitions of tools cost a model's context.

use serde_json::{Value, json};

use super::survey::ServerSurvey;
use super::tool::Tool;
use crate::protocol::Shown;

/// How many of the heaviest tools are named.
const HEAVIEST: usize = 10;

/// How many bytes of JSON are about one token: a rule of thumb, the same for every model.
const BYTES_PER_TOKEN: usize = 4;

/// What the tools of a server cost that clients are told of.
struct Cost<'a> {
    server: &'a str,
    /// How many there are; `None` where they are not known.
    tools: Option<usize>,
    bytes: usize,
}

fn tokens(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

fn listed(server: &ServerSurvey) -> impl Iterator<Item = &Tool> {
    let enabled = (!server.disabled).then_some(server.tools.iter().flatten());
    enabled.into_iter().flatten().filter(|tool| tool.is_listed())
}

fn costs(servers: &[ServerSurvey]) -> Vec<Cost<'_>> {
    let cost = |server| {
        let tools: Vec<&Tool> = listed(server).collect();
        Cost {
            server: server.name.as_str(),
            tools: (server.disabled || server.tools.is_some()).then_some(tools.len()),
            bytes: tools.iter().map(|tool| tool.bytes).sum(),
        }
    };
    servers.iter().map(cost).collect()
}

fn heaviest(servers: &[ServerSurvey]) -> Vec<&Tool> {
    let mut tools: Vec<&Tool> = servers.iter().flat_map(listed).collect();
    tools.sort_by(|one, other| {
        other
            .bytes
            .cmp(&one.bytes)
            .then_with(|| one.name.cmp(&other.name))
    });
    tools.truncate(HEAVIEST);
    tools
}

/// Lays out the costs of each server, their sum, and the heaviest tools.
pub(super) fn table(servers: &[ServerSurvey]) -> String {
    let costs = costs(servers);
    let sum = Cost {
        server: "all",
        tools: Some(costs.iter().filter_map(|cost| cost.tools).sum()),
        bytes: costs.iter().map(|cost| cost.bytes).sum(),
    };
    let width = costs
        .iter()
        .map(|cost| cost.server.len())
        .max()
        .unwrap_or(0)
        .max(4);
    let mut lines = vec![format!(
        "{:width$}  {:>5}  {:>8}  {:>8}",
        "NAME", "TOOLS", "BYTES", "~TOKENS"
    )];
    lines.extend(costs.iter().chain([&sum]).map(|cost| {
        let tools = cost
            .tools
            .map_or_else(|| "?".to_owned(), |tools| tools.to_string());
        format!(
            "{:width$}  {tools:>5}  {:>8}  {:>8}",
            cost.server,
            cost.bytes,
            tokens(cost.bytes)
        )
    }));
    let heaviest = heaviest(servers);
    if !heaviest.is_empty() {
        lines.push(String::new());
        lines.push(format!("{:>8}  {:>8}  HEAVIEST TOOLS", "BYTES", "~TOKENS"));
        lines.extend(heaviest.iter().map(|tool| {
            let name = tool.name.to_string();
            format!(
                "{:>8}  {:>8}  {}",
                tool.bytes,
                tokens(tool.bytes),
                Shown::line(&name)
            )
        }));
    }
    lines.join("\n")
}

/// Returns the same as scripts see it.
pub(super) fn json(servers: &[ServerSurvey]) -> Value {
    let costs = costs(servers);
    let total: usize = costs.iter().map(|cost| cost.bytes).sum();
    let one = |cost: &Cost<'_>| json!({ "name": cost.server, "tools": cost.tools, "bytes": cost.bytes, "tokens": tokens(cost.bytes) });
    let heavy =
        |tool: &&Tool| json!({ "tool": tool.name, "bytes": tool.bytes, "tokens": tokens(tool.bytes) });
    json!({
        "servers": costs.iter().map(one).collect::<Vec<_>>(),
        "bytes": total,
        "tokens": tokens(total),
        "bytesPerToken": BYTES_PER_TOKEN,
        "heaviest": heaviest(servers).iter().map(heavy).collect::<Vec<_>>(),
    })
}
